"""Fidelity: what a reader who takes released values at face value gets."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from .._typing import BoolArray, FloatArray, IntArray, Labels
from ..encoding import Alphabet
from .columns import ComparedColumn, compared_columns
from .spread import spread

_N_SWAPS = 5

# Channels have entries that are rounding; swaps that concern fewer rows are not worth a line.
_FEW_ROWS = 1e-5

# What is released less often than this is never released: it is rounding.
_NEVER = 1e-12

# A value is mostly released as others if less than this share of its rows keep it.
_MOSTLY = 0.5


@dataclass(frozen=True, eq=False, repr=False)
class Fidelity:
    """How close released values are to the true ones: exact, from the channel.

    Attributes
    ----------
    unchanged : float
        The share of rows in which every column keeps its value, or its bin.
    replaced : float
        The share of rows whose values are mostly released as others.
    columns : DataFrame
        One row per column. `unchanged`: the share of rows that keep their value, or their bin;
        `mean_shift`: how far values with an order move on average, in `unit`: that of the numbers
        themselves, days, or steps from one ordered category to the next; `correlation`: of the
        values before and after; `total_variation`: how far the distributions before and after are
        apart, from 0 to 1. NaN for what needs an order in a column without one.
    swaps : DataFrame
        The five swaps that concern most rows: `share` of those with `value` are `released_as`
        another one; `rows` is the share of all rows that this concerns.
    worst_swap : DataFrame
        The one that concerns most rows among values that are mostly released as others.
    pooled : float
        The share of rows whose values are rare and share a symbol with others.
    raw_columns : DataFrame or None
        As `columns`, for numbers as they were before they were cut into bins. None where nothing
        was cut, or where a transformer was loaded. NaN for numbers that were too many to count.
    raw_utility : float
        The share of the utility of X that is kept, if X is taken as it was before it was cut and
        pooled: negative where a constant would be closer. NaN where that is not known.
    of_cells : bool
        Whether symbols are cells: every column of a row is then drawn separately, and there are no
        swaps to list, nor values that are never released.
    never_released : DataFrame
        The values, or bins, that some rows have and no row is released with, the most frequent
        ones first: `column`, `value`, `rows`, the share of all rows that have it, and `is_rare`,
        whether fewer than five rows do: these are better not named.

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
    never_released: pd.DataFrame = field(default_factory=pd.DataFrame)

    def __repr__(self) -> str:
        n = len(self.columns)
        return f"Fidelity({self.unchanged:.1%} of rows unchanged in {n} column{'s'[: n != 1]})"


@dataclass(frozen=True, eq=False)
class NamedChannel:
    """A channel whose outputs are read as symbols of X.

    channel : P(Y|X); p_x : P(X); names : the symbol that each output is read as; labels : of the
    symbols.
    """

    channel: FloatArray
    p_x: FloatArray
    names: IntArray
    labels: Labels

    @property
    def p_symbol(self) -> FloatArray:
        """P(symbol that is released | symbol), of shape (n_x, n_x)."""
        released = np.zeros((len(self.p_x), len(self.p_x)))
        np.add.at(released.T, self.names, self.channel.T)
        return released

    @property
    def kept(self) -> FloatArray:
        """How often each symbol is released as itself."""
        return np.diag(self.p_symbol)

    @property
    def is_replaced(self) -> BoolArray:
        """Which symbols are mostly released as others."""
        return self.kept < _MOSTLY

    def swaps(self, n: int, of: BoolArray | bool = True) -> pd.DataFrame:
        """Return the swaps that concern most rows; of : the symbols that count."""
        p_symbol = self.p_symbol
        rows = np.where(of, self.p_x, 0.0)[:, None] * p_symbol
        np.fill_diagonal(rows, 0.0)
        largest = np.argsort(-rows, axis=None, kind="stable")[:n]
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
    """Return the fidelity of symbols that nothing is known about but their labels."""
    n_x, labels = len(named.p_x), named.labels
    own = np.arange(n_x)
    are_numbers = all(isinstance(label, int | float | np.number) for label in labels)
    places = np.array(labels, dtype=float) if are_numbers else None
    found = spread(own, own, None, (n_x, n_x), places, places)
    column = ComparedColumn(found, np.eye(n_x))
    whole = _fidelity(named, float(named.p_x @ named.kept), ["X"], [column])
    gone = _gone("X", labels, named.p_x, named.p_x @ named.p_symbol, np.zeros(n_x, dtype=bool))
    return replace(whole, never_released=_by_rows(gone))


def fidelity_of_columns(
    named: NamedChannel,
    alphabet: Alphabet,
    names: Sequence[Hashable],
    in_order: Sequence[bool],
    raw: Sequence[ComparedColumn | None] | None = None,
    raw_utility: float = np.nan,
) -> Fidelity:
    """Return the fidelity of columns, which an alphabet shows.

    names : of the columns; in_order : whether the values of each have an order even if they are
    categories; raw : columns as they were before they were cut, None for those that were not.
    """
    columns = compared_columns(alphabet, in_order)
    raw_columns = None
    if raw is not None and any(raw):
        pairs = zip(raw, columns, strict=True)
        raw_columns = _figures(named, names, [before or after for before, after in pairs])
    whole = _fidelity(
        named,
        _unchanged(named, alphabet),
        names,
        columns,
        0.0 if alphabet.of_cells else float(named.p_x @ alphabet.is_pool),
        raw_columns,
        raw_utility,
        alphabet.of_cells,
    )
    gone = () if alphabet.of_cells else _gone_from(named, alphabet, names)
    return replace(whole, never_released=_by_rows(gone))


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
    for i in np.flatnonzero((before > 0) & (after[: len(before)] <= _NEVER)):
        yield name, labels[i], float(before[i]), bool(is_rare[i])


def _by_rows(gone: Iterable[tuple[Any, ...]]) -> pd.DataFrame:
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
    *rest: Any,
) -> Fidelity:
    is_replaced, figures = named.is_replaced, _figures(named, names, columns)
    swaps, worst = named.swaps(_N_SWAPS), named.swaps(1, is_replaced)
    if rest and rest[-1]:
        swaps, worst = swaps[:0], worst[:0]
    swaps = swaps[swaps["rows"] > _FEW_ROWS]
    return Fidelity(unchanged, float(named.p_x @ is_replaced), figures, swaps, worst, *rest)


def _figures(
    named: NamedChannel, names: Sequence[Hashable], columns: Sequence[ComparedColumn]
) -> pd.DataFrame:
    index: Any = pd.Index(_objects(names), name="column", tupleize_cols=False)
    p_x, p_symbol = named.p_x, named.p_symbol
    return pd.DataFrame([column.figures(p_x, p_symbol) for column in columns], index=index)


def _unchanged(named: NamedChannel, alphabet: Alphabet) -> float:
    """Return how often all columns keep their value."""
    return float(named.p_x @ (named.p_symbol * alphabet.matches()).sum(axis=1))
