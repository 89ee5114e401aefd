"""Merging outputs: it never adds leakage, but costs utility."""

import numpy as np

from ._typing import FloatArray
from .geometry import Points
from .utilities import Utility

# With more outputs than this, there are too many pairs to compare all of them.
_MOST_OUTPUTS = 200

_AT_ONCE = 5_000_000  # entries of posteriors


def without_cheapest(
    channel: FloatArray, p_x: FloatArray, utility: Utility
) -> tuple[FloatArray, float]:
    """Return (channel, cost) after merging the two outputs whose merger costs least utility."""
    p_y = p_x @ channel
    posterior = (p_x[:, None] * channel / p_y).T
    worth = p_y * utility.value(Points.from_dense(posterior))
    one, other = np.triu_indices(len(p_y), 1)
    costs = np.empty(len(one))
    for part in np.array_split(np.arange(len(one)), 1 + costs.size * len(p_x) // _AT_ONCE):
        i, j = one[part], other[part]
        share = (p_y[i] / (p_y[i] + p_y[j]))[:, None]
        merged = share * posterior[i] + (1 - share) * posterior[j]
        points = Points(np.broadcast_to(np.arange(len(p_x)), merged.shape), merged)
        costs[part] = worth[i] + worth[j] - (p_y[i] + p_y[j]) * utility.value(points)
    cheapest = costs.argmin()
    i, j = one[cheapest], other[cheapest]
    merged = np.delete(channel, j, axis=1)
    merged[:, i] += channel[:, j]
    return merged, float(costs[cheapest])


def merged_by_label(channel: FloatArray, p_x: FloatArray, loss: FloatArray) -> FloatArray:
    """Return the channel with one output for all that the same label is best for."""
    best = ((p_x[:, None] * channel).T @ loss).argmin(axis=1)
    return np.stack([channel[:, best == label].sum(axis=1) for label in np.unique(best)], axis=1)


def tidied(channel: FloatArray, p_x: FloatArray, utility: Utility, allowance: float) -> FloatArray:
    """Return the channel with outputs merged as long as that costs at most `allowance` in total.

    Solvers may find several points next to each other, or use one with a weight of 1e-11.
    """
    if (loss := utility.as_loss(len(p_x))) is not None:
        return merged_by_label(channel, p_x, loss[0])
    while 1 < channel.shape[1] <= _MOST_OUTPUTS:
        merged, cost = without_cheapest(channel, p_x, utility)
        if cost > allowance:
            break
        channel, allowance = merged, allowance - max(cost, 0.0)
    return channel
