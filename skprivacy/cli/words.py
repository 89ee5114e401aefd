"""What the command line says: the words of the library in terms of options."""

import argparse
import json
import math
import numbers
import re
import sys
import warnings
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from ..files.locations import is_pipe

# What the library calls a parameter, the command line calls an option.
_OPTIONS = {
    "sensitive": "--sensitive",
    "columns": "--columns",
    "epsilon": "--epsilon",
    "n_bins": "--bins",
    "min_frequency": "--min-frequency",
    "max_categories": "--max-categories",
    "smoothing": "--smoothing",
    "handle_unknown": "--handle-unknown",
    "measure": "--measure",
    "scope": "--scope",
    "utility": "--utility",
    "utility_at_least": "--keep-utility",
    "solver": "--solver",
    "output": "--output",
    "remainder": "--remainder",
    "edges": "--edges",
    "record_ids": "--record-ids",
    "secret_key": "--key-file",
}
_SAID = {
    "force=True": "--force",
    "allow_leaking=True": "--allow-leaking",
    "header=True": "--header",
    "header=False": "--no-header",
    "names=[...]": "--names",
    # What only Python can look up.
    " p_sx_.sum(axis=1), in the order of sensitive_categories_, shows which they are.": "",
}
_WITH_UNDERSCORE = "|".join(name for name in _OPTIONS if "_" in name)
_NAMES = "|".join(sorted(_OPTIONS, key=len, reverse=True))


def in_options(text: str) -> str:
    """Return a message of the library with options in place of parameters."""
    text = re.sub(
        r"n_bins=\{'([^']*)': None\}\. To choose the bins, give edges there",
        r"--categorical \1. To choose the bins, give --edges",
        text,
    )
    text = re.sub(r"n_bins=\{'([^']*)': \[\.\.\.\]\}", r"--edges \1=A,B,...", text)
    text = re.sub(rf"[Tt]he '({_NAMES})' parameter of \w+", lambda m: _OPTIONS[m[1]], text)
    text = re.sub(rf"\b({_NAMES})='?([\w.]+)'?", lambda m: f"{_OPTIONS[m[1]]} {m[2]}", text)
    text = re.sub(rf"\b({_WITH_UNDERSCORE})\b", lambda m: _OPTIONS[m[1]], text)
    for said, option in _SAID.items():
        text = text.replace(said, option)
    text = text.replace(" of PrivacyFunnelTransformer", "")
    return text.replace("PrivacyFunnelTransformer", "skprivacy")


def one_line(error: Exception) -> str:
    """Return what an error says, in one line."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return " ".join(f"{error.filename}: {error.strerror}".split())
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, KeyError | MemoryError):
        text = f"{type(error).__name__}: {text}"
    return in_options(text)


def _without_breaks(text: str) -> str:
    """Return a sentence in one line; the lines of a table after it stay, and are set off."""
    sentence, *table = text.split("\n")
    return "\n".join([" ".join(sentence.split()), *(f"  {line}" for line in table)])


@contextmanager
def warnings_as_lines() -> Iterator[list[str]]:
    """Print each warning as a sentence on the standard error; yields the list of them."""
    said: list[str] = []

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        text = in_options(_without_breaks(str(message)))
        if text not in said:
            said.append(text)
            print(f"skprivacy: warning: {text}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        warnings.showwarning = show
        yield said


def say(options: argparse.Namespace, facts: dict[str, Any], lines: Iterable[str]) -> None:
    """Print the outcome of a command: as JSON for machines, or as lines.

    On the standard error where the standard output carries the table.
    """
    if options.json:
        print(json.dumps(_finite({**facts, "warnings": options.warnings}), indent=2))
        return
    target = getattr(options, "target", None)
    is_piped = target is not None and is_pipe(target)
    print("\n".join(lines), file=sys.stderr if is_piped else sys.stdout)


def _finite(value: Any) -> Any:
    """Return facts without infinity and NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if is_number and not isinstance(value, int):
        return float(value) if math.isfinite(value) else None
    return value


def listed(names: Iterable[Hashable]) -> str:
    """Return names as part of a sentence."""
    *most, last = [str(name) for name in names]
    return f"{', '.join(most)} and {last}" if most else last
