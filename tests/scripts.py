"""Runs a script as `python script.py` would, without waiting for another Python to start."""

import runpy
import sys
import warnings
from pathlib import Path
from unittest.mock import patch

import matplotlib.pyplot as plt
from sklearn import config_context

ROOT = Path(__file__).parents[1]


def changed(path, folder, old, new):
    """Return the path of a copy of a script in which something that takes long is shorter."""
    path, text = ROOT / path, (ROOT / path).read_text()
    assert text.count(old) >= 1
    copy = Path(folder, path.name)
    copy.write_text(text.replace(old, new))
    return copy


def run_script(path, *arguments, style=None, figure=None):
    """Run a script, which leaves no settings behind, and save its last figure if told where."""
    path = ROOT / path
    with (
        patch.object(sys, "argv", [str(path), *map(str, arguments)]),
        patch.object(sys, "path", [str(path.parent), *sys.path]),
        plt.rc_context((style or {}) | {"backend": "agg"}),
        warnings.catch_warnings(),
        config_context(),
    ):
        try:
            runpy.run_path(str(path), run_name="__main__")
            if figure is not None:
                plt.gcf().savefig(figure)
        finally:
            plt.close("all")
