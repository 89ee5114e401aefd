"""How the values of a column lie among those that it may show: all that its figures need.

Rows are summed up by symbol and by the gap between shown values that they fall into. From these
sums follow exactly, for any channel, how often a value stays as it is and how far it moves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import FloatArray, IntArray
from ..codes import chunks

# A variance below this share of the squares is rounding.
_NO_VARIANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Spread:
    """The rows of each symbol x, K being how many values the column may show.

    own : (n_x, K), the share of the rows of x that have each of these values. In what follows,
    p_x is P(X) and released : (n_x, K) is P(shown value | x).
    """

    own: FloatArray

    def unchanged(self, p_x: FloatArray, released: FloatArray) -> float:
        """Return how often a value stays what it is."""
        return float(p_x @ (self.own * released).sum(axis=1))

    def total_variation(self, p_x: FloatArray, released: FloatArray) -> float:
        """Return the total variation between the values before and after."""
        before, after = p_x @ self.own, p_x @ released
        return float(0.5 * (np.abs(before - after).sum() + max(0.0, 1 - before.sum())))

    def distance(self, p_x: FloatArray, released: FloatArray) -> float:
        """Return the mean distance of the values before and after: 1 if they differ."""
        return 1 - self.unchanged(p_x, released)

    def distances(self, p_x: FloatArray) -> FloatArray:
        """Return the mean distance of all rows from each of the K shown values."""
        return 1 - p_x @ self.own


@dataclass(frozen=True, eq=False)
class PlacedSpread(Spread):
    """The same for values on a line; a missing one is 1 away from all others.

    places : (K,), those of the shown values, NaN for a missing one; shares, sums : (n_x, n + 1),
    the share of rows, and the sum of their places, in each gap between the n places that are not
    NaN; squares : (n_x,), of their squared places. These are measured from `centre`.
    """

    places: FloatArray
    shares: FloatArray
    sums: FloatArray
    squares: FloatArray
    centre: float

    def mean_shift(self, p_x: FloatArray, released: FloatArray) -> float:
        """Return how far a value moves on average, where none is missing."""
        n_both = p_x @ (self._present * self._shown(released).sum(axis=1))
        return float(p_x @ self._shift(released) / n_both) if n_both > 0 else np.nan

    def distance(self, p_x: FloatArray, released: FloatArray) -> float:
        shown = self._shown(released).sum(axis=1)
        one_missing = self._present * (1 - shown) + (1 - self._present) * shown
        return float(p_x @ (self._shift(released) + one_missing))

    def distances(self, p_x: FloatArray) -> FloatArray:
        n, total = np.cumsum(p_x @ self.shares), np.cumsum(p_x @ self.sums)
        places = self._line
        apart = places * (2 * n[:-1] - n[-1]) + total[-1] - 2 * total[:-1]
        distances = np.full(len(self.places), n[-1])  # from a missing value
        distances[self._order] = np.maximum(apart, 0.0) + p_x @ (1 - self._present)
        return distances

    def correlation(self, p_x: FloatArray, released: FloatArray) -> float:
        """Return the correlation between the values before and after, where none is missing.

        0 if what is shown does not vary; NaN if there is nothing to vary with.
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
        """The share of the rows of each symbol in which the value is not missing."""
        return self.shares.sum(axis=1)

    @property
    def _order(self) -> IntArray:
        """The shown values that are not missing, in their order."""
        return np.argsort(self.places, kind="stable")[: np.count_nonzero(~np.isnan(self.places))]

    @property
    def _line(self) -> FloatArray:
        """Their places."""
        return self.places[self._order] - self.centre

    def _shown(self, released: FloatArray) -> FloatArray:
        """Return P(shown value | x) for these."""
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
    return variance if variance > _NO_VARIANCE * square else 0.0


def spread(
    own: IntArray,
    symbols: IntArray,
    weights: FloatArray | None,
    shape: tuple[int, int],
    at: FloatArray | None = None,
    places: FloatArray | None = None,
) -> Spread:
    """Return the spread of rows.

    own : which of the shown values each has, -1 for none of them; symbols, weights : of the rows;
    shape : (n_x, K); at : the place of each row, NaN where missing; places : of the shown values.
    """
    n_x, n_shown = shape
    equal = np.zeros((n_x, n_shown + 1))  # those that have none of the values come last
    for rows in chunks(len(symbols)):
        column = np.where(own[rows] < 0, n_shown, own[rows])
        equal += _summed(symbols[rows], column, _part(weights, rows), equal.shape)
    totals = equal.sum(axis=1, keepdims=True)
    n_rows = np.where(totals > 0, totals, 1.0)
    shown = equal[:, :-1] / n_rows
    if at is None or places is None:
        return Spread(shown)
    known = np.sort(places[~np.isnan(places)])
    centre = float(known.mean()) if len(known) else 0.0
    gaps = np.zeros((3, n_x, len(known) + 1))
    for rows in chunks(len(symbols)):
        here = at[rows] - centre
        there = ~np.isnan(here)
        here, of, weight = here[there], symbols[rows][there], _part(weights, rows)
        gap = np.searchsorted(known - centre, here, side="right")
        weight = np.ones(len(here)) if weight is None else weight[there]
        for power, total in enumerate(gaps):
            total += _summed(of, gap, weight * here**power, total.shape)
    shares, sums, squares = gaps / n_rows
    return PlacedSpread(shown, places, shares, sums, squares.sum(axis=1), centre)


def _part(weights: FloatArray | None, rows: slice) -> FloatArray | None:
    return None if weights is None else weights[rows]


def _summed(
    row: IntArray, column: IntArray, weights: FloatArray | None, shape: tuple[int, ...]
) -> FloatArray:
    """Return the sums of weights by row and column of a table."""
    cells = row.astype(np.intp) * shape[1] + column
    return np.bincount(cells, weights, shape[0] * shape[1]).reshape(shape).astype(float)
