r"""Drawing Y from P(Y|X): integer tables, random words, and the budget of what is sampled.

A row of the channel becomes integers ``0 = c_0 <= c_1 <= ... <= c_n = 2^63``, and a random word w
in [0, 2^63) gives the output y with ``c_y <= w < c_(y+1)``: the probabilities that are really
sampled are ``(c_(y+1) - c_y) / 2^63``, exactly. A table of what the first bits of a word decide
makes most draws a single look-up.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ._typing import FloatArray, IntArray, Seed
from .mechanism import Mechanism
from .repair import repaired

_BITS = 63  # of the 64 in a word: 2^63 itself must fit, as a boundary
_CHUNK = 1 << 14  # rows at once: the buffers stay in the cache
_MOST_CELLS = 1 << 18  # of the look-up table: it must stay in the cache too
_MOST_FIRST_BITS = 12
_UNDECIDED = -1
_DOMAIN = int.from_bytes(b"skprivacy")

# Eight bytes each: random ones, or boundaries to compare them with.
_Words: TypeAlias = npt.NDArray[np.uint64]

# Yields arrays of random words, of the sizes that it is given.
WordSource: TypeAlias = Callable[[Iterable[int]], Iterator[_Words]]


def random_words(random_state: Seed | np.random.RandomState) -> WordSource:
    """Return a function that yields arrays of random words of eight bytes, of the sizes asked for.

    random_state : None for the operating system's cryptographic source; an int, a Generator or a
    RandomState for reproducible words.
    """
    if random_state is None:
        return lambda sizes: _prefetched(_system_words, sizes)
    generator = _generator(random_state)
    return lambda sizes: (
        generator.integers(0, 2**64, size=size, dtype=np.uint64) for size in sizes
    )


def _generator(
    random_state: int | np.random.Generator | np.random.RandomState,
) -> np.random.Generator:
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        seed = random_state.randint(0, 2**32, size=4, dtype=np.uint32).tolist()
    else:
        seed = [random_state]
    # Apart from the stream that the same seed gives elsewhere: data that were drawn from it would
    # not be independent of the noise.
    return np.random.default_rng([*seed, _DOMAIN])


def uniform_numbers(words: WordSource) -> Callable[[int], FloatArray]:
    """Return a function that draws n floats from [0, 1), from the same source."""

    def draw(n: int) -> FloatArray:
        (word,) = words([n])
        return np.ldexp((word >> np.uint64(11)).astype(float), -53)

    return draw


def _system_words(size: int) -> _Words:
    return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)


def _prefetched(
    function: Callable[[int], _Words], arguments: Iterable[int], ahead: int = 4
) -> Iterator[_Words]:
    """Yield ``function(argument)`` in order, computed by two threads a little ahead of its use."""
    arguments = iter(arguments)
    pending: deque[Future[_Words]] = deque()
    first = list(islice(arguments, 2))
    if len(first) < 2:  # not worth a thread
        yield from map(function, first)
        return
    with ThreadPoolExecutor(max_workers=2) as pool:
        for argument in chain(first, arguments):
            pending.append(pool.submit(function, argument))
            if len(pending) > ahead:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def integer_boundaries(channel: FloatArray) -> _Words:
    """Return the inner boundaries c_1, ..., c_(n-1) of every row of a channel, as uint64.

    A probability of zero stays zero. What rounding down leaves over goes to the likeliest output,
    where it matters least.
    """
    weights = np.floor(np.ldexp(channel, _BITS)).astype(np.uint64)
    left_over = np.uint64(2**_BITS) - weights.sum(axis=1, dtype=np.uint64)  # modulo 2^64
    weights[np.arange(len(channel)), channel.argmax(axis=1)] += left_over
    return weights.cumsum(axis=1, dtype=np.uint64)[:, :-1]


def sampled_channel(boundaries: _Words) -> FloatArray:
    """Return the probabilities that integer boundaries give."""
    widths = np.diff(boundaries, axis=1, prepend=np.uint64(0), append=np.uint64(2**_BITS))
    return np.ldexp(widths.astype(float), -_BITS)


def within_budget_as_sampled(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism, or a repaired one, whose integer table keeps the budget too."""

    def leakage(channel: FloatArray) -> float:
        sampled = mechanism.with_channel(sampled_channel(integer_boundaries(channel)))
        return sampled.leakage_in(mechanism.scope)

    channel = repaired(
        mechanism.channel,
        mechanism.p_y,
        leakage,
        mechanism.measure.budget(mechanism.epsilon),
    )
    return mechanism if channel is mechanism.channel else replace(mechanism, channel=channel)


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws an output for each symbol; the symbol -1, unknown, draws from P(Y)."""

    channel: FloatArray
    p_y: FloatArray

    @cached_property
    def _boundaries(self) -> _Words:
        # The row of unknown symbols is last, so that it is the one at index -1.
        return integer_boundaries(np.vstack([self.channel, self.p_y / self.p_y.sum()]))

    @cached_property
    def _first_bits(self) -> int:
        """How many bits of a word the look-up table decides on."""
        return min(_MOST_FIRST_BITS, (_MOST_CELLS // len(self._boundaries)).bit_length() - 1)

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

    def draw(self, symbols: IntArray, words: WordSource) -> IntArray:
        """Return one output for each of `symbols`, an array of ints from -1 on.

        words : where random words come from, see `random_words`.
        """
        outputs = np.empty(len(symbols), dtype=self._decided.dtype)
        shift = np.uint64(64 - self._first_bits)
        starts = range(0, len(symbols), _CHUNK)
        sizes = (min(_CHUNK, len(symbols) - start) for start in starts)
        for start, word in zip(starts, words(sizes), strict=True):
            chunk = symbols[start : start + _CHUNK]
            cell = np.left_shift(chunk, self._first_bits, dtype=np.int64)
            cell += (word >> shift).view(np.int64)
            drawn = self._decided.take(cell)
            open_ = np.flatnonzero(drawn == _UNDECIDED)
            if len(open_):
                below = self._boundaries[chunk[open_]] <= (word[open_] >> np.uint64(1))[:, None]
                drawn[open_] = below.sum(axis=1)
            outputs[start : start + _CHUNK] = drawn
        return outputs
