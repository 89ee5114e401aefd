"""Cells: a whole table as an alphabet of a few symbols, each of them a kind of row.

Every row, seen or new, belongs to one cell. The channel is designed for cells, and what is shown
depends on the released cell alone, so the guarantee of the cell holds for the row.
"""

from .cells import CellAlphabet, CellColumn, Cells, CellTask, fewest_rows, learn_cell_columns
from .scores import ScoreCells
from .trees import TreeCells

__all__ = [
    "CellAlphabet",
    "CellColumn",
    "CellTask",
    "Cells",
    "ScoreCells",
    "TreeCells",
    "fewest_rows",
    "learn_cell_columns",
]
