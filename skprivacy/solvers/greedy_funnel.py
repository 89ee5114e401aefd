"""The greedy privacy funnel (Makhdoumi et al.): outputs are merged one pair at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._messages import Message, Setting
from .._typing import FloatArray, IntArray
from .base import Solution, Solver
from .partitions import Partition, Risk, channel_of
from .task import DesignTask


@dataclass(frozen=True)
class GreedyFunnelSolver(Solver):
    """Starting from Y = X, merge the two outputs whose merger lowers the average leakage most.

    This is repeated until the budget holds. For `kl` the average leakage is I(S;Y), and this is
    the published algorithm. It serves only the average scope.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> joint = [[0.16, 0.14, 0.12, 0.08], [0.08, 0.12, 0.14, 0.16]]
    >>> mechanism = design_mechanism(joint, 0.01, scope="average", solver="greedy_funnel")
    >>> mechanism.channel.astype(int).tolist()
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]
    """

    name: ClassVar[str] = "greedy_funnel"

    def requirement(self, task: DesignTask) -> str | None:
        return None if task.scope == "average" else Message(Setting("scope", "average"))

    def solve_path(self, task: DesignTask, epsilons: Sequence[float]) -> Iterator[Solution]:
        """Merge until the smallest epsilon holds, pausing on the way for the others."""
        risk = Risk(task)
        limits = [risk.limit(epsilon) for epsilon in epsilons]
        found = {}
        for groups, leakage in _mergers(Partition(risk)):
            for limit in limits:
                if limit not in found and leakage <= limit:
                    found[limit] = channel_of(groups)
            if limits[0] in found:
                break
        for limit in limits:
            yield Solution(found[limit])


def _mergers(partition: Partition) -> Iterator[tuple[IntArray, float]]:
    """Yield (groups, leakage on average) of Y = X and after each merger."""
    n_x = len(partition.mass)
    drops = np.full((n_x, n_x), -np.inf)
    for block in range(n_x - 1):
        others = np.arange(block + 1, n_x)
        drops[block, others] = _drop(partition, block, others)
    yield partition.groups, partition.leakage("average")
    for _ in range(n_x - 1):
        block, other = map(int, np.unravel_index(np.argmax(drops), drops.shape))
        partition.fuse(block, other)
        drops[other] = drops[:, other] = -np.inf
        others = np.setdiff1d(np.flatnonzero(partition.mass), block)
        drops[np.minimum(block, others), np.maximum(block, others)] = _drop(
            partition, block, others
        )
        yield partition.groups, partition.leakage("average")


def _drop(partition: Partition, block: int, others: IntArray) -> FloatArray:
    """Return by how much the average leakage drops when a block is fused with each other one."""
    mass, risks = partition.mass, partition.risks
    apart = mass[block] * risks[block] + mass[others] * risks[others]
    return apart - (mass[block] + mass[others]) * partition.risk_with(block, others)
