"""From what a solver returns to a mechanism for each secret: the budget as a postcondition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._typing import FloatArray
from .joint import Joint
from .mechanism import Evaluation, Mechanism
from .merging import merged_to
from .repair import independent, repaired
from .solvers import DesignTask, Solution
from .utilities import BOUND_TOLERANCE, Utility


def finished(task: DesignTask, solution: Solution, epsilon: float, solver: str) -> Mechanism:
    """Return the mechanism of a solution for the only secret."""
    return finish(task, solution, {None: epsilon}, solver)[None]


def finish(
    task: DesignTask, solution: Solution, budgets: Mapping[Any, float], solver: str
) -> dict[Any, Mechanism]:
    """Return a mechanism of a solution for each secret: outputs in order, checked."""
    p_x, utility, channel = task.joint.p_x, task.utility, solution.channel
    if task.max_outputs is not None:
        channel = merged_to(channel, p_x, utility, task.max_outputs, task.groups)
    # Outputs are ordered by the symbol that each makes likeliest, then by their probability.
    likeliest = (p_x[:, None] * channel).argmax(axis=0)
    channel = channel[:, np.lexsort((-(p_x @ channel), likeliest))]
    drafts = {
        name: Draft(task, joint, budgets[name], channel.shape[1])
        for name, joint in (task.secrets or {None: task.joint}).items()
    }

    def excess(channel: FloatArray) -> float:
        return max(draft.excess(channel) for draft in drafts.values())

    channel = repaired(channel, independent(channel, p_x, task.groups), excess)
    found = {
        "solver": solution.solver or solver,
        "upper_bound": _credible(solution.upper_bound, solution.channel, p_x, utility),
    }
    return {name: draft.made(channel, **found) for name, draft in drafts.items()}


@dataclass(frozen=True, eq=False)
class Draft:
    """A mechanism for one secret, before its channel is mended."""

    task: DesignTask
    joint: Joint
    epsilon: float
    n_outputs: int

    def figures(self, channel: FloatArray) -> Evaluation:
        """Return what a channel keeps and leaks."""
        return Evaluation(channel, **self._about)

    @property
    def _about(self) -> dict[str, Any]:
        return {
            "p_sx": self.joint.p_sx,
            "s_labels": self.joint.s_labels,
            "x_labels": self.joint.x_labels,
            "y_labels": tuple(range(self.n_outputs)),
            "measure": self.task.measure,
            "objective": self.task.utility,
            "groups": self.task.groups,
        }

    def excess(self, channel: FloatArray) -> float:
        """Return by how much a channel exceeds the budget in the sample."""
        allowed = self.task.measure.budget(self.epsilon)
        leakage = self.figures(channel).leakage_in(self.task.scope)
        return leakage - allowed if allowed < np.inf else 0.0

    def made(self, channel: FloatArray, **found: Any) -> Mechanism:
        """Return the mechanism, which checks itself."""
        task = self.task
        return Mechanism(
            channel,
            **self._about,
            epsilon=self.epsilon,
            scope=task.scope,
            confidence=task.confidence_of_each,
            n_samples=task.n_samples,
            **found,
        )


def _credible(
    upper_bound: float | None, channel: FloatArray, p_x: FloatArray, utility: Utility
) -> float:
    """Return a bound unless the utility exceeds it: the solver was then wrong, and knows none."""
    if upper_bound is None or utility.of_channel(p_x, channel) > upper_bound + BOUND_TOLERANCE:
        return np.inf
    return upper_bound
