"""What a budget means to a person: how far the probability of a group may move.

Of all posteriors with ``P(s|y) = a`` the one that scales the other groups together leaks the
least, because fusing groups never adds leakage. So the probabilities that a budget allows are
those for which the posterior ``(a, 1 - a)`` of two groups, with the prior ``(p, 1 - p)``, is
within it.
"""

import numpy as np

from .._typing import BoolArray, FloatArray
from .base import Measure

_BISECTIONS = 60  # to 1e-18


def posterior_ranges(measure: Measure, prior: FloatArray, epsilon: float) -> FloatArray:
    """Return (low, high) of each P(s|y) that a budget for every output allows, as rows.

    From 0 to 1 for a measure of which it is not known that fusing groups adds nothing.
    """
    if not measure.is_monotone:
        return np.tile([0.0, 1.0], (len(prior), 1))
    limit = measure.budget(epsilon)
    return np.array([[_furthest(measure, p, limit, end) for end in (0.0, 1.0)] for p in prior])


def may_reach(measure: Measure, prior: FloatArray, epsilon: float, share: float) -> BoolArray:
    """Return whether such a budget lets each P(s|y) reach a share; False where it is not known."""
    if not measure.is_monotone:
        return np.zeros(len(prior), bool)
    limit = measure.budget(epsilon)
    return np.array([_is_allowed(measure, p, limit, share) for p in prior])


def _is_allowed(measure: Measure, p: float, limit: float, a: float) -> bool:
    """Return whether a probability may move from p to a."""
    if p in (0.0, 1.0):  # a group that does not occur, or is all there is, stays so
        return a == p
    return bool(measure.leakage(np.array([a, 1 - a]), np.array([p, 1 - p])) <= limit)


def _furthest(measure: Measure, p: float, limit: float, end: float) -> float:
    """Return how far from p toward an end a probability may be; rounded outward."""
    if _is_allowed(measure, p, limit, end):
        return end
    inside, outside = p, end
    for _ in range(_BISECTIONS):
        middle = (inside + outside) / 2
        is_allowed = _is_allowed(measure, p, limit, middle)
        inside, outside = (middle, outside) if is_allowed else (inside, middle)
    return outside
