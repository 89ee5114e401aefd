"""The same row, released again and again: what all its releases together reveal about S."""

import matplotlib.pyplot as plt
import numpy as np
from house_style import QUIET, RELEASED, SENSITIVE, USEFUL, blood_pressure

from skprivacy import design_mechanism

MOST = 7
counts = blood_pressure()


def information(mechanism):
    """Return I(S; Y_1, ..., Y_k) for k = 1, 2, ..., with fresh noise each time."""
    channel, all_of_them = mechanism.channel, np.ones((len(mechanism.p_x), 1))
    for _ in range(MOST):
        product = all_of_them[:, :, None] * channel[:, None, :]
        all_of_them = product.reshape(len(channel), -1)
        yield mechanism.with_channel(all_of_them).sensitive_information


releases = np.arange(1, MOST + 1)
figure, axis = plt.subplots(figsize=(6.8, 3.2))
for epsilon, color in ((0.005, RELEASED), (0.0, USEFUL)):
    mechanism = design_mechanism(counts, epsilon)
    values = list(information(mechanism))
    axis.plot(releases, values, "o-", color=color, lw=2, label=f"fresh noise, ε = {epsilon:g}")
merged = design_mechanism(counts, 0.005, solver="best_partition")
values = list(information(merged))
axis.plot(releases, values, "s-", color=SENSITIVE, ms=5, lw=1.5, label="merging, ε = 0.005")
axis.plot(releases, 0.005 * releases, ":", color=QUIET, lw=1.5, label="k ε: not a bound")
raw = mechanism.with_channel(np.eye(5)).sensitive_information
axis.axhline(raw, color="black", ls="--", lw=1.2, label="I(S;X)")
axis.set(xlabel="releases of the same row, k", ylabel="I(S; all releases), nats")
axis.set(ylim=(0, 0.044), xticks=releases)
axis.legend(loc="upper left", bbox_to_anchor=(1, 1))
