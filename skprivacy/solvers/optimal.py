"""The best possible mechanism, with a proof of how good it is."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._messages import InPython, Message, Setting
from .._validation import check_choice, check_integer, check_real
from .._warnings import warn
from ..utilities import DEFAULT_TOL
from .base import Solution, Solver
from .problem import Problem
from .refinement import Limits, OnAverage, PerOutput, Refinement
from .simple import most_useful, simple_solutions
from .task import DesignTask

# The refinement stops at this share of the tolerance: the rest is left for rounding the channel.
_SHARE_OF_TOLERANCE = 0.9

# Below this threshold on g, rounding may leave little but the outputs that reveal nothing about S.
_NEARLY_ZERO = 1e-10
_FEW_BASES = 100_000

_WHY = {
    "max_time": "max_time={solver.max_time} seconds have passed",
    "max_vertices": "there are more than max_vertices={solver.max_vertices:,} vertices",
    "rounding": "rounding prevents further progress",
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
        result is not worse than that of `Algorithm1Solver`.

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
        owner = "OptimalSolver"
        check_real(owner, "tol", self.tol, low=0, low_open=True)
        if self.max_time is not None:
            check_real(owner, "max_time", self.max_time, low=0)
        check_integer(owner, "max_vertices", self.max_vertices, low=1)
        check_choice(owner, "start", self.start, {"simplex", "algorithm1"})

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
        deadline = time.perf_counter() + (np.inf if self.max_time is None else self.max_time)
        gap = _SHARE_OF_TOLERANCE * self.tol * task.utility.span(task.joint.p_x)
        refinement = self._refinement(problem, epsilons, Limits(gap, deadline, self.max_vertices))
        for epsilon in epsilons:
            special = problem.special(epsilon)
            if special is not None:
                yield special
                continue
            assert refinement is not None  # there is one unless all budgets are special
            if self.start == "algorithm1":
                refinement.add(problem.algorithm1_candidates(epsilon))
            if problem.threshold(epsilon) < _NEARLY_ZERO and problem.count_bases() <= _FEW_BASES:
                refinement.add(problem.perfectly_private())
            ceiling = problem.ceiling(epsilon)
            refined = refinement.solve(problem.threshold(epsilon), ceiling)
            solution = problem.solution(refined.offers, refined.bound, epsilon, self.tol)
            if problem.gap(solution) > self.tol:
                (others,) = simple_solutions(task, [epsilon])
                solution = most_useful(task, solution, others)
                self._warn(refined.stopped or "rounding", solution, problem, epsilon)
            yield solution

    def _refinement(
        self, problem: Problem, epsilons: Sequence[float], limits: Limits
    ) -> Refinement | None:
        """Return what refines the budgets that are not special, or None if all are."""
        thresholds = [problem.threshold(e) for e in epsilons if not problem.is_special(e)]
        if not thresholds:
            return None
        if problem.scope == "average":
            return OnAverage(problem, limits)
        return PerOutput(problem, limits, thresholds[0], thresholds[-1])

    def _warn(self, reason: str, solution: Solution, problem: Problem, epsilon: float) -> None:
        why = _WHY[reason].format(solver=self)
        gap = problem.gap(solution)
        warn(
            Message(
                "The optimal solver has stopped at ",
                Setting("epsilon", epsilon),
                f" because {why}: the mechanism keeps its budget, but it may fall short of the "
                f"optimum by up to {gap:.2g} of the largest utility, more than tol={self.tol:g}.",
                InPython(" See mechanism.gap."),
            ),
            ConvergenceWarning,
        )
