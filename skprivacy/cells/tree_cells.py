"""TreeCells: cells that keep as much of every column as a tree can. They do not look at S."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from .._typing import FloatArray, IntArray
from .base import Cells, CellTask, Partition
from .columns import CellColumn
from .trees import CellTree, as_cell_tree, rules_in_words

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
