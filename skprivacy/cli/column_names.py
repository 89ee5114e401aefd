"""Columns that options name: the file must have them, or the error says which was meant."""

import argparse
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

# An error names so many of the columns that there are.
_MOST_NAMES = 20


def check_columns(options: argparse.Namespace, there: Sequence[str]) -> None:
    """Check that IN has all columns that options name; there : those that it has."""
    named = list(_named(options))
    is_header = _is_header(options, [name for _, name in named], there)
    for option, name in named:
        if name not in there:
            missing = not_there(options, name, there, is_header=is_header)
            raise ValueError(f"{option} names the column {name!r}, which {missing}")


def check_needed(options: argparse.Namespace, roles: ColumnRoles, there: Sequence[str]) -> None:
    """Check that IN has all columns that a saved mechanism reads; roles : of its columns."""
    needed = [] if roles.names is None else [roles.names[position] for position in roles.read]
    is_header = _is_header(options, needed, there)
    for name in needed:
        if name not in there:
            missing = not_there(options, name, there, is_header=is_header)
            raise ValueError(
                f"{options.mechanism} needs the column {name!r}, which "
                f"{missing}{roles.about_groups([name])}"
            )


def not_there(
    options: argparse.Namespace, name: str, there: Sequence[str], *, is_header: bool
) -> str:
    """Say that IN does not have a column, and which one may be meant; it is no sentence yet.

    is_header : whether the names are known to be names: a row is not shown.
    """
    file = "the standard input" if options.source == PIPE else options.source
    found = f"It has {_listed(there)}." if is_header else _NO_HEADER
    return f"{file} does not have{_meant(name, there)} {found}"


def _is_header(options: argparse.Namespace, named: Sequence[str], there: Sequence[str]) -> bool:
    """Return whether IN names its columns; there : its first line, which may be a row of texts."""
    is_said = options.header is not None or options.names is not None
    is_parquet = kind_of(options.source, options.format)[0] == "parquet"
    return is_said or is_parquet or any(name in there for name in named)


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
