"""How long a fit with cells takes, in multiples of one gradient boosting of the same table.

Run ``python benchmarks/cells.py``; it takes a minute or two. Tables are generated with a seed;
times are those of the processor, on one thread. "Plain" is a fit that does not learn how rows are
made up, but draws each column by itself. The boosting is `HistGradientBoostingClassifier`
with its defaults, which stops early: its iterations are printed. The last table is of targets of
several classes, without a limit on threads: CPU time is what is lost if they wait. For the record:

    python benchmarks/cells.py > docs/measured/cells.txt
"""

import argparse
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from skprivacy import PrivacyFunnelTransformer, ScoreCells, TreeCells

EPSILON = 0.05

# What columns are made of: integers of 13 values, floats that all differ, six categories.
KINDS = {
    "integers": lambda z: np.rint(2 * z).clip(-6, 6).astype(int),
    "floats": lambda z: z,
    "categories": lambda z: pd.Categorical.from_codes(
        np.digitize(z, [-2, -1, 0, 1, 2]), categories=list("abcdef")
    ),
}

# Cells, columns, and the kinds that they take turns in.
CASES = [
    ("TreeCells", 200, ("integers",)),
    ("TreeCells", 200, ("floats", "integers", "categories")),
    ("ScoreCells", 200, ("floats", "integers", "categories")),
    ("ScoreCells", 20, ("floats", "integers", "categories")),
]


def table(n_rows, n_columns, kinds):
    """Return columns that depend on five hidden numbers, and S and a target that do too."""
    rng = np.random.default_rng(0)
    hidden, columns = rng.normal(size=(n_rows, 5)), {}
    for j in range(n_columns):
        z = hidden @ rng.normal(size=5) + 2 * rng.normal(size=n_rows)
        columns[f"x{j}"] = KINDS[kinds[j % len(kinds)]](z)
    chances = 1 / (1 + np.exp(-np.stack([hidden[:, 0], hidden[:, 0] + hidden[:, 1]])))
    s, v = (rng.random((2, n_rows)) < chances).astype(int)
    return pd.DataFrame(columns), s, v


def seconds(call, *arguments, **options):
    """Return the processor time of a call: what else runs does not count."""
    began = time.process_time()
    call(*arguments, **options)
    return time.process_time() - began


def compared(name, rows, s, v):
    """Return the seconds of a boosting and of two fits, and the iterations of the boosting."""
    boosting = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    of_boosting = seconds(boosting.fit, rows, v)
    cells, options = TreeCells(), {}
    if name == "ScoreCells":
        cells, options = ScoreCells(), {"utility": "target"}
    funnel = PrivacyFunnelTransformer(EPSILON, alphabet=cells, random_state=0, **options)
    of_fit = seconds(funnel.fit, rows, v, sensitive_features=s)
    funnel.set_params(made_up="column_by_column")
    of_plain = seconds(funnel.fit, rows, v, sensitive_features=s)
    return of_boosting, of_fit, of_plain, boosting.n_iter_


def main(n_rows, n_columns):
    """Print a line for each case; n_columns : the most columns."""
    print(f"{n_rows:,} rows; seconds of the processor, on one thread\n")
    print(f"{'cells':<12}columns  {'kinds':<30}boosting  iterations     fit  ratio   plain  ratio")
    for name, columns, kinds in CASES:
        rows, s, v = table(n_rows, min(columns, n_columns), kinds)
        with threadpool_limits(1):
            of_boosting, *of_fits, n_iterations = compared(name, rows, s, v)
        of_case = f"{name:<12}{rows.shape[1]:7}  {', '.join(kinds):<30}{of_boosting:8.2f}"
        figures = "".join(f"{of_fit:8.2f}{of_fit / of_boosting:7.1f}" for of_fit in of_fits)
        print(f"{of_case}{n_iterations:12}{figures}", flush=True)


def several_classes(n_rows):
    """Print how long `ScoreCells` take with more classes of the target or groups of S."""
    rows, s, v = table(n_rows, 12, ("floats", "integers", "categories"))
    number = rows.pop("x0").to_numpy() + 2 * v
    five, ten = (np.digitize(number, np.quantile(number, np.arange(1, k) / k)) for k in (5, 10))
    cases = {"2 classes": (s, v), "5 classes": (s, five), "numbers": (s, number)}
    cases["2 classes, S of 10 groups"] = ten, v
    print(f"\nScoreCells of {n_rows:,} rows and {rows.shape[1]} columns\n")
    print(f"{'target':<28}seconds  ratio")
    of_two = None
    for name, (sensitive, target) in cases.items():
        funnel = PrivacyFunnelTransformer(
            EPSILON, utility="target", alphabet=ScoreCells(), random_state=0
        )
        of_fit = seconds(funnel.fit, rows, target, sensitive_features=sensitive)
        of_two = of_two or of_fit
        print(f"{name:<28}{of_fit:7.2f}{of_fit / of_two:7.1f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rows-of-classes", type=int, default=3000)
    parser.add_argument("--columns", type=int, default=200)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    main(options.rows, options.columns)
    several_classes(options.rows_of_classes)
