r"""The linear program that bounds a design with one output per label from outside.

Outputs for which the same label is best can be merged: their loss is linear, and a convex leakage
of the merged output is no larger. So with ``m(x, l) = P(x) P(l|x)``, ``q_l = sum_x m(x, l)`` and
``r_l = sum_x m(x, l) d(x)``, where d(x) are the deviations of the lifts of x from 1, the best
design minimises ``sum m(x, l) loss(x, l)`` under the convex ``q g(r / q) <= t q`` for each label,
or ``sum q g(r / q) <= t`` on average. A tangent ``g(d) >= n . d - o`` is linear in r and q.
Here g is in units of t, and d in units of what t allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._messages import SMALLER, Message
from .._typing import BoolArray, FloatArray, IntArray
from ..exceptions import SolverError
from ..geometry import Points
from .highs import INFINITY, Columns, Program
from .leakage_function import LeakageFunction
from .relative_leakage import RelativeLeakage

# Labels that each symbol can be sent to from the beginning: those with the smallest loss.
_NEAREST = 8

# Labels that a round adds for each symbol, at most.
_NEW_LABELS = 5

# Tangents that other labels needed, and that a round adds for each label: those that it exceeds
# the most, by more than this share of the threshold.
_SHARED_TANGENTS = 2
_DEEP = 1e-3

# Outputs rarer than this, and savings smaller than this, are rounding.
_NEGLIGIBLE = 1e-12

# A tangent that is exceeded by no more than this share of the threshold changes nothing.
_NEGLIGIBLE_EXCESS = 1e-6


@dataclass(frozen=True, eq=False)
class Outline:
    """What a round of the program has found.

    points : P(X|l) for the labels in use; labels : which label each is of; weights : P(l); loss :
    no design within the budget has a smaller one.
    """

    points: Points
    labels: IntArray
    weights: FloatArray
    loss: float

    @classmethod
    def of_joint(cls, joint: FloatArray, loss: float) -> Outline:
        """Return the outline of P(x, l), a table of symbols and labels."""
        q = joint.sum(axis=0)
        used = np.flatnonzero(q > _NEGLIGIBLE)
        return cls(Points.from_dense((joint[:, used] / q[used]).T), used, q[used], loss)


@dataclass(frozen=True, eq=False)
class Start:
    """What is known before the first round: tangents of g itself, and pairs that will matter.

    They hold for any budget, so that one program can start where another has ended.
    """

    labels: IntArray
    normals: FloatArray
    offsets: FloatArray
    pairs: BoolArray

    def also(self, other: Start | None) -> Start:
        """Return what both know."""
        if other is None:
            return self
        return Start(
            np.concatenate([self.labels, other.labels]),
            np.concatenate([self.normals, other.normals]),
            np.concatenate([self.offsets, other.offsets]),
            self.pairs | other.pairs,
        )


@dataclass(eq=False)
class _Tangents:
    """The rows of the program that are tangents: ``normals . r - offsets q`` of their labels."""

    labels: IntArray
    normals: FloatArray
    offsets: FloatArray
    scales: FloatArray

    def add(self, *new: FloatArray | IntArray) -> None:
        names = "labels", "normals", "offsets", "scales"
        for name, part in zip(names, new, strict=True):
            setattr(self, name, np.concatenate([getattr(self, name), part]))


class LabelProgram:
    r"""The program, with the tangents and the pairs (x, l) that matter so far.

        minimise    sum P(x) loss(x, l) c(x, l)                   c(x, l) = P(l|x) >= 0
        subject to  sum_l c(x, l) = 1                             for all x,
                    sum_x P(x) d(x) c(x, l) - r_l = 0             for all l,
                    sum_x P(x) c(x, l) - q_l = 0                  for all l,
                    n . r_l - (o + 1) q_l <= 0                    for the tangents of l;
        on average  n . r_l - o q_l - v_l <= 0  and  sum_l v_l <= 1,  v >= 0, instead.

    The columns are r, q, v and the pairs; the rows in the order above, tangents last. Without any
    budget, t = 0, r is zero: there are no columns but the pairs, and no rows of q.

    Parameters
    ----------
    leakage : LeakageFunction
    p_x : ndarray of shape (n_x,)
    loss : ndarray of shape (n_x, n_labels)
    threshold : float
        The largest g that is allowed.
    on_average : bool
        Whether it is allowed on average over the outputs.
    start : Start, default=None
        What another program knew in the end.
    """

    def __init__(
        self,
        leakage: LeakageFunction,
        p_x: FloatArray,
        loss: FloatArray,
        threshold: float,
        on_average: bool,
        start: Start | None = None,
    ) -> None:
        self._p_x, self._loss = p_x, loss
        self._has_budget, self._on_average = threshold > 0, on_average
        if self._has_budget:
            self._leakage = RelativeLeakage(leakage, threshold)
        self._deviations = self._leakage.deviations if self._has_budget else leakage.deviations
        self._n_s, (self._n_x, self._n_l) = len(self._deviations), loss.shape
        self._has = np.zeros(loss.shape, dtype=bool)
        self._pairs: list[tuple[IntArray, IntArray]] = []
        nothing = np.zeros(0)
        self._tangents = _Tangents(nothing.astype(int), np.zeros((0, self._n_s)), nothing, nothing)
        self._pool: list[tuple[FloatArray, FloatArray]] = []
        self._program = Program()
        self._load()
        self._add_pairs(*np.nonzero(self._first_pairs(start)))
        self._multipliers, self._in_use = nothing, np.zeros(loss.shape, dtype=bool)
        if start is not None and self._has_budget:
            tangents = self._leakage.relative(start.normals, start.offsets)
            self._pool.append(tangents)
            self._add_tangents(start.labels, *tangents)

    def end(self) -> Start:
        """Return the tangents and the pairs that mattered in the last round, if there was any."""
        active = np.flatnonzero(self._multipliers > 0)
        tangents = self._tangents
        offsets = tangents.offsets[active] - (0.0 if self._on_average else 1.0)
        absolute = self._leakage.absolute(tangents.normals[active], offsets)
        return Start(tangents.labels[active], *absolute, self._in_use)

    def _load(self) -> None:
        """Start with the rows that do not depend on tangents, and without pairs."""
        n_r, n_q = self._n_l * self._n_s, self._n_l if self._has_budget else 0
        n_v = n_q if self._on_average else 0
        n_columns = n_r + n_q if n_q else 0
        defined = self._n_x + np.arange(n_columns)
        right = np.concatenate([np.ones(self._n_x), np.zeros(n_r + n_q), np.ones(min(n_v, 1))])
        left = np.where(np.arange(len(right)) < self._n_x + n_r + n_q, right, -INFINITY)
        rows = np.concatenate([defined, np.full(n_v, len(right) - 1)])
        values = np.concatenate([np.full(n_columns, -1.0), np.ones(n_v)])
        self._n_rows, self._n_columns = len(right), n_columns + n_v
        lower = np.where(np.arange(self._n_columns) < n_r, -INFINITY, 0.0)
        columns = Columns.from_rows(np.zeros(len(values)), rows[:, None], values[:, None])
        self._program.load(columns, left, right, column_lower=lower)

    def _first_pairs(self, start: Start | None) -> BoolArray:
        """Return the nearest labels of each symbol, and the label that serves all of them."""
        first = np.zeros(self._loss.shape, dtype=bool)
        if start is None:
            nearest = np.argsort(self._loss, axis=1, kind="stable")[:, :_NEAREST]
            first[np.arange(self._n_x)[:, None], nearest] = True
        else:
            first |= start.pairs
        first[:, (self._p_x @ self._loss).argmin()] = True  # which is always allowed
        return first

    def _add_pairs(self, symbols: IntArray, labels: IntArray) -> None:
        """Let symbols be sent to labels."""
        if not len(symbols):
            return
        share, n_s = self._p_x[symbols, None], self._n_s
        index = [symbols[:, None], self._n_x + labels[:, None] * n_s + np.arange(n_s)]
        values = [np.ones_like(share), share * self._deviations.T[symbols]]
        if self._has_budget:
            index.append(self._n_x + self._n_l * n_s + labels[:, None])
            values.append(share)
        costs = self._p_x[symbols] * self._loss[symbols, labels]
        self._program.add_columns(Columns.from_rows(costs, np.hstack(index), np.hstack(values)))
        self._has[symbols, labels] = True
        self._pairs.append((symbols, labels))

    def run(self) -> Outline:
        """Return the best design as far as the tangents so far tell, and let cheaper pairs in."""
        answer = self._program.run()
        if answer is None:
            raise SolverError(
                Message(
                    f"HiGHS could not solve a linear program with one output per label: "
                    f"{self._program.status!r}. ",
                    SMALLER,
                )
            )
        symbols, labels = (np.concatenate(part) for part in zip(*self._pairs, strict=True))
        channel = np.zeros(self._loss.shape)
        channel[symbols, labels] = np.maximum(answer.values[self._n_columns :], 0.0)
        self._in_use = channel > 0
        joint = self._p_x[:, None] * channel / channel.sum(axis=1, keepdims=True)
        prices, budget = self._prices(answer.duals)
        self._n_new = self._let_in(prices)
        return Outline.of_joint(joint, float(self._p_x @ prices.min(axis=1)) - budget)

    def _prices(self, duals: FloatArray) -> tuple[FloatArray, float]:
        """Return the loss of each pair with what its leakage costs, and what the budget costs.

        By duality ``sum P(x) min_l price(x, l) - budget`` is a bound for any multipliers of the
        tangents that are not negative, however inexact the program is solved. On average those of
        a label must not exceed the price of the budget.
        """
        deviations = self._deviations.T
        if not self._has_budget:
            charges = -duals[self._n_x : self._n_rows].reshape(self._n_l, self._n_s)
            return self._loss + deviations @ charges.T, 0.0
        tangents, budget = self._tangents, 0.0
        multipliers = np.maximum(-duals[self._n_rows :], 0.0) / tangents.scales
        if self._on_average:
            budget = max(-float(duals[self._n_rows - 1]), 0.0)
            total = np.bincount(tangents.labels, multipliers, self._n_l)
            share = np.minimum(1.0, budget / np.where(total > 0, total, np.inf))
            multipliers *= np.where(total > 0, share, 1.0)[tangents.labels]
        self._multipliers = multipliers
        charges = np.zeros((self._n_l, self._n_s))
        np.add.at(charges, tangents.labels, multipliers[:, None] * tangents.normals)
        refunds = np.bincount(tangents.labels, multipliers * tangents.offsets, self._n_l)
        return self._loss + deviations @ charges.T - refunds, budget

    def _let_in(self, prices: FloatArray) -> int:
        """Let symbols be sent to labels that are cheaper than what they have; return how many."""
        known = np.where(self._has, prices, np.inf).min(axis=1)
        saved = np.where(self._has, 0.0, known[:, None] - prices)
        labels = np.argsort(-saved, axis=1)[:, :_NEW_LABELS]
        symbols = np.broadcast_to(np.arange(self._n_x)[:, None], labels.shape)
        worth = saved[symbols, labels] > _NEGLIGIBLE
        self._add_pairs(symbols[worth], labels[worth])
        return int(worth.sum())

    def refine(self, outline: Outline) -> bool:
        """Add tangents that the outline exceeds; return whether the program is any different."""
        if not self._has_budget:
            return self._n_new > 0
        deviations = outline.points.times(self._deviations)
        known = limits = np.ones(len(deviations))
        if self._on_average:
            known = self._known(outline, deviations)
            limits = 1 / outline.weights  # where a label takes the whole budget
        over = self._leakage.value(deviations) - known > _NEGLIGIBLE_EXCESS
        if over.any():
            normals, offsets = self._leakage.cuts(deviations[over], limits[over])
            self._share(outline, deviations, known)
            self._pool.append((normals, offsets))
            self._add_tangents(outline.labels[over], normals, offsets)
        return bool(over.any()) or self._n_new > 0

    def _known(self, outline: Outline, deviations: FloatArray) -> FloatArray:
        """Return g of each label in use as its tangents have it."""
        tangents, place = self._tangents, np.full(self._n_l, -1)
        place[outline.labels] = np.arange(len(outline.labels))
        own = place[tangents.labels]
        heights = (tangents.normals * deviations[own]).sum(axis=1) - tangents.offsets
        known = np.zeros(len(outline.labels))
        np.maximum.at(known, own[own >= 0], heights[own >= 0])
        return known

    def _share(self, outline: Outline, deviations: FloatArray, known: FloatArray) -> None:
        """Give labels the tangents of others that they exceed the most."""
        if not self._pool:
            return
        normals, offsets = (np.concatenate(part) for part in zip(*self._pool, strict=True))
        excess = normals @ deviations.T - offsets[:, None] - known
        lengths = np.maximum(np.linalg.norm(normals, axis=1), np.finfo(float).tiny)
        depth = excess / lengths[:, None]
        for row in np.argsort(-depth, axis=0)[:_SHARED_TANGENTS]:
            over = excess[row, np.arange(len(row))] > _DEEP
            self._add_tangents(outline.labels[over], normals[row[over]], offsets[row[over]])

    def _add_tangents(self, labels: IntArray, normals: FloatArray, offsets: FloatArray) -> None:
        if not len(labels):
            return
        n_r, n_s = self._n_l * self._n_s, self._n_s
        own = offsets if self._on_average else offsets + 1.0
        index = [labels[:, None] * n_s + np.arange(n_s), n_r + labels[:, None]]
        values = [normals, -own[:, None]]
        if self._on_average:
            index.append(n_r + self._n_l + labels[:, None])
            values.append(np.full((len(labels), 1), -1.0))
        rows = np.hstack(values)
        scales = np.abs(rows).max(axis=1)
        zeros = np.zeros(len(labels))
        self._program.add_sparse_rows(np.hstack(index), rows / scales[:, None], zeros)
        self._tangents.add(labels, normals, own, scales)
