"""The simplex of posteriors ``W = P(X | Y = y)``, cut by bounds on the lifts of S."""

from .lift_polytopes import LiftPolytopes
from .points import Points

__all__ = ["LiftPolytopes", "Points"]
