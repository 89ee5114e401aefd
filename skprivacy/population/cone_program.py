"""Budgets with a margin, and the best channel within them; the only import of clarabel.

An output has ``w(x) = P(y|x) / P(y)``, lifts ``l_s = E[w | s]`` and variances ``Var(w | s)``, all
under the counts with one pseudo-row per group. It is within the budget with a margin of beta if

    gauge(l - 1) + cost (max w - 1) + beta noise(w) <= 1,
    noise(w)^2 = sum_s weight_s Var(w | s),

where the gauge is the share of the budget for the sample that is used. A linear function
``n . (l - 1)`` of the lifts has, for one row, the variance ``sum_s n_s^2 / p_s Var(w | s)``; the
weights are as large as for normals of the budget, and proportional to ``1 - p_s``, which is exact
for two groups and for kl near the prior. The peak, ``max w``, is what a few more rows of a group
would add if all of them had the most revealing symbol: it matters for groups with few rows. All
terms are convex and positively homogeneous, so that outputs with a margin form a convex cone. If
published columns divide X into strata, the peak is compared with ``1 / P(stratum)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import clarabel
import numpy as np
from scipy import sparse

from .._numerics import BISECTIONS, NEGLIGIBLE
from .._typing import BoolArray, FloatArray, IntArray
from ..geometry import normalised
from ..measures import KL, AlphaLift, Chi2, Measure

# Measures are continued linearly below this lift: a margin may take lifts below zero.
_SMALL_LIFT = 0.05

# A measure with more facets than this is bounded by tangents, added where needed.
_MOST_FACETS = 64

_SMALLEST_GAUGE, _LARGEST_GAUGE = 1e-12, 1e6


class RobustBudget:
    """The set of outputs within a budget of epsilon with a margin.

    counts : of pairs (s, x) with at least two groups, every symbol of X with rows; strata : of the
    symbols; more_rows : number of rows of a group that may have been missed; by_group : whether
    rows of a polyhedral budget have separate noises, larger ones for rare groups, not a peak.

    Attributes
    ----------
    p_s, p_x, given_s : ndarray
        P(S), P(X) and P(x|s) with the pseudo-rows.
    normals, noise_scales : ndarray of shape (n, n_s) and (n,)
        The budget is contained in ``normals . (l - 1) <= 1``; relative size of each row's noise.
    weights : ndarray of shape (n_s,)
        The weights of the noise.
    peak_cost, flat : float, ndarray of shape (n_x,)
        The cost of a peak of 1, and the peak of a flat output on the stratum of each symbol.
    is_exact : bool
        Whether the normals describe the whole budget.
    """

    def __init__(
        self,
        counts: FloatArray,
        measure: Measure,
        epsilon: float,
        strata: IntArray | None = None,
        more_rows: float = 3.0,
        by_group: bool = False,
    ) -> None:
        with_prior = counts + counts.sum(axis=0) / counts.sum()
        self.n_rows = float(with_prior.sum()) + 1
        joint = with_prior / with_prior.sum()
        self.p_s, self.p_x = joint.sum(axis=1), joint.sum(axis=0)
        self.given_s = joint / self.p_s[:, None]
        self.measure, self.threshold = measure, float(measure.threshold(epsilon))
        self.normals, self.is_exact = self._first_normals(epsilon)
        strata = np.zeros(len(self.p_x), dtype=int) if strata is None else strata
        self.flat = 1 / np.bincount(strata, self.p_x)[strata]
        missed = more_rows / (self.n_rows * self.p_s + more_rows)
        self.peak_cost = 0.0 if by_group else float((self.normals.max(axis=0) * missed).max())
        sizes = (self.normals**2 / self.p_s).sum(axis=1)
        self.weights = np.median(sizes) * (1 - self.p_s)
        self.noise_scales = np.sqrt(sizes / np.median(sizes)) if by_group else np.ones(len(sizes))

    def _first_normals(self, epsilon: float) -> tuple[FloatArray, bool]:
        """Return the facets of the budget, or tangents at deviations of single groups."""
        is_small = 2 ** len(self.p_s) - 2 <= _MOST_FACETS or self.measure.is_lift_box
        facets = self.measure.facets(self.p_s, epsilon) if is_small else None
        if facets is not None:
            normals, offsets = facets
            room = offsets - normals @ self.p_s
            return self._centred(normals * self.p_s) / room[:, None], True
        single = (np.eye(len(self.p_s)) - self.p_s) / self.p_s
        if len(self.p_s) == 2:  # the second group deviates in the opposite direction
            return self.tangents(single), True
        return self.tangents(np.vstack([single, -single])), False

    def _centred(self, normals: FloatArray) -> FloatArray:
        """Return normals with the same products with deviations, as ``p_s . (l - 1) = 0``."""
        return normals - self.p_s * normals.sum(axis=1, keepdims=True)

    def tangents(self, deviations: FloatArray) -> FloatArray:
        """Return normals of the budget where rays through deviations leave it."""
        edge = deviations / self._bisected(deviations)[:, None]
        posterior = np.maximum(self.p_s * (1 + edge), _SMALL_LIFT * self.p_s)
        slopes = self.measure.subgradient(posterior, self.p_s)
        normals = self._centred(slopes * self.p_s)
        return normals / (normals * edge).sum(axis=1, keepdims=True)

    def add(self, normals: FloatArray) -> None:
        """Add tangents."""
        self.normals = np.vstack([self.normals, normals])
        self.noise_scales = np.append(self.noise_scales, np.ones(len(normals)))

    def gauge(self, deviations: FloatArray) -> FloatArray:
        """Return the share of the budget that each row of deviations uses."""
        if self.is_exact:
            return (deviations @ self.normals.T).max(axis=1)
        return self._bisected(deviations)

    def _bisected(self, deviations: FloatArray) -> FloatArray:
        low, high = (np.full(len(deviations), end) for end in (_SMALLEST_GAUGE, _LARGEST_GAUGE))
        for _ in range(BISECTIONS):
            middle = np.sqrt(low * high)
            posterior = self.p_s * (1 + deviations / middle[:, None])
            inside = np.maximum(posterior, _SMALL_LIFT * self.p_s)
            beyond = self.measure.subgradient(inside, self.p_s) * (posterior - inside)
            within = self.measure.value(inside, self.p_s) + beyond.sum(axis=1) <= self.threshold
            low, high = np.where(within, low, middle), np.where(within, middle, high)
        return high

    def deviations(self, channel: FloatArray) -> FloatArray:
        """Return ``l - 1``, one row per output."""
        return (self.given_s @ (channel / (self.p_x @ channel))).T - 1

    def noise(self, channel: FloatArray) -> FloatArray:
        """Return the noise of each output."""
        w = channel / (self.p_x @ channel)
        variances = self.given_s @ w**2 - (self.given_s @ w) ** 2
        return np.sqrt(self.weights @ np.maximum(variances, 0.0))

    def peak(self, channel: FloatArray) -> FloatArray:
        """Return the excess of the largest w of each output over a flat one."""
        w = channel / (self.p_x @ channel)
        return w.max(axis=0) - self.flat[channel.argmax(axis=0)]

    def parts(
        self, channel: FloatArray, betas: FloatArray | float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gauge with the peak, and the noise, of each output.

        Both for the normal that uses most of the budget.
        """
        deviations, noise = self.deviations(channel), self.noise(channel)
        peak = self.peak_cost * self.peak(channel)
        if not self.is_exact:
            return self.gauge(deviations) + peak, noise
        gauges, noises = deviations @ self.normals.T, noise[:, None] * self.noise_scales
        worst = (gauges + np.reshape(betas, (-1, 1)) * noises).argmax(axis=1)
        rows = np.arange(len(worst))
        return gauges[rows, worst] + peak, noises[rows, worst]

    def used(self, channel: FloatArray, betas: FloatArray | float) -> FloatArray:
        """Return the share of the budget that each output uses with its margin."""
        gauge, noise = self.parts(channel, betas)
        return gauge + betas * noise


