"""Values of a column: distinct values, conversion to numbers, and one spelling for each.

pyarrow is not imported: its objects have all the methods needed here.
"""

from __future__ import annotations

import datetime
import decimal
import math
import numbers
import re
from collections.abc import Hashable, Iterable
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from .._typing import FloatArray, IntArray
from ..codes import UNKNOWN, look_up, narrow, take


def dictionary_codes(column: Any) -> tuple[IntArray, list[Any]]:
    """Return codes, -1 for missing, and the values of a ChunkedArray of dictionaries.

    Dictionaries may differ between chunks, and may repeat a value; both dictionaries and indices
    may contain nulls. Some of the values may not occur.
    """
    code_of: dict[Any, int] = {}
    codes: list[IntArray] = [np.empty(0, dtype=np.int8)]
    dictionary, table = None, np.array([UNKNOWN])
    for chunk in column.chunks:
        if dictionary is None or not chunk.dictionary.equals(dictionary):
            dictionary = chunk.dictionary
            of_values = [  # new values get the next codes
                UNKNOWN if value is None else code_of.setdefault(value, len(code_of))
                for value in dictionary.to_pylist()
            ]
            table = narrow(np.array([*of_values, UNKNOWN]))
        has_missing = bool(chunk.indices.null_count)
        indices = chunk.indices.fill_null(0) if has_missing else chunk.indices
        codes.append(look_up(table, indices.to_numpy()))
        if has_missing:
            codes[-1][chunk.indices.is_null().to_numpy(zero_copy_only=False)] = UNKNOWN
    return np.concatenate(codes) if len(codes) > 2 else codes[-1], list(code_of)


# The distinct values of a column, and columns as numbers.


# Integers in a range narrower than this, with this many rows per value, become codes by an offset.
_WIDEST = 1 << 16
_ROWS_PER_VALUE = 8


def factorize(series: pd.Series, label: Hashable) -> tuple[IntArray, list[Any]]:
    """Return codes, -1 for missing, and the list of distinct values as Python objects."""
    codes, values = factorized(series, label)
    return codes, as_list(values)


