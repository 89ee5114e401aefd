"""Pairs of symbols: all that is needed where P(S|X) has rank 2, per output and on average."""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray, IntArray
from .outer_polytope import Describe, TooManyVerticesError
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


# The epigraph of a convex function of one number ``t . W``, bounded below by straight lines.
#
# The counterpart of `OuterPolytope` for P(S|X) of rank 2, where what W reveals about S is one
# number t. The lower bound on g is a polygon with corners at a few values of t, and the vertices
# are the symbols of X and the pairs of symbols at each corner: nothing needs to be kept between
# cuts.


class SlabEpigraph:
    """Vertices of ``{(W, z): 0 <= z <= high, normal . d - z <= offset}`` with d of rank 1.

    Parameters and methods as in `OuterPolytope`.
    """

    def __init__(
        self, deviations: FloatArray, high: float, describe: Describe, max_vertices: int
    ) -> None:
        row = np.ptp(deviations, axis=1).argmax()
        self._t = deviations[row]
        widest = np.abs(self._t).argmax()
        self._direction = deviations[:, widest] / self._t[widest]
        self._deviations = deviations
        self._high = high
        self._describe = describe
        self._max_vertices = max_vertices
        self._slopes, self._offsets = np.zeros(1), np.zeros(1)
        self._selected: tuple[Points, FloatArray, FloatArray, FloatArray] | None = None

    def cut(self, normals: FloatArray, offsets: FloatArray, slack: FloatArray) -> int:
        """Cut with the halfspaces ``normal . d - z <= offset``; return how many were made."""
        slopes, offsets = normals @ self._direction, offsets + slack
        slopes = np.concatenate([self._slopes, slopes])
        offsets = np.concatenate([self._offsets, offsets])
        kept, corners = _upper_envelope(slopes, offsets, self._t.min(), self._t.max())
        n_pairs = sum(
            np.count_nonzero(self._t < t) * np.count_nonzero(self._t > t) for t in corners
        )
        if n_pairs + 2 * len(self._t) > self._max_vertices:
            raise TooManyVerticesError
        done = int(np.count_nonzero(kept >= len(self._slopes)))
        self._slopes, self._offsets = slopes[kept], offsets[kept]
        self._selected = None
        return done

    def select(self) -> tuple[Points, FloatArray, FloatArray, FloatArray]:
        """Return (points, deviations, heights, traits) of all vertices."""
        if self._selected is None:
            t = self._t
            _, corners = _upper_envelope(self._slopes, self._offsets, t.min(), t.max())
            units = Points(np.arange(len(t))[:, None], np.ones((len(t), 1)))
            pairs = [pairs_at(t, corner) for corner in corners]
            points = Points.concatenate([units, units, *pairs])
            deviations = points.times(self._deviations)
            lines = points.times(t[None])[:, 0, None] * self._slopes - self._offsets
            heights = lines.max(axis=1)
            heights[: len(t)] = self._high
            self._selected = points, deviations, heights, self._describe(points, deviations)
        return self._selected

    @property
    def n_vertices(self) -> int:
        """How many vertices there are."""
        return len(self.select()[0])


def _upper_envelope(
    slopes: FloatArray, offsets: FloatArray, low: float, high: float
) -> tuple[IntArray, FloatArray]:
    """Return the lines ``slope t - offset`` that are highest somewhere, and where they meet.

    Between `low` and `high`; in increasing order of slope.
    """
    order = np.lexsort((-offsets, slopes))
    kept: list[int] = []
    corners: list[float] = []
    for i in order:
        while kept:
            if slopes[i] == slopes[kept[-1]]:  # a parallel line that is not lower
                corner = -np.inf
            else:
                corner = (offsets[i] - offsets[kept[-1]]) / (slopes[i] - slopes[kept[-1]])
            if corner > (corners[-1] if corners else low):
                break
            kept.pop()
            if corners:
                corners.pop()
        if kept:
            if corner >= high:
                continue
            corners.append(corner)
        kept.append(i)
    return np.array(kept), np.array(corners)
