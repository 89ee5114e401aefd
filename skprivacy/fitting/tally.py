"""Count the distinct rows of a stream, and keep a sample of its rows."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._messages import BinsOf, Message
from .._typing import CountArray, FloatArray, IntArray, NamedColumns
from ..cells import CellAlphabet
from ..codes import GOLDEN, UNKNOWN, mixed, take
from ..encoding import Alphabet
from ..encoding.columns import BinsLike, Edges, cut
from ..encoding.values import as_numbers, factorize, family_of
from ..releasing.record_ids import folds_of_keys
from ..tables.frames import as_table

_LONG = 200  # characters

_LARGEST_RANK = np.uint64(2**64 - 1)


def most_rows(n_columns: int) -> int:
    """Return the largest number of rows in a sample of `n_columns` columns."""
    return min(50_000, 1_000_000 // max(1, n_columns))


def ranks_of(numbers: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return a pseudorandom word for each row number: rows with small ones are sampled first."""
    return mixed((numbers.astype(np.uint64) + np.uint64(1)) * GOLDEN)


def highest_rank(n_rows: int, n_columns: int) -> np.uint64:
    """Return the highest rank of sampled rows, such that about `most_rows` are sampled."""
    share = most_rows(n_columns) / max(1, n_rows)
    return _LARGEST_RANK if share >= 1 else np.uint64(int(share * 2**64))


class RowSample:
    """A sample of rows that depends on row numbers only: the same for files of equal length.

    It is pseudorandom, so that no pattern of the rows matters (couples, one partner after the
    other). Up to `limit` rows, all are kept. Long texts are cut, except in the columns in `whole`.
    """

    def __init__(
        self, names: Sequence[Hashable], limit: int | None = None, whole: Container[Hashable] = ()
    ) -> None:
        self._names = list(names)
        self._whole = whole
        self._limit = most_rows(len(self._names)) if limit is None else limit
        self._highest = _LARGEST_RANK
        self._n_seen = 0
        self._ranks = np.zeros(0, dtype=np.uint64)
        self._pieces: list[pd.DataFrame] = []

    def add(self, n_rows: int, column_of: Callable[[Any, IntArray], pd.Series]) -> None:
        """Sample the next rows; column_of : returns a column at some of these rows."""
        if not self._names:
            return
        ranks = ranks_of(np.arange(self._n_seen, self._n_seen + n_rows, dtype=np.uint64))
        self._n_seen += n_rows
        self._make_room(ranks)
        chosen = np.flatnonzero(ranks <= self._highest)
        if not len(chosen):
            return
        columns = {}
        for name in self._names:
            column = column_of(name, chosen)
            columns[name] = (column if name in self._whole else _shortened(column)).astype(object)
        self._pieces.append(pd.DataFrame(columns))
        self._ranks = np.concatenate([self._ranks, ranks[chosen]])

    def _make_room(self, ranks: npt.NDArray[np.uint64]) -> None:
        """Lower the highest rank until the rows so far and the next ones are few enough."""
        every = np.concatenate([self._ranks, ranks])
        while np.count_nonzero(every <= self._highest) > self._limit:
            self._highest //= np.uint64(2)
        kept = self._ranks <= self._highest
        if not kept.all():
            self._pieces, self._ranks = [self.rows()[kept]], self._ranks[kept]

    def emptied(self) -> RowSample:
        """Return an empty sample of the same columns."""
        return RowSample(self._names, self._limit, self._whole)

    def rows(self) -> pd.DataFrame:
        """Return the sampled rows."""
        return pd.concat(self._pieces, ignore_index=True) if self._pieces else pd.DataFrame()


