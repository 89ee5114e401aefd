"""Vectors passed alongside a table: y, weights, S, ids; each with an entry for every row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._typing import ColumnsLike, FloatArray, NamedColumns
from .frames import as_series, as_table


def check_length(vector: Any, n_rows: int, name: str) -> None:
    """Check that a vector has one entry for each row."""
    if vector is not None and (length := _length(vector, name)) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, "
            f"{name} has {length}."
        )


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
    """Return whether names of columns of S are those of an array, which has none of its own."""
    return any(list(names) == _made_up(name, len(names)) for name in ("sensitive_features", "y"))
