"""Outputs closer to independence, until the limit of a channel keeps a budget."""

from collections.abc import Callable

import numpy as np

from .._typing import FloatArray
from .channel_limits import Reached

_CAPS = 8
_SMALLEST_LIMIT, _LARGEST_LIMIT = 1e-9, 1e3
_SMALLEST_SHARE = 1e-6


def softened(
    channel: FloatArray, p_x: FloatArray, limits: Callable[[FloatArray], Reached], budget: float
) -> FloatArray:
    """Return the channel with outputs closer to independence until its limit keeps the budget.

    Only those with the largest limits have to be: their limits are capped. Where nothing helps,
    the output is constant.
    """
    limit, per_output = limits(channel)
    if limit <= budget:
        return channel
    per_output = np.clip(per_output, _SMALLEST_LIMIT, _LARGEST_LIMIT)
    best, low, high = np.ones((len(channel), 1)), 0.0, float(per_output.max())
    cap = 0.98 * high * float(np.clip(budget / limit, 0.05, 1.0))
    for _ in range(_CAPS):
        closer = _closer(channel, p_x, np.minimum(1.0, cap / per_output))
        if limits(closer).limit <= budget:
            best, low = closer, cap
        else:
            high = cap
        cap = np.sqrt(low * high) if low else high / 2
    return best


def _closer(channel: FloatArray, p_x: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the channel with P(X|y) at these shares of the ways from P(X).

    Outputs that come closer are used more often: then they still average to P(X).
    """
    shares = np.maximum(shares, _SMALLEST_SHARE)
    closer = channel + (p_x @ channel) * (1 / shares - 1)
    return closer / closer.sum(axis=1, keepdims=True)
