r"""Large alphabets: outputs are generated where the prices of a linear program call for them.

There are too many vertices to enumerate, but few matter. The duals price a point by
``u(W) - lambda . W - mu g(W)``, convex minus convex. From many starts, u is replaced by its
tangent, and the best point for the resulting linear program is the next start. With many symbols,
points that move uphill from inside the simplex, all at once, find most of what matters before.
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
from .priced_bound import NEAR_TARGET, CoarserGroups, Relaxation, can_be_proven, largest_surplus
from .problem import Problem
from .solver import (
    DesignTask,
    Solution,
    Solver,
    check_search,
    deadline_after,
    is_late,
    warn_of_gap,
)

_SEED = 20_240_607
_CLIMBS = 6  # tangents of u in a row
_FEW_BASES = 30_000  # candidate vertices of polytopes of bounded lifts
_AT_ONCE = 40  # starts between two linear programs
_ACCURACY = 0.1  # of the tolerance
_POLISHES = 8

# Outputs are sought until none is worth this share of the tolerance more than it costs: that no
# output is worth the whole tolerance is then proven with ease. With many symbols, the search would
# take longer than the proof.
_WORTH_HAVING = 0.3

# Points move so many times from inside the simplex, where starts have such a share of P(X): all of
# them until a round has gained less than so many tolerances, then some of them in every round.
_MOVES, _SHARES_OF_P_X, _WORTH_A_ROUND, _MOST_INSIDE = 20, (0.1, 0.6), 10.0, 64

# With fewer symbols, linear programs alone are as fast. A probability below this is zero.
_MANY_SYMBOLS, _NEGLIGIBLE = 48, 1e-7
_STEEPEST = 3.0  # the exponent of a tilt

# Gaps that are to be proven, from this share of the largest utility to the tolerance: each takes
# some times as many boxes as the one before it. In all they may take so much work; each takes as
# much as there are symbols, and a little more; and less work is spent on gaps below a fine one.
_FIRST_TARGET, _NEXT_TARGET, _NEXT_COST, _MOST_ROUNDS = 0.03, 0.3, 3, 40
_MOST_WORK, _MORE_WORK, _FINE, _LESS_IF_FINE = 15_000_000, 32, 1e-3, 3


@dataclass(frozen=True)
class ColumnGenerationSolver(Solver):
    """Good mechanisms for alphabets whose vertices cannot be enumerated.

    They keep their budget like all others. For the measures kl and chi2, and the information about
    X or about a target, a branch and bound proves how good they are, and finds outputs that the
    search has missed: `upper_bound` is mostly within 1% of the largest utility. For other measures
    it is the most that the budget allows, for instance ``epsilon + H(X|S)``, or what is optimal if
    only two or three kinds of groups of S are told apart. They are never worse than merging,
    randomised response or the chi-squared design: where one of these is better, it is used
    instead.

    Parameters
    ----------
    tol : float, default=1e-5
        The gap at which to stop, as a share of the largest utility. The search for outputs stops
        when no start leads to one whose worth exceeds its cost by more than this.
    max_time : float, default=None
        Seconds after which to stop, for all epsilons together.
    n_starts : int, default=4
        How many times to search from each symbol of X before stopping, where there is no proof
        that tells what is missing.

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
        """Generate columns for each epsilon, starting with those of the previous one."""
        deadline, problem = deadline_after(self.max_time), Problem(task)
        tol = self.tol * task.utility.span(task.joint.p_x)
        before: list[Points] = []
        coarser: CoarserGroups | None = None
        simple = simple_solutions(task, epsilons)
        for epsilon, others in zip(epsilons, simple, strict=True):
            solution = problem.special(epsilon) if problem.is_easy(epsilon) else None
            if solution is None:
                search = ColumnSearch(problem, epsilon, tol, deadline)
                offers, bound = search.proven(search.run(before, self.n_starts))
                before = [offers.points]
                solution = problem.solution(offers, bound, epsilon, self.tol)
                if is_late(deadline):
                    warn_of_gap("Column generation", " because its max_time has passed")
                if not can_be_proven(problem, epsilon):
                    coarser = coarser or CoarserGroups(task)
                    reached = task.reached(solution.channel)
                    bounds = [coarser.bound(epsilon, reached, deadline), solution.upper_bound]
                    least = min(bound for bound in bounds if bound is not None)
                    solution = replace(solution, upper_bound=least)
            yield most_useful(task, solution, others)


