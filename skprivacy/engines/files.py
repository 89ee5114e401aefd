"""Files as tables: opened, counted, and rewritten block by block."""

from __future__ import annotations

import gzip
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Container, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from itertools import zip_longest
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from .._messages import Message, Named
from .._typing import FilePath, IntArray, NamedColumns, Seed
from ..encoding.columns import BinsLike, Edges
from ..encoding.values import family_of
from ..fitted import Fitted
from ..fitting.counted_tables import CountedTable, Distinct, SampledRows, add_rows
from ..fitting.inputs import CountedColumns, FitInputs
from ..fitting.leak_warnings import Judgement, warn_of_passed_through
from ..fitting.learn import fit_mechanism
from ..fitting.parameters import Settings
from ..fitting.tally import NUMBER, RowNumbers, RowSample, Tally
from ..releasing.keyed import RecordKeys, RecordNoise, RecordSource, noise_source, repeated
from ..releasing.record_ids import folds_of_keys, n_repeated
from ..releasing.release import Release, notice_unknown, release_of
from ..releasing.sampler import FreshSource, Noise, NoiseKey, RowNoise, Words
from ..tables.frames import as_table
from ..tables.table import ColumnRoles, ColumnType
from .csv_files import (
    DELIMITERS,
    DelimitedSink,
    DelimitedSource,
    are_numbers,
    has_values,
    meant,
    written_numbers,
)
from .file_tables import (
    Block,
    Sink,
    Source,
    compressed_if,
    is_pipe,
    kind_of,
    opened,
    temporary,
    written,
)
from .parquet_files import ParquetSink, ParquetSource


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


# A file as a table that is counted, one pass for each count; and what fitting to it gives.


class FileTable(CountedTable):
    """A table in a file.

    families : what the texts of some columns are, "numbers" or "str" for instance; those of others
    are found out; with_sample : whether rows are sampled even if no column is passed through.
    """

    where = "the file"
    target = ("target", "fit_file")

    def __init__(
        self,
        source: Source,
        *,
        families: Mapping[Any, str] | None = None,
        with_sample: bool = False,
        is_watched: bool = False,
    ) -> None:
        self.source, self.names, self._is_watched = source, source.names, is_watched
        self.title = source.input.name
        self._families, self._edges = dict(families or {}), dict[Any, BinsLike]()
        # Columns whose texts may be numbers or not, as long as no row is known to settle it.
        self._open: set[Any] = set()
        self._with_sample, self._sample, self._is_sampled = with_sample, RowSample([]), False

    def prepare(self, roles: ColumnRoles, counted: CountedColumns, edges: Edges) -> None:
        self._edges = dict(edges)
        self._families = dict.fromkeys(edges, "numbers") | dict.fromkeys(counted.person, "str")
        self._open = {*counted.in_table} - {*self._families}
        if self._with_sample or roles.kept_positions:
            others = *roles.s_positions, *roles.kept_positions, roles.person_position
            positions = {*roles.read_positions, *others}
            names = [name for p, name in enumerate(self.names) if p in positions]
            self._sample = RowSample(names, whole=counted.in_table)

    def count(
        self, names: Sequence[Any], edges: Edges, limit: int, numbers: RowNumbers | None = None
    ) -> Distinct:
        tally, n_changed = Tally(names, edges=edges, limit=limit), 0
        for block in self._blocks():
            found = None
            if numbers is not None:
                n_changed += self._settle(block)
                found = numbers.of_frame(self._frame(block, numbers.read))
            add_rows(tally, self._reader(block), found)
        if n_changed:  # what was taken for numbers so far has other words as texts
            return self.count(names, edges, limit, numbers)
        if numbers is not None:
            self._open = set()  # all rows have been looked at
        distinct = Distinct.of(tally)
        numbered = {NUMBER: distinct.columns.pop(NUMBER)} if NUMBER in distinct.columns else {}
        return replace(distinct, columns=self._typed(distinct.columns) | numbered)

    def _blocks(self) -> Iterator[Block]:
        """Yield the blocks; rows are sampled in the first pass that reaches the end."""
        sample = self._sample.emptied()
        for block in self.source.watched_blocks("counting", self._is_watched):
            yield block
            if not self._is_sampled:
                sample.add(len(block), _reader(block, self.names))
        if not self._is_sampled:
            self._sample, self._is_sampled = sample, True

    def _reader(self, block: Block) -> Callable[[Any, slice | IntArray], pd.Series]:
        read = _reader(block, self.names)

        def column_of(name: Any, rows: slice | IntArray) -> pd.Series:
            column = read(name, rows)
            if name not in self._edges or not isinstance(column.dtype, pd.CategoricalDtype):
                return column
            return meant(column, "numbers", name)  # others wait until all are known

        return column_of

    def _frame(self, block: Block, names: Sequence[Any]) -> Any:
        families = [self._families.get(name, "str") for name in names]
        return block.frame([self.names.index(name) for name in names], families)

    def _settle(self, block: Block) -> bool:
        """Look at texts of some more rows; return whether any were wrongly taken for numbers."""
        is_changed, is_text = False, isinstance(self.source, DelimitedSource)
        for name in sorted(self._open) if is_text else ():
            texts = block.column(self.names.index(name)).cat.categories
            if are_numbers(texts):
                self._families[name] = "numbers"
            elif has_values(texts):  # once a text, always a text
                is_changed |= self._families.get(name) == "numbers"
                self._families[name] = "str"
                self._open.remove(name)
        return is_changed

    def _typed(self, columns: Mapping[Any, pd.Series]) -> NamedColumns:
        """Return columns as what they mean."""
        if not isinstance(self.source, DelimitedSource):
            return {name: _decoded(column) for name, column in columns.items()}
        for name in columns.keys() - self._families.keys():
            self._families[name] = _family(columns[name])
        return {name: _meant(column, self._families[name]) for name, column in columns.items()}

    def sample(self, n_rows: int) -> SampledRows:
        rows = self._sample.rows()
        if not isinstance(self.source, DelimitedSource):
            return SampledRows(dict(rows.items()))
        typed = self._typed(dict(rows.items()))
        of_numbers = [name for name in typed if self._families[name] == "numbers"]
        written = {name: written_numbers(rows[name]) for name in of_numbers}
        return SampledRows(typed, written=written)

    def types(self, names: Sequence[str], values: NamedColumns) -> tuple[ColumnType, ...]:
        return tuple(self.source.type_of(self.names.index(n), values[n]) for n in names)


