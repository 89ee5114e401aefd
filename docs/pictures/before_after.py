"""Show the first rows of the demo's table, and what is released of them.

``python docs/pictures/before_after.py FOLDER FILE`` reads the folder of ``skprivacy demo`` and
writes the picture to a file.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from house_style import QUIET, SENSITIVE, STYLE

from skprivacy.encoding import learn_column

N_ROWS, BINS = 8, 3  # rows that are shown; bins of the demo
HEADINGS = {"blood_pressure": "blood pressure", "bmi": "BMI"}
SWAPPED = "#bbf7d0"


def is_swapped(before, after):
    """Return which released values are in another bin than the true ones."""
    bins, symbols = learn_column(before, None, before.name, n_bins=BINS)
    return bins.encode(after, after.name) != symbols


def draw_table(axis, shown, title, look):
    """Draw the first rows of a table; look : how a cell looks, from its row and column."""
    axis.set_axis_off()
    axis.set_title(title, loc="left", pad=8)
    texts = shown.head(N_ROWS).map(
        lambda value: format(value, "" if isinstance(value, str) else "g")
    )
    drawn = axis.table(
        texts.to_numpy(),
        colLabels=[HEADINGS.get(name, name) for name in shown],
        cellLoc="center",
        bbox=[0, 0, 1, 1],
    )
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(13)
    for (row, column), cell in drawn.get_celld().items():
        style = look(row - 1, shown.columns[column]) if row else {"color": QUIET}
        cell.set(linewidth=0, facecolor=style.pop("background", "white" if row else "#f3f4f6"))
        cell.set_text_props(**style)


def main(folder):
    """Draw the picture."""
    before, after = (pd.read_csv(folder / f"{name}.csv") for name in ("patients", "released"))
    swapped = {name: is_swapped(before[name], after[name]) for name in after}
    figure, axes = plt.subplots(1, 3, figsize=(10, 4), width_ratios=[4, 0.7, 2.2])
    left, middle, right = axes
    draw_table(
        left,
        before,
        "Before: sex is private",
        lambda _, name: {"color": SENSITIVE, "weight": "bold"} if name == "sex" else {},
    )
    draw_table(
        right,
        after,
        "After: what is shared",
        lambda row, name: {"background": SWAPPED} if swapped[name][row] else {},
    )
    middle.set_axis_off()
    arrow = {"arrowstyle": "simple", "color": QUIET}
    middle.annotate("", (1, 0.45), (0, 0.45), arrowprops=arrow, xycoords="axes fraction")
    said = "A value is shown as the median of its bin; green ones were swapped for another bin."
    figure.supxlabel(said, color=QUIET, fontsize=12)
    return figure


if __name__ == "__main__":
    plt.rcParams.update(STYLE | {"axes.titlesize": 14})
    main(Path(sys.argv[1])).savefig(sys.argv[2], dpi=120)
