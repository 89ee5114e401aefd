"""How near default cells come to the limit, where the truth is known.

People are drawn from two distributions that are written down: one in which P(V|x) is logistic (the
generated table of ``trade_off.py``), and one in which neither P(V|x) nor P(S|x) is. The limit is
the design for both true probabilities, in 300 cells of 200,000 people. Default cells are learned
from few rows, and judged among 100,000 new people, by their true probabilities: what a released
row says about V, and the AUC, less 0.5, of a score counted on the released rows to fit; both as
shares of the limit's, with their standard errors. Beside it, what is said about S, in budgets on
average over outputs: with few rows it is more than in the rows of ``fit``.

Run ``python benchmarks/limit_of_cells.py`` (some minutes).
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small models wait for each other's threads

import numpy as np
import pandas as pd
from real_tables import weighted_auc
from scipy.special import expit
from trade_off_tables import Part, chance_of_s, chance_of_v, draw_people

from skprivacy import PrivacyFunnelTransformer, ScoreCells, design_mechanism
from skprivacy.fitting.fitted_estimator import fitted_of
from skprivacy.fitting.held_out import Symbols
from skprivacy.utilities import Target, mutual_information

EPSILON = 0.02
SIZES = {500: 12, 2000: 6, 8000: 3}


def draw_others(n, seed):
    """Return n people whose V and S are no logistic functions of their columns."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 5)), columns=list("abcde"))
    X["g"], X["h"] = rng.choice(list("uvwx"), n), rng.integers(0, 30, n)
    s, v = (rng.random(n) < chance(X) for chance in (chance_of_s_of_others, chance_of_v_of_others))
    return Part(X, s.astype(int), v.astype(int))


def chance_of_v_of_others(X):
    """Return the true P(V = 1 | x)."""
    score = 1.5 * ((X["a"] > 0) ^ (X["b"] > 0.3)) - 0.7 + 1.2 * np.sin(2 * X["c"])
    return expit(2 * (score + 0.8 * (X["g"] == "u") * (X["a"] > 0.5))).to_numpy()


def chance_of_s_of_others(X):
    """Return the true P(S = 1 | x)."""
    score = 1.5 * ((X["b"] > 0) & (X["c"] > 0)) - 1.0 * (X["a"] * X["b"] > 0.5)
    return expit(2 * (score + 0.9 * (X["g"] == "v") - 0.2)).to_numpy()


TABLES = {
    "logistic": (draw_people, chance_of_v, chance_of_s),
    "not logistic": (draw_others, chance_of_v_of_others, chance_of_s_of_others),
}


def joint_with(symbols, chance, channel):
    """Return the joint of a variable with this chance of 1 and the outputs."""
    counts = [np.bincount(symbols, part, len(channel)) for part in (1 - chance, chance)]
    return np.array(counts) / len(symbols) @ channel


def auc(joint, score):
    """Return the AUC of scores of outputs."""
    return weighted_auc(np.repeat([0, 1], len(score)), np.tile(score, 2), joint.ravel())


def figures_of(symbols, of_v, of_s, channel, score=None):
    """Return I(V;Y), the AUC of V less 0.5, and I(S;Y); score : of outputs, else P(V|y)."""
    joint = joint_with(symbols, of_v, channel)
    score = joint[1] / np.maximum(joint.sum(axis=0), 1e-300) if score is None else score
    told = mutual_information(joint_with(symbols, of_s, channel))
    return np.array([mutual_information(joint), auc(joint, score) - 0.5, told])


def limit(draw, chance_v, chance_s):
    """Return the figures of the design for both true probabilities."""
    people = draw(200_000, 99)
    of_v, of_s = chance_v(people.X), chance_s(people.X)
    parts = [
        np.minimum((pd.Series(chance).rank(pct=True).to_numpy() * n).astype(int), n - 1)
        for chance, n in ((of_s, 20), (of_v, 15))
    ]
    symbols = np.unique(parts[0] * 15 + parts[1], return_inverse=True)[1]
    same = np.eye(symbols.max() + 1)
    counts = [joint_with(symbols, chance, same) for chance in (of_s, of_v)]
    mechanism = design_mechanism(counts[0], EPSILON, utility=Target(counts[1]))
    return figures_of(symbols, of_v, of_s, mechanism.channel)


def of_default_cells(rows, people, of_v, of_s):
    """Return the figures of default cells that are learned from some rows, among people."""
    funnel = PrivacyFunnelTransformer(
        EPSILON, utility="target", alphabet=ScoreCells(), output="symbol"
    )
    funnel.fit(rows.X, rows.v, sensitive_features=rows.s)
    read = Symbols.of(fitted_of(funnel), list(rows.X)).of_table
    channel = funnel.mechanism_.channel
    fitted, symbols = (read({name: X[name] for name in X}) for X in (rows.X, people.X))
    known = joint_with(fitted, rows.v.astype(float), channel)
    score = known[1] / np.maximum(known.sum(axis=0), 1e-300)
    return figures_of(symbols, of_v, of_s, channel, score)


def main():
    """Print a line for each table and number of rows."""
    print(f"epsilon {EPSILON}; shares of the limit, with standard errors over tables")
    print(f"{'truth':<14}{'rows':>6}{'tables':>8}{'I(V;Y)':>16}{'AUC - 0.5':>16}"
          f"{'I(S;Y) in budgets':>20}")  # fmt: skip
    for name, (draw, chance_v, chance_s) in TABLES.items():
        best = limit(draw, chance_v, chance_s)
        people = draw(100_000, 77)
        truth = chance_v(people.X), chance_s(people.X)
        for n, n_tables in SIZES.items():
            found = [of_default_cells(draw(n, seed), people, *truth) for seed in range(n_tables)]
            shares = np.array(found)[:, :2] / best[:2]
            errors = shares.std(axis=0, ddof=1) / np.sqrt(n_tables)
            texts = [
                f"{mean:.3f} +- {error:.3f}"
                for mean, error in zip(shares.mean(axis=0), errors, strict=True)
            ]
            told = np.array(found)[:, 2].mean() / EPSILON
            print(f"{name:<14}{n:>6,}{n_tables:>8}{texts[0]:>16}{texts[1]:>16}{told:>20.2f}",
                  flush=True)  # fmt: skip
        print(f"{name:<14}{'limit':>6}{'':>8}{best[0]:>11.4f} nats{best[1]:>16.4f}"
              f"{best[2] / EPSILON:>20.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
