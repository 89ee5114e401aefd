"""X before it was cut and pooled: how much of it a release keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from .._typing import FloatArray, IntArray
from ..encoding import UNKNOWN, Alphabet, ColumnAlphabet
from ..encoding.alphabets import combine
from ..encoding.showing import ShownColumn
from ..encoding.values import coded
from ..fidelity import (
    ComparedColumn,
    RawX,
    mid_ranks,
    places_of,
    ranked_columns,
    shown_by_symbol,
    spread,
    unit_of,
)
from ..mechanism import Mechanism, named_channel
from ..utilities import Guess, MutualInformation, Target, entropy
from .inputs import FitInputs, LabelledRows


@dataclass(frozen=True, eq=False)
class CodedX:
    """X of some rows: alphabet : its symbols; codes : those of the rows; v_codes : the target."""

    alphabet: Alphabet
    codes: IntArray
    v_codes: IntArray | None = None


def raw_x(
    inputs: FitInputs, x: CodedX, mechanism: Mechanism, column_weights: Sequence[float] | None
) -> RawX | None:
    """Return X as it was, None where it is what was designed for, or is not known.

    column_weights : those of a distance that the columns tell, None where the utility is another.
    """
    alphabet, rows = x.alphabet, inputs.rows
    is_changed = alphabet.is_pool.any() or any(column.is_cut for column in alphabet.columns)
    if rows.is_coarse or not is_changed:
        return None
    raw = [
        _RawColumn(column, shown, series, x.codes, rows.weights) if column.is_cut else None
        for column, shown, series in zip(
            alphabet.columns, alphabet.shown, rows.x_columns.values(), strict=True
        )
    ]
    compared = tuple(None if column is None else column.compared() for column in raw)
    if column_weights is None:
        return RawX(
            compared, _utility(mechanism, _RawSymbols.of(rows, x), x.v_codes, rows.weights)
        )
    in_order = [type_.is_ordered for type_ in inputs.types]
    pairs = zip(raw, ranked_columns(alphabet, in_order), strict=True)
    ranked = [other if column is None else column.ranked() for column, other in pairs]
    return RawX(compared, _closeness(mechanism, ranked, column_weights))


@dataclass(frozen=True, eq=False)
class _RawColumn:
    """A column that was cut: its alphabet, what it shows, and its rows."""

    column: ColumnAlphabet
    shown: ShownColumn
    series: pd.Series
    symbols: IntArray
    weights: FloatArray | None

    def _places(self) -> tuple[FloatArray, FloatArray]:
        """Return the numbers in the rows, and those that are shown."""
        shown = pd.Series(self.shown.values, dtype=object)
        return places_of(self.column, self.series), places_of(self.column, shown)

    def compared(self) -> ComparedColumn:
        """Return the column in its own unit."""
        return self._compared(*self._places(), unit_of(self.column))

    def ranked(self) -> ComparedColumn:
        """Return the column with mid-ranks in place of numbers."""
        at, shown = self._places()
        weights = np.ones(len(at)) if self.weights is None else self.weights
        return self._compared(mid_ranks(at, weights, at), mid_ranks(at, weights, shown), "")

    def _compared(self, at: FloatArray, places: FloatArray, unit: str) -> ComparedColumn:
        by_symbol = shown_by_symbol(self.shown)
        own = _found(at, places)
        return ComparedColumn(
            spread(own, self.symbols, self.weights, by_symbol.shape, at, places), by_symbol, unit
        )


def _found(numbers: FloatArray, shown: FloatArray) -> IntArray:
    """Return which of the shown numbers each number equals, -1 for none; NaN equals NaN."""
    order = np.argsort(shown, kind="stable")
    place = np.searchsorted(shown[order], numbers).clip(max=len(shown) - 1)
    nearest = order[place]
    same = (shown[nearest] == numbers) | (np.isnan(shown[nearest]) & np.isnan(numbers))
    return np.where(same, nearest, UNKNOWN)


@dataclass(frozen=True, eq=False)
class _RawSymbols:
    """The distinct raw rows of X: codes : of the rows; symbols, shares : of each distinct one."""

    codes: IntArray
    symbols: IntArray
    shares: FloatArray

    @classmethod
    def of(cls, rows: LabelledRows, x: CodedX) -> _RawSymbols:
        """Tell raw rows apart; shares are those among the rows of the same symbol."""
        parts = [coded(column, name) for name, column in rows.x_columns.items()]
        codes: list[IntArray] = [code.astype(np.intp) + 1 for code, _ in parts]  # missing: 0
        distinct, codes_of_rows = combine(codes, [len(values) + 1 for _, values in parts])
        symbols = np.empty(len(distinct), dtype=np.intp)
        symbols[codes_of_rows] = x.codes
        totals = np.bincount(codes_of_rows, rows.weights, len(distinct))
        of_symbol = np.bincount(symbols, totals, x.alphabet.n_symbols)
        shares = totals / np.where(of_symbol > 0, of_symbol, 1.0)[symbols]
        return cls(codes_of_rows, symbols, shares)


def _utility(
    mechanism: Mechanism,
    raw: _RawSymbols,
    v_codes: IntArray | None,
    weights: FloatArray | None,
) -> float:
    """Return the share of the utility of the raw X that a mechanism keeps, NaN if not known."""
    p_x, objective = mechanism.p_x, mechanism.objective
    if isinstance(objective, MutualInformation):
        within = np.bincount(raw.symbols, _information(raw.shares), len(p_x))
        return _share(mechanism.utility, float(entropy(p_x) + p_x @ within))
    if isinstance(objective, Guess):
        likeliest = np.zeros(len(p_x))
        np.maximum.at(likeliest, raw.symbols, raw.shares)
        blind = (p_x * likeliest).max()
        right = ((p_x * likeliest)[:, None] * mechanism.channel).max(axis=0).sum()
        return _share(float(right - blind), float(1 - blind))
    if isinstance(objective, Target) and v_codes is not None:
        return _share(mechanism.utility, _target_information(v_codes, raw.codes, weights))
    return np.nan


def _information(shares: FloatArray) -> FloatArray:
    return -shares * np.log(np.where(shares > 0, shares, 1.0))


def _target_information(v_codes: IntArray, codes: IntArray, weights: FloatArray | None) -> float:
    """Return I(V; raw X), from the rows as they are."""
    pairs, of_row = combine([v_codes, codes], [int(v_codes.max()) + 1, int(codes.max()) + 1])
    p = np.bincount(of_row, weights)
    p = p / p.sum()
    p_v, p_x = (np.bincount(column, p) for column in pairs.T)
    v, x = pairs.T
    used = p > 0
    return float(p[used] @ np.log(p[used] / (p_v[v] * p_x[x])[used]))


def _closeness(
    mechanism: Mechanism, columns: Sequence[ComparedColumn], column_weights: Sequence[float]
) -> float:
    """Return how much closer values are to the raw ones than if nothing were released."""
    p_x, p_symbol = mechanism.p_x, named_channel(mechanism).p_symbol
    pairs = list(zip(column_weights, columns, strict=True))
    loss = sum(weight * column.distance(p_x, p_symbol) for weight, column in pairs)
    nothing = sum(weight * column.distances(p_x) for weight, column in pairs)
    best = float(np.min(nothing))
    return _share(best - loss, best)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 1.0
