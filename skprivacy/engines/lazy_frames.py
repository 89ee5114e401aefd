"""The protocol of lazy frames: count distinct rows, release rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from .._typing import NamedColumns
from ..encoding.columns import BinsLike, Edges, as_edges
from ..encoding.values import as_numbers
from ..fitting.counted_tables import CountedTable, Distinct, SampledRows
from ..fitting.inputs import CountedColumns
from ..fitting.tally import NUMBER, RowNumbers, check_covered, highest_rank, too_many, unlike
from ..releasing.keyed import GivenRecords
from ..releasing.release import Release
from ..releasing.sampler import NoiseSource
from ..tables.frames import Table, lazy_kind
from ..tables.table import ColumnRoles, ColumnType, labels_of


class LazyTable(CountedTable):
    """A lazy frame of some library."""

    @abstractmethod
    def released(self, release: Release, source: NoiseSource) -> Any:
        """Return the lazy frame with X replaced by Y."""

    def prepare(self, roles: ColumnRoles, counted: CountedColumns, edges: Edges) -> None:
        kept = [roles.name(p) for p in roles.kept_positions]
        self._sampled = [*counted.s, *kept] if kept or self.has_index else []

    @property
    def has_index(self) -> bool:
        """Whether rows are released with an index other than their numbers."""
        return False

    def sample(self, n_rows: int) -> SampledRows:
        if not self._sampled:
            return SampledRows()
        names = list(dict.fromkeys(self._sampled))
        table = self.sampled(names, highest_rank(n_rows, len(names)))
        levels = table.index_levels() if self.has_index else []
        index = dict(zip(labels_of(levels), levels, strict=True))
        return SampledRows(table.named(range(len(names))), index)

    @abstractmethod
    def sampled(self, names: Sequence[str], highest: np.uint64) -> Table:
        """Return some columns at the rows with at most this rank, a hash of their numbers."""

    @abstractmethod
    def empty(self, names: Sequence[str]) -> Table:
        """Return a table of some columns, without rows."""

    def types(self, names: Sequence[str], values: NamedColumns) -> tuple[ColumnType, ...]:
        return tuple(map(self.empty(names).type_of, range(len(names))))


def needed_columns(table: LazyTable, release: Release, source: NoiseSource) -> list[str]:
    """Return the names of the columns that a release reads."""
    if release.roles.names is None:
        without = "was fitted without column names: to release a frame, fit it to one"
        raise ValueError(f"{release.owner} {without}.")
    if isinstance(source, GivenRecords):
        raise TypeError("With a lazy frame, record_ids must be the name of one of its columns.")
    roles = release.roles
    names = list(dict.fromkeys([*map(roles.name, roles.read), *source.columns]))
    if missing := [name for name in names if name not in table.names]:
        needed = f"X lacks the columns {missing} that {release.owner} needs"
        raise ValueError(f"{needed}. It has {table.names}.{roles.person_hint(missing)}")
    return names


class QueriedTable(LazyTable):
    """A table that is counted by a query, whose parts each engine defines."""

    def count(
        self, names: Sequence[Any], edges: Edges, limit: int, numbers: RowNumbers | None = None
    ) -> Distinct:
        if numbers is not None:
            others = [name for name in names if name != NUMBER]
            number = unlike("number", [*others, *numbers.read])
            table = self._numbered(numbers, others, number)
            distinct = table.count([*others, number], edges, limit)
            distinct.columns[NUMBER] = distinct.columns.pop(number)
            return distinct
        cut = {name: edges[name] for name in names if name in edges and self._can_be_cut(name)}
        inner = {name: _inner(given, name) for name, given in cut.items()}
        columns = {name: self._column(name) for name in names}
        keys = [self._bin(c, inner[name]) if name in cut else c for name, c in columns.items()]
        middles = [self._middle(c) if name in cut else None for name, c in columns.items()]
        bounds = [bound for name in cut for bound in self._bounds(columns[name])]
        # Values, then counts, then the bounds.
        grouped = self._grouped(keys, middles, bounds, limit + 1)
        found = {name: grouped.column(i) for i, name in enumerate(names)}
        if grouped.n_rows > limit:
            raise too_many(limit, {name: column.nunique() for name, column in found.items()})
        at = len(names)
        for i, (name, given) in enumerate(cut.items()):
            bounds = [as_numbers(grouped.column(at + 2 * i + side), name) for side in (1, 2)]
            check_covered(name, as_edges(given, name), *bounds)
        counts = grouped.column(at).to_numpy().astype(float)
        return Distinct(found, counts, is_coarse=bool(cut))

    @abstractmethod
    def _numbered(self, numbers: RowNumbers, names: Sequence[str], number: str) -> QueriedTable:
        """Return a table of some columns, and of the number of each row under the name `number`.

        Rows without a number, -1, are left out.
        """

    @abstractmethod
    def _can_be_cut(self, name: str) -> bool:
        """Whether a column holds numbers or times."""

    @abstractmethod
    def _column(self, name: str) -> Any:
        """Return a column with NaN as missing."""

    @abstractmethod
    def _bin(self, column: Any, edges: list[Any]) -> Any:
        """Return the number of edges below a value: the bins are ``(edge, next edge]``."""

    @abstractmethod
    def _middle(self, column: Any) -> Any:
        """Return a value of a group near its median, which stands for its bin."""

    @abstractmethod
    def _bounds(self, column: Any) -> tuple[Any, Any]:
        """Return the smallest and the largest value of a group."""

    @abstractmethod
    def _grouped(self, keys: list[Any], middles: list[Any], bounds: list[Any], most: int) -> Table:
        """Return values, counts and bounds of the groups by keys, of at most `most` groups.

        middles : the value for each key, None for the key itself.
        """


def _inner(edges: BinsLike, name: str) -> list[Any]:
    """Return the edges between bins as Python objects, which queries accept."""
    as_edges(edges, name)  # checks them before the query
    return pd.Series(list(edges)[1:-1]).tolist()


# Module and class for each library.
_TABLES = {
    "polars": ("lazy_polars", "PolarsTable"),
    "dask": ("dask_frames", "DaskTable"),
    "pyspark": ("spark_frames", "SparkTable"),
}


def any_table(
    X: Any, owner: str, sensitive_features: Any = None, sample_weight: Any = None
) -> Any:
    """Return a `LazyTable` for a lazy frame, and anything else unchanged.

    sensitive_features, sample_weight : must be None for a lazy frame.
    """
    kind = lazy_kind(X)
    if kind is None:
        return X
    if sensitive_features is not None:
        raise TypeError(
            "sensitive_features cannot be passed with a lazy frame: make it a column of the "
            "frame, and name it with sensitive=...."
        )
    if sample_weight is not None:
        raise TypeError(
            "sample_weight cannot be passed with a lazy frame: collect the columns that are "
            "needed first, or fit batch by batch with partial_fit."
        )
    if kind not in _TABLES:
        got = f"takes lazy frames of {', '.join(_TABLES)}, but got one of {kind}"
        raise TypeError(f"{owner} {got}: collect it first.")
    module, table = _TABLES[kind]
    try:
        return getattr(import_module(f".{module}", __package__), table)(X)
    except ImportError as error:
        extra = "spark" if kind == "pyspark" else kind
        raise ImportError(
            f"{error}. Frames of {kind} need packages that are missing or too old here: run "
            f'pip install ".[{extra}]" in a clone.'
        ) from error
