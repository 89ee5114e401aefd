"""Ways to release a table, beside each other: many rows to fit, and few."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
from house_style import QUIET, RELEASED, SENSITIVE, USEFUL

# The plot directive runs scripts without their path, in their folder.
MEASURED = Path(globals().get("__file__", "trade_off.py")).resolve().parents[1] / "measured"
RECORDED = (MEASURED / "trade_off.txt").read_text()

LINES = {
    "cells, symbol": (RELEASED, "o", "cells, as names"),
    "cells, label": (RELEASED, "s", "cells, as rows"),
    "columns dropped": (QUIET, "D", "columns dropped"),
    "columns apart": (SENSITIVE, "^", "columns apart"),
    "FARE's tree": (USEFUL, "v", "FARE's tree, 24 leaves"),
    "PrototypeLearner": ("#7c3aed", "P", "PrototypeLearner"),
    "LFR": ("#a16207", "X", "LFR"),
    "DisparateImpactRemover": ("#be185d", "*", "DisparateImpactRemover"),
    "CorrelationRemover": ("#0e7490", "h", "CorrelationRemover"),
    "raw": ("black", "d", "the table itself"),
}


def points(table, method):
    """Return the AUCs of the attacker and of the target, of all settings of a method."""
    text = re.search(rf"^table {table}: .*?\n\n", RECORDED, re.MULTILINE | re.DOTALL)[0]
    lines = [line for line in text.splitlines() if line[:23].strip() == method]
    if method == "FARE's tree":
        lines = [line for line in lines if "24 leaves" in line]
    return sorted((float(line[74:83]), float(line[38:47])) for line in lines)


figure, axes = plt.subplots(1, 2, figsize=(9.6, 5.4), sharey=True)
for axis, table, title in zip(
    axes, ["adult", "adult, few rows"], ["3,000 rows to fit", "300 rows to fit"], strict=True
):
    for method, (color, marker, label) in LINES.items():
        axis.plot(
            *zip(*points(table, method), strict=True),
            color=color,
            marker=marker,
            lw=1.2,
            ls="-" if len(points(table, method)) > 2 else "",
            label=label,
        )
    axis.set(title=title, xlabel="AUC of an attacker who guesses sex (0.5: blind)")
axes[0].set_ylabel("AUC of a model of income")
handles, labels = axes[0].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside lower center", ncols=4)
