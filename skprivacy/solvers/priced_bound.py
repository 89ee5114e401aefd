"""A bound on the worth of outputs at given prices, for column generation.

Prices lambda of the symbols of X, and mu of the budget on average, prove that no mechanism has
more utility than ``lambda . P(X) + mu + max over allowed W of u(W) - lambda . W - mu g(W)``. The
function to maximise is convex, but separable: with ``h(z) = z log z``, u is
``sum_k h(z_k)``, where z is W itself for I(X;Y), and P(V|y) for the information about a target V.
(W then follows z as further coordinates, in which u is linear.)

It is found by branch and bound. On a box ``low <= z <= high``, h is below its chord, so with any
multipliers c the maximum of ``h(z) - c z`` is at one of its two ends; and with any normal theta,
leakage is bounded by the conjugate of g. Together they are a bound for *any* multipliers, and a
convex function of them: thousands of boxes are improved at once by Newton steps. A box whose
bound is above the target is tightened (where leaving an end costs more than what is missing) and
split where the chord is furthest from h.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy
from sklearn.exceptions import ConvergenceWarning

from .._messages import silenced
from .._numerics import EPS, TINY
from .._typing import BoolArray, FloatArray, IntArray
from ..geometry import normalised
from ..joint import Joint
from ..utilities import MutualInformation, Target, mutual_information
from .linear_program import Prices
from .optimal import OptimalSolver
from .problem import Problem
from .solver import DesignTask, Solution, is_late

# How many boxes are split at once.
_AT_ONCE = 1024

_TRIED = 32  # of the worst boxes: outputs are sought there

# An output whose surplus is above this share of the target calls for other prices: that nothing
# exceeds a target takes a great many boxes if something comes close to it.
NEAR_TARGET = 0.5

# The maximum of two ends is smoothed by so much, in nats, at first, and then by this share of what
# the bound of a box is about.
_SMOOTHED_AT_FIRST, _MOST_SMOOTHED, _LEAST_SMOOTHED, _SHARE_SMOOTHED = 0.05, 0.02, 1e-6, 0.1
_STEPS_AT_FIRST, _STEPS = 30, 5

# A box whose bound is not below this share of what it was before the split gets more steps.
_SLOW, _MORE_STEPS = 0.9, 20

# Damping of Newton steps: at first, and what it is multiplied by after a good and a bad step.
_DAMPED, _LESS, _MORE = 0.1, 0.2, 10.0
_LARGEST_STEP = 1.0  # of the logarithm of the price of leakage

# The price of leakage at first; a box starts with no less than the second one, even if the box
# that it is part of has none: steps are short where the price is next to nothing.
_FIRST_PRICE, _LEAST_PRICE = 0.5, 0.02

# A split leaves at least this share of an interval on either side; shorter ones are not split.
_LEAST_SHARE, _SHORTEST = 0.15, 1e-9
_NEGLIGIBLE = 1e-9  # probability


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes of z, a row each; the multipliers that prove a bound, and where it is attained."""

    low: FloatArray
    high: FloatArray
    multipliers: FloatArray
    place: FloatArray
    bound: FloatArray

    def __len__(self) -> int:
        return len(self.bound)

    def __getitem__(self, index: IntArray | BoolArray) -> Boxes:
        return Boxes(*(getattr(self, field.name)[index] for field in fields(self)))

    def and_also(self, others: Boxes) -> Boxes:
        """Return these and others."""
        names = [field.name for field in fields(self)]
        return Boxes(*(np.concatenate([getattr(self, n), getattr(others, n)]) for n in names))


class _State(NamedTuple):
    """The bounds of boxes at some multipliers: smoothed, with slope and curvature, and as is."""

    smoothed: FloatArray
    bound: FloatArray
    slope: FloatArray
    curvature: FloatArray


