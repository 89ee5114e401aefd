"""Release columns of a real table and attack them.

For each pair of sensitive and useful columns: the leakage of the worst output measured on the
released rows against the budget, what the population may leak, and the advantage over the blind
guess of the best attacker of `audit`, on the raw and on the released columns, against what the
budget allows. Then, of seven columns released jointly, how many of the people who are alone with
their combination of values have it appear in the release, for somebody or other. Run
``python benchmarks/real_table.py PATH_TO_ADULT_CSV``.
"""

import argparse
import warnings

import numpy as np
import pandas as pd

from skprivacy import PrivacyFunnelTransformer, audit
from skprivacy.metrics import population_leakage

PAIRS = [
    (["sex"], ["education"]),
    (["race"], ["occupation"]),
    (["sex", "race"], ["marital_status"]),
    (["sex"], ["education", "occupation"]),
    (["race"], ["age"]),
]


WIDE = ["workclass", "education", "marital_status", "occupation", "relationship", "race",
        "native_country"]  # fmt: skip


def alone_and_shown(table):
    """Return how many rows of `WIDE` are unique, and how many of these the release shows whole."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        funnel = PrivacyFunnelTransformer(0.05, sensitive="sex", columns=WIDE)
        released = funnel.fit_transform(table)
    alone = table[WIDE].drop_duplicates(keep=False)
    return len(alone), len(alone.merge(released.drop_duplicates()))


def joined(frame):
    """Return several columns as one."""
    parts = [frame[column].astype(object).where(frame[column].notna(), "?") for column in frame]
    return pd.Series(["|".join(map(str, row)) for row in zip(*parts, strict=True)])


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
    parser.add_argument("--epsilon", type=float, default=0.01)
    options = parser.parse_args()
    epsilon, table = options.epsilon, pd.read_csv(options.path)
    exposed = 0
    print(f"{len(table):,} rows, kl per output, epsilon = {epsilon:g}")
    print(f"{'':<30}{'leakage of outputs':>40}{'utility':>9}{'advantage of attacker, points':>30}")
    print(
        f"{'S / X':<30}{'design':>10}{'sample':>18}{'population':>12}{'kept':>9}{'raw':>10}"
        f"{'released':>10}{'allowed':>10}"
    )
    for sensitive, columns in PAIRS:
        transformer = PrivacyFunnelTransformer(epsilon, sensitive=sensitive, columns=columns)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            released = transformer.fit_transform(table)
        target, mechanism = joined(table[sensitive]), transformer.mechanism_
        leakage, deviation = sampled_leakage(target, joined(released))
        worst = np.argmax(leakage - 4 * deviation)
        attacks = audit(
            released, table[sensitive], raw=table[columns], mechanism=transformer, cv=3
        )
        best = attacks.groupby("attacked")[["advantage", "low", "advantage_bound"]].max()
        raw, after, bound = *best["advantage"], best.loc["released", "advantage_bound"]
        exposed += raw > bound
        limit = population_leakage(transformer).max_leakage
        name = f"{','.join(sensitive)} / {','.join(columns)}"
        sample = f"{leakage[worst]:.4f} ({deviation[worst]:.4f})"
        print(
            f"{name:<30}{mechanism.max_leakage:>10.4f}{sample:>18}{limit:>12.4f}"
            f"{mechanism.normalized_utility:>9.1%}{100 * raw:>10.2f}{100 * after:>10.2f}"
            f"{100 * bound:>10.2f}"
        )
        assert leakage[worst] - 4 * deviation[worst] <= epsilon
        assert best.loc["released", "low"] <= bound
        assert after <= raw
    print(
        f"{exposed} raw columns exceed what the budget allows an attacker, no released one does.\n"
        f"In parentheses: the standard deviation of the sample. Population: the limit, at 95%, of "
        f"the worst output."
    )
    alone, shown = alone_and_shown(table)
    print(f"{len(WIDE)} columns jointly: {alone:,} people are unique, {shown:,} appear whole.")


if __name__ == "__main__":
    main()
