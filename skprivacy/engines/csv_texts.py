"""Texts of CSV files: their meaning as values, headers, and formulas of spreadsheets."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pandas as pd

from .._messages import Message, Setting
from .._typing import BoolArray, IntArray
from .._warnings import warn
from .csv_fields import Bytes, Fields, gathered, unquoted

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
    """Whether a text is written like a number; one that is missing is not."""
    return _NUMBER.fullmatch(text) is not None


def has_values(texts: Iterable[str]) -> bool:
    """Whether a text column has any non-missing value."""
    return any(text.strip() not in _MISSING for text in texts)


def are_numbers(texts: Iterable[str]) -> bool:
    """Whether the distinct texts of a column are all numbers, but for missing ones."""
    present = [text for text in texts if text.strip() not in _MISSING]
    if not present or not all(_NUMBER.fullmatch(t) and not _CODE.match(t) for t in present):
        return False
    return _are_told_apart(present)


def _are_told_apart(texts: Sequence[str]) -> bool:
    """Whether the integers among texts are small enough to stay different as numbers."""
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
        known = {"": None, "true": True, "false": False}
        if not all(text.lower() in known for text in texts):
            told = f"The column {name!r} holds a text where true or false is expected."
            raise ValueError(told)
        values = pd.array([known[text.lower()] for text in texts], dtype="boolean")
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


# Whether the first line of a text file names its columns, or is a row like the others.
#
# A row mistaken for names would be published as it is: a line that may be a row is refused.


_WHOLE = re.compile(r"\d{1,9}", re.ASCII)
_YEARS = range(1500, 2101)


def check_names(header: bool | None, names: Sequence[str] | None) -> None:
    """Check what is said about the header of a file."""
    if names is None:
        return
    if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
        raise TypeError(
            Message(Setting("names", [...]), " must be a list of texts, one name for each column.")
        )
    if header:
        told = Setting("names", [...]), " is for a file without a header: leave out "
        raise ValueError(Message(*told, Setting("header", True), "."))
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(Message(Setting("names", [...]), f" has {twice[0]!r} twice."))


def data_fields(line: Fields, rows: Fields) -> list[int]:
    """Return which fields of a first line look like data; none if it is a header.

    A field looks like data if it consists of digits and signs (a number, a date), or is a value of
    its own column in the rows below. The line is still a header if more fields than that must be
    names, because they are words above nothing but numbers. And numbers that enumerate, such as
    years, are names, unless one is a value of its column or the next row enumerates as well.
    """
    raw, texts = line.row(0), _texts(line)
    # A delimiter at the end of each line makes an empty column.
    is_filled: BoolArray = np.any(rows.ends > rows.starts, axis=0)
    found = {c for c, field in enumerate(raw) if is_filled[c] and rows.holds(c, field)}
    digits = {c for c, text in enumerate(texts) if _is_digits(text)}
    if found.isdisjoint(digits) and _enumerates(texts) and not _enumerates(_texts(rows)):
        digits = set()
    suspects = sorted(found | digits)
    # A word is more than a number, or a mark for a missing one.
    is_word = [not is_number(text) and any(map(str.isalpha, text)) for text in texts]
    words = (c for c, word in enumerate(is_word) if word and c not in found)
    names = (c for c in words if are_numbers(map(_header_text, rows.distinct(c)[1])))
    n_names = sum(1 for _ in islice(names, len(suspects) + 1))  # more would not change anything
    return [] if n_names > len(suspects) else suspects


def _header_text(field: bytes) -> str:
    """Return a field in an encoding that knows every byte."""
    return unquoted(field).decode("latin-1")


def _texts(rows: Fields) -> list[str]:
    """Return the first row, if there is one."""
    return [_header_text(field) for field in rows.row(0)] if len(rows) else []


def _is_digits(text: str) -> bool:
    return is_number(text) or (any(map(str.isdigit, text)) and not any(map(str.isalpha, text)))


def _enumerates(texts: Sequence[str]) -> bool:
    """Whether the numbers in a line are in order, as the names of columns may be.

    Two of these must hold as well: they go up or down by one, they are years, there are more than
    two.
    """
    found = [text for text in texts if _is_digits(text)]
    if len(found) < 2 or not all(map(_WHOLE.fullmatch, found)):
        return False
    numbers = [int(text) for text in found]
    steps = {after - before for before, after in pairwise(numbers)}
    are_years, are_many = all(number in _YEARS for number in numbers), len(numbers) > 2
    by_one, in_order = steps in ({1}, {-1}), min(steps) > 0 or max(steps) < 0
    return in_order and by_one + are_years + are_many >= 2


# Texts that a spreadsheet takes for formulas, and runs when it opens the file.


_QUOTE = ord('"')

# No number is longer than this.
_LONGEST = 64


def _table(characters: bytes) -> BoolArray:
    """Return for each byte whether it is one of some characters."""
    return np.isin(np.arange(256), list(characters))


_MAY_BEGIN = _table(b"=+-@\t\r")
_IS_MARK = _table(b"=+-@\t\r ")
_MAY_END = _table(b"0123456789. ")

# What a byte is in a number, and what may follow what. 1.2.3 passes too: nothing computes it.
_PARTS = [b"", b"0123456789", b".", b"eE", b"+-", b" "]
_PART = np.sum([i * _table(part) for i, part in enumerate(_PARTS)], axis=0).astype(np.uint8)
_MAY_FOLLOW = np.zeros(8 * 8, dtype=bool)
for _pair in (b"11", b"1.", b"1e", b"1 ", b".1", b".e", b". ", b"e1", b"e-", b"-1", b"-.", b"  "):
    _MAY_FOLLOW[8 * _PART[_pair[0]] + _PART[_pair[1]]] = True


def formulas_in_fields(fields: Fields, columns: Sequence[int]) -> IntArray:
    """Return for each of some columns how many of its fields are formulas."""
    array, chosen = np.frombuffer(fields.text, np.uint8), np.array(columns, dtype=np.intp)
    starts = fields.starts[:, chosen]
    first = array.take(starts)
    is_quoted = first == _QUOTE
    if is_quoted.any():
        first = array.take(starts + is_quoted)
    rows, places = _MAY_BEGIN.take(first).nonzero()
    n_quotes = is_quoted[rows, places]
    begins = starts[rows, places] + n_quotes
    ends = fields.ends[rows, chosen[places]] - n_quotes
    return np.bincount(places[_are_formulas(array, begins, ends)], minlength=len(chosen))


def formulas_in_texts(codes: IntArray, texts: Sequence[bytes]) -> int:
    """Return how many rows of a column are formulas; codes : of the text of each row."""
    sizes = np.array([len(text) for text in texts])
    ends = np.cumsum(sizes)
    array = np.frombuffer(b"".join(texts) + b" ", np.uint8)
    is_formula = _MAY_BEGIN.take(array.take(ends - sizes))
    is_formula[is_formula] = _are_formulas(array, (ends - sizes)[is_formula], ends[is_formula])
    return int(np.count_nonzero(is_formula.take(codes))) if is_formula.any() else 0


def _are_formulas(array: Bytes, starts: IntArray, ends: IntArray) -> BoolArray:
    """Return which texts are formulas, if their first character may begin one."""
    lengths = ends - starts
    is_formula = lengths > _LONGEST
    short = np.flatnonzero((lengths > 0) & ~is_formula)
    if len(short):
        is_formula[short] = _are_computed(array, starts[short], ends[short])
    return is_formula


def _are_computed(array: Bytes, starts: IntArray, ends: IntArray) -> BoolArray:
    """Return which texts are more than a number, and more than signs such as a dash."""
    text, lengths = gathered(array, starts, ends), ends - starts
    first = np.cumsum(lengths) - lengths
    parts = _PART.take(text)
    may_follow = np.ones(len(text), dtype=bool)
    may_follow[1:] = _MAY_FOLLOW.take(8 * parts[:-1] + parts[1:])
    may_follow[first] = True
    is_number = np.logical_and.reduceat(may_follow, first) & _MAY_END.take(array.take(ends - 1))
    return ~is_number & ~np.logical_and.reduceat(_IS_MARK.take(text), first)


def warn_of_formulas(n_rows: Mapping[str, int]) -> None:
    """Warn of columns that were written with formulas in them; n_rows : by name."""
    found = [f"{name!r} ({count:,} rows)" for name, count in n_rows.items() if count]
    if found:
        warn(
            f"A spreadsheet may run values of {', '.join(found)} as formulas: they begin with =, "
            f"+, - or @ and are not numbers. They are written unchanged: import these columns as "
            f"text, or drop them."
        )