class LeakagePrice:
    """The support function of the budget: convex in a normal theta and a price beta of leakage.

    ``theta . T <= beta (g*(theta / beta) + threshold)`` wherever ``g(T) <= threshold``. On average
    beta is given, and ``theta . T - beta g(T)`` is bounded instead.
    """

    def __init__(self, problem: Problem, epsilon: float, price: float) -> None:
        self._measure, self._prior = problem.measure, problem.leakage.prior
        self._threshold = problem.threshold(epsilon)
        self._is_zero = self._threshold <= 0
        on_average = problem.scope == "average" and not self._is_zero
        self._given = max(price / self._threshold, TINY) if on_average else None

    def at(self, theta: FloatArray, log_beta: FloatArray) -> tuple[FloatArray, ...]:
        """Return the value, slope and curvature at rows of (theta, log beta)."""
        n, n_s = theta.shape
        slope, curvature = np.zeros((n, n_s + 1)), np.zeros((n, n_s + 1, n_s + 1))
        if self._is_zero:  # T is the prior
            slope[:, :-1] = self._prior
            curvature[:, -1, -1] = 1.0
            return theta @ self._prior, slope, curvature
        beta = np.exp(log_beta) if self._given is None else np.full(n, self._given)
        scaled = theta / beta[:, None]
        found = self._measure.conjugate(scaled, self._prior)
        assert found is not None  # see `can_be_proven`
        value, normal, second = found
        slope[:, :-1] = normal
        curvature[:, :-1, :-1] = second / beta[:, None, None]
        if self._given is not None:
            curvature[:, -1, -1] = 1.0
            return beta * value, slope, curvature
        turned = np.einsum("nij,nj->ni", second, scaled)
        slope[:, -1] = beta * (self._threshold + value - (normal * scaled).sum(axis=1))
        curvature[:, :-1, -1] = curvature[:, -1, :-1] = -turned
        curvature[:, -1, -1] = beta * (scaled * turned).sum(axis=1) + np.maximum(slope[:, -1], 0)
        return beta * (value + self._threshold), slope, curvature


