"""Record ids as messages of a keyed hash (SipHash-2-4), and folds of rows by person.

Whoever lacks the key cannot tell hashes of different messages from independent random words.
"""

from __future__ import annotations

import numbers
import operator
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._messages import InPython, Message, Named
from .._typing import BoolArray, IntArray
from ..cells.cells import N_FOLDS
from ..codes import chunks
from ..tables.frames import Table
from ..tables.table import ColumnRoles

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


# Ids of records as messages: a byte for the type, then eight bytes or a text as UTF-8.


_MOST_CHARACTERS = 1_000  # of an id

# What the first byte of a message says. Integers from 2^63 on have the same eight bytes as some
# negative ones: the first byte tells them apart.
_INTEGER, _LARGE_INTEGER, _TEXT = b"\x01\x02\x03"
_INTEGER_DTYPES = {"i": np.dtype(np.int64), "u": np.dtype(np.uint64)}
_INTEGER_BYTES = np.dtype([("type", np.uint8), ("value", "<u8")])


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
    >>> from skprivacy.releasing.record_ids import encode_ids
    >>> from skprivacy.releasing.record_ids import siphash
    >>> key = bytes(16)
    >>> some, same = pd.Series([7, 8], dtype="int8"), pd.Series([7, 8], dtype=object)
    >>> bool((siphash(key, encode_ids(some)) == siphash(key, encode_ids(same))).all())
    True
    """
    array = distinct = ids.array
    if isinstance(ids.dtype, pd.CategoricalDtype):
        distinct = array.remove_unused_categories().categories.array
    kind = _kind_of(distinct, name)
    n_missing = int(ids.isna().sum())
    if n_missing:
        told = Named(name), " must not have missing values: every row needs an id of its own. "
        raise ValueError(Message(*told, f"Got {n_missing} missing of {len(ids)}."))
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
        parts = (_objects(values[chunk]) for chunk in chunks(len(values)))
        kinds = {pd.api.types.infer_dtype(part, skipna=True) for part in parts} - {"empty"}
        if kinds <= {"string"}:
            return "text"
        if kinds == {"integer"}:
            return "integer"
    told = Named(name), f" must be all integers or all texts. Got {_described(values)}: "
    why = "convert them first"
    advice = InPython(', for instance with .astype(str), or whole numbers with .astype("int64")')
    raise TypeError(Message(*told, why, advice, "."))


def _described(values: Any) -> str:
    if values.dtype.kind != "O":
        return f"dtype {values.dtype}"
    types = sorted({type_.__name__ for type_ in set(map(type, values[~pd.isna(values)]))})
    return f"dtype {values.dtype} with values of type {' and '.join(types)}"


def _check_lengths(texts: Any, name: str) -> None:
    longest = max(
        (max(map(len, _objects(texts[chunk]))) for chunk in chunks(len(texts))), default=0
    )
    if longest > _MOST_CHARACTERS:
        told = Named(name), f" must have at most {_MOST_CHARACTERS:,} characters each. "
        why = f"Got one of {longest:,}: hash such ids first, for instance with "
        raise ValueError(Message(*told, why, InPython("hashlib.sha256", "SHA-256"), "."))


def _check_range(integers: Any, name: str) -> None:
    values = _objects(integers)
    if not -(2**63) <= values.min() <= values.max() < 2**64:
        told = Named(name), " must lie between -2^63 and 2^64 - 1 where they are integers: "
        why = "convert larger ones ", InPython("with .astype(str)", "to texts")
        raise ValueError(Message(*told, *why, "."))


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


def _as_words(integers: npt.NDArray[Any]) -> tuple[npt.NDArray[np.uint64], BoolArray]:
    """Return the lower 64 bits of integers, and which are 2^63 or more."""
    if integers.dtype == object:
        # Python's own integers, of any size: those of numpy overflow when they are compared.
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
        # Python's texts may hold halves of surrogate pairs, for which UTF-8 has no bytes.
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


# Which fold a row is in by the key of its person: the same one for all rows of a person.


# Not a secret: it must be the same everywhere, and unlike those of noise.
_KEY = b"skprivacy groups"


def folds_of_keys(keys: pd.Series, name: Hashable) -> IntArray:
    """Return the fold of each key; name : of their column, for errors, which never show a key.

    An integer has the fold of its digits: a file has texts where a frame has numbers, and an
    array may hold integers as floats.
    """
    codes, distinct = pd.factorize(keys)
    texts = [_text(key, name) for key in distinct.tolist()]
    is_missing = np.append([text == "" for text in texts], True)
    if n_missing := int(np.count_nonzero(is_missing[codes])):
        told = f"The column {name!r}, which ", Named("person")
        why = f" names, is missing in {n_missing:,} of {len(keys):,} rows: give such a row a "
        raise ValueError(Message(*told, why, "key of its own, or leave it out."))
    raw = (text.encode(errors="surrogatepass") for text in texts)
    words = siphash(_KEY, Messages.from_bytes(raw))
    return (words % np.uint64(N_FOLDS)).astype(np.intp)[codes]


def _text(key: Any, name: Hashable) -> str:
    """Return a key as a text: a number by its digits."""
    if isinstance(key, str):
        return key
    is_number = isinstance(key, numbers.Real) and not isinstance(key, bool | np.bool)
    if is_number and (isinstance(key, numbers.Integral) or float(key).is_integer()):
        return str(int(key))
    told = f"The column {name!r}, which ", Named("person"), " names, must hold integers or texts. "
    why = f"Got a value of type {type(key).__name__}: convert them first"
    raise TypeError(Message(*told, why, InPython(", for instance with .astype(str)"), "."))


def folds_in(roles: ColumnRoles, table: Table, owner: str) -> IntArray | None:
    """Return the fold of each row of a table, None where no column tells people apart."""
    if (position := roles.group_in(table, owner)) is None:
        return None
    return folds_of_keys(table.column(position), table.label(position))
