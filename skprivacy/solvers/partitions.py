"""Symbols of X released as the block that they are in: what blocks reveal about S.

A block is known by its mass ``P(B)`` and its moment ``sum P(x) (l(x) - 1)`` over its symbols, so
that fusing blocks adds both. Its lifts differ from 1 by moment / mass.
"""

import numpy as np

from .._typing import FloatArray, IntArray, Scope
from ..joint import DEVIATION_ROUNDING
from ..measures.leakage import value_in
from .leakage_function import LeakageFunction
from .task import DesignTask

# A tenth of the tolerance of budgets: what exceeds a budget only by rounding is allowed.
_LIMIT_RTOL = 1e-10


class Risk:
    """What blocks of symbols leak, for one task."""

    def __init__(self, task: DesignTask) -> None:
        joint = task.joint
        self.mass = joint.p_x
        self.moments = (joint.p_x * joint.deviations).T
        self._leakage = LeakageFunction(joint, task.measure)
        self._measure = task.measure

    def of(self, mass: FloatArray, moments: FloatArray) -> FloatArray:
        """Return g of each of some blocks."""
        deviations = moments / mass[..., None]
        # All of X as one block has no deviations except for rounding.
        deviations[np.abs(deviations).max(axis=-1) <= DEVIATION_ROUNDING] = 0.0
        return self._leakage.value(deviations)

    def limit(self, epsilon: float) -> float:
        """Return the largest g that epsilon allows."""
        if self._measure.budget(epsilon) == np.inf:
            return np.inf
        return self._leakage.threshold(epsilon) * (1 + _LIMIT_RTOL)


def channel_of(groups: IntArray) -> FloatArray:
    """Return the channel that releases the block of each symbol of X."""
    _, blocks = np.unique(groups, return_inverse=True)
    return np.eye(blocks.max() + 1)[blocks]


class Partition:
    """A partition in the making: blocks are fused until the release is private.

    A block is named after one of its symbols. `mass` and `risks` have an entry for every symbol;
    for symbols that name no block, both are 0.
    """

    def __init__(self, risk: Risk) -> None:
        self._risk = risk
        self.mass, self._moments = risk.mass.copy(), risk.moments.copy()
        self.risks = risk.of(self.mass, self._moments)
        self.groups = np.arange(len(self.mass))

    def leakage(self, scope: Scope) -> float:
        """Return g of the worst block, or on average."""
        return value_in(scope, self.risks, self.mass)

    def risk_with(self, block: int, others: IntArray | list[int]) -> FloatArray:
        """Return g of the union of a block and each of some others."""
        mass = self.mass[block] + self.mass[others]
        return self._risk.of(mass, self._moments[block] + self._moments[others])

    def fuse(self, block: int, other: int) -> None:
        """Make one block of two, with the name of the first."""
        self.groups[self.groups == other] = block
        for total in (self.mass, self._moments):
            total[block] += total[other]
            total[other] = 0.0
        self.risks[other] = 0.0
        self.risks[block] = self._risk.of(self.mass[[block]], self._moments[[block]])[0]
