"""The rows that teach cells: all of them, or a sample where there are too many distinct ones.

The sample is a function of the rows as a multiset. So neither their order nor the engine that
holds them decides on cells, and a second fit to the same rows is no second release of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._typing import CountArray, FloatArray, IntArray, NamedColumns
from ..cells import Cells
from ..cells.buckets import N_BUCKETS, buckets, kept_buckets
from ..codes import UNKNOWN, mixed
from ..encoding.bins import BinsLike, as_edges
from ..encoding.values import as_numbers, factorize, family_of
from ..releasing.group_folds import folds_of_keys
from ..releasing.siphash import Messages, siphash
from .inputs import CountedColumns, LabelledRows
from .known_cells import RowNumbers
from .parameters import Settings
from .tally import edges_of

# About so many distinct rows teach cells, if there are more.
MOST_ROWS = 200_000

# Not a secret: it must be the same everywhere, and unlike those of noise and of folds.
_KEY = b"skprivacy sample"

_MISSING = np.uint64(0x6D697373696E67)


@dataclass(frozen=True, eq=False)
class Buckets(RowNumbers):
    """The bucket of each row, by all that cells see of it.

    names : of the columns of X, and of S and a target for cells that see them; edges : where some
    are cut, so that values of a bin are the same.
    """

    names: tuple[Any, ...]
    edges: Mapping[Any, BinsLike] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Settings, counted: CountedColumns, cells: Cells) -> Buckets:
        """Return the buckets for some cells; those without a target do not see S."""
        labels = (*counted.s, *(counted.target or ())) if cells.needs_target else ()
        return cls((*counted.x, *labels), edges_of(settings.n_bins, counted.x))

    @property
    def read(self) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(self.names))

    def of_table(self, columns: NamedColumns) -> IntArray:
        return self._of_series([columns[name] for name in self.names])

    def of_rows(self, rows: LabelledRows) -> IntArray:
        """Return the bucket of each row."""
        parts = rows.x_columns, rows.s_columns, rows.target or {}
        series = [column for part in parts for column in part.values()]
        return self._of_series(series[: len(self.names)])

    def _of_series(self, series: Sequence[pd.Series]) -> IntArray:
        own = zip(series, self.names, strict=True)
        words = (_words(column, name, self.edges.get(name)) for column, name in own)
        return buckets(words, len(series[0]))


@dataclass(frozen=True, eq=False)
class KeptRows(RowNumbers):
    """The fold of each row that is kept, 0 where no column tells people apart; -1 for others."""

    buckets: Buckets
    is_kept: npt.NDArray[np.bool]
    groups: tuple[Any, ...]

    @property
    def read(self) -> tuple[Any, ...]:
        return tuple(dict.fromkeys([*self.buckets.read, *self.groups]))

    def of_table(self, columns: NamedColumns) -> IntArray:
        folds = next((folds_of_keys(columns[name], name) for name in self.groups), 0)
        kept = self.is_kept[self.buckets.of_table(columns)]
        return np.where(kept, folds, UNKNOWN).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Sample:
    """Which rows of a table teach.

    buckets : of its rows; factors : by which those of each bucket are multiplied, None if all rows
    teach as they are.
    """

    buckets: Buckets
    factors: FloatArray | None

    @classmethod
    def of_sizes(cls, buckets: Buckets, sizes: CountArray, n_rows: int) -> Sample:
        """Choose rows of a table; sizes : the weight of each bucket."""
        is_small = n_rows <= MOST_ROWS
        return cls(buckets, None if is_small else kept_buckets(sizes, MOST_ROWS))

    def kept(self, groups: tuple[Any, ...]) -> KeptRows:
        """Return the rows that teach; groups : the column that tells people apart, if any."""
        is_kept = np.ones(N_BUCKETS, bool) if self.factors is None else self.factors > 0
        return KeptRows(self.buckets, is_kept, groups)

    def weighted(self, rows: LabelledRows) -> LabelledRows:
        """Return the rows that teach, among some that hold all of these."""
        if self.factors is None:
            return rows
        factors = self.factors[self.buckets.of_rows(rows)]
        chosen = np.flatnonzero(factors)
        factors, rows = factors[chosen], rows.at(chosen)
        # Values that few rows have are told by the rows themselves: a factor makes no people.
        counts = np.ones(len(chosen)) if rows.multiplicities is None else rows.multiplicities
        weights = counts if rows.weights is None else rows.weights
        squares = rows.squares
        if squares is None:
            squares = weights**2 if rows.multiplicities is None else counts
        weights, squares = weights * factors, squares * factors**2
        return replace(rows, weights=weights, multiplicities=counts, squares=squares)


def teaching_rows(settings: Settings, rows: LabelledRows, cells: Cells) -> LabelledRows:
    """Return the rows that teach cells: these rows themselves, or some with weights."""
    if rows.n_rows <= MOST_ROWS:
        return rows
    own = Buckets.of(settings, CountedColumns.of(rows), cells)
    weights = rows.multiplicities if rows.weights is None else rows.weights
    sizes = np.bincount(own.of_rows(rows), weights, N_BUCKETS)
    return Sample.of_sizes(own, sizes, rows.n_rows).weighted(rows)


def _words(column: pd.Series, name: Hashable, edges: BinsLike | None) -> npt.NDArray[np.uint64]:
    """Return a word for each value: the same whatever the type and the order of categories."""
    is_bool = pd.api.types.is_bool_dtype(column.dtype)
    if column.dtype.kind in "iufmM" and not is_bool:
        return _of_numbers(as_numbers(column, name), name, edges)
    codes, values = factorize(column, name)
    if values and {family_of([value], name) for value in values} <= {"numbers", "times"}:
        numbers = as_numbers(pd.Series(values, dtype=object), name)
        words = _of_numbers(numbers, name, edges)
    else:
        texts = (str(value).encode(errors="surrogatepass") for value in values)
        words = siphash(_KEY, Messages.from_bytes(texts))
    return np.append(words, _MISSING)[codes]


def _of_numbers(
    numbers: FloatArray, name: Hashable, edges: BinsLike | None
) -> npt.NDArray[np.uint64]:
    is_missing = np.isnan(numbers)
    if edges is not None:
        numbers = np.searchsorted(as_edges(edges, name)[1:-1], numbers).astype(float)
    words = (numbers + 0.0).view(np.uint64)  # -0.0 is 0.0
    return np.where(is_missing, _MISSING, mixed(words))
