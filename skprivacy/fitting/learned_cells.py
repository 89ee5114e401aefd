"""Whether symbols are values or cells, and how cells are learned from a sample of rows.

The sample is a function of the rows as a multiset. So neither their order nor the engine that
holds them decides on cells, and a second fit to the same rows is no second release of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._messages import InPython, Message, Named, Notice, Setting, doing, warn
from .._typing import CountArray, FloatArray, IntArray, NamedColumns
from ..cells import Cells, CellTask, ScoreCells, TreeCells, fewest_rows, learn_cell_columns
from ..cells.cells import (
    FINE_BINS,
    MOST_CATEGORIES,
    N_BUCKETS,
    CellAlphabet,
    CellColumn,
    buckets,
    cell_alphabet,
    coded_rows,
    kept_buckets,
)
from ..codes import UNKNOWN, count, mixed
from ..encoding import ValueAlphabet
from ..encoding.alphabets import combine
from ..encoding.columns import FEWEST_ROWS, BinsLike, Edges, as_edges
from ..encoding.values import as_numbers, coded, factorize, family_of
from ..fitted import Secrets
from ..releasing.record_ids import Messages, folds_of_keys, siphash
from ..solvers import most_symbols
from .inputs import CountedColumns, LabelledRows, code_beside
from .parameters import Settings, frozen
from .tally import KnownCells, RowNumbers, edges_of

# About so many distinct rows teach cells, if there are more.
MOST_ROWS = 200_000

# Not a secret: it must be the same everywhere, and unlike those of noise and of folds.
_KEY = b"skprivacy sample"

_MISSING = np.uint64(0x6D697373696E67)


@dataclass(frozen=True, eq=False)
class Buckets(RowNumbers):
    """The bucket of each row, by all that cells see of it.

    names : of the columns of X, and of S and a target for cells that see them; edges : where some
    are cut, so that values of a bin are the same.
    """

    names: tuple[Any, ...]
    edges: Edges = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Settings, counted: CountedColumns, cells: Cells) -> Buckets:
        """Return the buckets for some cells; those without a target do not see S."""
        labels = (*counted.s, *(counted.target or ())) if cells.needs_target else ()
        return cls((*counted.x, *labels), edges_of(settings.n_bins, counted.x))

    @property
    def read(self) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(self.names))

    def of_table(self, columns: NamedColumns) -> IntArray:
        return self._of_series([columns[name] for name in self.names])

    def of_rows(self, rows: LabelledRows) -> IntArray:
        """Return the bucket of each row."""
        parts = rows.x_columns, rows.s_columns, rows.target or {}
        series = [column for part in parts for column in part.values()]
        return self._of_series(series[: len(self.names)])

    def _of_series(self, series: Sequence[pd.Series]) -> IntArray:
        own = zip(series, self.names, strict=True)
        words = (_words(column, name, self.edges.get(name)) for column, name in own)
        return buckets(words, len(series[0]))


@dataclass(frozen=True, eq=False)
class KeptRows(RowNumbers):
    """The fold of each row that is kept, 0 where no column tells people apart; -1 for others."""

    buckets: Buckets
    is_kept: npt.NDArray[np.bool]
    person: tuple[Any, ...]

    @property
    def read(self) -> tuple[Any, ...]:
        return tuple(dict.fromkeys([*self.buckets.read, *self.person]))

    def of_table(self, columns: NamedColumns) -> IntArray:
        folds = next((folds_of_keys(columns[name], name) for name in self.person), 0)
        kept = self.is_kept[self.buckets.of_table(columns)]
        return np.where(kept, folds, UNKNOWN).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Sample:
    """Which rows of a table teach.

    buckets : of its rows; factors : by which those of each bucket are multiplied, None if all rows
    teach as they are.
    """

    buckets: Buckets
    factors: FloatArray | None

    @classmethod
    def of_sizes(cls, buckets: Buckets, sizes: CountArray, n_rows: int) -> Sample:
        """Choose rows of a table; sizes : the weight of each bucket."""
        is_small = n_rows <= MOST_ROWS
        return cls(buckets, None if is_small else kept_buckets(sizes, MOST_ROWS))

    def kept(self, person: tuple[Any, ...]) -> KeptRows:
        """Return the rows that teach; person : the column that tells people apart, if any."""
        is_kept = np.ones(N_BUCKETS, bool) if self.factors is None else self.factors > 0
        return KeptRows(self.buckets, is_kept, person)

    def weighted(self, rows: LabelledRows) -> LabelledRows:
        """Return the rows that teach, among some that hold all of these."""
        if self.factors is None:
            return rows
        factors = self.factors[self.buckets.of_rows(rows)]
        chosen = np.flatnonzero(factors)
        factors, rows = factors[chosen], rows.at(chosen)
        # Values that few rows have are told by the rows themselves: a factor makes no people.
        counts = np.ones(len(chosen)) if rows.multiplicities is None else rows.multiplicities
        weights = counts if rows.weights is None else rows.weights
        squares = rows.squares
        if squares is None:
            squares = weights**2 if rows.multiplicities is None else counts
        weights, squares = weights * factors, squares * factors**2
        return replace(rows, weights=weights, multiplicities=counts, squares=squares)


def teaching_rows(settings: Settings, rows: LabelledRows, cells: Cells) -> LabelledRows:
    """Return the rows that teach cells: these rows themselves, or some with weights."""
    if rows.n_rows <= MOST_ROWS:
        return rows
    own = Buckets.of(settings, CountedColumns.of(rows), cells)
    weights = rows.multiplicities if rows.weights is None else rows.weights
    sizes = np.bincount(own.of_rows(rows), weights, N_BUCKETS)
    return Sample.of_sizes(own, sizes, rows.n_rows).weighted(rows)


def _words(column: pd.Series, name: Hashable, edges: BinsLike | None) -> npt.NDArray[np.uint64]:
    """Return a word for each value: the same whatever the type and the order of categories."""
    is_bool = pd.api.types.is_bool_dtype(column.dtype)
    if column.dtype.kind in "iufmM" and not is_bool:
        return _of_numbers(as_numbers(column, name), name, edges)
    codes, values = factorize(column, name)
    if values and {family_of([value], name) for value in values} <= {"numbers", "times"}:
        numbers = as_numbers(pd.Series(values, dtype=object), name)
        words = _of_numbers(numbers, name, edges)
    else:
        texts = (str(value).encode(errors="surrogatepass") for value in values)
        words = siphash(_KEY, Messages.from_bytes(texts))
    return np.append(words, _MISSING)[codes]


def _of_numbers(
    numbers: FloatArray, name: Hashable, edges: BinsLike | None
) -> npt.NDArray[np.uint64]:
    is_missing = np.isnan(numbers)
    if edges is not None:
        numbers = np.searchsorted(as_edges(edges, name)[1:-1], numbers).astype(float)
    words = (numbers + 0.0).view(np.uint64)  # -0.0 is 0.0
    return np.where(is_missing, _MISSING, mixed(words))


# Whether the symbols of X are combinations of values or cells, and how cells are learned.


# A design with a confidence, or a loss of labels, takes minutes for more cells than these.
_MOST_WITH_CONFIDENCE, _MOST_WITH_DISTANCES = 128, 100

# Columns with more unique values than this share are treated as identifiers.
_NAMES_ROWS = 0.9

# With fewer rows than this, no column is treated as an identifier.
_FEWEST_NAMED = 20

# With fewer rows, cells say hardly anything: they must be asked for.
_FEWEST_ROWS_OF_AUTO = 200


def cells_of(settings: Settings) -> Cells | None:
    """Return the cells that are asked for, None for values or where it is left open."""
    if isinstance(settings.alphabet, Cells):
        return settings.alphabet
    return default_cells(settings) if settings.alphabet == "cells" else None


def default_cells(settings: Settings) -> Cells:
    """Return the cells for what is to be kept: a target, or the row."""
    return ScoreCells() if settings.has_target else TreeCells()


def may_be_cells(settings: Settings, n_columns: int) -> bool:
    """Whether it is left open if symbols are values or cells."""
    is_open = isinstance(settings.alphabet, str) and settings.alphabet == "auto"
    return is_open and settings.solver == "auto" and n_columns > 1


def automatic_cells(
    settings: Settings,
    rows: LabelledRows,
    alphabet: ValueAlphabet,
    x_codes: IntArray,
    n_groups: int,
) -> Cells | None:
    """Return cells where combinations of values are too many, or mostly unique; say why."""
    if not may_be_cells(settings, len(alphabet.columns)) or rows.n_rows < _FEWEST_ROWS_OF_AUTO:
        return None
    n_x = alphabet.n_symbols
    n_single = int(np.count_nonzero(count(x_codes, n_x, rows.multiplicities)[:-1] == 1))
    if n_x <= most_symbols(n_groups) and 2 * n_single <= n_x:
        return None
    told = InPython("X has", "The released columns have"), " too many combinations of values, or "
    why = "mostly ones that occur once: rows that are alike share a cell. Set "
    silence = Setting("alphabet", "cells"), " to silence this warning, "
    keep = Setting("alphabet", "values"), " to keep combinations and pool the rarest."
    warn(Message(*told, why, *silence, *keep), Notice)
    return default_cells(settings)


def check_known(settings: Settings, known: KnownCells) -> None:
    """Check that cells by which rows were counted are those that are asked for now."""
    cells = cells_of(settings)
    is_open = cells is None and settings.alphabet != "values"
    if not is_open and known.taught_as != frozen(cells):
        told = "These rows were counted by cells that earlier ones have taught, "
        why = "and cannot be counted by others any more: leave ", Named("alphabet")
        raise ValueError(Message(told, *why, " as it was, or start again."))


def names_of_cells(settings: Settings, rows: LabelledRows) -> tuple[Any, ...]:
    """Return the columns that cells release; those that name rows are refused or left out."""
    if len(rows.x_columns) < 2:
        told = "Cells are for several columns, and ", InPython("X has one", "one is released")
        raise ValueError(Message(*told, ": use ", Setting("alphabet", "values"), "."))
    found = [name for name, c in rows.x_columns.items() if _names_rows(c, name, rows.n_rows)]
    kept = tuple(name for name in rows.x_columns if name not in found)
    shown = ", ".join(map(repr, found))
    if found and (settings.columns is not None or not kept):
        said = f"{shown} has a value of its own in nearly every row: "
        why = "such a column names rows, and cannot be released. Leave it out of "
        raise ValueError(Message(said, why, Named("columns"), "."))
    if found:
        said = f"Left out of the release: {shown}, with a value of its own in nearly every row. "
        warn(said + "Such a column names rows.")
    return kept


def _names_rows(column: Any, name: Hashable, n_rows: int) -> bool:
    """Whether nearly every row has a text of its own, or every row an integer."""
    if n_rows < _FEWEST_NAMED:
        return False
    codes, values = coded(column, name)
    n_values = len(np.unique(codes[codes >= 0]))
    if n_values < _NAMES_ROWS * n_rows:
        return False
    family = family_of(values[:1], name)
    are_whole = family == "numbers" and all(float(v).is_integer() for v in values[:100])
    return family == "str" or (are_whole and n_values == n_rows)


def learn_cells(
    settings: Settings,
    rows: LabelledRows,
    cells: Cells,
    secrets: Secrets,
    s_codes: IntArray,
    v_codes: IntArray | None,
) -> tuple[CellAlphabet, IntArray, tuple[Any, ...]]:
    """Return the cells of some rows, the cell of each of them, and the columns released.

    secrets : what is protected; s_codes : the group of each row, of all columns of S.
    """
    if cells.needs_target and v_codes is None:
        needed = f"{type(cells).__name__} keep what X says about a target: set "
        raise ValueError(Message(needed, Setting("utility", "target"), ", or use TreeCells."))
    if v_codes is not None and v_codes.max() == 0:
        raise ValueError("The target has one value only: there is nothing to keep about it.")
    names = names_of_cells(settings, rows)
    doing("learning cells")
    rows = replace(rows, x_columns={name: rows.x_columns[name] for name in names})
    options = [_options(settings, rows, name) for name in names]
    columns, positions = learn_cell_columns(
        list(rows.x_columns.values()), names, rows.weights, options
    )
    # As `transform` sees them: no row is counted in one cell and released from another.
    codes = coded_rows(columns, list(rows.x_columns.values()), names)
    task = _task(settings, rows, cells, columns, codes, secrets, s_codes, v_codes)
    partition = cells.learn(task)
    if partition.n_cells < 2:
        heavy = "" if rows.weights is rows.multiplicities else ", or a few have most of the weight"
        told = f"These {rows.n_rows} rows are too few, or too alike{heavy}, "
        why = "to be told apart by cells: use more rows, a larger ", Named("epsilon"), ", or "
        raise ValueError(Message(told, *why, Setting("alphabet", "values"), "."))
    of_row = partition.cells(columns, codes, rows.fold)
    return cell_alphabet(columns, positions, of_row, rows.weights, partition), of_row, names


def _options(settings: Settings, rows: LabelledRows, name: Hashable) -> dict[str, Any]:
    """Return how a column is cut and pooled: finely, unless edges are given."""
    given: Any = settings.n_bins
    given = given.get(name) if isinstance(given, dict) else given
    if np.ndim(given) != 1:  # with enough rows in each to show its middle
        given = max(2, min(FINE_BINS, rows.n_rows // (2 * FEWEST_ROWS)))
    most = MOST_CATEGORIES if settings.max_categories is None else settings.max_categories
    pooling = settings.min_frequency, most
    return {"n_bins": given, "pooling": pooling, "multiplicities": rows.multiplicities}


def _task(
    settings: Settings,
    rows: LabelledRows,
    cells: Cells,
    columns: tuple[CellColumn, ...],
    codes: IntArray,
    secrets: Secrets,
    s_codes: IntArray,
    v_codes: IntArray | None,
) -> CellTask:
    """Return what cells are learned from: distinct rows in an order of their own.

    So the order of rows, and whether rows or counts of them are given, does not matter. Cells that
    need no target do not get to see S either.
    """
    n_effective = rows.effective_rows(s_codes)
    sizes_of_s = {name: int(g.codes(s_codes).max()) + 1 for name, g in secrets.groups.items()}
    n_beside = code_beside(settings, rows)[0].n_symbols if rows.beside else 1
    weights = np.ones(len(codes)) if rows.weights is None else rows.weights
    labels = [s_codes, v_codes] if cells.needs_target and v_codes is not None else []
    labels += [fold.to_numpy() for fold in rows.folds.values()]
    parts = np.column_stack([*labels, codes])
    sizes = [int(label.max()) + 1 for label in labels] + [column.n_codes for column in columns]
    distinct, of_row = combine(list(parts.T), sizes)
    least = max(
        fewest_rows(n_effective, n_groups, secrets.budgets[name], settings.measure)
        for name, n_groups in sizes_of_s.items()
    )
    # A design takes seconds for so many cells.
    most = most_symbols(sum(sizes_of_s.values()) - len(sizes_of_s) + 1)
    most = most if settings.confidence is None else min(most, _MOST_WITH_CONFIDENCE)
    most = min(most, _MOST_WITH_DISTANCES) if settings.has_distances else most
    return CellTask(
        columns,
        distinct[:, len(labels) :],
        np.bincount(of_row, weights).astype(float),
        max(2, most // n_beside),
        min(0.5, (1 - 1e-9) * n_beside * least / n_effective),  # exactly so many are enough
        1 if rows.weights is rows.multiplicities else FEWEST_ROWS,
        *(distinct[:, : len(labels)].T),
    )
