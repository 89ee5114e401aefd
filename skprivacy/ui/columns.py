"""The columns of a table before anything is chosen: what they hold, and what they give away."""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Unpack

import pandas as pd

from ..encoding.values import scale_of
from ..engines.files import read_from, sample_source
from ..metrics import information_by_column

if TYPE_CHECKING:
    from ..files import Reading

# A column of texts or whole numbers with more distinct values than this share of the rows, and
# than this number, names single rows.
_SHARE_OF_NAMES, _FEWEST_NAMES = 0.5, 20

# Texts with so many values may be put in order by hand.
_SHORTEST_SCALE, _LONGEST_SCALE = 3, 20

_N_EXAMPLES, _LONGEST_TEXT = 3, 40

# Rows that are looked at; figures of a release are counted in all rows.
_MOST_ROWS = 100_000

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def open_regular(path: str) -> BinaryIO:
    """Open a file for reading, if it is a regular one: a device or a pipe might never end."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))

    file = open(path, "rb", opener=opener)  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ValueError(f"{path} is not a regular file.")
    return file


@dataclass(frozen=True, eq=False)
class Overview:
    """Rows of a table, or a sample of them, and the number of all rows."""

    rows: pd.DataFrame
    n_rows: int

    @classmethod
    def of(cls, file: BinaryIO, **reading: Unpack[Reading]) -> Overview:
        """Return the overview of an open file."""
        with read_from(file, **reading) as source:
            rows, n_rows = sample_source(source, _MOST_ROWS)
        return cls(rows.infer_objects(), n_rows)

    def described(self) -> list[dict[str, Any]]:
        """Return a line for each column."""
        return [_described(str(name), self.rows[name]) for name in self.rows]

    def given_away(self, protect: Sequence[str]) -> dict[str, float | None]:
        """Return the share of what there is to know about the secret that each column tells."""
        others = self.rows.drop(columns=list(protect))
        secret = [self.rows[name].astype(object) for name in protect]
        found = information_by_column(others, pd.concat(secret, axis=1))
        return {str(name): None if math.isnan(x) else float(x) for name, x in found.items()}


def as_text(value: Any) -> str:
    """Return a value as it stands in a table."""
    if value is None or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _described(name: str, column: pd.Series) -> dict[str, Any]:
    try:
        counts = column.value_counts()
    except TypeError:  # lists, say
        counts = column.astype(str).value_counts()
    kind, n = _kind(column), int(column.notna().sum())
    is_whole = kind != "number" or bool((column.dropna() % 1 == 0).all())
    is_name = len(counts) > max(_SHARE_OF_NAMES * n, _FEWEST_NAMES) and is_whole
    return {
        "name": name,
        "kind": kind,
        "distinct": len(counts),
        "missing": len(column) - n,
        "examples": [as_text(value)[:_LONGEST_TEXT] for value in counts.index[:_N_EXAMPLES]],
        "is_name": is_name and kind != "date",
        "scale": _in_order(list(map(str, counts.index))) if kind == "text" else [],
    }


def _kind(column: pd.Series) -> str:
    if pd.api.types.is_bool_dtype(column):
        return "yes or no"
    if pd.api.types.is_datetime64_any_dtype(column):
        return "date"
    return "number" if pd.api.types.is_numeric_dtype(column) else "text"


def _in_order(texts: list[str]) -> list[str]:
    """Return texts in a likely order, for the user to mend; empty if they are too many."""
    if not _SHORTEST_SCALE <= len(texts) <= _LONGEST_SCALE:
        return []
    return scale_of(texts) or sorted(texts, key=_by_number)


def _by_number(text: str) -> tuple[float, str]:
    """Return a key that puts "grade 9" before "grade 10"."""
    number = _NUMBER.search(text)
    return float(number[0]) if number else math.inf, text