def count_source(
    settings: Settings,
    source: Source,
    *,
    target: str | None = None,
    apart: Collection[str] = (),
    is_watched: bool = False,
) -> FitInputs:
    """Count S and X of a file as the settings name them; see `CountedTable.inputs`."""
    return FileTable(source, is_watched=is_watched).inputs(settings, target, apart)


def fit_source(
    settings: Settings,
    source: Source,
    *,
    target: str | None = None,
    apart: Collection[str] = (),
    with_sample: bool = False,
    allow_leaking: bool = True,
    is_watched: bool = False,
) -> tuple[Fitted, pd.DataFrame]:
    """Return what fitting to a file gives, and some of its rows if they are asked for.

    allow_leaking : whether a column that is copied may exceed the budget.
    """
    table = FileTable(source, with_sample=with_sample, is_watched=is_watched)
    inputs = table.inputs(settings, target, apart)
    fitted = fit_mechanism(settings, inputs, allow_leaking=allow_leaking)
    return fitted, pd.DataFrame(table.sample(inputs.rows.n_rows).columns)


def held_out_table(fitted: Fitted, source: Source, *, is_watched: bool = False) -> FileTable:
    """Return a table of rows that a design has not seen: texts of X are what they are to it."""
    names = map(fitted.roles.name, fitted.roles.read_positions)
    families = dict(zip(names, families_of(fitted), strict=True))
    return FileTable(source, families=families, is_watched=is_watched)


def sample_source(
    source: Source, limit: int, *, is_watched: bool = False
) -> tuple[pd.DataFrame, int]:
    """Return some rows of a file, spread over it, and how many rows it has."""
    sample, n_rows = RowSample(source.names, limit), 0
    for block in source.watched_blocks("reading", is_watched):
        sample.add(len(block), _reader(block, source.names))
        n_rows += len(block)
    rows = sample.rows()
    if isinstance(source, DelimitedSource):
        rows = pd.DataFrame({name: _meant(rows[name], _family(rows[name])) for name in rows})
    return rows, n_rows


def _reader(
    block: Block, names: Sequence[Hashable]
) -> Callable[[Any, slice | IntArray], pd.Series]:
    position_of = {name: position for position, name in enumerate(names)}
    return lambda name, rows: block.column(position_of[name], rows)


def _family(texts: pd.Series) -> str:
    return "numbers" if are_numbers(texts.unique()) else "str"


