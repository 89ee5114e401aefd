"""One way to write each value: 1, 1.0 and Decimal("1.00") are one value, and come out as one.

Which of equal values stands for all of them is a function of the value. It must not depend on the
row that came first, nor on the rows that a batch happens to have.
"""

from __future__ import annotations

import datetime
import decimal
import math
import numbers
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

# Large enough for every decimal: nothing is rounded, as it would be in the usual context.
_EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)

_DATETIMES, _TIMEDELTAS = datetime.datetime | np.datetime64, datetime.timedelta | np.timedelta64


def plain(value: Any) -> Any:
    """Return what a value is written as, whatever column it is in.

    Numbers are integers if they are whole, floats if that is exact, and decimals otherwise; times
    are those of pandas, in UTC if they have a zone.
    """
    if isinstance(value, str):  # a member of an enumeration, say
        return value if type(value) is str else str.__str__(value)
    if isinstance(value, bool | np.bool):
        return bool(value)
    if isinstance(value, _DATETIMES | _TIMEDELTAS):  # before numbers: timedelta64 is one to numpy
        return _time(value)
    if isinstance(value, numbers.Real | decimal.Decimal):
        return _number(value)
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    return type(value)(map(plain, value)) if type(value) in (tuple, list) else value


def _number(value: Any) -> Any:
    """Return an integer, a float if that is exact, or else what it is."""
    if value != value:  # in a tuple, say
        return math.nan
    if value in (math.inf, -math.inf):
        return float(value)
    if value == (whole := int(value)):
        return whole
    if value == (near := float(value)):
        return near
    # Zeros at the end of a fraction go.
    return value.normalize(_EXACT) if isinstance(value, decimal.Decimal) else value


def _time(value: Any) -> Any:
    """Return a moment or a duration of pandas, in UTC if it has a zone, in the finest unit."""
    make: Any = pd.Timestamp if isinstance(value, _DATETIMES) else pd.Timedelta
    found = make(value)
    if found is pd.NaT:
        return found
    written = _in_finest_unit(make(found.asm8))  # without its zone and its fold
    return written.tz_localize("UTC") if getattr(found, "tz", None) is not None else written


def _in_finest_unit(time: Any) -> Any:
    for unit in ("ns", "us", "ms"):
        with suppress(pd.errors.OutOfBoundsDatetime, pd.errors.OutOfBoundsTimedelta):
            return time.as_unit(unit)
    return time.as_unit("s")
