"""The index of a frame, which leaves with its rows."""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np
import pandas as pd

from .._typing import NamedColumns


def check_no_copy(
    levels: Sequence[pd.Series], s_names: Container[object], s_columns: NamedColumns, owner: str
) -> None:
    """Refuse an index that holds S.

    levels : of the index; s_names : what S is called; s_columns : S, where it is known.
    """
    for number, level in enumerate(levels):
        is_named = level.name is not None and level.name in s_names
        if is_named or any(
            are_equal(level, column)
            and column.nunique(dropna=False) > 1  # a single value reveals nothing
            for column in s_columns.values()
        ):
            raise copy_error(levels, number, owner)


def copy_error(levels: Sequence[pd.Series], number: int, owner: str) -> ValueError:
    """Return the error for a level of an index that holds S."""
    is_alone = len(levels) == 1
    which = "The index" if is_alone else f"The level {labels_of(levels)[number]!r} of the index"
    return ValueError(
        f"{which} of X holds a sensitive column, and {owner} keeps the index in its output. Drop "
        f"it first: X.reset_index({'' if is_alone else f'level={number}, '}drop=True)."
    )


def are_equal(level: pd.Series, column: pd.Series) -> bool:
    """Return whether a level has the values of a column in every row."""
    if len(level) != len(column):
        return False
    values, others = (pd.Series(s.to_numpy(dtype=object), dtype=object) for s in (level, column))
    return bool(np.all((values == others) | (values.isna() & others.isna())))


def labels_of(levels: Sequence[pd.Series]) -> list[object]:
    """Return what to call the levels of an index, all different.

    Those without a name are called what reset_index would call them.
    """
    own = ["index"] if len(levels) == 1 else [f"level_{i}" for i in range(len(levels))]
    names = [level.name for level in levels]
    return [
        own[i] if name is None or names.count(name) > 1 else name for i, name in enumerate(names)
    ]
