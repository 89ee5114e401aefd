"""Designs whose budgets hold for the population with a given confidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from .._messages import SENSITIVE, Message, Setting
from .._typing import FloatArray
from ..channels import constant_output, expanded, independent, merged_to
from ..exceptions import BesideError
from ..solvers import DesignTask, Solution
from .cone_program import RobustBudget
from .limits import BudgetUse, ChannelLimits, upper_limits
from .search import Attempt, ConfidentSearch

Budgets: TypeAlias = Mapping[Any, float]

# Up to this many pairs (s, x), or with two groups, a design for the sample takes about a second.
# It gives the search a start, and a bound.
_FEW_PAIRS = 50

# If the limit of the design for the sample exceeds the budget by less than this factor, smaller
# budgets for all outputs are tried too: unlike the search, the solvers have a certificate.
_SMALL_EXCESS = 1.5

# The search for smaller budgets ends with a limit this close to the budget, after this many
# designs, or below this share of the budgets.
_CLOSE, _MOST_DESIGNS, _SMALLEST_SHARE = 0.999, 10, 0.02

# With a budget on average, single outputs may leak this many times as much.
_MORE_THAN_AVERAGE = 2.0

# Number of caps that are tried to soften a channel, and of shares to dilute it.
_CAPS, _DILUTIONS, _JUST_BELOW = 8, 6, 1 - 1e-4
_SMALLEST_LIMIT, _LARGEST_LIMIT = 1e-9, 1e3
_SMALLEST_STEP = 1e-6


class ConfidentDesign:
    """Designs channels whose limits for the population are within all budgets.

    task : with a confidence; for_sample : solves it for the sample itself, given budgets;
    with_margins : whether outputs may have separate margins, rather than smaller budgets; near :
    the attempts for similar budgets, from which the search starts.

    Attributes
    ----------
    attempts : the best attempt of each search, by whether it was with margins by group.
    """

    def __init__(
        self,
        task: DesignTask,
        budgets: Budgets,
        for_sample: Callable[[Budgets], Solution],
        with_margins: bool,
        near: Mapping[bool, Attempt] = MappingProxyType({}),
    ) -> None:
        assert task.confidence_of_each is not None
        assert task.n_samples is not None
        self._task, self._budgets, self._with_margins = task, budgets, with_margins
        self._finite = {name: epsilon for name, epsilon in budgets.items() if epsilon < np.inf}
        self._for_sample, self._solved = for_sample, dict[float, Solution]()
        self._confidence = task.confidence_of_each
        self._counts = {n: task.n_samples * joint.p_sx for n, joint in task.secrets.items()}
        self._near, self.attempts = near, dict[bool, Attempt]()
        self._seen, self._p_x = task.p_x > 0, task.p_x
        self._nothing = constant_output(self._p_x, task.strata)
        # The share of the budgets that limits may reach, and functions that calibrate the channels
        # found so far for another share.
        self._share, self._recalibrate = 1.0, list[Callable[[], FloatArray]]()
        self._limits = {
            name: ChannelLimits(counts, task.measure, task.scope, self._confidence)
            for name, counts in self._counts.items()
        }

    def solve(self) -> Solution:
        """Return the channel of the largest utility that is found, for all symbols of X."""
        self._check_columns_beside()
        unchanged = self._merged(self._expanded(np.eye(int(self._seen.sum()))))
        if not self._finite or self._use(unchanged).limit <= 1:
            self._keep_to_soften(unchanged)
            return Solution(unchanged) if self._with_margins else self._bounded(unchanged)
        if 0 in self._finite.values():  # no number of rows proves a leakage of zero
            return self._bounded(self._nothing)
        return self._bounded(max([self._nothing, *self._candidates()], key=self._utility))

    def cautious(self, share: float) -> FloatArray:
        """Return a channel like the last solution, with limits within a share of the budgets.

        The search is not repeated: its results are calibrated again.
        """
        if not share:
            return self._nothing
        self._share = share
        found = [self._nothing, *(recalibrate() for recalibrate in self._recalibrate)]
        return max(found, key=self._utility)

    def _bounded(self, channel: FloatArray) -> Solution:
        """Return a solution, with the bound and the name of the solver if it was asked."""
        if not self._asks_solver:
            return Solution(channel)
        return replace(self._sample_solution(), channel=channel)

    @property
    def _asks_solver(self) -> bool:
        n_s = sum(len(table) - 1 for table in self._counts.values()) + 1
        return not self._with_margins or n_s == 2 or n_s * len(self._p_x) <= _FEW_PAIRS

    def _candidates(self) -> Iterator[FloatArray]:
        is_average, excess = self._task.scope == "average", np.inf
        if self._asks_solver:
            for_sample = self._merged(self._sample_solution().channel)
            excess = self._use(for_sample).limit
            if excess <= 1:
                self._keep_to_soften(for_sample)
                yield for_sample
            elif not self._with_margins or is_average or excess <= _SMALL_EXCESS:
                self._recalibrate.append(self._with_smaller_budgets)
                yield self._with_smaller_budgets()
        if self._with_margins and excess > 1:
            # If every lift has its own bound, either margin may be the better guide.
            for by_group in (False, True) if self._task.measure.is_lift_box else (False,):
                found = self._with_margins_for_outputs(by_group)
                if found is not None:
                    yield found

    def _with_margins_for_outputs(self, by_group: bool) -> FloatArray | None:
        task, more_rows = self._task, -math.log(1 - self._confidence)
        more = 1.0 if task.scope == "per_output" else _MORE_THAN_AVERAGE
        strata, utility = task.stratum_of_symbol[self._seen], task.utility.restricted(self._seen)
        tables = {n: self._counts[n][:, self._seen] for n in self._finite}
        robust = [
            RobustBudget(tables[n], task.measure, more * epsilon, strata, more_rows, by_group)
            for n, epsilon in self._finite.items()
            if len(tables[n]) > 1
        ]

        def use(channel: FloatArray) -> BudgetUse:
            return self._use(self._expanded(channel))

        search = ConfidentSearch(robust, use, utility, strata, task.max_outputs)
        attempt = search.run(self._confidence, self._start, self._near.get(by_group))
        if attempt is None:
            return None
        self.attempts[by_group] = attempt

        latest = attempt

        def recalibrated() -> FloatArray:
            nonlocal latest
            if (again := search.again(latest)) is None:
                return self._diluted(self._expanded(latest.channel))
            latest = again
            return self._expanded(again.channel)

        self._recalibrate.append(recalibrated)
        return self._expanded(attempt.channel)

    def _start(self, share: float) -> FloatArray | None:
        """Return the design for the sample, for the symbols that occur, if it is quickly had."""
        channel = self._sample_channel(share) if self._asks_solver else None
        return None if channel is None else channel[self._seen]

    def _sample_solution(self, share: float = 1.0) -> Solution:
        """Return the design for the sample with a share of the budgets, solved once."""
        if share not in self._solved:
            budgets = {name: share * epsilon for name, epsilon in self._budgets.items()}
            self._solved[share] = self._for_sample(budgets)
        return self._solved[share]

    def _sample_channel(self, share: float) -> FloatArray | None:
        """Return the channel for a share of the budgets; None if columns beside exceed it."""
        try:
            return self._sample_solution(share).channel
        except BesideError:
            return None

    def _with_smaller_budgets(self) -> FloatArray:
        """Return the design for the largest share of the budgets whose limits are within them.

        If none that is tried is within them, the last one is softened.
        """
        channel = best = self._nothing
        # Shares and their limits: the largest known to be within, the smallest known not to be.
        low, high, share = (0.0, 0.0), (np.inf, np.inf), 1.0
        for _ in range(_MOST_DESIGNS):
            design = self._sample_channel(share)
            if design is None:
                low = share, low[1]
            else:
                channel = self._merged(design)
                limit = self._use(channel).limit
                if limit <= 1:
                    low, best = (share, limit), channel
                else:
                    high = share, limit
                if low[0] == 1 or _CLOSE <= limit <= 1:
                    return channel
            rise = ((1 + _CLOSE) / 2 - low[1]) / (high[1] - low[1])
            share = low[0] + float(np.clip(rise, 0.05, 0.95)) * (high[0] - low[0])
            if share < _SMALLEST_SHARE:
                break
        return self._softened(channel) if best is self._nothing else best

    def _keep_to_soften(self, channel: FloatArray) -> None:
        self._recalibrate += [partial(self._diluted, channel), partial(self._softened, channel)]

    def _softened(self, channel: FloatArray) -> FloatArray:
        """Return the channel with outputs closer to independence, so that limits are in budget.

        Limits of outputs are capped, so that only outputs with large limits change. If no cap is
        enough, the output is constant.
        """
        limit, per_output = self._use(channel)
        if limit <= 1:
            return channel
        per_output = np.clip(per_output.max(axis=0), _SMALLEST_LIMIT, _LARGEST_LIMIT)
        best, low, high = self._nothing, 0.0, float(per_output.max())
        independence = independent(channel, self._p_x, self._task.strata)
        cap = 0.98 * high * float(np.clip(1 / limit, 0.05, 1.0))
        for _ in range(_CAPS):
            closer = _closer(channel, independence, np.minimum(1.0, cap / per_output))
            if self._use(closer).limit <= 1:
                best, low = closer, cap
            else:
                high = cap
            cap = np.sqrt(low * high) if low else high / 2
        return best

    def _diluted(self, channel: FloatArray) -> FloatArray:
        """Return the channel mixed with independence, so that limits are in budget.

        For a small excess: all outputs reveal less by the same share, and limits fall likewise.
        """
        independence = independent(channel, self._p_x, self._task.strata)
        mixed, kept = channel, 1.0
        for _ in range(_DILUTIONS):
            if (limit := self._use(mixed).limit) <= 1:
                return mixed
            kept *= _JUST_BELOW / limit
            mixed = kept * channel + (1 - kept) * independence
        return self._softened(channel)

    def _use(self, channel: FloatArray) -> BudgetUse:
        """Return the limits of a channel as shares of what they may reach."""
        each = [self._limits[name].budget_use(channel, e) for name, e in self._finite.items()]
        per_output = np.array([use.per_output for use in each])
        return BudgetUse(max(use.limit for use in each) / self._share, per_output / self._share)

    def _expanded(self, channel: FloatArray) -> FloatArray:
        """Return a channel for symbols with rows as one for all; others are independent of Y."""
        return expanded(channel, self._p_x, self._task.strata)

    def _merged(self, channel: FloatArray) -> FloatArray:
        task, most = self._task, self._task.max_outputs
        if most is None:
            return channel
        return merged_to(channel, self._p_x, task.utility, most, task.strata)

    def _utility(self, channel: FloatArray) -> float:
        return self._task.utility.of_channel(self._p_x, channel)

    def _check_columns_beside(self) -> None:
        """Check that the limits of the columns beside the release are within the budgets."""
        if self._task.strata is None:
            return
        scope, of_average = self._task.scope, self._task.scope == "average"
        channel = self._nothing, self._task.measure, self._confidence
        for name, counts in self._counts.items():
            limit = upper_limits(counts, *channel, with_average=of_average).in_scope(scope)
            if not limit <= self._budgets[name]:
                text = Message.of(
                    "In the population, the columns beside the release may leak {limit:.4g} about "
                    "{secret} by themselves, more than {budget}: {n_rows:,.0f} rows do not "
                    "exclude that with {level}. Use a larger {epsilon}, more rows, or release "
                    "these columns too.",
                    limit=limit,
                    secret=SENSITIVE if name is None else repr(name),
                    budget=Setting("epsilon", self._budgets[name]),
                    n_rows=self._task.n_samples,
                    level=Setting("confidence", self._task.confidence),
                )
                raise BesideError(text)


def _closer(channel: FloatArray, independence: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the channel with P(X|y) moved to these shares of its distance from independence.

    Outputs that come closer are used more often: then they still average to P(X).
    """
    shares = np.maximum(shares, _SMALLEST_STEP)
    closer = channel + independence * (1 / shares - 1)
    return closer / closer.sum(axis=1, keepdims=True)
