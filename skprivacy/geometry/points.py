"""Sparse points of the simplex, and tables that grow.

A useful posterior has at most rank(P(S|X)) positive entries, however large the alphabet of X.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .._typing import BoolArray, FloatArray, IntArray


def normalised(rows: FloatArray) -> FloatArray:
    """Return rows divided by their sums."""
    return rows / rows.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Rows:
    """Base of dataclasses whose fields are arrays with one row per item, or None."""

    def _columns(self) -> list[Any]:
        return [getattr(self, field.name) for field in fields(self)]

    def __len__(self) -> int:
        return len(self._columns()[0])

    def __getitem__(self, index: slice | list[int] | BoolArray | IntArray) -> Self:
        return type(self)(*(None if c is None else c[index] for c in self._columns()))

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Return the rows of all `parts`, in order."""
        columns = zip(*(part._columns() for part in parts), strict=True)
        return cls(*(None if c[0] is None else _concatenated(c) for c in columns))


def _concatenated(parts: Sequence[Any]) -> Any:
    return parts[0].concatenate(parts) if isinstance(parts[0], Rows) else np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class Points(Rows):
    """Points of the simplex: `values` at the symbols `support`, both (n, width).

    A symbol may appear more than once in a row of `support`, but at most one of its values is
    positive.

    Examples
    --------
    >>> import numpy as np
    >>> from skprivacy.solvers import Points
    >>> points = Points.from_dense(np.array([[0.0, 0.25, 0.75], [1.0, 0.0, 0.0]]))
    >>> points.support.tolist()
    [[1, 2], [0, 1]]
    >>> points.values.tolist()
    [[0.25, 0.75], [1.0, 0.0]]
    """

    support: IntArray
    values: FloatArray

    def times(self, matrix: FloatArray) -> FloatArray:
        """Return ``matrix @ W`` for every point W, as rows."""
        if len(matrix) > 64 and self.values.shape[1] > 8:  # then dense products are faster
            return self.dense(matrix.shape[1]) @ matrix.T
        return np.einsum("nw,nws->ns", self.values, matrix.T[self.support])

    def dense(self, n_symbols: int) -> FloatArray:
        """Return the points as rows of an (n, n_symbols) array."""
        rows = np.zeros((len(self), n_symbols))
        positive = self.values > 0
        rows[np.nonzero(positive)[0], self.support[positive]] = self.values[positive]
        return rows

    @classmethod
    def from_dense(cls, rows: FloatArray) -> Points:
        """Return the rows of an array as points."""
        width = max(1, int((rows > 0).sum(axis=1).max(initial=1)))
        support = np.argsort(rows <= 0, axis=1, kind="stable")[:, :width]
        return cls(support, np.take_along_axis(rows, support, axis=1))

    @classmethod
    def concatenate(cls, parts: Sequence[Points]) -> Points:
        """Return the points of all `parts`, in order, padded to the same width."""
        shape = sum(map(len, parts)), max(part.values.shape[1] for part in parts)
        support, values = np.zeros(shape, np.intp), np.zeros(shape)
        stop = 0
        for part in parts:
            start, stop, width = stop, stop + len(part), part.values.shape[1]
            support[start:stop, :width] = part.support
            values[start:stop, :width] = part.values
        return cls(support, values)


class GrowingTable:
    """A table with room to spare, so that appending is fast; ``table[name]`` is a column.

    Parameters
    ----------
    **columns : (dtype, shape of a row)
    """

    def __init__(self, **columns: tuple[npt.DTypeLike, tuple[int, ...]]) -> None:
        self._length = 0
        named = columns.items()
        self._columns = {name: np.empty((64, *shape), dtype) for name, (dtype, shape) in named}

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._columns[name][: self._length]

    def rows(self, index: BoolArray | slice = slice(None)) -> dict[str, npt.NDArray[Any]]:
        """Return some rows, one array per column."""
        return {name: self[name][index] for name in self._columns}

    def append(self, **rows: npt.NDArray[Any]) -> None:
        """Add rows, given as one array per column."""
        start, stop = self._length, self._length + len(next(iter(rows.values())))
        for name, column in self._columns.items():
            if stop > len(column):
                larger = np.empty((max(stop, 2 * len(column)), *column.shape[1:]), column.dtype)
                larger[:start] = column[:start]
                self._columns[name] = larger
            self._columns[name][start:stop] = rows[name]
        self._length = stop

    def keep(self, mask: BoolArray) -> None:
        """Keep the rows where `mask` is true, in order."""
        length = int(np.count_nonzero(mask))
        for name, column in self._columns.items():
            column[:length] = self[name][mask]
        self._length = length
