"""Columns of pandas that are copied: their values in one spelling each, and nothing else.

Where rows come from several sources, how a value is written may tell which one a row is from: null
or NaN, 0.0 or -0.0, 1 or 1.0. So may what is not shown at all: numbers under missing ones, unused
categories, and the table that a column is a view of.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._typing import BoolArray
from ..codes import UNKNOWN, take
from ..encoding.spellings import plain
from ..encoding.values import factorize
from .narwhals_frames import plain_arrow

# The indexes that may hold more than their values, or several spellings of one.
_SPELLED = ("O", "f")


def plain_column(series: pd.Series) -> pd.Series:
    """Return a copy of a column that holds what can be read in it, and no more."""
    # Set explicitly, or pandas would turn objects that are all strings into a string column.
    dtype = object if series.dtype == object else None
    return pd.Series(_plain(series), index=series.index, name=series.name, dtype=dtype, copy=False)


def plain_index(index: pd.Index) -> pd.Index:
    """Return an index in one spelling, without what it does not show."""
    if isinstance(index, pd.MultiIndex):
        levels = [index.get_level_values(i) for i in range(index.nlevels)]
        return pd.MultiIndex.from_arrays(
            [plain_column(level.to_series()).array for level in levels], names=index.names
        )
    is_spelled = index.dtype.kind in _SPELLED or not isinstance(index.dtype, np.dtype)
    if not is_spelled or isinstance(index, pd.DatetimeIndex | pd.PeriodIndex):
        return index.copy(deep=True)
    dtype = object if index.dtype == object else None
    return pd.Index(_plain(index.to_series()), dtype=dtype, name=index.name, tupleize_cols=False)


def plain_array(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a copy of an array with one spelling for each of its values."""
    if column.dtype == object:
        return _of_objects(pd.Series(column, dtype=object))
    if column.dtype.kind != "f":
        return column.copy()
    return np.where(np.isnan(column), np.array(np.nan, column.dtype), column + 0.0)


def _plain(series: pd.Series) -> Any:
    dtype, is_object = series.dtype, series.dtype == object
    if isinstance(dtype, pd.CategoricalDtype):
        return _of_used_categories(series.array)
    if is_object:
        return _of_objects(series)
    if isinstance(dtype, np.dtype):
        return plain_array(series.to_numpy())
    if isinstance(dtype, pd.SparseDtype):
        return pd.arrays.SparseArray(plain_array(np.asarray(series)), dtype=dtype)
    if isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "storage", "") == "pyarrow":
        return pd.array(plain_arrow(series.array.__arrow_array__()), dtype=dtype)
    if isinstance(dtype, pd.StringDtype):
        return pd.array(_of_objects(series.astype(object)), dtype=dtype)
    return _of_masked(series.array, series.isna().to_numpy())


def _of_objects(series: pd.Series) -> Any:
    try:
        codes, values = factorize(series, series.name)
    except TypeError:  # lists, say, of which a warning tells that they cannot be judged
        values = list(map(plain, series))
        codes = np.where(series.isna(), UNKNOWN, np.arange(len(values)))
    objects = pd.Series([*values, None], dtype=object).to_numpy()
    return objects[codes]


def _of_used_categories(array: Any) -> pd.Categorical:
    """Return categories that occur; without an order of their own, they are sorted."""
    codes, values = factorize(pd.Series(array), "")
    used = np.unique(codes[codes >= 0])
    categories = array.categories
    if categories.dtype == object:
        categories = pd.Index(values, dtype=object, tupleize_cols=False)
    categories = categories.take(used)
    order = np.arange(len(used)) if array.ordered else _order_of(categories)
    position_of = np.full(len(values) + 1, UNKNOWN)
    position_of[used[order]] = np.arange(len(used))
    dtype = pd.CategoricalDtype(plain_index(categories.take(order)), array.ordered)
    return pd.Categorical.from_codes(take(position_of, codes).copy(), dtype=dtype)


def _order_of(categories: pd.Index) -> Any:
    try:
        return np.argsort(categories, kind="stable")
    except TypeError:  # values that cannot be compared
        return np.argsort(categories.map(repr), kind="stable")


def _of_masked(array: Any, missing: BoolArray) -> Any:
    """Return an array with nothing under what is missing; NaN is missing too."""
    is_float = array.dtype.kind == "f"
    if is_float:
        missing = missing | np.isnan(array.to_numpy(dtype=float, na_value=np.nan))
    taken = array.take(np.where(missing, UNKNOWN, np.arange(len(array))), allow_fill=True)
    return taken + 0.0 if is_float else taken
