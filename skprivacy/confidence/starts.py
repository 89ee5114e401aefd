"""Posteriors of X that a search for outputs starts from: blocks of symbols."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np

from .._typing import BoolArray, FloatArray

# Up to this many symbols, every subset of them is a block.
_ALL_SUBSETS = 9

# How much blocks that arise by merging count what they tell about S.
_CAUTIONS = (0.0, 25.0, 75.0)

# Costs are compared up to so many digits: which one is smallest must not depend on rounding.
_DIGITS = 9


def blocks(joint: FloatArray, symbols: BoolArray) -> FloatArray:
    """Return P(X) given blocks of some symbols: all blocks, or singles, pairs and greedy merges.

    joint : of S and X.
    """
    places = np.flatnonzero(symbols).tolist()
    if len(places) <= _ALL_SUBSETS:
        sizes = range(1, len(places))
        chosen = [block for size in sizes for block in combinations(places, size)]
    else:
        merged = [block for caution in _CAUTIONS for block in _merges(joint, places, caution)]
        singles = [(x,) for x in places]
        chosen = list(dict.fromkeys([*singles, *combinations(places, 2), *merged]))
    p_x, points = joint.sum(axis=0), np.zeros((len(chosen), joint.shape[1]))
    for point, block in zip(points, chosen, strict=True):
        point[list(block)] = p_x[list(block)]
    return points / points.sum(axis=1, keepdims=True)


def _merges(joint: FloatArray, places: list[int], caution: float) -> Iterable[tuple[int, ...]]:
    """Yield the blocks that arise while the rarest block joins another, until two are left.

    It joins the one with which least is lost of X, and of what the two together tell about S.
    """
    members: list[tuple[int, ...]] = [(x,) for x in places]
    p_s = joint.sum(axis=1)
    parts = joint[:, places].T
    while len(members) > 2:
        shares = parts.sum(axis=1)
        rarest = int(np.round(shares, _DIGITS).argmin())
        both = parts + parts[rarest]
        share = shares / both.sum(axis=1)
        lost = -both.sum(axis=1) * (share * np.log(share) + (1 - share) * np.log1p(-share))
        apart = (both / both.sum(axis=1, keepdims=True) - p_s) ** 2 @ (1 / p_s)
        cost = np.round(lost + caution * both.sum(axis=1) * apart, _DIGITS)
        cost[rarest] = np.inf
        other = int(cost.argmin())
        parts[other] = both[other]
        members[other] = tuple(sorted(members[other] + members[rarest]))
        yield members[other]
        del members[rarest]
        parts = np.delete(parts, rarest, axis=0)
