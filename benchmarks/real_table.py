"""Release columns of a real table and attack them.

For each pair of sensitive and useful columns: the leakage of the worst output measured on the
released rows against the budget, and the advantage of a gradient-boosting attacker over the
majority guess, on the raw and on the released columns, against the bound sqrt(epsilon / 2). Run
``python benchmarks/real_table.py PATH_TO_ADULT_CSV``.
"""

import argparse
import warnings

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_predict

from skprivacy import PrivacyFunnelTransformer

PAIRS = [
    (["sex"], ["education"]),
    (["race"], ["occupation"]),
    (["sex", "race"], ["marital_status"]),
    (["sex"], ["education", "occupation"]),
    (["race"], ["age"]),
]


def joined(frame):
    """Return several columns as one."""
    parts = [frame[column].astype(object).where(frame[column].notna(), "?") for column in frame]
    return pd.Series(["|".join(map(str, row)) for row in zip(*parts, strict=True)])


def advantage(features, target):
    """Return how much more often than the majority guess an attacker is right."""
    codes = features.apply(lambda column: pd.factorize(column)[0])
    codes = codes.where(codes < 250, 250)  # the attacker takes at most 255 categories
    attacker = HistGradientBoostingClassifier(categorical_features=list(codes), max_iter=50)
    guess = cross_val_predict(attacker, codes, target, cv=3)
    return (guess == target).mean() - target.value_counts(normalize=True).max()


def sampled_leakage(target, released):
    """Return the leakage of each output in the sample, and its standard deviation.

    A plug-in divergence from n rows is too large by about (|S| - 1) / 2n, with a standard
    deviation of about sqrt(2 KL / n + (|S| - 1) / 2n^2).
    """
    counts = pd.crosstab(target, released).to_numpy()
    n, prior = counts.sum(axis=0), counts.sum(axis=1, keepdims=True) / counts.sum()
    ratio = np.where(counts > 0, counts / n / prior, 1.0)
    leakage = (counts / n * np.log(ratio)).sum(axis=0) - (len(counts) - 1) / 2 / n
    deviation = np.sqrt(2 * leakage.clip(0) / n + (len(counts) - 1) / 2 / n**2)
    return leakage, deviation


def main():
    """Print one line per pair."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path")
    parser.add_argument("--epsilon", type=float, default=0.001)
    options = parser.parse_args()
    epsilon, table = options.epsilon, pd.read_csv(options.path)
    bound, exposed = np.sqrt(epsilon / 2), 0
    print(f"{len(table):,} rows, kl per output, epsilon = {epsilon:g}")
    print(f"{'':<30}{'leakage of outputs':>30}{'utility':>9}{'advantage of attacker':>24}")
    print(f"{'S / X':<30}{'design':>12}{'sample':>18}{'kept':>9}{'raw':>12}{'released':>12}")
    for sensitive, columns in PAIRS:
        transformer = PrivacyFunnelTransformer(epsilon, sensitive=sensitive, columns=columns)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            released = transformer.fit_transform(table)
        target, mechanism = joined(table[sensitive]), transformer.mechanism_
        leakage, deviation = sampled_leakage(target, joined(released))
        worst = np.argmax(leakage - 4 * deviation)
        raw, after = advantage(table[columns], target), advantage(released, target)
        exposed += raw > bound
        name = f"{','.join(sensitive)} / {','.join(columns)}"
        sample = f"{leakage[worst]:.4f} ({deviation[worst]:.4f})"
        print(
            f"{name:<30}{mechanism.max_leakage:>12.4f}{sample:>18}"
            f"{mechanism.normalized_utility:>9.1%}{raw:>12.3f}{after:>12.3f}"
        )
        assert leakage[worst] - 4 * deviation[worst] <= epsilon
        assert after <= bound
    print(
        f"An advantage of at most {bound:.3f} is allowed: {exposed} raw columns exceed it, no "
        f"released one does.\nIn parentheses: the standard deviation of the sample."
    )


if __name__ == "__main__":
    main()
