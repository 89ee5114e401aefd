"""The mechanisms that need no search, for solvers that must not be worse than any of them."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from ..exceptions import SolverError
from ..utilities import UTILITY_ROUNDING
from .base import Solution
from .best_partition import BestPartitionSolver
from .chi2_design import Chi2DesignSolver
from .greedy_funnel import GreedyFunnelSolver
from .randomized_response import RandomizedResponseSolver
from .subset_merging import SubsetMergingSolver
from .task import DesignTask
from .watchdog import WatchdogSolver

_SIMPLE = (
    WatchdogSolver(),
    SubsetMergingSolver(),
    BestPartitionSolver(),
    GreedyFunnelSolver(),
    RandomizedResponseSolver(),
    Chi2DesignSolver(),
)


def simple_solutions(task: DesignTask, epsilons: Sequence[float]) -> Iterator[list[Solution]]:
    """Yield, for each epsilon, the solutions of the simple solvers that serve a task."""
    paths = [
        _until_failure(solver.solve_path(task, epsilons))
        for solver in _SIMPLE
        if solver.requirement(task) is None
    ]
    for _ in epsilons:
        found = [next(path, None) for path in paths]
        yield [solution for solution in found if solution is not None]


def _until_failure(path: Iterator[Solution]) -> Iterator[Solution]:
    """Yield solutions until there are too many symbols, or epsilon is too large."""
    with suppress(SolverError):
        yield from path


def most_useful(task: DesignTask, solution: Solution, others: list[Solution]) -> Solution:
    """Return the most useful of the solutions, with the tightest bound of all of them."""

    def reached(solution: Solution) -> float:
        channel = solution.channel / solution.channel.sum(axis=1, keepdims=True)
        return task.utility.of_channel(task.joint.p_x, channel)

    best = max([solution, *others], key=reached)
    if reached(best) <= reached(solution) + UTILITY_ROUNDING:
        best = solution
    bounds = [s.upper_bound for s in (solution, *others) if s.upper_bound is not None]
    return replace(best, upper_bound=min(bounds, default=None))
