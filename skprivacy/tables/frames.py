"""pandas frames and arrays as tables; y, weights, S and ids as vectors.

If rows come from several sources, the spelling of a value may reveal its source: null or NaN, 0.0
or -0.0, 1 or 1.0. So may hidden content: numbers under missing ones, unused categories, and the
table that a column is a view of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils import check_array

from .._messages import Message, Owner, warn
from .._typing import BoolArray, ColumnsLike, CountArray, FloatArray, IntArray, NamedColumns
from ..codes import UNKNOWN, look_up, take
from ..encoding.values import factorize, plain
from ..joint import count_pairs
from .narwhals_frames import as_narwhals_table, as_series, converted, lazy_kind, plain_arrow
from .table import ColumnType, Table, present, type_of_dtype


def plain_column(series: pd.Series) -> pd.Series:
    """Return a copy of a column with each value in one spelling, and no hidden content."""
    # Set explicitly, or pandas would turn objects that are all strings into a string column.
    dtype = object if series.dtype == object else None
    return pd.Series(_plain(series), index=series.index, name=series.name, dtype=dtype, copy=False)


def plain_index(index: pd.Index) -> pd.Index:
    """Return an index with each value in one spelling, and no hidden content."""
    if isinstance(index, pd.MultiIndex):
        levels = [index.get_level_values(i) for i in range(index.nlevels)]
        return pd.MultiIndex.from_arrays(
            [plain_column(level.to_series()).array for level in levels], names=index.names
        )
    is_spelled = index.dtype.kind in "Of" or not isinstance(index.dtype, np.dtype)
    if not is_spelled or isinstance(index, pd.DatetimeIndex | pd.PeriodIndex):
        return index.copy(deep=True)
    dtype = object if index.dtype == object else None
    return pd.Index(_plain(index.to_series()), dtype=dtype, name=index.name, tupleize_cols=False)


def plain_array(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a copy of an array with each value in one spelling."""
    if column.dtype == object:
        return _of_objects(pd.Series(column, dtype=object))
    if column.dtype.kind != "f":
        return column.copy()
    return np.where(np.isnan(column), np.array(np.nan, column.dtype), column + 0.0)


def _plain(series: pd.Series) -> Any:
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _of_used_categories(series.array)
    if series.dtype == object:
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
    except TypeError:  # for instance lists, which `fit` warns about
        values = list(map(plain, series))
        codes = np.where(series.isna(), UNKNOWN, np.arange(len(values)))
    return pd.Series([*values, None], dtype=object).to_numpy()[codes]


def _of_used_categories(array: Any) -> pd.Categorical:
    """Return a copy without unused categories; unless they are ordered, they are sorted."""
    codes, values = factorize(pd.Series(array), "")
    used, categories = np.unique(codes[codes >= 0]), array.categories
    if categories.dtype == object:
        categories = pd.Index(values, dtype=object, tupleize_cols=False)
    categories = categories.take(used)
    order: Any = np.arange(len(used))
    if not array.ordered:
        try:
            order = np.argsort(categories, kind="stable")
        except TypeError:  # values that cannot be compared
            order = np.argsort(categories.map(repr), kind="stable")
    position_of = np.full(len(values) + 1, UNKNOWN)
    position_of[used[order]] = np.arange(len(used))
    dtype = pd.CategoricalDtype(plain_index(categories.take(order)), array.ordered)
    return pd.Categorical.from_codes(take(position_of, codes).copy(), dtype=dtype)


def _of_masked(array: Any, missing: BoolArray) -> Any:
    """Return a copy with nothing under missing values; NaN is missing too."""
    is_float = array.dtype.kind == "f"
    if is_float:
        missing = missing | np.isnan(array.to_numpy(dtype=float, na_value=np.nan))
    taken = array.take(np.where(missing, UNKNOWN, np.arange(len(array))), allow_fill=True)
    return taken + 0.0 if is_float else taken


# Tables of every kind behind one interface: pandas, polars and pyarrow frames, and arrays.
#
# The rest of the package reads columns as pandas Series, and returns values with codes.


__all__ = ["Table", "as_series", "as_table", "converted", "lazy_kind"]


