"""Files as tables: opened, counted, and rewritten block by block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from itertools import zip_longest
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from .._messages import Message, warn
from .._typing import FilePath, IntArray, NamedColumns
from ..encoding.columns import BinsLike, Edges
from ..encoding.values import family_of
from ..fitted import Fitted
from ..fitting.counted_tables import CountedTable, Distinct, SampledRows, add_rows
from ..fitting.inputs import CountedColumns, FitInputs
from ..fitting.leak_warnings import Judgement, warn_of_passed_through
from ..fitting.learn import fit_mechanism
from ..fitting.parameters import Settings
from ..fitting.tally import NUMBER, RowNumbers, RowSample, Tally
from ..releasing.keyed import RecordNoise, RecordSource, noise_source, repeated
from ..releasing.record_ids import folds_of_keys, n_repeated
from ..releasing.release import OF_TARGET, Release, notice_unknown, release_of
from ..releasing.sampler import FreshSource, Noise, RowNoise, Words
from ..tables.frames import as_table
from ..tables.table import ColumnRoles, ColumnType
from .csv_files import (
    DelimitedSink,
    DelimitedSource,
    NotNumbersError,
    are_mostly_numbers,
    converted,
    rows_without_numbers,
    written_numbers,
)
from .csv_text import DELIMITERS, are_numbers, has_values
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
    path: FilePath | BinaryIO,
    *,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    header: bool | None = None,
    names: Sequence[str] | None = None,
) -> Iterator[Source]:
    """Open a file as a `Source`; format : "csv", "tsv" or "parquet", if no name shows it."""
    with opened(path, format) as input_:
        if input_.kind == "parquet":
            if header is False or names is not None:
                raise ValueError(f"{input_.name}: a Parquet file already names its columns.")
            yield ParquetSource(input_)
        else:
            yield DelimitedSource(input_, delimiter, encoding, header, names)


@contextmanager
def write_to(path: FilePath, source: Source, *, force: bool = False) -> Iterator[Sink]:
    """Open a `Sink` for rows of a source; the file is written atomically when the block ends.

    A pipe gets a table of the same kind as the source.
    """
    with written(path, force) as file, sink_to(file, path, source) as sink:
        yield sink


@contextmanager
def sink_to(file: BinaryIO, path: FilePath, source: Source) -> Iterator[Sink]:
    """Open a `Sink` that writes to a file, and closes it when the block ends.

    path : the name of the file, which determines its kind.
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
            sink.close()  # after an error too: an open one would warn when it is collected
        sink.warn()


# A file as a table that is counted, one pass for each count.


