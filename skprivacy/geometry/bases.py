"""All bases of a simplex cut by halfspaces ``rows @ W <= offsets``, in batches.

Rows should be scaled to a largest entry of 1.

A vertex with m positive entries makes m - 1 of the rows tight, and the square matrix of those
rows (at those entries) over a row of ones is regular. Trying every such basis is exact even for
degenerate polytopes, and it is pure linear algebra on stacks of tiny matrices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from .._messages import SMALLER, InPython, Message, table_size
from .._typing import BoolArray, FloatArray, IntArray
from ..exceptions import SolverError

_BATCH = 20_000  # bases at once: a few MB
_MOST_CELLS = 100_000_000  # bases times rows: what is stored of them

# A basis whose determinant is this small relative to its columns counts as singular.
_SINGULAR = 1e-13


@dataclass(frozen=True, eq=False)
class Bases:
    """A batch of regular bases of one size.

    active : (n, m - 1), the tight rows; support : (n, m), the positive entries;
    matrix : (n, m, m), the tight rows at the support over a row of ones.
    """

    active: IntArray
    support: IntArray
    matrix: FloatArray

    def solve(self, offsets: FloatArray | float, total: float) -> FloatArray:
        """Return the entries W for which the tight rows equal `offsets` and the sum is `total`.

        offsets : (n, m - 1), or one number for all of them.
        """
        n, m = self.support.shape
        right = np.empty((n, m, 1))
        right[:, :-1, 0], right[:, -1, 0] = offsets, total
        solution: npt.NDArray[Any] = np.linalg.solve(self.matrix, right)
        # One refinement makes the error small in every row, even if rows differ in size.
        solution += np.linalg.solve(self.matrix, right - self.matrix @ solution)
        return solution[:, :, 0]

    def __getitem__(self, index: BoolArray) -> Bases:
        return Bases(self.active[index], self.support[index], self.matrix[index])


def count_bases(n_rows: int, n_symbols: int, rank: int, sides: int = 1) -> int:
    """Return how many vertices there may be, with each row bounded from `sides` sides."""
    return sum(
        comb(n_rows, m - 1) * sides ** (m - 1) * comb(n_symbols, m) for m in range(1, rank + 1)
    )


def check_count(n_rows: int, n_symbols: int, rank: int, max_bases: int, sides: int = 1) -> None:
    """Refuse a polytope with too many candidate vertices."""
    count = count_bases(n_rows, n_symbols, rank, sides)
    if count > max_bases or count * n_rows > _MOST_CELLS:
        raise SolverError(
            Message(
                table_size(n_rows, n_symbols),
                f" has up to {count:,} candidate vertices, more than ",
                InPython("max_bases="),
                f"{max_bases:,}. ",
                InPython(
                    "Pool rare symbols of X, coarsen S, or raise max_bases.", SMALLER.elsewhere
                ),
            )
        )


def regular_bases(rows: FloatArray, rank: int) -> Iterator[Bases]:
    """Yield the regular bases with a support of up to `rank` symbols, in batches of one size."""
    n_rows, n_symbols = rows.shape
    for m in range(1, min(rank, n_symbols) + 1):
        supports = _combinations(n_symbols, m)
        actives = _combinations(n_rows, m - 1)
        at_once = max(1, _BATCH // len(supports))
        for start in range(0, len(actives), at_once):
            for begin in range(0, len(supports), _BATCH):
                yield _regular(
                    rows, actives[start : start + at_once], supports[begin : begin + _BATCH]
                )


def _combinations(n: int, k: int) -> IntArray:
    count = comb(n, k)
    flat = (i for combination in combinations(range(n), k) for i in combination)
    return np.fromiter(flat, dtype=np.intp, count=count * k).reshape(count, k)


def _regular(rows: FloatArray, actives: IntArray, supports: IntArray) -> Bases:
    """Return the regular ones among all pairs of an active set and a support."""
    active = np.repeat(actives, len(supports), axis=0)
    support = np.tile(supports, (len(actives), 1))
    tight = rows[active[:, :, None], support[:, None, :]]
    matrix = np.concatenate([tight, np.ones((len(tight), 1, supports.shape[1]))], axis=1)
    # Hadamard's inequality: |det| is at most the product of the column norms, and equal for
    # orthogonal columns, so the ratio measures how far a basis is from being singular.
    columns = np.linalg.norm(matrix, axis=1).prod(axis=1)
    keep = np.abs(np.linalg.det(matrix)) > _SINGULAR * columns
    return Bases(active[keep], support[keep], matrix[keep])
