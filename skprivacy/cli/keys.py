"""The command that makes a secret key."""

from __future__ import annotations

import argparse
import os
import secrets
from pathlib import Path

from ..engines.file_tables import PIPE, has_modes
from .messages import say

_N_BYTES = 32


def key(options: argparse.Namespace) -> None:
    """Write a new key to a file that, on systems with file modes, only this user can read."""
    path = options.file
    if path == PIPE:
        raise ValueError("A key is never printed: name a file.")
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise FileExistsError(
            f"{path!r} already exists, and a key is never replaced: name another file."
        ) from None
    try:
        with os.fdopen(handle, "w", encoding="ascii", newline="\n") as file:
            file.write(secrets.token_hex(_N_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        Path(path).unlink()
        raise
    readers = "only you" if has_modes() else "everybody who can read files in its folder"
    lines = [
        f"{path}: a new key, which {readers} can read.",
        "Keep it: without it, rows that are released again get new values. Keep it secret: with "
        "it and the ids, the noise can be undone.",
    ]
    say(options, {"key_file": path}, lines)
