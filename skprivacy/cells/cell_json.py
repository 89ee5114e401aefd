"""Cells by questions about columns as a part of a JSON document, read with care."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._json_reader import Place
from .._messages import InPython, Message
from .._typing import FloatArray, IntArray
from ..encoding.alphabet_json import HEAVIEST, read_column, write_column
from .alphabet import CellAlphabet
from .columns import CellColumn
from .tree_cells import TreePartition
from .trees import LEAF, CellTree

CELL_KEYS = ("columns", "questions", "counted")


def cell_content(alphabet: CellAlphabet) -> dict[str, Any]:
    """Return what a document says about cells."""
    if not isinstance(alphabet.partition, TreePartition):
        raise ValueError(
            Message(
                "Cells by scores hold models, which JSON cannot: use ",
                InPython(
                    "alphabet=TreeCells(), or pickle the transformer, and load it only where you "
                    "trust its source",
                    "no --target, or --alphabet values, or no --save-mechanism",
                ),
                ".",
            )
        )
    return {
        "columns": [write_column(column) for column in alphabet.columns],
        "questions": alphabet.partition.tree.to_lists(),
        "counted": [[part.tolist() for part in counted] for counted in alphabet.counted],
    }


def read_cells(part: dict[str, Place]) -> CellAlphabet:
    """Return cells after checking all of it: a wrong one would draw from the wrong rows."""
    columns = tuple(map(read_column, part["columns"].items(fewest=1)))
    tree = _read_tree(part["questions"], [CellColumn(column) for column in columns])
    counted = [
        _read_counted(place, len(column.values), tree.n_cells)
        for place, column in zip(part["counted"].items(len(columns)), columns, strict=True)
    ]
    return CellAlphabet(columns, TreePartition(tree), tuple(counted))


def _read_tree(place: Place, columns: Sequence[CellColumn]) -> CellTree:
    n = place.length()
    table = place.integers(n, 5, low=-1, high=max(n, *(column.n_codes for column in columns)))
    of, codes, is_category, left, right = table.T
    is_leaf = of == LEAF
    place.require((of < len(columns))[:, None] | np.zeros(5, bool), "a column that there is")
    has_order = np.array([column.has_order for column in columns])
    fits = np.where(is_leaf, is_category == 0, is_category == ~has_order[of])
    place.require(fits, "a question that its column allows")
    n_codes = np.array([column.n_codes for column in columns])[of]
    place.require(is_leaf | ((codes >= -1) & (codes < n_codes)), "a code that its column has")
    _check_shape(place, is_leaf, left, right)
    return CellTree(of, codes, is_category.astype(bool), left, right)


def _check_shape(place: Place, is_leaf: Any, left: IntArray, right: IntArray) -> None:
    """Check that every question but the first follows exactly one earlier one."""
    n, cells = len(is_leaf), np.cumsum(is_leaf) - 1
    here = np.arange(n)
    is_next = is_leaf | ((left > here) & (right > here) & (left < n) & (right < n))
    place.require(is_next, "a question whose answers lead to later ones")
    place.require(~is_leaf | ((left == cells) & (right == cells)), "the cell that comes next")
    followed = np.sort(np.concatenate([left[~is_leaf], right[~is_leaf]]))
    if not np.array_equal(followed, np.arange(1, n)):
        raise place.malformed(f"{place.path} must lead to every question but the first once.")


def _read_counted(
    place: Place, n_values: int, n_cells: int
) -> tuple[IntArray, IntArray, FloatArray]:
    values, cells, weights = place.items(3)
    n = values.length()
    found = cells.integers(n, low=0, high=n_cells - 1)
    if len(np.unique(found)) < n_cells:
        raise cells.malformed(f"{cells.path} must have every cell.")
    of_value = values.integers(n, low=0, high=n_values - 1)
    pairs = zip(of_value.tolist(), found.tolist(), strict=True)
    values.different(pairs, "a value of the same cell")
    return of_value, found, weights.numbers(n, low=0, high=HEAVIEST)
