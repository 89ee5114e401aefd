"""Tables outside of memory: lazy polars, Dask, Spark, and files.

`fit` counts where the rows are, in one aggregation, and only counts travel, and where columns are
passed through, some rows of these and of S, to judge them; `transform` returns a lazy frame of the
same kind. Each library is imported in a module of its own, and only when one
of its frames is given.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..tables.frames import lazy_kind
from .lazy_frames import LazyTable

__all__ = ["LazyTable", "any_table"]

# Where the `LazyTable` of each library is.
_TABLES = {
    "polars": ("lazy_polars", "PolarsTable"),
    "dask": ("dask_frames", "DaskTable"),
    "pyspark": ("spark_frames", "SparkTable"),
}


def any_table(
    X: Any, owner: str, sensitive_features: Any = None, sample_weight: Any = None
) -> Any:
    """Return a `LazyTable` around a lazy frame, and anything else as it is.

    sensitive_features, sample_weight : what was passed next to it, which must be nothing.
    """
    kind = lazy_kind(X)
    if kind is None:
        return X
    if sensitive_features is not None:
        raise TypeError(
            "sensitive_features cannot be passed alongside a lazy frame, whose rows are "
            "elsewhere: make it a column of the frame, and name it with sensitive=...."
        )
    if sample_weight is not None:
        raise TypeError(
            "sample_weight cannot be passed alongside a lazy frame, whose rows are counted where "
            "they are, each as one: collect the columns that are needed first, or fit batch by "
            "batch with partial_fit."
        )
    if kind not in _TABLES:
        told = f"{owner} takes lazy frames of {', '.join(_TABLES)}, but got one of {kind}: "
        raise TypeError(told + "collect it first.")
    module, table = _TABLES[kind]
    try:
        return getattr(import_module(f".{module}", __package__), table)(X)
    except ImportError as error:
        extra = "spark" if kind == "pyspark" else kind
        raise ImportError(
            f"{error}. Frames of {kind} need packages that are missing or too old here: run "
            f'pip install ".[{extra}]" in a clone.'
        ) from error
