"""Lines on the standard error that say what is being done, every few seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import get_terminal_size
from threading import Event, Lock, Thread

from .._progress import watched

# Seconds between two looks at what is being done. On a terminal each look replaces the line.
LOOK = 0.25

# Seconds between two lines elsewhere: at least so many, and while nothing changes, a share of the
# time so far, up to so many.
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
        self._what, self._began = "reading", time.monotonic()
        self._is_terminal, self._is_shown = sys.stderr.isatty(), False
        self._lock, self._is_over = Lock(), Event()

    def tell(self, what: str) -> None:
        """Take note of what is being done."""
        self._what = what

    def run(self) -> None:
        """Write lines until it is over."""
        last, said = 0.0, ""
        while not self._is_over.wait(LOOK):
            now, what = time.monotonic() - self._began, self._what
            if self._is_terminal or is_due(now, last, what != said):
                self._write(f"skprivacy: {what} ... {now:.0f} s")
                last, said = now, what

    def _write(self, line: str) -> None:
        with self._lock:
            self._is_shown = self._is_terminal
            text, end = (_whole_line(line), "") if self._is_terminal else (line, "\n")
            print(text, end=end, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Make room for something else."""
        with self._lock:
            if self._is_shown:
                print(_whole_line(""), end="\r", file=sys.stderr, flush=True)
            self._is_shown = False

    def end(self) -> None:
        """Write no more."""
        self._is_over.set()
        self.clear()


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
