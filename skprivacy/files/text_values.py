"""What the texts of a file mean: numbers or categories; and values as texts again."""

import math
import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from .._typing import IntArray

# An empty field is missing in any column, the others among numbers only: as a category, "NA" may
# be Namibia.
_MISSING = {"", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"}

# Nothing that was matched is given back (++): a long field is read once.
_NUMBER = re.compile(r"\s*+[+-]?(\d++(\.\d*+)?|\.\d++)([eE][+-]?\d++)?\s*+", re.ASCII)
_INTEGER = re.compile(r"\s*+[+-]?\d++\s*+", re.ASCII)
_CODE = re.compile(r"\s*[+-]?0\d", re.ASCII)  # 00123 is a name made of digits
_DIGITS = re.compile(r"(\.?)(\d+)", re.ASCII)

# The largest integers that can be told apart: in a column of integers, and among floats.
_LARGEST_INTEGER = 2**63 - 1
_LARGEST_EXACT = 2**53
_MOST_DIGITS = 19


def is_number(text: str) -> bool:
    """Tell whether a text is written like a number; one that is missing is not."""
    return _NUMBER.fullmatch(text) is not None


def has_values(texts: Iterable[str]) -> bool:
    """Tell whether any of the texts of a column is not missing, were they numbers."""
    return any(text.strip() not in _MISSING for text in texts)


def are_numbers(texts: Iterable[str]) -> bool:
    """Tell whether the distinct texts of a column are all numbers, but for missing ones."""
    present = [text for text in texts if text.strip() not in _MISSING]
    if not present or not all(_NUMBER.fullmatch(t) and not _CODE.match(t) for t in present):
        return False
    return _are_told_apart(present)


def _are_told_apart(texts: Sequence[str]) -> bool:
    """Tell whether the integers among texts are small enough to stay different as numbers."""
    integers = [text for text in texts if _INTEGER.fullmatch(text)]
    largest = _LARGEST_INTEGER if len(integers) == len(texts) else _LARGEST_EXACT
    return all(abs(_integer(text)) <= largest for text in integers)


def _integer(text: str) -> float:
    """Return an integer, infinity for one that is too large anyway."""
    digits = text.strip().lstrip("+-").lstrip("0")
    if len(digits) > _MOST_DIGITS:
        return math.inf
    return -int(digits or "0") if text.lstrip().startswith("-") else int(digits or "0")


def meant(column: pd.Series, family: str, name: Hashable) -> pd.Series:
    """Return a categorical column of texts as what it means.

    family : "numbers", "times", "bool" or "str", as in `encoding.values`.
    """
    texts = column.cat.categories
    if family == "numbers":
        values = _numbers(texts, name)
    elif family == "times":
        values = pd.to_datetime(pd.Series(texts, dtype=object), format="ISO8601").array
    elif family == "bool":
        values = pd.array([_boolean(text, name) for text in texts], dtype="boolean")
    else:
        # An empty text is a category here; among the symbols of an alphabet it is None.
        return column.cat.remove_categories([text for text in texts if text == ""])
    codes = column.cat.codes.to_numpy()
    return pd.Series(values.take(codes, allow_fill=True), name=column.name)


def _numbers(texts: Iterable[str], name: Hashable) -> Any:
    """Return texts as an array of integers, where all are, or of floats."""
    stripped = [None if text.strip() in _MISSING else text.strip() for text in texts]
    present = [text for text in stripped if text is not None]
    # The value is not shown: it may be one of S.
    if not all(map(_NUMBER.fullmatch, present)):
        raise ValueError(f"The column {name!r} holds a text where a number is expected.")
    if not _are_told_apart(present):
        raise ValueError(f"The column {name!r} has integers that are too large to be told apart.")
    if all(map(_INTEGER.fullmatch, present)):
        return pd.array(
            [None if text is None else _integer(text) for text in stripped], dtype="Int64"
        )
    return pd.array([np.nan if text is None else float(text) for text in stripped])


def written_numbers(texts: pd.Series) -> list[pd.Series]:
    """Return what can be read in numbers as they are written: the texts, and their forms.

    Texts that all differ are too many to judge; their forms (9, 9.9, 9.99, +9e9) are few.
    """
    forms = {text: _form(text) for text in texts.unique()}
    return [texts, texts.map(forms)]


def _form(text: str) -> str:
    """Return a text with all digits alike, and only as many as decimals."""
    if _NUMBER.fullmatch(text) is None:
        return text
    if float(text):  # of others than zero, the sign is a part of the number
        text = text.replace("-", "", 1) if text.lstrip().startswith("-") else text
    return _DIGITS.sub(lambda found: found[1] + "9" * (len(found[2]) if found[1] else 1), text)


def _boolean(text: str, name: Hashable) -> bool | None:
    known = {"": None, "true": True, "false": False}
    if text.lower() not in known:
        raise ValueError(f"The column {name!r} holds a text where true or false is expected.")
    return known[text.lower()]


def as_texts(column: pd.Series) -> tuple[IntArray, list[str]]:
    """Return a code for each row of a released column, and the texts that stand for them."""
    codes: IntArray
    values: Any
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes, values = column.cat.codes.to_numpy(), column.cat.categories.tolist()
    else:
        codes, values = pd.factorize(column)
        values = values.tolist()
    # A missing value, code -1, is the last.
    return codes, [*map(_text, values), ""]


def _text(value: object) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST_EXACT:
        return str(int(value))
    if isinstance(value, bytes):
        return value.hex()
    return repr(value) if isinstance(value, float) else str(value)
