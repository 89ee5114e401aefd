"""How long a newcomer waits from a clone to the release of a table of their own.

Run ``python benchmarks/first_release.py FILE --sensitive COLUMN --columns COLUMNS``. It does what
the README says, in a new folder: it clones, makes a virtual environment, installs, runs the demo,
and releases the table with a report. What it prints are seconds of a clock.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


def commands(options):
    """Return what is done, and the commands, as they are typed in the clone."""
    python, skprivacy = ".venv/bin/python", ".venv/bin/skprivacy"
    table = str(Path(options.table).resolve())
    release = ["sanitize", table, "mine.csv", "--sensitive", options.sensitive]
    release += ["--columns", options.columns, "--epsilon", "0.02", "--report", "mine.html"]
    return {
        "make a virtual environment": [sys.executable, "-m", "venv", ".venv"],
        "install": [python, "-m", "pip", "install", "-q", ".[files]"],
        "run the demo": [skprivacy, "demo"],
        f"release {Path(table).name}, with a report": [skprivacy, *release],
    }


def main():
    """Print the seconds of each step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table")
    parser.add_argument("--sensitive", required=True)
    parser.add_argument("--columns", required=True)
    options = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "-q", ROOT, folder], check=True)
        for what, command in commands(options).items():
            start = time.perf_counter()
            said = subprocess.check_output(
                command, cwd=folder, stderr=subprocess.DEVNULL, text=True
            )
            print(f"{what:<40} {time.perf_counter() - start:5.0f} s", flush=True)
        minutes = (time.perf_counter() - began) / 60
    print(f"{'from a clone to a release':<40} {minutes:5.1f} min\n\n{said.splitlines()[0]}")


if __name__ == "__main__":
    main()
