"""Fitted: what `fit` leaves behind, for whatever releases, saves, evaluates or reports it."""

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
    """What is known about S where a mechanism was fitted, and is never written to a file.

    alphabet : the symbols of S; names : of its columns; counts : of pairs (s, x), weighted and
    before smoothing; n_rows : how many rows there were; effective_rows : how many equally weighted
    ones would say as much.
    """

    alphabet: Alphabet
    names: tuple[Any, ...]
    counts: CountArray
    n_rows: int
    effective_rows: int


@dataclass(frozen=True, eq=False)
class Fitted:
    """What `fit` has learned and designed.

    roles : which column is what; types : those that the columns of X are released as; alphabet :
    their symbols; symbol_of_output : the symbol that each output is named after; leaking : what
    columns that are passed through were found to leak, NaN where that cannot be judged; training :
    None for one that was loaded.
    """

    roles: ColumnRoles
    types: tuple[ColumnType, ...]
    alphabet: Alphabet
    symbol_of_output: IntArray
    mechanism: Mechanism
    leaking: Mapping[Any, float]
    training: Training | None = None
