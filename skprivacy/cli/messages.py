"""What commands print: results, progress, warnings and errors, in terms of options."""

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
from collections.abc import Iterable, Iterator, Mapping
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
    message_of,
    watched,
)
from ..engines.file_tables import PIPE, is_pipe
from ..recipes import OPTIONS
from .checks import check

# Seconds between two updates of the progress line on a terminal.
LOOK = 0.25

# Seconds between two lines elsewhere: at least SOONEST; while nothing changes, a share of the time
# so far, at most LATEST.
SOONEST, LATEST, SHARE = 3.0, 9.0, 0.15


def is_due(now: float, last: float, is_new: bool) -> bool:
    """Whether it is time for another line.

    now, last : seconds from the start until now, and until the last line; is_new : whether the
    message has changed since.
    """
    return now - last >= (SOONEST if is_new else min(max(SOONEST, SHARE * last), LATEST))


class _Lines:
    """Prints progress lines; on a terminal, each replaces the last one."""

    def __init__(self) -> None:
        self.what, self._began = ["reading"], time.monotonic()  # messages, the last one current
        self._is_terminal, self._is_shown = sys.stderr.isatty(), False
        self._lock, self.is_over = Lock(), Event()

    def run(self) -> None:
        """Print lines until it is over."""
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
        """Remove the line from the terminal."""
        with self._lock:
            if self._is_shown:
                print(_whole_line(""), end="\r", file=sys.stderr, flush=True)
            self._is_shown = False


def _whole_line(text: str) -> str:
    """Return a text that overwrites a line of the terminal, and fits on it."""
    width = get_terminal_size().columns - 1
    return f"\r{text[:width]:<{width}}"


# The progress lines of the running command, if any.
_running: list[_Lines] = []


@contextmanager
def progress_lines(is_wanted: bool) -> Iterator[None]:
    """Print progress while the block runs."""
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
    """Remove the progress line from the terminal, before something else is printed."""
    for lines in _running:
        lines.clear()


# Messages of the library, in terms of options.


def in_options(error: Exception | str) -> str:
    """Return a message of the library with options in place of parameters."""
    text = message_of(error) if isinstance(error, Exception) else error
    return text.rendered(_rendered) if isinstance(text, Message) else text


def _rendered(mention: Mention) -> str:
    """Return the wording of a mention on the command line."""
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
            return elsewhere if isinstance(elsewhere, str) else _rendered(elsewhere)
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
    """Return the name of a secret on the command line."""
    return "+".join(map(str, name)) if isinstance(name, tuple) else str(name)


def given(by_secret: Mapping[Any, Any]) -> Any:
    """Return a dict by secrets as the library takes it: a bare value for an unnamed secret."""
    return by_secret[None] if None in by_secret else dict(by_secret)


def budgets_of(mechanism: Any) -> dict[Any, float]:
    """Return the budget of each secret of a mechanism."""
    return {name: secret.epsilon for name, secret in mechanism.secrets.items()}


def by_key(budgets: Any) -> Any:
    """Return budgets for machines, by names on the command line; a number for one secret."""
    if not isinstance(budgets, Mapping):
        return budgets
    return budgets[None] if None in budgets else {key_of(n): x for n, x in budgets.items()}


def as_option(budgets: Any) -> str:
    """Return budgets as --epsilon takes them, rounded up so that they keep no less utility."""
    from ..describing.numbers import limit

    def text(budget: float) -> str:
        return "inf" if math.isinf(budget) else limit(budget)

    found = by_key(budgets)
    if not isinstance(found, Mapping):
        return text(found)
    return ",".join(f"{key}={text(budget)}" for key, budget in found.items())


def one_line(error: Exception) -> str:
    """Return the message of an error, in one line."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return " ".join(f"{error.filename}: {error.strerror}".split())
    text = " ".join(in_options(error).split()) or type(error).__name__
    if isinstance(error, KeyError | MemoryError):
        text = f"{type(error).__name__}: {text}"
    return text


@contextmanager
def warnings_as_lines() -> Iterator[list[str]]:
    """Print each warning as a sentence on standard error; yields the list of warnings."""
    said: list[str] = []

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        # The sentence on one line; lines of a table after it are indented.
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
    """Print the result of a command: facts as JSON for machines, or lines.

    Lines go to standard error if standard output carries the table.
    """
    if options.json:
        from ..describing.summary import plain

        clear_progress()
        print(json.dumps(plain({**facts, "warnings": options.warnings}), indent=2))
        return
    say_now(options, lines)


def say_now(options: argparse.Namespace, lines: Iterable[str]) -> None:
    """Print lines before the rest of the result is known; nothing with --json."""
    text = "\n".join(lines)
    if options.json or not text:
        return
    target = getattr(options, "target", None)
    is_piped = target is not None and is_pipe(target)
    clear_progress()
    print(text, file=sys.stderr if is_piped else sys.stdout, flush=True)


@contextmanager
def while_somebody_reads() -> Iterator[None]:
    """Leave the block without an error if the reader of standard output closes it."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_INTERRUPTED, _TERMINATED = 130, 143


def run(options: argparse.Namespace, is_closed: bool) -> int:
    """Run a command and return its exit code; an error is printed as one line.

    is_closed : whether standard output is closed.
    """
    if is_closed and getattr(options, "target", None) == PIPE:
        print("skprivacy: error: the standard output is closed.", file=sys.stderr)
        return 1
    if isinstance(sys.stdout, io.TextIOWrapper):  # terminals may lack some characters
        sys.stdout.reconfigure(errors="backslashreplace")
    # When told to stop, clean up as after an error. No system has all of these signals.
    for stopping in ("SIGTERM", "SIGHUP", "SIGBREAK"):
        if hasattr(signal, stopping):
            signal.signal(getattr(signal, stopping), lambda *_: sys.exit(_TERMINATED))
    try:
        with (
            while_somebody_reads(),
            progress_lines(getattr(options, "progress", False)),
            warnings_as_lines() as options.warnings,
        ):
            check(options)
            # This imports the library, which takes seconds; errors above do not wait for it.
            module, name = options.run.split(":")
            getattr(import_module(f".{module}", __package__), name)(options)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:
        print(f"skprivacy: error: {one_line(error)}", file=sys.stderr)
        return 1
    return 0
