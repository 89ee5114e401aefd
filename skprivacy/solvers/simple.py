"""The mechanisms that take no search, for solvers that must not be worse than any of them."""

from contextlib import suppress
from dataclasses import replace

from ..exceptions import SolverError
from .best_partition import BestPartitionSolver
from .chi2_design import Chi2DesignSolver
from .greedy_funnel import GreedyFunnelSolver
from .randomized_response import RandomizedResponseSolver
from .subset_merging import SubsetMergingSolver
from .watchdog import WatchdogSolver

_SIMPLE = (
    WatchdogSolver(),
    SubsetMergingSolver(),
    BestPartitionSolver(),
    GreedyFunnelSolver(),
    RandomizedResponseSolver(),
    Chi2DesignSolver(),
)


def simple_solutions(joint, epsilon, measure, scope, utility):
    """Yield the solution of every simple solver that serves this problem."""
    for solver in _SIMPLE:
        if solver.requirement(measure, scope) is None:
            with suppress(SolverError):  # too many symbols, P(S|X) is not invertible
                yield from solver.solve_path(joint, [epsilon], measure, scope, utility)


def most_useful(solutions, p_x, utility):
    """Return the solution with the largest utility, and the tightest bound of all of them."""

    def reached(solution):
        channel = solution.channel / solution.channel.sum(axis=1, keepdims=True)
        return utility.of_channel(p_x, channel)

    bounds = [s.upper_bound for s in solutions if s.upper_bound is not None]
    return replace(max(solutions, key=reached), upper_bound=min(bounds, default=None))
