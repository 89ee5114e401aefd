"""Which fold a row is in by the key of its person: the same one for all rows of a person."""

from __future__ import annotations

import numbers
from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from .._messages import InPython, Message, Named
from .._typing import IntArray
from ..cells.folds import N_FOLDS
from ..tables.column_roles import ColumnRoles
from ..tables.frames import Table
from .siphash import Messages, siphash

# Not a secret: it must be the same everywhere, and unlike those of noise.
_KEY = b"skprivacy groups"


def folds_of_keys(keys: pd.Series, name: Hashable) -> IntArray:
    """Return the fold of each key; name : of their column, for errors, which never show a key.

    An integer has the fold of its digits: a file has texts where a frame has numbers, and an
    array may hold integers as floats.
    """
    codes, distinct = pd.factorize(keys)
    texts = [_text(key, name) for key in distinct.tolist()]
    is_missing = np.append([text == "" for text in texts], True)
    if n_missing := int(np.count_nonzero(is_missing[codes])):
        raise ValueError(
            Message(
                f"The column {name!r}, which ",
                Named("groups"),
                f" names, is missing in {n_missing:,} of {len(keys):,} rows: give such a row a "
                f"key of its own, or leave it out.",
            )
        )
    words = siphash(
        _KEY, Messages.from_bytes(text.encode(errors="surrogatepass") for text in texts)
    )
    return (words % np.uint64(N_FOLDS)).astype(np.intp)[codes]


def _text(key: Any, name: Hashable) -> str:
    """Return a key as a text: a number by its digits."""
    if isinstance(key, str):
        return key
    is_number = isinstance(key, numbers.Real) and not isinstance(key, bool | np.bool)
    if is_number and (isinstance(key, numbers.Integral) or float(key).is_integer()):
        return str(int(key))
    raise TypeError(
        Message(
            f"The column {name!r}, which ",
            Named("groups"),
            f" names, must hold integers or texts. Got a value of type {type(key).__name__}: "
            f"convert them first",
            InPython(", for instance with .astype(str)"),
            ".",
        )
    )


def folds_in(roles: ColumnRoles, table: Table, owner: str) -> IntArray | None:
    """Return the fold of each row of a table, None where no column tells people apart."""
    if (position := roles.group_in(table, owner)) is None:
        return None
    return folds_of_keys(table.column(position), table.label(position))
