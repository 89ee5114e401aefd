"""Files with a secret key: made and read. The key itself is never shown."""

import argparse
import os
import re
import secrets
import stat
from pathlib import Path

from .._warnings import warn
from ..exceptions import PrivacyLeakWarning
from ..files.locations import PIPE, has_modes
from .words import say

_N_BYTES = 32
_MOST_FILE_BYTES = 1 << 10
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_KEY = re.compile(rb"\s*((?:[0-9a-fA-F]{2}){16,})\s*")


def key(options: argparse.Namespace) -> None:
    """Write a new key to a file that only this user can read, where files have modes."""
    write_key(options.file)
    readers = "only you" if has_modes() else "whoever may read the files of its folder"
    lines = [
        f"{options.file}: a new key, which {readers} can read.",
        "Keep it: without it, rows that are released again get new values. Keep it secret: with "
        "it and the ids, the noise can be undone.",
    ]
    say(options, {"key_file": options.file}, lines)


def write_key(path: str) -> None:
    """Write a new key to a file that does not exist yet."""
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


def read_key(path: str) -> bytes:
    """Return the key in a file: hexadecimal digits, at least 32 of them."""
    with open(path, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        text = file.read(_MOST_FILE_BYTES + 1)
    found = _KEY.fullmatch(text)
    if found is None or len(text) > _MOST_FILE_BYTES:
        raise ValueError(
            f"{path} does not hold a key: it needs an even number of hexadecimal digits on one "
            f"line, at least 32, and nothing else. `skprivacy key FILE` makes one."
        )
    if has_modes() and stat.S_ISREG(mode) and mode & _OTHERS:
        warn(
            f"{path} is open to other users, who could undo the noise with it: run chmod 600 "
            f"{path}",
            PrivacyLeakWarning,
        )
    return bytes.fromhex(found[1].decode())
