"""From columns to symbols and back: categories, bins, pools, and combinations of columns.

A raw value of a column is a category or falls into a bin; rare ones may be pooled. Columns taken
jointly have one symbol for each combination that was seen. Symbols are numbered from 0; -1 stands
for a value or combination that was not seen when the alphabet was learned.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import pandas as pd

UNKNOWN = -1
POOLED = "(pooled)"
DEFAULT_BINS = 10

# Combinations of columns are looked up in a table up to this size, and searched for beyond.
_MOST_LOOK_UPS = 1 << 22

# Beyond this many possible combinations a row cannot be packed into one integer.
_MOST_PACKED = 2.0**62


@dataclass(frozen=True, eq=False)
class ColumnAlphabet:
    """The symbols of one column.

    values : one raw value for each category or bin (the median of a bin); a missing value is None;
    edges : the inner edges of the bins, as numbers, or None; bounds : outside of these a number is
    unknown; labels : one for each category or bin; symbols : which symbol each is part of;
    weights : how often each was seen.
    """

    values: tuple
    edges: np.ndarray | None
    bounds: tuple
    labels: tuple
    symbols: np.ndarray
    weights: np.ndarray

    @cached_property
    def n_symbols(self):
        """How many symbols there are, after pooling."""
        return int(self.symbols.max()) + 1

    @cached_property
    def symbol_labels(self):
        """One label for each symbol; pooled ones share `POOLED`."""
        pooled = np.bincount(self.symbols, minlength=self.n_symbols) > 1
        of_symbol = dict(zip(self.symbols.tolist(), self.labels, strict=True))
        return [POOLED if pooled[s] else of_symbol[s] for s in range(self.n_symbols)]

    @cached_property
    def _missing(self):
        return self.values.index(None) if None in self.values else UNKNOWN

    def encode(self, series, label):
        """Return the symbol of each row of a pandas Series."""
        if self.edges is not None:
            numbers = as_numbers(series, label)
            raw = np.searchsorted(self.edges, numbers, side="left")
            raw[(numbers < self.bounds[0]) | (numbers > self.bounds[1])] = UNKNOWN
            raw[np.isnan(numbers)] = self._missing
            return _take(self.symbols, raw)
        codes, seen = factorize(series, label)
        known = [value for value in self.values if value is not None]
        of_seen = pd.Index(known, dtype=object).get_indexer(pd.Index(seen, dtype=object))
        return _take(_take(self.symbols, np.append(of_seen, self._missing)), codes, exact=True)


def _take(table, index, exact=False):
    """Return ``table[index]``; index -1 is the last entry if `exact`, else unknown."""
    if not exact:
        table = np.append(table, UNKNOWN)
    return table.astype(np.min_scalar_type(-len(table))).take(index)


def factorize(series, label):
    """Return codes, -1 for missing, and the list of distinct values as Python objects."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        return series.cat.codes.to_numpy(), series.cat.categories.tolist()
    try:
        codes, uniques = pd.factorize(series)
    except TypeError as error:
        raise TypeError(
            f"The column {label!r} has cells that cannot be compared ({error}): convert it to "
            f"strings or numbers first."
        ) from error
    return codes, uniques.tolist()


def family_of(values, label):
    """Return what kind of values a column has: "number", "time", or "other"."""
    families = {_family(value) for value in values}
    if len(families) > 1:
        raise TypeError(
            f"The column {label!r} mixes {' and '.join(sorted(families))} values: convert it to "
            f"one type first, for instance with .astype(str)."
        )
    return families.pop() if families else "str"


def _family(value):
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, pd.Timestamp | pd.Timedelta):
        return "time"
    return type(value).__name__


def as_numbers(series, label):
    """Return a column of numbers or times as floats, NaN where missing."""
    if series.dtype.kind in "mM":
        times = pd.Series(series).dt.as_unit("ns")
        return np.where(times.isna(), np.nan, times.astype("int64").to_numpy())
    try:
        if isinstance(series.dtype, pd.CategoricalDtype) or series.dtype == object:
            return _objects_as_numbers(series)
        return series.to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise TypeError(f"The column {label!r} must hold numbers or times: {error}.") from error


def _objects_as_numbers(series):
    inferred = pd.Series(series.tolist()).infer_objects()
    if inferred.dtype.kind in "mM":
        return as_numbers(inferred, series.name)
    return pd.to_numeric(inferred).to_numpy(dtype=float, na_value=np.nan)


