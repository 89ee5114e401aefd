"""Ids of records as messages: a byte for the type, then eight bytes or a text as UTF-8."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._messages import InPython, Message, Named
from .._typing import BoolArray, IntArray
from ..codes import chunks
from .siphash import Messages, Sliceable

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
    >>> from skprivacy.releasing.siphash import siphash
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
            Message(
                Named(name),
                f" must not have missing values: every row needs an id of its own. Got "
                f"{n_missing} missing of {len(ids)}.",
            )
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
        parts = (_objects(values[chunk]) for chunk in chunks(len(values)))
        kinds = {pd.api.types.infer_dtype(part, skipna=True) for part in parts} - {"empty"}
        if kinds <= {"string"}:
            return "text"
        if kinds == {"integer"}:
            return "integer"
    raise TypeError(
        Message(
            Named(name),
            f" must be all integers or all texts. Got {_described(values)}: convert them first",
            InPython(', for instance with .astype(str), or whole numbers with .astype("int64")'),
            ".",
        )
    )


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
        raise ValueError(
            Message(
                Named(name),
                f" must have at most {_MOST_CHARACTERS:,} characters each. Got one of "
                f"{longest:,}: hash such ids first, for instance with ",
                InPython("hashlib.sha256", "SHA-256"),
                ".",
            )
        )


def _check_range(integers: Any, name: str) -> None:
    values = _objects(integers)
    if not -(2**63) <= values.min() <= values.max() < 2**64:
        raise ValueError(
            Message(
                Named(name),
                " must lie between -2^63 and 2^64 - 1 where they are integers: convert larger "
                "ones ",
                InPython("with .astype(str)", "to texts"),
                ".",
            )
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