def as_table(X: Any, owner: str) -> Table:
    """Return a `Table` around a frame or an array-like."""
    if isinstance(X, pd.DataFrame):
        return PandasTable(X, owner)
    if isinstance(X, pd.Series):
        raise ValueError(f"{owner} expects a table, got the Series {X.name!r}: use .to_frame().")
    if (table := as_narwhals_table(X)) is not None:
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
            problem = "X has the column {name!r} more than once: {owner} cannot tell them apart. "
            values = {"name": repeated, "owner": Owner(owner)}
            raise ValueError(Message.of(problem + "Rename one.", **values))

    def column(self, position: int) -> pd.Series:
        return self.original.iloc[:, position]

    def kept(self, position: int, type_: ColumnType) -> pd.Series:
        return _as_fitted(plain_column(self.column(position)), type_)

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
            taken = codes.copy() if taken is codes else taken  # other columns may share codes
            decoded: Any = pd.Categorical.from_codes(taken, dtype=dtype, validate=False)
            return pd.Series(decoded, index=index, copy=False)
        dtype = type_.pandas_dtype(shown)
        typed = _typed(values, dtype, shown)
        is_numpy = isinstance(typed, pd.arrays.NumpyExtensionArray) and typed.dtype.kind != "O"
        decoded = look_up(typed.to_numpy(), codes) if is_numpy else typed.take(codes)
        is_object = dtype is not None and dtype == np.dtype(object)  # as in `plain_column`
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
        numbered = {i: column for i, (_, column) in enumerate(columns)}
        frame = pd.DataFrame(numbered, index=self.original.index, copy=False)
        frame.index = plain_index(frame.index)
        if isinstance(self.original.columns, pd.MultiIndex) and set(names) <= set(self.names):
            frame.columns = pd.MultiIndex.from_tuples(names, names=self.original.columns.names)
        else:
            frame.columns = pd.Index(names, name=self.original.columns.name, tupleize_cols=False)
        return frame


