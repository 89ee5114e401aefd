"""The alphabet of several columns taken jointly: encode rows, and show symbols as values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pandas as pd

from .._typing import BoolArray, FloatArray, IntArray
from ..codes import UNKNOWN, count, look_up, n_cells, narrow, pack, pack_few, take, unpack
from .columns import POOLED, ColumnAlphabet, learn_values, pool

# Combinations of columns are looked up in a table up to this size, and searched for beyond.
_MOST_LOOK_UPS = 1 << 22

# A table of this size costs nothing, however few the rows.
_FEW_LOOK_UPS = 1 << 12

# Beyond this many possible combinations a row cannot be packed into one integer.
_MOST_PACKED = 2.0**62


# Those of columns, in their order; and the keyword arguments of `learn_values` for each of them.
Names: TypeAlias = Sequence[Hashable]
Options: TypeAlias = Sequence[dict[str, Any]]


class Alphabet(ABC):
    """The symbols of several columns taken jointly.

    columns : one `ColumnAlphabet` each.
    """

    columns: tuple[ColumnAlphabet, ...]

    #: Whether symbols are kinds of rows, which no combination of values names.
    of_cells: ClassVar[bool] = False
    #: The value of the columns beside X that each symbol belongs to; None without any.
    strata: IntArray | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Lookup tables, and what is shown, are worked out again where they are used.
        names = (field.name for field in fields(self))  # type: ignore[arg-type]  # each kind has
        return {name: getattr(self, name) for name in names}

    @property
    def x_alphabet(self) -> Alphabet:
        """The symbols of X alone, without columns beside it."""
        return self

    @property
    def read_columns(self) -> tuple[ColumnAlphabet, ...]:
        """The columns that are encoded: those of X, then those beside it."""
        return self.columns

    @property
    def x_symbols(self) -> IntArray:
        """The symbol of X that each symbol belongs to."""
        return np.arange(self.n_symbols)

    @property
    @abstractmethod
    def n_symbols(self) -> int:
        """How many symbols there are."""

    @property
    @abstractmethod
    def labels(self) -> list[Any]:
        """One label for each symbol."""

    @property
    @abstractmethod
    def is_pool(self) -> BoolArray:
        """Whether each symbol has several members: their columns are then shown separately."""

    @property
    @abstractmethod
    def shown(self) -> list[ShownColumn]:
        """What each column shows of the symbols."""

    @abstractmethod
    def encode(
        self, series: Sequence[pd.Series], labels: Names, folds: IntArray | None = None
    ) -> tuple[IntArray, dict[Hashable, int]]:
        """Return the symbol of each row, and how many rows were unknown in each column.

        series, labels : one for each column; folds : of the rows, for cells by scores where a
        column tells people apart. Unknown combinations of known values are counted under the last
        key, None.
        """

    @abstractmethod
    def held(self, position: int) -> tuple[IntArray, IntArray, FloatArray]:
        """Return which values of a column occur with which symbols, and how often.

        Values are positions in the list of the column.
        """

    @abstractmethod
    def matches(self) -> FloatArray:
        """Return how often a row of each symbol, shown as each, keeps its values or bins.

        NaN where that is not known.
        """

    @abstractmethod
    def rules(self) -> list[Any]:
        """Return, as JSON, what makes symbols of the columns one symbol: it must never change."""

    @abstractmethod
    def can_be_read(self, symbols: IntArray) -> bool:
        """Whether what is shown for these symbols tells which of them it is."""

    def decode(
        self, symbol_of_output: IntArray, outputs: IntArray, uniform: Uniform
    ) -> list[tuple[list[Any], IntArray]]:
        """Return, for each column, a list of values and an index into it for each row.

        symbol_of_output : the symbol that each output stands for; uniform : draws for those that
        are pools.
        """
        pooled = self.is_pool[symbol_of_output]
        if not pooled.any():
            return [
                ([c.values[i] for i in c.single[symbol_of_output]], outputs) for c in self.shown
            ]
        rows = np.flatnonzero(look_up(pooled, outputs))
        symbols = look_up(narrow(symbol_of_output), outputs)
        return [
            (column.values, column.codes(symbols, rows, uniform(rows, position)))
            for position, column in enumerate(self.shown)
        ]

    def column_codes(self) -> list[IntArray | None]:
        """Return the symbol of each column that each symbol stands for; None where it has none.

        One list entry for each of `read_columns`. A pool of combinations that differ in a column
        has a code of its own there.
        """
        return [None] * len(self.read_columns)

    def decode_beside(
        self, symbol_of_output: IntArray, outputs: IntArray
    ) -> list[tuple[list[Any], IntArray]]:
        """Return, for each column beside X, a list of values and an index into it for each row."""
        return []

    def tables(self) -> list[FloatArray]:
        """Return how often each value of each column (rows) occurs with each symbol (columns)."""
        found = []
        for position, column in enumerate(self.columns):
            values, symbols, weights = self.held(position)
            table = np.zeros((len(column.values), self.n_symbols))
            np.add.at(table, (values, symbols), weights)
            found.append(table)
        return found

    def shown_shares(self, position: int) -> FloatArray:
        """Return how often each symbol is shown as each value of a column, or last, as none."""
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
    """Combinations of values, or of bins, as they were seen; rare ones may be pooled.

    combinations : (n, n_columns), the symbols of the columns
    that occur together, in lexicographic order; symbols : which symbol each combination is part
    of. For decoding, members : (m, n_columns), the values that occur together, as positions in
    each column's list; member_of : which combination each is part of; weights : how often each
    was seen.
    """

    columns: tuple[ColumnAlphabet, ...]
    combinations: IntArray
    symbols: IntArray
    members: IntArray
    member_of: IntArray
    weights: FloatArray

    @cached_property
    def n_symbols(self) -> int:
        return int(self.symbols.max()) + 1

    @cached_property
    def labels(self) -> list[Any]:  # of the column, or a tuple of labels, or `POOLED`
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

    def encode(
        self, series: Sequence[pd.Series], labels: Names, folds: IntArray | None = None
    ) -> tuple[IntArray, dict[Hashable, int]]:
        columns = self.columns
        if len(columns) == 1:  # with the symbols of the alphabet
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
        """Return the symbol of each row from the symbols of its columns."""
        if n_cells(self._sizes) >= _MOST_PACKED:
            index = pd.MultiIndex.from_arrays(list(self.combinations.T))
            found = index.get_indexer(pd.MultiIndex.from_arrays(codes))
            return np.append(self.symbols, UNKNOWN).take(found)
        packed = pack(codes, self._sizes)
        if n_cells(self._sizes) <= _MOST_LOOK_UPS:
            return look_up(self._table, packed)
        found = self._index.get_indexer(pd.Index(packed))
        return np.append(self.symbols, UNKNOWN).take(found)

    @cached_property
    def _table(self) -> IntArray:
        """The symbol of each packed combination, -1 for those that were not seen."""
        table = np.full(int(n_cells(self._sizes)), UNKNOWN)
        table[pack_few(self.combinations, self._sizes)] = self.symbols
        return narrow(table)

    @cached_property
    def _index(self) -> pd.Index:
        """The packed combinations that were seen."""
        return pd.Index(pack_few(self.combinations, self._sizes))

    def pooled(self, n_symbols: int) -> tuple[ValueAlphabet, IntArray]:
        """Return an alphabet in which the rarest symbols share one, and its codes of the old."""
        counts = np.bincount(self.symbols[self.member_of], weights=self.weights)
        symbols = pool(counts, None, n_symbols)
        return replace(self, symbols=symbols[self.symbols]), symbols

    def column_codes(self) -> list[IntArray | None]:
        own = np.arange(self.n_symbols)
        found: list[IntArray | None] = []
        for codes, n in zip(self.combinations.T, self._sizes, strict=True):
            least, most = np.full(self.n_symbols, n), np.full(self.n_symbols, -1)
            np.minimum.at(least, self.symbols, codes)
            np.maximum.at(most, self.symbols, codes)
            found.append(np.where(least == most, least, n + own))
        return found

    def rules(self) -> list[Any]:
        return [self.combinations.tolist(), self.symbols.tolist()]

    def held(self, position: int) -> tuple[IntArray, IntArray, FloatArray]:
        return self.members[:, position], self.symbols[self.member_of], self.weights

    def matches(self) -> FloatArray:
        found, symbols = np.diag(np.where(self.is_pool, 0.0, 1.0)), self.symbols[self.member_of]
        of_symbol = np.bincount(symbols, self.weights)
        shares = self.weights / np.where(of_symbol > 0, of_symbol, 1.0)[symbols]
        by_column = [self.shown_shares(position) for position in range(len(self.columns))]
        for several in np.flatnonzero(self.is_pool):
            kept = np.ones(len(symbols))
            for by_symbol, own in zip(by_column, self.members.T, strict=True):
                kept *= by_symbol[several, own]
            found[:, several] = np.bincount(symbols, shares * kept, self.n_symbols)
        return found

    @cached_property
    def shown(self) -> list[ShownColumn]:
        groups = list(_grouped(self.symbols[self.member_of]))
        return [
            _shown_column(column, of_member, groups, self.weights, fewest=2)
            for column, of_member in zip(self.columns, self.members.T, strict=True)
        ]

    def can_be_read(self, symbols: IntArray) -> bool:
        # Not if columns of a pool are drawn separately, or if a common value stands for the rare
        # ones of a pool.
        for symbol in symbols[self.is_pool[symbols]].tolist():
            shown = [[c.values[i] for i in np.unique(c.pools[symbol][0])] for c in self.shown]
            if sum(len(values) > 1 for values in shown) > 1:
                return False
            n = max(map(len, shown))
            rows = [pd.Series(v * (n if len(v) == 1 else 1), dtype=object) for v in shown]
            if (self.encode(rows, [""] * len(rows))[0] != symbol).any():
                return False
        return True

    @cached_property
    def is_pool(self) -> BoolArray:
        return count(self.symbols[self.member_of], self.n_symbols)[:-1] > 1


def learn_alphabet(
    series: Sequence[pd.Series], labels: Names, weights: FloatArray | None, options: Options
) -> tuple[ValueAlphabet, IntArray]:
    """Return the alphabet of columns taken jointly, and the symbol of each row.

    weights : those of the rows, or None; options : the keyword arguments of `learn_values` for
    each column.
    """
    if len(series) == 1:
        column, rows, distinct = learn_values(series[0], weights, labels[0], **options[0])
        symbols = take(column.of_values(distinct, labels[0]), rows)
        own, occurs = np.arange(column.n_symbols), np.flatnonzero(column.symbols >= 0)
        member_of, counts = column.symbols[occurs], column.weights[occurs]
        return ValueAlphabet(
            (column,), own[:, None], own, occurs[:, None], member_of, counts
        ), symbols
    columns, codes = learn_positions(series, labels, weights, options)
    # Rows are combined once, by value; among those combinations we find which share symbols.
    members, member = combine(codes, [len(column.values) for column in columns])
    parts = [column.symbols[of] for column, of in zip(columns, members.T, strict=True)]
    combinations, member_of = combine(parts, [column.n_symbols for column in columns])
    counts = count(member, len(members), weights)[:-1].astype(float)
    own = np.arange(len(combinations))
    alphabet = ValueAlphabet(columns, combinations, own, members, member_of, counts)
    return alphabet, take(np.append(member_of, UNKNOWN), member)


def learn_positions(
    series: Sequence[pd.Series], labels: Names, weights: FloatArray | None, options: Options
) -> tuple[tuple[ColumnAlphabet, ...], list[IntArray]]:
    """Return the alphabet of each column, and for each of its rows the position of its value."""
    columns, positions = [], []
    for column_, label, option in zip(series, labels, options, strict=True):
        column, codes, distinct = learn_values(column_, weights, label, **option)
        columns.append(column)
        positions.append(take(column.positions_of(distinct, label), codes))
    return tuple(columns), positions


def combine(codes: Sequence[IntArray], sizes: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Return the distinct rows of several columns of codes, and which one each row is."""
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


