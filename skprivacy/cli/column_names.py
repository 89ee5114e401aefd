"""Columns that options name: the file must have them, or the error says which was meant."""

import argparse
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from ..files.locations import PIPE
from ..tables.column_roles import ColumnRoles

# Options that name one column, and where their names are.
_ONE = {"--target": "target_column", "--groups": "groups", "--record-ids": "record_ids"}

# An error names so many of the columns that there are.
_MOST_NAMES = 20


def check_columns(options: argparse.Namespace, there: Sequence[str]) -> None:
    """Check that IN has all columns that options name; there : those that it has."""
    for option, name in _named(options):
        if name not in there:
            raise ValueError(
                f"{option} names the column {name!r}, which {not_there(options, name, there)}"
            )


def check_needed(options: argparse.Namespace, roles: ColumnRoles, there: Sequence[str]) -> None:
    """Check that IN has all columns that a saved mechanism reads; roles : of its columns."""
    needed = [] if roles.names is None else [roles.names[position] for position in roles.read]
    for name in needed:
        if name not in there:
            raise ValueError(
                f"{options.mechanism} needs the column {name!r}, which "
                f"{not_there(options, name, there)}{roles.about_groups([name])}"
            )


def not_there(options: argparse.Namespace, name: str, there: Sequence[str]) -> str:
    """Say that IN does not have a column, and which one may be meant; it is no sentence yet."""
    file = "the standard input" if options.source == PIPE else options.source
    return f"{file} does not have{_meant(name, there)} It has {_listed(there)}."


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
