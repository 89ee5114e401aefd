"""The notebooks among the examples; the other scripts are run by tests/test_package.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("quickstart.py", "Privacy report: band released, sex protected"),
        ("pipelines.py", "{'privacyfunneltransformer__epsilon': 0.02}"),
        ("choosing_epsilon.py", "at epsilon = 0, 58.7% of H(X) is kept"),
        ("large_data.py", "200,000 rows, epsilon = 0.01, leakage 0.0100"),
    ],
)
def test_the_notebooks_run_without_warnings(script, text, tmp_path):
    command = [sys.executable, "-W", "error", EXAMPLES / script]
    # Without a window, and without waiting for cores that other tests use.
    environment = os.environ | {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=120, cwd=tmp_path,
        env=environment,
    )  # fmt: skip
    assert text in run.stdout
    assert not list(tmp_path.iterdir())  # they write nothing
