"""The columns of an alphabet, before and after a release: what they held, and what they show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._typing import FloatArray
from ..encoding import Alphabet, ColumnAlphabet
from ..encoding.values import as_numbers
from .spread import PlacedSpread, Spread, spread

_NANOSECONDS_PER_DAY = 86_400e9


@dataclass(frozen=True, eq=False)
class ComparedColumn:
    """One column: its values in rows, and what it shows.

    spread : of the rows among the values that it shows; by_symbol : (n_symbols, K), how often each
    symbol is shown as each of these; unit : of their places.
    """

    spread: Spread
    by_symbol: FloatArray
    unit: str = ""

    def figures(self, p_x: FloatArray, p_symbol: FloatArray) -> dict[str, Any]:
        """Return how faithful a release is; p_symbol : P(symbol that is released | symbol)."""
        released = p_symbol @ self.by_symbol
        figures: dict[str, Any] = {
            "unchanged": self.spread.unchanged(p_x, released),
            "mean_shift": np.nan,
            "unit": self.unit,
            "correlation": np.nan,
            "total_variation": self.spread.total_variation(p_x, released),
        }
        if isinstance(self.spread, PlacedSpread):
            figures["mean_shift"] = self.spread.mean_shift(p_x, released)
            figures["correlation"] = self.spread.correlation(p_x, released)
        return figures

    def distance(self, p_x: FloatArray, p_symbol: FloatArray) -> float:
        """Return how far values are from those that are shown, on average."""
        return self.spread.distance(p_x, p_symbol @ self.by_symbol)

    def distances(self, p_x: FloatArray) -> FloatArray:
        """Return how far values are from each symbol, on average."""
        return self.by_symbol @ self.spread.distances(p_x)


@dataclass(frozen=True, eq=False)
class RawX:
    """X as it was before numbers were cut into bins and rare values were pooled.

    columns : those that were cut, None for the others; utility : the share of the utility of the
    raw X that a release keeps.
    """

    columns: tuple[ComparedColumn | None, ...]
    utility: float


def compared_columns(alphabet: Alphabet, in_order: Sequence[bool]) -> list[ComparedColumn]:
    """Return all columns, in their bins.

    in_order : whether the values of each column have an order even if they are categories.
    """
    columns = enumerate(zip(alphabet.columns, in_order, strict=True))
    return [
        _compared(alphabet, position, *_placed(column, has_order))
        for position, (column, has_order) in columns
    ]


def ranked_columns(alphabet: Alphabet, in_order: Sequence[bool]) -> list[ComparedColumn]:
    """Return all columns as `encoding.distances` sees them: places are mid-ranks."""
    ranked = []
    for position, column in enumerate(alphabet.columns):
        places, unit = _placed(column, in_order[position])
        if places is not None:
            places = mid_ranks(places, column.weights, places)
        ranked.append(_compared(alphabet, position, places, unit))
    return ranked


def mid_ranks(values: FloatArray, weights: FloatArray, at: FloatArray) -> FloatArray:
    """Return the share of values below each of some places, plus half of those that equal it."""
    known = ~np.isnan(values)
    order = np.argsort(values[known], kind="stable")
    sorted_, below = values[known][order], np.append(0.0, np.cumsum(weights[known][order]))
    ends = [below[np.searchsorted(sorted_, at, side=side)] for side in ("left", "right")]
    return np.where(np.isnan(at), np.nan, (ends[0] + ends[1]) / (2 * below[-1]))


def _placed(column: ColumnAlphabet, has_order: bool) -> tuple[FloatArray | None, str]:
    """Return the place of each value of a column, and what places are measured in."""
    if column.is_measured:
        return places_of(column, pd.Series(list(column.values), dtype=object)), unit_of(column)
    if not has_order:
        return None, ""
    steps = np.arange(len(column.values), dtype=float)
    steps[len(steps) - column.has_missing :] = np.nan
    return steps, "steps"


def places_of(column: ColumnAlphabet, values: pd.Series) -> FloatArray:
    """Return values of a column of numbers or times as places, NaN where they are missing."""
    numbers = as_numbers(values, "X")
    return numbers / _NANOSECONDS_PER_DAY if column.family == "times" else numbers


def unit_of(column: ColumnAlphabet) -> str:
    """Return what the places of a column of numbers or times are measured in."""
    return "days" if column.family == "times" else ""


def _compared(
    alphabet: Alphabet, position: int, places: FloatArray | None, unit: str
) -> ComparedColumn:
    """Return a column; places : those of its values, None without an order."""
    own, symbols, weights = alphabet.held(position)
    by_symbol = alphabet.shown_shares(position)
    at = None
    if places is not None:
        at, places = places[own], np.append(places, np.nan)
    found = spread(own, symbols, weights, by_symbol.shape, at, places)
    return ComparedColumn(found, by_symbol, unit)
