r"""A channel whose limit in the population is within a budget, with some confidence.

Each output has a limit of its own, ``U_z(W) <= r``: one smaller budget for all would be decided by
the rarest symbol. z is calibrated so that the joint limit of the finished channel is the budget.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from .._typing import FloatArray, Scope
from ..limits import Draws, draws_around, limits_of
from ..measures import Measure
from ..merging import merged_to, tidied
from ..utilities import Utility
from .limit_of_measure import output_limit
from .output_limits import OutputLimit, Sample, root_leakage
from .search import ConfidentSearch
from .softening import softened

# Where the limit of a channel is within these shares of the budget, its z will do.
_CLOSE = 0.975, 1.0 - 1e-6
_AIM = 0.993
_MOST_SOLVES = 5
_SMALLEST_Z, _LARGEST_Z = 0.3, 8.0

# Outputs that together are worth less than this share of the utility are merged.
_TIDY = 2e-3

# Where the average is bounded, single outputs may leak so many times as much.
_MORE_THAN_AVERAGE = 2.0

_N_DRAWS = 999
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
    max_outputs: int | None = None
    scope: Scope = "per_output"

    @property
    def budget(self) -> float:
        """The budget on the scale of the limits."""
        return float(root_leakage(self.measure, np.array(self.epsilon)))

    @property
    def budget_of_outputs(self) -> float:
        """What single outputs are held to: more than what all may leak on average."""
        more = 1.0 if self.scope == "per_output" else _MORE_THAN_AVERAGE
        return float(root_leakage(self.measure, np.array(more * self.epsilon)))


def confident_channel(sample: Sample, aim: Aim, plug_in: FloatArray, seed: int = 0) -> FloatArray:
    """Return the channel with the largest utility found whose limit keeps the budget.

    plug_in : posteriors of outputs of designs for the sample itself, to start from.
    """
    limit = output_limit(sample, aim.measure, aim.epsilon)
    search = ConfidentSearch(limit, aim.utility, aim.budget_of_outputs, seed)
    draws = list(draws_around(sample.counts, _N_DRAWS, np.random.default_rng(seed)))
    proposals = np.vstack([search.first_proposals(), plug_in])
    z = 0.15 + norm.ppf(1 - 2 * (1 - aim.confidence) / max(len(sample.p_x), 2.1))
    low, high = 0.0, np.inf
    best, best_utility = np.ones((len(sample.p_x), 1)), aim.utility.smallest(sample.p_x)
    for _ in range(_MOST_SOLVES):
        found = search.run(z, proposals)
        channel = _channel(found.points, found.weights, sample.p_x)
        allowance = _TIDY * aim.utility.span(sample.p_x)
        channel = tidied(channel, sample.p_x, aim.utility, allowance)
        if aim.max_outputs is not None:
            channel = merged_to(channel, sample.p_x, aim.utility, aim.max_outputs)
        reached = _limit(channel, draws, aim)
        channel = softened(
            channel, sample.p_x, lambda tried: _limit(tried, draws, aim), aim.budget * _CLOSE[1]
        )
        utility = aim.utility.of_channel(sample.p_x, channel)
        if utility > best_utility:
            best, best_utility = channel, utility
        if _CLOSE[0] < reached / aim.budget <= _CLOSE[1] or _is_free(limit, found.points, z, aim):
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
    """Return the limit that the budget is about, on the root scale."""
    limits = limits_of(channel, draws, aim.measure, aim.confidence)
    return float(root_leakage(aim.measure, np.array(limits.in_scope(aim.scope))))


def _is_free(limit: OutputLimit, points: FloatArray, z: float, aim: Aim) -> bool:
    """Return whether no output is at its limit: another z would change nothing."""
    return bool((limit.value(points, z) < _AT_LIMIT * aim.budget_of_outputs).all())


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
