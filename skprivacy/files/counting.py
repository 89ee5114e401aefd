"""The pass over a file that counts S and X, and what fitting to the counts gives."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from .._messages import Message, Owner, Setting
from .._typing import IntArray
from ..fitted import Fitted
from ..fitting.encode_and_design import fitted_to
from ..fitting.inputs import CountedColumns, FitInputs, LabelledRows, roles_of_names
from ..fitting.parameters import Settings
from ..fitting.row_sample import RowSample
from ..fitting.tally import Tally, edges_of
from ..tables.column_roles import ColumnRoles
from ..tables.column_types import ColumnType
from .delimited import DelimitedSource
from .tables import Block, Source
from .text_values import are_numbers, meant


@dataclass(frozen=True, eq=False)
class CountedSource:
    """What one pass over a file has found.

    roles : which column is what; types : of the columns of X; rows : of S and X, with how often
    they occur; sample : some rows of the columns that may be released and of S, spread over the
    file.
    """

    roles: ColumnRoles
    types: tuple[ColumnType, ...]
    rows: LabelledRows
    sample: pd.DataFrame


def count_source(
    settings: Settings,
    source: Source,
    *,
    with_sample: bool = False,
    is_watched: bool = False,
) -> CountedSource:
    """Count S and X as the settings name them."""
    roles = roles_of_names(settings, source.names, "the file")
    _check_target(settings)
    positions = [*roles.s_positions, *roles.x_positions]
    counted = CountedColumns(
        tuple(source.names[p] for p in roles.s_positions),
        tuple(source.names[p] for p in roles.x_positions),
    )
    names, edges = counted.names, edges_of(settings.n_bins, counted.x)
    sampled_positions = {*positions, *roles.kept_positions}
    sampled_names = [name for p, name in enumerate(source.names) if p in sampled_positions]
    is_sampled = with_sample or roles.kept_positions
    sample = RowSample(sampled_names if is_sampled else [], whole=names)
    tally = Tally(names, edges=edges)
    for block in source.watched_blocks("counting", is_watched):
        columns: Any = [block.column(position) for position in positions]
        tally.add([_cut(column, edges) for column in columns])
        sample.add(len(block), _reader(block, source.names))
    if not len(tally.counts):
        raise ValueError(f"{source.input.name} has no rows.")
    columns, sampled = tally.columns(), sample.rows()
    if isinstance(source, DelimitedSource):
        families = {name: _family(name, column, edges) for name, column in columns.items()}
        columns = {name: _meant(columns[name], families[name]) for name in columns}
        families = {name: families.get(name) or _family(name, sampled[name]) for name in sampled}
        sampled = pd.DataFrame({name: _meant(sampled[name], families[name]) for name in sampled})
    else:
        columns = {name: _decoded(column) for name, column in columns.items()}
    counts, is_coarse = tally.counts.astype(float), tally.is_coarse
    rows = counted.rows(list(columns.values()), counts, is_coarse=is_coarse)
    types = tuple(map(source.type_of, roles.x_positions, rows.x_columns.values()))
    return CountedSource(roles, types, rows, sampled)


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


def _check_target(settings: Settings) -> None:
    if settings.has_target:
        needs_y = " needs y, which a file does not have."
        raise ValueError(
            Message(Owner(settings.owner), " with ", Setting("utility", "target"), needs_y)
        )


def _reader(block: Block, names: list[str]) -> Callable[[str, IntArray], pd.Series]:
    position_of = {name: position for position, name in enumerate(names)}
    return lambda name, rows: block.column(position_of[name], rows)


def _cut(column: pd.Series, edges: Container[Hashable]) -> pd.Series:
    """Return the texts of a column with edges as numbers; others wait until all are known."""
    if column.name not in edges or not isinstance(column.dtype, pd.CategoricalDtype):
        return column
    return meant(column, "numbers", column.name)


def _family(name: Hashable, texts: pd.Series, edges: Container[Hashable] = ()) -> str:
    return "numbers" if name in edges or are_numbers(texts.unique()) else "str"


def _decoded(column: pd.Series) -> pd.Series:
    """Return a dictionary-encoded column as its values, which have no order of their own."""
    is_dictionary = isinstance(column.dtype, pd.CategoricalDtype)
    return column.astype(column.cat.categories.dtype) if is_dictionary else column


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
    with_sample: bool = False,
    allow_leaking: bool = True,
    is_watched: bool = False,
) -> tuple[Fitted, pd.DataFrame]:
    """Return what fitting to a file gives, and some of its rows if they are asked for.

    allow_leaking : whether a column that is copied may exceed the budget.
    """
    counted = count_source(settings, source, with_sample=with_sample, is_watched=is_watched)
    roles, sample = counted.roles, counted.sample
    kept = {(name := roles.name(p)): sample[name] for p in roles.kept_positions}
    beside = {name: sample[name] for name in roles.s_names} if kept else None
    inputs = FitInputs(roles, counted.types, counted.rows, kept, beside)
    return fitted_to(settings, inputs, allow_leaking=allow_leaking), sample
