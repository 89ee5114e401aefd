"""A keyed hash of record ids: SipHash-2-4 over many ids at once, and the keys that it takes.

Whoever lacks the key cannot tell hashes of different ids from independent random words. An id is
one message: a byte for its type, then an integer as eight bytes or a text as UTF-8.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from ._typing import BoolArray, IntArray

_CHUNK = 1 << 14  # messages at once: four words of state and one of scratch stay in the cache
_MOST_CHARACTERS = 1_000  # of an id
_FEWEST_KEY_BYTES = 16
_MOST_KEY_BYTES = 64  # that BLAKE2b takes
_PERSON = b"skprivacy"

# What the first byte of a message says. The eight bytes of 2^63 and more are those of negative
# integers too: the first byte tells them apart.
_INTEGER, _LARGE_INTEGER, _TEXT = b"\x01\x02\x03"
_INTEGER_DTYPES = {"i": np.dtype(np.int64), "u": np.dtype(np.uint64)}
_INTEGER_BYTES = np.dtype([("type", np.uint8), ("value", "<u8")])

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
        """Return the messages by falling length, and where each of them was."""
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
    messages : Messages, or ids from `encode_ids`
        What to hash.

    Returns
    -------
    ndarray of uint64

    Examples
    --------
    The example in the paper of Aumasson and Bernstein:

    >>> from skprivacy.siphash import Messages, siphash
    >>> hex(siphash(bytes(range(16)), Messages.from_bytes([bytes(range(15))]))[0])
    '0xa129ca6149be45e5'
    """
    if len(key) != 16:
        raise ValueError(f"The key of SipHash must have 16 bytes. Got {len(key)}.")
    start = _START ^ np.tile(np.frombuffer(key, "<u8").astype(np.uint64), 2)
    hashes = np.empty(len(messages), dtype=np.uint64)
    for chunk in _chunks(len(messages)):
        hashes[chunk] = _hashed(start, messages[chunk])
    return hashes


def _chunks(n: int) -> Iterator[slice]:
    return (slice(first, min(first + _CHUNK, n)) for first in range(0, n, _CHUNK))


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
        """Take in one word each of the first messages."""
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


def encode_ids(ids: pd.Series, name: str = "record_ids") -> Sliceable:
    """Return ids as messages: different for different ids, the same whatever their dtype.

    Parameters
    ----------
    ids : Series
        Integers from -2^63 to 2^64 - 1, or texts of up to 1,000 characters, of any dtype that
        holds them; none missing. The integer 5 and the text "5" are different ids.
    name : str, default="record_ids"
        What errors call them. They never show an id.

    Returns
    -------
    Sliceable
        For `siphash`; the bytes are made a slice at a time.

    Examples
    --------
    >>> import pandas as pd
    >>> from skprivacy.siphash import encode_ids, siphash
    >>> key = bytes(16)
    >>> some, same = pd.Series([7, 8], dtype="int8"), pd.Series([7, 8], dtype=object)
    >>> bool((siphash(key, encode_ids(some)) == siphash(key, encode_ids(same))).all())
    True
    """
    array = ids.array
    if isinstance(ids.dtype, pd.CategoricalDtype):
        distinct = ids.array.remove_unused_categories().categories.array
    else:
        distinct = array
    kind = _kind_of(distinct, name)
    n_missing = int(ids.isna().sum())
    if n_missing:
        raise ValueError(
            f"{name} must not have missing values: every row needs an id of its own. "
            f"Got {n_missing} missing of {len(ids)}."
        )
    if kind == "text":
        _check_lengths(distinct, name)
        return _Texts(array)
    if distinct.dtype.kind == "O":
        _check_range(distinct, name)
    return _Integers(array, _INTEGER_DTYPES.get(distinct.dtype.kind, np.dtype(object)))


def _kind_of(values: Any, name: str) -> str:
    """Return "integer" or "text", if all values of an array are that."""
    if pd.api.types.is_integer_dtype(values.dtype):
        return "integer"
    if isinstance(values.dtype, pd.StringDtype):
        return "text"
    if values.dtype.kind in "OU":  # U: Arrow's texts
        parts = (_objects(values[chunk]) for chunk in _chunks(len(values)))
        kinds = {pd.api.types.infer_dtype(part, skipna=True) for part in parts} - {"empty"}
        if kinds <= {"string"}:
            return "text"
        if kinds == {"integer"}:
            return "integer"
    raise TypeError(
        f"{name} must be all integers or all texts. Got {_described(values)}: "
        f"convert them first, for instance with .astype(str), or whole numbers with "
        f'.astype("int64").'
    )


def _described(values: Any) -> str:
    if values.dtype.kind != "O":
        return f"dtype {values.dtype}"
    types = sorted({type_.__name__ for type_ in set(map(type, values[~pd.isna(values)]))})
    return f"dtype {values.dtype} with values of type {' and '.join(types)}"


def _check_lengths(texts: Any, name: str) -> None:
    longest = max(
        (max(map(len, _objects(texts[chunk]))) for chunk in _chunks(len(texts))), default=0
    )
    if longest > _MOST_CHARACTERS:
        raise ValueError(
            f"{name} must have at most {_MOST_CHARACTERS:,} characters each. Got one of "
            f"{longest:,}: hash such ids first, for instance with hashlib.sha256."
        )


