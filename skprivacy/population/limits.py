"""Upper confidence limits of leakage, from joint distributions drawn around the counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._numerics import one_thread
from .._typing import BoolArray, FloatArray, IntArray, Scope, Seed
from ..joint import readonly
from ..measures import Measure
from ..measures.measure import ShippedMeasure, output_values, posteriors

# Largest number of cells in a batch of draws: 32 MB.
MOST_CELLS = 2**22


@dataclass(frozen=True, eq=False)
class Draws:
    """A batch of joints around a table of counts, drawn in two ways, not normalised.

    posterior : Dirichlet(N + N_x / n), in which every group of S has one more row, spread as P(X);
    rows : Dirichlet(N), in which no row is added; extra : the weight of one more row there, an
    Exp(1) for each group of S; estimate : mean of `posterior`, normalised.
    """

    posterior: FloatArray
    rows: FloatArray
    extra: FloatArray
    estimate: FloatArray

    @property
    def seen(self) -> BoolArray:
        """Mask of the symbols of X that have rows; the others occur in no draw."""
        return self.estimate.sum(axis=0) > 0


def draws_around(counts: FloatArray, n_draws: int, rng: np.random.Generator) -> Iterator[Draws]:
    """Yield joints around a table of counts N(s, x), in batches of bounded size.

    A group of S without rows is drawn as well: it may just be rare.
    """
    counts = np.asarray(counts, float)
    smoothed = _smoothed(counts)
    shapes = np.concatenate([smoothed.ravel(), counts.ravel(), np.ones(len(counts))])
    size, streams = max(1, MOST_CELLS // counts.size), _Streams(rng)
    for start in range(0, n_draws, size):
        drawn = streams.gamma(shapes, range(start, min(start + size, n_draws)))
        posterior, rows, extra = np.split(drawn, [counts.size, 2 * counts.size], axis=1)
        posterior, rows = (part.reshape(-1, *counts.shape) for part in (posterior, rows))
        yield Draws(posterior, rows, extra, smoothed / smoothed.sum())


def _smoothed(counts: FloatArray) -> FloatArray:
    # Half a row per cell, Jeffreys' prior, would drown small groups on wide alphabets.
    return counts + counts.sum(axis=0) / counts.sum()


def _rough_draws(counts: FloatArray, n_draws: int) -> Iterator[Draws]:
    """Yield joints from the posterior only, all from one stream, which is several times faster."""
    smoothed, rng = _smoothed(counts), np.random.default_rng(0)
    size = max(1, MOST_CELLS // counts.size)
    for start in range(0, n_draws, size):
        drawn = rng.standard_gamma(smoothed, (min(size, n_draws - start), *counts.shape))
        yield Draws(drawn, drawn[:0], drawn[:0, :, 0], smoothed / smoothed.sum())


class _Streams:
    """An independent stream of random numbers for each draw.

    Gamma variables are drawn by rejection: with a single stream, a comparison with another result
    on another processor would change all later draws.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._bits = np.random.Philox(key=rng.integers(2**63))
        self._rng, self._state = np.random.Generator(self._bits), self._bits.state

    def gamma(self, shapes: FloatArray, indices: range) -> FloatArray:
        """Return gamma variables with these shapes, one row per index of a stream."""
        drawn = np.empty((len(indices), len(shapes)))
        for row, index in zip(drawn, indices, strict=True):
            self._state["state"]["counter"][:] = 0, 0, index, 0
            self._bits.state = self._state
            self._rng.standard_gamma(shapes, out=row)
        return drawn


# Leakage of a channel under each of many joints, with and without one more row. ------------------


# Values that differ by less than this share of the largest are tied.
_TIED = 1e-9

# Number of groups of S in which one more row is tried, and the weight of that row when they are
# chosen.
_TRIED_GROUPS, _TRIED_WEIGHT = 16, 3.0


