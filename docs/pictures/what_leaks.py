"""What is released and what leaks: information about X and about S, in X and in Y."""

import matplotlib.pyplot as plt
import numpy as np
from house_style import QUIET, RELEASED, SENSITIVE, USEFUL, blood_pressure

from skprivacy import design_mechanism

mechanism = design_mechanism(blood_pressure(), 0.005)
raw = mechanism.with_channel(np.eye(5))
names = ["X itself", "Y, released"]

figure, axes = plt.subplots(1, 2, figsize=(7.6, 1.9))
for axis, values, title, color in (
    (axes[0], [raw.utility, mechanism.utility], "about X: what is kept", USEFUL),
    (
        axes[1],
        [raw.sensitive_information, mechanism.sensitive_information],
        "about S: what leaks",
        SENSITIVE,
    ),
):
    bars = axis.barh(names, values, color=[QUIET, RELEASED], height=0.6)
    axis.bar_label(bars, [f"{v:.3g} ({v / values[0]:.0%})" for v in values], padding=4)
    axis.set_title(title, color=color)
    axis.set(xlim=(0, 1.4 * values[0]), xlabel="nats")
    axis.invert_yaxis()
    axis.tick_params(left=False)
axes[1].set_yticklabels([])
