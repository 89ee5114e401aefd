"""Vertices of the simplex cut by bounds on lifts: by enumeration of bases, or by cdd.

A vertex with m positive entries makes m - 1 of the rows tight, and the square matrix of those
rows (at those entries) over a row of ones is regular. Trying every such basis is exact even for
degenerate polytopes, and it is pure linear algebra on stacks of tiny matrices. Rows are scaled to
a largest entry of 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from math import comb
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from .._messages import SMALLER, InPython, Message, table_size
from .._numerics import EPS
from .._typing import BoolArray, FloatArray, IntArray
from ..codes import chunks
from ..exceptions import SolverError
from .points import Points, Rows, normalised

_BATCH = 20_000  # bases at once: a few MB
_MOST_CELLS = 100_000_000  # bases times rows: the size of what is stored


@dataclass(frozen=True, eq=False)
class Bases(Rows):
    """A batch of regular bases of one size.

    active : (n, m - 1), the tight rows; support : (n, m), the positive entries;
    matrix : (n, m, m), the tight rows at the support over a row of ones.
    """

    active: IntArray
    support: IntArray
    matrix: FloatArray

    def solve(self, offsets: FloatArray | float, total: float) -> FloatArray:
        """Return the entries W for which the tight rows equal `offsets` and the sum is `total`.

        offsets : (n, m - 1), or one number for all.
        """
        n, m = self.support.shape
        right = np.empty((n, m, 1))
        right[:, :-1, 0], right[:, -1, 0] = offsets, total
        solution: npt.NDArray[Any] = np.linalg.solve(self.matrix, right)
        # One refinement makes the error small in every row, even if rows differ in size.
        solution += np.linalg.solve(self.matrix, right - self.matrix @ solution)
        return solution[:, :, 0]


def count_bases(n_rows: int, n_symbols: int, rank: int, sides: int = 1) -> int:
    """Return the largest possible number of vertices; sides : 2 if rows also have lower bounds."""
    sizes = range(1, rank + 1)
    return sum(comb(n_rows, m - 1) * sides ** (m - 1) * comb(n_symbols, m) for m in sizes)


def regular_bases(rows: FloatArray, rank: int) -> Iterator[Bases]:
    """Yield the regular bases with a support of up to `rank` symbols, in batches of one size."""
    n_rows, n_symbols = rows.shape
    for m in range(1, min(rank, n_symbols) + 1):
        supports, actives = _combinations(n_symbols, m), _combinations(n_rows, m - 1)
        at_once = max(1, _BATCH // len(supports))
        for active in chunks(len(actives), at_once):
            for support in chunks(len(supports), _BATCH):
                yield _regular(rows, actives[active], supports[support])


def _combinations(n: int, k: int) -> IntArray:
    count = comb(n, k)
    flat = (i for combination in combinations(range(n), k) for i in combination)
    return np.fromiter(flat, dtype=np.intp, count=count * k).reshape(count, k)


def _regular(rows: FloatArray, actives: IntArray, supports: IntArray) -> Bases:
    """Return the regular bases among all pairs of an active set and a support."""
    active = np.repeat(actives, len(supports), axis=0)
    support = np.tile(supports, (len(actives), 1))
    tight = rows[active[:, :, None], support[:, None, :]]
    matrix = np.concatenate([tight, np.ones((len(tight), 1, supports.shape[1]))], axis=1)
    # Hadamard's inequality: |det| is at most the product of the column norms, and equal for
    # orthogonal columns, so the ratio measures how far a basis is from being singular.
    columns = np.linalg.norm(matrix, axis=1).prod(axis=1)
    keep = np.abs(np.linalg.det(matrix)) > 1e-13 * columns
    return Bases(active[keep], support[keep], matrix[keep])


# The max-lift polytopes of the paper's equation (22), for every bound at once. ------------------
#
# ``Delta_t = {W in the simplex: lifts @ W <= t}`` with ``t = e^eps'``. In deviations from 1, ``D =
# lifts - 1`` and ``excess = t - 1``, it reads ``D @ W <= excess``, because the entries of W sum to
# 1; that keeps precision for nearly independent S and X, and for tiny eps'. For a fixed basis (m -
# 1 tight rows, a support of m symbols) the vertex is ``W = a + b excess``: it moves on a straight
# line as the excess runs through an interval. One enumeration therefore gives the vertices of
# every Delta_t, as segments between two points (correction 4, docs/corrections.rst).


# How vertices are enumerated.
Engine: TypeAlias = Literal["parametric", "cdd"]

# Relative slack when deciding which bases are vertices, and where. A wrong vertex is harmless,
# because the leakage of every candidate is checked before use; a missed one costs utility.
_SLACK = 1e-11


@dataclass(frozen=True, eq=False)
class VertexSegments(Rows):
    """The segments along which vertices of Delta_t move, for an excess from `start` to `stop`.

    support : (n, width) symbols; low, high : (n, width), the points at the two ends. Rounding may
    leave small negative entries at an end: clipping them would bend the whole segment.
    """

    support: IntArray
    low: FloatArray
    high: FloatArray
    start: FloatArray
    stop: FloatArray

    def locate(self, index: slice | IntArray, excess: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Return where each excess lies on each of the segments `index`, and whether it does.

        Both of shape (n, len(excess)); 0 is the low end of a segment, 1 its high end.
        """
        start, stop = self.start[index][:, None], self.stop[index][:, None]
        slack = _SLACK * excess + EPS
        inside = (start <= excess + slack) & (stop >= excess - slack)
        length = np.where(stop > start, stop - start, 1.0)
        return np.clip((excess - start) / length, 0.0, 1.0), inside

    def at(self, index: IntArray, fraction: FloatArray) -> Points:
        """Return the points of segments `index` at `fraction` of their length."""
        fraction = fraction[:, None]
        values = (1 - fraction) * self.low[index] + fraction * self.high[index]
        return Points(self.support[index], _on_simplex(values))

    def ends(self) -> tuple[Points, Points]:
        """Return the points at the low and at the high ends."""
        return Points(self.support, self.low), Points(self.support, self.high)