# The best channel whose outputs are all within every budget with a margin, for a given loss.
#
# It solves a convex program, with ``g(x, y) = P(y|x)`` and, for each output, ``q = sum_x P(x)
# g(x)``,
#
#     minimise    sum P(x) loss(x, y) g(x, y)                        g >= 0
#     subject to  sum_y g(x, y) = 1                                  for all x,
#                 L_s = sum_x P(x|s) g(x),  r >= noise(g),  t + beta r = q,
#                 L - q in t times the budget for deviations,        for all outputs and secrets.
#
# The budget is linear rows for polyhedral measures and for two groups, cones for kl, chi2 and
# alpha_lift, and for all others tangents, which are added where they are exceeded.


_TOLERANCE, _MOST_ITERATIONS = 1e-8, 80

# Tangents are added until no output more frequent than _IN_USE exceeds a budget by more than this
# share.
_CLOSE, _MOST_ROUNDS, _IN_USE = 3e-4, 30, 1e-5

# With more pairs (x, y) than this, only the relevant ones become variables: at first the outputs
# with the smallest loss for each symbol, then a few per round, if they save this much per row.
_MOST_PAIRS, _NEAREST, _NEW, _CHEAPER, _NEGLIGIBLE = 2500, 6, 7, 1e-4, 1e-6
# If budgets are linear rows, the multipliers of one program tell most pairs of the next one.
_ROUNDS_OF_PAIRS, _LATER_ROUNDS, _NEW_IF_CURVED = 3, 1, 3

