"""Tables in Parquet files, by pyarrow."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from .._typing import IntArray
from ..tables.frames import as_series, as_table
from ..tables.narwhals_frames import plain_arrow
from ..tables.table import ColumnType
from .file_tables import Block, ByteStream, Input, Sink, Source

BATCH_ROWS = 1 << 16
_BATCH_CELLS = 1 << 20

# Types with one spelling of each value. Parquet stores no values under missing ones.
_IN_ONE_SPELLING = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_IN_ONE_SPELLING |= {"bool", "string", "large_string"}


def _pyarrow() -> Any:
    """Return pyarrow with its Parquet module, or say what to install."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("Parquet files need pyarrow: pip install pyarrow.") from error
    return pyarrow


class ParquetSource(Source):
    """A Parquet file; its types are kept, its other metadata is not."""

    def __init__(self, input_: Input) -> None:
        self.input = input_
        self._pyarrow = _pyarrow()
        try:
            self._file = self._pyarrow.parquet.ParquetFile(input_.raw, pre_buffer=False)
        except self._pyarrow.ArrowInvalid as error:
            raise ValueError(f"{input_.name} is not a Parquet file: {error}") from error
        self.schema = self._file.schema_arrow.remove_metadata()
        self.names = self.schema.names
        self.check_names()

    def is_larger_than(self, n_bytes: int) -> bool:
        """Whether the values take more bytes; what the file says of itself leaves repeats out."""
        for batch in self._batches():
            n_bytes -= batch.nbytes
            if n_bytes < 0:
                return True
        return False

    def type_of(self, position: int, values: pd.Series) -> ColumnType:
        return as_table(self.schema.empty_table(), self.input.name).type_of(position)

    def blocks(self) -> Iterator[Block]:
        is_empty = True
        for batch in self._batches():
            yield ParquetBlock(self._pyarrow.Table.from_batches([batch]).replace_schema_metadata())
            is_empty = False
        if is_empty:
            yield ParquetBlock(self.schema.empty_table())

    def _batches(self) -> Iterator[Any]:
        try:
            yield from self._file.iter_batches(batch_size=_rows_at_once(len(self.names)))
        except (OSError, self._pyarrow.ArrowException) as error:
            raise ValueError(f"{self.input.name} is damaged: {error}") from error


class ParquetBlock(Block):
    """Some rows of a Parquet file."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return self.rows.num_rows

    def column(self, position: int, rows: slice | IntArray = slice(None)) -> pd.Series:
        native, name = self.rows.column(position), self.rows.column_names[position]
        if _pyarrow().types.is_nested(native.type):  # as text, lists and structs can be compared
            texts = [None if v is None else json.dumps(v, default=str) for v in native.to_pylist()]
            return pd.Series(texts, dtype=object, name=name).iloc[rows]
        return as_series(native).rename(name).iloc[rows]  # type: ignore[union-attr]  # it is one

    def frame(self, positions: Sequence[int], families: Sequence[str]) -> Any:
        return self.rows.select(list(positions))


class ParquetSink(Sink):
    """A Parquet file that is being written."""

    def __init__(self, file: ByteStream) -> None:
        self._file = file
        self._pyarrow = _pyarrow()
        self._writer: Any = None
        self._waiting: Any = None

    def write(self, block: Block, parts: Mapping[str, Any]) -> None:
        """Write full row groups: the sizes of those of the input may reveal something about S."""
        arrays = {name: self._array(block, part) for name, part in parts.items()}
        rows = self._pyarrow.table(arrays)
        if self._writer is None:
            self._writer = self._pyarrow.parquet.ParquetWriter(self._file, rows.schema)
            self._waiting = rows.schema.empty_table()
        rows = rows.cast(self._writer.schema)
        self._waiting = self._pyarrow.concat_tables([self._waiting, rows])
        size = _rows_at_once(len(parts))
        while len(self._waiting) >= size:
            self._writer.write_table(self._waiting[:size].combine_chunks())
            self._waiting = self._waiting[size:]

    def _array(self, block: Block, part: Any) -> Any:
        """Return a column of a block, or a new one, in pyarrow."""
        if isinstance(part, int) and isinstance(block, ParquetBlock):
            column = block.rows.column(part)
            return column if str(column.type) in _IN_ONE_SPELLING else plain_arrow(column)
        if hasattr(part, "to_native"):  # made by narwhals from a table of pyarrow
            return part.to_native()
        column = block.column(part) if isinstance(part, int) else part
        if not hasattr(column, "cat"):
            return self._pyarrow.array(column, from_pandas=True)
        texts = self._pyarrow.array(column.cat.categories, type=self._pyarrow.string())
        codes = self._pyarrow.array(column.cat.codes, mask=(column.cat.codes < 0).to_numpy())
        return texts.take(codes)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.write_table(self._waiting.combine_chunks())
            self._writer.close()


def _rows_at_once(n_columns: int) -> int:
    return max(1, min(BATCH_ROWS, _BATCH_CELLS // max(1, n_columns)))
