"""The certified optimum by outer approximation.

An outer polytope around the allowed points, its vertices and the linear program give an upper
bound on the utility. The vertices in use that are not allowed are pulled back to allowed points,
which give a lower bound, and cut off by tangents of the measure, until the two bounds meet.

Per output the points ``W = P(X | Y = y)`` are allowed where ``g <= threshold``. On average all are
allowed: the points (W, z) of the epigraph, ``g <= z``, share a budget ``sum q z <= threshold``,
and an outer polytope makes them cheaper than they are.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Literal

import numpy as np

from .._messages import InPython, Message, Setting
from .._typing import FloatArray, IntArray
from .._validation import check_choice, check_integer
from ..exceptions import SolverError
from ..geometry import OuterPolytope, Points, SlabEpigraph, TooManyVerticesError
from ..utilities import DEFAULT_TOL
from .baselines import most_useful, simple_solutions
from .leakage_function import Tangents
from .linear_program import Offers, Prices
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

# How far from the optimum of its own candidates a linear program may stop, as a share of the
# tolerance.
_ACCURACY = 0.02

# How many candidates a linear program starts with, and how many allowed points are kept.
_FIRST_PER_SYMBOL = 8
_KEPT_PER_SYMBOL = 20

# After this many rounds another kind of bound is tried.
_RECONSIDER = 9

# It stops when this many rounds have not reduced the gap to this share of what it was.
_PATIENCE = 40
_PROGRESS = 0.95

# A path carries vertices from one budget to the next until there are this many times as many as
# the first of them needed: all cost time, and few are near the outputs in use. They also leave
# room for the vertices of the next budget: they are at most this share of those allowed.
_MOST_CARRIED = 2
_MOST_ROOM = 0.2

# Excess over the threshold, as a share of it, that counts as rounding or slack.
_NEGLIGIBLE_EXCESS = 1e-9

# Tangents of a quadratic measure have positive offsets, but for rounding; a larger one is valid.
_SMALLEST_OFFSET = 1e-300


@dataclass(frozen=True, eq=False)
class Limits:
    """When to stop: at a gap, at a time, at a number of vertices."""

    gap: float
    deadline: float
    max_vertices: int


@dataclass(frozen=True, eq=False)
class Outer:
    """Vertices of the outer polytope: deviations, their true g, and the g that they stand for."""

    offers: Offers
    deviations: FloatArray
    leakage: FloatArray
    heights: FloatArray

    def __getitem__(self, index: IntArray) -> Outer:
        return Outer(*(getattr(self, field.name)[index] for field in fields(self)))


class Refinement(ABC):
    """The outer polytope and the allowed points found so far, for increasing thresholds."""

    _body: OuterPolytope | SlabEpigraph
    _least_price = 0.0  # of the budget, per unit of g

    def __init__(self, problem: Problem, limits: Limits) -> None:
        self._p_x, self._rank, self._limits = problem.p_x, problem.rank, limits
        self._utility, self._leakage = problem.utility, problem.leakage
        self._program = problem.program
        self._prices = Prices(np.zeros(len(self._p_x)), 0.0)  # nothing has a price yet
        self._inner_prices: Prices | None = None
        # The allowed points so far, each with its g as charge.
        nothing = Points(np.empty((0, 1), int), np.empty((0, 1)))
        self._inner = Offers(nothing, np.empty(0), np.empty(0))
        self._full = False
        self._needed: int | None = None

    def add(self, points: Points) -> None:
        """Add allowed points to those that the lower bound may use."""
        leakage = self._leakage.value(points.times(self._leakage.deviations))
        new = Offers(points, self._utility.value(points), leakage)
        self._inner = Offers.concatenate([self._inner, new])

    def solve(self, threshold: float, ceiling: float) -> tuple[Offers, float, str | None]:
        """Return allowed points, a bound on ``sum q u(W)``, and why it stopped early, if it did.

        threshold : not below earlier ones; ceiling : a bound that is known without a search.
        """
        self._advance(threshold)
        upper, stopped, gaps = ceiling, None, []
        offers, lower = self._every_offer(threshold), -np.inf
        while True:
            outer = self._outer(threshold)
            try:
                weights, self._prices = self._price(outer.offers, self._prices)
                upper = min(upper, self._bound(outer.offers, threshold))
                # The vertices in use, and those that come next in surplus.
                surplus = self._prices.surplus(outer.offers)
                n = min((len(self._p_x) + 1) // 2, len(surplus) - 1)
                best = np.argpartition(-surplus, n)[: n + 1]
                chosen = outer[np.union1d(np.flatnonzero(weights > 0), best)]
                allowed, places = self._allowed(chosen, threshold)
                self.add(allowed)
                offers, lower = self._lower(threshold)
            except SolverError:  # what has been found so far is still valid
                stopped = "rounding"
                break
            gaps.append(upper - lower)
            if gaps[-1] <= self._limits.gap:
                break
            if len(gaps) % _RECONSIDER == 0:
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
        """Return a bound on the mixtures of allowed points."""
        budget = max(self._prices.budget, self._least_price * threshold)
        return Prices(self._prices.symbols, budget).bound(self._p_x, offers)

    def _reconsider(self, threshold: float) -> None:  # noqa: B027
        """Change the kind of bound if another is better."""

    def _give_way(self) -> bool:
        """Go back to the first kind of bound if the current one is another and cannot improve."""
        return False

    @abstractmethod
    def _advance(self, threshold: float) -> None:
        """Prepare the polytope for a threshold."""

    @abstractmethod
    def _outer(self, threshold: float) -> Outer:
        """Return the vertices that matter, as `Outer`."""

    @abstractmethod
    def _allowed(self, chosen: Outer, threshold: float) -> tuple[Points, FloatArray]:
        """Return allowed points near `chosen` vertices, and deviations to take tangents at."""

    def _describe(self, points: Points, deviations: FloatArray) -> FloatArray:
        """Return u and g of vertices."""
        return np.stack([self._utility.value(points), self._leakage.value(deviations)], axis=1)

    def _polytope(self, low: float, high: float) -> OuterPolytope:
        deviations, most = self._leakage.deviations, self._limits.max_vertices
        return OuterPolytope(deviations, self._rank, low, high, self._describe, 2, most)

    def _price(self, offers: Offers, prices: Prices) -> tuple[FloatArray, Prices]:
        n_first = _FIRST_PER_SYMBOL * (1 + len(self._p_x))
        start = np.arange(len(offers))
        if len(offers) > n_first:
            start = np.argpartition(-prices.surplus(offers), n_first)[:n_first]
        return self._program.price(offers, _ACCURACY * self._limits.gap, start)

    def _lower(self, threshold: float) -> tuple[Offers, float]:
        """Return the allowed points that matter, as offers, and what they reach."""
        offers = self._every_offer(threshold)
        weights, self._inner_prices = self._price(offers, self._inner_prices or self._prices)
        lower = weights @ offers.values + (1 - weights.sum()) * self._program.independent
        rank = self._inner_prices.surplus(offers) + (weights > 0)  # a surplus is not positive
        most = _KEPT_PER_SYMBOL * (len(self._p_x) + 1)
        if len(offers) > 2 * most:
            self._inner = self._inner[np.argpartition(-rank, most)[:most]]
        few = np.argsort(-rank)[: 3 * len(self._p_x)]
        return offers[few], lower

    def _every_offer(self, threshold: float) -> Offers:
        """Return the allowed points as offers for a threshold."""
        return replace(self._inner, charges=None)

    def _cut(self, chosen: Outer, places: FloatArray, threshold: float) -> str | None:
        """Cut off the chosen vertices that are not allowed; return why it stops, if it does."""
        if is_late(self._limits.deadline):
            return "max_time"
        if self._full:
            return "max_vertices"
        heights = chosen.heights
        over = np.flatnonzero(chosen.leakage > heights + _NEGLIGIBLE_EXCESS * threshold)
        cuts = self._leakage.cuts(chosen.deviations[over], places[over], heights[over], threshold)
        try:
            done = self._body.cut(*self._on_scale(cuts))
        except TooManyVerticesError:
            self._full = True
            return "max_vertices"
        return None if done else "rounding"

    def _is_overloaded(self) -> bool:
        """Whether too many vertices are left from earlier budgets."""
        most = _MOST_ROOM * self._limits.max_vertices
        if self._needed is not None:
            most = min(most, _MOST_CARRIED * self._needed)
        return self._full or self._body.n_vertices > most

    def _on_scale(self, cuts: Tangents) -> Tangents:
        """Return tangents of g on the scale of the polytope's heights."""
        return cuts


