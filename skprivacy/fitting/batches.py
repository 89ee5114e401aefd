"""What `partial_fit` has seen: counts of distinct rows, and some of the rows passed through."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import pandas as pd

from .._typing import IntArray, NamedColumns
from ..cells import Cells
from ..tables.column_types import ColumnType
from .counted_tables import SampledRows, cells_instead, with_sample
from .encode_and_design import cells_taught_by
from .inputs import CountedColumns, FitInputs, LabelledRows
from .known_cells import KnownCells
from .learned_cells import cells_of
from .parameters import Settings
from .row_sample import RowSample
from .tally import Tally, TooManyRowsError, edges_of
from .teachers import teaching_rows

# Fewer rows before a batch that is too large teach no cells: it teaches them itself.
_FEWEST_TEACHERS = 1000


class Batches:
    """Batches of rows, counted as they come: values are cut and pooled once all are there.

    first : shows the columns that all batches must have. It is not counted yet.
    """

    def __init__(self, settings: Settings, first: FitInputs) -> None:
        self.roles, self.types, self.n_rows = first.roles, first.types, 0
        self._owner = settings.owner
        self._counted, self._passed = CountedColumns.of(first.rows), list(first.passed_through)
        self._tally, self._tallied = Tally(self._counted.names), self._counted
        self._cells: KnownCells | None = None
        self._is_weighted = first.rows.weights is not None
        names = [*self._passed, *self._counted.s] if self._passed else []
        self._sample = RowSample(names, whole=self._counted.s)

    def add(self, settings: Settings, batch: FitInputs) -> None:
        """Count a batch; if that fails, it is as if the batch had never come."""
        self._check(batch)
        rows = batch.rows
        self._tally.edges = edges_of(settings.n_bins, self._counted.x)
        try:
            self._tally.add(self._in_tally(rows, self._cells), weights=rows.weights)
        except TooManyRowsError as error:
            if self._cells is not None:
                raise
            cells = cells_instead(settings.for_batches(), len(self._counted.x), error)
            self._take_cells(settings, rows, cells)
        columns: NamedColumns = {**batch.passed_through, **rows.s_columns}

        def column_of(name: Hashable, chosen: IntArray) -> pd.Series:
            return columns[name].iloc[chosen]

        self._sample.add(rows.n_rows, column_of)
        self.types = tuple(map(ColumnType.combined, self.types, batch.types))
        self.n_rows += rows.n_rows

    def _in_tally(self, rows: LabelledRows, known: KnownCells | None) -> list[pd.Series]:
        """Return the columns of some rows as they are counted."""
        if known is not None:
            cells = pd.Series(known.of_columns(rows.x_columns, rows.fold))
            rows = replace(rows, x_columns={"cell": cells}, folds={})
        return self._counted.columns(rows)

    def _take_cells(self, settings: Settings, rows: LabelledRows, cells: Cells) -> None:
        """Count cells from now on, taught by the rows so far; rows : those of the next batch."""
        counted = self._tally.unlimited()
        before = self._rows(counted) if self.n_rows else None
        teachers = rows if before is None or self.n_rows < _FEWEST_TEACHERS else before
        teachers = teaching_rows(settings, teachers, cells)
        known = cells_taught_by(settings, teachers, cells)
        tallied = self._counted.in_cells()
        tally = Tally(tallied.names, edges=self._tally.edges)
        if before is not None:
            columns = self._in_tally(before, known)
            tally.add(columns, counted.counts, counted.weights, counted.squares)
        tally.add(self._in_tally(rows, known), weights=rows.weights)
        self._tally, self._tallied, self._cells = tally, tallied, known

    def _check(self, batch: FitInputs) -> None:
        n_columns = self.roles.n_columns
        if batch.roles.n_columns != n_columns:
            raise ValueError(
                f"X has {batch.roles.n_columns} features, but {self._owner} is expecting "
                f"{n_columns} features as input."
            )
        if (
            CountedColumns.of(batch.rows) != self._counted
            or list(batch.passed_through) != self._passed
        ):
            raise ValueError(
                f"The columns of S, of the target, or passed through differ from those of the "
                f"first batch: {self._owner}.partial_fit needs the same in every batch."
            )
        if (batch.rows.weights is not None) != self._is_weighted:
            raise ValueError("sample_weight must be passed with every batch or with none.")
        if batch.roles != self.roles:
            raise ValueError(
                f"The columns of X differ from those of the first batch in name, order, or role "
                f"in {self._owner}: {batch.roles.names} after {self.roles.names}."
            )

    def rows(self) -> LabelledRows:
        """Return the rows of S and X of all batches."""
        return self._rows(self._tally)

    def _rows(self, tally: Tally) -> LabelledRows:
        counts, columns = tally.counts.astype(float), list(tally.columns().values())
        totals = tally.weights, tally.squares, tally.is_coarse
        return self._tallied.rows(columns, counts, *totals, self._cells)

    def inputs(self, settings: Settings) -> FitInputs:
        """Return all batches as one input of `fit`; cells take any number of distinct rows."""
        is_limited = cells_of(settings.for_batches()) is None
        rows = self._rows(self._tally if is_limited else self._tally.unlimited())
        sample = SampledRows(dict(self._sample.rows().items()))
        return with_sample(FitInputs(self.roles, self.types, rows), self._counted.s, sample)

    def __getstate__(self) -> dict[str, Any]:
        # Counts may travel; rows of people stay where they are.
        return vars(self) | {"_sample": self._sample.emptied()}
