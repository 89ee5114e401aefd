"""Lazy frames of polars; the only module that imports polars."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from .._messages import warn
from ..exceptions import PrivacyLeakWarning
from ..fitting.tally import RowNumbers, ranks_of, unlike
from ..releasing.release import Release
from ..releasing.sampler import FreshSource, NoiseSource
from ..tables.frames import Table, as_table
from .lazy_frames import QueriedTable, needed_columns

# What leaves the order of rows undefined, in the text of a plan. The text of a join, and in older
# versions that of a sort, does not show whether it does.
_ANY_ORDER = re.compile(
    r"^ *(?!SEMI|ANTI|ASOF|END)[A-Z]+ JOIN(?=:)"
    r"|^ *(?:UNIQUE|AGGREGATE|UNION)(?=\[maintain_order: false)"
    r"|^ *SORT BY(?! \[maintain_order: true)"
    r"|\.(?:shuffle|sample|unique)(?=\()",
    re.MULTILINE,
)


class PolarsTable(QueriedTable):
    """A lazy frame of polars."""

    def __init__(self, frame: pl.LazyFrame) -> None:
        self._frame = frame
        self._schema = frame.collect_schema()
        self.names = self._schema.names()

    def _can_be_cut(self, name: str) -> bool:
        return self._schema[name].is_numeric() or self._schema[name].is_temporal()

    def _column(self, name: str) -> pl.Expr:
        column = pl.col(name)
        return column.fill_nan(None) if self._schema[name].is_float() else column

    def _bin(self, column: pl.Expr, edges: list[Any]) -> pl.Expr:
        above = [(column > edge).cast(pl.Int32) for edge in edges]
        return pl.when(column.is_not_null()).then(pl.sum_horizontal([pl.lit(0), *above]))

    def _middle(self, column: pl.Expr) -> pl.Expr:
        ordered = column.drop_nulls().sort()
        return ordered.slice(ordered.len() // 2, 1).first()

    def _first(self, column: pl.Expr) -> pl.Expr:
        return column.first()

    def _bounds(self, column: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
        return column.min(), column.max()

    def _grouped(
        self, keys: list[pl.Expr], values: list[pl.Expr], bounds: list[pl.Expr], most: int
    ) -> Table:
        by = [key.alias(f"key {i}") for i, key in enumerate(keys)]
        found = {f"found {i}": part for i, part in enumerate([*values, pl.len(), *bounds])}
        query = self._frame.group_by(by).agg(**found).select(*found).head(most)
        return as_table(query.collect(engine="streaming"), "fit")

    def _numbered(self, numbers: RowNumbers, names: Sequence[str], number: str) -> PolarsTable:
        def find(batch: pl.DataFrame) -> pl.DataFrame:
            found = pl.Series(number, numbers.of_frame(batch), dtype=pl.Int32)
            return batch.with_columns(found).select(*names, number).filter(found >= 0)

        needed = list(dict.fromkeys([*names, *numbers.read]))
        return PolarsTable(_rewritten(self._frame.select(needed), find, self._nothing(needed)))

    def sampled(self, names: Sequence[str], highest: np.uint64) -> Table:
        row = unlike("row", names)

        def choose(batch: pl.DataFrame) -> pl.DataFrame:
            return batch.filter(ranks_of(batch[row].to_numpy()) <= highest).drop(row)

        frame, nothing = self._frame.select(names), self._nothing(names)
        found = _rewritten(frame.with_row_index(row), choose, nothing.with_row_index(row))
        return as_table(found.collect(engine="streaming"), "fit")

    def empty(self, names: Sequence[str]) -> Table:
        return as_table(self._nothing(names), "fit")

    def _nothing(self, names: Sequence[str]) -> pl.DataFrame:
        return pl.DataFrame(schema={name: self._schema[name] for name in names})

    def released(self, release: Release, source: NoiseSource) -> pl.LazyFrame:
        names = needed_columns(self, release, source)
        if isinstance(source, FreshSource):
            _warn_of_order(self._frame)
        row = unlike("row", names)

        def release_batch(batch: pl.DataFrame) -> pl.DataFrame:
            numbers = batch[row].to_numpy().astype(np.int64)
            return release.rows(as_table(batch.drop(row), release.owner), source, numbers)

        frame, nothing = self._frame.select(names), self._nothing(names)
        return _rewritten(frame.with_row_index(row), release_batch, nothing.with_row_index(row))


def _rewritten(
    frame: pl.LazyFrame, rewrite: Callable[[pl.DataFrame], pl.DataFrame], nothing: pl.DataFrame
) -> pl.LazyFrame:
    """Return a lazy frame whose batches are rewritten; nothing : one without rows."""
    # The optimizer must move nothing across a draw: a filter on Y would become one on X.
    return frame.map_batches(
        rewrite,
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
        schema=dict(rewrite(nothing).schema),
        streamable=True,
    )


def _warn_of_order(frame: pl.LazyFrame) -> None:
    """Warn about a query whose rows may come in a new order each time, which renumbers them."""
    plan = frame.explain(optimized=False)
    if found := _ANY_ORDER.search(plan):
        warn(
            f"The rows of this lazy frame may come in a different order each time it is computed "
            f"(because of {found.group().strip()!r}), and each time they would be drawn anew: "
            f"compute the release only once, fix the order before it (maintain_order=True for all "
            f"but a join, or .collect().lazy()), or release by record_ids and a secret_key.",
            PrivacyLeakWarning,
        )
