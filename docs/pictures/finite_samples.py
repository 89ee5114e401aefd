"""Finite samples: designed for the estimate, judged under the truth."""

import matplotlib.pyplot as plt
import numpy as np
from house_style import BUDGET, QUIET, RELEASED, blood_pressure

from skprivacy import design_mechanism, population_leakage

EPSILON, DRAWS = 0.005, 40
SIZES = [250, 1_000, 4_000, 16_000, 64_000]
rng = np.random.default_rng(0)
truth = blood_pressure().to_numpy() / 442  # taken as the population

leakage, limits = [], []
for n in SIZES:
    designs = [
        design_mechanism(rng.multinomial(n, truth.ravel()).reshape(truth.shape), EPSILON)
        for _ in range(DRAWS)
    ]
    leakage.append([m.evaluate(truth).max_leakage for m in designs])
    limits.append(
        np.median([population_leakage(m, n, n_resamples=99).max_leakage for m in designs[:10]])
    )

figure, axis = plt.subplots(figsize=(6.8, 3.3))
for i, values in enumerate(leakage):
    jitter = rng.uniform(-0.16, 0.16, size=DRAWS)
    label = "one design, under the true distribution" if i == 0 else None
    axis.scatter(i + jitter, values, s=14, color=RELEASED, alpha=0.55, lw=0, label=label)
middle = [np.median(values) for values in leakage]
style = {"color": RELEASED, "lw": 3, "label": "their median"}
axis.hlines(middle, np.arange(len(SIZES)) - 0.25, np.arange(len(SIZES)) + 0.25, **style)
axis.plot(
    range(len(SIZES)), limits, "_", color=QUIET, ms=26, mew=2, label="population_leakage, 95%"
)
axis.axhline(EPSILON, color=BUDGET, lw=1.6, label="ε, kept under the estimate")
ticks = [0.004, 0.01, 0.02, 0.05]
axis.set_yscale("log")
axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
axis.set_yticks([], minor=True)
axis.set(xticks=range(len(SIZES)), xticklabels=[f"{n:,}" for n in SIZES])
axis.set(xlabel="rows that the joint distribution was estimated from", ylabel="leakage (nats)")
axis.legend(loc="upper right", fontsize="small")
