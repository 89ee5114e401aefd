"""Designs whose budgets hold for the population with a given confidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from .._messages import SENSITIVE, Message, Named, Setting
from .._typing import FloatArray, IntArray
from ..channels import expanded, independent, merged_to
from ..exceptions import BesideError
from ..solvers import DesignTask, Solution
from .cone_program import RobustBudget
from .limits import ChannelLimits, Reached, reached, upper_limits
from .search import Attempt, ConfidentSearch

_CAPS = 8
_DILUTIONS, _JUST_BELOW = 6, 1 - 1e-4
_SMALLEST_LIMIT, _LARGEST_LIMIT = 1e-9, 1e3
_SMALLEST_STEP = 1e-6


def softened(
    channel: FloatArray,
    p_x: FloatArray,
    limits: Callable[[FloatArray], Reached],
    strata: IntArray | None = None,
) -> FloatArray:
    """Return the channel with outputs closer to independence until its limits keep the budgets.

    Only those with the largest limits have to be: their limits are capped. Where nothing helps,
    the output is constant, or tells the group of X where that is known anyway.
    """
    limit, per_output = limits(channel)
    if limit <= 1:
        return channel
    per_output = np.clip(per_output.max(axis=0), _SMALLEST_LIMIT, _LARGEST_LIMIT)
    best, low, high = telling_nothing(p_x, strata), 0.0, float(per_output.max())
    nothing = independent(channel, p_x, strata)
    cap = 0.98 * high * float(np.clip(1 / limit, 0.05, 1.0))
    for _ in range(_CAPS):
        closer = _closer(channel, nothing, np.minimum(1.0, cap / per_output))
        if limits(closer).limit <= 1:
            best, low = closer, cap
        else:
            high = cap
        cap = np.sqrt(low * high) if low else high / 2
    return best


def diluted(
    channel: FloatArray,
    p_x: FloatArray,
    limits: Callable[[FloatArray], Reached],
    strata: IntArray | None = None,
) -> FloatArray:
    """Return the channel mixed with independence until its limits keep the budgets.

    That is for a small excess: what all outputs tell falls by the same share, and so do limits.
    """
    nothing, mixed, kept = independent(channel, p_x, strata), channel, 1.0
    for _ in range(_DILUTIONS):
        if (limit := limits(mixed).limit) <= 1:
            return mixed
        kept *= _JUST_BELOW / limit
        mixed = kept * channel + (1 - kept) * nothing
    return softened(channel, p_x, limits, strata)


_SOFTER = diluted, softened


def telling_nothing(p_x: FloatArray, strata: IntArray | None) -> FloatArray:
    """Return a constant output, or one for each group of X where that is known anyway."""
    return np.ones((len(p_x), 1)) if strata is None else np.eye(strata.max() + 1)[strata]


def _closer(channel: FloatArray, nothing: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the channel with P(X|y) at these shares of the ways from P(X), or from P(X|z).

    Outputs that come closer are used more often: then they still average to P(X).
    """
    shares = np.maximum(shares, _SMALLEST_STEP)
    closer = channel + nothing * (1 / shares - 1)
    return closer / closer.sum(axis=1, keepdims=True)


# Designs whose budgets hold in the population, with some confidence.


Budgets: TypeAlias = Mapping[Any, float]
Solve: TypeAlias = Callable[[Budgets], Solution]

# Up to so many pairs (s, x), or with two groups, a design for the sample takes a second or so. It
# gives the search a start, and a bound.
_FEW_PAIRS = 50

# With so many rows that the limit exceeds the budget by less than this factor, somewhat smaller
# budgets for all outputs are tried too: the search has no certificate, the solvers have.
_MANY_ROWS = 1.5

# The search for smaller budgets ends when the limit is so close to the budget, after so many
# designs, or below this share of the budgets.
_CLOSE, _MOST_DESIGNS, _SMALLEST_SHARE = 0.999, 10, 0.02

# The shares of the budgets that designs for the sample are made for, to start from.
_START_SHARES = (1.0, 0.5, 0.25)

# Where the average is bounded, single outputs may leak so many times as much.
_MORE_THAN_AVERAGE = 2.0


