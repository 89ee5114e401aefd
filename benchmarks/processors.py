"""Whether designs with a confidence keep the same on every processor.

numpy and OpenBLAS choose their routines by what a processor can do, and round differently. Twenty
random joints are designed for with the routines that this machine would choose, and with those of
other processors, each in a process of its own. What a design keeps should agree to 1e-3.

Run ``python benchmarks/processors.py`` (ten minutes; ``--utilities guess`` for less). It prints
the designs whose shares differ by more than 1e-3, and the largest difference of each utility.
"""

import argparse
import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd

from skprivacy import design_mechanism
from skprivacy.utilities import Distortion, Target

# Groups, symbols and rows; every third one has another measure, every fourth the other scope.
SIZES = [(2, 5, 500), (2, 5, 2000), (2, 9, 500), (2, 16, 1000), (2, 12, 10_000), (3, 5, 1000),
         (3, 8, 3000), (3, 10, 10_000), (4, 7, 1000), (4, 7, 3000), (4, 7, 10_000), (5, 8, 5000),
         (5, 16, 3000), (5, 16, 10_000), (2, 8, 1000), (3, 6, 2000), (2, 6, 5000), (4, 5, 500),
         (2, 10, 3000), (3, 12, 5000)]  # fmt: skip
BUDGETS = [("kl", 0.02), ("l1", 0.2), ("max_lift", 0.2)]
TWO_SECRETS, BESIDE = {14, 15, 17}, {16, 18, 19}
UTILITIES = ["guess", "positions", "mutual_information", "target"]
PROCESSORS = ["Haswell", "Zen", "SandyBridge", "Nehalem", "Prescott"]


def tasks():
    """Yield tables, budgets, other arguments, and P(V|X) of a target."""
    rng = np.random.default_rng(33)
    for i, (n_s, n_x, n) in enumerate(SIZES):
        given_s = 0.5 * rng.dirichlet(np.full(n_x, 1.5), size=n_s)
        joint = given_s + 0.5 * rng.dirichlet(np.full(n_x, 2.0))
        joint *= rng.dirichlet(np.full(n_s, 4.0))[:, None]
        counts = rng.multinomial(n, (joint / joint.sum()).ravel()).reshape(n_s, n_x)
        target = rng.dirichlet(np.ones(2), size=n_x).T
        measure, epsilon = BUDGETS[i % 3]
        asked = {"measure": measure, "scope": "average" if i % 4 == 3 else "per_output"}
        if i in TWO_SECRETS:
            shares = 0.4 + 0.2 * np.sin(np.arange(n_x) + i)
            other = rng.binomial(counts.sum(axis=0), shares)
            tables = {"a": counts, "b": np.vstack([other, counts.sum(axis=0) - other])}
            yield tables, {"a": epsilon, "b": 1.5 * epsilon}, asked, target
        elif i in BESIDE:
            yield counts, 3 * epsilon, {**asked, "groups": list(np.arange(n_x) % 2)}, target
        else:
            yield counts, epsilon, asked, target


def kept(names):
    """Return what each design keeps."""
    warnings.simplefilter("ignore")
    found = {}
    for i, (tables, budget, asked, p_v_given_x) in enumerate(tasks()):
        utilities = {"positions": Distortion("positions"), "target": Target(p_v_given_x)}
        for name in names:
            utility = utilities.get(name, name)
            design = design_mechanism(tables, budget, confidence=0.95, utility=utility, **asked)
            found[f"{i} {name}"] = float(design.normalized_utility)
    return found


def settings():
    """Yield the environment of each choice of routines."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    features = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    wide = [name for name in features if "512" in name or name == "X86_V4"]
    yield "as it is", {}
    for core in PROCESSORS:
        disabled = wide if core in ("Haswell", "Zen") else features
        yield core, {"OPENBLAS_CORETYPE": core, "NPY_DISABLE_CPU_FEATURES": " ".join(disabled)}


def main():
    """Print how much the shares differ."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--utilities", nargs="+", choices=UTILITIES, default=UTILITIES)
    parser.add_argument("--here", action="store_true", help="print what is kept, as JSON")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(kept(options.utilities)))
        return
    columns = {}
    for name, environment in settings():
        command = [sys.executable, __file__, "--here", "--utilities", *options.utilities]
        environment = {key: value for key, value in environment.items() if value}
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env=os.environ | environment
        )
        columns[name] = json.loads(done.stdout)
    table = pd.DataFrame(columns)
    spread = table.max(axis=1) - table.min(axis=1)
    print(table[spread > 1e-3].round(4).to_string())
    print(spread.groupby(spread.index.str.partition(" ").get_level_values(2)).max().round(5))


if __name__ == "__main__":
    main()
