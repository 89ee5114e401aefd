"""Files as tables: of which kind, and what is wrong with those that cannot be read."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

from .._typing import FilePath
from .delimited import DELIMITERS, DelimitedSink, DelimitedSource
from .locations import compressed_if, is_pipe, kind_of, opened, written
from .parquet import ParquetSink, ParquetSource
from .tables import Sink, Source


@contextmanager
def read_from(
    path: FilePath,
    *,
    kind: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    header: bool | None = None,
    names: Sequence[str] | None = None,
) -> Iterator[Source]:
    """Open a file as a `Source`."""
    with opened(path, kind) as input_:
        try:
            if input_.kind == "parquet":
                if header is False or names is not None:
                    raise ValueError(f"{path}: a Parquet file already names its columns.")
                yield ParquetSource(input_)
            else:
                yield DelimitedSource(input_, delimiter, encoding, header, names)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is damaged: {error}") from error


@contextmanager
def write_to(path: FilePath, source: Source, *, force: bool = False) -> Iterator[Sink]:
    """Open a `Sink` for rows of a source; the file appears when the block ends well.

    A pipe gets a table of the same kind as the source.
    """
    with written(path, force) as file, sink_to(file, path, source) as sink:
        yield sink


@contextmanager
def sink_to(file: BinaryIO, path: FilePath, source: Source) -> Iterator[Sink]:
    """Open a `Sink` that writes to a file; when the block ends, all bytes are there.

    path : what the file will be called, which tells its kind.
    """
    kind, compressed = kind_of(path, source.input.kind if is_pipe(path) else None)
    with compressed_if(file, compressed) as stream:
        if kind == "parquet":
            sink: Sink = ParquetSink(stream)
        elif isinstance(source, DelimitedSource):
            is_same = kind == source.input.kind
            delimiter = source.delimiter if is_same else DELIMITERS[kind]
            sink = DelimitedSink(stream, delimiter, source.encoding)
        else:
            sink = DelimitedSink(stream, DELIMITERS[kind])
        try:
            yield sink
        finally:
            sink.close()  # after an error too: if left open, it complains when it is collected
        sink.warn()
