"""The same budget, two channels: what a reader of the released table sees."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from house_style import QUIET, RELEASED, USEFUL, percent

from skprivacy import PrivacyFunnelTransformer
from skprivacy.datasets import load_diabetes_bands
from skprivacy.mechanism import named_channel

N_BANDS = 10
DESIGNS = {
    "mutual_information": ("Designed for information", USEFUL),
    "distortion": ("Designed for closeness", RELEASED),
}
patients = load_diabetes_bands(N_BANDS)
figure = plt.figure(figsize=(8.6, 6.8))
grid = figure.add_gridspec(2, 2, height_ratios=[5, 3])
below = figure.add_subplot(grid[1, :])
steps = np.abs(np.subtract.outer(range(N_BANDS), range(N_BANDS)))
for column, (utility, (title, color)) in enumerate(DESIGNS.items()):
    funnel = PrivacyFunnelTransformer(0.005, sensitive="sex", columns=["bmi"], utility=utility)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so small a budget for 442 rows
        mechanism = funnel.fit(patients).mechanism_
    released = named_channel(mechanism).p_symbol
    axis = figure.add_subplot(grid[0, column])
    axis.imshow(released, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for x, y in np.argwhere(released >= 0.05):
        shade = "white" if released[x, y] > 0.55 else "black"
        axis.text(
            y, x, f"{100 * released[x, y]:.0f}", color=shade, ha="center", va="center", fontsize=8
        )
    names = mechanism.x_labels
    axis.set_xticks(range(N_BANDS), names, rotation=45, ha="right", fontsize=8)
    axis.set_yticks(range(N_BANDS), names, fontsize=8)
    axis.set(xlabel="released body mass index", title=f"{title}, in percent")
    axis.set_ylabel("true body mass index" if column == 0 else "")
    moved = np.bincount(steps.ravel(), (mechanism.p_x[:, None] * released).ravel())
    share = f"{mechanism.mutual_information:.2f} nats kept"
    bars = below.bar(
        np.arange(N_BANDS) + 0.4 * column - 0.2,
        moved,
        0.38,
        color=color,
        label=f"{title}, {share}",
    )
    below.bar_label(bars, [f"{part:.0%}" if part >= 0.005 else "" for part in moved], fontsize=8)
below.set(xlabel="bands between the true and the released value", ylabel="share of rows")
below.set(xlim=(-0.6, 6.6), xticks=range(7))
percent(below.yaxis)
below.legend(labelcolor=QUIET)
