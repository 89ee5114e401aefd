"""Cells: a whole table as an alphabet of a few symbols, each of them a kind of row.

A row belongs to one cell, whatever its values are; the channel is designed for cells, and what is
shown depends on the released cell alone. So all that is proven about it holds for the row.
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
