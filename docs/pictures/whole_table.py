"""Ways to release a whole table: the AUC of a model against the AUC of an attacker."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
from house_style import QUIET, RELEASED, SENSITIVE, USEFUL

# The file has a table for each S, with a part for each budget; this is the one of sex.
# The plot directive runs scripts without their path, in their folder.
MEASURED = Path(globals().get("__file__", "whole_table.py")).resolve().parents[1] / "measured"
text = (MEASURED / "whole_table.txt").read_text().split("S = ")[1]
parts = dict(zip(*[iter(["", *re.split(r"epsilon = ([\d.]+)\n", text)])] * 2, strict=True))


def point(part, name):
    """Return the AUC of an attacker and that of the target, of one line."""
    auc, attacker = re.search(rf"^{name} +([\d.]+) +([\d.]+)", parts[part], re.MULTILINE).groups()
    return float(attacker), float(auc)


figure, axis = plt.subplots(figsize=(7.6, 4.6))
for name, color, marker in [
    ("ScoreCells, symbol", RELEASED, "o"),
    ("ScoreCells, label", RELEASED, "s"),
    ("TreeCells, label", USEFUL, "s"),
    ("columns one by one", SENSITIVE, "^"),
]:
    points = [point(part, name) for part in parts if part]
    label = name.replace("columns", "values, columns")
    axis.plot(*zip(*points, strict=True), color=color, marker=marker, lw=1.2, label=label)
    if name == "ScoreCells, symbol":
        for part, place in zip(list(parts)[1:], points, strict=True):
            axis.annotate(
                part, place, (-4, 7), textcoords="offset points", color=color, fontsize=9
            )
for part, name, label, shift, side in [
    ("", "raw", "the table itself", (-8, 5), "right"),
    ("", "without the 4 most telling columns", "without 4 columns", (8, -4), "left"),
    ("", "without the 6 most telling columns", "without 6 columns", (-8, 2), "right"),
    ("", "CorrelationRemover", "CorrelationRemover", (6, -17), "right"),
    ("0.02", "values, pooled, label", "values, pooled", (8, -3), "left"),
]:
    place = point(part, name)
    axis.plot(*place, "D", color=QUIET)
    axis.annotate(label, place, shift, textcoords="offset points", ha=side, color=QUIET)
axis.set(xlabel="AUC of an attacker who guesses sex (0.5: blind)", xlim=(0.47, 1.02))
axis.set(ylabel="AUC of a model of income", ylim=(0.53, 0.95))
axis.legend(loc="lower right")
