"""Which fold a row is in: rows that are alike are always in the same one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._typing import IntArray
from ..codes import GOLDEN, mixed
from .columns import CellColumn

# More would couple the folds: a model that has seen nearly all rows knows what is left out.
N_FOLDS = 4


def folds_of_rows(columns: Sequence[CellColumn], codes: IntArray) -> IntArray:
    """Return the fold of each row, from its coarse codes alone."""
    word = np.zeros(len(codes), dtype=np.uint64)
    for column, of_column in zip(columns, codes.T, strict=True):
        word = mixed(word + GOLDEN + column.coarse(of_column).astype(np.int64).astype(np.uint64))
    return (word % np.uint64(N_FOLDS)).astype(np.intp)
