"""Checks of options, files and names of columns, before the library is imported.

What is checked here must not wait for other libraries: mistakes are shown at once.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import stat
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._messages import UNSAVED, closest, listed, warn
from ..engines.file_tables import PIPE, check_free, has_modes, is_pipe, kind_of, opened
from ..exceptions import PrivacyLeakWarning

if TYPE_CHECKING:
    from ..tables.table import ColumnRoles

_PICTURES = {".png", ".svg", ".pdf"}

_MOST_FILE_BYTES = 1 << 10
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_KEY = re.compile(rb"\s*((?:[0-9a-fA-F]{2}){16,})\s*")

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
    for key in ("edges", "ordered"):
        named += [(f"--{key}", name) for name, _ in attributes.get(key) or ()]
    others = (attributes.get("released") or "").split(",")  # of audit: columns, or a file
    n_found = found_in(options, [*(name for _, name in named), *others], there)
    if absent := [(option, name) for option, name in named if name not in there]:
        option, name = absent[0]
        missing = not_there(options, name, there, n_found=n_found)
        others = []
        for _, other in absent[1:]:
            close = closest(other, there) if n_found else ""
            others.append(f"{other!r} (did you mean {close!r}?)" if close else repr(other))
        more = f" Nor does it have {listed(dict.fromkeys(others))}." if others else ""
        raise ValueError(f"{option} names the column {name!r}, which {missing}{more}")


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
    close = closest(name, there) if n_found else ""
    meant = f": did you mean {close!r}?" if close else "."
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


def check_design(options: argparse.Namespace, there: Sequence[str]) -> None:
    """Check that the options of a design fit each other; there : the columns of IN."""
    named = [*released_columns(options, there), *options.sensitive]
    edges = [name for name, _ in options.edges]
    ordered = [name for name, _ in options.ordered]
    about = {"--edges": edges, "--ordered": ordered, "--categorical": options.categorical}
    for option, given in about.items():
        if unknown := [name for name in given if name not in named]:
            raise ValueError(
                f"{option} names {unknown[0]!r}, which is neither released nor sensitive."
            )
    if options.smoothing and options.confidence is not None:
        raise ValueError(
            "--smoothing needs --confidence none: a confidence allows for chance in its own way."
        )
    utility, target = options.utility, options.target_column
    if target is None and utility == "target":
        raise ValueError("--utility target needs --target with the name of a column.")
    if target is None and getattr(options, "release_target", False):
        raise ValueError("--release-target needs --target with the name of a column.")
    if target is not None and utility not in (None, "target"):
        raise ValueError(f"--target already sets the utility: leave out --utility {utility}.")
    if (given := about_cells(options)) and options.alphabet == "values":
        option = next(iter(given)).replace("_", "-")
        raise ValueError(f"--{option} is about cells: leave out --alphabet values.")
    if options.person is not None and target is None:
        raise ValueError("--person is for cells that keep a target: name one with --target.")


def about_cells(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options about cells that are given."""
    given = {"max_cells": options.max_cells, "person": options.person}
    return {name: value for name, value in given.items() if value is not None}


