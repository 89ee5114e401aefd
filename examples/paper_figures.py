"""Shared code of the scripts for the paper's figures: joints, parallel runs, CSV and PNG files.

Not an example itself; see ``figure_1.py``, ``figure_2.py`` and ``figure_3.py``.
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from tqdm import tqdm

from skprivacy.solvers import Algorithm1Solver

PUBLISHED = Path(__file__).parent / "published"

# The paper's parameters, its Section IV.
EPSILONS = np.arange(1, 201) * 0.0025
ALGORITHM1 = Algorithm1Solver(delta=0.05, n_between=5, n_last=500, eps_last=1.0)

COLORS = {
    "algorithm1": "tab:red",
    "max_lift": "tab:blue",
    "subset_merging": "tab:green",
    "best_partition": "tab:orange",
    "all": "tab:blue",
    "theory": "tab:green",
}


def random_joints(n, seed=0, shape=(4, 7)):
    """Return n joints with independent uniform entries.

    The paper does not say how it draws its joints; these reproduce its curves.
    """
    return np.random.default_rng(seed).random((n, *shape))


def parse_options(description, joints=None):
    """Return the options of a figure script: where to write, how many joints and processes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "output")
    if joints is not None:
        parser.add_argument("--joints", type=positive, default=joints)
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--jobs", type=int, default=-1, help="processes; -1: one per core")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    return options


def positive(text):
    """Return a whole number of at least 1."""
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {text}")
    return int(text)


def panels_of(paths, figures, row=""):
    """Return ``{(row, panel): DataFrame}`` with a column per path and a line per epsilon."""
    return {
        (row, panel): pd.DataFrame(
            {name: pd.Series({m.epsilon: figure(m) for m in path}) for name, path in paths.items()}
        )
        for panel, figure in figures.items()
    }


def mean_curves(curves_of_joint, options):
    """Return the panels averaged over random joints, and their standard errors."""
    joints = random_joints(options.joints, options.seed)
    runs = Parallel(n_jobs=options.jobs, return_as="generator")(
        delayed(curves_of_joint)(joint) for joint in joints
    )
    runs = list(tqdm(runs, total=len(joints), unit="joint"))
    means = {panel: sum(run[panel] for run in runs) / len(runs) for panel in runs[0]}
    squares = {panel: sum((run[panel] - means[panel]) ** 2 for run in runs) for panel in means}
    errors = {panel: np.sqrt(square) / len(runs) for panel, square in squares.items()}
    return means, errors


def difference(curves, published, up_to=np.inf):
    """Return the largest difference of each curve to the published one of the same name."""
    both = curves.columns.intersection(published.columns)
    nearest = published.index[published.index <= up_to + 1e-9]
    ours = curves.reindex(nearest, method="nearest", tolerance=1e-9)
    return (ours[both] - published.loc[nearest, both]).abs().max()


def read_published(names):
    """Return ``{("", panel): DataFrame}`` of the published panels, indexed by epsilon."""
    return {
        ("", panel): pd.read_csv(PUBLISHED / f"{name}.csv", index_col="epsilon")
        for panel, name in names.items()
    }


def save(figure_name, panels, titles, labels, options, published=None, overlap=False, note=""):
    """Write one CSV per panel and one PNG with all of them, in their rows."""
    rows = list(dict.fromkeys(row for row, _ in panels))
    shape = len(rows), len(titles)
    size = 4.6 * shape[1], 3.6 * shape[0] + 0.5
    figure, axes = plt.subplots(*shape, figsize=size, squeeze=False, layout="constrained")
    for axis, ((row, panel), curves) in zip(axes.flat, panels.items(), strict=True):
        name = "_".join(filter(None, [figure_name, row, panel]))
        curves.to_csv(options.output / f"{name}.csv", index_label="epsilon")
        draw(axis, curves, labels, (published or {}).get((row, panel)), overlap)
        axis.set_ylabel(titles[panel])
        axis.set_title(f"{row} privacy" if row else "", fontsize="medium")
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=len(handles[0]), frameon=False)
    if note:
        figure.supxlabel(note, fontsize="small", color="0.3")
    path = options.output / f"{figure_name}.png"
    figure.savefig(path, dpi=150)
    print(f"Wrote {path} and the curves as {figure_name}_*.csv")


def draw(axis, curves, labels, published=None, overlap=False):
    """Draw one panel; published curves are dotted, in the colour of ours."""
    for i, column in enumerate(curves.columns):
        # Thinner and thinner, so that curves that coincide can all be seen.
        style = {"color": COLORS[column], "lw": 5 - 1.6 * i if overlap else 1.5}
        axis.plot(curves.index, curves[column], label=labels[column], **style)
    if published is not None:
        for column in published:
            color = "black" if overlap else COLORS[column]
            axis.plot(published[column], ":", color=color, lw=1.8)
        axis.plot([], [], ":", color="black" if overlap else "0.3", lw=1.8, label="as published")
    axis.set_xlabel(r"budget $\varepsilon$")
    axis.set_xlim(0, curves.index.max())
    axis.set_ylim(bottom=0 if curves.min().min() < 0.3 else None)
    axis.grid(alpha=0.3)
