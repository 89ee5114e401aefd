"""Lazy frames of polars; the only import of polars."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from .._typing import FloatArray, NamedColumns
from ..encoding.bins import BinsLike
from ..exceptions import PrivacyLeakWarning
from ..frames import as_table
from ..noise import FreshSource, NoiseSource
from ..release import Release
from .base import GroupedRows, LazyTable, inner_edges, needed_columns

# What leaves the order of rows open, in the text of a plan. A join, and in older versions a sort,
# does not show whether it does.
_ANY_ORDER = re.compile(
    r"^ *(?!SEMI|ANTI|ASOF|END)[A-Z]+ JOIN(?=:)"
    r"|^ *(?:UNIQUE|AGGREGATE|UNION)(?=\[maintain_order: false)"
    r"|^ *SORT BY(?! \[maintain_order: true)"
    r"|\.(?:shuffle|sample|unique)(?=\()",
    re.MULTILINE,
)


def table_of(frame: pl.LazyFrame) -> PolarsTable:
    """Return the `LazyTable` around a lazy frame."""
    return PolarsTable(frame)


class PolarsTable(LazyTable):
    """A lazy frame of polars."""

    def __init__(self, frame: pl.LazyFrame) -> None:
        self._frame = frame
        self._schema = frame.collect_schema()
        self.names = self._schema.names()

    def count(
        self, names: Sequence[str], edges: Mapping[str, BinsLike], limit: int
    ) -> tuple[NamedColumns, FloatArray]:
        cut = {name: edges[name] for name in names if name in edges and self._can_be_cut(name)}
        grouped = GroupedRows(names, cut, limit)
        columns = {name: self._column(name) for name in names}
        keys = [
            (_bin(column, inner_edges(cut[name])) if name in cut else column).alias(f"key {i}")
            for i, (name, column) in enumerate(columns.items())
        ]
        values = {
            f"value {i}": _middle(columns[name]) if name in cut else columns[name].first()
            for i, name in enumerate(names)
        }
        bounds = {
            f"{which} of {i}": getattr(columns[name], which)()
            for i, name in enumerate(cut)
            for which in ("min", "max")
        }
        query = self._frame.group_by(keys).agg(**values, count=pl.len(), **bounds)
        found = query.select(*values, "count", *bounds).head(limit + 1)
        table = as_table(found.collect(engine="streaming"), "fit")
        return grouped.checked(table)

    def _can_be_cut(self, name: str) -> bool:
        return self._schema[name].is_numeric() or self._schema[name].is_temporal()

    def _column(self, name: str) -> pl.Expr:
        """Return a column in which what is not a number is missing."""
        column = pl.col(name)
        return column.fill_nan(None) if self._schema[name].is_float() else column

    def released(self, release: Release, source: NoiseSource) -> pl.LazyFrame:
        names = needed_columns(self, release, source)
        if isinstance(source, FreshSource):
            _warn_of_order(self._frame)
        row = "row"
        while row in names:
            row += " "

        def release_batch(batch: pl.DataFrame) -> pl.DataFrame:
            numbers = batch[row].to_numpy().astype(np.int64)
            return release.rows(as_table(batch.drop(row), release.owner), source, numbers)

        nothing = pl.DataFrame(schema={name: self._schema[name] for name in names})
        schema = release_batch(nothing.with_row_index(row)).schema
        # Nothing may pass to the other side of the draw: a filter on Y would be one on X.
        return (
            self._frame.select(names)
            .with_row_index(row)
            .map_batches(
                release_batch,
                predicate_pushdown=False,
                projection_pushdown=False,
                slice_pushdown=False,
                schema=dict(schema),
                streamable=True,
            )
        )


def _warn_of_order(frame: pl.LazyFrame) -> None:
    """Warn of a query whose rows may come in another order each time: it would renumber them."""
    plan = frame.explain(optimized=False)
    if found := _ANY_ORDER.search(plan):
        warnings.warn(
            f"The rows of this lazy frame may come in another order each time that it is computed "
            f"(because of {found.group().strip()!r}), and each time they would be drawn anew: "
            f"compute the release once, fix the order before it (maintain_order=True in all but "
            f"a join, or .collect().lazy()), or release by record_ids and a secret_key.",
            PrivacyLeakWarning,
            stacklevel=5,  # scikit-learn wraps transform
        )


def _bin(column: pl.Expr, edges: list[Any]) -> pl.Expr:
    """Return how many edges are below a value: the bins are ``(edge, next edge]``."""
    above = pl.sum_horizontal([pl.lit(0), *((column > edge).cast(pl.Int32) for edge in edges)])
    return pl.when(column.is_not_null()).then(above)


def _middle(column: pl.Expr) -> pl.Expr:
    """Return a value that was seen, about the median: it stands for its bin."""
    ordered = column.drop_nulls().sort()
    return ordered.slice(ordered.len() // 2, 1).first()