def read_key(path: str) -> bytes:
    """Return the key in a file, which has at least 32 hexadecimal digits."""
    with open(path, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        text = file.read(_MOST_FILE_BYTES + 1)
    found = _KEY.fullmatch(text)
    if found is None or len(text) > _MOST_FILE_BYTES:
        raise ValueError(
            f"{path} does not hold a key: an even number of at least 32 hexadecimal digits on one "
            f"line, and nothing else. `skprivacy key FILE` makes one."
        )
    if has_modes() and stat.S_ISREG(mode) and mode & _OTHERS:
        warn(
            f"{path} can be read by other users, who could undo the noise with it: run chmod 600 "
            f"{path}",
            PrivacyLeakWarning,
        )
    return bytes.fromhex(found[1].decode())


def _check_outputs(paths: Sequence[str], options: argparse.Namespace) -> None:
    """Check, before any work is done, that outputs can be written and are different files."""
    if not is_pipe(options.target) and is_same(options.target, options.source):
        raise ValueError(f"OUT is IN ({options.source}): name another file, or the table is lost.")
    for path in paths:
        check_free(path, options.force)
    if is_pipe(options.target):
        if options.json:
            raise ValueError("--json prints to standard output: OUT must be a file, not a pipe.")
    elif kind_of(options.target)[0] == "parquet" and not find_spec("pyarrow"):
        raise ValueError(
            f"{options.target}: Parquet files need pyarrow: run pip install "
            '".[files]" in a clone, or write a .csv.'
        )
    others = [path for path in paths if path is not options.target]
    if any(is_pipe(path) or is_same(path, options.source) for path in others):
        raise ValueError(
            f"{', '.join(others)}: each of these must be a separate file, neither a pipe nor IN."
        )
    if any(is_same(*pair) for pair in combinations(paths, 2)):
        raise ValueError(f"Two of the outputs {', '.join(paths)} are the same file.")


def _keyed(options: argparse.Namespace) -> dict[str, Any]:
    """Return the ids and the key of a keyed release; empty for other releases.

    The key may come from a pipe, and is read once.
    """
    if options.record_ids is None and options.key_file is None:
        return {}
    if not options.record_ids or not options.key_file:
        raise ValueError("--record-ids and --key-file go together: use both, or neither.")
    outputs = [getattr(options, name, None) for name in ("target", "report", "save_mechanism")]
    if any(is_same(path, options.key_file) for path in outputs if path):
        raise ValueError(f"{options.key_file} is the key itself: name another file.")
    if not getattr(options, "save_mechanism", True):
        advice = " Use --save-mechanism, and release other rows with `skprivacy apply`."
        warn(UNSAVED + advice, PrivacyLeakWarning)
    return {"record_ids": options.record_ids, "secret_key": read_key(options.key_file)}


def _check_report_options(options: argparse.Namespace) -> None:
    """Check, before any work is done, that options fit a report, and that it can be made."""
    if options.report and not find_spec("matplotlib"):
        raise ValueError(
            '--report needs matplotlib for its pictures: run pip install ".[plot]" in a clone, or '
            "leave out --report."
        )
    for option in ("--purpose", "--recipient"):
        if getattr(options, option.strip("-")) is not None and not options.report:
            raise ValueError(f"{option} is a part of the report: name its file with --report.")


def _check_curve_file(options: argparse.Namespace) -> None:
    """Check, before any work is done, that the output of a curve can be written."""
    check_free(options.out, options.force)
    if is_same(options.out, options.source):
        raise ValueError(f"{options.out} is the table itself: name another file.")
    if (suffix := Path(options.out).suffix.lower()) not in _PICTURES | {".csv"}:
        raise ValueError(
            f"{options.out}: a curve can be a .csv, .png, .svg or .pdf file, not {suffix!r}."
        )
    if suffix in _PICTURES and not find_spec("matplotlib"):
        raise ValueError(
            f'{options.out}: pictures need matplotlib: run pip install ".[plot]" in a clone, or '
            f"write a .csv."
        )


def columns_of_in(options: argparse.Namespace, there: Sequence[str]) -> list[str] | None:
    """Return the columns of IN to attack, or None for a file; there : all columns of IN."""
    named = options.released.split(",")
    unknown = [name for name in named if name not in there]
    if not unknown:
        columns = list(dict.fromkeys([*named, *options.beside]))
        if shared := [name for name in columns if name in options.sensitive]:
            raise ValueError(f"--released names the sensitive column {shared[0]!r} itself.")
        return columns
    if not Path(options.released).exists():
        n_found = found_in(options, [*named, *options.sensitive], there)
        raise ValueError(
            f"--released {options.released} is no file, and names the column {unknown[0]!r}, "
            f"which {not_there(options, unknown[0], there, n_found=n_found)}"
        )
    return None


# The checks of each command.


def check(options: argparse.Namespace) -> None:
    """Check what can be checked before the library is imported."""
    if checks := _CHECKS.get(options.run):
        checks(options)


def _check_sanitize(options: argparse.Namespace) -> None:
    outputs = [options.target, options.report, options.save_mechanism]
    _check_outputs([path for path in outputs if path], options)
    _check_report_options(options)
    options.keyed = _keyed(options)
    is_cells = options.alphabet != "values"
    if options.save_mechanism and options.target_column and is_cells and not find_spec("skops"):
        raise ValueError(
            "--save-mechanism needs skops to write cells for a --target, which hold models: run "
            'pip install ".[models]" in a clone, or use --alphabet values, or leave out '
            "--save-mechanism."
        )
    _check_table(options)
    if isinstance(options.epsilon, dict):
        secret_keys("--epsilon", options.epsilon, options)


def _check_apply(options: argparse.Namespace) -> None:
    _check_outputs([options.target], options)
    if is_same(options.target, options.mechanism):
        raise ValueError(f"{options.target} is the mechanism itself: name another file.")
    options.keyed = _keyed(options)
    _check_saved(options)


def _check_curve(options: argparse.Namespace) -> None:
    if options.out is not None:
        _check_curve_file(options)
    _check_proportions(options)
    _check_table(options)


def _check_choose(options: argparse.Namespace) -> None:
    if options.max_factor is not None and options.max_shift is None:
        raise ValueError("--max-factor needs --max-shift: it limits the same shifts, as a factor.")
    if options.max_shift is not None and options.scope == "average":
        raise ValueError(
            "--max-shift needs --scope per_output: a budget on average bounds no single value."
        )
    if options.max_shift is not None and len(options.proportions or ()) > 1:
        raise ValueError(
            "--max-shift finds a budget for one secret: leave out --proportions, and run it for "
            "each column of --sensitive."
        )
    _check_proportions(options)
    _check_table(options)


def _check_audit(options: argparse.Namespace) -> None:
    names = _names_of_in(options)
    if options.secrets is not None:
        secret_keys("--secrets", dict.fromkeys(options.secrets, 1.0), options)
    if names is not None:
        columns_of_in(options, names)


def _check_saved(options: argparse.Namespace) -> None:
    """Check that there is a saved mechanism, and that IN has the columns that options name."""
    if not is_pipe(options.mechanism):
        open(options.mechanism, "rb").close()
    _names_of_in(options)


def _check_proportions(options: argparse.Namespace) -> None:
    if options.proportions is not None:
        secret_keys("--proportions", options.proportions, options)


def _check_table(options: argparse.Namespace) -> None:
    """Check the columns of IN, and the options of a design for them."""
    if (names := _names_of_in(options)) is not None:
        check_design(options, names)


def _names_of_in(options: argparse.Namespace) -> list[str] | None:
    """Return the columns of IN, after checking that it has all columns that options name.

    None if they are not known yet: a pipe can be read only once, and Parquet needs a library.
    """
    if options.source == PIPE or is_pipe(options.source):
        return None
    with opened(options.source, options.format) as input_:
        if input_.kind == "parquet":
            return None
        from ..engines.csv_text import DelimitedText  # with numpy

        given = options.delimiter, options.encoding, options.header, options.names
        names = DelimitedText(input_, *given).names
    check_columns(options, names)
    return names


def _check_ui(options: argparse.Namespace) -> None:
    if not (find_spec("starlette") and find_spec("uvicorn")):
        raise ValueError(
            'ui needs starlette and uvicorn: run pip install ".[ui]" in a clone, or use the other '
            "commands."
        )
    if (file := options.file) is None:
        return
    if file == PIPE or is_pipe(file):
        raise ValueError(f"{file} is a pipe: name a regular file.")
    with opened(file):  # an unclear header is asked for on the page
        pass


_CHECKS = {
    "page:ui": _check_ui,
    "release:sanitize": _check_sanitize,
    "release:apply": _check_apply,
    "explore:curve": _check_curve,
    "explore:choose": _check_choose,
    "audit:audit_file": _check_audit,
    "audit:certify_file": _check_saved,
}
