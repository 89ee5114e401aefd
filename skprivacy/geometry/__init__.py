"""The simplex of posteriors ``W = P(X | Y = y)``, cut by bounds on what they reveal about S."""

from .lift_polytopes import LiftPolytopes, slab_vertices
from .outer_polytope import OuterPolytope, TooManyVerticesError
from .points import Points, Rows, normalised

__all__ = [
    "LiftPolytopes",
    "OuterPolytope",
    "Points",
    "Rows",
    "TooManyVerticesError",
    "normalised",
    "slab_vertices",
]
