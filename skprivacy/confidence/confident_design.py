"""Designs that keep their budget in the population: a limit per output, or a smaller budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TypeAlias

import numpy as np

from .._typing import FloatArray
from ..limits import upper_limits
from ..merging import merged_to
from ..solvers import DesignTask, Solution
from .calibration import Aim, Part, budgets_on_roots, confident_channel
from .channel_limits import KEPT, ChannelLimits, Reached
from .limit_of_measure import output_limit
from .output_limits import Sample, root_budget
from .softening import softened

Solve: TypeAlias = Callable[[float], Solution]

# Up to so many pairs (s, x), or with two groups, a design for the sample takes a second or so. It
# gives the search a start, and a bound.
_FEW_PAIRS = 50

# With so many rows that the limit exceeds the budget by less than this factor, a somewhat smaller
# budget for all outputs is tried too: the search has no certificate, the solvers have.
_MANY_ROWS = 1.5

# The search for a smaller budget ends when the limit is so close to the budget, after so many
# designs, or below this share of epsilon.
_CLOSE, _MOST_DESIGNS, _SMALLEST_SHARE = 0.98, 8, 0.02

# No more than about a million times as many rows are asked for, by a rough limit.
_MOST_DOUBLINGS, _ROUGH_DRAWS = 20, 199


class ConfidentDesign:
    """Channels whose limits for the population are within a budget.

    task : with a confidence; plug_in : solves it for the sample itself, given an epsilon;
    with_limits : whether outputs may have limits of their own, rather than one smaller budget.
    """

    def __init__(self, task: DesignTask, plug_in: Solve, with_limits: bool) -> None:
        assert task.confidence is not None
        assert task.n_samples is not None
        self._task, self._plug_in = task, plug_in
        self._with_limits = with_limits
        p_sx = task.joint.p_sx
        self._asks_solver = not with_limits or len(p_sx) == 2 or p_sx.size <= _FEW_PAIRS
        self._confidence = task.confidence
        self._counts = task.n_samples * task.joint.p_sx
        self._seen = task.joint.p_x > 0

    def solve(self, epsilon: float) -> Solution:
        """Return the channel of the largest utility that is found, for all symbols of X."""
        unchanged = self._merged(self._expanded(np.eye(int(self._seen.sum()))))
        if self._limits.reported(unchanged).in_scope(self._task.scope) <= epsilon:
            return Solution(unchanged)
        for_sample = self._plug_in(epsilon) if self._asks_solver else None
        found = max(self._candidates(epsilon, for_sample), key=self._utility)
        return Solution(found, None if for_sample is None else for_sample.upper_bound)

    @cached_property
    def _limits(self) -> ChannelLimits:
        task = self._task
        return ChannelLimits(self._counts, task.measure, task.scope, self._confidence)

    def _allowed(self, epsilon: float) -> float:
        return root_budget(self._task.measure, epsilon) * KEPT

    def rows_for_a_release(self, epsilon: float) -> float | None:
        """Return how many rows like these would allow a first release; None where none would.

        That is one with two outputs, designed for half the budget.
        """
        p_x, utility = self._task.joint.p_x, self._task.utility
        channel = merged_to(self._plug_in(epsilon / 2).channel, p_x, utility, 2)
        for doublings in range(1, _MOST_DOUBLINGS):
            counts = 2.0**doublings * self._counts
            limits = upper_limits(
                counts, channel, self._task.measure, self._confidence, n_draws=_ROUGH_DRAWS
            )
            if limits.in_scope(self._task.scope) <= epsilon:
                return float(counts.sum())
        return None

    def _candidates(self, epsilon: float, for_sample: Solution | None) -> Iterator[FloatArray]:
        yield np.ones((len(self._task.joint.p_x), 1))
        if epsilon == 0:
            return
        is_average, excess = self._task.scope == "average", np.inf
        if for_sample is not None:
            reached = self._limits(self._merged(for_sample.channel)).limit
            excess = reached / self._allowed(epsilon)
            if not self._with_limits or is_average or excess <= _MANY_ROWS:
                yield self._with_a_smaller_budget(epsilon)
        if self._with_limits and excess > (_MANY_ROWS if is_average else 1):
            yield self._with_a_limit_per_output(epsilon, for_sample)

    def _with_a_limit_per_output(self, epsilon: float, start: Solution | None) -> FloatArray:
        task = self._task
        sample = Sample.of(self._counts[:, self._seen])
        first = sample.p_x[None] if start is None else self._posteriors(start)[:, self._seen]
        utility = task.utility.restricted(self._seen)
        budgets = budgets_on_roots(task.measure, epsilon, task.scope)
        aim = Aim(*budgets, utility, sample.p_x, self._confidence, task.max_outputs)
        limit = output_limit(sample, task.measure, epsilon, self._confidence)
        part = Part(limit, utility, np.ones(len(sample.p_x), dtype=bool), first, aim)

        def limits(channel: FloatArray) -> Reached:
            return self._limits(self._expanded(channel))

        return self._expanded(confident_channel([part], aim, limits))

    def _expanded(self, channel: FloatArray) -> FloatArray:
        """Return a channel for symbols with rows as one for all: the others tell nothing."""
        whole = np.tile(self._task.joint.p_x[self._seen] @ channel, (len(self._seen), 1))
        whole[self._seen] = channel
        return whole

    def _posteriors(self, solution: Solution) -> FloatArray:
        joint = (self._task.joint.p_x[:, None] * solution.channel).T
        p_y = joint.sum(axis=1, keepdims=True)
        return joint[p_y[:, 0] > 0] / p_y[p_y[:, 0] > 0]

    def _with_a_smaller_budget(self, epsilon: float) -> FloatArray:
        """Return the design for the largest budget for the sample whose limit is within epsilon.

        Where none of those that are tried is, the last one is softened.
        """
        channel = best = np.ones((len(self._task.joint.p_x), 1))
        allowed = self._allowed(epsilon)
        # Budgets and their limits: the largest known to do, the smallest known not to.
        low, high, tried = (0.0, 0.0), (np.inf, np.inf), epsilon
        for _ in range(_MOST_DESIGNS):
            channel = self._merged(self._plug_in(tried).channel)
            reached = self._limits(channel).limit
            if reached <= allowed:
                low, best = (tried, reached), channel
            else:
                high = tried, reached
            if low[0] == epsilon or _CLOSE * allowed <= reached <= allowed:
                return channel
            rise = (allowed * (1 + _CLOSE) / 2 - low[1]) / (high[1] - low[1])
            tried = low[0] + float(np.clip(rise, 0.05, 0.95)) * (high[0] - low[0])
            if tried < _SMALLEST_SHARE * epsilon:
                break
        return best if low[0] else softened(channel, self._task.joint.p_x, self._limits, allowed)

    def _merged(self, channel: FloatArray) -> FloatArray:
        most = self._task.max_outputs
        if most is None:
            return channel
        return merged_to(channel, self._task.joint.p_x, self._task.utility, most)

    def _utility(self, channel: FloatArray) -> float:
        return self._task.utility.of_channel(self._task.joint.p_x, channel)
