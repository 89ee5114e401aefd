"""JSON documents of the package, and labels of symbols as JSON values without loss."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from ._typing import BoolArray, FloatArray, IntArray, Labels

# Increased whenever keys or their meaning change.
VERSION = 6

# The formats of `isoformat`, and names of time zones. pandas accepts much more: "now", or a file.
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?", re.ASCII)
_DURATION = re.compile(r"P-?\d+DT\d+H\d+M\d+(\.\d+)?S", re.ASCII)
_ZONE = re.compile(r"(?!dateutil)\w[\w/+:-]*", re.ASCII)


def schema(kind: str) -> str:
    """Return the schema of a kind of document."""
    return f"skprivacy.{kind}"


def write_document(kind: str, content: dict[str, Any], indent: int | None) -> str:
    """Return the text of a document of some kind, with its format version and a checksum."""
    header: dict[str, Any] = {"schema": schema(kind), "version": VERSION}
    header["checksum"] = checksum(header | content)
    return json.dumps(header | content, allow_nan=False, indent=indent)


def checksum(content: dict[str, Any]) -> str:
    """Return the SHA-256 of the content of a document, whatever its indentation."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def is_text(value: object) -> bool:
    """Whether a value is a text that UTF-8 can encode: without half of a surrogate pair."""
    if type(value) is not str:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_zone(name: str) -> bool:
    """Whether a text may be the name of a time zone, which pandas does not take for a file."""
    return _ZONE.fullmatch(name) is not None


def encode_label(label: Any) -> Any:
    """Return a label as a JSON value: itself where JSON has its type, else a tagged object.

    >>> encode_label(("a", 1, float("inf")))
    {'tuple': ['a', 1, {'float': 'inf'}]}
    """
    if isinstance(label, np.datetime64):
        label = pd.Timestamp(label)
    elif isinstance(label, np.timedelta64):
        label = pd.Timedelta(label)
    elif isinstance(label, np.generic):
        label = label.item()
    if label is pd.NaT or label is pd.NA:
        return {"missing": repr(label)}
    if isinstance(label, float) and not math.isfinite(label):
        return {"float": repr(float(label))}
    is_integer = type(label) is int and -(2**63) <= label < 2**64  # as columns can hold
    if label is None or type(label) in (bool, float) or is_text(label) or is_integer:
        return label
    if isinstance(label, tuple):
        return {"tuple": [encode_label(part) for part in label]}
    if isinstance(label, pd.Timestamp):
        zone = None if label.tz is None else _zone_name(label)
        moment = label if zone is None else label.tz_convert("UTC").tz_localize(None)
        return {"timestamp": moment.isoformat(), "unit": label.unit, "tz": zone}
    if isinstance(label, pd.Timedelta):
        return {"timedelta": label.isoformat(), "unit": label.unit}
    if isinstance(label, datetime.date) and not isinstance(label, datetime.datetime):
        return {"date": label.isoformat()}
    if isinstance(label, pd.Interval):
        ends = [encode_label(label.left), encode_label(label.right)]
        return {"interval": ends, "closed": label.closed}
    raise TypeError(
        f"The label {label!r} of type {type(label).__name__} cannot be written as JSON. Rename it "
        f"to a string, a number of 64 bits, a date or a tuple of these."
    )


def _zone_name(moment: pd.Timestamp) -> str:
    with suppress(KeyError, ValueError):
        if moment.tz_convert(str(moment.tz)) == moment:
            return str(moment.tz)
    raise TypeError(f"The time zone of the label {moment!r} has no name that JSON could hold.")


def decode_label(value: object) -> Any:
    """Return the label that `encode_label` wrote; anything else is a ValueError."""
    try:
        label = _decoded(value)
        if encode_label(label) == value:
            return label
    except Exception:  # pandas and the database of time zones raise many kinds
        pass
    raise ValueError(f"{value!r:.80} is not a label that skprivacy writes.")


