"""The vertices of a slab of the simplex: all there is where S has one degree of freedom.

If P(S|X) has rank 2, what a posterior W reveals about S is one number ``t . W``, and a convex
budget allows an interval of values for it. The vertices have at most two symbols.
"""

import numpy as np

from .._typing import FloatArray, IntArray
from .points import Points


def slab_vertices(t: FloatArray, low: float, high: float) -> Points:
    """Return the vertices of ``{W in the simplex: low <= t . W <= high}``."""
    parts = [_units(np.flatnonzero((t >= low) & (t <= high)))]
    parts += [pairs_at(t, level) for level in dict.fromkeys([low, high])]
    return Points.concatenate(parts)


def _units(symbols: IntArray) -> Points:
    return Points(symbols[:, None], np.ones((len(symbols), 1)))


def pairs_at(t: FloatArray, level: float) -> Points:
    """Return the points where edges of the simplex cross ``t . W = level``."""
    small, large = np.flatnonzero(t < level), np.flatnonzero(t > level)
    small, large = np.repeat(small, len(large)), np.tile(large, len(small))
    weight = (level - t[small]) / (t[large] - t[small])
    return Points(np.stack([small, large], axis=1), np.stack([1 - weight, weight], axis=1))
