"""Tables in delimited text (CSV and TSV), and the types of their texts."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any, TypeGuard

import numpy as np
import pandas as pd

from .._messages import Message, message_of, warn
from .._typing import BoolArray, IntArray
from ..tables.frames import as_series
from ..tables.table import ColumnType, type_of_dtype
from .csv_fields import (
    Bytes,
    Fields,
    first_row_end,
    gathered,
    is_inside_quotes,
    n_fields,
    quoted,
    split,
    unquoted,
)
from .file_tables import Block, ByteStream, Input, Sink, Source

# An empty field is missing in any column, the others only among numbers: "NA" may be Namibia.
_MISSING = {"", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"}

# Possessive (++), so that a long field is read once.
_NUMBER = re.compile(r"\s*+[+-]?(\d++(\.\d*+)?|\.\d++)([eE][+-]?\d++)?\s*+", re.ASCII)
_INTEGER = re.compile(r"\s*+[+-]?\d++\s*+", re.ASCII)
_CODE = re.compile(r"\s*[+-]?0\d", re.ASCII)  # 00123 is a name made of digits
_DIGITS = re.compile(r"(\.?)(\d+)", re.ASCII)

# The largest integers that are exact: in a column of integers, and among floats.
_LARGEST_INTEGER = 2**63 - 1
_LARGEST_EXACT = 2**53
_MOST_DIGITS = 19


def is_number(text: str) -> bool:
    """Whether a text is a number; a missing value is not."""
    return _NUMBER.fullmatch(text) is not None


def has_values(texts: Iterable[str]) -> bool:
    """Whether a text column has any non-missing value."""
    return any(text.strip() not in _MISSING for text in texts)


def are_numbers(texts: Iterable[str]) -> bool:
    """Whether all texts of a column are numbers or missing values."""
    present = [text for text in texts if text.strip() not in _MISSING]
    if not present or not all(_NUMBER.fullmatch(t) and not _CODE.match(t) for t in present):
        return False
    return _are_exact(present)


def _are_exact(texts: Sequence[str]) -> bool:
    """Whether the integers among texts are small enough to stay different as numbers."""
    integers = [text for text in texts if _INTEGER.fullmatch(text)]
    largest = _LARGEST_INTEGER if len(integers) == len(texts) else _LARGEST_EXACT
    return all(abs(_integer(text)) <= largest for text in integers)


def _integer(text: str) -> float:
    """Return an integer, or infinity if it has too many digits."""
    digits = text.strip().lstrip("+-").lstrip("0") or "0"  # int() refuses thousands of zeros
    number = math.inf if len(digits) > _MOST_DIGITS else int(digits)
    return -number if "-" in text else number


def converted(column: pd.Series, family: str, name: Hashable) -> pd.Series:
    """Return a categorical column of texts, converted to a family.

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
            raise ValueError(f"The column {name!r} holds a text where true or false is expected.")
        values = pd.array([known[text.lower()] for text in texts], dtype="boolean")
    else:
        # Here an empty text is a category; in an alphabet it is None.
        return column.cat.remove_categories([text for text in texts if text == ""])
    codes = column.cat.codes.to_numpy()
    return pd.Series(values.take(codes, allow_fill=True), name=column.name)


def _numbers(texts: Iterable[str], name: Hashable) -> Any:
    """Return texts as an array of integers, or of floats if some are not integers."""
    stripped = [None if text.strip() in _MISSING else text.strip() for text in texts]
    present = [text for text in stripped if text is not None]
    # The value is not shown: it may be one of S.
    if not all(map(_NUMBER.fullmatch, present)):
        raise ValueError(f"The column {name!r} holds a text where a number is expected.")
    if not _are_exact(present):
        raise ValueError(f"The column {name!r} has integers that are too large to be exact.")
    if all(map(_INTEGER.fullmatch, present)):
        integers = [None if text is None else _integer(text) for text in stripped]
        return pd.array(integers, dtype="Int64")
    return pd.array([np.nan if text is None else float(text) for text in stripped])