def _decoded(value: object) -> Any:
    """Return the label that a JSON value stands for, unchecked."""
    match value:
        case {"missing": "NaT"}:
            return pd.NaT
        case {"missing": "<NA>"}:
            return pd.NA
        case {"float": "inf" | "-inf" | "nan" as text}:
            return float(text)
        case {"tuple": [*parts]}:
            return tuple(decode_label(part) for part in parts)
        case {"timestamp": text, "unit": unit, "tz": zone} if _MOMENT.fullmatch(text):
            moment = pd.Timestamp(text).as_unit(unit)
            if zone is not None and not is_zone(zone):
                raise ValueError(f"{zone!r} is not a time zone.")
            return moment if zone is None else moment.tz_localize("UTC").tz_convert(zone)
        case {"timedelta": text, "unit": unit} if _DURATION.fullmatch(text):
            return pd.Timedelta(text).as_unit(unit)
        case {"date": text}:
            return datetime.date.fromisoformat(text)
        case {"interval": [left, right], "closed": closed}:
            return pd.Interval(decode_label(left), decode_label(right), closed=closed)
    return value


def label_key(label: object) -> str:
    """Return a hashable key that is the same for equal labels, even missing ones."""
    if type(label) is str:
        return f'"{label}"'
    try:
        return json.dumps(encode_label(label))
    except TypeError:
        return repr(label)


# Reading JSON that may have been edited: errors name the place. ----------------------------------
#
# A document is read as a `Place`, and a format is described by the values at its places::
#
#     part = place.keys("output", "released", "edges", "symbols")
#     output = part["output"].text("label", "symbol")
#     released = part["released"].labels()
#     edges = part["edges"].optional(lambda edges: edges.numbers(None, low=0))
#     symbols = part["symbols"].integers(len(released), low=0, high=9)
#
# Anything else is a ValueError such as "The JSON text of this mechanism is malformed:
# channel[2][1] must be a finite number of at least 0. Got -1 instead." Relations between parts are
# checked by `require` and `different`, and `making` adds the place to the errors of a constructor.
# Values of S are read through `secret`, and appear in no message.


T = TypeVar("T")

# Levels of nesting: far more than any document has, and far fewer than Python can recurse into.
_DEEPEST = 64

# Brackets, and texts, which may hold brackets; the last closing quote may be missing.
_BRACKETS = re.compile(r'"(?:[^"\\]+|\\.)*+"?|[\[\]{}]', re.DOTALL)

# An integer of more digits may be too large for a float.
_MOST_DIGITS = 300

_LONGEST = 80  # characters of a value or key in a message


