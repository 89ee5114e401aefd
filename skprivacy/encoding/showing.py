"""What symbols are shown as: values of each column.

A symbol with one member is shown as its values. A pooled one stands for many combinations, each of
which may be the row of one person: so every column is drawn separately from the values that the
members have there, in proportion to how often they have them. Values that fewer than five rows of
the table have are not shown for other rows: a commoner value among the members takes their place,
or the commonest value of the column, or none if all are that rare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from .._typing import FloatArray, IntArray
from ..codes import UNKNOWN, look_up, narrow
from .columns import ColumnAlphabet

# Draws from [0, 1) for some rows; the second argument is the column, as each has its own draws.
Uniform: TypeAlias = Callable[[IntArray, int], FloatArray]


@dataclass(frozen=True, eq=False)
class ShownColumn:
    """What one column shows.

    values : those that it may show, in the order of the alphabet; single : which of them each
    symbol with one member shows, -1 for a pool; pools : for each pool, which of them it may show,
    and their cumulative weights.
    """

    values: list[Any]
    single: IntArray
    pools: dict[int, tuple[IntArray, FloatArray]]

    def codes(self, symbols: IntArray, rows: IntArray, uniform: FloatArray) -> IntArray:
        """Return codes of `values` for rows of symbols.

        rows : those that show a pool; uniform : one number for each of them.
        """
        codes = look_up(narrow(self.single), symbols).astype(
            narrow(np.array(len(self.values))).dtype
        )
        for symbol, own in _grouped(symbols[rows]):
            shown, cumulated = self.pools[symbol]
            drawn = np.searchsorted(cumulated, uniform[own] * cumulated[-1], side="right")
            codes[rows[own]] = shown[drawn.clip(max=len(shown) - 1)]
        return codes

    def by_symbol(self) -> FloatArray:
        """Return how often each symbol is shown as each of `values`."""
        by_symbol = np.zeros((len(self.single), len(self.values)))
        alone = np.flatnonzero(self.single != UNKNOWN)
        by_symbol[alone, self.single[alone]] = 1.0
        for symbol, (codes, cumulated) in self.pools.items():
            by_symbol[symbol, codes] = np.diff(cumulated, prepend=0.0) / cumulated[-1]
        return by_symbol


def shown_columns(
    columns: Sequence[ColumnAlphabet], members: IntArray, symbols: IntArray, weights: FloatArray
) -> list[ShownColumn]:
    """Return what each column of an alphabet shows.

    members : the values that occur together, as positions in each column; symbols, weights : those
    of each member.
    """
    groups = list(_grouped(symbols))
    return [
        _shown_column(column, of_member, groups, weights, fewest=2)
        for column, of_member in zip(columns, members.T, strict=True)
    ]


def shown_pools(
    column: ColumnAlphabet, of_member: IntArray, symbols: IntArray, weights: FloatArray
) -> ShownColumn:
    """Return what a column shows if every symbol is a pool, however few values it has."""
    return _shown_column(column, of_member, list(_grouped(symbols)), weights, fewest=1)


def _grouped(symbols: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Yield each symbol that occurs, and where it occurs."""
    order = np.argsort(symbols, kind="stable")
    found, starts = np.unique(symbols[order], return_index=True)
    ends = np.append(starts[1:], len(order))
    return (
        (symbol, order[i:j]) for symbol, i, j in zip(found.tolist(), starts, ends, strict=False)
    )


def _shown_column(
    column: ColumnAlphabet,
    of_member: IntArray,
    groups: list[tuple[int, IntArray]],
    weights: FloatArray,
    fewest: int,
) -> ShownColumn:
    """Return what a column shows.

    of_member, weights : one entry for each member; groups : the members of each symbol; fewest :
    members that make a pool.
    """
    alone = {
        symbol: column.values[of_member[own[0]]] for symbol, own in groups if len(own) < fewest
    }
    shares = {
        symbol: _shares(column, of_member[own], weights[own])
        for symbol, own in groups
        if len(own) >= fewest
    }
    wanted = {*alone.values(), *(value for shown, _ in shares.values() for value in shown)}
    values = _in_order(wanted, [*column.values, *column.in_pool])
    code_of = {value: code for code, value in enumerate(values)}
    single = np.full(len(groups), UNKNOWN)
    single[list(alone)] = [code_of[value] for value in alone.values()]
    pools = {
        symbol: (np.array([code_of[value] for value in shown]), np.cumsum(share))
        for symbol, (shown, share) in shares.items()
    }
    return ShownColumn(values, single, pools)


def _shares(
    column: ColumnAlphabet, positions: IntArray, weights: FloatArray
) -> tuple[list[Any], FloatArray]:
    """Return what a pool shows, and how often; positions : those of its members in `values`."""
    share = np.bincount(positions, weights, minlength=len(column.values)).astype(float)
    share[column.is_rare] = 0.0
    if share.any():
        common = np.flatnonzero(share)
        return [column.in_pool[position] for position in common], share[common]
    commonest = int(np.argmax(column.weights))
    return [None if column.is_rare[commonest] else column.in_pool[commonest]], np.ones(1)


def _in_order(wanted: Set[Any], order: Sequence[Any]) -> list[Any]:
    """Return the wanted values in a given order; a missing one is last."""
    present = [value for value in dict.fromkeys(order) if value is not None and value in wanted]
    return present + [None] * (None in wanted)
