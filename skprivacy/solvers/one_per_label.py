"""The best design with one output per label, certified, for losses of labels."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import ClassVar

import numpy as np

from ..exceptions import SolverError
from ..geometry import Points, normalised
from .label_program import (
    LabelProgram,
    MovableTangents,
    Outline,
    SmoothedDual,
    Start,
    movable_tangents,
)
from .linear_program import Offers
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

# The gap to stop at, as a share of the loss of releasing nothing.
_TOL = 1e-4

# The search stops at this share of the tolerance: the rest is for the rounding of the channel.
_SHARE_OF_TOLERANCE = 0.9

# The allowed points are mixed anew after so many rounds of the outer program.
_ROUNDS = 3

# From so many pairs of a symbol and a label on, times groups, the smoothed dual goes first.
MANY_PAIRS = 30_000


# Its temperatures, as shares of the loss of releasing nothing: the first, that after another
# budget, and the lowest, which is also a share of the gap; the factor; the steps at each.
_HOT, _WARM, _COLD, _COOLEST = 0.03, 0.005, 1e-5, 0.3
_COOLING = 0.3

# Thresholds for every output are close to each other up to this ratio.
_CLOSE = 1.1
_STEPS = 200

# Lifts below this share of the largest one of a point are residue of the temperature.
_TRACE = 1e-6

# Points that keep at least this share of their deviations are almost allowed.
_ALMOST = 0.8

# Points that would use more than so many budgets are too far out to be of use.
_LARGEST_CHARGE = 1e8

# Points that cost more than they are worth by so many gaps are forgotten.
_FAR_TOO_EXPENSIVE = 10

# The search ends where the gap has not become this much smaller in so many rounds.
_PROGRESS = 0.99
_MOST_IDLE = 60

# How exactly the best mixture is found, as a share of the gap.
_ACCURACY = 1e-3


@dataclass(frozen=True)
class OnePerLabelSolver(Solver):
    """The certified optimum of a loss: `Distortion` and `Guess`, for hundreds of symbols.

    Two outputs for which the same label is best can be merged into one without loss of utility,
    and a merged output never leaks more. With one output per label the design is a convex program:
    linear programs with tangents of the measure bound it from outside, mixtures of allowed points
    from inside.

    Parameters
    ----------
    tol : float, default=1e-4
        The largest gap to stop at, as a share of the loss of releasing nothing.
    max_time : float, default=None
        Seconds after which to stop with the gap reached, for all epsilons of a path together.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
    >>> mechanism = design_mechanism(joint, 0.02, utility="guess", solver="one_per_label")
    >>> bool(mechanism.gap <= 1e-4)
    True
    """

    tol: float = _TOL
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
        """Solve for each epsilon, starting with what the one before has left."""
        deadline, problem, memory = deadline_after(self.max_time), Problem(task), Memory()
        for epsilon in epsilons:
            yield self._solved(problem, epsilon, memory, deadline)

    def prepared(self, task: DesignTask) -> Callable[[float], Solution]:
        """Start each search with what the one before has left; `max_time` is for each."""
        problem, memory = Problem(task), Memory()
        return lambda e: self._solved(problem, e, memory, deadline_after(self.max_time))

    def _solved(
        self, problem: Problem, epsilon: float, memory: "Memory", deadline: float
    ) -> Solution:
        if problem.is_trivial(epsilon) and (special := problem.special(epsilon)) is not None:
            return special
        gap = _SHARE_OF_TOLERANCE * self.tol * problem.span
        search = LabelSearch(problem, epsilon, gap, deadline, memory)
        offers = search.run()
        can_be_certain = problem.knows_all_allowed(epsilon)
        bound = search.bound if can_be_certain else np.inf
        solution = problem.solution(offers, bound, epsilon, self.tol)
        if can_be_certain and problem.gap(solution) > self.tol:
            why = "its max_time has passed" if is_late(deadline) else "rounding stops its progress"
            warn_of_gap("The search for one output per label", f" because {why}")
        return solution


@dataclass(eq=False)
class Memory:
    """State that the search for one budget leaves to the next.

    points : those that mattered; start : tangents and pairs that did; dual : the smoothed dual,
    where it was used.
    """

    points: Points | None = None
    start: Start | None = None
    dual: SmoothedDual | None = None


class LabelSearch:
    """The search for the outputs of one budget.

    bound : no mechanism has a larger ``sum q u(W)``.
    """

    def __init__(
        self, problem: Problem, epsilon: float, gap: float, deadline: float, memory: Memory
    ) -> None:
        self._problem, self._epsilon, self._memory = problem, epsilon, memory
        self._gap, self._deadline = gap, deadline
        self._threshold = problem.threshold(epsilon)
        # Without a budget to share, every output must be independent of S.
        self._on_average = problem.scope == "average" and self._threshold > 0
        loss = problem.utility.as_loss(len(problem.p_x))
        assert loss is not None  # `requirement` has seen to it
        self._loss, self._constant = loss
        self.bound = np.inf

    def run(self) -> Offers:
        """Return the offers that matter."""
        # Start with what the last budget has left, as far as this one allows it.
        points = Points.from_dense(self._problem.p_x[None])
        if self._memory.points is not None:
            before = self._problem.allowed(self._memory.points, self._epsilon)
            points = Points.concatenate([before, points])
        self._offers, self._reached = self._offered(points), -np.inf
        self._mix()
        start, leakage = self._memory.start, self._problem.leakage
        if self._threshold > 0 and self._loss.size * len(leakage.prior) >= MANY_PAIRS:
            given = self._problem.measure, self._epsilon, self._threshold
            if (tangents := movable_tangents(leakage, *given)) is not None:
                start = self._smooth_rounds(tangents).also(start)
        self._linear_rounds(start)
        self._memory.points = self._offers.points
        return self._offers

    def _smooth_rounds(self, tangents: MovableTangents) -> Start:
        """Lower the temperature of the smoothed dual; return the tangents that it ends with."""
        table, p_x, before = self._loss, self._problem.p_x, self._memory.dual
        if before is not None and not self._on_average:
            # For every output, many labels change sides where the budget changes much: that takes
            # a higher temperature.
            ratio = self._threshold / before.threshold
            before = before if 1 / _CLOSE <= ratio <= _CLOSE else None
        scale = float((p_x @ table).min() - p_x @ table.min(axis=1))
        dual = SmoothedDual(tangents, p_x, table, scale, self._on_average, before)
        temperature = scale * (_HOT if before is None else _WARM)
        coolest = max(_COOLEST * self._gap, _COLD * scale)
        while True:
            outline = dual.run(temperature, _STEPS)
            # Without numerical residue of the temperature, which HiGHS rejects.
            dense = outline.points.dense(len(p_x))
            lifts = dense / p_x
            dense[lifts < _TRACE * lifts.max(axis=1, keepdims=True)] = 0.0
            self._take(replace(outline, points=Points.from_dense(normalised(dense))))
            self._mix()
            if temperature <= coolest or self._is_done():
                break
            temperature = max(_COOLING * temperature, coolest)
        self._memory.dual = dual
        return dual.start(temperature)

    def _linear_rounds(self, start: Start | None) -> None:
        """Refine the outer program until it meets the mixtures."""
        if self._is_done():
            return
        leakage, p_x, threshold = self._problem.leakage, self._problem.p_x, self._threshold
        outer = LabelProgram(leakage, p_x, self._loss, threshold, self._on_average, start)
        milestone, n_idle, is_refined = np.inf, 0, True
        for n_rounds in count(1):
            outline = outer.run()
            self._take(outline)
            is_refined = outer.refine(outline)
            if n_rounds % _ROUNDS == 0 or not is_refined:
                self._mix()
            n_idle += 1
            if self.bound - self._reached < _PROGRESS * milestone:
                milestone, n_idle = self.bound - self._reached, 0
            if self._is_done() or not is_refined or n_idle > _MOST_IDLE:
                break
        if threshold > 0:
            self._memory.start = outer.end()

    def _is_done(self) -> bool:
        """Whether the gap is small enough, or the time over."""
        return self.bound - self._reached <= self._gap or is_late(self._deadline)

    def _take(self, outline: Outline) -> None:
        """Take the bound of an outline, and offer what is allowed next to it."""
        self.bound = min(self.bound, self._constant - outline.loss)
        self._offers = Offers.concatenate([self._offers, self._offered(self._allowed(outline))])

    def _allowed(self, outline: Outline) -> Points:
        """Return allowed points next to those of an outline.

        Points that are pulled back one by one may no longer average to P(X). Those that are almost
        allowed are also mixed with P(X), all by the same share: then they do.
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
        if not _ALMOST < share < 1:
            return allowed
        mixed = share * points.dense(len(p_x)) + (1 - share) * p_x
        return Points.concatenate([allowed, Points.from_dense(mixed)])

    def _offered(self, points: Points) -> Offers:
        """Return allowed points as offers."""
        offers = self._problem.offers(points, self._epsilon)
        charges = offers.charges
        return offers if charges is None else offers[charges <= _LARGEST_CHARGE]

    def _mix(self) -> None:
        """Compute the utility of the best mixture, and forget offers that are too expensive."""
        program, offers = self._problem.program, self._offers
        newest = np.arange(len(offers))[-4 * len(self._problem.p_x) :]
        try:
            weights, prices = program.price(offers, _ACCURACY * self._gap, newest)
        except SolverError:  # offers that hardly differ: the next ones may be clearer
            return
        nothing = program.independent * max(0.0, 1 - weights.sum())
        kept = (weights > 0) | (prices.surplus(offers) > -_FAR_TOO_EXPENSIVE * self._gap)
        self._offers, self._reached = offers[kept], float(weights @ offers.values) + nothing
