"""What the commands print: progress, warnings and errors, in terms of options."""

from __future__ import annotations

import argparse
import io
import json
import math
import numbers
import os
import signal
import sys
import time
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from shutil import get_terminal_size
from threading import Event, Lock, Thread
from typing import Any, TextIO

from .._messages import (
    BinsOf,
    InPython,
    Mention,
    Message,
    Named,
    Owner,
    Parameter,
    Setting,
    aligned,
    message_of,
    watched,
)
from ..describing.face_value import compared_values, listed_swaps, never_released, rows_unchanged
from ..describing.numbers import limit
from ..describing.summary import plain
from ..engines.file_tables import PIPE, is_pipe
from ..fidelity import Fidelity

# Seconds between two looks at what is being done. On a terminal each look replaces the line.
LOOK = 0.25

# Seconds between two lines elsewhere: at least SOONEST; while nothing changes, a share of the time
# so far, at most LATEST.
SOONEST, LATEST, SHARE = 3.0, 9.0, 0.15


def is_due(now: float, last: float, is_new: bool) -> bool:
    """Return whether it is time for another line.

    now, last : seconds since the beginning, the latter those of the last line; is_new : whether
    something else is being done by now.
    """
    return now - last >= (SOONEST if is_new else min(max(SOONEST, SHARE * last), LATEST))


class _Lines:
    """What is written, and when; a line that is on a terminal goes before another is written."""

    def __init__(self) -> None:
        self.what, self._began = ["reading"], time.monotonic()  # the last one is being done
        self._is_terminal, self._is_shown = sys.stderr.isatty(), False
        self._lock, self.is_over = Lock(), Event()

    def run(self) -> None:
        """Write lines until it is over."""
        last, said = 0.0, ""
        while not self.is_over.wait(LOOK):
            now, what = time.monotonic() - self._began, self.what[-1]
            if not self._is_terminal and not is_due(now, last, what != said):
                continue
            line = f"skprivacy: {what} ... {now:.0f} s"
            with self._lock:
                self._is_shown = self._is_terminal
                text, end = (_whole_line(line), "") if self._is_terminal else (line, "\n")
                print(text, end=end, file=sys.stderr, flush=True)
            last, said = now, what

    def clear(self) -> None:
        """Make room for something else."""
        with self._lock:
            if self._is_shown:
                print(_whole_line(""), end="\r", file=sys.stderr, flush=True)
            self._is_shown = False


def _whole_line(text: str) -> str:
    """Return a text that replaces the line on any terminal, and is not broken into two lines."""
    width = get_terminal_size().columns - 1
    return f"\r{text[:width]:<{width}}"


# Those of the command that runs, if there are any.
_running: list[_Lines] = []


@contextmanager
def progress_lines(is_wanted: bool) -> Iterator[None]:
    """Write lines while the block runs."""
    if not is_wanted:
        yield
        return
    lines = _Lines()
    _running.append(lines)
    thread = Thread(target=lines.run, daemon=True)
    thread.start()
    try:
        with watched(lines.what.append):
            yield
    finally:
        lines.is_over.set()
        thread.join()
        lines.clear()
        _running.remove(lines)


def clear_progress() -> None:
    """Take the line of progress off the terminal, if there is one: something is to be said."""
    for lines in _running:
        lines.clear()


# What the command line says: the messages of the library in terms of options.


# What the library calls a parameter, the command line calls an option.
_SAME_NAMES = (
    "allow_leaking", "alphabet", "beside", "columns", "confidence", "edges", "epsilon",
    "force", "handle_unknown", "header", "max_categories", "max_cells", "max_factor",
    "max_shift", "max_outputs", "measure", "min_frequency", "names", "output", "person",
    "proportions", "record_ids", "remainder", "scope", "sensitive", "smoothing", "solver",
    "solver_options", "target", "utility",
)  # fmt: skip
OPTIONS = {
    **{name: f"--{name.replace('_', '-')}" for name in _SAME_NAMES},
    "n_bins": "--bins",
    "n_settings": "--settings",
    "secret_key": "--key-file",
    "utility_at_least": "--keep-utility",
}


def in_options(error: Exception | str) -> str:
    """Return what the library says, with options in place of parameters."""
    text = message_of(error) if isinstance(error, Exception) else error
    return text.rendered(_said) if isinstance(text, Message) else text


def _said(mention: Mention) -> str:
    """Return what a part of a message is called on the command line."""
    match mention:
        case Parameter(parameter) | Named(parameter) if parameter in OPTIONS:
            return OPTIONS[parameter]
        case Setting(parameter, value) if parameter in OPTIONS:
            return _setting(OPTIONS[parameter], value)
        case BinsOf(column, at_edges):
            return f"--edges {column}=A,B,..." if at_edges else f"--categorical {column}"
        case Owner():
            return "skprivacy"
        case InPython(_, elsewhere):
            return elsewhere if isinstance(elsewhere, str) else _said(elsewhere)
    return str(mention)


