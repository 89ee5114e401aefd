"""Leakage about sex of pairs of occupation and income, with income copied or beside it."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
from house_style import BUDGET, GROUPS, QUIET, percent

# The plot directive runs scripts without their path, in their folder.
MEASURED = Path(globals().get("__file__", "beside.py")).resolve().parents[1] / "measured"
pairs = re.findall(
    r"^(copied|beside) +(\S+) +([\d.]+) +([\d.]+)$",
    (MEASURED / "beside.txt").read_text(),
    re.MULTILINE,
)

figure, axes = plt.subplots(1, 2, figsize=(9.2, 3.9), sharey=True)
for axis, how, epsilon, title in [
    (axes[0], "copied", 0.01, "Income copied next to occupation"),
    (axes[1], "beside", 0.1, "Income beside it, under the budget"),
]:
    for income, color in zip(["<=50K", ">50K"], GROUPS, strict=True):
        points = [(float(x), float(y)) for kind, z, x, y in pairs if (kind, z) == (how, income)]
        axis.plot(*zip(*points, strict=True), "o", ms=5, alpha=0.8, color=color, label=income)
    axis.axhline(epsilon, color=BUDGET, lw=1.2)
    axis.text(0.205, epsilon + 0.004, f"budget {epsilon:g}", color=BUDGET, ha="right", va="bottom")
    axis.set(xlabel="share of the rows", title=title, xlim=(-0.005, 0.207), ylim=(-0.008, 0.24))
    percent(axis.xaxis)
    axis.tick_params(colors=QUIET)
axes[0].set_ylabel("what a pair says about sex (kl)")
axes[0].legend(title="income", loc="upper right")
