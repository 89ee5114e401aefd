r"""Column generation for large alphabets: outputs with a positive surplus are added one by one.

There are too many vertices to enumerate, but few matter. The duals give each point a surplus
``u(W) - lambda . W - mu g(W)``, convex minus convex. From many starts, u is replaced by its
tangent, and the best point for the resulting linear program is the next start. With many symbols,
moving points uphill from inside the simplex, all at once, first finds most of what matters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from .._typing import FloatArray
from .._validation import check_integer
from ..exceptions import SolverError
from ..geometry import Points, normalised
from ..utilities import DEFAULT_TOL
from .baselines import most_useful, simple_solutions
from .linear_program import Offers, Prices
from .priced_bound import (
    NEAR_TARGET,
    CoarserGroups,
    Relaxation,
    can_be_proven,
    has_conjugate,
    largest_surplus,
)
from .problem import Problem
from .solver import (
    SHARE_OF_TOLERANCE,
    DesignTask,
    Solution,
    Solver,
    check_search,
    deadline_after,
    is_late,
    warn_gap,
)

_SEED = 20_240_607
_AT_ONCE = 40  # starts between two linear programs
_ACCURACY = 0.1  # of linear programs, as a share of the tolerance

# Moves of outputs toward single symbols of X: shares of the way, and how many in a row at most.
_SHARES, _MOST_MOVES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.55), 12

# Rounds of the search for one budget.
_MOST_ROUNDS = 500

# A bound that is not proven to this share of the largest utility is worth a warning.
_WIDE_GAP = 0.01

# The gap to prove: the first one, as a share of the largest utility, then its ratio to the one
# before, which takes about this many times as many boxes.
_FIRST_TARGET, _NEXT_TARGET, _NEXT_COST = 0.03, 0.3, 3

# With kinks, the search stops at surpluses below this share of the gap to prove next, and when so
# many rounds of starts have found none.
_SEARCHED, _MORE_ROUNDS = 0.03, 12

# With kinks, outputs that branch and bound comes across and from which to climb, of each batch.
_CLIMBS = 8


@dataclass(frozen=True)
class ColumnGenerationSolver(Solver):
    """Good mechanisms for alphabets whose vertices cannot be enumerated.

    They keep their budget like all others. For all measures but alpha_lift, and the information
    about X or a target, branch and bound proves an `upper_bound`, mostly within 1% of the largest
    utility, and finds outputs that the search has missed. For other measures the bound is a
    general one, for instance ``epsilon + H(X|S)``, or the optimum with the groups of S merged to
    two or three. If a baseline (merging, randomised response, the chi-squared design) is better,
    it is used instead.

    Parameters
    ----------
    tol : float, default=1e-5
        The gap at which to stop, as a share of the largest utility. The search for outputs stops
        when no start leads to an output with a larger surplus.
    max_time : float, default=None
        Seconds after which to stop, for all epsilons together.
    n_starts : int, default=4
        Number of searches from each symbol of X before stopping, if branch and bound cannot
        find missing outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from skprivacy import design_mechanism
    >>> joint = np.random.default_rng(0).random((3, 30))
    >>> mechanism = design_mechanism(joint, 0.02, solver=ColumnGenerationSolver(tol=1e-3))
    >>> mechanism.normalized_utility > 0.6
    True
    """

    tol: float = DEFAULT_TOL
    max_time: float | None = None
    n_starts: int = 4
    name: ClassVar[str] = "column_generation"

    def __post_init__(self) -> None:
        check_search("ColumnGenerationSolver", self.tol, self.max_time)
        check_integer("ColumnGenerationSolver", "n_starts", self.n_starts, low=1)

    def solve_path(self, task: DesignTask, epsilons: Sequence[float]) -> Iterator[Solution]:
        """Generate columns for each epsilon, starting from those of the previous one."""
        deadline, problem = deadline_after(self.max_time), Problem(task)
        before: list[Points] = []
        coarser: CoarserGroups | None = None
        simple = simple_solutions(task, epsilons)
        for epsilon, others in zip(epsilons, simple, strict=True):
            solution = problem.special(epsilon) if problem.is_easy(epsilon) else None
            if solution is None:
                tol = SHARE_OF_TOLERANCE * self.tol * problem.span
                search = ColumnSearch(problem, epsilon, tol, deadline)
                offers, bound = search.proven(search.run(before, self.n_starts))
                before = [offers.points]
                solution = problem.solution(offers, bound, epsilon, self.tol)
                if is_late(deadline):
                    warn_gap("Column generation", " because its max_time has passed")
                elif search.rounds_left == 0 or (
                    can_be_proven(problem, epsilon)
                    and problem.gap(solution) > max(_WIDE_GAP, self.tol)
                ):
                    warn_gap("Column generation", " because its limit of work is reached")
                if not can_be_proven(problem, epsilon):
                    coarser = coarser or CoarserGroups(task)
                    reached = task.reached(solution.channel)
                    bounds = [coarser.bound(epsilon, reached, deadline), solution.upper_bound]
                    least = min(bound for bound in bounds if bound is not None)
                    solution = replace(solution, upper_bound=least)
            yield most_useful(task, solution, others)


class _Missing:
    """Collects offers with a positive surplus that branch and bound comes across."""

    def __init__(self, search: ColumnSearch, prices: Prices) -> None:
        self._search, self._prices = search, prices
        self.offers: list[Offers] = []
        self.largest = -np.inf

    def __call__(self, rows: FloatArray) -> float:
        """Search next to some outputs; return the largest surplus so far."""
        found = self._search.improving(rows, self._prices)
        if len(found):
            self.offers.append(found)
            self.largest = max(self.largest, float(self._prices.surplus(found).max()))
        return self.largest


class ColumnSearch:
    """The search for the outputs for one budget; rounds_left : 0 if its work was too much."""

    def __init__(self, problem: Problem, epsilon: float, tol: float, deadline: float) -> None:
        self._problem, self._epsilon, self._tol, self._deadline = problem, epsilon, tol, deadline
        self._threshold = problem.threshold(epsilon)
        # With a budget of zero, every output must be independent of S.
        self._on_average = problem.scope == "average" and self._threshold > 0
        self._random = np.random.default_rng(_SEED)
        self._oracle = problem.oracle(epsilon)
        self._offers = partial(problem.offers, epsilon=epsilon)
        self.n_x = len(problem.p_x)
        # With fewer symbols, linear programs alone are as fast.
        self._is_large = self.n_x >= 48 and self._threshold > 0
        # Search until no surplus exceeds 30% of the tolerance: it is then easy to prove that none
        # exceeds the tolerance. With many symbols, the search would take longer than the proof.
        self._least_surplus = tol * (1 if self._is_large else 0.3)
        # Slopes mislead at the kinks of a polyhedral measure, where most useful outputs are.
        provable = can_be_proven(problem, epsilon)
        self._has_kinks = self._is_large and provable and not has_conjugate(problem)

        self.rounds_left = _MOST_ROUNDS

    def run(self, before: list[Points], n_starts: int) -> Offers:
        """Return the offers that matter, including those of `before`."""
        first = Points.concatenate([*before, *self._first()])
        offers = self._offers(self._problem.allowed(first, self._epsilon))
        proven = can_be_proven(self._problem, self._epsilon)
        # The proof finds missing outputs, except corners that only linear programs find.
        is_found = proven and has_conjugate(self._problem)
        patience = 0 if is_found else n_starts * (self.n_x + _AT_ONCE)
        self._prepare(_FIRST_TARGET * self._problem.span)
        return self._searched(self._from_inside(offers), patience)

    def _prepare(self, target: float) -> bool:
        """Search as thoroughly as the proof of a gap needs; return whether that is a change."""
        if self._has_kinks:
            self._least_surplus = max(_SEARCHED * target, self._tol)
        return self._has_kinks

    def proven(self, offers: Offers) -> tuple[Offers, float]:
        """Return (offers with those that were missing, an upper bound on ``sum q u(W)``)."""
        bound, spent = np.inf, 0
        if not can_be_proven(self._problem, self._epsilon):
            return offers, bound
        before = target = max(_FIRST_TARGET * self._problem.span, self._tol)
        for _ in range(40):
            room = self.most_boxes(target) - spent
            if room <= 0 or is_late(self._deadline):
                break
            offers, prices, _ = self._priced(offers)
            relaxation = Relaxation(self._problem, self._epsilon, prices)
            missing = _Missing(self, prices)
            found, used = largest_surplus(relaxation, target, room, self._deadline, missing)
            bound, spent = min(bound, prices.worth(self._problem.p_x) + found), spent + used
            offers = Offers.concatenate([offers, *missing.offers])
            if found > target and missing.largest > NEAR_TARGET * target:
                offers = self._searched(offers, self.n_x + _AT_ONCE)
                continue
            before, target = target, max(_NEXT_TARGET * target, self._tol)
            if target == before or spent + _NEXT_COST * used > self.most_boxes(target):
                break
            if self._prepare(target):
                offers = self._searched(offers, _MORE_ROUNDS * (self.n_x + _AT_ONCE))
        if before > 0.5 * _WIDE_GAP * self._problem.span:  # few missing outputs were found
            offers = self._searched(offers, self.n_x + _AT_ONCE)
        return offers, bound

    def most_boxes(self, target: float) -> int:
        """Return the largest total number of boxes for a gap, fewer for small gaps.

        They take the same time for all sizes, about: a box needs a Newton step of n_s numbers.
        """
        n_s, n_x = len(self._problem.leakage.prior), self.n_x
        # With kinks the search is short, which leaves time for more where gaps are wide.
        is_wide = self._has_kinks and target > 0.5 * _WIDE_GAP * self._problem.span
        numbers = 25_000_000 if is_wide else 17_000_000
        most = numbers // (n_x + 32 + n_s**3 // 400)
        is_small = target <= 1e-3 * self._problem.span
        return min(most, 7_000_000 // (n_x + 32)) if is_small else most

    def improving(self, rows: FloatArray, prices: Prices) -> Offers:
        """Return offers with a positive surplus next to some outputs, allowed or not."""
        if self._has_kinks:
            first = [self._climb(Points.from_dense(row[None]), prices) for row in rows[:_CLIMBS]]
            rows = np.vstack([*(point.dense(self.n_x) for point in first), rows[_CLIMBS:]])
        offers = self._polished(self._allowed_offers(rows), prices)
        return offers[prices.surplus(offers) > self._least_surplus]

    def _searched(self, offers: Offers, patience: int) -> Offers:
        """Add outputs to offers until more than `patience` starts in a row have found none."""
        idle = 0
        starts: list[Points] = []
        while idle <= patience and self.rounds_left and not is_late(self._deadline):
            self.rounds_left -= 1
            offers, prices, in_use = self._priced(offers)
            starts = starts or self._starts(in_use)
            tried = [starts.pop() for _ in range(min(_AT_ONCE, len(starts)))]
            if self._has_kinks:
                tried += self._between(in_use) + self._grown(in_use, prices)
            found = [self._climb(point, prices) for point in tried]
            points = self._problem.allowed(Points.concatenate([in_use, *found]), self._epsilon)
            new = [self._polished(self._offers(points), prices)]
            if self._is_large:
                new.append(self._moved_from_inside(self._starts(in_use)[:64], prices))
            surplus = np.concatenate([prices.surplus(part) for part in new])
            idle = 0 if (surplus > self._least_surplus).any() else idle + len(found)
            offers = Offers.concatenate([offers, Offers.concatenate(new)[surplus > 0]])
        return self._priced(offers)[0]

    def _from_inside(self, offers: Offers) -> Offers:
        """Add outputs found by moving uphill from inside the simplex, while rounds gain enough."""
        worth = -np.inf
        while self._is_large and self.rounds_left and not is_late(self._deadline):
            self.rounds_left -= 1
            offers, prices, in_use = self._priced(offers)
            before, worth = worth, prices.worth(self._problem.p_x)
            if 0 <= worth - before <= 10 * self._tol:
                break
            new = self._moved_from_inside(self._starts(in_use), prices)
            offers = Offers.concatenate([offers, new[prices.surplus(new) > 0]])
        return offers

    def _moved_from_inside(self, starts: list[Points], prices: Prices) -> Offers:
        """Move starts toward P(X), then uphill, all at once; return where they end."""
        rows = Points.concatenate(starts).dense(self.n_x)
        rows += self._random.uniform(0.1, 0.6) * (self._problem.p_x - rows)
        moved = self._polished(self._allowed_offers(rows), prices, n_steps=20)
        rows = moved.points.dense(self.n_x)
        rows = normalised(np.where(rows > 1e-7, rows, 0.0))
        return self._polished(self._allowed_offers(rows), prices)

    def _between(self, in_use: Points) -> list[Points]:
        """Return points to climb from: between two points in use, and all over the simplex."""
        rows = np.vstack([in_use.dense(self.n_x), self._problem.p_x])
        pairs = self._random.integers(len(rows), size=(2, _AT_ONCE))
        spread = self._random.dirichlet(np.full(self.n_x, 0.3), _AT_ONCE)
        starts = Points.from_dense(np.vstack([rows[pairs].mean(axis=0), spread]))
        return [starts[[i]] for i in range(len(starts))]

    def _grown(self, in_use: Points, prices: Prices) -> list[Points]:
        """Return points that moves to and from single symbols have given a surplus, to climb from.

        They start from points in use, all symbols, and mixtures of few.
        """
        if not self._on_average:  # most moves would exceed the budget
            return []
        mixed = self._random.dirichlet(np.full(self.n_x, 0.05), _AT_ONCE)
        rows = [in_use.dense(self.n_x), np.eye(self.n_x), np.where(mixed > 1e-3, mixed, 0.0)]
        dense = normalised(np.vstack(rows))
        few = (dense > 0).sum(axis=1) <= len(self._problem.leakage.prior) + 1  # no more are useful
        offers, grown = self._offers(Points.from_dense(dense[few])), []
        for _ in range(_MOST_MOVES):
            moved = self._best_moves(offers.points, prices)
            better = prices.surplus(moved) > prices.surplus(offers) + self._least_surplus
            grown.append(offers[~better])
            offers = moved[better]
        found = Offers.concatenate([*grown, offers])
        found = found[prices.surplus(found) > self._least_surplus]
        return [found.points[[i]] for i in range(len(found))]

    def _best_moves(self, points: Points, prices: Prices) -> Offers:
        """Return for each point the best one on the way to a symbol, or without one of its own."""
        if not len(points):
            return self._offers(points)
        dense, number = points.dense(self.n_x), np.arange(len(points))
        without = np.where(dense < 0.999, -dense / np.maximum(1 - dense, 0.001), 0.0)
        shares = [without, *(np.full_like(dense, share) for share in _SHARES)]
        best, worth = [], []
        for share in shares:
            moved = _toward_symbols(points, share)
            surplus = self._surplus_of_moves(points, moved, share, prices)
            symbol = surplus.argmax(axis=1)
            best.append(moved[number * self.n_x + symbol])
            worth.append(surplus[number, symbol])
        chosen = np.argmax(worth, axis=0) * len(points) + number
        rows = Points.concatenate(best)[chosen].dense(self.n_x)
        return self._offers(Points.from_dense(normalised(rows)))

    def _surplus_of_moves(
        self, points: Points, moved: Points, share: FloatArray, prices: Prices
    ) -> FloatArray:
        """Return the surplus of points moved toward each symbol, (n, n_x): see `_toward_symbols`.

        Costs and deviations are linear, which is faster than to compute them for each.
        """
        leakage, kept = self._problem.leakage, 1 - share
        deviations = kept[:, :, None] * points.times(leakage.deviations)[:, None]
        deviations += share[:, :, None] * leakage.deviations.T
        values = self._problem.utility.value(moved)
        places = deviations.reshape(len(moved), -1)
        values -= prices.budget / self._threshold * leakage.value(places)
        costs = points.dense(self.n_x) @ prices.symbols
        return values.reshape(share.shape) - kept * costs[:, None] - share * prices.symbols

    def _allowed_offers(self, rows: FloatArray) -> Offers:
        """Return allowed points next to dense rows, as offers."""
        return self._offers(self._problem.allowed(Points.from_dense(rows), self._epsilon))

    def _polished(self, offers: Offers, prices: Prices, n_steps: int = 8) -> Offers:
        """Move offers within their support to a larger surplus.

        Each is tilted along the slope of its surplus and pulled back; a step that does not help is
        undone, and the next is shorter.
        """
        step = np.ones(len(offers))
        for _ in range(n_steps if self._threshold > 0 else 0):
            slope = self._slope(offers.points, prices)
            tilt = np.clip(step[:, None] * slope, -3.0, 3.0)
            tilted = normalised(offers.points.values * np.exp(tilt))
            moved = Points(offers.points.support, tilted)
            if not self._on_average:
                moved, deviations = self._problem.leakage.pulled_back(moved, self._threshold)
            new = self._offers(moved)
            better = prices.surplus(new) > prices.surplus(offers)
            if not self._on_average:
                better &= self._problem.leakage.value(deviations) <= self._threshold
            values = np.where(better[:, None], moved.values, offers.points.values)
            offers = self._offers(Points(moved.support, values))
            step *= np.where(better, 2.0, 0.25)
        return offers

    def _slope(self, points: Points, prices: Prices) -> FloatArray:
        """Return the gradient of the surplus of points, at their own symbols."""
        slope = self._problem.utility.slope(points, self.n_x) - prices.symbols
        if self._on_average:
            leakage = self._problem.leakage
            normals = leakage.slope(points.times(leakage.deviations))
            slope -= prices.budget / self._threshold * normals @ leakage.deviations
        slope = np.take_along_axis(slope, points.support, axis=1)
        return slope - (points.values * slope).sum(axis=1, keepdims=True)

    def _first(self) -> list[Points]:
        """Return vertices of polytopes of bounded lifts, and outputs mostly on one symbol.

        All vertices if there are few, else those most concentrated on each symbol of X.
        """
        eye = np.eye(self.n_x)
        if self._problem.count_bases() <= 30_000:
            first = [self._problem.algorithm1_candidates(self._epsilon)]
        else:
            first = list(map(self._problem.lift_oracle(self._epsilon).best, eye))
        return first + list(map(self._oracle.best, eye))

    def _priced(self, offers: Offers) -> tuple[Offers, Prices, Points]:
        """Return the offers with the largest surplus, the prices, and the points in use."""
        most = 30 * self.n_x
        start = np.argpartition(-offers.values, min(most, len(offers) - 1))[:most]
        weights, prices = self._problem.program.price(offers, _ACCURACY * self._tol, start)
        rank = prices.surplus(offers) + (weights > 0)  # no surplus is positive
        if len(offers) > 2 * most:
            kept = np.argpartition(-rank, most)[:most]
            offers, weights = offers[kept], weights[kept]
        return offers, prices, offers.points[weights > 0]

    def _starts(self, in_use: Points) -> list[Points]:
        """Return points to climb from: all symbols, points in use, and mixtures of symbols."""
        few, mixed = self._random.integers(self.n_x, size=(self.n_x, 3)), np.zeros([self.n_x] * 2)
        mixed[np.arange(self.n_x)[:, None], few] = self._random.dirichlet(np.ones(3), self.n_x)
        units, mixtures = map(Points.from_dense, (np.eye(self.n_x), normalised(mixed)))
        starts = Points.concatenate([units, in_use, mixtures])
        return [starts[[i]] for i in self._random.permutation(len(starts))]

    def _climb(self, point: Points, prices: Prices) -> Points:
        """Follow tangents of u uphill, in at most 6 steps; return the last point."""
        price = prices.budget / self._threshold if self._on_average else 0.0
        best = -np.inf
        for _ in range(6):
            slope = self._problem.utility.slope(point, self.n_x)[0] - prices.symbols
            try:
                above = self._oracle.best(slope, price)
            except SolverError:
                if not price:
                    raise
                break  # a tiny budget has prices that HiGHS cannot handle
            worth = self._problem.utility.value(above)[0]
            worth -= prices.symbols[above.support[0]] @ above.values[0]
            if price:
                worth -= price * self._problem.leakage_of(above)[0]
            if worth <= best + _ACCURACY * self._tol:
                break
            point, best = above, worth
        return point


def _toward_symbols(points: Points, share: FloatArray) -> Points:
    """Return ``W + share (e_x - W)`` for each point W and symbol x, the symbols of each in turn.

    share : (n, n_x), of the way toward the symbol; a negative one leads away from it.
    """
    (n, n_x), width = share.shape, points.values.shape[1]
    support, values = np.empty((n, n_x, width + 1), np.intp), np.empty((n, n_x, width + 1))
    support[..., :width], support[..., width] = points.support[:, None], np.arange(n_x)
    own = (support[..., :width] == support[..., width:]) & (points.values[:, None] > 0)
    values[..., :width] = (1 - share)[..., None] * points.values[:, None] + own * share[..., None]
    values[..., width] = np.where(own.any(axis=2), 0.0, share)
    values = np.where(values > 1e-12, values, 0.0)  # a symbol that is left has rounding
    return Points(support.reshape(n * n_x, -1), values.reshape(n * n_x, -1))
