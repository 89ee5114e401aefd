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

_OPTIONS = {
    "output_flag": False,
    "threads": 1,
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
    "small_matrix_value": 1e-12,  # smaller entries are dropped
}
_DUAL_SIMPLEX, _PRIMAL_SIMPLEX = 1, 4

# (row scale, presolve, scale strategy, simplex strategy), tried in order until the answer will do.
# The smallest tolerance of HiGHS is 1e-10. A program that is feasible only up to that can break a
# budget of zero; rows multiplied by 1e4 make it 1e-14, which can be too much for candidates that
# are themselves known to fewer digits.
_ATTEMPTS = (
    (1.0, "off", 0, _DUAL_SIMPLEX),  # presolve takes longer than solving
    (1e4, "off", 0, _DUAL_SIMPLEX),
    (1e4, "on", 0, _PRIMAL_SIMPLEX),
    (1e4, "off", 0, _PRIMAL_SIMPLEX),
    (1e4, "off", 1, _DUAL_SIMPLEX),
    (1.0, "off", 0, _PRIMAL_SIMPLEX),
    (1.0, "on", 0, _DUAL_SIMPLEX),
    (1.0, "off", 1, _DUAL_SIMPLEX),
    (1e2, "off", 1, _PRIMAL_SIMPLEX),
)

# How accurately candidates are known, for the bound.
_ACCURACY = 1e-10


@dataclass(frozen=True, eq=False)
class Mixture:
    """Points with weights that average to P(X): a mechanism, before it is checked.

    points : the points in use; channel : (|X|, n_outputs), with a column for the independent
    output where that is in use; bound : no mixture of the candidates has a larger
    ``sum q u(W)``.
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

    def solve(self, points, excess=lambda channel: 0.0):
        """Return the best `Mixture` of `points`.

        excess : how much a channel is over its budget. An answer that is over it by rounding is
        sought again with smaller tolerances.
        """
        ratio = points.values / self.p_x[points.support]
        room = 1 / ratio.max(axis=1)
        columns = Points(points.support, ratio * room[:, None])
        costs = -room * self.utility.value(points)
        program = self._program(columns, costs)
        values = np.array(program.a_matrix_.value_)
        best, smallest, bound = None, np.inf, np.inf
        for attempt in _ATTEMPTS:
            answer = self._run(program, values, attempt)
            if answer is None:
                continue
            weights, duals, optimal = answer
            bound = min(bound, self._bound(columns, costs, duals))
            mixture = self._mixture(points, columns, weights, optimal)
            if mixture is None or self._is_poor(mixture, bound, optimal):
                continue
            over = excess(mixture[1])
            if best is None or over < smallest:
                best, smallest = mixture, over
            if over <= 0:
                break
        if best is None:
            raise SolverError(
                f"HiGHS could not solve the linear program over {len(points)} candidate outputs: "
                f"{self._status()!r}. Pool the rarest symbols of X."
            )
        return Mixture(*best, bound)

    def _run(self, program, values, attempt):
        """Return r, the last one that of the independent output, the duals, and if optimal.

        None where HiGHS finds none. What it finds need not be optimal: weights are refined and
        checked, and the bound holds for any duals.
        """
        scale, presolve, scaling, strategy = attempt
        program.a_matrix_.value_ = scale * values
        program.row_lower_ = program.row_upper_ = np.full(len(self.p_x), scale)
        self._highs.clear()
        for option, value in {
            **_OPTIONS,
            "presolve": presolve,
            "simplex_scale_strategy": scaling,
            "simplex_strategy": strategy,
        }.items():
            self._highs.setOptionValue(option, value)
        self._highs.passModel(program)
        self._highs.run()
        solution = self._highs.getSolution()
        if not (solution.value_valid and solution.dual_valid):
            return None
        duals = scale * np.array(solution.row_dual)
        return np.array(solution.col_value), duals, self._status() == "Optimal"

    def _mixture(self, points, columns, weights, optimal):
        """Return the points in use and the channel, or None if P(X) is not reproduced."""
        used = np.flatnonzero(weights[:-1] > _NEGLIGIBLE)
        channel = columns[used].dense(len(self.p_x)).T
        if weights[-1] > _NEGLIGIBLE or not optimal:
            channel = np.hstack([channel, np.ones((len(self.p_x), 1))])
        shares = _refined(channel)
        return None if shares is None else (points[used], (channel * shares)[:, shares > 0])

    def _is_poor(self, mixture, bound, optimal):
        """Return whether an answer that is not called optimal is far from the bound."""
        if optimal:
            return False
        channel = mixture[1] / mixture[1].sum(axis=1, keepdims=True)
        reached = self.utility.of_channel(self.p_x, channel) - self.utility.offset(self.p_x)
        return bound - reached > _WORST_ACCEPTED

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
        # The candidates are known to so many digits only: their reduced costs are not exact.
        worst -= _ACCURACY * np.abs(duals).max()
        return -(float(duals.sum()) + len(self.p_x) * worst)


def _refined(channel):
    """Return the weights that make the rows of ``channel * weights`` sum to 1, or None."""
    ones = np.ones(len(channel))
    weights = np.linalg.lstsq(channel, ones, rcond=None)[0]
    if (weights < 0).any():  # columns in use that are nearly dependent
        weights = nnls(channel, ones)[0]
    return weights if np.abs(channel @ weights - 1).max() <= 1e-9 else None
