"""A whole table, released in many ways: what a model makes of it, and what an attacker finds out.

All columns of adult.csv but S and the target, income. One half of the rows is for fitting; its
released rows train the models, which are judged by released rows of the other half:

- AUC: of gradient boosting that predicts income; attacker: of one that predicts S (the mean over
  groups, each against all others);
- I(S;Y): what a released row says about S, in nats, exact for a channel (``evaluate``). For a
  release without one it is the least that the attacker proves (">"), H(S) less the log loss;
- worst: what the worst output says;
- columns: the mean of I(X_j;Y) / H(X_j) over columns, less what it is for shuffled rows;
- seconds: of the fit.

Run ``python benchmarks/whole_table.py PATH_TO_ADULT_CSV`` (an hour; ``--sensitive sex --epsilon
0.02`` takes a minute; ``--rows 300`` shows what becomes of few rows).
"""

import argparse
import os
import sys
import time
import warnings
from dataclasses import dataclass
from functools import partial

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small models wait for each other's threads

import numpy as np
import pandas as pd
from released_rows import as_numbers, features, most_telling
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from skprivacy import PrivacyFunnelTransformer, ScoreCells, TreeCells
from skprivacy.fitting.fitted_estimator import fitted_of
from skprivacy.fitting.held_out import Symbols
from skprivacy.utilities import entropy
from skprivacy.utilities import mutual_information as of_joint

TARGET = "income"
SENSITIVE = ("sex", "race", "sex,race")
EPSILONS = (0.005, 0.02, 0.05)

_WIDTHS = (6, 10, 9, 8, 9, 9)
_HEAD = ("AUC", "attacker", "I(S;Y)", "worst", "columns", "seconds")

# What is aimed at, by S, epsilon and line: figures that are at least, or at most, so large.
AIMS = {
    ("sex", 0.02, "ScoreCells, symbol"): {"auc": 0.90, "attacker": -0.61, "average": -0.021},
    ("sex", 0.02, "ScoreCells, label"): {"auc": 0.88},
    ("race", 0.02, "ScoreCells, symbol"): {"auc": 0.90, "average": -0.023},
    ("sex", 0.05, "TreeCells, symbol"): {"columns": 0.35},
}


@dataclass(frozen=True)
class Half:
    """Half of the rows: all columns but the target; X, those that are released; s, v : codes."""

    table: pd.DataFrame
    X: pd.DataFrame
    s: np.ndarray
    v: np.ndarray


def halves(table, sensitive, n_rows=None):
    """Return the rows to fit, so many or half of all, and the other half."""
    v = pd.factorize(table[TARGET], sort=True)[0]
    s = pd.factorize(table[sensitive].agg("|".join, axis=1), sort=True)[0]
    table = table.drop(columns=TARGET)
    X = table.drop(columns=sensitive)
    parts = train_test_split(np.arange(len(table)), test_size=0.5, random_state=0, stratify=v)
    parts = parts[0][:n_rows], parts[1]
    return [Half(table.iloc[rows], X.iloc[rows], s[rows], v[rows]) for rows in parts]


def predicted(train, test, y_train, y_test):
    """Return the AUC of gradient boosting, and the least that it proves rows to say about y."""
    one, other = features(train.reset_index(drop=True), test.reset_index(drop=True), y_train)
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    shares = model.fit(one, y_train).predict_proba(other)
    groups = range(shares.shape[1])
    auc = np.mean([roc_auc_score(y_test == k, shares[:, k]) for k in groups])
    told = entropy(np.bincount(y_test) / len(y_test)) - log_loss(y_test, shares, labels=[*groups])
    return auc, float(told)


def printed(name, released, fit, others, **known):
    """Print one line and return its figures.

    released : rows of both halves; known : what needs no model, if there is a channel.
    """
    auc, _ = predicted(*released, fit.v, others.v)
    attacker, told = predicted(*released, fit.s, others.s)
    average = known.get("average")
    leaked = f"> {max(told, 0):.3f}" if average is None else f"{average:.4f}"
    cells = [f"{auc:.3f}", f"{attacker:.3f}", leaked]
    for figure, digits in (("worst", 4), ("columns", 3), ("seconds", 1)):
        cells.append(f"{known[figure]:.{digits}f}" if figure in known else "")
    print(_line(name, cells).rstrip(), flush=True)
    return {"auc": auc, "attacker": attacker} | known


def _line(name, cells):
    return f"{name:<36}" + "".join(f"{c:>{w}}" for c, w in zip(cells, _WIDTHS, strict=True))


def kept(funnel, X):
    """Return the mean of I(X_j;Y) / H(X_j) over columns, less that of shuffled rows."""
    fitted, shuffle = fitted_of(funnel), np.random.default_rng(0).permutation
    channel = np.vstack([funnel.mechanism_.channel, funnel.mechanism_.p_y])
    columns = X[list(fitted.x_names)]
    symbols = Symbols.of(fitted, list(columns)).of_table(dict(columns.items()))
    shares = []
    for _, column in columns.items():
        codes = pd.factorize(column, use_na_sentinel=False)[0]
        values = np.eye(codes.max() + 1)[codes]
        both = [values.T @ channel[of_row] for of_row in (symbols, shuffle(symbols))]
        told, by_chance = (of_joint(table / table.sum()) for table in both)
        shares.append((told - by_chance) / entropy(np.bincount(codes) / len(codes)))
    return float(np.mean(shares))


