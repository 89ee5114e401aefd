"""The distinct values of a column, and columns as numbers."""

import datetime
import decimal
import numbers
from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from .._typing import FloatArray, IntArray
from ..codes import UNKNOWN, take
from .dictionaries import dictionary_codes
from .spellings import plain

# Integers that span less than this, with this many rows for each, serve as codes after an offset.
_WIDEST = 1 << 16
_ROWS_PER_VALUE = 8


def factorize(series: pd.Series, label: Hashable) -> tuple[IntArray, list[Any]]:
    """Return codes, -1 for missing, and the list of distinct values as Python objects."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        return _of_categories(series.array.codes, series.cat.categories)
    if isinstance(series.dtype, pd.StringDtype) and series.dtype.storage == "pyarrow":
        return dictionary_codes(series.array.__arrow_array__().dictionary_encode())
    if series.dtype.kind == "f" and not isinstance(series.dtype, np.dtype):
        # Among numbers that may be null, NaN would be another value than null, and -0.0 than 0.0.
        series = pd.Series(series.to_numpy(dtype=float, na_value=np.nan))
    try:
        codes, uniques = pd.factorize(series)
    except TypeError as error:
        raise TypeError(
            f"The column {label!r} has cells that cannot be compared ({error}): convert it to "
            f"strings or numbers first."
        ) from error
    if series.dtype == object:
        values = uniques.tolist()
        _check_booleans(series, codes, values, label)
        return _of_objects(codes, values)
    return codes, (uniques + 0.0 if series.dtype.kind == "f" else uniques).tolist()


def _of_categories(codes: IntArray, categories: pd.Index) -> tuple[IntArray, list[Any]]:
    if categories.dtype != object:
        return codes, (categories + 0.0 if categories.dtype.kind == "f" else categories).tolist()
    return _of_objects(codes, categories.tolist())


def _of_objects(codes: IntArray, values: list[Any]) -> tuple[IntArray, list[Any]]:
    """Return codes and values of objects in one spelling, in which more of them may be equal."""
    written = list(map(plain, values))
    if all(isinstance(value, str) for value in written):
        return codes, written
    again, distinct = pd.factorize(pd.Series(written, dtype=object))
    if len(distinct) < len(values):  # a datetime and a Timestamp, say
        codes = take(np.append(again, UNKNOWN), codes)
    return codes, distinct.tolist()


def _check_booleans(
    series: pd.Series, codes: IntArray, values: list[Any], label: Hashable
) -> None:
    """Check that no boolean is among numbers: to pandas, True is the same value as 1."""
    alike = [values.index(value) for value in (0, 1) if value in values]
    rows = np.flatnonzero(np.isin(codes, alike))
    family_of(list({type(value): value for value in series.iloc[rows]}.values()), label)


def coded(series: pd.Series, label: Hashable) -> tuple[IntArray, list[Any]]:
    """Return codes, -1 for missing, and a list of values, some of which may not occur."""
    return coded_by_offset(series) or factorize(series, label)


def coded_by_offset(series: pd.Series) -> tuple[IntArray, list[Any]] | None:
    """Return integers that are close together as codes counted from the least; otherwise None."""
    is_sparse = isinstance(series.dtype, pd.SparseDtype)
    if series.dtype.kind not in "iu" or is_sparse or len(series) < _ROWS_PER_VALUE:
        return None
    missing = series.isna().to_numpy() if series.hasnans else np.zeros(1, dtype=bool)
    if missing.all():
        return None
    any_ = series.iloc[missing.argmin()]  # stands for the missing ones
    dtype: Any = getattr(series.dtype, "numpy_dtype", series.dtype)
    numbers = series.to_numpy(dtype=dtype, na_value=any_)
    low, high = int(numbers.min()), int(numbers.max())
    if high - low >= min(_WIDEST, len(numbers) // _ROWS_PER_VALUE):
        return None
    # Computed modulo the size of a type in which all of them, and -1, are different.
    codes = numbers.astype(np.min_scalar_type(low - high - 1))
    codes -= np.array(low).astype(codes.dtype)
    if missing.any():
        codes[missing] = UNKNOWN
    return codes, list(range(low, high + 1))


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
    try:
        if series.dtype == object:
            series = pd.Series(series.tolist()).infer_objects()
            if isinstance(series.dropna().iloc[:1].squeeze(), datetime.date):
                series = pd.to_datetime(series)
        if series.dtype.kind in "mM":
            times = series.dt.as_unit("ns")
            return np.where(times.isna(), np.nan, times.astype("int64").to_numpy())
    except pd.errors.OutOfBoundsDatetime:
        # The cause is left out because it shows a value, which may be one of S.
        raise ValueError(
            f"The column {label!r} has times before 1677 or after 2262, which are out of range in "
            f"nanoseconds: convert it to strings, or to years."
        ) from None
    try:
        return pd.to_numeric(series).to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError):
        # The cause is left out because it shows a value, which may be one of S.
        raise TypeError(
            f"The column {label!r} must hold numbers or times, but has dtype {series.dtype}."
        ) from None
