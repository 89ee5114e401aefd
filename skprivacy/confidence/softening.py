"""Mixing a channel with independence until its limit keeps a budget."""

from collections.abc import Callable

import numpy as np

from .._typing import FloatArray

_MOST_MIXTURES = 40

# What is aimed at, as a share of what the limit suggests.
_CAUTION = 0.9995


def softened(
    channel: FloatArray, p_x: FloatArray, limit: Callable[[FloatArray], float], budget: float
) -> FloatArray:
    """Return ``a channel + (1 - a) P(Y)`` with a limit within the budget, a as large as it seems.

    limit : of a channel; about proportional to a. Where nothing helps, the output is constant.
    """
    mixed, p_y = channel, p_x @ channel
    for _ in range(_MOST_MIXTURES):
        reached = limit(mixed)
        if reached <= budget:
            return mixed
        share = min(_CAUTION, _CAUTION * budget / reached)
        mixed = share * mixed + (1 - share) * p_y
        mixed /= mixed.sum(axis=1, keepdims=True)
    return np.ones((len(channel), 1))
