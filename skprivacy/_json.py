"""JSON documents of the package, and labels of symbols in them without loss."""

import datetime
import json
import math
from typing import Any

import numpy as np
import pandas as pd

_VERSION = 1


def document(kind: str) -> dict[str, Any]:
    """Return what a document of some kind begins with."""
    return {"schema": f"skprivacy.{kind}", "version": _VERSION}


def parse_document(text: str, kind: str) -> dict[str, Any]:
    """Return the content of a document, if it is one of that kind and of a version we read."""
    try:
        content = json.loads(text)
    except (TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"This is not the JSON text of a {kind}: {error}.") from error
    schema = f"skprivacy.{kind}"
    if not isinstance(content, dict) or content.get("schema") != schema:
        raise ValueError(f"This is not the JSON text of a {kind}: no schema {schema!r}.")
    version = content.get("version")
    if version is True or version != _VERSION:
        raise ValueError(
            f"This {kind} has schema version {version!r}; this version of skprivacy reads version "
            f"{_VERSION}."
        )
    return content


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
    if label is None or type(label) in (bool, int, float, str):
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
        f"Rename it to a string, a number, a date or a tuple of these."
    )


def _zone_name(moment: pd.Timestamp) -> str:
    name = str(moment.tz)
    try:
        if moment.tz_convert(name) == moment:
            return name
    except (KeyError, ValueError):
        pass
    raise TypeError(f"The time zone of the label {moment!r} has no name that JSON could hold.")


def decode_label(value: object) -> Any:
    """Return the label that `encode_label` wrote."""
    match value:
        case {"missing": "NaT"}:
            return pd.NaT
        case {"missing": "<NA>"}:
            return pd.NA
        case {"float": text}:
            return float(text)
        case {"tuple": parts}:
            return tuple(decode_label(part) for part in parts)
        case {"timestamp": text, "unit": unit, "tz": zone}:
            moment = pd.Timestamp(text).as_unit(unit)
            return moment if zone is None else moment.tz_localize("UTC").tz_convert(zone)
        case {"timedelta": text, "unit": unit}:
            return pd.Timedelta(text).as_unit(unit)
        case {"date": text}:
            return datetime.date.fromisoformat(text)
        case {"interval": [left, right], "closed": closed}:
            return pd.Interval(decode_label(left), decode_label(right), closed=closed)
        case None | bool() | int() | float() | str():
            return value
    raise ValueError(f"{value!r} is not a label that skprivacy writes.")


def label_key(label: object) -> str:
    """Return a hashable key that equal labels share, missing ones too."""
    try:
        return json.dumps(encode_label(label))
    except TypeError:
        return repr(label)
