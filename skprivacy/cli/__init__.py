"""The command line: thin commands over the library.

Exit codes: 0, done; 1, failed, with the reason in one line on standard error; 2, the command was
not understood.
"""

import os
import sys
from collections.abc import Sequence
from typing import TextIO

from .arguments import parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    # Closed streams are None: drop what would be printed there.
    is_closed = sys.stdout is None
    sys.stdout, sys.stderr = sys.stdout or _nowhere(), sys.stderr or _nowhere()
    options = parser().parse_args(arguments)
    from .messages import run

    return run(options, is_closed)


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")
