"""Random words, and draws of Y with them; the only import of cryptography."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from .._typing import FloatArray, IntArray, Seed
from ..tables.table import Table

# Random words, or boundaries to compare them with.
Words: TypeAlias = npt.NDArray[np.uint64]

CHUNK = 1 << 16  # rows at once: the buffers stay in the cache
POSITION_BITS = 33

# Words for different purposes come from different lanes, one for each column of X that is drawn
# separately.
OUTPUT_LANE, FIRST_COLUMN_LANE, IDENTITY_LANE, SECOND_COLUMN_LANE = 0, 1, 2, 3


# Lanes of made-up rows, beyond those of any number of columns: of the cell that is shown, of a
# target, and of each column in each attempt.
SHOWN_LANE, TARGET_LANE, _ROW_LANES, _LANES_OF_ATTEMPT = 1 << 29, (1 << 29) + 1, 1 << 30, 1 << 24


def row_lane(column: int, attempt: int) -> int:
    """Return the lane of a column of X in an attempt to make up a row."""
    return _ROW_LANES + attempt * _LANES_OF_ATTEMPT + column


def column_lane(column: int) -> int:
    """Return the lane of a column of X, by its position among them."""
    return SECOND_COLUMN_LANE + column - 1 if column else FIRST_COLUMN_LANE


_WORDS_PER_BLOCK = 8  # ChaCha20 counts in blocks of 64 bytes
_ZEROS = memoryview(bytes(8 * (CHUNK + _WORDS_PER_BLOCK)))
_DOMAIN = int.from_bytes(b"skprivacy")


class Noise(ABC):
    """Random words for the rows of one table."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def words(self, lane: int, start: int, stop: int) -> Words:
        """Return a word for each row from `start` to `stop`, at most `CHUNK` of them."""

    def uniform(self, rows: IntArray, column: int) -> FloatArray:
        """Return floats from [0, 1) for some rows, independent of the words that decide outputs.

        rows : their positions, in increasing order; column : of X, independent of the others.
        """
        return self.floats(rows, column_lane(column))

    def attempt(self, rows: IntArray, column: int, attempt: int) -> FloatArray:
        """Return the same, independent for each attempt to make up a row."""
        return self.floats(rows, row_lane(column, attempt))

    def floats(self, rows: IntArray, lane: int) -> FloatArray:
        """Return floats from [0, 1) for some rows, in increasing order, from a lane."""
        words = np.empty(len(rows), dtype=np.uint64)
        begin, end = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
        for start in range(begin - begin % CHUNK, end, CHUNK):
            stop = min(start + CHUNK, len(self))
            first, last = np.searchsorted(rows, [start, stop])
            if first < last:
                inside = rows[first:last] - start
                words[first:last] = self.words(lane, start, stop)[inside]
        return np.ldexp((words >> np.uint64(11)).astype(float), -53)


@dataclass(frozen=True, eq=False, repr=False)
class NoiseKey:
    """256 secret bits, which no repr shows."""

    secret: bytes

    def stream(self, lane: int, number: int, n: int) -> Words:
        """Return the words of n rows of one partition, from a row number on."""
        partition, position = divmod(number, 1 << POSITION_BITS)
        if position + n > 1 << POSITION_BITS:
            raise OverflowError(f"A partition may have at most 2^{POSITION_BITS} rows.")
        counter, skipped = divmod(position, _WORDS_PER_BLOCK)
        parts = (counter, 4), (lane, 4), (partition, 8)
        nonce = b"".join(value.to_bytes(size, "little") for value, size in parts)
        cipher = Cipher(algorithms.ChaCha20(self.secret, nonce), mode=None)
        stream = cipher.encryptor().update(_ZEROS[: 8 * (skipped + n)])
        return np.frombuffer(stream, dtype="<u8")[skipped:]


