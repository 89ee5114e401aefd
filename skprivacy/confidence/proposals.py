r"""Posteriors of X to try: blocks of symbols to start with, then what lies next to those in use.

None of them is within a limit yet; those next to points in use are not normalised either.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np

from .._typing import FloatArray, IntArray

# Up to this many symbols, every subset of them is a first proposal.
_ALL_SUBSETS = 9
_MOST_PAIRS = 800
_PARTITIONS = 6

# Coordinates of points in use are set to these shares of their largest.
_LEVELS = np.array([0.0, 0.08, 0.25, 0.55, 1.0])

# Points in use are mixed with up to such a share of another one.
_MIXED = 0.05, 0.35

# Points are moved outwards to the face of the simplex, but no further than so many times as far.
_FURTHEST = 50.0


def blocks(counts: FloatArray, budget: float, rng: np.random.Generator) -> FloatArray:
    """Return P(X) given blocks of symbols: all blocks, or single ones, pairs and greedy merges.

    counts : of pairs (s, x); budget : on the root scale, how much blocks may tell.
    """
    n_x = counts.shape[1]
    if n_x <= _ALL_SUBSETS:
        chosen = [block for size in range(1, n_x) for block in combinations(range(n_x), size)]
    else:
        pairs = np.stack(np.triu_indices(n_x, 1), axis=1)
        if len(pairs) > _MOST_PAIRS:
            pairs = pairs[rng.choice(len(pairs), _MOST_PAIRS, replace=False)]
        merges = {b for i in range(_PARTITIONS) for b in _merges(counts, budget, i % 3, rng)}
        chosen = [*((x,) for x in range(n_x)), *map(tuple, pairs), *sorted(merges)]
    return _given_blocks(chosen, counts.sum(axis=0) / counts.sum())


def _given_blocks(chosen: list[tuple[int, ...]], p_x: FloatArray) -> FloatArray:
    points = np.zeros((len(chosen), len(p_x)))
    for point, block in zip(points, chosen, strict=True):
        point[list(block)] = p_x[list(block)]
    return points / points.sum(axis=1, keepdims=True)


def _merges(
    counts: FloatArray, budget: float, caution: int, rng: np.random.Generator
) -> Iterable[tuple[int, ...]]:
    """Yield the blocks that arise while a rare block joins another, until two are left.

    It joins the one with which least is lost of X; caution : how much it counts what the two tell
    about S.
    """
    members = [(x,) for x in range(counts.shape[1])]
    shares, given = counts.sum(axis=0) / counts.sum(), (counts / counts.sum(axis=0)).T
    p_s = counts.sum(axis=1) / counts.sum()
    seen = p_s > 0
    while len(members) > 2:
        rare = int(np.argmin(shares * rng.uniform(0.7, 1.4, len(shares))))
        both = shares + shares[rare]
        part = np.clip(shares / both, 1e-12, 1 - 1e-12)
        lost = -both * (part * np.log(part) + (1 - part) * np.log(1 - part))
        mixed = (given * shares[:, None] + given[rare] * shares[rare]) / both[:, None]
        apart = ((mixed - p_s)[:, seen] ** 2 / p_s[seen]).sum(axis=1)
        cost = lost + caution * both * apart / (2 * budget**2 + 1e-9)
        cost[rare] = np.inf
        other = int(np.argmin(cost))
        shares[other], given[other] = both[other], mixed[other]
        members[other] = tuple(sorted(members[other] + members[rare]))
        yield members[other]
        del members[rare]
        shares, given = np.delete(shares, rare), np.delete(given, rare, axis=0)


def neighbours(
    points: FloatArray, weights: FloatArray, p_x: FloatArray, most: int, rng: np.random.Generator
) -> FloatArray:
    """Return at most so many points next to those in use, drawn from all there are.

    Only those that are drawn are made: there are tens of |X| times as many as there are points.
    """
    n, n_x = points.shape
    first, second = np.triu_indices(n, 1)
    sizes = np.array([n * n_x * len(_LEVELS), len(first), 2 * len(first), n, n])
    total, ends = int(sizes.sum()), np.cumsum(sizes)
    drawn = np.arange(total) if total <= most else rng.choice(total, most, replace=False)
    kinds = [
        drawn[(drawn >= end - size) & (drawn < end)] - end + size
        for size, end in zip(sizes, ends, strict=True)
    ]
    found = [
        _with_one_changed(points, p_x, kinds[0]),
        _merged(points, weights, first[kinds[1]], second[kinds[1]]),
        _mixed(
            points, np.append(first, second)[kinds[2]], np.append(second, first)[kinds[2]], rng
        ),
        _outwards(points[kinds[3]], p_x, 1.0),
        _outwards(points[kinds[4]], p_x, 0.5),
    ]
    proposed = np.vstack(found)
    total_of = proposed.sum(axis=1)
    keep = total_of > 1e-12
    return proposed[keep] / total_of[keep, None]


def _with_one_changed(points: FloatArray, p_x: FloatArray, drawn: IntArray) -> FloatArray:
    """Return points with P(y|x) of one symbol set to a share of its largest."""
    point, symbol, level = np.unravel_index(drawn, (*points.shape, len(_LEVELS)))
    shares = points / p_x
    changed = (shares / shares.max(axis=1, keepdims=True))[point]
    changed[np.arange(len(drawn)), symbol] = _LEVELS[level]
    return changed * p_x


def _merged(points: FloatArray, weights: FloatArray, i: IntArray, j: IntArray) -> FloatArray:
    return weights[i, None] * points[i] + weights[j, None] * points[j]


def _mixed(points: FloatArray, i: IntArray, j: IntArray, rng: np.random.Generator) -> FloatArray:
    part = rng.uniform(*_MIXED, len(i))[:, None]
    return part * points[i] + (1 - part) * points[j]


def _outwards(points: FloatArray, p_x: FloatArray, power: float) -> FloatArray:
    """Return points further from P(X), as far as the simplex reaches with a power of 1."""
    outward = points - p_x
    falling = np.where(outward < 0, -outward / p_x, 0.0).max(axis=1)
    furthest = 1 / np.maximum(falling, 1 / _FURTHEST)
    return np.maximum(p_x + furthest[:, None] ** power * outward, 0.0)
