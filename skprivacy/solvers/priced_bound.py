"""A bound on the surplus of outputs at given prices, for column generation.

Prices lambda of the symbols of X, and mu of the budget on average, prove that no mechanism has
more utility than ``lambda . P(X) + mu + max over allowed W of u(W) - lambda . W - mu g(W)``. The
function to maximise is convex, but separable: with ``h(z) = z log z``, u is
``sum_k h(z_k)``, where z is W itself for I(X;Y), and P(V|y) for the information about a target V.
(W then follows z as further coordinates, in which u is linear.)

The maximum is bounded by branch and bound. On a box ``low <= z <= high``, h is below its chord, so
with any multipliers c the maximum of ``h(z) - c z`` is at one of its two ends; and with any normal
theta, leakage is bounded by the conjugate of g, or by the support function of a polytope. Together
they are a bound for *any* multipliers, convex in them: Newton steps improve thousands of boxes at
once. A box with a bound above the target is tightened (where moving away from an end costs more
than the bound exceeds the target) and split where the chord is furthest from h.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import product

import numpy as np
from scipy.special import xlogy
from sklearn.exceptions import ConvergenceWarning

from .._messages import silenced
from .._numerics import EPS, TINY
from .._typing import BoolArray, FloatArray, IntArray
from ..geometry import Rows, normalised
from ..joint import Joint
from ..measures.measure import Support
from ..utilities import MutualInformation, Target, mutual_information
from .linear_program import Prices
from .optimal import OptimalSolver
from .problem import Problem
from .solver import DesignTask, Solution, is_late

# Boxes that are split at once.
_AT_ONCE = 1024

# If an output has a surplus above this share of the target, prices must change first: proving a
# target takes very many boxes if some output comes close to it.
NEAR_TARGET = 0.5

# Smoothing of the maximum of two ends, in nats: at first, then at most.
_SMOOTHED_AT_FIRST, _MOST_SMOOTHED = 0.05, 0.02

# Numbers in the matrices of the boxes that are improved together: they fit into the cache.
CACHED = 2**16

# With kinks, slow boxes get more steps below this target, in nats: smoothing is then small.
_CLOSE = 0.005

# Boxes that need no more steps are put aside if fewer than this share are left.
_MANY_OPEN = 0.8

# Smallest price of leakage that a box starts with: Newton steps are short for tiny prices.
_LEAST_PRICE = 0.02


@dataclass(frozen=True, eq=False)
class Boxes(Rows):
    """Boxes of z, the multipliers that prove their bounds, and where these are attained."""

    low: FloatArray
    high: FloatArray
    multipliers: FloatArray
    place: FloatArray
    bound: FloatArray


@dataclass(frozen=True, eq=False)
class _Intervals(Rows):
    """The ends of the intervals of boxes, and h there."""

    low: FloatArray
    high: FloatArray
    h_low: FloatArray
    h_high: FloatArray


@dataclass(frozen=True, eq=False)
class _State(Rows):
    """Multipliers of boxes and the bounds there, also smoothed, with slope and curvature."""

    multipliers: FloatArray
    smoothed: FloatArray
    bound: FloatArray
    slope: FloatArray
    curvature: FloatArray


@dataclass(frozen=True, eq=False)
class _Descent(Rows):
    """Newton steps of boxes: where they are, and the best multipliers and bounds so far."""

    index: IntArray
    box: _Intervals
    smoothed: FloatArray
    state: _State
    damping: FloatArray
    best: FloatArray
    bound: FloatArray


class LeakagePrice:
    """The support function of the budget, convex in a normal theta and a price beta of leakage.

    ``theta . T <= beta (g*(theta / beta) + threshold)`` wherever ``g(T) <= threshold``. On average
    beta is given, and ``theta . T - beta g(T)`` is bounded instead. For polyhedral measures,
    the support function is known itself, and beta is not needed.
    """

    def __init__(self, problem: Problem, epsilon: float, price: float) -> None:
        self._measure, self._prior = problem.measure, problem.leakage.prior
        self._epsilon, self._threshold = epsilon, problem.threshold(epsilon)
        on_average = problem.scope == "average" and self._threshold > 0
        self._given = max(price / self._threshold, TINY) if on_average else None
        self.is_smooth = has_conjugate(problem)
        self._largest = float(problem.leakage.value(problem.leakage.deviations.T).max())

    def added(
        self,
        slope: FloatArray,
        curvature: FloatArray,
        theta: FloatArray,
        log_beta: FloatArray,
        smoothed: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Return values at rows of (theta, log beta), and smooth ones; add their derivatives."""
        if self.is_smooth and self._threshold > 0:
            return (self._from_conjugate(slope, curvature, theta, log_beta),) * 2
        slope[:, :-1] += self._prior
        curvature[:, -1, -1] += 1.0
        mean = theta @ self._prior
        if self._threshold <= 0:  # T is the prior
            return mean, mean
        further = self._limited if self._given is None else self._charged
        value, smooth = further(slope[:, :-1], curvature[:, :-1, :-1], theta, smoothed)
        return mean + value, mean + smooth

    def _limited(
        self, slope: FloatArray, curvature: FloatArray, theta: FloatArray, smoothed: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the largest ``theta . (T - prior)`` within the threshold."""
        value, smooth, normal, second = self._support(theta, smoothed)
        slope += normal
        curvature += second
        return value, smooth

    def _charged(
        self, slope: FloatArray, curvature: FloatArray, theta: FloatArray, smoothed: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the largest ``theta . (T - prior) - beta g(T)``, where g is at most `largest`.

        It is ``sup over r of r (w - beta)`` with ``r w`` the support function of ``g <= r``.
        """
        found = self._support(theta, smoothed * self._threshold)
        value, smooth, normal, second = (part / self._threshold for part in found)
        beta = self._given or 0.0
        over = (smooth - beta) / smoothed
        share = self._largest * _logistic(over)
        bend = share * (1 - share / self._largest) / smoothed
        slope += share[:, None] * normal
        curvature += share[:, None, None] * second
        curvature += bend[:, None, None] * normal[:, :, None] * normal[:, None, :]
        rounding = 64 * EPS * (np.abs(value) + beta)
        exact = self._largest * np.maximum(value - beta + rounding, 0.0)
        return exact, self._largest * smoothed * np.logaddexp(0.0, over)

    def _support(self, theta: FloatArray, smoothed: FloatArray) -> Support:
        found = self._measure.support(theta, self._prior, self._epsilon, smoothed)
        assert found is not None  # see `can_be_proven`
        return found

    def _from_conjugate(
        self, slope: FloatArray, curvature: FloatArray, theta: FloatArray, log_beta: FloatArray
    ) -> FloatArray:
        """Return values at rows of (theta, log beta), and add their slope and curvature."""
        beta = np.exp(log_beta) if self._given is None else np.full(len(theta), self._given)
        scaled = theta / beta[:, None]
        found = self._measure.conjugate(scaled, self._prior)
        assert found is not None  # see `can_be_proven`
        value, normal, second = found
        slope[:, :-1] += normal
        curvature[:, :-1, :-1] += second / beta[:, None, None]
        if self._given is not None:
            curvature[:, -1, -1] += 1.0
            return beta * value
        turned = np.einsum("nij,nj->ni", second, scaled)
        of_price = beta * (self._threshold + value - (normal * scaled).sum(axis=1))
        slope[:, -1] += of_price
        curvature[:, :-1, -1] -= turned
        curvature[:, -1, :-1] -= turned
        curvature[:, -1, -1] += beta * (scaled * turned).sum(axis=1) + np.maximum(of_price, 0)
        return beta * (value + self._threshold)


class Relaxation:
    """The bound of a box as a function of its multipliers: (theta, log beta), and one for each z.

    For I(X;Y), where z is W, the multipliers of z follow from the prices and theta.
    """

    def __init__(self, problem: Problem, epsilon: float, prices: Prices) -> None:
        self._leakage = LeakagePrice(problem, epsilon, prices.budget)
        self.has_kinks = not self._leakage.is_smooth
        prior, deviations = problem.leakage.prior, problem.leakage.deviations
        given_x = prior[:, None] * (1 + deviations)
        n_s, n_x = given_x.shape
        self._n_s, self._n_x, self._is_curved = n_s, n_x, np.ones(n_x)
        self._costs, self._turn = prices.symbols, np.vstack([given_x, np.zeros((1, n_x))])
        if isinstance(problem.utility, Target):  # z comes before W, in which u is linear
            given_v = problem.utility.p_v_given_x
            n_v = len(given_v)
            self._costs = np.concatenate([np.zeros(n_v), self._costs])
            above = [np.zeros((n_s + 1, n_v)), self._turn]
            self._turn = np.block([above, [np.eye(n_v), -given_v]])
            self._is_curved = np.repeat([1.0, 0.0], [n_v, n_x])
        self.n_multipliers, self.n_z = self._turn.shape
        # The outer product of each column with itself, flattened, as rows.
        squares = np.einsum("ik,jk->kij", self._turn, self._turn)
        self._squares = squares.reshape(self.n_z, -1)

    def whole(self) -> Boxes:
        """Return the box of all z, with the best bound that Newton steps find."""
        low, high = np.zeros((1, self.n_z)), np.ones((1, self.n_z))
        multipliers = np.zeros((1, self.n_multipliers))
        multipliers[:, self._n_s] = np.log(0.5)
        for smoothed in (_SMOOTHED_AT_FIRST, _MOST_SMOOTHED):
            box = self._bounded(low, high, multipliers, np.full(1, smoothed), n_steps=30)
            multipliers = box.multipliers
        return box

    def outputs(self, boxes: Boxes) -> FloatArray:
        """Return the outputs W at which the bounds are roughly attained."""
        W = boxes.place[:, -self._n_x :]
        W = np.where(W > 1e-9, W, 0.0)
        return normalised(W[W.sum(axis=1) > 0])

    def _bounded(
        self,
        low: FloatArray,
        high: FloatArray,
        multipliers: FloatArray,
        smoothed: FloatArray,
        n_steps: int,
        target: float = -np.inf,
    ) -> Boxes:
        """Return boxes with their bounds, improved by damped Newton steps.

        Boxes with a bound below the target may get fewer steps.
        """
        size = max(CACHED // self.n_multipliers**2, 1)
        parts = [slice(i, i + size) for i in range(0, len(low), size)] or [slice(0)]
        given = low, high, multipliers, smoothed
        ends = partial(self._descended, n_steps=n_steps, target=target)
        return Boxes.concatenate([ends(*(array[part] for array in given)) for part in parts])

    def _descended(
        self,
        low: FloatArray,
        high: FloatArray,
        multipliers: FloatArray,
        smoothed: FloatArray,
        n_steps: int,
        target: float,
    ) -> Boxes:
        """Return what `_bounded` does, for boxes whose matrices fit into the cache."""
        box = self._intervals(low, high)
        state = self._at(multipliers, box, smoothed)
        damping = np.full(len(low), 0.1)
        index = np.arange(len(low))
        now, done = _Descent(index, box, smoothed, state, damping, multipliers, state.bound), []
        for _ in range(n_steps):
            is_open = now.bound > target
            if is_open.sum() < _MANY_OPEN * len(now):
                done.append(now[~is_open])
                now = now[is_open]
            if len(now):
                now = self._stepped(now)
        now = _Descent.concatenate([*done, now])
        now = now[np.argsort(now.index)]
        left, right = self._ends(now.best, box)
        share = _logistic((right - left) / smoothed[:, None])
        return Boxes(low, high, now.best, low + share * (high - low), now.bound)

    def _stepped(self, now: _Descent) -> _Descent:
        """Return boxes after one more step, undone where it does not improve the bound."""
        state, diagonal = now.state, np.einsum("nii->ni", now.state.curvature)
        before = diagonal.copy()
        diagonal += now.damping[:, None]
        step = np.linalg.solve(state.curvature, -state.slope[:, :, None])[:, :, 0]
        diagonal[...] = before
        step[:, self._n_s] = step[:, self._n_s].clip(-1.0, 1.0)  # the logarithm of the price
        new = self._at(state.multipliers + step, now.box, now.smoothed)
        good = new.smoothed < state.smoothed
        new = _undone(new, state, ~good)
        damping = (now.damping * np.where(good, 0.2, 10.0)).clip(1e-6, 1e6)
        better = new.bound < now.bound
        best = np.where(better[:, None], new.multipliers, now.best)
        bound = np.where(better, new.bound, now.bound)
        return replace(now, state=new, damping=damping, best=best, bound=bound)

    def tightened(self, boxes: Boxes, target: float) -> Boxes:
        """Return boxes without the parts in which no surplus exceeds the target.

        A chord is linear: moving away from its better end costs its slope.
        """
        low, high = boxes.low, boxes.high
        left, right = self._ends(boxes.multipliers, self._intervals(low, high))
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
        may_split = (width > 1e-9) & (self._is_curved > 0)
        cells = np.arange(len(boxes)), np.where(may_split, error, -np.inf).argmax(axis=1)
        least = 0.15 * width[cells]  # on either side
        upper, lower = low.copy(), high.copy()
        upper[cells] = lower[cells] = place[cells].clip(low[cells] + least, high[cells] - least)
        low, high = np.concatenate([low, upper]), np.concatenate([lower, high])
        low, high, possible = self._within_simplex(low, high)
        multipliers = np.tile(boxes.multipliers, (2, 1))[possible]
        prices = multipliers[:, self._n_s]
        np.maximum(prices, np.log(_LEAST_PRICE), out=prices)
        before = np.tile(boxes.bound, 2)[possible]
        smoothed = self._smoothed(before, target)
        given = low[possible], high[possible], multipliers, smoothed
        new = self._bounded(*given, n_steps=5, target=target)
        if not self.has_kinks or target < _CLOSE:
            # Slow boxes get more steps. Many of them are empty: their bounds have no limit.
            slow = new.bound > target + 0.9 * (before - target)
            new = self._improved(new, slow, 20, target)
        if self.has_kinks:
            # With kinks, few steps end far from the best bound: more are cheaper than more boxes.
            new = self._improved(new, new.bound > target, 10, target)
        return new

    def _improved(self, boxes: Boxes, which: BoolArray, n_steps: int, target: float) -> Boxes:
        """Return boxes, some of them after more steps; these are last."""
        again = boxes[which]
        given = again.low, again.high, again.multipliers, self._smoothed(again.bound, target)
        again = self._bounded(*given, n_steps=n_steps, target=target)
        return Boxes.concatenate([boxes[~which], again])

    def _smoothed(self, bound: FloatArray, target: float) -> FloatArray:
        """Return the smoothing of the maximum of two ends, in nats."""
        share = 0.1 if self._leakage.is_smooth else 0.02
        return (share * (bound - target + abs(target))).clip(1e-6, _MOST_SMOOTHED)

    def _intervals(self, low: FloatArray, high: FloatArray) -> _Intervals:
        return _Intervals(low, high, self._h(low), self._h(high))

    def _h(self, z: FloatArray) -> FloatArray:
        """Return ``z log z``, and 0 where u is linear."""
        return xlogy(z, z) * self._is_curved

    def _within_simplex(
        self, low: FloatArray, high: FloatArray
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return boxes shrunk to their distributions z and W, and which boxes have any."""
        low, high, possible = low.copy(), high.copy(), np.ones(len(low), dtype=bool)
        parts = np.split(np.arange(self.n_z), [self.n_z - self._n_x])
        for part in [part for part in parts if len(part)]:
            low[:, part], high[:, part], has_any = _shrunk(low[:, part], high[:, part])
            possible &= has_any
        return low, high, possible

    def _ends(self, multipliers: FloatArray, box: _Intervals) -> tuple[FloatArray, FloatArray]:
        """Return ``h - cost z`` at the two ends of each interval."""
        costs = self._costs + multipliers @ self._turn
        return box.h_low - costs * box.low, box.h_high - costs * box.high

    def _at(self, multipliers: FloatArray, box: _Intervals, smoothed: FloatArray) -> _State:
        """Return the bounds of boxes at some multipliers."""
        n_s, low, high = self._n_s, box.low, box.high
        left, right = self._ends(multipliers, box)
        share = _logistic((right - left) / smoothed[:, None])
        slope = -(low + share * (high - low)) @ self._turn.T
        bend = share * (1 - share) * (high - low) ** 2 / smoothed[:, None]
        curvature = (bend @ self._squares).reshape(-1, *[self.n_multipliers] * 2)
        theta, log_beta, end = multipliers[:, :n_s], multipliers[:, n_s], n_s + 1
        parts = slope[:, :end], curvature[:, :end, :end]
        value, smooth = self._leakage.added(*parts, theta, log_beta, smoothed)
        size = np.abs(value) + np.maximum(np.abs(left), np.abs(right)).sum(axis=1)
        ends = np.maximum(left, right).sum(axis=1)
        softer = np.log1p(np.exp(-np.abs(right - left) / smoothed[:, None])).sum(axis=1)
        size += self.n_z + np.abs(multipliers).max(axis=1)
        bound = np.nan_to_num(value + ends + 64 * EPS * size, nan=np.inf)  # with its rounding
        smooth = np.nan_to_num(smooth + ends + smoothed * softer, nan=np.inf)
        return _State(multipliers, smooth, bound, slope, curvature)


def _logistic(values: FloatArray) -> FloatArray:
    return 1 / (1 + np.exp(-values.clip(-50, 50)))


def _undone(new: _State, old: _State, which: BoolArray) -> _State:
    """Return `new` with the rows of `old` where `which`; changes `new`."""
    for field in fields(new):
        getattr(new, field.name)[which] = getattr(old, field.name)[which]
    return new


def _shrunk(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return boxes shrunk to their points with a sum of 1, and which boxes have any."""
    slack = 8 * EPS * low.shape[1]
    possible = (low.sum(axis=1) <= 1 + slack) & (high.sum(axis=1) >= 1 - slack)
    high = np.minimum(high, 1 + slack - (low.sum(axis=1, keepdims=True) - low))
    low = np.maximum(low, 1 - slack - (high.sum(axis=1, keepdims=True) - high))
    return low.clip(0, 1), np.maximum(high, low).clip(0, 1), possible


def has_conjugate(problem: Problem) -> bool:
    """Whether the measure has a smooth conjugate."""
    prior = problem.leakage.prior
    return problem.measure.conjugate(np.zeros((1, len(prior))), prior) is not None


def can_be_proven(problem: Problem, epsilon: float) -> bool:
    """Whether bounds can be proven: needs a conjugate or support of g, a separable utility."""
    measure, prior = problem.measure, problem.leakage.prior
    is_known = has_conjugate(problem)
    if not is_known and (measure.is_linear or problem.scope == "per_output"):
        zero = np.zeros((1, len(prior)))
        is_known = measure.support(zero, prior, epsilon, np.ones(1)) is not None
    is_separable = isinstance(problem.utility, MutualInformation | Target)
    return is_separable and is_known and problem.knows_all_allowed(epsilon)


@np.errstate(over="ignore", invalid="ignore")  # of steps that are too long, and rejected
def largest_surplus(
    relaxation: Relaxation,
    target: float,
    most: int,
    deadline: float,
    tried: Callable[[FloatArray], float],
) -> tuple[float, int]:
    """Return an upper bound on the surplus, at least the target, and the number of boxes used.

    most : of boxes; tried : is called with promising outputs W, and returns the largest surplus
    found next to them. If that is close to the target, the search stops: prices must change first.
    With kinks it must be closer the further the proof has come, as starting over takes long.
    """
    nearest = 1.0 if relaxation.has_kinks else NEAR_TARGET
    boxes, used = relaxation.whole(), 1
    while len(boxes) and boxes.bound.max() > target and used < most:
        worst = np.argsort(-boxes.bound, kind="stable")
        first, rest = worst[:_AT_ONCE], worst[_AT_ONCE:]
        outputs = relaxation.outputs(boxes[worst[:32]])
        near = NEAR_TARGET + (nearest - NEAR_TARGET) * used / most
        if is_late(deadline) or tried(outputs) > near * target:
            break
        new = relaxation.halves(boxes[first], target)
        used += len(new)
        tightened = relaxation.tightened(new[new.bound > target], target)
        boxes = Boxes.concatenate([boxes[rest], tightened])
    return float(boxes.bound.max(initial=target)), used


# Bounds from merged groups of S: merging adds no leakage, so every budget allows more. -----------
#
# With two groups the optimum is known exactly, with three it is found quickly. If S mostly varies
# in one direction, as in real tables, these bounds are nearly as strict as with all groups.


# Up to this many groups of S, all mergers to two are considered; beyond, one group and the rest.
_MOST_GROUPS = 10

# The most mergers to two groups, by scope, and to three: those with the largest I(S;X).
_PAIRS, _TRIPLES = {"per_output": 12, "average": 3}, 2

# Tolerance of these bounds, as a share of the largest utility.
_TOL = 1e-4


class CoarserGroups:
    """Bounds on the utility from tasks with two or three groups of S."""

    def __init__(self, task: DesignTask) -> None:
        self._task = task
        n_s = len(task.joint.p_s)
        self._is_known = task.measure.is_monotone and n_s > 2
        self._pairs = [Coarser(task, codes) for codes in _pairs(n_s)] if self._is_known else []
        self._pairs.sort(key=lambda pair: -pair.information)
        del self._pairs[_PAIRS[task.scope] :]
        self._triples: list[Coarser] | None = None

    def bound(self, epsilon: float, reached: float, deadline: float = np.inf) -> float:
        """Return the smallest bound on the utility, infinity if there is none.

        reached : the utility so far; the search stops once the bound is close to it.
        """
        if not self._pairs:
            return np.inf
        bounds = [pair.bound(epsilon, deadline) for pair in self._pairs]
        least = min(bounds)
        close = reached + _TOL * self._task.utility.span(self._task.joint.p_x)
        if least <= close or len(self._task.joint.p_x) > 80:
            return least
        if self._triples is None:  # split one group of the best pair in two
            best = self._pairs[int(np.argmin(bounds))]
            found = [Coarser(self._task, codes) for codes in _splits(best.codes)]
            self._triples = sorted(found, key=lambda triple: -triple.information)[:_TRIPLES]
        return min([least, *(triple.bound(epsilon, deadline) for triple in self._triples)])


class Coarser:
    """A task with some groups of S merged.

    codes : the new group of each; information : I(S;X) with these groups, in nats.
    """

    def __init__(self, task: DesignTask, codes: IntArray) -> None:
        self.codes = codes
        p_sx = np.zeros((codes.max() + 1, len(task.joint.p_x)))
        np.add.at(p_sx, codes, task.joint.p_sx)
        self.information = mutual_information(p_sx)
        self._task = task.about(Joint.numbered(p_sx).without_copies())
        self._solve: Callable[[float], Solution] | None = None

    def bound(self, epsilon: float, deadline: float) -> float:
        """Return the bound on the utility of the task, infinity after the deadline."""
        if is_late(deadline):
            return np.inf
        if self._solve is None:
            self._solve = OptimalSolver(tol=_TOL).prepared(self._task)
        with silenced(ConvergenceWarning):  # bounds are valid wherever the search stops
            found = self._solve(epsilon).upper_bound
        return np.inf if found is None else found


def _pairs(n_s: int) -> Iterator[IntArray]:
    """Return all mergers of groups to two, or one group and the rest."""
    if n_s > _MOST_GROUPS:
        return iter(np.eye(n_s, dtype=int))
    return (np.array((0, *others)) for others in product((0, 1), repeat=n_s - 1) if any(others))


def _splits(codes: IntArray) -> Iterator[IntArray]:
    """Yield the ways to split one of two merged groups in two."""
    for kind in (0, 1):
        members = np.flatnonzero(codes == kind)
        for split in _pairs(len(members)) if 2 <= len(members) <= _MOST_GROUPS else ():
            new = codes.copy()
            new[members] = np.where(split == 1, 2, kind)
            yield new
