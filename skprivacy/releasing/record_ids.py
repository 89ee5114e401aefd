"""Keyed hashes (SipHash-2-4) of record ids, and folds of rows by person.

Without the key, hashes of different messages look like independent random words.
"""

from __future__ import annotations

import numbers
import operator
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._messages import InPython, Message
from .._typing import BoolArray, IntArray
from ..cells.cells import N_FOLDS
from ..codes import chunks
from ..tables.frames import Table
from ..tables.table import ColumnRoles

_CHUNK = 1 << 14  # messages at once: the state, five words each, stays in the cache

# The initial state of SipHash.
_START = np.frombuffer(b"somepseudorandomlygeneratedbytes", ">u8").astype(np.uint64)

_Words: TypeAlias = npt.NDArray[np.uint64]
_Bytes: TypeAlias = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Messages:
    """Byte strings of any lengths in one buffer.

    Attributes
    ----------
    data : ndarray of uint8
        The buffer, with eight more bytes: words are read across the end of a message.
    starts, lengths : ndarray of shape (n,)
        Of each message.
    """

    data: _Bytes
    starts: IntArray
    lengths: IntArray

    @classmethod
    def from_bytes(cls, messages: Iterable[bytes]) -> Self:
        """Return the messages of bytes objects."""
        messages = list(messages)
        lengths = np.fromiter(map(len, messages), np.int64, len(messages))
        return cls.side_by_side(b"".join(messages), lengths)

    @classmethod
    def side_by_side(cls, data: bytes, lengths: IntArray) -> Self:
        """Return messages that are stored one after the other."""
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
        """Return the messages by decreasing length, and the original position of each."""
        if len(self) == 0 or self.lengths.min() == self.lengths.max():
            return self, slice(None)
        order = np.argsort(-self.lengths)
        return Messages(self.data, self.starts[order], self.lengths[order]), order


