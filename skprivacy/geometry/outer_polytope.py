"""A polytope around the allowed posteriors, cut down one tangent at a time.

A point ``(W, z)``, with W in the simplex of X and a height z, is allowed if the leakage measure g
has ``g(W) <= z``. A tangent of g cuts off other points: ``normal . d - z <= offset`` for all
allowed points, with ``d = deviations @ W`` the deviations of their lifts from 1. Vertices and
edges are kept by double description: a cut removes the vertices beyond it, and puts a new vertex
on every edge that crosses it. Because cuts depend on W only through d, of rank r - 1, neither
vertices that matter nor edges that can be cut have more than r positive entries.

Two vertices are joined by an edge when they have all but one of their tight constraints in
common. That is certain for simple polytopes, where a vertex has no more tight constraints than it
needs: every cut is therefore moved outward by a tiny random amount, which breaks all ties and cuts
off none of the allowed points. Each cut is checked: the edges of the new facet must fit together,
each with two ends. A cut that fails is moved further, and if that does not help it is left out:
the polytope always contains the allowed points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .._numerics import TINY
from .._typing import FloatArray, IntArray
from .points import GrowingTable, Points

# Returns (n, k) traits of new vertices, from their points and their deviations.
Describe: TypeAlias = Callable[[Points, FloatArray], FloatArray]

# (points, deviations, heights, traits).
Vertices: TypeAlias = tuple[Points, FloatArray, FloatArray, FloatArray]

# Random numbers that identify symbols and cuts; sums of them identify sets.
_Numbers: TypeAlias = npt.NDArray[np.uint64]

_NO_CUT = -1
_ATTEMPTS = 4
_SEED = 20_240_607  # ties are broken in the same way every time


class TooManyVerticesError(Exception):
    """A cut would leave more vertices than are allowed; the polytope is unchanged."""


class OuterPolytope:
    """The vertices and edges of a prism over the simplex, cut by halfspaces.

    Parameters
    ----------
    deviations : ndarray of shape (n_s, n_x)
        Lifts of the symbols of X minus 1.
    rank : int
        One more than the rank of `deviations`, and at most n_x.
    low, high : float
        The heights of the floor and the ceiling. If they are equal, all points have that height.
    describe : callable
        Returns an (n, n_traits) array that is stored with new vertices, from their `Points` and
        their deviations.
    n_traits : int
        The number of these traits.
    max_vertices : int
        A cut that would leave more raises `TooManyVerticesError`.
    """

    def __init__(
        self,
        deviations: FloatArray,
        rank: int,
        low: float,
        high: float,
        describe: Describe,
        n_traits: int,
        max_vertices: int,
    ) -> None:
        n_s, self._n_x = deviations.shape
        self._rank, self._describe, self._max_vertices = rank, describe, max_vertices
        self._random, self._is_flat = np.random.default_rng(_SEED), low == high
        self._of_symbol = np.append(self._numbers(self._n_x), np.uint64(0))
        self._of_cut = GrowingTable(number=(np.uint64, ()))
        self._vertices = GrowingTable(
            support=(np.int32, (rank,)),
            values=(float, (rank,)),
            deviations=(float, (n_s,)),
            heights=(float, ()),
            cuts=(np.int32, (max(rank - self._is_flat, 1),)),
            traits=(float, (n_traits,)),
            alive=(bool, ()),
        )
        self._edges = _edge_table()
        self.n_vertices = 0
        self._start(deviations, low, high)

    def _numbers(self, n: int) -> _Numbers:
        return self._random.integers(0, 2**64, n, dtype=np.uint64)

    def _start(self, deviations: FloatArray, low: float, high: float) -> None:
        """Set the vertices and edges of the simplex, or of the prism over it."""
        n, levels = self._n_x, [low] if self._is_flat else [low, high]
        self._of_cut.append(number=self._numbers(0 if self._is_flat else 2))
        self._floor, self._floor_height = 0, low
        symbols = np.arange(n)
        support = np.full((n, self._rank), n)
        support[:, 0] = symbols
        values = (support < n).astype(float)
        one, other = np.triu_indices(n, 1)
        for level, height in enumerate(levels):
            cuts = np.full((n, self._vertices["cuts"].shape[1]), _NO_CUT)
            pairs = self._of_symbol[one] + self._of_symbol[other]
            if not self._is_flat:
                cuts[:, -1] = level
                pairs = pairs + self._of_cut["number"][level]
            heights, columns = np.full(n, height), {"deviations": deviations.T, "cuts": cuts}
            self._append_vertices(support=support, values=values, heights=heights, **columns)
            if self._rank > 1:
                self._edges.append(one=one + level * n, other=other + level * n, key=pairs)
        if not self._is_flat:
            self._edges.append(one=symbols, other=symbols + n, key=self._of_symbol[:n])

    def _append_vertices(self, **rows: npt.NDArray[Any]) -> None:
        points = self._points(rows["support"], rows["values"])
        traits, alive = self._describe(points, rows["deviations"]), np.ones(len(points), bool)
        self._vertices.append(**rows, traits=traits, alive=alive)
        self.n_vertices += len(points)

    def _points(self, support: IntArray, values: FloatArray) -> Points:
        return Points(np.minimum(support, self._n_x - 1), values)

    def select(self, *, on_floor: bool = False) -> Vertices:
        """Return all vertices, or those on the floor."""
        table = self._vertices
        chosen = table["alive"]
        if on_floor and not self._is_flat:
            chosen = chosen & (table["cuts"] == self._floor).any(axis=1)
        index = np.flatnonzero(chosen)
        points = self._points(table["support"][index], table["values"][index])
        deviations, heights = table["deviations"][index], table["heights"][index]
        return points, deviations, heights, table["traits"][index]

    def raise_floor(self, height: float) -> bool:
        """Raise the floor to `height`, or very slightly above; return whether it worked.

        No allowed posterior is lost: one that is allowed at a height is allowed at greater ones.
        """
        none = np.zeros((1, self._vertices["deviations"].shape[1]))
        for attempt in range(_ATTEMPTS):
            if height <= self._floor_height:
                return True
            at = height * (1 + 1e-11 * (1 + self._random.random()) * 8.0**attempt)
            floor = len(self._of_cut)
            if not self._cut_all(none, np.array([-at]), at_once=True):
                self._floor, self._floor_height = floor, at
                return True
        return False

    def cut(self, normals: FloatArray, offsets: FloatArray, slack: FloatArray) -> int:
        """Cut with the halfspaces ``normal . d - z <= offset``; return how many were made.

        slack : (n,), each cut is moved outward by one to two times this to break ties.
        """
        done, attempt = 0, 0
        waiting = np.arange(len(offsets))
        while len(waiting) and attempt < _ATTEMPTS:
            shift = slack * (1 + self._random.random(len(slack))) * 8.0**attempt
            moved = (offsets + shift)[waiting]
            failed = self._cut_all(normals[waiting], moved, at_once=attempt == 0)
            done += len(waiting) - len(failed)
            waiting, attempt = waiting[failed], attempt + 1
        return done

    def _cut_all(self, normals: FloatArray, offsets: FloatArray, at_once: bool) -> list[int]:
        """Cut with all halfspaces, distant ones at once; return the indices that failed."""
        beyond = self._beyond(0, normals, offsets)
        waiting = [i for i, vertices in enumerate(beyond) if len(vertices)]
        failed: list[int] = []
        if not waiting:
            return failed
        near = self._take_edges(np.concatenate(beyond))
        try:
            while waiting:
                batch, waiting = self._far_apart(beyond, waiting, near, at_once)
                first = len(self._vertices)
                if not self._apply(batch, beyond, near, normals, offsets):
                    failed += batch
                elif waiting:
                    alive = self._vertices["alive"]
                    new = self._beyond(first, normals[waiting], offsets[waiting])
                    for i, vertices in zip(waiting, new, strict=True):
                        beyond[i] = np.concatenate([beyond[i][alive[beyond[i]]], vertices])
                    waiting = [i for i in waiting if len(beyond[i])]
        finally:
            self._edges.append(**near.rows())
        self._compact()
        return failed

    def _beyond(self, first: int, normals: FloatArray, offsets: FloatArray) -> list[IntArray]:
        """Return the vertices beyond each cut, among those from `first` on."""
        table = self._vertices
        limits = table["deviations"][first:] @ normals.T
        limits -= table["heights"][first:, None]
        outside = (limits > offsets) & table["alive"][first:, None]
        return [first + np.flatnonzero(column) for column in outside.T]

    def _take_edges(self, vertices: IntArray) -> GrowingTable:
        """Remove the edges of some vertices from the table, and return them."""
        mask = np.zeros(len(self._vertices), bool)
        mask[vertices] = True
        near = mask[self._edges["one"]] | mask[self._edges["other"]]
        taken = _edge_table()
        taken.append(**self._edges.rows(near))
        self._edges.keep(~near)
        return taken

    def _far_apart(
        self, beyond: list[IntArray], waiting: list[int], near: GrowingTable, at_once: bool
    ) -> tuple[list[int], list[int]]:
        """Return the cuts that can be made at once, and the others.

        Cuts do not interfere if no vertex is beyond two of them, and no edge joins vertices beyond
        different cuts.
        """
        if not at_once or len(waiting) == 1:
            return waiting[:1], waiting[1:]
        batch: list[int] = []
        later: list[int] = []
        touched = np.zeros(len(self._vertices), bool)
        one, other = near["one"], near["other"]
        for i in waiting:
            if batch and touched[beyond[i]].any():
                later.append(i)
                continue
            batch.append(i)
            mine = np.zeros(len(self._vertices), bool)
            mine[beyond[i]] = touched[beyond[i]] = True
            touched[other[mine[one]]] = touched[one[mine[other]]] = True
        return batch, later

    def _apply(
        self,
        batch: list[int],
        beyond: list[IntArray],
        edges: GrowingTable,
        normals: FloatArray,
        offsets: FloatArray,
    ) -> bool:
        """Replace the vertices beyond the cuts of a batch by new ones on the edges they cross.

        Return False if the edges of a new facet do not fit together; nothing is changed then.
        """
        table = self._vertices
        which = np.full(len(table), _NO_CUT, np.int32)
        for i in batch:
            which[beyond[i]] = i
        one_out, other_out = which[edges["one"]] != _NO_CUT, which[edges["other"]] != _NO_CUT
        crossing = np.flatnonzero(one_out != other_out)
        one, other = edges["one"][crossing], edges["other"][crossing]
        outside = np.where(one_out[crossing], one, other)
        inside = np.where(one_out[crossing], other, one)
        cut = which[outside]
        position = np.empty(len(offsets), np.int32)
        position[batch] = len(self._of_cut) + np.arange(len(batch))
        numbers = self._numbers(len(batch))
        keys = edges["key"][crossing] + numbers[position[cut] - len(self._of_cut)]

        ends, both = np.concatenate([outside, inside]), np.tile(cut, 2)
        excess = np.einsum("ns,ns->n", table["deviations"][ends], normals[both])
        above, below = _halves(excess - table["heights"][ends] - offsets[both])
        # The side of each vertex is already decided: rounding must not change it here.
        above, below = np.maximum(above, TINY), np.minimum(below, 0.0)
        share = above / (above - below)  # of the inner end
        supports = table["support"][ends]
        support = _united(*_halves(supports), self._n_x)[:, : self._rank]
        cuts = _common(*_halves(table["cuts"][ends]))
        cuts[:, 0] = position[cut]
        facet = self._facet_edges(support, cuts, keys, numbers)
        if facet is None:
            return False
        n_removed = sum(len(beyond[i]) for i in batch)
        if self.n_vertices - n_removed + len(crossing) > self._max_vertices:
            raise TooManyVerticesError

        self._of_cut.append(number=numbers)
        new = len(table) + np.arange(len(crossing))
        edges["one"][crossing] = np.where(one_out[crossing], new, one)
        edges["other"][crossing] = np.where(one_out[crossing], other, new)
        edges.keep(~(one_out & other_out))
        edges.append(one=new[facet[0]], other=new[facet[1]], key=facet[2])
        self.n_vertices -= n_removed
        table["alive"][which != _NO_CUT] = False
        columns = {name: _between(share, table[name][ends]) for name in ("deviations", "heights")}
        values = _between(share, _at(support, supports, table["values"][ends]))
        self._append_vertices(support=support, values=values, cuts=cuts, **columns)
        return True

    def _facet_edges(
        self, support: IntArray, cuts: IntArray, keys: _Numbers, numbers: _Numbers
    ) -> tuple[IntArray, IntArray, _Numbers] | None:
        """Return (one, other, key) of the edges between new vertices, or None if they do not fit.

        Such an edge lacks one of the tight constraints of a vertex: another cut, or a zero entry.
        Each must occur exactly twice, once from each end.
        """
        number_of = np.concatenate([self._of_cut["number"], numbers])
        vertex, column = np.nonzero(cuts[:, 1:] != _NO_CUT)
        parts = [(keys[vertex] - number_of[cuts[vertex, column + 1]], vertex)]
        smaller = np.flatnonzero((support < self._n_x).sum(axis=1) < self._rank)
        if len(smaller):
            is_zero = np.ones((len(smaller), self._n_x + 1), bool)
            is_zero[np.arange(len(smaller))[:, None], support[smaller]] = False
            vertex, symbol = np.nonzero(is_zero[:, : self._n_x])
            parts.append((keys[smaller[vertex]] + self._of_symbol[symbol], smaller[vertex]))
        lacking, ends = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.argsort(lacking)
        lacking, ends = lacking[order], ends[order]
        in_pairs = len(lacking) % 2 == 0 and (lacking[::2] == lacking[1::2]).all()
        if not in_pairs or (lacking[1:-1:2] == lacking[2::2]).any():
            return None
        return ends[::2], ends[1::2], lacking[::2]

    def _compact(self) -> None:
        """Drop removed vertices once they are the majority."""
        alive = self._vertices["alive"]
        if 2 * self.n_vertices > len(alive) - 256:
            return
        position = np.cumsum(alive) - 1
        for end in ("one", "other"):
            self._edges[end][:] = position[self._edges[end]]
        self._vertices.keep(alive)


def _edge_table() -> GrowingTable:
    return GrowingTable(one=(np.int64, ()), other=(np.int64, ()), key=(np.uint64, ()))


def _halves(rows: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the first and the second half: np.split takes ten times as long."""
    half = len(rows) // 2
    return rows[:half], rows[half:]


