"""Keyed words of record ids, by AES, and folds of rows by person."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._messages import InPython, Message
from .._typing import BoolArray, IntArray
from ..cells.cells import N_FOLDS
from ..codes import chunks
from ..tables.frames import Table
from ..tables.table import ColumnRoles
from .sampler import Words, aes

WORD_KEY_BYTES = 32  # two keys of AES-128: of the digests of texts, and of words

_BLOCK_BYTES = 16
_CHUNK = 1 << 15  # ids at once: their blocks stay in the cache


def keyed_words(key: bytes, ids: EncodedIds) -> Words:
    """Return a word for each id: 64 bits of AES of a block of 128 bits.

    The block of an integer holds the integer and its type, and differs from that of any other
    integer. The block of a text is its `digests`, under the other half of the key.

    Without the key, words of different ids look like independent random words (a pseudorandom
    function), if AES looks like a random permutation. For such a permutation, the values for q
    different blocks can be told from independent ones with an advantage of at most q^2 / 2^129,
    and so can halves of them. Digests that are random repeat each other, or equal the block of an
    integer, with a probability of at most q^2 / 2^128; that they look random costs what `digests`
    says. Together these are of the order of 2^-46 for 2^33 of the
    longest ids, and of 2^-60 for short ones.

    Parameters
    ----------
    key : bytes
        32 bytes.
    ids : EncodedIds
        The ids.

    Returns
    -------
    ndarray of uint64

    Examples
    --------
    >>> import pandas as pd
    >>> from skprivacy.releasing.record_ids import encode_ids, keyed_words
    >>> len(set(keyed_words(bytes(32), encode_ids(pd.Series([5, 6, 7]))).tolist()))
    3
    """
    if len(key) != WORD_KEY_BYTES:
        raise ValueError(f"The key of words must have {WORD_KEY_BYTES} bytes. Got {len(key)}.")
    of_texts, of_words = key[:_BLOCK_BYTES], key[_BLOCK_BYTES:]
    words = np.empty(len(ids), dtype=np.uint64)
    for chunk in chunks(len(ids), _CHUNK):
        part = ids[chunk]
        blocks = digests(of_texts, part) if isinstance(part, Texts) else part
        words[chunk] = aes(of_words, blocks)[:, 0]
    return words


@dataclass(frozen=True, eq=False, repr=False)
class Texts:
    """Texts as bytes in one buffer, where each starts, and its length. No repr shows them."""

    data: bytes
    starts: IntArray
    lengths: IntArray

    @classmethod
    def side_by_side(cls, texts: Sequence[bytes], lengths: IntArray) -> Self:
        """Return texts without anything between them, from pieces that may hold several."""
        return cls(b"".join(texts), lengths.cumsum() - lengths, lengths)


def digests(key: bytes, texts: Texts) -> Words:
    """Return a digest of 128 bits of each text, as two words: CBC-MAC with AES.

    The first block is the length of the text, the others are its bytes, with zeros at the end
    (padding method 3 of ISO/IEC 9797-1), so the blocks of one text never begin with all those of
    another. Under a secret key, digests of q such texts of up to m blocks can be told from
    independent random ones with an advantage of the order of m^2 q^2 / 2^128 (Bellare, Kilian and
    Rogaway, 1994; Petrank and Rackoff, 1997), if AES looks like a random permutation. Ids have at
    most 251 blocks.
    """
    blocks = np.zeros((len(texts.lengths), 2), dtype="<u8")
    blocks[:, 0] = texts.lengths
    digest = aes(key, blocks)
    data = np.frombuffer(texts.data + bytes(_BLOCK_BYTES), np.uint8)
    blocks_at = np.ndarray(len(texts.data) + 1, _BLOCK, data.data, strides=(1,))
    starts, left = texts.starts, texts.lengths
    rows: IntArray | slice = slice(None)
    while True:
        if left.min(initial=1) < 1:  # leave out texts that end here
            more = np.flatnonzero(left > 0)
            rows = more if isinstance(rows, slice) else rows[more]
            starts, left = starts[more], left[more]
        if not len(left):
            return digest
        blocks = blocks_at[starts].view("<u8").reshape(-1, 2)
        blocks &= _MASKS.take(left, axis=0, mode="clip")
        digest[rows] = aes(key, digest[rows] ^ blocks)
        starts, left = starts + _BLOCK_BYTES, left - _BLOCK_BYTES


_BLOCK = np.dtype((np.void, _BLOCK_BYTES))

# Keeps the first bytes of a block, for each number of them.
_MASKS = np.where(np.arange(16) < np.arange(17)[:, None], 255, 0).astype(np.uint8).view("<u8")


def n_repeated(hashes: Words) -> int:
    """Return how many hashes repeat an earlier one."""
    in_order = np.sort(hashes)  # several times faster than a hash table
    return int(np.count_nonzero(in_order[1:] == in_order[:-1]))


# Record ids: integers as blocks, texts as bytes of UTF-8.


_MOST_CHARACTERS = 1_000  # of an id

# The second word of the block of an integer. It distinguishes integers from 2^63 on from the
# negative ones with the same first word.
_INTEGER, _LARGE_INTEGER = 1, 2
_INTEGER_DTYPES = {"i": np.dtype(np.int64), "u": np.dtype(np.uint64)}


@dataclass(frozen=True, eq=False, repr=False)
class EncodedIds:
    """Ids whose slices are blocks or `Texts`, made by `encode`. No repr shows them."""

    values: Any
    encode: Callable[[Any], Words | Texts]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice, /) -> Words | Texts:
        return self.encode(self.values[rows])

    def between(self, start: int, stop: int) -> EncodedIds:
        """Return the ids of some rows."""
        return EncodedIds(self.values[start:stop], self.encode)

    def surely_differ(self) -> bool:
        """Return whether these are integers of which a quick look shows that none repeats."""
        integers = np.asarray(self.values) if self.values.dtype.kind in "iu" else np.empty(0)
        if len(integers) < 2:
            return False
        if (integers[1:] > integers[:-1]).all():
            return True
        low, high = int(integers.min()), int(integers.max())
        if high - low >= 4 * len(integers):
            return False
        is_used = np.zeros(high - low + 1, dtype=bool)
        is_used[integers - integers.dtype.type(low)] = True
        return np.count_nonzero(is_used) == len(integers)


def encode_ids(ids: pd.Series) -> EncodedIds:
    """Return ids for `keyed_words`, encoded a slice at a time.

    Different ids are encoded differently, the same ones equally, whatever their dtype.

    Parameters
    ----------
    ids : Series
        Integers from -2^63 to 2^64 - 1, or texts of up to 1,000 characters, of any dtype that
        holds them; none missing. The integer 5 and the text "5" are different ids.

    Returns
    -------
    EncodedIds
        Longer texts are errors when they are encoded. Errors never show an id.

    Examples
    --------
    >>> import pandas as pd
    >>> from skprivacy.releasing.record_ids import encode_ids, keyed_words
    >>> key = bytes(32)
    >>> some, same = pd.Series([7, 8], dtype="int8"), pd.Series([7, 8], dtype=object)
    >>> bool((keyed_words(key, encode_ids(some)) == keyed_words(key, encode_ids(same))).all())
    True
    """
    array = distinct = ids.array
    if ids.dtype == object and _inferred(array, skipna=False) == {"string"}:
        return EncodedIds(array, _as_id_texts)  # nothing is missing
    if is_categorical := isinstance(ids.dtype, pd.CategoricalDtype):
        array = array.remove_unused_categories()
        distinct = array.categories.array
    kind = _kind_of(distinct)
    if n_missing := int(ids.isna().sum()):
        problem = "{record_ids} must not have missing values: every row needs an id of its own. "
        found = "Got {n_missing} missing of {n_rows}."
        raise ValueError(Message.of(problem + found, n_missing=n_missing, n_rows=len(ids)))
    if is_categorical:
        array = distinct.take(array.codes)
    if kind == "text":
        return EncodedIds(array, _as_id_texts)
    if array.dtype.kind == "O":
        _check_range(array)
    dtype = _INTEGER_DTYPES.get(array.dtype.kind, np.dtype(object))
    return EncodedIds(array, partial(_integer_blocks, dtype=dtype))


def _kind_of(values: Any) -> str:
    """Return "integer" or "text", if all values are of this type."""
    if pd.api.types.is_integer_dtype(values.dtype):
        return "integer"
    if isinstance(values.dtype, pd.StringDtype):
        return "text"
    if values.dtype.kind in "OU":  # U: Arrow's texts
        kinds = _inferred(values, skipna=True) - {"empty"}
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


def _inferred(values: Any, skipna: bool) -> set[str]:
    """Return what pandas takes the chunks of a column to be."""
    parts = (_objects(values[chunk]) for chunk in chunks(len(values)))
    return {pd.api.types.infer_dtype(part, skipna=skipna) for part in parts}


def _as_id_texts(values: Any) -> Texts:
    texts = _as_texts(values)
    if texts.lengths.max(initial=0) > _MOST_CHARACTERS:  # in bytes: perhaps fewer characters
        _check_lengths(values)
    return texts


def _check_lengths(values: Any) -> None:
    longest = max(map(len, _objects(values)))
    if longest > _MOST_CHARACTERS:
        problem = "{record_ids} must have at most {most:,} characters each. Got one of {got:,}: "
        advice = "hash such ids first, for instance with {how}."
        texts = {"most": _MOST_CHARACTERS, "how": InPython("hashlib.sha256", "SHA-256")}
        raise ValueError(Message.of(problem + advice, got=longest, **texts))


def _check_range(integers: Any) -> None:
    values = _objects(integers)
    if not -(2**63) <= values.min() <= values.max() < 2**64:
        problem = "{record_ids} must be between -2^63 and 2^64 - 1 if they are integers: "
        how = InPython("with .astype(str)", "to texts")
        raise ValueError(Message.of(problem + "convert larger ones {how}.", how=how))


def _objects(values: Any) -> npt.NDArray[np.object_]:
    return values.to_numpy(dtype=object)


def _integer_blocks(values: Any, dtype: np.dtype[Any]) -> Words:
    words, are_large = _as_words(values.to_numpy(dtype=dtype))
    blocks = np.empty((len(words), 2), dtype="<u8")
    blocks[:, 0] = words
    blocks[:, 1] = np.where(are_large, _LARGE_INTEGER, _INTEGER)
    return blocks


def _as_words(integers: npt.NDArray[Any]) -> tuple[npt.NDArray[np.uint64], BoolArray]:
    """Return the lower 64 bits of integers, and whether each, or all, are 2^63 or more."""
    if integers.dtype == object:
        # As Python integers, of any size: numpy integers overflow in comparisons.
        integers = np.array(list(map(operator.index, integers)), dtype=object)
        are_large = (integers >= 2**63).astype(bool)
        return (integers & (2**64 - 1)).astype(np.uint64), are_large
    words = integers.view(np.uint64)
    if integers.dtype.kind == "i":
        return words, np.zeros(1, dtype=bool)
    return words, words >= np.uint64(2**63)


def _as_texts(values: Any) -> Texts:
    """Return the bytes of texts: those of Arrow itself, or of Python's texts."""
    if hasattr(values, "__arrow_array__"):
        arrow = values.__arrow_array__()
        pieces = getattr(arrow, "chunks", [arrow])
        if {str(piece.type) for piece in pieces} <= _ARROW_OFFSETS.keys():
            ends = [_ends_in_arrow(piece) for piece in pieces]
            lengths = np.concatenate([np.empty(0, np.int64), *map(np.diff, ends)])
            bytes_of = map(_bytes_in_arrow, pieces, ends)
            return Texts.side_by_side(list(bytes_of), lengths)
    return _of_objects(_objects(values).tolist())


