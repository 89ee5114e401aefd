"""Tables of every kind behind one face: pandas, polars and pyarrow frames, and arrays.

The rest of the package sees columns as pandas Series and hands back values with codes; what kind
of table they came from and go into is known here only.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils import check_array

from ._typing import FloatArray, IntArray, NamedColumns
from .codes import UNKNOWN, look_up, take
from .column_types import ColumnType, type_of_dtype, type_of_series
from .encoding.dictionaries import dictionary_codes

# The types of pyarrow for texts, and how many of them are worth to be sorted.
_TEXTS = ("string", "large_string", "string_view")
_MOST_TEXTS = 1 << 16

# What a dictionary of pyarrow is called, with the types of its values and codes.
_DICTIONARY = re.compile(r"dictionary<values=(.+), indices=(\w+), ordered=[01]>")


def as_table(X: Any, owner: str) -> Table:
    """Return a `Table` around a frame or an array-like."""
    if isinstance(X, pd.DataFrame):
        return PandasTable(X, owner)
    if isinstance(X, pd.Series):
        raise ValueError(
            f"{owner} expects a table, but got the Series {X.name!r}: use .to_frame()."
        )
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return NarwhalsTable(frame, owner)
    if lazy_kind(X) is not None:
        raise TypeError(f"{owner} expects an eager frame, but got a lazy one: collect it first.")
    return ArrayTable(X, owner)


def lazy_kind(X: Any) -> str | None:
    """Return the library of a frame that is computed later or elsewhere, None for others."""
    if isinstance(X, pd.DataFrame | np.ndarray):
        return None
    frame = nw.from_native(X, pass_through=True)
    # Spark through its server has frames of the same kind.
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


class Table(ABC):
    """A table with columns by position.

    names : list of column names, or None for an array; n_rows, n_columns : its shape.
    """

    original: Any
    names: list[Any] | None
    n_rows: int
    n_columns: int

    @abstractmethod
    def column(self, position: int) -> pd.Series:
        """Return a column as a pandas Series."""

    @abstractmethod
    def native(self, position: int) -> Any:
        """Return a column as it is."""

    @abstractmethod
    def type_of(self, position: int) -> ColumnType:
        """Return the type of a column."""

    @abstractmethod
    def decoded(
        self, type_: ColumnType, shown: list[Any], values: list[Any], codes: IntArray
    ) -> Any:
        """Return a new column of a type, with ``values[codes]``.

        shown : all values that such a column may have, in their order: the categories of one that
        has any. Nothing but these four decides on the dtype, no column of this table.
        """

    @abstractmethod
    def categorical(self, categories: list[str], codes: IntArray) -> Any:
        """Return a new categorical column."""

    @abstractmethod
    def floats(self, values: FloatArray) -> Any:
        """Return a new column of floats."""

    @abstractmethod
    def assemble(self, columns: Sequence[tuple[Any, Any]]) -> Any:
        """Return a table of this kind from (name, native column) pairs."""

    def index_levels(self) -> NamedColumns:
        """Return what leaves with the rows beside the columns: the levels of an index, by name.

        A mere numbering of the rows is none.
        """
        return {}

    def label(self, position: int) -> Any:
        """Return how to call a column in a message."""
        return position if self.names is None else self.names[position]

    def positions_there(self, owner: str, parameter: str, columns: Any) -> list[int]:
        """Return the positions of the columns that are there, of those given."""
        listed = self._listed(columns)
        there = [c for c in listed if not isinstance(c, str) or c in (self.names or ())]
        return self.positions(owner, parameter, there)

    def _listed(self, columns: Any) -> list[Any]:
        if callable(columns):
            columns = columns(self.original)
        if isinstance(columns, slice):
            columns = range(*columns.indices(self.n_columns))
        if isinstance(columns, tuple) and self.names is not None and columns in self.names:
            return [columns]  # a name that is a tuple
        return [columns] if isinstance(columns, str | int | np.integer) else list(columns)

    def positions(self, owner: str, parameter: str, columns: Any) -> list[int]:
        """Return the positions of columns given by name, position, or a callable."""
        found = [self._position(owner, parameter, c) for c in self._listed(columns)]
        repeated = [column for column in found if found.count(column) > 1]
        if repeated:
            raise ValueError(
                f"The {parameter!r} parameter of {owner} names the column "
                f"{self.label(repeated[0])!r} more than once."
            )
        return found

    def _position(self, owner: str, parameter: str, column: Hashable) -> int:
        if isinstance(column, int | np.integer) and not isinstance(column, bool):
            if self.names is not None and column in self.names:
                return self.names.index(column)
            if -self.n_columns <= column < self.n_columns:
                return int(column) % self.n_columns
        elif self.names is not None and column in self.names:
            return self.names.index(column)
        there = f"{self.n_columns} columns" if self.names is None else f"the columns {self.names}"
        raise ValueError(
            f"The {parameter!r} parameter of {owner} names the column {column!r}, which X does "
            f"not have. X has {there}."
        )


class PandasTable(Table):
    """A pandas frame; its index and dtypes are kept."""

    names: list[Any]

    def __init__(self, frame: pd.DataFrame, owner: str) -> None:
        self.original = frame
        self.names = frame.columns.tolist()
        self.n_rows, self.n_columns = frame.shape
        if not frame.columns.is_unique:
            repeated = frame.columns[frame.columns.duplicated()][0]
            raise ValueError(f"X has the column {repeated!r} more than once: {owner} cannot tell.")

    def column(self, position: int) -> pd.Series:
        return self.original.iloc[:, position]

    native = column

    def type_of(self, position: int) -> ColumnType:
        return type_of_dtype(self.original.dtypes.iloc[position], "pandas")

    def decoded(
        self, type_: ColumnType, shown: list[Any], values: list[Any], codes: IntArray
    ) -> pd.Series:
        index = self.original.index
        if type_.family == "category":
            dtype = pd.CategoricalDtype(_present(shown), type_.is_ordered)
            position_of = dtype.categories.get_indexer(pd.Index(values, tupleize_cols=False))
            taken = take(np.append(position_of, -1), codes)
            if taken is codes:  # which other columns may share
                taken = codes.copy()
            decoded = pd.Categorical.from_codes(taken, dtype=dtype, validate=False)
            return pd.Series(decoded, index=index, copy=False)
        dtype = type_.pandas_dtype(shown)
        decoded = _taken(_typed(values, dtype, shown), codes)
        # Said explicitly, or pandas would take objects that are all strings for a string column.
        is_object = dtype is not None and dtype == np.dtype(object)
        return pd.Series(decoded, index=index, dtype=object if is_object else None, copy=False)

    def categorical(self, categories: list[str], codes: IntArray) -> pd.Series:
        decoded = pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(categories))
        return pd.Series(decoded, index=self.original.index, copy=False)

    def floats(self, values: FloatArray) -> pd.Series:
        return pd.Series(values, index=self.original.index, copy=False)

    def index_levels(self) -> NamedColumns:
        index = self.original.index
        if isinstance(index, pd.RangeIndex):
            return {}
        # Levels without a name are called as reset_index would call them.
        own = ["index"] if index.nlevels == 1 else [f"level_{i}" for i in range(index.nlevels)]
        return {
            own[level] if name is None else name: pd.Series(index.get_level_values(level))
            for level, name in enumerate(index.names)
        }

    def assemble(self, columns: Sequence[tuple[Any, Any]]) -> pd.DataFrame:
        names = [name for name, _ in columns]
        frame = pd.DataFrame(
            {i: column for i, (_, column) in enumerate(columns)},
            index=self.original.index,
            copy=False,
        )
        if isinstance(self.original.columns, pd.MultiIndex) and set(names) <= set(self.names):
            frame.columns = pd.MultiIndex.from_tuples(names, names=self.original.columns.names)
        else:
            frame.columns = pd.Index(names, name=self.original.columns.name, tupleize_cols=False)
        return frame


def _present(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _typed(values: list[Any], dtype: Any, shown: list[Any]) -> Any:
    """Return values as a pandas array of `dtype`, or of one that all values shown ask for."""
    return pd.array(values, dtype=dtype if _can_hold(dtype, shown) else pd.array(shown).dtype)


def _can_hold(dtype: Any, values: list[Any]) -> bool:
    if dtype is None:
        return False
    try:
        typed = pd.array(values, dtype=dtype)
    except (TypeError, ValueError, OverflowError):  # a missing value in a column of ints, say
        return False
    # 1.5 as an int would be 1, a missing bool False; a float of fewer bits is near enough.
    is_float = getattr(dtype, "kind", "") == "f"
    return all(
        pd.isna(t) if v is None else t == v or (is_float and np.isclose(t, v))
        for v, t in zip(values, typed, strict=True)
    )


def _taken(values: Any, codes: IntArray) -> Any:
    """Return ``values[codes]`` of a pandas array."""
    if isinstance(values, pd.arrays.NumpyExtensionArray) and values.dtype.kind != "O":
        return look_up(values.to_numpy(), codes)
    return values.take(codes)


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
            # Of polars, in which the order of texts is that of their appearance anywhere.
            return column.cat.reorder_categories(sorted(column.cat.categories), ordered=False)
        return column

    def native(self, position: int) -> nw.Series:
        return self._frame[self.names[position]]

    @property
    def _library(self) -> Any:
        """The module of polars or pyarrow."""
        return self._frame.__native_namespace__()

    def type_of(self, position: int) -> ColumnType:
        return type_of_series(self.native(position))

    def decoded(
        self, type_: ColumnType, shown: list[Any], values: list[Any], codes: IntArray
    ) -> nw.Series:
        shown, values = _none_for_missing(shown), _none_for_missing(values)
        if type_.family == "category":
            return self._of_categories(_present(shown), type_, values, codes)
        # Of one type with all values that may be shown, whichever of them are needed here.
        typed = self._typed(type_, [*shown, *values])
        return typed[len(shown) :][np.asarray(codes)]

    def _typed(self, type_: ColumnType, values: list[Any]) -> nw.Series:
        """Return values in a type, or in their own where that cannot hold them."""
        values = _alike(values, is_whole=type_.family in ("int", "uint"))
        try:
            if (native := self._native_type(type_)) is not None:
                return nw.from_native(
                    self._series(values).to_native().cast(native), series_only=True
                )
            return self._series(values, type_.narwhals_dtype())
        except Exception:  # every engine has errors of its own
            return self._series(values)

    def _native_type(self, type_: ColumnType) -> Any:
        """Return a type of pyarrow that `fit` saw, which are finer than those of narwhals."""
        if not (self._is_arrow and type_.library == "pyarrow"):
            return None
        return self._arrow_type(type_.native)

    def _arrow_type(self, name: str | None) -> Any:
        try:
            return None if name is None else self._library.type_for_alias(name)
        except ValueError:  # with parameters: narwhals knows most of them
            return None

    def _series(self, values: list[Any], dtype: Any = None) -> nw.Series:
        series = nw.new_series("", values, dtype, backend=self._frame.implementation)
        return series if dtype is None or series.dtype == dtype else series.cast(dtype)

    def _of_categories(
        self, categories: list[Any], type_: ColumnType, values: list[Any], codes: IntArray
    ) -> nw.Series:
        """Return a column that lists all categories, those that do not occur in it too.

        An Enum of polars: codes of its Categorical depend on all texts that were seen before.
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
        # A new frame: one of pyarrow may carry notes of its makers, rows of people among them.
        natives = {name: column.to_native() for name, column in columns}
        return self._library.table(natives) if self._is_arrow else self._library.DataFrame(natives)


