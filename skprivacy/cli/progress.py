"""A line every few seconds on the standard error that says what is being done."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread

from .._progress import watched

# Seconds between two lines, and on a terminal, where one replaces the other.
EVERY, EVERY_ON_TERMINAL = 3.0, 0.5

_START_OF_LINE = "\r\x1b[K"  # and nothing on it


class _Lines:
    """What is written, and when; a line that is on a terminal goes before another is written."""

    def __init__(self) -> None:
        self._what, self._began = "reading", time.monotonic()
        self._is_terminal, self._is_shown = sys.stderr.isatty(), False
        self._lock, self._is_over = Lock(), Event()

    def tell(self, what: str) -> None:
        """Take note of what is being done."""
        self._what = what

    def run(self) -> None:
        """Write lines until it is over."""
        while not self._is_over.wait(EVERY_ON_TERMINAL if self._is_terminal else EVERY):
            line = f"skprivacy: {self._what} ... {time.monotonic() - self._began:.0f} s"
            with self._lock:
                start, end = (_START_OF_LINE, "") if self._is_terminal else ("", "\n")
                self._is_shown = self._is_terminal
                print(start + line, end=end, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Make room for something else."""
        with self._lock:
            if self._is_shown:
                print(_START_OF_LINE, end="", file=sys.stderr, flush=True)
            self._is_shown = False

    def end(self) -> None:
        """Write no more."""
        self._is_over.set()
        self.clear()


# Those of the command that runs, if there are any.
_running: list[_Lines] = []


@contextmanager
def progress_lines(is_wanted: bool) -> Iterator[None]:
    """Write a line every few seconds while the block runs."""
    if not is_wanted:
        yield
        return
    lines = _Lines()
    _running.append(lines)
    thread = Thread(target=lines.run, daemon=True)
    thread.start()
    try:
        with watched(lines.tell):
            yield
    finally:
        lines.end()
        thread.join()
        _running.remove(lines)


def clear_progress() -> None:
    """Take the line of progress off the terminal, if there is one: something is to be said."""
    for lines in _running:
        lines.clear()
