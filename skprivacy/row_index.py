"""The index of a frame, which leaves with its rows."""

from __future__ import annotations

from collections.abc import Container

import numpy as np
import pandas as pd

from ._typing import NamedColumns


def check_no_copy(
    levels: NamedColumns, s_names: Container[object], s_columns: NamedColumns, owner: str
) -> None:
    """Refuse an index that holds S.

    levels : of the index, by name; s_names : what S is called; s_columns : S, where it is known.
    """
    for number, (name, level) in enumerate(levels.items()):
        if name in s_names or any(_is_copy(level, column) for column in s_columns.values()):
            is_alone = len(levels) == 1
            which = "The index" if is_alone else f"The level {name!r} of the index"
            raise ValueError(
                f"{which} of X holds a sensitive column, and {owner} keeps the index in its "
                f"output. Drop it first: "
                f"X.reset_index({'' if is_alone else f'level={number}, '}drop=True)."
            )


def _is_copy(level: pd.Series, column: pd.Series) -> bool:
    """Return whether a level has the values of a column in every row; one value tells nothing."""
    if len(level) != len(column) or column.nunique(dropna=False) < 2:
        return False
    values, others = (pd.Series(s.to_numpy(dtype=object)) for s in (level, column))
    return bool(np.all((values == others) | (values.isna() & others.isna())))