def as_series(vector: Any) -> pd.Series | None:
    """Return a Series of polars or pyarrow as one of pandas; None for anything else."""
    series = nw.from_native(vector, series_only=True, pass_through=True)
    return _to_pandas(series) if isinstance(series, nw.Series) else None


def _to_pandas(series: nw.Series) -> pd.Series:
    native = series.to_native()
    type_: Any = getattr(native, "type", None)
    if hasattr(type_, "index_type"):
        # Narwhals would turn what is missing in a dictionary of pyarrow into its first value.
        decoded = nw.from_native(native.cast(type_.value_type), series_only=True)
        return _to_pandas(decoded).rename(series.name)
    if series.dtype.is_integer() and series.null_count():
        # As floats, large integers would lose their last digits.
        values = series.fill_null(0).to_numpy().astype(np.int64)
        array = pd.arrays.IntegerArray(values, series.is_null().to_numpy().astype(bool))
        return pd.Series(array, name=series.name)
    if type_ is not None:
        return pd.Series(native.to_pandas(), name=series.name)
    try:
        return series.to_pandas()
    except ModuleNotFoundError:  # polars goes through pyarrow, which it does not require
        return pd.Series(series.to_list(), name=series.name)


def _has_few_texts(series: nw.Series) -> bool:
    """Return whether a column is of pyarrow, and dictionaries of texts say what is in it."""
    type_: Any = getattr(series.to_native(), "type", None)
    if not hasattr(type_, "index_type") or str(type_.value_type) not in _TEXTS:
        return False
    return sum(len(chunk.dictionary) for chunk in series.to_native().chunks) <= _MOST_TEXTS


