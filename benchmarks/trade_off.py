"""Ways to release a table, side by side: what a model makes of it, and what an attacker finds out.

For each table, three splits into rows to fit, rows to choose by, and rows that figures are about.
Models are trained on released rows to fit, and tested on the others:

- AUC, accuracy: of a model of V, tested on released rows and on raw ones ("-": it cannot read
  them). It is gradient boosting or logistic regression, whichever is better on rows to choose by;
- attacker: AUC and balanced accuracy of a guess of S, by the better of the same two classifiers;
- distance: the largest difference in how often any decision about a released row can select the
  two groups of S, at most, with a confidence of 95%: by the method's own certificate, and by that
  of the other method that has one.

Then, for each limit of what the attacker may get: of each method the setting with the best model
that keeps the limit, both judged by the rows to choose by. Figures are about the report's rows.

Run ``python benchmarks/trade_off.py PATH_TO_ADULT_CSV`` (ten minutes; less with ``--quick``, which
takes fewer rows and settings).
``--aif360-python`` and ``--datasynthesizer-python`` name the Pythons of environments that have
these packages.
"""

import argparse
import os
import sys
import time
import warnings
from functools import partial

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small models wait for each other's threads

import numpy as np
import pandas as pd
from released_rows import scores
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from trade_off_methods import METHODS, DidNotRunError, Options
from trade_off_tables import (
    adult,
    breast_cancer,
    chance_of_s,
    chance_of_v,
    diabetes,
    draw_people,
    generated,
)

N_SPLITS = 3

# Settings were changed once after a look at splits 0 to 2, those of --quick.
FIRST_SPLIT = {True: 0, False: 10}
LIMITS = (0.55, 0.6, 0.65)

# Differences below this, or below two standard errors over splits, are ties.
LEAST_DIFFERENCE = 0.005

OURS = ("cells, symbol", "cells, label", "cells, for V")

COLUMNS = {"auc": "AUC", "accuracy": "acc.", "raw auc": "raw AUC", "raw accuracy": "raw acc.",
           "attacker": "attacker", "balanced": "bal.acc.", "certified": "distance",
           "other": "by other"}  # fmt: skip


def by_place(release, y):
    """Return the scores of both classifiers for each place: released or raw, choose or report."""
    places = {}
    if release.choose is not None:
        places |= {"choose": release.choose, "report": release.report}
    if release.raw is not None:
        places |= {"raw choose": release.raw[0], "raw report": release.raw[1]}
    ends = np.cumsum([len(table) for table in places.values()])[:-1]
    test = pd.concat([table.astype(release.fit.dtypes.to_dict(), errors="ignore")
                      for table in places.values()])  # fmt: skip
    parts = [np.split(score, ends) for score in scores(release.fit, test, y)]
    return {place: [part[i] for part in parts] for i, place in enumerate(places)}


def judged(release, split):
    """Return all figures of a release, on the rows to choose by and on those of the report."""
    s, v = release.labels or (split.fit.s, split.fit.v)
    figures = {"certified": release.certified, "other": release.other}
    of_v = by_place(release, v)
    chosen_by = of_v.get("choose") or of_v["raw choose"]
    best = int(np.argmax([roc_auc_score(split.choose.v, score) for score in chosen_by]))
    for place, found in of_v.items():
        truth = split.choose.v if place.endswith("choose") else split.report.v
        figures[f"{place} auc"] = roc_auc_score(truth, found[best])
        figures[f"{place} accuracy"] = accuracy_score(truth, found[best] > 0.5)
    of_s = by_place(release, s)
    for place in ("choose", "report"):
        truth = split.choose.s if place == "choose" else split.report.s
        found = of_s.get(place) or of_s[f"raw {place}"]
        figures[f"{place} attacker"] = max(roc_auc_score(truth, score) for score in found)
        figures[f"{place} balanced"] = max(
            balanced_accuracy_score(truth, score > s.mean()) for score in found
        )
    return figures


def measured(table, options, wanted):
    """Return the figures of all methods, settings and splits, and what did not run."""
    rows, failed = [], {}
    truth = draw_people(200_000, 1) if table.name == "generated" else None
    first = FIRST_SPLIT[options.quick]
    for seed in range(first, first + N_SPLITS):
        split = table.split(seed)
        for method in METHODS:
            if wanted and method.__name__ not in wanted:
                continue
            start = time.perf_counter()
            try:
                for name, setting, release in method(split, options):
                    figures = judged(release, split)
                    if truth is not None and release.distance is not None:
                        figures["true"] = release.distance(truth.X, truth.s)
                    rows.append({"method": name, "setting": setting, "split": seed} | figures)
            except DidNotRunError as error:
                failed[method.__name__] = str(error)
            seconds = time.perf_counter() - start
            print(f"{table.name}, split {seed}, {method.__name__}: {seconds:.0f} s",
                  file=sys.stderr, flush=True)  # fmt: skip
    return pd.DataFrame(rows), failed


