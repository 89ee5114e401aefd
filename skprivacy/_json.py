"""JSON documents of the package, and the labels of symbols in them, without loss."""

import datetime
import hashlib
import json
import math
import re
from typing import Any

import numpy as np
import pandas as pd

# Raised whenever a document gets other keys or another meaning.
VERSION = 3

# Integers that fit into 64 bits, signed or not: no column of a table can hold others.
_LEAST_INTEGER, _LARGEST_INTEGER = -(2**63), 2**64 - 1

# What `isoformat` writes, and names of time zones. pandas accepts much more: "now", or a file.
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?", re.ASCII)
_DURATION = re.compile(r"P-?\d+DT\d+H\d+M\d+(\.\d+)?S", re.ASCII)
_ZONE = re.compile(r"(?!dateutil)\w[\w/+:-]*", re.ASCII)


def schema(kind: str) -> str:
    """Return the name of a kind of document."""
    return f"skprivacy.{kind}"


def write_document(kind: str, content: dict[str, Any], indent: int | None) -> str:
    """Return the text of a document of some kind, with its format version and a checksum."""
    header: dict[str, Any] = {"schema": schema(kind), "version": VERSION}
    told = checksum(header | content)
    return json.dumps(header | {"checksum": told} | content, allow_nan=False, indent=indent)


def checksum(content: dict[str, Any]) -> str:
    """Return the SHA-256 of a document: of what it says, not of how it is indented."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def is_text(value: object) -> bool:
    """Tell whether a value is a text that every file can hold: no half of a surrogate pair."""
    if type(value) is not str:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_zone(name: str) -> bool:
    """Tell whether a text may be the name of a time zone, and not of a file to pandas."""
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
    if label is None or type(label) in (bool, float) or is_text(label) or _is_integer(label):
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
        f"The label {label!r} of type {type(label).__name__} cannot be written as JSON. "
        f"Rename it to a string, a number of 64 bits, a date or a tuple of these."
    )


def _is_integer(label: object) -> bool:
    return type(label) is int and _LEAST_INTEGER <= label <= _LARGEST_INTEGER


def _zone_name(moment: pd.Timestamp) -> str:
    name = str(moment.tz)
    try:
        if moment.tz_convert(name) == moment:
            return name
    except (KeyError, ValueError):
        pass
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
    """Return a label from whatever resembles one."""
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
            return _in_zone(pd.Timestamp(text).as_unit(unit), zone)
        case {"timedelta": text, "unit": unit} if _DURATION.fullmatch(text):
            return pd.Timedelta(text).as_unit(unit)
        case {"date": text}:
            return datetime.date.fromisoformat(text)
        case {"interval": [left, right], "closed": closed}:
            return pd.Interval(decode_label(left), decode_label(right), closed=closed)
    return value


def _in_zone(moment: pd.Timestamp, zone: str | None) -> pd.Timestamp:
    if zone is None:
        return moment
    if not is_zone(zone):
        raise ValueError(f"{zone!r} is not a time zone.")
    return moment.tz_localize("UTC").tz_convert(zone)


def label_key(label: object) -> str:
    """Return a hashable key that equal labels share, missing ones too."""
    try:
        return json.dumps(encode_label(label))
    except TypeError:
        return repr(label)
