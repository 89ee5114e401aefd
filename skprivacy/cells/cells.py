"""The protocol of cells, and cells as the symbols of a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import brentq
from sklearn.base import BaseEstimator

from .._typing import BoolArray, CountArray, FloatArray, IntArray
from .._validation import check_integer
from ..codes import GOLDEN, UNKNOWN, chunks, mixed, narrow, take
from ..encoding.alphabets import (
    Alphabet,
    Attempts,
    Columns,
    Decoded,
    Encoded,
    MadeUpColumn,
    Names,
    Options,
    ShownColumn,
    combine,
    learn_positions,
    made_up_column,
    shown_pools,
)
from ..encoding.columns import POOLED, ColumnAlphabet
from ..encoding.rows import RowModel, RowTask, learn_rows
from ..encoding.values import as_numbers
from ..measures import Measure, get_measure

# More would couple the folds: a model of nearly all rows knows what was left out.
N_FOLDS = 4


def folds_of_rows(columns: Sequence[CellColumn], codes: IntArray) -> IntArray:
    """Return the fold of each row, a hash of its coarse codes."""
    word = np.zeros(len(codes), dtype=np.uint64)
    for column, of_column in zip(columns, codes.T, strict=True):
        word = mixed(word + GOLDEN + column.coarse(of_column).astype(np.int64).astype(np.uint64))
    return (word % np.uint64(N_FOLDS)).astype(np.intp)


# A sample of the distinct rows, chosen by a hash of their values: the order of rows does not
# matter.
#
# The hash puts rows into buckets, and whole buckets are kept. A bucket of weight w is kept with
# probability min(1, w/t), and then counts as max(w, t): a priority sample, whose weights are
# unbiased (Duffield, Lund and Thorup, "Priority sampling for estimation of arbitrary subset
# sums", J. ACM 2007). Sizes of buckets add up, so parts of a table can be counted anywhere, in any
# order, and in bounded memory; exact counts of distinct rows cannot.


# With fewer distinct rows than this, most have a bucket of their own.
_BITS = 20
N_BUCKETS = 1 << _BITS

# Starts of the hashes of rows, and of those that choose buckets. Folds start at 0, so that they
# are independent of the sample.
_ROWS, _CHOICE = np.uint64(0xA0761D6478BD642F), np.uint64(0xE7037ED1A0B428DB)

# Weights are multiples of this, so that sums are exact in any order.
_GRAIN = 2.0**-16


def buckets(words: Iterable[npt.NDArray[np.uint64]], n_rows: int) -> IntArray:
    """Return the bucket of each row; words : its values, one column after the other."""
    word = np.full(n_rows, _ROWS)
    for of_column in words:
        word = mixed(word + GOLDEN + of_column)
    return (word >> np.uint64(64 - _BITS)).astype(np.int32)


def kept_buckets(sizes: CountArray, limit: int) -> FloatArray | None:
    """Return the factor for the weights in each bucket, 0 for buckets that are left out.

    sizes : the weight of each bucket. About `limit` distinct rows are kept; None if there are
    fewer.
    """
    used = np.flatnonzero(sizes)
    # The expected number of distinct rows that fill this many buckets; a lower bound if all are.
    n_distinct = N_BUCKETS * np.log(N_BUCKETS / max(N_BUCKETS - len(used), 0.5))
    if n_distinct <= limit:
        return None
    n_kept = int(limit * len(used) / n_distinct)
    draws = (mixed(used.astype(np.uint64) + _CHOICE) >> np.uint64(11)) + 0.5
    priorities = sizes[used] / (draws * 2.0**-53)
    threshold = np.partition(priorities, -n_kept - 1)[-n_kept - 1]
    kept = used[priorities > threshold]
    factors = np.zeros(N_BUCKETS)
    factors[kept] = np.rint(np.maximum(1, threshold / sizes[kept]) / _GRAIN) * _GRAIN
    return factors


# The task of learning cells, and its result.


# Cells are so large that sampling noise uses at most this share of the budget,
_SHARE_OF_NOISE = 0.5

# but not so large that there are fewer cells than this,
_FEWEST_CELLS = 20

# nor so small that a cell identifies a person: with at least this many rows, unique combinations
# come out hardly more often than if all columns were shuffled.
_FEWEST_ROWS = 20

# Shifts and divergences below this count as zero.
_SMALLEST = 1e-12


class Classes(NamedTuple):
    """A variable that models forecast; has_order : whether its classes are in an order."""

    codes: IntArray
    n_classes: int
    has_order: bool

    @classmethod
    def of(cls, alphabet: Alphabet, codes: IntArray, columns: Sequence[pd.Series]) -> Classes:
        """Return the variable that some columns make up."""
        first = alphabet.columns[0]
        is_ordered = first.is_measured or getattr(columns[0].dtype, "ordered", False)
        has_order = len(columns) == 1 and is_ordered and not first.has_missing
        return cls(codes, alphabet.n_symbols, bool(has_order))


@dataclass(frozen=True, eq=False)
class CellTask:
    """Rows that cells are learned from.

    columns : of X; codes : (n, n_columns); weights : of the rows; n_rows : the effective number of
    rows; most_cells : the limit of the design; least_share : the smallest weight of a cell, as a
    share of all; fewest_distinct : the smallest number of distinct rows in a cell, if weights are
    not numbers of rows; folds : of the rows, if these follow from person ids.

    Only for cells that need a target: s, v : the group of S and the target of each row; worth :
    what a design would keep about the target, given the cell of each row.
    """

    columns: tuple[CellColumn, ...]
    codes: IntArray
    weights: FloatArray
    n_rows: float
    most_cells: int
    least_share: float
    fewest_distinct: int = 1
    folds: IntArray | None = None
    s: Classes | None = None
    v: Classes | None = None
    worth: Callable[[IntArray], float] | None = None


class Partition(ABC):
    """A function from rows of codes to cells, for rows of `fit` and new rows alike."""

    #: An estimate of what X says about a target, in nats.
    information: float = 0.0

    @property
    @abstractmethod
    def n_cells(self) -> int:
        """The number of cells."""

    @abstractmethod
    def cells(
        self, columns: Sequence[CellColumn], codes: IntArray, folds: IntArray | None = None
    ) -> IntArray:
        """Return the cell of each row of codes; folds : as in `CellTask`."""

    @abstractmethod
    def in_words(self, columns: Sequence[CellColumn], names: Sequence[Hashable]) -> list[str]:
        """Return a text for each cell: what its rows have in common."""

    @abstractmethod
    def rules(self) -> list[Any]:
        """Return, as JSON, what determines the cell of a row."""


class Cells(BaseEstimator, ABC):
    """A method of learning cells."""

    name: ClassVar[str]
    #: Whether a target is needed, because the cells keep what X says about it.
    needs_target: ClassVar[bool] = False

    max_cells: int
    #: The column with person ids, if people have several rows.
    person: Any = None

    @abstractmethod
    def learn(self, task: CellTask) -> tuple[Partition, IntArray | None]:
        """Return cells for the rows of a task, and the cell of each row.

        None instead, if the cell of a row may depend on rounding that differs between tables.
        """

    def check(self) -> None:
        """Check the parameters."""
        check_integer(type(self).__name__, "max_cells", self.max_cells, low=2)


def fewest_rows(n_rows: float, n_groups: int, epsilon: float, measure: str | Measure) -> float:
    """Return how many rows a cell must have for P(S | cell) to be known well enough.

    The divergence of a sample of n rows from the truth is about (|S| - 1) / 2n, which must be
    small compared to the budget.
    """
    noise = _SHARE_OF_NOISE * max(_as_divergence(epsilon, get_measure(measure)), _SMALLEST)
    return max(_FEWEST_ROWS, min((n_groups - 1) / noise, n_rows / _FEWEST_CELLS))


def _as_divergence(epsilon: float, measure: Measure) -> float:
    """Return the KL divergence of a posterior that uses up a budget, for two equal groups."""
    prior, kl = np.full(2, 0.5), get_measure("kl")

    def value(measure: Measure, shift: float) -> float:
        return float(measure.value(np.array([[0.5 + shift / 2, 0.5 - shift / 2]]), prior)[0])

    def excess(shift: float) -> float:
        return value(measure, shift) - float(measure.threshold(epsilon))

    if excess(1 - 1e-9) <= 0:
        return float(np.log(2))
    if excess(_SMALLEST) >= 0:
        return 0.0
    return value(kl, float(brentq(excess, _SMALLEST, 1 - 1e-9)))


# Columns as codes that cells are made of: ranks of numbers, or categories.
#
# Numbers and times have fine bins. Values that were never seen have a code too: a number that of
# its bin, a category that of the rare ones.


# As many as gradient boosting distinguishes.
FINE_BINS = 255

# Categories of a column beyond these share a code.
MOST_CATEGORIES = 100

# Numbers in the same of this many parts of a column have the same coarse code.
_COARSE_PARTS = 10


@dataclass(frozen=True, eq=False)
class CellColumn:
    """One column; -1 is the code of missing numbers and unknown categories."""

    alphabet: ColumnAlphabet

    @cached_property
    def has_order(self) -> bool:
        """Whether codes are ranks of numbers or times.

        Not if the values are categories in another order, or too close to tell apart as floats:
        new rows would then be in other cells than rows of `fit`.
        """
        if not self.alphabet.is_measured or self.alphabet.is_cut:
            return self.alphabet.is_measured
        ranks = np.searchsorted(self.edges, self.places)
        return np.array_equal(ranks, np.arange(len(ranks)))

    @cached_property
    def n_codes(self) -> int:
        """The number of codes, without -1."""
        return len(self.edges) + 1 if self.has_order else self.alphabet.n_symbols

    @cached_property
    def edges(self) -> FloatArray:
        """The edges of the bins; without bins, the middles between values."""
        if self.alphabet.edges is not None:
            return self.alphabet.edges
        places = self.places
        return places[1:] / 2 + places[:-1] / 2  # the sum of two could be infinite

    @cached_property
    def places(self) -> FloatArray:
        """The value of each code, as a number."""
        values = self.alphabet.values[: len(self.alphabet.values) - self.alphabet.has_missing]
        return as_numbers(pd.Series(list(values), dtype=object), "X")

    def codes(self, series: pd.Series, label: Hashable) -> IntArray:
        """Return the code of each row."""
        if not self.has_order:
            names = self.alphabet.symbol_labels
            rare = names.index(POOLED) if POOLED in names else UNKNOWN  # values not seen are rare
            code_of_symbol = np.append(np.arange(len(names)), rare)
            return take(code_of_symbol, self.alphabet.encode(series, label))
        numbers = as_numbers(series, label)
        return np.where(np.isnan(numbers), UNKNOWN, np.searchsorted(self.edges, numbers))

    @cached_property
    def codes_of_values(self) -> IntArray:
        """The code of each value or bin of the alphabet, a missing one included."""
        n = len(self.alphabet.values)
        if not self.has_order:
            return self.alphabet.symbols
        codes = np.arange(n)
        codes[n - self.alphabet.has_missing :] = UNKNOWN
        return codes

    def coarse(self, codes: IntArray) -> IntArray:
        """Return codes that neighbouring numbers share."""
        if not self.has_order or self.n_codes <= _COARSE_PARTS:
            return codes
        wide = codes.astype(np.intp)  # a narrow type would overflow
        return np.where(codes < 0, UNKNOWN, wide * _COARSE_PARTS // self.n_codes)

    def category(self, code: int) -> str:
        """Return the name of a category."""
        label = "other" if code < 0 else self.alphabet.symbol_labels[code]
        return "missing" if label is None else "rare" if label == POOLED else str(label)

    def upper_end(self, code: int) -> str:
        """Return the largest number with at most this code, as a text."""
        edge = self.edges[code]
        example = next(value for value in self.alphabet.values if value is not None)
        if isinstance(example, pd.Timedelta):
            return str(pd.Timedelta(int(edge)))
        return str(pd.Timestamp(int(edge))) if self.alphabet.family == "times" else f"{edge:.6g}"


def learn_cell_columns(
    series: Columns, labels: Names, weights: FloatArray | None, options: Options
) -> tuple[tuple[CellColumn, ...], list[IntArray]]:
    """Return the columns, and the position of each row's value in them."""
    columns, positions = learn_positions(series, labels, weights, options)
    return tuple(map(CellColumn, columns)), [narrow(of_column) for of_column in positions]


