"""One way to write each value: 1, 1.0 and Decimal("1.00") are one value, and come out as one.

Which of equal values stands for all of them is a function of the value and of the kind of column,
never of the row that came first: that row may be one of S.
"""

from __future__ import annotations

import datetime
import decimal
import math
import numbers
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

# Large enough for every decimal: nothing is rounded, as it would be in the usual context.
_EXACT = decimal.Context(
    prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, capitals=1
)

# Beyond this many zeros at its end, a decimal is not written out.
_MOST_ZEROS = 100

_DATETIMES, _TIMEDELTAS = datetime.datetime | np.datetime64, datetime.timedelta | np.timedelta64


def plain_objects(values: list[Any], kind: str) -> list[Any]:
    """Return objects of a column as they are written.

    kind : of the column, as `pandas.api.types.infer_dtype` tells it. Numbers of one kind keep it;
    among several, whole ones are integers.
    """
    return list(map(KINDS.get(kind, plain), values))


def plain(value: Any) -> Any:
    """Return what a value is written as, whatever column it is in."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool | np.bool):
        return bool(value)
    if isinstance(value, numbers.Real | decimal.Decimal):
        return _number(value)
    if isinstance(value, _DATETIMES | _TIMEDELTAS):
        return _time(value)
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    return type(value)(map(plain, value)) if type(value) in (tuple, list) else value


def _text(value: str) -> str:
    return value if type(value) is str else str.__str__(value)  # a member of an enumeration, say


def _float(value: Any) -> float:
    return float(value) + 0.0  # -0.0 becomes 0.0


def _decimal(value: decimal.Decimal) -> decimal.Decimal:
    """Return a decimal without zeros at the end of its fraction, and zero without a sign."""
    short = value.normalize(_EXACT)
    *_, exponent = short.as_tuple()
    if not short:
        return decimal.Decimal(0)
    if isinstance(exponent, int) and 0 < exponent <= _MOST_ZEROS:
        return decimal.Decimal(int(short))  # 100 rather than 1E+2
    return short


def _number(value: Any) -> Any:
    """Return an integer, a float if that is exact, or else what it is."""
    if value != value or value in (math.inf, -math.inf):  # NaN in a tuple, say
        return float(value)
    if value == (whole := int(value)):
        return whole
    if value == (near := float(value)):
        return near
    return _decimal(value) if isinstance(value, decimal.Decimal) else value


def _time(value: Any) -> Any:
    """Return a moment or a duration of pandas, in UTC if it has a zone, in the finest unit."""
    make: Any = pd.Timestamp if isinstance(value, _DATETIMES) else pd.Timedelta
    found = make(value)
    if found is pd.NaT:
        return found
    written = make(found.asm8)  # without its zone and its fold
    for unit in ("s", "ms", "us", "ns"):
        with suppress(pd.errors.OutOfBoundsDatetime, pd.errors.OutOfBoundsTimedelta):
            written = written.as_unit(unit)
    return written.tz_localize("UTC") if getattr(found, "tz", None) is not None else written


# How values are written in columns of one kind, as pandas calls it.
KINDS: dict[str, Callable[[Any], Any]] = {
    "string": _text,
    "integer": int,
    "floating": _float,
    "decimal": _decimal,
}
