"""Runs a command that was understood; an error becomes one line and an exit code."""

import argparse
import io
import signal
import sys
from importlib import import_module

from ..files.locations import PIPE
from .progress import progress_lines
from .words import one_line, warnings_as_lines, while_somebody_reads

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
