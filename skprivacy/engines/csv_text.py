"""Delimited text: the first line, which may be a header or a row, and the rows as fields.

This is all that errors about columns need: it imports numpy, and no other library.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import numpy as np

from .._messages import Message, Setting, message_of
from .csv_fields import (
    Fields,
    first_row_end,
    is_inside_quotes,
    n_fields,
    quoted,
    split,
    unquoted,
)
from .file_tables import Input, check_delimiter, check_encoding

if TYPE_CHECKING:
    from .._typing import BoolArray

# Numbers as texts.


# An empty field is missing in any column, the others only among numbers: "NA" may be Namibia.
MISSING = {"", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"}

# Possessive (++), so that a long field is read once.
NUMBER = re.compile(r"\s*+[+-]?(\d++(\.\d*+)?|\.\d++)([eE][+-]?\d++)?\s*+", re.ASCII)
INTEGER = re.compile(r"\s*+[+-]?\d++\s*+", re.ASCII)
_CODE = re.compile(r"\s*[+-]?0\d", re.ASCII)  # 00123 is a name made of digits

# The largest integers that are exact: in a column of integers, and among floats.
_LARGESTINTEGER = 2**63 - 1
LARGEST_EXACT = 2**53
_MOST_DIGITS = 19


def is_number(text: str) -> bool:
    """Whether a text is a number; a missing value is not."""
    return NUMBER.fullmatch(text) is not None


def has_values(texts: Iterable[str]) -> bool:
    """Whether a text column has any non-missing value."""
    return any(text.strip() not in MISSING for text in texts)


def are_numbers(texts: Iterable[str]) -> bool:
    """Whether all texts of a column are numbers or missing values."""
    present = [text for text in texts if text.strip() not in MISSING]
    if not present or not all(NUMBER.fullmatch(t) and not _CODE.match(t) for t in present):
        return False
    return are_exact(present)


def are_exact(texts: Sequence[str]) -> bool:
    """Whether the integers among texts are small enough to stay different as numbers."""
    integers = [text for text in texts if INTEGER.fullmatch(text)]
    largest = _LARGESTINTEGER if len(integers) == len(texts) else LARGEST_EXACT
    return all(abs(integer(text)) <= largest for text in integers)


def integer(text: str) -> float:
    """Return an integer, or infinity if it has too many digits."""
    digits = text.strip().lstrip("+-").lstrip("0") or "0"  # int() refuses thousands of zeros
    number = math.inf if len(digits) > _MOST_DIGITS else int(digits)
    return -number if "-" in text else number


# Whether the first line of a text file is a header or a row.
#
# A row mistaken for a header would be published unchanged: a line that may be a row is refused.


_WHOLE = re.compile(r"\d{1,9}", re.ASCII)


def check_names(header: bool | None, names: Sequence[str] | None) -> None:
    """Check the parameters `header` and `names` of a file."""
    if names is None:
        return
    if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
        template = "{names=[...]} must be a list of texts, one name for each column."
        raise TypeError(Message.of(template))
    if header:
        template = "{names=[...]} is for a file without a header: leave out {header=True}."
        raise ValueError(Message.of(template))
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(Message.of("{names=[...]} has {name!r} twice.", name=twice[0]))


def data_fields(line: Fields, rows: Fields) -> list[int]:
    """Return the fields of a first line that look like data; none if it is a header.

    A field looks like data if it consists of digits and signs (a number, a date), or is a value of
    its column in the rows below. The line is still a header if more fields than these must be
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
    if not suspects:
        return []
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
    """Whether the numbers in a line enumerate columns.

    They must be in order, and two of these must hold: they go up or down by one, they are years,
    there are more than two.
    """
    found = [text for text in texts if _is_digits(text)]
    if len(found) < 2 or not all(map(_WHOLE.fullmatch, found)):
        return False
    numbers = [int(text) for text in found]
    steps = {after - before for before, after in pairwise(numbers)}
    are_years, are_many = all(1500 <= number <= 2100 for number in numbers), len(numbers) > 2
    by_one, in_order = steps in ({1}, {-1}), min(steps) > 0 or max(steps) < 0
    return in_order and by_one + are_years + are_many >= 2


# The text of a file.


DELIMITERS = {"csv": ",", "tsv": "\t"}

LINE_BYTES = 1 << 16
BLOCK_BYTES = 1 << 22
_MOST_ROW_BYTES = 1 << 26

_MOST_SHOWN = 3  # fields in a message

_MARK = b"\xef\xbb\xbf"  # of UTF-8


