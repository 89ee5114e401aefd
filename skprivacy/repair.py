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
    channel: FloatArray, p_y: FloatArray, leakage: Callable[[FloatArray], float], budget: float
) -> FloatArray:
    """Return the channel, mixed with independence until ``leakage(channel) <= budget``.

    ``(1 - a) channel + a 1 p_y`` keeps P(X) and P(Y) and moves every posterior toward the prior
    by the same share a, so every convex measure falls.
    """
    before = leakage(channel)
    mixed, share = channel, SMALLEST_SHARE
    while not leakage(mixed) <= budget:
        allowed = _MOST_SHARE if before <= budget + _MOST_ROUNDING else _MOST_ROUNDING
        if share > allowed:
            raise SolverError(
                f"The solver returned a channel with leakage {before} for a budget of {budget}, "
                f"which rounding cannot explain."
            )
        mixed = (1 - share) * channel + share * p_y
        mixed /= mixed.sum(axis=1, keepdims=True)
        share *= 2
    return mixed