class Place:
    """A value in a document, and its path.

    path : such as ``columns[0].values[3]``, empty for the document; kind : of the document;
    is_secret : whether messages must not show the value.
    """

    __slots__ = ("is_secret", "kind", "path", "value")

    def __init__(self, value: Any, kind: str, path: str = "", is_secret: bool = False) -> None:
        self.value, self.kind, self.path, self.is_secret = value, kind, path, is_secret

    def __getitem__(self, step: str | int) -> Place:
        if isinstance(step, int):
            path = f"{self.path}[{step}]"
        else:
            is_plain = step.isidentifier() and len(step) <= _LONGEST
            key = step if is_plain else _short(json.dumps(step))
            path = f"{self.path}.{key}".removeprefix(".")
        return Place(self.value[step], self.kind, path, self.is_secret)

    def secret(self) -> Place:
        """Return the place with its value kept out of messages."""
        return Place(self.value, self.kind, self.path, is_secret=True)

    # Errors.

    def malformed(self, sentence: str) -> ValueError:
        """Return an error about the document."""
        return ValueError(f"The JSON text of this {self.kind} is malformed: {sentence}")

    def wrong(self, requirement: str) -> ValueError:
        """Return an error about the value at this place."""
        where = self.path or "the document"
        return self.malformed(f"{where} must be {requirement}. Got {self.shown()} instead.")

    def shown(self) -> str:
        """Return the value for a message; for a list or an object, only its type."""
        if isinstance(self.value, list):
            return f"a list of {len(self.value)}"
        if self.is_secret or isinstance(self.value, dict):
            names = {dict: "an object", str: "a text", bool: "true or false", type(None): "null"}
            return names.get(type(self.value), "a number")
        return _short(json.dumps(self.value))

    def require(self, holds: bool | BoolArray, requirement: str) -> None:
        """Raise an error about the value, or its first cell for which `holds` is false."""
        if not np.all(holds):
            place = self
            for step in np.argwhere(~np.atleast_1d(holds))[0][: np.ndim(holds)]:
                place = place[int(step)]
            raise place.wrong(requirement)

    def different(self, keys: Iterable[Hashable], what: str) -> None:
        """Raise an error if an entry of a list has the key of an earlier one."""
        index = pd.Index(list(keys), dtype=object, tupleize_cols=False)
        self.require(~index.duplicated(), f"{what} that is not in the list already")

    @contextmanager
    def making(self) -> Iterator[None]:
        """Add this place to errors in the block."""
        try:
            with np.errstate(all="ignore"):
                yield
        except (TypeError, ValueError, ArithmeticError) as error:
            raise self.malformed(f"{self.path}: {error}".removeprefix(": ")) from error

    # Values.

    def keys(self, *names: str) -> dict[str, Place]:
        """Return the places in an object that has these keys and no others."""
        for name, place in self.members().items():
            if name not in names:
                raise self.malformed(f"{place.path} is not a key that skprivacy writes.")
        return {name: self.key(name) for name in names}

    def key(self, name: str) -> Place:
        """Return the place of a key in an object."""
        if name not in self.members():
            raise self.malformed(f"{self.path}.{name}".removeprefix(".") + " is missing.")
        return self[name]

    def members(self) -> dict[str, Place]:
        """Return the places in an object."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return {name: self[name] for name in self.value}

    def items(self, length: int | None = None, fewest: int = 0) -> list[Place]:
        """Return the places in a list, of some length or of any."""
        return [self[i] for i in range(len(self._list(length, fewest)))]

    def length(self) -> int:
        """Return the number of entries of a list."""
        return len(self._list(None, 0))

    def _list(self, length: int | None, fewest: int) -> list[Any]:
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        if length is not None and len(self.value) != length:
            raise self.wrong(f"a list of {length}")
        if len(self.value) < fewest:
            raise self.wrong(f"a list of at least {fewest}")
        return self.value

    def optional(self, read: Callable[[Place], T]) -> T | None:
        """Return None for null, and anything else as it is read."""
        return None if self.value is None else read(self)

    def text(self, *choices: str) -> str:
        """Return a text: one of `choices`, if there are any."""
        if not is_text(self.value) or (choices and self.value not in choices):
            raise self.wrong(f"one of {', '.join(map(repr, choices))}" if choices else "a text")
        return self.value

    def flag(self) -> bool:
        """Return true or false."""
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value

    def integer(self, *, low: int, high: int) -> int:
        """Return an integer."""
        if type(self.value) is not int or not low <= self.value <= high:
            raise self.wrong(f"an integer from {low} to {high}")
        return self.value

    def number(self, *, low: float = -math.inf, high: float = math.inf) -> float:
        """Return a number; infinity is written as a label."""
        try:
            number = decode_label(self.value)
        except ValueError:
            number = None
        if type(number) not in (int, float) or not low <= number <= high:
            raise self.wrong(f"a number{_between(low, high)}")
        return number

    def label(self) -> Any:
        """Return a label, a name or a value of a column."""
        try:
            return decode_label(self.value)
        except ValueError:
            requirement = "a text, a number, true, false, null, or a label as skprivacy writes it"
            raise self.wrong(requirement) from None

    def labels(self, length: int | None = None) -> Labels:
        """Return labels that are all different, at least one."""
        labels = tuple(item.label() for item in self.items(length, fewest=1))
        self.different(map(label_key, labels), "a label")
        return labels

    def numbers(
        self,
        length: int | None,
        width: int | None = None,
        *,
        low: float = -math.inf,
        high: float = math.inf,
    ) -> FloatArray:
        """Return a list of finite numbers, or a table with `width` columns.

        length : how many numbers or rows; None: one or more.
        """
        requirement = f"a finite number{_between(low, high)}"
        return self._array(length, width, {int, float}, low, high, requirement)

    def integers(
        self, length: int | None, width: int | None = None, *, low: int, high: int
    ) -> IntArray:
        """Return a list of integers, or a table with `width` columns, like `numbers`."""
        requirement = f"an integer from {low} to {high}"
        return self._array(length, width, {int}, low, high, requirement).astype(np.intp)

    def _array(
        self,
        length: int | None,
        width: int | None,
        types: set[type],
        low: float,
        high: float,
        requirement: str,
    ) -> FloatArray:
        fewest = 1 if length is None else 0
        if width is None:
            cells: Any = self._cells(length, fewest, types, requirement)
        else:
            rows = self.items(length, fewest)
            cells = [row._cells(width, 0, types, requirement) for row in rows]
        array = np.array(cells, dtype=float)
        self.require(np.isfinite(array) & (array >= low) & (array <= high), requirement)
        return array

    def _cells(
        self, length: int | None, fewest: int, types: set[type], requirement: str
    ) -> list[Any]:
        """Return a list of values of some types; True is not an integer."""
        cells = self._list(length, fewest)
        if not types.issuperset(map(type, cells)):
            self.require(np.array([type(cell) in types for cell in cells]), requirement)
        return cells


def _between(low: float, high: float) -> str:
    if math.isinf(high):
        return "" if math.isinf(low) else f" of at least {low:g}"
    return f" from {low:g} to {high:g}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def read_document(text: str, kind: str) -> Place:
    """Return the content of a document without its header, after checking version and checksum."""
    place = Place(_parsed(text, kind), kind)
    content = place.value
    if not isinstance(content, dict) or content.get("schema") != schema(kind):
        raise ValueError(f"This is not the JSON text of a {kind}: no schema {schema(kind)!r}.")
    version = content.get("version")
    if type(version) is not int or version != VERSION:
        advice = ""
        if type(version) is int and version > 0:
            again = "write it again with to_json or --save-mechanism"
            advice = f": {'update skprivacy' if version > VERSION else again}"
        raise ValueError(
            f"This {kind} has format version {Place(version, kind).shown()}; this version of "
            f"skprivacy reads version {VERSION}{advice}."
        )
    if "checksum" not in content:
        raise place.malformed("checksum is missing.")
    if content.pop("checksum") != checksum(content):
        raise ValueError(
            f"The content of this {kind} does not match its checksum: it was changed or damaged "
            f"after it was written. Get the original."
        )
    del content["schema"], content["version"]
    return place


def _parsed(text: str, kind: str) -> Any:
    """Return the content of a JSON text, if it is not too deep and no object has a key twice."""
    is_not = f"This is not the JSON text of a {kind}:"
    if not isinstance(text, str):
        raise ValueError(f"{is_not} it is not a str, but {type(text).__name__}.")

    def as_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            repeated = next(key for key, count in counts.items() if count > 1)
            raise ValueError(
                f"{is_not} an object has the key {_short(json.dumps(repeated))} twice."
            )
        return content

    try:
        level = 0
        for found in _BRACKETS.finditer(text):
            level += (found[0] in "[{") - (found[0] in "]}")
            if level > _DEEPEST:
                raise json.JSONDecodeError(f"More than {_DEEPEST} levels", text, found.start())
        as_number = lambda digits: (int if len(digits) <= _MOST_DIGITS else float)(digits)  # noqa: E731
        return json.loads(text, object_pairs_hook=as_dict, parse_int=as_number)
    except json.JSONDecodeError as error:
        raise ValueError(f"{is_not} {error}.") from error
