"""A useful column gives away a sensitive one; we release a randomised column instead.

Left, what each value of X reveals about S. In the middle, how often it becomes which Y. Right,
what each Y reveals about S. ``python docs/pictures/funnel.py FILE`` writes the picture to a file.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from house_style import QUIET, RELEASED, SENSITIVE, STYLE, USEFUL, blood_pressure, percent
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from skprivacy import Evaluation, PrivacyFunnelTransformer

EPSILON, GAP = 0.005, 0.035


def positions(shares):
    """Return the top of each of some stacked bars, from 0 downward with gaps."""
    return -(np.cumsum(shares) - shares + GAP * np.arange(len(shares)))


def ribbon(axis, left, right, width, color):
    """Draw a band of constant width from x = 0 to x = 1."""
    top = [(0, left), (0.5, left), (0.5, right), (1, right)]
    bottom = [(1, right - width), (0.5, right - width), (0.5, left - width), (0, left - width)]
    curve = [Path.LINETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]
    codes = [Path.MOVETO, *curve[1:], *curve]
    axis.add_patch(PathPatch(Path(top + bottom, codes), fc=color, ec="none", alpha=0.45))


def draw_channel(axis, mechanism, names):
    """Draw P(x, y) as ribbons from X to Y."""
    flows = mechanism.p_x[:, None] * mechanism.channel
    tops_x, tops_y = positions(mechanism.p_x), positions(mechanism.p_y)
    used_x, used_y = np.zeros(len(tops_x)), np.zeros(len(tops_y))
    for x, y in np.argwhere(flows > 1e-9):
        width = flows[x, y]
        color = USEFUL if names[x] == names[y] else QUIET
        ribbon(axis, tops_x[x] - used_x[x], tops_y[y] - used_y[y], width, color)
        used_x[x] += width
        used_y[y] += width
    for tops, shares, at, color in (
        (tops_x, mechanism.p_x, -0.03, USEFUL),
        (tops_y, mechanism.p_y, 1.03, RELEASED),
    ):
        axis.bar([at] * len(tops), shares, 0.06, bottom=tops - shares, color=color)
    axis.set(xlim=(-0.08, 1.08))
    axis.set_title("its values are\nmixed at random", loc="center", color=QUIET)
    axis.axis("off")


def draw_posterior(axis, centres, posterior, prior, color, title, names):
    """Draw the share of one group of S among the rows with each value."""
    axis.axvline(prior, color=QUIET, lw=1.2, ls="--", zorder=0)
    axis.hlines(centres, prior, posterior, color=SENSITIVE, lw=6, zorder=1)
    axis.scatter(posterior, centres, s=55, color=color, zorder=2)
    axis.set_title(title, color=color, loc="center")
    axis.set(yticks=centres, yticklabels=names, xlim=(0.3, 0.8), xticks=[0.4, prior, 0.7])
    percent(axis.xaxis)
    axis.tick_params(left=False)
    axis.spines["left"].set_visible(False)
    axis.set_xlabel("share of sex 1")


def designed(counts):
    """Return the mechanism of a transformer, and its outputs in the order of X."""
    pairs = counts.stack().index.repeat(counts.stack())
    rows = pairs.to_frame(index=False).set_axis(["sex", "band"], axis=1)
    funnel = PrivacyFunnelTransformer(
        EPSILON, output="symbol", sensitive="sex", columns=["band"]
    ).fit(rows)
    mechanism = funnel.mechanism_
    order = [mechanism.x_labels.index(name) for name in counts.columns]
    outputs = [mechanism.y_labels.index(name) for name in counts.columns]
    joint, channel = mechanism.p_sx[:, order], mechanism.channel[np.ix_(order, outputs)]
    return Evaluation.of_channel(channel, joint, mechanism.measure)


def main():
    """Draw all three parts on one scale."""
    counts = blood_pressure()
    mechanism = designed(counts)
    names = list(counts.columns)
    prior = mechanism.p_sx.sum(axis=1)[0]
    raw = mechanism.with_channel(np.eye(len(names)))
    figure, axes = plt.subplots(1, 3, figsize=(8.3, 3.7), width_ratios=[1, 0.95, 1])
    title = "blood pressure\ngives away sex"
    centres = positions(mechanism.p_x) - mechanism.p_x / 2
    draw_posterior(axes[0], centres, raw.sensitive_posterior[:, 0], prior, USEFUL, title, names)
    draw_channel(axes[1], mechanism, names)
    title = f"what is released keeps\n{mechanism.normalized_utility:.0%} of the information"
    centres = positions(mechanism.p_y) - mechanism.p_y / 2
    posterior = mechanism.sensitive_posterior[:, 0]
    draw_posterior(axes[2], centres, posterior, prior, RELEASED, title, names)
    axes[2].yaxis.tick_right()
    axes[2].tick_params(right=False)
    for axis in axes:
        axis.set_ylim(-1 - 5 * GAP, 0.03)
    note = "red: how far a value moves the share of sex 1 from that of all patients (dashed)"
    figure.supxlabel(note, fontsize=9.5, color=SENSITIVE)
    return figure


if __name__ == "__main__":
    plt.rcParams.update(STYLE)
    figure = main()
    if len(sys.argv) > 1:
        figure.savefig(sys.argv[1], dpi=150)
