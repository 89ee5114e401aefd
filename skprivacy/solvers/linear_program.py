"""The paper's linear program (23), solved by HiGHS; the only import of highspy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import highspy
import numpy as np
from scipy.optimize import nnls

from .._messages import SMALLER, Message
from .._typing import FloatArray, IntArray
from ..channels import SMALLEST_SHARE
from ..exceptions import SolverError
from ..geometry import Points, Rows, normalised
from ..utilities import Utility

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
    """Values of columns, duals of rows, and whether HiGHS reports them as optimal."""

    values: FloatArray
    duals: FloatArray
    is_optimal: bool


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of a program with nonnegative variables: costs, and a matrix in CSC format."""

    costs: FloatArray
    start: IntArray
    index: IntArray
    values: FloatArray

    @classmethod
    def from_rows(cls, costs: FloatArray, index: IntArray, values: FloatArray) -> Columns:
        """Return n columns from the row numbers and values of their entries, (n, width) each."""
        nonzero = values != 0
        start = np.concatenate([[0], np.cumsum(nonzero.sum(axis=1))])
        return cls(costs, start, index[nonzero], values[nonzero])


class Program:
    """A linear program to minimise; it can be changed and solved again with a warm start.

    max_pivots : the largest number of simplex pivots of all runs together, None for any;
    is_spent : whether they were too few.
    """

    def __init__(self, max_pivots: int | None = None) -> None:
        self._highs = highspy.Highs()
        self._options: dict[str, Any] = {}
        self._pivots_left, self.is_spent = max_pivots, False

    def load(
        self,
        columns: Columns,
        row_lower: FloatArray,
        row_upper: FloatArray,
        *,
        column_lower: FloatArray | None = None,
        **options: Any,
    ) -> None:
        """Load a new program; column_lower : zeros by default; options : of HiGHS."""
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = len(columns.costs), len(row_lower)
        program.col_cost_ = columns.costs
        program.col_lower_ = np.zeros(program.num_col_) if column_lower is None else column_lower
        program.col_upper_ = np.full(program.num_col_, INFINITY)
        program.row_lower_, program.row_upper_ = row_lower, row_upper
        matrix: Any = program.a_matrix_  # integers of any size are accepted
        matrix.format_ = highspy.MatrixFormat.kColwise
        matrix.start_, matrix.index_, matrix.value_ = columns.start, columns.index, columns.values
        self._set(_OPTIONS | options)
        self._highs.passModel(program)

    def _set(self, options: dict[str, Any]) -> None:
        """Set the options that have changed, because setting them is slow."""
        for option, value in options.items():
            if self._options.get(option) != value:
                self._highs.setOptionValue(option, value)
                self._options[option] = value

    def add_columns(self, columns: Columns) -> None:
        """Add columns; the last solution stays feasible."""
        n, values = len(columns.costs), columns.values
        start, index = columns.start[:-1].astype(np.int32), columns.index.astype(np.int32)
        bounds = np.zeros(n), np.full(n, INFINITY)
        self._set({"simplex_strategy": PRIMAL_SIMPLEX})
        self._highs.addCols(n, columns.costs, *bounds, len(values), start, index, values)

    def add_rows(self, rows: FloatArray, upper: FloatArray, index: IntArray | None = None) -> None:
        """Add rows ``rows @ x[index] <= upper``, (n, width) each; index : None for all of x."""
        n, width = rows.shape
        index = np.broadcast_to(np.arange(width), rows.shape) if index is None else index
        start, flat = np.arange(n, dtype=np.int32) * width, index.ravel().astype(np.int32)
        lower = np.full(n, -INFINITY)
        self._set({"simplex_strategy": DUAL_SIMPLEX})
        self._highs.addRows(n, lower, upper, rows.size, start, flat, rows.ravel())

    def change_costs(self, costs: FloatArray) -> None:
        """Change the costs of all columns; the last solution stays feasible."""
        self._set({"simplex_strategy": PRIMAL_SIMPLEX})
        self._highs.changeColsCost(len(costs), np.arange(len(costs), dtype=np.int32), costs)

    def run(self) -> Answer | None:
        """Return the `Answer`, or None if HiGHS finds none."""
        if self._pivots_left is not None:
            self._set({"simplex_iteration_limit": self._pivots_left})
        self._highs.run()
        status = self._highs.getModelStatus()
        if self._pivots_left is not None:
            pivots = self._highs.getInfo().simplex_iteration_count
            self._pivots_left = max(0, self._pivots_left - max(0, pivots))
            self.is_spent = status == highspy.HighsModelStatus.kIterationLimit
        if self.is_spent:
            return None
        solution = self._highs.getSolution()
        if not (solution.value_valid and solution.dual_valid):
            return None
        optimal = status == highspy.HighsModelStatus.kOptimal
        return Answer(np.array(solution.col_value), np.array(solution.row_dual), optimal)

    def failure(self, task: str) -> SolverError:
        """Return the error for a run without an answer; task : such as "solve a program"."""
        status = self._highs.modelStatusToString(self._highs.getModelStatus())
        return SolverError(Message(f"HiGHS could not {task}: {status!r}. ", SMALLER))


