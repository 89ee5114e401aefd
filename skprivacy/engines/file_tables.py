"""The protocol of files as tables; opening paths, pipes and compressed files.

Inputs can be read several times; outputs are written atomically. Errors about files must not wait
for other libraries, so none is imported here.
"""

from __future__ import annotations

import glob
import gzip
import hashlib
import io
import os
import secrets
import shutil
import stat
import sys
import tempfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, cast

from .._messages import Message, doing, progress_bar, warn

if TYPE_CHECKING:
    import pandas as pd

    from .._typing import FilePath, IntArray
    from ..tables.table import ColumnType

PIPE = "-"
_STANDARD_OUTPUT = {PIPE, "/dev/stdout"}  # a device or not: it may be redirected to a file

_KINDS = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".parquet": "parquet", ".pq": "parquet"}

_SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods", ".numbers")

_TOKEN_BYTES = 4  # of a random name

# Compressed or not.
ByteStream: TypeAlias = BinaryIO | gzip.GzipFile


def kind_of(path: FilePath, kind: str | None = None) -> tuple[str, bool]:
    """Return the kind of table by the name of a file, and whether it is compressed.

    kind : "csv", "tsv" or "parquet", for names without a known suffix.
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    compressed = suffixes[-1:] == [".gz"]
    if compressed:
        suffixes = suffixes[:-1]
    found = _KINDS.get(suffixes[-1] if suffixes else "", kind)
    if found is None and str(path) == PIPE:
        found = "csv"
    if found is None:
        advice = "end it with .csv, .tsv or .parquet (the first two also with .gz)"
        if suffixes and suffixes[-1] in _SPREADSHEETS:
            advice = "save it as CSV first (in Excel: Save As, CSV UTF-8)"
        raise ValueError(f"{str(path)!r} has no suffix of a kind of table: {advice}.")
    if compressed and found == "parquet":
        raise ValueError(f"{str(path)!r}: Parquet files are compressed already: use .parquet.")
    return found, compressed


def check_delimiter(delimiter: str) -> str:
    """Return a delimiter, if it is one byte that can separate fields."""
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        what = "a single ASCII character other than a quote or a line end"
        raise ValueError(f"The delimiter {delimiter!r} is not {what}.")
    return delimiter


def check_encoding(encoding: str) -> str:
    """Return an encoding in which delimiters, quotes and line ends are single ASCII bytes.

    No other character may have these bytes, as some have in iso2022_jp.
    """
    encoding = "utf-8" if encoding.lower() in ("utf-8-sig", "utf_8_sig") else encoding
    try:
        agrees = '",;\t\r\nA'.encode(encoding) == b'",;\t\r\nA'
    except LookupError:
        raise ValueError(f"{encoding!r} is not an encoding.") from None
    others = "".join(map(chr, [*range(0x80, 0xD800), *range(0xE000, 0x10000)]))
    if not agrees or set(b'",;\t\r\n') & set(others.encode(encoding, "ignore")):
        raise ValueError(f"{encoding} is not compatible with ASCII: convert the file to UTF-8.")
    return encoding


@dataclass(frozen=True, eq=False)
class Input:
    """Bytes that can be read from the start several times.

    name : for messages; kind : of table; raw : a seekable file.
    """

    name: str
    kind: str
    raw: BinaryIO
    compressed: bool

    def stream(self) -> ByteStream:
        """Return the bytes, decompressed, from the start."""
        self.raw.seek(0)
        return gzip.GzipFile(fileobj=self.raw) if self.compressed else self.raw

    @property
    def stamp(self) -> tuple[int, int]:
        """A key that changes when somebody writes to the file."""
        with suppress(io.UnsupportedOperation):  # bytes in memory
            return self.size, os.fstat(self.raw.fileno()).st_mtime_ns
        return self.size, 0

    @property
    def size(self) -> int:
        """The number of bytes, before decompression."""
        here, size = self.raw.tell(), self.raw.seek(0, os.SEEK_END)
        self.raw.seek(here)
        return size


@contextmanager
def opened(path: FilePath | BinaryIO, kind: str | None = None) -> Iterator[Input]:
    """Open a path, or "-" for the standard input, as an `Input`.

    A pipe is copied to a temporary file first. An open binary file is read and stays open.
    """
    found, compressed = kind_of(name_of(path), kind)
    if str(path) == PIPE and sys.stdin is None:
        raise ValueError("The standard input is closed.")
    is_open = str(path) == PIPE or not isinstance(path, str | Path)
    source = _stream_of(path)
    try:
        if source.seekable() and str(path) != PIPE:
            yield Input(name_of(path), found, source, compressed)
            return
        with temporary() as spool:
            shutil.copyfileobj(source, spool)
            spool.seek(0)
            magic = spool.read(4)
            found = "parquet" if magic == b"PAR1" else found
            yield Input(name_of(path), found, spool, compressed=magic.startswith(b"\x1f\x8b"))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{name_of(path)} is damaged: {error}") from error
    finally:
        if not is_open:
            source.close()


def name_of(path: FilePath | BinaryIO) -> str:
    """Return the name of a path or of an open file."""
    return str(path if isinstance(path, str | Path) else getattr(path, "name", "the file"))


def _stream_of(path: FilePath | BinaryIO) -> BinaryIO:
    """Return the bytes of a path, of the standard input, or of an open file."""
    if not isinstance(path, str | Path):
        return path
    return sys.stdin.buffer if str(path) == PIPE else open(path, "rb")


@contextmanager
def temporary() -> Iterator[BinaryIO]:
    """Yield a temporary file, to write and read.

    Only this user can read it, and it disappears with the process, however that ends. It has no
    name, except on Windows, where it is in the user's folder for temporary files.
    """
    with tempfile.TemporaryFile(prefix="skprivacy-") as file:
        yield cast(BinaryIO, file)  # on Windows it is a wrapper


def has_modes() -> bool:
    """Whether a file has a mode: on Windows it has the permissions of its folder instead."""
    return hasattr(os, "getuid")


def check_free(path: FilePath, force: bool = False) -> None:
    """Check that a file may be written: it does not exist, or `force` is set."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder: name a file.")
    if is_pipe(path):
        return
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {str(path.parent)!r} does not exist.")
    if path.exists() and not force:
        template = "{path!r} already exists: use {force=True} to replace it."
        raise FileExistsError(Message.of(template, path=str(path)))


