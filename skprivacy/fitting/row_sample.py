"""Some rows of a stream, spread over all of it."""

from collections.abc import Callable, Container, Hashable, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
import pandas as pd

from .._typing import IntArray
from ..codes import GOLDEN, mixed

_MOST_ROWS = 50_000
_MOST_CELLS = 1_000_000

_LONG = 200


def most_rows(n_columns: int) -> int:
    """Return how many rows of `n_columns` columns may be kept."""
    return min(_MOST_ROWS, _MOST_CELLS // max(1, n_columns))


class RowSample:
    """Rows of some columns, chosen by row number alone: the same ones from files of equal length.

    The choice looks random, so that it does not fall in with a pattern of the rows (couples, one
    partner after the other). Up to `limit` rows, all are kept. Long texts are cut, except in the
    columns in `whole`.
    """

    def __init__(
        self,
        names: Sequence[Hashable],
        limit: int | None = None,
        whole: Container[Hashable] = (),
    ) -> None:
        self._names = list(names)
        self._whole = whole
        self._limit = most_rows(len(self._names)) if limit is None else limit
        self._share = np.uint64(2**64 - 1)
        self._n_seen = 0
        self._ranks = np.zeros(0, dtype=np.uint64)
        self._pieces: list[pd.DataFrame] = []

    def add(self, n_rows: int, column_of: Callable[[Any, IntArray], pd.Series]) -> None:
        """Choose among the next rows.

        column_of : returns the column of a name at some of these rows.
        """
        if not self._names:
            return
        numbers = np.arange(self._n_seen, self._n_seen + n_rows, dtype=np.uint64)
        self._n_seen += n_rows
        ranks = mixed((numbers + np.uint64(1)) * GOLDEN)
        chosen = np.flatnonzero(ranks <= self._share)
        if not len(chosen):
            return
        columns = {}
        for name in self._names:
            column = column_of(name, chosen)
            columns[name] = (column if name in self._whole else _shortened(column)).astype(object)
        self._pieces.append(pd.DataFrame(columns))
        self._ranks = np.concatenate([self._ranks, ranks[chosen]])
        while len(self._ranks) > self._limit:
            self._share //= np.uint64(2)
            kept = self._ranks <= self._share
            self._pieces = [self.rows()[kept]]
            self._ranks = self._ranks[kept]

    def emptied(self) -> "RowSample":
        """Return a sample of the same columns without any rows."""
        return RowSample(self._names, self._limit, self._whole)

    def rows(self) -> pd.DataFrame:
        """Return the rows that were chosen."""
        return pd.concat(self._pieces, ignore_index=True) if self._pieces else pd.DataFrame()


def _shortened(column: pd.Series) -> pd.Series:
    """Return texts with long ones cut; those that differ still do."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.rename_categories(_short)
    return column if pd.api.types.is_numeric_dtype(column.dtype) else column.map(_short)


def _short(value: Any) -> Any:
    if not isinstance(value, str) or len(value) <= _LONG:
        return value
    return f"{value[:_LONG]} {sha256(value.encode()).hexdigest()}"
