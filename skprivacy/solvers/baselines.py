"""Baselines: merged symbols, randomised response, and a chi-squared design."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from .._messages import InPython, Message
from .._numerics import BISECTIONS, DEVIATION_ROUNDING, SAME_DIGITS
from .._typing import FloatArray, IntArray, Scope
from .._validation import check_integer
from ..exceptions import SolverError
from ..geometry import Points
from ..joint import Joint
from ..measures import Chi2
from ..measures.measure import value_in
from ..measures.stacked import Stacked
from ..utilities import UTILITY_ROUNDING
from .leakage_function import LeakageFunction
from .solver import DesignTask, Solution, Solver


class Risk:
    """The leakage of blocks of symbols, for one task."""

    def __init__(self, task: DesignTask) -> None:
        joint = task.joint
        self.mass, self.moments = joint.p_x, (joint.p_x * joint.deviations).T
        self._leakage, self._measure = LeakageFunction(joint, task.measure), task.measure

    def of(self, mass: FloatArray, moments: FloatArray) -> FloatArray:
        """Return g of each block, from its probability and its P(x)-weighted deviations."""
        deviations = moments / mass[..., None]
        # The deviations of all of X as one block are rounding.
        deviations[np.abs(deviations).max(axis=-1) <= DEVIATION_ROUNDING] = 0.0
        return self._leakage.value(deviations)

    def limit(self, epsilon: float) -> float:
        """Return the largest g that epsilon allows, plus a tenth of the tolerance of budgets."""
        if self._measure.budget(epsilon) == np.inf:
            return np.inf
        return self._leakage.threshold(epsilon) * (1 + 1e-10)


def channel_of(blocks: IntArray) -> FloatArray:
    """Return the channel that releases the block of each symbol of X."""
    _, codes = np.unique(blocks, return_inverse=True)
    return np.eye(codes.max() + 1)[codes]


class Partition:
    """A partition of X whose blocks can be merged.

    A block has the number of one of its symbols. `mass` and `risks`, the probability and g of
    blocks, have an entry for every symbol; both are 0 for symbols that are no block's number.
    """

    def __init__(self, risk: Risk) -> None:
        self._risk = risk
        self.mass, self._moments = risk.mass.copy(), risk.moments.copy()
        self.risks = risk.of(self.mass, self._moments)
        self.blocks = np.arange(len(self.mass))

    def leakage(self, scope: Scope) -> float:
        """Return the largest g of a block, or the average."""
        return value_in(scope, self.risks, self.mass)

    def risk_with(self, block: int, others: IntArray | list[int]) -> FloatArray:
        """Return g of the union of a block with each of `others`."""
        mass = self.mass[block] + self.mass[others]
        return self._risk.of(mass, self._moments[block] + self._moments[others])

    def merge(self, block: int, other: int) -> None:
        """Merge two blocks, keeping the number of the first."""
        self.blocks[self.blocks == other] = block
        for total in (self.mass, self._moments):
            total[block] += total[other]
            total[other] = 0.0
        self.risks[other] = 0.0
        self.risks[block] = self._risk.of(self.mass[[block]], self._moments[[block]])[0]


@dataclass(frozen=True)
class BestPartitionSolver(Solver):
    """The best partition of the symbols of X within the budget, by examining all partitions.

    No mechanism without noise is better.

    Parameters
    ----------
    max_symbols : int, default=10
        The largest number of symbols of X; more raise a `SolverError`. 10 symbols have 115,975
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
        """Find the most useful partition within each epsilon."""
        n_x = len(task.joint.p_x)
        if n_x > self.max_symbols:
            many = "The solver 'best_partition' cannot examine all partitions of {n} symbols, "
            more = "more than {most}. Pool rare symbols of {X}, or use {solver='subset_merging'}"
            most = InPython(f"max_symbols={self.max_symbols}", str(self.max_symbols))
            hint = InPython(", or raise max_symbols")
            raise SolverError(Message.of(many + more + "{hint}.", n=n_x, most=most, hint=hint))
        risk, partitions = Risk(task), all_partitions(n_x)
        useful, preferred, leakage = _figures(partitions, risk, task)
        # Ties in utility are broken by the preference of the utility, then by leakage.
        order = np.lexsort((leakage, -preferred.round(SAME_DIGITS), -useful.round(SAME_DIGITS)))
        for epsilon in epsilons:
            best = order[np.argmax(leakage[order] <= risk.limit(epsilon))]
            yield Solution(channel_of(partitions[best]))