def factorized(series: pd.Series, label: Hashable) -> tuple[IntArray, Any]:
    """Return codes, -1 for missing, and an array of numbers or times, or a list of values."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        codes, categories = series.array.codes, series.cat.categories
        if categories.dtype == object:
            return _of_objects(codes, categories.tolist())
        return codes, (categories + 0.0 if categories.dtype.kind == "f" else categories).tolist()
    if isinstance(series.dtype, pd.StringDtype) and series.dtype.storage == "pyarrow":
        return dictionary_codes(series.array.__arrow_array__().dictionary_encode())
    if series.dtype.kind == "f" and not isinstance(series.dtype, np.dtype):
        # In nullable columns, pandas distinguishes NaN from null, and -0.0 from 0.0.
        series = pd.Series(series.to_numpy(dtype=float, na_value=np.nan))
    try:
        codes, uniques = pd.factorize(series)
    except TypeError as error:
        problem = f"The column {label!r} has cells that cannot be compared ({error}): "
        raise TypeError(problem + "convert it to strings or numbers first.") from error
    if series.dtype == object:
        values = uniques.tolist()
        # Raises if booleans are among numbers: to pandas, True and 1 are the same value.
        alike = [values.index(value) for value in (0, 1) if value in values]
        rows = np.flatnonzero(np.isin(codes, alike))
        family_of(list({type(value): value for value in series.iloc[rows]}.values()), label)
        return _of_objects(codes, values)
    if series.dtype.kind == "f":
        return codes, uniques + 0.0
    is_other = isinstance(series.dtype, pd.SparseDtype | pd.ArrowDtype)
    return codes, uniques if series.dtype.kind in "iumM" and not is_other else uniques.tolist()


def as_list(values: Any) -> list[Any]:
    """Return a list, or an array of numbers or times, as a list of Python objects."""
    return values if isinstance(values, list) else values.tolist()


def _of_objects(codes: IntArray, values: list[Any]) -> tuple[IntArray, list[Any]]:
    """Return codes and values in one spelling; values that are then equal share a code."""
    spelled = list(map(plain, values))
    if all(isinstance(value, str) for value in spelled):
        return codes, spelled
    code_of_spelled, distinct = pd.factorize(pd.Series(spelled, dtype=object))
    if len(distinct) < len(values):  # for instance a datetime and an equal Timestamp
        codes = take(np.append(code_of_spelled, UNKNOWN), codes)
    return codes, distinct.tolist()


def coded(series: pd.Series, label: Hashable) -> tuple[IntArray, list[Any]]:
    """Return codes, -1 for missing, and a list of values, some of which may not occur."""
    codes, values = coded_by_offset(series) or factorized(series, label)
    return codes, as_list(values)


def coded_by_offset(series: pd.Series) -> tuple[IntArray, IntArray] | None:
    """Return integers of a narrow range as codes counted from the least; otherwise None."""
    is_sparse = isinstance(series.dtype, pd.SparseDtype)
    if series.dtype.kind not in "iu" or is_sparse or len(series) < _ROWS_PER_VALUE:
        return None
    missing = series.isna().to_numpy() if series.hasnans else np.zeros(1, dtype=bool)
    if missing.all():
        return None
    dtype: Any = getattr(series.dtype, "numpy_dtype", series.dtype)
    # Any present value stands in for the missing ones.
    numbers = series.to_numpy(dtype=dtype, na_value=series.iloc[missing.argmin()])
    low, high = int(numbers.min()), int(numbers.max())
    if high - low >= min(_WIDEST, len(numbers) // _ROWS_PER_VALUE):
        return None
    # Computed modulo the size of a type in which all of them, and -1, differ.
    codes = numbers.astype(np.min_scalar_type(low - high - 1))
    codes -= np.array(low).astype(codes.dtype)
    if missing.any():
        codes[missing] = UNKNOWN
    # Computed modulo the size of their type, which may be too narrow for the differences.
    return codes, np.arange(high - low + 1).astype(dtype) + numbers.min()


def sorted_numbers(series: pd.Series) -> tuple[Any, IntArray] | None:
    """Return the distinct numbers or times of a column in order, and how many rows have each.

    Both are arrays. None if the dtype is of neither, or if it has to be counted by codes.
    """
    dtype, is_other = series.dtype, isinstance(series.dtype, pd.SparseDtype | pd.ArrowDtype)
    if dtype.kind == "f" and dtype != np.longdouble:
        numbers = np.sort(series.to_numpy(dtype=float, na_value=np.nan))
        numbers = numbers[: len(numbers) - np.count_nonzero(np.isnan(numbers))]
        numbers += 0.0  # -0.0 becomes 0.0
    elif dtype.kind in "iumM" and not is_other:
        present = series.dropna() if series.hasnans else series
        present = present.astype("int64") if dtype.kind in "mM" else present
        numbers = np.sort(present.to_numpy(dtype=getattr(present.dtype, "numpy_dtype", None)))
    else:
        return None
    is_first = np.append(True, numbers[1:] != numbers[:-1])[: len(numbers)]
    counts: IntArray = np.ones(len(numbers), dtype=np.int8)
    if not is_first.all():
        starts = np.flatnonzero(is_first)
        numbers, counts = numbers[starts], np.diff(starts, append=len(numbers))
    return pd.Index(numbers).astype(dtype) if dtype.kind in "mM" else numbers, counts


def family_of(values: Any, label: Hashable) -> str:
    """Return the kind of values in a column: "numbers", "times", or the name of a type.

    values : a list, or an array of numbers or times.
    """
    if not isinstance(values, list) and len(values):
        return "numbers" if values.dtype.kind in "iuf" else "times"
    families = {_family(value) for value in values}
    if len(families) > 1:
        problem = f"The column {label!r} mixes {' and '.join(sorted(families))} values: "
        raise TypeError(problem + "convert it to one type first, for instance with .astype(str).")
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
        # Without the cause, which shows a value that may be sensitive.
        problem = f"The column {label!r} has times before 1677 or after 2262, out of range in "
        raise ValueError(problem + "nanoseconds: convert it to strings, or to years.") from None
    try:
        if series.dtype.kind not in "iuf":
            series = pd.to_numeric(series)
        return series.to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError):
        # Without the cause, which shows a value that may be sensitive.
        problem = f"The column {label!r} must hold numbers or times, but has dtype {series.dtype}."
        raise TypeError(problem) from None


# One spelling for each value: 1, 1.0 and Decimal("1.00") are one value, and are released as one.
#
# Which of equal values represents all of them is a function of the value. It must not depend on
# the row that came first, nor on the rows in a batch.


# Precise enough for every decimal: the default context would round.
_EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)

_DATETIMES, _TIMEDELTAS = datetime.datetime | np.datetime64, datetime.timedelta | np.timedelta64


def plain(value: Any) -> Any:
    """Return the spelling of a value, which does not depend on its column.

    Numbers are integers if they are whole, floats if that is exact, and decimals otherwise; times
    are pandas objects, in UTC if they have a zone.
    """
    if isinstance(value, str):  # possibly a member of an enumeration
        return value if type(value) is str else str.__str__(value)
    if isinstance(value, bool | np.bool):
        return bool(value)
    if isinstance(value, _DATETIMES | _TIMEDELTAS):  # before numbers: a timedelta64 is one
        return _time(value)
    if isinstance(value, numbers.Real | decimal.Decimal):
        return _number(value)
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    return type(value)(map(plain, value)) if type(value) in (tuple, list) else value


def _number(value: Any) -> Any:
    """Return an integer if it is whole, a float if that is exact, otherwise the value itself."""
    if value != value:  # for instance in a tuple
        return math.nan
    if value in (math.inf, -math.inf):
        return float(value)
    if value == (whole := int(value)):
        return whole
    if value == (near := float(value)):
        return near
    # Without trailing zeros.
    return value.normalize(_EXACT) if isinstance(value, decimal.Decimal) else value


def _time(value: Any) -> Any:
    """Return a Timestamp or Timedelta in the finest unit possible, in UTC if it has a zone."""
    make: Any = pd.Timestamp if isinstance(value, _DATETIMES) else pd.Timedelta
    found = make(value)
    if found is pd.NaT:
        return found
    written = make(found.asm8).as_unit("s")  # without its zone and its fold
    for unit in ("ns", "us", "ms"):
        with suppress(pd.errors.OutOfBoundsDatetime, pd.errors.OutOfBoundsTimedelta):
            written = make(found.asm8).as_unit(unit)
            break
    return written.tz_localize("UTC") if getattr(found, "tz", None) is not None else written


# Texts that look like the steps of a scale.


# Words of a scale in ascending order; words on one step mean about the same.
_SCALES = tuple(
    tuple(tuple(step.split("|")) for step in scale.split(", "))
    for scale in (
        "none|no, lowest|minimal, very low, low, medium-low|medium low, "
        "medium|moderate|middle|mid|average|normal, medium-high|medium high, high, very high, "
        "highest|extreme|maximal",
        "strongly disagree|disagree strongly, disagree|somewhat disagree, "
        "neutral|neither agree nor disagree|undecided, agree|somewhat agree, "
        "strongly agree|agree strongly",
        "never, rarely|seldom|hardly ever, sometimes|occasionally, often|frequently, "
        "usually|mostly, always",
        "very poor|very bad|terrible, poor|bad, fair|ok|okay, good, very good, excellent",
        "very dissatisfied, dissatisfied, neutral, satisfied, very satisfied",
        "none|no, mild|minor|slight, moderate, severe|serious|major, critical|very severe",
        "very small|tiny, small, medium, large|big, very large|huge",
        "xxs, xs, s, m, l, xl, xxl, xxxl",
        "very young, young, middle-aged|middle aged, old, very old",
        "primary, secondary, tertiary",
        "beginner|novice, intermediate, advanced, expert",
    )
)

# Ranges of numbers, such as "18-25", "26 to 40", "< 18" and "65+".
_RANGE = re.compile(
    r"(<=?|>=?|under |over )? *(\d+(?:\.\d+)?)(?: *(?:-|to|\u2013) *\d+(?:\.\d+)?)?(\+)?"
)

_MOST_STEPS = 20


def scale_of(values: Iterable[Any]) -> list[str] | None:
    """Return texts in ascending order if they look like the steps of a scale, else None.

    >>> scale_of(["High", "Low", "Medium"])
    ['Low', 'Medium', 'High']
    >>> scale_of(["65+", "18-25", "26-64"])
    ['18-25', '26-64', '65+']
    """
    texts = list(values)
    if not 3 <= len(texts) <= _MOST_STEPS or not all(isinstance(text, str) for text in texts):
        return None
    words = [" ".join(text.lower().replace("_", " ").split()) for text in texts]
    for scale in _SCALES:
        step_of = {word: step for step, words in enumerate(scale) for word in words}
        steps = [step_of.get(word) for word in words]
        if None not in steps and len(set(steps)) == len(steps):
            return [text for _, text in sorted(zip(steps, texts, strict=True))]
    found = [_RANGE.fullmatch(word) for word in words]
    if not all(found) or all(match and match[0] == match[2] for match in found):
        return None
    ends = [_start(match) for match in found if match]
    if len(set(ends)) < len(ends):
        return None
    return [text for _, text in sorted(zip(ends, texts, strict=True))]


def _start(match: re.Match[str]) -> tuple[float, int]:
    is_below = match[1] is not None and match[1][0] in "<u"
    return float(match[2]), -1 if is_below else 1 if match[1] is not None else 0