# The paper's linear program (23): the probability of each posterior. -----------------------------


# Weights below this share of the largest weight that a point can have are rounding.
_NEGLIGIBLE_WEIGHT = 1e-14

# Scales of rows, and settings of HiGHS, tried in order until an answer is accepted. The smallest
# tolerance of HiGHS is 1e-10, which can break a budget of zero. Multiplying rows by 1e4 makes it
# 1e-14, which can be too strict: candidates are known to fewer digits, so the last attempts allow
# 1e-9.
_ATTEMPTS: list[tuple[float, dict[str, Any]]] = [
    (
        scale,
        {
            "presolve": presolve,
            "simplex_scale_strategy": scaling,
            "simplex_strategy": simplex,
            "primal_feasibility_tolerance": tolerance,
            "dual_feasibility_tolerance": tolerance,
        },
    )
    for scale, presolve, scaling, simplex, tolerance in (
        (1.0, "off", 0, DUAL_SIMPLEX, 1e-10),
        (1e4, "off", 0, DUAL_SIMPLEX, 1e-10),
        (1e4, "on", 0, PRIMAL_SIMPLEX, 1e-10),
        (1e4, "off", 0, PRIMAL_SIMPLEX, 1e-10),
        (1e4, "off", 1, DUAL_SIMPLEX, 1e-10),
        (1.0, "off", 0, PRIMAL_SIMPLEX, 1e-10),
        (1.0, "on", 0, DUAL_SIMPLEX, 1e-10),
        (1.0, "off", 1, DUAL_SIMPLEX, 1e-10),
        (1e2, "off", 1, PRIMAL_SIMPLEX, 1e-10),
        (1.0, "on", 0, DUAL_SIMPLEX, 1e-9),
        (1.0, "off", 0, DUAL_SIMPLEX, 1e-9),
        (1.0, "on", 0, PRIMAL_SIMPLEX, 1e-9),
        (1.0, "off", 4, DUAL_SIMPLEX, 1e-9),
    )
]

_MIX = "solve the linear program over {} candidate outputs"  # in messages

# The points in use, and the channel.
_Mixed: TypeAlias = tuple[Points, FloatArray]

# Returns by how much a channel exceeds its budget.
Excess: TypeAlias = Callable[[FloatArray], float]


@dataclass(frozen=True, eq=False)
class Mixture:
    """Points with weights that average to P(X): a mechanism that is not yet checked.

    points : the points in use; channel : (|X|, n_outputs), including the independent output if it
    is in use; bound : on ``sum q u(W)`` of all mixtures of the candidates.
    """

    points: Points
    channel: FloatArray
    bound: float


