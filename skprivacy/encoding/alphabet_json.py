"""The alphabet of columns as a part of a JSON document, read with care."""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np
import pandas as pd

from .._json import encode_label, label_key
from .._json_reader import Place
from .._typing import FloatArray, IntArray
from ..codes import UNKNOWN
from .alphabets import ValueAlphabet
from .columns import ColumnAlphabet

ALPHABET_KEYS = ("columns", "combinations", "symbols", "members", "member_of", "weights")

_COLUMN_KEYS = (
    "values", "labels", "symbols", "weights", "in_pool", "is_rare", "edges", "bounds",
    "has_missing",
)  # fmt: skip

# Weights up to this size have a finite sum.
HEAVIEST = 1e300


def alphabet_content(alphabet: ValueAlphabet) -> dict[str, Any]:
    """Return what a document says about an alphabet."""
    return {
        "columns": [write_column(column) for column in alphabet.columns],
        "combinations": alphabet.combinations.tolist(),
        "symbols": alphabet.symbols.tolist(),
        "members": alphabet.members.tolist(),
        "member_of": alphabet.member_of.tolist(),
        "weights": alphabet.weights.tolist(),
    }


def write_column(column: ColumnAlphabet) -> dict[str, Any]:
    """Return what a document says about one column."""
    return {
        "values": [encode_label(value) for value in column.values],
        "labels": [encode_label(label) for label in column.labels],
        "symbols": column.symbols.tolist(),
        "weights": column.weights.tolist(),
        "in_pool": [encode_label(value) for value in column.in_pool],
        "is_rare": column.is_rare.tolist(),
        "edges": None if column.edges is None else column.edges.tolist(),
        "bounds": [encode_label(bound) for bound in column.bounds],
        "has_missing": column.has_missing,
    }


def read_alphabet(part: dict[str, Place]) -> ValueAlphabet:
    """Return the alphabet after checking all of it: a wrong one would draw from the wrong rows."""
    columns = tuple(map(read_column, part["columns"].items(fewest=1)))
    symbols = _read_codes(part["symbols"])
    combinations = read_rows(part["combinations"], len(symbols), [c.n_symbols for c in columns])
    for column, codes in zip(columns, combinations.T, strict=True):
        check_all(part["combinations"], codes, column.n_symbols)
    member_of = _read_codes(part["member_of"], len(symbols))
    members = read_rows(part["members"], len(member_of), [len(c.values) for c in columns])
    parts = [column.symbols[of] for column, of in zip(columns, members.T, strict=True)]
    fits = np.stack(parts, axis=1) == combinations[member_of]
    part["members"].require(fits, "a value in the combination that member_of names")
    weights = part["weights"].numbers(len(member_of), low=0, high=HEAVIEST)
    return ValueAlphabet(columns, combinations, symbols, members, member_of, weights)


def _read_codes(place: Place, n: int | None = None) -> IntArray:
    """Return numbers from 0 on without gaps, up to `n` if that is given."""
    codes = place.integers(None, low=0, high=(place.length() if n is None else n) - 1)
    check_all(place, codes, codes.max() + 1 if n is None else n)
    return codes


def check_all(place: Place, codes: IntArray, n: int) -> None:
    """Refuse codes that lack a number below `n`."""
    if len(missing := np.setdiff1d(np.arange(n), codes)):
        raise place.malformed(
            f"{place.path} must have every number from 0 to {n - 1}. Got no {missing[0]}."
        )


def read_rows(place: Place, length: int, sizes: list[int]) -> IntArray:
    """Return rows of codes, each column with a size of its own, in lexicographic order."""
    rows = place.integers(length, len(sizes), low=0, high=max(sizes) - 1)
    place.require(rows < sizes, "a number that its column has")
    later, earlier = rows[1:], rows[:-1]
    first = (later != earlier).argmax(axis=1)[:, None]
    ascends = np.take_along_axis(later, first, axis=1) > np.take_along_axis(earlier, first, axis=1)
    place.require(np.append(True, ascends), "a row that comes after the previous one in order")
    return rows


