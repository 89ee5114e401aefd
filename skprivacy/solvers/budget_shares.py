"""One budget on average, shared between designs for separate parts of X.

What a part keeps is a concave function of its share of the budget. Each design tells it at one
place, chords between places bound it from below, chords beyond them from above; further designs
are made where the two differ most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from .._typing import FloatArray
from ..measures.leakage import leakage_unchanged
from ..utilities import Utility
from .base import Solution
from .task import DesignTask

# The search ends at this share of the largest utility, or after so many rounds.
_TOL, _MOST_ROUNDS = 1e-5, 25

# Designs are made for parts with at least this share of the largest gap.
_WORTH_A_DESIGN = 0.1

# Budgets that differ by less than this share of what X leaks are the same.
_SAME_BUDGET = 1e-6

# A part that leaks less than this unchanged is independent of S.
_INDEPENDENT = 1e-12


class Part(Protocol):
    """A part of X: how often it occurs, its symbols given that, and what is to be kept."""

    share: float
    p_x: FloatArray
    utility: Utility


class BudgetShares:
    """The budget of 1 on average over all parts, shared between them."""

    def __init__(
        self,
        parts: Sequence[Part],
        tasks: Sequence[DesignTask],
        solves: Sequence[Callable[[float], Solution]],
    ) -> None:
        self._kept = [Kept(*each) for each in zip(parts, tasks, solves, strict=True)]
        self._shares = np.array([part.share for part in parts])

    def solve(self) -> tuple[list[FloatArray], float]:
        """Return a channel for each part, and what all parts together cannot exceed."""
        most = float(self._shares @ [kept.largest for kept in self._kept])
        for _ in range(_MOST_ROUNDS):
            lower, _ = self._shared([kept.lower for kept in self._kept])
            upper, budgets = self._shared([kept.upper for kept in self._kept])
            if upper - lower <= _TOL * most:
                break
            gaps = self._shares * [
                kept.gap(budget) for kept, budget in zip(self._kept, budgets, strict=True)
            ]
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
        pieces = sorted(
            (-(rise / run), i, k, run, rise)
            for i, curve in enumerate(curves)
            for k, (run, rise) in enumerate(np.diff(curve, axis=0))
            if run > 0
        )
        total = float(sum(s * curve[0, 1] for s, curve in zip(self._shares, curves, strict=True)))
        budgets = [float(curve[0, 0]) for curve in curves]
        left = 1.0 - float(self._shares @ budgets)
        for _, i, _, run, rise in pieces:
            taken = min(1.0, max(0.0, left) / (self._shares[i] * run))
            budgets[i] += taken * run
            total += self._shares[i] * taken * rise
            left -= self._shares[i] * taken * run
        return total, budgets


class Kept:
    """What one part keeps, as a function of its budget: designs made so far, and what they bound.

    largest : what it keeps unchanged.
    """

    def __init__(self, part: Part, task: DesignTask, solve: Callable[[float], Solution]) -> None:
        self._part, self._solve = part, solve
        self.largest = part.utility.of_identity(part.p_x)
        unchanged = leakage_unchanged("average", task.measure, task.joint.p_sx)
        is_free = unchanged <= _INDEPENDENT
        # For each design: its budget, what it reaches, its bound, and its channel.
        # A measure may be zero for more than what tells nothing, which a budget of zero asks for.
        self._made = [] if is_free else [self._design(_SAME_BUDGET * unchanged)]
        budget = 0.0 if is_free else unchanged
        self._made.append((budget, self.largest, self.largest, np.eye(len(part.p_x))))

    def value(self, channel: FloatArray) -> float:
        """Return the utility of a channel of this part."""
        channel = channel / channel.sum(axis=1, keepdims=True)
        return self._part.utility.of_channel(self._part.p_x, channel)

    def _design(self, budget: float) -> tuple[float, float, float, FloatArray]:
        solution = self._solve(budget)
        reached, bound = self.value(solution.channel), self.largest
        if solution.upper_bound is not None:
            bound = max(reached, min(bound, solution.upper_bound))
        return budget, reached, bound, solution.channel

    @property
    def lower(self) -> FloatArray:
        """The chords between designs, as rows (budget, kept)."""
        curve = np.array([(budget, reached) for budget, reached, *_ in self._made])
        return _concave(curve)

    @property
    def upper(self) -> FloatArray:
        """The chords beyond designs, as rows: what a concave function cannot exceed."""
        budget, low, high = (np.array(c, float) for c in list(zip(*self._made, strict=True))[:3])
        high = np.minimum.accumulate(high[::-1])[::-1]  # what is kept does not fall
        for i in reversed(range(len(budget) - 1)):
            most = high[i + 1] - _rise_after(budget, low, high, i + 1) * (
                budget[i + 1] - budget[i]
            )
            high[i] = min(high[i], most)
        rows = [(budget[0], high[0])]
        for i in range(len(budget) - 1):
            rows += _crossing(budget, low, high, i)
            rows.append((budget[i + 1], high[i + 1]))
        return _concave(np.array(rows))

    def gap(self, budget: float) -> float:
        """Return how far the two curves are from each other at some budget."""
        return float(_at(self.upper, budget) - _at(self.lower, budget))

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
    """Return how steep a concave curve is at least, up to some place."""
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
        while len(hull) > 1 and _is_below(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return np.array(hull)


def _is_below(left: FloatArray, middle: FloatArray, right: FloatArray) -> bool:
    rise = (right[1] - left[1]) * (middle[0] - left[0])
    return bool((middle[1] - left[1]) * (right[0] - left[0]) <= rise)


def _at(curve: FloatArray, budget: float) -> float:
    return float(np.interp(budget, curve[:, 0], curve[:, 1]))
