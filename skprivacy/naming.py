"""Names for outputs: each y is called by a symbol of X, one to one, so that nothing is lost.

The assignment maximises P(X = name(Y)): released names are right as often as possible.
"""

from dataclasses import replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from .utilities import mutual_information


def name_outputs(mechanism):
    """Return the mechanism with outputs in the order of their names, and the names.

    names : for each output the position of a symbol of X that has P(x|y) > 0.
    """
    channel, p_x = mechanism.channel, mechanism.p_x
    while channel.shape[1] > len(p_x):  # the average scope can have one output too many
        channel = _without_cheapest(channel, p_x)
    names = _assign(p_x[:, None] * channel)
    while names is None:
        channel = _without_cheapest(channel, p_x)
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


def _without_cheapest(channel, p_x):
    """Merge the two outputs that cost the least utility: merging never adds leakage."""
    n_y, best = channel.shape[1], (-np.inf, None)
    for i in range(n_y):
        for j in range(i):
            merged = np.delete(channel, i, axis=1)
            merged[:, j] += channel[:, i]
            best = max(best, (mutual_information(p_x[:, None] * merged), (i, j)))
    i, j = best[1]
    merged = np.delete(channel, i, axis=1)
    merged[:, j] += channel[:, i]
    return merged
