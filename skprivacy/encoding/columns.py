"""The alphabet of one column."""

from __future__ import annotations

import numbers
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from .._typing import CountArray, FloatArray, IntArray
from .bins import BinsLike, cut
from .values import as_numbers, factorize, family_of

UNKNOWN = -1
POOLED = "(pooled)"
DEFAULT_BINS = 10

# min_frequency and max_categories.
Pooling: TypeAlias = tuple[float | None, int | None]

_CHUNK = 1 << 15


@dataclass(frozen=True, eq=False)
class ColumnAlphabet:
    """The symbols of one column.

    values : one value for each category or bin; a missing value is None; labels : their names;
    symbols : which symbol each is part of, -1 for an empty bin; weights : how often each was
    seen; edges : the inner edges of the bins, None without bins; bounds : outside of these a
    number is unknown.
    """

    values: tuple[Any, ...]
    labels: tuple[Any, ...]
    symbols: IntArray
    weights: FloatArray
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

    def without_pools(self) -> ColumnAlphabet:
        """Return the alphabet in which every category and bin that occurs is a symbol."""
        occurs = self.symbols >= 0
        return replace(self, symbols=np.where(occurs, np.cumsum(occurs) - 1, UNKNOWN))

    @property
    def positions(self) -> IntArray:
        """Where each symbol of an alphabet without pools stands in `values`."""
        return np.flatnonzero(self.symbols >= 0)

    def encode(self, series: pd.Series, label: Hashable) -> IntArray:
        """Return the symbol of each row of a pandas Series."""
        if self.edges is not None:
            return self._of_numbers(as_numbers(series, label))
        codes, values = factorize(series, label)
        return take(self.of_values(values, label), codes)

    def of_values(self, values: list[Any], label: Hashable) -> IntArray:
        """Return the symbols of some values, and after them that of a missing one."""
        if self.edges is not None:
            known = self._of_numbers(as_numbers(pd.Series(values), label))
        else:
            index = pd.Index(self._present, dtype=object, tupleize_cols=False)
            found = index.get_indexer(pd.Index(values, dtype=object, tupleize_cols=False))
            known = np.append(self.symbols[: len(index)], UNKNOWN).take(found)
        return np.append(known, self._of_missing)

    @property
    def _present(self) -> tuple[Any, ...]:
        """The values that are not the missing one, which is last."""
        return self.values[: len(self.values) - self.has_missing]

    @property
    def _of_missing(self) -> int:
        return self.symbols[-1] if self.has_missing else UNKNOWN

    def _of_numbers(self, numbers: FloatArray) -> IntArray:
        assert self.edges is not None  # or there would be no numbers
        bins = np.searchsorted(self.edges, numbers).clip(max=len(self._present) - 1)
        symbols = take(np.append(self.symbols, UNKNOWN), bins)
        symbols[(numbers < self.bounds[0]) | (numbers > self.bounds[1])] = UNKNOWN
        symbols[np.isnan(numbers)] = self._of_missing
        return symbols


def narrow(codes: IntArray) -> IntArray:
    """Return codes in the smallest dtype that holds them, and -1."""
    return codes.astype(np.min_scalar_type(-int(codes.max(initial=0)) - 1))


def take(table: IntArray, codes: IntArray) -> IntArray:
    """Return ``table[codes]`` in the smallest dtype.

    The last entry of the table is that of code -1, and of no other code. In chunks: numpy makes
    eight bytes of every code, which need not leave the cache.
    """
    table = narrow(table)
    # A table that changes nothing: the codes themselves, which may be the caller's own.
    if table[-1] == UNKNOWN and (table[:-1] == np.arange(len(table) - 1)).all():
        return codes
    taken = np.empty(len(codes), dtype=table.dtype)
    for start in range(0, len(codes), _CHUNK):
        table.take(codes[start : start + _CHUNK], out=taken[start : start + _CHUNK], mode="wrap")
    return taken


def learn_column(
    series: pd.Series,
    weights: FloatArray | None,
    label: Hashable,
    *,
    n_bins: BinsLike | None = DEFAULT_BINS,
    pooling: Pooling = (None, None),
) -> tuple[ColumnAlphabet, IntArray]:
    """Return the `ColumnAlphabet` of a column and the symbol of each row.

    weights : of the rows, or None; pooling : (min_frequency, max_categories).
    """
    codes, distinct = factorize(series, label)
    rows = np.bincount(codes + 1, minlength=len(distinct) + 1)  # missing ones first
    totals = rows.astype(float)
    if weights is not None:
        totals = np.bincount(codes + 1, weights=weights, minlength=len(distinct) + 1)
    seen = np.flatnonzero(rows[1:])
    values, totals_seen = [distinct[i] for i in seen], totals[1:][seen]
    is_categorical = isinstance(series.dtype, pd.CategoricalDtype)
    family = "category" if is_categorical else family_of(values, label)
    bounds, edges = (-np.inf, np.inf), None
    labels: list[Any]
    if _is_to_be_cut(family, n_bins, len(values)):
        numbers = _finite(as_numbers(pd.Series(values), label), label)
        bins = cut(values, numbers, totals_seen, n_bins, label)
        edges, bounds, labels, totals_seen = bins.edges, bins.bounds, bins.labels, bins.weights
        values = bins.medians
    else:
        if family == "numbers":
            _finite(np.array(values, dtype=float), label)
        if not is_categorical:  # categories have an order of their own
            order = _sorted(values, label)
            values, totals_seen = [values[i] for i in order], totals_seen[order]
        labels = values
    occurs = np.array([value is not None for value in values], dtype=bool)
    if rows[0]:
        values, labels = [*values, None], [*labels, None]
        totals_seen, occurs = np.append(totals_seen, totals[0]), np.append(occurs, True)
    symbols = np.full(len(values), UNKNOWN)
    symbols[occurs] = pool(totals_seen[occurs], *pooling)
    alphabet = ColumnAlphabet(
        tuple(values), tuple(labels), symbols, totals_seen, edges, bounds, bool(rows[0])
    )
    return alphabet, take(alphabet.of_values(distinct, label), codes)


def _sorted(values: list[Any], label: Hashable) -> list[int]:
    try:
        return sorted(range(len(values)), key=values.__getitem__)
    except TypeError as error:
        raise TypeError(
            f"The column {label!r} has values without an order ({error}): convert it to strings "
            f"or to a category first."
        ) from error


def _is_to_be_cut(family: str, n_bins: BinsLike | None, n_values: int) -> bool:
    if family not in ("numbers", "times") or n_bins is None:
        return False
    return np.ndim(n_bins) == 1 or n_values > n_bins


def _finite(numbers: FloatArray, label: Hashable) -> FloatArray:
    if np.isinf(numbers).any():
        raise ValueError(
            f"The column {label!r} has infinity among its numbers: replace it, or drop those rows."
        )
    return numbers


def pool(counts: CountArray, min_frequency: float | None, max_categories: int | None) -> IntArray:
    """Return the symbol of each category: rare ones share the last.

    min_frequency and max_categories mean what they mean in scikit-learn's OneHotEncoder.
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
