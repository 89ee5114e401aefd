"""Several secrets as one, and budgets on average that they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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
from .solver import DesignTask, Solution, Solver

# A budget of zero beside others is taken as this budget of kl, less than every budget tolerates:
# whatever the measure, it means that outputs are independent of S.
_ZERO, _NEARLY_INDEPENDENT = BUDGET_ATOL / 2, KL()

# Start, scale and tilt of a `Block`.
_Allowed: TypeAlias = tuple[float, float, FloatArray | None]


@dataclass(frozen=True, eq=False)
class Secret:
    """The joint of one secret with X, without groups that do not occur, and its budget."""

    joint: Joint
    epsilon: float
    measure: Measure

    @property
    def threshold(self) -> float:
        """The largest g that the budget allows."""
        return float(self.measure.threshold(max(self.epsilon, _ZERO)))


def secrets_of(task: DesignTask, budgets: Mapping[Any, float]) -> list[Secret]:
    """Return the secrets that have a finite budget, about the symbols of X that occur.

    Groups that differ in nothing are merged, unless what they say of a part of X matters.
    """
    found = []
    for name in [name for name in task.secrets if budgets[name] < np.inf]:
        joint = task.secrets[name].without_empty()
        joint = joint.without_copies() if task.strata is None else joint
        measure = _NEARLY_INDEPENDENT if budgets[name] == 0 else task.measure
        found.append(Secret(joint, budgets[name], measure))
    return found


class Stratum:
    """The part of a task whose symbols share one value of the columns that are published.

    Its centre is P(X|z), which tells what z tells.

    Attributes
    ----------
    symbols : ndarray of bool
        Which of the symbols that occur are on it.
    share, p_x : float, ndarray
        How often they occur, and each of them given that.
    utility : Utility
        What is to be kept, for these symbols.
    """

    def __init__(self, task: DesignTask, secrets: list[Secret], symbols: BoolArray) -> None:
        self._task, self._secrets, self.symbols = task, secrets, symbols
        p_x = task.p_x[task.p_x > 0]
        self.share = float(p_x[symbols].sum())
        self.p_x = p_x[symbols] / self.share
        self.utility = task.utility.restricted(task.p_x > 0).restricted(symbols)
        # P(S, X) of each secret, given that X is on this stratum.
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
        """Return the task in which every output keeps every budget; its epsilon is 1."""
        # g of what tells nothing is subtracted: it need not be what the centre of a stratum tells.
        is_zero = all(secret.epsilon == 0 for secret in self._secrets)
        allowed: list[_Allowed] = []
        for secret in self._secrets:
            start = float(secret.measure.value(secret.joint.p_s, secret.joint.p_s))
            allowed.append((start, 1.0 if is_zero else secret.threshold - start, None))
        return self._stacked("per_output", allowed)

    def on_average(self, rooms: FloatArray, weights: FloatArray) -> DesignTask:
        """Return the task in which outputs share one budget: a weighted sum over secrets.

        rooms : how much each secret may leak beyond what the centres of all strata do. Minus its
        tangent at the centre, g averages to that excess, and it is never negative.
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
        """Return the task about the secrets one below the other."""
        share, first = 1 / len(self._secrets), 0
        blocks, tables = [], []
        for table, secret, own in zip(self._tables, self._secrets, allowed, strict=True):
            kept = None if self._is_whole else np.flatnonzero(table.sum(axis=1) > 0)
            tables.append(share * (table if kept is None else table[kept]))
            rows = slice(first, first + len(tables[-1]))
            first = rows.stop
            blocks.append(Block(secret.measure, rows, share, secret.joint.p_s, kept, *own))
        implied = None
        if self._is_whole and weights is None:  # deviations of lifts that imply all budgets
            each = [secret.measure.implied_deviations(secret.epsilon) for secret in self._secrets]
            known = [bounds for bounds in each if bounds is not None]
            if len(known) == len(each):
                implied = max(low for low, _ in known), min(high for _, high in known)
        stack = np.vstack(tables)
        measure = Stacked(blocks, weights, implied)
        return DesignTask({None: Joint.numbered(stack)}, measure, scope, self.utility)


def strata_of(task: DesignTask, secrets: list[Secret]) -> list[Stratum]:
    """Return the strata of a task: one for all symbols, unless columns are published beside."""
    strata = task.stratum_of_symbol[task.p_x > 0]
    return [Stratum(task, secrets, strata == z) for z in np.unique(strata)]


def side_by_side(parts: Sequence[BoolArray], channels: Sequence[FloatArray]) -> FloatArray:
    """Return the channels of parts of X as one: no output belongs to two of them.

    parts : for each channel, a mask of its symbols.
    """
    n_outputs = [channel.shape[1] for channel in channels]
    whole = np.zeros((len(parts[0]), sum(n_outputs)))
    for symbols, channel, stop in zip(parts, channels, np.cumsum(n_outputs), strict=True):
        whole[symbols, stop - channel.shape[1] : stop] = channel
    return whole


