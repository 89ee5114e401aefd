r"""A smooth dual of designs with one output per label: it soon knows which tangents matter.

With a price for the leakage of each label l, and a tangent ``n_l . d - o_l`` of g, a loss is at
least ``sum P(x) min_l (loss(x, l) + price_l (n_l . d(x) - o_l - 1))``; on average there is one
price for all, and ``- price`` instead of the 1. With a soft minimum this is smooth in the prices
and in the coordinates of the tangents: quasi-Newton steps take seconds where linear programs take
minutes. g and d are in the units of `RelativeLeakage`.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from .._typing import FloatArray
from .label_program import Outline, Start
from .movable_tangents import MovableTangents

# Of the leakage of a label at first, and what is none; in units of the scale of losses.
_FIRST_PRICE = 0.1
_NO_PRICE = 1e-3

# Pairs whose price is above that of the best label by so many temperatures hardly matter.
_FAR = 12.0

_OPTIONS = {"maxcor": 20, "gtol": 1e-8, "ftol": 1e-13}


class SmoothedDual:
    """The dual, with the prices and tangents found so far.

    Parameters
    ----------
    tangents : MovableTangents
    p_x : ndarray of shape (n_x,)
    loss : ndarray of shape (n_x, n_labels)
    scale : float
        The size of the losses that matter.
    on_average : bool
        Whether leakage is bounded on average over the outputs.
    before : SmoothedDual, default=None
        One of another threshold, to start where it has ended.
    """

    def __init__(
        self,
        tangents: MovableTangents,
        p_x: FloatArray,
        loss: FloatArray,
        scale: float,
        on_average: bool,
        before: SmoothedDual | None = None,
    ) -> None:
        self._tangents, self._leakage = tangents, tangents.leakage
        self._p_x, self._loss, self._scale, self._on_average = p_x, loss, scale, on_average
        self._n_l, self._n_prices = loss.shape[1], 1 if on_average else loss.shape[1]
        if before is None:
            prices = np.full(self._n_prices, _FIRST_PRICE)
            nearest = self._leakage.deviations.T[loss.argmin(axis=0)]
            coordinates = tangents.coordinates(self._leakage.shrunk(nearest))
        else:
            prices, coordinates = before._split(before._at)
            prices = prices * (self._leakage.threshold / before.threshold)
            coordinates = tangents.translated(coordinates, before._tangents)
        self._at: FloatArray = np.concatenate([prices, coordinates.ravel()])

    @property
    def threshold(self) -> float:
        """The threshold of g."""
        return self._leakage.threshold

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
        charged = self._charged()
        budget = self._scale * float(self._at[0]) if self._on_average else 0.0
        joint = self._p_x[:, None] * _softmin(charged, temperature)[1]
        return Outline.of_joint(joint, float(self._p_x @ charged.min(axis=1)) - budget)

    def start(self, temperature: float) -> Start:
        """Return the tangents, and the pairs that are not far too expensive."""
        charged = self._charged()
        pairs = charged <= charged.min(axis=1, keepdims=True) + _FAR * temperature
        labels, *parts = self._tangents.parts(self._split(self._at)[1])
        return Start(labels, *self._leakage.absolute(*parts), pairs)

    def _split(self, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the prices, and the coordinates of the tangents."""
        return at[: self._n_prices], at[self._n_prices :].reshape(self._n_l, -1)

    def _charged(self) -> FloatArray:
        """Return the loss of each pair with what its leakage costs, by tangents that are sure."""
        prices, coordinates = self._split(self._at)
        return self._with_costs(prices, *self._tangents.sure(coordinates))

    def _with_costs(
        self, prices: FloatArray, normals: FloatArray, offsets: FloatArray
    ) -> FloatArray:
        allowed = 0.0 if self._on_average else 1.0
        leakage = self._leakage.deviations.T @ normals.T - offsets - allowed
        return self._loss + self._scale * prices * leakage

    def _objective(self, at: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        """Return minus the smoothed dual, in units of the scale, and its gradient."""
        prices, coordinates = self._split(at)
        normals, offsets = self._tangents.tangents(coordinates)
        least, shares = _softmin(self._with_costs(prices, normals, offsets), temperature)
        q, r = self._moments(shares)
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

    def _moments(self, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return q and r of each label."""
        joint = self._p_x[:, None] * shares
        return joint.sum(axis=0), joint.T @ self._leakage.deviations.T

    def _revive(self, temperature: float) -> None:
        """Move tangents without a price to where their label is.

        Without a price nothing moves them, even if they are on the wrong side.
        """
        q, r = self._moments(_softmin(self._charged(), temperature)[1])
        deviations = r / np.maximum(q, np.finfo(float).tiny)[:, None]
        prices, coordinates = self._split(self._at)
        dead = np.broadcast_to(prices < _NO_PRICE, self._n_l)
        if not self._on_average:
            dead = dead & (self._leakage.value(deviations) > 1)
            deviations = self._leakage.shrunk(deviations)
        coordinates[dead] = self._tangents.coordinates(deviations[dead])


def _softmin(values: FloatArray, temperature: float) -> tuple[FloatArray, FloatArray]:
    """Return the soft minimum of each row, and the share that each of its numbers has in it."""
    smallest = values.min(axis=1, keepdims=True)
    weights = np.exp((smallest - values) / temperature)
    total = weights.sum(axis=1, keepdims=True)
    return (smallest - temperature * np.log(total))[:, 0], weights / total
