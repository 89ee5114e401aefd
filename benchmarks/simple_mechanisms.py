"""What the simple mechanisms keep, beside the optimum, and how long they take.

Run ``python benchmarks/simple_mechanisms.py``; it uses one core and takes some minutes. The tables
are means over random joints of iid uniform entries; times are of one design, in the same run.
"""

import argparse

import numpy as np
import pandas as pd

from skprivacy import compare_mechanisms

EPSILONS = (0.005, 0.02, 0.05, 0.1, 0.2, 0.5)
SOLVERS = ("watchdog", "subset_merging", "best_partition", "randomized_response", "optimal")
SIZES = ((4, 7), (4, 9), (5, 50), (5, 200))


def utilities(n, scope):
    """Print the mean normalised utility of every mechanism at 4 x 7, kl."""
    solvers = [*SOLVERS, *(["greedy_funnel"] if scope == "average" else [])]
    joints = np.random.default_rng(0).random((n, 4, 7))
    tables = [compare_mechanisms(joint, EPSILONS, solvers, scope=scope) for joint in joints]
    figures = pd.concat(tables).pivot_table("normalized_utility", "solver", "epsilon", sort=False)
    print(f"\nMean I(X;Y) / H(X) of {n} joints, 4 x 7, kl, {scope}:")
    print(figures.round(4).to_string())


def seconds():
    """Print how long a design takes, and its share of the time of "auto", up to 4 x 9."""
    print("\nSeconds of one design at epsilon = 0.005, kl, on average:")
    for shape in SIZES:
        joint = np.random.default_rng(0).random(shape)
        solvers = [*SOLVERS[:-1], "greedy_funnel", *(["auto"] if shape[1] < 10 else [])]
        table = compare_mechanisms(joint, [0.005], solvers, scope="average").set_index("solver")
        print("\n{} x {}:".format(*shape))
        for row in table.itertuples():
            took = f"{row.seconds:8.4f} s" if pd.isna(row.reason) else row.reason
            share = ""
            if "auto" in table.index:
                share = f"{row.seconds / table.loc['auto', 'seconds']:8.3f} of auto"
            print(f"  {row.Index:<20} {took}{share}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--joints", type=int, default=100)
    options = parser.parse_args()
    for scope in ("per_output", "average"):
        utilities(options.joints, scope)
    seconds()