def _decoded(column: pd.Series) -> pd.Series:
    """Return a dictionary-encoded column as its values, which have no order of their own.

    A sample holds all values as objects: numbers and times get their types back.
    """
    is_dictionary = isinstance(column.dtype, pd.CategoricalDtype)
    return column.astype(column.cat.categories.dtype) if is_dictionary else column.infer_objects()


def _meant(column: pd.Series, family: str) -> pd.Series:
    """Return a column of texts as what it means, categories without an order of their own."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column
    typed = meant(pd.Series(pd.Categorical(column)), family, column.name)
    return typed if family == "numbers" else typed.astype(object)


def families_of(fitted: Fitted) -> list[str]:
    """Return what the values of each column of X, and of those beside it, are."""
    columns = [column.values for column in fitted.alphabet.read_columns]
    return [family_of([v for v in values if v is not None], "X") for values in columns]


# How many rows repeat the id of another row, over a file of any size.


RUN_ROWS = 1 << 20  # kept in memory: 8 MB
_ROW_BYTES = 8
_SHARE_BITS = 10  # of a hash, which say in which of 1,024 shares it is


class RepeatedIds(AbstractContextManager["RepeatedIds"]):
    """Hashes of ids, compared at the end.

    Beyond a million rows they go to a temporary file, 8 bytes for each row. Each run of rows in
    it is ordered by the first bits of the hashes, so that the rows of equal ids can be read
    together, a share of all ids at a time.
    """

    def __init__(self) -> None:
        self._waiting: list[Words] = []
        self._n_waiting = self._n_written = 0
        self._runs: list[IntArray] = []  # where each share begins, and the last one ends
        self._file: BinaryIO | None = None
        self._closing = ExitStack()

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def add(self, hashes: Words) -> None:
        """Take note of some rows."""
        self._waiting.append(hashes)
        self._n_waiting += len(hashes)
        if self._n_waiting >= RUN_ROWS:
            self._write(self._taken())

    def n_repeated(self) -> int:
        """Return how many rows repeat the id of an earlier row."""
        if self._file is None:
            return n_repeated(self._taken())
        self._write(self._taken())
        return sum(n_repeated(self._share(self._file, i)) for i in range(1 << _SHARE_BITS))

    def _taken(self) -> Words:
        hashes = np.concatenate([np.empty(0, dtype=np.uint64), *self._waiting])
        self._waiting, self._n_waiting = [], 0
        return hashes

    def _write(self, hashes: Words) -> None:
        if self._file is None:
            self._file = self._closing.enter_context(temporary())
        shares = (hashes >> np.uint64(64 - _SHARE_BITS)).astype(np.uint16)
        sizes = np.bincount(shares, minlength=1 << _SHARE_BITS)
        self._runs.append(self._n_written + np.concatenate([[0], sizes.cumsum()]))
        self._file.write(hashes[shares.argsort(kind="stable")].tobytes())
        self._n_written += len(hashes)

    def _share(self, file: BinaryIO, share: int) -> Words:
        pieces = []
        for run in self._runs:
            begin, end = run[share : share + 2].tolist()
            file.seek(begin * _ROW_BYTES)
            pieces.append(file.read((end - begin) * _ROW_BYTES))
        return np.frombuffer(b"".join(pieces), dtype=np.uint64)


# The noise of a file, block by block: fresh, or by the ids in one of its columns.


class BlockNoise(ABC):
    """Where the noise of the blocks of a file comes from."""

    @abstractmethod
    def of(self, block: Block, first: int) -> Noise:
        """Return the noise of a block; first : the number of its first row."""

    def check(self) -> None:  # noqa: B027
        """Check, after the last block, that no two rows had the same noise."""


@contextmanager
def noise_of_blocks(
    release: Release,
    random_state: Seed | np.random.RandomState,
    source: Source,
    record_ids: str | None,
    secret_key: bytes | None,
) -> Iterator[BlockNoise]:
    """Yield the noise of a file: by `record_ids`, the name of a column of ids, or else fresh."""
    if record_ids is not None and not isinstance(record_ids, str):
        told = Named("record_ids"), f" must be the name of a column of {source.input.name}. "
        raise TypeError(Message(*told, f"Got a value of type {type(record_ids).__name__}."))
    noise = noise_source(release, random_state, record_ids, secret_key)
    if isinstance(noise, FreshSource):
        yield _FreshBlocks(noise.key)
        return
    assert isinstance(noise, RecordSource)
    position = id_position(source, noise.column)
    with RepeatedIds() as seen:
        yield _KeyedBlocks(noise.keys, source, position, seen)


def id_position(source: Source, column: str) -> int:
    """Return the position of the column of ids, which must be there."""
    header = as_table(pd.DataFrame(columns=source.names), "transform_file")
    (position,) = header.positions("transform_file", "record_ids", [column])
    return position


class _FreshBlocks(BlockNoise):
    def __init__(self, key: NoiseKey) -> None:
        self._key = key

    def of(self, block: Block, first: int) -> RowNoise:
        return RowNoise(self._key, range(first, first + len(block)))


class _KeyedBlocks(BlockNoise):
    def __init__(self, keys: RecordKeys, source: Source, position: int, seen: RepeatedIds) -> None:
        self._keys, self._source, self._position, self._seen = keys, source, position, seen

    def of(self, block: Block, first: int) -> RecordNoise:
        ids = block.column(self._position)
        if _are_missing(ids).any():
            raise self._missing_error()
        noise = RecordNoise(self._keys, ids)
        self._seen.add(noise.identities())
        return noise

    def _missing_error(self) -> ValueError:
        """Return an error that says how many ids are missing in all of the file."""
        n_missing = n_rows = 0
        for block in self._source.blocks():
            n_missing += int(_are_missing(block.column(self._position)).sum())
            n_rows += len(block)
        told = Named("record_ids"), f" names {self._source.names[self._position]!r}, which is "
        why = f"missing in {n_missing:,} of the {n_rows:,} rows of {self._source.input.name}: "
        return ValueError(Message(*told, why, "every row needs an id of its own."))

    def check(self) -> None:
        if (n_repeated := self._seen.n_repeated()) > 0:
            name, file = self._source.names[self._position], self._source.input.name
            told = Named("record_ids"), f" names {name!r}, which must be unique in {file}: "
            raise ValueError(Message(*told, repeated(n_repeated)))


def _are_missing(ids: pd.Series) -> pd.Series:
    """Tell which ids are missing: empty fields of a text file, nulls of a Parquet file."""
    return ids.isna() | ids.eq("").fillna(False).astype(bool)


# The pass over a file that rewrites it, with X replaced by Y.


_CATEGORY = ColumnType("category")


def release_rows(
    fitted: Fitted,
    settings: Settings,
    source: Source,
    sink: Sink,
    *,
    record_ids: str | None = None,
    secret_key: bytes | None = None,
    copied: Container[Hashable] | None = None,
    allow_leaking: bool = True,
    is_watched: bool = False,
) -> int:
    """Write the rows of a source with X replaced by Y, and return how many there were.

    copied : which of the columns that may be copied are copied, None for all; allow_leaking :
    whether one of them may exceed the budget.
    """
    roles, owner = fitted.roles, settings.owner
    if copied is not None:
        roles = roles.keeping(copied)
        found = Judgement.restored(fitted.leaking, copied)
        warn_of_passed_through(found, fitted.mechanism.epsilon, allow_leaking)
    header = as_table(pd.DataFrame(columns=source.names), owner)
    positions = roles.match(header, owner)
    x_positions = [positions[p] for p in roles.read_positions]
    families, key_position = families_of(fitted), roles.group_in(header, owner)
    release = release_of(fitted, settings.output, settings.handle_unknown, owner)
    if isinstance(source, DelimitedSource):  # which writes categories without looking at each row
        types = zip_longest(release.types, families)
        release = replace(release, types=tuple(_CATEGORY if f == "str" else t for t, f in types))
    n_rows, unknown = 0, Counter[Hashable]()
    with noise_of_blocks(release, settings.random_state, source, record_ids, secret_key) as noise:
        for block in source.watched_blocks("releasing", is_watched):
            table = as_table(block.frame(x_positions, families), owner)
            own, of_block = range(len(x_positions)), noise.of(block, n_rows)
            folds = None
            if key_position is not None:
                folds = folds_of_keys(block.column(key_position), source.names[key_position])
            released = release.replacements(table, own, of_block, unknown, folds)
            parts: dict[str, Any] = {}
            for position in roles.order:
                if position in roles.kept_positions:
                    parts[str(roles.name(position))] = positions[position]
                else:
                    parts |= {str(name): column for name, column in released.get(position, [])}
            sink.write(block, parts)
            n_rows += len(block)
        noise.check()
    notice_unknown([source.names[position] for position in x_positions], unknown)
    return n_rows