def learn_column(series, weights, label, *, n_bins=DEFAULT_BINS, pooling=(None, None)):
    """Return the `ColumnAlphabet` of a column and the symbol of each row."""
    codes, values = factorize(series, label)
    family = "category" if _is_category(series) else family_of(values, label)
    counts = np.bincount(codes + 1, weights=weights, minlength=len(values) + 1)
    missing = counts[0] > 0 or (codes < 0).any()
    seen = np.bincount(codes + 1, minlength=len(values) + 1)[1:] > 0
    numbers = None
    if family in ("number", "time"):
        numbers = as_numbers(pd.Series(values), label)
        _check_finite(numbers, label)
    if numbers is not None and seen.any() and _to_be_cut(n_bins, seen.sum()):
        parts = _bins(values, numbers, counts[1:], n_bins, label)
        seen_bins = np.bincount(np.searchsorted(parts[1], numbers), minlength=len(parts[0])) > 0
    else:
        order = np.flatnonzero(seen)
        if family != "category":
            order = np.array(sorted(order, key=lambda i: values[i]), dtype=np.intp)
        kept = [values[i] for i in order]
        parts = kept, None, (-np.inf, np.inf), kept, counts[1:][order]
    values, edges, bounds, labels, counts = parts
    if missing:
        total = weights[codes < 0].sum() if weights is not None else (codes < 0).sum()
        values, labels, counts = [*values, None], [*labels, None], np.append(counts, total)
    symbols = np.full(len(counts), UNKNOWN)
    occurs = np.append(seen_bins, [True] * missing) if edges is not None else slice(None)
    symbols[occurs] = _pool(counts[occurs], *pooling)
    alphabet = ColumnAlphabet(tuple(values), edges, bounds, tuple(labels), symbols, counts)
    return alphabet, alphabet.encode(series, label)


def _is_category(series):
    return isinstance(series.dtype, pd.CategoricalDtype)


def _to_be_cut(n_bins, n_distinct):
    return n_bins is not None and (np.ndim(n_bins) == 1 or n_distinct > n_bins)


def _check_finite(numbers, label):
    if np.isinf(numbers).any():
        raise ValueError(
            f"The column {label!r} has infinite numbers: replace them, or drop those rows."
        )


def _bins(values, numbers, counts, n_bins, label):
    """Return the parts of a `ColumnAlphabet` whose categories are bins ``(edge, next edge]``."""
    order = np.argsort(numbers, kind="stable")
    numbers, counts = numbers[order], counts[order]
    values = [values[i] for i in order]
    if np.ndim(n_bins) == 1:
        edges, bounds = _given_edges(n_bins, numbers, values, label)
    else:
        cumulated = counts.cumsum()
        shares = cumulated[-1] * np.arange(1, n_bins) / n_bins
        # Weighted quantiles, each a value that was seen; an edge belongs to the bin below it.
        cuts = np.unique(numbers[np.searchsorted(cumulated, shares * (1 - 1e-12))])
        edges, bounds = cuts[cuts < numbers[-1]], (-np.inf, np.inf)
    labels = _bin_labels(edges, values[0])
    bin_of = np.searchsorted(edges, numbers, side="left")
    representatives = list(labels)  # of an empty bin: never released
    for b in np.unique(bin_of):
        inside = np.flatnonzero(bin_of == b)
        cumulated = counts[inside].cumsum()
        representatives[b] = values[inside[np.searchsorted(cumulated, cumulated[-1] / 2)]]
    totals = np.bincount(bin_of, weights=counts, minlength=len(labels))
    return representatives, edges, bounds, labels, totals


def _given_edges(given, numbers, values, label):
    """Return the inner edges and the bounds of edges that a user gave."""
    try:
        edges = as_numbers(pd.Series(list(given)), label)
    except TypeError as error:
        raise TypeError(f"The edges in n_bins for the column {label!r}: {error}") from error
    if len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise ValueError(
            f"The edges in n_bins for the column {label!r} must increase, and be at least two. "
            f"Got {list(given)!r}."
        )
    if numbers[0] < edges[0] or numbers[-1] > edges[-1]:
        raise ValueError(
            f"The edges in n_bins for the column {label!r} do not cover its values, which go from "
            f"{values[0]} to {values[-1]}. Got {list(given)!r}: begin with -inf and end with inf."
        )
    return edges[1:-1], (edges[0], edges[-1])


def _bin_labels(edges, example):
    """Return readable and distinct names of bins."""
    if isinstance(example, pd.Timestamp | pd.Timedelta):
        shown = [str(type(example)(int(edge))) for edge in edges]
    else:
        shown = [f"{edge:g}" for edge in edges]
        if len(set(shown)) < len(shown):
            shown = [repr(float(edge)) for edge in edges]
    if not shown:
        return ["any"]
    between = [f"{low} to {high}" for low, high in pairwise(shown)]
    return [f"<= {shown[0]}", *between, f"> {shown[-1]}"]


