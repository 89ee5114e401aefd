"""Two sides of the same thing, a budget as a number and as a dict with one key, and what differs."""

import base64
import dataclasses
import html
import json
import re
import warnings
from collections.abc import Mapping
from numbers import Number

import numpy as np
import pandas as pd

# The sensitive column, and so the key of the dict.
SECRET = "sex"


def as_number(value):
    """Return a budget, or the table of a secret, as it is where there is one secret."""
    return value


def as_dict(value):
    """Return the same by the name of the secret."""
    return {SECRET: value}


SIDES = as_number, as_dict

# What may differ in a text, and what it is replaced with on both sides.
_NAMED = [
    (re.compile(r"data:image/svg\+xml;base64,([\w+/=]+)"), lambda m: _picture(m[1])),
    (re.compile(rf"\{{'{SECRET}': ([^{{}}]*)\}}"), lambda m: _budget(m[1])),  # {'sex': 0.05}
    (re.compile(r"(?<=epsilon=)\d+\.0\b"), lambda m: _budget(m[0])),  # as messages show it
    (re.compile(rf"""(["'])epsilon\['{SECRET}'\]\1"""), "'epsilon'"),  # in errors
    # The head of a table: epsilon sex,leakage sex.
    (re.compile(rf"\b(epsilon|leakage|population_limit|attacker) {SECRET}(?=,)"), r"\1"),
    (re.compile(rf"\b{SECRET}=(?=\d|inf)"), ""),  # --epsilon sex=0.05
    # What the only secret is called where it has no name, and where it has one.
    (re.compile(rf"\bS\b|'{SECRET}'|\bthe sensitive columns\b"), SECRET),
    (re.compile(r"\bsk-[\w-]*id-\d+"), "sk-id"),  # numbered by scikit-learn, whatever is shown
]


def unnamed(text):
    """Return a text without the name that its only secret may have, on one line."""
    text = html.unescape(text)
    for pattern, put in _NAMED:
        text = pattern.sub(put, text)
    return " ".join(text.split())


def _budget(text):
    """Return a budget as messages show a number."""
    try:
        return f"{float(text):g}"
    except ValueError:
        return text


def _picture(encoded):
    """Return a picture as text; matplotlib numbers its parts by what is in them."""
    return re.sub(r"\b([a-z]+)[0-9a-f]{10}\b", r"\1", base64.b64decode(encoded).decode())


def document(text):
    """Return what a JSON document says, but for its checksum and models, which are an archive."""
    said = json.loads(text)
    said.pop("checksum", None)
    said.get("scores", {}).pop("models", None)  # with a time, and numbers of objects in memory
    return plain(said)


def plain(value):
    """Return a value made of lists, dicts and texts, exact to the last bit, without the name."""
    match value:
        case None | bool() | np.bool_():
            return str(value)
        case str():
            return unnamed(value)
        case BaseException():
            return f"{type(value).__name__}: {unnamed(str(value))}"
        case Number():
            return repr(float(value) + 0.0)  # neither -0.0 nor the types of numpy
        case Mapping():
            return _plain_mapping(value)
        case list() | tuple():
            return [plain(each) for each in value]
        case np.ndarray():
            return [plain(each) for each in value.tolist()] if value.ndim else plain(value.item())
        case pd.DataFrame():
            return {"index": plain(value.index), "columns": plain(value.to_dict("list"))}
        case pd.Series():
            return {"index": plain(value.index), "values": plain(value.tolist())}
        case pd.Index():
            return [plain(value.name), plain(value.tolist())]
    if dataclasses.is_dataclass(value):
        names = [each.name for each in dataclasses.fields(value) if not each.name.startswith("_")]
        own = {name: plain(getattr(value, name)) for name in names}
        return {"type": type(value).__name__, **own}
    return unnamed(repr(value))


def _plain_mapping(value):
    """Return a mapping by texts; one whose only key is the secret is what it maps to."""
    if [*value] in ([SECRET], [None]):
        return plain(value[next(iter(value))])
    return {
        re.sub(rf" {SECRET}$", "", str(key)): "None" if _is_name(key, each) else plain(each)
        for key, each in value.items()
    }


def _is_name(key, value):
    """Whether a part of a document is the name of a secret."""
    return key in ("name", "secret") and value in (SECRET, None)


def answer(question, *arguments):
    """Return what a question is answered with, as plain values; or its error."""
    try:
        return plain(question(*arguments))
    except Exception as error:
        return plain(error)


def recorded(function, *arguments):
    """Return what a function returns or raises, and its warnings as plain values."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = function(*arguments)
        except Exception as error:
            made = error
    # Those of other packages are about their versions, not about what we pass to them.
    own = [each for each in caught if each.category.__module__.startswith("skprivacy")]
    return made, [f"{each.category.__name__}: {unnamed(str(each.message))}" for each in own]


def differences(number, named):
    """Return where two plain values differ, as pairs by place: nothing where they are equal."""
    return dict(_differences(number, named, ""))


def _differences(number, named, place):
    if isinstance(number, dict) and isinstance(named, dict):
        for key in [*number, *(key for key in named if key not in number)]:
            parts = (each.get(key, "(not there)") for each in (number, named))
            yield from _differences(*parts, f"{place}.{key}" if place else key)
    elif isinstance(number, list) and isinstance(named, list) and len(number) == len(named):
        for i, parts in enumerate(zip(number, named, strict=True)):
            yield from _differences(*parts, f"{place}[{i}]")
    elif number != named:
        yield place, _around(str(number), str(named))


def _around(number, named, width=60):
    """Return two texts from a little before where they begin to differ."""
    same = next((i for i, (a, b) in enumerate(zip(number, named, strict=False)) if a != b), 0)
    start = max(0, same - width // 2)
    return tuple(each[start : start + 2 * width] for each in (number, named))


def drawn(figure):
    """Return all that a figure of matplotlib shows: texts, lines, bars and pictures."""
    shown = {
        "texts": [each.get_text() for each in figure.findobj(lambda a: hasattr(a, "get_text"))]
    }
    for axes in figure.axes:
        shown.setdefault("lines", []).extend(line.get_xydata() for line in axes.lines)
        shown.setdefault("bars", []).extend(bar.get_path().vertices for bar in axes.patches)
        shown.setdefault("images", []).extend(
            np.ma.filled(image.get_array(), np.nan)
            for image in [*axes.images, *axes.collections]
            if image.get_array() is not None
        )
    return shown
