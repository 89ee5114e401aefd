"""Names for outputs: each y is called by a symbol of X, one to one, so that nothing is lost.

The assignment maximises P(X = name(Y)): released names are right as often as possible.
"""

from dataclasses import replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from .geometry import Points


def name_outputs(mechanism):
    """Return the mechanism with outputs in the order of their names, and the names.

    names : for each output the position of a symbol of X that has P(x|y) > 0.
    """
    channel, p_x, utility = mechanism.channel, mechanism.p_x, mechanism.objective
    while channel.shape[1] > len(p_x):  # the average scope can have one output too many
        channel = _without_cheapest(channel, p_x, utility)
    names = _assign(p_x[:, None] * channel)
    while names is None:
        channel = _without_cheapest(channel, p_x, utility)
        names = _assign(p_x[:, None] * channel)
    order = np.argsort(names)
    y_labels = tuple(range(channel.shape[1]))
    return replace(mechanism, channel=channel[:, order], y_labels=y_labels), names[order]


def _assign(p_xy):
    """Return a symbol for each output, or None where no one-to-one assignment exists."""
    impossible = -1.0 - p_xy.shape[1]
    x, y = linear_sum_assignment(np.where(p_xy > 0, p_xy, impossible), maximize=True)
    if (p_xy[x, y] <= 0).any():
        return None
    return x[np.argsort(y)]


def _without_cheapest(channel, p_x, utility):
    """Merge the two outputs that cost the least utility: merging never adds leakage."""
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
    i, j = cheapest[1]
    merged = np.delete(channel, i, axis=1)
    merged[:, j] += channel[:, i]
    return merged