def _shortened(column: pd.Series) -> pd.Series:
    """Return a column with long texts cut; different texts stay different."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.rename_categories(_short)
    is_text = isinstance(column.dtype, pd.StringDtype)
    if pd.api.types.is_numeric_dtype(column.dtype) or (is_text and _are_short(column)):
        return column
    return column.map(_short)


def _are_short(texts: pd.Series) -> bool:
    return not (texts.str.len() > _LONG).any()


def _short(value: Any) -> Any:
    if not isinstance(value, str) or len(value) <= _LONG:
        return value
    return f"{value[:_LONG]} {sha256(value.encode()).hexdigest()}"


# A number for each row in place of X, such as its cell.


# The name of the column of these numbers, unlike that of any column of a table.
NUMBER = ("number of the row",)


class RowNumbers(ABC):
    """A number for each row that depends on the row alone, so that any engine can compute it."""

    @property
    @abstractmethod
    def read(self) -> tuple[Any, ...]:
        """The columns that determine the number of a row."""

    @abstractmethod
    def of_table(self, columns: NamedColumns) -> IntArray:
        """Return the number of each row, -1 for none; columns : these and any others."""

    def of_frame(self, frame: Any) -> IntArray:
        """Return the number of each row of any frame that has these columns."""
        table = as_table(frame, "fit")
        assert table.names is not None
        return self.of_table(table.named(map(table.names.index, self.read)))


@dataclass(frozen=True, eq=False)
class RowSymbols(RowNumbers):
    """The symbols of some columns; -1 or less for values that `fit` did not see.

    names : of these columns; person : the column with person ids, if any.
    """

    alphabet: Alphabet
    names: tuple[Any, ...]
    person: tuple[Any, ...]

    @property
    def read(self) -> tuple[Any, ...]:
        return (*self.names, *self.person)

    def of_columns(self, columns: NamedColumns, folds: IntArray | None = None) -> IntArray:
        """Return the symbol of each row; columns : these and any others; folds : of the rows."""
        series = [columns[name] for name in self.names]
        return self.alphabet.encode(series, self.names, folds)[0]

    def of_table(self, columns: NamedColumns) -> IntArray:
        folds = next((folds_of_keys(columns[name], name) for name in self.person), None)
        return self.of_columns(columns, folds)


@dataclass(frozen=True, eq=False)
class KnownCells(RowSymbols):
    """Cells learned from some rows, by which other rows are counted; asked_for : the parameter."""

    alphabet: CellAlphabet
    asked_for: Any


def unlike(name: str, others: Container[Any]) -> str:
    """Return a name that no other column has."""
    while name in others:
        name += " "
    return name


# Counts of distinct rows, gathered chunk by chunk in bounded memory.


# Beyond this many distinct rows of S and X, numbers must be cut at edges known beforehand.
MOST_DISTINCT = 500_000


def edges_of(n_bins: Any, x_names: Iterable[Hashable]) -> dict[Any, BinsLike]:
    """Return the edges of columns by name; edges given without names are for X."""
    given = n_bins if isinstance(n_bins, dict) else dict.fromkeys(x_names, n_bins)
    return {name: edges for name, edges in given.items() if np.ndim(edges) == 1}


class TooManyRowsError(ValueError):
    """More distinct rows than can be counted."""


def too_many(limit: int, sizes: Mapping[Any, int]) -> TooManyRowsError:
    """Return the error for more than `limit` distinct rows; sizes : values of each column."""
    sizes = {name: size for name, size in sizes.items() if name != NUMBER}
    widest = max(sizes, key=sizes.__getitem__)
    text = Message.of(
        "More than {limit:,} distinct combinations of {names} were found; {widest!r} has the most "
        "values. If it is a number, give its edges, {edges}; otherwise release fewer columns "
        "jointly.",
        limit=limit,
        names=", ".join(map(str, sizes)),
        widest=widest,
        edges=BinsOf(widest, at_edges=True),
    )
    return TooManyRowsError(text)


class Tally:
    """Counts of the distinct rows of some columns.

    names : of the columns; edges : of the bins of some columns; limit : of distinct rows, by
    default `MOST_DISTINCT`. Beyond it, one value of a column with edges stands for each bin,
    roughly its median.
    """

    def __init__(
        self,
        names: Iterable[Hashable],
        *,
        edges: Edges | None = None,
        limit: int | None = None,
    ) -> None:
        self.names = list(names)
        self.edges = edges or {}
        self._limit = MOST_DISTINCT if limit is None else limit
        self._coarse: dict[Hashable, _Bins] = {}
        self._values: list[dict[Any, int]] = [{} for _ in self.names]
        self._dtypes: list[Any] = [None for _ in self.names]
        self._pieces: list[pd.DataFrame] = []
        self._n_compact = 0

    def add(
        self,
        columns: Iterable[pd.Series],
        counts: CountArray | None = None,
        weights: FloatArray | None = None,
        squares: FloatArray | None = None,
    ) -> None:
        """Count the rows of a chunk; an error leaves the tally unchanged.

        columns : a pandas Series for each name; counts : of each row, None for one; weights,
        squares : sums of the weights of these rows and of their squares, for all chunks or for
        none; None for the squares of rows that occur once.
        """
        before = {name: copy(value) for name, value in vars(self).items()}
        n_values = [len(values) for values in self._values]
        try:
            if weights is not None and squares is None:
                with np.errstate(over="ignore"):
                    squares = weights**2
            self._add(columns, counts, weights, squares)
        except BaseException:
            self.__dict__.update(before)
            for values, n in zip(self._values, n_values, strict=True):
                while len(values) > n:  # the newest are last
                    values.popitem()
            raise

    def emptied(self) -> Tally:
        """Return an empty tally of the same columns."""
        return Tally(self.names, edges=self.edges, limit=self._limit)

    def unlimited(self) -> Tally:
        """Return a copy without a limit, to read and not to add to.

        There may be more rows than the limit: it is checked when pieces are compacted.
        """
        same = copy(self)
        same._limit = sys.maxsize
        return same

    def merge(self, other: Tally) -> None:
        """Add the counts of another tally of the same columns."""
        self.add(other.columns().values(), other.counts, other.weights, other.squares)

    def _add(
        self,
        columns: Iterable[pd.Series],
        counts: CountArray | None,
        weights: FloatArray | None,
        squares: FloatArray | None,
    ) -> None:
        codes = [self._coded(i, column) for i, column in enumerate(columns)]
        piece = pd.DataFrame(dict(enumerate(codes)))
        piece["count"] = 1 if counts is None else counts
        if weights is not None:
            piece["weight"], piece["square"] = weights, squares
        self._pieces.append(_counted(piece))
        if sum(map(len, self._pieces)) > max(2 * self._n_compact, self._limit):
            self._compact()
            if self._n_compact > self._limit:
                self._coarsen()

    def _coded(self, i: int, column: pd.Series) -> IntArray:
        """Return the codes of a column; new values get the next codes."""
        is_bool = pd.api.types.is_bool_dtype(column.dtype)
        are_numbers = pd.api.types.is_numeric_dtype(column.dtype) and not is_bool
        if self.names[i] in self.edges and are_numbers:
            column = column.astype(float)  # some chunks of a file may hold integers only
        if (bins := self._coarse.get(self.names[i])) is not None:
            column = bins.represented(column)
        self._dtypes[i] = _common(self._dtypes[i], column.dtype)
        codes, values = factorize(column, self.names[i])
        known = self._values[i]
        if known and values:  # True would be counted as 1
            family_of([next(iter(known)), values[0]], self.names[i])
        of_value = [known.setdefault(value, len(known)) for value in values]
        return take(np.array([*of_value, UNKNOWN]), codes)

    def _compact(self) -> None:
        self._pieces = [_counted(pd.concat(self._pieces, ignore_index=True))]
        self._n_compact = len(self._pieces[0])

    def _coarsen(self) -> None:
        """Keep one value for each bin; raise an error if that is not enough."""
        fine = [n for n in self.names if n in self.edges and n not in self._coarse]
        columns, counts = self._columns(), self._pieces[0]["count"].to_numpy()
        for name in fine:
            i, column = self.names.index(name), columns[name]
            if family_of(list(self._values[i]), name) not in ("numbers", "times"):
                continue
            self._coarse[name] = _Bins(name, self.edges[name], column, counts)
            self._values[i] = {}
            self._pieces[0][i] = self._coded(i, column)
        self._compact()
        if self._n_compact > self._limit:
            sizes = {n: len(values) for n, values in zip(self.names, self._values, strict=True)}
            raise too_many(self._limit, sizes)

    def _settled(self) -> pd.DataFrame:
        """Return the counts in one piece, within the limit."""
        if len(self._pieces) != 1:
            self._compact()
        if self._n_compact > self._limit:
            self._coarsen()
        return self._pieces[0]

    @property
    def counts(self) -> IntArray:
        """The number of times that each distinct row was seen."""
        return self._settled()["count"].to_numpy()

    @property
    def weights(self) -> FloatArray | None:
        """The total weight of each distinct row, None without weights."""
        return piece["weight"].to_numpy() if "weight" in (piece := self._settled()) else None

    @property
    def squares(self) -> FloatArray | None:
        """The total of the squared weights of each distinct row, None without weights."""
        return piece["square"].to_numpy() if "square" in (piece := self._settled()) else None

    @property
    def is_coarse(self) -> bool:
        """Whether one value stands for each bin of some column."""
        self._settled()
        return bool(self._coarse)

    def columns(self) -> NamedColumns:
        """Return the distinct rows: a pandas Series for each name."""
        self._settled()
        return self._columns()

    def _columns(self) -> NamedColumns:
        columns = {}
        for i, name in enumerate(self.names):
            dtype = self._dtypes[i]
            is_whole = dtype.kind in "iub" and not hasattr(dtype, "na_value")
            if is_whole or isinstance(dtype, pd.SparseDtype):  # which cannot hold None
                dtype = object
            values = pd.Series([*self._values[i], None], dtype=dtype)
            columns[name] = values.take(self._pieces[0][i].to_numpy()).reset_index(drop=True)
        return columns


def _common(known: Any, dtype: Any) -> Any:
    """Return the common dtype of two chunks, as in pandas."""
    if known is None or known == dtype:
        return dtype if known is None else known  # the same categories, in the order of the first
    numbers = all(isinstance(d, np.dtype) and d.kind in "iuf" for d in (known, dtype))
    return np.result_type(known, dtype) if numbers else np.dtype(object)


def check_covered(name: Hashable, edges: FloatArray, lows: FloatArray, highs: FloatArray) -> None:
    """Check that the values of a column are within its edges; lows, highs : some of them."""
    if (lows < edges[0]).any() or (highs > edges[-1]).any():
        advice = "begin with -inf and end with inf"
        raise ValueError(f"The edges of the column {name!r} do not cover its values: {advice}.")


def _counted(rows: pd.DataFrame) -> pd.DataFrame:
    """Return distinct rows of codes with the sums of their counts and weights."""
    totals = [name for name in ("count", "weight", "square") if name in rows]
    keys = [name for name in rows if name not in totals]
    return rows.groupby(keys, sort=False, as_index=False)[totals].sum()


class _Bins:
    """The bins of a column of numbers or times, and the value that stands for each."""

    def __init__(
        self, name: Hashable, edges: Sequence[Any], column: pd.Series, counts: IntArray
    ) -> None:
        self._name = name
        self.edges = as_numbers(pd.Series(list(edges)), name)
        present = column.notna().to_numpy()
        totals = pd.Series(counts[present]).groupby(column[present].to_numpy()).sum()
        numbers = as_numbers(pd.Series(totals.index.tolist()), name)
        weights = totals.to_numpy(dtype=float)
        bins = cut(totals.index, numbers, weights, weights, edges, name)
        self._standing = pd.Series(bins.values, dtype=column.dtype)

    def represented(self, column: pd.Series) -> pd.Series:
        """Return a column with each value replaced by the one that stands for its bin."""
        numbers = as_numbers(column, self._name)
        check_covered(self._name, self.edges, numbers, numbers)
        bins = np.searchsorted(self.edges[1:-1], numbers)
        for new in set(np.unique(bins)) - set(np.flatnonzero(self._standing.notna())):
            inside = column[(bins == new) & column.notna().to_numpy()].sort_values()
            if len(inside):
                self._standing[new] = inside.iloc[len(inside) // 2]
        represented = self._standing.take(bins).reset_index(drop=True)
        return represented.where(column.notna().to_numpy())
