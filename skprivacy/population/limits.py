"""Upper confidence limits of what a channel leaks, per output, at worst and on average."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._typing import FloatArray, Scope, Seed
from ..joint import readonly
from ..measures import Measure
from .draws import Draws, Figures, draws_around, from_posterior, with_one_more_row

# How many joints are drawn: more where a confidence would leave fewer than two of them above it.
_N_DRAWS, _FEWEST_ABOVE = 999, 2

# Draws are kept for several channels up to so many numbers: 128 MB.
_MOST_NUMBERS = 2**24


@dataclass(frozen=True, eq=False)
class UpperLimits:
    """Limits on the epsilon scale: of the worst output, of the average, and of each output.

    Those of single outputs hold with the confidence one by one, not all at once. The average is
    NaN for a measure that has none, and where it is not asked for.
    """

    worst: float
    average: float
    per_output: FloatArray

    def in_scope(self, scope: Scope) -> float:
        """Return the limit that a budget of some scope is about."""
        return self.worst if scope == "per_output" else self.average


def upper_limits(
    counts: FloatArray,
    channel: FloatArray,
    measure: Measure,
    confidence: float,
    *,
    n_draws: int | None = None,
    random_state: Seed = 0,
    is_rough: bool = False,
    with_average: bool = True,
) -> UpperLimits:
    """Return limits of what a channel P(y|x) leaks where the rows of `counts` come from.

    The same counts and seed give the same figures. n_draws : None for enough of them; is_rough :
    from the posterior alone, which takes less time where S has many groups; with_average : whether
    the limit of the average is wanted, too, which takes as much time as all the others.
    """
    draws = draws_of_limits(counts, confidence, n_draws, random_state)
    return limits_of(channel, draws, measure, confidence, is_rough, with_average)


def limit_unchanged(
    counts: FloatArray, measure: Measure, scope: Scope, confidence: float
) -> float:
    """Return the limit of what X itself leaks where the rows of `counts` come from."""
    identity, with_average = np.eye(counts.shape[1]), scope == "average"
    limits = upper_limits(counts, identity, measure, confidence, with_average=with_average)
    return limits.in_scope(scope)


def limits_of(
    channel: FloatArray,
    draws: Iterable[Draws],
    measure: Measure,
    confidence: float,
    is_rough: bool = False,
    with_average: bool = True,
) -> UpperLimits:
    """Return limits from draws, which several channels may share.

    Each is the larger of two: the same order statistic over joints from the posterior, and over
    joints with one more row where it reveals most. With one more row, the limit is that of Clopper
    and Pearson where a single cell matters, and in the manner of Fay and Feuer where several do:
    no prior speaks for a group that has only a handful of rows.
    """
    batches = []
    for batch in draws:
        batches.append([from_posterior(channel, batch, measure)])
        if not is_rough:
            batches[-1].append(with_one_more_row(channel, batch, measure, with_average))
    limits = [_limits(Figures.joined(way), confidence) for way in zip(*batches, strict=True)]
    worst, average, each = (
        measure.inverse(np.maximum.reduce(found)) for found in zip(*limits, strict=True)
    )
    return UpperLimits(float(worst), float(average), readonly(each))


def draws_of_limits(
    counts: FloatArray, confidence: float, n_draws: int | None = None, random_state: Seed = 0
) -> Iterator[Draws]:
    """Yield the draws that limits are from; n_draws : None for enough for the confidence."""
    n_draws = n_draws or _enough_draws(confidence)
    return draws_around(counts, n_draws, np.random.default_rng(random_state))


def _enough_draws(confidence: float) -> int:
    return max(_N_DRAWS, int(np.ceil(_FEWEST_ABOVE / (1 - confidence))))


def kept_draws(counts: FloatArray, confidence: float) -> list[Draws] | None:
    """Return these draws for several channels; None where they would take too much memory."""
    # Each draw has two tables.
    if 2 * counts.size * _enough_draws(confidence) > _MOST_NUMBERS:
        return None
    return list(draws_of_limits(counts, confidence))


def _limits(figures: Figures, confidence: float) -> list[FloatArray]:
    """Return limits of g: of the worst output, of the average, of each output."""
    each = figures.per_output
    return [order_statistic(f, confidence) for f in (each.max(axis=1), figures.average, each)]


def order_statistic(figures: FloatArray, confidence: float) -> FloatArray:
    """Return what is exceeded by a share of at most 1 - confidence, column by column."""
    rank = min(len(figures), int(np.ceil(confidence * (len(figures) + 1)))) - 1
    return np.partition(figures, rank, axis=0)[rank]


# The limits of whole channels, which a design has to keep within its budgets.


# Measures whose epsilon is quadratic in the deviations of lifts from 1.
_QUADRATIC = {"kl", "alpha_lift"}

# Designs are calibrated by draws of their own; the limit that a mechanism reports is from others.
_SEED = 1

# The limit of a channel stays this far within the budget: rounding elsewhere cannot lift it above.
KEPT = 1.0 - 1e-6

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