def coded_rows(columns: Sequence[CellColumn], series: Columns, labels: Names) -> IntArray:
    """Return the codes of rows, of shape (n, n_columns)."""
    parts = zip(columns, series, labels, strict=True)
    return np.column_stack([column.codes(values, label) for column, values, label in parts])


# CellAlphabet: cells as the symbols of a table.
#
# The columns of a released row are drawn together, see `encoding.rows`, or each one separately
# from the values in the cell. No row of a person is ever shown. Rare values are replaced as in a
# pool, see `encoding.alphabets`.


# The probability that all columns keep their value is computed from about this many distinct rows.
MOST_COMPARED = 20_000

# Rows are made up in parts: the draws of all columns would take more memory than the rows.
_ROWS_AT_ONCE = 1 << 16

# Of rows whose columns are drawn together, about this many pairs of a row and a shown cell.
MOST_PAIRS = 60_000

# They are compared in parts that stay in the processor's cache.
_PAIRS_AT_ONCE = 1 << 14


@dataclass(frozen=True, eq=False)
class CellAlphabet(Alphabet):
    """The cells of a table as its symbols.

    columns : the alphabets of its columns; partition : from rows to cells; counted : the
    `occurrences` of each column; kept : the result of `matches`; row_model : how columns are drawn
    together, None if they are drawn separately; target_columns : of a target that is drawn with
    them.
    """

    columns: tuple[ColumnAlphabet, ...]
    partition: Partition
    counted: tuple[tuple[IntArray, IntArray, FloatArray], ...]
    kept: FloatArray | None = None
    row_model: RowModel | None = None
    target_columns: tuple[ColumnAlphabet, ...] = ()

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
            shown_pools(c, *found) for c, found in zip(self.columns, self.counted, strict=True)
        ]

    def encode(self, series: Columns, labels: Names, folds: IntArray | None = None) -> Encoded:
        codes = coded_rows(self.cell_columns, series, labels)
        return self.partition.cells(self.cell_columns, codes, folds), {}

    def occurrences(self, position: int) -> tuple[IntArray, IntArray, FloatArray]:
        return self.counted[position]

    @cached_property
    def made_up(self) -> list[MadeUpColumn]:
        assert self.row_model is not None
        columns = enumerate((*self.columns, *self.target_columns))
        return [made_up_column(column, self.row_model, i) for i, column in columns]

    def decode_together(self, symbols: IntArray, draws: Attempts, n_attempts: int) -> Decoded:
        found = [np.empty(len(symbols), dtype=np.int32) for _ in self.made_up]
        for part in chunks(len(symbols), _ROWS_AT_ONCE):
            drawn = self._drawn(symbols[part], part.start, draws, n_attempts)
            for index, column, *of_column in zip(found, self.made_up, *drawn, strict=True):
                index[part] = column.index(*of_column)
        return [(column.values, of) for column, of in zip(self.made_up, found, strict=True)]

    def _drawn(
        self, symbols: IntArray, first: int, draws: Attempts, n_attempts: int
    ) -> tuple[IntArray, FloatArray]:
        """Return codes of made-up rows and what is left of the draws; first : the first row."""
        assert self.row_model is not None
        draw = partial(_draw, draws, first + np.arange(len(symbols)), 0)
        codes, left = self.row_model.draw(symbols, draw)
        again = np.arange(len(symbols))
        for attempt in range(1, n_attempts):
            # Compared with the cell that is shown, never with the row's own. The last attempt
            # stays, wherever it is.
            again = again[self._cells_of(codes[:, again]) != symbols[again]]
            if not len(again):
                break
            draw = partial(_draw, draws, first + again, attempt)
            codes[:, again], left[:, again] = self.row_model.draw(symbols[again], draw)
        return codes, left

    def made_up_anew(self, series: Columns, labels: Names, seed: int) -> pd.DataFrame | None:
        """Return rows made up by a model of these rows alone, each shown as its own cell.

        None if columns are drawn separately. It is for tests of what a model says about the rows
        that it was learned from.
        """
        if self.row_model is None:
            return None
        columns = zip(self.columns, series, labels, strict=True)
        positions = [column.positions(values, label) for column, values, label in columns]
        cells = self.encode(series, labels)[0].astype(np.intp)
        ones = np.ones(len(cells))
        model = learn_rows(RowTask(self.columns, positions, cells, self.n_symbols, ones, ones))
        alone = replace(self, row_model=model, target_columns=())
        rng = np.random.default_rng(seed)
        found = alone.decode_together(cells, lambda rows, *_: rng.random(len(rows)), 1)
        values = ([shown[i] for i in index] for shown, index in found)
        return pd.DataFrame(dict(zip(map(str, labels), values, strict=True)))

    def _cells_of(self, codes: IntArray) -> IntArray:
        """Return the cells of made-up rows, whose folds follow from their own values.

        codes : (n_columns, n), positions of values, or one more than the last for a missing one;
        those of a target come last.
        """
        tables = [
            np.append(column.codes_of_values, column.codes(pd.Series([None], dtype=object), ""))
            for column in self.cell_columns
        ]
        of_columns = [table[of] for table, of in zip(tables, codes, strict=False)]
        return self.partition.cells(self.cell_columns, np.column_stack(of_columns))

    def matches(self) -> FloatArray:
        return np.full((self.n_symbols,) * 2, np.nan) if self.kept is None else self.kept

    def rules(self) -> list[Any]:
        return self.partition.rules()

    def can_be_read(self, symbols: IntArray) -> bool:
        return False

    def described(self, names: Names, sizes: FloatArray | None = None) -> pd.DataFrame:
        """Return a row for each cell: its size, share, rule, and commonest values.

        sizes : the number of rows in each cell, by default of the rows it was learned from.
        """
        sizes = self.tables()[0].sum(axis=0) if sizes is None else sizes
        common = {
            str(name): [shown.commonest(cell) for cell in range(self.n_symbols)]
            for name, shown in zip(names, self.shown, strict=True)
        }
        rules = self.partition.in_words(self.cell_columns, names)
        figures = {"rows": sizes, "share": sizes / sizes.sum(), "rule": rules}
        return pd.DataFrame({**figures, **common}, index=pd.Index(self.labels, name="cell"))


