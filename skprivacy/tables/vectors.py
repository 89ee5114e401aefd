"""Vectors with an entry per row (y, weights, S, ids), and their cross tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._typing import ColumnsLike, CountArray, FloatArray, IntArray, NamedColumns
from ..joint import count_pairs
from .frames import as_series, as_table


def check_length(vector: Any, n_rows: int, name: str) -> None:
    """Check that a vector has one entry for each row."""
    if vector is not None and (length := _length(vector, name)) != n_rows:
        told = "Found input variables with inconsistent numbers of samples: "
        raise ValueError(told + f"X has {n_rows} rows, {name} has {length}.")


def _length(vector: Any, name: str) -> int:
    try:
        return len(vector) if hasattr(vector, "__len__") else len(np.asarray(vector))
    except TypeError as error:
        raise TypeError(f"{name} must be an array, got {type(vector).__name__}.") from error


def check_weights(sample_weight: npt.ArrayLike | None, n_rows: int) -> FloatArray | None:
    """Return weights as floats, or None."""
    if sample_weight is None:
        return None
    check_length(sample_weight, n_rows, "sample_weight")
    weights = np.asarray(sample_weight, dtype=float)
    if weights.ndim != 1:
        raise ValueError(f"sample_weight must be one-dimensional. Got shape {weights.shape}.")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("sample_weight must be finite and not negative.")
    if weights.sum() == 0:
        raise ValueError("sample_weight must not be all zero: no row would count.")
    return weights


def as_columns(vectors: ColumnsLike, name: str) -> NamedColumns:
    """Return a vector or table as a dict of pandas Series."""
    if isinstance(vectors, pd.Series):
        return {name if vectors.name is None else vectors.name: vectors}
    if (series := as_series(vectors)) is not None:
        return {series.name or name: series}
    if not hasattr(vectors, "columns") and (array := np.asarray(vectors)).ndim == 1:
        return {name: pd.Series(array)}
    table = as_table(vectors, name)
    # The columns of an array have no names, and must not be mistaken for columns of X that do.
    named = table.names or _made_up(name, table.n_columns)
    return {label: table.column(p) for p, label in enumerate(named)}


def _made_up(name: str, n_columns: int) -> list[str]:
    return [f"{name}_{p}" if p else name for p in range(n_columns)]


def are_made_up(names: Sequence[Any]) -> bool:
    """Whether names of columns of S are those of an array, which has none of its own."""
    return any(list(names) == _made_up(name, len(names)) for name in ("sensitive_features", "y"))


# From columns of samples to tables of counts.


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
        told = "Found input variables with inconsistent numbers of samples: "
        raise ValueError(told + f"s has {len(s_codes)} rows, y has {len(y_codes)}.")
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