class FileTable(CountedTable):
    """A table in a file.

    families : of the texts of some columns, such as "numbers" or "str"; others are inferred;
    with_sample : whether rows are sampled even if no column is passed through.
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
        # Columns of texts that may turn out to be numbers or not.
        self._open: set[Any] = set()
        self._is_noticed, self._secret = set[Any](), set[Any]()
        self._with_sample, self._sample, self._is_sampled = with_sample, RowSample([]), False

    def prepare(self, roles: ColumnRoles, counted: CountedColumns, edges: Edges) -> None:
        self._edges = dict(edges)
        self._secret = {self.names[position] for position in roles.s_positions}
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
        with _naming_all(self.source, self._families, self._secret):
            for block in self._blocks():
                found = None
                if numbers is not None:
                    n_changed += self._settle(block)
                    found = numbers.of_frame(self._frame(block, numbers.read))
                add_rows(tally, self._reader(block), found)
        if n_changed:  # texts that were taken for numbers got other row numbers
            return self.count(names, edges, limit, numbers)
        if numbers is not None:
            self._open = set()  # all rows were read
        distinct = Distinct.of(tally)
        numbered = {NUMBER: distinct.columns.pop(NUMBER)} if NUMBER in distinct.columns else {}
        return replace(distinct, columns=self._typed(distinct.columns) | numbered)

    def _blocks(self) -> Iterator[Block]:
        """Yield the blocks, and sample rows in the first pass that reaches the end."""
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
            return converted(
                column, "numbers", name
            )  # others are converted once all texts are known

        return column_of

    def _frame(self, block: Block, names: Sequence[Any]) -> Any:
        families = [self._families.get(name, "str") for name in names]
        return block.frame([self.names.index(name) for name in names], families)

    def _settle(self, block: Block) -> bool:
        """Update the families by some more rows; return whether any numbers became texts."""
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
        """Return columns of texts converted to their families."""
        if not isinstance(self.source, DelimitedSource):
            return {name: _decoded(column) for name, column in columns.items()}
        for name in columns.keys() - self._families.keys():
            self._families[name] = _family(columns[name])
        self._notice_texts(columns)
        return {name: _converted(column, self._families[name]) for name, column in columns.items()}

    def _notice_texts(self, columns: Mapping[Any, pd.Series]) -> None:
        """Warn, once, of columns that would be numbers but for a few rows."""
        assert isinstance(self.source, DelimitedSource)
        texts = [n for n in columns if self._families[n] == "str" and n not in self._is_noticed]
        self._is_noticed |= {*texts}
        if odd := [name for name in texts if are_mostly_numbers(columns[name].unique())]:
            where = rows_without_numbers(self.source, odd, self._secret)
            warn(
                f"Nearly all values of these columns are numbers, but not all, so they are read "
                f"as texts: {where} (row 1 is below the header)."
            )

    def sample(self, n_rows: int) -> SampledRows:
        rows = self._sample.rows()
        if not isinstance(self.source, DelimitedSource):
            return SampledRows({name: _decoded(column) for name, column in rows.items()})
        typed = self._typed(dict(rows.items()))
        of_numbers = [name for name in typed if self._families[name] == "numbers"]
        written = {name: written_numbers(rows[name]) for name in of_numbers}
        return SampledRows(typed, written=written)

    def types(self, names: Sequence[str], values: NamedColumns) -> tuple[ColumnType, ...]:
        return tuple(self.source.type_of(self.names.index(n), values[n]) for n in names)


@contextmanager
def _naming_all(
    source: Source, families: Mapping[Any, str], secret: Collection[Any] = ()
) -> Iterator[None]:
    """Name all columns of numbers that hold a text, with their rows, in place of the first one."""
    try:
        yield
    except NotNumbersError as error:
        assert isinstance(source, DelimitedSource)
        names = [name for name, family in families.items() if family == "numbers"]
        raise ValueError(
            f"{source.input.name} holds texts where numbers are expected: "
            f"{rows_without_numbers(source, names, secret)} (row 1 is below the header)."
        ) from error


def count_source(
    settings: Settings,
    source: Source,
    *,
    target: str | None = None,
    apart: Collection[str] = (),
    is_watched: bool = False,
) -> FitInputs:
    """Return the inputs of `fit` from a file; see `CountedTable.inputs`."""
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
    """Return the result of fitting to a file, and some of its rows if `with_sample`.

    allow_leaking : whether a column that is copied may exceed the budget.
    """
    table = FileTable(source, with_sample=with_sample, is_watched=is_watched)
    inputs = table.inputs(settings, target, apart)
    fitted = fit_mechanism(settings, inputs, allow_leaking=allow_leaking)
    return fitted, pd.DataFrame(table.sample(inputs.rows.n_rows).columns)


def held_out_table(fitted: Fitted, source: Source, *, is_watched: bool = False) -> FileTable:
    """Return a file as a table of other rows, with the families of X in `fit`."""
    names = map(fitted.roles.name, fitted.roles.read_positions)
    families = dict(zip(names, families_of(fitted), strict=True))
    return FileTable(source, families=families, is_watched=is_watched)


def sample_source(
    source: Source, limit: int, *, is_watched: bool = False
) -> tuple[pd.DataFrame, int]:
    """Return a sample of the rows of a file, and the number of its rows."""
    sample, n_rows = RowSample(source.names, limit), 0
    for block in source.watched_blocks("reading", is_watched):
        sample.add(len(block), _reader(block, source.names))
        n_rows += len(block)
    rows = sample.rows()
    if isinstance(source, DelimitedSource):
        rows = pd.DataFrame({name: _converted(rows[name], _family(rows[name])) for name in rows})
    return rows, n_rows


def _reader(
    block: Block, names: Sequence[Hashable]
) -> Callable[[Any, slice | IntArray], pd.Series]:
    position_of = {name: position for position, name in enumerate(names)}
    return lambda name, rows: block.column(position_of[name], rows)


def _family(texts: pd.Series) -> str:
    return "numbers" if are_numbers(texts.unique()) else "str"


def _decoded(column: pd.Series) -> pd.Series:
    """Return a column without dictionary encoding, whose order means nothing unless it says so.

    A sample holds all values as objects: numbers and times get their types back.
    """
    is_dictionary = isinstance(column.dtype, pd.CategoricalDtype) and not column.cat.ordered
    if is_dictionary:
        return column.astype(column.cat.categories.dtype)
    return column.infer_objects()


def _converted(column: pd.Series, family: str) -> pd.Series:
    """Return a column of texts converted to a family; categories as objects, without order."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column
    typed = converted(pd.Series(pd.Categorical(column)), family, column.name)
    return typed if family == "numbers" else typed.astype(object)


def families_of(fitted: Fitted) -> list[str]:
    """Return the families of the columns of X, and of those beside it."""
    columns = [column.values for column in fitted.alphabet.read_columns]
    return [family_of([v for v in values if v is not None], "X") for values in columns]


# Rows that repeat the id of another row, in a file of any size.


RUN_ROWS = 1 << 20  # kept in memory: 8 MB
_ROW_BYTES = 8
_SHARE_BITS = 10  # the first bits of a hash: ids are compared in 1,024 shares


