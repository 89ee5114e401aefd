r"""Draw Y from P(Y|X) by integer thresholds; what is sampled is what was judged.

A row of the channel becomes integers ``0 = c_0 <= c_1 <= ... <= c_n = 2^63``, and a random word w
in [0, 2^63) gives the output y with ``c_y <= w < c_(y+1)``: the probabilities that are actually
sampled are ``(c_(y+1) - c_y) / 2^63``, exactly. A table of what the first bits of a word decide
makes most draws a single look-up.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._typing import FloatArray, IntArray
from .noise import CHUNK, OUTPUT_LANE, Noise, Words

_BITS = 63  # of the 64 in a word: 2^63 itself must fit, as a boundary
_MOST_CELLS = 1 << 18  # of the look-up table: it must stay in the cache
_MOST_FIRST_BITS = 12
_UNDECIDED = -1


def integer_boundaries(channel: FloatArray) -> Words:
    """Return the inner boundaries c_1, ..., c_(n-1) of every row of a channel, as uint64.

    A probability of zero stays zero. What rounding down leaves over goes to the likeliest output,
    where it matters least.
    """
    weights = np.floor(np.ldexp(channel, _BITS)).astype(np.uint64)
    left_over = np.uint64(2**_BITS) - weights.sum(axis=1, dtype=np.uint64)  # modulo 2^64
    weights[np.arange(len(channel)), channel.argmax(axis=1)] += left_over
    return weights.cumsum(axis=1, dtype=np.uint64)[:, :-1]


def sampled_channel(boundaries: Words) -> FloatArray:
    """Return the probabilities that integer boundaries give."""
    widths = np.diff(boundaries, axis=1, prepend=np.uint64(0), append=np.uint64(2**_BITS))
    return np.ldexp(widths.astype(float), -_BITS)


def as_sampled(channel: FloatArray) -> FloatArray:
    """Return the channel rounded to probabilities that are sampled exactly as they are.

    A float has 53 bits, so that the likeliest output, which gets what rounding leaves over, may
    be off by its last one: the second time, all others are exact.
    """
    for _ in range(2):
        channel = sampled_channel(integer_boundaries(channel))
    return channel


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws an output for each symbol.

    unknown : what unknown symbols are drawn from, (n_z, n_y): P(Y) in one row, for the symbol -1;
    beside columns z, P(Y|z), for the symbols -1 - z.
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
        """How many bits of a word the look-up table decides on."""
        most = (_MOST_CELLS // len(self._boundaries)).bit_length() - 1
        return max(1, min(_MOST_FIRST_BITS, most))

    @cached_property
    def _decided(self) -> IntArray:
        """The output for each symbol and first bits of a word, where these decide it."""
        shift = np.uint64(_BITS - self._first_bits)
        first = np.arange(2**self._first_bits, dtype=np.uint64) << shift
        last = first + ((np.uint64(1) << shift) - np.uint64(1))
        table = [
            np.where(low == high, low, _UNDECIDED)
            for row in self._boundaries
            for low, high in [(np.searchsorted(row, w, side="right") for w in (first, last))]
        ]
        return np.concatenate(table).astype(np.min_scalar_type(-self.channel.shape[1] - 1))

    def draw(self, symbols: IntArray, noise: Noise) -> IntArray:
        """Return one output for each of `symbols`, an array of ints.

        noise : of the same number of rows.
        """
        assert len(noise) == len(symbols)  # or rows would get the noise of others
        outputs = np.empty(len(symbols), dtype=self._decided.dtype)
        shift = np.uint64(64 - self._first_bits)
        for start in range(0, len(symbols), CHUNK):
            chunk = symbols[start : start + CHUNK]
            word = noise.words(OUTPUT_LANE, start, start + len(chunk))
            cell = np.left_shift(chunk, self._first_bits, dtype=np.int64)
            cell += (word >> shift).view(np.int64)
            drawn = self._decided.take(cell)
            open_ = np.flatnonzero(drawn == _UNDECIDED)
            if len(open_):
                below = self._boundaries[chunk[open_]] <= (word[open_] >> np.uint64(1))[:, None]
                drawn[open_] = below.sum(axis=1)
            outputs[start : start + CHUNK] = drawn
        return outputs
