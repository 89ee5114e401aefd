"""A theorem on parity: how differently a release comes to the groups of S, on average."""

import numpy as np
from scipy.spatial.distance import pdist

from .._typing import FloatArray

# Beyond this many rows of a channel their distances are bounded rather than computed.
_MOST_ROWS = 2000


def parity_margin(group_sizes: FloatArray, channel: FloatArray, failure: float) -> float:
    """Return how far the parity of the population exceeds that of rows, at most.

    It fails with probability `failure`. ``half the sum over y of the largest minus the smallest
    P(y|s)`` is convex in P(Y|S), so on average over samples it is no smaller for rows than for
    the population (Jensen). Another X in one row of group s moves it by at most D / n_s, where D
    is the largest total variation between two rows of the channel. Given the sizes n_s of the
    groups, it is below its expectation by ``D sqrt(log(1 / failure) / 2 sum of 1 / n_s)`` with
    probability `failure` at most (McDiarmid).
    """
    spread = np.log(1 / failure) / 2 * (1 / group_sizes).sum()
    return largest_distance(channel) * float(np.sqrt(spread))


def largest_distance(channel: FloatArray) -> float:
    """Return the largest total variation between two rows, or a bound where there are many."""
    if 1 < len(channel) <= _MOST_ROWS:
        return float(pdist(channel, "cityblock").max()) / 2
    return max(0.0, 1 - float(channel.min(axis=0).sum()))
