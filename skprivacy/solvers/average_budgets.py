"""Budgets on average: each of several secrets has a price, and faces share what there is.

For any weights, a weighted sum over secrets is one budget, whose optimum bounds that of all; the
prices of a linear program over all outputs found so far are the next weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, linprog

from .._messages import SMALLER, Message
from .._typing import FloatArray
from ..exceptions import SolverError
from ..geometry import Points
from ..measures.stacked import Stacked
from ..utilities import DEFAULT_TOL
from .base import Solution, Solver
from .budget_shares import BudgetShares
from .stacking import Face, Secret, side_by_side
from .task import DesignTask

# Prices are sought until the bound is this close, as a share of the largest utility, or so many
# rounds have passed, or as many without any gain.
_TOL, _MOST_ROUNDS, _MOST_IDLE = 2 * DEFAULT_TOL, 40, 6

# A gap below this share of the utility can be closed; a bound beyond this one says nothing.
_NEAR, _FAR = 0.01, 2.0

# A room for leakage on average below this share of the threshold is rounding.
_NO_ROOM = 2e-13

# Weights below this are rounding; HiGHS knows no smaller tolerances than these.
_NEGLIGIBLE, _LARGEST_CHARGE = 1e-12, 1e7
_TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}

# Options of HiGHS, tried in order until it finds an answer.
_ATTEMPTS: tuple[dict[str, Any], ...] = (
    _TOLERANCES,
    {**_TOLERANCES, "presolve": False},
    {},
    {"presolve": False},
)


class AverageBudgets:
    """Budgets on average: prices of secrets, and shares of faces.

    secrets : those with a finite budget; faces : all parts of X.
    """

    def __init__(
        self,
        task: DesignTask,
        choose: Callable[[DesignTask], Solver],
        secrets: list[Secret],
        faces: list[Face],
    ) -> None:
        self._choose, self._faces, self._n_secrets = choose, faces, len(secrets)
        occurs = task.p_x > 0
        self._p_x, self._utility = task.p_x[occurs], task.utility.restricted(occurs)
        self._rooms = np.array([self._room(s, i) for i, s in enumerate(secrets)])
        self._points = np.zeros((0, len(self._p_x)))
        self._charges = np.zeros((0, len(secrets)))

    def _room(self, secret: Secret, i: int) -> float:
        """Return how much more a secret may leak than the centres of faces do."""
        threshold = secret.threshold
        room = threshold - sum(face.share * face.starts[i] for face in self._faces)
        return max(room, _NO_ROOM * abs(threshold))

    def solve(self) -> Solution:
        """Return the best mixture of what was found for any prices, with the least bound."""
        self._add(np.eye(len(self._p_x)))
        self._add(np.stack([face.symbols.astype(float) for face in self._faces], axis=1))
        channel, prices = self._mixed()
        best, bound, idle = self._value(channel), np.inf, 0
        weights = stable = np.full(self._n_secrets, 1 / self._n_secrets)
        span = self._utility.span(self._p_x)
        for _ in range(_MOST_ROUNDS if prices.sum() > 0 else 0):
            solution = self._for_weights(weights)
            self._add(solution.channel)
            channel, prices = self._mixed()
            before = best, bound
            best = max(best, self._value(channel))
            if solution.upper_bound is not None and solution.upper_bound < bound:
                bound, stable = solution.upper_bound, weights
            gain = max(best - before[0], min(before[1], _FAR * span) - min(bound, _FAR * span))
            # Without a bound that is worth closing in on, small gains are not worth a round.
            is_near = bound - best <= _NEAR * span
            idle = idle + 1 if gain <= (_TOL / 10 if is_near else _NEAR / 10) * span else 0
            most_idle = _MOST_IDLE if is_near else 1
            if bound - best <= _TOL * span or idle > most_idle or self._n_secrets == 1:
                break
            new = prices / prices.sum()
            # The prices of few points jump: halfway to those of the best bound they jump less.
            weights = (new + stable) / 2 if idle % 2 else new
        return Solution(channel, None if bound == np.inf else bound)

    def _for_weights(self, weights: FloatArray) -> Solution:
        """Return the solution with one budget: a weighted sum over secrets."""
        tasks = [face.on_average(self._rooms, weights) for face in self._faces]
        solves = [self._choose(task).prepared(task) for task in tasks]
        if len(self._faces) == 1:
            return solves[0](1.0)
        channels, bound = BudgetShares(self._faces, tasks, solves).solve()
        for face in self._faces:
            bound -= face.share * face.utility.offset(face.p_x)
        bound += self._utility.offset(self._p_x)
        return Solution(side_by_side([face.symbols for face in self._faces], channels), bound)

    def _add(self, channel: FloatArray) -> None:
        """Add the posteriors of a channel to those that may be mixed, with what they take."""
        joint = (self._p_x[:, None] * channel).T
        points = joint[joint.sum(axis=1) > 0]
        points = points / points.sum(axis=1, keepdims=True)
        charges = np.zeros((len(points), self._n_secrets))
        one = np.ones(self._n_secrets)
        for face in self._faces:
            here = np.flatnonzero(points[:, face.symbols].any(axis=1))
            task = face.on_average(self._rooms, one)
            assert isinstance(task.measure, Stacked)
            posteriors = task.joint.sensitive_posterior(
                Points.from_dense(points[np.ix_(here, np.flatnonzero(face.symbols))])
            )
            shares = [block.value(posteriors) for block in task.measure.blocks]
            charges[here] = np.maximum(np.stack(shares, axis=1), 0.0)
        self._points = np.vstack([self._points, points])
        self._charges = np.vstack([self._charges, charges])

    def _mixed(self) -> tuple[FloatArray, FloatArray]:
        """Return the best mixture of all points as a channel, and the price of each budget."""
        ratio = self._points / self._p_x
        room = 1 / ratio.max(axis=1)
        # What takes nearly all of a budget for next to no weight only troubles HiGHS.
        kept = (room[:, None] * self._charges).max(axis=1) <= _LARGEST_CHARGE
        ratio, room = ratio[kept], room[kept]
        values = room * self._utility.value(Points.from_dense(self._points[kept]))
        charges = room[:, None] * self._charges[kept]
        answer = _solved(-values, charges.T, (room[:, None] * ratio).T)
        used = answer.x > _NEGLIGIBLE
        channel = (answer.x[used] * room[used])[:, None] * ratio[used]
        channel = channel.T / channel.sum(axis=0)[:, None]
        return channel, np.maximum(-answer.ineqlin.marginals, 0.0)

    def _value(self, channel: FloatArray) -> float:
        return self._utility.of_channel(self._p_x, channel)


def _solved(costs: FloatArray, charges: FloatArray, columns: FloatArray) -> OptimizeResult:
    """Return the answer of HiGHS: charges are at most 1, columns add up to 1."""
    limits = np.ones(len(charges)), np.ones(len(columns))
    for options in _ATTEMPTS:
        answer = linprog(costs, charges, limits[0], columns, limits[1], options=options)
        if answer.status == 0:
            return answer
    raise SolverError(
        Message(f"HiGHS could not mix {len(costs)} candidate outputs: {answer.message} ", SMALLER)
    )
