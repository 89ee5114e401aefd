"""What epsilon means: how far a released value may move the odds of S."""

import matplotlib.pyplot as plt
import numpy as np
from house_style import QUIET, RELEASED, USEFUL, blood_pressure, percent
from scipy.special import kl_div

from skprivacy import design_mechanism

counts = blood_pressure()
path = {epsilon: design_mechanism(counts, epsilon) for epsilon in (0.02, 0.005)}
prior = path[0.02].p_sx.sum(axis=1)
raw = path[0.02].with_channel(np.eye(5))

shares = np.linspace(0.001, 0.999, 4001)
divergence = kl_div(np.stack([shares, 1 - shares], axis=1), prior).sum(axis=1)

rows = {"X itself": raw} | {f"Y, ε = {epsilon:g}": m for epsilon, m in path.items()}
figure, axis = plt.subplots(figsize=(7.6, 2.7))
for i, evaluation in enumerate(rows.values()):
    if i:
        allowed = shares[divergence <= evaluation.epsilon]
        axis.fill_betweenx([i - 0.36, i + 0.36], allowed[0], allowed[-1], color="#fde68a", lw=0)
    x, y = evaluation.sensitive_posterior[:, 0], np.full(len(evaluation.p_y), i)
    size = 900 * evaluation.p_y
    axis.scatter(x, y, s=size, color=RELEASED if i else USEFUL, alpha=0.6, zorder=3, lw=0)
axis.axvline(prior[0], color=QUIET, ls="--", lw=1.2)
axis.annotate("all patients", (prior[0], -0.62), ha="center", color=QUIET, annotation_clip=False)
axis.fill_between([], [], color="#fde68a", label="what ε allows")
axis.scatter([], [], color=QUIET, s=60, label="one value; its size shows how often it occurs")
axis.set(xlim=(0.3, 0.8), ylim=(2.5, -0.5), yticks=range(3), yticklabels=list(rows))
axis.set_xlabel("P(sex 1 | value)")
axis.tick_params(left=False)
percent(axis.xaxis)
figure.legend(loc="outside lower center", ncols=2)
