"""Subset merging: risky symbols are released in several blocks, each of them private."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._typing import IntArray, Scope
from .base import Solution, Solver
from .partitions import Partition, Risk, channel_of
from .task import DesignTask


@dataclass(frozen=True)
class SubsetMergingSolver(Solver):
    """Blocks of risky symbols of X, each fused until it is private.

    A block starts with the riskiest symbol that is left and repeatedly takes in the risky symbol
    that lowers its leakage most, until it is private. If the last block cannot become private, it
    is fused with other blocks, then with symbols that are not risky. For a budget on average,
    merging stops as soon as the budget holds.

    This is the strict variant: every block is private. From epsilon = 0.02 on, the published curve
    exceeds what any partition within the budget can reach (correction 7).

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> joint = [[0.16, 0.14, 0.12, 0.08], [0.08, 0.12, 0.14, 0.16]]
    >>> mechanism = design_mechanism(joint, 0.001, solver="subset_merging")
    >>> mechanism.channel.astype(int).tolist()
    [[1, 0], [0, 1], [0, 1], [1, 0]]
    """

    name: ClassVar[str] = "subset_merging"

    def solve_path(self, task: DesignTask, epsilons: Sequence[float]) -> Iterator[Solution]:
        """Merge anew for each epsilon."""
        risk = Risk(task)
        for epsilon in epsilons:
            groups = _merged(Partition(risk), risk.limit(epsilon), task.scope)
            yield Solution(channel_of(groups))


def _merged(partition: Partition, limit: float, scope: Scope) -> IntArray:
    """Return the block of each symbol."""
    is_risky = partition.risks > limit
    risky, harmless = np.flatnonzero(is_risky).tolist(), np.flatnonzero(~is_risky).tolist()
    blocks: list[int] = []
    while risky and partition.leakage(scope) > limit:  # with none risky, only rounding exceeds it
        block = risky.pop(np.argmax(partition.risks[risky]))
        while partition.risks[block] > limit and partition.leakage(scope) > limit:
            others = risky or blocks or harmless
            partition.fuse(block, others.pop(np.argmin(partition.risk_with(block, others))))
        blocks.append(block)
    return partition.groups
