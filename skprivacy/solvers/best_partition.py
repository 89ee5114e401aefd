"""The best deterministic mechanism: every partition of X is examined."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from .._messages import RELEASED, InPython, Message, Setting
from .._typing import FloatArray
from .._validation import check_integer
from ..exceptions import SolverError
from ..geometry import Points
from .base import Solution, Solver
from .partitions import Risk, channel_of
from .task import DesignTask

# Partitions whose utilities agree to this many digits are equally useful.
_DIGITS = 13


@dataclass(frozen=True)
class BestPartitionSolver(Solver):
    """The best way to merge symbols of X within the budget, found by examining all of them.

    No mechanism without noise is better.

    Parameters
    ----------
    max_symbols : int, default=10
        The most symbols that X may have; more raise a `SolverError`. 10 symbols have 115,975
        partitions; 12 have 4 million, which take some seconds.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> joint = [[0.16, 0.14, 0.12, 0.08], [0.08, 0.12, 0.14, 0.16]]
    >>> mechanism = design_mechanism(joint, 0.001, solver="best_partition")
    >>> round(mechanism.normalized_utility, 3)
    0.5
    """

    max_symbols: int = 10
    name: ClassVar[str] = "best_partition"

    def __post_init__(self) -> None:
        check_integer("BestPartitionSolver", "max_symbols", self.max_symbols, low=1)

    def solve_path(self, task: DesignTask, epsilons: Sequence[float]) -> Iterator[Solution]:
        """Find the most useful partition that each epsilon allows, among all of them."""
        n_x = len(task.joint.p_x)
        if n_x > self.max_symbols:
            raise SolverError(
                Message(
                    "The solver 'best_partition' examines every partition of ",
                    InPython("X, which has", "the released columns, which have"),
                    f" {n_x} symbols: more than ",
                    InPython("max_symbols="),
                    f"{self.max_symbols}. Pool rare symbols of ",
                    RELEASED,
                    ", ",
                    InPython("use ", "or use "),
                    Setting("solver", "subset_merging"),
                    " for a good partition",
                    InPython(", or raise max_symbols"),
                    ".",
                )
            )
        risk = Risk(task)
        partitions = all_partitions(n_x)
        useful, preferred, leakage = _figures(partitions, risk, task)
        # The utility may prefer some of the equally useful ones; of these, take the least leaky.
        order = np.lexsort((leakage, -preferred.round(_DIGITS), -useful.round(_DIGITS)))
        for epsilon in epsilons:
            best = order[np.argmax(leakage[order] <= risk.limit(epsilon))]
            yield Solution(channel_of(partitions[best]))


def all_partitions(n: int) -> npt.NDArray[np.int8]:
    """Return every partition of n symbols: the block of each symbol, as rows.

    Blocks are numbered in the order of their first symbols, so that no partition appears twice:
    each further symbol joins one of the existing blocks, or starts a new one.
    """
    partitions = np.zeros((1, 1), np.int8)
    for _ in range(n - 1):
        choices = partitions.max(axis=1).astype(int) + 2
        first = np.repeat(np.cumsum(choices) - choices, choices)
        block = np.arange(choices.sum()) - first
        partitions = np.repeat(partitions, choices, axis=0)
        partitions = np.column_stack([partitions, block.astype(np.int8)])
    return partitions


def _figures(
    partitions: npt.NDArray[np.int8], risk: Risk, task: DesignTask
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return ``sum q u(W)``, what decides between equals, and g of every partition.

    They come from those of the 2^n possible blocks: block number m has the symbols given by the
    bits of m; number 0 is empty and reveals nothing.
    """
    n_x = partitions.shape[1]
    members = (np.arange(1, 2**n_x)[:, None] >> np.arange(n_x)) & 1
    mass = members @ risk.mass
    points = Points.from_dense(members * risk.mass / mass[:, None])
    risks = risk.of(mass, members @ risk.moments)
    on_average, utility = task.scope == "average", task.utility
    if on_average:
        risks *= mass
    columns = mass * utility.value(points), mass * utility.preference(points), risks
    worth, preference, risks = (np.append(0.0, column) for column in columns)
    useful, preferred, leakage = np.zeros((3, len(partitions)))
    gather = np.add if on_average else np.maximum
    for block in range(n_x):
        number = np.zeros(len(partitions), np.intp)
        for symbol in range(n_x):
            number |= (partitions[:, symbol] == block).astype(np.intp) << symbol
        useful += worth[number]
        preferred += preference[number]
        gather(leakage, risks[number], out=leakage)
    return useful, preferred, leakage
