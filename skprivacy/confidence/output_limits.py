r"""Limits of what one output leaks in the population, as functions of its posterior of X.

The rows are n draws from a joint that nobody knows. Under ``Pbar``, the counts with one pseudo-row
per group, an output W has lifts l, and its root leakage (the square root for kl and alpha_lift,
which are quadratic near the prior) has a mean and a standard deviation to second order. The limit
``U_z(W)`` is the mean plus z standard deviations. It grows with the chi-squared distance of W from
P(X) divided by n: an output that tells a rare symbol needs many rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._typing import FloatArray
from ..measures import Measure
from ..measures.base import ShippedMeasure

# Variances below this are rounding.
_NO_VARIANCE = 1e-18

# A lift below this is as good as zero where it is divided by, or its logarithm is taken.
_SMALL_LIFT = 0.2
_SMALLEST_LIFT = 1e-9

# Measures whose epsilon is quadratic in the deviations of lifts from 1.
_QUADRATIC = {"kl", "alpha_lift"}

_FEWEST_DRAWS, _DRAWS_PER_SYMBOL = 120, 10
_MOST_NUMBERS = 4_000_000


@dataclass(frozen=True, eq=False)
class Sample:
    """Counts of pairs (s, x), every symbol of X with rows, and what they say about the joint.

    p_x : as counted; joint : with one pseudo-row per group, spread as p_x; n_rows : of both.
    """

    counts: FloatArray
    p_x: FloatArray
    joint: FloatArray
    n_rows: float

    @classmethod
    def of(cls, counts: FloatArray) -> Sample:
        """Add the pseudo-rows."""
        p_x = counts.sum(axis=0) / counts.sum()
        with_prior = counts + p_x
        total = float(with_prior.sum())
        return cls(counts, p_x, with_prior / total, total + 1)


@dataclass(frozen=True, eq=False)
class Moments:
    """The lifts of outputs, one row each, and what their variances are made of.

    lifts, seconds : (n, n_s), ``sum_x P(s,x) w / p`` and ``sum_x P(s,x) w^2`` with
    ``w = P(y|x) / P(y)``; square : (n,), ``sum_x P(x) w^2``; w : (n, n_x).
    """

    w: FloatArray
    lifts: FloatArray
    seconds: FloatArray
    square: FloatArray
    variances: FloatArray


class OutputLimit(ABC):
    """``U_z`` of posteriors of X, given as dense rows, and its gradient."""

    def __init__(self, sample: Sample, measure: Measure) -> None:
        self.sample, self.measure = sample, measure
        self._p_s = sample.joint.sum(axis=1)
        self._p_x = sample.joint.sum(axis=0)

    @abstractmethod
    def value(self, points: FloatArray, z: float) -> FloatArray:
        """Return ``U_z`` of each point."""

    @abstractmethod
    def with_slope(self, points: FloatArray, z: float) -> tuple[FloatArray, FloatArray]:
        """Return ``U_z`` of each point, and its gradient, one row each."""

    def _moments(self, points: FloatArray) -> Moments:
        ratio = points / self.sample.p_x
        w = ratio / (ratio @ self._p_x)[:, None]
        joint, p = self.sample.joint, self._p_s
        lifts, seconds, square = (w @ joint.T) / p, w**2 @ joint.T, w**2 @ self._p_x
        spread = (seconds - p * lifts**2) * (1 / p**2 - 2 * lifts / p)
        variances = (spread + lifts**2 * (square - 1)[:, None]) / self.sample.n_rows
        return Moments(w, lifts, seconds, square, np.maximum(variances, _NO_VARIANCE))

    def _slope(
        self,
        points: FloatArray,
        found: Moments,
        by_lift: FloatArray,
        by_second: FloatArray,
        by_square: FloatArray,
    ) -> FloatArray:
        """Return the gradient in the points from those in lifts, seconds and square."""
        joint, w = self.sample.joint, found.w
        by_w = (by_lift / self._p_s) @ joint + 2 * w * (
            by_second @ joint + by_square[:, None] * self._p_x
        )
        scale = (points / self.sample.p_x) @ self._p_x
        centred = by_w - (by_w * w).sum(axis=1, keepdims=True) * self._p_x
        return centred / scale[:, None] / self.sample.p_x

    def _slope_of_variances(
        self, found: Moments, by_variance: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return gradients in lifts, seconds and square from that in the variances."""
        p, lifts, n = self._p_s, found.lifts, self.sample.n_rows
        factor = 1 / p**2 - 2 * lifts / p
        by_lift = (
            -2 * p * lifts * factor
            - 2 * (found.seconds - p * lifts**2) / p
            + 2 * lifts * (found.square - 1)[:, None]
        )
        return (
            by_variance * by_lift / n,
            by_variance * factor / n,
            (by_variance * lifts**2).sum(axis=1) / n,
        )


