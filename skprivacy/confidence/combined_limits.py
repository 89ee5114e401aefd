"""Limits of outputs about several secrets, and of outputs on a part of X."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._typing import BoolArray, FloatArray
from .output_limits import OutputLimit, Sample


class LargestLimit(OutputLimit):
    """The largest of the limits of several secrets, each divided by its own budget.

    limits : those of the secrets, about the same rows; budgets : on their scale.
    """

    def __init__(self, limits: Sequence[OutputLimit], budgets: Sequence[float]) -> None:
        first = limits[0].sample
        counts = np.vstack([limit.sample.counts for limit in limits])
        joint = np.vstack([limit.sample.joint for limit in limits]) / len(limits)
        super().__init__(Sample(counts, first.p_x, joint, first.n_rows), limits[0].measure)
        self._limits, self._budgets = list(limits), np.array(budgets)

    def value(self, points: FloatArray, z: float) -> FloatArray:
        each = [limit.value(points, z) for limit in self._limits]
        return np.max(np.array(each) / self._budgets[:, None], axis=0)

    def with_slope(self, points: FloatArray, z: float) -> tuple[FloatArray, FloatArray]:
        found = [limit.with_slope(points, z) for limit in self._limits]
        values, slopes = zip(*found, strict=True)
        shares = np.array(values) / self._budgets[:, None]
        worst, rows = shares.argmax(axis=0), np.arange(len(points))
        slope = np.array(slopes)[worst, rows] / self._budgets[worst, None]
        return shares[worst, rows], slope


class LimitOnFace(OutputLimit):
    """The limit of outputs that only some symbols of X lead to.

    limit : of outputs of all symbols; symbols : a mask of those on the face.
    """

    def __init__(self, limit: OutputLimit, symbols: BoolArray) -> None:
        whole = limit.sample
        p_x = whole.p_x[symbols] / whole.p_x[symbols].sum()
        part = Sample(whole.counts[:, symbols], p_x, whole.joint[:, symbols], whole.n_rows)
        super().__init__(part, limit.measure)
        self._limit, self._symbols = limit, symbols

    def at_centre(self, z: float) -> float:
        return float(self.value(self.sample.p_x[None], z)[0])

    def value(self, points: FloatArray, z: float) -> FloatArray:
        return self._limit.value(self._whole(points), z)

    def with_slope(self, points: FloatArray, z: float) -> tuple[FloatArray, FloatArray]:
        values, slopes = self._limit.with_slope(self._whole(points), z)
        return values, slopes[:, self._symbols]

    def _whole(self, points: FloatArray) -> FloatArray:
        whole = np.zeros((len(points), len(self._symbols)))
        whole[:, self._symbols] = points
        return whole