# If all other pairs together save less than this share of the range of losses, none is added.
_WORTH_PAIRS = 2e-4

# Ties between pairs are broken by this share of the loss, by multiples of the golden ratio.
_TIE, _GOLDEN = 3e-4, 0.6180339887498949

_STATUS = clarabel.SolverStatus
# What is not quite solved is of use too: limits of the channel are judged in any case.
_USABLE = {_STATUS.Solved, _STATUS.AlmostSolved, _STATUS.InsufficientProgress}
_USABLE |= {_STATUS.MaxIterations}


@dataclass(eq=False)
class _Rows:
    """The rows of one output, by cone.

    second_order : for noises; norms : for measures; powers : exponents of the power cones.
    """

    equal: list[FloatArray] = field(default_factory=list)
    at_most: list[FloatArray] = field(default_factory=list)
    second_order: list[FloatArray] = field(default_factory=list)
    norms: list[FloatArray] = field(default_factory=list)
    exponential: list[FloatArray] = field(default_factory=list)
    power: list[FloatArray] = field(default_factory=list)
    powers: list[float] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class _Columns:
    """Positions of the variables of one secret among those of an output: L, r, t, and others."""

    lifts: IntArray
    noise: int
    room: int
    others: IntArray


@dataclass(frozen=True, eq=False)
class _Variables:
    """The variables in the budget of one secret, as rows of coefficients.

    q, t : as in the program; deviations : L - q; others : further variables of a cone.
    """

    q: FloatArray
    deviations: FloatArray
    t: FloatArray
    others: FloatArray


