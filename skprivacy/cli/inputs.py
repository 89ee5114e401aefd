"""The input table, its columns, and the transformer, as options describe them."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ..cells import ScoreCells, TreeCells
from ..engines.file_tables import PIPE, Source, kind_of
from ..engines.files import read_from
from ..tables.table import ColumnRoles
from ..transformer import PrivacyFunnelTransformer
from .values import UTILITIES

# Options that name one column, and their attributes.
_ONE = {"--target": "target_column", "--person": "person", "--record-ids": "record_ids"}

_NO_HEADER = (
    "Nor does it have any other column named here: if its first line is a row, not a header, use "
    "--no-header."
)
_MORE_WITH_HEADER = "If its first line is a header, --header lists its columns here."

# If the first line has at least this many of the columns that options name, it is a header; a
# single one may be a value in a row of texts.
_ENOUGH_NAMES = 2

# Maximum number of existing columns named in an error.
_MOST_NAMES = 20


def check_columns(options: argparse.Namespace, there: Sequence[str]) -> None:
    """Check that IN has all columns that options name; there : its columns."""
    attributes = vars(options)
    named: list[tuple[str, str]] = []
    for key in ("sensitive", "columns", "beside", "remainder", "categorical"):
        if isinstance(names := attributes.get(key), list):
            named += [(f"--{key}", name) for name in names]
    named += [
        (option, name) for option, key in _ONE.items() if (name := attributes.get(key)) is not None
    ]
    named += [("--edges", name) for name, _ in attributes.get("edges") or ()]
    others = (attributes.get("released") or "").split(",")  # of audit: columns, or a file
    n_found = found_in(options, [*(name for _, name in named), *others], there)
    for option, name in named:
        if name not in there:
            missing = not_there(options, name, there, n_found=n_found)
            raise ValueError(f"{option} names the column {name!r}, which {missing}")


def check_needed(options: argparse.Namespace, roles: ColumnRoles, there: Sequence[str]) -> None:
    """Check that IN has all columns that a saved mechanism reads."""
    needed = [] if roles.names is None else [roles.names[position] for position in roles.read]
    if absent := [name for name in needed if name not in there]:
        n_found = found_in(options, needed, there)
        missing = not_there(options, absent[0], there, n_found=n_found)
        raise ValueError(
            f"{options.mechanism} needs the column {absent[0]!r}, which "
            f"{missing}{roles.person_hint(absent[:1])}"
        )


def not_there(
    options: argparse.Namespace, name: str, there: Sequence[str], *, n_found: float
) -> str:
    """Return "FILE does not have" and which column may be meant, as the end of a sentence.

    n_found : number of named columns that exist; if it is small, the first line may be a row,
    which is not shown.
    """
    file = "the standard input" if options.source == PIPE else options.source
    found = _MORE_WITH_HEADER if n_found else _NO_HEADER
    if n_found >= _ENOUGH_NAMES:
        more = len(there) - _MOST_NAMES
        names = ", ".join(map(repr, there[:_MOST_NAMES]))
        found = f"It has the columns {names}{f' and {more:,} more' if more > 0 else ''}."
    folded = {str(each).casefold(): each for each in there}
    close = get_close_matches(str(name).casefold(), folded, n=1) if n_found else []
    meant = f": did you mean {folded[close[0]]!r}?" if close else "."
    return f"{file} does not have{meant} {found}"


def found_in(options: argparse.Namespace, named: Sequence[str], there: Sequence[str]) -> float:
    """Return how many of the named columns IN has; infinity if it surely has a header.

    there : its first line, which may be a row of texts.
    """
    is_said = options.header is not None or options.names is not None
    is_parquet = kind_of(options.source, options.format)[0] == "parquet"
    return math.inf if is_said or is_parquet else len({*named} & {*there})


def is_same(path: str, other: str) -> bool:
    """Whether two paths lead to the same file, or would if it existed."""
    paths = Path(path), Path(other)
    if any(each.exists() for each in paths):
        return all(each.exists() for each in paths) and paths[0].samefile(paths[1])
    # File systems of Windows and macOS ignore case.
    one, two = (str(each.resolve()).casefold() for each in paths)
    return one == two


@contextmanager
def source_of(options: argparse.Namespace) -> Iterator[Source]:
    """Yield the table IN, after checking that it has all columns that options name."""
    with read_from(
        options.source,
        kind=options.format,
        delimiter=options.delimiter,
        encoding=options.encoding,
        header=options.header,
        names=options.names,
    ) as source:
        check_columns(options, source.names)
        yield source


def released_columns(options: argparse.Namespace, names: Sequence[str]) -> list[str]:
    """Return the columns to release: those named, or all that no other option names."""
    if options.columns is not None:
        return options.columns
    remainder = getattr(options, "remainder", "drop")
    if remainder == "passthrough":
        raise ValueError(
            "--remainder passthrough needs --columns: without it, no columns remain to copy."
        )
    others = {*options.sensitive, options.target_column, options.person}
    others.add(getattr(options, "record_ids", None))
    others |= {*(options.beside or ()), *(() if remainder == "drop" else remainder)}
    return [name for name in names if name not in others]


def secret_keys(
    option: str, figures: Mapping[str, float], options: argparse.Namespace
) -> dict[Any, float]:
    """Return figures by column, or by a tuple of columns that were joined by a plus.

    Check that they are columns of --sensitive, all of which must be named.
    """
    keys: dict[str, tuple[str, ...]] = {}
    for text in figures:
        keys[text] = (text,) if text in options.sensitive else tuple(text.split("+"))
        if unknown := [name for name in keys[text] if name not in options.sensitive]:
            raise ValueError(
                f"{option} names {unknown[0]!r}, which is not a column of --sensitive: name its "
                f"columns, alone or joined by a plus."
            )
        if len({*keys[text]}) < len(keys[text]):
            raise ValueError(f"{option} names a column of {text!r} twice.")
    named = {name for names in keys.values() for name in names}
    if missing := [name for name in options.sensitive if name not in named]:
        raise ValueError(
            f"{option} does not name the sensitive column {missing[0]!r}: add it, alone or joined "
            f"to others by a plus."
        )
    return {names if len(names) > 1 else text: figures[text] for text, names in keys.items()}


def transformer_for(
    options: argparse.Namespace, names: Sequence[str], **more: Any
) -> PrivacyFunnelTransformer:
    """Return a transformer with parameters from options; names : the columns of IN."""
    edges, columns = dict(options.edges), released_columns(options, names)
    named = [*columns, *options.sensitive]
    for option, given in {"--edges": edges, "--categorical": options.categorical}.items():
        if unknown := [name for name in given if name not in named]:
            raise ValueError(
                f"{option} names {unknown[0]!r}, which is neither released nor sensitive."
            )
    if options.smoothing and options.confidence is not None:
        raise ValueError(
            "--smoothing needs --confidence none: a confidence allows for chance in its own way."
        )
    bins = dict.fromkeys(columns, options.bins) | dict.fromkeys(options.categorical)
    return PrivacyFunnelTransformer(
        sensitive=options.sensitive,
        columns=options.columns,
        beside=options.beside,
        measure=options.measure,
        scope=options.scope,
        utility=_utility(options),
        solver=options.solver,
        solver_options=dict(options.solver_options) or None,
        max_outputs=options.max_outputs,
        confidence=options.confidence,
        alphabet=_alphabet(options),
        n_bins=bins | edges,
        min_frequency=options.min_frequency,
        max_categories=options.max_categories,
        smoothing=options.smoothing,
        **more,
    )


def _utility(options: argparse.Namespace) -> str:
    utility, target = options.utility, options.target_column
    if target is None and utility == "target":
        raise ValueError("--utility target needs --target with the name of a column.")
    if target is not None and utility not in (None, "target"):
        raise ValueError(f"--target already sets the utility: leave out --utility {utility}.")
    return utility or (UTILITIES[0] if target is None else "target")


def _alphabet(options: argparse.Namespace) -> Any:
    """Return the alphabet; options about cells imply cells."""
    given = {"max_cells": options.max_cells, "person": options.person}
    about_cells = {name: value for name, value in given.items() if value is not None}
    if not about_cells:
        return options.alphabet
    if options.alphabet == "values":
        option = next(iter(about_cells)).replace("_", "-")
        raise ValueError(f"--{option} is about cells: leave out --alphabet values.")
    if options.target_column is not None:
        return ScoreCells(**about_cells)
    if options.person is not None:
        raise ValueError("--person is for cells that keep a target: name one with --target.")
    return TreeCells(**about_cells)


def counting_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return arguments for counting: columns that are released only if they are named."""
    ids = getattr(options, "record_ids", None)
    return {"target": options.target_column, "apart": [] if ids is None else [ids]}
