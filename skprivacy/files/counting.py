"""The passes over a file that count S and X, and what fitting to the counts gives."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from .._messages import InPython, Message, Parameter
from .._typing import IntArray, NamedColumns
from ..cells import Cells
from ..cells.buckets import N_BUCKETS
from ..encoding.bins import BinsLike
from ..fitted import Fitted
from ..fitting.encode_and_design import cells_taught_by, fitted_to
from ..fitting.inputs import CountedColumns, FitInputs, LabelledRows, roles_of_names
from ..fitting.known_cells import RowNumbers, cell_name
from ..fitting.learned_cells import cells_of
from ..fitting.many_rows import cells_instead
from ..fitting.parameters import Settings
from ..fitting.row_sample import RowSample
from ..fitting.tally import Tally, TooManyRowsError, edges_of
from ..fitting.teachers import Buckets, Sample
from ..tables.column_roles import ColumnRoles
from ..tables.column_types import ColumnType
from .delimited import DelimitedSource
from .tables import Block, Source
from .text_values import are_numbers, has_values, meant, written_numbers


@dataclass(frozen=True, eq=False)
class CountedSource:
    """What one pass over a file has found.

    roles : which column is what; types : of its `typed_positions`; rows : of S and X, with how
    often they occur; sample : some rows of the columns that may be released and of S,
    spread over the file; written : how a text file writes the numbers of the sample, by column.
    """

    roles: ColumnRoles
    types: tuple[ColumnType, ...]
    rows: LabelledRows
    sample: pd.DataFrame
    written: dict[Any, list[pd.Series]]


def count_source(
    settings: Settings,
    source: Source,
    *,
    target: str | None = None,
    apart: Collection[str] = (),
    with_sample: bool = False,
    is_watched: bool = False,
) -> CountedSource:
    """Count S and X as the settings name them.

    target : the name of its column, for utility="target"; apart : columns that are not released
    unless they are named.
    """
    roles = roles_of_names(settings, source.names, "the file", [*apart, target])
    counted = _counted(settings, source, roles, target)
    is_sampled = with_sample or roles.kept_positions
    of_sample = {
        *roles.s_positions,
        *roles.read_positions,
        *roles.kept_positions,
        roles.group_position,
    }
    names = [name for p, name in enumerate(source.names) if p in of_sample]
    sample = RowSample(names if is_sampled else [], whole=counted.in_table)
    plan = _Plan(source, roles, counted, sample, edges_of(settings.n_bins, counted.x), is_watched)
    if counted.groups and (cells := cells_of(settings)) is not None:
        return _in_cells(settings, plan, cells)  # each key would be a row of its own
    try:
        return _in_values(plan)
    except TooManyRowsError as error:
        cells = cells_instead(settings, len(counted.x), error)
    return _in_cells(settings, plan, cells)


def _counted(
    settings: Settings, source: Source, roles: ColumnRoles, target: str | None
) -> CountedColumns:
    parts = roles.s_positions, roles.x_positions, roles.beside_positions
    s, x, z = (tuple(source.names[p] for p in part) for part in parts)
    groups = roles.group_names
    if not settings.has_target:
        return CountedColumns(s, x, groups=groups, beside=z)
    if target is None or target not in source.names or target in (*s, *groups):
        raise ValueError(
            Message(
                Parameter("target", "fit_file"),
                " must name a column of the file that is not sensitive",
                " and does not tell people apart" if groups else "",
                InPython(", with utility='target'"),
                f". Got {target!r}; the file has {source.names}.",
            )
        )
    return CountedColumns(s, x, (target,), groups, z)


@dataclass(frozen=True, eq=False)
class _Plan:
    """What is to be counted in a file, and the sample that is taken meanwhile."""

    source: Source
    roles: ColumnRoles
    counted: CountedColumns
    sample: RowSample
    edges: dict[Any, BinsLike]
    is_watched: bool

    def column(self, block: Block, name: str, rows: slice | IntArray = slice(None)) -> pd.Series:
        """Return a column of a block as it can be counted."""
        column = block.column(self.source.names.index(name), rows)
        if name not in self.edges or not isinstance(column.dtype, pd.CategoricalDtype):
            return column
        return meant(column, "numbers", name)  # others wait until all are known

    def counts(self, tally: Tally, columns_of: Callable[[Block], list[pd.Series]]) -> None:
        """Count all rows of the file; columns_of : what is counted of a block."""
        for block in self.source.watched_blocks("counting", self.is_watched):
            tally.add(columns_of(block))
            self.sample.add(len(block), _reader(block, self.source.names))
        if not len(tally.counts):
            raise _no_rows(self.source)

    def numbers(self, numbers: RowNumbers, block: Block, families: _Families) -> IntArray:
        """Return the number of each row of a block."""
        positions = [self.source.names.index(name) for name in numbers.read]
        frame = block.frame(positions, [families.found[name] for name in numbers.read])
        return numbers.of_frame(frame)

    def typed(self, columns: Mapping[Any, pd.Series], families: Mapping[Any, str]) -> NamedColumns:
        """Return columns as what they mean."""
        if isinstance(self.source, DelimitedSource):
            return {name: _meant(column, families[name]) for name, column in columns.items()}
        return {name: _decoded(column) for name, column in columns.items()}

    def found(
        self, rows: LabelledRows, x_columns: NamedColumns, families: Mapping[Any, str]
    ) -> CountedSource:
        """Return what was found; families : of columns whose texts are all known."""
        sampled, written = self.sample.rows(), {}
        if isinstance(self.source, DelimitedSource):
            own = {name: families.get(name) or _family(name, sampled[name]) for name in sampled}
            written = {n: written_numbers(sampled[n]) for n in own if own[n] == "numbers"}
            sampled = pd.DataFrame({name: _meant(sampled[name], own[name]) for name in sampled})
        kept = (sampled[self.roles.name(p)] for p in self.roles.kept_positions)
        columns = *x_columns.values(), *rows.beside.values(), *kept
        types = map(self.source.type_of, self.roles.typed_positions, columns)
        return CountedSource(self.roles, tuple(types), rows, sampled, written)


def _no_rows(source: Source) -> ValueError:
    return ValueError(f"{source.input.name} has no rows.")


def _in_values(plan: _Plan) -> CountedSource:
    """Count distinct rows in one pass."""
    counted, tally = plan.counted, Tally(plan.counted.names, edges=plan.edges)
    plan.counts(tally, lambda block: [plan.column(block, name) for name in counted.in_table])
    columns, families = tally.columns(), {}
    if isinstance(plan.source, DelimitedSource):
        families = {name: _family(name, columns[name], plan.edges) for name in columns}
    columns = plan.typed(columns, families)
    counts, is_coarse = tally.counts.astype(float), tally.is_coarse
    rows = counted.rows(list(columns.values()), counts, is_coarse=is_coarse)
    return plan.found(rows, rows.x_columns, families)


def _in_cells(settings: Settings, plan: _Plan, cells: Cells) -> CountedSource:
    """Learn cells from some rows in two passes, and count them in another one."""
    counted = plan.counted
    plan = replace(plan, sample=plan.sample.emptied())
    families = _Families(dict.fromkeys(counted.in_table), plan.edges, counted.groups)
    sample = _sample(Buckets.of(settings, counted, cells), plan, families)
    teachers = _teachers(sample, plan, families)
    known = cells_taught_by(settings, teachers, cells)
    in_cells = counted.in_cells(cell := cell_name(counted.in_table))

    def columns_of(block: Block) -> list[pd.Series]:
        found = pd.Series(plan.numbers(known, block, families))
        return [found if name == cell else plan.column(block, name) for name in in_cells.in_table]

    tally = Tally(in_cells.names, edges=plan.edges)
    plan.counts(tally, columns_of)
    labelled = dict(zip(in_cells.in_table, tally.columns().values(), strict=True))
    of_cells = labelled.pop(cell)
    labelled = {**plan.typed(labelled, families.found), cell: of_cells}
    in_order = [labelled[name] for name in in_cells.in_table]
    rows = in_cells.rows(in_order, tally.counts.astype(float), cells=known)
    return plan.found(rows, teachers.x_columns, families.found)


def _sample(buckets: Buckets, plan: _Plan, families: _Families) -> Sample:
    """Choose the rows that teach in one pass, or two if a column turns out to hold texts."""
    sizes, before = np.zeros(N_BUCKETS, dtype=np.int64), families.n_texts
    for block in plan.source.watched_blocks("sampling", plan.is_watched):
        if isinstance(plan.source, DelimitedSource):
            families.add(block, plan.source.names)
        sizes += np.bincount(plan.numbers(buckets, block, families), minlength=N_BUCKETS)
    if families.n_texts > before:  # what was taken for numbers so far has other words as texts
        return _sample(buckets, plan, families)
    return Sample.of_sizes(buckets, sizes, int(sizes.sum()))


def _teachers(sample: Sample, plan: _Plan, families: _Families) -> LabelledRows:
    """Count the rows that teach cells in one pass."""
    counted, kept = plan.counted, sample.kept(plan.counted.groups)
    tally = Tally(counted.names, limit=sys.maxsize)
    for block in plan.source.watched_blocks("sampling", plan.is_watched):
        folds = plan.numbers(kept, block, families)
        chosen = np.flatnonzero(folds >= 0)
        of_fold = pd.Series(folds[chosen])
        tally.add(
            of_fold if name in counted.groups else plan.column(block, name, chosen)
            for name in counted.in_table
        )
    if not len(tally.counts):
        raise _no_rows(plan.source)
    found = dict(zip(counted.in_table, tally.columns().values(), strict=True))
    of_groups = {name: found.pop(name) for name in counted.groups}
    found = plan.typed(found, families.found) | of_groups
    in_order = [found[name] for name in counted.in_table]
    return sample.weighted(counted.rows(in_order, tally.counts.astype(float)))


class _Families:
    """What the texts of some columns are, told block by block; keys are what is written."""

    def __init__(
        self, names: Iterable[str], edges: Container[Hashable], keys: Container[Hashable]
    ) -> None:
        self.found = {name: "numbers" if name in edges else "str" for name in names}
        self.n_texts = 0
        self._open = {name for name in self.found if name not in edges and name not in keys}

    def add(self, block: Block, names: list[str]) -> None:
        """Look at some more rows; names : of all columns of the file."""
        for name in sorted(self._open):
            texts = block.column(names.index(name)).cat.categories
            if are_numbers(texts):
                self.found[name] = "numbers"
            elif has_values(texts):  # once a text, always a text
                self.n_texts += self.found[name] == "numbers"
                self.found[name] = "str"
                self._open.remove(name)


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
        rows = pd.DataFrame({name: _meant(rows[name], _family(name, rows[name])) for name in rows})
    return rows, n_rows


def _reader(block: Block, names: list[str]) -> Callable[[str, IntArray], pd.Series]:
    position_of = {name: position for position, name in enumerate(names)}
    return lambda name, rows: block.column(position_of[name], rows)


def _family(name: Hashable, texts: pd.Series, edges: Container[Hashable] = ()) -> str:
    return "numbers" if name in edges or are_numbers(texts.unique()) else "str"


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


def fit_source(
    settings: Settings,
    source: Source,
    *,
    allow_leaking: bool = True,
    **options: Any,
) -> tuple[Fitted, pd.DataFrame]:
    """Return what fitting to a file gives, and some of its rows if they are asked for.

    allow_leaking : whether a column that is copied may exceed the budget; options : of
    `count_source`.
    """
    counted = count_source(settings, source, **options)
    roles, sample = counted.roles, counted.sample
    kept = {(name := roles.name(p)): sample[name] for p in roles.kept_positions}
    s_passed = {name: sample[name] for name in roles.s_names} if kept else None
    written = {name: counted.written[name] for name in kept if name in counted.written}
    inputs = FitInputs(roles, counted.types, counted.rows, kept, s_passed, written=written)
    return fitted_to(settings, inputs, allow_leaking=allow_leaking), sample