# What symbols are shown as: values of each column.
#
# A symbol with one member is shown as its values. A pooled one stands for many combinations, each
# of which may be the row of one person: so every column is drawn separately from the values that
# the members have there, in proportion to how often they have them. Values that fewer than five
# rows of the table have are not shown for other rows: a commoner value among the members takes
# their place, or the commonest value of the column, or none if all are that rare.


# Draws from [0, 1) for some rows; the second argument is the column, as each has its own draws.
Uniform: TypeAlias = Callable[[IntArray, int], FloatArray]


@dataclass(frozen=True, eq=False)
class ShownColumn:
    """What one column shows.

    values : those that it may show, in the order of the alphabet; single : which of them each
    symbol with one member shows, -1 for a pool; pools : for each pool, which of them it may show,
    and their cumulative weights.
    """

    values: list[Any]
    single: IntArray
    pools: dict[int, tuple[IntArray, FloatArray]]

    def codes(self, symbols: IntArray, rows: IntArray, uniform: FloatArray) -> IntArray:
        """Return codes of `values` for rows of symbols.

        rows : those that show a pool; uniform : one number for each of them.
        """
        codes = look_up(narrow(self.single), symbols).astype(
            narrow(np.array(len(self.values))).dtype
        )
        for symbol, own in _grouped(symbols[rows]):
            shown, cumulated = self.pools[symbol]
            drawn = np.searchsorted(cumulated, uniform[own] * cumulated[-1], side="right")
            codes[rows[own]] = shown[drawn.clip(max=len(shown) - 1)]
        return codes

    def by_symbol(self) -> FloatArray:
        """Return how often each symbol is shown as each of `values`."""
        by_symbol = np.zeros((len(self.single), len(self.values)))
        alone = np.flatnonzero(self.single != UNKNOWN)
        by_symbol[alone, self.single[alone]] = 1.0
        for symbol, (codes, cumulated) in self.pools.items():
            by_symbol[symbol, codes] = np.diff(cumulated, prepend=0.0) / cumulated[-1]
        return by_symbol


