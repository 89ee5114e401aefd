"""X before it was cut and pooled: how much of it a release keeps."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._typing import FloatArray, IntArray
from ..encoding import UNKNOWN, Alphabet, ColumnAlphabet
from ..encoding.alphabets import combine
from ..encoding.showing import ShownColumn
from ..encoding.values import coded, coded_by_offset
from ..fidelity import (
    ComparedColumn,
    RawX,
    mid_ranks,
    places_of,
    ranked_columns,
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
    inputs: FitInputs,
    x: CodedX,
    mechanism: Mechanism,
    column_weights: Sequence[float] | None,
) -> RawX | None:
    """Return X as it was, None where it is what was designed for, or is not known.

    column_weights : those of a distance that the columns tell, None where the utility is another.
    """
    alphabet = x.alphabet
    is_changed = alphabet.is_pool.any() or any(column.is_cut for column in alphabet.columns)
    if inputs.rows.is_coarse or not is_changed:
        return None
    raw = _RawRows.of(inputs.rows, x)
    columns = [
        _RawColumn(column, shown, raw, position) if column.is_cut else None
        for position, (column, shown) in enumerate(
            zip(alphabet.columns, alphabet.shown, strict=True)
        )
    ]
    compared = tuple(None if column is None else column.compared() for column in columns)
    if column_weights is None:
        return RawX(compared, _utility(mechanism, raw, x.v_codes, inputs.rows.weights))
    in_order = [type_.is_ordered for type_ in inputs.x_types]
    pairs = zip(columns, ranked_columns(alphabet, in_order), strict=True)
    ranked = [other if column is None else column.ranked() for column, other in pairs]
    return RawX(compared, _closeness(mechanism, ranked, column_weights))


@dataclass(frozen=True, eq=False)
class _RawRows:
    """The distinct raw rows of X.

    values : those of each column, numbers of one that was cut; codes : (n, n_columns), which value
    each distinct row has, -1 where it is missing; symbols, weights : of each; of_row : which
    distinct row each row is.
    """

    values: list[FloatArray | list[Any]]
    codes: IntArray
    symbols: IntArray
    weights: FloatArray
    of_row: IntArray

    @classmethod
    def of(cls, rows: LabelledRows, x: CodedX) -> _RawRows:
        """Tell the rows apart."""
        columns = zip(x.alphabet.columns, rows.x_columns.items(), strict=True)
        parts = [_factorized(column, series, name) for column, (name, series) in columns]
        codes: list[IntArray] = [code.astype(np.intp) + 1 for code, _ in parts]  # missing: 0
        sizes = [len(values) + 1 for _, values in parts]
        if (groups := x.alphabet.groups) is not None:  # one raw row is in several pairs
            codes, sizes = [*codes, groups[x.codes]], [*sizes, int(groups.max()) + 1]
        distinct, of_row = combine(codes, sizes)
        distinct = distinct[:, : len(parts)]
        symbols = np.empty(len(distinct), dtype=np.intp)
        symbols[of_row] = x.codes
        weights = np.bincount(of_row, rows.weights, len(distinct)).astype(float)
        return cls([values for _, values in parts], distinct - 1, symbols, weights, of_row)

    def shares(self, n_symbols: int) -> FloatArray:
        """Return the share of each distinct row among those with the same symbol."""
        totals = np.bincount(self.symbols, self.weights, n_symbols)
        return self.weights / np.where(totals > 0, totals, 1.0)[self.symbols]


def _factorized(
    column: ColumnAlphabet, series: pd.Series, name: Hashable
) -> tuple[IntArray, FloatArray | list[Any]]:
    """Return the codes of a column, -1 where it is missing, and its values."""
    if not column.is_cut:
        return coded(series, name)
    if (near := coded_by_offset(series)) is not None:
        return near[0], np.array(near[1], dtype=float)
    return pd.factorize(places_of(column, series))


@dataclass(frozen=True, eq=False)
class _RawColumn:
    """A column that was cut: its alphabet, what it shows, and its place in the raw rows."""

    column: ColumnAlphabet
    shown: ShownColumn
    rows: _RawRows
    position: int

    def compared(self) -> ComparedColumn:
        """Return the column in its own unit."""
        return self._compared(self._numbers, self._places, unit_of(self.column))

    def ranked(self) -> ComparedColumn:
        """Return the column with mid-ranks in place of numbers."""
        numbers, codes = self._numbers, self._codes
        known = codes != UNKNOWN
        weights: FloatArray = np.bincount(
            codes[known], self.rows.weights[known], len(numbers)
        ).astype(float)
        order = np.argsort(numbers)
        below, ranks = np.cumsum(weights[order]), np.empty(len(numbers))
        ranks[order] = (below - weights[order] / 2) / below[-1]
        return self._compared(ranks, mid_ranks(numbers, weights, self._places), "")

    @property
    def _numbers(self) -> FloatArray:
        return np.asarray(self.rows.values[self.position], dtype=float)

    @property
    def _codes(self) -> IntArray:
        return self.rows.codes[:, self.position]

    @property
    def _places(self) -> FloatArray:
        """The numbers that are shown."""
        return places_of(self.column, pd.Series(self.shown.values, dtype=object))

    def _compared(self, places: FloatArray, shown: FloatArray, unit: str) -> ComparedColumn:
        """Return the column; places : of its values; shown : of those that it shows."""
        own = np.append(_found(self._numbers, self._places), self._shown_as_missing)[self._codes]
        at, by_symbol = np.append(places, np.nan)[self._codes], self.shown.by_symbol()
        rows = self.rows
        found = spread(own, rows.symbols, rows.weights, by_symbol.shape, at, shown)
        return ComparedColumn(found, by_symbol, unit)

    @property
    def _shown_as_missing(self) -> int:
        """Which of the shown values is a missing one."""
        values = self.shown.values
        return values.index(None) if None in values else UNKNOWN


def _found(numbers: FloatArray, shown: FloatArray) -> IntArray:
    """Return which of the shown numbers each number equals, -1 for none."""
    order = np.argsort(shown, kind="stable")  # a missing one comes last, and equals none
    nearest = order[np.searchsorted(shown[order], numbers).clip(max=len(shown) - 1)]
    return np.where(shown[nearest] == numbers, nearest, UNKNOWN)


def _utility(
    mechanism: Mechanism,
    raw: _RawRows,
    v_codes: IntArray | None,
    weights: FloatArray | None,
) -> float:
    """Return the share of the utility of the raw X that a mechanism keeps, NaN if not known."""
    p_x, objective, least = mechanism.p_x, mechanism.objective, mechanism.least_utility
    shares = raw.shares(len(p_x))
    if isinstance(objective, MutualInformation):
        within = np.bincount(raw.symbols, _information(shares), len(p_x))
        whole = float(entropy(p_x) + p_x @ within)
        return _share(mechanism.utility - least, whole - least)
    if isinstance(objective, Guess) and mechanism.groups is None:
        likeliest = np.zeros(len(p_x))
        np.maximum.at(likeliest, raw.symbols, shares)
        blind = (p_x * likeliest).max()
        right = ((p_x * likeliest)[:, None] * mechanism.channel).max(axis=0).sum()
        return _share(float(right - blind), float(1 - blind))
    if isinstance(objective, Target) and v_codes is not None:
        whole = _target_information(v_codes, raw.of_row, weights)
        return _share(mechanism.utility - least, whole - least)
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
    mechanism: Mechanism,
    columns: Sequence[ComparedColumn],
    column_weights: Sequence[float],
) -> float:
    """Return how much closer values are to the raw ones than if nothing were released."""
    if mechanism.groups is not None:
        return np.nan
    p_x, p_symbol = mechanism.p_x, named_channel(mechanism).p_symbol
    pairs = list(zip(column_weights, columns, strict=True))
    loss = sum(weight * column.distance(p_x, p_symbol) for weight, column in pairs)
    nothing = sum(weight * column.distances(p_x) for weight, column in pairs)
    best = float(np.min(nothing))
    return _share(best - loss, best)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 1.0
