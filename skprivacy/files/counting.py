"""A file as a table that is counted, one pass for each count; and what fitting to it gives."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import pandas as pd

from .._typing import IntArray, NamedColumns
from ..encoding.bins import BinsLike
from ..encoding.values import family_of
from ..fitted import Fitted
from ..fitting.counted_tables import CountedTable, Distinct, SampledRows, add_rows, counted_inputs
from ..fitting.encode_and_design import fitted_to
from ..fitting.inputs import CountedColumns, FitInputs
from ..fitting.known_cells import NUMBER, RowNumbers
from ..fitting.parameters import Settings
from ..fitting.row_sample import RowSample
from ..fitting.tally import Tally
from ..tables.column_roles import ColumnRoles
from ..tables.column_types import ColumnType
from .delimited import DelimitedSource
from .tables import Block, Source
from .text_values import are_numbers, has_values, meant, written_numbers


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
        self._families, self._edges = dict(families or {}), dict[Any, BinsLike]()
        # Columns whose texts may be numbers or not, as long as no row is known to settle it.
        self._open: set[Any] = set()
        self._with_sample, self._sample, self._is_sampled = with_sample, RowSample([]), False

    def prepare(
        self, roles: ColumnRoles, counted: CountedColumns, edges: Mapping[Any, BinsLike]
    ) -> None:
        self._edges = dict(edges)
        self._families = dict.fromkeys(edges, "numbers") | dict.fromkeys(counted.groups, "str")
        self._open = {*counted.in_table} - {*self._families}
        if self._with_sample or roles.kept_positions:
            others = *roles.s_positions, *roles.kept_positions, roles.group_position
            positions = {*roles.read_positions, *others}
            names = [name for p, name in enumerate(self.names) if p in positions]
            self._sample = RowSample(names, whole=counted.in_table)

    def count(
        self,
        names: Sequence[Any],
        edges: Mapping[Any, BinsLike],
        limit: int,
        numbers: RowNumbers | None = None,
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

    @cached_property
    def sample(self) -> SampledRows:
        rows = self._sample.rows()
        if not isinstance(self.source, DelimitedSource):
            return SampledRows(dict(rows.items()))
        typed = self._typed(dict(rows.items()))
        of_numbers = [name for name in typed if self._families[name] == "numbers"]
        return SampledRows(typed, {name: written_numbers(rows[name]) for name in of_numbers})

    def types(self, names: Sequence[str], values: NamedColumns) -> tuple[ColumnType, ...]:
        return tuple(self.source.type_of(self.names.index(n), values[n]) for n in names)

    def no_rows(self, owner: str) -> ValueError:
        return ValueError(f"{self.source.input.name} has no rows.")


def count_source(
    settings: Settings,
    source: Source,
    *,
    target: str | None = None,
    apart: Collection[str] = (),
    is_watched: bool = False,
) -> FitInputs:
    """Count S and X of a file as the settings name them; parameters as in `counted_inputs`."""
    return counted_inputs(settings, FileTable(source, is_watched=is_watched), target, apart)


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
    inputs = counted_inputs(settings, table, target, apart)
    fitted = fitted_to(settings, inputs, allow_leaking=allow_leaking)
    return fitted, pd.DataFrame(table.sample.columns)


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