class KLLimit(OutputLimit):
    """For kl, on the scale of its square root."""

    def value(self, points: FloatArray, z: float) -> FloatArray:
        return self._parts(self._moments(points), z)[0]

    def _parts(self, found: Moments, z: float) -> tuple[FloatArray, ...]:
        p, lifts = self._p_s, np.maximum(found.lifts, _SMALLEST_LIFT)
        logs = np.log(lifts)
        divergence = np.maximum((p * (lifts * logs - lifts + 1)).sum(axis=1), 0.0)
        bias = 0.5 * (p * found.variances / np.maximum(lifts, _SMALL_LIFT)).sum(axis=1)
        excess = logs - divergence[:, None]
        second = excess**2 * found.seconds - 2 * excess * (lifts - 1) * p * lifts
        noise = (second + p * (lifts - 1) ** 2).sum(axis=1) / self.sample.n_rows
        total = np.maximum(noise, 0.0) + 2 * bias**2 / max(len(p) - 1, 1)
        mean = np.maximum(divergence + bias, _NO_VARIANCE)
        limit = np.sqrt(mean) + z * np.sqrt(total / mean) / 2
        return limit, mean, total, bias, excess, logs, lifts

    def with_slope(self, points: FloatArray, z: float) -> tuple[FloatArray, FloatArray]:
        found = self._moments(points)
        limit, mean, total, bias, excess, logs, lifts = self._parts(found, z)
        p, n = self._p_s, self.sample.n_rows
        ratio = np.maximum(np.sqrt(total / mean), 1e-30)
        by_total = z / (4 * ratio * mean)
        by_mean = 0.5 / np.sqrt(mean) - z * total / (4 * ratio * mean**2)
        by_bias = by_mean + by_total * 4 * bias / max(len(p) - 1, 1)
        floor = np.maximum(lifts, _SMALL_LIFT)
        by_excess = 2 * excess * found.seconds - 2 * (lifts - 1) * p * lifts
        by_lift_of_noise = (
            by_excess / lifts
            - by_excess.sum(axis=1, keepdims=True) * p * logs
            - 2 * excess * p * (2 * lifts - 1)
            + 2 * p * (lifts - 1)
        ) / n
        by_lift = (
            by_mean[:, None] * p * logs
            + by_total[:, None] * by_lift_of_noise
            - by_bias[:, None] * 0.5 * p * found.variances / floor**2 * (lifts > _SMALL_LIFT)
        )
        by_second = by_total[:, None] * excess**2 / n
        more = self._slope_of_variances(found, by_bias[:, None] * 0.5 * p / floor)
        slope = self._slope(points, found, by_lift + more[0], by_second + more[1], more[2])
        return limit, slope


class MaxLiftLimit(OutputLimit):
    """For max_lift: the largest limit of a logarithm of a lift."""

    def value(self, points: FloatArray, z: float) -> FloatArray:
        return np.maximum(self._each(self._moments(points), z).max(axis=1), 0.0)

    @staticmethod
    def _each(found: Moments, z: float) -> FloatArray:
        root = np.sqrt(np.maximum(found.lifts, _SMALLEST_LIFT))
        return 2 * np.log(root + z * np.sqrt(found.variances) / (2 * root))

    def with_slope(self, points: FloatArray, z: float) -> tuple[FloatArray, FloatArray]:
        found = self._moments(points)
        each = self._each(found, z)
        top = np.eye(each.shape[1])[each.argmax(axis=1)]
        root, deviation = (
            np.sqrt(np.maximum(found.lifts, _SMALLEST_LIFT)),
            np.sqrt(found.variances),
        )
        whole = root + z * deviation / (2 * root)
        by_lift = top * (1 - z * deviation / (2 * root**2)) / (root * whole)
        more = self._slope_of_variances(found, top * z / (2 * whole * root * deviation))
        slope = self._slope(points, found, by_lift + more[0], more[1], more[2])
        return np.maximum(each.max(axis=1), 0.0), slope


