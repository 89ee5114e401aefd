"""Frames that are computed later or elsewhere: lazy polars, Dask and Spark.

`fit` counts where the rows are, in one aggregation, and only counts travel; `transform` returns
a lazy frame of the same kind. Each library is imported in a module of its own, when one of its
frames comes by.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..frames import lazy_kind
from .base import LazyTable
from .fitting import lazy_inputs

__all__ = ["LazyTable", "as_lazy_table", "lazy_inputs"]

_MODULES = {"polars": "lazy_polars", "dask": "dask_frames", "pyspark": "spark_frames"}


def as_lazy_table(X: Any, owner: str) -> LazyTable | None:
    """Return a `LazyTable` around a lazy frame, None for anything else."""
    kind = lazy_kind(X)
    if kind is None:
        return None
    if kind not in _MODULES:
        raise TypeError(
            f"{owner} takes lazy frames of {', '.join(_MODULES)}, but got one of {kind}: collect "
            f"it first."
        )
    try:
        module = import_module(f".{_MODULES[kind]}", __package__)
    except ImportError as error:
        extra = "spark" if kind == "pyspark" else kind
        raise ImportError(
            f"{error}. Frames of {kind} need more than is installed, or newer versions of it: "
            f'pip install "skprivacy[{extra}]".'
        ) from error
    return module.table_of(X)