class ConeProgram:
    """The program for given outputs.

    budgets : of all secrets; allowed : mask of the pairs (x, y) that may be used; known : mask of
    the pairs of a similar channel, or None.
    """

    def __init__(
        self,
        budgets: Sequence[RobustBudget],
        allowed: BoolArray,
        known: BoolArray | None = None,
    ) -> None:
        self._budgets, self._allowed, self._known = budgets, allowed, known
        self._p_x = budgets[0].p_x
        self._pairs = np.zeros_like(allowed)
        self._problem: _Problem | None = None
        # The last program and its answer, whose multipliers tell which pairs the next one needs.
        self._last: _Answered | None = None
        self._is_linear = all(budget.is_exact for budget in budgets)

    def solve(
        self, loss: FloatArray, betas: FloatArray, adds_pairs: bool = True
    ) -> FloatArray | None:
        """Return the channel, or None if there is none.

        betas : of each secret and output; adds_pairs : whether to solve again with pairs that the
        first answer lacks.
        """
        if self._allowed.sum() > _MOST_PAIRS:
            # A program uses all pairs with equal losses: make them differ.
            rows, columns = (np.arange(n) for n in loss.shape)
            place = np.add.outer(rows * _GOLDEN, columns * _GOLDEN**2)
            loss = loss + _TIE * np.ptp(loss) * (place % 1)
        n_rounds = _ROUNDS_OF_PAIRS if self._last is None else _LATER_ROUNDS
        self._set_pairs(self._first_pairs(loss))
        for i in range(_MOST_ROUNDS):
            found = self._run(loss, betas, adds_pairs=adds_pairs and i < n_rounds)
            if found is None:
                return None
            channel, new_pairs = found
            if not (self._refine(channel, betas) | new_pairs):
                break
        self._known = channel > _NEGLIGIBLE
        return channel

    def _first_pairs(self, loss: FloatArray) -> BoolArray:
        if self._allowed.sum() <= _MOST_PAIRS:
            return self._allowed
        masked = np.where(self._allowed, loss, np.inf)
        known = self._known
        pairs = _smallest_of_rows(masked, _NEAREST) if known is None else known.copy()
        # All symbols with the same allowed outputs can be sent to one of them.
        for mask in np.unique(self._allowed, axis=0):
            same = (self._allowed == mask).all(axis=1)
            pairs[same, np.where(mask, self._p_x[same] @ loss[same], np.inf).argmin()] = True
        # Every output needs a symbol that leads to it.
        pairs[masked.argmin(axis=0), np.arange(loss.shape[1])] |= ~pairs.any(axis=0)
        pairs &= self._allowed
        if self._last is None:
            return pairs
        return self._with_cheaper(self._last, pairs, loss, 2 * _NEW)

    def _with_cheaper(
        self, answered: _Answered, pairs: BoolArray, loss: FloatArray, most: int
    ) -> BoolArray:
        """Return pairs and, for each symbol, others that are cheaper by the multipliers."""
        problem, answer = answered
        saved = -problem.reduced_costs(self._p_x[:, None] * loss, answer)
        saved[pairs | ~self._allowed] = 0.0
        # All pairs together cannot save more than this: a symbol has one row of the channel.
        if saved.max(axis=1).clip(min=0).sum() <= _WORTH_PAIRS * np.ptp(loss):
            return pairs
        new = _smallest_of_rows(-saved, most) & (saved > _CHEAPER * self._p_x[:, None])
        return pairs | new

    def _set_pairs(self, pairs: BoolArray) -> None:
        if (pairs != self._pairs).any():
            self._pairs, self._problem = pairs, None

    def _refine(self, channel: FloatArray, betas: FloatArray) -> bool:
        """Add the tangents that outputs in use exceed; return whether there are any."""
        in_use = self._p_x @ channel > _IN_USE
        channel, betas, added = channel[:, in_use], betas[:, in_use], False
        for budget, beta in zip(self._budgets, betas, strict=True):
            if budget.is_exact or _cone_of(budget) is not None:
                continue
            deviations = budget.deviations(channel)
            known = (deviations @ budget.normals.T).max(axis=1)
            over = budget.gauge(deviations) > known + _CLOSE
            over &= budget.used(channel, beta) > 1 + _CLOSE
            if over.any():
                budget.add(budget.tangents(deviations[over]))
                self._problem, added = None, True
        return added

    def _run(
        self, loss: FloatArray, betas: FloatArray, adds_pairs: bool
    ) -> tuple[FloatArray, bool] | None:
        """Return the channel for the current pairs, and whether cheaper pairs were added."""
        self._problem = problem = self._problem or _Problem(self._budgets, self._pairs)
        answer = problem.solve(self._p_x[:, None] * loss, betas)
        if answer is None:
            return None
        # With curved budgets the multipliers are no guide to the next program.
        self._last = (problem, answer) if self._is_linear else None
        if not adds_pairs or self._pairs.sum() == self._allowed.sum():
            return problem.channel(answer), False
        before = self._pairs
        n_new = _NEW if self._is_linear else _NEW_IF_CURVED
        self._set_pairs(self._with_cheaper((problem, answer), before, loss, n_new))
        return problem.channel(answer), self._pairs is not before


