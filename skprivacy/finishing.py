"""From what a solver returns to a mechanism: the budget as a postcondition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ._typing import FloatArray, IntArray
from .confidence.channel_limits import Reached, largest_of, shares_of
from .confidence.softening import diluted, softened, telling_nothing
from .mechanism import Channel, Guarantee, Leakage, Mechanism
from .merging import merged_to
from .repair import independent, repaired
from .solvers import DesignTask, Solution
from .utilities import BOUND_TOLERANCE, Utility

# What is done to a channel before it is judged: outputs may be merged and put in order, and get
# the symbols of X that they are released as.
Arrange: TypeAlias = Callable[[FloatArray], tuple[FloatArray, IntArray | None]]


def finish(
    task: DesignTask,
    solution: Solution,
    budgets: Mapping[Any, float],
    arrange: Arrange | None = None,
    as_sampled: Callable[[FloatArray], FloatArray] | None = None,
) -> Mechanism:
    """Return the mechanism of a solution: outputs in order, repaired if need be, and judged.

    arrange : None for outputs without names; as_sampled : rounds a channel to the probabilities
    that are sampled, so that these are what is judged.
    """
    p_x, utility, channel, names = task.p_x, task.utility, solution.channel, None
    if task.max_outputs is not None:
        channel = merged_to(channel, p_x, utility, task.max_outputs, task.groups)
    # Outputs are ordered by the symbol that each makes likeliest, then by their probability.
    likeliest = (p_x[:, None] * channel).argmax(axis=0)
    channel = channel[:, np.lexsort((-(p_x @ channel), likeliest))]
    if arrange is not None:
        channel, names = arrange(channel)
    judge = Judge(task, budgets, as_sampled)
    if task.confidence is not None and judge.of(channel).excess() > 0:
        # The draws that a limit is from are others than those of the search.
        about = p_x, lambda each: judge.of(each).shares(), task.groups
        both = [softer(channel, *about) for softer in (diluted, softened)]
        channel = max(both, key=lambda each: utility.of_channel(p_x, each))
        if arrange is not None:
            channel, names = arrange(channel)
    nothing = independent(channel, p_x, task.groups)
    judged = repaired(channel, nothing, lambda each: judge.of(each, names), Judged.excess)
    bound = _credible(solution.upper_bound, solution.channel, p_x, utility)
    return judged.mechanism(solution.solver or "", bound)


class Judge:
    """Judges channels for a task and its budgets; as_sampled : as in `finish`."""

    def __init__(
        self,
        task: DesignTask,
        budgets: Mapping[Any, float],
        as_sampled: Callable[[FloatArray], FloatArray] | None,
    ) -> None:
        self._task, self._budgets, self._as_sampled = task, budgets, as_sampled
        sure = task.confidence_of_each, task.n_samples
        nothing = self._channel(telling_nothing(task.p_x, task.groups), None)
        self._about = {
            name: Leakage(nothing, joint.p_sx, joint.s_labels, task.measure, *sure)
            for name, joint in task.secrets.items()
        }
        if task.confidence is not None:
            self._about = {n: about.with_kept_draws() for n, about in self._about.items()}

    def _channel(self, matrix: FloatArray, names: IntArray | None) -> Channel:
        task, y_labels = self._task, tuple(range(matrix.shape[1]))
        x_labels = next(iter(task.secrets.values())).x_labels
        if names is not None:
            y_labels = tuple(x_labels[symbol] for symbol in names)
        return Channel(matrix, task.p_x, x_labels, y_labels, task.utility, task.groups, names)

    def of(self, matrix: FloatArray, names: IntArray | None = None) -> Judged:
        """Return what a channel leaks; names : the symbols of X that outputs are released as."""
        matrix = matrix if self._as_sampled is None else self._as_sampled(matrix)
        channel = self._channel(matrix, names)
        leakages = {name: about.with_channel(channel) for name, about in self._about.items()}
        return Judged(self._task, self._budgets, channel, leakages)


@dataclass(frozen=True, eq=False)
class Judged:
    """What a channel leaks about each secret, against its budget."""

    task: DesignTask
    budgets: Mapping[Any, float]
    channel: Channel
    leakages: Mapping[Any, Leakage]

    def excess(self) -> float:
        """Return by how much it exceeds a budget, at most 0 if it exceeds none."""
        measure, scope = self.task.measure, self.task.scope
        allowed = {name: measure.budget(epsilon) for name, epsilon in self.budgets.items()}
        each = [
            leakage.limit_in(scope) - allowed[name]
            for name, leakage in self.leakages.items()
            if allowed[name] < np.inf
        ]
        return max(each, default=-np.inf)

    def shares(self) -> Reached:
        """Return the limits for the population as shares of the budgets."""
        task = self.task
        finite = {n: each for n, each in self.leakages.items() if self.budgets[n] < np.inf}
        return largest_of(
            shares_of(task.measure, *each.limits_in(task.scope), self.budgets[name])
            for name, each in finite.items()
        )

    def mechanism(self, solver: str, upper_bound: float) -> Mechanism:
        """Return the mechanism, which checks every budget."""
        secrets = {
            name: Guarantee.of(leakage, self.budgets[name], self.task.scope)
            for name, leakage in self.leakages.items()
        }
        return Mechanism(self.channel, secrets, solver, upper_bound, self.task.confidence)


def _credible(
    upper_bound: float | None, channel: FloatArray, p_x: FloatArray, utility: Utility
) -> float:
    """Return a bound unless the utility exceeds it: the solver was then wrong, and knows none."""
    if upper_bound is None or utility.of_channel(p_x, channel) > upper_bound + BOUND_TOLERANCE:
        return np.inf
    return upper_bound