def all_partitions(n: int) -> npt.NDArray[np.int8]:
    """Return all partitions of n symbols as rows: the block of each symbol.

    Blocks are numbered in the order of their first symbols, so that no partition appears twice:
    each further symbol joins an existing block, or starts a new one.
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
    """Return (``sum q u(W)``, preference, g) of every partition.

    They are sums or maxima over the 2^n possible blocks: block number m has the symbols given by
    the bits of m; number 0 is empty and reveals nothing.
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


@dataclass(frozen=True)
class SubsetMergingSolver(Solver):
    """Merge symbols of X over budget into blocks within the budget.

    A block starts with the riskiest symbol that is left and repeatedly takes in the risky symbol
    that lowers its leakage most, until it is within the budget. If the last block runs out of
    risky symbols, it is merged with other blocks, then with other symbols. For a budget on
    average, merging stops as soon as the budget holds.

    This is the strict variant: every block keeps the budget. From epsilon = 0.02 on, the published
    curve exceeds what any partition within the budget can reach (correction 7).

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
        """Merge from the start for each epsilon."""
        risk = Risk(task)
        for epsilon in epsilons:
            yield Solution(channel_of(_merged(Partition(risk), risk.limit(epsilon), task.scope)))


def _merged(partition: Partition, limit: float, scope: Scope) -> IntArray:
    """Return the block of each symbol."""
    is_risky = partition.risks > limit
    risky, harmless = np.flatnonzero(is_risky).tolist(), np.flatnonzero(~is_risky).tolist()
    blocks: list[int] = []
    while risky and partition.leakage(scope) > limit:  # else only rounding exceeds it
        block = risky.pop(np.argmax(partition.risks[risky]))
        while partition.risks[block] > limit and partition.leakage(scope) > limit:
            others = risky or blocks or harmless
            partition.merge(block, others.pop(np.argmin(partition.risk_with(block, others))))
        blocks.append(block)
    return partition.blocks


@dataclass(frozen=True)
class WatchdogSolver(Solver):
    """Complete merging: the symbols of X over budget become one block.

    The others are released unchanged. If that block exceeds the budget, the next riskiest symbols
    join it one by one until it does not. For a budget on average, the riskiest symbols are merged
    until the budget holds.

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
            size = 1 + np.argmax(leakage <= risk.limit(epsilon))  # all of X is always allowed
            blocks = np.arange(len(order))
            blocks[order[:size]] = order[0]
            yield Solution(channel_of(blocks))


def _leakage_by_size(risk: Risk, risks: FloatArray, order: IntArray, scope: Scope) -> FloatArray:
    """Return g of the release with the 1, 2, ... riskiest symbols merged."""
    mass = np.cumsum(risk.mass[order])
    block = risk.of(mass, np.cumsum(risk.moments[order], axis=0))
    risks = np.append(risks[order], 0.0)
    if scope == "per_output":
        return np.maximum(block, risks[1:])  # the riskiest that is left
    rest = np.append(risk.mass[order], 0.0) * risks
    return mass * block + np.cumsum(rest[::-1])[::-1][1:]


