"""Frames of polars and pyarrow; the only import of narwhals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from .._typing import FloatArray, IntArray
from ..codes import UNKNOWN, take
from ..encoding.values import dictionary_codes, plain
from .table import ColumnType, Table, is_name, present

# The types of pyarrow for texts, and how many of them are worth sorting.
_TEXTS = ("string", "large_string", "string_view")
_MOST_TEXTS = 1 << 16

# The name of a dictionary type of pyarrow, with the types of its values and codes.
_DICTIONARY = re.compile(r"dictionary<values=(.+), indices=(\w+), ordered=[01]>")

# The names of types of decimals, in pyarrow and in polars.
_DECIMAL = re.compile(r"(decimal\d+|Decimal)\((?:precision=)?(\d+), (?:scale=)?(-?\d+)\)")

_MOST_DIGITS = 38

# Types of pyarrow that it cannot take rows from, and others that hold the same values.
_NOT_TAKEN = {"halffloat": "float", "string_view": "string", "binary_view": "binary"}

_TIMES = {"time": "M8", "duration": "m8"}
_WHOLE = ("int", "uint")
_NUMBERS = {"int": "Int", "uint": "UInt", "float": "Float"}
_NUMBER = re.compile(r"(U?Int|Float)(\d+)")


def as_narwhals_table(X: Any, owner: str) -> NarwhalsTable | None:
    """Return a table around a frame of polars or pyarrow, None for anything else."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return NarwhalsTable(frame, owner) if isinstance(frame, nw.DataFrame) else None


def lazy_kind(X: Any) -> str | None:
    """Return the library of a frame that is computed later or elsewhere, None for others."""
    if isinstance(X, pd.DataFrame | np.ndarray):
        return None
    frame = nw.from_native(X, pass_through=True)
    # Frames of Spark Connect are of the same kind.
    return str(frame.implementation).split("[")[0] if isinstance(frame, nw.LazyFrame) else None


def converted(X: Any, container: str) -> Any:
    """Return a frame of another library as one of `container`, "pandas" or "polars".

    scikit-learn converts the output of a transformer only from pandas and from arrays.
    """
    if isinstance(X, pd.DataFrame):
        return X
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return X
    return {"pandas": frame.to_pandas, "polars": frame.to_polars}.get(container, lambda: X)()


