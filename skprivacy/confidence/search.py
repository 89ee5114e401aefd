r"""Column generation under a limit for each output: ``U_z(W) <= r`` in place of a leakage.

The limit is not convex, so there is no bound: points are proposed around those in use, restored to
the limit, and priced by the linear program (23) until that gains nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import BoolArray, FloatArray
from ..geometry import Points
from ..solvers.linear_program import MixtureProgram, Offers
from ..utilities import Utility
from .output_limits import OutputLimit
from .proposals import blocks, neighbours

# The search ends after so many rounds, or so many with gains below this share of the largest
# utility.
_MOST_ROUNDS, _IDLE_ROUNDS, _SMALL_GAIN = 14, 3, 5e-4

# How far points are moved along the slope of their worth.
_STEPS = (0.15, 0.7)

# Within these shares of the limit a point is at it; a restored one is a little inside.
_AT_LIMIT, _INSIDE = 1e-4, 2e-4

_LARGEST_TILT = 3.0
_NEGLIGIBLE = 1e-7


@dataclass(frozen=True, eq=False)
class Found:
    """Points in use with their weights, and all points that are worth keeping, those first."""

    points: FloatArray
    weights: FloatArray
    pool: FloatArray


class ConfidentSearch:
    """The search for outputs whose limits are within a budget.

    limit : of outputs; utility : what is to be kept; budget : on the root scale of the limit.
    Points are dense rows: few of their entries are zero, because that would tell a rare symbol.
    """

    def __init__(self, limit: OutputLimit, utility: Utility, budget: float) -> None:
        self._limit, self._utility, self._budget = limit, utility, budget
        self._p_x = limit.sample.p_x
        self._program = MixtureProgram(self._p_x, utility)
        self._scale = utility.span(self._p_x)
        self._rng = np.random.default_rng(0)

    @property
    def _n_x(self) -> int:
        return len(self._p_x)

    def first_proposals(self) -> FloatArray:
        """Return points to start from where nothing else is known."""
        return blocks(self._limit.sample.counts, self._budget, self._rng)

    def run(self, z: float, proposals: FloatArray) -> Found:
        """Return the best mixture found of points within the limit."""
        # Points that average to P(X) still do, with other weights, when they move along rays.
        points = np.vstack([self._on_rays(proposals, z), self._restored(proposals, z)])
        n_first = 4 * self._n_x + 200
        best, idle = -np.inf, 0
        for _ in range(_MOST_ROUNDS):
            weights, prices, reached = self._mixed(points, n_first)
            used = weights > _NEGLIGIBLE
            points, n_used = self._kept(points, used, prices), int(used.sum())
            idle = idle + 1 if reached < best + _SMALL_GAIN * self._scale else 0
            best = max(best, reached)
            found = Found(points[:n_used], weights[used], points)
            if idle >= _IDLE_ROUNDS:
                break
            new = self._worthwhile(self._around(found, prices, z), prices)
            points, n_first = np.vstack([found.points, new, points[n_used:]]), n_used + len(new)
        return found

    def _mixed(self, points: FloatArray, n_first: int) -> tuple[FloatArray, FloatArray, float]:
        """Return weights, prices of symbols, and what the best mixture of the points is worth.

        n_first : how many of them the linear program starts with.
        """
        offers = Offers(_as_points(points), self._worth(points))
        first = np.arange(min(n_first, len(points)))
        weights, prices = self._program.price(offers, 1e-9 * self._scale, first)
        independent = (1 - weights.sum()) * self._program.independent
        return weights, prices.symbols, float(weights @ offers.values + independent)

    def _kept(self, points: FloatArray, used: BoolArray, prices: FloatArray) -> FloatArray:
        """Return points without those that are far too expensive, those in use first."""
        others = points[~used]
        order = np.argsort(-self._surplus(others, prices))[: 10 * self._n_x + 200]
        return np.vstack([points[used], others[order]])

    def _worthwhile(self, points: FloatArray, prices: FloatArray) -> FloatArray:
        """Return points that are worth more than they cost, the best ones first."""
        surplus = self._surplus(points, prices)
        order = np.argsort(-surplus)
        return points[order[surplus[order] > 1e-7]]

    def _worth(self, points: FloatArray) -> FloatArray:
        return self._utility.value(_as_points(points))

    def _surplus(self, points: FloatArray, prices: FloatArray) -> FloatArray:
        return self._worth(points) - points @ prices

    def _around(self, found: Found, prices: FloatArray, z: float) -> FloatArray:
        """Return points within the limit around those in use."""
        most = 500 + 10 * self._n_x
        proposed = neighbours(found.points, found.weights, self._p_x, most, self._rng)
        near = self._best(self._on_rays(proposed, z), prices, 2 * self._n_x + 80)
        bold = self._best(proposed, prices, 3 * self._n_x + 10)
        start = np.vstack([found.points, near[: 2 * self._n_x + 10]])
        tilted = self._tilted(start, prices, z)
        return np.vstack([near, self._restored(np.vstack([*tilted, bold]), z)])

    def _best(self, points: FloatArray, prices: FloatArray, most: int) -> FloatArray:
        return points[np.argsort(-self._surplus(points, prices))[:most]]

    def _tilted(self, points: FloatArray, prices: FloatArray, z: float) -> list[FloatArray]:
        """Move points within their support along the slope of their worth, at the limit."""
        values, slopes = self._limit.with_slope(points, z)
        gain = self._utility.slope(_as_points(np.maximum(points, 1e-12)), self._n_x) - prices
        slopes, gain = _centred(slopes, points), _centred(gain, points)
        steepness = np.maximum((points * slopes**2).sum(axis=1), 1e-12)
        along = (points * slopes * gain).sum(axis=1)
        tilted = []
        for step in _STEPS:
            price = np.maximum((along - (self._budget - values) / step) / steepness, 0.0)
            exponents = step * (gain - price[:, None] * slopes)
            tilted.append(_tilt(points, exponents, _LARGEST_TILT + 1))
        return tilted

    def _restored(self, points: FloatArray, z: float, steps: int = 3) -> FloatArray:
        """Return points moved within their support until they are within the limit."""
        points, outside = points.copy(), np.arange(len(points))
        for _ in range(steps):
            values, slopes = self._limit.with_slope(points[outside], z)
            over = values > self._budget * (1 - _AT_LIMIT)
            outside, values, slopes = outside[over], values[over], slopes[over]
            if not len(outside):
                return points
            old = points[outside]
            slopes = _centred(slopes, old)
            steepness = np.maximum((old * slopes**2).sum(axis=1), 1e-12)
            step = (values - self._budget * (1 - _INSIDE)) / steepness
            points[outside] = _tilt(old, -step[:, None] * slopes, _LARGEST_TILT)
        return self._on_rays(points, z)

    def _on_rays(self, points: FloatArray, z: float, steps: int = 3) -> FloatArray:
        """Return points between P(X) and `points`, as far out as the limit allows."""
        values = self._limit.value(points, z)
        allowed = np.where(values <= self._budget * (1 + 1e-9), 1.0, 0.0)
        outside = np.flatnonzero(allowed == 0)
        outward = points[outside] - self._p_x
        # Limits are about linear along the rays.
        start = self._limit.at_centre(z)
        room = max(self._budget - start, 0.0)
        share = room / (values[outside] - start)
        for _ in range(steps):
            values = self._limit.value(self._p_x + share[:, None] * outward, z)
            within = values <= self._budget * (1 + 1e-9)
            allowed[outside] = np.where(
                within, np.maximum(allowed[outside], share), allowed[outside]
            )
            factor = np.where(within, 0.999, 0.995) * room / np.maximum(values - start, 1e-300)
            share = np.minimum(1.0, share * factor)
        near = np.maximum(self._p_x + allowed[:, None] * (points - self._p_x), 0.0)
        return near[allowed > 1e-6]


def _as_points(rows: FloatArray) -> Points:
    """Return dense rows as points with all symbols in their support, which takes no sorting."""
    return Points(np.broadcast_to(np.arange(rows.shape[1]), rows.shape), rows)


def _centred(slopes: FloatArray, points: FloatArray) -> FloatArray:
    return slopes - (points * slopes).sum(axis=1, keepdims=True)


def _tilt(points: FloatArray, exponents: FloatArray, most: float) -> FloatArray:
    """Return ``W exp(a)``, normalised."""
    tilted = points * np.exp(np.clip(exponents, -most, most))
    return tilted / tilted.sum(axis=1, keepdims=True)
