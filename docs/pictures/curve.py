"""The privacy-utility curve: what each budget keeps, and what no mechanism can reach."""

import matplotlib.pyplot as plt
import numpy as np
from house_style import QUIET, RELEASED, USEFUL, blood_pressure, percent

from skprivacy import design_mechanism, privacy_utility_path

counts = blood_pressure()
epsilons = np.geomspace(0.0005, 0.09, 40)
best = [m.normalized_upper_bound for m in privacy_utility_path(counts, epsilons)]
figure, axis = plt.subplots(figsize=(6.8, 3.5))
axis.plot(epsilons, best, color=RELEASED, lw=2.4, label="optimum, certified")
axis.fill_between(epsilons, best, 1.06, color="#e5e7eb", lw=0)
axis.annotate("out of reach", (0.0016, 0.82), color=QUIET, ha="center")
for solver, label, style in (
    ("best_partition", "best merging, no noise", {"color": USEFUL, "drawstyle": "steps-post"}),
    ("randomized_response", "randomised response", {"color": "#7c3aed", "ls": "--"}),
):
    path = privacy_utility_path(counts, epsilons, solver=solver)
    axis.plot(epsilons, [m.normalized_utility for m in path], lw=1.8, label=label, **style)
perfect = design_mechanism(counts, 0).normalized_utility
axis.annotate(f"ε = 0: {perfect:.0%}", (epsilons[0], perfect - 0.075), color=RELEASED)
axis.set(xscale="log", ylim=(0, 1.06), xlim=(epsilons[0], epsilons[-1]))
axis.set(xlabel="budget ε: what Y may reveal about S (nats)", ylabel="I(X;Y) / H(X)")
percent(axis.yaxis)
axis.legend(loc="center left", bbox_to_anchor=(0, 0.2))
