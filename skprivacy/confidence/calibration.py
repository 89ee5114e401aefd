r"""A channel whose limit in the population is within a budget, with some confidence.

Each output has a limit of its own, ``U_z(W) <= r``: one smaller budget for all would be decided by
the rarest symbol. z is calibrated so that the joint limit of the finished channel is the budget.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from .._typing import FloatArray
from ..limits import Draws, draws_around, limits_of
from ..measures import Measure
from ..merging import tidied
from ..utilities import Utility
from .limit_of_measure import output_limit
from .output_limits import OutputLimit, Sample, root_leakage
from .search import ConfidentSearch

# Where the limit of a channel is at least this share of the budget, its z will do, if next to
# nothing is lost to keep the budget. It is kept up to rounding.
_CLOSE = 0.975
_KEPT = 1.0 - 1e-6
_AIM = 0.993
_MOST_SOLVES = 5
_SMALLEST_Z, _LARGEST_Z = 0.3, 8.0

# So small a share of the utility is next to nothing: outputs worth less together are merged.
_TIDY = 2e-3

_N_DRAWS = 999
_CAPS = 8
_LARGEST_LIMIT = 1e3
_ROUNDING = 1e-9

# A search for another z starts from so many points.
_MOST_RESUMED = 200

# An output whose limit is below this share of the budget is not held back by it.
_AT_LIMIT = 0.97


@dataclass(frozen=True, eq=False)
class Aim:
    """What a channel is wanted for."""

    epsilon: float
    measure: Measure
    utility: Utility
    confidence: float

    @property
    def budget(self) -> float:
        """The budget on the scale of the limits."""
        return float(root_leakage(self.measure, np.array(self.epsilon)))


def confident_channel(sample: Sample, aim: Aim, plug_in: FloatArray, seed: int = 0) -> FloatArray:
    """Return the channel with the largest utility found whose limit keeps the budget.

    plug_in : posteriors of outputs of designs for the sample itself, to start from.
    """
    if len(sample.p_x) == 1:
        return np.ones((1, 1))
    limit = output_limit(sample, aim.measure, aim.epsilon, aim.confidence)
    search = ConfidentSearch(limit, aim.utility, aim.budget, seed)
    draws = list(draws_around(sample.counts, _N_DRAWS, np.random.default_rng(seed)))
    proposals = np.vstack([search.first_proposals(), plug_in])
    z = 0.15 + norm.ppf(1 - 2 * (1 - aim.confidence) / max(len(sample.p_x), 2.1))
    low, high = 0.0, np.inf
    best, best_utility = np.ones((len(sample.p_x), 1)), aim.utility.smallest(sample.p_x)
    small = _TIDY * aim.utility.span(sample.p_x)
    for _ in range(_MOST_SOLVES):
        found = search.run(z, proposals)
        channel = _channel(found.points, found.weights, sample.p_x)
        channel = tidied(channel, sample.p_x, aim.utility, small)
        hoped_for = aim.utility.of_channel(sample.p_x, channel)
        reached = _limit(channel, draws, aim)
        channel = _within(channel, sample.p_x, draws, aim) if reached > aim.budget else channel
        utility = aim.utility.of_channel(sample.p_x, channel)
        if utility > best_utility:
            best, best_utility = channel, utility
        is_close = reached > _CLOSE * aim.budget and utility > hoped_for - small
        if is_close or _is_free(limit, found.points, z, aim):
            break
        low, high = (max(low, z), high) if reached > aim.budget else (low, min(high, z))
        z = _next_z(limit, found.points, z, (reached - _AIM * aim.budget), low, high)
        proposals = _resumed(found.pool[: _MOST_RESUMED + 4 * len(sample.p_x)], sample.p_x)
    return best


def _resumed(pool: FloatArray, p_x: FloatArray) -> FloatArray:
    """Return where a search for another z starts: there may be more room than for this one."""
    outward = np.maximum(p_x + 1.5 * (pool - p_x), 0.0)
    return np.vstack([pool, outward / outward.sum(axis=1, keepdims=True)])


def _channel(points: FloatArray, weights: FloatArray, p_x: FloatArray) -> FloatArray:
    """Return the channel of weighted points; what they leave of P(X) tells nothing."""
    channel = (weights[:, None] * points / p_x).T
    rest = np.maximum(1 - channel.sum(axis=1), 0.0)
    if rest.max() > _ROUNDING:
        # Every symbol gives the independent output equally often.
        channel = np.hstack([channel, np.full((len(p_x), 1), rest.mean())])
    return channel / channel.sum(axis=1, keepdims=True)


def _limit(channel: FloatArray, draws: list[Draws], aim: Aim) -> float:
    """Return the limit of the worst output, on the root scale."""
    worst = limits_of(channel, draws, aim.measure, aim.confidence).worst
    return float(root_leakage(aim.measure, np.array(worst)))


def _within(channel: FloatArray, p_x: FloatArray, draws: list[Draws], aim: Aim) -> FloatArray:
    """Return the channel with outputs closer to independence until its limit keeps the budget.

    Only those with the largest limits have to be: their limits are capped.
    """
    limits = limits_of(channel, draws, aim.measure, aim.confidence).per_output
    limits = np.clip(root_leakage(aim.measure, limits), _ROUNDING, _LARGEST_LIMIT)
    best, low, high = np.ones((len(channel), 1)), 0.0, float(limits.max())
    cap = 0.9 * high
    for _ in range(_CAPS):
        closer = _closer(channel, p_x, np.minimum(1.0, cap / limits))
        if _limit(closer, draws, aim) <= aim.budget * _KEPT:
            best, low = closer, cap
        else:
            high = cap
        cap = np.sqrt(low * high) if low else high / 2
    return best


def _closer(channel: FloatArray, p_x: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the channel with P(X|y) at these shares of the ways from P(X).

    Outputs that come closer are used more often: then they still average to P(X).
    """
    shares = np.maximum(shares, 1e-6)
    closer = channel + (p_x @ channel) * (1 / shares - 1)
    return closer / closer.sum(axis=1, keepdims=True)


def _is_free(limit: OutputLimit, points: FloatArray, z: float, aim: Aim) -> bool:
    """Return whether no output is at its limit: another z would change nothing."""
    return bool((limit.value(points, z) < _AT_LIMIT * aim.budget).all())


def _next_z(
    limit: OutputLimit, points: FloatArray, z: float, excess: float, low: float, high: float
) -> float:
    """Return the z at which the joint limit should be met, by how fast limits grow with z."""
    growth = (limit.value(points, z + 0.1) - limit.value(points, z)) / 0.1
    new = z + excess / max(float(np.median(growth)), 1e-6)
    if low > 0 and np.isfinite(high):
        margin = 0.15 * (high - low)
        new = min(max(new, low + margin), high - margin)
    return float(np.clip(new, _SMALLEST_Z, _LARGEST_Z))
