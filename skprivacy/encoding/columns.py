"""The alphabet of one column."""

from __future__ import annotations

import numbers
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from .._typing import BoolArray, CountArray, FloatArray, IntArray
from ..codes import UNKNOWN, chunks, count, take
from .bins import FEWEST_ROWS, Bins, BinsLike, cut, edges_below, uncut
from .values import as_numbers, coded, coded_by_offset, factorize, family_of

POOLED = "(pooled)"
DEFAULT_BINS = 10

# min_frequency and max_categories.
Pooling: TypeAlias = tuple[float | None, int | None]


@dataclass(frozen=True, eq=False)
class ColumnAlphabet:
    """The symbols of one column.

    values : one value for each category or bin; a missing value is None; labels : their names;
    symbols : which symbol each is part of, -1 for an empty bin; weights : how often each was
    seen; in_pool : what each is shown as if it is one of several, see `showing`; is_rare :
    whether fewer than five rows had it; edges : the inner edges of the bins, or None without
    bins; bounds : outside these, a number is unknown.
    """

    values: tuple[Any, ...]
    labels: tuple[Any, ...]
    symbols: IntArray
    weights: FloatArray
    in_pool: tuple[Any, ...]
    is_rare: BoolArray
    edges: FloatArray | None = None
    bounds: tuple[float, float] = (-np.inf, np.inf)
    has_missing: bool = False

    @cached_property
    def n_symbols(self) -> int:
        """How many symbols there are, after pooling."""
        return int(self.symbols.max()) + 1

    @cached_property
    def symbol_labels(self) -> list[Any]:
        """One label for each symbol; those that were pooled are `POOLED`."""
        sizes = np.bincount(self.symbols[self.symbols >= 0], minlength=self.n_symbols)
        of_symbol = dict(zip(self.symbols.tolist(), self.labels, strict=True))
        return [of_symbol[s] if sizes[s] == 1 else POOLED for s in range(self.n_symbols)]

    @property
    def is_cut(self) -> bool:
        """Whether its numbers or times are cut into bins."""
        return self.edges is not None

    @cached_property
    def family(self) -> str:
        """What kind of values it holds: "numbers", "times", the name of a type, or "mixed"."""
        families = {family_of([value], "X") for value in self.values if value is not None}
        return families.pop() if len(families) == 1 else "mixed"

    @property
    def is_measured(self) -> bool:
        """Whether it holds numbers or times."""
        return self.family in ("numbers", "times")

    def encode(self, series: pd.Series, label: Hashable) -> IntArray:
        """Return the symbol of each row of a pandas Series."""
        near = coded_by_offset(series)
        if near is None and self.edges is not None:
            return take(self._by_position, self._bins_of(as_numbers(series, label)))
        codes, values = near or factorize(series, label)
        return take(self.of_values(values, label), codes)

    def of_values(self, values: list[Any], label: Hashable) -> IntArray:
        """Return the symbols of some values, followed by that of a missing one."""
        return self._by_position.take(self.positions_of(values, label))

    def positions_of(self, values: list[Any], label: Hashable) -> IntArray:
        """Return the positions of some values in `values`, followed by that of a missing one."""
        if self.edges is not None:
            found = self._bins_of(as_numbers(pd.Series(values), label))
        else:
            index = pd.Index(self._present, dtype=object, tupleize_cols=False)
            found = index.get_indexer(pd.Index(values, dtype=object, tupleize_cols=False))
        return np.append(found, self._missing).astype(np.intp)

    @property
    def _by_position(self) -> IntArray:
        """The symbol at each position of `values`, and that of a position of -1."""
        return np.append(self.symbols, UNKNOWN)

    @property
    def _present(self) -> tuple[Any, ...]:
        """The values except the missing one, which is last."""
        return self.values[: len(self.values) - self.has_missing]

    @property
    def _missing(self) -> int:
        """The position of the missing value."""
        return len(self.values) - 1 if self.has_missing else UNKNOWN

    def _bins_of(self, numbers: FloatArray) -> IntArray:
        """Return the positions of the bins that numbers fall into."""
        assert self.edges is not None  # otherwise there would be no bins
        low, high = self.bounds
        bins = np.empty(len(numbers), dtype=np.min_scalar_type(-len(self.values)))
        for rows in chunks(len(numbers)):
            chunk, found = numbers[rows], bins[rows]
            found[:] = edges_below(self.edges, chunk)
            if np.isfinite(self.bounds).any():
                found[(chunk < low) | (chunk > high)] = UNKNOWN
            found[np.isnan(chunk)] = self._missing
        return bins