class DrawnLimit(OutputLimit):
    """For any measure: the mean and the standard deviation over joints that the rows may be from.

    There are at least ten draws for each symbol of X: points are fitted to these very draws.
    """

    def __init__(self, sample: Sample, measure: Measure, seed: int = 0) -> None:
        super().__init__(sample, measure)
        rng = np.random.default_rng(seed)
        n_draws = max(_FEWEST_DRAWS, _DRAWS_PER_SYMBOL * len(sample.p_x))
        shape = (n_draws, *sample.counts.shape)
        draws = rng.gamma(sample.counts + sample.p_x, size=shape)
        self._draws = draws / draws.sum(axis=(1, 2), keepdims=True)
        self._priors = self._draws.sum(axis=2)

    def value(self, points: FloatArray, z: float) -> FloatArray:
        parts = [self._figures(part)[3] for part in self._batches(points)]
        roots = np.concatenate(parts, axis=1)
        return roots.mean(axis=0) + z * roots.std(axis=0)

    def _batches(self, points: FloatArray) -> list[FloatArray]:
        size = self._draws.shape[0] * self._draws.shape[1]
        return np.array_split(points, 1 + len(points) * size // _MOST_NUMBERS)

    def _figures(
        self, points: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return P(y) up to a scale, posteriors, g and the root leakage, by draw and point."""
        n_draws, n_s, n_x = self._draws.shape
        joint = self._draws.reshape(-1, n_x) @ (points / self.sample.p_x).T
        joint = joint.reshape(n_draws, n_s, -1)
        p_y = joint.sum(axis=1)
        posteriors = (joint / p_y[:, None]).transpose(0, 2, 1)
        values = _by_draw(self.measure.value, self.measure, posteriors, self._priors)
        return p_y, posteriors, values, root_leakage(self.measure, self.measure.inverse(values))

    def with_slope(self, points: FloatArray, z: float) -> tuple[FloatArray, FloatArray]:
        parts = [self._part_with_slope(part, z) for part in self._batches(points)]
        values, slopes = zip(*parts, strict=True)
        return np.concatenate(values), np.concatenate(slopes)

    def _part_with_slope(self, points: FloatArray, z: float) -> tuple[FloatArray, FloatArray]:
        measure = self.measure
        p_y, posteriors, values, roots = self._figures(points)
        mean, deviation = roots.mean(axis=0), roots.std(axis=0)
        step = 1e-6 * max(float(values.max()), 1e-12)
        ahead = root_leakage(measure, measure.inverse(values + step))
        weight = (1 + z * (roots - mean) / np.maximum(deviation, 1e-12)) / len(roots)
        weight = weight * (ahead - roots) / step / p_y
        slope = _by_draw(measure.subgradient, measure, posteriors, self._priors)
        slope = slope - (slope * posteriors).sum(axis=2, keepdims=True)
        weighted = (slope * weight[:, :, None]).transpose(0, 2, 1)
        by_point = np.tensordot(weighted, self._draws, axes=([0, 1], [0, 1]))
        return mean + z * deviation, by_point / self.sample.p_x


def _by_draw(
    function: Callable[..., FloatArray],
    measure: Measure,
    posteriors: FloatArray,
    priors: FloatArray,
) -> FloatArray:
    """Return a function of posteriors and priors for each draw."""
    if isinstance(measure, ShippedMeasure):
        return function(posteriors, priors[:, None])
    # The prior of another measure need not have more than one axis.
    return np.array([function(*pair) for pair in zip(posteriors, priors, strict=True)])


def root_leakage(measure: Measure, leakage: FloatArray) -> FloatArray:
    """Return the leakage on a scale on which it is about linear in the deviations of lifts."""
    leakage = np.maximum(leakage, 0.0)
    return np.sqrt(leakage) if measure.name in _QUADRATIC else leakage


def output_limit(sample: Sample, measure: Measure) -> OutputLimit:
    """Return the limit for a measure: in closed form where there is one."""
    closed = {"kl": KLLimit, "max_lift": MaxLiftLimit}
    return closed.get(measure.name, DrawnLimit)(sample, measure)
