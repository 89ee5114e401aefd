"""The protocol of tables, types of columns, and the role of each column.

The dtype of a batch reveals something about its rows (that a value is missing, or not whole), so
it must not decide the dtype of the release. Instead, `fit` keeps a description of each type, which
can be written as JSON, and from which every library makes its nearest type.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from .._messages import Message, Owner, warn
from .._typing import FloatArray, IntArray, NamedColumns
from .._validation import about

FAMILIES = (
    "bool", "int", "uint", "float", "text", "category", "time", "duration", "date", "object",
)  # fmt: skip
LIBRARIES = ("pandas", "polars", "pyarrow", "numpy", "")
_NUMBERS = {"i": "int", "u": "uint", "f": "float"}
_TIMES = {"M": "time", "m": "duration"}
UNITS = ("s", "ms", "us", "ns")


# Names of types, except zones that pandas would read from files, and types that list their values.
_NAME = re.compile(r"(?!.*dateutil)[\w\[\]<>(), /+:.=-]{0,200}", re.ASCII)


def is_name(text: str) -> bool:
    """Whether a text is allowed as the name of a type."""
    return _NAME.fullmatch(text) is not None


@dataclass(frozen=True)
class ColumnType:
    """The type of a released column.

    family : one of `FAMILIES`; "object" is any other type, decided by the values; bits : of a
    number; unit, zone : of a time; is_ordered : of a category; library, native : of the column in
    `fit`, and the name of its type there.
    """

    family: str
    bits: int | None = None
    unit: str | None = None
    zone: str | None = None
    is_ordered: bool = False
    library: str = ""
    native: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict."""
        return asdict(self)

    def combined(self, other: ColumnType) -> ColumnType:
        """Return a common type for the rows of two batches."""
        if self == other:
            return self
        if self.family == other.family == "category":
            return ColumnType("category", is_ordered=self.is_ordered and other.is_ordered)
        if {self.family, other.family} <= set(_NUMBERS.values()):
            common = np.result_type(self._numpy, other._numpy)
            return ColumnType(_NUMBERS[common.kind], 8 * common.itemsize)
        return ColumnType(self.family if self.family == other.family else "object")

    @property
    def _numpy(self) -> np.dtype[Any]:
        return np.dtype(f"{self.family}{self.bits}")

    def pandas_dtype(self, values: list[Any]) -> Any:
        """Return a pandas dtype for a column of these values; None if the values decide.

        Not for categories, which depend on a list of values.
        """
        if self.library == "pandas" and (dtype := _parsed(self.native or None)) is not None:
            return dtype
        has_missing = any(value is None for value in values)
        if self.family in ("int", "uint"):
            name = f"{self.family}{self.bits}"
            return name.replace("int", "Int").replace("u", "U") if has_missing else name
        named = {
            "bool": "boolean" if has_missing else "bool",
            "float": f"float{self.bits}",
            "text": pd.Series([""]).dtype,
            "time": f"datetime64[{self.unit}{f', {self.zone}' if self.zone else ''}]",
            "duration": f"timedelta64[{self.unit}]",
            "date": object,
            "object": object,
        }
        return _parsed(named.get(self.family))

    def numpy_dtype(self, values: list[Any]) -> Any:
        """Return a numpy dtype for an array of these values."""
        has_missing = any(value is None for value in values)
        if self.library == "numpy" and self.native in ("U", "S"):
            return object if has_missing else self.native
        if self.family == "bool" and not has_missing:
            return np.dtype(bool)
        if self.family == "float" or (self.family in ("int", "uint") and not has_missing):
            return self._numpy
        if self.family in ("time", "duration") and self.zone is None:
            return np.dtype(f"{'M8' if self.family == 'time' else 'm8'}[{self.unit}]")
        return np.dtype(object)


