"""Finite samples: designed for the estimate, judged under the truth."""

import matplotlib.pyplot as plt
import numpy as np
from house_style import BUDGET, QUIET, RELEASED, USEFUL, blood_pressure

from skprivacy import design_mechanism
from skprivacy.metrics import population_leakage

EPSILON, DRAWS = 0.005, 8
SIZES = [250, 1_000, 4_000, 16_000, 64_000]
rng = np.random.default_rng(0)
truth = blood_pressure().to_numpy() / 442  # taken as the population

leakage, careful, limits = [], [], []
for n in SIZES:
    tables = [rng.multinomial(n, truth.ravel()).reshape(truth.shape) for _ in range(DRAWS)]
    designs = [design_mechanism(counts, EPSILON) for counts in tables]
    leakage.append([m.evaluate(truth).max_leakage for m in designs])
    confident = [design_mechanism(counts, EPSILON, confidence=0.95) for counts in tables]
    careful.append([m.evaluate(truth).max_leakage for m in confident])
    limits.append(
        np.median([population_leakage(m, n, n_resamples=99).max_leakage for m in designs])
    )

figure, axis = plt.subplots(figsize=(6.8, 3.8))
for i, (values, others) in enumerate(zip(leakage, careful, strict=True)):
    jitter = rng.uniform(-0.16, 0.16, size=DRAWS)
    label = "one design, under the true distribution" if i == 0 else None
    axis.scatter(i + jitter, values, s=14, color=RELEASED, alpha=0.55, lw=0, label=label)
    label = "with confidence=0.95" if i == 0 else None
    axis.scatter(i + jitter, others, s=14, color=USEFUL, alpha=0.55, lw=0, label=label)
middle = [np.median(values) for values in leakage]
style = {"color": RELEASED, "lw": 3, "label": "their median"}
axis.hlines(middle, np.arange(len(SIZES)) - 0.25, np.arange(len(SIZES)) + 0.25, **style)
axis.plot(
    range(len(SIZES)), limits, "_", color=QUIET, ms=26, mew=2, label="population_leakage, 95%"
)
axis.axhline(EPSILON, color=BUDGET, lw=1.6, label="ε, kept under the estimate")
ticks = [0.0005, 0.002, 0.005, 0.02, 0.05]
axis.set(yscale="log", ylim=(2e-4, 0.6))
axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
axis.set_yticks([], minor=True)
axis.set(xticks=range(len(SIZES)), xticklabels=[f"{n:,}" for n in SIZES])
axis.set(xlabel="rows that the joint distribution was estimated from", ylabel="leakage (nats)")
axis.legend(loc="upper right", fontsize="small", ncols=2)
