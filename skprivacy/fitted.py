"""Fitted: what `fit` leaves behind, for whatever releases, saves, evaluates or reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._typing import CountArray, IntArray
from .encoding import Alphabet
from .mechanism import Mechanism
from .tables.column_roles import ColumnRoles
from .tables.column_types import ColumnType


@dataclass(frozen=True, eq=False)
class Training:
    """What is known of S where a mechanism was fitted, and travels in no file.

    alphabet : the symbols of S; names : of its columns; counts : of pairs (s, x), weighted and
    before smoothing; n_rows : how many rows there were; effective_rows : how many equally weighted
    ones say as much.
    """

    alphabet: Alphabet
    names: tuple[Any, ...]
    counts: CountArray
    n_rows: int
    effective_rows: int


@dataclass(frozen=True, eq=False)
class Fitted:
    """What `fit` has learned and designed.

    roles : which column is what; types : that the columns of X are released as; alphabet : their
    symbols; symbol_of_output : the symbol that each output is called by; leaking : what columns
    that leave as they are were found to leak, NaN where that cannot be told; training : None for
    one that was loaded.
    """

    roles: ColumnRoles
    types: tuple[ColumnType, ...]
    alphabet: Alphabet
    symbol_of_output: IntArray
    mechanism: Mechanism
    leaking: Mapping[Any, float]
    training: Training | None = None
