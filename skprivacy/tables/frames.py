"""Tables of every kind behind one interface: pandas, polars and pyarrow frames, and arrays.

The rest of the package sees columns as pandas Series and hands back values with codes; only this
module knows what kind of table they come from and go into.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils import check_array

from .._messages import Message, Owner
from .._typing import FloatArray, IntArray
from ..codes import look_up, take
from .column_types import ColumnType, present, type_of_dtype
from .narwhals_frames import as_narwhals_table, as_series, converted, lazy_kind
from .plain_columns import plain_array, plain_column, plain_index
from .table import Table

__all__ = ["Table", "as_series", "as_table", "converted", "lazy_kind"]


def as_table(X: Any, owner: str) -> Table:
    """Return a `Table` around a frame or an array-like."""
    if isinstance(X, pd.DataFrame):
        return PandasTable(X, owner)
    if isinstance(X, pd.Series):
        raise ValueError(
            f"{owner} expects a table, but got the Series {X.name!r}: use .to_frame()."
        )
    if (table := as_narwhals_table(X, owner)) is not None:
        return table
    if lazy_kind(X) is not None:
        raise TypeError(f"{owner} expects an eager frame, but got a lazy one: collect it first.")
    return ArrayTable(X, owner)


class PandasTable(Table):
    """A pandas frame; its index and dtypes are kept."""

    names: list[Any]

    def __init__(self, frame: pd.DataFrame, owner: str) -> None:
        self.original = frame
        self.names = frame.columns.tolist()
        self.n_rows, self.n_columns = frame.shape
        if not frame.columns.is_unique:
            repeated = frame.columns[frame.columns.duplicated()][0]
            told = f"X has the column {repeated!r} more than once: "
            raise ValueError(Message(told, Owner(owner), " cannot tell them apart. Rename one."))

    def column(self, position: int) -> pd.Series:
        return self.original.iloc[:, position]

    native = column

    def kept(self, position: int, type_: ColumnType) -> pd.Series:
        return _as_seen(plain_column(self.column(position)), type_)

    def type_of(self, position: int) -> ColumnType:
        return type_of_dtype(self.original.dtypes.iloc[position], "pandas")

    def decoded(
        self, type_: ColumnType, shown: list[Any], values: list[Any], codes: IntArray
    ) -> pd.Series:
        index = self.original.index
        if type_.family == "category":
            dtype = pd.CategoricalDtype(present(shown), type_.is_ordered)
            position_of = dtype.categories.get_indexer(pd.Index(values, tupleize_cols=False))
            taken = take(np.append(position_of, -1), codes)
            if taken is codes:  # which other columns may share
                taken = codes.copy()
            decoded = pd.Categorical.from_codes(taken, dtype=dtype, validate=False)
            return pd.Series(decoded, index=index, copy=False)
        dtype = type_.pandas_dtype(shown)
        decoded = _taken(_typed(values, dtype, shown), codes)
        # Set explicitly, or pandas would turn objects that are all strings into a string column.
        is_object = dtype is not None and dtype == np.dtype(object)
        return pd.Series(decoded, index=index, dtype=object if is_object else None, copy=False)

    def categorical(self, categories: list[str], codes: IntArray) -> pd.Series:
        decoded = pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(categories))
        return pd.Series(decoded, index=self.original.index, copy=False)

    def floats(self, values: FloatArray) -> pd.Series:
        return pd.Series(values, index=self.original.index, copy=False)

    def index_levels(self) -> list[pd.Series]:
        index = self.original.index
        if isinstance(index, pd.RangeIndex):
            return []
        levels = map(index.get_level_values, range(index.nlevels))
        return [level.to_series(index=range(len(level))) for level in levels]

    def assemble(self, columns: Sequence[tuple[Any, Any]]) -> pd.DataFrame:
        names = [name for name, _ in columns]
        frame = pd.DataFrame(
            {i: column for i, (_, column) in enumerate(columns)},
            index=self.original.index,
            copy=False,
        )
        frame.index = plain_index(frame.index)
        if isinstance(self.original.columns, pd.MultiIndex) and set(names) <= set(self.names):
            frame.columns = pd.MultiIndex.from_tuples(names, names=self.original.columns.names)
        else:
            frame.columns = pd.Index(names, name=self.original.columns.name, tupleize_cols=False)
        return frame


def _as_seen(column: pd.Series, type_: ColumnType) -> pd.Series:
    """Return numbers and times in the type that `fit` saw, if it can hold them.

    A type of the batch's own would tell how its rows are written: 1 or 1.0.
    """
    dtype = type_.pandas_dtype([None] if column.hasnans else [])
    kinds = {column.dtype.kind, getattr(dtype, "kind", "")}
    if dtype == column.dtype or not (kinds <= set("iuf") or kinds in ({"m"}, {"M"})):
        return column
    try:
        typed = column.astype(dtype)
        is_same = typed.astype(column.dtype).equals(column)
    except (TypeError, ValueError, OverflowError):
        return column
    return plain_column(typed) if is_same else column


def _typed(values: list[Any], dtype: Any, shown: list[Any]) -> Any:
    """Return values as a pandas array of `dtype`, or of one that all values shown fit into."""
    return pd.array(values, dtype=dtype if _can_hold(dtype, shown) else pd.array(shown).dtype)


def _can_hold(dtype: Any, values: list[Any]) -> bool:
    if dtype is None:
        return False
    try:
        typed = pd.array(values, dtype=dtype)
    except (TypeError, ValueError, OverflowError):  # a missing value in a column of ints, say
        return False
    # 1.5 as an int would be 1, a missing bool False; a float of fewer bits is close enough.
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


def _numbers(column: npt.NDArray[Any]) -> list[Any]:
    """Return values; numbers that an array holds as texts beside others become numbers."""
    if column.dtype.kind not in "US":
        return column.tolist()
    return pd.to_numeric(pd.Series(column.tolist(), dtype=object), errors="coerce").tolist()


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
        # Objects stay objects: what pandas makes of them depends on all of them.
        dtype = object if self.original.dtype == object else None
        return pd.Series(self.original[:, position], dtype=dtype)

    def native(self, position: int) -> npt.NDArray[Any]:
        return self.original[:, position]

    def kept(self, position: int, type_: ColumnType) -> npt.NDArray[Any]:
        return plain_array(self._typed(self.original[:, position], type_))

    @staticmethod
    def _typed(column: npt.NDArray[Any], type_: ColumnType) -> npt.NDArray[Any]:
        """Return a column in a type of its own: that of the array tells about other columns."""
        dtype = type_.numpy_dtype([]) if type_.library == "numpy" else None
        if dtype is not None and dtype not in ("U", "S"):
            if column.dtype == dtype:
                return column
            if _can_hold(dtype, values := _numbers(column)):
                return np.array(values, dtype=dtype)
        # As its own values need: texts as wide as these, integers if all of them are whole.
        if column.dtype.kind in "US":
            return np.array(column.tolist(), dtype=column.dtype.kind)
        is_whole = column.dtype.kind == "f" and not (column % 1).any()  # NaN is not zero
        return column.astype(np.int64) if is_whole else column

    def type_of(self, position: int) -> ColumnType:
        return type_of_dtype(self.original.dtype, "numpy")

    def decoded(
        self, type_: ColumnType, shown: list[Any], values: list[Any], codes: IntArray
    ) -> npt.NDArray[Any]:
        dtype = type_.numpy_dtype(shown)
        if dtype in ("U", "S"):  # as wide as the longest text that may be shown
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
