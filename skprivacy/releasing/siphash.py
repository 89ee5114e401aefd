"""SipHash-2-4, a keyed hash, over many messages at once.

Whoever lacks the key cannot tell hashes of different messages from independent random words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from .._typing import IntArray
from ..codes import chunks

_CHUNK = 1 << 14  # messages at once: four words of state and one of scratch stay in the cache

# "somepseudorandomlygeneratedbytes", as SipHash spells its start.
_START = np.frombuffer(b"somepseudorandomlygeneratedbytes", ">u8").astype(np.uint64)

_Words: TypeAlias = npt.NDArray[np.uint64]
_Bytes: TypeAlias = npt.NDArray[np.uint8]


class Sliceable(Protocol):
    """Messages, or what can be made into messages a slice at a time."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice, /) -> Messages: ...


@dataclass(frozen=True, eq=False)
class Messages:
    """Byte strings of any lengths, somewhere in one buffer.

    Attributes
    ----------
    data : ndarray of uint8
        Eight bytes longer than it must be: words are read across the end of a message.
    starts, lengths : ndarray of shape (n,)
        Where each message is.
    """

    data: _Bytes
    starts: IntArray
    lengths: IntArray

    @classmethod
    def from_bytes(cls, messages: Iterable[bytes]) -> Self:
        """Return messages that are bytes objects."""
        messages = list(messages)
        lengths = np.fromiter(map(len, messages), np.int64, len(messages))
        return cls.side_by_side(b"".join(messages), lengths)

    @classmethod
    def side_by_side(cls, data: bytes, lengths: IntArray) -> Self:
        """Return messages that lie one after the other."""
        return cls(np.frombuffer(data + bytes(8), np.uint8), lengths.cumsum() - lengths, lengths)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, rows: slice, /) -> Messages:
        return Messages(self.data, self.starts[rows], self.lengths[rows])

    def words(self, offsets: IntArray) -> _Words:
        """Return the eight bytes at each offset as a word."""
        anywhere: _Words = np.ndarray(len(self.data) - 7, "<u8", self.data.data, strides=(1,))
        return anywhere[offsets].astype(np.uint64, copy=False)

    def longest_first(self) -> tuple[Messages, IntArray | slice]:
        """Return the messages by decreasing length, and where each of them was."""
        if len(self) == 0 or self.lengths.min() == self.lengths.max():
            return self, slice(None)
        order = np.argsort(-self.lengths)
        return Messages(self.data, self.starts[order], self.lengths[order]), order


def siphash(key: bytes, messages: Sliceable) -> _Words:
    """Return SipHash-2-4 of each message.

    Parameters
    ----------
    key : bytes
        16 of them.
    messages : Messages, or what makes them a slice at a time
        What to hash.

    Returns
    -------
    ndarray of uint64

    Examples
    --------
    The example in the paper of Aumasson and Bernstein:

    >>> from skprivacy.releasing.siphash import Messages, siphash
    >>> hex(siphash(bytes(range(16)), Messages.from_bytes([bytes(range(15))]))[0])
    '0xa129ca6149be45e5'
    """
    if len(key) != 16:
        raise ValueError(f"The key of SipHash must have 16 bytes. Got {len(key)}.")
    start = _START ^ np.tile(np.frombuffer(key, "<u8").astype(np.uint64), 2)
    hashes = np.empty(len(messages), dtype=np.uint64)
    for chunk in chunks(len(messages), _CHUNK):
        hashes[chunk] = _hashed(start, messages[chunk])
    return hashes


def n_repeated(hashes: _Words) -> int:
    """Return how many of some hashes repeat an earlier one."""
    in_order = np.sort(hashes)  # several times faster than hashing them again
    return int(np.count_nonzero(in_order[1:] == in_order[:-1]))


def _hashed(start: _Words, messages: Messages) -> _Words:
    messages, order = messages.longest_first()
    state = _State(start, len(messages))
    full = messages.lengths >> 3
    # Longest first: those with another full word are always the first ones.
    for k, n in enumerate(_how_many_have(full)):
        state.absorb(messages.words(messages.starts[:n] + 8 * k))
    state.absorb(_last_words(messages, full))
    hashes = np.empty(len(messages), dtype=np.uint64)
    hashes[order] = state.finished()
    return hashes


def _how_many_have(full: IntArray) -> list[int]:
    """Return how many messages have a first full word, a second one, ..."""
    exactly = np.bincount(full)
    return exactly[::-1].cumsum()[::-1][1:].tolist() if len(full) else []


def _last_words(messages: Messages, full: IntArray) -> _Words:
    """Return the up to seven bytes that are left over, and the length modulo 256 on top."""
    left_over = messages.words(messages.starts + 8 * full)
    n_bits = (8 * (messages.lengths & 7)).astype(np.uint64)
    left_over &= (np.uint64(1) << n_bits) - np.uint64(1)
    return left_over | (messages.lengths.astype(np.uint64) << np.uint64(56))


class _State:
    """The four words v0, ..., v3 of SipHash, for many messages."""

    def __init__(self, start: _Words, n: int) -> None:
        self._v = [np.full(n, word) for word in start]
        self._scratch = np.empty(n, dtype=np.uint64)

    def absorb(self, words: _Words) -> None:
        """Take in one word of each of the first messages."""
        n = len(words)
        v, scratch = [word[:n] for word in self._v], self._scratch[:n]
        v[3] ^= words
        for _ in range(2):
            _round(v, scratch)
        v[0] ^= words

    def finished(self) -> _Words:
        self._v[2] ^= np.uint64(0xFF)
        for _ in range(4):
            _round(self._v, self._scratch)
        return self._v[0] ^ self._v[1] ^ self._v[2] ^ self._v[3]


def _round(v: list[_Words], scratch: _Words) -> None:
    """Do one SipRound, in place."""
    v0, v1, v2, v3 = v
    _add_and_mix(v0, v1, 13, scratch)
    _rotate(v0, 32, scratch)
    _add_and_mix(v2, v3, 16, scratch)
    _add_and_mix(v0, v3, 21, scratch)
    _add_and_mix(v2, v1, 17, scratch)
    _rotate(v2, 32, scratch)


def _add_and_mix(sum_: _Words, mixed: _Words, n_bits: int, scratch: _Words) -> None:
    np.add(sum_, mixed, out=sum_)
    _rotate(mixed, n_bits, scratch)
    np.bitwise_xor(mixed, sum_, out=mixed)


def _rotate(words: _Words, n_bits: int, scratch: _Words) -> None:
    np.left_shift(words, np.uint64(n_bits), out=scratch)
    np.right_shift(words, np.uint64(64 - n_bits), out=words)
    np.bitwise_or(words, scratch, out=words)