def learn_column(
    series: pd.Series,
    weights: FloatArray | None,
    label: Hashable,
    *,
    n_bins: BinsLike | None = DEFAULT_BINS,
    pooling: Pooling = (None, None),
    multiplicities: FloatArray | None = None,
    as_declared: bool = False,
) -> tuple[ColumnAlphabet, IntArray]:
    """Return the `ColumnAlphabet` of a column and the symbol of each row.

    weights : those of the rows, or None; pooling : (min_frequency, max_categories);
    multiplicities : how many rows of the data each row stands for, or None if one; as_declared :
    whether categories without rows are symbols too.
    """
    alphabet, codes, distinct = learn_values(
        series, weights, label, n_bins, pooling, multiplicities, as_declared
    )
    return alphabet, take(alphabet.of_values(distinct, label), codes)


def learn_values(
    series: pd.Series,
    weights: FloatArray | None,
    label: Hashable,
    n_bins: BinsLike | None = DEFAULT_BINS,
    pooling: Pooling = (None, None),
    multiplicities: FloatArray | None = None,
    as_declared: bool = False,
) -> tuple[ColumnAlphabet, IntArray, list[Any]]:
    """Return the `ColumnAlphabet` of a column, and its rows as codes of a list of values."""
    codes, distinct = coded(series, label)
    rows = count(codes, len(distinct), multiplicities)  # missing ones last
    totals = (rows if weights is None else count(codes, len(distinct), weights)).astype(float)
    is_categorical = isinstance(series.dtype, pd.CategoricalDtype)
    as_declared = as_declared and is_categorical
    seen = np.arange(len(distinct)) if as_declared else np.flatnonzero(rows[:-1])
    values, counts = [distinct[i] for i in seen], (totals[seen], rows[seen])
    family = "category" if is_categorical else family_of(values, label)
    if _is_to_be_cut(family, n_bins, len(values)):
        numbers = _finite(as_numbers(pd.Series(values), label), label)
        found = cut(values, numbers, *counts, n_bins, label)
    else:
        if family == "numbers":
            _finite(np.array(values, dtype=float), label)
        # Categories have an order of their own.
        order = list(range(len(values))) if is_categorical else _sorted(values, label)
        found = uncut(values, *counts, order)
    if rows[-1]:
        found = found.with_missing(totals[-1], rows[-1])
    alphabet = _alphabet_of(found, pooling, bool(rows[-1]), as_declared)
    return alphabet, codes, distinct


def _alphabet_of(
    found: Bins, pooling: Pooling, has_missing: bool, as_declared: bool
) -> ColumnAlphabet:
    occurs = np.flatnonzero((found.rows > 0) | as_declared)
    symbols = np.full(len(found.values), UNKNOWN)
    symbols[occurs] = pool(found.weights[occurs], *pooling)
    return ColumnAlphabet(
        tuple(found.values),
        tuple(found.labels),
        symbols,
        found.weights,
        tuple(found.middles),
        found.rows < FEWEST_ROWS,
        found.edges,
        found.bounds,
        has_missing,
    )


def _sorted(values: list[Any], label: Hashable) -> list[int]:
    try:
        return sorted(range(len(values)), key=values.__getitem__)
    except TypeError as error:
        raise TypeError(
            f"The column {label!r} has values that cannot be sorted ({error}): convert it to "
            f"strings or to a category first."
        ) from error


def _is_to_be_cut(family: str, n_bins: BinsLike | None, n_values: int) -> bool:
    if family not in ("numbers", "times") or n_bins is None:
        return False
    return np.ndim(n_bins) == 1 or n_values > n_bins


def _finite(numbers: FloatArray, label: Hashable) -> FloatArray:
    if np.isinf(numbers).any():
        raise ValueError(
            f"The column {label!r} contains infinity: replace it, or drop those rows."
        )
    return numbers


def pool(counts: CountArray, min_frequency: float | None, max_categories: int | None) -> IntArray:
    """Return the symbol of each category: rare ones share the last.

    min_frequency and max_categories are as in scikit-learn's OneHotEncoder.
    """
    least = 0 if min_frequency is None else min_frequency
    if not isinstance(least, numbers.Integral):
        least *= counts.sum()
    rare = counts < least
    n_symbols = len(counts) - rare.sum() + rare.any()
    if max_categories is not None and n_symbols > max_categories:
        by_frequency = np.argsort(counts, kind="stable")
        rare[by_frequency[: len(counts) - (max_categories - 1)]] = True
    symbols = np.cumsum(~rare) - 1
    return np.where(rare, symbols.max(initial=-1) + 1, symbols)
