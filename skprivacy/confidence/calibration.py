r"""A channel whose limit in the population is within a budget, with some confidence.

Each output has a limit of its own, ``U_z(W) <= r``: one smaller budget for all would be decided by
the rarest symbol. z is calibrated so that the joint limit of the finished channel is the budget.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from scipy.special import ndtri

from .._typing import FloatArray, Scope
from ..measures import Measure
from ..merging import merged_to, tidied
from ..utilities import Utility
from .channel_limits import KEPT, Reached
from .limit_of_measure import output_limit
from .output_limits import OutputLimit, Sample, root_budget
from .search import ConfidentSearch
from .softening import softened

# Where the limit of a channel is at least this share of the budget, its z will do, if next to
# nothing is lost to keep the budget.
_CLOSE = 0.975
_AIM = 0.993
_MOST_SOLVES = 5
_SMALLEST_Z, _LARGEST_Z = 0.3, 8.0

# So small a share of the utility is next to nothing: outputs worth less together are merged.
_TIDY = 2e-3

# Where the average is bounded, single outputs may leak so many times as much.
_MORE_THAN_AVERAGE = 2.0

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
        return root_budget(self.measure, self.epsilon)

    @property
    def budget_of_outputs(self) -> float:
        """What single outputs are held to: more than what all may leak on average."""
        more = 1.0 if self.scope == "per_output" else _MORE_THAN_AVERAGE
        return root_budget(self.measure, more * self.epsilon)


def confident_channel(
    sample: Sample,
    aim: Aim,
    start: FloatArray,
    limits: Callable[[FloatArray], Reached],
) -> FloatArray:
    """Return the channel with the largest utility found whose limit keeps the budget.

    start : points to begin with, such as those of a design for the sample itself; limits : of a
    channel for the symbols of the sample.
    """
    if len(sample.p_x) == 1:
        return np.ones((1, 1))
    limit = output_limit(sample, aim.measure, aim.epsilon, aim.confidence)
    search = ConfidentSearch(limit, aim.utility, aim.budget_of_outputs)
    proposals = np.vstack([search.first_proposals(), start])
    z = 0.15 + float(ndtri(1 - 2 * (1 - aim.confidence) / max(len(sample.p_x), 2.1)))
    low, high, tried = 0.0, np.inf, []
    for _ in range(_MOST_SOLVES):
        found = search.run(z, proposals)
        channel = _tidy(_channel(found.points, found.weights, sample.p_x), sample.p_x, aim)
        reached = limits(channel).limit
        tried.append((aim.utility.of_channel(sample.p_x, channel), reached, channel))
        is_within = reached <= aim.budget * KEPT
        # The first search leaves something for the second one to find, whatever its z.
        is_close = len(tried) > 1 and is_within and reached > _CLOSE * aim.budget
        if is_close or (is_within and _is_free(limit, found.points, z, aim)):
            break
        low, high = (low, min(high, z)) if is_within else (max(low, z), high)
        z = _next_z(limit, found.points, z, (reached - _AIM * aim.budget), low, high)
        proposals = _resumed(found.pool[: _MOST_RESUMED + 4 * len(sample.p_x)], sample.p_x)
    return _best(tried, sample.p_x, aim, limits)


def _tidy(channel: FloatArray, p_x: FloatArray, aim: Aim) -> FloatArray:
    """Merge outputs that are worth next to nothing, or too many."""
    channel = tidied(channel, p_x, aim.utility, _TIDY * aim.utility.span(p_x))
    if aim.max_outputs is None:
        return channel
    return merged_to(channel, p_x, aim.utility, aim.max_outputs)


def _best(
    tried: list[tuple[float, float, FloatArray]],
    p_x: FloatArray,
    aim: Aim,
    limits: Callable[[FloatArray], Reached],
) -> FloatArray:
    """Return the best channel that keeps the budget, or one that is softened if that is better."""
    allowed = aim.budget * KEPT
    kept = [(utility, channel) for utility, reached, channel in tried if reached <= allowed]
    useful, best = max(kept, key=itemgetter(0), default=(-np.inf, np.ones((len(p_x), 1))))
    # The closest to the budget of those that break it.
    others = [one for one in tried if one[1] > allowed and one[0] > useful]
    if not others:
        return best
    softer = softened(min(others, key=itemgetter(1))[2], p_x, limits, allowed)
    return softer if aim.utility.of_channel(p_x, softer) > useful else best


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
