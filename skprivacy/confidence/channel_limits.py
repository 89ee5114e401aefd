"""The limits of whole channels, which a design has to keep within its budgets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .._typing import FloatArray, Scope
from ..limits import draws_around, limits_of
from ..measures import Measure

# Measures whose epsilon is quadratic in the deviations of lifts from 1.
_QUADRATIC = {"kl", "alpha_lift"}

# Designs are calibrated by draws of their own; the limit that a mechanism reports is from others.
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

    def shares(self, channel: FloatArray, epsilon: float) -> Reached:
        """Return the limits as shares of a budget."""
        with_average = self._scope == "average"
        limits = limits_of(
            channel, self._draws, self._measure, self._confidence, with_average=with_average
        )
        worst = limits.in_scope(self._scope)
        return shares_of(self._measure, worst, limits.per_output, epsilon)


def shares_of(measure: Measure, worst: float, per_output: FloatArray, epsilon: float) -> Reached:
    """Return limits, in the scope of the budget and of each output, as shares of the budget."""

    def root(leakage: float | FloatArray) -> Any:
        leakage = np.maximum(leakage, 0.0)
        return np.sqrt(leakage) if measure.name in _QUADRATIC else leakage

    with np.errstate(divide="ignore", invalid="ignore"):  # a budget of zero allows only zero
        allowed = KEPT * root(epsilon)
        shares = [np.nan_to_num(root(x) / allowed, posinf=np.inf) for x in (worst, per_output)]
    return Reached(float(shares[0]), shares[1])


def reached(
    limits: Mapping[Any, ChannelLimits], budgets: Mapping[Any, float], channel: FloatArray
) -> Reached:
    """Return the limits of a channel for all secrets that have a budget."""
    return largest_of(limits[name].shares(channel, epsilon) for name, epsilon in budgets.items())


def largest_of(shares: Iterable[Reached]) -> Reached:
    """Return the shares of all secrets, with the largest limit of any."""
    each = list(shares)
    return Reached(max(share.limit for share in each), np.array([s.per_output for s in each]))
