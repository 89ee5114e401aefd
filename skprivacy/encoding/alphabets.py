"""The alphabet of several columns taken jointly: encode rows, and show symbols as values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pandas as pd

from .._typing import BoolArray, FloatArray, IntArray
from ..codes import UNKNOWN, count, look_up, n_cells, narrow, pack, pack_few, take, unpack
from .columns import POOLED, ColumnAlphabet, learn_column, learn_values, middle, pool
from .rows import RowModel, RowTask, learn_rows

# Up to this size, combinations of columns are found with a look-up table, beyond it with an index.
_MOST_LOOK_UPS = 1 << 22

# Look-up tables up to this size are used however few rows there are.
_FEW_LOOK_UPS = 1 << 12

# Beyond this many possible combinations a row cannot be packed into one integer.
_MOST_PACKED = 2.0**62


# Columns, their names, and the keyword arguments of `learn_values` for each of them.
Columns: TypeAlias = Sequence[pd.Series]
Names: TypeAlias = Sequence[Hashable]
Options: TypeAlias = Sequence[dict[str, Any]]

# The symbol of each row, and the number of unknown rows by column.
Encoded: TypeAlias = tuple[IntArray, dict[Hashable, int]]

# For each column, a list of values and an index into it for each row.
Decoded: TypeAlias = list[tuple[list[Any], IntArray]]

# Random draws from [0, 1) for rows (first argument), independent for each column (second).
Uniform: TypeAlias = Callable[[IntArray, int], FloatArray]

# The same, independent for each attempt to make up a row (third argument).
Attempts: TypeAlias = Callable[[IntArray, int, int], FloatArray]


class Alphabet(ABC):
    """The symbols of several columns taken jointly."""

    columns: tuple[ColumnAlphabet, ...]

    #: Whether symbols are cells, which are not combinations of values.
    of_cells: ClassVar[bool] = False
    #: The value z of the columns beside X for each symbol; None without such columns.
    strata: IntArray | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Without cached properties, which are computed again where they are used.
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    @property
    def x_alphabet(self) -> Alphabet:
        """The symbols of X alone, without columns beside it."""
        return self

    @property
    def read_columns(self) -> tuple[ColumnAlphabet, ...]:
        """The encoded columns: those of X, then those beside it."""
        return self.columns

    @property
    def x_symbols(self) -> IntArray:
        """The symbol of X that each symbol belongs to."""
        return np.arange(self.n_symbols)

    @property
    @abstractmethod
    def n_symbols(self) -> int:
        """The number of symbols."""

    @property
    @abstractmethod
    def labels(self) -> list[Any]:
        """One label for each symbol."""

    @property
    @abstractmethod
    def is_pool(self) -> BoolArray:
        """Whether each symbol is a pool of several members, whose columns are shown separately."""

    @property
    @abstractmethod
    def shown(self) -> list[ShownColumn]:
        """What each column shows for the symbols."""

    @abstractmethod
    def encode(self, series: Columns, labels: Names, folds: IntArray | None = None) -> Encoded:
        """Return the symbol of each row, and the number of unknown rows by column.

        series, labels : one for each column; folds : of the rows, for cells by scores with person
        ids. Unknown combinations of known values are counted under the key None, which is last.
        """

    @abstractmethod
    def occurrences(self, position: int) -> tuple[IntArray, IntArray, FloatArray]:
        """Return (values, symbols, weights): which values of a column occur with which symbols.

        Values are positions in `ColumnAlphabet.values`.
        """

    @abstractmethod
    def matches(self) -> FloatArray:
        """Return the probability that a row of each symbol, shown as each, keeps its values.

        A row keeps a number if it keeps its bin. NaN where the probability is not known.
        """

    @abstractmethod
    def rules(self) -> list[Any]:
        """Return, as JSON, how columns determine a symbol. It must never change."""

    @abstractmethod
    def can_be_read(self, symbols: IntArray) -> bool:
        """Whether these symbols can be recovered from the values they are shown as."""

    def decode(self, symbol_of_output: IntArray, outputs: IntArray, uniform: Uniform) -> Decoded:
        """Return, for each column, a list of values and an index into it for each row.

        symbol_of_output : the symbol of each output; uniform : random draws for pools.
        """
        pooled = self.is_pool[symbol_of_output]
        if not pooled.any():
            singles = ((c.values, c.single[symbol_of_output]) for c in self.shown)
            return [([values[i] for i in single], outputs) for values, single in singles]
        rows = np.flatnonzero(look_up(pooled, outputs))
        symbols = look_up(narrow(symbol_of_output), outputs)
        shown = enumerate(self.shown)
        return [(c.values, c.codes(symbols, rows, uniform(rows, i))) for i, c in shown]

    @property
    def row_model(self) -> RowModel | None:
        """How columns are drawn together where a symbol stands for many rows; None if unknown."""
        return None

    @property
    @abstractmethod
    def made_up(self) -> list[MadeUpColumn]:
        """What each column may show in rows whose columns are drawn together."""

    @abstractmethod
    def decode_together(self, symbols: IntArray, draws: Attempts, n_attempts: int) -> Decoded:
        """Return the same as `decode`, with the columns of a row drawn together.

        symbols : that the rows show; n_attempts : how often a row is drawn at most, until it is a
        row of the cell that it shows.
        """

    def column_codes(self) -> list[IntArray | None]:
        """Return the symbols of each of `read_columns` that make up each symbol; None for cells.

        A pool of combinations that differ in a column has a unique code for this column.
        """
        return [None] * len(self.read_columns)

    def decode_beside(self, symbol_of_output: IntArray, outputs: IntArray) -> Decoded:
        """Return, for each column beside X, a list of values and an index into it for each row."""
        return []

    def tables(self) -> list[FloatArray]:
        """Return, for each column, counts of its values (rows) by symbol (columns)."""
        found = []
        for position, column in enumerate(self.columns):
            values, symbols, weights = self.occurrences(position)
            table = np.zeros((len(column.values), self.n_symbols))
            np.add.at(table, (values, symbols), weights)
            found.append(table)
        return found

    def shown_shares(self, position: int) -> FloatArray:
        """Return how often each symbol is shown as each value of a column, or as none (last)."""
        column, shown = self.columns[position], self.shown[position]
        nothing = len(column.values)
        place_of = {value: i for i, value in enumerate(column.in_pool)}
        place_of |= {value: i for i, value in enumerate(column.values)}
        places = np.array([place_of.get(value, nothing) for value in shown.values])
        shares = np.zeros((self.n_symbols, nothing + 1))
        np.add.at(shares.T, places, shown.by_symbol().T)
        return shares


@dataclass(frozen=True, eq=False)
class ValueAlphabet(Alphabet):
    """Combinations of values or bins that were seen; rare ones may be pooled.

    combinations : (n, n_columns), the symbols of the columns that occur together, in lexicographic
    order; symbols : the symbol of each combination; members : (m, n_columns), the values that
    occur together, as positions in each column's list; member_of : the combination of each
    member; weights : the total weight of each member; people : how many rows have each, None if
    that is not known: at least one.
    """

    columns: tuple[ColumnAlphabet, ...]
    combinations: IntArray
    symbols: IntArray
    members: IntArray
    member_of: IntArray
    weights: FloatArray
    people: FloatArray | None = None

    @cached_property
    def n_symbols(self) -> int:
        return int(self.symbols.max()) + 1

    @cached_property
    def labels(self) -> list[Any]:  # a label of the column, a tuple of labels, or `POOLED`
        pooled = np.bincount(self.symbols, minlength=self.n_symbols) > 1
        names = [column.symbol_labels for column in self.columns]
        labels = [POOLED] * self.n_symbols
        for combination, symbol in zip(self.combinations, self.symbols, strict=True):
            parts = tuple(name[code] for name, code in zip(names, combination, strict=True))
            if not pooled[symbol]:
                labels[symbol] = parts if len(parts) > 1 else parts[0]
        return labels

    @property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(column.n_symbols for column in self.columns)

    def encode(self, series: Columns, labels: Names, folds: IntArray | None = None) -> Encoded:
        columns = self.columns
        if len(columns) == 1:  # encodes directly to symbols of the alphabet
            symbols = np.append(self.symbols, UNKNOWN).take(columns[0].symbols)
            columns = (replace(columns[0], symbols=symbols),)
        codes = [c.encode(s, n) for c, s, n in zip(columns, series, labels, strict=True)]
        symbols = codes[0] if len(codes) == 1 else self._find(codes)
        if symbols.min(initial=0) != UNKNOWN:
            return symbols, {}
        missed = [int(np.count_nonzero(code == UNKNOWN)) for code in codes]
        unknown: dict[Hashable, int] = {n: m for n, m in zip(labels, missed, strict=True) if m}
        known = np.logical_and.reduce([code != UNKNOWN for code in codes])
        if n_together := np.count_nonzero(known & (symbols == UNKNOWN)):
            unknown[None] = int(n_together)
        return symbols, unknown

    def _find(self, codes: list[IntArray]) -> IntArray:
        """Return the symbol of each row, given the symbols of its columns."""
        if n_cells(self._sizes) <= _MOST_LOOK_UPS:
            return look_up(self._table, pack(codes, self._sizes))
        is_packed = n_cells(self._sizes) < _MOST_PACKED
        rows: Any = pack(codes, self._sizes) if is_packed else pd.MultiIndex.from_arrays(codes)
        return np.append(self.symbols, UNKNOWN).take(self._index.get_indexer(rows))

    @cached_property
    def _table(self) -> IntArray:
        """The symbol of each packed combination, -1 if it was not seen."""
        table = np.full(int(n_cells(self._sizes)), UNKNOWN)
        table[pack_few(self.combinations, self._sizes)] = self.symbols
        return narrow(table)

    @cached_property
    def _index(self) -> pd.Index:
        """The combinations, packed if possible."""
        if n_cells(self._sizes) < _MOST_PACKED:
            return pd.Index(pack_few(self.combinations, self._sizes))
        return pd.MultiIndex.from_arrays(list(self.combinations.T))

    def pooled(self, n_symbols: int) -> tuple[ValueAlphabet, IntArray]:
        """Return an alphabet whose rarest symbols are pooled, and its code for each old symbol."""
        counts = np.bincount(self.symbols[self.member_of], weights=self.weights)
        symbols = pool(counts, None, n_symbols)
        return replace(self, symbols=symbols[self.symbols]), symbols

    def column_codes(self) -> list[IntArray | None]:
        found: list[IntArray | None] = []
        for codes, n in zip(self.combinations.T, self._sizes, strict=True):
            least, most = np.full(self.n_symbols, n), np.full(self.n_symbols, -1)
            np.minimum.at(least, self.symbols, codes)
            np.maximum.at(most, self.symbols, codes)
            found.append(np.where(least == most, least, n + np.arange(self.n_symbols)))
        return found

    def rules(self) -> list[Any]:
        return [self.combinations.tolist(), self.symbols.tolist()]

    def occurrences(self, position: int) -> tuple[IntArray, IntArray, FloatArray]:
        return self.members[:, position], self.symbols[self.member_of], self.weights

    def matches(self) -> FloatArray:
        found, symbols = np.diag(np.where(self.is_pool, 0.0, 1.0)), self.symbols[self.member_of]
        of_symbol = np.bincount(symbols, self.weights)
        shares = self.weights / np.where(of_symbol > 0, of_symbol, 1.0)[symbols]
        if self.row_model is not None:
            for group, pooled in enumerate(np.flatnonzero(self.is_pool)):
                groups = np.full(len(shares), group)
                kept = self.row_model.probability(list(self.members.T), groups)
                found[:, pooled] = np.bincount(symbols, shares * kept, self.n_symbols)
            return found
        by_column = [self.shown_shares(position) for position in range(len(self.columns))]
        for pooled in np.flatnonzero(self.is_pool):
            kept = np.ones(len(symbols))
            for by_symbol, values in zip(by_column, self.members.T, strict=True):
                kept *= by_symbol[pooled, values]
            found[:, pooled] = np.bincount(symbols, shares * kept, self.n_symbols)
        return found

    @cached_property
    def shown(self) -> list[ShownColumn]:
        members = self.symbols[self.member_of], self.weights
        pairs = zip(self.columns, self.members.T, strict=True)
        return [_shown_column(*pair, *members, fewest=2) for pair in pairs]

    @cached_property
    def row_model(self) -> RowModel | None:
        """How members of pools are made up; None without pools, and for one column."""
        if len(self.columns) < 2 or not self.is_pool.any():
            return None
        # Other members say whether something follows from a value in all of the table.
        groups = self._pools[self.symbols[self.member_of]]
        people = np.ones(len(groups)) if self.people is None else self.people
        counted = int(self.is_pool.sum()), self.weights, people, True
        return learn_rows(RowTask(self.columns, list(self.members.T), groups, *counted))

    @property
    def _pools(self) -> IntArray:
        """The number of each symbol among the pools, -1 for others."""
        return np.where(self.is_pool, np.cumsum(self.is_pool) - 1, UNKNOWN)

    @cached_property
    def made_up(self) -> list[MadeUpColumn]:
        assert self.row_model is not None
        found = []
        for i, (column, shown) in enumerate(zip(self.columns, self.shown, strict=True)):
            alone = {shown.values[code] for code in shown.single[shown.single != UNKNOWN]}
            found.append(_made_up(column, self.row_model, i, alone, within=False))
        return found

    def decode_together(self, symbols: IntArray, draws: Attempts, n_attempts: int) -> Decoded:
        assert self.row_model is not None
        rows = np.flatnonzero(look_up(self.is_pool, symbols))
        groups = self._pools[symbols[rows]]
        codes, left = self.row_model.draw(groups, lambda column: draws(rows, column, 0))
        found: Decoded = []
        for i, (made, shown) in enumerate(zip(self.made_up, self.shown, strict=True)):
            place = {value: place for place, value in enumerate(made.values)}
            alone = np.array([*(place.get(value, UNKNOWN) for value in shown.values), UNKNOWN])
            index = look_up(alone[shown.single], symbols)
            index[rows] = made.index(codes[i], left[i])
            found.append((made.values, index))
        return found

    def can_be_read(self, symbols: IntArray) -> bool:
        pools = symbols[self.is_pool[symbols]]
        if len(self.columns) > 1:  # rows of a pool may have common values outside of it
            return not len(pools)
        (shown,) = self.shown
        rows = [pd.Series(shown.values, dtype=object).iloc[shown.pools[pool][0]] for pool in pools]
        return all(
            (self.encode([of], [""])[0] == p).all() for p, of in zip(pools, rows, strict=True)
        )

    @cached_property
    def is_pool(self) -> BoolArray:
        return count(self.symbols[self.member_of], self.n_symbols)[:-1] > 1


def learn_alphabet(
    series: Columns, labels: Names, weights: FloatArray | None, options: Options
) -> tuple[ValueAlphabet, IntArray]:
    """Return the alphabet of columns taken jointly, and the symbol of each row.

    weights : of the rows, or None; options : the keyword arguments of `learn_values` for each
    column.
    """
    if len(series) == 1:
        column, symbols = learn_column(series[0], weights, labels[0], **options[0])
        every, occurs = np.arange(column.n_symbols), np.flatnonzero(column.symbols >= 0)
        found = occurs[:, None], column.symbols[occurs], column.weights[occurs]
        return ValueAlphabet((column,), every[:, None], every, *found), symbols
    columns, codes = learn_positions(series, labels, weights, options)
    # Rows are combined once, by value; then these combinations are grouped into symbols.
    members, member = combine(codes, [len(column.values) for column in columns])
    parts = [column.symbols[of] for column, of in zip(columns, members.T, strict=True)]
    combinations, member_of = combine(parts, [column.n_symbols for column in columns])
    counts = count(member, len(members), weights)[:-1].astype(float)
    people = count(member, len(members), options[0].get("multiplicities"))[:-1].astype(float)
    every = np.arange(len(combinations))
    alphabet = ValueAlphabet(columns, combinations, every, members, member_of, counts, people)
    return alphabet, take(np.append(member_of, UNKNOWN), member)


def learn_positions(
    series: Columns, labels: Names, weights: FloatArray | None, options: Options
) -> tuple[tuple[ColumnAlphabet, ...], list[IntArray]]:
    """Return the alphabet of each column, and the position of each row's value in it."""
    columns, positions = [], []
    for values, label, option in zip(series, labels, options, strict=True):
        column, codes, of_codes = learn_values(values, weights, label, **option)
        columns.append(column)
        positions.append(take(of_codes, codes))
    return tuple(columns), positions


