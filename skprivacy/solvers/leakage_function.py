"""A measure as a function of the deviations of lifts from 1, with its tangents.

``g(d) = g(P(S) (1 + d)) - g(P(S))`` is convex, and 0 for an output that reveals nothing. A
posterior W of X has ``d = deviations @ W``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from .._numerics import BISECTIONS, EPS
from .._typing import FloatArray, IntArray
from ..geometry import LiftPolytopes, Points, normalised
from ..geometry.lift_polytopes import Engine, VertexSegments
from ..joint import Joint
from ..measures import Measure
from ..measures.measure import leakage_in
from .linear_program import Excess
from .solver import DesignTask

# (normals, offsets, slack) of halfspaces.
Tangents: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]

# Where a lift is smaller than this, tangents are taken slightly closer to the prior: a measure may
# have none at zero, and a tangent at any other point is just as valid.
_TANGENT_LIFT = 1e-9

# Searches for the boundary stop within this share inside it.
_INSIDE_RTOL = 1e-13


class LeakageFunction:
    """The leakage of a posterior, for one joint and one measure."""

    def __init__(self, joint: Joint, measure: Measure) -> None:
        self.deviations, self.prior, self._measure = joint.deviations, joint.p_s, measure
        self._at_prior = float(measure.value(joint.p_s, joint.p_s))
        self._widest = np.abs(joint.deviations).max(axis=1)
        # The symbols of X and some mixtures of them, to check convexity on.
        n_x = len(joint.p_x)
        mixtures = np.random.default_rng(0).dirichlet(np.full(n_x, 0.5), 64)
        deviations = self.deviations @ np.vstack([np.eye(n_x), mixtures]).T
        self._samples = deviations, self.value(deviations.T)

    def threshold(self, epsilon: float) -> float:
        """Return the largest g that epsilon allows: 0 if it is positive only by rounding."""
        threshold = float(self._measure.threshold(epsilon)) - self._at_prior
        # Finite even if epsilon is infinite, so that an infinite g exceeds it.
        return min(threshold, 1e300) if threshold > 8 * EPS * abs(self._at_prior) else 0.0

    @property
    def rounding(self) -> float:
        """The largest rounding error of `value`."""
        return 16 * EPS * (1 + abs(self._at_prior))

    def value(self, deviations: FloatArray) -> FloatArray:
        """Return g at each row of `deviations`."""
        posterior = np.maximum(1 + deviations, 0.0) * self.prior
        return self._measure.value(posterior, self.prior) - self._at_prior

    def tangents(self, deviations: FloatArray, scale: float) -> Tangents:
        """Return (normals, offsets, slack): ``normal . d - g(d) <= offset`` for all d.

        One for each row of `deviations`, where it is an equality. scale : the size of g that
        matters. slack : by how much each may be moved outward to break ties; see `OuterPolytope`.
        """
        normals, offsets, _ = self.supports(deviations)
        terms = np.abs(normals) @ self._widest
        self._check_convex(normals, offsets, terms)
        return normals, offsets, np.maximum(1e-10 * scale, 64 * EPS * (terms + abs(scale)))

    def supports(self, deviations: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (normals, offsets) of tangents, and g, all slightly inside where a lift is zero.

        Convexity is not checked. g is not larger there than at the row itself.
        """
        at_zero = (1 + deviations).min(axis=1) < _TANGENT_LIFT
        shrunk = deviations * np.where(at_zero, 1 - _TANGENT_LIFT, 1.0)[:, None]
        normals, values = self.slope(shrunk), self.value(shrunk)
        terms = np.abs(normals) @ self._widest
        rounding = 8 * EPS * (terms + np.abs(values) + abs(self._at_prior) + self.prior.max())
        return normals, (normals * shrunk).sum(axis=1) - values + rounding, values

    def cuts(
        self, beyond: FloatArray, places: FloatArray, heights: FloatArray | float, scale: float
    ) -> Tangents:
        """Return `Tangents` that cut off points with g > heights.

        beyond : their deviations; places : deviations next to them, where g is at most the height.
        A tangent at the place cuts deeply, except at a corner of a polyhedral measure: then the
        tangent at the point itself is used.
        """
        normals, offsets, slack = self.tangents(places, scale)
        depth = (normals * beyond).sum(axis=1) - offsets - heights
        shallow = depth <= 0.1 * (self.value(beyond) - heights)
        if shallow.any():
            again = self.tangents(beyond[shallow], scale)
            normals[shallow], offsets[shallow], slack[shallow] = again
        return normals, offsets, slack

    def slope(self, deviations: FloatArray) -> FloatArray:
        """Return a gradient of g at each row of `deviations`."""
        posterior = np.maximum(1 + deviations, 0.0) * self.prior
        return self._measure.subgradient(posterior, self.prior) * self.prior

    def _check_convex(self, normals: FloatArray, offsets: FloatArray, terms: FloatArray) -> None:
        """Check on sample points that tangents are below the measure."""
        deviations, values = self._samples
        over = normals @ deviations - offsets[:, None] - values
        if not (over <= 1e-7 * (1 + terms)[:, None]).all():  # NaN fails too
            convex = f"The measure {self._measure!r} must be convex in the posterior"
            raise ValueError(f"{convex}, and its 'subgradient' a subgradient of its 'value'.")

    def allowed(
        self, points: Points, deviations: FloatArray, limit: float, p_x: FloatArray
    ) -> tuple[Points, FloatArray, IntArray]:
        """Return points with g <= limit next to `points`, their deviations, and their origins.

        The origins are positions in `points`. Points are pulled back within their support. If
        that does not bring them within the limit, they are mixed with P(X), which always does:
        it scales their deviations down.
        """
        index = np.arange(len(points))
        pulled, places = self.pulled_back(points, limit)
        far = self.value(places) > limit
        if not far.any():
            return pulled, places, index
        share = self.shrunk(deviations[far], limit)[:, None]
        mixed = share * points[far].dense(len(p_x)) + (1 - share) * p_x
        both = Points.concatenate([pulled[~far], Points.from_dense(mixed)])
        places = np.concatenate([places[~far], share * deviations[far]])
        return both, places, np.concatenate([index[~far], index[far]])

    def pulled_back(self, points: Points, limit: float) -> tuple[Points, FloatArray]:
        """Return `points` moved within their support until g <= limit, and their deviations.

        They are tilted against the slope of g, by Newton's method: ``W exp(-a slope)``. This can
        fail.
        """
        columns, values = self.deviations.T[points.support], points.values
        for _ in range(8):
            deviations = np.einsum("nw,nws->ns", values, columns)
            over = self.value(deviations) - limit * (1 - _INSIDE_RTOL)
            outside = (over > _INSIDE_RTOL * limit) & (over < np.inf)
            if not outside.any():
                break
            slope = np.einsum("nws,ns->nw", columns, self.slope(deviations))
            slope -= (values * slope).sum(axis=1, keepdims=True)
            steepness = (values * slope**2).sum(axis=1)
            # Where g is flat along the support of a point, tilting does not move it.
            step = np.where(outside, over, 0.0) / np.where(steepness > 1e-100, steepness, np.inf)
            values = normalised(values * np.exp(np.clip(-step[:, None] * slope, -30, 30)))
        return Points(points.support, values), np.einsum("nw,nws->ns", values, columns)

    def shrunk(self, deviations: FloatArray, limit: FloatArray | float) -> FloatArray:
        """Return the largest share of each row of `deviations` that keeps g <= limit.

        Newton's method from outside approaches the limit of a convex function from above.
        """
        share = np.ones(len(deviations))
        for _ in range(30):
            at = share[:, None] * deviations
            over = self.value(at) - limit * (1 - _INSIDE_RTOL)
            outside = over > _INSIDE_RTOL * limit
            if not outside.any():
                return share
            if (over == np.inf).any():
                break
            slope = (self.slope(at) * deviations).sum(axis=1)
            step = np.where(outside, over, 0.0) / np.where(slope > 0, slope, np.inf)
            share = np.maximum(share - step, 0.0)
        low, high = np.zeros(len(deviations)), np.ones(len(deviations))
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            within = self.value(middle[:, None] * deviations) <= limit
            low, high = np.where(within, middle, low), np.where(within, high, middle)
        return np.where(self.value(deviations) <= limit, 1.0, low)