def _pool(counts, min_frequency, max_categories):
    """Return the symbol of each category: rare ones share the last.

    min_frequency and max_categories mean what they mean in scikit-learn's OneHotEncoder.
    """
    least = min_frequency if min_frequency is not None else 0
    if isinstance(least, float):
        least *= counts.sum()
    rare = counts < least
    n_symbols = len(counts) - rare.sum() + rare.any()
    if max_categories is not None and n_symbols > max_categories:
        by_frequency = np.argsort(-counts, kind="stable")
        rare[by_frequency[max_categories - 1 :]] = True
    symbols = np.cumsum(~rare) - 1
    return np.where(rare, symbols.max() + 1, symbols)


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

    @cached_property
    def _sizes(self):
        return tuple(column.n_symbols for column in self.columns)

    @cached_property
    def _packed(self):
        return np.ravel_multi_index(self.combinations.T, self._sizes)

    def encode(self, series, labels):
        """Return the symbol of each row, and how many rows were unknown in each column.

        series, labels : one each for every column. Unknown combinations of known values are
        counted under the last key, None.
        """
        codes = [c.encode(s, n) for c, s, n in zip(self.columns, series, labels, strict=True)]
        unknown = {
            label: int(count)
            for label, code in zip(labels, codes, strict=True)
            if (count := np.count_nonzero(code == UNKNOWN))
        }
        if len(codes) == 1:
            return _take(self.symbols, codes[0]), unknown
        symbols = self._find(codes)
        known = np.logical_and.reduce([code != UNKNOWN for code in codes])
        if combinations := np.count_nonzero(known & (symbols == UNKNOWN)):
            unknown[None] = int(combinations)
        return symbols, unknown

    def _find(self, codes):
        """Return the symbol of each row from the symbols of its columns."""
        known = np.logical_and.reduce([code != UNKNOWN for code in codes])
        n_possible = np.prod([float(size) for size in self._sizes])
        if n_possible >= _MOST_PACKED:
            index = pd.MultiIndex.from_arrays(self.combinations.T)
            found = index.get_indexer(pd.MultiIndex.from_arrays(codes))
            return _take(self.symbols, found)
        packed = _pack(codes, self._sizes)
        if n_possible <= _MOST_LOOK_UPS:
            table = np.full(int(n_possible), UNKNOWN)
            table[self._packed] = self.symbols
            return np.where(known, table.take(packed, mode="clip"), UNKNOWN)
        found = np.searchsorted(self._packed, packed).clip(max=len(self._packed) - 1)
        known &= self._packed[found] == packed
        return np.where(known, self.symbols[found], UNKNOWN)

    def pooled(self, n_symbols):
        """Return an alphabet in which the rarest symbols share one, and its codes of the old."""
        symbols = _pool(np.bincount(self.symbols, weights=self.weights), None, n_symbols)
        return replace(self, symbols=symbols[self.symbols]), symbols

    def decode(self, symbols, uniform):
        """Return, for each column, the index into its values of each row.

        A pooled symbol stands for one of its members, drawn as often as it was seen.
        uniform : a function that draws n numbers from [0, 1).
        """
        combination = _members(self.symbols, self.weights, symbols, uniform)
        return [
            _members(column.symbols, column.weights, column_codes.take(combination), uniform)
            for column, column_codes in zip(self.columns, self.combinations.T, strict=True)
        ]


def _members(symbol_of, weights, symbols, uniform):
    """Return a member of each symbol; of several, drawn by weight."""
    sizes = np.bincount(symbol_of[symbol_of >= 0])
    first = np.zeros(len(sizes), dtype=np.intp)
    first[symbol_of[symbol_of >= 0][::-1]] = np.flatnonzero(symbol_of >= 0)[::-1]
    members = first.astype(np.min_scalar_type(-len(symbol_of))).take(symbols)
    for symbol in np.flatnonzero(sizes > 1):
        rows = np.flatnonzero(symbols == symbol)
        own = np.flatnonzero(symbol_of == symbol)
        cumulated = np.cumsum(weights[own])
        if cumulated[-1] > 0:
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
        counts = _sums(column.symbols, column.weights, column.n_symbols)
        own = np.arange(column.n_symbols)
        return Alphabet(columns, own[:, None], own, counts), codes
    combinations, symbols = _combine([codes for _, codes in learned], columns)
    counts = np.bincount(symbols, weights=weights, minlength=len(combinations))
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


def _sums(symbols, weights, n):
    kept = symbols >= 0
    return np.bincount(symbols[kept], weights=weights[kept], minlength=n)
