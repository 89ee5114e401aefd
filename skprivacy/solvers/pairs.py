"""The optimum on average where outputs are pairs of symbols: P(S|X) of rank 2, as for two groups.

No useful output then has more than two symbols of X. Prices of the symbols and of the budget give
the output ``(1 - w) e_i + w e_j`` a surplus ``u - lambda . W - mu g``, a function of one number w
for each pair. Outputs with a positive surplus are added to the linear program, until none is left.

Between two places u is below its chord, and g above its tangents at both: that bounds the surplus
of all outputs between them. Intervals are split until every bound is below a target. If u - c g
is convex too, it takes the place of u, and mu - c that of mu.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._numerics import EPS, TINY
from .._typing import FloatArray, IntArray
from ..exceptions import SolverError
from ..geometry import Points, Rows
from ..geometry.lift_polytopes import balanced_pairs, pairs_at_zero
from .linear_program import GrowingMixture, Offers, Prices, best_of_each_symbol
from .problem import Problem
from .solver import is_late

# Pairs that are searched at once: their arrays fit into the cache. Intervals that they may have.
_AT_ONCE, _MOST_AT_ONCE = 2**14, 2**20

# The surplus above which rounds look for outputs: at first, as a share of the largest utility,
# then as a share of the gap so far, and at last of the gap at which to stop. It is lowered to a
# share if there are none.
_FIRST_TARGET, _TARGET, _LAST_TARGET, _LOWER = 0.02, 0.1, 0.3, 0.1

# The search aims at this share of the gap at which it may stop: another round costs little.
_AIM = 0.25

# Budgets below the second are too small for prices: bounds are proven for that one. Below the
# first, outputs that reveal nothing are offered too.
_SMALL, _SMALLEST = 1e-10, 1e-12

# The search stops if this many rounds have not reduced the gap to this share of what it was.
_PATIENCE, _PROGRESS = 12, 0.95

# Limits of work for one budget: rounds, and intervals.
_MOST_ROUNDS, _MOST_INTERVALS = 200, 300_000_000

# Intervals that were split this often are as narrow as rounding allows.
_MOST_SPLITS = 100


@dataclass(frozen=True, eq=False)
class _Places(Rows):
    """Places on pairs: w, the convex part of the surplus, and a tangent of g, with its slope."""

    w: FloatArray
    convex: FloatArray
    line: FloatArray
    slope: FloatArray


@dataclass(frozen=True, eq=False)
class _Intervals(Rows):
    """Intervals of pairs; pair : the position of each in the list of all pairs."""

    pair: IntArray
    left: _Places
    right: _Places

    def bounds(self, price: float) -> FloatArray:
        """Return upper bounds on the surplus; price : of g, beyond its share in the convex part.

        The surplus is below two lines, hence below each mixture of both. The best mixture is
        level, or one of the two lines.
        """
        left, right = self.left, self.right
        width = right.w - left.w
        rise = (right.convex - left.convex) / np.maximum(width, TINY)
        up, down = rise - price * left.slope, rise - price * right.slope
        share = np.clip(-down / np.where(up > down, up - down, 1.0), 0.0, 1.0)
        share[up <= 0] = 1.0
        at_left = share * left.line + (1 - share) * (right.line - right.slope * width)
        at_right = share * (left.line + left.slope * width) + (1 - share) * right.line
        bounds = np.maximum(left.convex - price * at_left, right.convex - price * at_right)
        return np.where(np.isnan(bounds), np.inf, bounds)

    def corners(self) -> FloatArray:
        """Return where the tangents of both ends meet, or nearly so: not too close to an end."""
        left, right = self.left, self.right
        width = right.w - left.w
        turn = right.slope - left.slope
        rest = left.line - right.line + right.slope * width
        at = rest / np.where(turn > 0, turn, np.inf)
        at = np.where(turn > 0, at / np.maximum(width, TINY), 0.5)
        return left.w + width * np.clip(at, 0.1, 0.9)

    def halves(self, middle: _Places) -> _Intervals:
        """Return the parts on both sides of a place in each interval."""
        parts = _Intervals(self.pair, self.left, middle), _Intervals(self.pair, middle, self.right)
        return _Intervals.concatenate(parts)


@dataclass(frozen=True, eq=False)
class _Found(Rows):
    """Outputs found by a search, and their surplus."""

    pair: IntArray
    w: FloatArray
    surplus: FloatArray


class PairSearch:
    """Searches all pairs of symbols for outputs with a surplus, and bounds the surplus of each.

    Bounds are kept between searches: when prices change, surpluses change by no more than prices.
    Only pairs that may be above the target are searched again. work : the intervals so far,
    which may be set to zero.
    """

    def __init__(self, problem: Problem) -> None:
        self._utility, self._leakage = problem.utility, problem.leakage
        self._deviations, self._p_x = problem.leakage.deviations.T, problem.p_x
        n_x = len(self._p_x)
        self._convexity = problem.convexity
        units = Points(np.arange(n_x)[:, None], np.ones((n_x, 1)))
        self._u, self._g = self._utility.value(units), self._leakage.value(self._deviations)
        self._leakage.tangents(self._deviations, 1.0)  # checks that g is convex
        self._normals, self._offsets, self._below = self._leakage.supports(self._deviations)
        self.one, self.other = np.triu_indices(n_x, 1)
        self._bounds = np.full(len(self.one), np.inf)
        self._symbols, self._price = np.zeros(n_x), 0.0
        self.work = 0

    def points(self, pair: IntArray, w: FloatArray) -> Points:
        """Return the outputs at places w of pairs."""
        support = np.stack([self.one[pair], self.other[pair]], axis=1)
        return Points(support, np.stack([1 - w, w], axis=1))

    def search(
        self, symbols: FloatArray, price: float, target: float
    ) -> tuple[Points, FloatArray]:
        """Return outputs with a surplus above half the target, and what to add to prices.

        symbols, price : of the symbols, and of g. With what is returned added to `symbols`, no
        output has a positive surplus.
        """
        self._follow(symbols, price)
        waiting, self._beyond = np.flatnonzero(self._bounds > target), np.zeros(len(symbols))
        found = [_Found(waiting[:0], np.empty(0), np.empty(0))]
        for first in range(0, len(waiting), _AT_ONCE):
            found += self._searched(waiting[first : first + _AT_ONCE], target)
        needed = self._u - symbols - price * self._g + self._rounding
        low = self._bounds.clip(max=target)
        np.maximum.at(needed, self.one, low)
        np.maximum.at(needed, self.other, low)
        best = _best(_Found.concatenate(found))
        points = self.points(best.pair, best.w)
        return points[best_of_each_symbol(points, best.surplus)], needed + self._beyond

    def _follow(self, symbols: FloatArray, price: float) -> None:
        """Change the bounds by as much as the prices have changed.

        g is not negative, and at most the mixture of g at the two symbols.
        """
        self._rounding = 64 * EPS * (1 + np.abs(self._u).max() + np.abs(symbols).max())
        self._rounding += 64 * EPS * price * (1 + self._g.max())
        change = self._symbols - symbols + max(self._price - price, 0.0) * self._g
        self._bounds += np.maximum(change[self.one], change[self.other]) + self._rounding
        self._symbols, self._price = symbols, price

    def _searched(self, pairs: IntArray, target: float) -> Iterator[_Found]:
        """Bound the surplus of some pairs; yield outputs above half the target."""
        share = min(self._convexity, self._price)
        price = self._price - share
        now = self._whole(pairs, share)
        self._bounds[pairs] = -np.inf
        for _ in range(_MOST_SPLITS):
            bounds = now.bounds(price) + self._rounding
            self.work += len(now)
            is_open = bounds > target
            self._close(now[~is_open], bounds[~is_open])
            now, bounds = now[is_open], bounds[is_open]
            if not len(now) or len(now) > _MOST_AT_ONCE:
                break
            w = now.corners()
            middle, surplus = self._places(now.pair, w, share)
            good = surplus > target / 2
            yield _Found(now.pair[good], w[good], surplus[good])
            # Where such outputs are found, prices change first. Rounding limits bounds, too.
            is_done = (surplus > target) & (bounds < 2 * surplus)
            is_done |= bounds - surplus < 8 * self._rounding
            self._close(now[is_done], bounds[is_done])
            self._share(now[is_done], bounds[is_done] - target)
            now = now[~is_done].halves(middle[~is_done])
        bounds = now.bounds(price) + self._rounding
        self._close(now, bounds)
        self._share(now, bounds - target)

    def _close(self, intervals: _Intervals, bounds: FloatArray) -> None:
        """Keep the bounds of intervals that are not split."""
        np.maximum.at(self._bounds, intervals.pair, bounds)

    def _share(self, intervals: _Intervals, excess: FloatArray) -> None:
        """Add to prices what intervals exceed the target by: to both symbols, or only to one.

        What is added to one symbol is divided by its smallest weight. That costs less if the
        symbol is rare: the linear program may see no gain in its outputs, however large.
        """
        symbols = self.one[intervals.pair], self.other[intervals.pair]
        weights = 1 - intervals.right.w, intervals.left.w
        alone = [excess / np.maximum(weight, TINY) for weight in weights]
        costs = [self._p_x[each] * more for each, more in zip(symbols, alone, strict=True)]
        costs.append((self._p_x[symbols[0]] + self._p_x[symbols[1]]) * excess)
        best = np.argmin(costs, axis=0)
        for i, each in enumerate(symbols):
            more = np.where(best == i, alone[i], np.where(best == 2, excess, 0.0))
            np.maximum.at(self._beyond, each, more)

    def _whole(self, pairs: IntArray, share: float) -> _Intervals:
        """Return pairs as one interval each."""
        one, other = self.one[pairs], self.other[pairs]
        along = self._deviations[other] - self._deviations[one]
        ends = []
        for symbol, at in ((one, 0.0), (other, 1.0)):
            convex = (self._u - share * self._below - self._symbols)[symbol]
            line = (self._normals[symbol] * self._deviations[symbol]).sum(axis=1)
            slope = (self._normals[symbol] * along).sum(axis=1)
            w, line = np.full(len(pairs), at), line - self._offsets[symbol]
            ends.append(_Places(w, convex, line, slope))
        return _Intervals(pairs, *ends)

    def _places(self, pair: IntArray, w: FloatArray, share: float) -> tuple[_Places, FloatArray]:
        """Return places of pairs, and their surplus."""
        one, other = self.one[pair], self.other[pair]
        along = self._deviations[other] - self._deviations[one]
        deviations = self._deviations[one] + w[:, None] * along
        normals, offsets, below = self._leakage.supports(deviations)
        costs = (1 - w) * self._symbols[one] + w * self._symbols[other]
        worth = self._utility.value(self.points(pair, w)) - costs
        line = (normals * deviations).sum(axis=1) - offsets
        places = _Places(w, worth - share * below, line, (normals * along).sum(axis=1))
        return places, worth - self._price * below


def _best(found: _Found) -> _Found:
    """Return the best output of each pair."""
    found = found[np.lexsort((-found.surplus, found.pair))]
    return found[np.diff(found.pair, prepend=-1) > 0]


class PairsOnAverage:
    """The best mixtures of pairs for budgets on average, one after the other.

    gap : at which to stop, in units of utility.
    """

    def __init__(self, problem: Problem, gap: float, deadline: float) -> None:
        self._problem, self._gap, self._deadline = problem, gap, deadline
        self._search = PairSearch(problem)
        n_x = len(problem.p_x)
        units = Points(np.arange(n_x)[:, None], np.ones((n_x, 1)))
        self._t = problem.t
        self._first = Points.concatenate([units, *balanced_pairs(self._t, problem.p_x)])
        self._known: list[Points] = []

    def add(self, points: Points) -> None:
        """Add outputs to start from."""
        self._known.append(points)

    def solve(self, threshold: float, ceiling: float) -> tuple[Offers, float, str | None]:
        """Return outputs, a bound on ``sum q u(W)``, and the reason for an early stop.

        threshold : of the budget; ceiling : a bound known without a search.
        """
        few, bound, stopped = self._solved(max(threshold, _SMALLEST), ceiling)
        points = few.points
        if threshold < _SMALL:  # rounding may leave few other outputs
            points = Points.concatenate([points, self._private(points)])
        return self._offers(points, threshold), bound, stopped

    def _private(self, points: Points) -> Points:
        """Return the mixtures of the symbols of points that reveal nothing about S."""
        one, other = points.support.T[:2]
        apart = self._t[one] * self._t[other] < 0
        return pairs_at_zero(self._t, one[apart], other[apart])

    def _solved(self, threshold: float, ceiling: float) -> tuple[Offers, float, str | None]:
        """Return the same for a threshold that is not tiny."""
        problem, first = self._problem, Points.concatenate([self._first, *self._known])
        mixture = GrowingMixture(problem.program, self._offers(first, threshold))
        weights, prices = mixture.solved()
        offers, bound, is_last = mixture.offers, ceiling, False
        gaps: list[float] = []
        self._search.work = 0
        target, least = _FIRST_TARGET * problem.span, _LAST_TARGET * _AIM * self._gap
        for _ in range(_MOST_ROUNDS):
            points, needed = self._search.search(prices.symbols, prices.budget / threshold, target)
            worth = prices.worth(problem.p_x)
            bound = min(bound, worth + float(problem.p_x @ needed))
            gap, is_last = bound - worth, not len(points) and target <= least
            gaps.append(gap)
            is_last |= len(gaps) > _PATIENCE and gap > _PROGRESS * gaps[-1 - _PATIENCE]
            if gap <= _AIM * self._gap or is_last or self._is_over():
                offers = Offers.concatenate([offers, self._offers(points, threshold)])
                weights = np.append(weights, np.zeros(len(points)))
                break
            target = max(min(_TARGET * gap, target if len(points) else _LOWER * target), least)
            if not len(points):
                continue
            try:
                mixture.add(self._offers(points, threshold))
                weights, prices = mixture.solved()
                offers = mixture.offers
            except SolverError:  # the outputs and the bound so far are still valid
                is_last = True
                break
        few = _most_useful(offers, weights, prices, 3 * len(problem.p_x))
        self._known = [few.points]
        return few, bound, self._reason(gap, is_last)

    def _offers(self, points: Points, threshold: float) -> Offers:
        charges = np.maximum(self._problem.leakage_of(points), 0.0) / threshold
        return Offers(points, self._problem.utility.value(points), charges)

    def _is_over(self) -> bool:
        return is_late(self._deadline) or self._search.work > _MOST_INTERVALS

    def _reason(self, gap: float, is_last: bool) -> str | None:
        """Return why the search has stopped, None if its gap is small enough."""
        if gap <= self._gap:
            return None
        if is_late(self._deadline):
            return "max_time"
        return "rounding" if is_last else "work"


def _most_useful(offers: Offers, weights: FloatArray, prices: Prices, most: int) -> Offers:
    """Return the offers in use, and those with the largest surplus."""
    rank = prices.surplus(offers) + (weights > 0)
    return offers[np.argsort(-rank)[:most]]