def read_column(place: Place) -> ColumnAlphabet:
    """Return the alphabet of one column after checking it."""
    part = place.keys(*_COLUMN_KEYS)
    values = tuple(item.label() for item in part["values"].items(fewest=1))
    n, has_missing = len(values), part["has_missing"].flag()
    edges = part["edges"].optional(lambda edges: _read_edges(edges, n - has_missing))
    column = ColumnAlphabet(
        values,
        part["labels"].labels(n),
        part["symbols"].integers(n, low=0 if edges is None else UNKNOWN, high=n - 1),
        part["weights"].numbers(n, low=0, high=HEAVIEST),
        tuple(item.label() for item in part["in_pool"].items(n)),
        np.array([item.flag() for item in part["is_rare"].items(n)]),
        edges,
        _read_bounds(part["bounds"], edges),
        has_missing,
    )
    check_all(part["symbols"], column.symbols, max(1, column.n_symbols))
    _check_nulls(part, column)
    check = _check_categories if edges is None else _check_bins
    check(part, column)
    return column


def _read_edges(place: Place, n_bins: int) -> FloatArray:
    place.require(n_bins > 0, "null for a column that has no values")
    edges = place.numbers(n_bins - 1)
    place.require(edges > np.append(-np.inf, edges)[:-1], "larger than the previous one")
    return edges


def _read_bounds(place: Place, edges: FloatArray | None) -> tuple[float, float]:
    low, high = (float(item.number()) for item in place.items(2))
    if edges is None:
        place.require(np.array([low == -math.inf, high == math.inf]), "infinite without bins")
        return low, high
    points = [low, *edges, high]
    is_outside = np.array([low < points[1], high > points[-2]])
    place.require(is_outside, "outside the edges, with the lower one first")
    return low, high


def _check_nulls(part: dict[str, Place], column: ColumnAlphabet) -> None:
    """Check that the missing value, which is last, and those of empty bins are null."""
    must_be_null = column.symbols == UNKNOWN
    last = len(column.symbols) - 1
    if column.has_missing:
        part["symbols"][last].integer(low=0, high=last)
        must_be_null[last] = True
    is_null = np.array([value is None for value in column.values])
    requirement = "null for an empty bin and as the missing value, and only there"
    part["values"].require(is_null == must_be_null, requirement)


def _check_categories(part: dict[str, Place], column: ColumnAlphabet) -> None:
    """Check that values are present and distinct, and that they are their own labels."""
    is_there = [value is None or not pd.isna(value) for value in column.values]
    part["values"].require(np.array(is_there), "a value")
    part["values"].different(column.values, "a value")
    pairs = zip(column.values, column.labels, strict=True)
    is_own = [label_key(value) == label_key(label) for value, label in pairs]
    part["labels"].require(np.array(is_own), "the value at the same position")
    pairs = zip(column.values, column.in_pool, strict=True)
    is_own = [label_key(value) == label_key(shown) for value, shown in pairs]
    part["in_pool"].require(np.array(is_own), "the value at the same position")


def _check_bins(part: dict[str, Place], column: ColumnAlphabet) -> None:
    """Check that bins have names, and values of one kind that lie in them."""
    is_bin = np.arange(len(column.values)) < len(column.values) - column.has_missing
    is_name = [isinstance(label, str) for label in column.labels]
    part["labels"].require(is_name == is_bin, "a text for a bin, null for the missing value")
    seen = np.flatnonzero([value is not None for value in column.values])
    part["values"].require(len(seen) > 0, "a list with a value for at least one bin")
    values = [column.values[i] for i in seen]
    fits = np.ones(len(column.values), dtype=bool)
    fits[seen] = [_kind(value) == _kind(values[0]) is not None for value in values]
    part["values"].require(fits, "a finite number, or a time like those before it")
    with part["values"].making():
        fits[seen] = column.positions_of(values, part["values"].path)[:-1] == seen
    part["values"].require(fits, "a value in its own bin")
    pairs = zip(column.values, column.in_pool, strict=True)
    alike = [_kind(value) == _kind(shown) for value, shown in pairs]
    requirement = "of the same kind as in values: a number, a time or null"
    part["in_pool"].require(np.array(alike), requirement)


def _kind(value: object) -> type | None:
    """Return what kind of number or time a value is."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float if math.isfinite(value) else None
    return type(value) if isinstance(value, datetime.date | datetime.timedelta) else None