def is_pipe(path: FilePath) -> bool:
    """Whether a path stands for a stream: "-", a named pipe or a device."""
    path = Path(path)
    if str(path) in _STANDARD_OUTPUT:
        return True
    return path.exists() and not path.is_dir() and not stat.S_ISREG(path.stat().st_mode)


@contextmanager
def written(path: FilePath, force: bool = False) -> Iterator[BinaryIO]:
    """Yield a binary file, to write and read, that becomes `path` if the block ends well.

    Before that it is a hidden file beside `path`, which is removed after an error. A process that
    is killed leaves it, and the next one to write `path` warns of it. A pipe ("-" or a device)
    gets its bytes only at the end, too.
    """
    check_free(path, force)
    if is_pipe(path):
        with temporary() as spool:
            yield spool
            spool.seek(0)
            _copy_to_pipe(spool, path)
        return
    target = Path(path).resolve()
    _warn_of_unfinished(target)
    permissions = _permissions(target)
    # Known before there is a file, because a signal may arrive as soon as there is one.
    name = target.with_name(f".{target.name}.{secrets.token_hex(_TOKEN_BYTES)}.part")
    try:
        with open(name, "x+b", opener=partial(os.open, mode=0o600)) as file:
            yield file
            file.flush()
            if has_modes():
                os.chmod(file.fileno(), permissions)
            os.fsync(file.fileno())
        _publish(name, target, force)
    finally:
        name.unlink(missing_ok=True)