def _between(share: FloatArray, ends: FloatArray) -> FloatArray:
    """Return points on edges; share : the weight of the inner end; ends : outer ends first."""
    outside, inside = _halves(ends)
    share = share.reshape(-1, *[1] * (ends.ndim - 1))
    return outside + share * (inside - outside)


def _united(one: IntArray, other: IntArray, nothing: int) -> IntArray:
    """Return the union of sets of symbols: sorted rows, padded with `nothing`."""
    both = np.concatenate([one, other], axis=1)
    both.sort(axis=1)
    both[:, 1:][both[:, 1:] == both[:, :-1]] = nothing
    both.sort(axis=1)
    return both


def _common(one: IntArray, other: IntArray) -> IntArray:
    """Return the intersection of sets of cuts, preceded by at least one `_NO_CUT`."""
    shared = one == other[:, :1]
    for column in other.T[1:]:  # faster than a reduction over a few entries
        shared |= one == column[:, None]
    common = np.where(shared, one, _NO_CUT)
    common.sort(axis=1)
    return common


def _at(support: IntArray, supports: IntArray, values: FloatArray) -> FloatArray:
    """Return the values at the symbols `support`, for both halves of `supports`."""
    wanted = np.concatenate([support, support])
    place = np.zeros(supports.shape, np.intp)
    for column in wanted.T:  # all rows are sorted
        place += column[:, None] < supports
    # The zeros of padded rows go to unused places, or to an extra column.
    result = np.zeros((len(wanted), wanted.shape[1] + 1))
    result[np.arange(len(wanted))[:, None], place] = values
    return result[:, :-1]
