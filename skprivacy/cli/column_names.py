"""Columns that options name: the file must have them, or the error says which was meant."""

import argparse
import math
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from ..files.locations import PIPE, kind_of
from ..tables.column_roles import ColumnRoles

# Options that name one column, and where their names are.
_ONE = {"--target": "target_column", "--groups": "groups", "--record-ids": "record_ids"}

_NO_HEADER = (
    "Nor does it have any other column that is named: if its first line is a row, and not a "
    "header, use --no-header."
)
_MORE_WITH_HEADER = "If its first line is a header, --header lists its columns here."

# From so many columns on that options name and the first line has, it is a header; one may be a
# value that a row of texts happens to have.
_ENOUGH_NAMES = 2

# An error names so many of the columns that there are.
_MOST_NAMES = 20


def check_columns(options: argparse.Namespace, there: Sequence[str]) -> None:
    """Check that IN has all columns that options name; there : those that it has."""
    named = list(_named(options))
    others = (getattr(options, "released", None) or "").split(",")  # of audit: columns, or a file
    n_found = found_in(options, [*(name for _, name in named), *others], there)
    for option, name in named:
        if name not in there:
            missing = not_there(options, name, there, n_found=n_found)
            raise ValueError(f"{option} names the column {name!r}, which {missing}")


def check_needed(options: argparse.Namespace, roles: ColumnRoles, there: Sequence[str]) -> None:
    """Check that IN has all columns that a saved mechanism reads; roles : of its columns."""
    needed = [] if roles.names is None else [roles.names[position] for position in roles.read]
    n_found = found_in(options, needed, there)
    for name in needed:
        if name not in there:
            missing = not_there(options, name, there, n_found=n_found)
            raise ValueError(
                f"{options.mechanism} needs the column {name!r}, which "
                f"{missing}{roles.about_groups([name])}"
            )


def not_there(
    options: argparse.Namespace, name: str, there: Sequence[str], *, n_found: float
) -> str:
    """Say that IN does not have a column, and which one may be meant; it is no sentence yet.

    n_found : how many columns that are named were found: a row of texts is not shown.
    """
    file = "the standard input" if options.source == PIPE else options.source
    found = _MORE_WITH_HEADER if n_found else _NO_HEADER
    if n_found >= _ENOUGH_NAMES:
        found = f"It has {_listed(there)}."
    return f"{file} does not have{_meant(name, there) if n_found else '.'} {found}"


def found_in(options: argparse.Namespace, named: Sequence[str], there: Sequence[str]) -> float:
    """Return how many columns that are named IN has; infinity if it is sure to name them.

    there : its first line, which may be a row of texts.
    """
    is_said = options.header is not None or options.names is not None
    is_parquet = kind_of(options.source, options.format)[0] == "parquet"
    return math.inf if is_said or is_parquet else len({*named} & {*there})


def _meant(name: str, there: Sequence[str]) -> str:
    folded = {str(each).casefold(): each for each in there}
    close = get_close_matches(str(name).casefold(), folded, n=1)
    return f": did you mean {folded[close[0]]!r}?" if close else "."


def _listed(there: Sequence[str]) -> str:
    names = ", ".join(map(repr, there[:_MOST_NAMES]))
    more = len(there) - _MOST_NAMES
    return f"the columns {names}{f' and {more:,} more' if more > 0 else ''}"


def _named(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Yield the columns that options name, each with its option."""
    of = vars(options)
    for key in ("sensitive", "columns", "beside", "remainder", "categorical"):
        if isinstance(names := of.get(key), list):
            yield from ((f"--{key}", name) for name in names)
    for option, key in _ONE.items():
        if of.get(key) is not None:
            yield option, of[key]
    yield from (("--edges", name) for name, _ in of.get("edges") or ())
