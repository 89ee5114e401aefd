"""What the report says about small numbers: cells with few rows, pools, rare values.

Rare values are counted and not named: each may be that of one person.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .._typing import CountArray
from ..describing import shown
from ..encoding import Alphabet, ColumnAlphabet
from ..encoding.bins import FEWEST_ROWS
from ..fitted import Fitted
from .sections import Section, Table, facts


def small_numbers(fitted: Fitted, protected: str, pooled: float) -> Section:
    """Return how few rows there are behind a figure.

    protected : the names of S; pooled : the share of rows whose values are pooled.
    """
    assert fitted.training is not None  # or there would be no report
    smallest = _smallest(fitted, fitted.training.counts, protected)
    found = _rare_values(fitted)
    if found.empty:
        return Section(
            "Small numbers",
            [
                f"No value of a column is pooled, and none is rare: each has at least "
                f"{FEWEST_ROWS} rows. Combinations of values may have fewer, as the table says."
            ],
            [smallest],
        )
    return Section("Small numbers", _about_rare(found, pooled), [smallest, _as_table(found)])


def _smallest(fitted: Fitted, counts: CountArray, protected: str) -> Table:
    """Return the fewest rows that any group, any symbol and any pair of both has."""
    assert fitted.training is not None
    by_group, by_symbol = counts.sum(axis=1), counts.sum(axis=0)
    rarest = fitted.training.alphabet.labels[int(np.argmin(by_group))]
    symbol = "cell" if fitted.alphabet.of_cells else "symbol"
    few = np.count_nonzero((by_symbol > 0) & (by_symbol < FEWEST_ROWS))
    stand_out = f"; {few:,} of {len(by_symbol):,} have fewer than {FEWEST_ROWS}" if few else ""
    empty = np.count_nonzero(counts == 0)
    none = f"; {empty:,} of {counts.size:,} pairs have none" if empty else ""
    texts = {
        f"group of {protected}": f"{_rows(by_group.min())} ({shown(rarest)})",
        symbol: f"{_rows(by_symbol[by_symbol > 0].min())}{stand_out}",
        f"pair of group and {symbol}": f"{_rows(counts[counts > 0].min())}{none}",
    }
    return facts("The smallest", texts)


def _rows(count: Any) -> str:
    number = f"{count:,.0f}" if float(count).is_integer() else f"{count:,.1f}"
    return f"{number} row" if number == "1" else f"{number} rows"


def _rare_values(fitted: Fitted) -> pd.DataFrame:
    """Return how many values of each column are pooled, rare, and rare but shown; if any are."""
    alphabet = fitted.alphabet.x_alphabet
    figures = [_of_column(alphabet, position) for position in range(len(alphabet.columns))]
    names = pd.Index([str(name) for name in fitted.x_names], name="column")
    found = pd.DataFrame(figures, names, ["rare and shown", "rare", "pooled", "values or bins"])
    return found[found[["pooled", "rare"]].any(axis=1)]


def _of_column(alphabet: Alphabet, position: int) -> list[int]:
    column, named = alphabet.columns[position], alphabet.shown[position]
    alone = {named.values[code] for code in named.single[named.single >= 0]}
    rare = column.is_rare & (column.weights > 0)
    both = [value in alone for value, is_rare in zip(column.values, rare, strict=True) if is_rare]
    return [sum(both), int(rare.sum()), _n_pooled(column), int((column.weights > 0).sum())]


def _n_pooled(column: ColumnAlphabet) -> int:
    symbols = column.symbols[column.symbols >= 0]
    sizes = np.bincount(symbols, minlength=column.n_symbols)
    return int(sizes[sizes > 1].sum())


def _about_rare(found: pd.DataFrame, pooled: float) -> list[str]:
    said = [
        f"A value is rare if fewer than {FEWEST_ROWS} rows have it. Rare values are counted here, "
        f"not listed. Where a pool or a cell stands for them, a commoner value is shown instead."
    ]
    if n := int(found["rare and shown"].sum()):
        said.append(
            f"Values that are rare and not in a pool can appear in the release: {n:,} here. To "
            f"avoid that, pool them: values with fewer than {FEWEST_ROWS} rows, or more."
        )
    if pooled:
        said.append(f"{pooled:.1%} of the rows have rare values, which are pooled.")
    return said


def _as_table(found: pd.DataFrame) -> Table:
    return Table("Pooled and rare values, column by column", found.map("{:,}".format))
