"""Lazy frames, files and batches as inputs of `fit`: only counts and a small sample of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from .._messages import InPython, Message, Named, Notice, Parameter, warn
from .._typing import FloatArray, IntArray, NamedColumns
from ..cells import Cells
from ..cells.cells import N_BUCKETS
from ..encoding.columns import Edges
from ..tables.table import ColumnRoles, ColumnType
from . import tally as tallies
from .inputs import (
    CountedColumns,
    FitInputs,
    LabelledRows,
    check_y,
    read_inputs,
    roles_of_names,
)
from .learn import cells_learned_from
from .learned_cells import (
    MOST_ROWS,
    Buckets,
    Sample,
    cells_of,
    default_cells,
    may_be_cells,
    training_rows,
)
from .parameters import Settings
from .tally import NUMBER, KnownCells, RowNumbers, RowSample, Tally, TooManyRowsError, edges_of


@dataclass(frozen=True, eq=False)
class Distinct:
    """Counts of the distinct rows of some columns, possibly with row numbers under `NUMBER`.

    is_coarse : whether one value may stand for each bin of some column.
    """

    columns: NamedColumns
    counts: FloatArray
    is_coarse: bool = False

    @classmethod
    def of(cls, tally: Tally) -> Distinct:
        """Return the counts of a tally."""
        return cls(tally.columns(), tally.counts.astype(float), tally.is_coarse)

    def labelled(self, counted: CountedColumns, cells: KnownCells | None = None) -> LabelledRows:
        """Return them as rows of S and X; the number stands for columns that are missing."""
        number = self.columns.get(NUMBER)
        in_order: list[Any] = [self.columns.get(name, number) for name in counted.in_table]
        return counted.rows(in_order, self.counts, is_coarse=self.is_coarse, cells=cells)


def add_rows(
    tally: Tally,
    column_of: Callable[[Any, slice | IntArray], pd.Series],
    numbers: IntArray | None = None,
) -> None:
    """Add rows to a tally; column_of : returns a column at some rows; numbers : of the rows."""
    if numbers is None:
        tally.add(column_of(name, slice(None)) for name in tally.names)
        return
    chosen = np.flatnonzero(numbers >= 0)
    of_rows = pd.Series(numbers[chosen])
    tally.add(of_rows if name == NUMBER else column_of(name, chosen) for name in tally.names)


@dataclass(frozen=True, eq=False)
class SampledRows:
    """Some rows of a table.

    index : the levels of an index that is released with the rows; written : see `judged`.
    """

    columns: NamedColumns = field(default_factory=dict)
    index: NamedColumns = field(default_factory=dict)
    written: dict[Any, list[pd.Series]] = field(default_factory=dict)


class CountedTable(ABC):
    """A table that is counted where its rows are; names : of its columns."""

    names: list[str]

    # The name of the table in messages, and the parameter that names the column of a target.
    title = "The frame"
    where: ClassVar[str] = "the frame"
    target: ClassVar[tuple[str, str]] = ("y", "fit")

    @abstractmethod
    def count(
        self, names: Sequence[Any], edges: Edges, limit: int, numbers: RowNumbers | None = None
    ) -> Distinct:
        """Return the distinct rows of some columns, at most `limit`, with their counts.

        edges : of bins of numbers and times; one value near the median may then stand for each
        bin. numbers : of the rows, if `NUMBER` is one of the names; rows with -1 are left out.
        """

    @abstractmethod
    def types(self, names: Sequence[str], values: NamedColumns) -> tuple[ColumnType, ...]:
        """Return the types of some columns; values : as counted or sampled."""

    def prepare(  # noqa: B027
        self, roles: ColumnRoles, counted: CountedColumns, edges: Edges
    ) -> None:
        """Prepare to count these columns."""

    def check_index(self, s_names: Sequence[str], owner: str) -> None:  # noqa: B027
        """Check that an index that is released with the rows is not a copy of S."""

    @abstractmethod
    def sample(self, n_rows: int) -> SampledRows:
        """Return some rows of S, of columns that are passed through and of an index, if any.

        n_rows : of the table.
        """

    def inputs(
        self, settings: Settings, target: Any = None, apart: Collection[Any] = ()
    ) -> FitInputs:
        """Return the inputs of `fit`.

        target : the name of a column, for utility="target"; apart : columns that are released only
        if they are named.
        """
        named_only = [*apart, target] if isinstance(target, str) else apart
        roles = roles_of_names(settings, self.names, self.where, named_only)
        counted = _counted(settings, self, roles, target)
        released = roles.names_or_positions(roles.order)
        both = [name for name in counted.target or () if name in released]
        check_y(settings, both, both)
        self.prepare(roles, counted, edges_of(settings.n_bins, counted.x))
        self.check_index(counted.s, settings.owner)
        rows, x_columns = _rows(settings, self, counted)
        sample = self.sample(rows.n_rows)
        typed = [roles.name(p) for p in roles.typed_positions]
        types = self.types(typed, {**sample.columns, **x_columns, **rows.beside})
        targets = counted.target or ()
        of_target = self.types(targets, rows.target or {}) if targets else ()
        return _with_sample(
            FitInputs(roles, types, rows, target_types=of_target), counted.s, sample
        )

    def check_rows(self, rows: LabelledRows) -> LabelledRows:
        """Return the same rows, if there are any."""
        if not rows.n_rows:
            raise ValueError(f"{self.title} has no rows.")
        return rows

    def sizes(self, numbers: RowNumbers, n_numbers: int) -> FloatArray:
        """Return the number of rows with each number."""
        found = self.count([NUMBER], {}, n_numbers, numbers)
        of_rows = found.columns[NUMBER].to_numpy(dtype=np.intp)
        return np.bincount(of_rows, found.counts, n_numbers).astype(float)


def _with_sample(inputs: FitInputs, s_names: Sequence[Any], sample: SampledRows) -> FitInputs:
    """Return inputs with a sample of the columns that are passed through, and of an index."""
    passed = {name: sample.columns[name] for name in inputs.kept if name in sample.columns}
    return replace(
        inputs,
        passed_through=passed,
        s_passed={name: sample.columns[name] for name in s_names if name in sample.columns},
        index=sample.index,
        written={name: sample.written[name] for name in passed if name in sample.written},
    )


def _counted(
    settings: Settings, table: CountedTable, roles: ColumnRoles, target: Any
) -> CountedColumns:
    parts = roles.s_positions, roles.x_positions, roles.beside_positions
    s, x, z = (tuple(roles.name(p) for p in part) for part in parts)
    person = roles.person_names
    if not settings.has_target:
        return CountedColumns(s, x, person=person, beside=z)
    if not isinstance(target, str) or target not in table.names or target in (*s, *person):
        given = target if isinstance(target, str | None) else type(target).__name__
        text = Message.of(
            "{target} must name a column of {where} that is neither sensitive nor of person ids"
            "{utility}. Got {given!r}; {where} has {names}.",
            target=Parameter(*table.target),
            where=table.where,
            utility=InPython(", with utility='target'"),
            given=given,
            names=table.names,
        )
        raise ValueError(text)
    return CountedColumns(s, x, (target,), person, z)


def _rows(
    settings: Settings, table: CountedTable, counted: CountedColumns
) -> tuple[LabelledRows, NamedColumns]:
    """Return counted rows, by values if these are few enough, else by cells; and values of X."""
    cells = cells_of(settings)
    if not counted.person or cells is None:  # values would include person ids
        names = list(dict.fromkeys(counted.in_table))
        try:
            found = table.count(names, edges_of(settings.n_bins, counted.x), tallies.MOST_DISTINCT)
        except TooManyRowsError as error:
            cells = cells_instead(settings, len(counted.x), error)
        else:
            rows = table.check_rows(found.labelled(counted))
            return rows, rows.x_columns
    assert cells is not None
    training = _training_rows(settings, table, counted, cells)
    known = cells_learned_from(settings, training, cells)
    edges = edges_of(settings.n_bins, ())
    rows = rows_by_number(table, counted, known, edges).labelled(counted.in_cells(), known)
    return rows, training.x_columns


def rows_by_number(
    table: CountedTable, counted: CountedColumns, numbers: RowNumbers, edges: Edges
) -> Distinct:
    """Count S, a target, and columns beside X, together with a number in place of X."""
    names = dict.fromkeys([*counted.s, *counted.beside, *(counted.target or ())])
    return table.count([*names, NUMBER], edges, tallies.MOST_DISTINCT, numbers)


def _training_rows(
    settings: Settings, table: CountedTable, counted: CountedColumns, cells: Cells
) -> LabelledRows:
    """Return the rows of a table that cells are learned from."""
    buckets = Buckets.of(settings, counted, cells)
    sizes = table.sizes(buckets, N_BUCKETS)
    sample = Sample.of_sizes(buckets, sizes, int(sizes.sum()))
    names = [name for name in dict.fromkeys(counted.in_table) if name not in counted.person]
    # Rows with the same X may differ in S, in the target and in columns beside them.
    found = table.count([*names, NUMBER], {}, 10 * MOST_ROWS, sample.kept(counted.person))
    return sample.weighted(table.check_rows(found.labelled(counted)))


def cells_instead(settings: Settings, n_columns: int, error: TooManyRowsError) -> Cells:
    """Return the cells to count in place of values; raise the error if values are asked for."""
    if (cells := cells_of(settings)) is not None:
        return cells
    if not may_be_cells(settings, n_columns):
        template = "{error} Or let rows that are alike share a symbol: {alphabet='cells'}."
        raise ValueError(Message.of(template, error=error.args[0])) from error
    text = Message.of(
        "{x} too many combinations of values to count: rows that are alike share a cell. Set "
        "{alphabet='cells'} to silence this warning; to keep combinations of values, give the "
        "edges of numbers in {edges}, or release fewer columns jointly.",
        x=InPython("X has", "The released columns have"),
        edges=InPython("n_bins", Named("edges")),
    )
    warn(text, Notice)
    return default_cells(settings)


# Batches of `partial_fit`.


# Minimum rows seen before cells are learned from earlier batches rather than the current one.
_FEWEST_TRAINING_ROWS = 1000


class Batches:
    """Counts of all batches, and a sample of the columns that are passed through.

    Values are cut and pooled in the design. first : has the columns of all batches; not counted.
    """

    def __init__(self, settings: Settings, first: FitInputs) -> None:
        self.roles, self.types, self.n_rows = first.roles, first.types, 0
        self._target_types = first.target_types
        self._owner, self._s_from = settings.owner, first.s_from
        self._counted, self._passed = CountedColumns.of(first.rows), list(first.passed_through)
        self._tally, self._tallied = Tally(self._counted.names), self._counted
        self._cells: KnownCells | None = None
        self._is_weighted = first.rows.weights is not None
        names = [*self._passed, *self._counted.s] if self._passed else []
        self._sample = RowSample(names, whole=self._counted.s)

    def add(self, settings: Settings, batch: FitInputs) -> None:
        """Count a batch; an error leaves the counts unchanged."""
        self._check(batch)
        rows = batch.rows
        self._tally.edges = edges_of(settings.n_bins, self._counted.x)
        try:
            self._tally.add(self._in_tally(rows, self._cells), weights=rows.weights)
        except TooManyRowsError as error:
            if self._cells is not None:
                raise
            cells = cells_instead(settings.for_batches(), len(self._counted.x), error)
            self._take_cells(settings, rows, cells)
        columns: NamedColumns = {**batch.passed_through, **rows.s_columns}
        self._sample.add(rows.n_rows, lambda name, chosen: columns[name].iloc[chosen])
        self.types = tuple(map(ColumnType.combined, self.types, batch.types))
        both = self._target_types, batch.target_types
        self._target_types = tuple(map(ColumnType.combined, *both))
        self.n_rows += rows.n_rows

    def _in_tally(self, rows: LabelledRows, known: KnownCells | None) -> list[pd.Series]:
        """Return the columns of some rows, in the form that is counted."""
        if known is not None:
            cells = pd.Series(known.of_columns(rows.x_columns, rows.fold))
            rows = replace(rows, x_columns={"cell": cells}, persons={})
        return self._counted.columns(rows)

    def _take_cells(self, settings: Settings, rows: LabelledRows, cells: Cells) -> None:
        """Count cells from now on, learned from the rows so far; rows : of the next batch."""
        counted = self._tally.unlimited()
        before = self.rows(counted) if self.n_rows else None
        training = rows if before is None or self.n_rows < _FEWEST_TRAINING_ROWS else before
        training = training_rows(settings, training, cells)
        known = cells_learned_from(settings, training, cells)
        tallied = self._counted.in_cells()
        tally = Tally(tallied.names, edges=self._tally.edges)
        if before is not None:
            columns = self._in_tally(before, known)
            tally.add(columns, counted.counts, counted.weights, counted.squares)
        tally.add(self._in_tally(rows, known), weights=rows.weights)
        self._tally, self._tallied, self._cells = tally, tallied, known

    def _check(self, batch: FitInputs) -> None:
        n_columns = self.roles.n_columns
        if batch.roles.n_columns != n_columns:
            raise ValueError(
                f"X has {batch.roles.n_columns} features, but {self._owner} is expecting "
                f"{n_columns} features as input."
            )
        if (batch.rows.weights is not None) != self._is_weighted:
            raise ValueError("sample_weight must be passed with every batch or with none.")
        columns = batch.roles, CountedColumns.of(batch.rows), list(batch.passed_through)
        if columns != (self.roles, self._counted, self._passed):
            raise ValueError(
                f"The columns of X, S or the target differ from those of the first batch in name, "
                f"order or role: {self._owner}.partial_fit needs the same in every batch. Got "
                f"{batch.roles.names} with S in {list(batch.rows.s_columns)}, after "
                f"{self.roles.names} with S in {list(self._counted.s)}."
            )

    def rows(self, tally: Tally | None = None) -> LabelledRows:
        """Return the rows of S and X of all batches; tally : other counts of them."""
        tally = self._tally if tally is None else tally
        counts, columns = tally.counts.astype(float), list(tally.columns().values())
        totals = tally.weights, tally.squares, tally.is_coarse
        return self._tallied.rows(columns, counts, *totals, self._cells)

    def inputs(self, settings: Settings) -> FitInputs:
        """Return all batches as inputs of `fit`; for cells, any number of distinct rows."""
        is_limited = cells_of(settings.for_batches()) is None
        rows = self.rows(self._tally if is_limited else self._tally.unlimited())
        sample = SampledRows(dict(self._sample.rows().items()))
        columns = self.roles, self.types, rows
        inputs = FitInputs(*columns, target_types=self._target_types, s_from=self._s_from)
        return _with_sample(inputs, self._counted.s, sample)

    def __getstate__(self) -> dict[str, Any]:
        # A pickle has counts, but no rows of people.
        return vars(self) | {"_sample": self._sample.emptied()}


def inputs_of(settings: Settings, X: Any, y: Any = None, *passed: Any) -> FitInputs:
    """Return the inputs of `fit` from any kind of table.

    y : the target; for a `CountedTable`, the name of its column; passed : S and weights.
    """
    if isinstance(X, CountedTable):
        return X.inputs(settings, y if settings.has_target else None)
    return read_inputs(settings, X, y, *passed)