class Relaxation:
    """The bound of a box as a function of its multipliers: (theta, log beta), and one for each z.

    For I(X;Y), where z is W, the multipliers of z follow from the prices and theta.
    """

    def __init__(self, problem: Problem, epsilon: float, prices: Prices) -> None:
        self._leakage = LeakagePrice(problem, epsilon, prices.budget)
        prior, deviations = problem.leakage.prior, problem.leakage.deviations
        given_x = prior[:, None] * (1 + deviations)
        n_s, n_x = given_x.shape
        self._n_s, self._n_x, self._is_curved = n_s, n_x, np.ones(n_x)
        self._costs, self._turn = prices.symbols, np.vstack([given_x, np.zeros((1, n_x))])
        if isinstance(problem.utility, Target):  # z comes before W, which is linear
            given_v = problem.utility.p_v_given_x
            n_v = len(given_v)
            self._costs = np.concatenate([np.zeros(n_v), self._costs])
            above = [np.zeros((n_s + 1, n_v)), self._turn]
            self._turn = np.block([above, [np.eye(n_v), -given_v]])
            self._is_curved = np.repeat([1.0, 0.0], [n_v, n_x])
        self.n_multipliers, self.n_z = self._turn.shape
        # The product of each column with itself, flat, as rows.
        squares = np.einsum("ik,jk->kij", self._turn, self._turn)
        self._squares = squares.reshape(self.n_z, -1)

    def whole(self) -> Boxes:
        """Return the box of all z, as well bounded as it can be."""
        low, high = np.zeros((1, self.n_z)), np.ones((1, self.n_z))
        multipliers = np.zeros((1, self.n_multipliers))
        multipliers[:, self._n_s] = np.log(_FIRST_PRICE)
        for smoothed in (_SMOOTHED_AT_FIRST, _MOST_SMOOTHED):
            box = self._bounded(low, high, multipliers, np.full(1, smoothed), _STEPS_AT_FIRST)
            multipliers = box.multipliers
        return box

    def outputs(self, boxes: Boxes) -> FloatArray:
        """Return the outputs W that attain the bounds, roughly."""
        W = boxes.place[:, -self._n_x :]
        W = np.where(W > _NEGLIGIBLE, W, 0.0)
        return normalised(W[W.sum(axis=1) > 0])

    def _bounded(
        self,
        low: FloatArray,
        high: FloatArray,
        multipliers: FloatArray,
        smoothed: FloatArray,
        n_steps: int,
    ) -> Boxes:
        """Return boxes with bounds, and the multipliers that Newton's method has found."""
        ends = self._h(low), self._h(high)
        state = self._at(multipliers, low, high, ends, smoothed)
        bound, best, damping = state.bound, multipliers, np.full(len(low), _DAMPED)
        for _ in range(n_steps):
            damped = state.curvature + damping[:, None, None] * np.eye(self.n_multipliers)
            step = np.linalg.solve(damped, -state.slope[:, :, None])[:, :, 0]
            step[:, self._n_s] = step[:, self._n_s].clip(-_LARGEST_STEP, _LARGEST_STEP)
            tried = multipliers + step
            new = self._at(tried, low, high, ends, smoothed)
            good = new.smoothed < state.smoothed
            damping = (damping * np.where(good, _LESS, _MORE)).clip(1e-6, 1e6)
            multipliers = _chosen(good, tried, multipliers)
            state = _State(*map(partial(_chosen, good), new, state))
            better = state.bound < bound
            bound, best = _chosen(better, state.bound, bound), _chosen(better, multipliers, best)
        left, right = self._ends(best, low, high, ends)
        share = _logistic((right - left) / smoothed[:, None])
        return Boxes(low, high, best, low + share * (high - low), bound)

    def tightened(self, boxes: Boxes, target: float) -> Boxes:
        """Return boxes without the places where nothing is worth more than the target.

        Between its ends a chord is a line: to leave the better end costs its slope.
        """
        low, high = boxes.low, boxes.high
        ends = self._h(low), self._h(high)
        left, right = self._ends(boxes.multipliers, low, high, ends)
        steepness = np.abs(right - left) / np.maximum(high - low, TINY)
        room = (boxes.bound - target)[:, None] / np.maximum(steepness, TINY)
        room = room * (1 + 1e-9) + 1e-12
        tighter_low = np.where(right > left, np.maximum(low, high - room), low)
        tighter_high = np.where(left > right, np.minimum(high, low + room), high)
        low, high, possible = self._within_simplex(tighter_low, tighter_high)
        return replace(boxes, low=low, high=high, place=boxes.place.clip(low, high))[possible]

    def halves(self, boxes: Boxes, target: float) -> Boxes:
        """Return boxes split in two, where the chord is furthest from h."""
        low, high, place = boxes.low, boxes.high, boxes.place
        width = high - low
        at_low = self._h(low)
        rise = (self._h(high) - at_low) / np.maximum(width, TINY)
        error = at_low + rise * (place - low) - self._h(place)
        may_split = (width > _SHORTEST) & (self._is_curved > 0)
        cells = np.arange(len(boxes)), np.where(may_split, error, -np.inf).argmax(axis=1)
        least = _LEAST_SHARE * width[cells]
        upper, lower = low.copy(), high.copy()
        upper[cells] = lower[cells] = place[cells].clip(low[cells] + least, high[cells] - least)
        low, high = np.concatenate([low, upper]), np.concatenate([lower, high])
        low, high, possible = self._within_simplex(low, high)
        multipliers = np.tile(boxes.multipliers, (2, 1))[possible]
        prices = multipliers[:, self._n_s]
        np.maximum(prices, np.log(_LEAST_PRICE), out=prices)
        before = np.tile(boxes.bound, 2)[possible]
        smoothed = _smoothed(before, target)
        new = self._bounded(low[possible], high[possible], multipliers, smoothed, _STEPS)
        # Often an empty box is slow, whose bound falls without end.
        slow = new.bound > target + _SLOW * (before - target)
        again, smoothed = new[slow], _smoothed(new.bound[slow], target)
        again = self._bounded(again.low, again.high, again.multipliers, smoothed, _MORE_STEPS)
        return new[~slow].and_also(again)

    def _h(self, z: FloatArray) -> FloatArray:
        """Return ``z log z``, and 0 where u is linear."""
        return xlogy(z, z) * self._is_curved

    def _within_simplex(
        self, low: FloatArray, high: FloatArray
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return boxes around their distributions z and W, and which have any."""
        low, high, possible = low.copy(), high.copy(), np.ones(len(low), dtype=bool)
        parts = np.split(np.arange(self.n_z), [self.n_z - self._n_x])
        for part in [part for part in parts if len(part)]:
            around = _around_distributions(low[:, part], high[:, part])
            low[:, part], high[:, part] = around[:2]
            possible &= around[2]
        return low, high, possible

    def _ends(
        self, multipliers: FloatArray, low: FloatArray, high: FloatArray, h: tuple[FloatArray, ...]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the worth of the two ends of each interval; h : its values at them."""
        costs = self._costs + multipliers @ self._turn
        return h[0] - costs * low, h[1] - costs * high

    def _at(
        self,
        multipliers: FloatArray,
        low: FloatArray,
        high: FloatArray,
        h: tuple[FloatArray, FloatArray],
        smoothed: FloatArray,
    ) -> _State:
        """Return the bounds of boxes at some multipliers."""
        n_s, shape = self._n_s, multipliers.shape
        slope, curvature = np.zeros(shape), np.zeros((*shape, self.n_multipliers))
        found = self._leakage.at(multipliers[:, :n_s], multipliers[:, n_s])
        value, slope[:, : n_s + 1], curvature[:, : n_s + 1, : n_s + 1] = found
        left, right = self._ends(multipliers, low, high, h)
        share = _logistic((right - left) / smoothed[:, None])
        slope -= (low + share * (high - low)) @ self._turn.T
        bend = share * (1 - share) * (high - low) ** 2 / smoothed[:, None]
        curvature += (bend @ self._squares).reshape(curvature.shape)
        size = np.abs(value) + np.maximum(np.abs(left), np.abs(right)).sum(axis=1)
        bound = value + np.maximum(left, right).sum(axis=1)
        softer = np.log1p(np.exp(-np.abs(right - left) / smoothed[:, None])).sum(axis=1)
        size += self.n_z + np.abs(multipliers).max(axis=1)
        bound = np.nan_to_num(bound + 64 * EPS * size, nan=np.inf)  # with its rounding
        return _State(bound + smoothed * softer, bound, slope, curvature)


def _smoothed(bound: FloatArray, target: float) -> FloatArray:
    """Return the smoothing of the maximum of two ends in boxes, for Newton's method, in nats."""
    scale = bound - target + abs(target)
    return (_SHARE_SMOOTHED * scale).clip(_LEAST_SMOOTHED, _MOST_SMOOTHED)


def _logistic(values: FloatArray) -> FloatArray:
    return 1 / (1 + np.exp(-values.clip(-50, 50)))


def _chosen(which: BoolArray, one: FloatArray, other: FloatArray) -> FloatArray:
    """Return rows of one where `which`, and of the other elsewhere."""
    return np.where(which.reshape(-1, *(1,) * (one.ndim - 1)), one, other)


def _around_distributions(
    low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return boxes around their points whose sum is 1, and which have any."""
    slack = 8 * EPS * low.shape[1]
    possible = (low.sum(axis=1) <= 1 + slack) & (high.sum(axis=1) >= 1 - slack)
    high = np.minimum(high, 1 + slack - (low.sum(axis=1, keepdims=True) - low))
    low = np.maximum(low, 1 - slack - (high.sum(axis=1, keepdims=True) - high))
    return low.clip(0, 1), np.maximum(high, low).clip(0, 1), possible


def can_be_proven(problem: Problem, epsilon: float) -> bool:
    """Whether there is such a bound: the measure must know its conjugate."""
    prior = problem.leakage.prior
    is_known = problem.measure.conjugate(np.zeros((1, len(prior))), prior) is not None
    is_separable = isinstance(problem.utility, MutualInformation | Target)
    return is_separable and is_known and problem.knows_all_allowed(epsilon)


@np.errstate(over="ignore", invalid="ignore")  # steps that go too far are not taken
def largest_surplus(
    relaxation: Relaxation,
    target: float,
    most: int,
    deadline: float,
    tried: Callable[[FloatArray], float],
) -> tuple[float, int]:
    """Return a surplus that no output exceeds, the target or more, and how many boxes it took.

    tried : takes outputs W where there may be more, and returns the largest surplus that is found
    next to them. It stops when that is near the target: then other prices are needed.
    """
    boxes, used = relaxation.whole(), 1
    while len(boxes) and boxes.bound.max() > target and used < most:
        worst = np.argsort(-boxes.bound, kind="stable")
        first, rest = worst[:_AT_ONCE], worst[_AT_ONCE:]
        outputs, near = relaxation.outputs(boxes[worst[:_TRIED]]), NEAR_TARGET * target
        if is_late(deadline) or tried(outputs) > near:
            break
        new = relaxation.halves(boxes[first], target)
        used += len(new)
        boxes = boxes[rest].and_also(relaxation.tightened(new[new.bound > target], target))
    return float(boxes.bound.max(initial=target)), used


# Bounds by fewer groups of S: fusing groups adds no leakage, so every budget allows more. --------
#
# With two groups the optimum is known exactly, with three it is found soon. Where S mostly differs
# in one way, as in real tables, these are nearly as strict as all groups.


# Up to so many groups of S, all ways to tell two kinds of them apart are known; otherwise only
# those of one group against the rest.
_MOST_GROUPS = 10

# How many ways are tried, those that X tells most about first: of two kinds, by scope, and of
# three, for so many seconds each, with so many symbols of X at most.
_PAIRS = {"per_output": 12, "average": 3}
_TRIPLES, _SECONDS, _MOST_SYMBOLS = 2, 3.0, 80

_TOL = 1e-4


class CoarserGroups:
    """A bound on the utility, by tasks with two or three groups of S."""

    def __init__(self, task: DesignTask) -> None:
        self._task = task
        n_s = len(task.joint.p_s)
        self._is_known = task.measure.is_monotone and n_s > 2
        self._pairs = [Coarser(task, codes) for codes in _pairs(n_s)] if self._is_known else []
        self._pairs.sort(key=lambda pair: -pair.told)
        del self._pairs[_PAIRS[task.scope] :]
        self._triples: list[Coarser] | None = None

    def bound(self, epsilon: float, reached: float, deadline: float = np.inf) -> float:
        """Return the least bound that is found on the utility, infinity for none.

        reached : it need not be smaller than this by much.
        """
        if not self._pairs:
            return np.inf
        bounds = [pair.bound(epsilon, deadline) for pair in self._pairs]
        least = min(bounds)
        close = reached + _TOL * self._task.utility.span(self._task.joint.p_x)
        if least <= close or len(self._task.joint.p_x) > _MOST_SYMBOLS:
            return least
        if self._triples is None:  # three kinds of groups, one of the best two being split
            best = self._pairs[int(np.argmin(bounds))]
            found = [Coarser(self._task, codes) for codes in _splits(best.codes)]
            self._triples = sorted(found, key=lambda triple: -triple.told)[:_TRIPLES]
        return min([least, *(triple.bound(epsilon, deadline) for triple in self._triples)])


class Coarser:
    """A task with some groups of S fused.

    codes : the new group of each; told : what X tells about it, in nats.
    """

    def __init__(self, task: DesignTask, codes: IntArray) -> None:
        self.codes = codes
        fused = np.zeros((codes.max() + 1, len(task.joint.p_x)))
        np.add.at(fused, codes, task.joint.p_sx)
        self.told = mutual_information(fused)
        self._task = task.about(Joint.numbered(fused).without_copies())
        self._solve: Callable[[float], Solution] | None = None

    def bound(self, epsilon: float, deadline: float) -> float:
        """Return the bound on the utility that the task proves."""
        left = min(deadline - time.perf_counter(), _SECONDS)
        if left <= 0:
            return np.inf
        if self._solve is None:
            self._solve = OptimalSolver(tol=_TOL, max_time=left).prepared(self._task)
        with silenced(ConvergenceWarning):  # a bound is true wherever the search has stopped
            found = self._solve(epsilon).upper_bound
        return np.inf if found is None else found


def _pairs(n_s: int) -> Iterator[IntArray]:
    """Return all ways to tell two kinds of groups apart, or one group from the rest."""
    if n_s > _MOST_GROUPS:
        return iter(np.eye(n_s, dtype=int))
    return (np.array((0, *others)) for others in product((0, 1), repeat=n_s - 1) if any(others))


def _splits(codes: IntArray) -> Iterator[IntArray]:
    """Yield the ways to split one of two kinds of groups in two."""
    for kind in (0, 1):
        members = np.flatnonzero(codes == kind)
        for split in _pairs(len(members)) if 2 <= len(members) <= _MOST_GROUPS else ():
            new = codes.copy()
            new[members] = np.where(split == 1, 2, kind)
            yield new
