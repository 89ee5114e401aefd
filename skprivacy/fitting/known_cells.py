"""Cells that some rows have taught, by which all others are counted."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

import pandas as pd

from .._typing import IntArray, NamedColumns
from ..cells import CellAlphabet
from ..tables.frames import as_table


@dataclass(frozen=True, eq=False)
class KnownCells:
    """The cells of some columns.

    names : of these columns; taught_as : what cells were asked for.
    """

    alphabet: CellAlphabet
    names: tuple[Any, ...]
    taught_as: Any

    def of_columns(self, columns: NamedColumns) -> IntArray:
        """Return the cell of each row; columns : these and any others."""
        codes, _ = self.alphabet.encode([columns[name] for name in self.names], self.names)
        return codes

    def of_frame(self, frame: Any) -> IntArray:
        """Return the cell of each row of any frame that has these columns."""
        table = as_table(frame, "fit")
        assert table.names is not None
        return self.of_columns(table.named(map(table.names.index, self.names)))

    def of_rows(self, columns: NamedColumns) -> pd.Series:
        """Return the cell of each row as a column that can be counted."""
        return pd.Series(self.of_columns(columns))


def cell_name(others: Container[Any]) -> str:
    """Return a name for the column of cells, unlike those of other columns."""
    name = "cell"
    while name in others:
        name += " "
    return name
