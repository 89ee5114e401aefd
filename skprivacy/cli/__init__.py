"""The command line: thin commands over the library.

Exit codes: 0, done; 1, it could not be done, for a reason that one line on the standard error
tells; 2, the command was not understood.
"""

import os
import signal
import sys
from collections.abc import Sequence
from typing import TextIO

from ..files.locations import PIPE
from .arguments import parser
from .words import one_line, warnings_as_lines

_INTERRUPTED = 130
_TERMINATED = 143


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    # Closed streams are None; what would be said there is not said.
    is_closed = sys.stdout is None
    sys.stdout, sys.stderr = sys.stdout or _nowhere(), sys.stderr or _nowhere()
    options = parser().parse_args(arguments)
    if is_closed and getattr(options, "target", None) == PIPE:
        print("skprivacy: error: the standard output is closed.", file=sys.stderr)
        return 1
    # Told to stop, tidy up as after an error.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(_TERMINATED))
    try:
        with warnings_as_lines() as options.warnings:
            options.run(options)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:  # whoever reads our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        print(f"skprivacy: error: {one_line(error)}", file=sys.stderr)
        return 1
    return 0


def _nowhere() -> TextIO:
    return open(os.devnull, "w")