def of_report(figures):
    """Return figures about rows of the report, by the names of COLUMNS."""
    names = {"report auc": "auc", "report accuracy": "accuracy", "raw report auc": "raw auc",
             "raw report accuracy": "raw accuracy", "report attacker": "attacker",
             "report balanced": "balanced"}  # fmt: skip
    return figures.rename(columns=names).reindex(
        columns=["method", "setting", "split", *COLUMNS, "true"]
    )


def line(name, setting, cells):
    """Return a line of a table."""
    return (f"{name:<23}{setting:<15}" + "".join(f"{cell:>9}" for cell in cells)).rstrip()


def cells_of(figures, columns):
    """Return figures as texts; "-" where there is none."""
    return ["-" if np.isnan(figures[name]) else f"{figures[name]:.3f}" for name in columns]


def show_all(figures):
    """Print every setting, as the mean over splits."""
    columns = dict(COLUMNS)
    if figures["true"].notna().any():
        columns["true"] = "true"
    print(line("", "", columns.values()))
    means = figures.groupby(["method", "setting"], sort=False).mean(numeric_only=True)
    for (name, setting), row in means.iterrows():
        print(line(name, setting, cells_of(row, columns)))


def chosen(figures, limit):
    """Return, by method, the rows of the settings that are chosen, one for each split."""
    picked = {}
    for name, of_method in figures.groupby("method", sort=False):
        auc = (
            "choose auc"
            if of_method.get("choose auc", pd.Series()).notna().any()
            else "raw choose auc"
        )
        allowed = of_method[of_method["choose attacker"] <= limit]
        best = allowed.loc[allowed.groupby("split")[auc].idxmax()] if len(allowed) else allowed
        picked[name] = best.set_index("split")
    return picked


def verdict(ours, theirs):
    """Return how our AUC compares with another one, split by split."""
    difference = (ours - theirs).dropna()
    mean, error = difference.mean(), difference.std() / np.sqrt(len(difference))
    if abs(mean) < max(LEAST_DIFFERENCE, 2 * error):
        return f"tie ({mean:+.3f})"
    return f"{'ahead' if mean > 0 else 'behind'} ({mean:+.3f})"


def show_chosen(figures, limit):
    """Print the chosen settings, as the mean over splits, and how ours compare."""
    print(f"limit {limit:g}: the best model whose attacker has an AUC of at most {limit:g}")
    print(
        line("", "reached in", [*COLUMNS.values(), *(f"{name[7:]} is".rjust(16) for name in OURS)])
    )
    picked = chosen(figures, limit)
    for name, best in picked.items():
        reached = f"{len(best)} of {N_SPLITS}"
        if len(best) < N_SPLITS:
            print(line(name, reached, []))
            continue
        report = of_report(best.reset_index())
        compared = [
            verdict(of_report(picked[mine])["auc"], report.set_index("split")["auc"])
            if mine != name
            and len(picked.get(mine, ())) == N_SPLITS
            and report["auc"].notna().all()
            else ""
            for mine in OURS
        ]
        texts = cells_of(report.mean(numeric_only=True), COLUMNS)
        print(line(name, reached, [*texts, *(text.rjust(16) for text in compared)]))


def show_truth(table, first):
    """Print the best AUCs that there can be."""
    report = [table.split(seed).report for seed in range(first, first + N_SPLITS)]
    of_v = np.mean([roc_auc_score(part.v, chance_of_v(part.X)) for part in report])
    of_s = np.mean([roc_auc_score(part.s, chance_of_s(part.X)) for part in report])
    print(f"the true probabilities have an AUC of {of_v:.3f} for V and of {of_s:.3f} for S")


def show(table, options, wanted):
    """Print all about one table."""
    sizes = "{:,} rows to fit, {:,} to choose by, {:,} to report".format(*table.sizes)
    figures, failed = measured(table, options, wanted)
    print(f"table {table.name}: {table.about}")
    print(f"{sizes}, {table.rows.X.shape[1]} columns; means of {N_SPLITS} splits")
    if table.name == "generated":
        show_truth(table, FIRST_SPLIT[options.quick])
    show_all(of_report(figures))
    for limit in LIMITS:
        print()
        show_chosen(figures, limit)
    for method, reason in failed.items():
        print(f"{method} did not run: {reason}")
    print(flush=True)


def tables(path, quick):
    """Return how to make each table, by name."""
    many = (3000, 2000, 5000) if quick else (4000, 2000, 8000)
    return {
        "adult": partial(adult, path, many),
        "adult, few rows": partial(adult, path, (300, 300, many[2]), "adult, few rows"),
        "diabetes": diabetes,
        "generated": partial(generated, many),
        "breast cancer": breast_cancer,
    }


def main():
    """Print the figures of all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path")
    parser.add_argument("--quick", action="store_true", help="fewer rows and settings")
    parser.add_argument("--aif360-python", metavar="PATH")
    parser.add_argument("--datasynthesizer-python", metavar="PATH")
    parser.add_argument("--table", action="append", help="only this one")
    parser.add_argument("--method", action="append", help="only this one")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # of few rows, of values moved far, of models not converged
    options = Options(given.quick, given.aif360_python, given.datasynthesizer_python)
    made = tables(given.path, given.quick)
    for name in given.table or made:
        show(made[name](), options, given.method)


if __name__ == "__main__":
    main()
