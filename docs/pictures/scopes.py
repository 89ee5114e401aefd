"""Every output, or on average: the same epsilon, two promises."""

import matplotlib.pyplot as plt
import numpy as np
from house_style import BUDGET, QUIET, RELEASED, blood_pressure

from skprivacy import design_mechanism

EPSILON = 0.01
counts = blood_pressure()
figure, axes = plt.subplots(1, 2, figsize=(7.6, 2.6), sharey=True)
for axis, scope, title in zip(
    axes, ("per_output", "average"), ("every output", "on average"), strict=True
):
    mechanism = design_mechanism(counts, EPSILON, scope=scope)
    left = np.cumsum(mechanism.p_y) - mechanism.p_y
    axis.bar(left, mechanism.leakage, mechanism.p_y, align="edge", color=RELEASED, ec="white")
    axis.axhline(EPSILON, color=BUDGET, lw=1.6, label="ε")
    axis.axhline(mechanism.average_leakage, color=QUIET, ls=":", lw=2, label="their average")
    axis.set_title(f"{title}: keeps {mechanism.normalized_utility:.0%}")
    axis.set(xlim=(0, 1), xlabel="outputs; width: P(y)", xticks=[])
axes[0].set_ylabel("leakage (nats)")
axes[1].legend(loc="upper left", bbox_to_anchor=(1, 1))