_ARROW_OFFSETS = {"string": np.int32, "large_string": np.int64}


def _ends_in_arrow(texts: Any) -> IntArray:
    """Return where texts of an Arrow array end, after where the first one begins."""
    if not len(texts):
        return np.zeros(1, dtype=np.int64)
    ends: IntArray = np.frombuffer(texts.buffers()[1], _ARROW_OFFSETS[str(texts.type)])
    return ends[texts.offset : texts.offset + len(texts) + 1]


def _bytes_in_arrow(texts: Any, ends: IntArray) -> bytes:
    return bytes(memoryview(texts.buffers()[2] or b"")[ends[0] : ends[-1]])


def _of_objects(texts: Sequence[str]) -> Texts:
    # Texts may hold halves of surrogate pairs, which UTF-8 cannot encode.
    data = "\0".join(texts).encode(errors="surrogatepass")
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 0)
    if len(ends) == len(texts) - 1:
        starts, ends = np.append(0, ends + 1), np.append(ends, len(data))
        return Texts(data, starts, ends - starts)
    pieces = [text.encode(errors="surrogatepass") for text in texts]  # none, or some hold a zero
    return Texts.side_by_side(pieces, np.fromiter(map(len, pieces), np.int64, len(pieces)))


def text_words(key: bytes, texts: Sequence[str]) -> Words:
    """Return a word for each text, of any length, as `keyed_words` does."""
    return keyed_words(key, EncodedIds(texts, _of_objects))