def _parsed(name: Any) -> Any:
    """Return a pandas dtype by its name; None if the installed pandas does not know it."""
    try:
        return None if name is None else pd.api.types.pandas_dtype(name)
    except (TypeError, ValueError, KeyError, ImportError, NotImplementedError, SyntaxError):
        return None  # of another version, or a zone without a name


def type_of_dtype(dtype: Any, library: str) -> ColumnType:
    """Return the `ColumnType` of a pandas or numpy dtype."""
    native = dtype.kind if library == "numpy" and dtype.kind in "US" else str(dtype)
    native = native if is_name(native) else ""
    return ColumnType(**_described(dtype), library=library, native=native)


def _described(dtype: Any) -> dict[str, Any]:
    if isinstance(dtype, pd.CategoricalDtype):
        return {"family": "category", "is_ordered": bool(dtype.ordered)}
    if pd.api.types.is_bool_dtype(dtype):
        return {"family": "bool"}
    if isinstance(dtype, pd.SparseDtype):
        dtype = dtype.subtype
    if dtype.kind in _NUMBERS:
        return {"family": _NUMBERS[dtype.kind], "bits": 8 * dtype.itemsize}
    if dtype.kind in "mM":
        family, dtype = _TIMES[dtype.kind], getattr(dtype, "pyarrow_dtype", dtype)
        is_numpy, zone = isinstance(dtype, np.dtype), getattr(dtype, "tz", None)
        unit = np.datetime_data(dtype)[0] if is_numpy else getattr(dtype, "unit", None)
        unit = unit if unit in UNITS else "s"  # dates, which are in days, are times to pandas
        return {"family": family, "unit": unit, "zone": None if zone is None else str(zone)}
    is_text = dtype.kind in "US" or isinstance(dtype, pd.StringDtype) or "string" in str(dtype)
    return {"family": "text" if is_text else "object"}


def present(values: list[Any]) -> list[Any]:
    """Return the values that are not missing."""
    return [value for value in values if value is not None]


# The index of a frame, which is released with its rows.


def check_no_copy(
    levels: Sequence[pd.Series], s_names: Container[object], s_columns: NamedColumns, owner: str
) -> None:
    """Refuse an index that holds S.

    levels : of the index; s_names : of the columns of S; s_columns : S, if it is known.
    """
    for number, level in enumerate(levels):
        is_named = level.name is not None and level.name in s_names
        if is_named or any(
            are_equal(level, column)
            and column.nunique(dropna=False) > 1  # a single value reveals nothing
            for column in s_columns.values()
        ):
            raise copy_error(levels, number, owner)


def copy_error(levels: Sequence[pd.Series], number: int, owner: str) -> ValueError:
    """Return the error for a level of an index that holds S."""
    is_alone = len(levels) == 1
    name = "The index" if is_alone else f"The level {labels_of(levels)[number]!r} of the index"
    return ValueError(
        f"{name} of X holds a sensitive column, and {owner} keeps the index in its output. Drop "
        f"it first: X.reset_index({'' if is_alone else f'level={number}, '}drop=True)."
    )


def are_equal(level: pd.Series, column: pd.Series) -> bool:
    """Whether a level of an index equals a column."""
    if len(level) != len(column):
        return False
    values, others = (pd.Series(s.to_numpy(dtype=object), dtype=object) for s in (level, column))
    return bool(np.all((values == others) | (values.isna() & others.isna())))


def labels_of(levels: Sequence[pd.Series]) -> list[object]:
    """Return distinct names for the levels of an index.

    Levels without a name, or with a repeated one, get the names that reset_index would give them.
    """
    defaults = ["index"] if len(levels) == 1 else [f"level_{i}" for i in range(len(levels))]
    names = [level.name for level in levels]
    pairs = zip(names, defaults, strict=True)
    return [default if n is None or names.count(n) > 1 else n for n, default in pairs]


# The protocol of tables: columns by position, whatever library holds them.


