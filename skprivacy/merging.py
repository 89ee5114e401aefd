"""Merging outputs: it never adds leakage, and costs utility."""

import numpy as np

from .geometry import Points

# With more outputs than this, all pairs are too many to be compared.
_MOST_OUTPUTS = 200


def without_cheapest(channel, p_x, utility):
    """Return (channel, cost) with the two outputs merged that cost the least utility."""
    p_y = p_x @ channel
    posterior = (p_x[:, None] * channel / p_y).T
    worth = p_y * utility.value(Points.from_dense(posterior))
    cheapest = (np.inf, None)
    for i in range(1, len(p_y)):
        total = p_y[i] + p_y[:i]
        merged = (p_y[i] * posterior[i] + p_y[:i, None] * posterior[:i]) / total[:, None]
        costs = worth[i] + worth[:i] - total * utility.value(Points.from_dense(merged))
        j = int(costs.argmin())
        cheapest = min(cheapest, (float(costs[j]), (i, j)))
    cost, (i, j) = cheapest
    merged = np.delete(channel, i, axis=1)
    merged[:, j] += channel[:, i]
    return merged, cost


def tidied(channel, p_x, utility, allowance):
    """Return the channel with outputs merged that together are worth no more than `allowance`.

    Solvers find several points next to each other, or use one with a weight of 1e-11.
    """
    while 1 < channel.shape[1] <= _MOST_OUTPUTS:
        merged, cost = without_cheapest(channel, p_x, utility)
        if cost > allowance:
            break
        channel, allowance = merged, allowance - max(cost, 0.0)
    return channel
