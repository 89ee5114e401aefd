"""What is kept of X by an output that sees X only through another one."""

from __future__ import annotations

import numpy as np

from .._typing import BoolArray, FloatArray, IntArray
from ..geometry import Points
from .base import Utility


class Through(Utility):
    """The utility of outputs that are drawn from K, itself an output drawn from X.

    utility : that of outputs drawn from X; posteriors : P(X|k), a column for each symbol of K.
    """

    def __init__(self, utility: Utility, posteriors: FloatArray) -> None:
        self._utility, self._posteriors = utility, posteriors

    def __repr__(self) -> str:
        return repr(self._utility)

    def _of_x(self, points: Points) -> Points:
        return Points.from_dense(np.maximum(points.times(self._posteriors), 0.0))

    def value(self, points: Points) -> FloatArray:
        return self._utility.value(self._of_x(points))

    def slope(self, points: Points, n_x: int) -> FloatArray:
        return self._utility.slope(self._of_x(points), len(self._posteriors)) @ self._posteriors

    def offset(self, p_x: FloatArray) -> float:
        return self._utility.offset(self._posteriors @ p_x)

    def of_channel(self, p_x: FloatArray, channel: FloatArray) -> float:
        of_x = self._posteriors @ p_x
        joint = self._posteriors @ (p_x[:, None] * channel)
        seen = of_x > 0
        through = np.full(joint.shape, 1 / joint.shape[1])
        through[seen] = joint[seen] / of_x[seen, None]
        return self._utility.of_channel(of_x, through)

    def largest(self, p_x: FloatArray) -> float:
        return self.of_identity(p_x)

    def smallest(self, p_x: FloatArray) -> float:
        return self._utility.smallest(self._posteriors @ p_x)

    def as_loss(self, n_x: int) -> tuple[FloatArray, float] | None:
        found = self._utility.as_loss(len(self._posteriors))
        if found is None:
            return None
        loss, constant = found
        return self._posteriors.T @ loss, constant

    def traits(self, n_x: int) -> FloatArray:
        return self._posteriors

    def restricted(self, symbols: BoolArray | IntArray) -> Utility:
        return Through(self._utility, self._posteriors[:, symbols])
