"""Keyed release: the noise of a row is a function of its id and a secret key."""

from __future__ import annotations

import datetime
import decimal
import hashlib
import json
import numbers
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from .._messages import InPython, Message, Named, Owner
from .._typing import IntArray, Seed
from .._validation import about
from ..encoding import ColumnAlphabet
from ..tables.frames import Table, as_columns, check_length
from .record_ids import WORD_KEY_BYTES, encode_ids, keyed_words, n_repeated
from .release import Release
from .sampler import (
    IDENTITY_LANE,
    OUTPUT_LANE,
    FreshSource,
    Noise,
    NoiseSource,
    Words,
    fresh_key,
)

_FEWEST_KEY_BYTES = 16
_MOST_KEY_BYTES = 64  # the limit of BLAKE2b
_PERSON = b"skprivacy"
_MAKE_ONE = InPython("Make one with secrets.token_bytes(32) and keep it in a safe place. ")


@dataclass(frozen=True, eq=False, repr=False)
class RecordKeys:
    """The keys of one mechanism, one for each lane. They do not reveal the secret key.

    No repr shows them.
    """

    of_lane: Mapping[int, bytes]


def fingerprint(release: Release) -> bytes:
    """Return a hash that differs between mechanisms that give a row different outputs.

    It depends on the columns that are replaced, on the symbols of their values, and on the
    channel, but not on how outputs are shown: two forms of one draw are one release. Its content
    must never change, or every row would be released a second time.
    """
    roles, alphabet = release.roles, release.alphabet
    content = [
        [str(roles.name(position)) for position in roles.read_positions],
        [_symbols_of(column) for column in alphabet.read_columns],
        *alphabet.rules(),
        *map(str, roles.person_names),
        list(release.channel.shape),
        release.channel.astype("<f8").tobytes().hex(),
    ]
    return hashlib.blake2b(json.dumps(content).encode(), person=_PERSON).digest()


def _symbols_of(column: ColumnAlphabet) -> list[Any]:
    """Return, as JSON, the symbols of the values or bins of a column."""
    symbols = column.symbols.tolist()
    if column.edges is None:
        return [[_spelled(value) for value in column.values], symbols]
    return [[edge.hex() for edge in (*column.bounds, *column.edges.tolist())], symbols]


def _spelled(value: Any) -> str:
    """Return a value as a text that does not depend on its exact type."""
    if value is None or isinstance(value, str | bool | np.bool):
        return f"{type(value).__name__.rstrip('_')} {value}"
    if isinstance(value, datetime.date | np.datetime64):
        return f"time {pd.Timestamp(value).isoformat()}"
    if isinstance(value, datetime.timedelta | np.timedelta64):
        return f"duration {pd.Timedelta(value).isoformat()}"
    if isinstance(value, numbers.Integral):
        return f"number {int(value)}"
    if isinstance(value, numbers.Real | decimal.Decimal):
        number = float(value)
        return f"number {int(number) if number.is_integer() else number.hex()}"
    return f"{type(value).__name__} {value!r}"


def check_own_column(column: Hashable, special: Collection[Hashable]) -> None:
    """Check that ids are not in one of the columns that are released or sensitive."""
    if column in special:
        problem = "{record_ids} names the column {name!r}, which is released or sensitive itself: "
        reason = "noise that depends on it would reveal it. Ids need a column of their own."
        raise ValueError(Message.of(problem + reason, name=column))


class RecordNoise(Noise):
    """Noise by the ids of records, a pandas Series with one for each row."""

    def __init__(self, keys: RecordKeys, ids: pd.Series) -> None:
        self._keys, self._ids = keys, encode_ids(ids)
        self._outputs: Words | None = None  # the words of all rows, if they are known

    def __len__(self) -> int:
        return len(self._ids)

    def words(self, lane: int, start: int, stop: int) -> Words:
        if lane == OUTPUT_LANE and self._outputs is not None:
            return self._outputs[start:stop]
        return keyed_words(self._keys.of_lane[lane], self._ids.between(start, stop))

    def identities(self) -> Words:
        """Return a word for each id that reveals nothing about its noise."""
        return keyed_words(self._keys.of_lane[IDENTITY_LANE], self._ids)

    def unique(self) -> Self:
        """Return the noise itself, if no two rows have the same id and thus the same noise."""
        if self._ids.surely_differ():
            return self
        # Two ids share a word with probability 2^-64.
        self._outputs = keyed_words(self._keys.of_lane[OUTPUT_LANE], self._ids)
        if n := n_repeated(self._outputs):
            raise ValueError(Message.of("{record_ids} must be unique: {found}", found=repeated(n)))
        return self


def repeated(n_rows: int) -> str:
    """Return the error text for ids of which `n_rows` repeat an earlier one."""
    have = "row has the id of another" if n_rows == 1 else "rows have the id of another"
    reason = "Rows with the same noise reveal each other: release each record once, and "
    return f"{n_rows:,} {have}. {reason}join the result."


@dataclass(frozen=True, eq=False)
class RecordSource(NoiseSource):
    """Noise by the ids in a column of the table.

    special : the columns that are released or sensitive.
    """

    keys: RecordKeys
    column: Any
    special: tuple[Any, ...]

    @property
    def columns(self) -> tuple[Any, ...]:
        return (self.column,)

    def of(self, table: Table, numbers: range | IntArray) -> RecordNoise:
        (position,) = table.positions("transform", "record_ids", [self.column])
        check_own_column(table.label(position), self.special)
        return RecordNoise(self.keys, table.column(position)).unique()


