"""From columns of samples to tables of counts."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._typing import ColumnsLike, CountArray, FloatArray, IntArray
from ..joint import count_pairs
from .vectors import as_columns

_MOST_PAIRS = 20_000_000


@dataclass(frozen=True, eq=False)
class CrossTable:
    """Counts of S (rows) by Y (columns), from rows that were observed together."""

    counts: CountArray
    y_values: pd.Index

    @property
    def n(self) -> int:
        """How many rows there were."""
        return int(self.counts.sum())

    @property
    def p_y(self) -> FloatArray:
        """How often each Y was observed, as a share."""
        return self.counts.sum(axis=0) / self.n

    @property
    def posteriors(self) -> FloatArray:
        """P(S|y) as observed, one row per y."""
        return (self.counts / self.counts.sum(axis=0)).T

    @property
    def prior(self) -> FloatArray:
        """P(S) as observed."""
        return self.counts.sum(axis=1) / self.n


def observed(s: ColumnsLike, y: ColumnsLike, owner: str) -> CrossTable:
    """Return the `CrossTable` of two columns, or of several taken jointly on either side."""
    s_codes, _ = coded(s, "s")
    y_codes, y_values = coded(y, "y")
    if len(s_codes) != len(y_codes):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: s has {len(s_codes)} "
            f"rows, y has {len(y_codes)}."
        )
    if not len(s_codes):
        raise ValueError(f"Found array with 0 sample(s) while {owner} needs at least one row.")
    n_pairs = (int(s_codes.max()) + 1) * len(y_values)
    if n_pairs > _MOST_PAIRS:
        raise ValueError(
            f"{owner} got columns with {n_pairs:,} possible pairs of values, too many to count: "
            f"cut numbers into bins first, for instance with pandas.qcut."
        )
    return CrossTable(count_pairs(s_codes, y_codes, None), y_values)


def coded(columns: ColumnsLike, name: str) -> tuple[IntArray, pd.Index]:
    """Return a code for each row, 0 or more, and the values that the codes stand for.

    columns : a vector, or a table whose columns are taken jointly. A missing value is a value.
    """
    parts: list[tuple[IntArray, Any]] = [
        pd.factorize(c, use_na_sentinel=False) for c in as_columns(columns, name).values()
    ]
    if len({len(codes) for codes, _ in parts}) > 1:
        raise ValueError(f"The columns of {name} must all have the same number of rows.")
    if len(parts) == 1:
        codes, values = parts[0]
        return codes, pd.Index(values)
    rows = np.column_stack([codes for codes, _ in parts])
    combinations, codes = np.unique(rows, axis=0, return_inverse=True)
    values = [pd.Index(v).take(c) for (_, v), c in zip(parts, combinations.T, strict=True)]
    return codes.reshape(-1), pd.MultiIndex.from_arrays(values)
