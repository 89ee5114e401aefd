"""The protocol of files as tables, and where their bytes are: paths, pipes, compression.

What is read can be read twice. What is written appears whole or not at all.
"""

from __future__ import annotations

import glob
import gzip
import os
import secrets
import shutil
import stat
import sys
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

import pandas as pd
from tqdm.auto import tqdm

from .._messages import Message, Setting, doing, warn
from .._typing import FilePath, IntArray
from ..tables.table import ColumnType

PIPE = "-"
_STANDARD_OUTPUT = {PIPE, "/dev/stdout"}  # a device or not: it may be redirected to a file

_KINDS = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".parquet": "parquet", ".pq": "parquet"}
_GZIP_MAGIC = b"\x1f\x8b"
_PARQUET_MAGIC = b"PAR1"

_TOKEN_BYTES = 4  # tell hidden files of several processes apart

# Fast, and within a few percent of the size that gzip's own default reaches.
_COMPRESSION = 4

# Bytes, compressed on their way or not.
ByteStream: TypeAlias = BinaryIO | gzip.GzipFile


def kind_of(path: FilePath, kind: str | None = None) -> tuple[str, bool]:
    """Return what kind of table a file name promises, and whether it is compressed.

    kind : "csv", "tsv" or "parquet", for names that do not tell.
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    compressed = suffixes[-1:] == [".gz"]
    if compressed:
        suffixes = suffixes[:-1]
    found = _KINDS.get(suffixes[-1] if suffixes else "", kind)
    if found is None and str(path) == PIPE:
        found = "csv"
    if found is None:
        told = f"The name {str(path)!r} does not tell what kind of table it is: end it with .csv, "
        raise ValueError(told + ".tsv or .parquet (the first two also with .gz).")
    if compressed and found == "parquet":
        raise ValueError(f"{str(path)!r}: Parquet files are compressed already: use .parquet.")
    return found, compressed


@dataclass(frozen=True, eq=False)
class Input:
    """Bytes that can be read from the start as often as needed.

    name : for messages; kind : of table; raw : a file that can be rewound.
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
        """What changes when somebody writes to the file."""
        status = os.fstat(self.raw.fileno())
        return status.st_size, status.st_mtime_ns

    @property
    def size(self) -> int:
        """How many bytes there are, before they are decompressed."""
        return os.fstat(self.raw.fileno()).st_size


@contextmanager
def opened(path: FilePath, kind: str | None = None) -> Iterator[Input]:
    """Open a path, or "-" for the standard input, as an `Input`.

    A pipe is copied to a temporary file first.
    """
    found, compressed = kind_of(path, kind)
    if str(path) == PIPE and sys.stdin is None:
        raise ValueError("The standard input is closed.")
    source = sys.stdin.buffer if str(path) == PIPE else open(path, "rb")  # noqa: SIM115
    try:
        if source.seekable() and str(path) != PIPE:
            yield Input(str(path), found, source, compressed)
            return
        with temporary() as spool:
            shutil.copyfileobj(source, spool)
            spool.seek(0)
            magic = spool.read(4)
            kind_there = "parquet" if magic == _PARQUET_MAGIC else found
            yield Input(str(path), kind_there, spool, magic[:2] == _GZIP_MAGIC)
    finally:
        if str(path) != PIPE:
            source.close()


@contextmanager
def temporary() -> Iterator[BinaryIO]:
    """Yield a temporary file, to write and read.

    Only this user can read it, and it is gone with the process, whatever happens to that. It has
    no name, except on Windows, where it is in the user's own folder for temporary files.
    """
    with tempfile.TemporaryFile(prefix="skprivacy-") as file:
        yield cast(BinaryIO, file)  # on Windows it is an object that passes everything on


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
        told = f"{str(path)!r} already exists: use "
        raise FileExistsError(Message(told, Setting("force", True), " to replace it."))


def is_pipe(path: FilePath) -> bool:
    """Whether a path stands for a stream: "-", a named pipe or a device."""
    path = Path(path)
    if str(path) in _STANDARD_OUTPUT:
        return True
    return path.exists() and not path.is_dir() and not stat.S_ISREG(path.stat().st_mode)


