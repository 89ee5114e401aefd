"""What is kept of each column, where symbols are cells of a whole table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from .._typing import BoolArray, FloatArray, IntArray
from ..geometry import Points
from .base import Utility
from .information import Target, entropy, recorded_utility


class EachColumn(Utility):
    """The mean of ``I(X_j;Y) / H(X_j)`` over the columns X_j of a table.

    With J a column drawn with a probability in proportion to 1 / H(X_j), it is ``I((J, X_J); Y)``
    times a constant: a target, one of whose values is a column with a value.

    p_vx : a stack of such tables, see `of_tables`; scale : that constant.
    """

    name: ClassVar[str] = "columns"

    def __init__(self, target: Target, scale: float) -> None:
        self._target, self._scale = target, scale

    @classmethod
    def of_tables(cls, tables: Sequence[FloatArray]) -> EachColumn:
        """Return the utility for tables of counts, values (rows) by cells; one for each column."""
        shares = [table / table.sum() for table in tables]
        entropies = [float(entropy(share.sum(axis=1))) for share in shares]
        varied = [(share, h) for share, h in zip(shares, entropies, strict=True) if h > 0]
        if not varied:
            raise ValueError("Every column of X is constant: there is nothing to keep.")
        stacked = np.vstack([share[share.any(axis=1)] / h for share, h in varied])
        return cls(Target(stacked), sum(1 / h for _, h in varied) / len(varied))

    def __repr__(self) -> str:
        return "EachColumn(<{} x {} table>)".format(*self._target.p_v_given_x.shape)

    def in_words(self, names: str) -> str:
        return "the information in a column, on average over all columns"

    def value(self, points: Points) -> FloatArray:
        return self._scale * self._target.value(points)

    def slope(self, points: Points, n_x: int) -> FloatArray:
        return self._scale * self._target.slope(points, n_x)

    def offset(self, p_x: FloatArray) -> float:
        return self._scale * self._target.offset(p_x)

    def of_channel(self, p_x: FloatArray, channel: FloatArray) -> float:
        return self._scale * self._target.of_channel(p_x, channel)

    def largest(self, p_x: FloatArray) -> float:
        return 1.0  # of the table itself, not of its cells

    def traits(self, n_x: int) -> FloatArray:
        return self._target.traits(n_x)

    def restricted(self, symbols: BoolArray | IntArray) -> Utility:
        return EachColumn(Target(self._target.p_v_given_x[:, symbols]), self._scale)

    def recorded(self, p_x: FloatArray, channel: FloatArray) -> Utility:
        return recorded_utility(self, p_x, channel)

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "p_vx": self._target.p_v_given_x.tolist(), "scale": self._scale}
