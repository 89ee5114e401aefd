"""The alphabet of one column: categories, bins of numbers and times, pools of rare values."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from numbers import Integral
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from .._messages import InPython, Message, Named
from .._typing import BoolArray, CountArray, FloatArray, IntArray
from ..codes import UNKNOWN, chunks, count, take
from .values import (
    as_list,
    as_numbers,
    coded_by_offset,
    factorize,
    factorized,
    family_of,
    sorted_numbers,
)

# Up to this many edges, comparing with each of them is faster than a binary search per number.
_FEW_EDGES = 32

# A value in fewer rows than this may identify a person, and is not shown for other rows. With
# person ids, people are counted in place of rows.
FEWEST_ROWS = 5

# Parts of people are multiples of this.
_PART = 2.0**-16

_EDGES = InPython("The edges in n_bins", Named("edges"))

# A number of bins, or a sequence of their edges, as np.ndim shows; and bins by column.
BinsLike: TypeAlias = Any
Edges: TypeAlias = Mapping[Any, BinsLike]


@dataclass(frozen=True, eq=False)
class Bins:
    """The bins of a column, or its values, if it has no bins.

    labels : readable and distinct; values : the median of each bin, which is a value that was
    seen, or None for an empty bin; middles : the median, or the middle of the bin if few rows have
    the median; weights, rows : the total weight and the number of rows in each; edges : the inner
    edges, as numbers, or None without bins; bounds : numbers outside of these belong to no bin.
    """

    labels: list[Any]
    values: list[Any]
    middles: list[Any]
    weights: FloatArray
    rows: CountArray
    edges: FloatArray | None = None
    bounds: tuple[float, float] = (-np.inf, np.inf)


def cut(
    values: Any,
    numbers: FloatArray,
    weights: CountArray,
    rows: CountArray,
    n_bins: BinsLike,
    label: Hashable,
) -> Bins:
    """Return the `Bins` of distinct values.

    values : an array; numbers : the values as numbers; weights, rows : of each value; n_bins : a
    number of bins of about equal weight, or edges.
    """
    if not (numbers[1:] > numbers[:-1]).all():
        order = np.argsort(numbers)
        values, numbers = values.take(order), numbers[order]
        weights, rows = weights[order], rows[order]
    if (numbers[1:] == numbers[:-1]).any():
        problem = f"The column {label!r} has integers that are too large to tell apart as floats: "
        raise ValueError(problem + "subtract a constant, or convert it to strings.")
    if np.ndim(n_bins) == 0:
        edges, bounds = _quantiles(numbers, weights, n_bins), (-np.inf, np.inf)
    else:
        edges = as_edges(n_bins, label)
        if numbers[0] < edges[0] or numbers[-1] > edges[-1]:
            problem = f" for the column {label!r} do not cover its values. Got {list(n_bins)!r}: "
            raise ValueError(Message(_EDGES, problem, "begin with -inf and end with inf."))
        edges, bounds = edges[1:-1], (edges[0], edges[-1])
    ends = [bounds[0], *edges.tolist(), bounds[1]]
    starts = [0, *np.searchsorted(numbers, edges, side="right").tolist(), len(numbers)]
    medians: list[Any] = [None] * (len(ends) - 1)
    middles, of_bins = list(medians), np.zeros((2, len(medians)))  # weights and rows
    for b, (start, stop) in enumerate(pairwise(starts)):
        if start == stop:
            continue
        inside = slice(start, stop)
        cumulated = weights[inside].cumsum(dtype=float)
        of_bins[:, b] = cumulated[-1], rows[inside].sum()
        median = start + np.searchsorted(cumulated, cumulated[-1] / 2)
        medians[b] = middles[b] = _value(values, median)
        if rows[median] < FEWEST_ROWS:
            mean = np.nan
            if not np.isfinite(ends[b] + ends[b + 1]):
                mean = float(np.average(numbers[inside], weights=rows[inside]))
            middles[b] = middle(ends[b], ends[b + 1], mean, medians[b])
    labels = _labels(label, edges, numbers, rows, _value(values, 0))
    return Bins(labels, medians, middles, of_bins[0], of_bins[1], edges, bounds)


def _value(values: Any, position: int) -> Any:
    """Return one value of an array as a Python object."""
    return values.take([position]).tolist()[0]


def middle(low: float, high: float, mean: float, like: Any) -> Any:
    """Return the middle of a bin; for an unbounded bin, its mean.

    like : a value of the column, whose type the result has.
    """
    place = (low + high) / 2
    place = place if np.isfinite(place) else mean
    if isinstance(like, datetime.date | datetime.timedelta):
        return _as_time(place, like)
    if isinstance(like, Integral):
        whole = [int(number) for number in (round(place), np.floor(place), np.ceil(place))]
        return next((number for number in whole if low < number <= high), whole[0])
    if isinstance(like, decimal.Decimal):
        return decimal.Decimal(place).quantize(like)
    return type(like)(place)


def _as_time(nanoseconds: float, like: Any) -> Any:
    """Return nanoseconds as a time of the type of `like`, rounded to days or seconds."""
    if isinstance(like, datetime.timedelta):
        return pd.Timedelta(int(nanoseconds)).ceil("s")
    zone = getattr(like, "tzinfo", None)
    moment = pd.Timestamp(int(nanoseconds))
    moment = moment if zone is None else moment.tz_localize("UTC").tz_convert(zone)
    is_day = pd.Timestamp(like) == pd.Timestamp(like).normalize()
    # Where clocks go forward or back, either hour will do.
    moment = moment.ceil("D" if is_day else "s", ambiguous=True, nonexistent="shift_forward")
    if isinstance(like, pd.Timestamp):
        return moment.as_unit(like.unit)
    return moment.to_pydatetime() if isinstance(like, datetime.datetime) else moment.date()


def edges_below(
    edges: FloatArray, numbers: FloatArray, side: Literal["left", "right"] = "left"
) -> IntArray:
    """Return the same as `np.searchsorted`: how many edges are below each number.

    Undefined for a NaN among the numbers.
    """
    if len(edges) > _FEW_EDGES:
        return np.searchsorted(edges, numbers, side)
    below = np.zeros(len(numbers), dtype=np.int8)
    is_above = np.greater if side == "left" else np.greater_equal
    for edge in edges:
        below += is_above(numbers, edge).view(np.int8)
    return below


def _quantiles(numbers: FloatArray, weights: CountArray, n_bins: int) -> FloatArray:
    """Return weighted quantiles, each of them a number that was seen, in the bin below it."""
    cumulated = weights.astype(float)
    np.cumsum(cumulated, out=cumulated)
    shares = cumulated[-1] * np.arange(1, n_bins) / n_bins
    # A share counts as reached if it is missed only by rounding.
    at = np.searchsorted(cumulated, shares * (1 - 1e-12)).clip(max=len(numbers) - 1)
    edges = np.unique(numbers[at])
    return edges[edges < numbers[-1]]


def as_edges(given: Sequence[Any], label: Hashable) -> FloatArray:
    """Return given edges as numbers."""
    edges = as_numbers(pd.Series(list(given)), label)
    if len(edges) < 2 or not (np.diff(edges) > 0).all():
        problem = f" for the column {label!r} must increase, and there must be at least two. "
        raise ValueError(Message(_EDGES, problem, f"Got {list(given)!r}."))
    return edges


def _labels(
    name: Hashable, edges: FloatArray, numbers: FloatArray, rows: CountArray, example: object
) -> list[str]:
    """Return names of bins, which begin with that of the column.

    numbers, rows : the distinct values, and the rows that have each; example : one of them.
    """
    before = f"x{name} " if isinstance(name, int) else f"{name} ".lstrip()
    is_time = isinstance(example, datetime.date | datetime.timedelta)
    if not is_time and (numbers == np.floor(numbers)).all():
        return [before + text for text in _of_integers(edges, numbers, rows)]
    return [before + text for text in _between(edges, example)]


def _of_integers(edges: FloatArray, numbers: FloatArray, rows: CountArray) -> list[str]:
    """Return which integers each bin holds; those at both ends also hold all beyond."""
    texts = _between(edges, 0)
    low = np.floor(np.append(-np.inf, edges)) + 1  # the first integer above each edge
    high = np.floor(np.append(edges, np.inf))
    starts = np.searchsorted(numbers, edges, side="right")
    for b, inside in enumerate(np.split(np.arange(len(numbers)), starts)):
        if len(inside) == 1 and rows[inside[0]] >= FEWEST_ROWS:
            low[b] = high[b] = numbers[inside[0]]
        if low[b] == high[b]:
            texts[b] = f"{low[b]:.0f}"
        elif np.isinf(low[b]) and np.isfinite(high[b]):
            texts[b] = f"<= {high[b]:.0f}"
        elif np.isinf(high[b]) and np.isfinite(low[b]):
            texts[b] = f">= {low[b]:.0f}"
        elif low[b] < high[b] and np.isfinite(high[b] - low[b]):
            texts[b] = f"{low[b]:.0f} to {high[b]:.0f}"
    return texts


def _between(edges: FloatArray, example: object) -> list[str]:
    if isinstance(example, datetime.date | datetime.timedelta):
        is_time = isinstance(example, datetime.date)
        shown = [str((pd.Timestamp if is_time else pd.Timedelta)(int(edge))) for edge in edges]
    else:
        shown = [f"{edge:g}" for edge in edges]
        if len(set(shown)) < len(shown):
            shown = [repr(float(edge)) for edge in edges]
    if not shown:
        return ["any"]
    between = [f"{low} to {high}" for low, high in pairwise(shown)]
    return [f"<= {shown[0]}", *between, f"> {shown[-1]}"]


# The alphabet of one column.


POOLED = "(pooled)"
DEFAULT_BINS = 10

Pooling: TypeAlias = tuple[float | None, int | None]  # min_frequency and max_categories


@dataclass(frozen=True, eq=False)
class ColumnAlphabet:
    """The symbols of one column.

    values : one value for each category or bin; a missing value is None, and last; labels : their
    names; symbols : the symbol of each, -1 for an empty bin; weights : the total weight of each;
    in_pool : what each is shown as in a pool; is_rare : whether fewer than five rows had it;
    edges : the inner edges of the bins, or None without bins; bounds : numbers outside of these
    are unknown.
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
        """The number of symbols, after pooling."""
        return int(self.symbols.max()) + 1

    @cached_property
    def symbol_labels(self) -> list[Any]:
        """One label for each symbol; `POOLED` for pooled values."""
        sizes = np.bincount(self.symbols[self.symbols >= 0], minlength=self.n_symbols)
        of_symbol = dict(zip(self.symbols.tolist(), self.labels, strict=True))
        return [of_symbol[s] if sizes[s] == 1 else POOLED for s in range(self.n_symbols)]

    @property
    def is_cut(self) -> bool:
        """Whether the column has bins of numbers or times."""
        return self.edges is not None

    @property
    def is_coarse(self) -> bool:
        """Whether values share symbols, in bins or pools."""
        return self.is_cut or self.n_symbols < len(self.values)

    @cached_property
    def family(self) -> str:
        """The kind of values: "numbers", "times", the name of a type, or "mixed"."""
        families = {family_of([value], "X") for value in self.values if value is not None}
        return families.pop() if len(families) == 1 else "mixed"

    @property
    def is_measured(self) -> bool:
        """Whether the values are numbers or times."""
        return self.family in ("numbers", "times")

    def encode(self, series: pd.Series, label: Hashable) -> IntArray:
        """Return the symbol of each row of a pandas Series."""
        near = coded_by_offset(series)
        if near is None and self.edges is not None:
            return take(np.append(self.symbols, UNKNOWN), self.bins_of(series, label))
        codes, values = near or factorize(series, label)
        return take(self.at(self.positions_of(values, label)), codes)

    def positions(self, series: pd.Series, label: Hashable) -> IntArray:
        """Return the position of each row's value in `self.values`, -1 for unknown ones."""
        if self.edges is not None:
            return self.bins_of(series, label)
        codes, values = factorize(series, label)
        return take(self.positions_of(values, label), codes)

    def at(self, positions: IntArray) -> IntArray:
        """Return the symbols at some positions in `self.values`."""
        return np.append(self.symbols, UNKNOWN).take(positions)

    def positions_of(self, values: Any, label: Hashable) -> IntArray:
        """Return the positions of values in `self.values`, followed by that of a missing one."""
        if self.edges is not None:
            found = self.bins_of(pd.Series(values), label)
        else:
            present = self.values[: len(self.values) - self.has_missing]
            index = pd.Index(present, dtype=object, tupleize_cols=False)
            wanted = pd.Index(as_list(values), dtype=object, tupleize_cols=False)
            found = index.get_indexer(wanted)
        return np.append(found, self._missing).astype(np.intp)

    @property
    def _missing(self) -> int:
        """The position of the missing value."""
        return len(self.values) - 1 if self.has_missing else UNKNOWN

    def bins_of(self, series: pd.Series, label: Hashable) -> IntArray:
        """Return the bin of each number or time in a column."""
        assert self.edges is not None
        numbers, (low, high) = as_numbers(series, label), self.bounds
        bins = np.empty(len(numbers), dtype=np.min_scalar_type(-len(self.values)))
        for rows in chunks(len(numbers)):
            chunk, found = numbers[rows], bins[rows]
            found[:] = edges_below(self.edges, chunk)
            if np.isfinite(self.bounds).any():
                found[(chunk < low) | (chunk > high)] = UNKNOWN
            found[np.isnan(chunk)] = self._missing
        return bins


