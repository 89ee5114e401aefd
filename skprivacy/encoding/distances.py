"""Distances between values of columns, and between labels of a joint distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from .._typing import FloatArray
from .alphabets import Alphabet, ValueAlphabet, learn_alphabet
from .columns import ColumnAlphabet
from .values import as_numbers


def label_distances(
    columns: pd.Index, p_x: FloatArray, column_weights: Sequence[float]
) -> FloatArray:
    """Return the distance of each label (rows) from each (columns); p_x : how frequent they are.

    A label of several levels is a row of several columns.
    """
    levels = [columns.get_level_values(level) for level in range(columns.nlevels)]
    series = [pd.Series(level, index=range(len(level))) for level in levels]
    names = list(range(len(series)))
    in_order = [getattr(each.dtype, "ordered", None) is True for each in series]
    options: list[dict[str, Any]] = [{"n_bins": None}] * len(series)
    # Labels that never occur are labels all the same.
    weights = np.maximum(p_x, np.finfo(float).tiny)
    alphabet, symbols = learn_alphabet(series, names, weights, options)
    return gower(alphabet, in_order, column_weights)[np.ix_(symbols, symbols)]


# How far symbols are from each other, for values that are taken at face value: Gower's distance.
#
# In a column of categories two values are 0 or 1 apart; in one with an order they are apart by the
# share of rows between them. Columns are averaged. A symbol that stands for several combinations
# is as far from another one as their members are on average.


def gower(
    alphabet: Alphabet, in_order: Sequence[bool], column_weights: Sequence[float]
) -> FloatArray:
    """Return the distance of each symbol (rows) from each (columns), from 0 to 1.

    in_order : whether the values of each column have an order even if they are categories.
    """
    if alphabet.x_alphabet is not alphabet:  # columns beside X do not count
        own = gower(alphabet.x_alphabet, in_order, column_weights)
        return own[np.ix_(alphabet.x_symbols, alphabet.x_symbols)]
    distances = np.zeros((alphabet.n_symbols, alphabet.n_symbols))
    tables = alphabet.tables()
    for position, column in enumerate(alphabet.columns):
        # How often the members of each symbol (rows) have each value.
        shares = np.ascontiguousarray(tables[position].T)
        shares /= shares.sum(axis=1, keepdims=True)
        has_order = in_order[position] or column.is_measured
        apart = _apart_in_order(column, shares) if has_order else 1 - shares @ shares.T
        distances += column_weights[position] * np.maximum(apart, 0.0)
    if isinstance(alphabet, ValueAlphabet):
        np.fill_diagonal(distances, 0.0)  # values that share a symbol are read as that symbol
    return distances / sum(column_weights)


def _apart_in_order(column: ColumnAlphabet, shares: FloatArray) -> FloatArray:
    """Return the mean distance of mid-ranks; a missing value is 1 away from all others."""
    n_present = len(column.values) - column.has_missing
    order = np.arange(n_present)  # categories come in their order
    if column.is_measured:
        values = pd.Series(column.values[:n_present], dtype=object)
        order = np.argsort(as_numbers(values, "X"), kind="stable")
    weights, known = column.weights[:n_present][order], shares[:, :n_present][:, order]
    ranks = (np.cumsum(weights) - weights / 2) / weights.sum()
    # E|a - b| is the integral of how often one is below a place, and the other is not.
    gaps = np.diff(ranks)
    below = np.cumsum(known, axis=1)[:, :-1]
    total = known.sum(axis=1)
    above = total[:, None] - below
    apart = (below * gaps) @ above.T
    missing = np.outer(1 - total, total)
    return apart + apart.T + missing + missing.T