class ConfidentDesign:
    """Channels whose limits for the population are within all budgets.

    task : with a confidence; plug_in : solves it for the sample itself, given budgets;
    with_margins : whether outputs may have margins of their own, rather than smaller budgets.
    """

    def __init__(self, task: DesignTask, plug_in: Solve, with_margins: bool) -> None:
        assert task.confidence_of_each is not None
        assert task.n_samples is not None
        self._task, self._with_margins = task, with_margins
        self._plug_in = _remembered(plug_in)
        self._confidence = task.confidence_of_each
        self._counts = {n: task.n_samples * joint.p_sx for n, joint in task.secrets.items()}
        self._seen, self._p_x = task.p_x > 0, task.p_x
        # The share of the budgets that limits may reach, and how channels that keep them were
        # found: to calibrate these for a smaller share.
        self._share, self._again = 1.0, list[Callable[[], FloatArray | None]]()
        self._limits = {
            name: ChannelLimits(counts, task.measure, task.scope, self._confidence)
            for name, counts in self._counts.items()
        }

    def solve(self, budgets: Budgets) -> Solution:
        """Return the channel of the largest utility that is found, for all symbols of X."""
        nothing = telling_nothing(self._p_x, self._task.strata)
        self._check_room(nothing, budgets)
        finite = {name: epsilon for name, epsilon in budgets.items() if epsilon < np.inf}
        unchanged = self._merged(self._expanded(np.eye(int(self._seen.sum()))))
        if not finite or self._reached(unchanged, finite).limit <= 1:
            self._soften(unchanged, finite)
            return Solution(unchanged) if self._with_margins else self._bounded(unchanged, budgets)
        if 0 in finite.values():  # no number of rows shows that nothing at all is told
            return self._bounded(nothing, budgets)
        found = max([nothing, *self._candidates(budgets, finite)], key=self._utility)
        return self._bounded(found, budgets)

    def cautious(self, share: float) -> FloatArray:
        """Return a channel like the last solution, with limits at most at a share of the budgets.

        The search is not made again: what it ended with is calibrated anew.
        """
        nothing = telling_nothing(self._p_x, self._task.strata)
        if not share:
            return nothing
        self._share = share
        found = [nothing, *(again() for again in self._again)]
        return max((each for each in found if each is not None), key=self._utility)

    def _bounded(self, channel: FloatArray, budgets: Budgets) -> Solution:
        """Return a solution, with the bound and the name of the solver that was asked."""
        if not self._asks_solver:
            return Solution(channel)
        return replace(self._plug_in(budgets), channel=channel)

    @property
    def _asks_solver(self) -> bool:
        tables = list(self._counts.values())
        n_s = sum(len(table) - 1 for table in tables) + 1
        return not self._with_margins or n_s == 2 or n_s * len(self._p_x) <= _FEW_PAIRS

    def _candidates(self, budgets: Budgets, finite: Budgets) -> Iterator[FloatArray]:
        is_average, excess = self._task.scope == "average", np.inf
        if self._asks_solver:
            for_sample = self._merged(self._plug_in(budgets).channel)
            excess = self._reached(for_sample, finite).limit
            if excess <= 1:
                self._soften(for_sample, finite)
                yield for_sample
            elif not self._with_margins or is_average or excess <= _MANY_ROWS:
                self._again.append(partial(self._with_smaller_budgets, budgets, finite))
                yield self._with_smaller_budgets(budgets, finite)
        if self._with_margins and excess > 1:
            # Where every lift has a bound of its own, either margin may be the better guide.
            for by_group in (False, True) if self._task.measure.is_lift_box else (False,):
                found = self._with_margins_for_outputs(budgets, finite, by_group)
                if found is not None:
                    yield found

    def _with_margins_for_outputs(
        self, budgets: Budgets, finite: Budgets, by_group: bool
    ) -> FloatArray | None:
        task, measure = self._task, self._task.measure
        more = 1.0 if task.scope == "per_output" else _MORE_THAN_AVERAGE
        strata, more_rows = task.stratum_of_symbol[self._seen], -math.log(1 - self._confidence)
        robust = [
            RobustBudget(
                self._counts[name][:, self._seen],
                measure,
                more * epsilon,
                strata,
                more_rows,
                by_group,
            )
            for name, epsilon in finite.items()
            if len(self._counts[name]) > 1
        ]

        def limits(channel: FloatArray) -> Reached:
            return self._reached(self._expanded(channel), finite)

        utility = task.utility.restricted(self._seen)
        search = ConfidentSearch(robust, limits, utility, strata, task.max_outputs)
        attempt = search.run(self._confidence, self._starts(budgets))
        if attempt is None:
            return None
        self._again.append(lambda: self._of_attempt(search.again(attempt)))
        return self._of_attempt(attempt)

    def _of_attempt(self, attempt: Attempt | None) -> FloatArray | None:
        return None if attempt is None else self._expanded(attempt.channel)

    def _soften(self, channel: FloatArray, finite: Budgets) -> None:
        """Keep a channel to be softened, should its limits have to be smaller."""

        def limits(channel: FloatArray) -> Reached:
            return self._reached(channel, finite)

        self._again += [partial(s, channel, self._p_x, limits, self._task.strata) for s in _SOFTER]

    def _starts(self, budgets: Budgets) -> Iterator[FloatArray]:
        """Yield designs for the sample, of the symbols that occur."""
        for share in _START_SHARES if self._asks_solver else ():
            channel = self._for_sample(share, budgets)
            if channel is not None:
                yield channel[self._seen]

    def _for_sample(self, share: float, budgets: Budgets) -> FloatArray | None:
        """Return the design for a share of the budgets, unless columns beside exceed that."""
        try:
            return self._plug_in({name: share * e for name, e in budgets.items()}).channel
        except BesideError:
            return None

    def _with_smaller_budgets(self, budgets: Budgets, finite: Budgets) -> FloatArray:
        """Return the design for the largest share of the budgets whose limits are within them.

        Where none of those that are tried is, the last one is softened.
        """
        nothing = telling_nothing(self._p_x, self._task.strata)
        channel = best = nothing
        # Shares and their limits: the largest known to do, the smallest known not to.
        low, high, share = (0.0, 0.0), (np.inf, np.inf), 1.0
        for _ in range(_MOST_DESIGNS):
            design = self._for_sample(share, budgets)
            if design is None:  # what is published beside uses that much
                low = share, low[1]
            else:
                channel = self._merged(design)
                limit = self._reached(channel, finite).limit
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
        if best is not nothing:
            return best

        def limits(channel: FloatArray) -> Reached:
            return self._reached(channel, finite)

        return softened(channel, self._p_x, limits, self._task.strata)

    def _reached(self, channel: FloatArray, finite: Budgets) -> Reached:
        found = reached(self._limits, finite, channel)
        return Reached(found.limit / self._share, found.per_output / self._share)

    def _expanded(self, channel: FloatArray) -> FloatArray:
        """Return a channel for symbols with rows as one for all: the others tell nothing."""
        return expanded(channel, self._p_x, self._task.strata)

    def _merged(self, channel: FloatArray) -> FloatArray:
        task, most = self._task, self._task.max_outputs
        if most is None:
            return channel
        return merged_to(channel, self._p_x, task.utility, most, task.strata)

    def _utility(self, channel: FloatArray) -> float:
        return self._task.utility.of_channel(self._p_x, channel)

    def _check_room(self, nothing: FloatArray, budgets: Budgets) -> None:
        """Check that rows exclude that columns beside the release exceed a budget alone."""
        if self._task.strata is None:
            return
        scope, of_average = self._task.scope, self._task.scope == "average"
        channel = nothing, self._task.measure, self._confidence
        for name, counts in self._counts.items():
            limit = upper_limits(counts, *channel, with_average=of_average).in_scope(scope)
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


def _remembered(plug_in: Solve) -> Solve:
    """Return the same function, which solves for the same budgets once."""
    known: dict[tuple[float, ...], Solution] = {}

    def solve(budgets: Budgets) -> Solution:
        key = tuple(budgets.values())
        if key not in known:
            known[key] = plug_in(budgets)
        return known[key]

    return solve