@dataclass(frozen=True)
class GreedyFunnelSolver(Solver):
    """Starting from Y = X, merge the two outputs whose merger lowers the average leakage most.

    This is repeated until the budget holds. For `kl` the average leakage is I(S;Y), and this is
    the greedy privacy funnel of Makhdoumi et al. Only for scope "average".

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
        return None if task.scope == "average" else Message.of("{scope='average'}")

    def solve_path(self, task: DesignTask, epsilons: Sequence[float]) -> Iterator[Solution]:
        """Merge until the smallest epsilon holds, recording the others on the way."""
        risk = Risk(task)
        limits = [risk.limit(epsilon) for epsilon in epsilons]
        found = {}
        for blocks, leakage in _mergers(Partition(risk)):
            for limit in limits:
                if limit not in found and leakage <= limit:
                    found[limit] = channel_of(blocks)
            if limits[0] in found:
                break
        for limit in limits:
            yield Solution(found[limit])


def _mergers(partition: Partition) -> Iterator[tuple[IntArray, float]]:
    """Yield (blocks, leakage on average) of Y = X and after each merger."""
    n_x = len(partition.mass)
    drops = np.full((n_x, n_x), -np.inf)
    for block in range(n_x - 1):
        others = np.arange(block + 1, n_x)
        drops[block, others] = _drop(partition, block, others)
    yield partition.blocks, partition.leakage("average")
    for _ in range(n_x - 1):
        block, other = map(int, np.unravel_index(np.argmax(drops), drops.shape))
        partition.merge(block, other)
        drops[other] = drops[:, other] = -np.inf
        others = np.setdiff1d(np.flatnonzero(partition.mass), block)
        pairs = np.minimum(block, others), np.maximum(block, others)
        drops[pairs] = _drop(partition, block, others)
        yield partition.blocks, partition.leakage("average")


def _drop(partition: Partition, block: int, others: IntArray) -> FloatArray:
    """Return how much merging a block with each of `others` lowers the average leakage."""
    mass, risks = partition.mass, partition.risks
    apart = mass[block] * risks[block] + mass[others] * risks[others]
    return apart - (mass[block] + mass[others]) * partition.risk_with(block, others)


# The chi-squared design of Zamani et al.: a binary Y, by a singular value decomposition. ---------
#
# ``P(X|Y) = P(X) -/+ eps C^-1 (sqrt(P(S)) * L)`` with ``C = P(S|X)``, for Y uniform on two
# symbols. Both outputs have ``chi2 = eps^2 |L|^2 = eps^2``. For small eps, I(X;Y) is about half of
# ``eps^2 |P(X)^-1/2 C^-1 P(S)^1/2 L|^2``, so L is the top right singular vector of that matrix
# among those orthogonal to ``sqrt(P(S))``: the posteriors of S must sum to 1.


@dataclass(frozen=True)
class Chi2DesignSolver(Solver):
    """The closed form for `chi2` and small epsilon, where P(S|X) is square and invertible.

    Optimal for two symbols of X, and nearly optimal for more if epsilon is small.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> joint = [[0.0625, 0.3], [0.1875, 0.45]]
    >>> mechanism = design_mechanism(joint, 0.05, measure="chi2", solver="chi2_design")
    >>> round(mechanism.utility, 8)
    0.07287184
    """

    name: ClassVar[str] = "chi2_design"

    def requirement(self, task: DesignTask) -> str | None:
        if isinstance(task.measure, Stacked):
            return "a single secret, and no columns beside the release"
        return None if isinstance(task.measure, Chi2) else Message.of("{measure='chi2'}")

    def solve_path(self, task: DesignTask, epsilons: Sequence[float]) -> Iterator[Solution]:
        """Move the posterior of X by epsilon along one direction, and back."""
        joint = task.joint
        if len(joint.p_x) == 1:
            yield from (Solution(np.ones((1, 1))) for _ in epsilons)
            return
        direction = _direction(joint)
        largest = 1 / np.abs(direction / joint.p_x).max()
        for epsilon in epsilons:
            if epsilon > largest:
                needs = "The solver 'chi2_design' needs an epsilon of at most {most:.6g}, or "
                why = "probabilities would be negative. Got {got:g}. Use {solver='optimal'}."
                raise SolverError(Message.of(needs + why, most=largest, got=epsilon))
            step = np.clip(epsilon * direction / joint.p_x, -1.0, 1.0)  # clips rounding only
            yield Solution(np.column_stack([1 - step, 1 + step]) / 2)


def _direction(joint: Joint) -> FloatArray:
    """Return ``C^-1 (sqrt(P(S)) * L)``: the move of the posterior of X per unit of epsilon."""
    (n_s, n_x), given_x = joint.p_sx.shape, joint.p_sx / joint.p_x
    rank = np.linalg.matrix_rank(given_x)
    if n_s != n_x or rank < n_x:
        needs = InPython(
            f"The solver 'chi2_design' needs a square and invertible P(S|X). Got {n_s} x {n_x} of "
            f"rank {rank} (without symbols that never occur or copies of symbols of S).",
            f"The solver 'chi2_design' needs as many groups of the sensitive columns as "
            f"released values, none of them a mixture of others. Got {n_s} and {n_x}.",
        )
        raise SolverError(Message.of("{needs} Use {solver='optimal'}.", needs=needs))
    root = np.sqrt(joint.p_s)
    matrix = np.linalg.solve(given_x, np.diag(root))
    # sqrt(P(S)) is a right singular vector itself, with the smallest singular value, 1.
    others = np.eye(n_s) - np.outer(root, root)
    _, _, right = np.linalg.svd(matrix / np.sqrt(joint.p_x)[:, None] @ others)
    direction = matrix @ (others @ right[0])
    # Scaled by chi2 as computed, so that it is right even if P(S|X) is nearly singular.
    length = np.sqrt(joint.p_s @ (joint.deviations @ direction) ** 2)
    return direction / length


@dataclass(frozen=True)
class RandomizedResponseSolver(Solver):
    """k-ary randomised response: X with some probability, otherwise a symbol drawn uniformly.

    The probability is the largest within the budget, found by bisection: leakage grows with it,
    whatever the measure.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
    >>> mechanism = design_mechanism(joint, 0.01, solver="randomized_response")
    >>> round(mechanism.max_leakage, 9)
    0.01
    """

    name: ClassVar[str] = "randomized_response"

    def solve_path(self, task: DesignTask, epsilons: Sequence[float]) -> Iterator[Solution]:
        """Find the largest share of rows that each epsilon lets pass unchanged."""
        risk, n_x = Risk(task), len(task.joint.p_x)

        def leakage(unchanged: float) -> float:
            # Rows that are drawn uniformly reveal nothing: they add mass but no moment.
            mass = unchanged * risk.mass + (1 - unchanged) / n_x
            return value_in(task.scope, risk.of(mass, unchanged * risk.moments), mass)

        for epsilon in epsilons:
            limit, low, high = risk.limit(epsilon), 0.0, 1.0
            # A smaller share adds noise to the outputs of a larger one: leakage is monotone.
            for _ in range(BISECTIONS):
                middle = (low + high) / 2
                low, high = (middle, high) if leakage(middle) <= limit else (low, middle)
            # Slightly inside the budget, against rounding where a measure jumps.
            unchanged = 1.0 if leakage(1.0) <= limit else max(0.0, low - 1e-14)
            yield Solution(unchanged * np.eye(n_x) + (1 - unchanged) / n_x)


# All baselines at once, for solvers that must not be worse than any of them. ---------------------


_MERGING = WatchdogSolver(), SubsetMergingSolver(), BestPartitionSolver(), GreedyFunnelSolver()
_SIMPLE = *_MERGING, RandomizedResponseSolver(), Chi2DesignSolver()


def simple_solutions(task: DesignTask, epsilons: Sequence[float]) -> Iterator[list[Solution]]:
    """Yield, for each epsilon, the solutions of all baselines that can solve the task."""
    paths = [s.solve_path(task, epsilons) for s in _SIMPLE if s.requirement(task) is None]
    for _ in epsilons:
        found = []
        for path in paths:
            # A path stops if there are too many symbols, or epsilon is too large.
            with suppress(SolverError, StopIteration):
                found.append(next(path))
        yield found


def most_useful(task: DesignTask, solution: Solution, others: list[Solution]) -> Solution:
    """Return the most useful of the solutions, with the smallest bound of all."""
    every = [solution, *others]
    reached = [task.reached(each.channel) for each in every]
    is_best = max(reached) <= reached[0] + UTILITY_ROUNDING
    best = solution if is_best else every[int(np.argmax(reached))]
    bounds = [s.upper_bound for s in every if s.upper_bound is not None]
    return replace(best, upper_bound=min(bounds, default=None))