def siphash(key: bytes, messages: Messages | EncodedIds) -> _Words:
    """Return SipHash-2-4 of each message.

    Parameters
    ----------
    key : bytes
        16 bytes.
    messages : Messages or EncodedIds
        The messages to hash.

    Returns
    -------
    ndarray of uint64

    Examples
    --------
    The example in the paper of Aumasson and Bernstein:

    >>> from skprivacy.releasing.record_ids import Messages, siphash
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
    """Return how many hashes repeat an earlier one."""
    in_order = np.sort(hashes)  # several times faster than hashing them again
    return int(np.count_nonzero(in_order[1:] == in_order[:-1]))


def _hashed(start: _Words, messages: Messages) -> _Words:
    messages, order = messages.longest_first()
    v = [np.full(len(messages), word) for word in start]  # v0, ..., v3 of each message
    scratch = np.empty(len(messages), dtype=np.uint64)
    full = messages.lengths >> 3
    # The messages with another full word are always the first ones.
    for k, n in enumerate(np.bincount(full)[::-1].cumsum()[::-1][1:].tolist()):
        _absorb(v, messages.words(messages.starts[:n] + 8 * k), scratch)
    _absorb(v, _last_words(messages, full), scratch)
    v[2] ^= np.uint64(0xFF)
    for _ in range(4):
        _round(v, scratch)
    hashes = np.empty(len(messages), dtype=np.uint64)
    hashes[order] = v[0] ^ v[1] ^ v[2] ^ v[3]
    return hashes


def _last_words(messages: Messages, full: IntArray) -> _Words:
    """Return the remaining 0 to 7 bytes of each message, with its length modulo 256 on top."""
    left_over = messages.words(messages.starts + 8 * full)
    n_bits = (8 * (messages.lengths & 7)).astype(np.uint64)
    left_over &= (np.uint64(1) << n_bits) - np.uint64(1)
    return left_over | (messages.lengths.astype(np.uint64) << np.uint64(56))


def _absorb(v: list[_Words], words: _Words, scratch: _Words) -> None:
    """Absorb a word of each of the first messages, in place."""
    v, scratch = [word[: len(words)] for word in v], scratch[: len(words)]
    v[3] ^= words
    for _ in range(2):
        _round(v, scratch)
    v[0] ^= words


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


# Record ids as messages: a byte for the type, then eight bytes, or a text as UTF-8.


_MOST_CHARACTERS = 1_000  # of an id

# The first byte of a message. It distinguishes integers from 2^63 on from the negative ones with
# the same eight bytes.
_INTEGER, _LARGE_INTEGER, _TEXT = b"\x01\x02\x03"
_INTEGER_DTYPES = {"i": np.dtype(np.int64), "u": np.dtype(np.uint64)}
_INTEGER_BYTES = np.dtype([("type", np.uint8), ("value", "<u8")])


@dataclass(frozen=True, eq=False, repr=False)
class EncodedIds:
    """Ids whose slices are `Messages`, made by `encode`. No repr shows them."""

    values: Any
    encode: Callable[[Any], Messages]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice, /) -> Messages:
        return self.encode(self.values[rows])


def encode_ids(ids: pd.Series) -> EncodedIds:
    """Return ids as messages: different for different ids, the same whatever their dtype.

    Parameters
    ----------
    ids : Series
        Integers from -2^63 to 2^64 - 1, or texts of up to 1,000 characters, of any dtype that
        holds them; none missing. The integer 5 and the text "5" are different ids.

    Returns
    -------
    EncodedIds
        Messages for `siphash`, encoded a slice at a time. Errors never show an id.

    Examples
    --------
    >>> import pandas as pd
    >>> from skprivacy.releasing.record_ids import encode_ids, siphash
    >>> key = bytes(16)
    >>> some, same = pd.Series([7, 8], dtype="int8"), pd.Series([7, 8], dtype=object)
    >>> bool((siphash(key, encode_ids(some)) == siphash(key, encode_ids(same))).all())
    True
    """
    array = distinct = ids.array
    if isinstance(ids.dtype, pd.CategoricalDtype):
        distinct = array.remove_unused_categories().categories.array
    kind = _kind_of(distinct)
    if n_missing := int(ids.isna().sum()):
        problem = "{record_ids} must not have missing values: every row needs an id of its own. "
        found = "Got {n_missing} missing of {n_rows}."
        raise ValueError(Message.of(problem + found, n_missing=n_missing, n_rows=len(ids)))
    if kind == "text":
        _check_lengths(distinct)
        return EncodedIds(array, _text_messages)
    if distinct.dtype.kind == "O":
        _check_range(distinct)
    dtype = _INTEGER_DTYPES.get(distinct.dtype.kind, np.dtype(object))
    return EncodedIds(array, partial(_integer_messages, dtype=dtype))


def _kind_of(values: Any) -> str:
    """Return "integer" or "text", if all values are of this type."""
    if pd.api.types.is_integer_dtype(values.dtype):
        return "integer"
    if isinstance(values.dtype, pd.StringDtype):
        return "text"
    if values.dtype.kind in "OU":  # U: Arrow's texts
        parts = (_objects(values[chunk]) for chunk in chunks(len(values)))
        kinds = {pd.api.types.infer_dtype(part, skipna=True) for part in parts} - {"empty"}
        if kinds <= {"string"}:
            return "text"
        if kinds == {"integer"}:
            return "integer"
    found = f"dtype {values.dtype}"
    if values.dtype.kind == "O":
        types = sorted({type(value).__name__ for value in values[~pd.isna(values)]})
        found += f" with values of type {' and '.join(types)}"
    problem = "{record_ids} must be all integers or all texts. Got {found}: "
    how = InPython(', for instance with .astype(str), or whole numbers with .astype("int64")')
    raise TypeError(Message.of(problem + "convert them first{how}.", found=found, how=how))


def _check_lengths(texts: Any) -> None:
    parts = (_objects(texts[chunk]) for chunk in chunks(len(texts)))
    longest = max((max(map(len, part)) for part in parts), default=0)
    if longest > _MOST_CHARACTERS:
        problem = "{record_ids} must have at most {most:,} characters each. Got one of {got:,}: "
        advice = "hash such ids first, for instance with {how}."
        values = {"most": _MOST_CHARACTERS, "how": InPython("hashlib.sha256", "SHA-256")}
        raise ValueError(Message.of(problem + advice, got=longest, **values))


def _check_range(integers: Any) -> None:
    values = _objects(integers)
    if not -(2**63) <= values.min() <= values.max() < 2**64:
        problem = "{record_ids} must be between -2^63 and 2^64 - 1 if they are integers: "
        how = InPython("with .astype(str)", "to texts")
        raise ValueError(Message.of(problem + "convert larger ones {how}.", how=how))


def _objects(values: Any) -> npt.NDArray[np.object_]:
    return values.to_numpy(dtype=object)


def _integer_messages(values: Any, dtype: np.dtype[Any]) -> Messages:
    words, are_large = _as_words(values.to_numpy(dtype=dtype))
    encoded = np.empty(len(words), dtype=_INTEGER_BYTES)
    encoded["type"] = np.where(are_large, _LARGE_INTEGER, _INTEGER)
    encoded["value"] = words
    lengths = np.full(len(words), _INTEGER_BYTES.itemsize)
    return Messages.side_by_side(encoded.tobytes(), lengths)


def _as_words(integers: npt.NDArray[Any]) -> tuple[npt.NDArray[np.uint64], BoolArray]:
    """Return the lower 64 bits of integers, and whether each is 2^63 or more."""
    if integers.dtype == object:
        # As Python integers, of any size: numpy integers overflow in comparisons.
        integers = np.array(list(map(operator.index, integers)), dtype=object)
        are_large = (integers >= 2**63).astype(bool)
        return (integers & (2**64 - 1)).astype(np.uint64), are_large
    words = integers.view(np.uint64)
    if integers.dtype.kind == "i":
        return words, np.zeros(len(words), dtype=bool)
    return words, words >= np.uint64(2**63)


def _text_messages(values: Any) -> Messages:
    texts, type_ = _objects(values).tolist(), chr(_TEXT)
    joined = "".join([type_, type_.join(texts)])  # the type before each text
    lengths: IntArray = np.fromiter(map(len, texts), np.int64, len(texts)) + 1
    # Texts may hold halves of surrogate pairs, which UTF-8 cannot encode.
    data = joined.encode(errors="surrogatepass")
    if len(data) > len(joined):
        # In bytes of UTF-8. Only the first byte of a character is not 10......
        firsts = np.flatnonzero((np.frombuffer(data, np.uint8) & 0xC0) != 0x80)
        lengths = np.diff(firsts[lengths.cumsum() - lengths], append=len(data))
    return Messages.side_by_side(data, lengths)


# Folds of rows by the keys of people: all rows of a person are in the same fold.


# Not a secret: it must be the same everywhere, and differ from the keys of noise.
_KEY = b"skprivacy groups"


def folds_of_keys(keys: pd.Series, name: Hashable) -> IntArray:
    """Return the fold of each key; name : of their column, for errors, which never show a key.

    An integer has the fold of its digits, because in a file it may be a text, and in an array a
    float.
    """
    codes, distinct = pd.factorize(keys)
    texts = [_text(key, name) for key in distinct.tolist()]
    is_missing = np.append([text == "" for text in texts], True)
    if n_missing := int(np.count_nonzero(is_missing[codes])):
        found = "The column {name!r}, which {person} names, is missing in {n:,} of {rows:,} rows: "
        advice = "give such a row a key of its own, or leave it out."
        raise ValueError(Message.of(found + advice, name=name, n=n_missing, rows=len(keys)))
    raw = (text.encode(errors="surrogatepass") for text in texts)
    words = siphash(_KEY, Messages.from_bytes(raw))
    return (words % np.uint64(N_FOLDS)).astype(np.intp)[codes]


def _text(key: Any, name: Hashable) -> str:
    """Return a key as a text: a number as its digits."""
    if isinstance(key, str):
        return key
    is_number = isinstance(key, numbers.Real) and not isinstance(key, bool | np.bool)
    if is_number and (isinstance(key, numbers.Integral) or float(key).is_integer()):
        return str(int(key))
    problem = "The column {name!r}, which {person} names, must hold integers or texts. "
    advice = "Got a value of type {kind}: convert them first{how}."
    values = {"kind": type(key).__name__, "how": InPython(", for instance with .astype(str)")}
    raise TypeError(Message.of(problem + advice, name=name, **values))


def folds_in(roles: ColumnRoles, table: Table, owner: str) -> IntArray | None:
    """Return the fold of each row of a table, None without person ids."""
    if (position := roles.person_in(table, owner)) is None:
        return None
    return folds_of_keys(table.column(position), table.label(position))
