"""The alphabet of several columns taken jointly."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from .columns import POOLED, UNKNOWN, learn_column, pool, take

# Combinations of columns are looked up in a table up to this size, and searched for beyond.
_MOST_LOOK_UPS = 1 << 22

# Beyond this many possible combinations a row cannot be packed into one integer.
_MOST_PACKED = 2.0**62


@dataclass(frozen=True, eq=False)
class Alphabet:
    """The symbols of several columns taken jointly.

    columns : a `ColumnAlphabet` each; combinations : (n, n_columns), the symbols of the columns
    that occur together, in lexicographic order; symbols : which symbol each combination is part
    of; weights : how often each was seen.
    """

    columns: tuple
    combinations: np.ndarray
    symbols: np.ndarray
    weights: np.ndarray

    @cached_property
    def n_symbols(self):
        """How many symbols there are, after pooling."""
        return int(self.symbols.max()) + 1

    @cached_property
    def labels(self):
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
    def _sizes(self):
        return tuple(column.n_symbols for column in self.columns)

    def _pack_combinations(self):
        return np.ravel_multi_index(self.combinations.T, self._sizes)

    def encode(self, series, labels):
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
        symbols = self._find(codes)
        known = np.logical_and.reduce([code != UNKNOWN for code in codes])
        if combinations := np.count_nonzero(known & (symbols == UNKNOWN)):
            unknown[None] = int(combinations)
        return symbols, unknown

    def _only_column(self):
        """Return the column of an alphabet that has one, with the symbols of the alphabet."""
        (column,) = self.columns
        return replace(column, symbols=np.append(self.symbols, UNKNOWN).take(column.symbols))

    def _find(self, codes):
        """Return the symbol of each row from the symbols of its columns."""
        known = np.logical_and.reduce([code != UNKNOWN for code in codes])
        n_possible = np.prod([float(size) for size in self._sizes])
        if n_possible >= _MOST_PACKED:
            index = pd.MultiIndex.from_arrays(self.combinations.T)
            found = index.get_indexer(pd.MultiIndex.from_arrays(codes))
            return np.append(self.symbols, UNKNOWN).take(found)
        packed = _pack(codes, self._sizes)
        if n_possible <= _MOST_LOOK_UPS:
            table = np.full(int(n_possible), UNKNOWN)
            table[self._pack_combinations()] = self.symbols
            return np.where(known, table.take(packed, mode="clip"), UNKNOWN)
        combinations = self._pack_combinations()
        found = np.searchsorted(combinations, packed).clip(max=len(combinations) - 1)
        known &= combinations[found] == packed
        return np.where(known, self.symbols[found], UNKNOWN)

    def pooled(self, n_symbols):
        """Return an alphabet in which the rarest symbols share one, and its codes of the old."""
        symbols = pool(np.bincount(self.symbols, weights=self.weights), None, n_symbols)
        return replace(self, symbols=symbols[self.symbols]), symbols

    def decode(self, names, outputs, uniform):
        """Return, for each column, a list of values and for each row an index into it.

        names : the symbol that each output stands for. A pooled symbol stands for one of its
        members, drawn as often as it was seen. uniform : draws n numbers from [0, 1).
        """
        combination = _first_members(self.symbols)[names]
        pooled = _pools(self.symbols) & set(names.tolist())
        rows = np.flatnonzero(np.isin(outputs, np.flatnonzero(np.isin(names, list(pooled)))))
        drawn = _draw_members(self.symbols, self.weights, names[outputs[rows]], uniform)
        decoded = []
        for column, of_combination in zip(self.columns, self.combinations.T, strict=True):
            member = _first_members(column.symbols)
            of_output = member[of_combination[combination]]
            if not (pooled or _pools(column.symbols)):
                decoded.append(([column.values[i] for i in of_output], outputs))
                continue
            codes = take(np.append(of_output, UNKNOWN), outputs)
            codes = codes.astype(np.intp)
            codes[rows] = member[of_combination[drawn]]
            for pool_ in _pools(column.symbols):
                inside = np.flatnonzero(codes == member[pool_])
                symbols = np.full(len(inside), pool_)
                codes[inside] = _draw_members(column.symbols, column.weights, symbols, uniform)
            decoded.append((list(column.values), codes))
        return decoded


def _first_members(symbol_of):
    """Return the first member of each symbol."""
    symbols, first = np.unique(symbol_of, return_index=True)
    return first[symbols >= 0]


def _pools(symbol_of):
    """Return the symbols that have several members."""
    return set(np.flatnonzero(np.bincount(symbol_of[symbol_of >= 0]) > 1).tolist())


def _draw_members(symbol_of, weights, symbols, uniform):
    """Return a member of each of `symbols`, drawn by weight."""
    members = np.zeros(len(symbols), dtype=np.intp)
    for symbol in np.unique(symbols):
        rows, own = np.flatnonzero(symbols == symbol), np.flatnonzero(symbol_of == symbol)
        cumulated = np.cumsum(weights[own])
        drawn = np.searchsorted(cumulated, uniform(len(rows)) * cumulated[-1], side="right")
        members[rows] = own[drawn.clip(max=len(own) - 1)]
    return members


def learn_alphabet(series, labels, weights, options):
    """Return the `Alphabet` of columns taken jointly, and the symbol of each row.

    options : the keyword arguments of `learn_column` for each column.
    """
    learned = [
        learn_column(column, weights, label, **option)
        for column, label, option in zip(series, labels, options, strict=True)
    ]
    columns = tuple(alphabet for alphabet, _ in learned)
    if len(columns) == 1:
        (column, codes) = learned[0]
        occurs, own = column.symbols >= 0, np.arange(column.n_symbols)
        counts = np.bincount(column.symbols[occurs], weights=column.weights[occurs])
        return Alphabet(columns, own[:, None], own, counts), codes
    combinations, symbols = _combine([codes for _, codes in learned], columns)
    counts = np.bincount(symbols, weights=weights, minlength=len(combinations)).astype(float)
    return Alphabet(columns, combinations, np.arange(len(combinations)), counts), symbols


def _combine(codes, columns):
    """Return the distinct rows of several columns of codes, and which one each row is."""
    sizes = [column.n_symbols for column in columns]
    if np.prod([float(size) for size in sizes]) >= _MOST_PACKED:
        rows = pd.DataFrame(dict(enumerate(codes)))
        symbols = rows.groupby(list(rows), sort=True).ngroup().to_numpy()
        first = np.unique(symbols, return_index=True)[1]
        return rows.to_numpy()[first], symbols
    symbols, uniques = pd.factorize(_pack(codes, sizes), sort=True)
    return np.stack(np.unravel_index(uniques, sizes), axis=1), symbols


def _pack(codes, sizes):
    """Return one number for each row of codes."""
    packed = np.zeros(len(codes[0]), dtype=np.int64)
    for code, size in zip(codes, sizes, strict=True):
        packed *= size
        packed += code
    return packed