def _warn_of_unfinished(target: Path) -> None:
    """Warn of hidden files of processes that were killed, or are still running."""
    token = "[0-9a-f]" * (2 * _TOKEN_BYTES)
    for path in sorted(target.parent.glob(f".{glob.escape(target.name)}.{token}.part")):
        advice = "delete it, unless that process is still running"
        warn(f"{str(path)!r} is an unfinished {target.name!r} of another process: {advice}.")


def _copy_to_pipe(spool: BinaryIO, path: FilePath) -> None:
    if str(path) not in _STANDARD_OUTPUT:
        with open(path, "wb") as device:
            shutil.copyfileobj(spool, device)
        return
    shutil.copyfileobj(spool, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def _publish(name: Path, target: Path, force: bool) -> None:
    """Rename a finished file atomically."""
    if force:
        try:
            os.replace(name, target)
        except PermissionError as error:  # on Windows also while somebody reads it
            advice = "close it in other programs, or name another file"
            raise PermissionError(f"{str(target)!r} cannot be replaced: {advice}.") from error
        return
    try:
        os.link(name, target)  # fails if the target was created in the meantime
    except FileExistsError:
        meanwhile = "was created by another process in the meantime: name another file"
        raise FileExistsError(f"{str(target)!r} {meanwhile}.") from None
    except OSError:  # a file system without links
        check_free(target)
        os.rename(name, target)


def _permissions(target: Path) -> int:
    """Return the permissions of the file that is replaced, or of a new file."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


@contextmanager
def compressed_if(file: BinaryIO, compressed: bool) -> Iterator[ByteStream]:
    """Yield a file to write to, which compresses if `compressed`."""
    if not compressed:
        yield file
        return
    # Without a name and a time in it: the same rows give the same file. Level 4 is fast, and
    # within a few percent of the size of the default.
    with gzip.GzipFile("", "wb", compresslevel=4, fileobj=file, mtime=0) as stream:
        yield stream


# The protocol of tables in files: read block by block, written block by block.


class Source(ABC):
    """A table in a file.

    names : of its columns; input : the `Input` that it is read from.
    """

    names: list[str]
    input: Input

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Yield the rows from the start as `Block`s, at least one."""

    @abstractmethod
    def type_of(self, position: int, values: pd.Series) -> ColumnType:
        """Return the type of a column; values : of the column, converted."""

    def watched_blocks(self, what: str, is_watched: bool) -> Iterator[Block]:
        """Yield the blocks, with a progress bar on the standard error if it is watched."""
        size, raw = self.input.size, self.input.raw
        doing(f"{what} rows")
        options: dict[str, Any] = {"total": size, "desc": what, "unit": "B", "unit_scale": True}
        with progress_bar(is_shown=is_watched, **options) as bar:
            for block in self.blocks():
                yield block
                read = min(raw.tell(), size)
                doing(f"{what} rows, {read / size:.0%} of the file" if size else f"{what} rows")
                bar.update(read - bar.n)
            bar.update(size - bar.n)

    def check_names(self) -> None:
        """Check that no two columns have the same name."""
        if twice := [name for name, count in Counter(self.names).items() if count > 1]:
            raise ValueError(f"{self.input.name}: the column {twice[0]!r} appears twice.")


class Block(ABC):
    """Some rows of a table."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def column(self, position: int, rows: slice | IntArray = slice(None)) -> pd.Series:
        """Return a column as a pandas Series; of a text file, texts as a category."""

    @abstractmethod
    def frame(self, positions: Sequence[int], families: Sequence[str]) -> Any:
        """Return columns as a frame; families : of the texts of each, such as "numbers"."""


class Sink(ABC):
    """A table that is being written."""

    @abstractmethod
    def write(self, block: Block, parts: Mapping[str, Any]) -> None:
        """Write the rows of a block.

        parts : ``{name: part}`` in order; a part is the position of a column that is copied, or
        a new column.
        """

    def warn(self) -> None:  # noqa: B027
        """Warn, once all rows are written, of dangers for people who open the file."""

    def close(self) -> None:  # noqa: B027
        """Write rows that are still in memory."""


def sha256_of(file: Any) -> str:
    """Return the fingerprint of all bytes of a file that can be rewound."""
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()
