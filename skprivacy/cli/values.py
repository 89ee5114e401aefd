"""Values of options: parsers, and names known without importing the library.

A test compares the names with those in the library. Parsers import the library only if they need
it, so that help does not wait for it.
"""

from __future__ import annotations

import argparse
import csv
import math
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from .._messages import closest

if TYPE_CHECKING:
    from ..measures import Measure


MEASURES = ("kl", "l1", "chi2", "max_lift", "alpha_lift", "lip", "parity")
SOLVERS = (
    "optimal",
    "one_per_label",
    "column_generation",
    "algorithm1",
    "lift_polytope",
    "best_partition",
    "subset_merging",
    "watchdog",
    "greedy_funnel",
    "chi2_design",
    "randomized_response",
)
UTILITIES = ("distortion", "mutual_information", "guess", "target")
ALPHABETS = ("auto", "values", "cells")
MADE_UP = ("for_any_use", "for_one_model", "column_by_column")
USUAL_CONFIDENCE = 0.95
KEPT_UTILITY = 0.9
LARGEST_CONFIDENCE = 0.9999


# A name, in quotes if it has an equals sign in it, and a list.
_SCALE = re.compile(r'(?:"((?:[^"]|"")+)"|([^"=][^=]*))=(.+)', re.DOTALL)
_DECIMAL_COMMA = re.compile(r"\d+,\d+")


def names(text: str) -> list[str]:
    """Return names separated by commas; one with a comma in it goes in double quotes."""
    try:
        (found,) = csv.reader([text], skipinitialspace=True)
    except csv.Error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of names: {error}") from None
    if not found or not all(found):
        raise argparse.ArgumentTypeError(
            f"{text!r} has an empty name in it: write names as age,region, without spaces"
        )
    return found


def remainder(text: str) -> str | list[str]:
    """Return the treatment of other columns: "drop", "passthrough" or names."""
    return text if text in ("drop", "passthrough") else names(text)


def _number(text: str, low: float = -math.inf, high: float = math.inf, what: str = "") -> float:
    """Return a number from low to high; what : the requirement, for the error."""
    try:
        number = float(text)
    except ValueError:
        point = f": write {text.replace(',', '.')}" if _DECIMAL_COMMA.fullmatch(text) else ""
        raise argparse.ArgumentTypeError(f"{text!r} is not a number{point}") from None
    if what and not low <= number <= high:  # NaN fails
        raise argparse.ArgumentTypeError(f"{text} is not {what}")
    return number


def budget(text: str) -> float:
    """Return a finite number of at least 0."""
    return _number(text, 0, sys.float_info.max, "a finite number of at least 0")


def budget_of_each(text: str) -> dict[str, float]:
    """Return budgets by the names of secrets: sex=0.002,race=0.02,sex+race=0.1."""
    found: dict[str, float] = {}
    for part in names(text):
        name, _, number = part.rpartition("=")
        if not name or name in found:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not of the form sex=0.002,race=0.02, with each name once"
            )
        found[name] = budget(number)
    return found


def proportions(text: str) -> dict[str, float]:
    """Return positive numbers by the names of secrets: sex=1,race=10."""
    found = budget_of_each(text)
    if not all(each > 0 for each in found.values()):
        raise argparse.ArgumentTypeError(f"{text!r} has a proportion that is not positive")
    return found


def budget_or_each(text: str) -> float | dict[str, float]:
    """Return one budget, or budgets by the names of secrets."""
    return budget_of_each(text) if "=" in text else budget(text)


def budgets(text: str) -> list[float]:
    """Return budgets separated by commas."""
    return [budget(part) for part in text.split(",")]


def factor(text: str) -> float:
    """Return a number of at least 1, or infinity."""
    return _number(text, 1, math.inf, "a number of at least 1")


def share(text: str) -> float:
    """Return a number from 0 to 1."""
    return _number(text, 0, 1, "a share between 0 and 1")


def confidence(text: str) -> float | None:
    """Return the confidence that a budget holds for the population; None: for the rows only."""
    if text.lower() == "none":
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number <= LARGEST_CONFIDENCE:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a share between 0 and {LARGEST_CONFIDENCE}, such as 0.95, "
            f"nor none"
        )
    return number


def positive(text: str) -> int:
    """Return a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def port(text: str) -> int:
    """Return a port that needs no special rights."""
    if not text.isdecimal() or not 1024 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 1024 to 65535")
    return int(text)


def frequency(text: str) -> float:
    """Return a number of rows, or a share of them."""
    return positive(text) if text.isdecimal() else share(text)


def edges(text: str) -> tuple[str, list[float]]:
    """Return the name of a column and its edges, with infinity at either end."""
    name, _, numbers = text.rpartition("=")
    edges = [_number(part) for part in numbers.split(",")]
    grow = all(low < high for low, high in pairwise(edges))
    if not name or not grow or any(map(math.isnan, edges)):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not of the form age=18,40,65, with increasing edges"
        )
    inner = [edge for edge in edges if math.isfinite(edge)]
    return name, [-math.inf, *inner, math.inf]


def ordered(text: str) -> tuple[str, list[str]]:
    """Return the name of a column, possibly in quotes, and its texts in ascending order."""
    parts = _SCALE.fullmatch(text)
    found = names(parts[3]) if parts else []
    if parts is None or len({*found}) < max(2, len(found)):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not of the form risk=low,medium,high, with each text once"
        )
    return parts[2] or parts[1].replace('""', '"'), found


def measure(text: str) -> str | Measure:
    """Return the name of a measure, or a measure from name:parameter=value."""
    name, _, parameters = text.partition(":")
    if name not in MEASURES:
        meant = f" (did you mean {close}?)" if (close := closest(name, MEASURES)) else ""
        raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(MEASURES)}{meant}")
    if not parameters:
        return name
    from .. import measures

    given = dict(part.partition("=")[::2] for part in parameters.split(",") if part)
    try:
        return measures.MEASURES[name](**{key: _number(value) for key, value in given.items()})
    except (TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def solver_options(text: str) -> dict[str, Any]:
    """Return options of a solver by their names: tol=0.001,max_time=60."""
    found = dict(part.partition("=")[::2] for part in names(text))
    if not all(found) or not all(found.values()):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form tol=0.001,max_time=60")
    options: dict[str, Any] = dict(found)
    for name, value in found.items():
        with suppress(ValueError):  # a text
            options[name] = int(value) if value.isdecimal() else float(value)
    return options


def delimiter(text: str) -> str:
    """Return the character between fields."""
    from ..engines.file_tables import check_delimiter

    return _checked(check_delimiter, {"\\t": "\t", "tab": "\t"}.get(text, text))


def encoding(text: str) -> str:
    """Return the name of an encoding in which delimiters are single ASCII bytes."""
    from ..engines.file_tables import check_encoding

    return _checked(check_encoding, text)


def _checked(check: Callable[[str], str], text: str) -> str:
    try:
        return check(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
