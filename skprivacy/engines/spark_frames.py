"""Frames of Spark; the only import of pyspark, which brings pyarrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import (
    DateType,
    DoubleType,
    FloatType,
    NumericType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from .._typing import FloatArray, NamedColumns
from ..encoding.bins import BinsLike
from ..frames import as_table
from ..noise import NoiseSource
from ..release import Release
from .base import GroupedRows, LazyTable, inner_edges, needed_columns, unused_name

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
        grouped = self._frame.groupBy(*keys).agg(*values, count, *bounds)
        found = grouped.drop(*(f"key {i}" for i in range(len(keys)))).limit(limit + 1)
        return GroupedRows(names, cut, limit).checked(as_table(found.toArrow(), "fit"))

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
        row = unused_name(names)
        # Not the number of the task: a task may compute several partitions.
        numbered = self._frame.select(
            *map(_quoted, names), F.monotonically_increasing_id().alias(row)
        )
        schema = _schema_out(numbered.schema, row, release, source)
        return numbered.mapInArrow(_releasing(row, schema, release, source), schema)


def _quoted(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")


def _bin(column: Column, edges: list[Any]) -> Column:
    """Return how many edges are below a value: the bins are ``(edge, next edge]``."""
    above = F.lit(0)
    for edge in edges:
        above = above + F.when(column > F.lit(edge), 1).otherwise(0)
    return F.when(column.isNotNull(), above)


def _released(table: Any, row: str, release: Release, source: NoiseSource) -> Any:
    """Return a table of Arrow with X replaced by Y."""
    numbers = table.column(row).to_numpy().astype(np.int64)
    return release.rows(as_table(table.drop_columns(row), release.owner), source, numbers)


def _schema_out(schema: StructType, row: str, release: Release, source: NoiseSource) -> StructType:
    """Return the schema of what is released, from a table without rows."""
    released = _released(to_arrow_schema(schema).empty_table(), row, release, source)
    return from_arrow_schema(_without_dictionaries(released).schema)


def _without_dictionaries(table: Any) -> Any:
    """Return a table of Arrow as Spark takes it."""
    for i, field in enumerate(table.schema):
        if hasattr(field.type, "index_type"):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
    return table


def _releasing(row: str, schema: StructType, release: Release, source: NoiseSource) -> Any:
    """Return the function that Spark applies to the batches of a partition."""

    def release_batches(batches: Iterable[Any]) -> Iterator[Any]:
        arrow_schema = to_arrow_schema(schema)
        for batch in batches:
            table = pa.Table.from_batches([batch])
            released = _without_dictionaries(_released(table, row, release, source))
            yield from released.cast(arrow_schema).to_batches()

    return release_batches
