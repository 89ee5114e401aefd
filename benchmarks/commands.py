"""How many seconds of a processor the commands take on tables of ordinary size.

The tables are made up, in the shape of well-known ones: 7,214 people, six groups of race, and four
columns with some 280 combinations, of which the rarest are pooled; and 48,842 workers, two sexes,
and two columns with 225 combinations. Run ``python benchmarks/commands.py``; it takes a few
minutes. Each command is a process of its own, and its seconds are those of all its threads, the
import of the library included. With ``--before CLONE``, each command is also timed with the
package in another clone.
"""

import argparse
import os
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
# Commands that find a mistake in their arguments.
MISTAKES = {
    "no such file": ["sanitize", "nothere.csv", "out.csv", "--epsilon", "0.1"],
    "no such column": ["sanitize", "workers.csv", "out.csv", "--epsilon", "0.1", "--columns", "x"],
    "an output that exists": ["sanitize", "workers.csv", "people.csv", "--epsilon", "0.1"],
    "a bad value": ["sanitize", "workers.csv", "out.csv", "--epsilon", "x"],
    "a missing option": ["choose", "workers.csv", "--max-factor", "2"],
}
WORKERS = {
    f"workers: {name}": [part.replace("people", "workers") for part in COMMANDS[name]]
    for name in ("choose", "curve", "sanitize", "sanitize --report")
}
AIMS = {
    "choose": (10, 40),
    "curve": (15, 40),
    "sanitize --report": (20, 40),
    "workers: choose": (10, 20),
    "workers: curve": (10, 25),
    "workers: sanitize --report": (15, 30),
    **dict.fromkeys(MISTAKES, (0.2,)),
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


def workers(n_rows, rng):
    """Return a table in which sexes differ in occupation, and occupations in education."""
    is_male = rng.random(n_rows) < 0.668
    liking = rng.gamma(1.0, size=(2, 15))
    occupation = np.array([rng.choice(15, p=liking[i] / liking[i].sum()) for i in 1 * is_male])
    education = np.clip(rng.normal(3 + 0.7 * occupation, 2.5), 0, 14).astype(int)
    return pd.DataFrame({
        "sex": np.where(is_male, "Male", "Female"),
        "education": np.array([f"education {c}" for c in "abcdefghijklmno"])[education],
        "occupation": np.array([f"occupation {c}" for c in "abcdefghijklmno"])[occupation],
    })  # fmt: skip


def seconds(command, folder, package=None):
    """Return the processor time of a command in a folder; package : a clone to import it from."""
    place = {} if package is None else {"PYTHONPATH": str(Path(package).resolve())}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-m", "skprivacy", *command], cwd=folder, check=False,
                          capture_output=True, env=os.environ | place)  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.returncode


def arguments(name, confidence, alphabet):
    """Return the arguments of one of the commands."""
    if name in MISTAKES:
        return [*MISTAKES[name], "--sensitive", "sex"]
    if name == "audit":
        return [*COMMANDS[name], "--sensitive", "race"]
    force = ["--force"] if "sanitize" in name else []
    design = ["--confidence", confidence, *force]
    if name in WORKERS:
        return [*WORKERS[name], "--sensitive", "sex", *design]
    return [*COMMANDS[name], "--sensitive", "race", "--alphabet", alphabet, *design]


def confidences(name, asked):
    """Return the confidences to time a command with."""
    if name in MISTAKES or name == "audit":
        return [""]
    return asked


def line(name, confidence, folder, options):
    """Time a command, and return a line of the table."""
    command = arguments(name, confidence, options.alphabet)
    taken, code = seconds(command, folder)
    assert (code != 0) == (name in MISTAKES), name
    aims = AIMS.get(name)
    aim = f"{aims[confidence not in ('', 'none')]:6}" if aims else ""
    text = f"{name:<32}{confidence:>10}{taken:8.{1 if taken > 1 else 2}f}{aim}"
    if options.before:
        before, _ = seconds(command, folder, options.before)
        text = f"{text:56}{before:10.2f}{before / taken:8.1f}"
    return text


def main():
    """Print a line for each command."""
    names = [*MISTAKES, *WORKERS, *COMMANDS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=7214)
    parser.add_argument("--alphabet", default="values")
    parser.add_argument("--commands", nargs="*", default=names, choices=names)
    parser.add_argument("--confidences", nargs="*", default=list(CONFIDENCES))
    parser.add_argument("--before", metavar="CLONE")
    options = parser.parse_args()
    before = f"{'before':>10}{'ratio':>8}" if options.before else ""
    print(f"{'seconds of CPU':<32}{'confidence':>10}{'taken':>8}{'aim':>6}{before}")
    with tempfile.TemporaryDirectory() as folder:
        tables = {"people.csv": people(options.rows, np.random.default_rng(0)),
                  "workers.csv": workers(48_842, np.random.default_rng(0))}  # fmt: skip
        for name, table in tables.items():
            table.to_csv(Path(folder, name), index=False)
        for name in options.commands:
            for confidence in confidences(name, options.confidences):
                print(line(name, confidence, folder, options), flush=True)


if __name__ == "__main__":
    main()
