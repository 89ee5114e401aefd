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

# pyarrow types of texts; dictionaries of more texts than this are not sorted.
_TEXTS = ("string", "large_string", "string_view")
_MOST_TEXTS = 1 << 16

# The name of a pyarrow dictionary type, with the types of its values and codes.
_DICTIONARY = re.compile(r"dictionary<values=(.+), indices=(\w+), ordered.[01]>")

# The names of decimal types, in pyarrow and in polars.
_DECIMAL = re.compile(r"(decimal\d+|Decimal)\((?:precision=)?(\d+), (?:scale=)?(-?\d+)\)")

# pyarrow types without a `take`, and types with it that hold the same values.
_NOT_TAKEN = {"halffloat": "float", "string_view": "string", "binary_view": "binary"}

_TIMES = {"time": "M8", "duration": "m8"}
_NUMBERS = {"int": "Int", "uint": "UInt", "float": "Float"}
_NUMBER = re.compile(r"(U?Int|Float)(\d+)")


def as_narwhals_table(X: Any) -> NarwhalsTable | None:
    """Return a table around a polars or pyarrow frame, None for anything else."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return NarwhalsTable(frame) if isinstance(frame, nw.DataFrame) else None


def lazy_kind(X: Any) -> str | None:
    """Return the library of a lazy frame, None for anything else."""
    if isinstance(X, pd.DataFrame | np.ndarray):
        return None
    frame = nw.from_native(X, pass_through=True)
    # Without the "[connect]" of Spark Connect.
    return str(frame.implementation).split("[")[0] if isinstance(frame, nw.LazyFrame) else None


def converted(X: Any, container: str) -> Any:
    """Return a polars or pyarrow frame as one of `container`, "pandas" or "polars".

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

    def __init__(self, frame: nw.DataFrame) -> None:
        self._frame = frame
        self._is_arrow = frame.implementation.is_pyarrow()
        self.original = frame.to_native()
        self.names = frame.columns
        self.n_rows, self.n_columns = frame.shape

    def column(self, position: int) -> pd.Series:
        series = self._native(position)
        if (texts := _few_texts(series)) is not None:
            return texts
        column = _to_pandas(series)
        if series.dtype == nw.Categorical() and isinstance(column.dtype, pd.CategoricalDtype):
            # polars orders categories by their first appearance, in any column.
            return column.cat.reorder_categories(sorted(column.cat.categories), ordered=False)
        return column

    def _native(self, position: int) -> nw.Series:
        return self._frame[self.names[position]]

    def kept(self, position: int, type_: ColumnType) -> nw.Series:
        plain = self._plain(self._native(position))
        return plain if (typed := _as_fitted(plain, type_)) is plain else self._plain(typed)

    def _plain(self, series: nw.Series) -> nw.Series:
        native = series.to_native()
        plain = plain_arrow(native) if self._is_arrow else _plain_polars(native)
        return nw.from_native(plain, series_only=True)

    @property
    def _library(self) -> Any:
        """The module polars or pyarrow."""
        return self._frame.__native_namespace__()

    def type_of(self, position: int) -> ColumnType:
        series = self._native(position)
        native = series.to_native()
        library = str(series.implementation.name).lower()
        name = str(getattr(native, "type", getattr(native, "dtype", "")))
        name = name if is_name(name) else ""  # the name of a polars Enum would list its values
        return ColumnType(**_described(series.dtype, native), library=library, native=name)

    def decoded(
        self, type_: ColumnType, shown: list[Any], values: list[Any], codes: IntArray
    ) -> nw.Series:
        shown, values = ([None if pd.isna(v) else v for v in each] for each in (shown, values))
        if type_.family == "category":
            return self._of_categories(present(shown), type_, values, codes)
        # Typed together with all values that may be shown, so that the type does not depend on
        # which of them occur here.
        typed = self._typed(type_, [*shown, *values])
        found = getattr(typed.to_native(), "type", None)
        if str(found) not in _NOT_TAKEN:
            return typed[len(shown) :][np.asarray(codes)]
        plain = self._series(_alike([*shown, *values], is_whole=False))
        taken = plain[len(shown) :][np.asarray(codes)].to_native()
        return nw.from_native(taken.cast(found), series_only=True)

    def _typed(self, type_: ColumnType, values: list[Any]) -> nw.Series:
        """Return values in a type, or in their own type if it cannot hold them."""
        values = _alike(values, is_whole=type_.family in ("int", "uint"))
        try:
            if type_.family in _TIMES:
                return self._times(type_, values)
            if (native := self._native_type(type_)) is not None:
                widest = nw.UInt64() if type_.family == "uint" else None
                made = self._series(values, widest).to_native()
                return nw.from_native(made.cast(native), series_only=True)
            return self._series(values, _dtype_for(type_))
        except Exception:  # every engine has its own errors
            return self._series(values)

    def _times(self, type_: ColumnType, values: list[Any]) -> nw.Series:
        """Return times or durations with nanoseconds, which those of Python do not have."""
        make: Any = pd.Timestamp if type_.family == "time" else pd.Timedelta
        dtype = f"{_TIMES[type_.family]}[{type_.unit}]"
        array = np.array([None if v is None else make(v).asm8 for v in values], dtype=dtype)
        series = self._series(array, _dtype_for(replace(type_, zone=None)))
        if type_.zone is None:
            return series
        return series.dt.replace_time_zone("UTC").dt.convert_time_zone(type_.zone)

    def _native_type(self, type_: ColumnType) -> Any:
        """Return the native type in `fit`, if it is finer than those of narwhals."""
        if type_.library != self._frame.implementation.name.lower():
            return None
        return self._arrow_type(type_.native) if self._is_arrow else self._decimal(type_.native)

    def _arrow_type(self, name: str | None) -> Any:
        try:
            return None if name is None else self._library.type_for_alias(name)
        except ValueError:  # a type with parameters, most of which narwhals knows
            return self._decimal(name)

    def _decimal(self, name: str | None) -> Any:
        """Return a decimal type by its name, None for other names."""
        found = _DECIMAL.fullmatch(name or "")
        return getattr(self._library, found[1])(int(found[2]), int(found[3])) if found else None

    def _series(self, values: Any, dtype: Any = None) -> nw.Series:
        series = nw.new_series("", values, dtype, backend=self._frame.implementation)
        return series if dtype is None or series.dtype == dtype else series.cast(dtype)

    def _of_categories(
        self, categories: list[Any], type_: ColumnType, values: list[Any], codes: IntArray
    ) -> nw.Series:
        """Return a column that lists all categories, even those that do not occur in it.

        In polars it is an Enum: codes of its Categorical depend on all texts seen before.
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
        """Return a pyarrow column with a dictionary; -1 is missing."""
        found = _DICTIONARY.fullmatch(type_.native) if type_.library == "pyarrow" else None
        of_values, of_codes = map(self._arrow_type, found.groups() if found else (None, None))
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
        return self._series(values, nw.Float64())

    def assemble(self, columns: Sequence[tuple[Any, Any]]) -> Any:
        # A new frame, because the metadata of a pyarrow table may hold anything, even rows.
        natives = {name: column.to_native() for name, column in columns}
        return self._library.table(natives) if self._is_arrow else self._library.DataFrame(natives)


def _as_fitted(series: nw.Series, type_: ColumnType) -> nw.Series:
    """Return numbers and times in the type in `fit`, if it can hold them."""
    dtype = _dtype_for(type_)
    both_numbers = series.dtype.is_numeric() and type_.family in _NUMBERS
    both_times = isinstance(series.dtype, nw.Datetime) and type_.family == "time"
    if dtype == series.dtype or not (both_numbers or both_times):
        return series
    try:
        typed = series.cast(dtype)
        return typed if (typed.cast(series.dtype) == series).all() else series
    except Exception:  # every engine has its own errors
        return series


def plain_arrow(column: Any) -> Any:
    """Return a copy of a pyarrow column: each value in one spelling, in one chunk, and no more.

    Slices share the buffers of the whole column, there may be values under missing ones, and
    dictionaries, which are decoded, may list values of other rows.
    """
    library = nw.Implementation.PYARROW.to_native_namespace()
    if not hasattr(column, "chunks"):
        column = library.chunked_array([column])
    if hasattr(column.type, "index_type"):
        column = column.cast(column.type.value_type)
    stored = getattr(column.type, "storage_type", column.type)
    if stored.num_fields or hasattr(stored, "value_type"):  # nested
        values = list(map(plain, column.to_pylist()))
        return library.chunked_array([library.array(values, type=column.type)])
    type_ = column.type
    if str(type_) in _NOT_TAKEN:
        column = column.cast(_NOT_TAKEN[str(type_)])
    present, more, rows = _present(nw.from_native(column, series_only=True))
    more = [library.array([value], column.type) for value in more]
    taken = library.chunked_array([*present.to_native().chunks, *more]).take(rows)
    return library.chunked_array([taken.cast(type_).combine_chunks()])


def _plain_polars(column: Any) -> Any:
    """Return a copy of a polars column, like `plain_arrow`."""
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
    """Return (present, more, rows): values of two kinds, and the index in both of each row.

    present : without missing values; more : None and, for floats, 0.0, which replaces -0.0. (In
    polars, adding 0.0 keeps the sign.)
    """
    is_present = ~series.is_null()
    if series.dtype.is_float():
        is_present = is_present & ~series.is_nan().fill_null(False)
    known = is_present.to_numpy().astype(bool)
    n_present = np.count_nonzero(known)
    rows = np.where(known, np.cumsum(known) - 1, n_present)
    if not series.dtype.is_float():
        return series.filter(is_present), [None], rows
    rows[(series == 0.0).fill_null(False).to_numpy().astype(bool)] = n_present + 1
    return series.filter(is_present), [None, 0.0], rows


def as_series(vector: Any) -> pd.Series | None:
    """Return a polars or pyarrow Series as a pandas Series; None for anything else."""
    series = nw.from_native(vector, series_only=True, pass_through=True)
    return _to_pandas(series) if isinstance(series, nw.Series) else None


def _to_pandas(series: nw.Series) -> pd.Series:
    native = series.to_native()
    type_: Any = getattr(native, "type", None)
    if getattr(type_, "ordered", False) and (ordered := _few_texts(series)) is not None:
        return ordered.rename(series.name)
    if hasattr(type_, "index_type"):
        # narwhals would turn missing values in a pyarrow dictionary into its first value.
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


def _few_texts(series: nw.Series) -> pd.Series | None:
    """Return a pyarrow column with dictionaries of few texts as sorted categories; otherwise None.

    Nothing is decoded. To an alphabet, sorted categories are the same as texts; the order of a
    dictionary means nothing, unless its type says that it is ordered.
    """
    native: Any = series.to_native()
    type_: Any = getattr(native, "type", None)
    if not hasattr(type_, "index_type") or str(type_.value_type) not in _TEXTS:
        return None
    is_ordered = bool(type_.ordered)
    if not is_ordered and sum(len(chunk.dictionary) for chunk in native.chunks) > _MOST_TEXTS:
        return None
    codes, texts = dictionary_codes(native)
    if is_ordered:
        in_order = pd.CategoricalDtype(texts, ordered=True)
        return pd.Series(pd.Categorical.from_codes(codes, dtype=in_order))
    order = sorted(range(len(texts)), key=texts.__getitem__)
    codes = take(np.append(np.argsort(order), -1), codes)
    dtype = pd.CategoricalDtype([texts[i] for i in order])
    return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype, validate=False))


def _alike(values: list[Any], is_whole: bool) -> list[Any]:
    """Return numbers as integers, if `is_whole` and all are whole, or as floats.

    If there are decimals, all become decimals.
    """
    numbers = [v for v in values if isinstance(v, int | float | Decimal) and type(v) is not bool]
    kinds = {*map(type, numbers)}
    if len(numbers) < len(present(values)) or kinds <= {int}:
        return values
    convert: Any = int if is_whole and all(number == int(number) for number in numbers) else float
    convert = _as_decimal if Decimal in kinds else convert
    return [None if value is None else convert(value) for value in values]


def _as_decimal(value: Any) -> Decimal:
    """Return a number as a decimal of at most 38 digits; the middle of a bin may have more."""
    exact = Decimal(value)
    return exact if len(exact.as_tuple().digits) <= 38 else Decimal(repr(value))


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
    """Return a narwhals dtype; None if the values decide."""
    if type_.family in _NUMBERS:
        # narwhals has no floats of 16 bits.
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
