"""Whether the first line of a text file names its columns, or is a row like the others.

A row mistaken for names would be published as it is: a line that may be a row is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice, pairwise

from .._messages import Message, Setting
from .fields import Fields, unquoted
from .text_values import are_numbers, is_number

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
        raise ValueError(
            Message(
                Setting("names", [...]),
                " is for a file without a header: leave out ",
                Setting("header", True),
                ".",
            )
        )
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
    found = {c for c, field in enumerate(raw) if rows.holds(c, field) and not _is_empty(rows, c)}
    digits = {c for c, text in enumerate(texts) if _is_digits(text)}
    if found.isdisjoint(digits) and _enumerates(texts) and not _enumerates(_texts(rows)):
        digits = set()
    suspects = sorted(found | digits)
    words = (c for c, text in enumerate(texts) if c not in found and _is_word(text))
    names = (c for c in words if are_numbers(map(_text, rows.distinct(c)[1])))
    n_names = sum(1 for _ in islice(names, len(suspects) + 1))  # more would not change anything
    return [] if n_names > len(suspects) else suspects


def _text(field: bytes) -> str:
    """Return a field in an encoding that knows every byte."""
    return unquoted(field).decode("latin-1")


def _texts(rows: Fields) -> list[str]:
    """Return the first row, if there is one."""
    return [_text(field) for field in rows.row(0)] if len(rows) else []


def _is_empty(rows: Fields, column: int) -> bool:
    """Tell whether a column is empty: a delimiter at the end of each line makes one."""
    return not (rows.ends[:, column] > rows.starts[:, column]).any()


def _is_digits(text: str) -> bool:
    return is_number(text) or (any(map(str.isdigit, text)) and not any(map(str.isalpha, text)))


def _is_word(text: str) -> bool:
    """Tell whether a text is more than a number, or a mark for a missing one."""
    return not is_number(text) and any(map(str.isalpha, text))


def _enumerates(texts: Sequence[str]) -> bool:
    """Tell whether the numbers in a line are in order, as the names of columns may be.

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
