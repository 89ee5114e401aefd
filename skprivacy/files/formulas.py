"""Texts that a spreadsheet takes for formulas, and runs when it opens the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .._typing import BoolArray, IntArray
from .._warnings import warn
from .fields import Bytes, Fields, gathered

_QUOTE = ord('"')

# No number is longer than this.
_LONGEST = 64


def _table(characters: bytes) -> BoolArray:
    """Return for each byte whether it is one of some characters."""
    return np.isin(np.arange(256), list(characters))


_MAY_BEGIN = _table(b"=+-@\t\r")
_IS_MARK = _table(b"=+-@\t\r ")
_MAY_END = _table(b"0123456789. ")

# What a byte is in a number, and what may follow what. 1.2.3 passes too: nothing computes it.
_PARTS = [b"", b"0123456789", b".", b"eE", b"+-", b" "]
_PART = np.sum([i * _table(part) for i, part in enumerate(_PARTS)], axis=0).astype(np.uint8)
_MAY_FOLLOW = np.zeros(8 * 8, dtype=bool)
for _pair in (b"11", b"1.", b"1e", b"1 ", b".1", b".e", b". ", b"e1", b"e-", b"-1", b"-.", b"  "):
    _MAY_FOLLOW[8 * _PART[_pair[0]] + _PART[_pair[1]]] = True


def formulas_in_fields(fields: Fields, columns: Sequence[int]) -> IntArray:
    """Return for each of some columns how many of its fields are formulas."""
    array, chosen = np.frombuffer(fields.text, np.uint8), np.array(columns, dtype=np.intp)
    starts = fields.starts[:, chosen]
    first = array.take(starts)
    is_quoted = first == _QUOTE
    if is_quoted.any():
        first = array.take(starts + is_quoted)
    rows, places = _MAY_BEGIN.take(first).nonzero()
    n_quotes = is_quoted[rows, places]
    begins = starts[rows, places] + n_quotes
    ends = fields.ends[rows, chosen[places]] - n_quotes
    return np.bincount(places[_are_formulas(array, begins, ends)], minlength=len(chosen))


def formulas_in_texts(codes: IntArray, texts: Sequence[bytes]) -> int:
    """Return how many rows of a column are formulas; codes : of the text of each row."""
    sizes = np.array([len(text) for text in texts])
    ends = np.cumsum(sizes)
    array = np.frombuffer(b"".join(texts) + b" ", np.uint8)
    is_formula = _MAY_BEGIN.take(array.take(ends - sizes))
    is_formula[is_formula] = _are_formulas(array, (ends - sizes)[is_formula], ends[is_formula])
    return int(np.count_nonzero(is_formula.take(codes))) if is_formula.any() else 0


def _are_formulas(array: Bytes, starts: IntArray, ends: IntArray) -> BoolArray:
    """Tell which texts are formulas, if their first character may begin one."""
    lengths = ends - starts
    is_formula = lengths > _LONGEST
    short = np.flatnonzero((lengths > 0) & ~is_formula)
    if len(short):
        is_formula[short] = _are_computed(array, starts[short], ends[short])
    return is_formula


def _are_computed(array: Bytes, starts: IntArray, ends: IntArray) -> BoolArray:
    """Tell which texts are more than a number, and more than signs such as a dash."""
    text, lengths = gathered(array, starts, ends), ends - starts
    first = np.cumsum(lengths) - lengths
    parts = _PART.take(text)
    may_follow = np.ones(len(text), dtype=bool)
    may_follow[1:] = _MAY_FOLLOW.take(8 * parts[:-1] + parts[1:])
    may_follow[first] = True
    is_number = np.logical_and.reduceat(may_follow, first) & _MAY_END.take(array.take(ends - 1))
    return ~is_number & ~np.logical_and.reduceat(_IS_MARK.take(text), first)


def warn_of_formulas(n_rows: Mapping[str, int]) -> None:
    """Warn of columns that were written with formulas in them; n_rows : by name."""
    found = [f"{name!r} ({count:,} rows)" for name, count in n_rows.items() if count]
    if found:
        warn(
            f"A spreadsheet may run values of {', '.join(found)} as formulas: they begin with =, "
            f"+, - or @ and are not numbers. They are written unchanged: import these columns as "
            f"text, or drop them.",
        )
