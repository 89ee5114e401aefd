r"""Column generation under a limit for each output: ``U_z(W) <= r`` in place of a leakage.

The limit is not convex, so there is no bound: points are proposed around those in use, restored to
the limit, and priced by the linear program (23) until that gains nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from .._typing import BoolArray, FloatArray
from ..geometry import Points
from ..solvers.linear_program import MixtureProgram, Offers
from ..utilities import Utility
from .output_limits import OutputLimit

# Up to this many symbols, every subset of them is a first proposal.
_ALL_SUBSETS = 9
_MOST_PAIRS = 800

# The search ends after so many rounds, or so many with gains below this share of the largest
# utility.
_MOST_ROUNDS, _IDLE_ROUNDS, _SMALL_GAIN = 14, 3, 5e-4

# Coordinates of points in use are set to these shares of their largest.
_LEVELS = (0.0, 0.08, 0.25, 0.55, 1.0)

# How far points are moved along the slope of their worth.
_STEPS = (0.15, 0.7)

# Within these shares of the limit a point is at it; a restored one is a little inside.
_AT_LIMIT, _INSIDE = 1e-4, 2e-4

_LARGEST_TILT = 3.0
_NEGLIGIBLE = 1e-7


class ConfidentSearch:
    """The search for outputs whose limits are within a budget.

    limit : of outputs; utility : what is to be kept; budget : on the root scale of the limit.
    Points are dense rows: few of their entries are zero, because that would tell a rare symbol.
    """

    def __init__(self, limit: OutputLimit, utility: Utility, budget: float, seed: int = 0) -> None:
        self._limit, self._utility, self._budget = limit, utility, budget
        self._p_x = limit.sample.p_x
        self._program = MixtureProgram(self._p_x, utility)
        self._scale = utility.span(self._p_x)
        self._rng = np.random.default_rng(seed)

    @property
    def _n_x(self) -> int:
        return len(self._p_x)

    def run(self, z: float, proposals: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return points in use, their weights, and all points that are worth keeping."""
        points = np.vstack([self._restored(proposals, z), self._p_x])
        best, idle = -np.inf, 0
        for _ in range(_MOST_ROUNDS):
            offers = Offers(Points.from_dense(points), self._worth(points))
            first = np.argsort(-offers.values)[: 20 * self._n_x]
            weights, prices = self._program.price(offers, 1e-9 * self._scale, first)
            reached = float(weights @ offers.values)
            idle = idle + 1 if reached < best + _SMALL_GAIN * self._scale else 0
            best = max(best, reached)
            if idle >= _IDLE_ROUNDS:
                break
            used = weights > _NEGLIGIBLE
            new = self._neighbours(points[used], weights[used], prices.symbols, z)
            surplus = self._worth(new) - new @ prices.symbols
            points = np.vstack([self._kept(points, used, prices.symbols), new[surplus > 1e-7]])
        used = weights > _NEGLIGIBLE
        return points[: len(weights)][used], weights[used], points

    def _kept(self, points: FloatArray, used: BoolArray, prices: FloatArray) -> FloatArray:
        """Forget points that are far too expensive."""
        most = 20 * self._n_x + 200
        if len(points) <= 2 * most:
            return points
        surplus = np.where(used, np.inf, self._worth(points) - points @ prices)
        return points[np.argsort(-surplus)[:most]]

    def _worth(self, points: FloatArray) -> FloatArray:
        return self._utility.value(Points.from_dense(points))

    def first_proposals(self) -> FloatArray:
        """Return blocks of symbols: all of them, or single ones, pairs and greedy merges."""
        symbols = range(self._n_x)
        if self._n_x <= _ALL_SUBSETS:
            blocks = [c for size in range(1, self._n_x) for c in combinations(symbols, size)]
        else:
            pairs = list(combinations(symbols, 2))
            if len(pairs) > _MOST_PAIRS:
                chosen = self._rng.choice(len(pairs), _MOST_PAIRS, replace=False)
                pairs = [pairs[i] for i in chosen]
            blocks = [*((x,) for x in symbols), *pairs, *self._merges()]
        members = np.zeros((len(blocks), self._n_x))
        for row, block in zip(members, blocks, strict=True):
            row[list(block)] = self._p_x[list(block)]
        return members / members.sum(axis=1, keepdims=True)

    def _merges(self, repetitions: int = 6) -> set[tuple[int, ...]]:
        """Return the blocks of greedy partitions, in which rare blocks join similar ones."""
        counts, found = self._limit.sample.counts, set()
        p_s = counts.sum(axis=1) / counts.sum()
        for repetition in range(repetitions):
            blocks = [[x] for x in range(self._n_x)]
            while len(blocks) > 2:
                share = np.array([self._p_x[block].sum() for block in blocks])
                given = np.array([counts[:, block].sum(axis=1) for block in blocks])
                given = given / given.sum(axis=1, keepdims=True)
                rare = int(np.argmin(share * self._rng.uniform(0.7, 1.4, len(share))))
                both = share + share[rare]
                part = np.clip(share / both, 1e-12, 1 - 1e-12)
                lost = -both * (part * np.log(part) + (1 - part) * np.log(1 - part))
                mixed = (given * share[:, None] + given[rare] * share[rare]) / both[:, None]
                apart = ((mixed - p_s) ** 2 / p_s).sum(axis=1)
                cost = lost + repetition % 3 * both * apart / (2 * self._budget**2 + 1e-9)
                cost[rare] = np.inf
                blocks[int(np.argmin(cost))] += blocks[rare]
                del blocks[rare]
                found |= {tuple(sorted(block)) for block in blocks}
        return found

    def _neighbours(
        self, points: FloatArray, weights: FloatArray, prices: FloatArray, z: float
    ) -> FloatArray:
        """Return points within the limit around those in use."""
        proposed = np.vstack(list(self._proposed(points, weights, prices)))
        most = 500 + 10 * self._n_x
        if len(proposed) > most:
            proposed = proposed[self._rng.choice(len(proposed), most, replace=False)]
        proposed = proposed[proposed.sum(axis=1) > 1e-12]
        proposed /= proposed.sum(axis=1, keepdims=True)
        near = self._on_rays(proposed, z)
        surplus = self._worth(near) - near @ prices
        best = near[np.argsort(-surplus)[: 2 * self._n_x + 80]]
        start = np.vstack([points, best[: 2 * self._n_x + 10]])
        tilted = [self._tilted(start, prices, step, z) for step in _STEPS]
        surplus = self._worth(proposed) - proposed @ prices
        bold = proposed[np.argsort(-surplus)[: 3 * self._n_x + 10]]
        return np.vstack([best, self._restored(np.vstack([*tilted, bold]), z)])

    def _proposed(
        self, points: FloatArray, weights: FloatArray, prices: FloatArray
    ) -> Iterator[FloatArray]:
        """Yield points next to those in use, not normalised and not within the limit."""
        n_x, p_x = self._n_x, self._p_x
        shares = points / p_x
        shares = shares / shares.max(axis=1, keepdims=True)
        for level in _LEVELS:
            changed = np.repeat(shares, n_x, axis=0)
            changed[np.arange(len(changed)), np.tile(np.arange(n_x), len(shares))] = level
            yield changed * p_x
        if len(points) > 1:
            i, j = np.triu_indices(len(points), 1)
            share = (weights[i] / (weights[i] + weights[j]))[:, None]
            yield share * points[i] + (1 - share) * points[j]
            part = self._rng.uniform(0.05, 0.35, len(i))[:, None]
            yield part * points[i] + (1 - part) * points[j]
            yield part * points[j] + (1 - part) * points[i]
        outward = points - p_x
        with np.errstate(divide="ignore", invalid="ignore"):
            furthest = np.where(outward < 0, p_x / -outward, np.inf).min(axis=1)
        furthest = np.minimum(furthest, 50.0)[:, None]
        yield np.maximum(p_x + furthest * outward, 0.0)
        yield np.maximum(p_x + np.sqrt(furthest) * outward, 0.0)

    def _tilted(self, points: FloatArray, prices: FloatArray, step: float, z: float) -> FloatArray:
        """Move points within their support along the slope of their worth, at the limit."""
        values, slopes = self._limit.with_slope(points, z)
        gain = (
            self._utility.slope(Points.from_dense(np.maximum(points, 1e-12)), self._n_x) - prices
        )
        slopes, gain = _centred(slopes, points), _centred(gain, points)
        steepness = np.maximum((points * slopes**2).sum(axis=1), 1e-12)
        along = (points * slopes * gain).sum(axis=1)
        price = np.maximum((along - (self._budget - values) / step) / steepness, 0.0)
        return _tilt(points, step * (gain - price[:, None] * slopes), _LARGEST_TILT + 1)

    def _restored(self, points: FloatArray, z: float, steps: int = 3) -> FloatArray:
        """Return points moved within their support until they are within the limit."""
        for _ in range(steps):
            values, slopes = self._limit.with_slope(points, z)
            slopes = _centred(slopes, points)
            steepness = np.maximum((points * slopes**2).sum(axis=1), 1e-12)
            over = values - self._budget * (1 - _INSIDE)
            outside = values > self._budget * (1 - _AT_LIMIT)
            step = np.where(outside, over, 0.0) / steepness
            points = _tilt(points, -step[:, None] * slopes, _LARGEST_TILT)
        return self._on_rays(points, z)

    def _on_rays(self, points: FloatArray, z: float, steps: int = 3) -> FloatArray:
        """Return points between P(X) and `points`, as far out as the limit allows."""
        outward = points - self._p_x
        share = np.minimum(1.0, self._budget / np.maximum(self._limit.value(points, z), 1e-300))
        allowed = np.zeros(len(points))
        for _ in range(steps):
            values = self._limit.value(self._p_x + share[:, None] * outward, z)
            within = values <= self._budget * (1 + 1e-9)
            allowed = np.where(within, np.maximum(allowed, share), allowed)
            factor = np.where(within, 0.999, 0.995) * self._budget / np.maximum(values, 1e-300)
            share = np.minimum(1.0, share * factor)
        near = np.maximum(self._p_x + allowed[:, None] * outward, 0.0)
        return near[allowed > 1e-6]


def _centred(slopes: FloatArray, points: FloatArray) -> FloatArray:
    return slopes - (points * slopes).sum(axis=1, keepdims=True)


def _tilt(points: FloatArray, exponents: FloatArray, most: float) -> FloatArray:
    """Return ``W exp(a)``, normalised."""
    tilted = points * np.exp(np.clip(exponents, -most, most))
    return tilted / tilted.sum(axis=1, keepdims=True)
