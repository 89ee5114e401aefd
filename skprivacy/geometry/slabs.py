"""Pairs of symbols: all that is needed where P(S|X) has rank 2, per output and on average."""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray, IntArray
from .outer_polytope import Describe, TooManyVerticesError
from .points import Points


def slab_vertices(t: FloatArray, low: float, high: float) -> Points:
    """Return the vertices of ``{W in the simplex: low <= t . W <= high}``."""
    inside = np.flatnonzero((t >= low) & (t <= high))
    units = Points(inside[:, None], np.ones((len(inside), 1)))
    return Points.concatenate([units, *(pairs_at(t, at) for at in dict.fromkeys([low, high]))])


def pairs_at(t: FloatArray, level: float) -> Points:
    """Return the points where edges of the simplex cross ``t . W = level``."""
    small, large = np.flatnonzero(t < level), np.flatnonzero(t > level)
    small, large = np.repeat(small, len(large)), np.tile(large, len(small))
    weight = (level - t[small]) / (t[large] - t[small])
    return Points(np.stack([small, large], axis=1), np.stack([1 - weight, weight], axis=1))


class SlabEpigraph:
    """Vertices of ``{(W, z): 0 <= z <= high, normal . d - z <= offset}`` with d of rank 1.

    The counterpart of `OuterPolytope`, with its parameters and methods, for P(S|X) of rank 2: W
    tells one number ``t . W`` about S. The lower bound on g is a polygon with corners at a few
    values of t, and the vertices are the symbols of X and the pairs of symbols at each corner:
    nothing needs to be kept between cuts.
    """

    def __init__(
        self, deviations: FloatArray, high: float, describe: Describe, max_vertices: int
    ) -> None:
        row = np.ptp(deviations, axis=1).argmax()
        self._t = deviations[row]
        widest = np.abs(self._t).argmax()
        self._direction = deviations[:, widest] / self._t[widest]
        self._deviations, self._high = deviations, high
        self._describe, self._max_vertices = describe, max_vertices
        self._slopes, self._offsets = np.zeros(1), np.zeros(1)
        self._selected: tuple[Points, FloatArray, FloatArray, FloatArray] | None = None

    def cut(self, normals: FloatArray, offsets: FloatArray, slack: FloatArray) -> int:
        """Cut with the halfspaces ``normal . d - z <= offset``; return how many were made."""
        slopes = np.concatenate([self._slopes, normals @ self._direction])
        offsets = np.concatenate([self._offsets, offsets + slack])
        kept, corners = _upper_envelope(slopes, offsets, self._t.min(), self._t.max())
        n_pairs = sum((self._t < t).sum() * (self._t > t).sum() for t in corners)
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
        """The number of vertices."""
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
