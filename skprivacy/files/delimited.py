"""Tables in delimited text: CSV and TSV."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
import pandas as pd

from .._typing import IntArray
from ..column_types import ColumnType, type_of_dtype
from ..frames import as_series
from .fields import Fields, is_inside_quotes, n_fields, quoted, split, unquoted
from .locations import ByteStream, Input
from .tables import Block, Sink, Source
from .text_values import as_texts, meant

DELIMITERS = {"csv": ",", "tsv": "\t"}

_OTHER_DELIMITERS = ",;|\t"

_BLOCK_BYTES = 1 << 22
_MOST_ROW_BYTES = 1 << 26

_MARK = b"\xef\xbb\xbf"  # of UTF-8
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def check_delimiter(delimiter: str) -> str:
    """Return a delimiter, if it is one byte that can separate fields."""
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise ValueError(f"The delimiter {delimiter!r} is not one ASCII character.")
    return delimiter


def check_encoding(encoding: str) -> str:
    """Return an encoding in which delimiters, quotes and line ends are single ASCII bytes."""
    encoding = "utf-8" if encoding.lower() in ("utf-8-sig", "utf_8_sig") else encoding
    try:
        agrees = '",;\t\nA'.encode(encoding) == b'",;\t\nA'
    except LookupError:
        raise ValueError(f"{encoding!r} is not an encoding.") from None
    if not agrees:
        raise ValueError(f"{encoding} does not agree with ASCII: convert the file to UTF-8.")
    return encoding


class DelimitedSource(Source):
    """A CSV or TSV file with a header.

    Its bytes are in an encoding that agrees with ASCII on delimiters, quotes and line ends; only
    names and the columns that are asked for are decoded.
    """

    def __init__(
        self, input_: Input, delimiter: str | None = None, encoding: str = "utf-8"
    ) -> None:
        self.input = input_
        self.delimiter = DELIMITERS[input_.kind] if delimiter is None else delimiter
        check_delimiter(self.delimiter)
        self.encoding = check_encoding(encoding)
        self._read_header()
        self.check_names()

    def _read_header(self) -> None:
        lines, stream = b"", self.input.stream()
        while not (lines.endswith(b"\n") and not is_inside_quotes(lines, self.delimiter)):
            line = stream.readline(_MOST_ROW_BYTES)
            if not line:
                break
            lines += line
            if len(lines) > _MOST_ROW_BYTES:
                raise ValueError(f"{self.input.name}: the header does not end.")
        if lines.startswith(_UTF_16_MARKS):
            raise ValueError(f"{self.input.name} is in UTF-16: convert it to UTF-8 first.")
        if b"\n" not in lines and b"\r" in lines:
            raise ValueError(f"{self.input.name} ends lines with CR alone: convert them to LF.")
        if not lines.strip():
            raise ValueError(f"{self.input.name} is empty: a table has a header with names.")
        self.mark = _MARK if lines.startswith(_MARK) else b""
        self._header_bytes, self._n_header_lines = len(lines), max(1, lines.count(b"\n"))
        text = lines[len(self.mark) :]
        text += b"" if text.endswith(b"\n") else b"\n"
        n_columns = n_fields(text, self.delimiter)
        self.header = split(text, self.delimiter, n_columns, 1)
        codes = [self.header.distinct(column)[1][0] for column in range(n_columns)]
        self.names = [self.decoded(unquoted(field), "the header") for field in codes]
        if n_columns == 1 and any(other in self.names[0] for other in _OTHER_DELIMITERS):
            raise ValueError(
                f"{self.input.name} has only one column, {self.names[0]!r}: is the delimiter "
                f"another one?"
            )

    def decoded(self, field: bytes, where: str) -> str:
        """Return the text of bytes; where : what they are, for a message."""
        try:
            return field.decode(self.encoding)
        except UnicodeDecodeError:
            # The field is not shown: it may be one of S.
            raise ValueError(
                f"{self.input.name}: {where} is not in {self.encoding}: name its encoding, for "
                f"instance latin-1."
            ) from None

    def type_of(self, position: int, values: pd.Series) -> ColumnType:
        is_text = values.dtype == object
        return ColumnType("text") if is_text else type_of_dtype(values.dtype, "pandas")

    def blocks(self) -> Iterator[Block]:
        stream, rest, line = self.input.stream(), b"", self._n_header_lines + 1
        stream.read(self._header_bytes)
        n_columns, is_first = len(self.names), True
        while True:
            piece = stream.read(_BLOCK_BYTES)
            text = rest + piece
            if not piece:
                text = self._ended(text, line)
            try:
                fields = split(text, self.delimiter, n_columns, line)
            except ValueError as error:
                raise ValueError(f"{self.input.name}: {error}") from None
            if len(fields) or (is_first and not piece):
                yield DelimitedBlock(self, fields)
                is_first = False
            if not piece:
                return
            n_consumed = int(fields.row_ends[-1]) if len(fields) else 0
            rest, line = text[n_consumed:], line + text.count(b"\n", 0, n_consumed)
            if len(rest) > _MOST_ROW_BYTES:
                raise ValueError(self._endless(line))

    def _ended(self, text: bytes, line: int) -> bytes:
        """Return the last rows with a line end."""
        if is_inside_quotes(text, self.delimiter):
            raise ValueError(self._endless(line))
        return text if not text or text.endswith(b"\n") else text + b"\n"

    def _endless(self, line: int) -> str:
        return f"{self.input.name}: the row in line {line:,} does not end: is a quote missing?"


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
        return pd.Series(
            pd.Categorical.from_codes(codes, categories=texts), name=self.source.names[position]
        )

    def frame(self, positions: Sequence[int], families: Sequence[str]) -> pd.DataFrame:
        columns = {
            (name := self.source.names[position]): meant(self.column(position), family, name)
            for position, family in zip(positions, families, strict=True)
        }
        return pd.DataFrame(columns, copy=False)


class DelimitedSink(Sink):
    """A CSV or TSV file that is being written."""

    def __init__(self, file: ByteStream, delimiter: str, encoding: str = "utf-8") -> None:
        self._file: Any = file  # it takes arrays, which hints say from Python 3.12 on
        self._delimiter = delimiter
        self._encoding = encoding
        self._has_header = False

    def write(self, block: Block, parts: Mapping[str, Any]) -> None:
        if not self._has_header:
            self._write_header(block, parts)
            self._has_header = True
        if self._copies(block):
            rows = [
                part if isinstance(part, int) else self._new(part, len(parts) == 1)
                for part in parts.values()
            ]
            self._file.write(block.fields.spliced(rows, self._delimiter.encode()))
        else:
            self._write_texts(block, parts)

    def _copies(self, block: Block) -> TypeGuard[DelimitedBlock]:
        return isinstance(block, DelimitedBlock) and block.source.delimiter == self._delimiter

    def _new(self, column: Any, is_alone: bool) -> tuple[IntArray, list[bytes]]:
        """Return the codes of a new column, and the fields that they stand for."""
        codes, texts = as_texts(as_series(column))  # type: ignore[arg-type]  # it is one
        delimiter = self._delimiter.encode()
        fields = [quoted(text.encode(self._encoding), delimiter) for text in texts]
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
        self._file.write(block.source.header.spliced(row, delimiter))

    def _write_texts(self, block: Block, parts: Mapping[str, Any]) -> None:
        """Write the rows of a table of another kind."""
        columns = {}
        for name, part in parts.items():
            column: Any = block.column(part) if isinstance(part, int) else as_series(part)
            codes, texts = as_texts(column)
            columns[name] = np.array(texts, dtype=object)[codes]
        text = io.StringIO()
        pd.DataFrame(columns).to_csv(
            text, sep=self._delimiter, header=False, index=False, lineterminator="\n"
        )
        self._file.write(text.getvalue().encode(self._encoding))

    def close(self) -> None:
        """Everything is written already."""