def aes(key: bytes, blocks: Words) -> Words:
    """Return AES of blocks of 128 bits, each two words with the lower bytes first, (n, 2)."""
    plain = np.ascontiguousarray(blocks, dtype="<u8")
    found = np.empty(plain.nbytes + 15, dtype=np.uint8)  # the room that update_into wants
    cipher = Cipher(algorithms.AES(key), modes.ECB())
    cipher.encryptor().update_into(plain.reshape(-1).view(np.uint8).data, found.data)
    return found[: plain.nbytes].view("<u8").reshape(-1, 2)


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
    """The source of the noise of a table, which may be on another machine."""

    @property
    def columns(self) -> tuple[Any, ...]:
        """The names of columns of the table that are needed."""
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

    random_state : None for a key from the operating system's cryptographic source; an int, a
    Generator or a RandomState for a reproducible one.
    """
    if random_state is None:
        return NoiseKey(os.urandom(32))
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return NoiseKey(random_state.bytes(32))
    # Not the stream that the same seed gives elsewhere: data drawn from that would not be
    # independent of the noise.
    return NoiseKey(np.random.default_rng([random_state, _DOMAIN]).bytes(32))


# Draws of Y from P(Y|X) by integer thresholds: exactly the probabilities that were judged.
#
# A row of the channel becomes integers ``0 = c_0 <= c_1 <= ... <= c_n = 2^63``, and a random word
# w in [0, 2^63) gives the output y with ``c_y <= w < c_(y+1)``: the probabilities that are
# actually sampled are ``(c_(y+1) - c_y) / 2^63``, exactly. A table of the outputs that the first
# bits of a word decide makes most draws a single look-up.


_BITS = 63  # of the 64 in a word: 2^63 itself must fit, as a boundary
_MOST_CELLS = 1 << 18  # of the look-up table: it must stay in the cache
_MOST_FIRST_BITS = 12
_UNDECIDED = -1


def integer_boundaries(channel: FloatArray) -> Words:
    """Return the inner boundaries c_1, ..., c_(n-1) of every row of a channel, as uint64.

    A probability of zero stays zero. The remainder of rounding down goes to the likeliest output,
    where it matters least.
    """
    weights = np.floor(np.ldexp(channel, _BITS)).astype(np.uint64)
    left_over = np.uint64(2**_BITS) - weights.sum(axis=1, dtype=np.uint64)  # modulo 2^64
    weights[np.arange(len(channel)), channel.argmax(axis=1)] += left_over
    return weights.cumsum(axis=1, dtype=np.uint64)[:, :-1]


def sampled_channel(boundaries: Words) -> FloatArray:
    """Return the probabilities of integer boundaries."""
    widths = np.diff(boundaries, axis=1, prepend=np.uint64(0), append=np.uint64(2**_BITS))
    return np.ldexp(widths.astype(float), -_BITS)


def as_sampled(channel: FloatArray) -> FloatArray:
    """Return the channel rounded to probabilities that are sampled exactly.

    A float has 53 bits, so the likeliest output, which gets the remainder, may be off by its last
    bit after the first rounding; after the second, all probabilities are exact.
    """
    for _ in range(2):
        channel = sampled_channel(integer_boundaries(channel))
    return channel


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws an output for each symbol.

    unknown : the distributions of unknown symbols, (n_z, n_y): P(Y) in one row, for the symbol -1;
    with columns z beside X, P(Y|z), for the symbols -1 - z.
    """

    channel: FloatArray
    unknown: FloatArray

    @cached_property
    def _boundaries(self) -> Words:
        # The rows of unknown symbols are last, where negative indices find them.
        unknown = np.atleast_2d(self.unknown)[::-1]
        unknown = unknown / unknown.sum(axis=1, keepdims=True)
        return integer_boundaries(np.vstack([self.channel, unknown]))

    @cached_property
    def _first_bits(self) -> int:
        """The number of bits that the look-up table uses."""
        most = (_MOST_CELLS // len(self._boundaries)).bit_length() - 1
        return max(1, min(_MOST_FIRST_BITS, most))

    @cached_property
    def _decided(self) -> IntArray:
        """The output for each symbol and first bits of a word, if these decide it."""
        shift = np.uint64(_BITS - self._first_bits)
        last_bits = (np.uint64(1) << shift) - np.uint64(1)
        n_rows, n_outputs = len(self._boundaries), self.channel.shape[1]
        # An output begins with the first cell that lies above its boundary as a whole.
        begins = ((self._boundaries + last_bits) >> shift).astype(np.int64)
        n_cells = np.diff(begins, axis=1, prepend=0, append=1 << self._first_bits)
        outputs = np.arange(n_outputs, dtype=np.min_scalar_type(-n_outputs - 1))
        table = np.repeat(np.tile(outputs, n_rows), n_cells.ravel()).reshape(n_rows, -1)
        row, boundary = np.nonzero(self._boundaries & last_bits)  # inside of a cell
        table[row, self._boundaries[row, boundary] >> shift] = _UNDECIDED
        return table.ravel()

    def draw(self, symbols: IntArray, noise: Noise, lane: int = OUTPUT_LANE) -> IntArray:
        """Return one output for each of `symbols`; noise : of the same number of rows."""
        assert len(noise) == len(symbols)
        outputs = np.empty(len(symbols), dtype=self._decided.dtype)
        shift = np.uint64(64 - self._first_bits)
        for start in range(0, len(symbols), CHUNK):
            chunk = symbols[start : start + CHUNK]
            word = noise.words(lane, start, start + len(chunk))
            cell = np.left_shift(chunk, self._first_bits, dtype=np.int64)
            cell += (word >> shift).view(np.int64)
            drawn = self._decided.take(cell)
            open_ = np.flatnonzero(drawn == _UNDECIDED)
            if len(open_):
                below = self._boundaries[chunk[open_]] <= (word[open_] >> np.uint64(1))[:, None]
                drawn[open_] = below.sum(axis=1)
            outputs[start : start + CHUNK] = drawn
        return outputs
