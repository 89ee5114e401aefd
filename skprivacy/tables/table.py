"""What a table is to the rest of the package: columns by position, whatever library holds them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from .._messages import Message, Parameter
from .._typing import FloatArray, IntArray, NamedColumns
from .column_types import ColumnType


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

        shown : all values that such a column may have, in their order: its categories, if it has
        any. Only these four decide the dtype, not any column of this table.
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
        """Return what comes out with the rows besides the columns: the levels of an index.

        A mere numbering of the rows is not one.
        """
        return []

    @abstractmethod
    def kept(self, position: int, type_: ColumnType) -> Any:
        """Return a column that is passed through: its values in one spelling each, and no more.

        type_ : the type that `fit` saw. In an array all columns share one type, which must not
        reveal anything about the others.
        """

    def label(self, position: int) -> Any:
        """Return what to call a column in a message."""
        return position if self.names is None else self.names[position]

    def named(self, positions: Iterable[int]) -> NamedColumns:
        """Return columns by their labels."""
        return {self.label(position): self.column(position) for position in positions}

    def positions_there(self, owner: str, parameter: str, columns: Any) -> list[int]:
        """Return the positions of those of the given columns that exist."""
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
                Message(
                    Parameter(parameter, owner),
                    f" names the column {self.label(repeated[0])!r} more than once.",
                )
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
            Message(
                Parameter(parameter, owner),
                f" names the column {column!r}, which X does not have. X has {there}.",
            )
        )
