"""Tables outside of memory: lazy polars, Dask, Spark, and files.

`fit` counts rows where they are, in one aggregation; if columns are passed through, it also reads
some rows of these and of S, to judge them. `transform` returns a lazy frame of the same kind. Each
library is imported in one module, when one of its frames is passed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..tables.frames import lazy_kind
from .lazy_frames import LazyTable

__all__ = ["LazyTable", "any_table"]

# Module and class for each library.
_TABLES = {
    "polars": ("lazy_polars", "PolarsTable"),
    "dask": ("dask_frames", "DaskTable"),
    "pyspark": ("spark_frames", "SparkTable"),
}


def any_table(
    X: Any, owner: str, sensitive_features: Any = None, sample_weight: Any = None
) -> Any:
    """Return a `LazyTable` for a lazy frame, and anything else unchanged.

    sensitive_features, sample_weight : must be None for a lazy frame.
    """
    kind = lazy_kind(X)
    if kind is None:
        return X
    if sensitive_features is not None:
        raise TypeError(
            "sensitive_features cannot be passed with a lazy frame: make it a column of the "
            "frame, and name it with sensitive=...."
        )
    if sample_weight is not None:
        raise TypeError(
            "sample_weight cannot be passed with a lazy frame: collect the columns that are "
            "needed first, or fit batch by batch with partial_fit."
        )
    if kind not in _TABLES:
        got = f"takes lazy frames of {', '.join(_TABLES)}, but got one of {kind}"
        raise TypeError(f"{owner} {got}: collect it first.")
    module, table = _TABLES[kind]
    try:
        return getattr(import_module(f".{module}", __package__), table)(X)
    except ImportError as error:
        extra = "spark" if kind == "pyspark" else kind
        raise ImportError(
            f"{error}. Frames of {kind} need packages that are missing or too old here: run "
            f'pip install ".[{extra}]" in a clone.'
        ) from error