def learn_column(
    series: pd.Series, weights: FloatArray | None, label: Hashable, **options: Any
) -> tuple[ColumnAlphabet, IntArray]:
    """Return the `ColumnAlphabet` of a column and the symbol of each row; see `learn_values`."""
    alphabet, codes, positions = learn_values(series, weights, label, **options)
    return alphabet, take(alphabet.at(positions), codes)


def learn_values(
    series: pd.Series,
    weights: FloatArray | None,
    label: Hashable,
    n_bins: BinsLike | None = DEFAULT_BINS,
    pooling: Pooling = (None, None),
    multiplicities: FloatArray | None = None,
    persons: IntArray | None = None,
    as_declared: bool = False,
    order: Sequence[Any] | None = None,
) -> tuple[ColumnAlphabet, IntArray, IntArray]:
    """Return the `ColumnAlphabet` of a column, a code for each row, and the positions of codes.

    These are positions in `ColumnAlphabet.values`; that of a missing value comes last. weights :
    of the rows, or None; pooling : (min_frequency, max_categories); multiplicities : the number of
    rows of the data that each row stands for, or None for one; persons : whose each row is, None
    for as many people as rows; as_declared : whether categories
    without rows are symbols too; order : of the values, if they are texts with an order.
    """
    near = coded_by_offset(series)
    if order is not None and pd.api.types.is_numeric_dtype(series.dtype):
        problem = f" names the column {label!r}, which holds numbers, and these have an order."
        raise ValueError(Message(Named("ordered"), problem))
    is_plain = all(of is None for of in (weights, multiplicities, persons))
    bins = None if near or not is_plain else _cut_sorted(series, n_bins, label)
    if bins is not None:
        n_missing = len(series) - float(bins.rows.sum())
        alphabet = _alphabet(bins, n_missing, n_missing, pooling)
        every = np.append(np.arange(len(alphabet.values)), UNKNOWN)
        return alphabet, alphabet.bins_of(series, label), every
    codes, distinct = near or factorized(series, label)
    rows = count(codes, len(distinct), multiplicities)  # missing ones last
    totals = (rows if weights is None else count(codes, len(distinct), weights)).astype(float)
    if persons is not None:
        rows = _n_people(codes, persons, len(distinct))
    is_categorical = isinstance(series.dtype, pd.CategoricalDtype)
    as_declared = as_declared and is_categorical
    seen = np.arange(len(distinct)) if as_declared else np.flatnonzero(rows[:-1])
    if isinstance(distinct, list):
        values: Any = [distinct[i] for i in seen]
    else:
        values = distinct.take(seen)
    family = "category" if is_categorical else family_of(values, label)
    if family in ("numbers", "times") and _are_cut(values, n_bins):
        found = _cut_finite(values, totals[seen], rows[seen], n_bins, label)
    else:
        found = _categories(values, totals[seen], rows[seen], family, label, order)
    alphabet = _alphabet(found, totals[-1], rows[-1], pooling, as_declared)
    positions = alphabet.positions_of(distinct, label)
    if persons is not None:  # those of a bin are fewer than the sum over its values
        n_people = _n_people(take(positions, codes), persons, len(alphabet.values))
        alphabet = replace(alphabet, is_rare=n_people[:-1] < FEWEST_ROWS)
    return alphabet, codes, positions


