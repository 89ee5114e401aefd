"""Programs for designs with one output per label: a linear one, and a smooth dual.

Leakage is in units of the threshold, and deviations in units of those that it allows: numbers are
of order 1 however small a budget is, because the tolerances of HiGHS are absolute.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.optimize import minimize

from .._numerics import NEGLIGIBLE
from .._typing import BoolArray, FloatArray, IntArray
from ..geometry import Points, Rows, normalised
from ..measures import Measure
from .leakage_function import LeakageFunction
from .linear_program import INFINITY, Columns, Program


class RelativeLeakage:
    """``g(unit d) / threshold``, with its tangents ``normal . d - offset``.

    Attributes
    ----------
    threshold : float
        The unit of g.
    deviations : ndarray of shape (n_s, n_x)
        Deviations of the symbols of X, in units of `unit`.
    unit : float
        The largest deviation that the threshold allows between the prior and a symbol.
    prior : ndarray of shape (n_s,)
        P(S).
    """

    def __init__(self, leakage: LeakageFunction, threshold: float) -> None:
        self._leakage, self.threshold, self.prior = leakage, threshold, leakage.prior
        symbols = leakage.deviations.T
        allowed = leakage.shrunk(symbols, threshold)[:, None] * symbols
        self.unit = float(np.abs(allowed).max()) or 1.0
        self.deviations = leakage.deviations / self.unit

    def value(self, deviations: FloatArray) -> FloatArray:
        """Return the leakage of each row of `deviations`, as a share of the threshold."""
        return self._leakage.value(self.unit * deviations) / self.threshold

    def slope(self, deviations: FloatArray) -> FloatArray:
        """Return a gradient at each row."""
        return self._leakage.slope(self.unit * deviations) * (self.unit / self.threshold)

    def shrunk(self, deviations: FloatArray, limits: FloatArray | float = 1.0) -> FloatArray:
        """Return each row, scaled down if it exceeds its limit."""
        share = self._leakage.shrunk(self.unit * deviations, limits * self.threshold)
        return share[:, None] * deviations

    def tangents(self, deviations: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the normals and offsets of the tangents at each row."""
        at = self.unit * deviations
        return self.relative(*self._leakage.tangents(at, self.threshold)[:2])

    def relative(self, normals: FloatArray, offsets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return tangents of g itself in these units."""
        return normals * (self.unit / self.threshold), offsets / self.threshold

    def absolute(self, normals: FloatArray, offsets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return tangents as tangents of g itself, valid for any threshold."""
        return normals * (self.threshold / self.unit), offsets * self.threshold


# Tangents of g with coordinates: the point where they touch, or the facets that they mix. --------

# Normals and offsets.
_NormalsOffsets: TypeAlias = tuple[FloatArray, FloatArray]

# Scale of coordinates: a step moves tangents this much further, so that fewer steps are needed.
_STRETCH = 10.0

# Tangents touch where lifts are at least this.
_SMALLEST_LIFT = 1e-9

# Step of finite differences of slopes, as a share of the largest that keeps lifts positive.
_STEP = 1e-6


class MovableTangents(ABC):
    """One tangent for each row of coordinates; whatever these are, it is below g."""

    def __init__(self, leakage: RelativeLeakage) -> None:
        self.leakage = leakage

    @abstractmethod
    def coordinates(self, deviations: FloatArray) -> FloatArray:
        """Return coordinates of tangents that are close to g at each row of `deviations`."""

    @abstractmethod
    def tangents(self, coordinates: FloatArray) -> _NormalsOffsets:
        """Return the tangents; rounding may lift them above g."""

    @abstractmethod
    def slope(self, coordinates: FloatArray, q: FloatArray, r: FloatArray) -> FloatArray:
        """Return the gradient of ``n . r - o q`` of each tangent in its coordinates."""

    def sure(self, coordinates: FloatArray) -> _NormalsOffsets:
        """Return the tangents, below g even after rounding."""
        return self.tangents(coordinates)

    def parts(self, coordinates: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return (tangent number, normals, offsets) of the facets that tangents consist of."""
        return np.arange(len(coordinates)), *self.sure(coordinates)

    @abstractmethod
    def translated(self, coordinates: FloatArray, before: MovableTangents) -> FloatArray:
        """Return our coordinates for tangents of `before`, which has another threshold."""


class TouchingTangents(MovableTangents):
    """Tangents that touch g at a point: for smooth measures.

    Coordinates are logarithms of the lifts of that point: any numbers, once centred, define one.
    """

    def coordinates(self, deviations: FloatArray) -> FloatArray:
        unit = self.leakage.unit
        return np.log(np.maximum(1 + unit * deviations, _SMALLEST_LIFT)) / (_STRETCH * unit)

    def _places(self, coordinates: FloatArray) -> FloatArray:
        unit, prior = self.leakage.unit, self.leakage.prior
        above = np.expm1(_STRETCH * unit * (coordinates - coordinates.max(axis=1, keepdims=True)))
        mean = (above @ prior)[:, None]
        return (above - mean) / (1 + mean) / unit

    def tangents(self, coordinates: FloatArray) -> _NormalsOffsets:
        places = self._places(coordinates)
        normals = self.leakage.slope(places)
        return normals, (normals * places).sum(axis=1) - self.leakage.value(places)

    def slope(self, coordinates: FloatArray, q: FloatArray, r: FloatArray) -> FloatArray:
        """Return the second derivative of g toward ``r / q``, by finite differences of slopes."""
        places, unit = self._places(coordinates), self.leakage.unit
        lifts, toward = 1 + unit * places, r - q[:, None] * places
        size = np.maximum(np.abs(toward).max(axis=1, keepdims=True), np.finfo(float).tiny)
        room = np.maximum(lifts.min(axis=1, keepdims=True), _SMALLEST_LIFT) / unit
        step = _STEP * room * (toward / size)
        ahead, behind = self.leakage.slope(places + step), self.leakage.slope(places - step)
        slope = _STRETCH * (ahead - behind) * (size / (2 * _STEP * room)) * lifts
        return slope - self.leakage.prior * lifts * slope.sum(axis=1, keepdims=True)

    def sure(self, coordinates: FloatArray) -> _NormalsOffsets:
        return self.leakage.tangents(self._places(coordinates))

    def translated(self, coordinates: FloatArray, before: MovableTangents) -> FloatArray:
        assert isinstance(before, TouchingTangents)
        scale = before.leakage.unit / self.leakage.unit
        return self.coordinates(scale * before._places(coordinates))


class MixedFacets(MovableTangents):
    """Mixtures of the facets of a polyhedral g; coordinates are logarithms of their shares.

    rows : normals of the facets, as in `Measure.facets`.
    """

    def __init__(self, leakage: RelativeLeakage, rows: FloatArray) -> None:
        super().__init__(leakage)
        toward = rows - (rows @ leakage.prior)[:, None]
        toward /= 2 * np.abs(toward).max(axis=1, keepdims=True)  # lifts remain positive
        self._normals, self._offsets = leakage.tangents(leakage.shrunk(toward / leakage.unit))

    def coordinates(self, deviations: FloatArray) -> FloatArray:
        # Every facet has some share.
        return (deviations @ self._normals.T - self._offsets) / _STRETCH

    def _shares(self, coordinates: FloatArray) -> FloatArray:
        below = coordinates - coordinates.max(axis=1, keepdims=True)
        return normalised(np.exp(_STRETCH * below))

    def tangents(self, coordinates: FloatArray) -> _NormalsOffsets:
        shares = self._shares(coordinates)
        return shares @ self._normals, shares @ self._offsets

    def slope(self, coordinates: FloatArray, q: FloatArray, r: FloatArray) -> FloatArray:
        shares = self._shares(coordinates)
        heights = r @ self._normals.T - q[:, None] * self._offsets
        return _STRETCH * shares * (heights - (shares * heights).sum(axis=1, keepdims=True))

    def parts(self, coordinates: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
        labels, facets = np.nonzero(self._shares(coordinates) > 1e-3)
        return labels, self._normals[facets], self._offsets[facets]

    def translated(self, coordinates: FloatArray, before: MovableTangents) -> FloatArray:
        return coordinates


def movable_tangents(
    leakage: LeakageFunction, measure: Measure, epsilon: float, threshold: float
) -> MovableTangents | None:
    """Return the movable tangents of a measure, or None if it has too many facets to mix."""
    relative = RelativeLeakage(leakage, threshold)
    try:
        facets = measure.facets(leakage.prior, epsilon)
    except ValueError:  # too many to list
        return None
    if facets is None:
        return TouchingTangents(relative)
    return MixedFacets(relative, facets[0]) if len(facets[0]) <= 200 else None


# A smooth dual of designs with one output per label, which quickly finds the tangents that matter.
#
# With a price for the leakage of each label l, and a tangent ``n_l . d - o_l`` of g, a loss is at
# least ``sum P(x) min_l (loss(x, l) + price_l (n_l . d(x) - o_l - 1))``; on average there is one
# price for all, and ``- price`` instead of the 1. With a soft minimum this is smooth in the prices
# and in the coordinates of the tangents: quasi-Newton steps take seconds where linear programs
# take minutes. g and d are in the units of `RelativeLeakage`.


@dataclass(frozen=True, eq=False)
class LabelTask:
    """P(X), losses of shape (n_x, n_labels), and whether leakage is bounded on average."""

    p_x: FloatArray
    loss: FloatArray
    on_average: bool


class SmoothedDual:
    """The dual, with the current prices and tangents.

    scale : the unit of prices, the size of the losses that matter; before : the dual of another
    threshold, to start where it ended.
    """

    def __init__(
        self, task: LabelTask, tangents: MovableTangents, scale: float, before: SmoothedDual | None
    ) -> None:
        self._tangents, self._leakage = tangents, tangents.leakage
        self.threshold = tangents.leakage.threshold
        self._p_x, loss, self._on_average = task.p_x, task.loss, task.on_average
        self._loss, self._scale, self._n_l = loss, scale, loss.shape[1]
        self._n_prices = 1 if self._on_average else self._n_l
        # The deviations of each symbol, and 1: products with them are most of the work.
        self._traits = np.vstack([self._leakage.deviations, np.ones(len(loss))]).T
        if before is None:
            prices = np.full(self._n_prices, 0.1)
            nearest = self._leakage.deviations.T[loss.argmin(axis=0)]
            coordinates = tangents.coordinates(self._leakage.shrunk(nearest))
        else:
            prices, coordinates = before._split(before._at)
            prices = prices * (self.threshold / before.threshold)
            coordinates = tangents.translated(coordinates, before._tangents)
        self._at: FloatArray = np.concatenate([prices, coordinates.ravel()])

    def run(self, temperature: float, n_steps: int) -> Outline:
        """Return the design after up to `n_steps` at a temperature of the soft minimum."""
        self._revive(temperature)
        options = {"maxcor": 20, "gtol": 1e-8, "ftol": 1e-13, "maxiter": n_steps}
        n_free = len(self._at) - self._n_prices
        bounds = [(0, None)] * self._n_prices + [(None, None)] * n_free
        given = {"method": "L-BFGS-B", "bounds": bounds, "options": options}
        answer = minimize(self._objective, self._at, (temperature,), jac=True, **given)
        if np.isfinite(answer.x).all():
            self._at = answer.x
        charged = self._charged()
        budget = self._scale * float(self._at[0]) if self._on_average else 0.0
        least = charged.min(axis=1)
        shares = _softmin(charged, temperature)[1]
        # Drop numerical residue of the temperature, which HiGHS rejects.
        shares[shares < 1e-6 * shares.max(axis=0)] = 0.0
        joint = self._p_x[:, None] * normalised(shares)
        return Outline.of_joint(joint, float(self._p_x @ least) - budget)

    def start(self, temperature: float) -> Start:
        """Return the tangents, and the pairs that are not far too expensive."""
        charged = self._charged()
        pairs = charged <= charged.min(axis=1, keepdims=True) + 12.0 * temperature
        labels, *parts = self._tangents.parts(self._split(self._at)[1])
        return Start(LabelTangents(labels, *self._leakage.absolute(*parts)), pairs)

    def _split(self, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the prices, and the coordinates of the tangents."""
        return at[: self._n_prices], at[self._n_prices :].reshape(self._n_l, -1)

    def _charged(self) -> FloatArray:
        """Return the loss of each pair plus the price of its leakage, by `sure` tangents."""
        prices, coordinates = self._split(self._at)
        return self._costs(prices, *self._tangents.sure(coordinates))

    def _costs(self, prices: FloatArray, normals: FloatArray, offsets: FloatArray) -> FloatArray:
        allowed = 0.0 if self._on_average else 1.0
        terms = self._scale * prices * np.vstack([normals.T, -offsets - allowed])
        costs: FloatArray = self._traits @ terms
        costs += self._loss
        return costs

    def _objective(self, at: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        """Return minus the smoothed dual, in units of the scale, and its gradient."""
        prices, coordinates = self._split(at)
        normals, offsets = self._tangents.tangents(coordinates)
        least, weights = _softmin(self._costs(prices, normals, offsets), temperature)
        q, r = self._moments(weights)
        value = float(self._p_x @ least) / self._scale
        by_price = (normals * r).sum(axis=1) - offsets * q
        if self._on_average:
            value -= float(prices[0])
            by_price = np.array([by_price.sum() - 1.0])
        else:
            by_price -= q
        each = np.broadcast_to(prices, self._n_l)[:, None]
        by_coordinates = each * self._tangents.slope(coordinates, q, r)
        return -value, -np.concatenate([by_price, by_coordinates.ravel()])

    def _moments(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return q and r of each label."""
        of_symbols = (self._p_x / weights.sum(axis=1))[:, None]
        moments: FloatArray = weights.T @ (of_symbols * self._traits)
        return moments[:, -1], moments[:, :-1]

    def _revive(self, temperature: float) -> None:
        """Move tangents with almost no price to the posteriors of their labels.

        The optimiser does not move them without a price, even if they are on the wrong side.
        """
        q, r = self._moments(_softmin(self._charged(), temperature)[1])
        deviations = r / np.maximum(q, np.finfo(float).tiny)[:, None]
        prices, coordinates = self._split(self._at)
        dead = np.broadcast_to(prices < 1e-3, self._n_l)
        if not self._on_average:
            dead = dead & (self._leakage.value(deviations) > 1)
            deviations = self._leakage.shrunk(deviations)
        coordinates[dead] = self._tangents.coordinates(deviations[dead])


def _softmin(values: FloatArray, temperature: float) -> tuple[FloatArray, FloatArray]:
    """Return the soft minimum of each row, and weights of its entries, in place of `values`."""
    smallest = values.min(axis=1)
    values -= smallest[:, None]
    values *= -1 / temperature
    np.exp(values, out=values)
    return smallest - temperature * np.log(values.sum(axis=1)), values


# The linear program that bounds a design with one output per label from outside. -----------------
#
# Outputs for which the same label is best can be merged: their loss is linear, and a convex
# leakage of the merged output is no larger. So with ``m(x, l) = P(x) P(l|x)``, ``q_l = sum_x m(x,
# l)`` and ``r_l = sum_x m(x, l) d(x)``, where d(x) are the deviations of the lifts of x from 1,
# the best design minimises ``sum m(x, l) loss(x, l)`` under the convex ``q g(r / q) <= t q`` for
# each label, or ``sum q g(r / q) <= t`` on average. A tangent ``g(d) >= n . d - o`` is linear in r
# and q. Here g is in units of t, and d in units of what t allows.


@dataclass(frozen=True, eq=False)
class Outline:
    """The design of one round, which may exceed the budget, and a bound.

    points : P(X|l) for the labels in use; labels : their labels; weights : P(l); loss : no design
    within the budget has a smaller one.
    """

    points: Points
    labels: IntArray
    weights: FloatArray
    loss: float

    @classmethod
    def of_joint(cls, joint: FloatArray, loss: float) -> Outline:
        """Return the outline of P(x, l), of shape (n_x, n_labels)."""
        q = joint.sum(axis=0)
        used = np.flatnonzero(q > NEGLIGIBLE)
        return cls(Points.from_dense((joint[:, used] / q[used]).T), used, q[used], loss)


@dataclass(frozen=True, eq=False)
class LabelTangents(Rows):
    """Tangents ``normals . r - offsets q``, each for one label."""

    labels: IntArray
    normals: FloatArray
    offsets: FloatArray


@dataclass(frozen=True, eq=False)
class ScaledTangents(LabelTangents):
    """Tangents that are rows of a program, and the numbers that these rows are divided by."""

    scales: FloatArray


@dataclass(frozen=True, eq=False)
class Start:
    """Tangents of g itself, and a mask of pairs (x, l), for the first round of a program.

    They are valid for any budget, so that one program can start where another ended.
    """

    tangents: LabelTangents
    pairs: BoolArray

    def also(self, other: Start | None) -> Start:
        """Return the tangents and pairs of both."""
        if other is None:
            return self
        tangents = LabelTangents.concatenate([self.tangents, other.tangents])
        return Start(tangents, self.pairs | other.pairs)


class LabelProgram:
    r"""The program, with the tangents and the pairs (x, l) that were needed so far.

        minimise    sum P(x) loss(x, l) c(x, l)                   c(x, l) = P(l|x) >= 0
        subject to  sum_l c(x, l) = 1                             for all x,
                    sum_x P(x) d(x) c(x, l) - r_l = 0             for all l,
                    sum_x P(x) c(x, l) - q_l = 0                  for all l,
                    n . r_l - (o + 1) q_l <= 0                    for the tangents of l;
        on average  n . r_l - o q_l - v_l <= 0  and  sum_l v_l <= 1,  v >= 0, instead.

    The columns are r, q, v and the pairs; the rows in the order above, tangents last. With t = 0,
    r is zero: the only columns are the pairs, and there are no rows of q.

    threshold : the largest g that is allowed; start : the end of another program, or None;
    max_pivots : the largest number of simplex pivots, in all rounds.
    """

    def __init__(
        self,
        task: LabelTask,
        leakage: LeakageFunction,
        threshold: float,
        start: Start | None,
        max_pivots: int,
    ) -> None:
        self._p_x, self._loss, self._on_average = task.p_x, task.loss, task.on_average
        loss, self._has_budget = task.loss, threshold > 0
        if self._has_budget:
            self._leakage = RelativeLeakage(leakage, threshold)
        self._deviations = self._leakage.deviations if self._has_budget else leakage.deviations
        self._n_s, (self._n_x, self._n_l) = len(self._deviations), loss.shape
        self._for_all = int((task.p_x @ loss).argmin())  # the label that is always allowed
        self._has = np.zeros(loss.shape, dtype=bool)
        self._pairs: list[tuple[IntArray, IntArray]] = []
        nothing = np.zeros(0)
        no_tangents = nothing.astype(int), np.zeros((0, self._n_s)), nothing, nothing
        self._tangents = ScaledTangents(*no_tangents)
        self._pool: list[tuple[FloatArray, FloatArray]] = []
        self._program = Program(max_pivots)
        self._load()
        self._add_pairs(*np.nonzero(self._first_pairs(start)))
        self._multipliers, self._in_use = nothing, np.zeros(loss.shape, dtype=bool)
        if start is not None and self._has_budget:
            tangents = self._leakage.relative(start.tangents.normals, start.tangents.offsets)
            self._pool.append(tangents)
            self._add_tangents(start.tangents.labels, *tangents)
        if self._has_budget and self._n_s == 2 and not self._on_average:
            self._add_ends()

    def _add_ends(self) -> None:
        """Add the tangents at both ends of what two groups may differ by: no others are needed."""
        ends = self._deviations[:, [self._deviations[0].argmin(), self._deviations[0].argmax()]].T
        tangents = self._leakage.tangents(self._leakage.shrunk(ends))
        normals, offsets = (np.repeat(part, self._n_l, axis=0) for part in tangents)
        self._add_tangents(np.tile(np.arange(self._n_l), 2), normals, offsets)

    def end(self) -> Start:
        """Return the tangents and the pairs that mattered in the last round, if there was any."""
        active = self._tangents[np.flatnonzero(self._multipliers > 0)]
        offsets = active.offsets - (0.0 if self._on_average else 1.0)
        absolute = self._leakage.absolute(active.normals, offsets)
        return Start(LabelTangents(active.labels, *absolute), self._in_use)

    def _load(self) -> None:
        """Load the program without tangents and pairs."""
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
        """Return the 8 labels nearest to each symbol, and the label that is best for all."""
        first = np.zeros(self._loss.shape, dtype=bool) if start is None else start.pairs.copy()
        if start is None:
            nearest = np.argsort(self._loss, axis=1, kind="stable")[:, :8]
            np.put_along_axis(first, nearest, True, axis=1)
        first[:, self._for_all] = True
        return first

    def _add_pairs(self, symbols: IntArray, labels: IntArray) -> None:
        """Add columns for pairs of a symbol and a label."""
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

    @property
    def is_spent(self) -> bool:
        """Whether the last round has needed more pivots than were left."""
        return self._program.is_spent

    def run(self) -> Outline | None:
        """Return the best design under the tangents so far, and add cheaper pairs.

        None if HiGHS finds none, or not in the pivots that are left.
        """
        answer = self._program.run()
        if answer is None:
            return None
        symbols, labels = (np.concatenate(part) for part in zip(*self._pairs, strict=True))
        channel = np.zeros(self._loss.shape)
        channel[symbols, labels] = np.maximum(answer.values[self._n_columns :], 0.0)
        self._in_use = channel > 0
        channel[~self._in_use.any(axis=1), self._for_all] = 1.0  # rows that HiGHS has lost
        joint = self._p_x[:, None] * normalised(channel)
        prices, budget = self._prices(answer.duals)
        self._add_cheaper_pairs(prices)
        return Outline.of_joint(joint, float(self._p_x @ prices.min(axis=1)) - budget)

    def _prices(self, duals: FloatArray) -> tuple[FloatArray, float]:
        """Return the loss of each pair plus the price of its leakage, and the price of the budget.

        By duality ``sum P(x) min_l price(x, l) - budget`` is a bound for any nonnegative
        multipliers of the tangents, however inexact the program was solved. On average, those of
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

    def _add_cheaper_pairs(self, prices: FloatArray) -> None:
        """Add pairs of symbols with up to 5 labels that are cheaper than those they have."""
        known = np.where(self._has, prices, np.inf).min(axis=1)
        saved = np.where(self._has, 0.0, known[:, None] - prices)
        labels = np.argsort(-saved, axis=1)[:, :5]
        symbols = np.broadcast_to(np.arange(self._n_x)[:, None], labels.shape)
        worth = saved[symbols, labels] > NEGLIGIBLE
        self._add_pairs(symbols[worth], labels[worth])
        self._is_new = bool(worth.any())

    def refine(self, outline: Outline) -> bool:
        """Add tangents that the outline exceeds; return whether the program has changed."""
        if not self._has_budget:
            return self._is_new
        deviations = outline.points.times(self._deviations)
        known = limits = np.ones(len(deviations))
        if self._on_average:
            # g of each label in use, according to its tangents.
            tangents, place, known = self._tangents, np.full(self._n_l, -1), np.zeros(len(known))
            place[outline.labels] = np.arange(len(known))
            at = place[tangents.labels]
            heights = (tangents.normals * deviations[at]).sum(axis=1) - tangents.offsets
            np.maximum.at(known, at[at >= 0], heights[at >= 0])
            limits = 1 / outline.weights  # where a label uses the whole budget
        over = self._leakage.value(deviations) - known > 1e-6
        if over.any():
            # By convexity, a tangent where the limit is reached on the way to the posterior of a
            # label exceeds the limit at that posterior.
            places = self._leakage.shrunk(deviations[over], limits[over])
            new = self._leakage.tangents(places)
            self._add_shared(outline, deviations, known)
            self._pool.append(new)
            self._add_tangents(outline.labels[over], *new)
        return bool(over.any()) or self._is_new

    def _add_shared(self, outline: Outline, deviations: FloatArray, known: FloatArray) -> None:
        """Add, for each label, the two tangents of other labels that it exceeds most."""
        if not self._pool:
            return
        normals, offsets = (np.concatenate(part) for part in zip(*self._pool, strict=True))
        excess = normals @ deviations.T - offsets[:, None] - known
        lengths = np.maximum(np.linalg.norm(normals, axis=1), np.finfo(float).tiny)
        depth = excess / lengths[:, None]
        for row in np.argsort(-depth, axis=0)[:2]:
            over = excess[row, np.arange(len(row))] > 1e-3
            self._add_tangents(outline.labels[over], normals[row[over]], offsets[row[over]])

    def _add_tangents(self, labels: IntArray, normals: FloatArray, offsets: FloatArray) -> None:
        if not len(labels):
            return
        n_r, n_s = self._n_l * self._n_s, self._n_s
        offsets = offsets if self._on_average else offsets + 1.0
        index = [labels[:, None] * n_s + np.arange(n_s), n_r + labels[:, None]]
        values = [normals, -offsets[:, None]]
        if self._on_average:
            index.append(n_r + self._n_l + labels[:, None])
            values.append(np.full((len(labels), 1), -1.0))
        rows, zeros = np.hstack(values), np.zeros(len(labels))
        scales = np.abs(rows).max(axis=1)
        self._program.add_rows(rows / scales[:, None], zeros, np.hstack(index))
        new = ScaledTangents(labels, normals, offsets, scales)
        self._tangents = ScaledTangents.concatenate([self._tangents, new])
