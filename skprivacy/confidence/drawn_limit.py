"""Limits for any measure, from joints that the rows may be from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._typing import FloatArray
from ..measures import Measure
from ..measures.base import ShippedMeasure
from .output_limits import OutputLimit, Sample, root_leakage

_FEWEST_DRAWS, _DRAWS_PER_SYMBOL = 120, 10
_MOST_NUMBERS = 4_000_000


class DrawnLimit(OutputLimit):
    """For any measure: the mean and the standard deviation over joints that the rows may be from.

    There are at least ten draws for each symbol of X: points are fitted to these very draws.
    """

    def __init__(self, sample: Sample, measure: Measure, n_draws: int | None = None) -> None:
        super().__init__(sample, measure)
        rng = np.random.default_rng(0)
        n_draws = n_draws or max(_FEWEST_DRAWS, _DRAWS_PER_SYMBOL * len(sample.p_x))
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