def _few_texts(series: nw.Series) -> pd.Series:
    """Return a column of dictionaries of texts as if it were one of texts, without decoding it.

    Sorted categories are to an alphabet what texts are; the order of a dictionary means nothing.
    """
    codes, texts = dictionary_codes(series.to_native())
    order = sorted(range(len(texts)), key=texts.__getitem__)
    codes = take(np.append(np.argsort(order), -1), codes)
    dtype = pd.CategoricalDtype([texts[i] for i in order])
    return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype, validate=False))


def _alike(values: list[Any], is_whole: bool) -> list[Any]:
    """Return numbers all as integers, if they are to be and can, or all as floats."""
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) < len(_present(values)) or not any(isinstance(v, float) for v in numbers):
        return values
    convert = int if is_whole and all(number == int(number) for number in numbers) else float
    return [None if value is None else convert(value) for value in values]


def _none_for_missing(values: list[Any]) -> list[Any]:
    return [None if pd.isna(value) else value for value in values]


class ArrayTable(Table):
    """An array, of numbers or of objects."""

    names = None

    def __init__(self, X: npt.ArrayLike, owner: str) -> None:
        self.original = check_array(
            X, dtype=None, ensure_all_finite=False, estimator=owner, input_name="X"
        )
        if self.original.dtype.kind == "c":
            raise ValueError(f"Complex data not supported by {owner}.")
        self.n_rows, self.n_columns = self.original.shape

    def column(self, position: int) -> pd.Series:
        return pd.Series(self.original[:, position])

    def native(self, position: int) -> npt.NDArray[Any]:
        return self.original[:, position]

    def type_of(self, position: int) -> ColumnType:
        return type_of_dtype(self.original.dtype, "numpy")

    def decoded(
        self, type_: ColumnType, shown: list[Any], values: list[Any], codes: IntArray
    ) -> npt.NDArray[Any]:
        dtype = type_.numpy_dtype(shown)
        if dtype in ("U", "S"):  # as wide as the longest that may be shown
            return np.array([*shown, *values], dtype=dtype)[len(shown) :].take(codes)
        return look_up(np.asarray(_typed(list(values), dtype, shown)), codes)

    def categorical(self, categories: list[str], codes: IntArray) -> npt.NDArray[Any]:
        return np.asarray(categories).take(codes)

    def floats(self, values: FloatArray) -> FloatArray:
        return values

    def assemble(self, columns: Sequence[tuple[Any, Any]]) -> npt.NDArray[Any]:
        arrays = [np.asarray(column) for _, column in columns]
        if len({array.dtype.kind in "OUSM" for array in arrays}) > 1:  # numbers beside texts
            arrays = [array.astype(object) for array in arrays]
        return np.column_stack(arrays)
