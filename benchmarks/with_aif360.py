"""Runs AIF360 for trade_off.py, in an environment of its own: numbers in, numbers out.

``python with_aif360.py IN.npz OUT.npz``: it imports nothing of this project.
"""

import sys

import numpy as np
import pandas as pd
from aif360.algorithms.preprocessing import LFR, DisparateImpactRemover
from aif360.datasets import BinaryLabelDataset

PARTS = ("fit", "choose", "report")


def dataset(given, part, rows=None):
    """Return a part as AIF360 takes it: S is one of the features."""
    frame = pd.DataFrame(given[f"{part}_X"])
    frame.columns = [f"x{number}" for number in frame]
    frame = frame.assign(S=given[f"{part}_s"], V=given[f"{part}_v"]).iloc[:rows]
    return BinaryLabelDataset(
        df=frame.astype(float), label_names=["V"], protected_attribute_names=["S"]
    )


def repaired(given, level):
    """Return the features of each part after the disparate impact remover, without S."""
    for part in PARTS:
        remover = DisparateImpactRemover(repair_level=level, sensitive_attribute="S")
        yield remover.fit_transform(dataset(given, part)).features[:, :-1]


def learned(given, weight):
    """Return the features of each part after LFR, without S."""
    learner = LFR([{"S": 0.0}], [{"S": 1.0}], k=5, Ax=0.01, Ay=1.0, Az=weight, seed=0)
    learner.fit(dataset(given, "fit", int(given["rows"])), maxfun=int(given["evaluations"]))
    for part in PARTS:
        yield learner.transform(dataset(given, part)).features[:, :-1]


def main():
    """Write what each method and setting makes of the features of each part."""
    given = np.load(sys.argv[1])
    made = {}
    for method, settings in ((repaired, given["levels"]), (learned, given["weights"])):
        for setting in settings:
            for part, X in zip(PARTS, method(given, float(setting)), strict=True):
                made[f"{method.__name__} {setting:g} {part}"] = X
    np.savez(sys.argv[2], **made)


if __name__ == "__main__":
    main()