def _as_fitted(column: pd.Series, type_: ColumnType) -> pd.Series:
    """Return numbers and times in the type in `fit`, if it can hold them.

    The type of the batch would reveal how its rows are written: 1 or 1.0.
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
    """Return values as a pandas array of `dtype`, or of one that fits all values in `shown`."""
    return pd.array(values, dtype=dtype if _can_hold(dtype, shown) else pd.array(shown).dtype)


def _can_hold(dtype: Any, values: list[Any]) -> bool:
    if dtype is None:
        return False
    try:
        typed = pd.array(values, dtype=dtype)
    except (TypeError, ValueError, OverflowError):  # for instance a missing int
        return False
    # As an int, 1.5 would be 1, and a missing bool False; floats of fewer bits are close enough.
    is_float = getattr(dtype, "kind", "") == "f"
    return all(
        pd.isna(t) if v is None else t == v or (is_float and np.isclose(t, v))
        for v, t in zip(values, typed, strict=True)
    )


def _numbers(column: npt.NDArray[Any]) -> list[Any]:
    """Return values as Python objects; texts become numbers, or NaN."""
    if column.dtype.kind not in "US":
        return column.tolist()
    return pd.to_numeric(pd.Series(column.tolist(), dtype=object), errors="coerce").tolist()


class ArrayTable(Table):
    """An array, of numbers or of objects."""

    names = None

    def __init__(self, X: npt.ArrayLike, owner: str) -> None:
        options = {"ensure_all_finite": False, "estimator": owner, "input_name": "X"}
        self.original = check_array(X, dtype=None, **options)
        if self.original.dtype.kind == "c":
            raise ValueError(f"Complex data not supported by {owner}.")
        self.n_rows, self.n_columns = self.original.shape

    def column(self, position: int) -> pd.Series:
        # Objects stay objects: the dtype that pandas infers depends on all of them.
        dtype = object if self.original.dtype == object else None
        return pd.Series(self.original[:, position], dtype=dtype)

    def kept(self, position: int, type_: ColumnType) -> npt.NDArray[Any]:
        return plain_array(self._typed(self.original[:, position], type_))

    @staticmethod
    def _typed(column: npt.NDArray[Any], type_: ColumnType) -> npt.NDArray[Any]:
        """Return a column in its own type: the type of the array depends on other columns."""
        dtype = type_.numpy_dtype([]) if type_.library == "numpy" else None
        if dtype is not None and dtype not in ("U", "S"):
            if column.dtype == dtype:
                return column
            if _can_hold(dtype, values := _numbers(column)):
                return np.array(values, dtype=dtype)
        # Decided by its own values: texts as wide as the longest, integers if all are whole.
        if column.dtype.kind in "US":
            return np.array(column.tolist(), dtype=column.dtype.kind)
        if column.dtype.kind != "f" or (column % 1).any() or (np.abs(column) >= 2**63).any():
            return column  # a remainder of NaN is true
        return column.astype(np.int64)

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


# Vectors with an entry per row (y, weights, S, ids), and their cross tables.


def check_length(vector: Any, n_rows: int, name: str, reference: str = "X") -> None:
    """Check that a vector has as many entries as `reference` has rows."""
    if vector is None:
        return
    _check_no_name(vector, name)
    try:
        length = len(vector) if hasattr(vector, "__len__") else len(np.asarray(vector))
    except TypeError as error:
        raise TypeError(f"{name} must be an array, got {type(vector).__name__}.") from error
    if length != n_rows:
        problem = "Found input variables with inconsistent numbers of samples: "
        raise ValueError(problem + f"{reference} has {n_rows} rows, {name} has {length}.")


def _check_no_name(vector: Any, name: str) -> None:
    if isinstance(vector, str):
        raise TypeError(f"{name} must be the column itself, not its name. Got {vector!r}.")


def check_weights(sample_weight: npt.ArrayLike | None, n_rows: int) -> FloatArray | None:
    """Return weights as floats, or None."""
    if sample_weight is None:
        return None
    check_length(sample_weight, n_rows, "sample_weight")
    weights = np.asarray(sample_weight, dtype=float)
    if weights.ndim != 1:
        raise ValueError(f"sample_weight must be one-dimensional. Got shape {weights.shape}.")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("sample_weight must be finite and not negative.")
    if weights.sum() == 0:
        raise ValueError("sample_weight must not be all zero: no row would count.")
    return weights


def as_columns(vectors: ColumnsLike, name: str) -> NamedColumns:
    """Return a vector or table as a dict of pandas Series."""
    _check_no_name(vectors, name)
    if isinstance(vectors, pd.Series):
        return {name if vectors.name is None else vectors.name: vectors}
    if (series := as_series(vectors)) is not None:
        return {series.name or name: series}
    if not hasattr(vectors, "columns") and (array := np.asarray(vectors)).ndim == 1:
        return {name: pd.Series(array)}
    table = as_table(vectors, name)
    # Columns of an array have no names, and must not be mistaken for columns of X.
    named = table.names or _made_up(name, table.n_columns)
    return {label: table.column(p) for p, label in enumerate(named)}


def _made_up(name: str, n_columns: int) -> list[str]:
    return [f"{name}_{p}" if p else name for p in range(n_columns)]


def are_made_up(names: Sequence[Any]) -> bool:
    """Whether the names of columns of S were made up by `as_columns`, for an array."""
    return any(list(names) == _made_up(name, len(names)) for name in ("sensitive_features", "y"))


# Cross tables of columns.


_MOST_PAIRS = 20_000_000

# Of at least so many rows, a larger share with a value of their own says nothing about S.
_FEWEST_ROWS, _MOST_SINGLE = 20, 0.8


@dataclass(frozen=True, eq=False)
class CrossTable:
    """Counts of S (rows) by Y (columns), from rows that were observed together."""

    counts: CountArray
    y_values: pd.Index

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.counts.sum())

    @property
    def p_y(self) -> FloatArray:
        """P(Y) as observed."""
        return self.counts.sum(axis=0) / self.n

    @property
    def posteriors(self) -> FloatArray:
        """P(S|y) as observed, one row per y."""
        return (self.counts / self.counts.sum(axis=0)).T

    @property
    def prior(self) -> FloatArray:
        """P(S) as observed."""
        return self.counts.sum(axis=1) / self.n


def observed(s: ColumnsLike, y: ColumnsLike, owner: str) -> CrossTable:
    """Return the `CrossTable` of two columns, or of two tables whose columns are taken jointly."""
    s_codes, _ = coded(s, "s")
    y_codes, y_values = coded(y, "y")
    check_length(y_codes, len(s_codes), "y", reference="s")
    n_single = np.count_nonzero(np.bincount(y_codes) == 1)
    if len(y_codes) >= _FEWEST_ROWS and n_single > _MOST_SINGLE * len(y_codes):
        warn(
            f"{owner} got a y of which nearly every row is unique, as made-up rows are: each "
            f"seems to give S away, so the figure is about the number of rows, not about what "
            f"leaks. Take the figures of the mechanism, or a few columns."
        )
    if not len(s_codes):
        raise ValueError(f"Found array with 0 sample(s) while {owner} needs at least one row.")
    n_pairs = (int(s_codes.max()) + 1) * len(y_values)
    if n_pairs > _MOST_PAIRS:
        raise ValueError(
            f"{owner} got columns with {n_pairs:,} possible pairs of values, too many to count: "
            f"cut numbers into bins first, for instance with pandas.qcut."
        )
    return CrossTable(count_pairs(s_codes, y_codes, None), y_values)


def coded(columns: ColumnsLike, name: str) -> tuple[IntArray, pd.Index]:
    """Return a code for each row, 0 or more, and the values that the codes stand for.

    columns : a vector, or a table whose columns are taken jointly. A missing value is a value.
    """
    parts: list[tuple[IntArray, Any]] = [
        pd.factorize(c, use_na_sentinel=False) for c in as_columns(columns, name).values()
    ]
    if len({len(codes) for codes, _ in parts}) > 1:
        raise ValueError(f"The columns of {name} must all have the same number of rows.")
    if len(parts) == 1:
        codes, values = parts[0]
        return codes, pd.Index(values)
    rows = np.column_stack([codes for codes, _ in parts])
    combinations, codes = np.unique(rows, axis=0, return_inverse=True)
    values = [pd.Index(v).take(c) for (_, v), c in zip(parts, combinations.T, strict=True)]
    return codes.reshape(-1), pd.MultiIndex.from_arrays(values)
