"""What the scripts for the paper's figures share: joints, parallel runs, CSV and PNG files.

Not an example itself; see ``figure_1.py``, ``figure_2.py`` and ``figure_3.py``.
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from tqdm import tqdm

PUBLISHED = Path(__file__).parent / "published"

# The paper's parameters, its Section IV.
EPSILONS = np.arange(1, 201) * 0.0025
ALGORITHM1 = {
    "solver": "algorithm1",
    "delta": 0.05,
    "n_between": 5,
    "n_last": 500,
    "eps_last": 1.0,
}

COLORS = ["tab:red", "tab:blue", "tab:green", "tab:orange"]


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
        parser.add_argument("--joints", type=int, default=joints)
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--jobs", type=int, default=-1, help="processes; -1: one per core")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    return options


def panels_of(paths, figures):
    """Return ``{panel: DataFrame}`` with a column per path and a row per epsilon."""
    return {
        panel: pd.DataFrame(
            {name: pd.Series({m.epsilon: figure(m) for m in path}) for name, path in paths.items()}
        )
        for panel, figure in figures.items()
    }


def mean_curves(curves_of_joint, options):
    """Average ``{panel: DataFrame}`` over random joints, in parallel."""
    joints = random_joints(options.joints, options.seed)
    runs = Parallel(n_jobs=options.jobs, return_as="generator")(
        delayed(curves_of_joint)(joint) for joint in joints
    )
    runs = list(tqdm(runs, total=len(joints), unit="joint"))
    return {panel: sum(run[panel] for run in runs) / len(runs) for panel in runs[0]}


def difference(curves, published, up_to=np.inf):
    """Return the largest difference of each curve to the published one of the same name."""
    both = curves.columns.intersection(published.columns)
    nearest = published.index[published.index <= up_to + 1e-9]
    ours = curves.reindex(nearest, method="nearest", tolerance=1e-9)
    return (ours[both] - published.loc[nearest, both]).abs().max()


def read_published(name):
    """Return a published panel, indexed by epsilon."""
    return pd.read_csv(PUBLISHED / f"{name}.csv", index_col="epsilon")


def save(figure_name, panels, titles, labels, options, published=None, overlap=False):
    """Write one CSV per panel and one PNG with all of them."""
    figure, axes = plt.subplots(1, len(panels), figsize=(4.6 * len(panels), 3.6))
    for axis, (panel, curves) in zip(axes, panels.items(), strict=True):
        curves.to_csv(options.output / f"{figure_name}_{panel}.csv", index_label="epsilon")
        for i, column in enumerate(curves.columns):
            # Thinner and thinner, so that curves that coincide can all be seen.
            style = {"color": COLORS[i], "lw": 5 - 1.6 * i} if overlap else {"color": COLORS[i]}
            axis.plot(curves.index, curves[column], label=labels[column], **style)
            if published is not None and column in published[panel]:
                axis.plot(published[panel][column], ":", color="black", lw=1.2)
        if published is not None:
            axis.plot([], [], ":", color="black", lw=1.2, label="as published")
        axis.set_xlabel(r"$\varepsilon$")
        axis.set_ylabel(titles[panel])
        axis.set_xlim(0, curves.index.max())
        axis.set_ylim(bottom=0 if curves.min().min() < 0.3 else None)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize="small")
    figure.tight_layout()
    path = options.output / f"{figure_name}.png"
    figure.savefig(path, dpi=150)
    plt.close(figure)
    print(f"Wrote {path} and the curves as {figure_name}_*.csv")
