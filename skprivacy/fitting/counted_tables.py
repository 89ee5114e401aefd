"""Tables that are counted where they are (engines, files, batches), as inputs of fit.

Lazy frames and files are such tables: of their rows, only counts and a small sample are read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from .._messages import InPython, Message, Named, Notice, Parameter, Setting, warn
from .._typing import FloatArray, IntArray, NamedColumns
from ..cells import Cells
from ..cells.cells import N_BUCKETS
from ..encoding.columns import Edges
from ..tables.table import ColumnRoles, ColumnType
from . import tally as tallies
from .inputs import CountedColumns, FitInputs, LabelledRows, read_inputs, roles_of_names
from .learn import cells_taught_by
from .learned_cells import (
    MOST_ROWS,
    Buckets,
    Sample,
    cells_of,
    default_cells,
    may_be_cells,
    teaching_rows,
)
from .parameters import Settings
from .tally import NUMBER, KnownCells, RowNumbers, RowSample, Tally, TooManyRowsError, edges_of

# Rows that teach may differ in S, in the target and in what is beside them.
_MOST_TEACHERS = 10 * MOST_ROWS


@dataclass(frozen=True, eq=False)
class Distinct:
    """Distinct rows of some columns, with their numbers under `NUMBER`, and how often each occurs.

    is_coarse : whether one value may stand for each bin of some column.
    """

    columns: NamedColumns
    counts: FloatArray
    is_coarse: bool = False

    @classmethod
    def of(cls, tally: Tally) -> Distinct:
        """Return what was counted."""
        return cls(tally.columns(), tally.counts.astype(float), tally.is_coarse)

    def labelled(self, counted: CountedColumns, cells: KnownCells | None = None) -> LabelledRows:
        """Return them as rows of S and X; what is not among the columns is the number."""
        number = self.columns.get(NUMBER)
        in_order: list[Any] = [self.columns.get(name, number) for name in counted.in_table]
        return counted.rows(in_order, self.counts, is_coarse=self.is_coarse, cells=cells)


def add_rows(
    tally: Tally,
    column_of: Callable[[Any, slice | IntArray], pd.Series],
    numbers: IntArray | None = None,
) -> None:
    """Count some more rows; column_of : returns a column at some of them."""
    if numbers is None:
        tally.add(column_of(name, slice(None)) for name in tally.names)
        return
    chosen = np.flatnonzero(numbers >= 0)
    of_rows = pd.Series(numbers[chosen])
    tally.add(of_rows if name == NUMBER else column_of(name, chosen) for name in tally.names)


@dataclass(frozen=True, eq=False)
class SampledRows:
    """Some rows of a table.

    index : the levels of an index that leaves with the rows; written : what else can be read in
    columns, see `judged`.
    """

    columns: NamedColumns = field(default_factory=dict)
    index: NamedColumns = field(default_factory=dict)
    written: dict[Any, list[pd.Series]] = field(default_factory=dict)


class CountedTable(ABC):
    """A table whose rows are elsewhere: they are counted there.

    names : those of its columns.
    """

    names: list[str]

    # What messages call the table, and the parameter that names the column of a target.
    where: ClassVar[str] = "the frame"
    target: ClassVar[tuple[str, str]] = ("y", "fit")

    @abstractmethod
    def count(
        self, names: Sequence[Any], edges: Edges, limit: int, numbers: RowNumbers | None = None
    ) -> Distinct:
        """Return the distinct rows of some columns, and how often each occurs.

        edges : where numbers and times are cut; one value near the median may then stand for each
        bin. More than `limit` distinct rows are an error. numbers : those of the rows, if `NUMBER`
        is one of the names; rows without a number, -1, are left out.
        """

    @abstractmethod
    def types(self, names: Sequence[str], values: NamedColumns) -> tuple[ColumnType, ...]:
        """Return the types of some columns; values : those that were counted or sampled."""

    def prepare(  # noqa: B027
        self, roles: ColumnRoles, counted: CountedColumns, edges: Edges
    ) -> None:
        """Take note of what will be counted, before it is."""

    def check_index(self, s_names: Sequence[str], owner: str) -> None:  # noqa: B027
        """Refuse an index that is released with the rows and holds S."""

    @abstractmethod
    def sample(self, n_rows: int) -> SampledRows:
        """Return some rows of S and of what leaves with the rows: copied columns, an index.

        n_rows : how many rows the table has. Nothing is sampled where nothing leaves.
        """

    def inputs(
        self, settings: Settings, target: Any = None, apart: Collection[Any] = ()
    ) -> FitInputs:
        """Count S and X as the settings name them.

        target : the name of its column, for utility="target"; apart : columns that are not
        released unless they are named.
        """
        named_only = [*apart, target] if isinstance(target, str) else apart
        roles = roles_of_names(settings, self.names, self.where, named_only)
        counted = _counted(settings, self, roles, target)
        self.prepare(roles, counted, edges_of(settings.n_bins, counted.x))
        self.check_index(counted.s, settings.owner)
        rows, x_columns = _rows(settings, self, counted)
        sample = self.sample(rows.n_rows)
        typed = [roles.name(p) for p in roles.typed_positions]
        types = self.types(typed, {**sample.columns, **x_columns, **rows.beside})
        return _with_sample(FitInputs(roles, types, rows), counted.s, sample)

    def no_rows(self, owner: str) -> ValueError:
        """Return the error of a table without rows."""
        return ValueError(f"Found a frame with 0 rows while {owner} needs at least one row.")

    def sizes(self, numbers: RowNumbers, n_numbers: int) -> FloatArray:
        """Return how many rows have each number."""
        found = self.count([NUMBER], {}, n_numbers, numbers)
        of_rows = found.columns[NUMBER].to_numpy(dtype=np.intp)
        return np.bincount(of_rows, found.counts, n_numbers).astype(float)


def _with_sample(inputs: FitInputs, s_names: Sequence[Any], sample: SampledRows) -> FitInputs:
    """Add some rows of the columns that are passed through, and of an index."""
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
        apart = " and does not tell people apart" if person else ""
        told = f" must name a column of {table.where} that is not sensitive{apart}"
        got = InPython(", with utility='target'"), f". Got {given!r}; "
        has = f"{table.where} has {table.names}."
        raise ValueError(Message(Parameter(*table.target), told, *got, has))
    return CountedColumns(s, x, (target,), person, z)


def _rows(
    settings: Settings, table: CountedTable, counted: CountedColumns
) -> tuple[LabelledRows, NamedColumns]:
    """Count values where they are few enough, else cells; return values of X as well."""
    cells = cells_of(settings)
    if not counted.person or cells is None:  # otherwise each key would be a row of its own
        names = list(dict.fromkeys(counted.in_table))
        try:
            found = table.count(names, edges_of(settings.n_bins, counted.x), tallies.MOST_DISTINCT)
        except TooManyRowsError as error:
            cells = cells_instead(settings, len(counted.x), error)
        else:
            rows = _checked(settings, table, found.labelled(counted))
            return rows, rows.x_columns
    assert cells is not None
    teachers = _teachers(settings, table, counted, cells)
    known = cells_taught_by(settings, teachers, cells)
    edges = edges_of(settings.n_bins, ())
    rows = rows_by_number(table, counted, known, edges).labelled(counted.in_cells(), known)
    return rows, teachers.x_columns


def _checked(settings: Settings, table: CountedTable, rows: LabelledRows) -> LabelledRows:
    if not rows.n_rows:
        raise table.no_rows(settings.owner)
    return rows


def rows_by_number(
    table: CountedTable,
    counted: CountedColumns,
    numbers: RowNumbers,
    edges: Edges,
) -> Distinct:
    """Count S, a target, and what is beside X, together with a number that stands for X."""
    names = dict.fromkeys([*counted.s, *counted.beside, *(counted.target or ())])
    return table.count([*names, NUMBER], edges, tallies.MOST_DISTINCT, numbers)


def _teachers(
    settings: Settings, table: CountedTable, counted: CountedColumns, cells: Cells
) -> LabelledRows:
    """Return the rows of a table that teach cells: by the sizes of buckets, some of these."""
    buckets = Buckets.of(settings, counted, cells)
    sizes = table.sizes(buckets, N_BUCKETS)
    sample = Sample.of_sizes(buckets, sizes, int(sizes.sum()))
    names = [name for name in dict.fromkeys(counted.in_table) if name not in counted.person]
    kept = sample.kept(counted.person)
    found = table.count([*names, NUMBER], {}, _MOST_TEACHERS, kept)
    return sample.weighted(_checked(settings, table, found.labelled(counted)))


def cells_instead(settings: Settings, n_columns: int, error: TooManyRowsError) -> Cells:
    """Return the cells to count in place of values; raise the error where values are wanted."""
    if (cells := cells_of(settings)) is not None:
        return cells
    if not may_be_cells(settings, n_columns):
        way_out = " Or let rows that are alike share a symbol: ", Setting("alphabet", "cells"), "."
        raise ValueError(Message(error.args[0], *way_out)) from error
    told = InPython("X has", "The released columns have"), " too many combinations of values to "
    why = "count: rows that are alike share a cell. Set ", Setting("alphabet", "cells")
    keep = (
        " to silence this warning; to keep combinations of values, give the edges of numbers in "
    )
    advice = InPython("n_bins", Named("edges")), ", or release fewer columns jointly."
    warn(Message(*told, *why, keep, *advice), Notice)
    return default_cells(settings)


# What `partial_fit` has seen: counts of distinct rows, and some of the rows passed through.


# Minimum rows seen before cells are learned from earlier batches rather than the current one.
_FEWEST_TEACHERS = 1000


class Batches:
    """Batches of rows, counted as they come: values are cut and pooled once all are there.

    first : shows the columns that all batches must have. It is not counted yet.
    """

    def __init__(self, settings: Settings, first: FitInputs) -> None:
        self.roles, self.types, self.n_rows = first.roles, first.types, 0
        self._owner = settings.owner
        self._counted, self._passed = CountedColumns.of(first.rows), list(first.passed_through)
        self._tally, self._tallied = Tally(self._counted.names), self._counted
        self._cells: KnownCells | None = None
        self._is_weighted = first.rows.weights is not None
        names = [*self._passed, *self._counted.s] if self._passed else []
        self._sample = RowSample(names, whole=self._counted.s)

    def add(self, settings: Settings, batch: FitInputs) -> None:
        """Count a batch; if that fails, it is as if the batch had never come."""
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

        def column_of(name: Hashable, chosen: IntArray) -> pd.Series:
            return columns[name].iloc[chosen]

        self._sample.add(rows.n_rows, column_of)
        self.types = tuple(map(ColumnType.combined, self.types, batch.types))
        self.n_rows += rows.n_rows

    def _in_tally(self, rows: LabelledRows, known: KnownCells | None) -> list[pd.Series]:
        """Return the columns of some rows as they are counted."""
        if known is not None:
            cells = pd.Series(known.of_columns(rows.x_columns, rows.fold))
            rows = replace(rows, x_columns={"cell": cells}, folds={})
        return self._counted.columns(rows)

    def _take_cells(self, settings: Settings, rows: LabelledRows, cells: Cells) -> None:
        """Count cells from now on, taught by the rows so far; rows : those of the next batch."""
        counted = self._tally.unlimited()
        before = self.rows(counted) if self.n_rows else None
        teachers = rows if before is None or self.n_rows < _FEWEST_TEACHERS else before
        teachers = teaching_rows(settings, teachers, cells)
        known = cells_taught_by(settings, teachers, cells)
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
            told = f"X has {batch.roles.n_columns} features, but {self._owner} is expecting "
            raise ValueError(told + f"{n_columns} features as input.")
        passed = list(batch.passed_through)
        if CountedColumns.of(batch.rows) != self._counted or passed != self._passed:
            raise ValueError(
                f"The columns of S, of the target, or passed through differ from those of the "
                f"first batch: {self._owner}.partial_fit needs the same in every batch."
            )
        if (batch.rows.weights is not None) != self._is_weighted:
            raise ValueError("sample_weight must be passed with every batch or with none.")
        if batch.roles != self.roles:
            raise ValueError(
                f"The columns of X differ from those of the first batch in name, order, or role "
                f"in {self._owner}: {batch.roles.names} after {self.roles.names}."
            )

    def rows(self, tally: Tally | None = None) -> LabelledRows:
        """Return the rows of S and X of all batches; tally : other counts of them."""
        tally = self._tally if tally is None else tally
        counts, columns = tally.counts.astype(float), list(tally.columns().values())
        totals = tally.weights, tally.squares, tally.is_coarse
        return self._tallied.rows(columns, counts, *totals, self._cells)

    def inputs(self, settings: Settings) -> FitInputs:
        """Return all batches as one input of `fit`; cells take any number of distinct rows."""
        is_limited = cells_of(settings.for_batches()) is None
        rows = self.rows(self._tally if is_limited else self._tally.unlimited())
        sample = SampledRows(dict(self._sample.rows().items()))
        return _with_sample(FitInputs(self.roles, self.types, rows), self._counted.s, sample)

    def __getstate__(self) -> dict[str, Any]:
        # Counts may travel; rows of people stay where they are.
        return vars(self) | {"_sample": self._sample.emptied()}


def inputs_of(settings: Settings, X: Any, y: Any = None, *passed: Any) -> FitInputs:
    """Return what `fit` learns from a table of any kind.

    y : the target; of a `CountedTable`, the name of its column; passed : S and weights that were
    passed next to a frame.
    """
    if isinstance(X, CountedTable):
        return X.inputs(settings, y if settings.has_target else None)
    return read_inputs(settings, X, y, *passed)
