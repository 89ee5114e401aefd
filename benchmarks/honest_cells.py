"""Whether cells know the S of the rows they were learned from: fitted and new rows must be alike.

I(S;C) is measured before any channel, as the mean of many tables:

- S at random: there is nothing to know. In n rows and K cells, chance alone gives about
  (|S| - 1)(K - 1) / 2n; on the rows of ``fit`` it must be between half of that and twice that;
- S that depends on X, with noise: on the rows of ``fit`` within 10% of as many new rows.

``ScoreCells`` must keep both, however they are cut. Scores of models that have seen the row which
they score, and remember it, must fail both, or this would show nothing. (``TreeCells`` never see
S.) Run
``python benchmarks/honest_cells.py`` (minutes; ``--tables 5`` for less).
"""

import argparse
import os
import sys
import warnings
from dataclasses import replace
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small models wait for each other's threads

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

from skprivacy import PrivacyFunnelTransformer, ScoreCells
from skprivacy.fitting.fitted_estimator import fitted_of
from skprivacy.fitting.held_out import Symbols
from skprivacy.joint import count_pairs
from skprivacy.utilities import mutual_information


class ScoresInSample(ScoreCells):
    """Cells as they should not be: every model has seen the rows that it scores."""

    def learn(self, task):
        partition, _ = super().learn(task)
        seen = {name: _rolled(getattr(partition, name)) for name in ("target", "sensitive")}
        return replace(partition, **seen), None


def _rolled(scorer):
    """Return a scorer whose models of each fold are those of the fold before."""
    parts = tuple((part[-1], *part[:-1]) for part in scorer.parts)
    return replace(scorer, parts=parts, constants=(scorer.constants[-1], *scorer.constants[:-1]))


class Found(NamedTuple):
    """I(S;C) of fitted and of new rows, and by chance; whether that is as it should be."""

    fitted: float
    new: float
    chance: float
    passes: bool


# A model that remembers the rows that it was fitted to.
_REMEMBERS = DecisionTreeClassifier(min_samples_leaf=10, random_state=0)

# Along a line, cells are made of ranks among rows with similar scores of S: what a score knows of
# its own row hardly shows.
KINDS = {
    "scores, plane": ScoreCells(cut="plane"),
    "scores, line": ScoreCells(cut="line"),
    "scores in sample, plane": ScoresInSample(_REMEMBERS, cut="plane"),
}


def drawn(n, n_groups, by_chance, rng):
    """Return n rows of X, S and a target; S depends on X unless it is drawn by chance."""
    X = pd.DataFrame(rng.normal(size=(n, 4)).round(2), columns=list("abcd"))
    X["town"] = rng.choice(["Aix", "Bonn", "Cork", "Delft", "Exeter"], n)
    X["age"] = rng.integers(18, 90, n)
    leaning = 2 * X["a"] - X["b"] * (X["town"] == "Bonn") + 0.04 * (X["age"] - 54)
    level = rng.logistic(size=n) + (0 if by_chance else leaning)
    s = np.searchsorted(np.linspace(-2, 2, n_groups + 1)[1:-1], level)
    target = rng.logistic(size=n) < X["c"] + 0.5 * X["a"]
    return X, s, target.to_numpy()


def information(funnel, X, s):
    """Return I(S;C) of some rows."""
    fitted = fitted_of(funnel)
    columns = {name: X[name] for name in fitted.x_names}
    counts = count_pairs(s, Symbols.of(fitted, list(columns)).of_table(columns), None)
    return mutual_information(counts / counts.sum())


def compared(cells, n, n_groups, by_chance, seed):
    """Return I(S;C) of fitted rows, of as many new ones, and what chance alone would give."""
    rng = np.random.default_rng([seed, n_groups, by_chance])
    X, s, target = drawn(n, n_groups, by_chance, rng)
    new_X, new_s, _ = drawn(n, n_groups, by_chance, rng)
    funnel = PrivacyFunnelTransformer(utility="target", alphabet=cells, epsilon=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        funnel.fit(X, target, sensitive_features=s)
    chance = (n_groups - 1) * (len(funnel.cells_) - 1) / 2 / n
    return information(funnel, X, s), information(funnel, new_X, new_s), chance


def mean_of_tables(cells, n, n_groups, by_chance, n_tables):
    """Return the means over tables, and whether cells pass."""
    of_tables = [compared(cells, n, n_groups, by_chance, seed) for seed in range(n_tables)]
    fitted, new, chance = np.mean(of_tables, axis=0)
    passes = 0.5 * chance <= fitted <= 2 * chance if by_chance else abs(fitted - new) <= 0.1 * new
    return Found(fitted, new, chance, bool(passes))


def main():
    """Print a line for each kind of cells, and fail where one is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=50)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--groups", type=int, default=2)
    options = parser.parse_args()
    print(f"I(S;C) in nats, mean of {options.tables} tables of {options.rows:,} rows, ", end="")
    print(f"{options.groups} groups\n{'':<40}{'fitted':>8}{'new':>8}{'by chance':>11}")
    wrong = []
    for by_chance in (True, False):
        for name, cells in KINDS.items():
            given = options.rows, options.groups, by_chance, options.tables
            found = mean_of_tables(cells, *given)
            line = f"S {'at random' if by_chance else 'from X'}, {name}"
            verdict = "passes" if found.passes else "fails"
            figures = f"{found.fitted:>8.4f}{found.new:>8.4f}{found.chance:>11.4f}"
            print(f"{line:<40}{figures}  {verdict}", flush=True)
            if found.passes == isinstance(cells, ScoresInSample):
                wrong.append(f"{line}: {verdict}")
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main()
