"""The choice between values and cells, and cells learned from a sample of rows.

The sample depends on the rows as a multiset only. So cells are the same in any order of the rows
and with any engine, and a second fit to the same rows is no second release of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._messages import InPython, Message, Notice, doing, warn
from .._typing import CountArray, FloatArray, IntArray, NamedColumns
from ..cells import Cells, CellTask, ScoreCells, TreeCells, fewest_rows, learn_cell_columns
from ..cells.cells import (
    FINE_BINS,
    MOST_CATEGORIES,
    N_BUCKETS,
    CellAlphabet,
    CellColumn,
    Classes,
    buckets,
    cell_alphabet,
    coded_rows,
    kept_buckets,
)
from ..codes import UNKNOWN, count, mixed
from ..design import Designer
from ..encoding import ValueAlphabet
from ..encoding.alphabets import combine, learn_positions
from ..encoding.columns import (
    FEWEST_ROWS,
    POOLED,
    BinsLike,
    ColumnAlphabet,
    Edges,
    as_edges,
    people_of,
)
from ..encoding.dependencies import CodedColumn, dependency
from ..encoding.values import as_numbers, coded, factorize, family_of
from ..fitted import Secrets
from ..joint import count_pairs
from ..releasing.record_ids import WORD_KEY_BYTES, persons_of_keys, text_words
from ..solvers import DesignTask, most_symbols
from ..utilities import Target
from .inputs import CountedColumns, LabelledRows, code_beside
from .parameters import Settings, frozen
from .tally import KnownCells, RowNumbers, edges_of

# Cells are learned from about this many distinct rows, if there are more.
MOST_ROWS = 200_000

# A constant, not a secret, and different from the keys of noise and of folds.
_KEY = b"skprivacy sample".ljust(WORD_KEY_BYTES)

_MISSING = np.uint64(0x6D697373696E67)  # the hash of a missing value


@dataclass(frozen=True, eq=False)
class Buckets(RowNumbers):
    """The bucket of each row: a hash of all columns that cells are learned from.

    names : of the columns of X, and of S and a target for cells that use them; edges : of the bins
    of some columns; values of a bin have the same hash.
    """

    names: tuple[Any, ...]
    edges: Edges = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Settings, counted: CountedColumns, cells: Cells) -> Buckets:
        """Return the buckets for some cells; those without a target do not use S."""
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
        named = zip(series, self.names, strict=True)
        words = (_words(column, name, self.edges.get(name)) for column, name in named)
        return buckets(words, len(series[0]))


@dataclass(frozen=True, eq=False)
class KeptRows(RowNumbers):
    """The number of each person in a sample, 0 without person ids; -1 for other rows."""

    buckets: Buckets
    is_kept: npt.NDArray[np.bool]
    person: tuple[Any, ...]

    @property
    def read(self) -> tuple[Any, ...]:
        return tuple(dict.fromkeys([*self.buckets.read, *self.person]))

    def of_table(self, columns: NamedColumns) -> IntArray:
        persons = next((persons_of_keys(columns[name], name) for name in self.person), 0)
        kept = self.is_kept[self.buckets.of_table(columns)]
        return np.where(kept, persons, UNKNOWN).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Sample:
    """A sample of the rows of a table, to learn cells from.

    buckets : of its rows; factors : of the weights of rows in each bucket, None for all rows with
    their own weights.
    """

    buckets: Buckets
    factors: FloatArray | None

    @classmethod
    def of_sizes(cls, buckets: Buckets, sizes: CountArray, n_rows: int) -> Sample:
        """Return the sample of a table; sizes : the weight of each bucket."""
        is_small = n_rows <= MOST_ROWS
        return cls(buckets, None if is_small else kept_buckets(sizes, MOST_ROWS))

    def kept(self, person: tuple[Any, ...]) -> KeptRows:
        """Return the rows in the sample; person : the column with person ids, if any."""
        is_kept = np.ones(N_BUCKETS, bool) if self.factors is None else self.factors > 0
        return KeptRows(self.buckets, is_kept, person)

    def weighted(self, rows: LabelledRows) -> LabelledRows:
        """Return the rows in the sample with their weights; rows : at least these."""
        if self.factors is None:
            return rows
        factors = self.factors[self.buckets.of_rows(rows)]
        chosen = np.flatnonzero(factors)
        factors, rows = factors[chosen], rows.at(chosen)
        # Rare values are judged by the number of rows: a factor does not add people.
        counts = np.ones(len(chosen)) if rows.multiplicities is None else rows.multiplicities
        weights = counts if rows.weights is None else rows.weights
        squares = rows.squares
        if squares is None:
            squares = weights**2 if rows.multiplicities is None else counts
        weights, squares = weights * factors, squares * factors**2
        return replace(rows, weights=weights, multiplicities=counts, squares=squares)


def training_rows(settings: Settings, rows: LabelledRows, cells: Cells) -> LabelledRows:
    """Return the rows that cells are learned from: the same rows, or a weighted sample."""
    if rows.n_rows <= MOST_ROWS:
        return rows
    hashed = Buckets.of(settings, CountedColumns.of(rows), cells)
    weights = rows.multiplicities if rows.weights is None else rows.weights
    sizes = np.bincount(hashed.of_rows(rows), weights, N_BUCKETS)
    return Sample.of_sizes(hashed, sizes, rows.n_rows).weighted(rows)


def _words(column: pd.Series, name: Hashable, edges: BinsLike | None) -> npt.NDArray[np.uint64]:
    """Return a hash of each value, which depends on neither type nor order of categories."""
    is_bool = pd.api.types.is_bool_dtype(column.dtype)
    if column.dtype.kind in "iufmM" and not is_bool:
        return _of_numbers(as_numbers(column, name), name, edges)
    codes, values = factorize(column, name)
    if values and {family_of([value], name) for value in values} <= {"numbers", "times"}:
        numbers = as_numbers(pd.Series(values, dtype=object), name)
        words = _of_numbers(numbers, name, edges)
    else:
        words = text_words(_KEY, list(map(str, values)))
    return np.append(words, _MISSING)[codes]


def _of_numbers(
    numbers: FloatArray, name: Hashable, edges: BinsLike | None
) -> npt.NDArray[np.uint64]:
    is_missing = np.isnan(numbers)
    if edges is not None:
        numbers = np.searchsorted(as_edges(edges, name)[1:-1], numbers).astype(float)
    words = (numbers + 0.0).view(np.uint64)  # -0.0 is 0.0
    return np.where(is_missing, _MISSING, mixed(words))


# Values or cells.


# A design with a confidence, or a loss of labels, takes minutes for more cells than these.
_MOST_WITH_CONFIDENCE, _MOST_WITH_DISTANCES = 128, 100

# To compare cells for more than two groups, designs of this tolerance are enough.
_ROUGH_TOL = 1e-2

# Columns with more unique values than this share are treated as identifiers.
_UNIQUE_SHARE = 0.9

# Numbers with more values than this get bins, even if other columns follow from them.
_MOST_EXACT = 2_000

# With fewer rows than this, no column is treated as an identifier.
_FEWEST_ROWS_WITH_IDS = 20

# With fewer rows, cells say hardly anything: "auto" keeps values.
_FEWEST_ROWS_OF_AUTO = 200


def cells_of(settings: Settings) -> Cells | None:
    """Return the cells that `alphabet` asks for, None for "values" and "auto"."""
    if isinstance(settings.alphabet, Cells):
        return settings.alphabet
    return default_cells(settings) if settings.alphabet == "cells" else None


def default_cells(settings: Settings) -> Cells:
    """Return the default cells for the utility: of a target, or of the row."""
    return ScoreCells() if settings.has_target else TreeCells()


def may_be_cells(settings: Settings, n_columns: int) -> bool:
    """Whether "auto" may choose cells."""
    is_auto = isinstance(settings.alphabet, str) and settings.alphabet == "auto"
    return is_auto and settings.solver == "auto" and n_columns > 1


def automatic_cells(
    settings: Settings,
    rows: LabelledRows,
    alphabet: ValueAlphabet,
    x_codes: IntArray,
    n_groups: int,
) -> Cells | None:
    """Return cells if combinations of values are too many, or mostly unique, with a notice."""
    if not may_be_cells(settings, len(alphabet.columns)) or rows.n_rows < _FEWEST_ROWS_OF_AUTO:
        return None
    n_x = alphabet.n_symbols
    n_single = int(np.count_nonzero(count(x_codes, n_x, rows.multiplicities)[:-1] == 1))
    most = most_symbols(n_groups, in_pairs=settings.is_plain)
    if n_x <= most and 2 * n_single <= n_x:
        return None
    text = Message.of(
        "{x} too many combinations of values, or mostly unique ones: rows that are alike share a "
        "cell. Set {alphabet='cells'} to silence this warning, {alphabet='values'} to keep "
        "combinations and pool the rarest.",
        x=InPython("X has", "The released columns have"),
    )
    warn(text, Notice)
    return default_cells(settings)


def check_known(settings: Settings, known: KnownCells) -> None:
    """Check that rows were counted by the cells that `alphabet` asks for now."""
    cells = cells_of(settings)
    is_open = cells is None and settings.alphabet != "values"
    if not is_open and known.asked_for != frozen(cells):
        template = (
            "These rows were counted by cells learned from earlier rows, and cannot be counted by "
            "others any more: set {alphabet} as it was, or start again."
        )
        raise ValueError(Message.of(template))


def names_of_cells(settings: Settings, rows: LabelledRows) -> tuple[Any, ...]:
    """Return the columns that cells release; identifiers are refused or left out."""
    if len(rows.x_columns) < 2:
        template = "Cells are for several columns, and {x}: use {alphabet='values'}."
        raise ValueError(Message.of(template, x=InPython("X has one", "one is released")))
    found = [name for name, c in rows.x_columns.items() if _is_id(c, name, rows.n_rows)]
    kept = tuple(name for name in rows.x_columns if name not in found)
    if found and (settings.columns is not None or not kept):
        raise _id_error(found)
    if found:
        why = "which has a different value in nearly every row, like an identifier"
        warn(f"Left out of the release: {', '.join(map(repr, found))}, {why}.")
    return kept


def _id_error(names: Sequence[Any]) -> ValueError:
    template = (
        "{shown} has a different value in nearly every row, like an identifier, and cannot be "
        "released. Leave it out of {columns}."
    )
    return ValueError(Message.of(template, shown=", ".join(map(repr, names))))


def _is_id(column: Any, name: Hashable, n_rows: int) -> bool:
    """Whether nearly every row has a different text, or every row a different integer."""
    if n_rows < _FEWEST_ROWS_WITH_IDS:
        return False
    codes, values = coded(column, name)
    return _are_ids(values, len(np.unique(codes[codes >= 0])), name, n_rows)


def _are_ids(values: Sequence[Any], n_values: int, name: Hashable, n_rows: int) -> bool:
    """The same, for a column with these distinct values."""
    if n_rows < _FEWEST_ROWS_WITH_IDS or n_values < _UNIQUE_SHARE * n_rows:
        return False
    family = family_of(values[:1], name)
    are_whole = family == "numbers" and all(float(v).is_integer() for v in values[:100])
    is_text = family not in ("numbers", "times")
    return is_text or (are_whole and n_values == n_rows)


def check_no_ids(alphabet: ValueAlphabet, names: Sequence[Any], n_rows: int) -> None:
    """Refuse columns that would show values of single rows; bins and pools of all do not."""

    def is_id(name: Hashable, column: ColumnAlphabet) -> bool:
        if column.is_cut or set(column.symbol_labels) <= {POOLED, None}:
            return False
        occur = zip(column.values, column.weights, strict=True)
        values = [value for value, weight in occur if weight and value is not None]
        are_times = column.family == "times" and _FEWEST_ROWS_WITH_IDS <= n_rows == len(values)
        return are_times or _are_ids(values, len(values), name, n_rows)

    pairs = zip(names, alphabet.columns, strict=True)
    if found := [name for name, column in pairs if is_id(name, column)]:
        raise _id_error(found)


def learn_cells(
    settings: Settings,
    rows: LabelledRows,
    cells: Cells,
    secrets: Secrets,
    s: Classes,
    v: Classes | None,
) -> tuple[CellAlphabet, IntArray, tuple[Any, ...]]:
    """Return the cells of some rows, the cell of each row, and the columns released.

    s : the group of each row, by all columns of S; v : its target.
    """
    if cells.needs_target and v is None:
        template = "{cells} need a target: set {utility='target'}, or use TreeCells."
        raise ValueError(Message.of(template, cells=type(cells).__name__))
    if v is not None and v.codes.max() == 0:
        raise ValueError("The target has one value only: there is nothing to keep about it.")
    names = names_of_cells(settings, rows)
    doing("learning cells")
    rows = replace(rows, x_columns={name: rows.x_columns[name] for name in names})
    options = [_options(settings, rows, name) for name in names]
    series = list(rows.x_columns.values())
    columns, positions = learn_cell_columns(series, names, rows.weights, options)
    if exact := _left_sides(columns, positions, rows, options):
        for i in exact:
            options[i] |= {"n_bins": None, "pooling": (None, None)}
        columns, positions = learn_cell_columns(series, names, rows.weights, options)
    # Encoded as in `transform`: no row is counted in one cell and released from another.
    codes = coded_rows(columns, series, names)
    task, row_of = _task(settings, rows, cells, columns, codes, secrets, s, v)
    partition, of_distinct = cells.learn(task)
    if partition.n_cells < 2:
        heavy = "" if rows.weights is rows.multiplicities else ", or a few have most of the weight"
        template = (
            "These {n_rows} rows are too few, or too alike{heavy}, to be split into cells: use "
            "more rows, a larger {epsilon}, or {alphabet='values'}."
        )
        raise ValueError(Message.of(template, n_rows=rows.n_rows, heavy=heavy))
    if of_distinct is None:
        of_row = partition.cells(columns, codes, rows.fold)
    else:
        of_row = of_distinct[row_of]
    people = people_of(rows.multiplicities, rows.person, len(of_row))
    of_rows = columns, positions, of_row, rows.weights, partition, people
    target = released_target(settings, rows)
    return cell_alphabet(*of_rows, settings.draws_together, target), of_row, names


def released_target(
    settings: Settings, rows: LabelledRows
) -> tuple[tuple[ColumnAlphabet, ...], list[IntArray]]:
    """Return the columns of a target that is released, and the positions of its values."""
    if not settings.release_target or rows.target is None:
        return (), []
    options = [{"multiplicities": rows.multiplicities, "persons": rows.person}] * len(rows.target)
    return learn_positions(list(rows.target.values()), list(rows.target), rows.weights, options)


def _options(settings: Settings, rows: LabelledRows, name: Hashable) -> dict[str, Any]:
    """Return how a column is cut and pooled: finely, unless edges are given."""
    given: Any = settings.n_bins
    given = given.get(name) if isinstance(given, dict) else given
    if np.ndim(given) != 1:  # bins with enough rows to show a median
        given = max(2, min(FINE_BINS, rows.n_rows // (2 * FEWEST_ROWS)))
    most = MOST_CATEGORIES if settings.max_categories is None else settings.max_categories
    pooling = settings.min_frequency, most
    same = {"multiplicities": rows.multiplicities, "persons": rows.person}
    return {"n_bins": given, "pooling": pooling, "order": settings.order_of(name), **same}


def _left_sides(
    columns: Sequence[CellColumn],
    positions: Sequence[IntArray],
    rows: LabelledRows,
    options: Sequence[dict[str, Any]],
) -> set[int]:
    """Return the columns of numbers from whose values others follow, and such others.

    They get no bins, which would blur that, if most of their values are common.
    """
    every = [CodedColumn.of(c.alphabet, of) for c, of in zip(columns, positions, strict=True)]
    exact: dict[int, CodedColumn] = {}
    for i, (name, series) in enumerate(rows.x_columns.items()):
        if columns[i].alphabet.is_cut and np.ndim(options[i]["n_bins"]) == 0:
            codes, values = factorize(series, name)
            sizes = count(codes, len(values), rows.multiplicities)[:-1]
            are_common = 2 * sizes[sizes >= FEWEST_ROWS].sum() >= sizes.sum()
            if are_common and len(values) <= _MOST_EXACT:
                n, is_missing = len(values), codes == UNKNOWN
                exact[i] = CodedColumn(np.where(is_missing, n, codes), n + 1, n)
    every = [exact.get(i, column) for i, column in enumerate(every)]
    pairs = itertools.product(exact, range(len(every)))
    return {
        side
        for a, b in pairs
        if a != b and dependency(every[a], every[b], rows.multiplicities) is not None
        for side in (a, b)
        if side in exact
    }


def _task(
    settings: Settings,
    rows: LabelledRows,
    cells: Cells,
    columns: tuple[CellColumn, ...],
    codes: IntArray,
    secrets: Secrets,
    s: Classes,
    v: Classes | None,
) -> tuple[CellTask, IntArray]:
    """Return the task of learning cells, distinct rows in order, and which of them each row is.

    So neither the order of rows matters, nor whether rows or counts are given. Cells that need no
    target do not see S either.
    """
    n_effective = rows.effective_rows(s.codes)
    sizes_of_s = {name: int(g.codes(s.codes).max()) + 1 for name, g in secrets.groups.items()}
    n_beside = code_beside(settings, rows)[0].n_symbols if rows.beside else 1
    weights = np.ones(len(codes)) if rows.weights is None else rows.weights
    seen = [s, v] if cells.needs_target and v is not None else []
    labels = [*(of.codes for of in seen), *([] if rows.fold is None else [rows.fold])]
    parts = np.column_stack([*labels, codes])
    sizes = [int(label.max()) + 1 for label in labels] + [column.n_codes for column in columns]
    distinct, of_row = combine(list(parts.T), sizes)
    least = max(
        fewest_rows(n_effective, n_groups, secrets.budgets[name], settings.measure)
        for name, n_groups in sizes_of_s.items()
    )
    # A design takes seconds for this many cells.
    most = most_symbols(sum(sizes_of_s.values()) - len(sizes_of_s) + 1)
    most = most if settings.confidence is None else min(most, _MOST_WITH_CONFIDENCE)
    most = min(most, _MOST_WITH_DISTANCES) if settings.has_distances else most
    task = CellTask(
        columns,
        distinct[:, len(labels) :],
        np.bincount(of_row, weights).astype(float),
        n_effective,
        max(2, most // n_beside),
        min(0.5, (1 - 1e-9) * n_beside * least / n_effective),  # exactly that many are enough
        1 if rows.weights is rows.multiplicities else FEWEST_ROWS,
        None if rows.fold is None else distinct[:, len(labels) - 1],
    )
    if not seen:
        return task, of_row
    s, v = [of._replace(codes=distinct[:, i]) for i, of in enumerate(seen)]
    worth = partial(_worth, settings, secrets, s, v, task.weights, n_effective)
    return replace(task, s=s, v=v, worth=worth), of_row


def _worth(
    settings: Settings,
    secrets: Secrets,
    s: Classes,
    v: Classes,
    weights: FloatArray,
    n_rows: float,
    cells: IntArray,
) -> float:
    """Return what the design for some cells keeps about the target, less its bias.

    In n rows, I(V;Y) of a channel is larger by (|V| - 1) (sum P(x) P(y|x)^2 / P(y) - 1) / 2n on
    average than among all people; what is hidden of S is noise, for small cells, so that large
    ones may be worth more. It is the design for these rows, without a confidence, which is quick.
    """
    counts = count_pairs(s.codes, cells, weights, s.n_classes).astype(float) + settings.smoothing
    target = count_pairs(v.codes, cells, weights)
    asked = settings.measure, settings.scope, Target(target), settings.max_outputs
    owner, budgets = settings.owner, secrets.budgets
    task = DesignTask.checked(owner, secrets.tables(counts), budgets.values(), *asked)
    tol = None if s.n_classes == 2 else _ROUGH_TOL
    found = Designer(task, owner, "auto", None, tol)(budgets)
    mean_square = float((found.p_x @ found.channel**2 / found.p_y).sum())
    return found.utility - (len(target) - 1) * (mean_square - 1) / (2 * n_rows)