def combine(codes: Sequence[IntArray], sizes: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Return the distinct rows of several columns of codes, and the index of each row in them."""
    if n_cells(sizes) >= _MOST_PACKED:
        rows = pd.DataFrame(dict(enumerate(codes)))
        symbols = rows.groupby(list(rows), sort=True).ngroup().to_numpy()
        first = np.unique(symbols, return_index=True)[1]
        return rows.to_numpy()[first], symbols
    packed = pack(codes, sizes)
    if n_cells(sizes) > min(_MOST_LOOK_UPS, max(len(packed), _FEW_LOOK_UPS)):
        symbols, seen = pd.factorize(packed, sort=True)
        return unpack(seen, sizes), symbols
    seen = np.flatnonzero(count(packed, int(n_cells(sizes)))[:-1])
    table = np.full(int(n_cells(sizes)), UNKNOWN)
    table[seen] = np.arange(len(seen))
    return unpack(seen, sizes), look_up(narrow(table), packed)


def unknown_values(
    alphabet: Alphabet, series: Columns, labels: Names, symbols: IntArray, label: Hashable
) -> str:
    """Return some unknown values of a column as a text, or combinations if `label` is None.

    symbols : of the rows.
    """
    if label is None:
        rows = np.flatnonzero(symbols < 0)[:1000]
        values = list(zip(*(s.iloc[rows].tolist() for s in series), strict=True))
    else:
        column = list(labels).index(label)
        codes = alphabet.columns[column].encode(series[column], label)
        values = series[column].iloc[np.flatnonzero(codes == UNKNOWN)[:1000]].tolist()
    texts = list(dict.fromkeys(map(repr, values)))[:5]
    return ", ".join(text if len(text) <= 80 else f"{text[:80]}..." for text in texts)


# What symbols are shown as: values of each column.
#
# A symbol with one member is shown as its values. A pool stands for many combinations, each of
# which may be the row of one person: its columns are drawn together by a model of rows, see
# `rows`, or each separately from the values of the members, in proportion to their weights, as
# here. Values in fewer than five rows of the table are not shown for other rows: commoner values
# of the pool take their place; if there are none, the commonest value of the column; if that is
# rare too, a missing value.


@dataclass(frozen=True, eq=False)
class ShownColumn:
    """The values that one column shows.

    values : all that it may show, in the order of the alphabet; single : the index in `values` for
    each symbol with one member, -1 for a pool; pools : for each pool, the indices in `values` that
    it may show, and their cumulative weights.
    """

    values: list[Any]
    single: IntArray
    pools: dict[int, tuple[IntArray, FloatArray]]

    def codes(self, symbols: IntArray, rows: IntArray, uniform: FloatArray) -> IntArray:
        """Return the index in `values` that each row shows.

        symbols : of the rows; rows : positions of those that show a pool; uniform : a random draw
        for each of them.
        """
        dtype = narrow(np.array(len(self.values))).dtype
        codes = look_up(self.single.astype(dtype), symbols)
        for symbol, at in _grouped(symbols[rows]):
            shown, cumulated = self.pools[symbol]
            drawn = np.searchsorted(cumulated, uniform[at] * cumulated[-1], side="right")
            codes[rows[at]] = shown[drawn.clip(max=len(shown) - 1)]
        return codes

    def commonest(self, pool: int) -> Any:
        """Return the value that a pool shows most often."""
        codes, cumulated = self.pools[pool]
        return self.values[codes[np.argmax(np.diff(cumulated, prepend=0.0))]]

    def by_symbol(self) -> FloatArray:
        """Return how often each symbol is shown as each of `values`."""
        by_symbol = np.zeros((len(self.single), len(self.values)))
        alone = np.flatnonzero(self.single != UNKNOWN)
        by_symbol[alone, self.single[alone]] = 1.0
        if self.pools:
            codes, cumulated = map(np.concatenate, zip(*self.pools.values(), strict=True))
            sizes = [len(of_pool) for of_pool, _ in self.pools.values()]
            ends = np.cumsum(sizes) - 1
            shares = np.diff(cumulated, prepend=0.0)
            shares[ends[:-1] + 1] = cumulated[ends[:-1] + 1]
            pools = np.repeat(list(self.pools), sizes)
            by_symbol[pools, codes] = shares / np.repeat(cumulated[ends], sizes)
        return by_symbol


# Columns of rows that are made up together.


# A bin of numbers is shown as at most this many numbers within it.
_MOST_IN_BIN = 16

# Numbers have as many decimals as the column has, up to this.
_MOST_DECIMALS = 6


@dataclass(frozen=True, eq=False)
class MadeUpColumn:
    """The values that one column may show.

    values : all of them, in order, a missing one last; starts, places : where the values of each
    code begin in `places`, which holds positions in `values`.
    """

    values: list[Any]
    starts: IntArray
    places: IntArray

    def index(self, codes: IntArray, left: FloatArray) -> IntArray:
        """Return the position in `values` that each row shows; left : a random draw for each."""
        sizes = np.diff(self.starts)
        within = np.minimum((left * sizes[codes]).astype(np.intp), sizes[codes] - 1)
        return self.places[self.starts[codes] + within]


def made_up_column(column: ColumnAlphabet, model: RowModel, position: int) -> MadeUpColumn:
    """Return what a column shows if rows are made up, with numbers drawn within their bins."""
    return _made_up(column, model, position, set(), within=True)


def _made_up(
    column: ColumnAlphabet, model: RowModel, position: int, alone: set[Any], within: bool
) -> MadeUpColumn:
    """Return what a column shows; alone : values that are shown besides; within : see above."""
    drawn = model.codes_of(position)
    is_spread = within and column.is_cut and position not in model.fixed
    shown: list[list[Any]] = []
    for code in range(len(column.values) + 1):
        value = _in_pool(column, code) if code < len(column.values) and drawn[code] else None
        is_person = value is not None and value != column.values[code]
        shown.append(_within(column, code) if is_spread and is_person else [value])
    wanted = {value for code in np.flatnonzero(drawn) for value in shown[code]} | alone
    every = [*column.values, *(value for values in shown for value in values)]
    if column.is_cut:
        every = sorted(value for value in dict.fromkeys(every) if value is not None)
    values = [value for value in dict.fromkeys(every) if value is not None and value in wanted]
    values += [None] * (None in wanted)
    place = {value: i for i, value in enumerate(values)}
    starts = np.cumsum([0, *map(len, shown)])
    places = np.array([place.get(value, 0) for of_code in shown for value in of_code])
    return MadeUpColumn(values, starts, places)


def _in_pool(column: ColumnAlphabet, code: int) -> Any:
    """Return the value that stands for a code, with the decimals of its column."""
    value = column.in_pool[code]
    if column.is_cut and isinstance(value, float) and value != column.values[code]:
        rounded = round(value, _decimals(column))
        is_inside = column.positions(pd.Series([rounded]), "")[0] == code
        return rounded if is_inside else value
    return value


def _within(column: ColumnAlphabet, code: int) -> list[Any]:
    """Return numbers or times within a bin; one, if the bin has no end."""
    assert column.edges is not None
    ends = [column.bounds[0], *column.edges.tolist(), column.bounds[1]]
    low, high = ends[code], ends[code + 1]
    if not np.isfinite(high - low):
        return [_in_pool(column, code)]
    like = _in_pool(column, code)
    n = _MOST_IN_BIN
    if isinstance(like, int):  # integers, each of them once
        n = int(min(n, max(1, np.floor(high) - np.floor(low))))
    cuts = np.linspace(low, high, n + 1)
    middles = [middle(a, b, np.nan, like) for a, b in pairwise(cuts.tolist())]
    if isinstance(like, float):
        decimals = _decimals(column)
        middles = [round(value, decimals) for value in middles]
        middles = [value for value in middles if low < value <= high] or [like]
    return list(dict.fromkeys(middles))


def _decimals(column: ColumnAlphabet) -> int:
    """Return how many decimals the medians of the bins of a column have."""
    known = [value for value in column.values if value is not None]
    fits = (d for d in range(_MOST_DECIMALS) if all(round(v, d) == v for v in known))
    return next(fits, 15)


def shown_pools(
    column: ColumnAlphabet, of_member: IntArray, symbols: IntArray, weights: FloatArray
) -> ShownColumn:
    """Return what a column shows if every symbol is a pool, even those of one member."""
    return _shown_column(column, of_member, symbols, weights, fewest=1)


def _grouped(symbols: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Yield each symbol that occurs, and its positions."""
    order = np.argsort(symbols, kind="stable")
    found, starts = np.unique(symbols[order], return_index=True)
    parts = np.split(order, starts[1:])  # one, and empty, if there are no symbols
    return zip(found.tolist(), parts, strict=False)


def _shown_column(
    column: ColumnAlphabet,
    of_member: IntArray,
    symbols: IntArray,
    weights: FloatArray,
    fewest: int,
) -> ShownColumn:
    """Return what a column shows.

    of_member, symbols, weights : one entry for each member; fewest : the number of members from
    which on a symbol is a pool.
    """
    is_alone = np.bincount(symbols) < fewest
    alone = np.full(len(is_alone), UNKNOWN)
    alone[symbols] = of_member
    alone[~is_alone] = UNKNOWN
    at = np.flatnonzero(~is_alone[symbols])
    pools, positions, shares = _shares(column, of_member[at], symbols[at], weights[at])
    in_pool = [*column.in_pool, None]
    wanted = {column.values[position] for position in np.unique(alone[is_alone])}
    wanted |= {in_pool[position] for position in np.unique(positions)}
    in_order = dict.fromkeys([*column.values, *column.in_pool])
    values = [value for value in in_order if value is not None and value in wanted]
    values += [None] * (None in wanted)  # a missing value is last
    code_of = {value: code for code, value in enumerate(values)}
    single = np.append([code_of.get(v, UNKNOWN) for v in column.values], UNKNOWN)[alone]
    codes = np.array([code_of.get(v, UNKNOWN) for v in in_pool])[positions]
    shown = {
        pool: (codes[start:stop], shares[start:stop].cumsum())
        for pool, start, stop in zip(*_runs(pools), strict=True)
    }
    return ShownColumn(values, single, shown)


def _runs(ordered: IntArray) -> tuple[list[int], list[int], list[int]]:
    """Return each of some numbers in ascending order, where it starts, and where it stops."""
    found, starts, sizes = np.unique(ordered, return_index=True, return_counts=True)
    return found.tolist(), starts.tolist(), (starts + sizes).tolist()


def _shares(
    column: ColumnAlphabet, of_member: IntArray, symbols: IntArray, weights: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return (symbols, positions, weights): the values that pools show, by symbol and position.

    The position after the last value of a column is that of a missing value.
    """
    n = len(column.values) + 1
    packed, member_of = np.unique(symbols.astype(np.intp) * n + of_member, return_inverse=True)
    share = np.bincount(member_of, weights).astype(float)
    is_shown = (share != 0) & ~column.is_rare[packed % n]
    commonest = int(np.argmax(column.weights))
    instead = n - 1 if column.is_rare[commonest] else commonest
    bare = np.setdiff1d(packed // n, packed[is_shown] // n)
    packed = np.append(packed[is_shown], bare * n + instead)
    share = np.append(share[is_shown], np.ones(len(bare)))
    order = np.argsort(packed)
    return packed[order] // n, packed[order] % n, share[order]
