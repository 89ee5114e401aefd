"""Why rare values cannot be released from few rows."""

import matplotlib.pyplot as plt
import numpy as np
from house_style import BUDGET, QUIET, RELEASED, USEFUL, percent

from skprivacy import design_mechanism
from skprivacy.mechanism import named_channel
from skprivacy.metrics import population_leakage

EPSILON = 0.02
figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.6), width_ratios=[1, 1.25])

# A value that says nothing about S, whose rows are just as they should be.
rows = np.unique(np.geomspace(10, 2000, 30).round(-1))
limits = []
for n in rows:
    counts = np.array([[n / 2, 50_000], [n / 2, 50_000]])
    unchanged = design_mechanism(counts, np.inf)  # X itself is released
    limit = population_leakage(unchanged, int(counts.sum())).per_output
    limits.append(limit.max())
enough = rows[np.array(limits) <= EPSILON][0]
left.plot(rows, limits, color=USEFUL, lw=2)
left.axhline(EPSILON, color=BUDGET, lw=1.6)
left.axvline(enough, color=QUIET, lw=1, ls=":")
left.text(12, EPSILON * 1.12, "epsilon", color=BUDGET)
left.text(enough * 1.1, 0.1, f"about {enough:.0f} rows", color=QUIET)
left.set(xscale="log", yscale="log", xlabel="rows with a value", ylabel="may leak up to (nats)")
left.set_xticks([10, 100, 1000], ["10", "100", "1,000"])
left.set_yticks([0.001, 0.01, 0.1], ["0.001", "0.01", "0.1"])
left.set_title("A value that says nothing about S")

# Twelve values, each half as common as the one before but two.
shares = 0.5 ** (np.arange(12) / 2)
shares /= shares.sum()
joint = np.array([0.5 + 0.02 * np.cos(np.arange(12)), 0.5 - 0.02 * np.cos(np.arange(12))]) * shares
for position, (n, color) in enumerate([(None, QUIET), (10_000, RELEASED), (1_000, USEFUL)]):
    sure = {} if n is None else {"confidence": 0.95, "n_samples": n}
    mechanism = design_mechanism(joint, EPSILON, utility="guess", **sure)
    same = np.diag(named_channel(mechanism).p_symbol)
    label = "the joint distribution is known" if n is None else f"from {n:,} rows"
    right.bar(np.arange(12) + 0.28 * (position - 1), same, 0.26, color=color, label=label)
right.set_xticks(range(12), [f"{1000 * share:.0f}" for share in shares], fontsize=8)
right.set(xlabel="rows with the value, of each 1,000", ylabel="released as it is", ylim=(0, 1.55))
right.set_yticks([0, 0.5, 1])
percent(right.yaxis)
right.legend(loc="upper right", fontsize="small", ncols=1)
right.set_title("Twelve values at epsilon = 0.02")