@dataclass(frozen=True, eq=False)
class Prices:
    """The duals of a linear program, which prove a bound however inexact it was solved.

    symbols : lambda, the price of each symbol of X; budget : mu, the price of the whole budget on
    average, 0 without one. The surplus of a point is ``u(W) - lambda . W - mu charge``.
    """

    symbols: FloatArray
    budget: float

    def worth(self, p_x: FloatArray) -> float:
        """Return ``lambda . P(X) + mu``: equal to the best mixture if the prices are optimal."""
        return float(self.symbols @ p_x) + self.budget

    def surplus(self, offers: Offers) -> FloatArray:
        """Return the surplus of each candidate: its utility minus its price."""
        support, values = offers.points.support, offers.points.values
        surplus = offers.values - np.einsum("nw,nw->n", self.symbols[support], values)
        if offers.charges is not None:
            surplus -= self.budget * offers.charges
        return surplus

    def error(self, offers: Offers) -> FloatArray:
        """Return the error of each surplus if points are known up to a relative 1e-11."""
        support, values = offers.points.support, offers.points.values
        cost = (np.abs(self.symbols)[support] * values).sum(axis=1)
        return 1e-11 * (np.abs(offers.values) + cost)

    def bound(self, p_x: FloatArray, offers: Offers, error: FloatArray | float = 0.0) -> float:
        """Return a bound on the mixtures of `offers` that holds for any prices.

        It is `worth` plus the largest total surplus of weights q, 1 in total. No weight is larger
        than ``min_x px(x) / W(x)``: a large surplus of a rare symbol adds little. error : the
        largest error of each surplus.
        """
        surplus = self.surplus(offers) + error
        useful = np.flatnonzero(surplus > 0)
        if not len(useful):
            return self.worth(p_x) + float(surplus.max())
        useful = useful[np.argsort(-surplus[useful])]
        points = offers.points[useful]
        room = 1 / (points.values / p_x[points.support]).max(axis=1)
        weights = np.diff(np.minimum(np.cumsum(room), 1.0), prepend=0.0)
        return self.worth(p_x) + float(weights @ surplus[useful])


@dataclass(frozen=True, eq=False)
class Offers(Rows):
    """Candidate points, their u, and the share of a budget on average that each uses, or None."""

    points: Points
    values: FloatArray
    charges: FloatArray | None = None


