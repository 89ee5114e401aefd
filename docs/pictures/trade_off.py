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

# Left of this, the README says how good the best models are.
LIMIT = 0.55

FAIRLEARN, AIF360, PLAIN = "#7c3aed", "#be185d", "#b7791f"
HOLLOW = {"markerfacecolor": "white", "ls": "--"}
LINES = {
    "skprivacy, names of cells": (["cells, symbol"], RELEASED, "o", {}),
    "skprivacy, rows for one model": (["cells, for V"], RELEASED, "s", {}),
    "skprivacy, rows for any use": (["cells, label"], RELEASED, "s", HOLLOW),
    "score without noise": (["coarse score", "score within P(S|x)"], PLAIN, "p", {}),
    "columns dropped": (["columns dropped"], QUIET, "D", {}),
    "columns apart": (["columns apart"], SENSITIVE, "^", {}),
    "FARE's tree": (["FARE's tree"], USEFUL, "v", {}),
    "PrototypeLearner (Fairlearn)": (["PrototypeLearner"], FAIRLEARN, "P", {}),
    "CorrelationRemover (Fairlearn)": (["CorrelationRemover"], FAIRLEARN, "h", {}),
    "LFR (AIF360)": (["LFR"], AIF360, "X", {}),
    "DisparateImpactRemover (AIF360)": (["DisparateImpactRemover"], AIF360, "*", {}),
    "the table itself": (["raw"], "black", "d", {}),
}


def points(table, methods):
    """Return the AUCs of the attacker and of the target, of all settings of methods."""
    text = re.search(rf"^table {table}: .*?\n\n", RECORDED, re.MULTILINE | re.DOTALL)[0]
    lines = [line for line in text.splitlines() if line[:23].strip() in methods]
    found = [(float(line[74:83]), float(line[38:47])) for line in lines]
    return sorted(found, key=lambda point: (point[0], -point[1]))


def unbeaten(drawn):
    """Return points, sorted, without those that another one is at least as good as."""
    return [point for i, point in enumerate(drawn) if all(point[1] > y for _, y in drawn[:i])]


def best(table="adult", limit=LIMIT):
    """Return the best AUC of the target, by method, where the attacker's is below a limit."""
    drawn = {label: points(table, methods) for label, (methods, *_) in LINES.items()}
    left = {label: [y for x, y in found if x < limit] for label, found in drawn.items()}
    left["the table itself"] = [y for _, y in drawn["the table itself"]]  # whatever its attacker
    return {label: max(found) for label, found in left.items() if found}


def draw(axis, drawn, label, color, marker, extra):
    """Draw the points of a method, pale if another one beats them, and a line through the rest."""
    style = {"color": color, "marker": marker, "lw": 1.2, "ls": "-" if len(drawn) > 2 else ""}
    style |= extra
    kept = unbeaten(drawn)
    axis.plot(*zip(*kept, strict=True), label=label, **style)
    if pale := [point for point in drawn if point not in kept]:
        axis.plot(*zip(*pale, strict=True), **style | {"ls": "", "alpha": 0.4})


def main():
    """Draw the picture."""
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 5.4), sharey=True)
    for axis, table in zip(axes, ["adult", "adult, few rows"], strict=True):
        axis.axvline(LIMIT, color=QUIET, lw=0.8, ls=":")
        for label, (methods, *style) in LINES.items():
            draw(axis, points(table, methods), label, *style)
        n_rows = re.search(rf"^table {table}: .*\n([\d,]+) rows to fit", RECORDED, re.MULTILINE)[1]
        axis.set(title=f"{n_rows} rows", xlabel="AUC of an attacker who guesses sex (0.5: blind)")
    axes[0].set_ylabel("AUC of a model of income")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


if __name__ == "__main__":
    plt.rcParams.update(STYLE)
    picture = main()
    print(*(f"{found:.2f} {label}" for label, found in best().items()), sep="\n")
    if len(sys.argv) > 1:
        picture.savefig(sys.argv[1], dpi=150)
