r"""The paper's linear program (23): how often to use which posterior.

The only module that imports HiGHS.
"""

from dataclasses import dataclass

import highspy
import numpy as np
from scipy.optimize import nnls

from ..exceptions import SolverError
from ..geometry import Points

# Weights below this share of the largest weight that a point can have are rounding.
_NEGLIGIBLE = 1e-14

# An answer that HiGHS does not call optimal is accepted this close to the bound, in nats.
_WORST_ACCEPTED = 1e-5

_DUAL_SIMPLEX, _PRIMAL_SIMPLEX = 1, 4

# (row scale, presolve, scale strategy, simplex strategy), tried in order until HiGHS is content.
# Rows multiplied by 1e4 make its smallest tolerance, 1e-10, mean 1e-14: a program that is feasible
# only up to 1e-10 can break a budget of zero. Nearly equal candidates can be too much for that.
_ATTEMPTS = (
    (1e4, "off", 0, _DUAL_SIMPLEX),  # presolve takes longer than solving
    (1e4, "on", 0, _PRIMAL_SIMPLEX),
    (1e4, "off", 0, _PRIMAL_SIMPLEX),
    (1e4, "off", 1, _DUAL_SIMPLEX),
    (1.0, "off", 0, _PRIMAL_SIMPLEX),
    (1.0, "on", 0, _DUAL_SIMPLEX),
)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Points with weights that average to P(X): a mechanism, before it is checked.

    points : the points in use; channel : (|X|, n_outputs), its columns in the same order, with
    one more for the independent output where that is in use; bound : no mixture of the
    candidates has a larger ``sum q u(W)``.
    """

    points: Points
    channel: np.ndarray
    bound: float


class MixtureProgram:
    r"""Finds the best mixture of candidate points; one object serves many candidate sets.

    With ``room_i = min_x px(x) / W_i(x)`` the largest weight that point i can have, and the
    variables ``r_i = q_i / room_i`` in [0, 1], the program (23) reads

        minimise    sum_i r_i cost_i                   cost_i = -room_i u(W_i)
        subject to  sum_i r_i column_i(x) = 1 for all x,   column_i(x) = room_i W_i(x) / px(x),
                    r >= 0.

    Columns and right-hand sides are of order 1 however rare a symbol is; unscaled, HiGHS drops
    symbols rarer than its tolerance. ``r_i column_i(x)`` is the channel P(y_i | x) itself.
    ``sum q = 1`` follows from the rows. The last candidate is always ``W = px``, an output that
    is independent of X: it meets every budget and makes every program feasible.
    """

    def __init__(self, p_x, utility):
        self.p_x = p_x
        self.utility = utility
        self._independent = -float(utility.value(Points.from_dense(p_x[None]))[0])
        self._highs = highspy.Highs()
        for option, value in {
            "output_flag": False,
            "threads": 1,
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
            "small_matrix_value": 1e-12,  # smaller entries are dropped
        }.items():
            self._highs.setOptionValue(option, value)

    def solve(self, points):
        """Return the best `Mixture` of `points`."""
        ratio = points.values / self.p_x[points.support]
        room = 1 / ratio.max(axis=1)
        columns = Points(points.support, ratio * room[:, None])
        costs = -room * self.utility.value(points)
        weights, duals, optimal = self._run(columns, costs)
        used = np.flatnonzero(weights[:-1] > _NEGLIGIBLE)
        channel = columns[used].dense(len(self.p_x)).T
        if weights[-1] > _NEGLIGIBLE or not optimal:
            channel = np.hstack([channel, np.ones((len(self.p_x), 1))])
        shares = _refined(channel)
        bound = self._bound(columns, costs, duals)
        if not optimal:
            self._check_quality(np.append(costs[used], self._independent) @ shares, bound)
        return Mixture(points[used], (channel * shares)[:, shares > 0], bound)

    def _run(self, columns, costs):
        """Return r, the last one that of the independent output, the duals, and if optimal.

        Where HiGHS is never content its last answer must do: weights are refined and checked,
        and the bound holds for any duals.
        """
        program = self._program(columns, costs)
        values, answer = np.array(program.a_matrix_.value_), None
        for scale, presolve, scaling, strategy in _ATTEMPTS:
            program.a_matrix_.value_ = scale * values
            program.row_lower_ = program.row_upper_ = np.full(len(self.p_x), scale)
            self._highs.setOptionValue("presolve", presolve)
            self._highs.setOptionValue("simplex_scale_strategy", scaling)
            self._highs.setOptionValue("simplex_strategy", strategy)
            self._highs.passModel(program)
            self._highs.run()
            solution, optimal = self._highs.getSolution(), self._status() == "Optimal"
            if solution.value_valid and solution.dual_valid:
                duals = scale * np.array(solution.row_dual)
                answer = np.array(solution.col_value), duals, optimal
            if optimal:
                break
        if answer is None:
            raise SolverError(
                f"HiGHS stopped the linear program over {len(columns)} candidate outputs with "
                f"status {self._status()!r}."
            )
        return answer

    def _check_quality(self, cost, bound):
        """Refuse an answer that is feasible but far from the best one."""
        if cost + bound > _WORST_ACCEPTED:
            raise SolverError(
                f"HiGHS stopped with status {self._status()!r}, {cost + bound:.1e} nats from the "
                f"bound. Pool the rarest symbols of X."
            )

    def _status(self):
        return self._highs.modelStatusToString(self._highs.getModelStatus())

    def _program(self, columns, costs):
        """Return the program for HiGHS, with the independent output as its last column."""
        n_x, n_columns, positive = len(self.p_x), len(columns) + 1, columns.values > 0
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = n_columns, n_x
        program.col_cost_ = np.append(costs, self._independent)
        program.col_lower_ = np.zeros(n_columns)
        program.col_upper_ = np.full(n_columns, highspy.kHighsInf)
        matrix = program.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kColwise
        lengths = np.append(positive.sum(axis=1), n_x)
        matrix.start_ = np.concatenate([[0], np.cumsum(lengths)])
        matrix.index_ = np.append(columns.support[positive], np.arange(n_x))
        matrix.value_ = np.append(columns.values[positive], np.ones(n_x))
        return program

    def _bound(self, columns, costs, duals):
        """Return an upper bound on ``sum q u(W)`` from the duals, whatever their tolerances.

        For any duals the cost is at least their sum plus what the columns with negative reduced
        costs can add; some optimal mixture uses at most |X| columns, each with r <= 1.
        """
        reduced = costs - np.einsum("nw,nw->n", columns.values, duals[columns.support])
        worst = min(reduced.min(initial=0.0), self._independent - duals.sum(), 0.0)
        return -(float(duals.sum()) + len(self.p_x) * worst)


def _refined(channel):
    """Return the weights that make the rows of ``channel * weights`` sum to 1, to rounding."""
    ones = np.ones(len(channel))
    weights = np.linalg.lstsq(channel, ones, rcond=None)[0]
    if (weights < 0).any():  # columns in use that are nearly dependent
        weights = nnls(channel, ones)[0]
    if np.abs(channel @ weights - 1).max() > 1e-9:
        raise SolverError(
            "The solution of the linear program does not reproduce the distribution of X."
        )
    return weights
