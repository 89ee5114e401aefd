"""Upper confidence limits of what leaks, from joint distributions drawn around the counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._typing import BoolArray, FloatArray, IntArray, Scope, Seed
from ..joint import readonly
from ..measures import Measure
from ..measures.measure import ShippedMeasure, output_values, posteriors

# Draws are made in batches with at most this many cells in all: 32 MB.
MOST_CELLS = 2**22


@dataclass(frozen=True, eq=False)
class Draws:
    """A batch of joints around a table of counts, drawn in two ways, none of them normalised.

    posterior : Dirichlet(N + N_x / n), in which every group of S has one more row, spread as P(X);
    rows : Dirichlet(N), in which no row is added; extra : the weight of one more row there, an
    Exp(1) for each group of S; estimate : the mean of `posterior`, normalised.
    """

    posterior: FloatArray
    rows: FloatArray
    extra: FloatArray
    estimate: FloatArray

    @property
    def seen(self) -> BoolArray:
        """Which symbols of X have rows. Nothing is known of the others: no draw has them."""
        return self.estimate.sum(axis=0) > 0


def draws_around(counts: FloatArray, n_draws: int, rng: np.random.Generator) -> Iterator[Draws]:
    """Yield joints around a table of counts N(s, x), in batches of bounded size.

    A group of S without rows is drawn as well: it may merely be rare.
    """
    counts = np.asarray(counts, float)
    # Half a row per cell, Jeffreys' prior, would drown small groups on wide alphabets.
    smoothed = counts + counts.sum(axis=0) / counts.sum()
    shapes = np.concatenate([smoothed.ravel(), counts.ravel(), np.ones(len(counts))])
    size, streams = max(1, MOST_CELLS // counts.size), _Streams(rng)
    for start in range(0, n_draws, size):
        drawn = streams.gamma(shapes, range(start, min(start + size, n_draws)))
        posterior, rows, extra = np.split(drawn, [counts.size, 2 * counts.size], axis=1)
        posterior, rows = (part.reshape(-1, *counts.shape) for part in (posterior, rows))
        yield Draws(posterior, rows, extra, smoothed / smoothed.sum())


class _Streams:
    """A stream of random numbers for each draw, which no other draw has a part in.

    Gamma variables are drawn by rejection. In one stream, a comparison that comes out differently
    on another processor would change all that follows.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._bits = np.random.Philox(key=rng.integers(2**63))
        self._rng, self._state = np.random.Generator(self._bits), self._bits.state

    def gamma(self, shapes: FloatArray, indices: Iterable[int]) -> FloatArray:
        """Return gamma variables of some shapes, a row for the stream of each index."""
        indices = list(indices)
        drawn = np.empty((len(indices), len(shapes)))
        for row, index in zip(drawn, indices, strict=True):
            self._state["state"]["counter"][:] = 0, 0, index, 0
            self._bits.state = self._state
            self._rng.standard_gamma(shapes, out=row)
        return drawn


# Leakage of a channel under each of many joints, with and without one more row. ------------------


# Figures that differ by less than this share of the largest are the same.
_TIED = 1e-9

# So many groups of S are tried for one more row, which may well weigh as much as so many rows.
_ALL_GROUPS, _SOME_ROWS = 16, 3.0


@dataclass(frozen=True, eq=False)
class Figures:
    """g for each joint, as rows: on average over outputs, and of each output.

    The average is NaN for a measure that has none, and where it is not asked for.
    """

    average: FloatArray
    per_output: FloatArray

    @classmethod
    def joined(cls, batches: Iterable[Figures]) -> Figures:
        """Return the figures of all batches."""
        averages, each = zip(*((b.average, b.per_output) for b in batches), strict=True)
        return cls(np.concatenate(averages), np.concatenate(each))


def from_posterior(channel: FloatArray, draws: Draws, measure: Measure) -> Figures:
    """Return the figures under joints from the posterior."""
    p_sy, p_s = _with_y(draws.posterior, channel)
    p_y, values = _values(measure, p_sy, p_s)
    has_average = "average" in measure.scopes
    return Figures((p_y * values).sum(axis=1) if has_average else _unknown(values), values)


