"""Compare ways to release a table, with many rows to fit and with few.

``python docs/pictures/trade_off.py`` prints the best points; with the name of a file, it also
writes the picture to it.
"""

import re
import sys
from pathlib import Path

import matplotlib.pyplot as plt
from house_style import QUIET, RELEASED, SENSITIVE, STYLE, USEFUL

# The plot directive runs scripts without their path, in their folder.
MEASURED = Path(globals().get("__file__", "trade_off.py")).resolve().parents[1] / "measured"
RECORDED = (MEASURED / "trade_off.txt").read_text()

LINES = {
    "cells, symbol": (RELEASED, "o", "skprivacy, names of cells"),
    "cells, label": (RELEASED, "s", "skprivacy, rows"),
    "columns dropped": (QUIET, "D", "columns dropped"),
    "columns apart": (SENSITIVE, "^", "columns apart"),
    "FARE's tree, 24 leaves": (USEFUL, "v", "FARE's tree, 24 leaves"),
    "FARE's tree, 8 leaves": (USEFUL, "<", "FARE's tree, 8 leaves"),
    "PrototypeLearner": ("#7c3aed", "P", "PrototypeLearner"),
    "LFR": ("#a16207", "X", "LFR"),
    "DisparateImpactRemover": ("#be185d", "*", "DisparateImpactRemover"),
    "CorrelationRemover": ("#0e7490", "h", "CorrelationRemover"),
    "raw": ("black", "d", "the table itself"),
}


def points(table, method):
    """Return the AUCs of the attacker and of the target, of all settings of a method.

    method : its name, then what its settings have in common, if only some of them are meant.
    """
    name, _, common = (method, "", "") if method.startswith("cells") else method.partition(", ")
    text = re.search(rf"^table {table}: .*?\n\n", RECORDED, re.MULTILINE | re.DOTALL)[0]
    lines = [line for line in text.splitlines() if line[:23].strip() == name]
    lines = [line for line in lines if f" {common}" in line[23:38]]
    return sorted((float(line[74:83]), float(line[38:47])) for line in lines)


def best(table="adult", limit=0.55):
    """Return the best AUC of the target, by method, where the attacker's is below a limit."""
    drawn = {label: points(table, method) for method, (*_, label) in LINES.items()}
    left = {label: [y for x, y in found if x < limit] for label, found in drawn.items()}
    left["the table itself"] = [y for _, y in drawn["the table itself"]]  # whatever its attacker
    return {label: max(found) for label, found in left.items() if found}


def main():
    """Draw the picture."""
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 5.4), sharey=True)
    for axis, table in zip(axes, ["adult", "adult, few rows"], strict=True):
        for method, (color, marker, label) in LINES.items():
            drawn = points(table, method)
            style = {"color": color, "marker": marker, "lw": 1.2, "label": label}
            axis.plot(*zip(*drawn, strict=True), ls="-" if len(drawn) > 2 else "", **style)
        n_rows = re.search(rf"^table {table}: .*\n([\d,]+) rows to fit", RECORDED, re.MULTILINE)[1]
        axis.set(title=f"{n_rows} rows", xlabel="AUC of an attacker who guesses sex (0.5: blind)")
    axes[0].set_ylabel("AUC of a model of income")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


if __name__ == "__main__":
    plt.rcParams.update(STYLE)
    picture = main()
    print(*(f"{found:.2f} {label}" for label, found in best().items()), sep="\n")
    if len(sys.argv) > 1:
        picture.savefig(sys.argv[1], dpi=150)
