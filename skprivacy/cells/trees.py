"""TreeCells: cells are the leaves of one tree of questions about codes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from .._typing import FloatArray, IntArray
from ..codes import chunks
from .cells import CellColumn, Cells, CellTask, Partition

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


# TreeCells: cells that keep as much of every column as a tree can. They do not look at S.


# A column whose variance is below this is constant.
_NO_VARIANCE = 1e-12


@dataclass(frozen=True, eq=False)
class TreePartition(Partition):
    """Cells by questions about the columns themselves."""

    tree: CellTree

    @property
    def n_cells(self) -> int:
        return self.tree.n_cells

    def cells(
        self, columns: Sequence[CellColumn], codes: IntArray, folds: IntArray | None = None
    ) -> IntArray:
        return self.tree.cells(codes)

    def in_words(self, columns: Sequence[CellColumn], names: Sequence[Hashable]) -> list[str]:
        return rules_in_words(
            self.tree.paths(),
            [str(name) for name in names],
            lambda column, code: columns[column].named(code),
            lambda column, code: columns[column].below(code),
        )

    def rules(self) -> list[Any]:
        return ["tree", self.tree.to_lists()]


class TreeCells(Cells):
    """Cells that keep the row: a tree that predicts all columns of X from themselves.

    Each column counts the same. S is not used, so that how often each group is in a cell is as in
    any other sample.

    Parameters
    ----------
    max_cells : int, default=400
        How many cells there are at most. There are fewer where S has more than two groups, where
        a cell would have too few rows for the budget, and with utility="distortion" (100).

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

    def learn(self, task: CellTask) -> TreePartition:
        features, questions = _features(task.columns, task.codes)
        contents = _contents(task)
        regressor = DecisionTreeRegressor(
            max_leaf_nodes=max(2, min(self.max_cells, task.most_cells)),
            min_weight_fraction_leaf=task.least_share,
            min_samples_leaf=task.fewest_distinct,
            random_state=0,
        ).fit(features, contents, task.weights)
        return TreePartition(as_cell_tree(regressor.tree_, questions))


def _features(
    columns: Sequence[CellColumn], codes: IntArray
) -> tuple[FloatArray, list[tuple[int, int | None]]]:
    """Return what a tree may ask for: places of numbers, and whether a category is this one."""
    parts: list[Any] = []
    questions: list[tuple[int, int | None]] = []
    for position, column in enumerate(columns):
        own = codes[:, position]
        if column.has_order:
            parts.append(own[:, None])
            questions.append((position, None))
        else:
            every = range(column.n_codes)
            parts.append(own[:, None] == np.array(every))
            questions += [(position, code) for code in every]
    return np.hstack([part.astype(np.float32) for part in parts]), questions


def _contents(task: CellTask) -> FloatArray:
    """Return what cells should keep: each column with variance 1, numbers by their rank."""
    parts = []
    for column, codes in zip(task.columns, task.codes.T, strict=True):
        block = _block(column, codes, task.weights)
        mean = np.average(block, axis=0, weights=task.weights)
        variance = float(np.average((block - mean) ** 2, axis=0, weights=task.weights).sum())
        if variance > _NO_VARIANCE:
            parts.append((block - mean) / np.sqrt(variance))
    return np.hstack(parts) if parts else np.zeros((len(task.codes), 1))


def _block(column: CellColumn, codes: IntArray, weights: FloatArray) -> FloatArray:
    if not column.has_order:
        return (codes[:, None] == np.arange(column.n_codes)).astype(float)
    known = codes >= 0
    share = np.bincount(codes[known], weights[known], column.n_codes)
    ranks = (np.cumsum(share) - share / 2) / max(share.sum(), 1e-300)
    return np.column_stack([np.where(known, ranks[codes], 0.5), ~known])