def timed_fit(funnel, fit):
    """Return how long a fit takes."""
    start = time.perf_counter()
    funnel.fit(fit.table, fit.v if funnel.utility == "target" else None)
    return time.perf_counter() - start


def funnels(epsilon, sensitive):
    """Yield names, transformers, and the forms in which their output is shown."""
    made = partial(PrivacyFunnelTransformer, epsilon, sensitive=sensitive, random_state=0)
    for_target = partial(made, utility="target")
    yield "values, pooled", for_target(alphabet="values"), ("symbol", "label")
    cells = partial(for_target, alphabet=ScoreCells())
    yield "ScoreCells", cells(), ("symbol", "posterior", "label")
    yield "ScoreCells, max_outputs=8", cells(max_outputs=8), ("symbol",)
    yield "ScoreCells, confidence=0.95", cells(confidence=0.95), ("symbol",)
    yield "TreeCells", made(alphabet=TreeCells()), ("symbol", "label")


def show_channels(epsilon, sensitive, fit, others):
    """Print what is released within a budget; return the figures by line."""
    found = {}
    for name, funnel, outputs in funnels(epsilon, sensitive):
        seconds = timed_fit(funnel, fit)
        figures = funnel.evaluate(others.table, others.v if funnel.utility == "target" else None)
        known = {
            "average": figures.sensitive_information,
            "worst": figures.max_leakage,
            "columns": kept(funnel, others.X),
            "seconds": seconds,
        }
        for output in outputs:
            funnel.set_params(output=output)
            released = [funnel.transform(half.X) for half in (fit, others)]
            line = f"{name}, {output}"
            found[line] = printed(line, released, fit, others, **known)
    show_columns_apart(epsilon, sensitive, fit, others)
    return found


def show_columns_apart(epsilon, sensitive, fit, others):
    """Print what happens if each column has its own transformer, with the whole budget."""
    parts, seconds, shares = [], 0.0, []
    for name in fit.X:
        funnel = PrivacyFunnelTransformer(
            epsilon, sensitive=sensitive, columns=[name], random_state=0
        )
        seconds += timed_fit(funnel, fit)
        parts.append([funnel.transform(half.X) for half in (fit, others)])
        shares.append(kept(funnel, others.X))
    released = [pd.concat(columns, axis=1) for columns in zip(*parts, strict=True)]
    known = {"columns": float(np.mean(shares)), "seconds": seconds}
    printed("columns one by one", released, fit, others, **known)


def show_others(fit, others):
    """Print what is released without a budget."""
    printed("raw", [fit.X, others.X], fit, others, columns=1.0)
    names = most_telling(fit.X, fit.s)
    for n in (4, 6):
        left = [half.X.drop(columns=names[:n]) for half in (fit, others)]
        printed(f"without the {n} most telling columns", left, fit, others)
    print(f"  (these are {', '.join(names[:6])})")
    try:
        from fairlearn.preprocessing import CorrelationRemover
    except ImportError:
        print("CorrelationRemover: Fairlearn is not installed")
        return
    start = time.perf_counter()
    both = as_numbers(fit.X, fit.s), as_numbers(others.X, others.s)
    both = both[0], both[1].reindex(columns=both[0].columns, fill_value=0.0)
    sensitive = [name for name in both[0] if name.startswith("S_")]
    remover = CorrelationRemover(sensitive_feature_ids=sensitive).fit(both[0])
    seconds = time.perf_counter() - start
    released = [pd.DataFrame(remover.transform(each)) for each in both]
    printed("CorrelationRemover", released, fit, others, seconds=seconds)


def missed(name, epsilon, found):
    """Yield which aims a table has missed."""
    for (sensitive, budget, line), aims in AIMS.items():
        if (sensitive, budget) != (name, epsilon):
            continue
        for figure, aim in aims.items():
            reached = found[line][figure]
            if reached < aim if aim > 0 else reached > -aim:
                yield f"S = {name}, epsilon = {epsilon}, {line}: {figure} is {reached:.4f}"


def main():
    """Print a table for each S, and fail if an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path")
    parser.add_argument("--sensitive", choices=SENSITIVE, action="append")
    parser.add_argument("--epsilon", type=float, action="append")
    parser.add_argument("--rows", type=int, help="that are fitted, instead of one half")
    options = parser.parse_args()
    table = pd.read_csv(options.path)
    warnings.simplefilter("ignore")  # of few rows, of values moved far
    wrong = []
    for name in options.sensitive or SENSITIVE:
        sensitive = name.split(",")
        fit, others = halves(table, sensitive, options.rows)
        print(f"S = {name}: {len(fit.X):,} rows to fit, {len(others.X):,} others, ", end="")
        print(f"{fit.X.shape[1]} columns")
        print(_line("", _HEAD))
        show_others(fit, others)
        for epsilon in options.epsilon or EPSILONS:
            print(f"epsilon = {epsilon:g}")
            found = show_channels(epsilon, sensitive, fit, others)
            wrong += missed(name, epsilon, found) if options.rows is None else []
        print()
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main()