# Numbers and folds of rows by the keys of people: all rows of a person are in the same fold.


# Not a secret: it must be the same everywhere, and differ from the keys of noise.
_KEY = b"skprivacy groups".ljust(WORD_KEY_BYTES)


# Few people share one of these numbers. Counts of numbers are never more than those of people, and
# tables with many rows of few kinds stay small when they are counted with them.
_PERSONS = 1 << 12


def folds_of_keys(keys: pd.Series, name: Hashable) -> IntArray:
    """Return the fold of each key; name : of their column, for errors, which never show a key."""
    return folds_of_persons(persons_of_keys(keys, name))


def folds_of_persons(persons: IntArray) -> IntArray:
    """Return the fold of each person's number."""
    return persons % N_FOLDS


def persons_of_keys(keys: pd.Series, name: Hashable) -> IntArray:
    """Return the number of the person whom each key names; name : of their column, for errors.

    An integer has the number of its digits, because in a file it may be a text, and in an array a
    float.
    """
    codes, distinct = pd.factorize(keys)
    texts = [_text(key, name) for key in distinct.tolist()]
    is_missing = np.append([text == "" for text in texts], True)
    if n_missing := int(np.count_nonzero(is_missing[codes])):
        found = "The column {name!r}, which {person} names, is missing in {n:,} of {rows:,} rows: "
        advice = "give such a row a key of its own, or leave it out."
        raise ValueError(Message.of(found + advice, name=name, n=n_missing, rows=len(keys)))
    return (text_words(_KEY, texts) % np.uint64(_PERSONS)).astype(np.intp)[codes]


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


def persons_in(roles: ColumnRoles, table: Table, owner: str) -> IntArray | None:
    """Return the number of each row's person, None without person ids."""
    if (position := roles.person_in(table, owner)) is None:
        return None
    return persons_of_keys(table.column(position), table.label(position))
