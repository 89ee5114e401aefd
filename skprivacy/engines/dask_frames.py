"""Frames of Dask; the only import of dask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dask.dataframe as dd
import pandas as pd
from dask.base import compute
from dask.delayed import delayed

from .._typing import FloatArray, NamedColumns
from ..encoding.bins import BinsLike
from ..frames import as_table
from ..noise import POSITION_BITS, NoiseSource
from ..release import Release
from ..tally import Tally
from .base import LazyTable, needed_columns

_MERGED_AT_ONCE = 8


def table_of(frame: dd.DataFrame) -> DaskTable:
    """Return the `LazyTable` around a frame of Dask."""
    return DaskTable(frame)


class DaskTable(LazyTable):
    """A frame of Dask."""

    def __init__(self, frame: dd.DataFrame) -> None:
        self._frame = frame
        self.names = list(frame.columns)

    def count(
        self, names: Sequence[str], edges: Mapping[str, BinsLike], limit: int
    ) -> tuple[NamedColumns, FloatArray]:
        count, merge = delayed(_count, pure=False), delayed(_merge, pure=False)
        options = {"names": list(names), "edges": dict(edges), "limit": limit}
        tallies = [count(part, **options) for part in _partitions(self._frame[list(names)])]
        while len(tallies) > 1:
            groups = range(0, len(tallies), _MERGED_AT_ONCE)
            tallies = [merge(tallies[i : i + _MERGED_AT_ONCE]) for i in groups]
        (tally,) = compute(*tallies)
        return tally.columns(), tally.counts.astype(float)

    def released(self, release: Release, source: NoiseSource) -> dd.DataFrame:
        frame = self._frame[needed_columns(self, release, source)]
        draw = delayed(_released, pure=False)
        parts = [draw(part, i, release, source) for i, part in enumerate(_partitions(frame))]
        meta = _released(frame._meta, 0, release, source)
        return dd.from_delayed(parts, meta=meta, divisions=frame.divisions, verify_meta=False)


def _partitions(frame: dd.DataFrame) -> list[Any]:
    """Return the partitions as they are now.

    Dask may fuse or drop partitions of a query when it is computed, depending on what is asked
    of it: the number of a partition would then stand for other rows, and their draw would change.
    """
    return frame.optimize(fuse=False).to_delayed(optimize_graph=False)


def _count(part: pd.DataFrame, *, names: list[str], **options: Any) -> Tally:
    tally = Tally(names, **options)
    tally.add([part[name] for name in names])
    return tally


def _merge(tallies: list[Tally]) -> Tally:
    first, *others = tallies
    for tally in others:
        first.merge(tally)
    return first


def _released(
    part: pd.DataFrame, number: int, release: Release, source: NoiseSource
) -> pd.DataFrame:
    first = number << POSITION_BITS
    return release.rows(as_table(part, release.owner), source, range(first, first + len(part)))
