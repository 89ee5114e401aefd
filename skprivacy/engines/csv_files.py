"""Tables in delimited text (CSV and TSV), and the types of their texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
import pandas as pd

from .._messages import listed, warn
from .._typing import BoolArray, IntArray
from ..tables.frames import as_series
from ..tables.table import ColumnType, type_of_dtype
from .csv_fields import Bytes, Fields, gathered, quoted, unquoted
from .csv_text import (
    INTEGER,
    LARGEST_EXACT,
    MISSING,
    NUMBER,
    DelimitedText,
    are_exact,
    integer,
    is_number,
)
from .file_tables import Block, ByteStream, Sink, Source

_DIGITS = re.compile(r"(\.?)(\d+)", re.ASCII)


class NotNumbersError(ValueError):
    """A column holds a text where a number is expected."""


# Columns of this many different texts, most of which are numbers, are probably meant as numbers.
_FEWEST_TEXTS, _MOSTLY_NUMBERS = 10, 0.9

# Maximum number of rows that are named for a column.
_MOST_ROWS = 5


def are_mostly_numbers(texts: Iterable[str]) -> bool:
    """Whether nearly all texts of a column are numbers, but not all."""
    present = [text for text in texts if text.strip() not in MISSING]
    n_numbers = sum(map(is_number, present))
    return len(present) >= _FEWEST_TEXTS and _MOSTLY_NUMBERS * len(present) <= n_numbers < len(
        present
    )


def rows_without_numbers(
    source: DelimitedSource, names: Iterable[str], secret: Collection[str] = ()
) -> str:
    """Return the columns that hold texts, with the numbers of these rows.

    Of secret columns only how many. The first row below the header is row 1; no text is shown.
    """
    rows: dict[str, list[int]] = {name: [] for name in names}
    first = 1
    for block in source.blocks():
        for name, found in rows.items():
            column = block.column(source.names.index(name))
            texts = column.cat.categories
            is_bad = np.array([not is_number(t) and t.strip() not in MISSING for t in texts])
            found += (np.flatnonzero(is_bad.take(column.cat.codes)) + first).tolist()
        first += len(block)
    parts = []
    for name, found in rows.items():
        shown = [f"{row:,}" for row in found[:_MOST_ROWS]]
        more = len(found) - len(shown)
        shown += [f"{more:,} more"] if more else []
        rows_of = f"row{'s'[: len(found) != 1]}"
        where = f"{len(found):,} {rows_of}" if name in secret else f"{rows_of} {listed(shown)}"
        parts += [f"{name!r} in {where}"] if found else []
    return "; ".join(parts)


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
    stripped = [None if text.strip() in MISSING else text.strip() for text in texts]
    present = [text for text in stripped if text is not None]
    # The value is not shown: it may be one of S.
    if not all(map(NUMBER.fullmatch, present)):
        raise NotNumbersError(f"The column {name!r} holds a text where a number is expected.")
    if not are_exact(present):
        raise ValueError(f"The column {name!r} has integers that are too large to be exact.")
    if all(map(INTEGER.fullmatch, present)):
        integers = [None if text is None else integer(text) for text in stripped]
        return pd.array(integers, dtype="Int64")
    return pd.array([np.nan if text is None else float(text) for text in stripped])


def written_numbers(texts: pd.Series) -> list[pd.Series]:
    """Return two columns that reveal how numbers are written: the texts, and their formats.

    Texts that all differ are too many to judge; their formats (9, 9.9, 9.99, +9e9) are few.
    """
    return [texts, texts.map({text: _format(text) for text in texts.unique()})]


def _format(text: str) -> str:
    """Return a text with 9 for each integer part and for each decimal."""
    if NUMBER.fullmatch(text) is None:
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
    if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST_EXACT:
        return str(int(value))
    if isinstance(value, bytes):
        return value.hex()
    return repr(value) if isinstance(value, float) else str(value)


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


class DelimitedSource(DelimitedText, Source):
    """A CSV or TSV file."""

    def type_of(self, position: int, values: pd.Series) -> ColumnType:
        is_text = values.dtype == object
        return ColumnType("text") if is_text else type_of_dtype(values.dtype, "pandas")

    def blocks(self) -> Iterator[Block]:
        return (DelimitedBlock(self, fields) for fields in self.rows())


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
