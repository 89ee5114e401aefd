"""``skprivacy ui``: print the address of the page, and open it in the browser."""

from __future__ import annotations

import argparse
import os
import secrets
import webbrowser
from pathlib import Path

from ..ui.server import serve


def ui(options: argparse.Namespace) -> None:
    """Serve the page until the process is told to stop."""

    def ready(address: str, folder: Path) -> None:
        print(f"{address}\nThe address works once. Ctrl-C ends the page.", flush=True)
        if options.browser:
            _open(address, folder)

    serve(options.file, options.port, ready)


def _open(address: str, folder: Path) -> None:
    """Open the browser by a file: other users can see the arguments of a process."""
    page = folder / f"open-{secrets.token_hex(4)}.html"
    with open(
        page,
        "x",
        encoding="utf-8",
        newline="\n",
        opener=lambda name, flags: os.open(name, flags, 0o600),
    ) as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={address}">')
    webbrowser.open_new_tab(page.as_uri())
