"""Cells along one score: the rank of P(V|x), among all rows or among those with a similar P(S|x).

Rows are put into bins of similar scores of S. The place of a row on the line is a mean of two
ranks of its score of the target: in its bin, which says the least about S, and among all rows,
which says the most about the target. The line is cut into cells with about the same number of
rows. Scores are integers, so the cell of a row is an entry of a table: no rank is taken anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from .._numerics import TINY
from .._typing import FloatArray, IntArray
from .cells import CellTask
from .trees import CellTree, fit_tree, rules_in_words

# Scores are rounded to multiples of 1 / PARTS, so that ties are exact.
PARTS = 100

# Shares of the rank in the bin that are tried, and numbers of cells.
_SHARES, _NUMBERS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0), (5, 8, 12, 20)

# With more than two groups a design takes longer: fewer are tried.
_FEW_SHARES, _FEW_NUMBERS = (0.0, 0.4, 0.8), (6, 12)

# A cell has at least so many rows, unless there are fewer than this times the smallest number of
# cells. Bins of S have at least so many distinct rows; one more for so many rows, within limits.
_ROWS_PER_CELL, _ROWS_PER_BIN, _ROWS_FOR_A_BIN, _BINS = 50, 40, 80, (4, 10)

# Places on the line are compared to so many digits.
_DIGITS = 9


@dataclass(frozen=True, eq=False)
class CellLine:
    """A function from the scores of the target and of S to cells.

    ends : where each class of the target is on the line, between 0 and 1 (two classes, if the
    target has one score); bins : a tree of the scores of S; table : the cell for each bin and
    score along the line.
    """

    ends: FloatArray
    bins: CellTree
    table: IntArray

    @property
    def n_cells(self) -> int:
        return int(self.table.max()) + 1

    def cells(self, scores: IntArray) -> IntArray:
        """Return the cell of each row of scores, those of the target first."""
        n = len(self.ends) - 1
        along = along_line(scores[:, :n], self.ends)
        return self.table[self.bins.cells(scores[:, n:]), along].astype(np.int32)

    def to_lists(self) -> list[Any]:
        """Return all that the cell of a row follows from."""
        return [self.ends.tolist(), self.bins.to_lists(), self.table.tolist()]

    def in_words(self, of_target: Sequence[str], of_s: Sequence[str]) -> list[str]:
        """Return the rule of each cell as a text; of_target, of_s : the names of the scores."""
        name = of_target[0] if len(of_target) == 1 else _sum_in_words(self.ends, of_target)
        found: list[dict[str, list[str]]] = [{} for _ in range(self.n_cells)]
        for bin_, row in zip(score_rules(self.bins, of_s), self.table, strict=True):
            start = 0
            for cell, run in groupby(row.tolist()):
                end = start + len(list(run))
                low = "" if start == 0 else f"{(start - 1) / PARTS:.2f} < "
                high = "" if end == len(row) else f" <= {(end - 1) / PARTS:.2f}"
                found[cell].setdefault(f"{low}{name}{high}", []).append(bin_)
                start = end
        n_bins = len(self.table)
        return [
            "; ".join(
                place if len(bins) == n_bins else f"{place} where {' or '.join(bins)}"
                for place, bins in of_cell.items()
            )
            for of_cell in found
        ]


def _sum_in_words(ends: FloatArray, names: Sequence[str]) -> str:
    terms = [f"{end - ends[0]:+.2f} {name}" for end, name in zip(ends[1:], names, strict=True)]
    return f"({ends[0]:.2f} {' '.join(terms)})"


def score_rules(tree: CellTree, names: Sequence[str]) -> list[str]:
    """Return the rule of each leaf of a tree of scores as a text."""

    def upper_end(_: int, code: int) -> str:
        return f"{code / PARTS:.2f}"

    return rules_in_words(tree, names, lambda _, code: str(code), upper_end, or_missing="")


def along_line(scores: IntArray, ends: FloatArray) -> IntArray:
    """Return the scores along a line, integers from 0 to PARTS."""
    along = np.full(len(scores), PARTS * ends[0])
    for of_class, end in zip(scores.T, ends[1:], strict=True):
        along += (end - ends[0]) * of_class
    return np.rint(np.clip(along, 0, PARTS)).astype(np.intp)


def lines(of_target: IntArray, of_s: IntArray, task: CellTask, max_cells: int) -> list[CellLine]:
    """Return lines of different numbers of cells, and with different shares of both ranks."""
    assert task.s is not None
    is_quick = task.s.n_classes == 2
    shares, numbers = (_SHARES, _NUMBERS) if is_quick else (_FEW_SHARES, _FEW_NUMBERS)
    most = min(max_cells, task.most_cells, int(1 / task.least_share))
    enough = max(2, int(task.n_rows / _ROWS_PER_CELL))
    allowed = sorted({min(number, most, max(enough, numbers[0])) for number in numbers})
    ends, weights = _ends(of_target, task.weights), task.weights
    along, bins = along_line(of_target, ends), _bins(of_s, task)
    of_row = bins.cells(of_s)
    shape = bins.n_cells, PARTS + 1
    places, n_places = of_row * shape[1] + along, shape[0] * shape[1]
    counts = np.bincount(places, weights, n_places).astype(float).reshape(shape)
    distinct = np.bincount(places, minlength=n_places).reshape(shape)
    among_all = mid_ranks(counts.sum(axis=0, keepdims=True))
    within = mid_ranks(counts)
    lined_up = [((1 - share) * among_all + share * within).round(_DIGITS) for share in shares]
    tables = (
        _table(place, counts, distinct, number, task.fewest_distinct)
        for number in allowed
        for place in lined_up
    )
    return [CellLine(ends, bins, table) for table in tables]


def mid_ranks(counts: FloatArray) -> FloatArray:
    """Return the share of a row's total below each entry, half of the entry included."""
    totals = counts.sum(axis=1, keepdims=True)
    return (np.cumsum(counts, axis=1) - counts / 2) / np.maximum(totals, TINY)


