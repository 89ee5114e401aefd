"""HiGHS, as the solvers use it: the only module that imports it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np

from .._messages import SMALLER, Message
from .._typing import FloatArray, IntArray
from ..exceptions import SolverError

INFINITY = highspy.kHighsInf
DUAL_SIMPLEX, PRIMAL_SIMPLEX = 1, 4

_OPTIONS = {
    "output_flag": False,
    "threads": 1,
    "presolve": "off",  # it takes longer than solving
    "simplex_scale_strategy": 0,
    "simplex_strategy": DUAL_SIMPLEX,
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
    "small_matrix_value": 1e-12,  # smaller entries are dropped
}


@dataclass(frozen=True, eq=False)
class Answer:
    """Values of columns, duals of rows, and whether HiGHS calls them optimal."""

    values: FloatArray
    duals: FloatArray
    is_optimal: bool


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of a program, with nonnegative variables: costs and a sparse matrix by columns."""

    costs: FloatArray
    start: IntArray
    index: IntArray
    values: FloatArray

    @classmethod
    def from_rows(cls, costs: FloatArray, index: IntArray, values: FloatArray) -> Columns:
        """Return columns from the (n, width) rows and values of each; zeros are left out."""
        nonzero = values != 0
        start = np.concatenate([[0], np.cumsum(nonzero.sum(axis=1))])
        return cls(costs, start, index[nonzero], values[nonzero])


class Program:
    """A linear program to minimise, which can be changed and solved again with a warm start."""

    def __init__(self) -> None:
        self._highs = highspy.Highs()
        self._options: dict[str, Any] = {}

    def load(
        self,
        columns: Columns,
        row_lower: FloatArray,
        row_upper: FloatArray,
        *,
        column_lower: FloatArray | None = None,
        **options: Any,
    ) -> None:
        """Start over with a program; column_lower : zeros unless given; `options` of HiGHS."""
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = len(columns.costs), len(row_lower)
        program.col_cost_ = columns.costs
        program.col_lower_ = np.zeros(program.num_col_) if column_lower is None else column_lower
        program.col_upper_ = np.full(program.num_col_, INFINITY)
        program.row_lower_, program.row_upper_ = row_lower, row_upper
        matrix: Any = program.a_matrix_  # accepts integers of any size
        matrix.format_ = highspy.MatrixFormat.kColwise
        matrix.start_, matrix.index_, matrix.value_ = columns.start, columns.index, columns.values
        self._set(_OPTIONS | options)
        self._highs.passModel(program)

    def _set(self, options: dict[str, Any]) -> None:
        """Set the options that have changed: setting each one takes time."""
        for option, value in options.items():
            if self._options.get(option) != value:
                self._highs.setOptionValue(option, value)
                self._options[option] = value

    def add_columns(self, columns: Columns) -> None:
        """Add columns: what was feasible remains feasible."""
        n, n_values = len(columns.costs), len(columns.values)
        start, index = columns.start[:-1].astype(np.int32), columns.index.astype(np.int32)
        given = columns.costs, np.zeros(n), np.full(n, INFINITY)
        self._set({"simplex_strategy": PRIMAL_SIMPLEX})
        self._highs.addCols(n, *given, n_values, start, index, columns.values)

    def add_rows(
        self, values: FloatArray, upper: FloatArray, index: IntArray | None = None
    ) -> None:
        """Add rows ``values @ x[index] <= upper``, (n, width) each; index : None for all of x."""
        n, width = values.shape
        index = np.broadcast_to(np.arange(width), values.shape) if index is None else index
        start, flat = np.arange(n, dtype=np.int32) * width, index.ravel().astype(np.int32)
        given = np.full(n, -INFINITY), upper
        self._set({"simplex_strategy": DUAL_SIMPLEX})
        self._highs.addRows(n, *given, values.size, start, flat, values.ravel())

    def change_costs(self, costs: FloatArray) -> None:
        """Change the costs of all columns: what was feasible remains feasible."""
        self._set({"simplex_strategy": PRIMAL_SIMPLEX})
        self._highs.changeColsCost(len(costs), np.arange(len(costs), dtype=np.int32), costs)

    def run(self) -> Answer | None:
        """Return the `Answer`, or None where HiGHS finds none."""
        self._highs.run()
        solution = self._highs.getSolution()
        if not (solution.value_valid and solution.dual_valid):
            return None
        optimal = self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return Answer(np.array(solution.col_value), np.array(solution.row_dual), optimal)

    def failure(self, task: str) -> SolverError:
        """Return the error of a run without an answer; task : such as "solve a program"."""
        status = self._highs.modelStatusToString(self._highs.getModelStatus())
        return SolverError(Message(f"HiGHS could not {task}: {status!r}. ", SMALLER))
