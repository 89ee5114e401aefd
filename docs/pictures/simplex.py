"""The geometry of the problem: allowed posteriors, and those that the best mechanism uses."""

import matplotlib.pyplot as plt
import numpy as np
from house_style import QUIET, RELEASED, USEFUL

from skprivacy import design_mechanism
from skprivacy.measures import KL

JOINT = np.array([[0.90, 0.08, 0.40], [0.025, 0.82, 0.05], [0.075, 0.10, 0.55]]) / 3
CORNERS = np.array([[0, 0], [1, 0], [0.5, np.sqrt(3) / 2]])


def draw(axis, epsilon):
    """Draw the simplex of P(X|y) with what epsilon allows, and the optimum."""
    p_x, p_s = JOINT.sum(axis=0), JOINT.sum(axis=1)
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 500), np.linspace(0, 1, 500)), axis=-1)
    points = np.concatenate([grid, 1 - grid.sum(axis=-1, keepdims=True)], axis=-1)
    inside = points[..., 2] >= 0
    weights = np.where(inside[..., None], points, 1 / 3)
    leakage = np.where(inside, KL().value(weights @ (JOINT / p_x).T, p_s), np.nan)
    x, y = np.moveaxis(points @ CORNERS, -1, 0)
    axis.contourf(x, y, leakage, levels=[-1, epsilon], colors=["#fde68a"])
    axis.plot(*CORNERS[[0, 1, 2, 0]].T, color=QUIET, lw=1.2)
    mechanism = design_mechanism(JOINT, epsilon)
    at = mechanism.posterior @ CORNERS
    axis.scatter(*at.T, s=500 * mechanism.p_y, color=RELEASED, alpha=0.8, zorder=3, lw=0)
    axis.plot(*(p_x @ CORNERS), "+", color="black", ms=11, mew=1.8)
    for corner, name, where in zip(CORNERS, "123", [(-9, -9), (9, -9), (0, 14)], strict=True):
        style = {"ha": "center", "va": "center", "color": USEFUL, "textcoords": "offset points"}
        axis.annotate(f"$x_{name}$", corner, where, **style)
    axis.set_title(f"ε = {epsilon:g}: I(X;Y) = {mechanism.utility:.3f}", loc="center")
    axis.set(aspect="equal", xlim=(-0.08, 1.08), ylim=(-0.1, 1.0))
    axis.axis("off")


figure, axes = plt.subplots(1, 3, figsize=(7.8, 2.7))
for axis, epsilon in zip(axes, (0.02, 0.1, 0.3), strict=True):
    draw(axis, epsilon)