class PerOutput(Refinement):
    """Every output must keep the threshold: the slice of the epigraph at that height."""

    _body: OuterPolytope

    def __init__(self, problem: Problem, limits: Limits, smallest: float, largest: float) -> None:
        super().__init__(problem, limits)
        self._smallest, self._largest = smallest, largest
        # With sqrt(g) for heights, the epigraph of a quadratic g is a cone: a tangent at one
        # budget touches it at all others too.
        self._is_cone = problem.measure.is_quadratic and smallest < largest
        self._start(smallest)
        self._convexity, self._most_convexity = 0.0, problem.convexity
        self._may_reconsider = True

    def _start(self, low: float) -> None:
        """Start with the simplex at one height, or with the prism over it for a path."""
        high = low if low == self._largest else 2 * self._largest
        self._body = self._polytope(self._height(low), self._height(high))
        self._full, self._needed = False, None

    def _height(self, threshold: float) -> float:
        return math.sqrt(threshold) if self._is_cone else threshold

    def _on_scale(self, cuts: Tangents) -> Tangents:
        if not self._is_cone:
            return cuts
        # If n.d <= o + g for all d, then n.d <= o / t + t g for all t > 0: at most 2 sqrt(o g).
        normals, offsets, slack = cuts
        root = 2 * np.sqrt(np.maximum(offsets, _SMALLEST_OFFSET))
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
        # With c such that u - c g is convex, u of an allowed mixture of vertices is at most the
        # mixture of u - c (g - threshold): less than u beyond the threshold, more within it.
        if self._convexity:
            values = values - self._convexity * (leakage - threshold)
        heights = np.full(len(leakage), threshold)
        return Outer(Offers(points, values), deviations, leakage, heights)

    def _reconsider(self, threshold: float) -> None:
        """Take the other c if its bound is smaller: where all outputs are at the threshold."""
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
        was_other, self._convexity, self._may_reconsider = self._convexity > 0, 0.0, False
        return was_other

    def _allowed(self, chosen: Outer, threshold: float) -> tuple[Points, FloatArray]:
        given = chosen.offers.points, chosen.deviations, threshold, self._p_x
        points, places, index = self._leakage.allowed(*given)
        return points, places[np.argsort(index)]


