"""The certified optimum for losses of labels, with one output per label."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import ClassVar

import numpy as np

from .._typing import FloatArray
from ..exceptions import SolverError
from ..geometry import Points, normalised
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
    warn_gap,
)

# The smoothed dual runs first if there are at least this many triples of symbol, label and group.
MANY_PAIRS = 30_000

# Temperatures of the smoothed dual, as shares of the loss of releasing nothing: the first one, the
# first one after another budget, and the lowest.
_HOT, _WARM, _COLD = 0.03, 0.005, 1e-5

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
    name: ClassVar[str] = "one_per_label"

    def __post_init__(self) -> None:
        check_search("OnePerLabelSolver", self.tol, self.max_time)

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

        def searched(offers_rest: bool) -> Solution:
            search = LabelSearch(problem, epsilon, gap, deadline, memory, offers_rest)
            offers = search.run()
            bound = search.bound if is_certified else np.inf
            return problem.solution(offers, bound, epsilon, self.tol)

        try:
            solution = searched(offers_rest=False)
        except SolverError:
            solution = searched(offers_rest=True)
        else:
            if is_certified and problem.gap(solution) > _LARGE_GAP:
                solution = min(solution, searched(offers_rest=True), key=problem.gap)
        if is_certified and problem.gap(solution) > self.tol:
            why = "its max_time has passed" if is_late(deadline) else "rounding stops its progress"
            warn_gap("The search for one output per label", f" because {why}")
        return solution


# Weight of the output that makes up for dropped residue, and the gap that calls for it: HiGHS
# may find no mixture of points that miss P(X) by a little.
_SHARE_OF_REST, _LARGE_GAP = 1e-3, 0.01


class LabelSearch:
    """The search for the outputs for one budget.

    bound : an upper bound on ``sum q u(W)`` of all mechanisms within the budget.
    """

    def __init__(
        self,
        problem: Problem,
        epsilon: float,
        gap: float,
        deadline: float,
        memory: Memory,
        offers_rest: bool = False,
    ) -> None:
        self._problem, self._epsilon, self._memory = problem, epsilon, memory
        self._offers_rest = offers_rest
        self._gap, self._deadline = gap, deadline
        self._threshold = problem.threshold(epsilon)
        # With a budget of zero, every output must be independent of S.
        self._on_average = problem.scope == "average" and self._threshold > 0
        loss = problem.utility.as_loss(len(problem.p_x))
        assert loss is not None  # checked by `requirement`
        self._loss, self._constant = loss
        self._task = LabelTask(problem.p_x, self._loss, self._on_average)
        self.bound = np.inf

    def run(self) -> Offers:
        """Return the offers that matter."""
        # Start with the points of the last budget, pulled back to this one.
        points = Points.from_dense(self._problem.p_x[None])
        if self._memory.points is not None:
            before = self._problem.allowed(self._memory.points, self._epsilon)
            points = Points.concatenate([before, points])
        self._offers, self._reached = self._offered(points), -np.inf
        self._mix()
        start, n_triples = self._memory.start, self._loss.size * len(self._problem.leakage.prior)
        if self._threshold > 0 and n_triples >= MANY_PAIRS:
            start = self._smooth_rounds(start)
        self._linear_rounds(start)
        self._memory.points = self._offers.points
        return self._offers

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
        lowest = max(0.3 * self._gap, _COLD * scale)
        while True:
            outline = dual.run(temperature, n_steps=200)
            # Drop numerical residue of the temperature, which HiGHS rejects.
            dense = outline.points.dense(len(problem.p_x))
            lifts = dense / problem.p_x
            dense[lifts < 1e-6 * lifts.max(axis=1, keepdims=True)] = 0.0
            points = Points.from_dense(normalised(dense))
            self._take(replace(outline, points=points))
            if self._offers_rest:
                self._offer_rest(points, outline.weights)
            self._mix()
            if temperature <= lowest or self._is_done():
                break
            temperature = max(0.3 * temperature, lowest)
        self._memory.dual = dual
        return dual.start(temperature).also(start)

    def _linear_rounds(self, start: Start | None) -> None:
        """Refine the outer program until its bound meets the mixtures."""
        if self._is_done():
            return
        outer = LabelProgram(self._task, self._problem.leakage, self._threshold, start)
        milestone, n_idle, is_refined = np.inf, 0, True
        for n_rounds in count(1):
            outline = outer.run()
            self._take(outline)
            is_refined = outer.refine(outline)
            if n_rounds % 3 == 0 or not is_refined:
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
        return self.bound - self._reached <= self._gap or is_late(self._deadline)

    def _take(self, outline: Outline) -> None:
        """Take the bound of an outline, and offer the allowed points next to it."""
        self.bound = min(self.bound, self._constant - outline.loss)
        self._offers = Offers.concatenate([self._offers, self._offered(self._allowed(outline))])

    def _offer_rest(self, points: Points, weights: FloatArray) -> None:
        """Offer an output of small weight with which points average to P(X), without residue."""
        p_x = self._problem.p_x
        mean = weights @ points.dense(len(p_x)) / weights.sum()
        rest = p_x + (p_x - mean) / _SHARE_OF_REST
        if rest.min() >= 0:
            allowed = self._problem.allowed(Points.from_dense(rest[None]), self._epsilon)
            self._offers = Offers.concatenate([self._offers, self._offered(allowed)])

    def _allowed(self, outline: Outline) -> Points:
        """Return allowed points next to those of an outline.

        Points that are pulled back one by one may no longer average to P(X). If all are almost
        allowed, they are also mixed with P(X) by the same share, which keeps their average.
        """
        points, p_x, leakage = outline.points, self._problem.p_x, self._problem.leakage
        allowed = self._problem.allowed(points, self._epsilon)
        if self._threshold <= 0:
            return allowed
        deviations = points.times(leakage.deviations)
        if self._on_average:
            used = float(outline.weights @ leakage.value(deviations))
            share = self._threshold / max(used, self._threshold)
        else:
            share = float(leakage.shrunk(deviations, self._threshold).min())
        if not 0.8 < share < 1:
            return allowed
        mixed = share * points.dense(len(p_x)) + (1 - share) * p_x
        return Points.concatenate([allowed, Points.from_dense(mixed)])

    def _offered(self, points: Points) -> Offers:
        """Return allowed points as offers, without those that are too far out to be of use."""
        offers = self._problem.offers(points, self._epsilon)
        charges = offers.charges
        return offers if charges is None else offers[charges <= 1e8]

    def _mix(self) -> None:
        """Compute the utility of the best mixture, and drop offers that are too expensive."""
        program, offers = self._problem.program, self._offers
        newest = np.arange(len(offers))[-4 * len(self._problem.p_x) :]
        try:
            weights, prices = program.price(offers, 1e-3 * self._gap, newest)
        except SolverError:  # offers that hardly differ: the next ones may differ more
            return
        nothing = program.independent * max(0.0, 1 - weights.sum())
        kept = (weights > 0) | (prices.surplus(offers) > -10 * self._gap)
        self._offers, self._reached = offers[kept], float(weights @ offers.values) + nothing
