"""Release columns of a real table and attack them.

For each pair of sensitive and useful columns: the leakage measured on the released rows against
the budget, and the advantage of a gradient-boosting attacker over the majority guess against its
bound sqrt(epsilon / 2). Run ``python benchmarks/real_table.py PATH_TO_ADULT_CSV``.
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


def main():
    """Print one line per pair."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path")
    parser.add_argument("--epsilon", type=float, default=0.01)
    options = parser.parse_args()
    table = pd.read_csv(options.path)
    bound = np.sqrt(options.epsilon / 2)
    print(f"{len(table):,} rows, kl per output, epsilon = {options.epsilon:g}")
    print(f"{'S / X':<32}{'I(S;Y)':>9}{'sampled':>9}{'utility':>9}{'raw':>8}{'released':>9}")
    for sensitive, columns in PAIRS:
        transformer = PrivacyFunnelTransformer(
            options.epsilon, sensitive=sensitive, columns=columns
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            released = transformer.fit_transform(table)
        target, mechanism = joined(table[sensitive]), transformer.mechanism_
        joint = pd.crosstab(target, joined(released)).to_numpy() / len(table)
        expected = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
        information = np.sum(joint * np.log(np.where(joint > 0, joint / expected, 1)))
        # A plug-in estimate is too large by about (|S| - 1)(|Y| - 1) / 2n.
        information -= (joint.shape[0] - 1) * (joint.shape[1] - 1) / 2 / len(table)
        raw, after = advantage(table[columns], target), advantage(released, target)
        name = f"{','.join(sensitive)} / {','.join(columns)}"
        print(
            f"{name:<32}{mechanism.sensitive_information:>9.5f}{information:>9.5f}"
            f"{mechanism.normalized_utility:>9.1%}{raw:>8.3f}{after:>9.3f}"
        )
        assert mechanism.max_leakage <= options.epsilon * (1 + 1e-9)
        assert information <= options.epsilon
        assert after <= bound
    print(f"An attacker's advantage on released columns is at most {bound:.3f}.")


if __name__ == "__main__":
    main()