class OnAverage(Refinement):
    """The outputs share a budget: the whole epigraph, for all thresholds."""

    def __init__(self, problem: Problem, limits: Limits) -> None:
        super().__init__(problem, limits)
        self._least_price = self._convexity = problem.convexity
        self._high = 2 * self._leakage.value(self._leakage.deviations.T).max()
        if self._high == np.inf:
            infinite = f"The measure {problem.measure!r} is infinite for some "
            some = InPython("symbol of X", "released value")
            cannot, use = ", and cannot be averaged over outputs here: use ", "per_output"
            smooth = ", or smooth the joint."
            raise ValueError(Message(infinite, some, cannot, Setting("scope", use), smooth))
        self._start()

    def _start(self) -> None:
        deviations, most = self._leakage.deviations, self._limits.max_vertices
        if self._rank == 2:
            self._body = SlabEpigraph(deviations, self._high, self._describe, most)
        else:
            self._body = self._polytope(0.0, self._high)
        self._full, self._needed = False, None

    def _advance(self, threshold: float) -> None:
        if self._is_overloaded():
            self._start()

    def _outer(self, threshold: float) -> Outer:
        points, deviations, heights, traits = self._body.select()
        values, leakage = traits.T
        # With c such that u - c g is convex, so is u - c (g - z) in (W, z). It is u on the graph
        # of g and less below it, so a vertex below g counts for less. If the price of z is above
        # c, which the ceiling ensures, no point above the graph is better than the one on it.
        values = values - self._convexity * (leakage - heights)
        charges = np.maximum(heights, 0.0) / threshold
        return Outer(Offers(points, values, charges), deviations, leakage, charges * threshold)

    def _every_offer(self, threshold: float) -> Offers:
        assert self._inner.charges is not None
        return replace(self._inner, charges=np.maximum(self._inner.charges, 0.0) / threshold)

    def _allowed(self, chosen: Outer, threshold: float) -> tuple[Points, FloatArray]:
        return chosen.offers.points, chosen.deviations


