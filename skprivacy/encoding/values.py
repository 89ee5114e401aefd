"""The distinct values of a column, and columns as numbers."""

import datetime
import decimal
import numbers
from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from .._typing import FloatArray, IntArray


def factorize(series: pd.Series, label: Hashable) -> tuple[IntArray, list[Any]]:
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
    if series.dtype == object or isinstance(series.dtype, pd.CategoricalDtype):
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
