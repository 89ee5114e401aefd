"""Designs that keep their budget in the population: a limit per output, or a smaller budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TypeAlias

import numpy as np

from .._typing import FloatArray
from ..limits import Draws, draws_around, limits_of, upper_limits
from ..merging import merged_to
from ..solvers import DesignTask, Solution
from .calibration import Aim, confident_channel
from .output_limits import Sample, root_leakage
from .softening import softened

Solve: TypeAlias = Callable[[float], Solution]

# Up to so many symbols of X, or with two groups, a design for the sample takes a second at most. It
# gives the search a start, and a bound.
_FEW_SYMBOLS = 12

# With so many rows that the limit exceeds the budget by less than this factor, a somewhat smaller
# budget for all outputs is tried too: the search has no certificate, the solvers have.
_MANY_ROWS = 1.5

# The search for a smaller budget ends when the limit is so close to the budget, after so many
# designs, or below this share of epsilon.
_CLOSE, _MOST_DESIGNS, _SMALLEST_SHARE = 0.98, 8, 0.02

# The limit stays so far below the budget, that rounding elsewhere cannot lift it above.
_SLACK = 1e-6

# Joints that decide on the way are others than those of the limit that is reported.
_SEED = 1
_MOST_DRAWS, _FEWEST_DRAWS, _MOST_NUMBERS = 999, 199, 2**24

# No more than about a million times as many rows are asked for.
_MOST_DOUBLINGS = 20


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
        n_s, n_x = task.joint.p_sx.shape
        self._asks_solver = not with_limits or n_s == 2 or n_x <= _FEW_SYMBOLS
        self._confidence = task.confidence
        self._counts = task.n_samples * task.joint.p_sx

    def solve(self, epsilon: float) -> Solution:
        """Return the channel of the largest utility that is found, for all symbols of X."""
        unchanged = self._merged(np.eye(len(self._task.joint.p_x)))
        if self._reported(unchanged) <= epsilon:
            return Solution(unchanged)
        for_sample = self._plug_in(epsilon) if self._asks_solver else None
        found = max(self._candidates(epsilon, for_sample), key=self._utility)
        channel = self._softened(found, epsilon, self._reported)
        return Solution(channel, None if for_sample is None else for_sample.upper_bound)

    def rows_for_a_release(self, epsilon: float) -> float | None:
        """Return how many rows like these would allow a first release; None where none would.

        That is one with two outputs, designed for half the budget.
        """
        p_x, utility = self._task.joint.p_x, self._task.utility
        channel = merged_to(self._plug_in(epsilon / 2).channel, p_x, utility, 2)
        for doublings in range(1, _MOST_DOUBLINGS):
            counts = 2.0**doublings * self._counts
            limits = upper_limits(
                counts, channel, self._task.measure, self._confidence, n_draws=_FEWEST_DRAWS
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
            excess = self._limit(self._merged(for_sample.channel)) / epsilon
            if not self._with_limits or is_average or excess <= _MANY_ROWS:
                yield self._with_a_smaller_budget(epsilon)
        if self._with_limits and excess > (_MANY_ROWS if is_average else 1):
            yield self._with_a_limit_per_output(epsilon, for_sample)

    def _with_a_limit_per_output(self, epsilon: float, start: Solution | None) -> FloatArray:
        task, seen = self._task, self._task.joint.p_x > 0
        sample = Sample.of(self._counts[:, seen])
        first = sample.p_x[None] if start is None else self._posteriors(start)[:, seen]
        utility = task.utility.restricted(seen)
        aim = Aim(epsilon, task.measure, utility, self._confidence, task.max_outputs, task.scope)
        channel = confident_channel(sample, aim, first, _SEED)
        whole = np.tile(sample.p_x @ channel, (len(seen), 1))  # the others tell nothing
        whole[seen] = channel
        return whole

    def _posteriors(self, solution: Solution) -> FloatArray:
        joint = (self._task.joint.p_x[:, None] * solution.channel).T
        p_y = joint.sum(axis=1, keepdims=True)
        return joint[p_y[:, 0] > 0] / p_y[p_y[:, 0] > 0]

    def _with_a_smaller_budget(self, epsilon: float) -> FloatArray:
        """Return the design for the largest budget for the sample whose limit is within epsilon.

        Where none of those that are tried is, the last one is mixed with independence.
        """
        channel = best = np.ones((len(self._task.joint.p_x), 1))
        # Budgets and their limits: the largest known to do, the smallest known not to.
        low, high, tried = (0.0, 0.0), (np.inf, np.inf), epsilon
        for _ in range(_MOST_DESIGNS):
            channel = self._merged(self._plug_in(tried).channel)
            reached = self._limit(channel)
            if reached <= epsilon:
                low, best = (tried, reached), channel
            else:
                high = tried, reached
            if low[0] == epsilon or _CLOSE * epsilon <= reached <= epsilon:
                return channel
            rise = (epsilon * (1 + _CLOSE) / 2 - low[1]) / (high[1] - low[1])
            tried = low[0] + float(np.clip(rise, 0.05, 0.95)) * (high[0] - low[0])
            if tried < _SMALLEST_SHARE * epsilon:
                break
        return best if low[0] else self._softened(channel, epsilon, self._limit)

    def _softened(
        self, channel: FloatArray, epsilon: float, limit: Callable[[FloatArray], float]
    ) -> FloatArray:
        """Return the channel, mixed with independence where its limit exceeds epsilon."""
        allowed = self._root(epsilon) * (1 - _SLACK)
        return softened(
            channel, self._task.joint.p_x, lambda tried: self._root(limit(tried)), allowed
        )

    def _merged(self, channel: FloatArray) -> FloatArray:
        most = self._task.max_outputs
        if most is None:
            return channel
        return merged_to(channel, self._task.joint.p_x, self._task.utility, most)

    def _utility(self, channel: FloatArray) -> float:
        return self._task.utility.of_channel(self._task.joint.p_x, channel)

    def _root(self, leakage: float) -> float:
        return float(root_leakage(self._task.measure, np.array(leakage)))

    @cached_property
    def _draws(self) -> list[Draws]:
        n_draws = int(np.clip(_MOST_NUMBERS // self._counts.size, _FEWEST_DRAWS, _MOST_DRAWS))
        return list(draws_around(self._counts, n_draws, np.random.default_rng(_SEED)))

    def _limit(self, channel: FloatArray) -> float:
        limits = limits_of(channel, self._draws, self._task.measure, self._confidence)
        return limits.in_scope(self._task.scope)

    def _reported(self, channel: FloatArray) -> float:
        """Return the limit that a mechanism checks itself by."""
        limits = upper_limits(self._counts, channel, self._task.measure, self._confidence)
        return limits.in_scope(self._task.scope)