class Values(NamedTuple):
    """Values of g for each joint, as rows: the average over outputs, and each output.

    The average is NaN for a measure without one, or if it is not asked for.
    """

    average: FloatArray
    per_output: FloatArray


def from_posterior(channel: FloatArray, draws: Draws, measure: Measure) -> Values:
    """Return the values under joints from the posterior."""
    p_sy, p_s = _with_y(draws.posterior, channel)
    p_y, values = _values(measure, p_sy, p_s)
    has_average = "average" in measure.scopes
    return Values((p_y * values).sum(axis=1) if has_average else _unknown(values), values)


def with_one_more_row(
    channel: FloatArray, draws: Draws, measure: Measure, with_average: bool = True
) -> Values:
    """Return the values with one more row, in the group of S that makes them largest.

    For each output, the row has the symbol of X that leads to it most often; for the average, the
    symbol that raises it most. The average takes most of the time.
    """
    p_sy, p_s = _with_y(draws.rows, channel)
    likeliest = [channel[draws.seen].max(axis=0, keepdims=True)] * len(draws.estimate)

    def added(rows: Sequence[FloatArray]) -> Iterator[tuple[FloatArray, FloatArray]]:
        for s in _worst_groups(measure, p_sy, p_s, rows):
            for row in rows[s]:
                yield _values(measure, *_added(p_sy, p_s, s, draws.extra[:, s], row))

    each = np.max([values for _, values in added(likeliest)], axis=0)
    if not with_average or "average" not in measure.scopes:
        return Values(_unknown(each), each)
    steepest = [np.unique(channel[row], axis=0) for row in _steepest(measure, draws, channel)]
    averages = [(p_y * values).sum(axis=1) for p_y, values in added(steepest)]
    return Values(np.max(averages, axis=0), each)


def _worst_groups(
    measure: Measure, p_sy: FloatArray, p_s: FloatArray, rows: Sequence[FloatArray]
) -> IntArray:
    """Return the groups of S in which one more row may matter most.

    All of them, unless there are many: then by the mean over the draws.
    """
    if p_s.shape[1] <= _TRIED_GROUPS:
        return np.arange(p_s.shape[1])
    p_sy, p_s = p_sy.mean(axis=0, keepdims=True), p_s.mean(axis=0, keepdims=True)
    weight, largest = np.array([_TRIED_WEIGHT]), []
    for s, rows_of_group in enumerate(rows):
        joints = (_added(p_sy, p_s, s, weight, row) for row in rows_of_group)
        largest.append(max(_values(measure, *joint)[1].max() for joint in joints))
    return np.argsort(largest)[-_TRIED_GROUPS:]