def _draw(draws: Attempts, rows: IntArray, attempt: int, column: int) -> FloatArray:
    return draws(rows, column, attempt)


def cell_alphabet(
    columns: Sequence[CellColumn],
    positions: Sequence[IntArray],
    cells: IntArray,
    weights: FloatArray | None,
    partition: Partition,
    people: FloatArray,
    together: bool = True,
    target: tuple[tuple[ColumnAlphabet, ...], list[IntArray]] = ((), []),
) -> CellAlphabet:
    """Return the alphabet of rows whose cells are known.

    positions : for each column, the position of each row's value in it; people : how many each row
    stands for, at least; together : whether columns of made-up rows are drawn together; target :
    the columns of a target that is drawn with them, and the positions of its values.
    """
    counted = tuple(
        _counted(len(column.alphabet.values), of_rows, cells, partition.n_cells, weights)
        for column, of_rows in zip(columns, positions, strict=True)
    )
    of_columns = tuple(c.alphabet for c in columns)
    alphabet = CellAlphabet(of_columns, partition, counted)
    if together:
        each = np.ones(len(cells)) if weights is None else weights
        groups = cells.astype(np.intp), partition.n_cells
        every = (*of_columns, *target[0]), [*positions, *target[1]]
        task = RowTask(*every, *groups, each, people, n_last=len(target[0]))
        alphabet = replace(alphabet, row_model=learn_rows(task), target_columns=target[0])
    return replace(alphabet, kept=_kept(alphabet, positions, cells, weights))


