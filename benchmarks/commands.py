"""How many seconds of a processor the commands take on a table of ordinary size.

The table is made up, in the shape of a well-known one: 7,214 people, six groups of race, and four
columns with some 280 combinations, of which the rarest are pooled. Run
``python benchmarks/commands.py``; it takes a few minutes. Each command is a process of its own,
and its seconds are those of all its threads, the import of the library included.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

GROUPS = {
    "African-American": 0.512,
    "Caucasian": 0.340,
    "Hispanic": 0.088,
    "Other": 0.052,
    "Asian": 0.005,
    "Native American": 0.003,
}
COMMANDS = {
    "choose": ["choose", "people.csv"],
    "curve": ["curve", "people.csv"],
    "sanitize": ["sanitize", "people.csv", "out.csv", "--epsilon", "0.02"],
    "sanitize --report": [
        "sanitize", "people.csv", "out.csv", "--epsilon", "0.02", "--report", "out.html",
    ],
    "sanitize --report --no-curve": [
        "sanitize", "people.csv", "out.csv", "--epsilon", "0.02", "--report", "out.html",
        "--no-curve",
    ],
    "audit": ["audit", "people.csv", "--released", "age,priors"],
}  # fmt: skip
AIMS = {
    "choose": (10, 40),
    "curve": (15, 40),
    "sanitize --report": (20, 40),
}
CONFIDENCES = ("none", "0.95")


def people(n_rows, rng):
    """Return a table in which groups differ in age and in the number of priors."""
    race = rng.choice(len(GROUPS), n_rows, p=list(GROUPS.values()))
    older = np.array([0.0, 4.5, 1.5, 2.0, 3.0, 1.0])[race]
    age = np.clip(18 + rng.gamma(1.6, 9.0, n_rows) + older, 18, 90).astype(int)
    rate = np.array([4.4, 2.6, 2.4, 1.9, 2.2, 4.0])[race] * np.clip((age - 12) / 22, 0.3, 1.5)
    priors = rng.negative_binomial(0.7, 0.7 / (0.7 + rate))
    felony = rng.random(n_rows) < 0.58 + 0.09 * (race == 0) + 0.01 * np.minimum(priors, 10)
    male = rng.random(n_rows) < 0.77 + 0.05 * (race == 0)
    return pd.DataFrame({
        "race": np.array(list(GROUPS))[race],
        "age": age,
        "priors": np.minimum(priors, 38),
        "sex": np.where(male, "Male", "Female"),
        "charge": np.where(felony, "F", "M"),
    })  # fmt: skip


def seconds(command, folder):
    """Return the processor time of a command in a folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "skprivacy", *command], cwd=folder, check=True,
                   capture_output=True)  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def timed(name, confidence, alphabet, folder):
    """Return the seconds of one of the commands."""
    command = [*COMMANDS[name], "--sensitive", "race"]
    if name != "audit":
        command += ["--confidence", confidence, "--alphabet", alphabet]
    return seconds([*command, *(["--force"] if "sanitize" in name else [])], folder)


def main():
    """Print a line for each command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=7214)
    parser.add_argument("--alphabet", default="values")
    parser.add_argument("--commands", nargs="*", default=list(COMMANDS), choices=list(COMMANDS))
    parser.add_argument("--confidences", nargs="*", default=list(CONFIDENCES))
    options = parser.parse_args()
    print(f"{'seconds of CPU':<32}{'confidence':>10}{'taken':>8}{'aim':>6}")
    with tempfile.TemporaryDirectory() as folder:
        people(options.rows, np.random.default_rng(0)).to_csv(
            Path(folder, "people.csv"), index=False
        )
        for name in options.commands:
            for confidence in options.confidences if name != "audit" else [""]:
                taken = timed(name, confidence, options.alphabet, folder)
                aims = AIMS.get(name)
                aim = f"{aims[confidence != 'none']:6}" if aims else ""
                print(f"{name:<32}{confidence:>10}{taken:8.1f}{aim}", flush=True)


if __name__ == "__main__":
    main()