@dataclass(frozen=True, eq=False)
class LiftPolytopes:
    """The polytopes ``{W in the simplex: low <= deviations @ W <= high}`` of a joint.

    deviations : |S| x |X|, lifts of the symbols of X minus 1; max_bases : the most candidate
    vertices; engine : "parametric" or "cdd".
    """

    deviations: FloatArray
    max_bases: int
    engine: Engine = "parametric"

    @cached_property
    def largest(self) -> float:
        """The smallest excess for which Delta_t is the whole simplex."""
        return max(0.0, float(self.deviations.max()))

    @cached_property
    def _scale(self) -> FloatArray:
        """The divisor of each row: its largest deviation."""
        scale = np.abs(self.deviations).max(axis=1)
        return np.where(scale > 0, scale, 1.0)

    @cached_property
    def _rows(self) -> FloatArray:
        return self.deviations / self._scale[:, None]

    @cached_property
    def rank(self) -> int:
        """The rank of P(S|X): a vertex has no larger support."""
        return min(int(np.linalg.matrix_rank(self._rows)) + 1, self.deviations.shape[1])

    @cached_property
    def segments(self) -> VertexSegments:
        """The vertices of Delta_t for every excess from 0 to `largest`."""
        self._check_count()
        # A symbol released unchanged is a vertex from its own largest lift on.
        symbols, begin = np.arange(self.deviations.shape[1])[:, None], self.deviations.max(axis=0)
        ones, end = np.ones(symbols.shape), np.full(len(symbols), self.largest)
        units = VertexSegments(symbols, ones, ones, np.maximum(begin, 0.0), end)
        if len(self.deviations) == 2:
            parts = [units, *(self._pair_segments(row) for row in self.deviations)]
        else:
            bases = regular_bases(self._rows, self.rank)
            # Bases of one symbol are the unit vectors, which already have a segment.
            larger = (batch for batch in bases if batch.support.shape[1] > 1)
            parts = [units, *(self._basis_segments(batch) for batch in larger)]
        parts = [part for part in parts if len(part)]
        ends = zip(*(part.ends() for part in parts), strict=True)
        low, high = map(Points.concatenate, ends)
        start = np.concatenate([part.start for part in parts])
        stop = np.concatenate([part.stop for part in parts])
        return VertexSegments(low.support, low.values, high.values, start, stop)

    def vertices(self, low: float, high: float) -> Points:
        """Return the vertices for deviations between `low` <= 0 and `high` >= 0."""
        # The mean deviation is 0: where one bound is 0, all deviations are.
        high = 0.0 if low >= 0 else min(high, self.largest)
        one_sided = low <= self.deviations.min() or high <= 0
        if self.engine == "cdd":
            return self._cdd(None if one_sided else low, high)
        if one_sided:
            fraction, inside = self.segments.locate(slice(None), np.array([high]))
            index = np.flatnonzero(inside)
            return self.segments.at(index, fraction[index, 0])
        parts = []
        for bases in self._bases:
            for sides in product([low, high], repeat=bases.active.shape[1]):
                parts.append(self._box_vertices(bases, np.array(sides), low, high))
        return Points.concatenate(parts)

    def _cdd(self, low: float | None, high: float) -> Points:
        if 0 < high < 1e-6:  # the tolerance of cdd
            cannot = f"cdd cannot enumerate a polytope whose lifts exceed 1 by only {high:.1e}"
            raise SolverError(f"{cannot}: use engine='parametric'.")
        self._check_count()
        rows, offsets = self._rows, high / self._scale
        if low is not None:
            rows, offsets = np.vstack([rows, -rows]), np.append(offsets, -low / self._scale)
        return Points.from_dense(simplex_vertices(rows, offsets))

    @cached_property
    def _bases(self) -> list[Bases]:
        """All regular bases, which serve all bounds."""
        self._check_count(sides=2)
        return list(regular_bases(self._rows, self.rank))

    def _check_count(self, sides: int = 1) -> None:
        """Check that there are not too many candidate vertices; sides : as in `count_bases`."""
        n_s, n_x = self.deviations.shape
        count = count_bases(n_s, n_x, self.rank, sides)
        if count > self.max_bases or count * n_s > _MOST_CELLS:
            template = "{size} has up to {count:,} candidate vertices, more than {most}. {hints}"
            most = InPython(f"max_bases={self.max_bases:,}", f"{self.max_bases:,}")
            hint = "Pool rare symbols of X, coarsen S, or raise max_bases."
            size, hints = table_size(n_s, n_x), InPython(hint, SMALLER.elsewhere)
            raise SolverError(Message.of(template, size=size, count=count, most=most, hints=hints))

    def _box_vertices(self, bases: Bases, sides: FloatArray, low: float, high: float) -> Points:
        """Return the vertices whose tight rows equal `sides`, each the low or the high bound."""
        values = bases.solve(sides / self._scale[bases.active], 1.0)
        deviations = Points(bases.support, values).times(self.deviations)
        slack = _SLACK * self._scale
        keep = (values >= -_SLACK).all(axis=1)
        keep &= ((deviations >= low - slack) & (deviations <= high + slack)).all(axis=1)
        return Points(bases.support[keep], _on_simplex(values[keep]))

    def _pair_segments(self, row: FloatArray) -> VertexSegments:
        """Return the segments where one row is tight, for |S| = 2: pairs of symbols.

        The deviation of this row is positive, so that of the other row is negative: not tight.
        """
        small, large = np.nonzero((row[:, None] < row[None, :]) & (row[None, :] > 0))
        # A segment starts where all lifts are 1, or at its smaller symbol if the lift of that one
        # is above 1. The former is the same for both rows, and more accurate from the row with
        # the wider range.
        wide = self.deviations[np.ptp(self.deviations, axis=1).argmax()]
        with np.errstate(divide="ignore", invalid="ignore"):
            weight = -wide[small] / (wide[large] - wide[small])
        weight = np.where((row[small] < 0) & (weight > 0), np.minimum(weight, 1.0), 0.0)
        low = np.stack([1 - weight, weight], axis=1)
        high = np.broadcast_to([0.0, 1.0], low.shape)
        support = np.stack([small, large], axis=1)
        return VertexSegments(support, low, high, np.maximum(row[small], 0.0), row[large])

    def _basis_segments(self, bases: Bases) -> VertexSegments:
        """Return the segments along which the vertices of some bases move."""
        # Entries W = a + b excess and slacks excess - D @ W = c + d excess must not be negative.
        one = 1 / self._scale[bases.active]
        a, b = bases.solve(0.0, 1.0), bases.solve(one, 0.0)
        columns = self.deviations.T[bases.support]
        c = -np.einsum("nm,nms->ns", a, columns)
        d = 1 - np.einsum("nm,nms->ns", b, columns)
        tight = (np.arange(len(bases.active))[:, None], bases.active)
        c[tight] = d[tight] = 0.0
        noises = []  # slopes and constants that are rounding
        for part, least in ((a, 0), (b, 1)):
            of_entries = np.broadcast_to(np.abs(part).max(axis=1, keepdims=True), part.shape)
            of_slacks = np.einsum("nm,nms->ns", np.abs(part), np.abs(columns))
            noises.append(1e-12 * np.hstack([of_entries, least + of_slacks]))
        start, stop = _interval(np.hstack([a, c]), np.hstack([b, d]), *noises)
        start, stop = np.maximum(start, 0.0), np.minimum(stop, self.largest)
        keep = stop > start
        bases, start, stop, one = bases[keep], start[keep], stop[keep], one[keep]
        low, high = (bases.solve(excess[:, None] * one, 1.0) for excess in (start, stop))
        # A start so close to 0 may be at 0, up to rounding.
        private, points = self._private_starts(bases.support, start < 1e-6 * self.largest)
        start[private], low[private] = 0.0, points
        return VertexSegments(bases.support, low, high, start, stop)

    def _private_starts(self, supports: IntArray, near: BoolArray) -> tuple[IntArray, FloatArray]:
        """Return which of the segments marked `near` start at an excess of 0, and these starts.

        Every lift is 1 there, and many segments share such a start. Computed from the few tight
        rows of a segment, it would differ between segments, and be inaccurate where those rows
        hardly vary: so it is computed from all rows at once.
        """
        index = np.flatnonzero(near)
        supports, inverse = np.unique(supports[index], axis=0, return_inverse=True)
        inverse = inverse.reshape(-1)  # two-dimensional in numpy 2.0.0
        columns = np.moveaxis(self._rows[:, supports], 0, 1)
        system = np.concatenate([columns, np.ones((len(supports), 1, supports.shape[1]))], axis=1)
        right = np.append(np.zeros(len(self._rows)), 1.0)[:, None]
        pseudoinverse = np.linalg.pinv(system)
        points = pseudoinverse @ right
        for _ in range(2):  # refinement makes the error small in every row
            points += pseudoinverse @ (right - system @ points)
        deviations = np.abs(system @ points - right)[:, :-1, 0]
        valid = (deviations <= _SLACK / np.maximum(self._scale, 1.0)).all(axis=1)
        points = points[:, :, 0]
        valid &= (points >= -_SLACK).all(axis=1)
        return index[valid[inverse]], points[inverse][valid[inverse]]