def _setting(option: str, value: object) -> str:
    if value is None:
        return f"{option} none"
    if isinstance(value, Mapping):  # budgets of several secrets
        return f"{option} {as_option(value)}"
    if value is False:
        return option.replace("--", "--no-")
    if value is True or value is ... or isinstance(value, list):
        return option
    return f"{option} {value:g}" if isinstance(value, numbers.Real) else f"{option} {value}"


def key_of(name: object) -> str:
    """Return a secret as it is written on the command line."""
    return "+".join(map(str, name)) if isinstance(name, tuple) else str(name)


def given(by_secret: Mapping[Any, Any]) -> Any:
    """Return what the library takes: of a secret without a name, what is there by itself."""
    return by_secret[None] if None in by_secret else dict(by_secret)


def budgets_of(mechanism: Any) -> dict[Any, float]:
    """Return the budget of each secret of a mechanism."""
    return {name: secret.epsilon for name, secret in mechanism.secrets.items()}


def by_key(budgets: Any) -> Any:
    """Return budgets for machines: a number for one secret without a name."""
    if not isinstance(budgets, Mapping):
        return budgets
    return budgets[None] if None in budgets else {key_of(n): x for n, x in budgets.items()}


def as_option(budgets: Any) -> str:
    """Return budgets as --epsilon takes them, rounded up: what is typed keeps no less."""
    found = by_key(budgets)
    if not isinstance(found, Mapping):
        return _budget(found)
    return ",".join(f"{key}={_budget(budget)}" for key, budget in found.items())


def _budget(budget: float) -> str:
    return "inf" if math.isinf(budget) else limit(budget)


def one_line(error: Exception) -> str:
    """Return what an error says, in one line."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return " ".join(f"{error.filename}: {error.strerror}".split())
    text = " ".join(in_options(error).split()) or type(error).__name__
    if isinstance(error, KeyError | MemoryError):
        text = f"{type(error).__name__}: {text}"
    return text


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
        # A sentence in one line; the lines of a table after it stay, indented.
        sentence, *table = in_options(message).split("\n")
        text = "\n".join([" ".join(sentence.split()), *(f"  {line}" for line in table)])
        if text not in said:
            said.append(text)
            clear_progress()
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
        clear_progress()
        print(json.dumps(plain({**facts, "warnings": options.warnings}), indent=2))
        return
    say_now(options, lines)


def say_now(options: argparse.Namespace, lines: Iterable[str]) -> None:
    """Print a part of the outcome before the rest is known; nothing where machines read it."""
    told = list(lines)
    if options.json or not told:
        return
    target = getattr(options, "target", None)
    is_piped = target is not None and is_pipe(target)
    clear_progress()
    print("\n".join(told), file=sys.stderr if is_piped else sys.stdout, flush=True)


@contextmanager
def while_somebody_reads() -> Iterator[None]:
    """Leave the block, without an error, when nobody reads the standard output any more."""
    try:
        yield
    except BrokenPipeError:  # whoever reads our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def face_value_lines(fidelity: Fidelity) -> list[str]:
    """Return what those who read released values as they are should know."""
    cells = compared_values(fidelity)
    rows = [("column", *cells.columns), *cells.itertuples(name=None)]
    lines = [f"{rows_unchanged(fidelity)}:", *(f"  {line}" for line in aligned(rows))]
    if fidelity.of_cells:  # whose names say nothing to a reader
        return lines
    if fidelity.pooled:
        lines.append(f"{fidelity.pooled:.1%} of the rows have rare values, which are pooled.")
    if swaps := listed_swaps(fidelity.swaps):
        lines += ["The swaps that concern most rows:", *(f"  {swap}" for swap in swaps)]
    return lines + never_released(fidelity)


def listed(names: Iterable[Hashable]) -> str:
    """Return names as part of a sentence."""
    *most, last = [str(name) for name in names]
    return f"{', '.join(most)} and {last}" if most else last


# Runs a command that was understood; an error becomes one line and an exit code.


# What tells a process to stop; no system has all of them.
_STOPPING = ("SIGTERM", "SIGHUP", "SIGBREAK")

_INTERRUPTED = 130
_TERMINATED = 143


def run(options: argparse.Namespace, is_closed: bool) -> int:
    """Run the command that the options name, and return its exit code.

    is_closed : whether the standard output is closed.
    """
    if is_closed and getattr(options, "target", None) == PIPE:
        print("skprivacy: error: the standard output is closed.", file=sys.stderr)
        return 1
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal may lack a letter of some value
        sys.stdout.reconfigure(errors="backslashreplace")
    module, name = options.run.split(":")
    command = getattr(import_module(f".{module}", __package__), name)
    # When told to stop, tidy up as after an error.
    for stopping in _STOPPING:
        if hasattr(signal, stopping):
            signal.signal(getattr(signal, stopping), lambda *_: sys.exit(_TERMINATED))
    try:
        with (
            while_somebody_reads(),
            progress_lines(getattr(options, "progress", False)),
            warnings_as_lines() as options.warnings,
        ):
            command(options)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:
        print(f"skprivacy: error: {one_line(error)}", file=sys.stderr)
        return 1
    return 0
