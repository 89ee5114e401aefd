"""Exact dependencies between the columns of a table: what follows from what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._typing import FloatArray, IntArray
from ..codes import UNKNOWN
from .columns import ColumnAlphabet

# A dependency counts if values with at least five people make up this share of its left side.
COVERED = 0.9

# If values are missing on some rows only, at least this many rows must confirm a dependency.
_FEWEST_REPEATS = 40


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column as codes from 0 to n - 1; missing : the code of a missing value, -1 if none is."""

    codes: IntArray
    n: int
    missing: int = UNKNOWN

    @classmethod
    def of(cls, column: ColumnAlphabet, positions: IntArray) -> CodedColumn:
        """Return a column whose codes are positions in the values of an alphabet."""
        n = len(column.values)
        return cls(positions, n, n - 1 if column.has_missing else UNKNOWN)


@dataclass(frozen=True, eq=False)
class Dependency:
    """A column that follows from another one.

    image : the code on the right for each code on the left, -1 for codes of no row; is_whole :
    whether missing values are values like others. If not, a value on the left goes with one value
    on the right or with a missing one, and a missing one on the left goes with any.
    """

    image: IntArray
    is_whole: bool


def dependency(
    left: CodedColumn, right: CodedColumn, sizes: FloatArray | None = None
) -> Dependency | None:
    """Return how a column follows from another one in every row; None if it does not.

    sizes : how many rows of the data each row stands for, None for one.
    """
    whole = _image(left, right)
    if whole is not None:
        return Dependency(whole, True) if _differs(whole) else None
    if left.missing == right.missing == UNKNOWN:
        return None
    image = _image(left, right, of_known=True)
    if image is None or not _differs(image):
        return None
    known = (left.codes != left.missing) & (right.codes != right.missing)
    n_known = known.sum() if sizes is None else sizes[known].sum()
    n_repeats = n_known - np.count_nonzero(image != UNKNOWN)
    return Dependency(image, False) if n_repeats >= _FEWEST_REPEATS else None


def _image(left: CodedColumn, right: CodedColumn, of_known: bool = False) -> IntArray | None:
    """Return the code on the right of each code on the left, None if some have several.

    of_known : whether only rows without a missing value count.
    """
    found = np.full(left.n, UNKNOWN)
    for rows in (slice(0, 1000), slice(None)):  # most columns fail at once
        of_left, of_right = left.codes[rows], right.codes[rows]
        if of_known:
            known = (of_left != left.missing) & (of_right != right.missing)
            of_left, of_right = of_left[known], of_right[known]
        found[of_left] = of_right
        if (found[of_left] != of_right).any():
            return None
    return found


def _differs(image: IntArray) -> bool:
    return len(np.unique(image[image != UNKNOWN])) > 1


def contradictions(
    columns: Sequence[ColumnAlphabet],
    positions: Sequence[IntArray],
    released: Sequence[IntArray],
) -> tuple[list[tuple[int, int, int]], int]:
    """Return (column, column that follows from it, contradicting rows), and all such rows.

    positions, released : for each column, the position of the value of each row, before and
    after. What follows only because nearly every row has a value of its own does not count.
    """
    coded = [CodedColumn.of(*pair) for pair in zip(columns, positions, strict=True)]
    found, is_wrong = [], np.zeros(len(released[0]), dtype=bool)
    for a, left in enumerate(columns):
        if (~left.is_rare)[positions[a]].mean() < COVERED:
            continue
        for b, right in enumerate(coded):
            if a == b or (known := dependency(coded[a], right)) is None:
                continue
            expected = np.append(known.image, UNKNOWN)[released[a]]
            wrong = (expected != UNKNOWN) & (expected != released[b])
            if not known.is_whole:
                wrong &= released[b] != right.missing
            found.append((a, b, int(wrong.sum())))
            is_wrong |= wrong
    return found, int(is_wrong.sum())
