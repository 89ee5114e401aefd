"""Columns that are published as they are, beside the release: which they are, and their values."""

from __future__ import annotations

from collections.abc import Container, Hashable, Sequence
from typing import Any

import pandas as pd

from .._messages import Message, Named, Parameter
from .._typing import FloatArray, IntArray, NamedColumns
from ..encoding import ValueAlphabet, learn_alphabet
from ..tables.plain_columns import plain_column
from ..tables.table import Table
from .parameters import Settings

# Beside a release there may be so many values, or one for so many rows.
_FEW_VALUES, _ROWS_OF_EACH = 20, 50

# Pairs of z and a symbol of X, beyond which channels do not fit into memory.
_MOST_PAIRS = 2000


def beside_positions(
    settings: Settings, table: Table, s_positions: Container[int]
) -> tuple[int, ...]:
    """Return the columns that are published beside a release, in the order of the table."""
    if settings.beside is None:
        return ()
    owner = settings.owner
    _check_not_index(settings, table)
    found = table.positions(owner, "beside", settings.beside)
    for name in (table.label(position) for position in found if position in s_positions):
        raise ValueError(
            Message(
                f"The column {name!r} is both sensitive and in ",
                Named("beside"),
                ": it cannot be protected and published. Leave it out of one of the two.",
            )
        )
    return tuple(sorted(found))


def check_not_cut(settings: Settings, table: Table, beside: Sequence[int]) -> None:
    """Refuse bins for columns that leave as they are."""
    bins = settings.n_bins if isinstance(settings.n_bins, dict) else {}
    for name in map(table.label, beside):
        if bins.get(name) is not None:
            raise ValueError(
                Message(
                    Parameter("n_bins", settings.owner),
                    f" names the column {name!r}, which is in ",
                    Named("beside"),
                    " and leaves as it is: cut it before fit, or release it too.",
                )
            )


def _check_not_index(settings: Settings, table: Table) -> None:
    """Refuse the name of an index: only columns are published under the budget."""
    given = settings.beside
    listed = [given] if isinstance(given, str | int) or callable(given) else list(given)
    there = table.names or ()
    for level in table.index_levels():
        if level.name is not None and level.name in listed and level.name not in there:
            raise ValueError(
                Message(
                    Parameter("beside", settings.owner),
                    f" names {level.name!r}, which is the index of X: make it a column first, "
                    f"X.reset_index().",
                )
            )


def check_not_released(
    table: Table, beside: Container[int], released: Sequence[int], owner: str
) -> None:
    """Refuse columns that are to be released and published as they are."""
    for name in (table.label(position) for position in released if position in beside):
        raise ValueError(
            Message(
                f"The column {name!r} is both in ",
                Named("columns"),
                " and in ",
                Named("beside"),
                f" of {owner}: it is either replaced or published as it is. Leave it out of one "
                f"of the two.",
            )
        )


def code_beside(
    settings: Settings,
    columns: NamedColumns,
    weights: FloatArray | None,
    multiplicities: FloatArray | None,
    n_rows: int,
) -> tuple[ValueAlphabet, IntArray]:
    """Return the values z of columns that are published beside a release, and that of each row."""
    exact = {"n_bins": None, "multiplicities": multiplicities}
    options: list[dict[str, Any]] = [exact] * len(columns)
    # Which categories there are, and in what order, must not tell more than the values.
    plain = list(map(plain_column, columns.values()))
    alphabet, codes = learn_alphabet(plain, list(columns), weights, options)
    _check_few(list(columns), alphabet.n_symbols, n_rows)
    if settings.max_outputs is not None and settings.max_outputs < alphabet.n_symbols:
        raise ValueError(
            Message(
                Parameter("max_outputs", settings.owner),
                f" must be at least {alphabet.n_symbols}: no output is shared by different values "
                f"of {_listed(list(columns))}, in ",
                Named("beside"),
                f". Got {settings.max_outputs}.",
            )
        )
    return alphabet, codes


def few_valued(columns: NamedColumns) -> list[Any]:
    """Return which columns have few values, whatever the number of rows."""
    return [name for name, column in columns.items() if _is_few(column)]


def _is_few(column: pd.Series) -> bool:
    try:
        n_values = column.nunique(dropna=False)
    except TypeError:  # lists, say
        return False
    return n_values <= min(_FEW_VALUES, _most_values(len(column)))


def _most_values(n_rows: int) -> int:
    return min(max(_FEW_VALUES, n_rows // _ROWS_OF_EACH), max(1, n_rows - 1))


def _check_few(names: Sequence[Hashable], n_values: int, n_rows: int) -> None:
    most = _most_values(n_rows)
    if n_values <= most:
        return
    each = ", as many as rows" if n_values >= n_rows else f" in {n_rows:,} rows"
    raise ValueError(
        Message(
            f"{_listed(names)}, in ",
            Named("beside"),
            f", {'has' if len(names) == 1 else 'have'} {n_values:,} values{each}: what each of "
            f"them reveals is not known from so few rows. At most {most:,} can be published as "
            f"they are: make them coarser first, or release ",
            "it" if len(names) == 1 else "them",
            " too, in ",
            Named("columns"),
            ".",
        )
    )


def _listed(names: Sequence[Hashable]) -> str:
    return " and ".join(map(repr, names))


def most_beside(n_values: int) -> int:
    """Return how many symbols X may have beside so many values."""
    return max(2, _MOST_PAIRS // n_values)
