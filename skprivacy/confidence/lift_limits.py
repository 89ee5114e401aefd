r"""Closed limits for measures that bound every lift, or every difference of two."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from .._typing import FloatArray
from ..measures import Lip, Measure
from .closed_limit import NO_VARIANCE, ClosedLimit, Moments, Slopes
from .output_limits import Sample


class _LargestLimit(ClosedLimit):
    """The largest of several functions of one lift and its variance."""

    @abstractmethod
    def _each(self, found: Moments, z: float) -> FloatArray:
        """Return all of them, (n, k n_s), those of one function side by side."""

    @abstractmethod
    def _each_slope(self, found: Moments, z: float) -> tuple[FloatArray, FloatArray]:
        """Return their derivatives in the lift and in its deviation."""

    def _limit(self, found: Moments, z: float) -> FloatArray:
        return np.maximum(self._each(found, z).max(axis=1), 0.0)

    def _slopes(self, found: Moments, z: float) -> Slopes:
        each, n_s = self._each(found, z), found.lifts.shape[1]
        top, rows = each.argmax(axis=1), np.arange(len(each))
        by_lift, by_deviation = np.zeros_like(found.lifts), np.zeros_like(found.lifts)
        of_lifts, of_deviations = self._each_slope(found, z)
        by_lift[rows, top % n_s] = of_lifts[rows, top]
        by_deviation[rows, top % n_s] = of_deviations[rows, top]
        by_variance = by_deviation / (2 * np.sqrt(found.variances))
        return Slopes(by_lift, np.zeros_like(by_lift), by_variance, np.zeros(len(rows)))


class MaxLiftLimit(_LargestLimit):
    """For max_lift: limits of logarithms of lifts, by those of their roots."""

    def _each(self, found: Moments, z: float) -> FloatArray:
        root = np.sqrt(found.lifts)
        return 2 * np.log(root + z * np.sqrt(found.variances) / (2 * root))

    def _each_slope(self, found: Moments, z: float) -> tuple[FloatArray, FloatArray]:
        lifts, spread = found.lifts, z * np.sqrt(found.variances)
        whole = 2 * lifts + spread
        return (2 * lifts - spread) / (lifts * whole), 2 * z / whole


class LipLimit(MaxLiftLimit):
    """For lip: the same, and limits of ``-log l``, in units of its own bound if there is one."""

    def __init__(self, sample: Sample, measure: Measure, epsilon: float) -> None:
        super().__init__(sample, measure)
        assert isinstance(measure, Lip)
        self._unit = 1.0 if measure.lower is None else epsilon / max(measure.lower, 1e-9)

    def _each(self, found: Moments, z: float) -> FloatArray:
        low = z * np.sqrt(found.variances) / found.lifts - np.log(found.lifts)
        return np.hstack([super()._each(found, z), self._unit * low])

    def _each_slope(self, found: Moments, z: float) -> tuple[FloatArray, FloatArray]:
        lifts, (by_lift, by_deviation) = found.lifts, super()._each_slope(found, z)
        low = -(1 / lifts + z * np.sqrt(found.variances) / lifts**2)
        return (
            np.hstack([by_lift, self._unit * low]),
            np.hstack([by_deviation, self._unit * z / lifts]),
        )


class ParityLimit(ClosedLimit):
    """For parity: the largest limit of half a difference of two lifts.

    With ``d = (l - l') / 2`` and ``D = (A - p l^2) / p`` its variance is
    ``[(D/p + D'/p') / 4 - d (D - D') + d^2 (B - 1)] / n``.
    """

    def _limit(self, found: Moments, z: float) -> FloatArray:
        half, variance, _, _ = self._largest(found, z)
        return half + z * np.sqrt(variance)

    def _largest(self, found: Moments, z: float) -> tuple[FloatArray, ...]:
        """Return d, its variance, and the two groups, for the pair with the largest limit."""
        p, lifts = self._p_s, found.lifts
        spread = (found.seconds - p * lifts**2) / p
        half = (lifts[:, :, None] - lifts[:, None]) / 2
        own = (spread / p)[:, :, None] + (spread / p)[:, None]
        terms = own / 4 - half * (spread[:, :, None] - spread[:, None])
        terms = terms + half**2 * (found.square - 1)[:, None, None]
        variance = np.maximum(terms / self.sample.n_rows, NO_VARIANCE)
        n_s, rows = len(p), np.arange(len(lifts))
        first, second = np.divmod(
            (half + z * np.sqrt(variance)).reshape(-1, n_s**2).argmax(1), n_s
        )
        return half[rows, first, second], variance[rows, first, second], first, second

    def _slopes(self, found: Moments, z: float) -> Slopes:
        p, n, rows = self._p_s, self.sample.n_rows, np.arange(len(found.lifts))
        half, variance, first, second = self._largest(found, z)
        spread = (found.seconds - p * found.lifts**2) / p
        by_variance = z / (2 * np.sqrt(variance)) / n
        gap = spread[rows, first] - spread[rows, second]
        by_half = 1 + by_variance * (2 * half * (found.square - 1) - gap)
        by_lift, by_second = np.zeros_like(spread), np.zeros_like(spread)
        for group, sign in ((first, 1.0), (second, -1.0)):
            by_spread = by_variance * (0.25 / p[group] - sign * half)
            by_lift[rows, group] += sign * by_half / 2 - 2 * by_spread * found.lifts[rows, group]
            by_second[rows, group] += by_spread / p[group]
        return Slopes(by_lift, by_second, np.zeros_like(by_lift), by_variance * half**2)
