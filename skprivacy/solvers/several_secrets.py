"""Several secrets stacked into one, and budgets on average shared by secrets and strata."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import OptimizeResult, linprog

from .._messages import SMALLER, Message
from .._numerics import NEGLIGIBLE
from .._typing import BoolArray, FloatArray, Scope
from ..exceptions import SolverError
from ..geometry import Points, normalised
from ..joint import Joint
from ..measures import KL, Measure
from ..measures.measure import BUDGET_ATOL, leakage_unchanged
from ..measures.stacked import Block, Stacked
from ..utilities import DEFAULT_TOL
from .solver import Choose, DesignTask, Solution

# A budget of zero is replaced by this budget of kl, below the tolerance of budgets: whatever the
# measure, it means that outputs are independent of S.
_ZERO, _NEARLY_INDEPENDENT = BUDGET_ATOL / 2, KL()

# (start, scale, tilt) of a `Block`.
_Allowed: TypeAlias = tuple[float, float, FloatArray | None]


@dataclass(frozen=True, eq=False)
class Secret:
    """A secret with its budget; joint : P_SX of the symbols that occur."""

    joint: Joint
    epsilon: float
    measure: Measure

    @property
    def threshold(self) -> float:
        """The largest g that the budget allows."""
        return float(self.measure.threshold(max(self.epsilon, _ZERO)))


def secrets_of(task: DesignTask, budgets: Mapping[Any, float]) -> list[Secret]:
    """Return the secrets with a finite budget, for the symbols of X that occur.

    Groups with the same P(X|s) are merged, unless there are strata.
    """
    found = []
    for name in [name for name in task.secrets if budgets[name] < np.inf]:
        joint = task.secrets[name].without_empty()
        joint = joint.without_copies() if task.strata is None else joint
        measure = _NEARLY_INDEPENDENT if budgets[name] == 0 else task.measure
        found.append(Secret(joint, budgets[name], measure))
    return found


class Stratum:
    """The part of a task with one value z of the columns beside; its centre is P(X|z).

    Attributes
    ----------
    symbols : ndarray of bool
        Which of the symbols that occur belong to it.
    share : float
        P(z).
    p_x : ndarray
        P(X|z) of its symbols.
    utility : Utility
        The utility for its symbols.
    """

    def __init__(self, task: DesignTask, secrets: list[Secret], symbols: BoolArray) -> None:
        self._task, self._secrets, self.symbols = task, secrets, symbols
        p_x = task.p_x[task.p_x > 0]
        self.share = float(p_x[symbols].sum())
        self.p_x = p_x[symbols] / self.share
        self.utility = task.utility.restricted(task.p_x > 0).restricted(symbols)
        # P(S, X|z) of each secret.
        self._tables = [secret.joint.p_sx[:, symbols] for secret in secrets]
        if not symbols.all():
            self._tables = [table / table.sum() for table in self._tables]
        self._is_whole = task.strata is None

    @cached_property
    def starts(self) -> list[float]:
        """g at the centre, for each secret."""
        pairs = zip(self._tables, self._secrets, strict=True)
        return [float(s.measure.value(t.sum(axis=1), s.joint.p_s)) for t, s in pairs]

    def per_output(self) -> DesignTask:
        """Return the task in which every output keeps every budget, with an epsilon of 1."""
        # g at the prior is subtracted, which may differ from g at the centre of a stratum.
        is_zero = all(secret.epsilon == 0 for secret in self._secrets)
        allowed: list[_Allowed] = []
        for secret in self._secrets:
            start = float(secret.measure.value(secret.joint.p_s, secret.joint.p_s))
            allowed.append((start, 1.0 if is_zero else secret.threshold - start, None))
        return self._stacked("per_output", allowed)

    def on_average(self, rooms: FloatArray, weights: FloatArray) -> DesignTask:
        """Return the task with one budget on average: a weighted sum over secrets.

        rooms : how much more each secret may leak than the centres of all strata do. g minus its
        tangent at the centre averages to that difference, and is never negative.
        """
        allowed: list[_Allowed] = [(s, r, None) for s, r in zip(self.starts, rooms, strict=True)]
        if not self._is_whole:
            for i, (table, secret) in enumerate(zip(self._tables, self._secrets, strict=True)):
                centre = table.sum(axis=1)
                tilt = secret.measure.subgradient(centre, secret.joint.p_s)
                allowed[i] = self.starts[i] - float(centre @ tilt), rooms[i], tilt
        return self._stacked("average", allowed, weights)

    def _stacked(
        self, scope: Scope, allowed: list[_Allowed], weights: FloatArray | None = None
    ) -> DesignTask:
        """Return the task about all secrets stacked into one."""
        share, first = 1 / len(self._secrets), 0
        blocks, tables = [], []
        for table, secret, limits in zip(self._tables, self._secrets, allowed, strict=True):
            groups = None if self._is_whole else np.flatnonzero(table.sum(axis=1) > 0)
            tables.append(share * (table if groups is None else table[groups]))
            rows = slice(first, first + len(tables[-1]))
            first = rows.stop
            blocks.append(Block(secret.measure, rows, share, secret.joint.p_s, groups, *limits))
        implied = None
        if self._is_whole and weights is None:  # deviations of lifts that imply all budgets
            each = [secret.measure.implied_deviations(secret.epsilon) for secret in self._secrets]
            known = [bounds for bounds in each if bounds is not None]
            if len(known) == len(each):
                implied = max(low for low, _ in known), min(high for _, high in known)
        joint, measure = Joint.numbered(np.vstack(tables)), Stacked(blocks, weights, implied)
        return DesignTask({None: joint}, measure, scope, self.utility)


def strata_of(task: DesignTask, secrets: list[Secret]) -> list[Stratum]:
    """Return the strata of a task: a single one if no columns are published beside."""
    strata = task.stratum_of_symbol[task.p_x > 0]
    return [Stratum(task, secrets, strata == z) for z in np.unique(strata)]


def side_by_side(parts: Sequence[BoolArray], channels: Sequence[FloatArray]) -> FloatArray:
    """Return the block-diagonal channel that applies each channel to its part of X.

    parts : for each channel, a mask of its symbols.
    """
    n_outputs = [channel.shape[1] for channel in channels]
    whole = np.zeros((len(parts[0]), sum(n_outputs)))
    for symbols, channel, stop in zip(parts, channels, np.cumsum(n_outputs), strict=True):
        whole[symbols, stop - channel.shape[1] : stop] = channel
    return whole


# A budget on average, shared between strata. -----------------------------------------------------
#
# The utility of a stratum is a concave function of its budget. Each design gives one value of it,
# chords between designs bound it from below, chords extended beyond them from above; further
# designs are made where the two differ most.


# Budgets that differ by less than this share of the leakage of X are the same.
_SAME_BUDGET = 1e-6


class BudgetShares:
    """A budget of 1 on average, shared between strata; curves : one for each stratum."""

    def __init__(self, curves: list[UtilityByBudget]) -> None:
        self._curves, self._shares = curves, np.array([each.stratum.share for each in curves])

    def solve(self) -> tuple[list[FloatArray], float]:
        """Return a channel for each stratum, and an upper bound on the utility."""
        most = float(self._shares @ [curve.largest for curve in self._curves])
        for _ in range(25):
            lower, _ = self._shared([curve.lower for curve in self._curves])
            upper, budgets = self._shared([curve.upper for curve in self._curves])
            if upper - lower <= DEFAULT_TOL * most:
                break
            pairs = zip(self._curves, budgets, strict=True)
            gaps = self._shares * [curve.gap(budget) for curve, budget in pairs]
            for i in np.flatnonzero(gaps > 0.1 * gaps.max()):
                self._curves[i].refine(budgets[i])
        _, budgets = self._shared([curve.lower for curve in self._curves])
        pairs = zip(self._curves, budgets, strict=True)
        return [curve.at(budget) for curve, budget in pairs], upper

    def _shared(self, curves: Sequence[FloatArray]) -> tuple[float, list[float]]:
        """Return the largest sum of concave curves, and the budget of each stratum.

        curves : rows (budget, utility), from a tiny budget on. Their pieces are taken in the order
        of their slopes, until the budget is spent.
        """
        pieces = []
        for i, curve in enumerate(curves):
            steps = [(run, rise) for run, rise in np.diff(curve, axis=0) if run > 0]
            pieces += [(-(rise / run), i, k, run, rise) for k, (run, rise) in enumerate(steps)]
        total = float(sum(s * curve[0, 1] for s, curve in zip(self._shares, curves, strict=True)))
        budgets = [float(curve[0, 0]) for curve in curves]
        left = 1.0 - float(self._shares @ budgets)
        for _, i, _, run, rise in sorted(pieces):
            taken = min(1.0, max(0.0, left) / (self._shares[i] * run))
            budgets[i] += taken * run
            total += self._shares[i] * taken * rise
            left -= self._shares[i] * taken * run
        return total, budgets


class UtilityByBudget:
    """The utility of a stratum as a function of its budget, bounded by the designs so far.

    largest : the utility of releasing the stratum unchanged.
    """

    def __init__(
        self, stratum: Stratum, task: DesignTask, solve: Callable[[float], Solution]
    ) -> None:
        self.stratum, self._solve = stratum, solve
        self.largest = stratum.utility.of_identity(stratum.p_x)
        unchanged = leakage_unchanged("average", task.measure, task.joint.p_sx)
        is_independent = unchanged <= 1e-12
        # The designs so far, see `_design`. The first one has a tiny budget instead of zero: a
        # measure may be zero for outputs that are not independent of S.
        self._designs = [] if is_independent else [self._design(_SAME_BUDGET * unchanged)]
        budget = 0.0 if is_independent else unchanged
        self._designs.append((budget, self.largest, self.largest, np.eye(len(stratum.p_x))))

    def _design(self, budget: float) -> tuple[float, float, float, FloatArray]:
        """Return (budget, utility, upper bound, channel) of a new design."""
        solution, bound = self._solve(budget), self.largest
        reached = self.stratum.utility.of_channel(self.stratum.p_x, normalised(solution.channel))
        if solution.upper_bound is not None:
            bound = max(reached, min(bound, solution.upper_bound))
        return budget, reached, bound, solution.channel

    @property
    def lower(self) -> FloatArray:
        """The chords between designs, as rows (budget, utility)."""
        return _concave(np.array([design[:2] for design in self._designs]))

    @property
    def upper(self) -> FloatArray:
        """An upper bound from chords extended beyond designs, as rows (budget, utility)."""
        budget, low, high = np.array([design[:3] for design in self._designs], float).T
        high = np.minimum.accumulate(high[::-1])[::-1]  # more budget, no less utility
        for i in reversed(range(len(budget) - 1)):
            rise = _rise_after(budget, low, high, i + 1)
            high[i] = min(high[i], high[i + 1] - rise * (budget[i + 1] - budget[i]))
        rows = [(budget[0], high[0])]
        for i in range(len(budget) - 1):
            rows += _crossing(budget, low, high, i)
            rows.append((budget[i + 1], high[i + 1]))
        return _concave(np.array(rows))

    def gap(self, budget: float) -> float:
        """Return the difference of the two curves at a budget."""
        upper, lower = (np.interp(budget, *curve.T) for curve in (self.upper, self.lower))
        return float(upper - lower)

    def refine(self, budget: float) -> None:
        """Add a design for a budget, or halfway to the next one if there is one already."""
        known = np.array([design[0] for design in self._designs])
        nearest = int(np.abs(known - budget).argmin())
        if abs(known[nearest] - budget) <= _SAME_BUDGET * known[-1]:
            budget = known[nearest : nearest + 2].mean()
        if np.abs(known - budget).min() > _SAME_BUDGET * known[-1]:
            self._designs.append(self._design(budget))
            self._designs.sort(key=itemgetter(0))

    def at(self, budget: float) -> FloatArray:
        """Return a channel for a budget: a design, or a mixture of two."""
        curve = self.lower
        i = int(np.clip(np.searchsorted(curve[:, 0], budget) - 1, 0, max(len(curve) - 2, 0)))
        channels = {budget: channel for budget, *_, channel in self._designs}
        if len(curve) == 1:
            return channels[curve[0, 0]]
        (left, _), (right, _) = curve[i], curve[i + 1]
        part = float(np.clip((budget - left) / (right - left), 0.0, 1.0))
        if part in (0.0, 1.0):
            return channels[right if part else left]
        return np.hstack([(1 - part) * channels[left], part * channels[right]])


def _rise_after(budget: FloatArray, low: FloatArray, high: FloatArray, i: int) -> float:
    """Return a lower bound on the slope of a concave curve before design i."""
    rises = (low[i + 1 :] - high[i]) / (budget[i + 1 :] - budget[i])
    return max(0.0, float(rises.max(initial=0.0)))


def _crossing(
    budget: FloatArray, low: FloatArray, high: FloatArray, i: int
) -> list[tuple[float, float]]:
    """Return where the chords from both sides meet between designs i and i + 1, if they do."""
    left, right = budget[i], budget[i + 1]
    rises = (high[i] - low[:i]) / (left - budget[:i])
    before, after = float(rises.min(initial=np.inf)), _rise_after(budget, low, high, i + 1)
    if before == np.inf:  # nothing is known on the left: it may be arbitrarily steep there
        return [(left, high[i + 1] - after * (right - left))]
    if before <= after:
        return []
    where = (high[i + 1] - after * right - high[i] + before * left) / (before - after)
    where = float(np.clip(where, left, right))
    return [(where, high[i] + before * (where - left))]


def _concave(curve: FloatArray) -> FloatArray:
    """Return the smallest concave curve above points in order of their budgets."""
    hull: list[FloatArray] = []
    for point in curve:
        if hull and point[0] <= hull[-1][0]:
            if point[1] <= hull[-1][1]:
                continue
            hull.pop()
        while len(hull) > 1:
            (run, rise), (whole_run, whole_rise) = hull[-1] - hull[-2], point - hull[-2]
            if rise * whole_run > whole_rise * run:
                break
            hull.pop()
        hull.append(point)
    return np.array(hull)


# Budgets on average of several secrets: each has a price. ----------------------------------------
#
# For any weights, a weighted sum over secrets is one budget, whose optimum bounds the utility; the
# prices of a linear program over all outputs found so far are the next weights.


# The search for prices stops at this gap, as a share of the largest utility, after this many
# rounds, or after this many without a gain.
_PRICE_TOL, _MOST_PRICE_ROUNDS, _MOST_IDLE = 2 * DEFAULT_TOL, 40, 6

# Gaps below the first share of the utility can be closed; bounds above the second are useless.
_NEAR, _FAR = 0.01, 2.0

# The smallest tolerances of HiGHS.
_TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


class AverageBudgets:
    """Budgets on average: prices of secrets, and shares of strata.

    secrets : those with a finite budget; strata : all strata of X.
    """

    def __init__(
        self, task: DesignTask, choose: Choose, secrets: list[Secret], strata: list[Stratum]
    ) -> None:
        self._choose, self._strata, self._n_secrets = choose, strata, len(secrets)
        occurs = task.p_x > 0
        self._p_x, self._utility = task.p_x[occurs], task.utility.restricted(occurs)
        # How much more each secret may leak than the centres of strata do; smaller is rounding.
        thresholds = np.array([secret.threshold for secret in secrets])
        starts = [sum(z.share * z.starts[i] for z in strata) for i in range(len(secrets))]
        self._rooms = np.maximum(thresholds - starts, 2e-13 * np.abs(thresholds))
        self._points = np.zeros((0, len(self._p_x)))
        self._charges = np.zeros((0, len(secrets)))

    def solve(self) -> Solution:
        """Return the best mixture of all outputs found, with the smallest bound."""
        self._add(np.eye(len(self._p_x)))
        self._add(np.stack([stratum.symbols.astype(float) for stratum in self._strata], axis=1))
        channel, prices = self._mixed()
        best, bound, idle = self._utility.of_channel(self._p_x, channel), np.inf, 0
        weights = stable = np.full(self._n_secrets, 1 / self._n_secrets)
        span = self._utility.span(self._p_x)
        for _ in range(_MOST_PRICE_ROUNDS if prices.sum() > 0 else 0):
            solution = self._for_weights(weights)
            self._add(solution.channel)
            channel, prices = self._mixed()
            before = best, bound
            best = max(best, self._utility.of_channel(self._p_x, channel))
            if solution.upper_bound is not None and solution.upper_bound < bound:
                bound, stable = solution.upper_bound, weights
            gain = max(best - before[0], min(before[1], _FAR * span) - min(bound, _FAR * span))
            # While the bound is far away, small gains are not worth another round.
            is_near = bound - best <= _NEAR * span
            idle = idle + 1 if gain <= (_PRICE_TOL / 10 if is_near else _NEAR / 10) * span else 0
            most_idle = _MOST_IDLE if is_near else 1
            if bound - best <= _PRICE_TOL * span or idle > most_idle or self._n_secrets == 1:
                break
            new = prices / prices.sum()
            # Prices of few points jump; averaging them with those of the best bound damps that.
            weights = (new + stable) / 2 if idle % 2 else new
        return Solution(channel, None if bound == np.inf else bound)

    def _for_weights(self, weights: FloatArray) -> Solution:
        """Return the solution for one budget, a weighted sum over secrets."""
        tasks = [stratum.on_average(self._rooms, weights) for stratum in self._strata]
        solves = [self._choose(task).prepared(task) for task in tasks]
        if len(self._strata) == 1:
            return solves[0](1.0)
        each = zip(self._strata, tasks, solves, strict=True)
        channels, bound = BudgetShares([UtilityByBudget(*one) for one in each]).solve()
        for stratum in self._strata:
            bound -= stratum.share * stratum.utility.offset(stratum.p_x)
        bound += self._utility.offset(self._p_x)
        symbols = [stratum.symbols for stratum in self._strata]
        return Solution(side_by_side(symbols, channels), bound)

    def _add(self, channel: FloatArray) -> None:
        """Add the posteriors of a channel to the candidates, with the budgets they use."""
        joint = (self._p_x[:, None] * channel).T
        points = normalised(joint[joint.sum(axis=1) > 0])
        charges = np.zeros((len(points), self._n_secrets))
        for stratum in self._strata:
            here = np.flatnonzero(points[:, stratum.symbols].any(axis=1))
            task = stratum.on_average(self._rooms, np.ones(self._n_secrets))
            assert isinstance(task.measure, Stacked)
            within = points[np.ix_(here, np.flatnonzero(stratum.symbols))]
            posteriors = task.joint.sensitive_posterior(Points.from_dense(within))
            shares = [block.value(posteriors) for block in task.measure.blocks]
            charges[here] = np.maximum(np.stack(shares, axis=1), 0.0)
        self._points = np.vstack([self._points, points])
        self._charges = np.vstack([self._charges, charges])

    def _mixed(self) -> tuple[FloatArray, FloatArray]:
        """Return the best mixture of all candidates as a channel, and the price of each budget."""
        ratio = self._points / self._p_x
        room = 1 / ratio.max(axis=1)
        # Points that use a whole budget at a tiny weight are of no use, but trouble HiGHS.
        kept = (room[:, None] * self._charges).max(axis=1) <= 1e7
        ratio, room = ratio[kept], room[kept]
        values = room * self._utility.value(Points.from_dense(self._points[kept]))
        charges = room[:, None] * self._charges[kept]
        answer = _solved(-values, charges.T, (room[:, None] * ratio).T)
        used = answer.x > NEGLIGIBLE
        channel = (answer.x[used] * room[used])[:, None] * ratio[used]
        channel = channel.T / channel.sum(axis=0)[:, None]
        return channel, np.maximum(-answer.ineqlin.marginals, 0.0)


def _solved(costs: FloatArray, charges: FloatArray, columns: FloatArray) -> OptimizeResult:
    """Minimise costs with HiGHS; charges are at most 1, columns sum to 1."""
    program = costs, charges, np.ones(len(charges)), columns, np.ones(len(columns))
    no_presolve: dict[str, Any] = {"presolve": False}
    for options in (_TOLERANCES, _TOLERANCES | no_presolve, {}, no_presolve):
        answer = linprog(*program, options=options)
        if answer.status == 0:
            return answer
    failed = f"HiGHS could not mix {len(costs)} candidate outputs: {answer.message} "
    raise SolverError(Message(failed, SMALLER))