class DelimitedText:
    """A CSV or TSV file.

    Its encoding agrees with ASCII on delimiters, quotes and line ends; only names and the columns
    that are read are decoded.

    header : whether the first line has the names of the columns; None: a line that may be a row
    is refused. names : of the columns of a file without a header.
    """

    def __init__(
        self,
        input_: Input,
        delimiter: str | None = None,
        encoding: str = "utf-8",
        header: bool | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self.input = input_
        self.delimiter = DELIMITERS[input_.kind] if delimiter is None else delimiter
        check_delimiter(self.delimiter)
        self.encoding = check_encoding(encoding)
        check_names(header, names)
        first = self._first_line()
        has_header = header is not False and names is None
        self._skipped = first.text if has_header else b""
        # The line end of a first row that is no header would reveal something about this row.
        self.line_end = b"\r\n" if self._skipped.endswith(b"\r\n") else b"\n"
        self.header = first if has_header else self._made_header(first, names)
        self.names = [self.decoded(unquoted(field), "the header") for field in self.header.row(0)]
        self.check_names()
        if has_header and header is None:
            self._check_header()

    def _first_line(self) -> Fields:
        stream = self.input.stream()
        text, end = stream.read(len(_MARK)), 0
        self.mark = _MARK if text == _MARK else b""
        text = text.removeprefix(_MARK)
        # Each read doubles the text, so that a long row is read in linear time.
        while not end and len(text) <= _MOST_ROW_BYTES:
            if not (piece := stream.read(max(LINE_BYTES, len(text)))):
                break
            text += piece
            end = first_row_end(text, self.delimiter)
        line = text[:end] if end else text
        if line.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise ValueError(f"{self.input.name} is in UTF-16: convert it to UTF-8 first.")
        if b"\n" not in line and b"\r" in line:
            raise ValueError(f"{self.input.name} ends lines with CR alone: convert them to LF.")
        if not line.strip():
            raise ValueError(f"{self.input.name} is empty: a table needs a header with names.")
        is_too_long = len(line) > _MOST_ROW_BYTES
        if not end and (is_too_long or is_inside_quotes(line, self.delimiter)):
            raise ValueError(self._endless(1))
        line = line if end else line + b"\n"
        return split(line, self.delimiter, n_fields(line, self.delimiter), 1)

    def _made_header(self, first: Fields, names: Sequence[str] | None) -> Fields:
        """Return a header for a file without one; first : its first row."""
        n_columns = first.n_columns
        if names is None:
            names = [f"c{column + 1}" for column in range(n_columns)]
        if len(names) != n_columns:
            template = "{file} has {n_columns} columns, but {names=[...]} has {n_names}."
            sizes = {"n_columns": n_columns, "n_names": len(names)}
            raise ValueError(Message.of(template, file=self.input.name, **sizes))
        delimiter = self.delimiter.encode()
        fields = [quoted(name.encode(self.encoding), delimiter) for name in names]
        return split(delimiter.join(fields) + b"\n", self.delimiter, n_columns, 1)

    def check_names(self) -> None:
        """Check that no two columns have the same name, and that the delimiter is right."""
        # No name is shown: the line may be a row, with a value of S in it.
        first: dict[str, int] = {}
        for place, name in enumerate(self.names, 1):
            if first.setdefault(name, place) != place:
                template = (
                    "{file}: the columns {first} and {place} have the same name: if there is no "
                    "header, use {header=False}."
                )
                places = {"first": first[name], "place": place}
                raise ValueError(Message.of(template, file=self.input.name, **places))
        others = [other for other in ",;|\t" if other in self.names[0]]
        if len(self.names) == 1 and others:
            what = f" has only one column, with {others[0]!r} in its name: is that the delimiter? "
            setting = Setting("delimiter", others[0])
            raise ValueError(Message(self.input.name, what, "Then use ", setting, "."))

    def _check_header(self) -> None:
        """Check that the first line is not a row."""
        if columns := data_fields(self.header, next(self.rows())):
            template = (
                "{file}: the first line may be a row rather than a header (see {fields}): use "
                "{header=False} if it is a row, with {names=[...]} to name the columns if you "
                "like, or {header=True} if it is a header."
            )
            fields = _listed(columns)
            raise ValueError(Message.of(template, file=self.input.name, fields=fields))

    def decoded(self, field: bytes, where: str) -> str:
        """Return the text of a field; where : it is, for a message."""
        try:
            return field.decode(self.encoding)
        except UnicodeDecodeError:
            # The field is not shown: it may be one of S.
            advice = "name its encoding, for instance latin-1"
            wrong = f"{self.input.name}: {where} is not in {self.encoding}: {advice}."
            raise ValueError(wrong) from None

    def rows(self) -> Iterator[Fields]:
        """Yield the fields of complete rows, from the start; at least once."""
        stream, rest, line = self.input.stream(), b"", self._skipped.count(b"\n") + 1
        stream.read(len(self.mark) + len(self._skipped))
        n_columns, is_first = len(self.names), True
        while True:
            piece = stream.read(max(BLOCK_BYTES, len(rest)))  # a long row in linear time
            text = rest + piece
            if not piece:
                if is_inside_quotes(text, self.delimiter):
                    raise ValueError(self._endless(line))
                text = text if not text or text.endswith(b"\n") else text + b"\n"
            try:
                fields = split(text, self.delimiter, n_columns, line)
            except ValueError as error:
                raise ValueError(Message(f"{self.input.name}: ", message_of(error))) from None
            if len(fields) or (is_first and not piece):
                yield fields
                is_first = False
            if not piece:
                return
            n_consumed = int(fields.row_ends[-1]) if len(fields) else 0
            rest, line = text[n_consumed:], line + text.count(b"\n", 0, n_consumed)
            if len(rest) > _MOST_ROW_BYTES:
                raise ValueError(self._endless(line))

    def _endless(self, line: int) -> str:
        return f"{self.input.name}: the row on line {line:,} does not end: is a quote missing?"


def _listed(columns: Sequence[int]) -> str:
    """Return the positions of columns as text."""
    *most, last = [str(column + 1) for column in columns[:_MOST_SHOWN]]
    places = f"fields {', '.join(most)} and {last}" if most else f"field {last}"
    return f"{places}, for instance" if len(columns) > _MOST_SHOWN else places