def _with_y(joints: FloatArray, channel: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return P(s, y) and P(s) of each joint, not normalised."""
    n_draws, n_s, n_x = joints.shape
    p_sy = joints.reshape(-1, n_x) @ channel  # one large product is faster than many small ones
    return p_sy.reshape(n_draws, n_s, -1), joints.sum(axis=2)


def _added(
    p_sy: FloatArray, p_s: FloatArray, s: int, weight: FloatArray, p_y_given_x: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return P(s, y) and P(s) with one more row in group s; weight : of the row in each joint."""
    p_sy, p_s = p_sy.copy(), p_s.copy()
    p_sy[:, s] += weight[:, None] * p_y_given_x
    p_s[:, s] += weight
    return p_sy, p_s


def _values(measure: Measure, p_sy: FloatArray, p_s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return P(y) and g of each output, one row per joint."""
    total = p_s.sum(axis=1, keepdims=True)
    priors, p_y = p_s / total, p_sy.sum(axis=1)
    if not isinstance(measure, ShippedMeasure):  # others may accept only one prior at a time
        joints = zip(p_sy, p_y, priors, strict=True)
        values = [output_values(measure, posteriors(*joint), joint[-1]) for joint in joints]
        return p_y / total, np.array(values)
    rows = p_sy.transpose(0, 2, 1) / np.where(p_y > 0, p_y, 1.0)[..., None]
    rows = np.where((p_y > 0)[..., None], rows, priors[:, None])
    return p_y / total, measure.value(rows, priors[:, None])


def _unknown(values: FloatArray) -> FloatArray:
    return np.full(len(values), np.nan)


def _steepest(measure: Measure, draws: Draws, channel: FloatArray) -> BoolArray:
    """Return, for each group, a mask of the symbols of X whose row raises the average of g most.

    By the slope of sum P(y) g(P(S|y)) in P(s, x), up to a constant in x. Ties are broken by how
    much P(y|x) differs from P(y). Of those that still tie, all are returned: rounding would decide
    which is first.
    """
    prior, p_sy = draws.estimate.sum(axis=1), draws.estimate @ channel
    p_y = p_sy.sum(axis=0)
    rows = posteriors(p_sy, p_y, prior)
    slope = measure.subgradient(rows, prior)
    slope += (measure.value(rows, prior) - (slope * rows).sum(axis=1))[:, None]
    steepest = _largest(np.where(draws.seen, (channel @ slope).T, -np.inf))
    apart = np.where(p_y > 0, channel**2 / np.where(p_y > 0, p_y, 1.0), 0.0).sum(axis=1)
    return _largest(np.where(steepest, apart, -np.inf))


def _largest(values: FloatArray) -> BoolArray:
    """Return a mask of the largest values of each row."""
    largest = values.max(axis=1, keepdims=True)
    return values >= largest - _TIED * np.abs(largest)


# Upper confidence limits of leakage: of each output, of the worst output and of the average.


# Number of joints drawn; more for a confidence that would leave fewer than two of them above it.
_N_DRAWS, _FEWEST_ABOVE = 999, 2

# Largest number of floats in draws that are kept for several channels: 128 MB.
_MOST_NUMBERS = 2**24


@dataclass(frozen=True, eq=False)
class UpperLimits:
    """Limits on the epsilon scale: of the worst output, of the average, and of each output.

    Limits of single outputs hold with the confidence one by one, not all at once. The average is
    NaN for a measure without one, or if it is not asked for.
    """

    worst: float
    average: float
    per_output: FloatArray

    def in_scope(self, scope: Scope) -> float:
        """Return the limit in a scope."""
        return self.worst if scope == "per_output" else self.average


def upper_limits(
    counts: FloatArray,
    channel: FloatArray,
    measure: Measure,
    confidence: float,
    *,
    n_draws: int | None = None,
    random_state: Seed = 0,
    with_average: bool = True,
) -> UpperLimits:
    """Return limits of what a channel P(y|x) leaks in the population `counts` were drawn from.

    The same counts and seed give the same limits. n_draws : None for enough of them;
    with_average : whether to limit the average too, which takes as long as all other limits.
    """
    draws = draws_of_limits(counts, confidence, n_draws, random_state)
    return limits_of(channel, draws, measure, confidence, with_average=with_average)


@one_thread
def rough_limits(
    counts: FloatArray, channel: FloatArray, measure: Measure, confidence: float, n_draws: int
) -> UpperLimits:
    """Return limits from the posterior only, for warnings: without the case of one more row."""
    draws = _rough_draws(np.asarray(counts, float), n_draws)
    return limits_of(channel, draws, measure, confidence, is_rough=True)


def limit_unchanged(
    counts: FloatArray, measure: Measure, scope: Scope, confidence: float
) -> float:
    """Return the limit of what X itself leaks in the population `counts` were drawn from."""
    channel, with_average = np.eye(counts.shape[1]), scope == "average"
    limits = upper_limits(counts, channel, measure, confidence, with_average=with_average)
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
    and Pearson if a single cell matters, and like that of Fay and Feuer if several do: no prior
    vouches for a group with only a handful of rows. is_rough : use the posterior alone, which is
    faster if S has many groups.
    """
    batches = []
    for batch in draws:
        batches.append([from_posterior(channel, batch, measure)])
        if not is_rough:
            batches[-1].append(with_one_more_row(channel, batch, measure, with_average))
    limits = []
    for values in zip(*batches, strict=True):
        average, each = map(np.concatenate, zip(*values, strict=True))
        limits.append([_quantile(v, confidence) for v in (each.max(axis=1), average, each)])
    worst, average, each = (
        measure.inverse(np.maximum.reduce(found)) for found in zip(*limits, strict=True)
    )
    return UpperLimits(float(worst), float(average), readonly(each))


def draws_of_limits(
    counts: FloatArray, confidence: float, n_draws: int | None = None, random_state: Seed = 0
) -> Iterator[Draws]:
    """Yield the draws for limits; n_draws : None for enough for the confidence."""
    n_draws = n_draws or _enough_draws(confidence)
    return draws_around(counts, n_draws, np.random.default_rng(random_state))


def _enough_draws(confidence: float) -> int:
    return max(_N_DRAWS, int(np.ceil(_FEWEST_ABOVE / (1 - confidence))))


def kept_draws(counts: FloatArray, confidence: float) -> list[Draws] | None:
    """Return the draws as a list, for several channels; None if that takes too much memory."""
    # Each draw has two tables.
    if 2 * counts.size * _enough_draws(confidence) > _MOST_NUMBERS:
        return None
    return list(draws_of_limits(counts, confidence))


def _quantile(values: FloatArray, confidence: float) -> FloatArray:
    """Return, per column, the order statistic exceeded by a share of at most 1 - confidence."""
    rank = min(len(values), int(np.ceil(confidence * (len(values) + 1)))) - 1
    return np.partition(values, rank, axis=0)[rank]


# Limits of whole channels as shares of the budgets, for the search.


# Measures whose epsilon is quadratic in the deviations of lifts from 1.
_QUADRATIC = {"kl", "alpha_lift"}

# Designs are calibrated with other draws than those that judge mechanisms.
_SEED = 1

# Limits stay within this share of the budget, so that rounding elsewhere cannot push them above.
_KEPT_SHARE = 1.0 - 1e-6

_MOST_DRAWS, _FEWEST_DRAWS = 999, 199


class BudgetUse(NamedTuple):
    """The limits of a channel as shares of the budgets: the largest, and per secret and output.

    Shares are taken on a scale on which leakage is about linear in the deviations of lifts.
    """

    limit: float
    per_output: FloatArray


class ChannelLimits:
    """Limits of what channels leak about one secret in the population.

    counts : of pairs (s, x); scope : of the budget.
    """

    def __init__(
        self, counts: FloatArray, measure: Measure, scope: Scope, confidence: float
    ) -> None:
        self._counts, self._measure = counts, measure
        self._scope, self._confidence = scope, confidence
        n_draws = int(np.clip(_MOST_NUMBERS // counts.size, _FEWEST_DRAWS, _MOST_DRAWS))
        self._draws = list(draws_around(counts, n_draws, np.random.default_rng(_SEED)))

    def budget_use(self, channel: FloatArray, epsilon: float) -> BudgetUse:
        """Return the limits as shares of a budget."""
        with_average = self._scope == "average"
        limits = limits_of(
            channel, self._draws, self._measure, self._confidence, with_average=with_average
        )
        found = limits.in_scope(self._scope), limits.per_output
        with np.errstate(divide="ignore", invalid="ignore"):  # a budget of zero allows only zero
            allowed = _KEPT_SHARE * self._linear(epsilon)
            limit, each = (np.nan_to_num(self._linear(f) / allowed, posinf=np.inf) for f in found)
        return BudgetUse(float(limit), each)

    def _linear(self, leakage: float | FloatArray) -> Any:
        leakage = np.maximum(leakage, 0.0)
        return np.sqrt(leakage) if self._measure.name in _QUADRATIC else leakage
