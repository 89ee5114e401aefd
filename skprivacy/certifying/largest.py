"""The largest leakage within confidence limits, by every measure for which it is known."""

from __future__ import annotations

from itertools import product

import numpy as np

from .._typing import FloatArray
from ..measures import KL, L1, AlphaLift, Chi2, Lip, MaxLift, Measure, Parity
from .limits import Box, PopulationLimits

# Largest and smallest lifts decide: each group is looked at on its own.
_OF_LIFTS = (MaxLift, Lip, Parity)

# Convex in (P(S|y), P(S)), or an increasing function of what is: largest at vertices.
_CONVEX = (KL, L1, Chi2, AlphaLift)

# Even where a "posterior" is negative.
_CONVEX_EVERYWHERE = (L1, Chi2)

# The vertices are counted in powers of four of the groups.
_MOST_GROUPS: dict[type[Measure], int] = {
    **dict.fromkeys(_OF_LIFTS, 1000),
    **dict.fromkeys(_CONVEX, 8),
}

_ROUNDING = 1e-12


def most_groups(measure: Measure) -> int | None:
    """Return for how many groups of S a bound is computed; None where none is proven."""
    return _MOST_GROUPS.get(type(measure))  # a subclass may be something else


def largest_values(measure: Measure, limits: PopulationLimits) -> FloatArray:
    """Return the largest g of each output within limits."""
    boxes = map(Box, limits.shifts.low, limits.shifts.high)
    if isinstance(measure, _OF_LIFTS):
        return np.array([_of_lifts(measure, limits.prior, shift) for shift in boxes])
    priors = vertices(limits.prior, 1.0)
    return np.array([_at_vertices(measure, limits.prior, priors, shift) for shift in boxes])


def largest_average(values: FloatArray, p_y: Box) -> float:
    """Return the largest average of values, with weights within limits that sum to 1."""
    order = np.argsort(-values)
    room = 1 - p_y.low.sum() - np.append(0.0, np.cumsum((p_y.high - p_y.low)[order])[:-1])
    weights = p_y.low[order] + np.clip(room, 0.0, (p_y.high - p_y.low)[order])
    return float(weights[weights > 0] @ values[order][weights > 0])


def _of_lifts(measure: Measure, prior: Box, shift: Box) -> float:
    """Return the largest g where it depends on the largest and on the smallest lift.

    A lift is 1 + shift / prior, which is largest at a corner of their limits. Any two groups are
    compared as if there were no others.
    """
    ends = [shift.low / prior.low, shift.low / prior.high]
    low = np.maximum(0.0, 1 + np.minimum(*ends))
    high = 1 + np.maximum(shift.high / prior.low, shift.high / prior.high)
    groups = np.arange(len(low))
    s, other = (part.ravel() for part in np.meshgrid(groups, groups))
    lifts = np.stack([high[s], low[other]], axis=-1)[s != other]
    return float(measure.value(lifts / 2, np.array([0.5, 0.5])).max())


def _at_vertices(measure: Measure, prior: Box, priors: FloatArray, shift: Box) -> float:
    """Return the largest g at vertices: a convex function has its maximum over a polytope there.

    There are two polytopes that hold (P(S), P(S|y)): limits of P(S) times limits of the shift,
    which serves where it has no negative posterior; and limits of P(S) times limits of P(S|y).
    """
    shifts = vertices(shift, 0.0)
    by_shift = [_largest(measure, p + shifts, p) for p in priors]
    posterior = Box(prior.low + shift.low, prior.high + shift.high)
    points = vertices(posterior.within(Box(np.zeros(1), np.ones(1))), 1.0)
    by_posterior = [_largest(measure, points, p) for p in priors]
    return min(max(by_shift, default=np.inf), max(by_posterior, default=np.inf))


def _largest(measure: Measure, posteriors: FloatArray, prior: FloatArray) -> float:
    """Return the largest g of posteriors; infinity where it is not known."""
    if not isinstance(measure, _CONVEX_EVERYWHERE):
        if posteriors.min(initial=0.0) < -_ROUNDING:
            return np.inf
        posteriors = np.maximum(posteriors, 0.0)
    return float(measure.value(posteriors, prior).max()) if len(posteriors) else np.inf


def vertices(box: Box, total: float) -> FloatArray:
    """Return the vertices of a box cut by the plane of a sum, as rows.

    All coordinates but one are at an end of their limits.
    """
    n, found = len(box.low), []
    ends = np.array(list(product((False, True), repeat=n - 1)))
    for free in range(n):
        rest = np.arange(n) != free
        points = np.empty((len(ends), n))
        points[:, rest] = np.where(ends, box.high[rest], box.low[rest])
        points[:, free] = total - points[:, rest].sum(axis=1)
        inside = points[:, free] >= box.low[free] - _ROUNDING
        found.append(points[inside & (points[:, free] <= box.high[free] + _ROUNDING)])
    return np.unique(np.vstack(found), axis=0)