def _interval(
    constant: FloatArray, slope: FloatArray, constant_noise: FloatArray, slope_noise: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the interval of excess where ``constant + slope excess >= 0`` in every column."""
    rising, falling = slope > slope_noise, slope < -slope_noise
    with np.errstate(divide="ignore", invalid="ignore"):
        root = -constant / slope
    start = np.where(rising, root, -np.inf).max(axis=1)
    stop = np.where(falling, root, np.inf).min(axis=1)
    impossible = (~rising & ~falling & (constant < -constant_noise)).any(axis=1)
    return start, np.where(impossible, -np.inf, stop)


def _on_simplex(values: FloatArray) -> FloatArray:
    return normalised(np.maximum(values, 0.0))


# Vertices by cdd's double description method. ---------------------------------------------------


def simplex_vertices(rows: FloatArray, offsets: FloatArray) -> FloatArray:
    """Return the vertices of ``{W >= 0, sum W = 1, rows @ W <= offsets}`` as rows.

    Raises `SolverError` if cdd, in floating point, gives up.
    """
    try:  # an extra, because it is GPL and must be compiled
        import cdd
    except ImportError as error:
        needs = "engine='cdd' needs the extra cdd, built with a C compiler: run pip install "
        hint = "\".[cdd]\" in a clone. The default, engine='parametric', needs no extra."
        raise ImportError(needs + hint) from error
    n_rows, n = rows.shape
    # cdd's rows are (b, -A) for b - A W >= 0; the first one is an equation.
    system = np.zeros((1 + n + n_rows, 1 + n))
    system[0, 0], system[0, 1:] = 1.0, -1.0
    system[1 : 1 + n, 1:] = np.eye(n)
    system[1 + n :, 0], system[1 + n :, 1:] = offsets, -rows
    try:
        kind = cdd.RepType.INEQUALITY
        matrix = cdd.matrix_from_array(system.tolist(), rep_type=kind, lin_set={0})
        generators = cdd.copy_generators(cdd.polyhedron_from_matrix(matrix)).array
    except RuntimeError as error:
        raise SolverError(f"cdd could not enumerate the vertices: {error}.") from error
    points = np.array(generators, dtype=float).reshape(-1, 1 + n)
    return _on_simplex(points[points[:, 0] == 1, 1:])


# Where P(S|X) has rank 2, W tells one number t . W about S, and vertices are pairs of symbols.


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


def balanced_pairs(t: FloatArray, p_x: FloatArray) -> Iterator[Points]:
    """Yield pairs that reveal nothing about S and have P(X) as a mixture, for two orders.

    t : one number for each symbol, 0 on average. The symbols on both sides of 0 are laid side by
    side, with the share of each in the total: those next to each other are pairs.
    """
    below, above = np.flatnonzero(t < 0), np.flatnonzero(t > 0)
    below = below[np.argsort(t[below])]
    for order in (1, -1):
        above = above[np.argsort(order * t[above])]
        sides = below, above
        ends = [np.cumsum(p_x[side] * np.abs(t[side]))[:-1] for side in sides]
        cuts = np.concatenate([*ends, [np.inf]])
        one, other = (
            side[np.searchsorted(end, cuts)] for side, end in zip(sides, ends, strict=True)
        )
        yield pairs_at_zero(t, one, other)


def pairs_at_zero(t: FloatArray, one: IntArray, other: IntArray) -> Points:
    """Return the mixtures of two symbols with ``t . W = 0``; their t have opposite signs."""
    w = t[one] / (t[one] - t[other])
    return Points(np.stack([one, other], axis=1), np.stack([1 - w, w], axis=1))