class NarwhalsTable(Table):
    """A polars or pyarrow frame."""

    names: list[Any]

    def __init__(self, frame: nw.DataFrame, owner: str) -> None:
        self._frame = frame
        self._is_arrow = frame.implementation.is_pyarrow()
        self.original = frame.to_native()
        self.names = frame.columns
        self.n_rows, self.n_columns = frame.shape

    def column(self, position: int) -> pd.Series:
        series = self._frame[self.names[position]]
        if _has_few_texts(series):
            return _few_texts(series)
        column = _to_pandas(series)
        if series.dtype == nw.Categorical() and isinstance(column.dtype, pd.CategoricalDtype):
            # polars orders texts by when they first appeared, in any column.
            return column.cat.reorder_categories(sorted(column.cat.categories), ordered=False)
        return column

    def native(self, position: int) -> nw.Series:
        return self._frame[self.names[position]]

    def kept(self, position: int, type_: ColumnType) -> nw.Series:
        plain = self._plain(self.native(position))
        return plain if (seen := _as_seen(plain, type_)) is plain else self._plain(seen)

    def _plain(self, series: nw.Series) -> nw.Series:
        native = series.to_native()
        plain = plain_arrow(native) if self._is_arrow else _plain_polars(native)
        return nw.from_native(plain, series_only=True)

    @property
    def _library(self) -> Any:
        """The module of polars or pyarrow."""
        return self._frame.__native_namespace__()

    def type_of(self, position: int) -> ColumnType:
        return _type_of(self.native(position))

    def decoded(
        self, type_: ColumnType, shown: list[Any], values: list[Any], codes: IntArray
    ) -> nw.Series:
        shown, values = _none_for_missing(shown), _none_for_missing(values)
        if type_.family == "category":
            return self._of_categories(present(shown), type_, values, codes)
        # Typed together with all values that may be shown, whichever of them are needed here.
        typed = self._typed(type_, [*shown, *values])
        found = getattr(typed.to_native(), "type", None)
        if str(found) not in _NOT_TAKEN:
            return typed[len(shown) :][np.asarray(codes)]
        plain = self._series(_alike([*shown, *values], is_whole=False))
        taken = plain[len(shown) :][np.asarray(codes)].to_native()
        return nw.from_native(taken.cast(found), series_only=True)

    def _typed(self, type_: ColumnType, values: list[Any]) -> nw.Series:
        """Return values in a type, or in their own where that cannot hold them."""
        values = _alike(values, is_whole=type_.family in _WHOLE)
        try:
            if type_.family in _TIMES:
                return self._times(type_, values)
            if (native := self._native_type(type_)) is not None:
                widest = nw.UInt64() if type_.family == "uint" else None
                made = self._series(values, widest).to_native()
                return nw.from_native(made.cast(native), series_only=True)
            return self._series(values, _dtype_for(type_))
        except Exception:  # every engine has errors of its own
            return self._series(values)

    def _times(self, type_: ColumnType, values: list[Any]) -> nw.Series:
        """Return moments or durations to the nanosecond, which Python's own do not have."""
        make: Any = pd.Timestamp if type_.family == "time" else pd.Timedelta
        dtype = f"{_TIMES[type_.family]}[{type_.unit}]"
        array = np.array([None if v is None else make(v).asm8 for v in values], dtype=dtype)
        series = self._series(array, _dtype_for(replace(type_, zone=None)))
        if type_.zone is None:
            return series
        return series.dt.replace_time_zone("UTC").dt.convert_time_zone(type_.zone)

    def _native_type(self, type_: ColumnType) -> Any:
        """Return the type that `fit` saw, where it is finer than those of narwhals."""
        if type_.library != self._frame.implementation.name.lower():
            return None
        return self._arrow_type(type_.native) if self._is_arrow else self._decimal(type_.native)

    def _arrow_type(self, name: str | None) -> Any:
        try:
            return None if name is None else self._library.type_for_alias(name)
        except ValueError:  # with parameters: narwhals knows most of the others
            return self._decimal(name)

    def _decimal(self, name: str | None) -> Any:
        """Return a type of decimals by its name, None for another one."""
        found = _DECIMAL.fullmatch(name or "")
        return getattr(self._library, found[1])(int(found[2]), int(found[3])) if found else None

    def _series(self, values: Any, dtype: Any = None) -> nw.Series:
        series = nw.new_series("", values, dtype, backend=self._frame.implementation)
        return series if dtype is None or series.dtype == dtype else series.cast(dtype)

    def _of_categories(
        self, categories: list[Any], type_: ColumnType, values: list[Any], codes: IntArray
    ) -> nw.Series:
        """Return a column that lists all categories, including those that do not occur in it.

        In polars, an Enum: codes of its Categorical depend on all texts that were seen before.
        """
        if not self._is_arrow:
            is_text = all(isinstance(category, str) for category in categories)
            dtype = nw.Enum(categories) if is_text else None
            return self._series(values, dtype)[np.asarray(codes)]
        position_of = {category: position for position, category in enumerate(categories)}
        positions = np.array([*(position_of.get(value, UNKNOWN) for value in values), UNKNOWN])
        taken = take(positions, codes)
        return nw.from_native(self._dictionary(categories, type_, taken), series_only=True)

    def _dictionary(self, categories: list[Any], type_: ColumnType, codes: IntArray) -> Any:
        """Return a column of pyarrow with a dictionary; -1 is missing."""
        found = _DICTIONARY.fullmatch(type_.native) if type_.library == "pyarrow" else None
        of_values, of_codes = (
            self._arrow_type(name) for name in (found.groups() if found else (None, None))
        )
        if of_codes is None or len(categories) > np.iinfo(str(of_codes)).max:
            of_codes = self._library.int32()
        array = self._library.DictionaryArray.from_arrays(
            self._library.array(codes, of_codes, mask=codes < 0),
            self._library.array(categories, of_values),
            ordered=type_.is_ordered,
        )
        return self._library.chunked_array([array])

    def categorical(self, categories: list[str], codes: IntArray) -> nw.Series:
        return self._of_categories(categories, ColumnType("category"), categories, codes)

    def floats(self, values: FloatArray) -> nw.Series:
        return nw.new_series("", values, nw.Float64(), backend=self._frame.implementation)

    def assemble(self, columns: Sequence[tuple[Any, Any]]) -> Any:
        # A new frame: the metadata of one of pyarrow may hold anything, even rows of people.
        natives = {name: column.to_native() for name, column in columns}
        return self._library.table(natives) if self._is_arrow else self._library.DataFrame(natives)


