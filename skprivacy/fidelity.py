"""Distances between values, and how close released values are to the true ones."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from ._numerics import NEGLIGIBLE
from ._typing import BoolArray, CountArray, FloatArray, IntArray, Labels
from .codes import chunks
from .encoding import Alphabet, ColumnAlphabet
from .encoding.alphabets import ValueAlphabet, learn_alphabet
from .encoding.columns import edges_below
from .encoding.values import as_numbers


def label_distances(
    columns: pd.Index, p_x: FloatArray, column_weights: Sequence[float]
) -> FloatArray:
    """Return the distance of each label (rows) from each (columns); p_x : their frequencies.

    A label with several levels is a row of several columns.
    """
    levels = [columns.get_level_values(level) for level in range(columns.nlevels)]
    series = [pd.Series(level, index=range(len(level))) for level in levels]
    in_order = [getattr(each.dtype, "ordered", None) is True for each in series]
    options: list[dict[str, Any]] = [{"n_bins": None}] * len(series)
    weights = np.maximum(p_x, np.finfo(float).tiny)  # keeps labels that never occur
    alphabet, symbols = learn_alphabet(series, list(range(len(series))), weights, options)
    return gower(alphabet, in_order, column_weights)[np.ix_(symbols, symbols)]


# Gower's distance between symbols, for values taken at face value.
#
# In a column of categories the distance of two values is 0 or 1; in an ordered column it is the
# share of rows between them. Columns are averaged. The distance of symbols that stand for several
# combinations is the mean distance of their members.


def gower(
    alphabet: Alphabet, in_order: Sequence[bool], column_weights: Sequence[float]
) -> FloatArray:
    """Return the distance of each symbol (rows) from each (columns), from 0 to 1.

    in_order : whether the values of each column have an order even if they are categories.
    """
    if alphabet.x_alphabet is not alphabet:  # columns beside X do not count
        of_x = gower(alphabet.x_alphabet, in_order, column_weights)
        return of_x[np.ix_(alphabet.x_symbols, alphabet.x_symbols)]
    distances = np.zeros((alphabet.n_symbols, alphabet.n_symbols))
    tables = alphabet.tables()
    for position, column in enumerate(alphabet.columns):
        # Shares of the values among the members of each symbol (rows).
        shares = np.ascontiguousarray(tables[position].T)
        shares /= shares.sum(axis=1, keepdims=True)
        has_order = in_order[position] or column.is_measured
        apart = _apart_in_order(column, shares) if has_order else 1 - shares @ shares.T
        distances += column_weights[position] * np.maximum(apart, 0.0)
    if isinstance(alphabet, ValueAlphabet):
        np.fill_diagonal(distances, 0.0)  # pooled values are read as their symbol
    return distances / sum(column_weights)


def _apart_in_order(column: ColumnAlphabet, shares: FloatArray) -> FloatArray:
    """Return the mean distance of mid-ranks; it is 1 between a missing value and any other."""
    n_present = len(column.values) - column.has_missing
    order = np.arange(n_present)  # categories come in their order
    if column.is_measured:
        values = pd.Series(column.values[:n_present], dtype=object)
        order = np.argsort(as_numbers(values, "X"), kind="stable")
    weights, known = column.weights[:n_present][order], shares[:, :n_present][:, order]
    ranks = (np.cumsum(weights) - weights / 2) / weights.sum()
    # E|a - b| is the integral over places of the probability that exactly one of them is below.
    gaps = np.diff(ranks)
    below = np.cumsum(known, axis=1)[:, :-1]
    total = known.sum(axis=1)
    above = total[:, None] - below
    apart = (below * gaps) @ above.T
    missing = np.outer(1 - total, total)
    return apart + apart.T + missing + missing.T


# How close released values are to the true ones, taken at face value.


@dataclass(frozen=True, eq=False)
class Spread:
    """Distribution of the rows of each symbol x over the K values that the column may show.

    held : (n_x, K), the share of the rows of x with each value. In the methods, p_x is P(X) and
    released : (n_x, K) is P(shown value | x).
    """

    held: FloatArray

    def unchanged(self, p_x: FloatArray, released: FloatArray) -> float:
        """Return how often a value stays the same."""
        return float(p_x @ (self.held * released).sum(axis=1))

    def total_variation(self, p_x: FloatArray, released: FloatArray) -> float:
        """Return the total variation between the values before and after."""
        before, after = p_x @ self.held, p_x @ released
        return float(0.5 * (np.abs(before - after).sum() + max(0.0, 1 - before.sum())))

    def distance(self, p_x: FloatArray, released: FloatArray) -> float:
        """Return the mean distance of the values before and after: 1 if they differ."""
        return 1 - self.unchanged(p_x, released)

    def distances(self, p_x: FloatArray) -> FloatArray:
        """Return the mean distance of all rows from each of the K shown values."""
        return 1 - p_x @ self.held

    def mean_shift(self, p_x: FloatArray, released: FloatArray) -> float:
        """Return NaN: the values have no places."""
        return np.nan

    def correlation(self, p_x: FloatArray, released: FloatArray) -> float:
        """Return NaN: the values have no places."""
        return np.nan


@dataclass(frozen=True, eq=False)
class PlacedSpread(Spread):
    """A spread of values on a line; the distance of a missing value from any other is 1.

    places : (K,), places of the shown values, NaN if missing; shares, sums : (n_x, n + 1), the
    share of rows, and the sum of their places, in each gap between the n places that are not NaN;
    squares : (n_x,), the sum of squared places. Places in sums are measured from `centre`.
    """

    places: FloatArray
    shares: FloatArray
    sums: FloatArray
    squares: FloatArray
    centre: float

    def mean_shift(self, p_x: FloatArray, released: FloatArray) -> float:
        """Return how far a value moves on average, if it is missing neither before nor after."""
        n_both = p_x @ (self._present * self._shown(released).sum(axis=1))
        return float(p_x @ self._shift(released) / n_both) if n_both > 0 else np.nan

    def distance(self, p_x: FloatArray, released: FloatArray) -> float:
        shown = self._shown(released).sum(axis=1)
        one_missing = self._present * (1 - shown) + (1 - self._present) * shown
        return float(p_x @ (self._shift(released) + one_missing))

    def distances(self, p_x: FloatArray) -> FloatArray:
        n, total = np.cumsum(p_x @ self.shares), np.cumsum(p_x @ self.sums)
        apart = self._line * (2 * n[:-1] - n[-1]) + total[-1] - 2 * total[:-1]
        distances = np.full(len(self.places), n[-1])  # from a missing value
        distances[self._order] = np.maximum(apart, 0.0) + p_x @ (1 - self._present)
        return distances

    def correlation(self, p_x: FloatArray, released: FloatArray) -> float:
        """Return the correlation between the values before and after, if neither is missing.

        0 if the shown values do not vary; NaN if the values before do not.
        """
        shown, present = self._shown(released), self._present
        n_shown, x, y = shown.sum(axis=1), self.sums.sum(axis=1), shown @ self._line
        squares = self.squares * n_shown, present * (shown @ self._line**2)
        n = float(p_x @ (present * n_shown))
        if not n > 0:
            return np.nan
        means = p_x @ (x * n_shown) / n, p_x @ (present * y) / n
        var_x, var_y = (
            _variance(p_x @ square / n, mean) for square, mean in zip(squares, means, strict=True)
        )
        if not var_x:
            return np.nan
        covariance = p_x @ (x * y) / n - means[0] * means[1]
        return float(np.clip(covariance / np.sqrt(var_x * var_y), -1, 1)) if var_y else 0.0

    @property
    def _present(self) -> FloatArray:
        """Share of the rows of each symbol whose value is not missing."""
        return self.shares.sum(axis=1)

    @property
    def _order(self) -> IntArray:
        """Positions of the shown values that are not missing, in the order of their places."""
        return np.argsort(self.places, kind="stable")[: np.count_nonzero(~np.isnan(self.places))]

    @property
    def _line(self) -> FloatArray:
        """Places of the shown values that are not missing, in order, from `centre`."""
        return self.places[self._order] - self.centre

    def _shown(self, released: FloatArray) -> FloatArray:
        """Return P(shown value | x) of the values that are not missing, in order."""
        return released[:, self._order]

    def _shift(self, released: FloatArray) -> FloatArray:
        """Return, for each x, the mean of |place before - place after|, 0 where one is missing."""
        shown, places = self._shown(released), self._line
        zero = np.zeros((len(shown), 1))
        below = np.hstack([zero, np.cumsum(shown, axis=1)])  # shown values below each gap
        weighted = np.hstack([zero, np.cumsum(shown * places, axis=1)])
        above, weighted_above = below[:, -1:] - below, weighted[:, -1:] - weighted
        apart = self.sums * (below - above) + self.shares * (weighted_above - weighted)
        return np.maximum(apart.sum(axis=1), 0.0)


def _variance(square: float, mean: float) -> float:
    """Return a variance, zero if it is rounding."""
    variance = square - mean**2
    return variance if variance > NEGLIGIBLE * square else 0.0


def spread(
    held: IntArray,
    symbols: IntArray,
    weights: CountArray | None,
    shape: tuple[int, int],
    at: FloatArray | None = None,
    places: FloatArray | None = None,
) -> Spread:
    """Return the spread of rows.

    held : which of the shown values each row has, -1 for none of them; symbols, weights : of the
    rows; shape : (n_x, K); at : place of each row, NaN if missing; places : of the shown values.
    """
    n_x, n_shown = shape
    counts = np.zeros((n_x, n_shown + 1))  # rows with none of the values come last
    for rows in chunks(len(symbols)):
        column = np.where(held[rows] < 0, n_shown, held[rows])
        weight = None if weights is None else weights[rows]
        counts += _summed(symbols[rows], column, weight, counts.shape)
    totals = counts.sum(axis=1, keepdims=True)
    n_rows = np.where(totals > 0, totals, 1.0)
    shown = counts[:, :-1] / n_rows
    if at is None or places is None:
        return Spread(shown)
    known = np.sort(places[~np.isnan(places)])
    centre = float(known.mean()) if len(known) else 0.0
    gaps = np.zeros((3, n_x, len(known) + 1))
    for rows in chunks(len(symbols)):
        place = at[rows] - centre
        present = ~np.isnan(place)
        place, symbol = place[present], symbols[rows][present]
        gap = edges_below(known - centre, place, side="right")
        weight = np.ones(len(place)) if weights is None else weights[rows][present]
        for power, total in enumerate(gaps):
            total += _summed(symbol, gap, weight * place**power, total.shape)
    shares, sums, squares = gaps / n_rows
    return PlacedSpread(shown, places, shares, sums, squares.sum(axis=1), centre)


def _summed(
    row: IntArray, column: IntArray, weights: CountArray | None, shape: tuple[int, ...]
) -> FloatArray:
    """Return the sums of weights by row and column of a table."""
    cells = row.astype(np.intp) * shape[1] + column
    return np.bincount(cells, weights, shape[0] * shape[1]).reshape(shape).astype(float)


# The columns of an alphabet before and after a release.


_NANOSECONDS_PER_DAY = 86_400e9


@dataclass(frozen=True, eq=False)
class ComparedColumn:
    """One column: its values in rows, and the values that it may show.

    spread : of the rows over the shown values; by_symbol : (n_symbols, K), P(shown value |
    symbol); unit : of their places.
    """

    spread: Spread
    by_symbol: FloatArray
    unit: str = ""

    def figures(self, p_x: FloatArray, p_symbol: FloatArray) -> dict[str, Any]:
        """Return the fidelity figures of a release; p_symbol : P(released symbol | symbol)."""
        released = p_symbol @ self.by_symbol
        return {
            "unchanged": self.spread.unchanged(p_x, released),
            "mean_shift": self.spread.mean_shift(p_x, released),
            "unit": self.unit,
            "correlation": self.spread.correlation(p_x, released),
            "total_variation": self.spread.total_variation(p_x, released),
        }

    def distance(self, p_x: FloatArray, p_symbol: FloatArray) -> float:
        """Return the mean distance of the values before and after."""
        return self.spread.distance(p_x, p_symbol @ self.by_symbol)

    def distances(self, p_x: FloatArray) -> FloatArray:
        """Return the mean distance of all values from each symbol."""
        return self.by_symbol @ self.spread.distances(p_x)


@dataclass(frozen=True, eq=False)
class RawX:
    """X as it was before numbers were cut into bins and rare values were pooled.

    columns : the columns that were cut, None for the others; utility : the share of the utility of
    the raw X that a release keeps.
    """

    columns: tuple[ComparedColumn | None, ...]
    utility: float


def compared_columns(
    alphabet: Alphabet, in_order: Sequence[bool], by_rank: bool = False
) -> list[ComparedColumn]:
    """Return all columns, in their bins.

    in_order : whether the values of each column have an order even if they are categories;
    by_rank : whether places are mid-ranks, as in `gower`.
    """
    columns = []
    for position, column in enumerate(alphabet.columns):
        places, unit = _placed(column, in_order[position])
        if by_rank and places is not None:
            places = mid_ranks(places, column.weights, places)
        columns.append(_compared(alphabet, position, places, unit))
    return columns


def mid_ranks(values: FloatArray, weights: FloatArray, at: FloatArray) -> FloatArray:
    """Return the share of values below each place in `at`, plus half of those equal to it."""
    known = ~np.isnan(values)
    order = np.argsort(values[known], kind="stable")
    sorted_, below = values[known][order], np.append(0.0, np.cumsum(weights[known][order]))
    ends = [below[np.searchsorted(sorted_, at, side=side)] for side in ("left", "right")]
    return np.where(np.isnan(at), np.nan, (ends[0] + ends[1]) / (2 * below[-1]))


def _placed(column: ColumnAlphabet, has_order: bool) -> tuple[FloatArray | None, str]:
    """Return (place of each value of a column, unit of places)."""
    if column.is_measured:
        return places_of(column, pd.Series(list(column.values), dtype=object)), unit_of(column)
    if not has_order:
        return None, ""
    steps = np.arange(len(column.values), dtype=float)
    steps[len(steps) - column.has_missing :] = np.nan
    return steps, "steps"


def places_of(column: ColumnAlphabet, values: pd.Series) -> FloatArray:
    """Return values of a column of numbers or times as places, NaN if missing."""
    numbers = as_numbers(values, "X")
    return numbers / _NANOSECONDS_PER_DAY if column.family == "times" else numbers


def unit_of(column: ColumnAlphabet) -> str:
    """Return the unit of places of a column of numbers or times."""
    return "days" if column.family == "times" else ""


def _compared(
    alphabet: Alphabet, position: int, places: FloatArray | None, unit: str
) -> ComparedColumn:
    """Return a column; places : of its values, None without an order."""
    held, symbols, weights = alphabet.occurrences(position)
    by_symbol = alphabet.shown_shares(position)
    at = None
    if places is not None:
        at, places = places[held], np.append(places, np.nan)
    found = spread(held, symbols, weights, by_symbol.shape, at, places)
    return ComparedColumn(found, by_symbol, unit)


# The symbol of X for each output without a name.


def closest_names(p_xy: FloatArray, loss: FloatArray) -> IntArray:
    """Return a symbol for each output, with the smallest expected loss.

    p_xy : (n_x, n_y), P(X, Y); loss : of reading the symbol of a row as the symbol of a column. No
    two outputs get the same symbol, unless there are more outputs than symbols.
    """
    expected = p_xy.T @ loss
    names = expected.argmin(axis=1)
    outputs, symbols = linear_sum_assignment(expected)
    names[outputs] = symbols
    return names


# Fidelity of a release to readers who take released values at face value.


# Swaps with a smaller share of the rows are not listed: channels have entries that are rounding.
_FEW_ROWS, _DIGITS = 1e-5, 5

# A value is mostly released as others if less than this share of its rows keep it.
_MOSTLY = 0.5


@dataclass(frozen=True, eq=False, repr=False)
class Fidelity:
    """How close released values are to the true ones, computed exactly from the channel.

    Attributes
    ----------
    unchanged : float
        Share of rows in which every column keeps its value, or its bin.
    replaced : float
        Share of rows whose value is usually replaced by a different one.
    columns : DataFrame
        One row per column. `unchanged`: share of rows that keep their value, or their bin;
        `mean_shift`: how far ordered values move on average, in `unit`: the unit of the numbers
        themselves, days, or steps from one ordered category to the next; `correlation`: between
        the values before and after; `total_variation`: between the distributions before and after,
        from 0 to 1. NaN if a figure needs an order and the column has none.
    swaps : DataFrame
        The five swaps with most rows: a `share` of the rows with `value` is `released_as` another
        one, which is the share `rows` of all rows.
    worst_swap : DataFrame
        The swap with most rows among values that are usually replaced.
    pooled : float
        Share of rows whose values are rare and share a symbol with others.
    raw_columns : DataFrame or None
        As `columns`, for numbers before they were cut into bins. None if nothing was cut, or if
        the transformer was loaded. NaN for numbers that were too many to count.
    raw_utility : float
        Share of the utility that is kept of X before it was cut and pooled: negative if a constant
        would be closer. NaN if unknown.
    of_cells : bool
        Whether symbols are cells: rows are then made up, and there are no swaps to list, nor
        values that are never released.
    is_joint : bool
        Whether the columns of made-up rows are drawn together. Figures of columns are then those
        of rows in the shown cells.
    never_released : DataFrame
        Values, or bins, of some rows with which no row is released, the most frequent ones first:
        `column`, `value`, `rows` (the share of all rows with it), and `is_rare`, whether fewer
        than five rows have it: such values are better not named.

    Examples
    --------
    >>> import pandas as pd
    >>> from skprivacy import PrivacyFunnelTransformer
    >>> frame = pd.DataFrame({"s": list("aaabbb") * 50, "x": [1, 2, 3, 2, 3, 4] * 50})
    >>> funnel = PrivacyFunnelTransformer(0.05, sensitive="s", utility="distortion").fit(frame)
    >>> fidelity = funnel.fidelity_
    >>> fidelity.columns.round(2)[["unchanged", "mean_shift", "correlation"]].reset_index()
      column  unchanged  mean_shift  correlation
    0      x       0.69        0.33         0.78
    >>> fidelity.swaps.round(2)
      value released_as  share  rows
    0     1           2   0.91  0.15
    1     4           3   0.91  0.15
    2     1           4   0.03  0.00
    3     4           1   0.03  0.00
    """

    unchanged: float
    replaced: float
    columns: pd.DataFrame
    swaps: pd.DataFrame
    worst_swap: pd.DataFrame
    pooled: float = 0.0
    raw_columns: pd.DataFrame | None = None
    raw_utility: float = np.nan
    of_cells: bool = False
    is_joint: bool = False
    never_released: pd.DataFrame = field(default_factory=pd.DataFrame)

    def __repr__(self) -> str:
        n = len(self.columns)
        return f"Fidelity({self.unchanged:.1%} of rows unchanged in {n} column{'s'[: n != 1]})"


@dataclass(frozen=True, eq=False)
class NamedChannel:
    """A channel whose outputs are read as symbols of X.

    channel : P(Y|X); p_x : P(X); names : the symbol for each output; labels : of the symbols;
    shown_given_y : P(symbol | Y), if an output is not always read as the same one.
    """

    channel: FloatArray
    p_x: FloatArray
    names: IntArray
    labels: Labels
    shown_given_y: FloatArray | None = None

    @property
    def p_symbol(self) -> FloatArray:
        """P(released symbol | symbol), of shape (n_x, n_x)."""
        if self.shown_given_y is not None:
            return self.channel @ self.shown_given_y
        released = np.zeros((len(self.p_x), len(self.p_x)))
        np.add.at(released.T, self.names, self.channel.T)
        return released

    @property
    def kept(self) -> FloatArray:
        """How often each symbol is released as itself."""
        return np.diag(self.p_symbol)

    @property
    def is_replaced(self) -> BoolArray:
        """Mask of the symbols that are mostly released as others."""
        return self.kept < _MOSTLY

    def swaps(self, n: int, of: BoolArray | bool = True) -> pd.DataFrame:
        """Return the n swaps with most rows; of : mask of the symbols that count."""
        p_symbol = self.p_symbol
        rows = np.where(of, self.p_x, 0.0)[:, None] * p_symbol
        np.fill_diagonal(rows, 0.0)
        # Which of two is larger must not depend on the rounding of a design.
        largest = np.argsort(-np.round(rows, _DIGITS), axis=None, kind="stable")[:n]
        before, after = np.unravel_index(largest[rows.flat[largest] > 0], rows.shape)
        return pd.DataFrame(
            {
                "value": _objects(self.labels[i] for i in before),
                "released_as": _objects(self.labels[i] for i in after),
                "share": p_symbol[before, after],
                "rows": rows[before, after],
            }
        )


def _objects(labels: Iterable[Any]) -> pd.Series:
    found = list(labels)
    column = np.empty(len(found), dtype=object)
    column[:] = found
    return pd.Series(column, dtype=object)


def fidelity_of_symbols(named: NamedChannel) -> Fidelity:
    """Return the fidelity of symbols of which only the labels are known."""
    n_x, labels = len(named.p_x), named.labels
    symbols = np.arange(n_x)
    are_numbers = all(isinstance(label, int | float | np.number) for label in labels)
    places = np.array(labels, dtype=float) if are_numbers else None
    found = spread(symbols, symbols, None, (n_x, n_x), places, places)
    column = ComparedColumn(found, np.eye(n_x))
    gone = _gone("X", labels, named.p_x, named.p_x @ named.p_symbol, np.zeros(n_x, dtype=bool))
    return _fidelity(named, float(named.p_x @ named.kept), ["X"], [column], gone)


def fidelity_of_columns(
    named: NamedChannel,
    alphabet: Alphabet,
    names: Sequence[Hashable],
    in_order: Sequence[bool],
    raw: Sequence[ComparedColumn | None] | None = None,
    raw_utility: float = np.nan,
) -> Fidelity:
    """Return the fidelity of the columns of an alphabet.

    names : of the columns; in_order : whether the values of each have an order even if they are
    categories; raw : columns before they were cut, None for those that were not.
    """
    columns = compared_columns(alphabet, in_order)
    unchanged = float(named.p_x @ (named.p_symbol * alphabet.matches()).sum(axis=1))
    gone = () if alphabet.of_cells else _gone_from(named, alphabet, names)
    whole = _fidelity(named, unchanged, names, columns, gone)
    whole = replace(whole, raw_utility=raw_utility, of_cells=alphabet.of_cells)
    whole = replace(whole, is_joint=named.shown_given_y is not None)
    if raw is not None and any(raw):
        pairs = zip(raw, columns, strict=True)
        raw_columns = _figures(named, names, [before or after for before, after in pairs])
        whole = replace(whole, raw_columns=raw_columns)
    if alphabet.of_cells:
        return replace(whole, swaps=whole.swaps[:0], worst_swap=whole.worst_swap[:0])
    return replace(whole, pooled=float(named.p_x @ alphabet.is_pool))


def _gone_from(
    named: NamedChannel, alphabet: Alphabet, names: Sequence[Hashable]
) -> Iterator[tuple[Any, ...]]:
    """Yield the values of all columns that are never released."""
    for position, (name, column) in enumerate(zip(names, alphabet.columns, strict=True)):
        released = named.p_x @ named.p_symbol @ alphabet.shown_shares(position)
        shares = column.weights / column.weights.sum()
        yield from _gone(name, column.labels, shares, released, column.is_rare)


def _gone(
    name: Hashable, labels: Labels, before: FloatArray, after: FloatArray, is_rare: BoolArray
) -> Iterator[tuple[Any, ...]]:
    """Yield the values of a column that occur before and not after."""
    for i in np.flatnonzero((before > 0) & (after[: len(before)] <= NEGLIGIBLE)):
        yield name, labels[i], float(before[i]), bool(is_rare[i])


def _by_rows(gone: Iterable[tuple[Any, ...]]) -> pd.DataFrame:
    """Return (column, value, rows, is_rare) as a DataFrame, the largest share of rows first."""
    rows = sorted(gone, key=lambda each: -each[2])
    columns = [_objects(part) for part in zip(*rows, strict=True)] or [_objects(())] * 4
    names = ("column", "value", "rows", "is_rare")
    kinds = {"rows": float, "is_rare": bool}
    return pd.DataFrame(dict(zip(names, columns, strict=True))).astype(kinds)


def _fidelity(
    named: NamedChannel,
    unchanged: float,
    names: Sequence[Hashable],
    columns: Sequence[ComparedColumn],
    gone: Iterable[tuple[Any, ...]],
) -> Fidelity:
    replaced, figures = named.is_replaced, _figures(named, names, columns)
    swaps, worst, never_released = named.swaps(5), named.swaps(1, replaced), _by_rows(gone)
    swaps, share = swaps[swaps["rows"] > _FEW_ROWS], float(named.p_x @ replaced)
    return Fidelity(unchanged, share, figures, swaps, worst, never_released=never_released)


def _figures(
    named: NamedChannel, names: Sequence[Hashable], columns: Sequence[ComparedColumn]
) -> pd.DataFrame:
    index: Any = pd.Index(_objects(names), name="column", tupleize_cols=False)
    p_x, p_symbol = named.p_x, named.p_symbol
    return pd.DataFrame([column.figures(p_x, p_symbol) for column in columns], index=index)