# Budgets on average: shared between strata, and between several secrets.
#
# The utility of a stratum is a concave function of its share of the budget. Each design gives
# one value of it, chords between places bound it from below, chords beyond them from above;
# further designs are made where the two differ most.


# The search ends at this share of the largest utility, or after so many rounds.
_TOL, _MOST_ROUNDS = 1e-5, 25

# Designs are made for parts with at least this share of the largest gap.
_WORTH_A_DESIGN = 0.1

# Budgets that differ by less than this share of what X leaks are the same.
_SAME_BUDGET = 1e-6

# A part that leaks less than this unchanged is independent of S.
_INDEPENDENT = 1e-12


class BudgetShares:
    """The budget of 1 on average over all strata, shared between them."""

    def __init__(self, kept: list[UtilityByBudget]) -> None:
        self._kept, self._shares = kept, np.array([each.stratum.share for each in kept])

    def solve(self) -> tuple[list[FloatArray], float]:
        """Return a channel for each part, and what all parts together cannot exceed."""
        most = float(self._shares @ [kept.largest for kept in self._kept])
        for _ in range(_MOST_ROUNDS):
            lower, _ = self._shared([kept.lower for kept in self._kept])
            upper, budgets = self._shared([kept.upper for kept in self._kept])
            if upper - lower <= _TOL * most:
                break
            pairs = zip(self._kept, budgets, strict=True)
            gaps = self._shares * [kept.gap(budget) for kept, budget in pairs]
            for i in np.flatnonzero(gaps > _WORTH_A_DESIGN * gaps.max()):
                self._kept[i].refine(budgets[i])
        _, budgets = self._shared([kept.lower for kept in self._kept])
        pairs = zip(self._kept, budgets, strict=True)
        return [kept.at(budget) for kept, budget in pairs], upper

    def _shared(self, curves: Sequence[FloatArray]) -> tuple[float, list[float]]:
        """Return the most that concave curves add up to, and the budget that each part gets.

        curves : rows (budget, kept), from a tiny budget on. Their pieces are taken in the order
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
    """The utility of one stratum as a function of its budget: designs so far, and what they bound.

    largest : the utility of the stratum unchanged.
    """

    def __init__(
        self, stratum: Stratum, task: DesignTask, solve: Callable[[float], Solution]
    ) -> None:
        self.stratum, self._solve = stratum, solve
        self.largest = stratum.utility.of_identity(stratum.p_x)
        unchanged = leakage_unchanged("average", task.measure, task.joint.p_sx)
        is_free = unchanged <= _INDEPENDENT
        # For each design: its budget, what it reaches, its bound, and its channel.
        # A measure may be zero for more than what tells nothing, which a budget of zero asks for.
        self._made = [] if is_free else [self._design(_SAME_BUDGET * unchanged)]
        budget = 0.0 if is_free else unchanged
        self._made.append((budget, self.largest, self.largest, np.eye(len(stratum.p_x))))

    def _design(self, budget: float) -> tuple[float, float, float, FloatArray]:
        solution, bound = self._solve(budget), self.largest
        reached = self.stratum.utility.of_channel(self.stratum.p_x, normalised(solution.channel))
        if solution.upper_bound is not None:
            bound = max(reached, min(bound, solution.upper_bound))
        return budget, reached, bound, solution.channel

    @property
    def lower(self) -> FloatArray:
        """The chords between designs, as rows (budget, kept)."""
        return _concave(np.array([(budget, reached) for budget, reached, *_ in self._made]))

    @property
    def upper(self) -> FloatArray:
        """The chords beyond designs, as rows: what a concave function cannot exceed."""
        budget, low, high = (np.array(c, float) for c in list(zip(*self._made, strict=True))[:3])
        high = np.minimum.accumulate(high[::-1])[::-1]  # what is kept does not fall
        for i in reversed(range(len(budget) - 1)):
            rise = _rise_after(budget, low, high, i + 1)
            high[i] = min(high[i], high[i + 1] - rise * (budget[i + 1] - budget[i]))
        rows = [(budget[0], high[0])]
        for i in range(len(budget) - 1):
            rows += _crossing(budget, low, high, i)
            rows.append((budget[i + 1], high[i + 1]))
        return _concave(np.array(rows))

    def gap(self, budget: float) -> float:
        """Return the difference of the two curves at some budget."""
        upper, lower = (np.interp(budget, *curve.T) for curve in (self.upper, self.lower))
        return float(upper - lower)

    def refine(self, budget: float) -> None:
        """Make a design for some budget; halfway to the next place, where there is one already."""
        known = np.array([made[0] for made in self._made])
        nearest = int(np.abs(known - budget).argmin())
        if abs(known[nearest] - budget) <= _SAME_BUDGET * known[-1]:
            budget = known[nearest : nearest + 2].mean()
        if np.abs(known - budget).min() > _SAME_BUDGET * known[-1]:
            self._made = sorted([*self._made, self._design(budget)], key=lambda made: made[0])

    def at(self, budget: float) -> FloatArray:
        """Return a channel for some budget: a design, or a mixture of two."""
        curve = self.lower
        i = int(np.clip(np.searchsorted(curve[:, 0], budget) - 1, 0, max(len(curve) - 2, 0)))
        channels = {made[0]: made[3] for made in self._made}
        if len(curve) == 1:
            return channels[curve[0, 0]]
        (left, _), (right, _) = curve[i], curve[i + 1]
        part = float(np.clip((budget - left) / (right - left), 0.0, 1.0))
        if part in (0.0, 1.0):
            return channels[right if part else left]
        return np.hstack([(1 - part) * channels[left], part * channels[right]])


def _rise_after(budget: FloatArray, low: FloatArray, high: FloatArray, i: int) -> float:
    """Return the least slope of a concave curve up to some place."""
    rises = (low[i + 1 :] - high[i]) / (budget[i + 1 :] - budget[i])
    return max(0.0, float(rises.max(initial=0.0)))


def _crossing(
    budget: FloatArray, low: FloatArray, high: FloatArray, i: int
) -> list[tuple[float, float]]:
    """Return where the chords from both sides meet between two places, if they bound anything."""
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
    """Return the smallest concave curve above some points, given in order of their budgets."""
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


# Several secrets: each has a price, and strata share what there is.
#
# For any weights, a weighted sum over secrets is one budget, whose optimum bounds all of them; the
# prices of a linear program over all outputs found so far are the next weights.


# Prices are sought until the bound is this close, as a share of the largest utility, or so many
# rounds have passed, or as many without any gain.
_PRICE_TOL, _MOST_PRICE_ROUNDS, _MOST_IDLE = 2 * DEFAULT_TOL, 40, 6

# A gap below this share of the utility can be closed; a bound beyond this one says nothing.
_NEAR, _FAR = 0.01, 2.0

# A room for leakage on average below this share of the threshold is rounding.
_NO_ROOM = 2e-13

# A charge beyond this only troubles HiGHS, which knows no smaller tolerances than these.
_LARGEST_CHARGE = 1e7
_TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}

# Options of HiGHS, tried in order until it finds an answer.
_ALSO: tuple[dict[str, Any], ...] = ({}, {"presolve": False})
_ATTEMPTS = [options | also for options in (_TOLERANCES, {}) for also in _ALSO]


class AverageBudgets:
    """Budgets on average: prices of secrets, and shares of strata.

    secrets : those with a finite budget; strata : all parts of X.
    """

    def __init__(
        self,
        task: DesignTask,
        choose: Callable[[DesignTask], Solver],
        secrets: list[Secret],
        strata: list[Stratum],
    ) -> None:
        self._choose, self._strata, self._n_secrets = choose, strata, len(secrets)
        occurs = task.p_x > 0
        self._p_x, self._utility = task.p_x[occurs], task.utility.restricted(occurs)
        # How much more each secret may leak than the centres of strata do.
        thresholds = np.array([secret.threshold for secret in secrets])
        starts = [sum(f.share * f.starts[i] for f in strata) for i in range(len(secrets))]
        self._rooms = np.maximum(thresholds - starts, _NO_ROOM * np.abs(thresholds))
        self._points = np.zeros((0, len(self._p_x)))
        self._charges = np.zeros((0, len(secrets)))

    def solve(self) -> Solution:
        """Return the best mixture of what was found for any prices, with the least bound."""
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
            # Without a bound that is worth closing in on, small gains are not worth a round.
            is_near = bound - best <= _NEAR * span
            idle = idle + 1 if gain <= (_PRICE_TOL / 10 if is_near else _NEAR / 10) * span else 0
            most_idle = _MOST_IDLE if is_near else 1
            if bound - best <= _PRICE_TOL * span or idle > most_idle or self._n_secrets == 1:
                break
            new = prices / prices.sum()
            # The prices of few points jump: halfway to those of the best bound they jump less.
            weights = (new + stable) / 2 if idle % 2 else new
        return Solution(channel, None if bound == np.inf else bound)

    def _for_weights(self, weights: FloatArray) -> Solution:
        """Return the solution with one budget: a weighted sum over secrets."""
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
        """Add the posteriors of a channel to those that may be mixed, with what they take."""
        joint = (self._p_x[:, None] * channel).T
        points = normalised(joint[joint.sum(axis=1) > 0])
        charges = np.zeros((len(points), self._n_secrets))
        one = np.ones(self._n_secrets)
        for stratum in self._strata:
            here = np.flatnonzero(points[:, stratum.symbols].any(axis=1))
            task = stratum.on_average(self._rooms, one)
            assert isinstance(task.measure, Stacked)
            own = points[np.ix_(here, np.flatnonzero(stratum.symbols))]
            posteriors = task.joint.sensitive_posterior(Points.from_dense(own))
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
        used = answer.x > NEGLIGIBLE
        channel = (answer.x[used] * room[used])[:, None] * ratio[used]
        channel = channel.T / channel.sum(axis=0)[:, None]
        return channel, np.maximum(-answer.ineqlin.marginals, 0.0)


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
