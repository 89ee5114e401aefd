"""Frames of Spark; the only module that imports pyspark, which brings pyarrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from ..fitting.tally import RowNumbers
from ..releasing.release import Release
from ..releasing.sampler import NoiseSource
from ..tables.frames import Table, as_table
from .lazy_frames import QueriedTable, needed_columns

_CAN_BE_CUT = (T.NumericType, T.DateType, T.TimestampType, T.TimestampNTZType)


class SparkTable(QueriedTable):
    """A frame of Spark."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame
        self.names = frame.columns

    def _can_be_cut(self, name: str) -> bool:
        return isinstance(self._frame.schema[name].dataType, _CAN_BE_CUT)

    def _column(self, name: str) -> Column:
        column = _quoted(name)
        if isinstance(self._frame.schema[name].dataType, T.DoubleType | T.FloatType):
            return F.when(~F.isnan(column), column)
        return column

    def _bin(self, column: Column, edges: list[Any]) -> Column:
        above = F.lit(0)
        for edge in edges:
            above = above + F.when(column > F.lit(edge), 1).otherwise(0)
        return F.when(column.isNotNull(), above)

    def _middle(self, column: Column) -> Column:
        return F.percentile_approx(column, 0.5)

    def _bounds(self, column: Column) -> tuple[Column, Column]:
        return F.min(column), F.max(column)

    def _grouped(
        self, keys: list[Column], middles: list[Any], bounds: list[Column], most: int
    ) -> Table:
        by = [key.alias(f"key {i}") for i, key in enumerate(keys)]
        parts = enumerate([*middles, F.count(F.lit(1)), *bounds])
        found = {i: part.alias(f"found {i}") for i, part in parts if part is not None}
        shown = [f"found {i}" if i in found else f"key {i}" for i in range(len(keys))]
        shown += [f"found {i}" for i in found if i >= len(keys)]
        query = self._frame.groupBy(*by).agg(*found.values()).select(*shown)
        return as_table(query.limit(most).toArrow(), "fit")

    def _numbered(self, numbers: RowNumbers, names: Sequence[str], number: str) -> SparkTable:
        needed = list(dict.fromkeys([*names, *numbers.read]))
        frame = self._with_rows(needed).drop("row")
        number_field = T.StructField("number", T.IntegerType())
        schema = T.StructType([*frame.schema.fields[: len(names)], number_field])
        find = partial(_numbered, needed, numbers, len(names))
        return SparkTable(frame.mapInArrow(find, schema).toDF(*names, number))

    def _with_rows(self, names: Sequence[str]) -> DataFrame:
        """Return some columns, and the number of each row as the last one.

        They get temporary names, because Spark reads a dot as a field of a structure.
        """
        columns = [_quoted(name).alias(f"column {i}") for i, name in enumerate(names)]
        # Not the number of the task: a task may compute several partitions.
        return self._frame.select(*columns, F.monotonically_increasing_id().alias("row"))

    def sampled(self, names: Sequence[str], highest: np.uint64) -> Table:
        # By a hash that Spark has: no other row leaves it. Its words have a sign.
        is_chosen = F.xxhash64("row") <= F.lit(int(highest) - 2**63)
        found = self._with_rows(names).filter(is_chosen).drop("row")
        return as_table(found.toDF(*names).toArrow(), "fit")

    def empty(self, names: Sequence[str]) -> Table:
        return as_table(self._frame.select(*map(_quoted, names)).limit(0).toArrow(), "fit")

    def released(self, release: Release, source: NoiseSource) -> DataFrame:
        names = needed_columns(self, release, source)
        numbered = self._with_rows(names)
        rewrite = Rewriting(names, release, source)
        nothing = rewrite(numbered.limit(0).toArrow())
        schema = self._frame.sparkSession.createDataFrame(nothing).schema
        return numbered.mapInArrow(partial(_rewritten, rewrite, nothing.schema), schema)


def _quoted(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")


@dataclass(frozen=True)
class Rewriting:
    """A release of Arrow tables, whose last column holds row numbers."""

    names: list[str]
    release: Release
    source: NoiseSource

    def __call__(self, numbered: pa.Table) -> pa.Table:
        *columns, numbers = numbered.columns
        table = as_table(pa.table(columns, names=self.names), self.release.owner)
        released = self.release.rows(table, self.source, numbers.to_numpy())
        return _without_dictionaries(released)


def _numbered(
    names: list[str], numbers: RowNumbers, n_kept: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the first columns of the batches of a partition, and the numbers of their rows."""
    for batch in batches:
        found = numbers.of_frame(pa.table(batch.columns, names=names))
        parts = [*batch.columns[:n_kept], pa.array(found, type=pa.int32())]
        numbered = pa.RecordBatch.from_arrays(parts, [*batch.schema.names[:n_kept], "number"])
        yield numbered.filter(pa.array(found >= 0))


def _without_dictionaries(table: pa.Table) -> pa.Table:
    """Return an Arrow table without dictionaries, which Spark does not accept."""
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
    return table


def _rewritten(
    rewrite: Rewriting, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a partition with X replaced by Y."""
    for batch in batches:
        yield from rewrite(pa.Table.from_batches([batch])).cast(schema).to_batches()
