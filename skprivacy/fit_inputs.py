"""What `fit` gets beside the table: y, weights, and S in all the forms it may have."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ._typing import ColumnsLike, FloatArray, NamedColumns
from ._validation import message
from .exceptions import PrivacyLeakWarning
from .frames import Table, as_series, as_table


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


def effective_rows(weights: FloatArray | None, n_rows: int) -> int:
    """Return how many equally weighted rows say as much: Kish's effective sample size."""
    return n_rows if weights is None else round(weights.sum() ** 2 / (weights**2).sum())


def sensitive_columns(
    owner: str,
    table: Table,
    y: ColumnsLike | None,
    sensitive: Any,
    sensitive_features: ColumnsLike | None,
) -> tuple[NamedColumns, list[int]]:
    """Return the columns of S by name, and the positions in the table that must not come out."""
    if sensitive_features is not None:
        check_length(sensitive_features, table.n_rows, "sensitive_features")
        columns = as_columns(sensitive_features, "sensitive_features")
        hidden = [] if sensitive is None else table.positions_there(owner, "sensitive", sensitive)
        return columns, sorted({*hidden, *_named_like(columns, table)})
    if sensitive is not None:
        positions = table.positions(owner, "sensitive", sensitive)
        if not positions:
            requirement = "at least one column"
            raise ValueError(message(owner, "sensitive", requirement, sensitive))
        return {table.label(p): table.column(p) for p in positions}, positions
    if y is None:
        raise ValueError(
            f"{owner} requires y to be passed, but the target y is None: it does not know what to "
            f"protect. Name the sensitive column of X with sensitive=..., or pass "
            f"fit(X, sensitive_features=...)."
        )
    warnings.warn(
        "y is taken as the sensitive variable and is being protected: a model that predicts y "
        "from the output will fail. Name the sensitive column with sensitive=..., or pass "
        "sensitive_features to fit.",
        PrivacyLeakWarning,
        stacklevel=3,
    )
    columns = as_columns(y, "y")
    return columns, _named_like(columns, table)


def target_columns(owner: str, y: ColumnsLike | None, s_columns: NamedColumns) -> NamedColumns:
    """Return the columns of the target V by name, from y."""
    if y is None:
        raise ValueError(
            f"{owner} with utility='target' requires y to be passed to fit: it is the target that "
            f"the output is to say much about."
        )
    columns = as_columns(y, "y")
    if any(
        column is s_column or column.equals(s_column)
        for column in columns.values()
        for s_column in s_columns.values()
    ):
        raise ValueError(
            f"{owner} with utility='target' got the sensitive variable itself as y: it cannot "
            f"protect it and keep what X says about it. Name the sensitive column with "
            f"sensitive=..., or pass sensitive_features to fit."
        )
    return columns


def _named_like(columns: NamedColumns, table: Table) -> list[int]:
    """Return the columns of the table that hold S although S was passed beside it."""
    if table.names is None:
        return []
    return [p for p, name in enumerate(table.names) if name in columns]


def as_columns(vectors: ColumnsLike, name: str) -> NamedColumns:
    """Return a vector or table as a dict of pandas Series."""
    if isinstance(vectors, pd.Series):
        return {name if vectors.name is None else vectors.name: vectors}
    if (series := as_series(vectors)) is not None:
        return {series.name or name: series}
    if not hasattr(vectors, "columns") and (array := np.asarray(vectors)).ndim == 1:
        return {name: pd.Series(array)}
    table = as_table(vectors, name)
    # The columns of an array have no names, and must not be taken for columns of X that have.
    named = table.names or [f"{name}_{p}" if p else name for p in range(table.n_columns)]
    return {label: table.column(p) for p, label in enumerate(named)}