def written_numbers(texts: pd.Series) -> list[pd.Series]:
    """Return two columns that reveal how numbers are written: the texts, and their formats.

    Texts that all differ are too many to judge; their formats (9, 9.9, 9.99, +9e9) are few.
    """
    return [texts, texts.map({text: _format(text) for text in texts.unique()})]


def _format(text: str) -> str:
    """Return a text with 9 for each integer part and for each decimal."""
    if _NUMBER.fullmatch(text) is None:
        return text
    if float(text):  # the sign belongs to the value, except of zero
        text = text.replace("-", "", 1) if text.lstrip().startswith("-") else text
    return _DIGITS.sub(lambda found: found[1] + "9" * (len(found[2]) if found[1] else 1), text)


def as_texts(column: pd.Series) -> tuple[IntArray, list[str]]:
    """Return a code for each row of a released column, and the text of each code."""
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

# The parts of a number, and which may follow which. 1.2.3 passes too: no spreadsheet computes it.
_PARTS = [b"", b"0123456789", b".", b"eE", b"+-", b" "]
_PART = np.sum([i * _table(part) for i, part in enumerate(_PARTS)], axis=0).astype(np.uint8)
_MAY_FOLLOW = np.zeros(8 * 8, dtype=bool)
for _pair in (b"11", b"1.", b"1e", b"1 ", b".1", b".e", b". ", b"e1", b"e-", b"-1", b"-.", b"  "):
    _MAY_FOLLOW[8 * _PART[_pair[0]] + _PART[_pair[1]]] = True


def formulas_in_fields(fields: Fields, columns: Sequence[int]) -> IntArray:
    """Return the number of formulas in each of some columns."""
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
    """Return the number of rows with formulas in a column; codes : of the text of each row."""
    sizes = np.array([len(text) for text in texts])
    ends = np.cumsum(sizes)
    array = np.frombuffer(b"".join(texts) + b" ", np.uint8)
    is_formula = _MAY_BEGIN.take(array.take(ends - sizes))
    is_formula[is_formula] = _are_formulas(array, (ends - sizes)[is_formula], ends[is_formula])
    return int(np.count_nonzero(is_formula.take(codes))) if is_formula.any() else 0


def _are_formulas(array: Bytes, starts: IntArray, ends: IntArray) -> BoolArray:
    """Return which texts are formulas; their first characters may begin one."""
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


# Tables in delimited text.


DELIMITERS = {"csv": ",", "tsv": "\t"}

LINE_BYTES = 1 << 16
BLOCK_BYTES = 1 << 22
_MOST_ROW_BYTES = 1 << 26

_MOST_SHOWN = 3  # fields in a message

_MARK = b"\xef\xbb\xbf"  # of UTF-8


def check_delimiter(delimiter: str) -> str:
    """Return a delimiter, if it is one byte that can separate fields."""
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        what = "a single ASCII character other than a quote or a line end"
        raise ValueError(f"The delimiter {delimiter!r} is not {what}.")
    return delimiter


def check_encoding(encoding: str) -> str:
    """Return an encoding in which delimiters, quotes and line ends are single ASCII bytes."""
    encoding = "utf-8" if encoding.lower() in ("utf-8-sig", "utf_8_sig") else encoding
    try:
        agrees = '",;\t\nA'.encode(encoding) == b'",;\t\nA'
    except LookupError:
        raise ValueError(f"{encoding!r} is not an encoding.") from None
    if not agrees:
        raise ValueError(f"{encoding} is not compatible with ASCII: convert the file to UTF-8.")
    return encoding


class DelimitedSource(Source):
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
            what = f"only one column, with {others[0]!r} in its name: is that the delimiter?"
            raise ValueError(f"{self.input.name} has {what}")

    def _check_header(self) -> None:
        """Check that the first line is not a row."""
        block = next(self.blocks())
        assert isinstance(block, DelimitedBlock)
        if columns := data_fields(self.header, block.fields):
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

    def type_of(self, position: int, values: pd.Series) -> ColumnType:
        is_text = values.dtype == object
        return ColumnType("text") if is_text else type_of_dtype(values.dtype, "pandas")

    def blocks(self) -> Iterator[Block]:
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
                yield DelimitedBlock(self, fields)
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


