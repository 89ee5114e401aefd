"""TreeCells: cells are the leaves of one tree of questions about codes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeAlias

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from .._numerics import TINY
from .._typing import FloatArray, IntArray
from ..codes import chunks
from .cells import CellColumn, Cells, CellTask, Partition

LEAF = -1

# What each feature of a tree is about: a column and a category, if the feature is 1 for this
# category and 0 for others; or a column and None, if the feature is the code itself.
Questions: TypeAlias = list[tuple[int, int | None]]


@dataclass(frozen=True, eq=False)
class CellTree:
    """A tree of questions about codes, as arrays with an entry for each node; the root is first.

    columns : the column that a question is about, -1 for a leaf; codes : a row goes left if its
    code is at most this one or, where `is_category`, if it is a different one; left, right : the
    next node, or the cell of a leaf.
    """

    columns: IntArray
    codes: IntArray
    is_category: IntArray
    left: IntArray
    right: IntArray

    @property
    def n_cells(self) -> int:
        """The number of leaves."""
        return int(np.count_nonzero(self.columns == LEAF))

    def cells(self, codes: IntArray) -> IntArray:
        """Return the cell of each row of codes, of shape (n, n_columns)."""
        found = np.empty(len(codes), dtype=np.int32)
        for chunk in chunks(len(codes)):
            of_chunk = codes[chunk]
            at, rows = np.zeros(len(of_chunk), dtype=np.intp), np.arange(len(of_chunk))
            while len(rows := rows[self.columns[at[rows]] != LEAF]):
                here = at[rows]
                value, limit = of_chunk[rows, self.columns[here]], self.codes[here]
                goes_left = np.where(self.is_category[here], value != limit, value <= limit)
                at[rows] = np.where(goes_left, self.left[here], self.right[here])
            found[chunk] = self.left[at]
        return found

    def paths(self) -> list[list[tuple[int, int, bool, bool]]]:
        """Return, for each cell, the (column, code, is_category, is_left) that lead to it."""
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


def fit_tree(
    features: Any, contents: Any, task: CellTask, max_cells: int, questions: Questions
) -> CellTree:
    """Return a regression tree of `contents`, as questions about codes."""
    regressor = DecisionTreeRegressor(
        max_leaf_nodes=max(2, min(max_cells, task.most_cells)),
        min_weight_fraction_leaf=task.least_share,
        min_samples_leaf=task.fewest_distinct,
        random_state=0,
    )
    tree: Any = regressor.fit(features, contents, task.weights).tree_
    is_leaf = tree.children_left < 0
    asked = np.where(is_leaf, 0, tree.feature)
    columns = np.array([column for column, _ in questions])[asked]
    category = np.array([LEAF if code is None else code for _, code in questions])[asked]
    is_category = np.array([code is not None for _, code in questions])[asked]
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
    tree: CellTree,
    names: Sequence[str],
    category: Callable[[int, int], str],
    upper_end: Callable[[int, int], str],
    or_missing: str = " or missing",
) -> list[str]:
    """Return the rule of each cell as a text.

    names : of the columns; category, upper_end : the name of a category, and the largest number
    with at most a code, for a column and a code; or_missing : added where a code may be missing.
    """
    rules = []
    for path in tree.paths():
        conditions = []
        for column in dict.fromkeys(question[0] for question in path):
            codes = defaultdict[tuple[bool, bool], list[int]](list)
            for asked, code, is_category, is_left in path:
                if asked == column:
                    codes[is_category, is_left].append(code)
            words = partial(category, column), partial(upper_end, column), or_missing
            conditions.append(_condition(names[column], codes, *words))
        rules.append(", ".join(conditions) or "all rows")
    return rules


def _condition(name: str, codes: Any, category: Any, upper_end: Any, or_missing: str) -> str:
    """Return the answers about one column as a text; codes : by (is_category, is_left)."""
    at_most, above = codes[False, True], codes[False, False]
    if chosen := codes[True, False]:
        return f"{name} = {category(chosen[0])}"
    if excluded := codes[True, True]:
        return f"{name} not {' or '.join(map(category, excluded))}"
    if at_most and min(at_most) < 0:
        return f"{name} missing"
    low = upper_end(max(above)) if above and max(above) >= 0 else ""
    if not at_most:
        return f"{name} > {low}" if low else f"{name} known"
    condition = f"{name} <= {upper_end(min(at_most))}"
    if not above:
        return condition + or_missing
    return f"{low} < {condition}" if low else condition


# TreeCells: cells that keep as much of every column as a tree can, without using S.


@dataclass(frozen=True, eq=False)
class TreePartition(Partition):
    """Cells by questions about columns."""

    cut: CellTree

    @property
    def n_cells(self) -> int:
        return self.cut.n_cells

    def cells(
        self, columns: Sequence[CellColumn], codes: IntArray, folds: IntArray | None = None
    ) -> IntArray:
        return self.cut.cells(codes)

    def in_words(self, columns: Sequence[CellColumn], names: Sequence[Hashable]) -> list[str]:
        return rules_in_words(
            self.cut,
            [str(name) for name in names],
            lambda column, code: columns[column].category(code),
            lambda column, code: columns[column].upper_end(code),
        )

    def rules(self) -> list[Any]:
        return ["tree", self.cut.to_lists()]


class TreeCells(Cells):
    """Cells that keep the row: a tree that predicts all columns of X from themselves.

    Each column counts the same. S is not used, so the groups in a cell are a sample like any
    other.

    Parameters
    ----------
    max_cells : int, default=400
        The largest number of cells. There are fewer if S has more than two groups, if a cell
        would have too few rows for the budget, and with utility="distortion" (100).

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skprivacy import PrivacyFunnelTransformer, TreeCells
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame(rng.integers(9, size=(2000, 6)), columns=list("abcdef"))
    >>> table["s"] = rng.random(2000) < 0.2 + 0.05 * table["a"]
    >>> funnel = PrivacyFunnelTransformer(0.05, sensitive="s", alphabet=TreeCells(max_cells=8))
    >>> funnel.fit_transform(table).shape
    (2000, 6)
    >>> len(funnel.cells_)
    8
    """

    name: ClassVar[str] = "tree"

    def __init__(self, max_cells: int = 400) -> None:
        self.max_cells = max_cells

    def learn(self, task: CellTask) -> tuple[TreePartition, IntArray]:
        features, questions = _features(task.columns, task.codes)
        tree = fit_tree(features, _contents(task), task, self.max_cells, questions)
        return TreePartition(tree), tree.cells(task.codes)


def _features(columns: Sequence[CellColumn], codes: IntArray) -> tuple[FloatArray, Questions]:
    """Return features, codes or one-hot codes, and the questions about them of `fit_tree`."""
    parts: list[Any] = []
    questions: Questions = []
    for position, column in enumerate(columns):
        of_column = codes[:, position, None]
        every = range(column.n_codes)
        parts.append(of_column if column.has_order else of_column == np.array(every))
        questions += [(position, code) for code in ([None] if column.has_order else every)]
    return np.hstack([part.astype(np.float32) for part in parts]), questions


def _contents(task: CellTask) -> FloatArray:
    """Return what a tree predicts: each column with variance 1, numbers as ranks."""
    parts = []
    for column, codes in zip(task.columns, task.codes.T, strict=True):
        block = _block(column, codes, task.weights)
        mean = np.average(block, axis=0, weights=task.weights)
        variance = float(np.average((block - mean) ** 2, axis=0, weights=task.weights).sum())
        if variance > 1e-12:  # otherwise the column is constant
            parts.append((block - mean) / np.sqrt(variance))
    return np.hstack(parts) if parts else np.zeros((len(task.codes), 1))


def _block(column: CellColumn, codes: IntArray, weights: FloatArray) -> FloatArray:
    if not column.has_order:
        return (codes[:, None] == np.arange(column.n_codes)).astype(float)
    known = codes >= 0
    share = np.bincount(codes[known], weights[known], column.n_codes)
    ranks = (np.cumsum(share) - share / 2) / max(share.sum(), TINY)
    if known.all():
        return ranks[codes, None]
    return np.column_stack([np.where(known, ranks[codes], 0.5), ~known])
