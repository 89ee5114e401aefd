"""
Removing a correlation is not hiding a variable
===============================================

Fairlearn's ``CorrelationRemover`` subtracts from a column what a linear model of S, the sensitive
column, explains. The result has no correlation with S, so a linear model cannot use it. But S may
still be readable from the result; the tool promises nothing about that. If the column is discrete,
each pair of a value and a group gets its own value, which reveals both.

Here the same attacker guesses S from the same column three times: from the original column, after
the correlation is removed, and after ``PrivacyFunnelTransformer``. The table is simulated, with a
seed: survey answers from 1 to 5 (X) of two groups (S) that answer differently.

This example needs Fairlearn: ``pip install fairlearn``.
"""

import argparse
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from fairlearn.preprocessing import CorrelationRemover
from tqdm import tqdm

from skprivacy import PrivacyFunnelTransformer, audit
from skprivacy.metrics import mutual_information

EPSILON = 0.02
ANSWERS = {  # P(X|S)
    0: [0.40, 0.30, 0.15, 0.10, 0.05],
    1: [0.03, 0.07, 0.15, 0.30, 0.45],
}


def survey(n, seed=0):
    """Return n rows of a group and an answer."""
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n)
    answer = np.where(
        group == 0,
        rng.choice(5, size=n, p=ANSWERS[0]),
        rng.choice(5, size=n, p=ANSWERS[1]),
    )
    return pd.DataFrame({"group": group, "answer": 1 + answer})


def releases(table):
    """Yield (name, column) of the answer as it is and as each tool releases it."""
    yield "as it is", table["answer"]
    remover = CorrelationRemover(sensitive_feature_ids=["group"])
    yield "CorrelationRemover", pd.Series(remover.fit_transform(table)[:, 0])
    funnel = PrivacyFunnelTransformer(EPSILON, sensitive="group", random_state=0)
    yield f"PrivacyFunnel, epsilon {EPSILON}", funnel.fit_transform(table)["answer"]


def measured(table):
    """Return what each release says about the group and about the answer."""
    rows = {}
    for name, column in tqdm(list(releases(table)), unit="release"):
        attacks = audit(column.to_frame("released"), table["group"])
        rows[name] = {
            "distinct values": column.nunique(),
            "correlation with S": np.corrcoef(column, table["group"])[0, 1],
            "attacker is right": attacks["accuracy"].max(),
            "blind guess": attacks["blind"].max(),
            "I(S;Y), nats": mutual_information(table["group"], column),
            "I(X;Y), nats": mutual_information(table["answer"], column),
        }
    return pd.DataFrame(rows).T


def draw(figures, path):
    """Draw how often the attacker is right."""
    figure, axis = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
    bars = axis.barh(figures.index, figures["attacker is right"], color="tab:blue")
    axis.bar_label(bars, fmt="{:.0%}", padding=3)
    blind = figures["blind guess"].iloc[0]
    axis.axvline(blind, color="tab:red", label=f"best blind guess, {blind:.0%}")
    axis.set(xlim=(0, 1.12), xlabel="how often an attacker who sees the column guesses S")
    axis.xaxis.set_major_formatter("{x:.0%}")
    axis.invert_yaxis()
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(loc="lower right", fontsize="small")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--output", type=Path, default=Path(sys.argv[0]).parent / "output")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    figures = measured(survey(options.rows))
    print(figures.round(3).to_string())
    figures.to_csv(options.output / "correlation_remover.csv")
    draw(figures, options.output / "correlation_remover.png")
    print(f"Wrote {options.output / 'correlation_remover.png'} and the figures as CSV")
