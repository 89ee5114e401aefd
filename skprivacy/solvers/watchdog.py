"""The watchdog: risky symbols are released as one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._typing import FloatArray, IntArray, Scope
from .base import Solution, Solver
from .partitions import Risk, channel_of
from .task import DesignTask


@dataclass(frozen=True)
class WatchdogSolver(Solver):
    """Complete merging: the symbols of X that leak too much become one block.

    The others are released unchanged. If that block is not private itself, the next riskiest
    symbols join it one by one until it is. For a budget on average, the riskiest symbols are
    merged until the budget holds.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> joint = [[0.2, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.2]]
    >>> mechanism = design_mechanism(joint, 0.001, solver="watchdog")
    >>> mechanism.channel.astype(int).tolist()
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]
    """

    name: ClassVar[str] = "watchdog"

    def solve_path(self, task: DesignTask, epsilons: Sequence[float]) -> Iterator[Solution]:
        """Merge as few of the riskiest symbols as each epsilon allows."""
        risk = Risk(task)
        risks = risk.of(risk.mass, risk.moments)
        order = np.argsort(-risks, kind="stable")
        leakage = _leakage_by_size(risk, risks, order, task.scope)
        for epsilon in epsilons:
            size = 1 + np.argmax(leakage <= risk.limit(epsilon))  # all of X as one reveals nothing
            groups = np.arange(len(order))
            groups[order[:size]] = order[0]
            yield Solution(channel_of(groups))


def _leakage_by_size(risk: Risk, risks: FloatArray, order: IntArray, scope: Scope) -> FloatArray:
    """Return g of the release with the 1, 2, ... riskiest symbols merged."""
    mass = np.cumsum(risk.mass[order])
    block = risk.of(mass, np.cumsum(risk.moments[order], axis=0))
    risks = np.append(risks[order], 0.0)
    if scope == "per_output":
        return np.maximum(block, risks[1:])  # the riskiest that is left
    rest = np.append(risk.mass[order], 0.0) * risks
    return mass * block + np.cumsum(rest[::-1])[::-1][1:]
