"""Columns of integer codes: look up, pack and count them, in narrow types and small chunks.

A code is a number from 0 on; -1 stands for a missing or unknown value. A table indexed by code
has its entry for -1 at the end.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._typing import CountArray, IntArray

UNKNOWN = -1

_CHUNK = 1 << 15

# Constants of splitmix64, a hash function for integers.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)

# Up to this many codes of one byte, comparing with every one of them is the fastest way to count.
_FEW = 8


def chunks(n: int, size: int = _CHUNK) -> Iterator[slice]:
    """Yield the rows from 0 to n in slices."""
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def mixed(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return splitmix64 hashes, which look random; different words have different hashes."""
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))


def narrow(codes: IntArray) -> IntArray:
    """Return codes in the smallest dtype that can also hold -1."""
    return codes.astype(np.min_scalar_type(-int(codes.max(initial=0)) - 1))


def look_up(table: npt.NDArray[Any], codes: IntArray) -> npt.NDArray[Any]:
    """Return ``table[codes]``, in chunks: numpy widens codes to 8 bytes, which stay cached."""
    found = np.empty(len(codes), dtype=table.dtype)
    for rows in chunks(len(codes)):
        table.take(codes[rows], out=found[rows], mode="wrap")
    return found


def take(table: IntArray, codes: IntArray) -> IntArray:
    """Return ``table[codes]`` for a table of codes, in the smallest dtype.

    The codes themselves, not a copy, are returned if the table is the identity.
    """
    if table[-1] == UNKNOWN and (table[:-1] == np.arange(len(table) - 1)).all():
        return codes
    return look_up(narrow(table), codes)


def count(codes: IntArray, n: int, weights: CountArray | None = None) -> CountArray:
    """Return the count, or total weight, of each code below n, and of -1 at the end."""
    if weights is not None:
        every, totals = np.arange(n + 1), np.zeros(n + 1)
        for rows in chunks(len(codes), max(_CHUNK, 8 * n)):
            shifted = np.add(codes[rows], 1, dtype=np.intp, casting="unsafe")
            # After the totals so far: chunk by chunk, sums would round differently.
            so_far = np.append(totals, weights[rows])
            totals = np.bincount(np.append(every, shifted), so_far).astype(float)
        return np.roll(totals, -1)
    if n <= _FEW and codes.dtype.itemsize == 1:
        return np.array([np.count_nonzero(codes == code) for code in (*range(n), UNKNOWN)])
    counts = np.zeros(n + 1, dtype=np.intp)
    for rows in chunks(len(codes), max(_CHUNK, 8 * n)):
        shifted = np.add(codes[rows], 1, dtype=np.intp, casting="unsafe")
        counts += np.bincount(shifted, minlength=n + 1)
    return np.roll(counts, -1)


def n_cells(sizes: Sequence[int]) -> float:
    """Return how many numbers `pack` needs for columns with `sizes` codes."""
    return float(np.prod([size + 1.0 for size in sizes]))


def pack(codes: Sequence[IntArray], sizes: Sequence[int]) -> IntArray:
    """Return one number for each row of codes, from which `unpack` recovers the row.

    Every column may contain -1. Numbers are in the lexicographic order of the rows. The narrow
    type may overflow along the way, but the final sum is right: it is computed modulo a number
    larger than itself.
    """
    dtype = np.min_scalar_type(int(n_cells(sizes)) - 1)
    packed = codes[0].astype(dtype)
    for code, size in zip(codes[1:], sizes[1:], strict=True):
        packed *= size + 1
        packed += code.astype(dtype, copy=False)
    packed += int(pack_few(np.zeros((1, len(sizes)), dtype=np.intp), sizes)[0])
    return packed


def pack_few(rows: IntArray, sizes: Sequence[int]) -> IntArray:
    """Return the numbers of `pack` for rows of codes, an array of shape (n, n_columns)."""
    return np.ravel_multi_index(tuple(rows.T + 1), [size + 1 for size in sizes])


def unpack(packed: IntArray, sizes: Sequence[int]) -> IntArray:
    """Return the rows of codes behind packed numbers, an array of shape (n, n_columns)."""
    return np.stack(np.unravel_index(packed, [size + 1 for size in sizes]), axis=1) - 1
