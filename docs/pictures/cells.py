"""A table of two columns, cut into cells, and its release."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from house_style import QUIET
from matplotlib.colors import LinearSegmentedColormap

from skprivacy import PrivacyFunnelTransformer, TreeCells
from skprivacy.fitting.fitted_estimator import fitted_of
from skprivacy.fitting.held_out import Symbols

rng = np.random.default_rng(0)
N_ROWS = 1500
is_man = rng.random(N_ROWS) < 0.5
table = pd.DataFrame({
    "age": np.clip(rng.normal(42, 14, N_ROWS), 18, 80).round(1),
    "hours": np.clip(rng.normal(32 + 8 * is_man, 8), 5, 65).round(1),
})  # fmt: skip
# The older the people, the further apart the two groups.
table["hours"] += ((2 * is_man - 1) * (table["age"] - 42) / 6).round(1)
funnel = PrivacyFunnelTransformer(0.02, alphabet=TreeCells(max_cells=14), random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # few rows are enough for a picture
    released = funnel.fit(table, sensitive_features=is_man).transform(table)

# The cell of every point of the plane.
ages, hours = np.linspace(17, 81, 400), np.linspace(0, 72, 400)
plane = pd.DataFrame({"age": np.tile(ages, 400), "hours": np.repeat(hours, 400)})
symbols = Symbols.of(fitted_of(funnel), list(plane))
cells = symbols.of_table(dict(plane.items())).reshape(400, 400)
mechanism = funnel.mechanism_
before = mechanism.p_sx[1] / mechanism.p_sx.sum(axis=0)
after = np.full(len(before), np.nan)  # NaN: no output is named after the cell
after[mechanism.symbol_of_output] = mechanism.sensitive_posterior[:, 1]

shades = LinearSegmentedColormap.from_list("groups", ["#7c3aed", "#f4f4f5", "#c2410c"])
figure, axes = plt.subplots(1, 2, figsize=(9.2, 4.1), sharey=True)
panels = [
    (table, before, "A table, cut into cells"),
    (released, after, "What is released, with a budget of 0.02"),
]
for axis, (rows, share, title) in zip(axes, panels, strict=True):
    image = axis.pcolormesh(ages, hours, share[cells], cmap=shades, vmin=0, vmax=1, alpha=0.6)
    for cell in range(len(before)):
        axis.contour(ages, hours, cells == cell, [0.5], colors="white", linewidths=1.6)
    shown = rows.iloc[:500]
    axis.scatter(shown["age"], shown["hours"], s=4, color="black", alpha=0.45, lw=0)
    for cell in np.flatnonzero(~np.isnan(share)):
        row, column = np.argwhere(cells == cell).mean(axis=0).astype(int)
        axis.text(
            ages[column], hours[row], f"{share[cell]:.0%}", ha="center", va="center",
            bbox={"facecolor": "white", "alpha": 0.75, "lw": 0, "pad": 1.5},
        )  # fmt: skip
    axis.set(xlabel="age", xlim=(17, 81), ylim=(0, 72), title=title)
    axis.tick_params(colors=QUIET)
axes[0].set_ylabel("hours a week")
bar = figure.colorbar(image, ax=axes, shrink=0.8, aspect=30, format="{x:.0%}")
bar.set_label("share of men")
