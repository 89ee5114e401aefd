"""The limits of whole channels, which a design has to keep within its budgets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from .._typing import FloatArray, Scope
from ..limits import Draws, UpperLimits, draws_around, draws_for, limits_of
from ..measures import Measure

# Measures whose epsilon is quadratic in the deviations of lifts from 1.
_QUADRATIC = {"kl", "alpha_lift"}

# A channel must keep the budget by two sets of draws: these, and those of the limit that is
# reported. A limit that is met by chance in one of them is not by both.
_SEED = 1

# The limit of a channel stays this far within the budget: rounding elsewhere cannot lift it above.
KEPT = 1.0 - 1e-6

# Draws are kept up to so many numbers in all: 128 MB. Beyond, a design is calibrated with fewer.
_MOST_NUMBERS = 2**24
_MOST_DRAWS, _FEWEST_DRAWS = 999, 199


class Reached(NamedTuple):
    """The limits of a channel as shares of the budgets: the largest, and of secrets and outputs.

    Shares are taken on a scale on which leakage is about linear in the deviations of lifts.
    """

    limit: float
    per_output: FloatArray


class ChannelLimits:
    """The limits of what channels leak about one secret in the population.

    counts : of pairs (s, x); scope : of the budget.
    """

    def __init__(
        self, counts: FloatArray, measure: Measure, scope: Scope, confidence: float
    ) -> None:
        self._counts, self._measure = counts, measure
        self._scope, self._confidence = scope, confidence
        n_draws = int(np.clip(_MOST_NUMBERS // counts.size, _FEWEST_DRAWS, _MOST_DRAWS))
        self._draws = list(draws_around(counts, n_draws, np.random.default_rng(_SEED)))
        self._reported: list[Draws] = []
        if counts.size * draws_for(confidence) <= _MOST_NUMBERS:
            self._reported = list(self._drawn_again())

    def shares(self, channel: FloatArray, epsilon: float) -> Reached:
        """Return the larger of the two limits, as shares of a budget."""
        ours = self._of(channel, self._draws)
        reported = self.reported(channel)
        worst = np.array(max(limits.in_scope(self._scope) for limits in (ours, reported)))
        each = np.maximum(ours.per_output, reported.per_output)
        allowed = KEPT * self._root(np.array(epsilon))
        return Reached(float(self._root(worst) / allowed), self._root(each) / allowed)

    def _root(self, leakage: FloatArray) -> FloatArray:
        leakage = np.maximum(leakage, 0.0)
        return np.sqrt(leakage) if self._measure.name in _QUADRATIC else leakage

    def reported(self, channel: FloatArray) -> UpperLimits:
        """Return the limits that a mechanism checks itself by, in the scope of the budget."""
        return self._of(channel, self._reported or self._drawn_again())

    def _of(self, channel: FloatArray, draws: Iterable[Draws]) -> UpperLimits:
        with_average = self._scope == "average"
        return limits_of(
            channel, draws, self._measure, self._confidence, with_average=with_average
        )

    def _drawn_again(self) -> Iterator[Draws]:
        return draws_around(self._counts, draws_for(self._confidence), np.random.default_rng(0))


def reached(
    limits: Mapping[Any, ChannelLimits], budgets: Mapping[Any, float], channel: FloatArray
) -> Reached:
    """Return the limits of a channel for all secrets that have a budget."""
    each = [limits[name].shares(channel, epsilon) for name, epsilon in budgets.items()]
    largest = max(share.limit for share in each)
    return Reached(largest, np.array([share.per_output for share in each]))
