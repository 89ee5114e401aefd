"""The distinct values of a column, and columns as numbers."""

import datetime
import decimal
import numbers
from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from .._typing import FloatArray, IntArray

# Integers that span less than this, with so many rows for each, are codes but for an offset.
_WIDEST = 1 << 16
_ROWS_PER_VALUE = 8


def factorize(series: pd.Series, label: Hashable) -> tuple[IntArray, list[Any]]:
    """Return codes, -1 for missing, and the list of distinct values as Python objects."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        return series.array.codes, series.cat.categories.tolist()
    try:
        codes, uniques = pd.factorize(series)
    except TypeError as error:
        raise TypeError(
            f"The column {label!r} has cells that cannot be compared ({error}): convert it to "
            f"strings or numbers first."
        ) from error
    return codes, uniques.tolist()


def coded(series: pd.Series, label: Hashable) -> tuple[IntArray, list[Any]]:
    """Return codes, -1 for missing, and a list of values, some of which may not occur."""
    if (span := _small_span(series)) is not None:
        return _by_offset(series, *span), list(range(span[0], span[1] + 1))
    return factorize(series, label)


def is_coded(series: pd.Series) -> bool:
    """Return whether the codes of a column come without looking for its distinct values."""
    return isinstance(series.dtype, pd.CategoricalDtype) or _small_span(series) is not None


def _small_span(series: pd.Series) -> tuple[int, int] | None:
    """Return the least and the largest of integers that are close together, None for others."""
    if series.dtype.kind not in "iu" or not len(series):
        return None
    low, high = series.min(), series.max()
    if pd.isna(low) or int(high) - int(low) >= min(_WIDEST, len(series) // _ROWS_PER_VALUE):
        return None
    return int(low), int(high)


def _by_offset(series: pd.Series, low: int, high: int) -> IntArray:
    """Return integers as codes that count from the least of them."""
    dtype = np.min_scalar_type(low - high - 1)
    numbers = series.to_numpy(dtype=getattr(series.dtype, "numpy_dtype", None), na_value=low)
    codes = numbers.astype(dtype)  # modulo the size of the type, within which all of them are
    codes -= np.array(low).astype(dtype)
    if series.hasnans:
        codes[series.isna().to_numpy()] = -1
    return codes


def family_of(values: list[Any], label: Hashable) -> str:
    """Return what kind of values a column has: "numbers", "times", or the name of a type."""
    families = {_family(value) for value in values}
    if len(families) > 1:
        raise TypeError(
            f"The column {label!r} mixes {' and '.join(sorted(families))} values: convert it to "
            f"one type first, for instance with .astype(str)."
        )
    return families.pop() if families else "none"


def _family(value: object) -> str:
    if isinstance(value, bool | np.bool):
        return "bool"
    if isinstance(value, numbers.Real | decimal.Decimal):
        return "numbers"
    if isinstance(value, datetime.date | datetime.timedelta | np.datetime64 | np.timedelta64):
        return "times"  # a datetime is a date too
    return "str" if isinstance(value, str) else type(value).__name__


def as_numbers(series: pd.Series, label: Hashable) -> FloatArray:
    """Return a column of numbers or times (as nanoseconds) as floats, NaN where missing."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        used = series.cat.remove_unused_categories().array
        numbers = as_numbers(pd.Series(used.categories.tolist(), dtype=object), label)
        return np.append(numbers, np.nan).take(used.codes)
    if series.dtype == object:
        series = pd.Series(series.tolist()).infer_objects()
        if isinstance(series.dropna().iloc[:1].squeeze(), datetime.date):
            series = pd.to_datetime(series)
    if series.dtype.kind in "mM":
        times = series.dt.as_unit("ns")
        return np.where(times.isna(), np.nan, times.astype("int64").to_numpy())
    try:
        return pd.to_numeric(series).to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"The column {label!r} must hold numbers or times, but has dtype {series.dtype}."
        ) from error
