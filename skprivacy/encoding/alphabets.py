"""The alphabet of several columns taken jointly."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from .._typing import BoolArray, FloatArray, IntArray
from .columns import POOLED, UNKNOWN, ColumnAlphabet, learn_column, pool

# Combinations of columns are looked up in a table up to this size, and searched for beyond.
_MOST_LOOK_UPS = 1 << 22

# Beyond this many possible combinations a row cannot be packed into one integer.
_MOST_PACKED = 2.0**62


@dataclass(frozen=True, eq=False)
class Alphabet:
    """The symbols of several columns taken jointly.

    columns : a `ColumnAlphabet` each; combinations : (n, n_columns), the symbols of the columns
    that occur together, in lexicographic order; symbols : which symbol each combination is part
    of. For the way back, members : (m, n_columns), the values that occur together, as positions
    in each column's list; member_of : which combination each is part of; weights : how often
    each was seen.
    """

    columns: tuple[ColumnAlphabet, ...]
    combinations: IntArray
    symbols: IntArray
    members: IntArray
    member_of: IntArray
    weights: FloatArray

    @cached_property
    def n_symbols(self) -> int:
        """How many symbols there are, after pooling."""
        return int(self.symbols.max()) + 1

    @cached_property
    def labels(self) -> list[Any]:
        """One label for each symbol: of its column, or a tuple of labels, or `POOLED`."""
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

    def _pack_combinations(self) -> IntArray:
        return np.ravel_multi_index(tuple(self.combinations.T), self._sizes)

    def encode(
        self, series: Sequence[pd.Series], labels: Sequence[Hashable]
    ) -> tuple[IntArray, dict[Hashable, int]]:
        """Return the symbol of each row, and how many rows were unknown in each column.

        series, labels : one each for every column. Unknown combinations of known values are
        counted under the last key, None.
        """
        columns = [self._only_column()] if len(self.columns) == 1 else self.columns
        codes = [c.encode(s, n) for c, s, n in zip(columns, series, labels, strict=True)]
        unknown = {
            label: int(count)
            for label, code in zip(labels, codes, strict=True)
            if (count := np.count_nonzero(code == UNKNOWN))
        }
        if len(codes) == 1:
            return codes[0], unknown
        known = np.logical_and.reduce([code != UNKNOWN for code in codes])
        symbols = self._find(codes, known)
        if combinations := np.count_nonzero(known & (symbols == UNKNOWN)):
            unknown[None] = int(combinations)
        return symbols, unknown

    def _only_column(self) -> ColumnAlphabet:
        """Return the column of an alphabet that has one, with the symbols of the alphabet."""
        (column,) = self.columns
        return replace(column, symbols=np.append(self.symbols, UNKNOWN).take(column.symbols))

    def _find(self, codes: list[IntArray], known: BoolArray) -> IntArray:
        """Return the symbol of each row from the symbols of its columns, if all are known."""
        n_possible = np.prod([float(size) for size in self._sizes])
        if n_possible >= _MOST_PACKED:
            index = pd.MultiIndex.from_arrays(list(self.combinations.T))
            found = index.get_indexer(pd.MultiIndex.from_arrays(codes))
            return np.append(self.symbols, UNKNOWN).take(found)
        packed = _pack(codes, self._sizes)
        if n_possible <= _MOST_LOOK_UPS:
            table = np.full(int(n_possible), UNKNOWN)
            table[self._pack_combinations()] = self.symbols
            return np.where(known, table.take(packed, mode="clip"), UNKNOWN)
        combinations = self._pack_combinations()
        found = np.searchsorted(combinations, packed).clip(max=len(combinations) - 1)
        seen = combinations[found] == packed
        return np.where(known & seen, self.symbols[found], UNKNOWN)

    def pooled(self, n_symbols: int) -> tuple[Alphabet, IntArray]:
        """Return an alphabet in which the rarest symbols share one, and its codes of the old."""
        counts = np.bincount(self.symbols[self.member_of], weights=self.weights)
        symbols = pool(counts, None, n_symbols)
        return replace(self, symbols=symbols[self.symbols]), symbols

    def decode(
        self, names: IntArray, outputs: IntArray, uniform: Callable[[IntArray], FloatArray]
    ) -> list[tuple[list[Any], IntArray]]:
        """Return, for each column, a list of values and for each row an index into it.

        names : the symbol that each output stands for. A pooled symbol stands for one of its
        members, drawn as often as it was seen. uniform : draws from [0, 1) for some rows.
        """
        symbol_of = self.symbols[self.member_of]
        member = _first_members(symbol_of)[names]
        pooled = np.bincount(symbol_of)[names] > 1
        if not pooled.any():
            return [
                ([column.values[i] for i in of_member[member]], outputs)
                for column, of_member in zip(self.columns, self.members.T, strict=True)
            ]
        drawn = member.take(outputs)
        rows = np.flatnonzero(pooled.take(outputs))
        symbols = names[outputs[rows]]
        drawn[rows] = _draw_members(symbol_of, self.weights, symbols, uniform(rows))
        return [
            (list(column.values), of_member.take(drawn))
            for column, of_member in zip(self.columns, self.members.T, strict=True)
        ]


def _first_members(symbol_of: IntArray) -> IntArray:
    """Return the first member of each symbol."""
    return np.unique(symbol_of, return_index=True)[1]


def _draw_members(
    symbol_of: IntArray,
    weights: FloatArray,
    symbols: IntArray,
    uniform: FloatArray,
) -> IntArray:
    """Return a member of each of `symbols`, drawn by weight; `uniform` has a number for each."""
    members = np.zeros(len(symbols), dtype=np.intp)
    for symbol in np.unique(symbols):
        rows, own = np.flatnonzero(symbols == symbol), np.flatnonzero(symbol_of == symbol)
        cumulated = np.cumsum(weights[own])
        drawn = np.searchsorted(cumulated, uniform[rows] * cumulated[-1], side="right")
        members[rows] = own[drawn.clip(max=len(own) - 1)]
    return members


def learn_alphabet(
    series: Sequence[pd.Series],
    labels: Sequence[Hashable],
    weights: FloatArray | None,
    options: Sequence[dict[str, Any]],
) -> tuple[Alphabet, IntArray]:
    """Return the `Alphabet` of columns taken jointly, and the symbol of each row.

    options : the keyword arguments of `learn_column` for each column.
    """
    learned = [
        learn_column(column, weights, label, **option)
        for column, label, option in zip(series, labels, options, strict=True)
    ]
    columns = tuple(alphabet for alphabet, _ in learned)
    if len(columns) == 1:
        (column, symbols) = learned[0]
        own, occurs = np.arange(column.n_symbols), np.flatnonzero(column.symbols >= 0)
        member_of, counts = column.symbols[occurs], column.weights[occurs]
        return Alphabet(columns, own[:, None], own, occurs[:, None], member_of, counts), symbols
    combinations, symbols = _combine([codes for _, codes in learned], columns)
    # What is pooled, and what is released in its place, differs only for columns with pools.
    plain = [column.without_pools() for column in columns]
    codes = [
        codes if column.n_symbols == part.n_symbols else part.encode(column_, label)
        for (column, codes), part, column_, label in zip(
            learned, plain, series, labels, strict=True
        )
    ]
    members, member = _combine(codes, plain)
    member_of = np.zeros(len(members), dtype=np.intp)
    member_of[member] = symbols
    counts = np.bincount(member, weights=weights, minlength=len(members)).astype(float)
    positions = np.stack(
        [part.positions[of] for part, of in zip(plain, members.T, strict=True)], axis=1
    )
    own = np.arange(len(combinations))
    return Alphabet(columns, combinations, own, positions, member_of, counts), symbols


def _combine(
    codes: list[IntArray], columns: Sequence[ColumnAlphabet]
) -> tuple[IntArray, IntArray]:
    """Return the distinct rows of several columns of codes, and which one each row is."""
    sizes = [column.n_symbols for column in columns]
    if np.prod([float(size) for size in sizes]) >= _MOST_PACKED:
        rows = pd.DataFrame(dict(enumerate(codes)))
        symbols = rows.groupby(list(rows), sort=True).ngroup().to_numpy()
        first = np.unique(symbols, return_index=True)[1]
        return rows.to_numpy()[first], symbols
    symbols, uniques = pd.factorize(_pack(codes, sizes), sort=True)
    return np.stack(np.unravel_index(uniques, sizes), axis=1), symbols


def _pack(codes: list[IntArray], sizes: Sequence[int]) -> IntArray:
    """Return one number for each row of codes."""
    packed = np.zeros(len(codes[0]), dtype=np.int64)
    for code, size in zip(codes, sizes, strict=True):
        packed *= size
        packed += code
    return packed