def _n_people(codes: IntArray, persons: IntArray, n: int) -> CountArray:
    """Return how many people have each code below n, and -1 (last)."""
    n_persons = int(persons.max()) + 1
    pairs = np.unique(codes.astype(np.intp) * n_persons + persons)
    return count(pairs // n_persons, n)


def people_of(
    multiplicities: FloatArray | None, persons: IntArray | None, n_rows: int
) -> FloatArray:
    """Return how many people each of some rows stands for: a part of one who has several rows.

    Parts are rounded down, so that they never add up to more than one, and are exact in sums.
    """
    rows = np.ones(n_rows) if multiplicities is None else multiplicities
    if persons is None:
        return rows
    return np.floor(rows / np.bincount(persons, rows)[persons] / _PART) * _PART


def _cut_sorted(series: pd.Series, n_bins: BinsLike | None, label: Hashable) -> Bins | None:
    """Return the bins of a column by sorting its numbers; None if it has none, or gets no bins."""
    found = None if n_bins is None else sorted_numbers(series)
    if found is None or not _are_cut(found[0], n_bins):
        return None
    values, rows = found
    return _cut_finite(values, rows, rows, n_bins, label)


def _are_cut(values: Any, n_bins: BinsLike | None) -> bool:
    """Whether distinct numbers are cut into bins."""
    most: Any = np.inf if n_bins is None else n_bins
    return len(values) > (0 if np.ndim(most) == 1 else most)


def _cut_finite(
    values: Any, weights: CountArray, rows: CountArray, n_bins: BinsLike, label: Hashable
) -> Bins:
    """Return the `Bins` of a list or an array of distinct values; see `cut`."""
    numbers = as_numbers(pd.Series(values, copy=False), label)
    _check_finite(numbers, label)
    array = pd.Series(values, dtype=object) if isinstance(values, list) else values
    return cut(array, numbers, weights, rows, n_bins, label)


def _categories(
    values: Any,
    weights: FloatArray,
    rows: CountArray,
    family: str,
    label: Hashable,
    order: Sequence[Any] | None,
) -> Bins:
    """Return distinct values without bins: sorted, as categories are, or in a given order."""
    if family == "numbers":
        _check_finite(np.array(values, dtype=float), label)
    values = as_list(values)
    if order is not None:
        place = {value: i for i, value in enumerate(order)}
        if n_others := sum(value not in place for value in values):
            # They are not shown: the column may be S.
            lacks = f": the order {list(order)!r} of the column {label!r} lacks {n_others} of its "
            raise ValueError(Message(Named("ordered"), f"{lacks}distinct values."))
        by_order = sorted(range(len(values)), key=lambda i: place[values[i]])
        values, weights, rows = [values[i] for i in by_order], weights[by_order], rows[by_order]
    elif family != "category":
        try:
            order = sorted(range(len(values)), key=values.__getitem__)
        except TypeError as error:
            problem = f"The column {label!r} has values that cannot be sorted ({error}): "
            advice = "convert it to strings or to a category first."
            raise TypeError(problem + advice) from error
        values, weights, rows = [values[i] for i in order], weights[order], rows[order]
    return Bins(values, values, values, weights, rows)


def _alphabet(
    found: Bins, weight: float, n_rows: float, pooling: Pooling, as_declared: bool = False
) -> ColumnAlphabet:
    """Return the alphabet of bins or values; weight, n_rows : of the rows with a missing value."""
    n = len(found.values) + (has_missing := bool(n_rows))
    lists = found.values, found.labels, found.middles
    values, labels, middles = ((*of_value, None)[:n] for of_value in lists)
    weights, rows = np.append(found.weights, weight)[:n], np.append(found.rows, n_rows)[:n]
    occurs = np.flatnonzero((rows > 0) | as_declared)
    symbols = np.full(n, UNKNOWN)
    symbols[occurs] = pool(weights[occurs], *pooling)
    encoder, shown = (values, labels, symbols, weights), (middles, rows < FEWEST_ROWS)
    return ColumnAlphabet(*encoder, *shown, found.edges, found.bounds, has_missing)


def _check_finite(numbers: FloatArray, label: Hashable) -> None:
    if np.isinf(numbers).any():
        raise ValueError(f"The column {label!r} contains infinity: replace it or drop those rows.")


def pool(counts: CountArray, min_frequency: float | None, max_categories: int | None) -> IntArray:
    """Return the symbol of each category: rare ones share the last.

    min_frequency and max_categories are as in scikit-learn's OneHotEncoder.
    """
    least = 0 if min_frequency is None else min_frequency
    if not isinstance(least, Integral):
        least *= counts.sum()
    rare = counts < least
    n_symbols = len(counts) - rare.sum() + rare.any()
    if max_categories is not None and n_symbols > max_categories:
        by_frequency = np.argsort(counts, kind="stable")
        rare[by_frequency[: len(counts) - (max_categories - 1)]] = True
    symbols = np.cumsum(~rare) - 1
    return np.where(rare, symbols.max(initial=-1) + 1, symbols)