def _as_seen(series: nw.Series, type_: ColumnType) -> nw.Series:
    """Return numbers and times in the type that `fit` saw, if it can hold them."""
    dtype = _dtype_for(type_)
    both_numbers = series.dtype.is_numeric() and type_.family in _NUMBERS
    both_times = isinstance(series.dtype, nw.Datetime) and type_.family == "time"
    if dtype == series.dtype or not (both_numbers or both_times):
        return series
    try:
        typed = series.cast(dtype)
        return typed if (typed.cast(series.dtype) == series).all() else series
    except Exception:  # every engine has errors of its own
        return series


def plain_arrow(column: Any) -> Any:
    """Return a copy of a column of pyarrow: its values in one spelling, in one chunk, and no more.

    Slices share the buffers of the whole, there may be values under missing ones, and dictionaries
    may list values of other rows: they are decoded.
    """
    library = nw.Implementation.PYARROW.to_native_namespace()
    if not hasattr(column, "chunks"):
        column = library.chunked_array([column])
    if hasattr(column.type, "index_type"):
        column = column.cast(column.type.value_type)
    if not _is_flat(column.type):
        values = list(map(plain, column.to_pylist()))
        return library.chunked_array([library.array(values, type=column.type)])
    type_, can_be_taken = column.type, _NOT_TAKEN.get(str(column.type))
    if can_be_taken is not None:
        column = column.cast(can_be_taken)
    series = nw.from_native(column, series_only=True)
    present, more, rows = _present(series)
    more = [library.array([value], column.type) for value in more]
    taken = library.chunked_array([*present.to_native().chunks, *more]).take(rows)
    return library.chunked_array([taken.cast(type_).combine_chunks()])


def _plain_polars(column: Any) -> Any:
    """Return a copy of a column of polars, as `plain_arrow` does."""
    series = nw.from_native(column, series_only=True)
    if isinstance(series.dtype, nw.Categorical | nw.Enum):
        series = series.cast(nw.String())
    if series.dtype.is_nested() or series.dtype == nw.Object():
        return type(column)(column.name, list(map(plain, column.to_list())), column.dtype)
    present, more, rows = _present(series)
    made = present.to_native()
    for value in more:
        made = made.extend_constant(value, 1)
    return made.gather(rows).rechunk()


def _present(series: nw.Series) -> tuple[nw.Series, list[Any], IntArray]:
    """Return what is not missing in a column, what else it needs, and which of both each row is.

    For numbers that is a zero without a sign as well, for -0.0: adding 0.0 is nothing to polars.
    """
    is_there = ~series.is_null()
    if series.dtype.is_float():
        is_there = is_there & ~series.is_nan().fill_null(False)
    known = is_there.to_numpy().astype(bool)
    n_present = np.count_nonzero(known)
    rows = np.where(known, np.cumsum(known) - 1, n_present)
    if not series.dtype.is_float():
        return series.filter(is_there), [None], rows
    rows[(series == 0.0).fill_null(False).to_numpy().astype(bool)] = n_present + 1
    return series.filter(is_there), [None, 0.0], rows


def _is_flat(type_: Any) -> bool:
    """Whether a type of pyarrow holds one value in each row, which it can take."""
    stored = getattr(type_, "storage_type", type_)
    return not (stored.num_fields or hasattr(stored, "value_type"))


def as_series(vector: Any) -> pd.Series | None:
    """Return a Series of polars or pyarrow as one of pandas; None for anything else."""
    series = nw.from_native(vector, series_only=True, pass_through=True)
    return _to_pandas(series) if isinstance(series, nw.Series) else None


def _to_pandas(series: nw.Series) -> pd.Series:
    native = series.to_native()
    type_: Any = getattr(native, "type", None)
    if hasattr(type_, "index_type"):
        # Narwhals would turn missing values in a dictionary of pyarrow into its first value.
        decoded = nw.from_native(native.cast(type_.value_type), series_only=True)
        return _to_pandas(decoded).rename(series.name)
    if series.dtype.is_integer() and series.null_count():
        # As floats, large integers would lose their last digits.
        is_large = series.dtype == nw.UInt64()
        values = series.fill_null(0).to_numpy().astype(np.uint64 if is_large else np.int64)
        array = pd.arrays.IntegerArray(values, series.is_null().to_numpy().astype(bool))
        return pd.Series(array, name=series.name)
    if type_ is not None:
        return pd.Series(native.to_pandas(), name=series.name)
    try:
        return series.to_pandas()
    except ModuleNotFoundError:  # polars goes through pyarrow, which it does not require
        return pd.Series(series.to_list(), name=series.name)


