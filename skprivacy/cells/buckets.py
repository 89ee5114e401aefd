"""Some of many distinct rows, chosen by what is in them: the order of rows does not matter.

Rows get a bucket by a hash of their values, and whole buckets are kept. A bucket of weight w is
kept with probability min(1, w/t), and then counts as max(w, t): a priority sample, whose weights
are right on average (Duffield, Lund and Thorup, "Priority sampling for estimation of arbitrary
subset sums", J. ACM 2007). Sizes of buckets add up, so that parts of a table can be counted
anywhere, in any order, and in bounded memory; with exact counts of distinct rows they could not.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from .._typing import CountArray, FloatArray, IntArray
from ..codes import GOLDEN, mixed

# Most distinct rows have a bucket of their own as long as there are fewer of them than this.
_BITS = 20
N_BUCKETS = 1 << _BITS

# Where the words of rows, and those that choose buckets, start: folds start from other ones, so
# that a sample has its share of every fold.
_ROWS, _CHOICE = np.uint64(0xA0761D6478BD642F), np.uint64(0xE7037ED1A0B428DB)

# Weights are multiples of this, whose sums are exact in any order.
_GRAIN = 2.0**-16


def buckets(words: Iterable[npt.NDArray[np.uint64]], n_rows: int) -> IntArray:
    """Return the bucket of each row; words : of its values, for one column after the other."""
    word = np.full(n_rows, _ROWS)
    for of_column in words:
        word = mixed(word + GOLDEN + of_column)
    return (word >> np.uint64(64 - _BITS)).astype(np.int32)


def kept_buckets(sizes: CountArray, limit: int) -> FloatArray | None:
    """Return by what the rows of each bucket are multiplied, 0 for those that are left out.

    sizes : the weight of each bucket. About `limit` distinct rows are kept; None, if there are not
    more of them.
    """
    used = np.flatnonzero(sizes)
    # How many rows make so many of the buckets used ones; where all are used, at least so many.
    n_distinct = N_BUCKETS * np.log(N_BUCKETS / max(N_BUCKETS - len(used), 0.5))
    if n_distinct <= limit:
        return None
    n_kept = int(limit * len(used) / n_distinct)
    draws = (mixed(used.astype(np.uint64) + _CHOICE) >> np.uint64(11)) + 0.5
    priorities = sizes[used] / (draws * 2.0**-53)
    threshold = np.partition(priorities, -n_kept - 1)[-n_kept - 1]
    kept = used[priorities > threshold]
    factors = np.zeros(N_BUCKETS)
    factors[kept] = np.rint(np.maximum(1, threshold / sizes[kept]) / _GRAIN) * _GRAIN
    return factors
