"""The optimal max-lift mechanism (Section II-B of the paper), and vertices within a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from .._typing import FloatArray
from .._validation import check_choice, check_integer
from ..geometry import LiftPolytopes, Points, normalised
from ..geometry.lift_polytopes import Engine
from ..measures.base import leakage_in
from .base import DesignTask, Solution, Solver
from .leakage_function import SegmentLeakage
from .linear_program import MixtureProgram

DEFAULT_MAX_BASES = 1_000_000


@dataclass(frozen=True, eq=False)
class Candidates:
    """The lift polytopes of a joint and the leakage of their vertices, for all epsilons."""

    task: DesignTask
    max_bases: int
    engine: Engine = "parametric"

    @cached_property
    def polytopes(self) -> LiftPolytopes:
        """The polytopes ``low <= deviations @ W <= high``."""
        return LiftPolytopes(self.task.joint.deviations, self.max_bases, self.engine)

    @cached_property
    def leakage(self) -> SegmentLeakage:
        """The leakage of the vertices for every bound on the lifts."""
        return SegmentLeakage(self.polytopes.segments, self.task.joint, self.task.measure)

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """Return the deviations of lifts that imply the budget, known or found from the data."""
        bounds = self.task.measure.implied_deviations(epsilon)
        return (-1.0, self.leakage.largest_safe_excess(epsilon)) if bounds is None else bounds

    def vertices(self, epsilon: float) -> Points:
        """Return the vertices of the polytope that implies the budget: steps 1 and 2."""
        return self.within(self.polytopes.vertices(*self.bounds(epsilon)), epsilon)

    def within(self, points: Points, epsilon: float) -> Points:
        """Return the points that keep the budget as computed from their own floats."""
        joint, measure = self.task.joint, self.task.measure
        leakage = measure.leakage(joint.sensitive_posterior(points), joint.p_s)
        return points[leakage <= measure.budget(epsilon, share=0.5)]


def all_candidates(candidates: Candidates, epsilon: float) -> Points:
    """Return both ends of the part of each line of vertices that meets the budget.

    Its other points are mixtures of these two, and as u is convex, a mixture has no larger u.
    """
    index, first, last = candidates.leakage.within(epsilon)
    points = candidates.leakage.segments.at(np.tile(index, 2), np.concatenate([first, last]))
    return candidates.within(points, epsilon)


def excess_over(task: DesignTask, epsilon: float) -> Callable[[FloatArray], float]:
    """Return the function that returns by how much a channel exceeds a budget."""
    joint, measure = task.joint, task.measure
    p_sx, p_s, budget = joint.p_sx, joint.p_s, measure.budget(epsilon)

    def excess(channel: FloatArray) -> float:
        p_sy = p_sx @ normalised(channel)
        p_y = p_sy.sum(axis=0)
        values = measure.value((p_sy / p_y).T, p_s)
        leakage = leakage_in(task.scope, measure, values, p_y)
        return leakage - budget if budget < np.inf else 0.0

    return excess


@dataclass(frozen=True)
class MaxLiftSolver(Solver):
    """The best mechanism whose lifts are bounded: Section II-B of the paper.

    Optimal for `max_lift` and `lip`. For any other measure it uses the lift bound that implies
    its budget, which is feasible but not optimal.

    Parameters
    ----------
    engine : {"parametric", "cdd"}, default="parametric"
        How vertices are enumerated: once for all epsilons, or by cdd for each of them, which
        needs the extra `cdd`.
    max_bases : int, default=1_000_000
        The most candidate vertices to examine; more than that raise a `SolverError`.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> uniform = [[0.25, 0, 0, 0], [0, 0.25, 0, 0], [0, 0, 0.25, 0], [0, 0, 0, 0.25]]
    >>> mechanism = design_mechanism(uniform, 0.25, measure="max_lift", solver="max_lift")
    >>> round(mechanism.utility, 8)
    0.17008204
    """

    engine: Engine = "parametric"
    max_bases: int = DEFAULT_MAX_BASES
    name: ClassVar[str] = "max_lift"

    def __post_init__(self) -> None:
        check_choice("MaxLiftSolver", "engine", self.engine, {"parametric", "cdd"})
        check_integer("MaxLiftSolver", "max_bases", self.max_bases, low=1)

    def solve_path(self, task: DesignTask, epsilons: Sequence[float]) -> Iterator[Solution]:
        """Take steps 1 to 3 of the paper for each epsilon."""
        return map(self.prepared(task), epsilons)

    def prepared(self, task: DesignTask) -> Callable[[float], Solution]:
        """Enumerate the vertices of all epsilons at once."""
        candidates = Candidates(task, self.max_bases, self.engine)
        program = MixtureProgram(task.joint.p_x, task.utility)
        # cdd in floating point may miss a vertex, which would make its bound wrong.
        exact = task.measure.is_lift_box and task.scope == "per_output" and self.engine != "cdd"
        every_output = replace(task, scope="per_output")  # serves the average too

        def solve(epsilon: float) -> Solution:
            vertices = candidates.vertices(epsilon)
            mixture = program.solve(vertices, excess_over(every_output, epsilon))
            bound = mixture.bound + task.utility.offset(task.joint.p_x) if exact else None
            return Solution(mixture.channel, bound)

        return solve