@contextmanager
def written(path: FilePath, force: bool = False) -> Iterator[BinaryIO]:
    """Yield a binary file, to write and read, that becomes `path` if the block ends well.

    Before that there is only a hidden file beside it, which is removed after an error. A process
    that is killed leaves it, and the next one to write `path` warns of it. A pipe ("-" or a
    device) gets its bytes only at the end, too.
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
    # The name comes before the file: a signal may arrive as soon as there is one.
    name = target.with_name(f".{target.name}.{secrets.token_hex(_TOKEN_BYTES)}.part")
    try:
        for_the_owner = partial(os.open, mode=0o600)
        with open(name, "x+b", opener=for_the_owner) as file:
            yield file
            file.flush()
            if has_modes():
                os.chmod(file.fileno(), permissions)
            os.fsync(file.fileno())
        _publish(name, target, force)
    finally:
        name.unlink(missing_ok=True)


def _warn_of_unfinished(target: Path) -> None:
    """Name what is left of runs that were killed, or belongs to one that still runs."""
    token = "[0-9a-f]" * (2 * _TOKEN_BYTES)
    for path in sorted(target.parent.glob(f".{glob.escape(target.name)}.{token}.part")):
        told = f"{str(path)!r} is an unfinished {target.name!r} of another process: "
        warn(told + "delete it, unless that process is still running.")


def _copy_to_pipe(spool: BinaryIO, path: FilePath) -> None:
    if str(path) not in _STANDARD_OUTPUT:
        with open(path, "wb") as device:
            shutil.copyfileobj(spool, device)
        return
    shutil.copyfileobj(spool, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def _publish(name: Path, target: Path, force: bool) -> None:
    """Give a finished file its name, in one step."""
    if force:
        try:
            os.replace(name, target)
        except PermissionError as error:  # on Windows also while somebody reads it
            told = f"{str(target)!r} cannot be replaced: close it in other programs, "
            raise PermissionError(told + "or name another file.") from error
        return
    try:
        os.link(name, target)  # fails if the target was created in the meantime
    except FileExistsError:
        told = f"{str(target)!r} was created by another process in the meantime: "
        raise FileExistsError(told + "name another file.") from None
    except OSError:  # a file system without links
        check_free(target)
        os.rename(name, target)


def _permissions(target: Path) -> int:
    """Return those of the file that is replaced, or those that a new file gets."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


@contextmanager
def compressed_if(file: BinaryIO, compressed: bool) -> Iterator[ByteStream]:
    """Yield a file to write to, which compresses what it gets if `compressed` says so."""
    if not compressed:
        yield file
        return
    # Without a name and a time in it: the same rows give the same file.
    with gzip.GzipFile(
        filename="", mode="wb", fileobj=file, compresslevel=_COMPRESSION, mtime=0
    ) as stream:
        yield stream


# Tables in files, whatever their kind: read block by block, written block by block.


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
        """Return the type of a column; values : all that it has, as what they mean."""

    def watched_blocks(self, what: str, is_watched: bool) -> Iterator[Block]:
        """Yield the blocks, with a progress bar on the standard error if it is watched."""
        size, raw = self.input.size, self.input.raw
        options: dict[str, Any] = {"unit": "B", "unit_scale": True, "disable": not is_watched}
        doing(f"{what} rows")
        with tqdm(total=size, desc=what, **options) as bar:
            for block in self.blocks():
                yield block
                read = min(raw.tell(), size)
                doing(f"{what} rows, {read / size:.0%} of the file" if size else f"{what} rows")
                bar.update(read - bar.n)
            bar.update(size - bar.n)

    def check_names(self) -> None:
        """Check that each name stands for one column."""
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise ValueError(f"{self.input.name}: the column {twice[0]!r} appears twice.")


class Block(ABC):
    """Some rows of a table."""

    @abstractmethod
    def __len__(self) -> int:
        """Return how many rows there are."""

    @abstractmethod
    def column(self, position: int, rows: slice | IntArray = slice(None)) -> pd.Series:
        """Return a column as a pandas Series; of a text file, texts as a category."""

    @abstractmethod
    def frame(self, positions: Sequence[int], families: Sequence[str]) -> Any:
        """Return columns as a frame that a transformer takes.

        families : what the texts of each are, "numbers" or "str" for instance.
        """


class Sink(ABC):
    """A table that is being written."""

    @abstractmethod
    def write(self, block: Block, parts: Mapping[str, Any]) -> None:
        """Write the rows of a block.

        parts : ``{name: part}`` in order; a part is the position of a column that is copied, or
        a new column.
        """

    def warn(self) -> None:  # noqa: B027
        """Warn, once all rows are written, of what people who open the file should know."""

    @abstractmethod
    def close(self) -> None:
        """Write what is still missing."""
