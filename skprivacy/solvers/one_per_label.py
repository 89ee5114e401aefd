"""The best design with one output per label: all there is where usefulness is a loss of labels."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._messages import Message, Setting
from .._validation import check_real
from .._warnings import warn
from ..geometry import Points
from .base import Solution, Solver
from .label_program import LabelProgram
from .linear_program import Offers
from .problem import Problem
from .task import DesignTask

# The gap to stop at, as a share of the loss of releasing nothing.
_TOL = 1e-4

# The search stops at this share of the tolerance: the rest is for the rounding of the channel.
_SHARE_OF_TOLERANCE = 0.9

# The allowed points are mixed anew after so many rounds of the outer program.
_ROUNDS = 3

# Points that cost more than they are worth by so many gaps are forgotten.
_FAR_TOO_EXPENSIVE = 10

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
        Seconds after which to stop with the gap reached, for all epsilons together.

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
        owner = "OnePerLabelSolver"
        check_real(owner, "tol", self.tol, low=0, low_open=True)
        if self.max_time is not None:
            check_real(owner, "max_time", self.max_time, low=0)

    def requirement(self, task: DesignTask) -> str | None:
        if task.utility.as_loss(len(task.joint.p_x)) is None:
            return "a utility that is a loss of labels, such as 'guess'"
        return None

    def solve_path(self, task: DesignTask, epsilons: Sequence[float]) -> Iterator[Solution]:
        """Solve for each epsilon, starting with the points of the one before."""
        deadline = time.perf_counter() + (np.inf if self.max_time is None else self.max_time)
        problem = Problem(task)
        gap = _SHARE_OF_TOLERANCE * self.tol * task.utility.span(task.joint.p_x)
        before: list[Points] = []
        for epsilon in epsilons:
            if problem.is_trivial(epsilon) and (special := problem.special(epsilon)) is not None:
                yield special
                continue
            search = LabelSearch(problem, epsilon, gap, deadline)
            offers = search.run(before)
            before = [offers.points]
            can_be_certain = problem.knows_all_allowed(epsilon)
            bound = search.bound if can_be_certain else np.inf
            solution = problem.solution(offers, bound, epsilon, self.tol)
            if can_be_certain and problem.gap(solution) > self.tol:
                self._warn(search, problem.gap(solution), epsilon)
            yield solution

    def _warn(self, search: "LabelSearch", gap: float, epsilon: float) -> None:
        late = f"max_time={self.max_time} seconds are over"
        why = late if search.is_late() else "rounding lets it get no further"
        warn(
            Message(
                "The search for one output per label has stopped at ",
                Setting("epsilon", epsilon),
                f" because {why}: the mechanism keeps its budget, but up to {gap:.2g} of the "
                f"loss of releasing nothing might be saved, more than tol={self.tol:g}. See "
                f"mechanism.gap.",
            ),
            ConvergenceWarning,
        )


class LabelSearch:
    """The search for the outputs of one budget.

    bound : no mechanism has a larger ``sum q u(W)``.
    """

    def __init__(self, problem: Problem, epsilon: float, gap: float, deadline: float) -> None:
        self._problem, self._epsilon = problem, epsilon
        self._gap, self._deadline = gap, deadline
        self._threshold = problem.threshold(epsilon)
        # Without a budget to share, every output must be independent of S.
        self._on_average = problem.scope == "average" and self._threshold > 0
        loss = problem.utility.as_loss(len(problem.p_x))
        assert loss is not None  # `requirement` has seen to it
        table, self._constant = loss
        self._outer = LabelProgram(
            problem.leakage, problem.p_x, table, self._threshold, self._on_average
        )
        self.bound = np.inf

    def is_late(self) -> bool:
        """Return whether the time is over."""
        return time.perf_counter() >= self._deadline

    def run(self, before: list[Points]) -> Offers:
        """Return the offers that matter, those of `before` among them."""
        nothing = Points.from_dense(self._problem.p_x[None])
        offers = self._offers(Points.concatenate([*before, nothing]))
        offers, reached = self._best(offers)
        n_rounds = 0
        while self.bound - reached > self._gap and not self.is_late():
            outline = self._outer.run()
            n_rounds += 1
            self.bound = min(self.bound, self._constant - outline.loss)
            new = self._offers(self._problem.allowed(outline.points, self._epsilon))
            offers = Offers.concatenate([offers, new])
            is_refined = self._outer.refine(outline)
            if n_rounds % _ROUNDS == 0 or not is_refined:
                offers, reached = self._best(offers)
            if not is_refined:
                break
        return offers

    def _offers(self, points: Points) -> Offers:
        """Return allowed points as offers."""
        charges = None
        if self._on_average:
            charges = np.maximum(self._problem.leakage_of(points), 0.0) / self._threshold
        return Offers(points, self._problem.utility.value(points), charges)

    def _best(self, offers: Offers) -> tuple[Offers, float]:
        """Return the offers that are not far too expensive, and what the best mixture reaches."""
        program, accuracy = self._problem.program, _ACCURACY * self._gap
        newest = np.arange(len(offers))[-4 * len(self._problem.p_x) :]
        weights, prices = program.price(offers, accuracy, newest)
        nothing = program.independent * max(0.0, 1 - weights.sum())
        kept = (weights > 0) | (prices.surplus(offers) > -_FAR_TOO_EXPENSIVE * self._gap)
        return offers[kept], float(weights @ offers.values) + nothing
