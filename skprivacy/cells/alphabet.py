"""CellAlphabet: cells as the symbols of a table.

Every column of a released row is drawn separately from the values that the rows of a cell have
there: no row of a person is ever shown. Rare values are as in a pool, see `encoding.showing`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from .._typing import BoolArray, FloatArray, IntArray
from ..codes import chunks
from ..encoding.alphabets import Alphabet, Names, ShownColumn, combine, shown_pools
from ..encoding.columns import ColumnAlphabet
from .base import N_BUCKETS, CellColumn, Partition, buckets, coded_rows, kept_buckets

# How often all columns keep their value is computed from about so many distinct rows at most.
MOST_COMPARED = 20_000


@dataclass(frozen=True, eq=False)
class CellAlphabet(Alphabet):
    """The cells of a table.

    columns : the alphabets of its columns; partition : which cell a row is in; counted : for each
    column which values occur in which cells, and how often, see `held`; kept : see `matches`.
    """

    columns: tuple[ColumnAlphabet, ...]
    partition: Partition
    counted: tuple[tuple[IntArray, IntArray, FloatArray], ...]
    kept: FloatArray | None = None

    of_cells: ClassVar[bool] = True

    @cached_property
    def cell_columns(self) -> tuple[CellColumn, ...]:
        """The columns as codes that cells are made of."""
        return tuple(map(CellColumn, self.columns))

    @property
    def n_symbols(self) -> int:
        return self.partition.n_cells

    @property
    def labels(self) -> list[Any]:
        return [f"cell {number}" for number in range(1, self.n_symbols + 1)]

    @property
    def is_pool(self) -> BoolArray:
        return np.ones(self.n_symbols, dtype=bool)

    @cached_property
    def shown(self) -> list[ShownColumn]:
        return [
            shown_pools(column, *held)
            for column, held in zip(self.columns, self.counted, strict=True)
        ]

    def encode(
        self, series: Sequence[pd.Series], labels: Names, folds: IntArray | None = None
    ) -> tuple[IntArray, dict[Hashable, int]]:
        codes = coded_rows(self.cell_columns, series, labels)
        return self.partition.cells(self.cell_columns, codes, folds), {}

    def held(self, position: int) -> tuple[IntArray, IntArray, FloatArray]:
        return self.counted[position]

    def matches(self) -> FloatArray:
        return np.full((self.n_symbols,) * 2, np.nan) if self.kept is None else self.kept

    def rules(self) -> list[Any]:
        return self.partition.rules()

    def can_be_read(self, symbols: IntArray) -> bool:
        return False

    def described(
        self, names: Sequence[Hashable], sizes: FloatArray | None = None
    ) -> pd.DataFrame:
        """Return a row for each cell: its share of the rows, its rule, its commonest values.

        sizes : how many rows are in each cell, by default those that it was learned from.
        """
        sizes = self.tables()[0].sum(axis=0) if sizes is None else sizes
        common = {
            str(name): [self._commonest(position, cell) for cell in range(self.n_symbols)]
            for position, name in enumerate(names)
        }
        rules = self.partition.in_words(self.cell_columns, names)
        figures = {"rows": sizes, "share": sizes / sizes.sum(), "rule": rules}
        index = pd.Index(self.labels, name="cell")
        return pd.DataFrame({**figures, **common}, index=index)

    def _commonest(self, position: int, cell: int) -> Any:
        """Return what a column of a cell shows most often."""
        shown = self.shown[position]
        values, cumulated = shown.pools[cell]
        return shown.values[values[np.argmax(np.diff(cumulated, prepend=0.0))]]


def cell_alphabet(
    columns: Sequence[CellColumn],
    positions: Sequence[IntArray],
    cells: IntArray,
    weights: FloatArray | None,
    partition: Partition,
) -> CellAlphabet:
    """Return the alphabet of rows whose cells are known.

    positions : for each column, those of the values of the rows.
    """
    counted = tuple(
        _counted(len(column.alphabet.values), of_rows, cells, partition.n_cells, weights)
        for column, of_rows in zip(columns, positions, strict=True)
    )
    alphabet = CellAlphabet(tuple(c.alphabet for c in columns), partition, counted)
    return replace(alphabet, kept=_kept(alphabet, positions, cells, weights))


def _counted(
    n_values: int, values: IntArray, cells: IntArray, n_cells: int, weights: FloatArray | None
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return which values occur in which cells, and how often."""
    packed = cells.astype(np.intp) * n_values + values
    counts = np.bincount(packed, weights, n_cells * n_values).astype(float)
    there = np.flatnonzero(counts)
    return there % n_values, there // n_values, counts[there]


def _kept(
    alphabet: CellAlphabet,
    positions: Sequence[IntArray],
    cells: IntArray,
    weights: FloatArray | None,
) -> FloatArray:
    """Return how often a row of each cell, shown as each, keeps the values of all columns."""
    by_column = [alphabet.shown_shares(position).T for position in range(len(positions))]
    sizes_of = [alphabet.n_symbols, *map(len, by_column)]
    distinct, of_row = combine([cells, *positions], sizes_of)
    own = np.bincount(of_row, weights).astype(float)
    bucket = buckets(distinct.T.astype(np.uint64), len(distinct))
    factors = kept_buckets(np.bincount(bucket, own, N_BUCKETS), MOST_COMPARED)
    if factors is not None:
        own *= factors[bucket]
        distinct, own = distinct[own > 0], own[own > 0]
    total = np.zeros((alphabet.n_symbols,) * 2)
    for rows in chunks(len(own), 2048):
        kept = np.repeat(own[rows, None], alphabet.n_symbols, axis=1)
        for shares, values in zip(by_column, distinct[rows, 1:].T, strict=True):
            kept *= shares[values]
        np.add.at(total, distinct[rows, 0], kept)
    sizes = np.bincount(distinct[:, 0], own, alphabet.n_symbols)
    return total / np.where(sizes > 0, sizes, 1.0)[:, None]