def _counted(
    n_values: int, values: IntArray, cells: IntArray, n_cells: int, weights: FloatArray | None
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return which values occur in which cells, and how often."""
    packed = cells.astype(np.intp) * n_values + values
    counts = np.bincount(packed, weights, n_cells * n_values).astype(float)
    occurs = np.flatnonzero(counts)
    return occurs % n_values, occurs // n_values, counts[occurs]


def _kept(
    alphabet: CellAlphabet,
    positions: Sequence[IntArray],
    cells: IntArray,
    weights: FloatArray | None,
) -> FloatArray:
    """Return the probability that a row of each cell, shown as each, keeps all its values."""
    n_codes = [alphabet.n_symbols, *(len(column.values) + 1 for column in alphabet.columns)]
    distinct, of_row = combine([cells, *positions], n_codes)
    totals = np.bincount(of_row, weights).astype(float)
    if alphabet.row_model is not None:
        return _kept_together(alphabet.row_model, distinct, totals)
    every = map(alphabet.shown_shares, range(len(positions)))
    by_column = [np.ascontiguousarray(shares.T) for shares in every]
    bucket = buckets(distinct.T.astype(np.uint64), len(distinct))
    factors = kept_buckets(np.bincount(bucket, totals, N_BUCKETS), MOST_COMPARED)
    if factors is not None:
        totals *= factors[bucket]
        distinct, totals = distinct[totals > 0], totals[totals > 0]
    found = np.zeros((alphabet.n_symbols,) * 2)
    for rows in chunks(len(totals), 2048):
        kept = np.repeat(totals[rows, None], alphabet.n_symbols, axis=1)
        for shares, values in zip(by_column, distinct[rows, 1:].T, strict=True):
            kept *= shares[values]
        np.add.at(found, distinct[rows, 0], kept)
    sizes = np.bincount(distinct[:, 0], totals, alphabet.n_symbols)
    return found / np.where(sizes > 0, sizes, 1.0)[:, None]


def _kept_together(model: RowModel, distinct: IntArray, totals: FloatArray) -> FloatArray:
    """Return the same if columns are drawn together; distinct : (cell, positions) of rows.

    Of many rows, some of each cell are compared, which a hash of their values selects.
    """
    n_cells, cells = model.sizes[-1], distinct[:, 0]
    # A priority sample of each cell, as for the rows that cells are learned from.
    draws = (buckets(distinct.T.astype(np.uint64), len(distinct)) + 0.5) / N_BUCKETS
    priorities = totals / draws
    order = np.lexsort((-priorities, cells))
    place = np.arange(len(order)) - np.searchsorted(cells[order], cells[order])
    most = max(1, MOST_PAIRS // n_cells**2)
    thresholds = np.zeros(n_cells)
    next_ones = order[place == most]
    thresholds[cells[next_ones]] = priorities[next_ones]
    chosen = order[place < most]
    rows, weights = distinct[chosen], np.maximum(totals, thresholds[cells])[chosen]
    found, codes = np.zeros(n_cells**2), np.ascontiguousarray(rows[:, 1:].T)
    for some in chunks(n_cells, max(1, _PAIRS_AT_ONCE // len(rows))):
        shown = np.repeat(np.arange(n_cells)[some], len(rows))
        n = len(shown) // len(rows)
        kept = model.probability(list(np.tile(codes, n)), shown)
        pairs = np.tile(rows[:, 0], n).astype(np.intp) * n_cells + shown
        found += np.bincount(pairs, kept * np.tile(weights, n), n_cells**2)
    sizes = np.bincount(rows[:, 0], weights, n_cells)
    return found.reshape(n_cells, n_cells) / np.where(sizes > 0, sizes, 1.0)[:, None]
