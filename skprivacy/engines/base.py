"""What every engine does: count distinct rows, and release rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from .._typing import FloatArray, NamedColumns
from ..encoding.bins import BinsLike, as_edges
from ..encoding.values import as_numbers
from ..frames import Table
from ..keyed_release import GivenRecords
from ..noise import NoiseSource
from ..release import Release
from ..tally import too_many


class LazyTable(ABC):
    """A table that is computed later or elsewhere.

    names : of its columns.
    """

    names: list[str]

    @abstractmethod
    def count(
        self, names: Sequence[str], edges: Mapping[str, BinsLike], limit: int
    ) -> tuple[NamedColumns, FloatArray]:
        """Return the distinct rows of some columns, and how often each occurs.

        edges : where numbers and times are cut; one value, about the median, may then stand for
        each bin. More than `limit` distinct rows are an error.
        """

    @abstractmethod
    def released(self, release: Release, source: NoiseSource) -> Any:
        """Return the lazy frame with X replaced by Y."""


def needed_columns(table: LazyTable, release: Release, source: NoiseSource) -> list[str]:
    """Return the names of the columns that a release reads."""
    if release.layout.names is None:
        raise ValueError(
            f"{release.owner} was fitted without column names: fit it to a frame to release one."
        )
    if isinstance(source, GivenRecords):
        raise TypeError(
            "record_ids must be the name of a column of a lazy frame, whose rows are elsewhere."
        )
    own = [release.layout.name(p) for p in release.layout.order(release.passthrough)]
    missing = [name for name in (*own, *source.columns) if name not in table.names]
    if missing:
        raise ValueError(
            f"X lacks the columns {missing} that {release.owner} needs. It has {table.names}."
        )
    return list(dict.fromkeys([*own, *source.columns]))


class GroupedRows:
    """Distinct rows as a query returns them, before they are checked.

    The query returns a column for each name, then the counts, then the smallest and the largest
    value for each name with edges, in this order.
    """

    def __init__(self, names: Sequence[str], edges: Mapping[str, BinsLike], limit: int) -> None:
        self._names, self._limit = list(names), limit
        self._edges = {name: edges[name] for name in names if name in edges}
        for name, given in self._edges.items():
            as_edges(given, name)

    def checked(self, table: Table) -> tuple[NamedColumns, FloatArray]:
        """Return the columns and the counts of a table of results."""
        if table.n_rows > self._limit:
            sizes = {n: table.column(i).nunique() for i, n in enumerate(self._names)}
            raise too_many(self._limit, sizes)
        columns = {name: table.column(i) for i, name in enumerate(self._names)}
        at = len(self._names)
        counts = table.column(at).to_numpy().astype(float)
        for i, (name, edges) in enumerate(self._edges.items()):
            lows, highs = table.column(at + 1 + 2 * i), table.column(at + 2 + 2 * i)
            _check_bounds(name, edges, lows, highs)
        return columns, counts


def _check_bounds(name: str, edges: BinsLike, lows: pd.Series, highs: pd.Series) -> None:
    low, *_, high = as_edges(edges, name)
    if (as_numbers(lows, name) < low).any() or (as_numbers(highs, name) > high).any():
        raise ValueError(
            f"The edges for the column {name!r} do not cover its values: begin with -inf and end "
            f"with inf."
        )


def inner_edges(edges: BinsLike) -> list[Any]:
    """Return the edges between bins as Python objects, which queries take."""
    return [_python(edge) for edge in list(edges)[1:-1]]


def _python(edge: Any) -> Any:
    if isinstance(edge, np.datetime64):
        return pd.Timestamp(edge)
    if isinstance(edge, np.timedelta64):
        return pd.Timedelta(edge)
    return edge.item() if isinstance(edge, np.generic) else edge
