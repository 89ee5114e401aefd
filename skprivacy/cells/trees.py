"""A tree of questions about codes, whose leaves are cells: a few integers, and rules in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import IntArray
from ..codes import chunks

LEAF = -1
_OR_MISSING = " or missing"


@dataclass(frozen=True, eq=False)
class CellTree:
    """Questions in the order in which they are asked, from the root on.

    columns : of codes that each question is about, -1 for a leaf; codes : a row goes left if its
    code is at most this one or, where `is_category`, if it is another one; left, right : the
    question that comes next, or for a leaf, its cell.
    """

    columns: IntArray
    codes: IntArray
    is_category: IntArray
    left: IntArray
    right: IntArray

    @property
    def n_cells(self) -> int:
        """How many leaves there are."""
        return int(np.count_nonzero(self.columns == LEAF))

    def cells(self, codes: IntArray) -> IntArray:
        """Return the cell of each row of codes, of shape (n, n_columns)."""
        found = np.empty(len(codes), dtype=np.int32)
        for rows in chunks(len(codes)):
            found[rows] = self._cells(codes[rows])
        return found

    def _cells(self, codes: IntArray) -> IntArray:
        at, rows = np.zeros(len(codes), dtype=np.intp), np.arange(len(codes))
        while len(rows := rows[self.columns[at[rows]] != LEAF]):
            here = at[rows]
            value, limit = codes[rows, self.columns[here]], self.codes[here]
            goes_left = np.where(self.is_category[here], value != limit, value <= limit)
            at[rows] = np.where(goes_left, self.left[here], self.right[here])
        return self.left[at]

    def paths(self) -> list[list[tuple[int, int, bool, bool]]]:
        """Return, for each cell, the answers that lead to it.

        Each is (column, code, is_category, is_left).
        """
        found: list[list[tuple[int, int, bool, bool]]] = [[] for _ in range(self.n_cells)]
        waiting: list[tuple[int, list[Any]]] = [(0, [])]
        while waiting:
            node, path = waiting.pop()
            if self.columns[node] == LEAF:
                found[self.left[node]] = path
                continue
            question = int(self.columns[node]), int(self.codes[node]), bool(self.is_category[node])
            waiting.append((int(self.left[node]), [*path, (*question, True)]))
            waiting.append((int(self.right[node]), [*path, (*question, False)]))
        return found

    def to_lists(self) -> list[list[int]]:
        """Return the questions as lists of integers."""
        parts = self.columns, self.codes, self.is_category, self.left, self.right
        return np.column_stack(parts).astype(int).tolist()


def as_cell_tree(tree: Any, questions: Sequence[tuple[int, int | None]]) -> CellTree:
    """Return a tree of scikit-learn as questions about codes.

    questions : what each feature of the tree is about: a column and a category, whose feature is 1
    for it and 0 for others; or a column and None, if the feature is its code.
    """
    is_leaf = tree.children_left < 0
    features = np.where(is_leaf, 0, tree.feature)
    columns = np.array([column for column, _ in questions])[features]
    category = np.array([LEAF if code is None else code for _, code in questions])[features]
    is_category = np.array([code is not None for _, code in questions])[features]
    codes = np.where(is_category, category, np.floor(tree.threshold)).astype(int)
    cells = np.cumsum(is_leaf) - 1
    return CellTree(
        np.where(is_leaf, LEAF, columns),
        np.where(is_leaf, 0, codes),
        is_category & ~is_leaf,
        np.where(is_leaf, cells, tree.children_left),
        np.where(is_leaf, cells, tree.children_right),
    )


def rules_in_words(
    paths: Sequence[Sequence[tuple[int, int, bool, bool]]],
    names: Sequence[str],
    named: Callable[[int, int], str],
    below: Callable[[int, int], str],
    may_miss: bool = True,
) -> list[str]:
    """Return the rules of each cell as a text, those about one column together.

    named : what a category of a column is called; below : the end of a part of an order;
    may_miss : whether codes can be missing.
    """
    rules = [_rule(path, names, named, below) or "all rows" for path in paths]
    return rules if may_miss else [rule.replace(_OR_MISSING, "") for rule in rules]


def _rule(path: Any, names: Any, named: Any, below: Any) -> str:
    parts = []
    for column in dict.fromkeys(question[0] for question in path):
        own = [question[1:] for question in path if question[0] == column]
        at_most = [code for code, is_category, is_left in own if not is_category and is_left]
        above = [code for code, is_category, is_left in own if not is_category and not is_left]
        excluded = [code for code, is_category, is_left in own if is_category and is_left]
        chosen = [code for code, is_category, is_left in own if is_category and not is_left]
        parts.append(_about(names[column], column, at_most, above, excluded, chosen, named, below))
    return ", ".join(parts)


def _about(
    name: str,
    column: int,
    at_most: list[int],
    above: list[int],
    excluded: list[int],
    chosen: list[int],
    named: Callable[[int, int], str],
    below: Callable[[int, int], str],
) -> str:
    """Say what a cell has in one column."""
    if chosen:
        return f"{name} = {named(column, chosen[0])}"
    if excluded:
        return f"{name} not {' or '.join(named(column, code) for code in excluded)}"
    if at_most and min(at_most) < 0:
        return f"{name} missing"
    low = f"{below(column, max(above))} < " if above and max(above) >= 0 else ""
    if at_most:
        end = f"{name} <= {below(column, min(at_most))}"
        return f"{low}{end}" if above else f"{end}{_OR_MISSING}"
    return f"{name} > {below(column, max(above))}" if low else f"{name} known"