class RepeatedIds(AbstractContextManager["RepeatedIds"]):
    """Hashes of ids, compared at the end.

    Beyond a million rows they go to a temporary file, 8 bytes for each row. Each run of rows in
    it is ordered by the first bits of the hashes, so that equal ids can be read together, a share
    of all ids at a time.
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
        """Add the hashes of some rows."""
        self._waiting.append(hashes)
        self._n_waiting += len(hashes)
        if self._n_waiting >= RUN_ROWS:
            self._write(self._taken())

    def n_repeated(self) -> int:
        """Return the number of rows that repeat the id of an earlier row."""
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


class BlockNoise:
    """The noise of the blocks of a file.

    record_ids : the name of a column of ids, None for fresh noise; seen : collects the ids.
    """

    def __init__(
        self,
        release: Release,
        settings: Settings,
        source: Source,
        record_ids: str | None,
        secret_key: bytes | None,
        seen: RepeatedIds,
    ) -> None:
        if record_ids is not None and not isinstance(record_ids, str):
            template = (
                "{record_ids} must be the name of a column of {file}. Got a value of type {kind}."
            )
            file, kind = source.input.name, type(record_ids).__name__
            raise TypeError(Message.of(template, file=file, kind=kind))
        self._noise = noise_source(release, settings.random_state, record_ids, secret_key)
        self._source, self._seen, self._position = source, seen, 0
        if isinstance(self._noise, RecordSource):
            self._position = id_position(source, self._noise.column)

    def of(self, block: Block, first: int) -> Noise:
        """Return the noise of a block; first : the number of its first row."""
        if isinstance(self._noise, FreshSource):
            return RowNoise(self._noise.key, range(first, first + len(block)))
        assert isinstance(self._noise, RecordSource)
        ids = block.column(self._position)
        if _are_missing(ids).any():
            raise self._missing_error()
        noise = RecordNoise(self._noise.keys, ids)
        self._seen.add(noise.identities())
        return noise

    def _missing_error(self) -> ValueError:
        """Return an error with the number of missing ids in the whole file."""
        n_missing = n_rows = 0
        for block in self._source.blocks():
            n_missing += int(_are_missing(block.column(self._position)).sum())
            n_rows += len(block)
        return ValueError(
            Message.of(
                "{record_ids} names {column!r}, which is missing in {n_missing:,} of the "
                "{n_rows:,} rows of {file}: every row needs a different id.",
                column=self._source.names[self._position],
                n_missing=n_missing,
                n_rows=n_rows,
                file=self._source.input.name,
            )
        )

    def check(self) -> None:
        """Check, after the last block, that no two rows had the same id."""
        if (n_repeated := self._seen.n_repeated()) > 0:
            template = "{record_ids} names {name!r}, which must be unique in {file}: {found}"
            name, file = self._source.names[self._position], self._source.input.name
            found = repeated(n_repeated)
            raise ValueError(Message.of(template, name=name, file=file, found=found))


def id_position(source: Source, column: str) -> int:
    """Return the position of the column of ids, which must exist."""
    header = as_table(pd.DataFrame(columns=source.names), "transform_file")
    (position,) = header.positions("transform_file", "record_ids", [column])
    return position


def _are_missing(ids: pd.Series) -> pd.Series:
    """Return which ids are missing: empty fields of a text file, nulls of a Parquet file."""
    return ids.isna() | ids.eq("").fillna(False).astype(bool)


# The pass over a file that rewrites it, with X replaced by Y.


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
    """Write the rows of a source with X replaced by Y, and return their number.

    copied : the columns to copy, None for all that may be; allow_leaking : whether one of them
    may exceed the budget.
    """
    roles, owner = fitted.roles, settings.owner
    if copied is not None:
        roles = roles.keeping(copied)
        found = Judgement.restored(fitted.leaking, copied)
        warn_of_passed_through(found, fitted.mechanism.epsilon, allow_leaking)
    header = as_table(pd.DataFrame(columns=source.names), owner)
    positions = roles.match(header, owner)
    x_positions = [positions[p] for p in roles.read_positions]
    families, key_position = families_of(fitted), roles.person_in(header, owner)
    asked = settings.output, settings.made_up, settings.handle_unknown
    release = release_of(fitted, *asked, owner)
    if isinstance(source, DelimitedSource):  # categories are written without a loop over rows
        category, types = ColumnType("category"), zip_longest(release.types, families)
        release = replace(release, types=tuple(category if f == "str" else t for t, f in types))
    n_rows, unknown = 0, Counter[Hashable]()
    names = [source.names[position] for position in x_positions]
    by_name = dict(zip(names, families, strict=True))
    with RepeatedIds() as seen, _naming_all(source, by_name):
        noise = BlockNoise(release, settings, source, record_ids, secret_key, seen)
        for block in source.watched_blocks("releasing", is_watched):
            table = as_table(block.frame(x_positions, families), owner)
            folds = None
            if key_position is not None:
                folds = folds_of_keys(block.column(key_position), source.names[key_position])
            released = release.replacements(
                table, range(len(x_positions)), noise.of(block, n_rows), unknown, folds
            )
            parts: dict[str, Any] = {}
            for position in roles.order:
                if position in roles.kept_positions:
                    parts[str(roles.name(position))] = positions[position]
                else:
                    parts |= {str(name): column for name, column in released.get(position, [])}
            parts |= {str(name): column for name, column in released.get(OF_TARGET, [])}
            sink.write(block, parts)
            n_rows += len(block)
        noise.check()
    notice_unknown(names, unknown, n_rows)
    return n_rows
