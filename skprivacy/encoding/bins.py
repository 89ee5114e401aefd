"""Numbers and times cut into bins ``(edge, next edge]``."""

from __future__ import annotations

import datetime
import decimal
import numbers as numbers_abc
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from .._messages import InPython, Message, Named
from .._typing import CountArray, FloatArray, IntArray
from .values import as_numbers

# Up to this many edges, comparing with each of them is faster than a binary search per number.
_FEW_EDGES = 32

# A value that fewer rows have may identify a person, and is not shown for other rows.
FEWEST_ROWS = 5

_EDGES = InPython("The edges in n_bins", Named("edges"))

# How many bins, or a sequence of their edges: np.ndim tells which.
BinsLike: TypeAlias = Any


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of the values of a column, or its values themselves.

    edges : the inner edges, as numbers, or None if nothing is cut; bounds : outside these, a
    number belongs to no bin; labels : readable and distinct; values : for each bin one that was
    seen, its median, or None if it is empty; middles : the same, or if few rows have the median,
    the middle of the bin; weights, rows : the total weight and the number of rows in each.
    """

    edges: FloatArray | None
    bounds: tuple[float, float]
    labels: list[Any]
    values: list[Any]
    middles: list[Any]
    weights: FloatArray
    rows: CountArray

    def with_missing(self, weight: float, n_rows: float) -> Bins:
        """Return the bins with one more at the end for what is missing: None."""
        return replace(
            self,
            labels=[*self.labels, None],
            values=[*self.values, None],
            middles=[*self.middles, None],
            weights=np.append(self.weights, weight),
            rows=np.append(self.rows, n_rows),
        )


def uncut(values: list[Any], weights: FloatArray, rows: CountArray, order: list[int]) -> Bins:
    """Return distinct values in the given order, unchanged."""
    values = [values[i] for i in order]
    return Bins(None, (-np.inf, np.inf), values, values, values, weights[order], rows[order])


def cut(
    values: list[Any],
    numbers: FloatArray,
    weights: FloatArray,
    rows: CountArray,
    n_bins: BinsLike,
    label: Hashable,
) -> Bins:
    """Return the `Bins` of distinct values.

    numbers : the values as numbers; weights, rows : those of each value; n_bins : a number of bins
    of about equal weight, or edges.
    """
    if len(np.unique(numbers)) < len(numbers):
        raise ValueError(
            f"The column {label!r} has integers that are too large to tell apart as floats: "
            f"subtract a constant, or convert it to strings."
        )
    order = np.argsort(numbers, kind="stable")
    values, numbers = [values[i] for i in order], numbers[order]
    weights, rows = weights[order], rows[order]
    if np.ndim(n_bins) == 1:
        edges, bounds = _given_edges(n_bins, numbers, values, label)
    else:
        edges, bounds = _quantiles(numbers, weights, n_bins), (-np.inf, np.inf)
    bin_of = np.searchsorted(edges, numbers, side="left")
    ends = [bounds[0], *edges.tolist(), bounds[1]]
    medians: list[Any] = [None] * (len(ends) - 1)
    middles = list(medians)
    for b in np.unique(bin_of):
        inside = np.flatnonzero(bin_of == b)
        cumulated = weights[inside].cumsum()
        median = inside[np.searchsorted(cumulated, cumulated[-1] / 2)]
        medians[b] = middles[b] = values[median]
        if rows[median] < FEWEST_ROWS:
            mean = float(np.average(numbers[inside], weights=rows[inside]))
            middles[b] = _middle(ends[b], ends[b + 1], mean, values[median])
    weights, rows = (np.bincount(bin_of, w, len(medians)).astype(float) for w in (weights, rows))
    return Bins(edges, bounds, _labels(edges, values[0]), medians, middles, weights, rows)


def _middle(low: float, high: float, mean: float, like: Any) -> Any:
    """Return what is halfway between the edges of a bin; for an unbounded bin, its mean.

    like : a value of the column, which shows what a number stands for.
    """
    middle = (low + high) / 2
    middle = middle if np.isfinite(middle) else mean
    if isinstance(like, datetime.date | datetime.timedelta):
        return _as_time(middle, like)
    if isinstance(like, numbers_abc.Integral):
        whole = [int(number) for number in (round(middle), np.floor(middle), np.ceil(middle))]
        return next((number for number in whole if low < number <= high), whole[0])
    if isinstance(like, decimal.Decimal):
        return decimal.Decimal(middle).quantize(like)
    return type(like)(middle)


def _as_time(nanoseconds: float, like: Any) -> Any:
    """Return nanoseconds as a time like another one, without needless digits."""
    if isinstance(like, datetime.timedelta):
        return pd.Timedelta(int(nanoseconds)).ceil("s")
    zone = getattr(like, "tzinfo", None)
    moment = pd.Timestamp(int(nanoseconds))
    moment = moment if zone is None else moment.tz_localize("UTC").tz_convert(zone)
    is_day = pd.Timestamp(like) == pd.Timestamp(like).normalize()
    # Where clocks go forward or back, either of the two hours will do.
    moment = moment.ceil("D" if is_day else "s", ambiguous=True, nonexistent="shift_forward")
    if isinstance(like, pd.Timestamp):
        return moment.as_unit(like.unit)
    return moment.to_pydatetime() if isinstance(like, datetime.datetime) else moment.date()


def edges_below(edges: FloatArray, numbers: FloatArray) -> IntArray:
    """Return how many edges are below each number: its bin. For NaN it may be anything."""
    if len(edges) > _FEW_EDGES:
        return np.searchsorted(edges, numbers)
    below = np.zeros(len(numbers), dtype=np.int8)
    for edge in edges:
        below += (numbers > edge).view(np.int8)
    return below


def _quantiles(numbers: FloatArray, weights: FloatArray, n_bins: int) -> FloatArray:
    """Return weighted quantiles, each a number that was seen and belongs to the bin below it."""
    cumulated = weights.cumsum()
    shares = cumulated[-1] * np.arange(1, n_bins) / n_bins
    # A share counts as reached if only rounding keeps it from being reached exactly.
    at = np.searchsorted(cumulated, shares * (1 - 1e-12)).clip(max=len(numbers) - 1)
    edges = np.unique(numbers[at])
    return edges[edges < numbers[-1]]


def as_edges(given: Sequence[Any], label: Hashable) -> FloatArray:
    """Return the edges that a user gave, as numbers."""
    edges = as_numbers(pd.Series(list(given)), label)
    if len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise ValueError(
            Message(
                _EDGES,
                f" for the column {label!r} must increase, and there must be at least two. Got "
                f"{list(given)!r}.",
            )
        )
    return edges


def _given_edges(
    given: Sequence[Any], numbers: FloatArray, values: list[Any], label: Hashable
) -> tuple[FloatArray, tuple[float, float]]:
    """Return the inner edges and the bounds of edges that a user gave."""
    edges = as_edges(given, label)
    if numbers[0] < edges[0] or numbers[-1] > edges[-1]:
        raise ValueError(
            Message(
                _EDGES,
                f" for the column {label!r} do not cover its values. Got {list(given)!r}: begin "
                f"with -inf and end with inf.",
            )
        )
    return edges[1:-1], (edges[0], edges[-1])


def _labels(edges: FloatArray, example: object) -> list[str]:
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
