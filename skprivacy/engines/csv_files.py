"""Tables in delimited text: CSV and TSV."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
import pandas as pd

from .._messages import Message, Setting, message_of
from .._typing import IntArray
from ..tables.frames import as_series
from ..tables.table import ColumnType, type_of_dtype
from .csv_fields import Fields, first_row_end, is_inside_quotes, n_fields, quoted, split, unquoted
from .csv_texts import (
    as_texts,
    check_names,
    data_fields,
    formulas_in_fields,
    formulas_in_texts,
    meant,
    warn_of_formulas,
)
from .file_tables import Block, ByteStream, Input, Sink, Source

DELIMITERS = {"csv": ",", "tsv": "\t"}

_OTHER_DELIMITERS = ",;|\t"

LINE_BYTES = 1 << 16
BLOCK_BYTES = 1 << 22
_MOST_ROW_BYTES = 1 << 26

_MOST_SHOWN = 3

_MARK = b"\xef\xbb\xbf"  # of UTF-8
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def check_delimiter(delimiter: str) -> str:
    """Return a delimiter, if it is one byte that can separate fields."""
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        told = f"The delimiter {delimiter!r} is not a single ASCII character other than a quote "
        raise ValueError(told + "or a line end.")
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

    Its bytes are in an encoding that agrees with ASCII on delimiters, quotes and line ends; only
    names and the columns that are asked for are decoded.

    header : whether the first line has the names of the columns; None to find out, and to refuse
    a line that may be a row. names : of the columns of a file without a header.
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
        # That of the first row, which is no header, would tell something about this row.
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
        # Each read doubles what there is: a long row is read in linear time.
        while not end and len(text) <= _MOST_ROW_BYTES:
            if not (piece := stream.read(max(LINE_BYTES, len(text)))):
                break
            text += piece
            end = first_row_end(text, self.delimiter)
        line = text[:end] if end else text
        if line.startswith(_UTF_16_MARKS):
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
            told = f"{self.input.name} has {n_columns} columns, but ", Setting("names", [...])
            raise ValueError(Message(*told, f" has {len(names)}."))
        delimiter = self.delimiter.encode()
        fields = [quoted(name.encode(self.encoding), delimiter) for name in names]
        return split(delimiter.join(fields) + b"\n", self.delimiter, n_columns, 1)

    def check_names(self) -> None:
        """Check that each name stands for one column, and that the line was split into columns."""
        # No name is shown: the line may be a row, with a value of S in it.
        first: dict[str, int] = {}
        for place, name in enumerate(self.names, 1):
            if first.setdefault(name, place) != place:
                told = f"{self.input.name}: the columns {first[name]} and {place} have the same "
                why = "name: if there is no header, use ", Setting("header", False)
                raise ValueError(Message(told, *why, "."))
        others = [other for other in _OTHER_DELIMITERS if other in self.names[0]]
        if len(self.names) == 1 and others:
            told = f"{self.input.name} has only one column, with {others[0]!r} in its name: "
            raise ValueError(told + "is that the delimiter?")

    def _check_header(self) -> None:
        """Check that the first line is not a row."""
        block = next(self.blocks())
        assert isinstance(block, DelimitedBlock)
        if columns := data_fields(self.header, block.fields):
            told = f"{self.input.name}: the first line may be a row rather than a header (see "
            row = f"{_counted(columns)}): use ", Setting("header", False), " if it is a row, with "
            names = Setting("names", [...]), " to name the columns if you like, or "
            header = Setting("header", True), " if it is a header."
            raise ValueError(Message(told, *row, *names, *header))

    def decoded(self, field: bytes, where: str) -> str:
        """Return the text of bytes; where : what they are, for a message."""
        try:
            return field.decode(self.encoding)
        except UnicodeDecodeError:
            # The field is not shown: it may be one of S.
            told = f"{self.input.name}: {where} is not in {self.encoding}: "
            raise ValueError(told + "name its encoding, for instance latin-1.") from None

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


def _counted(columns: Sequence[int]) -> str:
    """Return where columns are, as a part of a sentence."""
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
        where = f"the column {name!r}"
        decoded = [self.source.decoded(unquoted(field), where) for field in raw]
        texts = pd.Index(decoded, dtype=object)
        if not texts.is_unique:  # abc and "abc"
            position_of, texts = pd.factorize(texts)
            codes = position_of.take(codes)
        return pd.Series(pd.Categorical.from_codes(codes, categories=texts), name=name)

    def frame(self, positions: Sequence[int], families: Sequence[str]) -> pd.DataFrame:
        columns = {
            (name := self.source.names[position]): meant(self.column(position), family, name)
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
        if self._copies(block):
            copied = {name: part for name, part in parts.items() if isinstance(part, int)}
            counts = formulas_in_fields(block.fields, list(copied.values()))
            self._n_formulas.update(dict(zip(copied, counts.tolist(), strict=True)))
            rows = [
                part if isinstance(part, int) else self._new(name, part, len(parts) == 1)
                for name, part in parts.items()
            ]
            delimiter, line_end = self._delimiter.encode(), block.source.line_end
            self._file.write(block.fields.spliced(rows, delimiter, line_end))
        else:
            self._write_texts(block, parts)

    def _copies(self, block: Block) -> TypeGuard[DelimitedBlock]:
        return isinstance(block, DelimitedBlock) and block.source.delimiter == self._delimiter

    def _new(self, name: str, column: Any, is_alone: bool) -> tuple[IntArray, list[bytes]]:
        """Return the codes of a new column, and the fields that they stand for."""
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

    def _write_texts(self, block: Block, parts: Mapping[str, Any]) -> None:
        """Write the rows of a table of another kind."""
        columns = {}
        for name, part in parts.items():
            column: Any = block.column(part) if isinstance(part, int) else as_series(part)
            codes, texts = as_texts(column)
            raw = [text.encode(self._encoding) for text in texts]
            self._n_formulas[name] += formulas_in_texts(codes, raw)
            columns[name] = np.array(texts, dtype=object)[codes]
        text = io.StringIO()
        pd.DataFrame(columns).to_csv(
            text, sep=self._delimiter, header=False, index=False, lineterminator="\n"
        )
        self._file.write(text.getvalue().encode(self._encoding))

    def warn(self) -> None:
        warn_of_formulas(self._n_formulas)

    def close(self) -> None:
        """Do nothing: everything is written already."""