def _bins(of_s: IntArray, task: CellTask) -> CellTree:
    """Return a tree whose leaves are rows with similar scores of S."""
    most = int(np.clip(task.n_rows // _ROWS_FOR_A_BIN, *_BINS))
    least = min(0.5, _ROWS_PER_BIN / task.n_rows)
    questions: Any = [(i, None) for i in range(of_s.shape[1])]
    return fit_tree(of_s, of_s, replace(task, least_share=least), most, questions)


def _ends(of_target: IntArray, weights: FloatArray) -> FloatArray:
    """Return where each class is on the line along which the scores of the target differ most."""
    if of_target.shape[1] == 1:
        return np.array([0.0, 1.0])
    covariance = np.cov(of_target, rowvar=False, aweights=weights)
    first = np.linalg.eigh(covariance)[1][:, -1]
    ends = np.append(0.0, first * np.sign(first[np.abs(first).round(_DIGITS).argmax()]))
    return ((ends - ends.min()) / (ends.max() - ends.min())).round(2)


def _table(
    places: FloatArray,
    counts: FloatArray,
    distinct: IntArray,
    n_cells: int,
    fewest_distinct: int,
) -> IntArray:
    """Return the cell of each bin and score: parts of the line with about as many rows each.

    places, counts, distinct : of each bin and score, its place on the line, its rows and its
    distinct rows.
    """
    ends, at = np.unique(places, return_inverse=True)
    at = at.reshape(places.shape)
    rows = np.bincount(at.ravel(), counts.ravel())
    kinds = np.bincount(at.ravel(), distinct.ravel())
    least = rows.sum() / n_cells * (1 - 1e-9)
    cell_of_end, cell, in_cell, kinds_in_cell = np.empty(len(ends), dtype=np.intp), 0, 0.0, 0.0
    rows_left, kinds_left = rows.sum(), kinds.sum()
    for end in range(len(ends)):
        is_full = in_cell >= least and kinds_in_cell >= fewest_distinct
        if is_full and rows_left >= least and kinds_left >= fewest_distinct:
            cell, in_cell, kinds_in_cell = cell + 1, 0.0, 0.0
        cell_of_end[end] = cell
        in_cell, kinds_in_cell = in_cell + rows[end], kinds_in_cell + kinds[end]
        rows_left, kinds_left = rows_left - rows[end], kinds_left - kinds[end]
    return cell_of_end[at]
