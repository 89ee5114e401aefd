"""Mending what rounding breaks, with a little independence."""

from collections.abc import Callable

from ._typing import FloatArray
from .exceptions import SolverError

# What rounding can explain: a small excess, or one that a small share of independence mends.
# Anything else is a solver's failure.
_MOST_ROUNDING = 1e-8

# The smallest share that changes a channel: it is doubled until it is enough.
SMALLEST_SHARE = 2.0**-53

# The largest share of independence that is mixed in: more would cost utility.
_MOST_SHARE = 0.01


def repaired(
    channel: FloatArray, independent: FloatArray, excess: Callable[[FloatArray], float]
) -> FloatArray:
    """Return the channel, mixed with independence until ``excess(channel) <= 0``.

    independent : P(Y), or P(Y|z) in each row where columns z are published beside Y. ``(1 - a)
    channel + a independent`` keeps P(X) and P(Y) and moves every posterior toward the prior, or
    toward that of its z, by the same share a, so every convex measure falls.
    """
    before = excess(channel)
    mixed, share = channel, SMALLEST_SHARE
    while not excess(mixed) <= 0:
        allowed = _MOST_SHARE if before <= _MOST_ROUNDING else _MOST_ROUNDING
        if share > allowed:
            raise SolverError(
                f"The solver returned a channel that exceeds its budget by {before}, which "
                f"rounding cannot explain."
            )
        mixed = (1 - share) * channel + share * independent
        mixed /= mixed.sum(axis=1, keepdims=True)
        share *= 2
    return mixed
