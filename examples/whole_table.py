"""
Publish a table
===============

We publish ten columns about patients that must not say much about the patients' sex. Releasing the
columns one by one is not enough: each one alone says little, but all of them together say a lot.
So similar rows share a *cell*, and whole rows are released.
"""

# %%
# The table
# ---------
# 442 patients of scikit-learn's diabetes data: age, body mass index, blood pressure, six blood
# values, and the progression of the disease a year later.
import warnings

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skprivacy import (
    FiniteSampleWarning,
    PrivacyFunnelTransformer,
    PrivacyLeakWarning,
    TreeCells,
    audit,
)

data = load_diabetes(as_frame=True, scaled=False)
columns = data.data.drop(columns="sex").assign(progression=data.target)
sex = "sex " + data.data["sex"].astype(int).astype(str)
for kind in (FiniteSampleWarning, PrivacyLeakWarning):
    warnings.simplefilter("ignore", kind)  # 442 rows are few for so much; see the last section
columns.head(3).round(1)

# %%
# One by one
# ----------
# Each column is released by itself, with a budget of 0.05 each. Columns that say less than that
# about sex come out as they are.
budget = {"epsilon": 0.05, "utility": "distortion", "random_state": 0}
one_by_one = columns.apply(
    lambda column: (
        PrivacyFunnelTransformer(**budget, n_bins=4)
        .fit_transform(column.to_frame(), sensitive_features=sex)
        .iloc[:, 0]
    )
)

# %%
# As a whole
# ----------
# The same budget, for the rows as a whole. ``TreeCells`` cuts the table into cells of similar
# rows; a row is released as a row of its own cell or, if that would say too much about sex, of
# another one. ``cells_`` lists them.
funnel = PrivacyFunnelTransformer(**budget, alphabet=TreeCells(max_cells=16))
released = funnel.fit_transform(columns, sensitive_features=sex)
funnel.cells_[["rows", "rule"]].head(4)

# %%
# Released rows have the same columns. They are made up: their columns are drawn together, from
# what people in similar rows have.
released.head(3).round(1)

# %%
# Attack both
# -----------
# An attacker learns to guess sex from some of the patients, and is tested on the others. The
# advantage is how much more often the attacker is right than a blind guess, which always names the
# commoner sex.
attacker = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
tables = {"as it is": columns, "one by one": one_by_one, "as a whole": released}
attacks = {name: audit(rows, sex, attacker=attacker).iloc[0] for name, rows in tables.items()}
attacked = pd.DataFrame(attacks).T[["accuracy", "blind", "advantage"]]
attacked.astype(float).round(3)

# %%
# What it costs
# -------------
# Left: the attacker's advantage. The columns that were released one by one give sex away nearly as
# well as the table itself does. Right, in the same colours: the correlation of released values
# with true ones. This is the price: a few cells cannot keep ten columns of every patient.
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
points = 100 * attacked["advantage"]
bars = axes[0].bar(points.index, points, color=["0.7", "tab:orange", "tab:green"])
axes[0].bar_label(bars, fmt="{:.0f}")
axes[0].set(title="sex is guessed better than blindly", ylabel="percentage points")
kept = pd.DataFrame(
    {name: columns.corrwith(tables[name]) for name in ("one by one", "as a whole")}
)
kept.plot.barh(ax=axes[1], color=["tab:orange", "tab:green"], width=0.8, legend=False)
axes[1].set(title="correlation with the true values", xlim=(0, 1))
axes[1].invert_yaxis()
for axis in axes:
    axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Before you publish
# ------------------
# Read the verdict. It is about these rows; a table to be published should be released with
# ``confidence=0.95``, for the population, which takes more rows than these.
print(funnel.summary_.status, "-", funnel.summary_.verdict.level)

# %%
# Then write it to a file, with a report for whoever signs:
# ``PrivacyReport.from_estimator(funnel, columns, sensitive_features=sex).save("report.html")``.
print(released.round(1).head(3).to_csv(index=False))

# %%
# What next
# ---------
# With so few rows it is often better to leave out the columns that say most about sex, if nobody
# needs them. With thousands of rows, cells often keep more. :doc:`/trade_off` compares the two.
# :doc:`/whole_tables` has the details, and :doc:`/auto_examples/parity_in_practice` an example for
# models.
