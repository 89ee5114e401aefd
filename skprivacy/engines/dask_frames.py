"""Frames of Dask; the only module that imports dask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.base import compute
from dask.delayed import delayed

from ..encoding.columns import Edges
from ..fitting.counted_tables import Distinct, add_rows
from ..fitting.tally import NUMBER, RowNumbers, Tally, ranks_of
from ..releasing.release import Release
from ..releasing.sampler import POSITION_BITS, NoiseSource
from ..tables.frames import Table, as_table
from ..tables.table import are_equal, copy_error
from .lazy_frames import LazyTable, needed_columns

_MERGED_AT_ONCE = 8


class DaskTable(LazyTable):
    """A frame of Dask."""

    def __init__(self, frame: dd.DataFrame) -> None:
        self._frame = frame
        self.names = list(frame.columns)

    def count(
        self, names: Sequence[Any], edges: Edges, limit: int, numbers: RowNumbers | None = None
    ) -> Distinct:
        count, merge = delayed(count_part, pure=False), delayed(merge_tallies, pure=False)
        columns = [name for name in names if name != NUMBER]
        read = columns if numbers is None else dict.fromkeys([*columns, *numbers.read])
        options = {"names": list(names), "edges": dict(edges), "limit": limit}
        shared = delayed(numbers, pure=False, traverse=False)  # sent once, not with every part
        tallies = [count(part, numbers=shared, **options) for part in self._parts(list(read))]
        while len(tallies) > 1:
            groups = range(0, len(tallies), _MERGED_AT_ONCE)
            tallies = [merge(tallies[i : i + _MERGED_AT_ONCE]) for i in groups]
        (tally,) = compute(*tallies)
        return Distinct.of(tally)

    def _parts(self, names: Sequence[str]) -> list[Any]:
        return _fixed(self._frame[list(names)]).to_delayed(optimize_graph=False)

    def empty(self, names: Sequence[str]) -> Table:
        return as_table(self._frame._meta[list(names)], "fit")

    @property
    def has_index(self) -> bool:
        index = self._frame._meta.index
        return index.name is not None or not pd.api.types.is_integer_dtype(index.dtype)

    def sampled(self, names: Sequence[str], highest: np.uint64) -> Table:
        choose = delayed(_chosen, pure=False)
        found = compute(*(choose(part, i, highest) for i, part in enumerate(self._parts(names))))
        return as_table(pd.concat(found), "fit")

    def check_index(self, s_names: Sequence[str], owner: str) -> None:
        nothing = self._frame._meta
        index = nothing.index
        if index.name in s_names:
            raise copy_error([index.to_series()], 0, owner)
        of_numbers = [n for n in s_names if pd.api.types.is_numeric_dtype(nothing[n].dtype)]
        if compared := list(s_names) if self.has_index else of_numbers:
            compare = delayed(_compared, pure=False)
            parts = compute(*map(compare, self._parts(compared)))
            for found in zip(*parts, strict=True):
                are_equal, values = zip(*found, strict=True)
                if all(are_equal) and len(set().union(*values)) > 1:
                    raise copy_error([index.to_series()], 0, owner)

    def released(self, release: Release, source: NoiseSource) -> dd.DataFrame:
        frame = _fixed(self._frame[needed_columns(self, release, source)])
        draw = delayed(_released, pure=False)
        # Sent once rather than with every partition.
        shared = [delayed(part, pure=False, traverse=False) for part in (release, source)]
        parts = frame.to_delayed(optimize_graph=False)
        parts = [draw(part, i, *shared) for i, part in enumerate(parts)]
        meta = _released(frame._meta, 0, release, source)
        return dd.from_delayed(parts, meta=meta, divisions=frame.divisions, verify_meta=False)


def _fixed(frame: dd.DataFrame) -> dd.DataFrame:
    """Return a frame with its final partitions.

    Dask may fuse or drop partitions when it computes a query, depending on its result: the number
    of a partition would then stand for other rows, and their draw would change.
    """
    return frame.optimize(fuse=False)


def _compared(part: pd.DataFrame) -> list[tuple[bool, set[Any]]]:
    """Return whether the index is a copy of each column, and some values of that column."""
    index = part.index.to_series()
    return [(are_equal(index, column), set(column.unique()[:2])) for _, column in part.items()]


def _chosen(part: pd.DataFrame, number: int, highest: np.uint64) -> pd.DataFrame:
    """Return the rows of a partition that are sampled."""
    first = number << POSITION_BITS
    return part[ranks_of(np.arange(first, first + len(part))) <= highest]


def count_part(
    part: pd.DataFrame, *, names: list[str], numbers: RowNumbers | None = None, **options: Any
) -> Tally:
    """Return the counts of the rows of a partition; options : of `Tally`."""
    found = None if numbers is None else numbers.of_frame(part)
    tally = Tally(names, **options)
    add_rows(tally, lambda name, rows: part[name].iloc[rows], found)
    return tally


def merge_tallies(tallies: list[Tally]) -> Tally:
    """Return a new tally: Dask may run this again with the same ones."""
    merged = tallies[0].emptied()
    for tally in tallies:
        merged.merge(tally)
    return merged


def _released(
    part: pd.DataFrame, number: int, release: Release, source: NoiseSource
) -> pd.DataFrame:
    first = number << POSITION_BITS
    return release.rows(as_table(part, release.owner), source, range(first, first + len(part)))
