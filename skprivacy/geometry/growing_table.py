"""Columns of one length that grow by appending: numpy arrays with room to spare."""

from typing import Any

import numpy as np
import numpy.typing as npt

from .._typing import BoolArray


class GrowingTable:
    """Named columns; ``table[name]`` is a view of the rows in use.

    Parameters
    ----------
    **columns : (dtype, shape of a row)
    """

    def __init__(self, **columns: tuple[npt.DTypeLike, tuple[int, ...]]) -> None:
        self._length = 0
        self._columns = {
            name: np.empty((64, *shape), dtype) for name, (dtype, shape) in columns.items()
        }

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._columns[name][: self._length]

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
