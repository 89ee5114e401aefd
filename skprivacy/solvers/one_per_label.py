"""The certified optimum for losses of labels, with one output per label."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import numpy as np

from .._typing import FloatArray
from .._validation import check_integer
from ..exceptions import SolverError
from ..geometry import Points
from .label_program import LabelProgram, LabelTask, Outline, SmoothedDual, Start, movable_tangents
from .linear_program import Offers
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

# The smoothed dual runs first if there are at least this many triples of symbol, label and group.
MANY_PAIRS = 30_000

# Temperatures of the smoothed dual, as shares of the loss of releasing nothing: the first one, the
# first one after another budget, and the lowest: for two groups, and for more or on average.
_HOT, _WARM, _MILD, _COLD = 0.03, 0.005, 0.01, 1e-5

# A mixture that misses P(X) by more than this share is no design.
_MISSED = 1e-6

# The search stops if this many rounds have not reduced the gap to this share of what it was.
_MOST_IDLE, _PROGRESS = 60, 0.99


@dataclass(eq=False)
class Memory:
    """Results of the search for one budget that help the next.

    points : allowed points that mattered; start : tangents and pairs that mattered; dual : the
    smoothed dual, if it was used.
    """

    points: Points | None = None
    start: Start | None = None
    dual: SmoothedDual | None = None


@dataclass(frozen=True)
class OnePerLabelSolver(Solver):
    """The certified optimum of a loss (`Distortion`, `Guess`), for hundreds of symbols.

    Two outputs for which the same label is best can be merged without loss of utility, and a
    merged output never leaks more. With one output per label the design is a convex program:
    linear programs with tangents of the measure bound it from outside, mixtures of allowed points
    from inside.

    Parameters
    ----------
    tol : float, default=1e-4
        The largest gap to stop at, as a share of the loss of releasing nothing.
    max_time : float, default=None
        Seconds after which to stop with whatever gap is reached, for all epsilons together.
    max_pivots : int, default=500_000
        Pivots of linear programs after which to stop with whatever gap is reached, for each
        epsilon. Unlike `max_time`, it has the same result on any machine.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
    >>> mechanism = design_mechanism(joint, 0.02, utility="guess", solver="one_per_label")
    >>> bool(mechanism.gap <= 1e-4)
    True
    """

    tol: float = 1e-4
    max_time: float | None = None
    max_pivots: int = 500_000
    name: ClassVar[str] = "one_per_label"

    def __post_init__(self) -> None:
        check_search("OnePerLabelSolver", self.tol, self.max_time)
        check_integer("OnePerLabelSolver", "max_pivots", self.max_pivots, low=1)

    def requirement(self, task: DesignTask) -> str | None:
        if task.utility.as_loss(len(task.joint.p_x)) is None:
            return "a utility that is a loss of labels, such as 'guess'"
        if task.measure.jumps:
            return "a measure without a jump to infinity, unlike Lip(lower=...)"
        return None

    def solve_path(self, task: DesignTask, epsilons: Sequence[float]) -> Iterator[Solution]:
        """Solve for each epsilon, starting from the search for the previous one."""
        deadline, problem, memory = deadline_after(self.max_time), Problem(task), Memory()
        for epsilon in epsilons:
            yield self._run(problem, epsilon, memory, deadline)

    def prepared(self, task: DesignTask) -> Callable[[float], Solution]:
        """Start each search from the previous one; `max_time` is for each."""
        problem, memory = Problem(task), Memory()
        return lambda e: self._run(problem, e, memory, deadline_after(self.max_time))

    def _run(self, problem: Problem, epsilon: float, memory: Memory, deadline: float) -> Solution:
        if problem.is_trivial(epsilon) and (special := problem.special(epsilon)) is not None:
            return special
        gap = SHARE_OF_TOLERANCE * self.tol * problem.span
        is_certified = problem.knows_all_allowed(epsilon)

        search = LabelSearch(problem, epsilon, Limits(gap, deadline, self.max_pivots), memory)
        search.run()
        solution = search.solution(search.bound if is_certified else np.inf, self.tol)
        if is_certified and problem.gap(solution) > self.tol:
            late = "its max_time has passed" if is_late(deadline) else ""
            spent = "its max_pivots are used up" if search.is_spent else ""
            why = late or spent or "rounding stops its progress"
            warn_gap("The search for one output per label", f" because {why}")
        return solution


@dataclass(frozen=True)
class Limits:
    """The gap, the time and the number of pivots at which to stop."""

    gap: float
    deadline: float
    max_pivots: int


class LabelSearch:
    """The search for the outputs for one budget.

    bound : an upper bound on ``sum q u(W)`` of all mechanisms within the budget; is_spent :
    whether the pivots were too few.
    """

    def __init__(self, problem: Problem, epsilon: float, limits: Limits, memory: Memory) -> None:
        self._problem, self._epsilon, self._memory = problem, epsilon, memory
        self._limits = limits
        self._threshold = problem.threshold(epsilon)
        # With a budget of zero, every output must be independent of S.
        self._on_average = problem.scope == "average" and self._threshold > 0
        loss = problem.utility.as_loss(len(problem.p_x))
        assert loss is not None  # checked by `requirement`
        self._loss, self._constant = loss
        # Two groups differ by one number: then no mixture is better than a linear program, and
        # a smaller gap takes no longer.
        self._is_linear = len(problem.leakage.prior) == 2 and not self._on_average
        self._gap = limits.gap * (0.01 if self._is_linear else 1.0)
        self._task = LabelTask(problem.p_x, self._loss, self._on_average)
        self.bound, self.is_spent = np.inf, False

    def run(self) -> None:
        """Search until the gap is small enough."""
        # Start with the points of the last budget, pulled back to this one.
        points = Points.from_dense(self._problem.p_x[None])
        if self._memory.points is not None:
            before = self._problem.allowed(self._memory.points, self._epsilon)
            points = Points.concatenate([before, points])
        self._offers = self._best = self._offered(points)
        self._reached = -np.inf
        self._mix()
        start, n_triples = self._memory.start, self._loss.size * len(self._problem.leakage.prior)
        if self._threshold > 0 and n_triples >= MANY_PAIRS:
            start = self._smooth_rounds(start)
        self._linear_rounds(start)
        self._memory.points = self._best.points

    def solution(self, bound: float, tol: float) -> Solution:
        """Return the best mixture of the best offers; all are tried if HiGHS fails with these."""
        found, failure = [], None
        for offers in (self._best, self._offers):
            try:
                found.append(self._problem.solution(offers, bound, self._epsilon, tol))
            except SolverError as error:
                failure = error
            if found and self._problem.gap(found[0]) <= tol:
                break
        if not found:
            assert failure is not None
            raise failure
        return min(found, key=self._problem.gap)

    def _smooth_rounds(self, start: Start | None) -> Start | None:
        """Lower the temperature of the smoothed dual; return `start` with its tangents."""
        problem, loss, before = self._problem, self._loss, self._memory.dual
        given = problem.leakage, problem.measure, self._epsilon, self._threshold
        if (tangents := movable_tangents(*given)) is None:
            return start
        if before is not None and not self._on_average:
            # Per output, many labels change sides if the budget changes much, which needs a higher
            # temperature.
            ratio = self._threshold / before.threshold
            before = before if 1 / 1.1 <= ratio <= 1.1 else None
        scale = float((problem.p_x @ loss).min() - problem.p_x @ loss.min(axis=1))
        dual = SmoothedDual(self._task, tangents, scale, before)
        temperature = scale * (_HOT if before is None else _WARM)
        lowest = max(0.3 * self._gap, (_MILD if self._is_linear else _COLD) * scale)
        while True:
            self._take(dual.run(temperature, n_steps=200))
            if temperature <= lowest or self._is_done():
                break
            temperature = max(0.3 * temperature, lowest)
        self._memory.dual = dual
        return dual.start(temperature).also(start)

    def _linear_rounds(self, start: Start | None) -> None:
        """Refine the outer program until its bound meets the mixtures."""
        if self._is_done():
            return
        given = self._problem.leakage, self._threshold, start, self._limits.max_pivots
        outer = LabelProgram(self._task, *given)
        milestone, n_idle = np.inf, 0
        for n_rounds in count(1):
            tell_round(n_rounds)
            if (outline := outer.run()) is None:
                self.is_spent = outer.is_spent
                break
            self._take(outline)
            is_refined = outer.refine(outline)
            is_time = n_rounds % 3 == 0 and not self._is_linear
            if not self._is_done() and (is_time or not is_refined):
                self._mix()
            n_idle += 1
            if self.bound - self._reached < _PROGRESS * milestone:
                milestone, n_idle = self.bound - self._reached, 0
            if self._is_done() or not is_refined or n_idle > _MOST_IDLE:
                break
        if self._threshold > 0:
            self._memory.start = outer.end()

    def _is_done(self) -> bool:
        """Whether the gap is small enough, or the deadline has passed."""
        return self.bound - self._reached <= self._gap or is_late(self._limits.deadline)

    def _take(self, outline: Outline) -> None:
        """Take the bound of an outline, and offer the allowed points next to it."""
        self.bound = min(self.bound, self._constant - outline.loss)
        new = self._offered(self._problem.allowed(outline.points, self._epsilon))
        if self._threshold > 0:
            points, weights = self._repaired(outline)
            design = self._problem.offers(points, self._epsilon)
            if (reached := float(weights @ design.values)) > self._reached:
                self._reached, self._best = reached, design
                new = Offers.concatenate([new, design])
        self._offers = Offers.concatenate([self._offers, new])

    def _repaired(self, outline: Outline) -> tuple[Points, FloatArray]:
        """Return allowed points and their weights, with the average P(X) of the outline.

        A share is taken from all labels alike, which on average is P(X), and added to those that
        exceed the budget: as much as each needs. On average, all get back what was taken.
        """
        leakage, p_x, weights = self._problem.leakage, self._problem.p_x, outline.weights
        deviations = outline.points.times(leakage.deviations)
        if self._on_average:
            kept = np.full(len(weights), self._kept_on_average(deviations, weights))
        else:
            kept = leakage.shrunk(deviations, self._threshold)
            needed = weights / kept
            weights = needed / needed.sum()
        rest = (1 - kept)[:, None] * p_x
        points = kept[:, None] * outline.points.dense(len(p_x)) + rest
        return Points.from_dense(points), weights

    def _kept_on_average(self, deviations: FloatArray, weights: FloatArray) -> float:
        """Return a share of all deviations that keeps the budget, by chords of a convex g."""
        leakage, kept, used = self._problem.leakage, 0.0, 0.0
        most = float(weights @ leakage.value(deviations))
        for _ in range(6):
            if not used < self._threshold < most:
                break
            kept += (1 - kept) * (self._threshold - used) / (most - used)
            used = float(weights @ leakage.value(kept * deviations))
        return kept if most > self._threshold else 1.0

    def _offered(self, points: Points) -> Offers:
        """Return allowed points as offers, without those that are too far out to be of use."""
        offers = self._problem.offers(points, self._epsilon)
        charges = offers.charges
        return offers if charges is None else offers[charges <= 1e8]

    def _mix(self) -> None:
        """Compute the utility of the best mixture, and drop offers that are too expensive."""
        program, offers, p_x = self._problem.program, self._offers, self._problem.p_x
        newest = np.arange(len(offers))[-4 * len(p_x) :]
        try:
            weights, prices = program.price(offers, 1e-3 * self._gap, newest)
        except SolverError:  # offers that hardly differ: the next ones may differ more
            return
        nothing = max(0.0, 1 - weights.sum())
        rank = np.where(weights > 0, np.inf, prices.surplus(offers) / self._gap)
        self._offers = offers[rank > -10]
        reached = float(weights @ offers.values) + nothing * program.independent
        mean = weights @ offers.points.dense(len(p_x)) + nothing * p_x
        if reached > self._reached and np.abs(mean / p_x - 1).max() <= _MISSED:
            self._reached, self._best = reached, offers[rank > -0.01]
