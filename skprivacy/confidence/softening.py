"""Outputs closer to independence, until the limit of a channel keeps a budget."""

from collections.abc import Callable

import numpy as np

from .._typing import FloatArray, IntArray
from ..repair import independent
from .channel_limits import Reached

_CAPS = 8
_DILUTIONS, _JUST_BELOW = 6, 1 - 1e-4
_SMALLEST_LIMIT, _LARGEST_LIMIT = 1e-9, 1e3
_SMALLEST_SHARE = 1e-6


def softened(
    channel: FloatArray,
    p_x: FloatArray,
    limits: Callable[[FloatArray], Reached],
    groups: IntArray | None = None,
) -> FloatArray:
    """Return the channel with outputs closer to independence until its limits keep the budgets.

    Only those with the largest limits have to be: their limits are capped. Where nothing helps,
    the output is constant, or tells the group of X where that is known anyway.
    """
    limit, per_output = limits(channel)
    if limit <= 1:
        return channel
    per_output = np.clip(per_output.max(axis=0), _SMALLEST_LIMIT, _LARGEST_LIMIT)
    best, low, high = telling_nothing(p_x, groups), 0.0, float(per_output.max())
    nothing = independent(channel, p_x, groups)
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
    groups: IntArray | None = None,
) -> FloatArray:
    """Return the channel mixed with independence until its limits keep the budgets.

    That is for a small excess: what all outputs tell falls by the same share, and so do limits.
    """
    nothing, mixed, kept = independent(channel, p_x, groups), channel, 1.0
    for _ in range(_DILUTIONS):
        if (limit := limits(mixed).limit) <= 1:
            return mixed
        kept *= _JUST_BELOW / limit
        mixed = kept * channel + (1 - kept) * nothing
    return softened(channel, p_x, limits, groups)


def telling_nothing(p_x: FloatArray, groups: IntArray | None) -> FloatArray:
    """Return a constant output, or one for each group of X where that is known anyway."""
    return np.ones((len(p_x), 1)) if groups is None else np.eye(groups.max() + 1)[groups]


def _closer(channel: FloatArray, nothing: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the channel with P(X|y) at these shares of the ways from P(X), or from P(X|z).

    Outputs that come closer are used more often: then they still average to P(X).
    """
    shares = np.maximum(shares, _SMALLEST_SHARE)
    closer = channel + nothing * (1 / shares - 1)
    return closer / closer.sum(axis=1, keepdims=True)
