"""Random designs over cells of scores, each checked by formulas of this script.

Tables, groups, classes, budgets, measures, scopes, ways to cut, models and weights are random. A
transformer learns cells and a channel; the pairs of S and cell are counted here, and the leakage
of the channel is a sum over these counts. It must be within the budget, the utility must be what
the counts give, and a row must be in the same cell when it is alone. Run
``python benchmarks/random_cells.py > docs/measured/random_cells.txt`` (2,000 designs, half an
hour; ``--designs 100`` for less). It fails if anything is violated.
"""

import argparse
import itertools
import os
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small models wait for each other's threads

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from random_beside import ATOL, MEASURES, ROUNDING, RTOL, information, leakage
from sklearn.naive_bayes import GaussianNB

from skprivacy import PrivacyFunnelTransformer, ScoreCells
from skprivacy.fitting.fitted_estimator import fitted_of
from skprivacy.fitting.held_out import Symbols
from skprivacy.measures import AlphaLift

CUTS = ("plane", "line", "best")


@dataclass
class Found:
    """What came of a random table."""

    measure: str
    scope: str
    cut: str
    kinds: list
    outcome: str = "designed"
    wrong: list = field(default_factory=list)
    n_cells: int = 0
    share: float = np.nan
    seconds: float = 0.0


def random_table(rng, is_quick):
    """Return random rows of three to five columns, their S, their target and weights."""
    n, n_groups, n_classes = int(10 ** rng.uniform(1.8, 2.6)), *rng.integers((2, 2), (5, 4))
    X = pd.DataFrame(rng.normal(size=(n, int(rng.integers(2, 4)))).round(2)).add_prefix("x")
    X["age"] = rng.integers(18, 90, n)
    X["town"] = rng.choice(list("abcdef")[: rng.integers(2, 7)], n)
    if not is_quick and rng.random() < 0.5:  # which the quick model does not take
        X.loc[rng.random(n) < 0.2, "x0"] = np.nan
    features = pd.get_dummies(X.fillna(0)).to_numpy(float)
    features = (features - features.mean(axis=0)) / (features.std(axis=0) + 1e-9)
    labels = []
    for n_values in (n_groups, n_classes):
        scores = features @ rng.normal(size=features.shape[1]) * rng.choice([0.0, 0.3, 1.0])
        ends = np.sort(rng.normal(size=n_values - 1))
        labels.append(np.searchsorted(ends, scores + rng.logistic(size=n)))
    weights = rng.integers(1, 4, n) if rng.random() < 0.2 else None
    return X, *labels, weights


def random_funnel(rng, is_quick):
    """Return a transformer, and what is random about it in words."""
    measure = str(rng.choice(list(MEASURES)))
    scope = "average" if measure != "lip" and rng.random() < 0.4 else "per_output"
    cut, max_cells = str(rng.choice(CUTS)), int(rng.choice([6, 16, 64]))
    cells = ScoreCells(GaussianNB() if is_quick else None, max_cells, cut=cut)
    few, is_careful = rng.random() < 0.2, rng.random() < 0.05
    funnel = PrivacyFunnelTransformer(
        float(10 ** rng.uniform(-2.5, 0)),
        measure=AlphaLift(5.0) if measure == "alpha_lift" else measure,
        scope=scope,
        utility="target",
        alphabet=cells,
        output="symbol",
        max_outputs=int(rng.integers(2, 6)) if few else None,
        confidence=0.95 if is_careful else None,
        random_state=0,
    )
    kinds = ["a given model"] * is_quick + ["limited outputs"] * few
    return funnel, measure, scope, cut, kinds + ["with a confidence"] * is_careful


def counted(labels, cells, n_cells, weights):
    """Return the shares of pairs of labels and cells."""
    table = np.zeros((labels.max() + 1, n_cells))
    np.add.at(table, (labels, cells), 1.0 if weights is None else weights)
    return table / table.sum()


