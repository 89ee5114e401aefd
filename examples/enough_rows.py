"""
A budget that holds for other people too
========================================

A release is designed with the rows of a table, and keeps its budget for these rows. But the rows
are a sample. In the population they were drawn from, the release usually exceeds its budget. With
a confidence it keeps the budget there too, at the cost of some utility.
"""

# %%
# A population that is known
# --------------------------
# To measure leakage in a population we have to know it. So we take the shares of the 442 patients
# of scikit-learn's diabetes data as a population: their sex must not leak, and their body mass
# index in four bands is released.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skprivacy import design_mechanism
from skprivacy.budgets import rows_needed
from skprivacy.datasets import load_diabetes_joint

people = load_diabetes_joint("bmi", n_bands=4)
people.head()

# %%
# Tables that are drawn from it
# -----------------------------
# From this population we draw tables of several sizes. For each we design a release with a budget
# of ``epsilon``, for the rows alone and with ``confidence=0.95``, and compute what both reveal in
# the population.
epsilon, found = 0.02, []
rng = np.random.default_rng(0)
shares = people.to_numpy() / people.to_numpy().sum()
for n_rows in (300, 1_000, 3_000, 10_000):
    for _ in range(4):
        rows = rng.multinomial(n_rows, shares.ravel()).reshape(shares.shape)
        for name, confidence in (("for the rows", None), ("with confidence", 0.95)):
            mechanism = design_mechanism(rows, epsilon, confidence=confidence)
            found.append(
                {
                    "rows": n_rows,
                    "design": name,
                    "reveals": mechanism.evaluate(shares).max_leakage,
                    "kept": mechanism.normalized_utility,
                }
            )
figures = pd.DataFrame(found)
figures.groupby(["rows", "design"])[["reveals", "kept"]].mean().unstack().round(3)

# %%
# Look at it
# ----------
# Left: what the worst released value reveals in the population, one dot for each table. Most
# designs for the rows exceed the budget. Designs with a confidence stay below it. Right: what that
# costs. The fewer rows there are, the less can be released.
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for name, group in figures.groupby("design", sort=False):
    shift = 0.92 if name == "for the rows" else 1.08
    axes[0].plot(group["rows"] * shift, group["reveals"], "o", ms=5, alpha=0.7, label=name)
    kept = group.groupby("rows")["kept"].mean()
    axes[1].plot(kept.index, kept, "o-", ms=5, label=name)
axes[0].axhline(epsilon, color="tab:red", lw=1.5)
axes[0].annotate("the budget", (300, epsilon), (0, 4), textcoords="offset points", color="tab:red")
axes[0].set(title="what is revealed in the population", ylim=(0, None))
axes[1].set(title="share of the information that is kept", ylim=(0, 1))
axes[1].legend(frameon=False, loc="lower right")
for axis in axes:
    axis.set(xscale="log", xlabel="rows of the table")
    axis.set_xticks([300, 1_000, 3_000, 10_000], ["300", "1,000", "3,000", "10,000"])
    axis.minorticks_off()
    axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# How many rows would be enough?
# ------------------------------
# ``rows_needed`` estimates how many rows keep 70% of the information about the body mass index,
# with a confidence:
print(f"about {rows_needed(people, epsilon, 0.7):,} rows")

# %%
# What next
# ---------
# The commands use a confidence of 95% by default; in Python, set
# ``PrivacyFunnelTransformer(epsilon, confidence=0.95)``. :doc:`/confidence` has the details, and
# what to do with few rows.