def shown_pools(
    column: ColumnAlphabet, of_member: IntArray, symbols: IntArray, weights: FloatArray
) -> ShownColumn:
    """Return what a column shows if every symbol is a pool, however few values it has."""
    return _shown_column(column, of_member, list(_grouped(symbols)), weights, fewest=1)


def _grouped(symbols: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Yield each symbol that occurs, and where it occurs."""
    order = np.argsort(symbols, kind="stable")
    found, starts = np.unique(symbols[order], return_index=True)
    ends = np.append(starts[1:], len(order))
    return (
        (symbol, order[i:j]) for symbol, i, j in zip(found.tolist(), starts, ends, strict=False)
    )


def _shown_column(
    column: ColumnAlphabet,
    of_member: IntArray,
    groups: list[tuple[int, IntArray]],
    weights: FloatArray,
    fewest: int,
) -> ShownColumn:
    """Return what a column shows.

    of_member, weights : one entry for each member; groups : the members of each symbol; fewest :
    members that make a pool.
    """
    alone = {
        symbol: column.values[of_member[own[0]]] for symbol, own in groups if len(own) < fewest
    }
    shares = {
        symbol: _shares(column, of_member[own], weights[own])
        for symbol, own in groups
        if len(own) >= fewest
    }
    wanted = {*alone.values(), *(value for shown, _ in shares.values() for value in shown)}
    in_order = dict.fromkeys([*column.values, *column.in_pool])
    values = [value for value in in_order if value is not None and value in wanted]
    values += [None] * (None in wanted)  # a missing one is last
    code_of = {value: code for code, value in enumerate(values)}
    single = np.full(len(groups), UNKNOWN)
    single[list(alone)] = [code_of[value] for value in alone.values()]
    pools = {
        symbol: (np.array([code_of[value] for value in shown]), np.cumsum(share))
        for symbol, (shown, share) in shares.items()
    }
    return ShownColumn(values, single, pools)


def _shares(
    column: ColumnAlphabet, positions: IntArray, weights: FloatArray
) -> tuple[list[Any], FloatArray]:
    """Return what a pool shows, and how often; positions : those of its members in `values`."""
    share = np.bincount(positions, weights, minlength=len(column.values)).astype(float)
    share[column.is_rare] = 0.0
    if share.any():
        common = np.flatnonzero(share)
        return [column.in_pool[position] for position in common], share[common]
    commonest = int(np.argmax(column.weights))
    return [None if column.is_rare[commonest] else column.in_pool[commonest]], np.ones(1)
