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

# The steps of a plan that leave the order of rows undefined, or may do so: the text of a join, and
# in older versions of a sort, does not show it.
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

    def _bounds(self, column: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
        return column.min(), column.max()

    def _grouped(
        self, keys: list[pl.Expr], middles: list[Any], bounds: list[pl.Expr], most: int
    ) -> Table:
        by = [key.alias(f"key {i}") for i, key in enumerate(keys)]
        parts = {f"found {i}": part for i, part in enumerate([*middles, pl.len(), *bounds])}
        found = {name: part for name, part in parts.items() if part is not None}
        shown = [name if name in found else f"key {i}" for i, name in enumerate(parts)]
        query = self._frame.group_by(by).agg(**found).select(shown).head(most)
        return as_table(query.collect(engine="streaming"), "fit")

    def _numbered(self, numbers: RowNumbers, names: Sequence[str], number: str) -> PolarsTable:
        def find(batch: pl.DataFrame) -> pl.DataFrame:
            found = pl.Series(number, numbers.of_frame(batch), dtype=pl.Int32)
            return batch.with_columns(found).select(*names, number).filter(found >= 0)

        return PolarsTable(self._rewritten(list(dict.fromkeys([*names, *numbers.read])), find))

    def sampled(self, names: Sequence[str], highest: np.uint64) -> Table:
        row = unlike("row", names)

        def choose(batch: pl.DataFrame) -> pl.DataFrame:
            return batch.filter(ranks_of(batch[row].to_numpy()) <= highest).drop(row)

        return as_table(self._rewritten(names, choose, row).collect(engine="streaming"), "fit")

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

        return self._rewritten(names, release_batch, row)

    def _rewritten(
        self,
        names: Sequence[str],
        rewrite: Callable[[pl.DataFrame], pl.DataFrame],
        row: str | None = None,
    ) -> pl.LazyFrame:
        """Return some columns with all batches rewritten; row : the name for row numbers."""
        frame, nothing = self._frame.select(names), self._nothing(names)
        if row is not None:
            frame, nothing = frame.with_row_index(row), nothing.with_row_index(row)
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
    """Warn about a query whose rows may get other numbers each time it is computed."""
    if found := _ANY_ORDER.search(frame.explain(optimized=False)):
        warn(
            f"The order of rows may differ each time this lazy frame is computed (because of "
            f"{found.group().strip()!r}), and each time they would be drawn anew: compute the "
            f"release only once, fix the order before it (maintain_order=True for all but a join, "
            f"or .collect().lazy()), or release by record_ids and a secret_key.",
            PrivacyLeakWarning,
        )