def with_one_more_row(
    channel: FloatArray, draws: Draws, measure: Measure, with_average: bool = True
) -> Figures:
    """Return the figures with one more row, of the group of S for which they are largest.

    For each output, the row has the symbol of X that gives it most often; on average, the one that
    raises the average most. The average takes most of the time: without it, it is NaN.
    """
    p_sy, p_s = _with_y(draws.rows, channel)
    likeliest = [channel[draws.seen].max(axis=0, keepdims=True)] * len(draws.estimate)

    def added(rows: Sequence[FloatArray]) -> Iterator[tuple[FloatArray, FloatArray]]:
        for s in _worst_groups(measure, p_sy, p_s, rows):
            for row in rows[s]:
                yield _values(measure, *_added(p_sy, p_s, s, draws.extra[:, s], row))

    each = np.max([values for _, values in added(likeliest)], axis=0)
    if not with_average or "average" not in measure.scopes:
        return Figures(_unknown(each), each)
    telling = [np.unique(channel[row], axis=0) for row in _steepest(measure, draws, channel)]
    averages = [(p_y * values).sum(axis=1) for p_y, values in added(telling)]
    return Figures(np.max(averages, axis=0), each)


def _worst_groups(
    measure: Measure, p_sy: FloatArray, p_s: FloatArray, rows: Sequence[FloatArray]
) -> IntArray:
    """Return the groups of S of which one more row may matter most.

    All of them, unless there are many: then those for which it does on average over the draws.
    """
    if p_s.shape[1] <= _ALL_GROUPS:
        return np.arange(p_s.shape[1])
    p_sy, p_s = p_sy.mean(axis=0, keepdims=True), p_s.mean(axis=0, keepdims=True)
    weight, reached = np.array([_SOME_ROWS]), []
    for s, own in enumerate(rows):
        joints = (_added(p_sy, p_s, s, weight, row) for row in own)
        reached.append(max(_values(measure, *joint)[1].max() for joint in joints))
    return np.argsort(reached)[-_ALL_GROUPS:]


def _with_y(joints: FloatArray, channel: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return P(s, y) and P(s) of each joint, not normalised either."""
    n_draws, n_s, n_x = joints.shape
    p_sy = joints.reshape(-1, n_x) @ channel  # one large product is faster than many small ones
    return p_sy.reshape(n_draws, n_s, -1), joints.sum(axis=2)


def _added(
    p_sy: FloatArray, p_s: FloatArray, s: int, weight: FloatArray, p_y_given_x: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return P(s, y) and P(s) with one more row of group s, of some weight in each joint."""
    p_sy, p_s = p_sy.copy(), p_s.copy()
    p_sy[:, s] += weight[:, None] * p_y_given_x
    p_s[:, s] += weight
    return p_sy, p_s


def _values(measure: Measure, p_sy: FloatArray, p_s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return P(y) and g of each output, for each joint as rows."""
    total = p_s.sum(axis=1, keepdims=True)
    priors, p_y = p_s / total, p_sy.sum(axis=1)
    if not isinstance(measure, ShippedMeasure):  # its prior need not have more than one axis
        each = zip(p_sy, p_y, priors, strict=True)
        values = [output_values(measure, posteriors(*one), one[-1]) for one in each]
        return p_y / total, np.array(values)
    rows = p_sy.transpose(0, 2, 1) / np.where(p_y > 0, p_y, 1.0)[..., None]
    rows = np.where((p_y > 0)[..., None], rows, priors[:, None])
    return p_y / total, measure.value(rows, priors[:, None])


def _unknown(values: FloatArray) -> FloatArray:
    return np.full(len(values), np.nan)


def _steepest(measure: Measure, draws: Draws, channel: FloatArray) -> BoolArray:
    """Return the symbols of X with which a row of each group raises the average of g most.

    By the slope of sum P(y) g(P(S|y)) in P(s, x), but for what is the same for all x. Of those
    that tie, by how much P(y|x) differs from P(y); all that still tie, because which one is first
    is a matter of rounding.
    """
    prior, p_sy = draws.estimate.sum(axis=1), draws.estimate @ channel
    rows = posteriors(p_sy, p_sy.sum(axis=0), prior)
    slope = measure.subgradient(rows, prior)
    slope += (measure.value(rows, prior) - (slope * rows).sum(axis=1))[:, None]
    p_y = p_sy.sum(axis=0)
    steepest = _largest(np.where(draws.seen, (channel @ slope).T, -np.inf))
    apart = np.where(p_y > 0, channel**2 / np.where(p_y > 0, p_y, 1.0), 0.0).sum(axis=1)
    return _largest(np.where(steepest, apart, -np.inf))


def _largest(figures: FloatArray) -> BoolArray:
    """Return where the largest figures of each row are."""
    largest = figures.max(axis=1, keepdims=True)
    return figures >= largest - _TIED * np.abs(largest)


# Upper confidence limits of what a channel leaks, per output, at worst and on average.


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
