"""Noise: the random words that decide which output each row gets.

A word of eight bytes is a function of a key and of what identifies a row, never of when or where
it is computed: a partition that is computed twice repeats its draw instead of releasing its rows
a second time. Fresh noise identifies a row by its number in the table. Row numbers have 64 bits:
the partition in the upper ones, the position within it in the lower `POSITION_BITS`. The words of
a partition are the key stream of ChaCha20, which can be entered at any position.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from .._typing import FloatArray, IntArray, Seed
from ..tables.table import Table

# Random ones, or boundaries to compare them with.
Words: TypeAlias = npt.NDArray[np.uint64]

CHUNK = 1 << 16  # rows at once: the buffers stay in the cache
POSITION_BITS = 33

# Words for different purposes are kept apart. Columns of X that are drawn separately have a lane
# each.
OUTPUT_LANE, FIRST_COLUMN_LANE, IDENTITY_LANE, SECOND_COLUMN_LANE = 0, 1, 2, 3


def column_lane(column: int) -> int:
    """Return the lane of a column of X, by its place among them."""
    return SECOND_COLUMN_LANE + column - 1 if column else FIRST_COLUMN_LANE


_WORDS_PER_BLOCK = 8  # of the 64 bytes that ChaCha20 counts in
_ZEROS = memoryview(bytes(8 * (CHUNK + _WORDS_PER_BLOCK)))
_DOMAIN = int.from_bytes(b"skprivacy")


class Noise(ABC):
    """Random words for the rows of one table."""

    @abstractmethod
    def __len__(self) -> int:
        """Return how many rows there are."""

    @abstractmethod
    def words(self, lane: int, start: int, stop: int) -> Words:
        """Return a word for each row from `start` to `stop`, at most `CHUNK` of them."""

    def uniform(self, rows: IntArray, column: int) -> FloatArray:
        """Return floats from [0, 1) for some of the rows, unrelated to what decides the outputs.

        rows : their positions, which increase; column : of X, each with numbers of its own.
        """
        words = np.empty(len(rows), dtype=np.uint64)
        for start in range(0, len(self), CHUNK):
            stop = min(start + CHUNK, len(self))
            first, last = np.searchsorted(rows, [start, stop])
            if first < last:
                inside = rows[first:last] - start
                words[first:last] = self.words(column_lane(column), start, stop)[inside]
        return np.ldexp((words >> np.uint64(11)).astype(float), -53)


@dataclass(frozen=True, eq=False, repr=False)
class NoiseKey:
    """256 secret bits, which show in no repr."""

    secret: bytes

    def stream(self, lane: int, number: int, n: int) -> Words:
        """Return the words of n rows starting at a row number, all of one partition."""
        partition, position = divmod(number, 1 << POSITION_BITS)
        if position + n > 1 << POSITION_BITS:
            raise OverflowError(f"A partition may have at most 2^{POSITION_BITS} rows.")
        counter, skipped = divmod(position, _WORDS_PER_BLOCK)
        parts = (counter, 4), (lane, 4), (partition, 8)
        nonce = b"".join(value.to_bytes(size, "little") for value, size in parts)
        cipher = Cipher(algorithms.ChaCha20(self.secret, nonce), mode=None)
        stream = cipher.encryptor().update(_ZEROS[: 8 * (skipped + n)])
        return np.frombuffer(stream, dtype="<u8")[skipped:]


@dataclass(frozen=True, eq=False)
class RowNoise(Noise):
    """Noise by row numbers: a range, or an array of mostly consecutive numbers."""

    key: NoiseKey
    numbers: range | IntArray

    def __len__(self) -> int:
        return len(self.numbers)

    def words(self, lane: int, start: int, stop: int) -> Words:
        numbers = self.numbers[start:stop]
        if not len(numbers):
            return np.empty(0, dtype=np.uint64)
        streams = [self.key.stream(lane, first, n) for first, n in _runs(numbers)]
        return streams[0] if len(streams) == 1 else np.concatenate(streams)


class NoiseSource(ABC):
    """Where the noise of a table comes from, including one that is computed elsewhere."""

    @property
    def columns(self) -> tuple[Any, ...]:
        """The names of columns of the table that it needs."""
        return ()

    @abstractmethod
    def of(self, table: Table, numbers: range | IntArray) -> Noise:
        """Return the noise of the rows of a table that have these numbers."""


@dataclass(frozen=True, eq=False)
class FreshSource(NoiseSource):
    """Noise by row numbers."""

    key: NoiseKey

    def of(self, table: Table, numbers: range | IntArray) -> RowNoise:
        return RowNoise(self.key, numbers)


def _runs(numbers: range | IntArray) -> Iterator[tuple[int, int]]:
    """Yield the first number and the length of each run of consecutive numbers."""
    if isinstance(numbers, range):
        yield numbers.start, len(numbers)
        return
    starts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 2) != 1)
    lengths = np.diff(starts, append=len(numbers))
    yield from zip(numbers[starts].tolist(), lengths.tolist(), strict=True)


def fresh_key(random_state: Seed | np.random.RandomState) -> NoiseKey:
    """Return the key of one release.

    random_state : None for one from the operating system's cryptographic source; an int,
    a Generator or a RandomState for a reproducible one.
    """
    if random_state is None:
        return NoiseKey(os.urandom(32))
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return NoiseKey(random_state.bytes(32))
    # Unlike the stream that the same seed gives elsewhere: data that were drawn from that would
    # not be independent of the noise.
    return NoiseKey(np.random.default_rng([random_state, _DOMAIN]).bytes(32))
