"""The pass over a file that counts S and X, and a transformer fitted to the counts."""

from __future__ import annotations

from collections.abc import Container, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..encoding.bins import BinsLike
from ..frames import as_table
from ..layout import Layout
from ..leak_warnings import warn_of_passed_through
from ..learning import LabelledRows
from ..parameters import check_bin_names, check_parameters
from ..tally import Tally
from ..transformer import PrivacyFunnelTransformer
from ..utilities import Target
from .delimited import DelimitedSource
from .subsample import Subsample
from .tables import Source
from .text_values import are_numbers, meant


@dataclass(frozen=True, eq=False)
class CountedSource:
    """What one pass over a file has found.

    layout : which column is what; rows : of S and X, with how often they occur; sample : some
    rows of the columns that may be released and of S, spread over the file.
    """

    layout: Layout
    rows: LabelledRows
    sample: pd.DataFrame


def count_source(
    transformer: PrivacyFunnelTransformer,
    source: Source,
    *,
    with_sample: bool = False,
    is_watched: bool = False,
) -> CountedSource:
    """Count S and X as the parameters of a transformer name them."""
    check_parameters(transformer)
    _check_whole(transformer)
    layout = _layout_of(transformer, source)
    check_bin_names(transformer, source.names)
    positions = [*layout.s_positions, *layout.x_positions]
    names = [source.names[position] for position in positions]
    n_s = len(layout.s_positions)
    edges = _edges(transformer.n_bins, names[n_s:])
    sampled_names = source.names if transformer.remainder == "passthrough" else names
    sample = Subsample(sampled_names if with_sample else [], whole=names)
    tally = Tally(names, edges=edges)
    for block in source.watched_blocks("counting", is_watched):
        columns: Any = [block.column(position) for position in positions]
        tally.add([_cut(column, edges) for column in columns])
        sample.add(block, source.names)
    if not len(tally.counts):
        raise ValueError(f"{source.input.name} has no rows.")
    columns, sampled = tally.columns(), sample.rows()
    if isinstance(source, DelimitedSource):
        families = {name: _family(name, column, edges) for name, column in columns.items()}
        columns = {name: _meant(columns[name], families[name]) for name in columns}
        families = {name: families.get(name) or _family(name, sampled[name]) for name in sampled}
        sampled = pd.DataFrame({name: _meant(sampled[name], families[name]) for name in sampled})
    counts = tally.counts.astype(float)
    s_columns = {name: columns[name] for name in names[:n_s]}
    x_columns = {name: columns[name] for name in names[n_s:]}
    return CountedSource(layout, LabelledRows(s_columns, x_columns, counts, counts), sampled)


def sample_source(
    source: Source, limit: int, *, is_watched: bool = False
) -> tuple[pd.DataFrame, int]:
    """Return some rows of a file, spread over it, and how many rows it has."""
    sample, n_rows = Subsample(source.names, limit), 0
    for block in source.watched_blocks("reading", is_watched):
        sample.add(block, source.names)
        n_rows += len(block)
    rows = sample.rows()
    if isinstance(source, DelimitedSource):
        rows = pd.DataFrame({name: _meant(rows[name], _family(name, rows[name])) for name in rows})
    return rows, n_rows


def _check_whole(transformer: PrivacyFunnelTransformer) -> None:
    """Check that all that is to be learned is in the file."""
    owner = type(transformer).__name__
    if transformer.sensitive is None:
        raise ValueError(f"The 'sensitive' parameter of {owner} must name columns of the file.")
    if transformer.utility == Target.name:
        raise ValueError(f"{owner} with utility='target' needs y, which a file does not have.")


def _layout_of(transformer: PrivacyFunnelTransformer, source: Source) -> Layout:
    owner, table = type(transformer).__name__, as_table(pd.DataFrame(columns=source.names), "file")
    s_positions = table.positions(owner, "sensitive", transformer.sensitive)
    x_positions = transformer._x_positions(table, s_positions)
    return Layout(source.names, table.n_columns, tuple(x_positions), tuple(s_positions))


def _edges(n_bins: Any, x_names: list[str]) -> dict[str, BinsLike]:
    """Return the edges that are given for columns, by name; without names they are for X."""
    given = n_bins if isinstance(n_bins, dict) else dict.fromkeys(x_names, n_bins)
    return {name: edges for name, edges in given.items() if np.ndim(edges) == 1}


def _cut(column: pd.Series, edges: Container[Hashable]) -> pd.Series:
    """Return texts with edges as numbers; others are judged when all their values are known."""
    if column.name not in edges or not isinstance(column.dtype, pd.CategoricalDtype):
        return column
    return meant(column, "numbers", column.name)


def _family(name: Hashable, texts: pd.Series, edges: Container[Hashable] = ()) -> str:
    return "numbers" if name in edges or are_numbers(texts.unique()) else "str"


def _meant(column: pd.Series, family: str) -> pd.Series:
    """Return a column of texts as what it means, categories without an order of their own."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column
    typed = meant(pd.Series(pd.Categorical(column)), family, column.name)
    return typed if family == "numbers" else typed.astype(object)


def fit_source(
    transformer: PrivacyFunnelTransformer,
    source: Source,
    *,
    with_sample: bool = False,
    is_watched: bool = False,
) -> pd.DataFrame:
    """Fit a transformer to a file, and return some of its rows if they are asked for."""
    passes = transformer.remainder == "passthrough"
    counted = count_source(
        transformer, source, with_sample=with_sample or passes, is_watched=is_watched
    )
    transformer._fit_rows(counted.layout, counted.rows)
    if passes:
        _warn_of_passed_through(transformer, counted)
    return counted.sample


def _warn_of_passed_through(transformer: PrivacyFunnelTransformer, counted: CountedSource) -> None:
    layout, sample = counted.layout, counted.sample
    protected = [layout.name(position) for position in layout.s_positions]
    s_codes, _ = transformer._sensitive.encode([sample[name] for name in protected], protected)
    others = {(name := layout.name(p)): sample[name] for p in layout.other_positions}
    warn_of_passed_through(transformer.mechanism_, others, s_codes, None)
