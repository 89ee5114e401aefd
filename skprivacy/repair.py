"""Mending what rounding breaks, with a little independence."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from ._typing import FloatArray, IntArray
from .exceptions import SolverError

T = TypeVar("T")

# What rounding can explain: a small excess, or one that a small share of independence mends.
# Anything else is a solver's failure.
_MOST_ROUNDING = 1e-8

# The smallest share that changes a channel: it is doubled until it is enough.
SMALLEST_SHARE = 2.0**-53

# The largest share of independence that is mixed in: more would cost utility.
_MOST_SHARE = 0.01


def independent(
    channel: FloatArray, p_x: FloatArray, groups: IntArray | None = None
) -> FloatArray:
    """Return the channel with the same P(Y) that tells nothing: P(Y) in every row.

    Where X belongs to groups that are known anyway, P(Y|z) for the group z of each symbol.
    """
    if groups is None:
        return np.tile(p_x @ channel, (len(p_x), 1))
    _, codes = np.unique(groups, return_inverse=True)
    joint = np.zeros((codes.max() + 1, channel.shape[1]))
    np.add.at(joint, codes, p_x[:, None] * channel)
    return (joint / joint.sum(axis=1, keepdims=True))[codes]


def expanded(channel: FloatArray, p_x: FloatArray, groups: IntArray | None = None) -> FloatArray:
    """Return a channel for the symbols that occur as one for all: the others tell nothing."""
    whole = np.zeros((len(p_x), channel.shape[1]))
    whole[p_x > 0] = channel
    return np.where((p_x > 0)[:, None], whole, independent(whole, p_x, groups))


def repaired(
    channel: FloatArray,
    nothing: FloatArray,
    judge: Callable[[FloatArray], T],
    excess: Callable[[T], float],
) -> T:
    """Return what is judged of a channel, mixed with independence until nothing exceeds a budget.

    nothing : what `independent` returns. ``(1 - a) channel + a nothing`` keeps P(X) and P(Y) and
    moves every posterior toward the prior, or toward that of its group, by the same share a, so
    every convex measure falls.
    """
    judged, share = judge(channel), SMALLEST_SHARE
    before = excess(judged)
    while not excess(judged) <= 0:
        allowed = _MOST_SHARE if before <= _MOST_ROUNDING else _MOST_ROUNDING
        if share > allowed:
            raise SolverError(
                f"The solver returned a channel that exceeds its budget by {before}, which "
                f"rounding cannot explain."
            )
        mixed = (1 - share) * channel + share * nothing
        judged = judge(mixed / mixed.sum(axis=1, keepdims=True))
        share *= 2
    return judged