class _Missing:
    """Collects the offers that a proof finds to be missing, next to where there may be some."""

    def __init__(self, search: ColumnSearch, prices: Prices) -> None:
        self._search, self._prices = search, prices
        self.offers: list[Offers] = []
        self.largest = -np.inf

    def __call__(self, rows: FloatArray) -> float:
        """Return the largest surplus so far, after a look next to some outputs."""
        found = self._search.better_next_to(rows, self._prices)
        if len(found):
            self.offers.append(found)
            self.largest = max(self.largest, float(self._prices.surplus(found).max()))
        return self.largest


class ColumnSearch:
    """The search for the outputs of one budget."""

    def __init__(self, problem: Problem, epsilon: float, tol: float, deadline: float) -> None:
        self._problem, self._epsilon, self._tol, self._deadline = problem, epsilon, tol, deadline
        self._threshold = problem.threshold(epsilon)
        # With a budget of zero, every output must be independent of S.
        self._on_average = problem.scope == "average" and self._threshold > 0
        self._random = np.random.default_rng(_SEED)
        self._oracle = problem.oracle(epsilon)
        self._offers = partial(problem.offers, epsilon=epsilon)
        self.n_x = len(problem.p_x)
        self._is_large = self.n_x >= _MANY_SYMBOLS and self._threshold > 0
        self._worth_having = tol * (1 if self._is_large else _WORTH_HAVING)

    def run(self, before: list[Points], n_starts: int) -> Offers:
        """Return the offers that matter, including those of `before`."""
        first = Points.concatenate([*before, *self._first()])
        offers = self._offers(self._problem.allowed(first, self._epsilon))
        proven = can_be_proven(self._problem, self._epsilon)  # which finds what is missing
        patience = 0 if proven else n_starts * (self.n_x + _AT_ONCE)
        return self._searched(self._from_inside(offers), patience)

    def proven(self, offers: Offers) -> tuple[Offers, float]:
        """Return offers, with what the proof has found to be missing, and a proven bound.

        No mechanism within the budget exceeds the bound, as ``sum q u(W)``.
        """
        bound, spent = np.inf, 0
        if not can_be_proven(self._problem, self._epsilon):
            return offers, bound
        target = max(_FIRST_TARGET * self._problem.span, self._tol)
        for _ in range(_MOST_ROUNDS):
            room = self._most_boxes(target) - spent
            if room <= 0 or is_late(self._deadline):
                break
            offers, prices, _ = self._priced(offers)
            relaxation = Relaxation(self._problem, self._epsilon, prices)
            missing = _Missing(self, prices)
            found, used = largest_surplus(relaxation, target, room, self._deadline, missing)
            bound, spent = min(bound, prices.worth(self._problem.p_x) + found), spent + used
            offers = Offers.concatenate([offers, *missing.offers])
            if missing.largest > NEAR_TARGET * target:
                offers = self._searched(offers, self.n_x + _AT_ONCE)
                continue
            before, target = target, max(_NEXT_TARGET * target, self._tol)
            if target == before or spent + _NEXT_COST * used > self._most_boxes(target):
                break
        return offers, bound

    def _most_boxes(self, target: float) -> int:
        """Return the number of boxes, in all, after which a gap is given up."""
        is_fine = target <= _FINE * self._problem.span
        return _MOST_WORK // (self.n_x + _MORE_WORK) // (_LESS_IF_FINE if is_fine else 1)

    def better_next_to(self, rows: FloatArray, prices: Prices) -> Offers:
        """Return offers that are worth more than they cost, next to outputs of any kind."""
        offers = self._polished(self._allowed_offers(rows), prices)
        return offers[prices.surplus(offers) > self._worth_having]

    def _searched(self, offers: Offers, patience: int) -> Offers:
        """Return offers and what is found, until so many starts in a row have found nothing."""
        idle = 0
        starts: list[Points] = []
        while idle <= patience and not is_late(self._deadline):
            offers, prices, in_use = self._priced(offers)
            starts = starts or self._starts(in_use)
            found = [self._climb(starts.pop(), prices) for _ in range(min(_AT_ONCE, len(starts)))]
            points = self._problem.allowed(Points.concatenate([in_use, *found]), self._epsilon)
            new = [self._polished(self._offers(points), prices)]
            if self._is_large:
                new.append(self._moved_from_inside(self._starts(in_use)[:_MOST_INSIDE], prices))
            surplus = np.concatenate([prices.surplus(part) for part in new])
            idle = 0 if (surplus > self._worth_having).any() else idle + len(found)
            offers = Offers.concatenate([offers, Offers.concatenate(new)[surplus > 0]])
        return self._priced(offers)[0]

    def _from_inside(self, offers: Offers) -> Offers:
        """Return offers, and those that are found by moving uphill from inside the simplex."""
        worth = -np.inf
        while self._is_large and not is_late(self._deadline):
            offers, prices, in_use = self._priced(offers)
            before, worth = worth, prices.worth(self._problem.p_x)
            if 0 <= worth - before <= _WORTH_A_ROUND * self._tol:
                break
            new = self._moved_from_inside(self._starts(in_use), prices)
            offers = Offers.concatenate([offers, new[prices.surplus(new) > 0]])
        return offers

    def _moved_from_inside(self, starts: list[Points], prices: Prices) -> Offers:
        """Return where points move uphill, all at once, from starts closer to P(X)."""
        rows = Points.concatenate(starts).dense(self.n_x)
        rows += self._random.uniform(*_SHARES_OF_P_X) * (self._problem.p_x - rows)
        rows = self._polished(self._allowed_offers(rows), prices, _MOVES).points.dense(self.n_x)
        rows = normalised(np.where(rows > _NEGLIGIBLE, rows, 0.0))
        return self._polished(self._allowed_offers(rows), prices)

    def _allowed_offers(self, rows: FloatArray) -> Offers:
        """Return allowed points next to dense rows, as offers."""
        return self._offers(self._problem.allowed(Points.from_dense(rows), self._epsilon))

    def _polished(self, offers: Offers, prices: Prices, n_steps: int = _POLISHES) -> Offers:
        """Return offers moved within their support to where they are worth more.

        Each is tilted along the slope of its worth and pulled back; a step that does not help is
        undone, and the next is shorter.
        """
        step = np.ones(len(offers))
        for _ in range(n_steps if self._threshold > 0 else 0):
            slope = self._slope(offers.points, prices)
            tilt = np.clip(step[:, None] * slope, -_STEEPEST, _STEEPEST)
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
        """Return the slope of what points are worth, at their own symbols."""
        slope = self._problem.utility.slope(points, self.n_x) - prices.symbols
        if self._on_average:
            leakage = self._problem.leakage
            normals = leakage.slope(points.times(leakage.deviations))
            slope -= prices.budget / self._threshold * normals @ leakage.deviations
        slope = np.take_along_axis(slope, points.support, axis=1)
        return slope - (points.values * slope).sum(axis=1, keepdims=True)

    def _first(self) -> list[Points]:
        """Return vertices of polytopes of bounded lifts, and outputs mostly on one symbol.

        All vertices if there are few; otherwise those concentrated most on one symbol of X.
        """
        eye = np.eye(self.n_x)
        if self._problem.count_bases() <= _FEW_BASES:
            first = [self._problem.algorithm1_candidates(self._epsilon)]
        else:
            first = list(map(self._problem.lift_oracle(self._epsilon).best, eye))
        return first + list(map(self._oracle.best, eye))

    def _priced(self, offers: Offers) -> tuple[Offers, Prices, Points]:
        """Return the offers that are not far too expensive, the prices, and those in use."""
        most = 30 * self.n_x
        start = np.argpartition(-offers.values, min(most, len(offers) - 1))[:most]
        accuracy = _ACCURACY * self._tol
        weights, prices = self._problem.program.price(offers, accuracy, start)
        rank = prices.surplus(offers) + (weights > 0)  # a surplus is not positive
        if len(offers) > 2 * most:
            kept = np.argpartition(-rank, most)[:most]
            offers, weights = offers[kept], weights[kept]
        return offers, prices, offers.points[weights > 0]

    def _starts(self, in_use: Points) -> list[Points]:
        """Return points to climb from: all symbols, what is in use, and mixtures of symbols."""
        few, mixed = self._random.integers(self.n_x, size=(self.n_x, 3)), np.zeros([self.n_x] * 2)
        mixed[np.arange(self.n_x)[:, None], few] = self._random.dirichlet(np.ones(3), self.n_x)
        units, mixtures = map(Points.from_dense, (np.eye(self.n_x), normalised(mixed)))
        starts = Points.concatenate([units, in_use, mixtures])
        return [starts[[i]] for i in self._random.permutation(len(starts))]

    def _climb(self, point: Points, prices: Prices) -> Points:
        """Return a point from which no tangent of u leads further up."""
        price = prices.budget / self._threshold if self._on_average else 0.0
        best = -np.inf
        for _ in range(_CLIMBS):
            slope = self._problem.utility.slope(point, self.n_x)[0] - prices.symbols
            try:
                above = self._oracle.best(slope, price)
            except SolverError:
                if not price:
                    raise
                break  # a tiny budget has prices that HiGHS cannot handle: stay here
            worth = self._problem.utility.value(above)[0]
            worth -= prices.symbols[above.support[0]] @ above.values[0]
            if price:
                worth -= price * self._problem.leakage_of(above)[0]
            if worth <= best + _ACCURACY * self._tol:
                break
            point, best = above, worth
        return point
