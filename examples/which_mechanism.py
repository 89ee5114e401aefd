"""
Which mechanism should I use?
=============================

This example compares all mechanisms at the same budgets, on the 442 patients of scikit-learn's
diabetes data. Blood pressure in eight bands (X) is released; sex and age group, taken together
(S), must not be given away. For your own table, use
``--table rows.csv --sensitive sex --column education``.

What it shows:

- ``auto``, the default, keeps the most at every budget. Here it is the certified optimum: the
  column ``gap`` of the table proves that no mechanism keeps more.
- If noise is not acceptable (equal values must always be released as equal values), use
  ``best_partition``; if X has more than ten values, ``subset_merging``.
- ``randomized_response`` is the obvious approach. The value that stays riskiest despite the noise
  determines the noise for all values.
- If the budget has to hold only on average over outputs (released values) instead of for every
  one, the optimum keeps more, and so do merging and randomised response. Algorithm 1 and bounded
  lifts are made for budgets on every output, and gain nothing until the budget allows X itself.
"""

import argparse
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from skprivacy import compare_mechanisms

EPSILONS = np.geomspace(0.001, 0.3, 16)
STYLES = {
    "auto": ("black", "auto"),
    "algorithm1": ("tab:red", "Algorithm 1"),
    "lift_polytope": ("tab:blue", "bounded lifts"),
    "best_partition": ("tab:orange", "best partition"),
    "subset_merging": ("tab:green", "subset merging"),
    "greedy_funnel": ("tab:brown", "greedy funnel"),
    "watchdog": ("tab:olive", "watchdog"),
    "randomized_response": ("tab:purple", "randomised response"),
}
SCOPES = {"per_output": "Every output keeps the budget", "average": "The budget holds on average"}


def patients():
    """Return counts of sex and age group (rows) by bands of blood pressure (columns)."""
    table = load_diabetes(as_frame=True, scaled=False).data
    # The data set codes sex as 1 and 2 and does not say which is which.
    sex = "sex " + table["sex"].astype(int).astype(str)
    group = sex + np.where(table["age"] < 50, ", under 50", ", 50 or older")
    return pd.crosstab(group.rename("S"), pd.qcut(table["bp"], 8).rename("blood pressure"))


def rows_of(path, sensitive, column):
    """Return the counts of two columns of a CSV file."""
    table = pd.read_csv(path, usecols=[sensitive, column])
    return pd.crosstab(table[sensitive], table[column])


def draw(axis, table, scope):
    """Draw the utility that each mechanism keeps."""
    for solver, curve in table.groupby("solver", sort=False):
        color, label = STYLES[solver]
        width = 2.6 if solver == "auto" else 1.6
        axis.plot(
            curve["epsilon"], curve["normalized_utility"], color=color, lw=width, label=label
        )
    axis.set_xscale("log")
    axis.set_xlabel(r"budget $\varepsilon$ (nats)")
    axis.set_title(SCOPES[scope], fontsize="medium")
    axis.set_ylim(0, 1.02)
    axis.grid(alpha=0.3)


def draw_seconds(axis, tables):
    """Draw how long each mechanism takes for all budgets, in both scopes."""
    solvers = list(STYLES)
    for scope, marker in zip(tables, "os", strict=True):
        done = tables[scope][tables[scope]["reason"].isna()]
        seconds = done.groupby("solver")["seconds"].sum().reindex(solvers)
        colors = [STYLES[solver][0] for solver in solvers]
        axis.scatter(seconds, range(len(solvers)), c=colors, marker=marker, s=45)
        axis.scatter([], [], c="0.4", marker=marker, label=SCOPES[scope].lower())
    axis.set_yticks(range(len(solvers)), [STYLES[solver][1] for solver in solvers])
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.set_xlabel(f"seconds for {len(EPSILONS)} budgets")
    axis.set_title("How long the design takes", fontsize="medium")
    axis.grid(alpha=0.3, axis="x")
    axis.legend(fontsize="small", loc="lower right")


def parse_options():
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, help="a CSV file of your own")
    parser.add_argument("--sensitive", help="its column S")
    parser.add_argument("--column", help="its column X")
    parser.add_argument("--output", type=Path, default=Path(sys.argv[0]).parent / "output")
    options = parser.parse_args()
    if not bool(options.table) == bool(options.sensitive) == bool(options.column):
        parser.error("--table, --sensitive and --column go together")
    options.output.mkdir(parents=True, exist_ok=True)
    return options


def compare(counts, scope):
    """Return the table of all mechanisms that serve a scope, and print what they keep."""
    solvers = [name for name in STYLES if scope == "average" or name != "greedy_funnel"]
    table = compare_mechanisms(counts, EPSILONS, solvers, measure="kl", scope=scope, verbose=True)
    print(f"\n{SCOPES[scope]}: I(X;Y) / H(X)")
    shown = table.pivot(index="solver", columns="epsilon", values="normalized_utility")
    print(shown.reindex(solvers).iloc[:, ::3].rename(columns="{:.2g}".format).round(3))
    for solver, reason in table.groupby("solver")["reason"].first().dropna().items():
        print(f"{solver}: {reason}")
    return table


def main():
    """Compare, draw, save."""
    options = parse_options()
    if options.table is None:
        counts = patients()
    else:
        counts = rows_of(options.table, options.sensitive, options.column)
    print("{} groups of S, {} symbols of X".format(*counts.shape))
    tables = {scope: compare(counts, scope) for scope in SCOPES}
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
    for axis, (scope, table) in zip(axes[:2], tables.items(), strict=True):
        draw(axis, table, scope)
    axes[0].set_ylabel("I(X;Y) / H(X)")
    draw_seconds(axes[2], tables)
    handles = axes[1].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=8, frameon=False)
    figure.savefig(options.output / "which_mechanism.png", dpi=150)
    pd.concat(tables, names=["scope"]).to_csv(options.output / "which_mechanism.csv")
    print(f"\nWrote {options.output / 'which_mechanism.png'} and the figures as CSV")


if __name__ == "__main__":
    main()
