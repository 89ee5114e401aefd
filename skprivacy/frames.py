"""Tables of every kind behind one face: pandas, polars and pyarrow frames, and arrays.

The rest of the package sees columns as pandas Series and hands back values with codes; what kind
of table they came from and go into is known here only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils import check_array

from ._typing import FloatArray, IntArray
from .codes import look_up, take
from .encoding.dictionaries import dictionary_codes

# The types of pyarrow for texts, and how many of them are worth to be sorted.
_TEXTS = ("string", "large_string", "string_view")
_MOST_TEXTS = 1 << 16


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
    def decoded(self, position: int, values: list[Any], codes: IntArray) -> Any:
        """Return a column like the one at `position`, with ``values[codes]``."""

    @abstractmethod
    def categorical(self, categories: list[str], codes: IntArray) -> Any:
        """Return a new categorical column."""

    @abstractmethod
    def floats(self, values: FloatArray) -> Any:
        """Return a new column of floats."""

    @abstractmethod
    def assemble(self, columns: Sequence[tuple[Any, Any]]) -> Any:
        """Return a table of this kind from (name, native column) pairs."""

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

    def decoded(self, position: int, values: list[Any], codes: IntArray) -> pd.Series:
        dtype = self.original.dtypes.iloc[position]
        if isinstance(dtype, pd.CategoricalDtype):
            unseen = [v for v in values if v is not None and v not in dtype.categories]
            if unseen:  # symbols that this frame does not have
                known = dtype.categories.append(pd.Index(unseen)).unique()
                dtype = pd.CategoricalDtype(known, dtype.ordered)
            position_of = dtype.categories.get_indexer(pd.Index(values, tupleize_cols=False))
            taken = take(np.append(position_of, -1), codes)
            if taken is codes:  # which other columns may share
                taken = codes.copy()
            decoded = pd.Categorical.from_codes(taken, dtype=dtype, validate=False)
        else:
            decoded = _taken(_typed(values, dtype), codes)
        # Said explicitly, or pandas would take objects that are all strings for a string column.
        dtype = object if dtype is np.dtype(object) else None
        return pd.Series(decoded, index=self.original.index, dtype=dtype, copy=False)

    def categorical(self, categories: list[str], codes: IntArray) -> pd.Series:
        decoded = pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(categories))
        return pd.Series(decoded, index=self.original.index, copy=False)

    def floats(self, values: FloatArray) -> pd.Series:
        return pd.Series(values, index=self.original.index, copy=False)

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


def _typed(values: list[Any], dtype: Any) -> Any:
    """Return values as a pandas array of `dtype`, or of their own where that cannot hold them."""
    try:
        typed = pd.array(values, dtype=dtype)
    except (TypeError, ValueError, OverflowError):  # a missing value in a column of ints, say
        return pd.array(values)
    # 1.5 as an int would be 1, and a missing bool False.
    same = [pd.isna(t) if v is None else t == v for v, t in zip(values, typed, strict=True)]
    return typed if all(same) else pd.array(values)


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

    def decoded(self, position: int, values: list[Any], codes: IntArray) -> nw.Series:
        like = self.native(position)
        values = _none_for_missing(values)
        if like.dtype.is_integer():
            values = [v if v is None or v != int(v) else int(v) for v in values]
        return self._like(like, values)[np.asarray(codes)]

    def _like(self, like: nw.Series, values: list[Any]) -> nw.Series:
        """Return values in the type of a column, or in their own where that cannot hold them."""
        plain = nw.new_series("", values, backend=self._frame.implementation)
        try:
            # The types of pyarrow are finer than the dtypes of narwhals.
            if (type_ := getattr(like.to_native(), "type", None)) is not None:
                return nw.from_native(plain.to_native().cast(type_), series_only=True)
            return self._series(values, like.dtype)
        except Exception:  # every engine has errors of its own
            return plain

    def _series(self, values: list[Any], dtype: Any) -> nw.Series:
        series = nw.new_series("", values, dtype, backend=self._frame.implementation)
        return series if series.dtype == dtype else series.cast(dtype)

    def categorical(self, categories: list[str], codes: IntArray) -> nw.Series:
        values = [str(category) for category in categories]
        return self._series(values, nw.String())[np.asarray(codes)].cast(nw.Categorical())

    def floats(self, values: FloatArray) -> nw.Series:
        return nw.new_series("", values, nw.Float64(), backend=self._frame.implementation)

    def assemble(self, columns: Sequence[tuple[Any, Any]]) -> Any:
        named = [column.alias(name) for name, column in columns]
        return self._frame.with_columns(*named).select([c.name for c in named]).to_native()


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

    def decoded(self, position: int, values: list[Any], codes: IntArray) -> npt.NDArray[Any]:
        kind = self.original.dtype.kind
        if kind in "US" and None not in values:
            return np.array(values, dtype=kind).take(codes)
        dtype = object if kind in "US" else self.original.dtype
        return look_up(np.asarray(_typed(list(values), dtype)), codes)

    def categorical(self, categories: list[str], codes: IntArray) -> npt.NDArray[Any]:
        return np.asarray(categories).take(codes)

    def floats(self, values: FloatArray) -> FloatArray:
        return values

    def assemble(self, columns: Sequence[tuple[Any, Any]]) -> npt.NDArray[Any]:
        arrays = [np.asarray(column) for _, column in columns]
        if len({array.dtype.kind in "OUSM" for array in arrays}) > 1:  # numbers beside texts
            arrays = [array.astype(object) for array in arrays]
        return np.column_stack(arrays)
