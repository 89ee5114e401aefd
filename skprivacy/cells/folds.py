"""Which fold a row is in: rows that are alike are always in the same one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .._typing import IntArray
from .columns import CellColumn

# More would couple the folds: a model that has seen nearly all rows knows what is left out.
N_FOLDS = 4

# Constants of splitmix64, a mixer of integers without structure.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def folds_of_rows(columns: Sequence[CellColumn], codes: IntArray) -> IntArray:
    """Return the fold of each row, from its coarse codes alone."""
    word = np.zeros(len(codes), dtype=np.uint64)
    for column, of_column in zip(columns, codes.T, strict=True):
        word = _mixed(word + _STEP + column.coarse(of_column).astype(np.int64).astype(np.uint64))
    return (word % np.uint64(N_FOLDS)).astype(np.intp)


def _mixed(word: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    word = (word ^ (word >> np.uint64(30))) * _FIRST
    word = (word ^ (word >> np.uint64(27))) * _SECOND
    return word ^ (word >> np.uint64(31))
