r"""A smooth dual of designs with one output per label: it soon knows which tangents matter.

With a price for the leakage of each label l, and a tangent ``n_l . d - o_l`` of g, a loss is at
least ``sum P(x) min_l (loss(x, l) + price_l (n_l . d(x) - o_l - 1))``; on average there is one
price for all, and ``- price`` instead of the 1. With a soft minimum this is smooth in the prices
and in the places where the tangents touch: quasi-Newton steps take seconds where linear programs
take minutes. g and d are in the units of `RelativeLeakage`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from .._typing import FloatArray
from .label_program import Outline, Start
from .relative_leakage import RelativeLeakage

# Of the price of a label; prices are in units of the scale of losses.
_FIRST_PRICE = 0.1
_NO_PRICE = 1e-3

# Lifts are at least this where tangents start.
_SMALLEST_LIFT = 1e-9

# Places are easier to move than prices by so much, which takes fewer steps.
_STRETCH = 10.0

# How far to look to see a slope change, as a share of what keeps lifts positive.
_STEP = 1e-6

# Pairs whose price is above that of the best label by so many temperatures hardly matter.
_FAR = 12.0

_OPTIONS = {"maxcor": 20, "gtol": 1e-8, "ftol": 1e-13}


class SmoothedDual:
    """The dual, with the prices and places found so far.

    Parameters
    ----------
    leakage : RelativeLeakage
    p_x : ndarray of shape (n_x,)
    loss : ndarray of shape (n_x, n_labels)
    scale : float
        The size of the losses that matter.
    on_average : bool
        Whether leakage is bounded on average over the outputs.
    before : SmoothedDual, default=None
        One of another threshold, to start where it has ended. Only on average: elsewhere many
        labels would have to change sides, which takes a higher temperature.
    """

    def __init__(
        self,
        leakage: RelativeLeakage,
        p_x: FloatArray,
        loss: FloatArray,
        scale: float,
        on_average: bool,
        before: SmoothedDual | None = None,
    ) -> None:
        self._leakage, self._p_x, self._loss = leakage, p_x, loss
        self._scale, self._on_average = scale, on_average
        self._n_l, self._n_prices = loss.shape[1], 1 if on_average else loss.shape[1]
        if before is None:
            prices = np.full(self._n_prices, _FIRST_PRICE)
            places = leakage.shrunk(leakage.deviations.T[loss.argmin(axis=0)])
        else:
            prices, places = before.end(leakage)
        self._at = np.concatenate([prices, self._coordinates(places).ravel()])

    def end(self, leakage: RelativeLeakage) -> tuple[FloatArray, FloatArray]:
        """Return the prices and the places, in the units of another threshold."""
        places = self._places(self._at)[0] * (self._leakage.unit / leakage.unit)
        prices = self._at[: self._n_prices] * (leakage.threshold / self._leakage.threshold)
        return prices, places

    def run(self, temperature: float, n_steps: int) -> Outline:
        """Take up to so many steps at a temperature of the soft minimum; return what is found."""
        self._revive(temperature)
        free = (None, None)
        answer = minimize(
            self._objective,
            self._at,
            args=(temperature,),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * self._n_prices + [free] * (len(self._at) - self._n_prices),
            options=_OPTIONS | {"maxiter": n_steps},
        )
        if np.isfinite(answer.x).all():
            self._at = answer.x
        prices, budget = self._true_prices()
        joint = self._p_x[:, None] * _softmin(self._charged(self._at)[0], temperature)[1]
        return Outline.of_joint(joint, float(self._p_x @ prices.min(axis=1)) - budget)

    def start(self, temperature: float) -> Start:
        """Return the tangents, and the pairs that are not far too expensive."""
        prices, _ = self._true_prices()
        pairs = prices <= prices.min(axis=1, keepdims=True) + _FAR * temperature
        tangents = self._leakage.tangents(self._places(self._at)[0])
        return Start(np.arange(self._n_l), *self._leakage.absolute(*tangents), pairs)

    def _coordinates(self, deviations: FloatArray) -> FloatArray:
        """Return logarithms of lifts: any such numbers, centred by `_places`, are a posterior."""
        unit = self._leakage.unit
        return np.log(np.maximum(1 + unit * deviations, _SMALLEST_LIFT)) / (_STRETCH * unit)

    def _places(self, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the deviations where tangents touch, and the lifts there."""
        unit, prior = self._leakage.unit, self._leakage.prior
        coordinates = at[self._n_prices :].reshape(self._n_l, -1)
        above = np.expm1(_STRETCH * unit * (coordinates - coordinates.max(axis=1, keepdims=True)))
        mean = (above @ prior)[:, None]
        places = (above - mean) / (1 + mean) / unit
        return places, 1 + unit * places

    def _prices_of(self, at: FloatArray) -> FloatArray:
        """Return the price of each label."""
        return self._scale * np.broadcast_to(at[: self._n_prices], self._n_l)

    def _charged(self, at: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the loss of each pair with what its leakage costs, and the tangents."""
        places, _ = self._places(at)
        normals = self._leakage.slope(places)
        offsets = (normals * places).sum(axis=1) - self._leakage.value(places)
        return self._with_costs(at, normals, offsets), normals, offsets

    def _with_costs(self, at: FloatArray, normals: FloatArray, offsets: FloatArray) -> FloatArray:
        allowed = 0.0 if self._on_average else 1.0
        leakage = self._leakage.deviations.T @ normals.T - offsets - allowed
        return self._loss + leakage * self._prices_of(at)

    def _true_prices(self) -> tuple[FloatArray, float]:
        """Return charged losses that rounding leaves too small, and the price of the budget."""
        tangents = self._leakage.tangents(self._places(self._at)[0])
        budget = self._scale * float(self._at[0]) if self._on_average else 0.0
        return self._with_costs(self._at, *tangents), budget

    def _objective(self, at: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        """Return minus the smoothed dual, in units of the scale, and its gradient."""
        charged, normals, offsets = self._charged(at)
        least, shares = _softmin(charged, temperature)
        q, r = self._moments(shares)
        prices = self._prices_of(at)
        exceeding = (normals * r).sum(axis=1) - offsets * q
        value = float(self._p_x @ least)
        if self._on_average:
            value -= float(prices[0])
            by_price = np.array([exceeding.sum() - 1.0])
        else:
            by_price = exceeding - q
        by_place = prices[:, None] * self._turned(at, r - q[:, None] * self._places(at)[0])
        gradient = np.concatenate([by_price, by_place.ravel() / self._scale])
        return -value / self._scale, -gradient

    def _moments(self, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return q and r of each label."""
        joint = self._p_x[:, None] * shares
        return joint.sum(axis=0), joint.T @ self._leakage.deviations.T

    def _turned(self, at: FloatArray, toward: FloatArray) -> FloatArray:
        """Return how tangents that turn toward directions change, as slopes of coordinates.

        The derivative by a place is the second derivative of g there, applied to the direction.
        """
        places, lifts = self._places(at)
        size = np.maximum(np.abs(toward).max(axis=1, keepdims=True), np.finfo(float).tiny)
        room = np.maximum(lifts.min(axis=1, keepdims=True), _SMALLEST_LIFT) / self._leakage.unit
        step = _STEP * room * (toward / size)
        ahead, behind = self._leakage.slope(places + step), self._leakage.slope(places - step)
        slope = _STRETCH * (ahead - behind) * (size / (2 * _STEP * room)) * lifts
        return slope - self._leakage.prior * lifts * slope.sum(axis=1, keepdims=True)

    def _revive(self, temperature: float) -> None:
        """Let tangents without a price touch where their label is.

        Without a price nothing moves them, even if they are on the wrong side.
        """
        charged, *_ = self._charged(self._at)
        q, r = self._moments(_softmin(charged, temperature)[1])
        deviations = r / np.maximum(q, np.finfo(float).tiny)[:, None]
        dead = np.broadcast_to(self._at[: self._n_prices] < _NO_PRICE, self._n_l)
        if not self._on_average:
            dead = dead & (self._leakage.value(deviations) > 1)
            deviations = self._leakage.shrunk(deviations)
        places: Any = self._at[self._n_prices :].reshape(self._n_l, -1)
        places[dead] = self._coordinates(deviations[dead])


def _softmin(values: FloatArray, temperature: float) -> tuple[FloatArray, FloatArray]:
    """Return the soft minimum of each row, and the share that each of its numbers has in it."""
    smallest = values.min(axis=1, keepdims=True)
    weights = np.exp((smallest - values) / temperature)
    total = weights.sum(axis=1, keepdims=True)
    return (smallest - temperature * np.log(total))[:, 0], weights / total
