r"""Closed limits for divergences: sums over groups of a function of their lifts."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from scipy.special import erf

from .._typing import FloatArray
from ..measures import AlphaLift, Measure
from .closed_limit import NO_VARIANCE, ClosedLimit, Moments, Slopes
from .output_limits import Sample

# Where a lift is smaller, second derivatives are as if it were this: nearly nothing is lost.
_SMALL_LIFT = 0.2


class _SmoothLimit(ClosedLimit):
    """For ``L = sum p phi(l)`` with a smooth phi, on the scale of a square root.

    L has a bias of ``b = 1/2 sum p phi'' v``. A row (s, x) changes it by ``e_s w(x) + f_s``, with
    ``e = phi' - sum p phi' l`` and ``f = phi - L - phi' l + sum p phi' l``. Near the prior the
    bias is all there is, and spread like a chi-squared with |S| - 1 degrees of freedom.
    """

    @abstractmethod
    def _phi(self, lifts: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return phi and its first two derivatives."""

    @abstractmethod
    def _bend(self, lifts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the second and third derivative of phi, bounded near zero."""

    def _outer(self, value: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the leakage as a function of L, and its first two derivatives."""
        return value, np.ones_like(value), np.zeros_like(value)

    @property
    def _freedom(self) -> int:
        return max(len(self._p_s) - 1, 1)

    def _parts(self, found: Moments) -> tuple[FloatArray, ...]:
        """Return L with its bias, the bias, the noise of L, e, and f."""
        p, lifts = self._p_s, found.lifts
        phi, slope, _ = self._phi(lifts)
        value, mean = (p * phi).sum(axis=1), (p * slope * lifts).sum(axis=1)
        bias = 0.5 * (p * found.variances * self._bend(lifts)[0]).sum(axis=1)
        e = slope - mean[:, None]
        f = phi - slope * lifts + (mean - value)[:, None]
        return value + bias, bias, self._noise(found, e, f), e, f

    def _limit(self, found: Moments, z: float) -> FloatArray:
        value, bias, noise, _, _ = self._parts(found)
        leakage, slope, _ = self._outer(value)
        leakage = np.maximum(leakage, NO_VARIANCE)
        total = noise + 2 * bias**2 / self._freedom
        return np.sqrt(leakage) + z * slope * np.sqrt(total / leakage) / 2

    def _slopes(self, found: Moments, z: float) -> Slopes:
        p, lifts = self._p_s, found.lifts
        value, bias, noise, e, f = self._parts(found)
        leakage, slope, bend = self._outer(value)
        leakage = np.maximum(leakage, NO_VARIANCE)
        total = noise + 2 * bias**2 / self._freedom
        root, deviation = np.sqrt(leakage), np.maximum(np.sqrt(total), 1e-30)
        by_total = z * slope / (4 * deviation * root)
        by_value = slope / (2 * root) + z * deviation * (
            bend / (2 * root) - slope**2 / (4 * root**3)
        )
        by_bias = by_value + by_total * 4 * bias / self._freedom
        second, third = self._bend(lifts)
        by_lift = (
            by_value[:, None] * p * self._phi(lifts)[1]
            + by_total[:, None] * self._noise_by_lift(found, e, f)
            + by_bias[:, None] * 0.5 * p * found.variances * third
        )
        by_second = by_total[:, None] * e**2 / self.sample.n_rows
        return Slopes(by_lift, by_second, by_bias[:, None] * 0.5 * p * second, np.zeros(len(e)))

    def _noise_by_lift(self, found: Moments, e: FloatArray, f: FloatArray) -> FloatArray:
        """Return the gradient of the noise in the lifts."""
        p, lifts = self._p_s, found.lifts
        _, slope, bend = self._phi(lifts)
        by_e, by_f = self._slope_of_noise(found, e, f)
        through_e, through_f = by_e.sum(axis=1, keepdims=True), by_f.sum(axis=1, keepdims=True)
        through_mean = (through_f - through_e) * p * (bend * lifts + slope)
        own = (by_e - by_f * lifts) * bend + 2 * e * f * p / self.sample.n_rows
        return own + through_mean - through_f * p * slope


class KLLimit(_SmoothLimit):
    """For kl: ``phi = l log l - l + 1``."""

    def _phi(self, lifts: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        logs = np.log(lifts)
        return lifts * logs - lifts + 1, logs, 1 / lifts

    def _bend(self, lifts: FloatArray) -> tuple[FloatArray, FloatArray]:
        floor = np.maximum(lifts, _SMALL_LIFT)
        return 1 / floor, -1.0 * (lifts > _SMALL_LIFT) / floor**2


class Chi2Limit(_SmoothLimit):
    """For chi2: ``phi = (l - 1)^2``. Its epsilon is a square root by itself."""

    def _phi(self, lifts: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        return (lifts - 1) ** 2, 2 * (lifts - 1), np.full_like(lifts, 2.0)

    def _bend(self, lifts: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full_like(lifts, 2.0), np.zeros_like(lifts)


class AlphaLiftLimit(_SmoothLimit):
    """For alpha_lift: ``phi = l^alpha - alpha (l - 1) - 1``, and ``log(1 + L) / alpha``."""

    def __init__(self, sample: Sample, measure: Measure) -> None:
        super().__init__(sample, measure)
        assert isinstance(measure, AlphaLift)
        self._alpha = measure.alpha

    def _phi(self, lifts: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        a, power = self._alpha, lifts ** (self._alpha - 1)
        value = power * lifts - a * (lifts - 1) - 1
        return value, a * (power - 1), a * (a - 1) * power / lifts

    def _bend(self, lifts: FloatArray) -> tuple[FloatArray, FloatArray]:
        a, floor = self._alpha, np.maximum(lifts, _SMALL_LIFT)
        second = a * (a - 1) * floor ** (a - 2)
        return second, (lifts > _SMALL_LIFT) * (a - 2) * second / floor

    def _outer(self, value: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        a, whole = self._alpha, 1 + np.maximum(value, 0.0)
        return np.log(whole) / a, 1 / (a * whole), -1 / (a * whole**2)


class L1Limit(ClosedLimit):
    """For l1: ``sum p |l - 1|``, each term with the mean and the variance of a folded normal."""

    def _folded(self, found: Moments) -> tuple[FloatArray, ...]:
        """Return p (l - 1), its deviation, and of its absolute value: mean, sign, peak, rest.

        sign and peak : the derivatives of the mean in the first two; rest : the variance that a
        linear function with this sign does not have.
        """
        centre, width = self._p_s * (found.lifts - 1), self._p_s * np.sqrt(found.variances)
        sign = erf(centre / width / np.sqrt(2))
        peak = np.sqrt(2 / np.pi) * np.exp(-((centre / width) ** 2) / 2)
        mean = peak * width + centre * sign
        rest = width**2 * (1 - sign**2) + centre**2 - mean**2
        return centre, width, mean, sign, peak, np.maximum(rest, 0.0)

    def _e_and_f(self, found: Moments, sign: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = self._p_s
        e = sign - (sign * p * found.lifts).sum(axis=1, keepdims=True)
        return e, (sign * p).sum(axis=1, keepdims=True) - sign

    @property
    def _coherence(self) -> float:
        """Two groups deviate by the same amount, many by amounts of their own."""
        return len(self._p_s) / max(len(self._p_s) - 1, 1)

    def _limit(self, found: Moments, z: float) -> FloatArray:
        _, _, mean, sign, _, rest = self._folded(found)
        noise = self._noise(found, *self._e_and_f(found, sign))
        return mean.sum(axis=1) + z * np.sqrt(noise + self._coherence * rest.sum(axis=1))

    def _slopes(self, found: Moments, z: float) -> Slopes:
        p, lifts, n = self._p_s, found.lifts, self.sample.n_rows
        centre, width, mean, sign, peak, rest = self._folded(found)
        e, f = self._e_and_f(found, sign)
        total = self._noise(found, e, f) + self._coherence * rest.sum(axis=1)
        by_total = (z / (2 * np.sqrt(np.maximum(total, NO_VARIANCE))))[:, None]
        by_e, by_f = self._slope_of_noise(found, e, f)
        sum_e, sum_f = by_e.sum(axis=1, keepdims=True), by_f.sum(axis=1, keepdims=True)
        by_sign = by_e - p * lifts * sum_e - by_f + p * sum_f
        c = self._coherence
        rest_by_centre = 2 * centre - 2 * mean * sign - 2 * sign * peak * width
        rest_by_width = 2 * width * (1 - sign**2) - 2 * mean * peak + 2 * sign * peak * centre
        by_centre = sign + by_total * (by_sign * peak / width + c * rest_by_centre)
        by_width = peak + by_total * (c * rest_by_width - by_sign * peak * centre / width**2)
        direct = by_total * (2 * e * f * p / n - sign * p * sum_e)
        by_variance = by_width * p / (2 * np.sqrt(found.variances))
        by_second = by_total * e**2 / n
        return Slopes(p * by_centre + direct, by_second, by_variance, np.zeros(len(e)))