class SegmentLeakage:
    """Leakage of vertices along their segments, on each of which it is convex."""

    def __init__(self, segments: VertexSegments, joint: Joint, measure: Measure) -> None:
        self.segments, self._prior, self._measure = segments, joint.p_s, measure
        low, high = ((1 + ends.times(joint.deviations)) * joint.p_s for ends in segments.ends())
        self._start, self._step = low, high - low

    def at(self, fraction: FloatArray, index: slice | IntArray = slice(None)) -> FloatArray:
        """Return the leakage on the scale of epsilon at `fraction` of the segments `index`.

        `fraction` is (n,), or (n, k) for k points on each of the n segments.
        """
        start, step = self._start[index], self._step[index]
        if np.ndim(fraction) == 2:
            start, step = start[:, None], step[:, None]
        posterior = np.maximum(start + np.asarray(fraction)[..., None] * step, 0.0)
        return self._measure.leakage(posterior, self._prior)

    @cached_property
    def _lowest(self) -> FloatArray:
        """Where the leakage is smallest on each segment, by golden section."""
        left, right = np.zeros(len(self._start)), np.ones(len(self._start))
        golden = (np.sqrt(5) - 1) / 2
        for _ in range(50):  # to 4e-11 of a segment
            width = golden * (right - left)
            one, other = right - width, left + width
            falling = self.at(one) > self.at(other)
            left, right = np.where(falling, one, left), np.where(falling, right, other)
        candidates = np.stack([left, np.zeros_like(left), np.ones_like(left)], axis=1)
        best = self.at(candidates).argmin(axis=1)
        return np.take_along_axis(candidates, best[:, None], axis=1)[:, 0]

    def within(self, epsilon: float) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return (index, first, last): the segments that meet the budget, and from where to where.

        The budget holds at every point from `first` to `last`, both included.
        """
        # The tolerance is for rounding, not for larger lifts: kl and chi2 are flat at the prior,
        # where a leakage of 1e-12 is a deviation of 1e-6.
        index = np.flatnonzero(self.at(self._lowest) <= self._measure.budget(epsilon, share=0.25))
        # The searches toward both ends of every segment run side by side.
        limit = self._measure.budget(epsilon, share=0.0)
        both, inside = np.tile(index, 2), np.tile(self._lowest[index], 2)
        outside = np.repeat([0.0, 1.0], len(index))
        last_within = np.where(self.at(outside, both) <= limit, outside, inside)
        beyond = np.flatnonzero(last_within != outside)
        both, inside, outside = both[beyond], inside[beyond], outside[beyond]
        for _ in range(50):  # to 1e-15 of a segment
            middle = (inside + outside) / 2
            within = self.at(middle, both) <= limit
            inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
        last_within[beyond] = inside
        return index, last_within[: len(index)], last_within[len(index) :]

    def largest_safe_excess(self, epsilon: float) -> float:
        """Return the largest excess of lifts over 1 such that all of Delta_t keeps the budget.

        The largest leakage in Delta_t is at a vertex and does not decrease with t: t may grow
        until the first vertex exceeds the budget.
        """
        index, first, last = self.within(epsilon)
        safe = self.segments.start.copy()
        start, stop = self.segments.start[index], self.segments.stop[index]
        reached = np.where(last < 1, start + last * (stop - start), np.inf)
        safe[index] = np.where(first > 0, start, reached)
        return max(0.0, float(safe.min()))


DEFAULT_MAX_BASES = 1_000_000


@dataclass(frozen=True, eq=False)
class Candidates:
    """The lift polytopes of a joint and the leakage of their vertices, for all epsilons."""

    task: DesignTask
    max_bases: int
    engine: Engine = "parametric"

    @cached_property
    def polytopes(self) -> LiftPolytopes:
        """The polytopes of bounded lifts."""
        return LiftPolytopes(self.task.joint.deviations, self.max_bases, self.engine)

    @cached_property
    def leakage(self) -> SegmentLeakage:
        """The leakage of the vertices, for all bounds on lifts."""
        return SegmentLeakage(self.polytopes.segments, self.task.joint, self.task.measure)

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Return bounds on deviations that imply the budget, known or computed from the data."""
        bounds = self.task.measure.implied_deviations(epsilon)
        return (-1.0, self.leakage.largest_safe_excess(epsilon)) if bounds is None else bounds

    def vertices(self, epsilon: float) -> Points:
        """Return the vertices of the polytope that implies the budget: steps 1 and 2."""
        return self.within(self.polytopes.vertices(*self.bounds(epsilon)), epsilon)

    def within(self, points: Points, epsilon: float) -> Points:
        """Return the points whose computed leakage is within the budget."""
        joint, measure = self.task.joint, self.task.measure
        leakage = measure.leakage(joint.sensitive_posterior(points), joint.p_s)
        return points[leakage <= measure.budget(epsilon, share=0.5)]


def all_candidates(candidates: Candidates, epsilon: float) -> Points:
    """Return both ends of the part of each segment of vertices that is within the budget.

    The points between are mixtures of these two, and have no larger u, because u is convex.
    """
    index, first, last = candidates.leakage.within(epsilon)
    points = candidates.leakage.segments.at(np.tile(index, 2), np.concatenate([first, last]))
    return candidates.within(points, epsilon)


def excess_over(task: DesignTask, epsilon: float) -> Excess:
    """Return a function that returns by how much a channel exceeds a budget."""
    joint, measure = task.joint, task.measure
    p_sx, p_s, budget = joint.p_sx, joint.p_s, measure.budget(epsilon)

    def excess(channel: FloatArray) -> float:
        p_sy = p_sx @ normalised(channel)
        p_y = p_sy.sum(axis=0)
        values = measure.value((p_sy / p_y).T, p_s)
        leakage = leakage_in(task.scope, measure, values, p_y)
        return leakage - budget if budget < np.inf else 0.0

    return excess