class MixtureProgram:
    r"""Finds the best mixture of candidate points; one object serves many candidate sets.

    With ``room_i = min_x px(x) / W_i(x)`` the largest weight that point i can have, and the
    variables ``r_i = q_i / room_i`` in [0, 1], the program (23) reads

        minimise    sum_i r_i cost_i                   cost_i = -room_i u(W_i)
        subject to  sum_i r_i column_i(x) = 1 for all x,   column_i(x) = room_i W_i(x) / px(x),
                    sum_i r_i room_i charge_i <= 1         with a budget on average,
                    r >= 0.

    Columns and right-hand sides are of order 1 however rare a symbol is; unscaled, HiGHS drops
    symbols rarer than its tolerance. ``r_i column_i(x)`` is the channel P(y_i | x) itself.
    ``sum q = 1`` follows from the rows. The last candidate is always ``W = px``, an output
    independent of X: it keeps every budget and makes every program feasible.
    """

    def __init__(self, p_x: FloatArray, utility: Utility) -> None:
        self.p_x, self.utility = p_x, utility
        self.independent = float(utility.value(Points.from_dense(p_x[None]))[0])
        self._program = Program()

    def solve(
        self,
        points: Points,
        excess: Excess = lambda channel: 0.0,
        charges: FloatArray | None = None,
        values: FloatArray | None = None,
    ) -> Mixture:
        """Return the best `Mixture` of `points`.

        excess : returns by how much a channel exceeds its budget. If rounding makes an answer
        exceed it, the program is solved again with smaller tolerances. values : u of the points,
        by default of the utility.
        """
        values = self.utility.value(points) if values is None else values
        offers = Offers(points, values, charges)
        best, bound = self._attempted(offers, excess)
        if charges is not None and (best is None or excess(best[1]) > 0):
            # The budget is below the tolerances of HiGHS, or a charge too large for them. Mixtures
            # of points that each keep the budget keep it anyway.
            each = offers[charges <= 1]
            safe, _ = self._attempted(Offers(each.points, each.values), excess)
            best = safe if best is None or safe is None else _blended(best, safe, excess)
        if best is None:
            raise self._program.failure(_MIX.format(len(points)))
        return Mixture(*best, bound)

    def _attempted(self, offers: Offers, excess: Excess) -> tuple[_Mixed | None, float]:
        """Return the best usable answer of HiGHS, or None, and a bound."""
        room, columns = self._columns(offers)
        best, rank, bound = None, (True, True, np.inf), np.inf
        for scale, settings in _ATTEMPTS:
            self._load(columns, offers.charges is not None, scale, **settings)
            answer = self._program.run()
            if answer is None:
                continue
            bound = min(bound, self._bound(offers, room, scale * answer.duals))
            mixture = self._mixture(offers, room, answer)
            if mixture is None:
                continue
            utility = self.utility.of_channel(self.p_x, normalised(mixture[1]))
            reached = utility - self.utility.offset(self.p_x)
            over, poor = excess(mixture[1]), bound - reached > 1e-5  # nats
            if poor and not answer.is_optimal:
                continue
            if best is None or (over > 0, poor, over) < rank:
                best, rank = mixture, (over > 0, poor, over)
            if over <= 0 and not poor:
                break
        return best, bound

    def price(self, offers: Offers, accuracy: float, start: IntArray) -> tuple[FloatArray, Prices]:
        """Return (weights of offers, prices) for the best mixture of many offers.

        The program starts with the offers at index `start`; each round adds some with a surplus
        above `accuracy`. The weights are not refined.
        """
        chosen, mixture = start, GrowingMixture(self, offers[start])
        for _ in range(1_000):
            used, prices = mixture.solved()
            surplus = prices.surplus(offers)
            surplus[chosen] = np.minimum(surplus[chosen], accuracy)
            added = np.flatnonzero(surplus > accuracy)
            if not len(added):
                break
            if len(added) > 20 + 2 * len(self.p_x):
                added = added[best_of_each_symbol(offers.points[added], surplus[added])]
            mixture.add(offers[added])
            chosen = np.concatenate([chosen, added])
        weights = np.zeros(len(offers))
        weights[chosen[: len(used)]] = used
        return weights, prices

    def start(self, offers: Offers) -> FloatArray:
        """Load the program over some offers; return the room of each."""
        room, columns = self._columns(offers)
        self._load(columns, offers.charges is not None)
        return room[:-1]

    def extend(self, offers: Offers) -> FloatArray:
        """Add offers to the program; return the room of each."""
        room, columns = self._columns(offers, independent=False)
        self._program.add_columns(columns)
        return room

    def run(self) -> tuple[FloatArray, Prices] | None:
        """Return the values of the columns and the prices, None if HiGHS finds none."""
        answer = self._program.run()
        return None if answer is None else (answer.values, self._prices(answer.duals))

    def run_again(self, offers: Offers) -> tuple[FloatArray, Prices]:
        """Load the program over some offers, and solve it with other settings of HiGHS."""
        _, columns = self._columns(offers)
        for settings in [settings for scale, settings in _ATTEMPTS if scale == 1]:
            self._load(columns, offers.charges is not None, **settings)
            if (answer := self.run()) is not None:
                return answer
        raise self._program.failure(_MIX.format(len(offers)))

    def _prices(self, duals: FloatArray) -> Prices:
        n_x = len(self.p_x)
        budget = max(0.0, -float(duals[n_x])) if len(duals) > n_x else 0.0
        return Prices(-duals[:n_x] / self.p_x, budget)

    def _columns(self, offers: Offers, independent: bool = True) -> tuple[FloatArray, Columns]:
        """Return room_i and the columns of the program, the independent output last."""
        points, n_x = offers.points, len(self.p_x)
        ratio = points.values / self.p_x[points.support]
        room = 1 / ratio.max(axis=1)
        index, values = points.support, ratio * room[:, None]
        if offers.charges is not None:
            index = np.hstack([index, np.full((len(points), 1), n_x)])
            charges = np.minimum(room * offers.charges, 1e10)  # as good as infinite
            values = np.hstack([values, charges[:, None]])
        columns = Columns.from_rows(-room * offers.values, index, values)
        if not independent:
            return room, columns
        costs = np.append(columns.costs, -self.independent)
        start = np.append(columns.start, columns.start[-1] + n_x)
        index = np.append(columns.index, np.arange(n_x))
        values = np.append(columns.values, np.ones(n_x))
        return np.append(room, 1.0), Columns(costs, start, index, values)

    def _load(self, columns: Columns, charged: bool, scale: float = 1.0, **options: Any) -> None:
        ones = np.ones(len(self.p_x) + charged)
        lower = np.where(np.arange(len(ones)) < len(self.p_x), scale, -INFINITY)
        scaled = replace(columns, values=scale * columns.values)
        self._program.load(scaled, lower, scale * ones, **options)

    def _mixture(self, offers: Offers, room: FloatArray, answer: Answer) -> _Mixed | None:
        """Return the points in use and the channel, or None if P(X) is not reproduced."""
        weights = answer.values
        used = np.flatnonzero(weights[:-1] > _NEGLIGIBLE_WEIGHT)
        points = offers.points[used]
        channel = (room[used, None] * points.dense(len(self.p_x)) / self.p_x).T
        shares = weights[used]
        charges = None if offers.charges is None else room[used] * offers.charges[used]
        if weights[-1] > _NEGLIGIBLE_WEIGHT or not answer.is_optimal:
            channel = np.hstack([channel, np.ones((len(self.p_x), 1))])
            shares = np.append(shares, weights[-1])
            charges = None if charges is None else np.append(charges, 0.0)
        refined = _refined(channel, shares, charges)
        return None if refined is None else (points, (channel * refined)[:, refined > 0])

    def _bound(self, offers: Offers, room: FloatArray, duals: FloatArray) -> float:
        """Return an upper bound on ``sum q u(W)`` from any duals.

        The cost is at least the sum of the duals plus what columns with negative reduced costs can
        add; some optimal mixture uses at most |X| + 1 columns, each with r <= 1.
        """
        prices = self._prices(duals)
        surplus = room[:-1] * prices.surplus(offers)
        independent = self.independent - float(prices.symbols @ self.p_x)
        # Reduced costs are not exact: candidates are only known to 1e-10.
        worst = max(surplus.max(initial=0.0), independent, 0.0) + 1e-10 * np.abs(duals).max()
        return prices.worth(self.p_x) + len(duals) * worst