def _smallest_of_rows(values: FloatArray, n: int) -> BoolArray:
    """Return a mask of the n smallest values of each row."""
    mask = np.zeros(values.shape, dtype=bool)
    np.put_along_axis(mask, np.argsort(values, axis=1, kind="stable")[:, :n], True, axis=1)
    return mask


class _Problem:
    """The program as matrices: ``A v + s = b`` with s in a product of cones."""

    def __init__(self, budgets: Sequence[RobustBudget], pairs: BoolArray) -> None:
        self._budgets, self._pairs = budgets, pairs
        n_x, known = len(pairs), {mask.tobytes(): np.flatnonzero(mask) for mask in pairs.T}
        alike = {key: _block(budgets, symbols) for key, symbols in known.items()}
        self._symbols = [known[mask.tobytes()] for mask in pairs.T]
        self._columns, blocks = zip(*(alike[mask.tobytes()] for mask in pairs.T), strict=True)
        self._starts = np.cumsum([0, *(rows.equal[0].shape[1] for rows in blocks)])
        n_equal_of = [sum(map(len, rows.equal)) for rows in blocks]
        self._first_equal = n_x + np.cumsum([0, *n_equal_of])
        sums = np.zeros((n_x, self._starts[-1]))
        for symbols, start in zip(self._symbols, self._starts[:-1], strict=True):
            sums[symbols, start + np.arange(len(symbols))] = 1.0
        parts = [sparse.coo_matrix(sums)]
        for name in ("equal", "at_most", "second_order", "norms", "exponential", "power"):
            parts.append(self._diagonal([getattr(rows, name) for rows in blocks]))
        self._A = sparse.vstack(parts).tocsc()
        # ``sum_y g`` is the number of outputs instead of 1, so that a typical P(y) is near 1: the
        # solver begins there. Its own scaling, row by row, spoils exponential cones.
        self._b = np.where(np.arange(self._A.shape[0]) < n_x, float(len(blocks)), 0.0)
        n_equal, n_at_most = parts[0].shape[0] + parts[1].shape[0], parts[2].shape[0]
        self._n_linear = n_equal + n_at_most
        self._cones = [clarabel.ZeroConeT(n_equal), clarabel.NonnegativeConeT(n_at_most)]
        for name in ("second_order", "norms"):
            norms = [norm for rows in blocks for norm in getattr(rows, name)]
            self._cones += [clarabel.SecondOrderConeT(len(norm)) for norm in norms]
        self._cones += [clarabel.ExponentialConeT()] * (parts[5].shape[0] // 3)
        self._cones += [clarabel.PowerConeT(a) for rows in blocks for a in rows.powers]
        self._norms = [[len(norm) for norm in rows.second_order] for rows in blocks]

    def _diagonal(self, blocks: Sequence[list[FloatArray]]) -> sparse.coo_matrix:
        """Return the rows about each output, in its columns; scipy's way is slow for many."""
        entries, n_rows = [np.empty((3, 0))], 0
        for start, block in zip(self._starts[:-1], blocks, strict=True):
            if block:
                rows = np.vstack(block)
                i, j = np.nonzero(rows)
                entries.append(np.array([i + n_rows, j + start, rows[i, j]]))
                n_rows += len(rows)
        row, column, value = np.hstack(entries)
        places = row.astype(np.intp), column.astype(np.intp)
        return sparse.coo_matrix((value, places), (n_rows, self._starts[-1]))

    def solve(self, cost: FloatArray, betas: FloatArray) -> clarabel.DefaultSolution | None:
        """Return the answer; cost : of pairs; betas : of secrets and outputs."""
        linear = np.zeros(self._starts[-1])
        for y, symbols in enumerate(self._symbols):
            linear[self._starts[y] : self._starts[y] + len(symbols)] = cost[symbols, y]
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.max_threads, settings.equilibrate_enable = False, 1, False
        settings.max_iter = _MOST_ITERATIONS
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOLERANCE
        nothing = sparse.csc_matrix((len(linear), len(linear)))
        # Beta is the coefficient of r in ``t + beta r = q``. The equations of one output are P(y),
        # then L and t of each secret.
        offsets = np.cumsum([len(secret.lifts) + 1 for secret in self._columns[0]])
        rows = np.add.outer(self._first_equal[:-1], offsets)
        noises = np.array([[secret.noise for secret in columns] for columns in self._columns])
        places = rows.ravel(), (self._starts[:-1, None] + noises).ravel()
        matrix = (self._A + sparse.csc_matrix((betas.T.ravel(), places), self._A.shape)).tocsc()
        given = nothing, linear, matrix, self._b, self._cones, settings
        answer = clarabel.DefaultSolver(*given).solve()
        return answer if answer.status in _USABLE else None

    def channel(self, answer: clarabel.DefaultSolution) -> FloatArray:
        """Return P(y|x)."""
        values, channel = np.array(answer.x), np.zeros(self._pairs.shape)
        for y, symbols in enumerate(self._symbols):
            channel[symbols, y] = values[self._starts[y] : self._starts[y] + len(symbols)]
        return normalised(np.maximum(channel, 0.0))

    def reduced_costs(self, cost: FloatArray, answer: clarabel.DefaultSolution) -> FloatArray:
        """Return the reduced cost of each pair, from the multipliers.

        A symbol that is not sent to an output is in the norm with ``0 - mean(x)``, where the
        multipliers of the norm are those of its root.
        """
        values, duals, n_x = np.array(answer.x), np.array(answer.z), len(cost)
        costs, at_norm = cost + duals[:n_x, None], self._n_linear
        for y, columns in enumerate(self._columns):
            at, of_output = self._first_equal[y], values[self._starts[y] :]
            for budget, place, size in zip(self._budgets, columns, self._norms[y], strict=True):
                n_s = len(place.lifts)
                costs[:, y] += duals[at + 1 : at + 1 + n_s] @ budget.given_s
                at += n_s + 1
                total, share = _shares(budget)
                mean, noise = of_output[place.lifts] @ share, of_output[place.noise]
                costs[:, y] -= duals[at_norm] * total * mean / max(noise, NEGLIGIBLE)
                at_norm += size
        return costs


def _shares(budget: RobustBudget) -> tuple[FloatArray, FloatArray]:
    """Return the weight of each symbol in the noise, and the share of each group in it."""
    weights = budget.weights[:, None] * budget.given_s
    return weights.sum(axis=0), weights / weights.sum(axis=0)


def _cone_of(budget: RobustBudget) -> type[Measure] | None:
    """Return the class of the measure, if its budget is a cone rather than linear rows."""
    kind = type(budget.measure)
    return kind if not budget.is_exact and kind in _CONES else None


def _block(budgets: Sequence[RobustBudget], symbols: IntArray) -> tuple[list[_Columns], _Rows]:
    """Return the variables and rows of an output to which some symbols lead, without beta."""
    columns, at = [], len(symbols) + 2  # after ``g``, ``q`` and the peak
    for budget in budgets:
        n_s, has_others = len(budget.p_s), _cone_of(budget) in (KL, AlphaLift)
        others = np.arange(2 * n_s if has_others else 0) + at + n_s + 2
        columns.append(_Columns(np.arange(n_s) + at, at + n_s, at + n_s + 1, others))
        at += n_s + 2 + len(others)
    unit, n_symbols, rows = np.eye(at), len(symbols), _Rows()
    g, q, peak = unit[:n_symbols], unit[n_symbols], unit[n_symbols + 1]
    # P(y) from the lifts, not from ``g``: every row that has ``g`` makes factorisations denser.
    rows.equal.append((budgets[0].p_s @ unit[columns[0].lifts] - q)[None])
    rows.at_most += [-g, g - peak]
    for budget, places in zip(budgets, columns, strict=True):
        lifts, t = unit[places.lifts], unit[places.room]
        room = t + budget.peak_cost * (peak - budget.flat[symbols[0]] * q) - q
        rows.equal += [budget.given_s[:, symbols] @ g - lifts, room[None]]
        spread = _spread(budget, symbols, g, lifts)
        rows.second_order.append(-np.vstack([unit[places.noise], spread]))
        cone = _cone_of(budget)
        add_budget = _linear if cone is None else _CONES[cone]
        add_budget(rows, budget, _Variables(q, lifts - q, t, unit[places.others]))
    return columns, rows


def _spread(
    budget: RobustBudget, symbols: IntArray, g: FloatArray, lifts: FloatArray
) -> FloatArray:
    """Return rows whose norm is the noise.

    ``sum_s weight_s Var(g|s)`` is the spread of g around the mean of L given x, plus the spread of
    L around this mean; g is zero for symbols that do not lead to the output.
    """
    total, share = _shares(budget)
    weights, shares = total[symbols], share[:, symbols]
    around = np.sqrt(weights)[:, None] * (g - shares.T @ lifts)
    values, vectors = np.linalg.eigh(np.diag(share @ total) - (shares * weights) @ shares.T)
    return np.vstack([around, np.sqrt(np.maximum(values, 0.0))[:, None] * (vectors.T @ lifts)])


def _linear(rows: _Rows, budget: RobustBudget, v: _Variables) -> None:
    """``normals . (L - q) <= q - scale beta r``, where ``beta r = q - t``."""
    scales = budget.noise_scales[:, None]
    rows.at_most.append(budget.normals @ v.deviations - (1 - scales) * v.q - scales * v.t)


def _chi2(rows: _Rows, budget: RobustBudget, v: _Variables) -> None:
    """``|| sqrt(p) (L - q) || <= sqrt(threshold) t``."""
    norm = np.sqrt(budget.p_s)[:, None] * v.deviations
    rows.norms.append(-np.vstack([math.sqrt(budget.threshold) * v.t, norm]))


def _kl(rows: _Rows, budget: RobustBudget, v: _Variables) -> None:
    """``sum p (u log(u/t) + (k - 1) e) <= threshold t`` with ``u = t + L - q + e``, ``e >= 0``.

    e continues the divergence linearly, with slope -k, below a small lift.
    """
    p, (e, terms), k = budget.p_s, np.split(v.others, 2), -math.log(_SMALL_LIFT)
    rows.at_most += [-e, (p @ terms + (k - 1) * p @ e - budget.threshold * v.t)[None]]
    u = v.t + v.deviations + e
    rows.exponential += [np.vstack([terms[s], -u[s], -v.t]) for s in range(len(p))]


def _alpha_lift(rows: _Rows, budget: RobustBudget, v: _Variables) -> None:
    """``(sum p u^alpha)^(1/alpha) <= threshold t`` with ``u >= t + L - q`` and ``u >= 0``."""
    assert isinstance(budget.measure, AlphaLift)
    (u, terms), power = np.split(v.others, 2), 1 / budget.measure.alpha
    whole = budget.threshold * v.t
    rows.at_most += [-u, v.t + v.deviations - u, (terms.sum(axis=0) - whole)[None]]
    scaled = budget.p_s[:, None] ** power * u
    rows.power += [-np.vstack([terms[s], whole, scaled[s]]) for s in range(len(u))]
    rows.powers += [power] * len(u)


_Answered: TypeAlias = tuple[_Problem, clarabel.DefaultSolution]
_AddRows: TypeAlias = Callable[[_Rows, RobustBudget, _Variables], None]
_CONES: dict[type[Measure], _AddRows] = {KL: _kl, Chi2: _chi2, AlphaLift: _alpha_lift}
