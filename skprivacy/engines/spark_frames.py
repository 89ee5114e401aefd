"""Frames of Spark; the only import of pyspark, which brings pyarrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    DateType,
    DoubleType,
    FloatType,
    NumericType,
    TimestampNTZType,
    TimestampType,
)

from .._typing import FloatArray, NamedColumns
from ..encoding.bins import BinsLike
from ..frames import as_table
from ..noise import NoiseSource
from ..release import Release
from .base import GroupedRows, LazyTable, inner_edges, needed_columns

_CAN_BE_CUT = (NumericType, DateType, TimestampType, TimestampNTZType)


def table_of(frame: DataFrame) -> SparkTable:
    """Return the `LazyTable` around a frame of Spark."""
    return SparkTable(frame)


class SparkTable(LazyTable):
    """A frame of Spark."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame
        self.names = frame.columns

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
        # About the median, a value that was seen stands for each bin.
        values = [
            (F.percentile_approx(column, 0.5) if name in cut else F.first(column)).alias(f"v{i}")
            for i, (name, column) in enumerate(columns.items())
        ]
        bounds = [
            which(columns[name]).alias(f"{which.__name__} of {i}")
            for i, name in enumerate(cut)
            for which in (F.min, F.max)
        ]
        count = F.count(F.lit(1)).alias("count")
        query = self._frame.groupBy(*keys).agg(*values, count, *bounds)
        found = query.drop(*(f"key {i}" for i in range(len(keys)))).limit(limit + 1)
        return grouped.checked(as_table(found.toArrow(), "fit"))

    def _can_be_cut(self, name: str) -> bool:
        return isinstance(self._frame.schema[name].dataType, _CAN_BE_CUT)

    def _column(self, name: str) -> Column:
        """Return a column in which what is not a number is missing."""
        column = _quoted(name)
        if isinstance(self._frame.schema[name].dataType, DoubleType | FloatType):
            return F.when(~F.isnan(column), column)
        return column

    def released(self, release: Release, source: NoiseSource) -> DataFrame:
        names = needed_columns(self, release, source)
        # Names of our own on the way: Spark would read a dot as a field of a structure.
        columns = [_quoted(name).alias(f"column {i}") for i, name in enumerate(names)]
        # Not the number of the task: a task may compute several partitions.
        numbered = self._frame.select(*columns, F.monotonically_increasing_id().alias("row"))
        rewrite = _Rewriting(names, release, source)
        nothing = rewrite(numbered.limit(0).toArrow())
        schema = self._frame.sparkSession.createDataFrame(nothing).schema
        return numbered.mapInArrow(partial(_rewritten, rewrite, nothing.schema), schema)


def _quoted(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")


def _bin(column: Column, edges: list[Any]) -> Column:
    """Return how many edges are below a value: the bins are ``(edge, next edge]``."""
    above = F.lit(0)
    for edge in edges:
        above = above + F.when(column > F.lit(edge), 1).otherwise(0)
    return F.when(column.isNotNull(), above)


@dataclass(frozen=True)
class _Rewriting:
    """What is done to a table of Arrow, whose last column has the numbers of rows."""

    names: list[str]
    release: Release
    source: NoiseSource

    def __call__(self, numbered: pa.Table) -> pa.Table:
        *columns, numbers = numbered.columns
        table = as_table(pa.table(columns, names=self.names), self.release.owner)
        released = self.release.rows(table, self.source, numbers.to_numpy())
        return _without_dictionaries(released)


def _without_dictionaries(table: pa.Table) -> pa.Table:
    """Return a table of Arrow as Spark takes it."""
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
    return table


def _rewritten(
    rewrite: _Rewriting, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a partition with X replaced by Y."""
    for batch in batches:
        yield from rewrite(pa.Table.from_batches([batch])).cast(schema).to_batches()