# Offers added to a program in one round, for each symbol.
_PER_SYMBOL = 4


def best_of_each_symbol(points: Points, surplus: FloatArray) -> IntArray:
    """Return the index of the points with the largest surplus, a few for each of their symbols.

    The prices of all symbols improve at once, with fewer points than if the best of all were
    added, which often have the same symbols.
    """
    chosen = np.zeros(len(points), bool)
    order = np.argsort(-surplus, kind="stable")
    for symbols in points.support.T:
        by_symbol = order[np.argsort(symbols[order], kind="stable")]
        first = np.flatnonzero(np.diff(symbols[by_symbol], prepend=-1))
        rank = np.arange(len(points)) - np.repeat(first, np.diff(first, append=len(points)))
        chosen[by_symbol[rank < _PER_SYMBOL]] = True
    return np.flatnonzero(chosen)


class GrowingMixture:
    """The best mixture of some offers, to which others can be added: columns of one program."""

    def __init__(self, program: MixtureProgram, offers: Offers) -> None:
        self._program, self.offers = program, offers
        self._rooms, self._independent = program.start(offers), len(offers)

    def add(self, offers: Offers) -> None:
        """Add offers; the next solution starts from the last one."""
        self._rooms = np.concatenate([self._rooms, self._program.extend(offers)])
        self.offers = Offers.concatenate([self.offers, offers])

    def solved(self) -> tuple[FloatArray, Prices]:
        """Return (weights of the offers, prices); the weights are not refined."""
        answer = self._program.run()
        if answer is None:
            self._independent = len(self.offers)
            answer = self._program.run_again(self.offers)
        values, prices = answer
        return np.maximum(np.delete(values, self._independent), 0.0) * self._rooms, prices


def _blended(best: _Mixed, safe: _Mixed, excess: Excess) -> _Mixed:
    """Return `best`, with as little of `safe` mixed in as the average budget requires."""
    share = SMALLEST_SHARE
    while share < 1:
        channel = np.hstack([(1 - share) * best[1], share * safe[1]])
        if excess(channel) <= 0:
            return Points.concatenate([best[0], safe[0]]), channel
        share *= 2
    return safe


def _refined(
    channel: FloatArray, shares: FloatArray, charges: FloatArray | None
) -> FloatArray | None:
    """Return `shares` corrected so that the rows of ``channel * shares`` sum to 1, or None.

    The part of a budget on average that they use stays the same.
    """
    rows, right = channel, np.ones(len(channel))
    if charges is not None:
        rows, right = np.vstack([channel, charges]), np.append(right, charges @ shares)
    # Columns in use may be nearly dependent: no step is taken in directions that hardly matter.
    refined = shares + np.linalg.lstsq(rows, right - rows @ shares, rcond=1e-8)[0]
    candidates = iter([refined])
    if (refined < 0).any():
        # Scale them down and add what is missing, which may be any solution, however useless: as
        # much as possible of the shares is kept.
        least = np.maximum(shares, 0.0)
        least = least / max((channel @ least).max(), 1.0)
        factors = (1.0, 1 - 1e-4, 1 - 1e-3, 0.99, 0.9, 0.0)
        parts = ((kept * least, right - kept * (rows @ least)) for kept in factors)
        candidates = (kept + nnls(rows, missing)[0] for kept, missing in parts)
    # Rows are later divided by their sums.
    return next((x for x in candidates if np.abs(channel @ x - 1).max() <= 1e-9), None)
