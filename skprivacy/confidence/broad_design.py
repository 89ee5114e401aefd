"""Designs that keep several budgets in the population, or one beside columns that are published.

Outputs have limits of their own, for every secret; or a design for the sample is merged and
brought closer to independence until all limits are within budgets. What keeps most is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .._messages import SENSITIVE, Message, Named, Setting
from .._typing import BoolArray, FloatArray
from ..exceptions import BesideError
from ..merging import merged_to
from ..repair import expanded
from ..solvers import DesignTask, Solution
from ..utilities import Utility
from .calibration import Aim, Part, budgets_on_roots, confident_channel
from .channel_limits import KEPT, ChannelLimits, Reached
from .combined_limits import LargestLimit, LimitOnFace
from .limit_of_measure import output_limit
from .output_limits import OutputLimit, Sample, root_budget
from .softening import softened, telling_nothing

# The shares of the budgets that channels are designed for, before they are merged and softened.
_SHARES = (1.0, 0.6, 0.3)

# Outputs are merged until so many of them are left, each time half as many.
_FEWEST_OUTPUTS = 2


class BroadConfidentDesign:
    """Channels whose limits for the population are within all budgets.

    task : with a confidence, and several secrets or groups; plug_in : solves it for the sample.
    """

    def __init__(self, task: DesignTask, plug_in: Callable[[Any], Solution]) -> None:
        assert task.confidence_of_each is not None
        assert task.n_samples is not None
        self._task, self._plug_in = task, plug_in
        self._limits = {
            name: ChannelLimits(
                task.n_samples * table, task.measure, task.scope, task.confidence_of_each
            )
            for name, table in task.tables().items()
        }

    def solve(self, budget: float | Mapping[Any, float]) -> Solution:
        """Return the channel of the largest utility that is found, for all symbols of X."""
        budgets = budget if isinstance(budget, Mapping) else {None: budget}
        nothing = telling_nothing(self._task.joint.p_x, self._task.groups)
        self._check_room(nothing, budgets)
        for_sample = self._plug_in(budget)
        finite = [epsilon for epsilon in budgets.values() if epsilon < np.inf]
        if not finite:
            return for_sample
        if min(finite) == 0:  # no number of rows shows that nothing at all is told
            return Solution(nothing, for_sample.upper_bound, for_sample.solver)
        best = max(nothing, self._with_limits(for_sample, budgets), key=self._utility)
        for channel in self._candidates(for_sample.channel, budgets):
            if self._utility(channel) > self._utility(best):
                about = self._task.joint.p_x, self._reached(budgets), 1.0, self._task.groups
                best = max(best, softened(channel, *about), key=self._utility)
        return Solution(best, for_sample.upper_bound, for_sample.solver)

    def _with_limits(self, for_sample: Solution, budgets: Mapping[Any, float]) -> FloatArray:
        """Return the channel of a search with a limit for each output."""
        task, seen = self._task, self._task.joint.p_x > 0
        finite = {name: e for name, e in budgets.items() if e < np.inf}
        assert task.confidence_of_each is not None
        assert task.n_samples is not None
        tables, limits, scales = task.tables(), [], []
        for name, epsilon in finite.items():
            sample = Sample.of(task.n_samples * tables[name][:, seen])
            limits.append(output_limit(sample, task.measure, epsilon, task.confidence_of_each))
            scales.append(budgets_on_roots(task.measure, epsilon, task.scope))
        largest = LargestLimit(limits, [budget for budget, _ in scales])
        utility, groups = task.utility.restricted(seen), task.groups_that_occur
        more = min(of_outputs / budget for budget, of_outputs in scales)
        aim = Aim(
            1.0,
            more,
            utility,
            largest.sample.p_x,
            task.confidence_of_each,
            task.max_outputs,
            None if task.groups is None else groups,
        )
        reached = self._reached(budgets)
        posteriors = (largest.sample.p_x[:, None] * for_sample.channel[seen]).T
        parts = [
            self._part(largest, utility, groups == z, posteriors, aim) for z in np.unique(groups)
        ]

        def limits_of(channel: FloatArray) -> Reached:
            return reached(self._expanded(channel))

        return self._expanded(confident_channel(parts, aim, limits_of))

    def _part(
        self,
        limit: OutputLimit,
        utility: Utility,
        symbols: BoolArray,
        posteriors: FloatArray,
        aim: Aim,
    ) -> Part:
        """Return the search on one face, from the outputs for the sample that are on it."""
        start = posteriors[posteriors[:, symbols].any(axis=1)][:, symbols]
        start = start / start.sum(axis=1, keepdims=True)
        on_face = limit if symbols.all() else LimitOnFace(limit, symbols)
        return Part(on_face, utility.restricted(symbols), symbols, start, aim)

    def _expanded(self, channel: FloatArray) -> FloatArray:
        return expanded(channel, self._task.joint.p_x, self._task.groups)

    def _candidates(
        self, for_sample: FloatArray, budgets: Mapping[Any, float]
    ) -> Iterator[FloatArray]:
        """Yield channels that may exceed their limits, those with most outputs first."""
        n_groups = len(self._task.group_labels)
        for share in _SHARES:
            channel = for_sample if share == 1 else self._smaller(share, budgets)
            n_outputs = self._task.max_outputs or channel.shape[1] if channel is not None else 0
            while channel is not None and n_outputs >= max(_FEWEST_OUTPUTS, n_groups):
                yield self._merged(channel, n_outputs)
                n_outputs //= 2

    def _smaller(self, share: float, budgets: Mapping[Any, float]) -> FloatArray | None:
        """Return a design for a share of the budgets, unless columns beside exceed that."""
        smaller = {name: share * epsilon for name, epsilon in budgets.items()}
        try:
            return self._plug_in(smaller if self._task.secrets else smaller[None]).channel
        except BesideError:
            return None

    def _reached(self, budgets: Mapping[Any, float]) -> Callable[[FloatArray], Reached]:
        """Return the limits of channels as shares of the budgets, the largest of all secrets."""
        allowed = {
            name: root_budget(self._task.measure, epsilon) * KEPT
            for name, epsilon in budgets.items()
            if epsilon < np.inf
        }

        def reached(channel: FloatArray) -> Reached:
            each = [self._limits[name](channel) for name in allowed]
            whole = [r.limit / a for r, a in zip(each, allowed.values(), strict=True)]
            outputs = [r.per_output / a for r, a in zip(each, allowed.values(), strict=True)]
            return Reached(max(whole), np.max(outputs, axis=0))

        return reached

    def _check_room(self, nothing: FloatArray, budgets: Mapping[Any, float]) -> None:
        """Check that rows exclude that columns beside the release exceed a budget alone."""
        if self._task.groups is None:
            return
        for name, limits in self._limits.items():
            limit = limits.reported(nothing).in_scope(self._task.scope)
            if not limit <= budgets[name]:
                about = SENSITIVE if name is None else repr(name)
                raise BesideError(
                    Message(
                        f"In the population, the columns beside the release may say {limit:.4g} "
                        f"about ",
                        about,
                        " by themselves, more than ",
                        Setting("epsilon", budgets[name]),
                        f": {self._task.n_samples:,.0f} rows do not exclude that with ",
                        Setting("confidence", self._task.confidence),
                        ". Use a larger ",
                        Named("epsilon"),
                        ", more rows, or release these columns too.",
                    )
                )

    def _merged(self, channel: FloatArray, n_outputs: int) -> FloatArray:
        task = self._task
        return merged_to(channel, task.joint.p_x, task.utility, n_outputs, task.groups)

    def _utility(self, channel: FloatArray) -> float:
        return self._task.utility.of_channel(self._task.joint.p_x, channel)