class DelimitedBlock(Block):
    """Some rows of a delimited file."""

    def __init__(self, source: DelimitedSource, fields: Fields) -> None:
        self.source = source
        self.fields = fields

    def __len__(self) -> int:
        return len(self.fields)

    def column(self, position: int, rows: slice | IntArray = slice(None)) -> pd.Series:
        codes, raw = self.fields.distinct(position, rows)
        name = self.source.names[position]
        decoded = [self.source.decoded(unquoted(field), f"the column {name!r}") for field in raw]
        texts = pd.Index(decoded, dtype=object)
        if not texts.is_unique:  # abc and "abc"
            position_of, texts = pd.factorize(texts)
            codes = position_of.take(codes)
        return pd.Series(pd.Categorical.from_codes(codes, categories=texts), name=name)

    def frame(self, positions: Sequence[int], families: Sequence[str]) -> pd.DataFrame:
        columns = {
            (name := self.source.names[position]): converted(self.column(position), family, name)
            for position, family in zip(positions, families, strict=True)
        }
        return pd.DataFrame(columns, copy=False)


class DelimitedSink(Sink):
    """A CSV or TSV file that is being written."""

    def __init__(self, file: ByteStream, delimiter: str, encoding: str = "utf-8") -> None:
        self._file: Any = file  # it takes arrays, which type hints can say from Python 3.12
        self._delimiter = delimiter
        self._encoding = encoding
        self._has_header = False
        self._n_formulas = Counter[str]()

    def write(self, block: Block, parts: Mapping[str, Any]) -> None:
        if not self._has_header:
            self._write_header(block, parts)
            self._has_header = True
        fields, line_end, copied = Fields.without_columns(len(block)), b"\n", dict[str, int]()
        if self._copies(block):
            fields, line_end = block.fields, block.source.line_end
            copied = {name: part for name, part in parts.items() if isinstance(part, int)}
            counts = formulas_in_fields(fields, list(copied.values()))
            self._n_formulas.update(dict(zip(copied, counts.tolist(), strict=True)))
        rows: list[int | tuple[IntArray, list[bytes]]] = []
        for name, part in parts.items():
            column = block.column(part) if isinstance(part, int) and name not in copied else part
            rows.append(part if name in copied else self._new(name, column, len(parts) == 1))
        self._file.write(fields.spliced(rows, self._delimiter.encode(), line_end))

    def _copies(self, block: Block) -> TypeGuard[DelimitedBlock]:
        return isinstance(block, DelimitedBlock) and block.source.delimiter == self._delimiter

    def _new(self, name: str, column: Any, is_alone: bool) -> tuple[IntArray, list[bytes]]:
        """Return the codes of a column that is written anew, and the field of each code."""
        codes, texts = as_texts(as_series(column))  # type: ignore[arg-type]  # it is one
        raw = [text.encode(self._encoding) for text in texts]
        self._n_formulas[name] += formulas_in_texts(codes, raw)
        delimiter = self._delimiter.encode()
        fields = [quoted(text, delimiter) for text in raw]
        # Alone in its row, an empty field would be an empty line, which readers skip.
        return codes, [field or b'""' for field in fields] if is_alone else fields

    def _write_header(self, block: Block, parts: Mapping[str, Any]) -> None:
        delimiter = self._delimiter.encode()
        names = {name: quoted(name.encode(self._encoding), delimiter) for name in parts}
        if not self._copies(block):
            self._file.write(delimiter.join(names.values()) + b"\n")
            return
        row = [
            part if isinstance(part, int) else (np.zeros(1, dtype=np.intp), [names[name]])
            for name, part in parts.items()
        ]
        self._file.write(block.source.mark)
        self._file.write(block.source.header.spliced(row, delimiter, block.source.line_end))

    def warn(self) -> None:
        counts = self._n_formulas.items()
        if found := [f"{name!r} ({count:,} rows)" for name, count in counts if count]:
            warn(
                f"A spreadsheet may run values of {', '.join(found)} as formulas: they begin with "
                f"=, +, - or @ and are not numbers. They are written unchanged: import these "
                f"columns as text, or drop them."
            )
