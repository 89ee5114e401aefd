"""Columns as codes that cells are made of: places in an order, or categories.

Numbers and times are cut finely. Every value has a code, also one that was never seen: a number
has that of its bin, a category that of the rare ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from .._typing import FloatArray, IntArray
from ..codes import UNKNOWN, narrow, take
from ..encoding.alphabets import learn_positions
from ..encoding.columns import POOLED, ColumnAlphabet
from ..encoding.values import as_numbers

# As many as gradient boosting tells apart.
FINE_BINS = 255

# Categories of a column beyond these share a code.
MOST_CATEGORIES = 100

# Rows that are alike in so many parts of a column have the same coarse code.
_COARSE_PARTS = 10


@dataclass(frozen=True, eq=False)
class CellColumn:
    """One column; -1 is the code of a missing number, and of a category like no other."""

    alphabet: ColumnAlphabet

    @cached_property
    def has_order(self) -> bool:
        """Whether codes are places of numbers or times.

        Not if its values are categories in another order, or too close to tell apart as floats:
        new rows would be in other cells than rows of `fit`.
        """
        if not self.alphabet.is_measured or self.alphabet.is_cut:
            return self.alphabet.is_measured
        own = np.searchsorted(self.edges, self.places)
        return np.array_equal(own, np.arange(len(own)))

    @cached_property
    def n_codes(self) -> int:
        """How many codes there are, besides -1."""
        return len(self.edges) + 1 if self.has_order else self.alphabet.n_symbols

    @cached_property
    def edges(self) -> FloatArray:
        """Where numbers are cut; those with few values, halfway between these."""
        if self.alphabet.edges is not None:
            return self.alphabet.edges
        places = self.places
        return places[1:] / 2 + places[:-1] / 2  # the sum could be infinite

    @cached_property
    def places(self) -> FloatArray:
        """The value that stands for each code, as a number."""
        values = self.alphabet.values[: len(self.alphabet.values) - self.alphabet.has_missing]
        return as_numbers(pd.Series(list(values), dtype=object), "X")

    def codes(self, series: pd.Series, label: Hashable) -> IntArray:
        """Return the code of each row."""
        if not self.has_order:
            return take(self._of_symbols, self.alphabet.encode(series, label))
        numbers = as_numbers(series, label)
        return np.where(np.isnan(numbers), UNKNOWN, np.searchsorted(self.edges, numbers))

    @property
    def _of_symbols(self) -> IntArray:
        """The code of each symbol; values that were not seen are rare ones."""
        names = self.alphabet.symbol_labels
        rare = names.index(POOLED) if POOLED in names else UNKNOWN
        return np.append(np.arange(len(names)), rare)

    def coarse(self, codes: IntArray) -> IntArray:
        """Return codes that values close to each other share."""
        if not self.has_order or self.n_codes <= _COARSE_PARTS:
            return codes
        wide = codes.astype(np.intp)  # a narrow type would overflow
        return np.where(codes < 0, UNKNOWN, wide * _COARSE_PARTS // self.n_codes)

    def named(self, code: int) -> str:
        """Return a category in words."""
        label = "other" if code < 0 else self.alphabet.symbol_labels[code]
        return "missing" if label is None else "rare" if label == POOLED else str(label)

    def below(self, code: int) -> str:
        """Return the largest number with at most this code, in words."""
        edge = self.edges[code]
        example = next(value for value in self.alphabet.values if value is not None)
        if isinstance(example, pd.Timedelta):
            return str(pd.Timedelta(int(edge)))
        return str(pd.Timestamp(int(edge))) if self.alphabet.family == "times" else f"{edge:.6g}"


def learn_cell_columns(
    series: Sequence[pd.Series],
    labels: Sequence[Hashable],
    weights: FloatArray | None,
    options: Sequence[dict[str, Any]],
) -> tuple[tuple[CellColumn, ...], list[IntArray]]:
    """Return the columns, and for each of their rows the position of its value."""
    columns, positions = learn_positions(series, labels, weights, options)
    return tuple(map(CellColumn, columns)), [narrow(of_column) for of_column in positions]


def coded_rows(
    columns: Sequence[CellColumn], series: Sequence[pd.Series], labels: Sequence[Hashable]
) -> IntArray:
    """Return the codes of rows, of shape (n, n_columns)."""
    parts = zip(columns, series, labels, strict=True)
    return np.column_stack([column.codes(values, label) for column, values, label in parts])
