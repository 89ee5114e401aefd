"""Cells that some rows have taught, by which all others are counted; numbers of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from .._typing import IntArray, NamedColumns
from ..cells import CellAlphabet
from ..releasing.group_folds import folds_of_keys
from ..tables.frames import as_table

# What the column of such numbers is called: unlike the name of any column of a table.
NUMBER = ("number of the row",)


class RowNumbers(ABC):
    """A number for each row of a table that follows from the row alone: any engine can tell it."""

    @property
    @abstractmethod
    def read(self) -> tuple[Any, ...]:
        """The columns that tell the number of a row."""

    @abstractmethod
    def of_table(self, columns: NamedColumns) -> IntArray:
        """Return the number of each row, -1 for none; columns : these and any others."""

    def of_frame(self, frame: Any) -> IntArray:
        """Return the number of each row of any frame that has these columns."""
        table = as_table(frame, "fit")
        assert table.names is not None
        return self.of_table(table.named(map(table.names.index, self.read)))


@dataclass(frozen=True, eq=False)
class KnownCells(RowNumbers):
    """The cells of some columns.

    names : of these columns; taught_as : what cells were asked for; groups : the column that
    tells people apart, if any.
    """

    alphabet: CellAlphabet
    names: tuple[Any, ...]
    taught_as: Any
    groups: tuple[Any, ...] = ()

    @property
    def read(self) -> tuple[Any, ...]:
        return (*self.names, *self.groups)

    def of_columns(self, columns: NamedColumns, folds: IntArray | None = None) -> IntArray:
        """Return the cell of each row; columns : these and any others; folds : of the rows."""
        series = [columns[name] for name in self.names]
        codes, _ = self.alphabet.encode(series, self.names, folds)
        return codes

    def of_table(self, columns: NamedColumns) -> IntArray:
        folds = next((folds_of_keys(columns[name], name) for name in self.groups), None)
        return self.of_columns(columns, folds)


def unlike(name: str, others: Container[Any]) -> str:
    """Return a name that no other column has."""
    while name in others:
        name += " "
    return name
