"""How much of a grid search could be shared between budgets, and what ``memory`` of cells gains.

Ten budgets are searched with five folds: the transformer, then a model. Nine of ten fits to a fold
read and encode the same rows again, or fit the same models of ``ScoreCells``. Printed, by CPU
time: the whole search, how much of it that is, and the search with ``ScoreCells(memory=...)``. Run
``python benchmarks/grid_search.py > docs/measured/grid_search.txt`` (a minute or two; ``--rows
500`` for less).
"""

import argparse
import cProfile
import pstats
import tempfile
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from skprivacy import PrivacyFunnelTransformer, ScoreCells, TreeCells

BUDGETS, N_FOLDS = np.geomspace(0.002, 0.1, 10).tolist(), 5

# Functions of `fit` that do the same for every budget: reading, encoding, the index, models.
INDEPENDENT = {
    "inputs_of", "check_index", "learn_alphabet", "learn_cell_columns", "coded_rows", "_learned",
}  # fmt: skip


def rows(n):
    """Return rows of numbers and categories, with a group and a target that depend on them."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    table["band"] = rng.choice([f"band {i}" for i in range(12)], n)
    table["town"] = rng.choice(["Aix", "Bonn", "Cork", "Delft"], n)
    leaning = table["a"] + table["band"].str[5:].astype(int) / 6 - 1
    table["s"] = np.where(rng.logistic(size=n) < leaning, "f", "m")
    return table, rng.logistic(size=n) < table["a"] + table["b"] + (table["town"] == "Bonn")


def seconds(call):
    """Return the CPU time of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def search(table, target, **asked):
    """Return the CPU time of a search with five folds, and without a refit."""
    funnel = PrivacyFunnelTransformer(sensitive="s", output="posterior", random_state=0, **asked)
    grid = {"privacyfunneltransformer__epsilon": BUDGETS}
    found = GridSearchCV(make_pipeline(funnel, GaussianNB()), grid, cv=N_FOLDS, refit=False)
    return seconds(lambda: found.fit(table, target))


def shared(table, target, **asked):
    """Return the CPU time of a search's fits, and the share that does not depend on the budget."""
    n, profile = len(table) - len(table) // N_FOLDS, cProfile.Profile(time.process_time)
    funnels = [PrivacyFunnelTransformer(e, sensitive="s", **asked) for e in BUDGETS]
    spent = seconds(lambda: [funnel.fit(table[:n], target[:n]) for funnel in funnels])
    profile.runcall(lambda: [funnel.fit(table[:n], target[:n]) for funnel in funnels])
    found = pstats.Stats(profile).stats
    whole = sum(own for _, _, own, _, _ in found.values())
    same = sum(total for (*_, name), (_, _, _, total, _) in found.items() if name in INDEPENDENT)
    return N_FOLDS * spent, same / whole


def main(n):
    """Print a line for each kind of table."""
    cells = {"utility": "target", "alphabet": ScoreCells()}
    kinds = {
        "a category": (["band", "s"], 10 * n, {}),
        "a number in bins": (["a", "s"], 10 * n, {}),
        "TreeCells": ([*"abcd", "band", "town", "s"], n, {"alphabet": TreeCells()}),
        "ScoreCells": ([*"abcd", "band", "town", "s"], n, cells),
    }
    print(f"{len(BUDGETS)} budgets, {N_FOLDS} folds; fits: the share of the transformer's fits;")
    print("shared: of what nine of ten budgets repeat, the most that sharing could gain")
    print(
        f"{'':18} {'rows':>7} {'seconds':>8} {'fits':>7} {'shared':>7} {'with memory':>12} gained"
    )
    for name, (columns, n_rows, asked) in kinds.items():
        table, target = rows(n_rows)
        table = table[columns]
        PrivacyFunnelTransformer(sensitive="s", **asked).fit(table[:500], target[:500])  # imports
        whole = search(table, target, **asked)
        spent, share = shared(table, target, **asked)
        most = (1 - 1 / len(BUDGETS)) * share * spent / whole
        print(f"{name:18} {n_rows:7,} {whole:8.1f} {spent / whole:7.2f} {most:7.2f}", end="")
        if name == "ScoreCells":
            with tempfile.TemporaryDirectory() as folder:
                again = search(table, target, **asked | {"alphabet": ScoreCells(memory=folder)})
            print(f" {again:12.1f} {1 - again / whole:6.2f}", end="")
        print(flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rows", type=int, default=4000, help="of cells; ten times more of values"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main(parser.parse_args().rows)