def _has_few_texts(series: nw.Series) -> bool:
    """Whether a column is of pyarrow, encoded by dictionaries of few texts."""
    type_: Any = getattr(series.to_native(), "type", None)
    if not hasattr(type_, "index_type") or str(type_.value_type) not in _TEXTS:
        return False
    return sum(len(chunk.dictionary) for chunk in series.to_native().chunks) <= _MOST_TEXTS


def _few_texts(series: nw.Series) -> pd.Series:
    """Return a column encoded by dictionaries of texts like one of texts, without decoding it.

    To an alphabet, sorted categories are the same as texts; the order of a dictionary means
    nothing.
    """
    codes, texts = dictionary_codes(series.to_native())
    order = sorted(range(len(texts)), key=texts.__getitem__)
    codes = take(np.append(np.argsort(order), -1), codes)
    dtype = pd.CategoricalDtype([texts[i] for i in order])
    return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype, validate=False))


def _alike(values: list[Any], is_whole: bool) -> list[Any]:
    """Return numbers all as integers, if `is_whole` and they can be, or all as floats.

    Where there are decimals, all become such.
    """
    numbers = [v for v in values if isinstance(v, int | float | Decimal) and type(v) is not bool]
    kinds = {*map(type, numbers)}
    if len(numbers) < len(present(values)) or kinds <= {int}:
        return values
    convert: Any = int if is_whole and all(number == int(number) for number in numbers) else float
    convert = _decimal if Decimal in kinds else convert
    return [None if value is None else convert(value) for value in values]


def _decimal(value: Any) -> Decimal:
    """Return a number as a decimal; the middle of a bin may need more digits than one can have."""
    exact = Decimal(value)
    return exact if len(exact.as_tuple().digits) <= _MOST_DIGITS else Decimal(repr(value))


def _none_for_missing(values: list[Any]) -> list[Any]:
    return [None if pd.isna(value) else value for value in values]


def _type_of(series: nw.Series) -> ColumnType:
    """Return the type of a column of polars or pyarrow."""
    dtype, native = series.dtype, series.to_native()
    library = str(series.implementation.name).lower()
    name = str(getattr(native, "type", getattr(native, "dtype", "")))
    name = name if is_name(name) else ""  # that of an Enum of polars would list its values
    return ColumnType(**_described(dtype, native), library=library, native=name)


def _described(dtype: Any, native: Any) -> dict[str, Any]:
    if isinstance(dtype, nw.Categorical | nw.Enum):
        in_arrow = getattr(getattr(native, "type", None), "ordered", False)
        return {"family": "category", "is_ordered": isinstance(dtype, nw.Enum) or bool(in_arrow)}
    if found := _NUMBER.fullmatch(str(dtype)):
        return {"family": found[1].lower(), "bits": int(found[2])}
    if isinstance(dtype, nw.Datetime):
        return {"family": "time", "unit": dtype.time_unit, "zone": dtype.time_zone}
    if isinstance(dtype, nw.Duration):
        return {"family": "duration", "unit": dtype.time_unit}
    families = {nw.Boolean: "bool", nw.String: "text", nw.Date: "date"}
    return {"family": families.get(type(dtype), "object")}


def _dtype_for(type_: ColumnType) -> Any:
    """Return a dtype of narwhals; None: whatever the values need."""
    if type_.family in _NUMBERS:
        # There are no floats of 16 bits.
        bits = max(type_.bits or 64, 32) if type_.family == "float" else type_.bits
        return getattr(nw, f"{_NUMBERS[type_.family]}{bits}")()
    unit: Any = type_.unit
    return {
        "bool": nw.Boolean(),
        "text": nw.String(),
        "time": nw.Datetime(unit or "us", type_.zone),
        "duration": nw.Duration(unit or "us"),
        "date": nw.Date(),
    }.get(type_.family)
