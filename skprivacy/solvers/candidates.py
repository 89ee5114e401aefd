"""Points that a solver may use as outputs: vertices of lift polytopes that keep a budget."""

from dataclasses import dataclass
from functools import cached_property

from ..geometry import LiftPolytopes
from ..joint import Joint
from ..measures import Measure
from .segment_leakage import SegmentLeakage


@dataclass(frozen=True, eq=False)
class Candidates:
    """The lift polytopes of a joint and the leakage of their vertices, for all epsilons."""

    joint: Joint
    measure: Measure
    max_bases: int
    engine: str = "parametric"

    @cached_property
    def polytopes(self):
        """The polytopes ``lower <= lifts @ W <= upper``."""
        return LiftPolytopes(self.joint.lifts, self.max_bases, self.engine)

    @cached_property
    def leakage(self):
        """The leakage of the vertices for every bound on the lifts."""
        return SegmentLeakage(self.polytopes.segments, self.joint, self.measure)

    def bounds(self, epsilon):
        """Return the lifts (lower, upper) that imply the budget, known or found from the data."""
        bounds = self.measure.implied_lift_bounds(epsilon)
        return (0.0, self.leakage.largest_safe_lift(epsilon)) if bounds is None else bounds

    def vertices(self, epsilon):
        """Return the vertices of the polytope that implies the budget: steps 1 and 2."""
        return self.within(self.polytopes.vertices(*self.bounds(epsilon)), epsilon)

    def within(self, points, epsilon):
        """Return the points whose own floats keep the budget."""
        posterior = points.times(self.joint.lifts) * self.joint.p_s
        leakage = self.measure.leakage(posterior, self.joint.p_s)
        return points[leakage <= self.measure.budget(epsilon, share=0.5)]
