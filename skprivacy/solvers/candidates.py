"""Points that a solver may use as outputs: vertices of lift polytopes that keep a budget."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._typing import FloatArray
from ..geometry import LiftPolytopes, Points
from ..geometry.lift_polytopes import Engine
from ..measures.leakage import leakage_in
from .segment_leakage import SegmentLeakage
from .task import DesignTask


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
    """Return a function that says by how much a channel exceeds a budget."""
    joint, measure = task.joint, task.measure
    p_sx, p_s, budget = joint.p_sx, joint.p_s, measure.budget(epsilon)

    def excess(channel: FloatArray) -> float:
        p_sy = p_sx @ (channel / channel.sum(axis=1, keepdims=True))
        p_y = p_sy.sum(axis=0)
        values = measure.value((p_sy / p_y).T, p_s)
        leakage = leakage_in(task.scope, measure, values, p_y)
        return leakage - budget if budget < np.inf else 0.0

    return excess
