"""The certified optimum by outer approximation.

A linear program over the vertices of an outer polytope around the allowed points gives an upper
bound on the utility. The vertices in use that are not allowed are pulled back to allowed points,
which give a lower bound, and cut off by tangents of the measure, until the two bounds meet.

Per output the points ``W = P(X | Y = y)`` are allowed if ``g <= threshold``. On average all are
allowed: the points (W, z) of the epigraph, ``g <= z``, share a budget ``sum q z <= threshold``,
and the outer polytope underestimates how much of it they use. For two groups see `pairs.py`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from .._messages import InPython, Message
from .._numerics import TINY
from .._typing import FloatArray
from .._validation import check_choice, check_integer
from ..exceptions import SolverError
from ..geometry import OuterPolytope, Points, Rows, TooManyVerticesError
from ..utilities import DEFAULT_TOL
from .baselines import most_useful, simple_solutions
from .leakage_function import Tangents
from .linear_program import Offers, Prices
from .pairs import PairsOnAverage
from .problem import Problem
from .solver import (
    SHARE_OF_TOLERANCE,
    DesignTask,
    Solution,
    Solver,
    check_search,
    deadline_after,
    is_late,
    tell_round,
    warn_gap,
)

# The search stops if this many rounds have not reduced the gap to this share of what it was.
_PATIENCE, _PROGRESS = 40, 0.95

# Where rounding ends a search over pairs, the polytope is tried for up to this many symbols.
_FEW_SYMBOLS = 20


@dataclass(frozen=True, eq=False)
class Limits:
    """The gap, the time, and the numbers of vertices and of visits to them at which to stop."""

    gap: float
    deadline: float
    max_vertices: int
    max_visits: int


@dataclass(frozen=True, eq=False)
class Outer(Rows):
    """Vertices of the outer polytope; leakage : their true g; heights : g in the polytope."""

    offers: Offers
    deviations: FloatArray
    leakage: FloatArray
    heights: FloatArray


class Refinement(ABC):
    """The outer polytope and the allowed points found so far, for increasing thresholds."""

    _body: OuterPolytope
    _least_price = 0.0  # of the budget, per unit of g

    def __init__(self, problem: Problem, limits: Limits) -> None:
        self._p_x, self._rank, self._limits = problem.p_x, problem.rank, limits
        self._utility, self._leakage = problem.utility, problem.leakage
        self._program = problem.program
        self._prices = Prices(np.zeros(len(self._p_x)), 0.0)
        self._inner_prices: Prices | None = None
        # The allowed points so far, with their g as charges.
        nothing = Points(np.empty((0, 1), int), np.empty((0, 1)))
        self._inner = Offers(nothing, np.empty(0), np.empty(0))
        self._full = False
        self._needed: int | None = None

    def add(self, points: Points) -> None:
        """Add allowed points, which the lower bound may use."""
        leakage = self._leakage.value(points.times(self._leakage.deviations))
        new = Offers(points, self._utility.value(points), leakage)
        self._inner = Offers.concatenate([self._inner, new])

    def solve(self, threshold: float, ceiling: float) -> tuple[Offers, float, str | None]:
        """Return allowed points, a bound on ``sum q u(W)``, and the reason for an early stop.

        threshold : not below earlier ones; ceiling : a bound known without a search.
        """
        self._advance(threshold)
        upper, stopped, gaps, visits = ceiling, None, [], 0
        offers, lower = self._every_offer(threshold), -np.inf
        while True:
            outer = self._outer(threshold)
            try:
                weights, self._prices = self._price(outer.offers, self._prices)
                upper = min(upper, self._bound(outer.offers, threshold))
                # The vertices in use, and those with the largest surplus.
                surplus = self._prices.surplus(outer.offers)
                n = min((len(self._p_x) + 1) // 2, len(surplus) - 1)
                best = np.argpartition(-surplus, n)[: n + 1]
                chosen = outer[np.union1d(np.flatnonzero(weights > 0), best)]
                allowed, places = self._allowed(chosen, threshold)
                self.add(allowed)
                offers, lower = self._lower(threshold)
            except SolverError:  # the points and the bound so far are still valid
                stopped = "rounding"
                break
            gaps.append(upper - lower)
            if gaps[-1] <= self._limits.gap:
                break
            visits += self._body.n_vertices
            if visits > self._limits.max_visits:
                stopped = "max_visits"
                break
            tell_round(len(gaps))
            if len(gaps) % 9 == 0:
                self._reconsider(threshold)
            if len(gaps) > _PATIENCE and gaps[-1] > _PROGRESS * gaps[-1 - _PATIENCE]:
                stopped = "rounding"
                break
            stopped = self._cut(chosen, places, threshold)
            if stopped and not (stopped == "rounding" and self._give_way()):
                break
        self._needed = self._needed or self._body.n_vertices
        return offers, max(upper, lower), stopped

    def _bound(self, offers: Offers, threshold: float) -> float:
        """Return an upper bound on the mixtures of allowed points."""
        budget = max(self._prices.budget, self._least_price * threshold)
        return Prices(self._prices.symbols, budget).bound(self._p_x, offers)

    def _reconsider(self, threshold: float) -> None:  # noqa: B027
        """Switch to the other kind of bound if it is smaller."""

    def _give_way(self) -> bool:
        """Return to the first kind of bound; return whether that is a change."""
        return False

    @abstractmethod
    def _advance(self, threshold: float) -> None:
        """Prepare the polytope for a threshold."""

    @abstractmethod
    def _outer(self, threshold: float) -> Outer:
        """Return the vertices that matter."""

    @abstractmethod
    def _allowed(self, chosen: Outer, threshold: float) -> tuple[Points, FloatArray]:
        """Return allowed points next to `chosen` vertices, and deviations to take tangents at."""

    def _describe(self, points: Points, deviations: FloatArray) -> FloatArray:
        """Return u and g of vertices."""
        return np.stack([self._utility.value(points), self._leakage.value(deviations)], axis=1)

    def _polytope(self, low: float, high: float) -> OuterPolytope:
        deviations, most = self._leakage.deviations, self._limits.max_vertices
        return OuterPolytope(deviations, self._rank, low, high, self._describe, 2, most)

    def _price(self, offers: Offers, prices: Prices) -> tuple[FloatArray, Prices]:
        n_first, start = 8 * (1 + len(self._p_x)), np.arange(len(offers))
        if len(offers) > n_first:
            start = np.argpartition(-prices.surplus(offers), n_first)[:n_first]
        return self._program.price(offers, 0.02 * self._limits.gap, start)

    def _lower(self, threshold: float) -> tuple[Offers, float]:
        """Return the allowed points that matter, and the value of their best mixture."""
        offers = self._every_offer(threshold)
        weights, self._inner_prices = self._price(offers, self._inner_prices or self._prices)
        lower = weights @ offers.values + (1 - weights.sum()) * self._program.independent
        rank = self._inner_prices.surplus(offers) + (weights > 0)  # no surplus is positive
        most = 20 * (len(self._p_x) + 1)
        if len(offers) > 2 * most:
            self._inner = self._inner[np.argpartition(-rank, most)[:most]]
        few = np.argsort(-rank)[: 3 * len(self._p_x)]
        return offers[few], lower

    def _every_offer(self, threshold: float) -> Offers:
        """Return all allowed points as offers for a threshold."""
        return replace(self._inner, charges=None)

    def _cut(self, chosen: Outer, places: FloatArray, threshold: float) -> str | None:
        """Cut off the chosen vertices that are not allowed; return a reason to stop, or None."""
        if is_late(self._limits.deadline):
            return "max_time"
        if self._full:
            return "max_vertices"
        heights = chosen.heights
        over = np.flatnonzero(chosen.leakage > heights + 1e-9 * threshold)
        cuts = self._leakage.cuts(chosen.deviations[over], places[over], heights[over], threshold)
        try:
            done = self._body.cut(*self._on_scale(cuts))
        except TooManyVerticesError:
            self._full = True
            return "max_vertices"
        return None if done else "rounding"

    def _is_overloaded(self) -> bool:
        """Whether too many vertices are left from earlier budgets.

        All cost time, and few are near the outputs in use. At most twice as many are carried over
        as the first budget needed, and a fifth of those allowed, which leaves room for new ones.
        """
        most = 0.2 * self._limits.max_vertices
        if self._needed is not None:
            most = min(most, 2 * self._needed)
        return self._full or self._body.n_vertices > most

    def _on_scale(self, cuts: Tangents) -> Tangents:
        """Return tangents of g on the scale of the heights of the polytope."""
        return cuts


class PerOutput(Refinement):
    """Refinement for every output: the slice of the epigraph at the height of the threshold."""

    def __init__(self, problem: Problem, limits: Limits, smallest: float, largest: float) -> None:
        super().__init__(problem, limits)
        self._smallest, self._largest = smallest, largest
        # With sqrt(g) as height, the epigraph of a quadratic g is a cone: a tangent at one budget
        # touches it at all others too.
        self._is_cone = problem.measure.is_quadratic and smallest < largest
        self._start(smallest)
        self._convexity, self._most_convexity = 0.0, problem.convexity
        self._may_reconsider = True

    def _start(self, low: float) -> None:
        """Start with the simplex at one height, or for a path with the prism over it."""
        high = low if low == self._largest else 2 * self._largest
        self._body = self._polytope(self._height(low), self._height(high))
        self._full, self._needed = False, None

    def _height(self, threshold: float) -> float:
        return math.sqrt(threshold) if self._is_cone else threshold

    def _on_scale(self, cuts: Tangents) -> Tangents:
        if not self._is_cone:
            return cuts
        # If n.d <= o + g for all d, then n.d <= o / t + t g for all t > 0: at most 2 sqrt(o g).
        # Offsets are positive except for rounding, and a larger offset is valid.
        normals, offsets, slack = cuts
        root = 2 * np.sqrt(np.maximum(offsets, TINY))
        return normals / root[:, None], np.zeros(len(root)), slack / root

    def _advance(self, threshold: float) -> None:
        self._convexity, self._may_reconsider = 0.0, self._most_convexity > 0
        if threshold == self._smallest:
            return
        try:
            ready = not self._is_overloaded() and self._body.raise_floor(self._height(threshold))
        except TooManyVerticesError:
            ready = False
        if not ready:
            self._start(threshold)

    def _outer(self, threshold: float) -> Outer:
        points, deviations, _, traits = self._body.select(on_floor=True)
        values, leakage = traits.T
        # If u - c g is convex, u of an allowed mixture of vertices is at most the mixture of
        # u - c (g - threshold): less than u beyond the threshold, more within it.
        if self._convexity:
            values = values - self._convexity * (leakage - threshold)
        heights = np.full(len(leakage), threshold)
        return Outer(Offers(points, values), deviations, leakage, heights)

    def _reconsider(self, threshold: float) -> None:
        """Use the other c if its bound is smaller: if all outputs are at the threshold."""
        if not self._may_reconsider:
            return
        here, before = self._bound(self._outer(threshold).offers, threshold), self._prices
        self._convexity = self._most_convexity - self._convexity
        outer = self._outer(threshold)
        _, self._prices = self._price(outer.offers, self._prices)
        if self._bound(outer.offers, threshold) > here:
            self._convexity = self._most_convexity - self._convexity
            self._prices = before

    def _give_way(self) -> bool:
        had_other, self._convexity, self._may_reconsider = self._convexity > 0, 0.0, False
        return had_other

    def _allowed(self, chosen: Outer, threshold: float) -> tuple[Points, FloatArray]:
        given = chosen.offers.points, chosen.deviations, threshold, self._p_x
        points, places, index = self._leakage.allowed(*given)
        return points, places[np.argsort(index)]


class OnAverage(Refinement):
    """Refinement on average: the whole epigraph, for all thresholds."""

    def __init__(self, problem: Problem, limits: Limits) -> None:
        super().__init__(problem, limits)
        self._least_price = self._convexity = problem.convexity
        self._high = 2 * self._leakage.value(self._leakage.deviations.T).max()
        self._start()

    def _start(self) -> None:
        self._body = self._polytope(0.0, self._high)
        self._full, self._needed = False, None

    def _advance(self, threshold: float) -> None:
        if self._is_overloaded():
            self._start()

    def _outer(self, threshold: float) -> Outer:
        points, deviations, heights, traits = self._body.select()
        values, leakage = traits.T
        # If u - c g is convex, so is u - c (g - z) in (W, z). It is u on the graph of g and less
        # below it, so a vertex below g counts for less. If the price of z is above c, which
        # `_least_price` ensures, no point above the graph is better than the one on it.
        values = values - self._convexity * (leakage - heights)
        charges = np.maximum(heights, 0.0) / threshold
        return Outer(Offers(points, values, charges), deviations, leakage, charges * threshold)

    def _every_offer(self, threshold: float) -> Offers:
        assert self._inner.charges is not None
        return replace(self._inner, charges=np.maximum(self._inner.charges, 0.0) / threshold)

    def _allowed(self, chosen: Outer, threshold: float) -> tuple[Points, FloatArray]:
        return chosen.offers.points, chosen.deviations


def _check_finite(problem: Problem) -> None:
    """Check that every symbol of X has a finite leakage, so that averages are finite."""
    if problem.leakage.value(problem.leakage.deviations.T).max() == np.inf:
        infinite = "The measure {measure!r} is infinite for some {symbol} and has no average: "
        use = "use {scope='per_output'}, or smooth the joint."
        symbol = InPython("symbol of X", "released value")
        raise ValueError(Message.of(infinite + use, measure=problem.measure, symbol=symbol))


_WHY = {
    "max_time": " because its max_time has passed",
    "max_vertices": " because there are more vertices than its max_vertices",
    "work": " because its limit of work is reached",
    "max_visits": " because its max_visits are used up",
    "rounding": " because rounding prevents further progress",
}


@dataclass(frozen=True)
class OptimalSolver(Solver):
    """The certified optimum, for every measure and utility, per output and on average.

    Parameters
    ----------
    tol : float, default=1e-5
        The gap at which to stop, as a share of the largest utility.
    max_time : float, default=None
        Seconds after which to stop with whatever gap is reached, for all epsilons together.
    max_vertices : int, default=1_000_000
        The largest number of vertices of the outer polytope, about 400 bytes each. If there are
        more, the search stops with whatever gap is reached. Two values of S need no polytope.
    max_visits : int, default=200_000_000
        The search for one epsilon also stops after this many visits to vertices. Each round visits
        all of them. Unlike `max_time`, it has the same result on any machine.
    start : {"simplex", "algorithm1"}, default="simplex"
        Where the search for outputs starts. With "algorithm1" it starts from the candidates of
        `Algorithm1Solver`, so that the result is not worse.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
    >>> mechanism = design_mechanism(joint, 0.02, scope="average", solver="optimal")
    >>> bool(mechanism.gap <= 1e-5)
    True
    """

    tol: float = DEFAULT_TOL
    max_time: float | None = None
    max_vertices: int = 1_000_000
    max_visits: int = 200_000_000
    start: Literal["simplex", "algorithm1"] = "simplex"
    name: ClassVar[str] = "optimal"

    def __post_init__(self) -> None:
        check_search("OptimalSolver", self.tol, self.max_time)
        check_integer("OptimalSolver", "max_vertices", self.max_vertices, low=1)
        check_integer("OptimalSolver", "max_visits", self.max_visits, low=1)
        check_choice("OptimalSolver", "start", self.start, {"simplex", "algorithm1"})

    def solve_path(self, task: DesignTask, epsilons: Sequence[float]) -> Iterator[Solution]:
        """Refine one outer polytope for all epsilons."""
        return self._path(Problem(task), epsilons)

    def prepared(self, task: DesignTask) -> Callable[[float], Solution]:
        """Enumerate only once the vertices that all epsilons share."""
        problem = Problem(task)
        return lambda epsilon: next(self._path(problem, [epsilon]))

    def _path(self, problem: Problem, epsilons: Sequence[float]) -> Iterator[Solution]:
        gap = SHARE_OF_TOLERANCE * self.tol * problem.span
        deadline = deadline_after(self.max_time)
        limits = Limits(gap, deadline, self.max_vertices, self.max_visits)
        thresholds = [problem.threshold(e) for e in epsilons if not problem.is_special(e)]
        refinement: Refinement | PairsOnAverage | None = None
        if thresholds and problem.scope == "average":
            _check_finite(problem)
            if problem.rank == 2:
                refinement = PairsOnAverage(problem, limits.gap, limits.deadline)
            else:
                refinement = OnAverage(problem, limits)
        elif thresholds:
            refinement = PerOutput(problem, limits, thresholds[0], thresholds[-1])
        for epsilon in epsilons:
            if (special := problem.special(epsilon)) is not None:
                yield special
                continue
            assert refinement is not None  # unless all budgets are special
            if self.start == "algorithm1":
                refinement.add(problem.algorithm1_candidates(epsilon))
            is_tiny = problem.threshold(epsilon) < 1e-10 and problem.count_bases() <= 100_000
            if is_tiny and isinstance(refinement, Refinement):
                # Rounding may leave few other outputs.
                refinement.add(problem.perfectly_private())
            ceiling = problem.ceiling(epsilon)
            offers, bound, stopped = refinement.solve(problem.threshold(epsilon), ceiling)
            is_small = len(problem.p_x) <= _FEW_SYMBOLS
            if stopped == "rounding" and isinstance(refinement, PairsOnAverage) and is_small:
                # With probabilities near zero; the polytope rounds in other places.
                refinement = OnAverage(problem, limits)
                offers, bound, stopped = refinement.solve(problem.threshold(epsilon), ceiling)
            solution = problem.solution(offers, bound, epsilon, self.tol)
            if problem.gap(solution) > self.tol:
                (others,) = simple_solutions(problem.task, [epsilon])
                solution = most_useful(problem.task, solution, others)
                warn_gap("The optimal solver", _WHY[stopped or "rounding"])
            yield solution