def _check_range(integers: Any, name: str) -> None:
    values = _objects(integers)
    if not -(2**63) <= values.min() <= values.max() < 2**64:
        raise ValueError(
            f"{name} must lie between -2^63 and 2^64 - 1 where they are integers: convert larger "
            f"ones with .astype(str)."
        )


def _objects(values: Any) -> npt.NDArray[np.object_]:
    return values.to_numpy(dtype=object)


class _Integers:
    """Integers, made into messages a slice at a time."""

    def __init__(self, values: Any, dtype: np.dtype[Any]) -> None:
        self._values, self._dtype = values, dtype

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, rows: slice, /) -> Messages:
        words, are_large = _as_words(self._values[rows].to_numpy(dtype=self._dtype))
        encoded = np.empty(len(words), dtype=_INTEGER_BYTES)
        encoded["type"] = np.where(are_large, _LARGE_INTEGER, _INTEGER)
        encoded["value"] = words
        lengths = np.full(len(words), _INTEGER_BYTES.itemsize)
        return Messages.side_by_side(encoded.tobytes(), lengths)


def _as_words(integers: npt.NDArray[Any]) -> tuple[_Words, BoolArray]:
    """Return the lower 64 bits of integers, and which are 2^63 or more."""
    if integers.dtype == object:
        # Python's own, of any size: those of numpy overflow when they are compared.
        integers = np.array(list(map(operator.index, integers)), dtype=object)
        are_large = (integers >= 2**63).astype(bool)
        return (integers & (2**64 - 1)).astype(np.uint64), are_large
    words = integers.view(np.uint64)
    if integers.dtype.kind == "i":
        return words, np.zeros(len(words), dtype=bool)
    return words, words >= np.uint64(2**63)


class _Texts:
    """Texts, made into messages a slice at a time."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, rows: slice, /) -> Messages:
        texts = _objects(self._values[rows]).tolist()
        type_ = chr(_TEXT)
        joined = "".join([type_, type_.join(texts)])  # the byte before each
        lengths: IntArray = np.fromiter(map(len, texts), np.int64, len(texts)) + 1
        # Python's texts may hold halves of surrogate pairs, which UTF-8 has no bytes for.
        data = joined.encode(errors="surrogatepass")
        if len(data) > len(joined):
            lengths = _lengths_in_bytes(data, lengths)
        return Messages.side_by_side(data, lengths)


def _lengths_in_bytes(data: bytes, lengths: IntArray) -> IntArray:
    """Return the lengths of texts in bytes of UTF-8, from those in characters."""
    # All bytes of a character but the first are 10......
    firsts = np.flatnonzero((np.frombuffer(data, np.uint8) & 0xC0) != 0x80)
    starts = firsts[lengths.cumsum() - lengths]
    return np.diff(starts, append=len(data))


def check_secret_key(owner: str, secret_key: object) -> bytes:
    """Return a secret key as bytes, if it is one. Errors never show it.

    Examples
    --------
    >>> from skprivacy.siphash import check_secret_key
    >>> check_secret_key("transform", "hunter2")
    Traceback (most recent call last):
    ...
    TypeError: The 'secret_key' parameter of transform must be bytes. Make one with ... str.
    """
    if not isinstance(secret_key, bytes | bytearray | memoryview):
        raise TypeError(
            f"The 'secret_key' parameter of {owner} must be bytes. Make one with "
            f"secrets.token_bytes(32) and keep it in a safe place. Got a value of type "
            f"{type(secret_key).__name__}."
        )
    key = bytes(secret_key)
    if len(key) < _FEWEST_KEY_BYTES:
        raise ValueError(
            f"The 'secret_key' parameter of {owner} must have at least {_FEWEST_KEY_BYTES} bytes, "
            f"or it can be guessed. Make one with secrets.token_bytes(32) and keep it in a safe "
            f"place. Got {len(key)} bytes."
        )
    return key


def derive_keys(secret_key: bytes, fingerprint: bytes, lane: int) -> bytes:
    """Return a key for `siphash`: unrelated ones for other fingerprints and lanes.

    Parameters
    ----------
    secret_key : bytes
        At least 16, see `check_secret_key`.
    fingerprint : bytes
        Of what the key is for.
    lane : int
        From 0 on: several keys for the same thing.

    Returns
    -------
    bytes
        16 of them.

    Examples
    --------
    >>> from skprivacy.siphash import derive_keys
    >>> secret = bytes(32)  # secrets.token_bytes(32), in earnest
    >>> len({derive_keys(secret, b"mechanism", lane) for lane in range(10)})
    10
    """
    secret_key = check_secret_key("derive_keys", secret_key)
    salt = b""
    if len(secret_key) > _MOST_KEY_BYTES:
        # The salt keeps a long key apart from the short key that is its hash.
        secret_key, salt = hashlib.blake2b(secret_key, person=_PERSON).digest(), b"hashed"
    # The lane has a fixed size, so that no other pair has the same bytes.
    told = lane.to_bytes(8, "little") + fingerprint
    return hashlib.blake2b(
        told, digest_size=16, key=secret_key, salt=salt, person=_PERSON
    ).digest()
