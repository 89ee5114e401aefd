"""The types of released columns: learned by `fit`, and the same for every batch.

A batch's own dtype reveals something about its rows (that a value is missing, or not whole), so no
part of it may come out. What is kept of the table of `fit` is a description in plain words, which
can be written as JSON, and from which every library makes its nearest type.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

FAMILIES = (
    "bool", "int", "uint", "float", "text", "category", "time", "duration", "date", "object",
)  # fmt: skip
LIBRARIES = ("pandas", "polars", "pyarrow", "numpy", "")
_NUMBERS = {"i": "int", "u": "uint", "f": "float"}
UNITS = ("s", "ms", "us", "ns")


# Names of types, except zones that pandas would read as files, and types that list their values.
_NAME = re.compile(r"(?!.*dateutil)[\w\[\]<>(), /+:.=-]{0,200}", re.ASCII)


def is_name(text: str) -> bool:
    """Tell whether a text may be the name of a type."""
    return _NAME.fullmatch(text) is not None


@dataclass(frozen=True)
class ColumnType:
    """What kind of column is released.

    family : one of `FAMILIES`; "object" is anything else, which the values themselves decide;
    bits : of a number; unit, zone : of a time; is_ordered : of a category; library, native : where
    `fit` saw the column, and what its type is called there.
    """

    family: str
    bits: int | None = None
    unit: str | None = None
    zone: str | None = None
    is_ordered: bool = False
    library: str = ""
    native: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the description as plain values."""
        return asdict(self)

    def combined(self, other: ColumnType) -> ColumnType:
        """Return a type for the rows of two batches."""
        if self == other:
            return self
        if self.family == other.family == "category":
            return ColumnType("category", is_ordered=self.is_ordered and other.is_ordered)
        if {self.family, other.family} <= set(_NUMBERS.values()):
            common = np.result_type(self._numpy, other._numpy)
            return ColumnType(_NUMBERS[common.kind], 8 * common.itemsize)
        return ColumnType(self.family if self.family == other.family else "object")

    @property
    def _numpy(self) -> np.dtype[Any]:
        return np.dtype(f"{self.family}{self.bits}")

    def pandas_dtype(self, values: list[Any]) -> Any:
        """Return a dtype of pandas for a column of these values; None: whatever they need.

        Categories are made elsewhere: they are a list of values.
        """
        if self.library == "pandas" and (dtype := _parsed(self.native or None)) is not None:
            return dtype
        has_missing = any(value is None for value in values)
        if self.family in ("int", "uint"):
            name = f"{self.family}{self.bits}"
            return name.replace("int", "Int").replace("u", "U") if has_missing else name
        named = {
            "bool": "boolean" if has_missing else "bool",
            "float": f"float{self.bits}",
            "text": pd.Series([""]).dtype,
            "time": f"datetime64[{self.unit}{f', {self.zone}' if self.zone else ''}]",
            "duration": f"timedelta64[{self.unit}]",
            "date": object,
            "object": object,
        }
        return _parsed(named.get(self.family))

    def numpy_dtype(self, values: list[Any]) -> Any:
        """Return a dtype of numpy for an array of these values."""
        has_missing = any(value is None for value in values)
        if self.library == "numpy" and self.native in ("U", "S"):
            return object if has_missing else self.native
        if self.family in ("int", "uint", "float", "bool") and not has_missing:
            return np.dtype(bool if self.family == "bool" else f"{self.family}{self.bits}")
        if self.family == "float":
            return self._numpy
        if self.family in ("time", "duration") and self.zone is None:
            return np.dtype(f"{'M8' if self.family == 'time' else 'm8'}[{self.unit}]")
        return np.dtype(object)


def _parsed(name: Any) -> Any:
    """Return a dtype of pandas by its name; None for one that this pandas does not know."""
    try:
        return None if name is None else pd.api.types.pandas_dtype(name)
    except (TypeError, ValueError, KeyError, ImportError, NotImplementedError):
        return None  # one of another version, or a zone without a name


def type_of_dtype(dtype: Any, library: str) -> ColumnType:
    """Return the type of a column with a dtype of pandas or numpy."""
    native = dtype.kind if library == "numpy" and dtype.kind in "US" else str(dtype)
    return ColumnType(
        **_described(dtype), library=library, native=native if is_name(native) else ""
    )


def _described(dtype: Any) -> dict[str, Any]:
    if isinstance(dtype, pd.CategoricalDtype):
        return {"family": "category", "is_ordered": bool(dtype.ordered)}
    if pd.api.types.is_bool_dtype(dtype):
        return {"family": "bool"}
    if isinstance(dtype, pd.SparseDtype):
        dtype = dtype.subtype
    if dtype.kind in _NUMBERS:
        return {"family": _NUMBERS[dtype.kind], "bits": 8 * dtype.itemsize}
    if dtype.kind in "mM":
        unit, zone = _unit_and_zone(dtype)
        return {"family": "time" if dtype.kind == "M" else "duration", "unit": unit, "zone": zone}
    is_text = dtype.kind in "US" or isinstance(dtype, pd.StringDtype) or "string" in str(dtype)
    return {"family": "text" if is_text else "object"}


def _unit_and_zone(dtype: Any) -> tuple[str, str | None]:
    dtype = getattr(dtype, "pyarrow_dtype", dtype)
    zone = getattr(dtype, "tz", None)
    unit = getattr(dtype, "unit", None) or (
        np.datetime_data(dtype)[0] if isinstance(dtype, np.dtype) else None
    )
    # Dates, which are counted in days, are times to pandas.
    return unit if unit in UNITS else "s", None if zone is None else str(zone)


def present(values: list[Any]) -> list[Any]:
    """Return the values that are not missing."""
    return [value for value in values if value is not None]