@dataclass(frozen=True, eq=False)
class GivenRecords(NoiseSource):
    """Noise by ids that are passed separately from the table.

    index : of the ids, if they are a pandas Series; it must equal the index of the table.
    """

    keys: RecordKeys
    ids: pd.Series
    index: pd.Index | None

    def of(self, table: Table, numbers: range | IntArray) -> RecordNoise:
        check_length(self.ids, table.n_rows, "record_ids")
        has_index = self.index is not None and isinstance(table.original, pd.DataFrame)
        if has_index and not table.original.index.equals(self.index):
            problem = "{record_ids} has a different index from X, so rows would get the noise of "
            advice = "others: align them, or pass .to_numpy() if the order is right."
            raise ValueError(Message.of(problem + advice))
        return RecordNoise(self.keys, self.ids).unique()


def check_secret_key(owner: str, secret_key: object) -> bytes:
    """Return a secret key as bytes, if it is valid. Errors never show it.

    Examples
    --------
    >>> from skprivacy.releasing.keyed import check_secret_key
    >>> check_secret_key("transform", "hunter2")
    Traceback (most recent call last):
    ...
    TypeError: The 'secret_key' parameter of transform must be bytes. Make one with ... str.
    """
    if not isinstance(secret_key, bytes | bytearray | memoryview):
        template = " must be bytes. {hint}Got a value of type {kind}."
        text = Message.of(template, hint=_MAKE_ONE, kind=type(secret_key).__name__)
        raise TypeError(about(owner, "secret_key", text))
    key = bytes(secret_key)
    if len(key) < _FEWEST_KEY_BYTES:
        template = " must have at least {n} bytes, or it can be guessed. {hint}Got {got} bytes."
        text = Message.of(template, n=_FEWEST_KEY_BYTES, hint=_MAKE_ONE, got=len(key))
        raise ValueError(about(owner, "secret_key", text))
    return key


def derive_key(secret_key: bytes, fingerprint: bytes, lane: int) -> bytes:
    """Return a key for `keyed_words`, independent of those for other fingerprints and lanes.

    Parameters
    ----------
    secret_key : bytes
        At least 16 bytes, see `check_secret_key`.
    fingerprint : bytes
        The `fingerprint` of the release.
    lane : int
        0, 1, ..., for several keys of one release.

    Returns
    -------
    bytes
        A key of 32 bytes.

    Examples
    --------
    >>> from skprivacy.releasing.keyed import derive_key
    >>> secret = bytes(32)  # in real use, secrets.token_bytes(32)
    >>> len({derive_key(secret, b"mechanism", lane) for lane in range(10)})
    10
    """
    salt = b""
    if len(secret_key) > _MOST_KEY_BYTES:
        # The salt keeps a long key apart from the short key that is its hash.
        secret_key, salt = hashlib.blake2b(secret_key, person=_PERSON).digest(), b"hashed"
    # The lane has a fixed size, so that no other pair has the same bytes.
    content = lane.to_bytes(8, "little") + fingerprint
    return hashlib.blake2b(
        content, digest_size=WORD_KEY_BYTES, key=secret_key, salt=salt, person=_PERSON
    ).digest()


# The noise of a call to `transform`: fresh, or by ids and a secret key.


def noise_source(
    release: Release,
    random_state: Seed | np.random.RandomState,
    record_ids: Any,
    secret_key: object,
) -> NoiseSource:
    """Return the source of the noise of a call to `transform`."""
    if record_ids is None and secret_key is None:
        return FreshSource(fresh_key(random_state))
    if record_ids is None or secret_key is None:
        given, missing = ("record_ids", "secret_key")[:: 1 if secret_key is None else -1]
        template = "{owner}{call} got {given} without {missing}: a keyed release needs both."
        names = {"owner": Owner(release.owner), "call": InPython(".transform")}
        raise ValueError(Message.of(template, given=Named(given), missing=Named(missing), **names))
    secret = check_secret_key(f"{release.owner}.transform", secret_key)
    mechanism = fingerprint(release)
    keys = RecordKeys({lane: derive_key(secret, mechanism, lane) for lane in release.lanes})
    if isinstance(record_ids, str | int | np.integer):
        roles = release.roles
        special = tuple(roles.names_or_positions([*roles.read_positions, *roles.s_positions]))
        check_own_column(record_ids, special)
        return RecordSource(keys, record_ids, special)
    index = record_ids.index if isinstance(record_ids, pd.Series) else None
    return GivenRecords(keys, _as_series(record_ids), index)


def _as_series(record_ids: Any) -> pd.Series:
    """Return ids for each row as a Series."""
    if isinstance(record_ids, list | tuple):  # numpy would turn integers beside texts into texts
        return pd.Series(record_ids, dtype=object)
    if np.ndim(record_ids) == 0 and not hasattr(record_ids, "__len__"):
        problem = "{record_ids} must be the name of a column, or an id for each row. "
        got = "Got a value of type {kind}."
        raise TypeError(Message.of(problem + got, kind=type(record_ids).__name__))
    columns = list(as_columns(record_ids, "record_ids").values())
    if len(columns) != 1:
        template = "{record_ids} must be one column. Got {n}: join them into one id first."
        raise ValueError(Message.of(template, n=len(columns)))
    return columns[0]
