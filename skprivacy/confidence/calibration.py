r"""A channel whose limit in the population is within a budget, with some confidence.

Each output has a limit of its own, ``U_z(W) <= r``: one smaller budget for all would be decided by
the rarest symbol. z is calibrated so that the joint limit of the finished channel is the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from scipy.special import ndtri

from .._typing import BoolArray, FloatArray, IntArray, Scope
from ..measures import Measure
from ..merging import merged_to, tidied
from ..solvers.stacking import side_by_side
from ..utilities import Utility
from .channel_limits import KEPT, Reached
from .output_limits import OutputLimit, root_budget
from .search import ConfidentSearch
from .softening import softened, telling_nothing

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
    """What a channel is wanted for.

    budget : on the scale of the limits; budget_of_outputs : what single outputs are held to, which
    is more where the average is bounded; utility, p_x : what is to be kept, and of what X;
    confidence : with which the budget is to hold; max_outputs : or None; groups : of X, or None.
    """

    budget: float
    budget_of_outputs: float
    utility: Utility
    p_x: FloatArray
    confidence: float
    max_outputs: int | None = None
    groups: IntArray | None = None


def budgets_on_roots(measure: Measure, epsilon: float, scope: Scope) -> tuple[float, float]:
    """Return the budget on the scale of the limits, and that of single outputs."""
    more = 1.0 if scope == "per_output" else _MORE_THAN_AVERAGE
    return root_budget(measure, epsilon), root_budget(measure, more * epsilon)


class Part:
    """The search for outputs of some symbols of X: all of them, or those of one group.

    limit : of outputs; utility : for these symbols; symbols : a mask of them; start : points to
    begin with, such as those of a design for the sample itself.
    """

    def __init__(
        self, limit: OutputLimit, utility: Utility, symbols: BoolArray, start: FloatArray, aim: Aim
    ) -> None:
        self.limit, self.symbols = limit, symbols
        self._utility, self._p_x = utility, limit.sample.p_x
        self._search = ConfidentSearch(limit, utility, aim.budget_of_outputs)
        first = [start] if len(self._p_x) == 1 else [self._search.first_proposals(), start]
        self._proposals = np.vstack(first)
        self.points = self._p_x[None]

    def run(self, z: float) -> FloatArray:
        """Return the channel of these symbols for some z, without outputs worth nothing."""
        if len(self._p_x) == 1:
            return np.ones((1, 1))
        found = self._search.run(z, self._proposals)
        self.points = found.points
        self._proposals = _resumed(found.pool[: _MOST_RESUMED + 4 * len(self._p_x)], self._p_x)
        channel = _channel(found.points, found.weights, self._p_x)
        allowance = _TIDY * self._utility.span(self._p_x)
        return tidied(channel, self._p_x, self._utility, allowance)


def confident_channel(
    parts: Sequence[Part], aim: Aim, limits: Callable[[FloatArray], Reached]
) -> FloatArray:
    """Return the channel with the largest utility found whose limit keeps the budget.

    limits : of a channel for all symbols.
    """
    n_x = len(aim.p_x)
    z = 0.15 + float(ndtri(1 - 2 * (1 - aim.confidence) / max(n_x, 2.1)))
    low, high, tried = 0.0, np.inf, []
    for _ in range(_MOST_SOLVES):
        channel = side_by_side([p.symbols for p in parts], [part.run(z) for part in parts])
        if aim.max_outputs is not None:
            channel = merged_to(channel, aim.p_x, aim.utility, aim.max_outputs, aim.groups)
        reached = limits(channel).limit
        tried.append((aim.utility.of_channel(aim.p_x, channel), reached, channel))
        is_within = reached <= aim.budget * KEPT
        # The first search leaves something for the second one to find, whatever its z.
        is_close = len(tried) > 1 and is_within and reached > _CLOSE * aim.budget
        if is_close or (is_within and _is_free(parts, z, aim)):
            break
        low, high = (low, min(high, z)) if is_within else (max(low, z), high)
        z = _next_z(parts, z, (reached - _AIM * aim.budget), low, high)
    return _best(tried, aim, limits)


def _best(
    tried: list[tuple[float, float, FloatArray]],
    aim: Aim,
    limits: Callable[[FloatArray], Reached],
) -> FloatArray:
    """Return the best channel that keeps the budget, or one that is softened if that is better."""
    allowed = aim.budget * KEPT
    kept = [(utility, channel) for utility, reached, channel in tried if reached <= allowed]
    nothing = telling_nothing(aim.p_x, aim.groups)
    useful, best = max(kept, key=itemgetter(0), default=(-np.inf, nothing))
    # The closest to the budget of those that break it.
    others = [one for one in tried if one[1] > allowed and one[0] > useful]
    if not others:
        return best
    closest = min(others, key=itemgetter(1))[2]
    softer = softened(closest, aim.p_x, limits, allowed, aim.groups)
    return softer if aim.utility.of_channel(aim.p_x, softer) > useful else best


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


def _is_free(parts: Sequence[Part], z: float, aim: Aim) -> bool:
    """Return whether no output is at its limit: another z would change nothing."""
    return bool((_limits_at(parts, z) < _AT_LIMIT * aim.budget_of_outputs).all())


def _limits_at(parts: Sequence[Part], z: float) -> FloatArray:
    """Return the limits of all outputs in use."""
    return np.concatenate([part.limit.value(part.points, z) for part in parts])


def _next_z(parts: Sequence[Part], z: float, excess: float, low: float, high: float) -> float:
    """Return the z at which the joint limit should be met, by how fast limits grow with z."""
    growth = (_limits_at(parts, z + 0.1) - _limits_at(parts, z)) / 0.1
    new = z + excess / max(float(np.median(growth)), 1e-6)
    if low > 0 and np.isfinite(high):
        margin = 0.15 * (high - low)
        new = min(max(new, low + margin), high - margin)
    return float(np.clip(new, _SMALLEST_Z, _LARGEST_Z))
