r"""Limits in closed form, by the delta method.

Under ``Pbar``, the counts with one pseudo-row per group, an output has ``w = P(y|x) / P(y)`` and
lifts ``l = sum_x P(s,x) w / p`` and seconds ``A = sum_x P(s,x) w^2``; with ``B = sum_x P(x) w^2``
the variance of a lift is

    v = [(A - p l^2) (1/p^2 - 2 l/p) + l^2 (B - 1)] / n.

It grows with the chi-squared distance of W from P(X): an output that tells a rare symbol needs
many rows. And a group with few rows may have more where an output tells most: the limit is the
largest of those with the lifts as they are, and with more rows of any one group at the largest w.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from .._typing import FloatArray, IntArray
from ..measures import Measure
from .output_limits import OutputLimit, Sample

# Variances below this are rounding.
NO_VARIANCE = 1e-18

# A lift below this is as good as zero where it is divided by, or its logarithm is taken.
SMALLEST_LIFT = 1e-9

# How many more rows of a group there might have been: an exponential number, of mean 1.
MORE_ROWS = 2.0


@dataclass(frozen=True, eq=False)
class Moments:
    """What the limits of outputs are made of, one row for each output.

    w : (n, n_x); lifts, seconds, variances : (n, n_s); square : (n,), the B of the formula.
    """

    w: FloatArray
    lifts: FloatArray
    seconds: FloatArray
    square: FloatArray
    variances: FloatArray


@dataclass(frozen=True, eq=False)
class Slopes:
    """The gradient of a limit in lifts, seconds and variances, (n, n_s) each, and in square."""

    lifts: FloatArray
    seconds: FloatArray
    variances: FloatArray
    square: FloatArray


class ClosedLimit(OutputLimit):
    """A limit that is a function of lifts and their variances."""

    def __init__(self, sample: Sample, measure: Measure, more_rows: float = MORE_ROWS) -> None:
        super().__init__(sample, measure)
        self._p_s = sample.joint.sum(axis=1)
        self._p_x = sample.joint.sum(axis=0)
        # What the rows that there might be more weigh in each group, and in all.
        rows = sample.n_rows * self._p_s
        self._more_in_group = more_rows / (rows + more_rows)
        self._more_in_all = more_rows / (sample.n_rows + more_rows)

    @abstractmethod
    def _limit(self, found: Moments, z: float) -> FloatArray:
        """Return the limit of each output."""

    @abstractmethod
    def _slopes(self, found: Moments, z: float) -> Slopes:
        """Return how the limit changes."""

    def value(self, points: FloatArray, z: float) -> FloatArray:
        found = self._moments(points)
        return np.max([self._limit(case, z) for case in self._cases(found)], axis=0)

    def with_slope(self, points: FloatArray, z: float) -> tuple[FloatArray, FloatArray]:
        found = self._moments(points)
        cases = self._cases(found)
        limits = np.array([self._limit(case, z) for case in cases])
        worst = limits.argmax(axis=0)
        lifts = np.array([case.lifts for case in cases])[worst, np.arange(len(points))]
        slopes = self._slopes(_with_lifts(found, lifts), z)
        by_lift, by_peak = self._slope_of_cases(found, lifts, slopes.lifts, worst)
        more = self._slope_of_variances(found, slopes.variances)
        by_w = ((by_lift + more.lifts) / self._p_s) @ self.sample.joint
        by_w += 2 * found.w * ((slopes.seconds + more.seconds) @ self.sample.joint)
        by_w += 2 * found.w * (slopes.square + more.square)[:, None] * self._p_x
        by_w[np.arange(len(points)), found.w.argmax(axis=1)] += by_peak
        return limits.max(axis=0), self._slope_of_points(points, found.w, by_w)

    def _moments(self, points: FloatArray) -> Moments:
        ratio = points / self.sample.p_x
        w = ratio / (ratio @ self._p_x)[:, None]
        joint, p = self.sample.joint, self._p_s
        lifts, seconds, square = (w @ joint.T) / p, w**2 @ joint.T, w**2 @ self._p_x
        spread = (seconds - p * lifts**2) * (1 / p**2 - 2 * lifts / p)
        variances = (spread + lifts**2 * (square - 1)[:, None]) / self.sample.n_rows
        variances = np.maximum(variances, NO_VARIANCE)
        return Moments(w, np.maximum(lifts, SMALLEST_LIFT), seconds, square, variances)

    def _cases(self, found: Moments) -> list[Moments]:
        """Return the outputs as they are, and with more rows of each group at the largest w."""
        if len(self._p_s) == 1:
            return [found]
        peak = found.w.max(axis=1, keepdims=True)
        shrunk = found.lifts / (1 + self._more_in_all * (peak - 1))
        more = (found.lifts + self._more_in_group * (peak - found.lifts)) * (shrunk / found.lifts)
        each = [np.where(group, more, shrunk) for group in np.eye(len(self._p_s), dtype=bool)]
        return [found, *(_with_lifts(found, lifts) for lifts in each)]

    def _slope_of_cases(
        self, found: Moments, lifts: FloatArray, by_lift: FloatArray, worst: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return gradients in lifts as they are and in the largest w; worst : the case."""
        extra = worst > 0
        shrink = 1 + self._more_in_all * (found.w.max(axis=1) - 1)
        is_group = np.arange(lifts.shape[1]) == (worst - 1)[:, None]
        share = np.where(is_group, self._more_in_group, 0.0)
        scaled = by_lift / np.where(extra, shrink, 1.0)[:, None]
        by_scale = (by_lift * lifts).sum(axis=1) * self._more_in_all / shrink
        by_peak = np.where(extra, (scaled * share).sum(axis=1) - by_scale, 0.0)
        return scaled * (1 - share), by_peak

    def _slope_of_variances(self, found: Moments, by_variance: FloatArray) -> Slopes:
        """Return gradients in lifts, seconds and square from that in the variances."""
        p, lifts, n = self._p_s, found.lifts, self.sample.n_rows
        factor = 1 / p**2 - 2 * lifts / p
        by_lift = (
            -2 * p * lifts * factor
            - 2 * (found.seconds - p * lifts**2) / p
            + 2 * lifts * (found.square - 1)[:, None]
        )
        by_square = (by_variance * lifts**2).sum(axis=1) / n
        return Slopes(by_variance * by_lift / n, by_variance * factor / n, by_variance, by_square)

    def _slope_of_points(self, points: FloatArray, w: FloatArray, by_w: FloatArray) -> FloatArray:
        """Return the gradient in the points from that in w, which has a mean of 1."""
        scale = (points / self.sample.p_x) @ self._p_x
        centred = by_w - (by_w * w).sum(axis=1, keepdims=True) * self._p_x
        return centred / scale[:, None] / self.sample.p_x

    def _noise(self, found: Moments, e: FloatArray, f: FloatArray) -> FloatArray:
        """Return the variance of a mean over rows of ``e_s w + f_s``, where that mean is zero."""
        p, lifts = self._p_s, found.lifts
        terms = e**2 * found.seconds + 2 * e * f * p * lifts + p * f**2
        return np.maximum(terms.sum(axis=1), 0.0) / self.sample.n_rows

    def _slope_of_noise(
        self, found: Moments, e: FloatArray, f: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gradients of the noise in e and in f."""
        p, n = self._p_s, self.sample.n_rows
        by_e = 2 * (e * found.seconds + f * p * found.lifts) / n
        return by_e, 2 * p * (e * found.lifts + f) / n


def _with_lifts(found: Moments, lifts: FloatArray) -> Moments:
    return Moments(found.w, lifts, found.seconds, found.square, found.variances)
