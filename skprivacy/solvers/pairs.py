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

from .._numerics import EPS
from .._typing import FloatArray, IntArray
from ..exceptions import SolverError
from ..geometry import Points, Rows
from .linear_program import GrowingMixture, Offers, Prices
from .problem import Problem
from .solver import is_late

# Outputs added to the linear program in one round, for each symbol.
_PER_SYMBOL = 4

# Pairs that are searched at once: their arrays fit into the cache.
_AT_ONCE = 2**14

# The surplus above which rounds look for outputs: at first, as a share of the largest utility,
# then as a share of the gap so far, and at last of the gap at which to stop. It is lowered to a
# share if there are none.
_FIRST_TARGET, _TARGET, _LAST_TARGET, _LOWER = 0.02, 0.1, 0.3, 0.1

# Limits of work: rounds for one budget, and intervals for all of them.
_MOST_ROUNDS, _MOST_INTERVALS = 200, 300_000_000

# Intervals that were split this often are as narrow as rounding allows.
_MOST_SPLITS = 200


@dataclass(frozen=True, eq=False)
class _Places(Rows):
    """Places on pairs: w, the convex part of the surplus, and a line below g by its slope in w."""

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
        rise = (right.convex - left.convex) / width
        up, down = rise - price * left.slope, rise - price * right.slope
        share = np.clip(-down / np.where(up > down, up - down, 1.0), 0.0, 1.0)
        share[up <= 0] = 1.0
        at_left = share * left.line + (1 - share) * (right.line - right.slope * width)
        at_right = share * (left.line + left.slope * width) + (1 - share) * right.line
        return np.maximum(left.convex - price * at_left, right.convex - price * at_right)

    def corners(self) -> FloatArray:
        """Return where the tangents of both ends meet, or nearly so: not too close to an end."""
        left, right = self.left, self.right
        width = right.w - left.w
        turn = right.slope - left.slope
        rest = left.line - right.line + right.slope * width
        at = rest / np.where(turn > 0, turn, np.inf)
        at = np.where(turn > 0, at / width, 0.5)
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
    Only pairs that may be above the target are searched again. work : the intervals so far.
    """

    def __init__(self, problem: Problem) -> None:
        self._utility, self._leakage = problem.utility, problem.leakage
        self._deviations, n_x = problem.leakage.deviations.T, len(problem.p_x)
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

    def search(self, symbols: FloatArray, price: float, target: float) -> tuple[Points, FloatArray]:
        """Return outputs with a surplus above half the target, and what to add to prices.

        symbols, price : of the symbols, and of g. With what is returned added to `symbols`, no
        output has a positive surplus.
        """
        self._follow(symbols, price)
        waiting = np.flatnonzero(self._bounds > target)
        found = [_Found(waiting[:0], np.empty(0), np.empty(0))]
        for first in range(0, len(waiting), _AT_ONCE):
            found += self._searched(waiting[first : first + _AT_ONCE], target)
        needed = self._u - symbols - price * self._g + self._rounding
        np.maximum.at(needed, self.one, self._bounds)
        np.maximum.at(needed, self.other, self._bounds)
        best = _best(_Found.concatenate(found), self.one, self.other)
        return self.points(best.pair, best.w), needed

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
            np.maximum.at(self._bounds, now.pair[~is_open], bounds[~is_open])
            now, bounds = now[is_open], bounds[is_open]
            if not len(now):
                return
            w = now.corners()
            middle, surplus = self._places(now.pair, w, share)
            good = surplus > target / 2
            yield _Found(now.pair[good], w[good], surplus[good])
            # Where such outputs are found, prices change first.
            is_done = (surplus > target) & (bounds < 2 * surplus)
            np.maximum.at(self._bounds, now.pair[is_done], bounds[is_done])
            now = now[~is_done].halves(middle[~is_done])
        np.maximum.at(self._bounds, now.pair, now.bounds(price) + self._rounding)

    def _whole(self, pairs: IntArray, share: float) -> _Intervals:
        """Return pairs as one interval each."""
        one, other = self.one[pairs], self.other[pairs]
        along = self._deviations[other] - self._deviations[one]
        ends = []
        for symbol, w in ((one, 0.0), (other, 1.0)):
            convex = (self._u - share * self._below - self._symbols)[symbol]
            line = (self._normals[symbol] * self._deviations[symbol]).sum(axis=1)
            slope = (self._normals[symbol] * along).sum(axis=1)
            w = np.full(len(pairs), w)
            ends.append(_Places(w, convex, line - self._offsets[symbol], slope))
        return _Intervals(pairs, *ends)

    def _places(
        self, pair: IntArray, w: FloatArray, share: float
    ) -> tuple[_Places, FloatArray]:
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


def _best(found: _Found, one: IntArray, other: IntArray) -> _Found:
    """Return the best output of each pair, of the best pairs of each symbol."""
    found = found[np.lexsort((-found.surplus, found.pair))]
    found = found[_rank(found.pair) == 0]
    is_best = np.zeros(len(found), bool)
    for symbol in (one[found.pair], other[found.pair]):
        order = np.lexsort((-found.surplus, symbol))
        is_best[order[_rank(symbol[order]) < _PER_SYMBOL]] = True
    return found[is_best]


def _rank(keys: IntArray) -> IntArray:
    """Return the position of each key among those that are equal; keys : sorted."""
    start = np.flatnonzero(np.diff(keys, prepend=-1))
    return np.arange(len(keys)) - np.repeat(start, np.diff(start, append=len(keys)))


class PairsOnAverage:
    """The best mixtures of pairs for budgets on average, one after the other.

    gap : at which to stop, in units of utility.
    """

    def __init__(self, problem: Problem, gap: float, deadline: float) -> None:
        self._problem, self._gap, self._deadline = problem, gap, deadline
        self._search = PairSearch(problem)
        n_x = len(problem.p_x)
        units = Points(np.arange(n_x)[:, None], np.ones((n_x, 1)))
        self._first = Points.concatenate([units, *_balanced(problem)])
        self._known: list[Points] = []

    def add(self, points: Points) -> None:
        """Add outputs to start from."""
        self._known.append(points)

    def solve(self, threshold: float, ceiling: float) -> tuple[Offers, float, str | None]:
        """Return outputs, a bound on ``sum q u(W)``, and the reason for an early stop.

        threshold : of the budget; ceiling : a bound known without a search.
        """
        problem, first = self._problem, Points.concatenate([self._first, *self._known])
        mixture = GrowingMixture(problem.program, self._offers(first, threshold))
        weights, prices = mixture.solved()
        offers, bound, is_last = mixture.offers, ceiling, False
        target, least = _FIRST_TARGET * problem.span, _LAST_TARGET * self._gap
        for _ in range(_MOST_ROUNDS):
            points, needed = self._search.search(prices.symbols, prices.budget / threshold, target)
            worth = prices.worth(problem.p_x)
            bound = min(bound, worth + float(problem.p_x @ needed))
            gap, is_last = bound - worth, not len(points) and target <= least
            if gap <= self._gap or is_last or self._is_over():
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


def _balanced(problem: Problem) -> list[Points]:
    """Return pairs that reveal nothing about S, two mixtures of which are P(X).

    With the symbols sorted by what they reveal, P(X) is matched from both sides of the prior.
    """
    deviations = problem.leakage.deviations
    t = deviations[np.ptp(deviations, axis=1).argmax()]
    below, above = np.flatnonzero(t < 0), np.flatnonzero(t > 0)
    below = below[np.argsort(t[below])]
    found = []
    for order in (1, -1):
        above = above[np.argsort(order * t[above])]
        ends = [np.cumsum(problem.p_x[side] * np.abs(t[side])) for side in (below, above)]
        cuts = np.concatenate([end[:-1] for end in ends] + [[max(end[-1] for end in ends)]])
        one, other = (
            side[np.searchsorted(end[:-1], cuts)]
            for side, end in zip((below, above), ends, strict=True)
        )
        w = -t[one] / (t[other] - t[one])
        found.append(Points(np.stack([one, other], axis=1), np.stack([1 - w, w], axis=1)))
    return found


def _most_useful(offers: Offers, weights: FloatArray, prices: Prices, most: int) -> Offers:
    """Return the offers in use, and those with the largest surplus."""
    rank = prices.surplus(offers) + (weights > 0)  # no surplus is positive
    return offers[np.argsort(-rank)[:most]]