def problems(funnel, found, X, s, v, weights):
    """Yield every promise that is broken; fills in the figures of what was found."""
    read = Symbols.of(fitted_of(funnel), list(X)).of_table
    cells = read({name: X[name] for name in X})
    alone = np.arange(len(X))[::7]
    if not np.array_equal(read({name: X[name].iloc[alone] for name in X}), cells[alone]):
        yield "a row is in another cell when others are missing"
    channel, found.n_cells = funnel.mechanism_.channel, len(funnel.cells_)
    if (channel < 0).any() or abs(channel.sum(axis=1) - 1).max() > ATOL:
        yield "not a channel"
    joint = counted(s, cells, len(channel), weights)
    used = channel[:, joint.sum(axis=0) @ channel > 0]
    reached = float(leakage(joint @ used, found.measure, found.scope))
    found.share = reached / funnel.epsilon
    if reached > funnel.epsilon * (1 + RTOL) + ATOL + 1e-13:
        yield f"leaks {reached}, budget {funnel.epsilon}"
    worth = information(counted(v, cells, len(channel), weights) @ used)
    if abs(worth - funnel.mechanism_.utility) > ROUNDING:
        yield f"utility {funnel.mechanism_.utility}, not {worth}"
    outputs = {str(label) for label in funnel.mechanism_.y_labels}
    if not set(funnel.transform(X).iloc[:, 0].astype(str)) <= outputs:
        yield "an output that the channel does not have"


def checked(seed):
    """Return what came of one random table."""
    with warnings.catch_warnings(), np.errstate(divide="ignore"):
        warnings.simplefilter("ignore")
        return _checked(seed)


def _checked(seed):
    rng = np.random.default_rng([37, seed])
    is_quick = rng.random() < 0.75
    X, s, v, weights = random_table(rng, is_quick)
    funnel, *words = random_funnel(rng, is_quick)
    found, start = Found(*words), time.process_time()
    sizes = len(np.unique(s)), len(np.unique(v))
    if min(sizes) < 2:
        found.outcome = "one value only"
        return found
    found.kinds.append(f"{sizes[0]} groups")
    found.kinds.append(f"{sizes[1]} classes")
    if weights is not None:
        found.kinds.append("weighted")
    s, v = (np.unique(labels, return_inverse=True)[1] for labels in (s, v))
    try:
        funnel.fit(X, v, sensitive_features=s, sample_weight=weights)
    except ValueError as error:
        found.outcome = "refused"
        found.wrong = [] if "too few, or too alike" in str(error) else [f"refused: {error}"]
        return found
    found.seconds = time.process_time() - start
    found.wrong = list(problems(funnel, found, X, s, v, weights))
    return found


def show(found):
    """Print a table by measure and scope, the kinds of designs, and how many are wrong."""
    made = [f for f in found if f.outcome == "designed"]
    print(f"{len(made):,} random designs over cells of scores, by measure and scope; most: of the")
    print("leakage of counted pairs, as a share of the budget")
    print(f"{'measure':10} {'scope':10} {'designs':>7} {'cells':>6} {'most':>17} {'seconds':>7} "
          f"{'broken':>6}")  # fmt: skip
    for measure, scope in itertools.product(MEASURES, ["per_output", "average"]):
        group = [f for f in made if (f.measure, f.scope) == (measure, scope)]
        if not group:
            continue
        cells, seconds = (np.mean([getattr(f, n) for f in group]) for n in ("n_cells", "seconds"))
        most, n_wrong = max(f.share for f in group), sum(bool(f.wrong) for f in group)
        figures = f"{len(group):7} {cells:6.1f} {most:17.14f} {seconds:7.2f} {n_wrong:6}"
        print(f"{measure:10} {scope:10} {figures}")
    kinds = Counter(kind for f in made for kind in [f"cut: {f.cut}", *f.kinds])
    print(", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items())))
    if others := Counter(f.outcome for f in found if f.outcome != "designed"):
        print("not designed: " + ", ".join(f"{n} {outcome}" for outcome, n in others.items()))
    print(f"{sum(bool(f.wrong) for f in found)} designs break a promise")


def main(n_designs, first, n_jobs):
    """Design, check, print; return what is wrong."""
    found, wrong, n_made = [], [], 0
    with Parallel(n_jobs, return_as="generator") as parallel:
        while n_made < n_designs:  # not all tables can be cut into cells
            seeds = range(first + len(found), first + len(found) + n_designs - n_made)
            for seed, one in zip(seeds, parallel(map(delayed(checked), seeds)), strict=True):
                found.append(one)
                n_made += one.outcome == "designed"
                if one.wrong:
                    wrong.append(f"seed {seed}: {'; '.join(one.wrong)}")
                    print(wrong[-1], file=sys.stderr, flush=True)
    show(found)
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="the number of processes")
    options = parser.parse_args()
    if wrong := main(options.designs, options.first, options.jobs):
        sys.exit("\n".join(wrong))