class Table(ABC):
    """A table with columns by position.

    names : of the columns, or None for an array; n_rows, n_columns : its shape.
    """

    original: Any
    names: list[Any] | None
    n_rows: int
    n_columns: int

    @abstractmethod
    def column(self, position: int) -> pd.Series:
        """Return a column as a pandas Series."""

    @abstractmethod
    def type_of(self, position: int) -> ColumnType:
        """Return the type of a column."""

    @abstractmethod
    def decoded(
        self, type_: ColumnType, shown: list[Any], values: list[Any], codes: IntArray
    ) -> Any:
        """Return a new column of a type, with ``values[codes]``.

        shown : all values that such a column may have, in order: the categories, if it has any.
        Only these arguments decide the dtype, not any column of this table.
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

    def index_levels(self) -> list[pd.Series]:
        """Return the levels of an index that is released with the rows.

        A mere numbering of the rows is no index.
        """
        return []

    @abstractmethod
    def kept(self, position: int, type_: ColumnType) -> Any:
        """Return a column that is passed through: each value in one spelling, and nothing else.

        type_ : the type in `fit`. All columns of an array share one type, which must not reveal
        anything about the others.
        """

    def label(self, position: int) -> Any:
        """Return the name of a column for messages."""
        return position if self.names is None else self.names[position]

    def named(self, positions: Iterable[int]) -> NamedColumns:
        """Return columns by their labels."""
        return {self.label(position): self.column(position) for position in positions}

    def known_positions(self, owner: str, parameter: str, columns: Any) -> list[int]:
        """Return the positions of the given columns, without those that do not exist."""
        listed = self._listed(columns)
        found = [c for c in listed if not isinstance(c, str) or c in (self.names or ())]
        return self.positions(owner, parameter, found)

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
        names, found = self.names, list[int]()
        for column in self._listed(columns):
            is_number = isinstance(column, int | np.integer) and not isinstance(column, bool)
            if names is not None and column in names:
                found.append(names.index(column))
            elif is_number and -self.n_columns <= column < self.n_columns:
                found.append(int(column) % self.n_columns)
            else:
                known = f"{self.n_columns} columns" if names is None else f"the columns {names}"
                problem = f" names the column {column!r}, which X does not have. X has {known}."
                raise ValueError(about(owner, parameter, problem))
        if repeated := [position for position in found if found.count(position) > 1]:
            problem = f" names the column {self.label(repeated[0])!r} more than once."
            raise ValueError(about(owner, parameter, problem))
        return found


# The role of each column: replaced, sensitive, published beside, or passed through.


@dataclass(frozen=True)
class ColumnRoles:
    """The columns in `fit`, and the role of each. Columns without a role are not released.

    names : of all columns, or None for an array; x_positions : the columns that are replaced;
    s_positions : those that hold S; s_names : of S, even if it was passed separately from the
    table; kept_positions : the columns that are passed through; of_cells : whether rows are
    released as cells; person_position : the column with person ids, which is read and never
    released; beside_positions : the columns that are published unchanged under the budget;
    target_names : of a target that is released.
    """

    names: list[Any] | None
    n_columns: int
    x_positions: tuple[int, ...]
    s_positions: tuple[int, ...]
    s_names: tuple[Any, ...] = ()
    kept_positions: tuple[int, ...] = ()
    of_cells: bool = False
    person_position: int | None = None
    beside_positions: tuple[int, ...] = ()
    target_names: tuple[Any, ...] = ()

    @property
    def has_string_names(self) -> bool:
        """Whether scikit-learn accepts the names as feature names."""
        return self.names is not None and all(isinstance(name, str) for name in self.names)

    @property
    def order(self) -> list[int]:
        """The released columns, replaced or unchanged, in the order of `fit`."""
        return sorted([*self.x_positions, *self.kept_positions, *self.beside_positions])

    @property
    def read_positions(self) -> tuple[int, ...]:
        """The columns that a draw depends on: those of X, and those beside it."""
        return *self.x_positions, *self.beside_positions

    @property
    def typed_positions(self) -> tuple[int, ...]:
        """The columns whose types `fit` learns: of X, beside it, and passed through."""
        return *self.read_positions, *self.kept_positions

    @property
    def read(self) -> list[int]:
        """The columns that `transform` reads."""
        return self.order if self.person_position is None else [*self.order, self.person_position]

    def keeping(self, names: Container[Any]) -> ColumnRoles:
        """Return the roles with only these columns passed through."""
        pairs = zip(self.kept_positions, self.names_or_positions(self.kept_positions), strict=True)
        return replace(self, kept_positions=tuple(p for p, name in pairs if name in names))

    def name(self, position: int) -> Any:
        """Return the name of a column; arrays get scikit-learn's x0, x1, ..."""
        return f"x{position}" if self.names is None else self.names[position]

    def names_or_positions(self, positions: Iterable[int]) -> list[Any]:
        """Return the names of columns, or for an array their positions."""
        return [p if self.names is None else self.names[p] for p in positions]

    @property
    def joint_name(self) -> str:
        """The name of the columns of X taken jointly."""
        if self.of_cells:
            return "cell"
        return "|".join(str(self.name(position)) for position in self.x_positions)

    def renamed(self, input_features: Iterable[str] | None) -> ColumnRoles:
        """Return the roles with other names, like `get_feature_names_out`."""
        if input_features is None:
            return self
        given = list(input_features)
        if self.has_string_names and given != self.names:
            raise ValueError("input_features is not equal to feature_names_in_")
        if len(given) != self.n_columns:
            problem = "input_features should have length equal to number of features "
            raise ValueError(problem + f"({self.n_columns}), got {len(given)}")
        return replace(self, names=given)

    def match(self, table: Table, owner: str) -> dict[int, int]:
        """Return the position in `table` of each position in `fit` that `transform` reads."""
        us = Owner(owner)
        if self.names is None or table.names is None:
            if table.n_columns != self.n_columns:
                text = "X has {n} features, but {us} is expecting {known} features as input."
                raise ValueError(Message.of(text, us=us, n=table.n_columns, known=self.n_columns))
            if self.has_string_names and table.names is None:
                text = "X does not have valid feature names, but "
                warn(Message.of(text + "{us} was fitted with feature names", us=us))
            elif self.names is None and table.names is not None:
                text = "X has feature names, but {us} was fitted without feature names"
                warn(Message.of(text, us=us))
            return {position: position for position in range(self.n_columns)}
        missing = [self.names[p] for p in self.read if self.names[p] not in table.names]
        if missing:
            text = "X lacks the columns {missing} that {us} was fitted with. It has {names}.{hint}"
            values = {"missing": missing, "names": table.names, "hint": self.person_hint(missing)}
            raise ValueError(Message.of(text, us=us, **values))
        return {p: table.names.index(self.names[p]) for p in self.read}

    @property
    def person_names(self) -> tuple[Any, ...]:
        """The name of the column with person ids, if there is one."""
        return () if self.person_position is None else (self.name(self.person_position),)

    def person_hint(self, missing: Container[Any]) -> str:
        """Return what the column with person ids is needed for, if it is missing."""
        return "".join(
            f" {name!r} tells which rows are of the same person: it is read, and not released."
            for name in self.person_names
            if name in missing
        )

    def read_in(self, table: Table, owner: str) -> list[int]:
        """Return the positions in `table` of the columns of X and those beside it."""
        positions = replace(self, kept_positions=()).match(table, owner)
        return [positions[position] for position in self.read_positions]

    def person_in(self, table: Table, owner: str) -> int | None:
        """Return the position in `table` of the column with person ids, None if there is none."""
        if self.person_position is None:
            return None
        return replace(self, kept_positions=()).match(table, owner)[self.person_position]