# The refinement stops at this share of the tolerance: the rest is left for rounding the channel.
_SHARE_OF_TOLERANCE = 0.9

# Below this threshold on g, rounding may leave little but the outputs that reveal nothing about S.
_NEARLY_ZERO = 1e-10
_FEW_BASES = 100_000

_WHY = {
    "max_time": " because its max_time has passed",
    "max_vertices": " because there are more vertices than its max_vertices",
    "rounding": " because rounding prevents further progress",
}


@dataclass(frozen=True)
class OptimalSolver(Solver):
    """The certified optimum, for every measure and utility, per output and on average.

    Parameters
    ----------
    tol : float, default=1e-5
        The gap at which to stop, as a share of the largest value that the utility can have.
    max_time : float, default=None
        Seconds after which to stop with whatever gap is reached, for all epsilons together.
    max_vertices : int, default=1_000_000
        The most vertices of the outer polytope, which take about 400 bytes each. If there are
        more, it stops with whatever gap is reached.
    start : {"simplex", "algorithm1"}, default="simplex"
        Where the search for outputs starts. If it starts from the candidates of Algorithm 1, the
        result is not worse than `Algorithm1Solver`.

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
    start: Literal["simplex", "algorithm1"] = "simplex"
    name: ClassVar[str] = "optimal"

    def __post_init__(self) -> None:
        check_search("OptimalSolver", self.tol, self.max_time)
        check_integer("OptimalSolver", "max_vertices", self.max_vertices, low=1)
        check_choice("OptimalSolver", "start", self.start, {"simplex", "algorithm1"})

    def solve_path(self, task: DesignTask, epsilons: Sequence[float]) -> Iterator[Solution]:
        """Refine one outer polytope for all epsilons."""
        return self._path(task, Problem(task), epsilons)

    def prepared(self, task: DesignTask) -> Callable[[float], Solution]:
        """Enumerate the vertices that all epsilons share only once."""
        problem = Problem(task)
        return lambda epsilon: next(self._path(task, problem, [epsilon]))

    def _path(
        self, task: DesignTask, problem: Problem, epsilons: Sequence[float]
    ) -> Iterator[Solution]:
        deadline = deadline_after(self.max_time)
        gap = _SHARE_OF_TOLERANCE * self.tol * task.utility.span(task.joint.p_x)
        limits = Limits(gap, deadline, self.max_vertices)
        thresholds = [problem.threshold(e) for e in epsilons if not problem.is_special(e)]
        refinement: Refinement | None = None
        if thresholds and problem.scope == "average":
            refinement = OnAverage(problem, limits)
        elif thresholds:
            refinement = PerOutput(problem, limits, thresholds[0], thresholds[-1])
        for epsilon in epsilons:
            if (special := problem.special(epsilon)) is not None:
                yield special
                continue
            assert refinement is not None  # there is one unless all budgets are special
            if self.start == "algorithm1":
                refinement.add(problem.algorithm1_candidates(epsilon))
            if problem.threshold(epsilon) < _NEARLY_ZERO and problem.count_bases() <= _FEW_BASES:
                refinement.add(problem.perfectly_private())
            ceiling = problem.ceiling(epsilon)
            offers, bound, stopped = refinement.solve(problem.threshold(epsilon), ceiling)
            solution = problem.solution(offers, bound, epsilon, self.tol)
            if problem.gap(solution) > self.tol:
                (others,) = simple_solutions(task, [epsilon])
                solution = most_useful(task, solution, others)
                warn_of_gap("The optimal solver", _WHY[stopped or "rounding"])
            yield solution
