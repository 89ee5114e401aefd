"""
Clean a feature before training
===============================

A model may use the hours and the sector of employees, but must not be able to work out their sex
from them. ``PrivacyFunnelTransformer`` stands in front of the model, as any transformer of
scikit-learn does, and passes on randomised features that reveal at most epsilon about sex.
"""

# %%
# The problem
# -----------
# The table is made up: 4,000 employees, and whether they were promoted. How well can their sex be
# guessed from two of the features? ``audit`` trains models that try.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skprivacy import PrivacyFunnelTransformer, audit

rng = np.random.default_rng(0)
man = rng.random(4000) < 0.5
staff = pd.DataFrame(
    {
        "sex": np.where(man, "man", "woman"),
        "hours": rng.normal(33 + 6 * man, 6).round(),
        "sector": np.array(["care", "office", "craft"])[rng.binomial(2, 0.35 + 0.3 * man)],
        "years": rng.gamma(3, 3, 4000).round(),
    }
)
chance = staff["hours"] / 8 + staff["years"] / 6 + (staff["sector"] == "office") - 6.5
promoted = pd.Series(rng.random(4000) < 1 / (1 + np.exp(-chance)), name="promoted")
features = ["hours", "sector"]

attacks = audit(staff[features], staff["sex"])
attacks[["attacker", "accuracy", "blind", "advantage"]].round(3)

# %%
# Clean the features
# ------------------
# The transformer finds the sensitive column, S, by its name, drops it, and passes the randomised
# features on. Features that are cleaned together are protected together. ``utility="target"``
# keeps what they say about V, the y that the pipeline passes to ``fit``: that is all the model
# needs. Without a seed the noise differs each time; here a seed keeps this page the same.
#
# In a ``ColumnTransformer``, the transformer gets its own columns, including S. A column that is
# merely scaled is not protected; ``years`` says nothing about sex. With ``confidence=0.95`` the
# budget holds for the population that the rows were drawn from.
funnel = PrivacyFunnelTransformer(
    epsilon=0.02,
    sensitive="sex",
    columns=features,
    n_bins=4,
    utility="target",
    confidence=0.95,
    random_state=0,
)
clean = make_pipeline(funnel, OneHotEncoder(sparse_output=False))
columns = ColumnTransformer(
    [("clean", clean, ["sex", *features]), ("scale", StandardScaler(), ["years"])]
)
cleaned = make_pipeline(columns, LogisticRegression()).fit(staff, promoted)

mechanism = columns.named_transformers_["clean"][0].mechanism_
print(f"leakage about sex: {mechanism.max_leakage:.4f} nats, with a budget of 0.02")
kept, at_most = mechanism.normalized_utility, mechanism.normalized_upper_bound
print(f"kept of what the features say about a promotion: {kept:.1%}")
print(f"no mechanism within the budget keeps more than {at_most:.1%}")

# %%
# What the model loses, and what the attacker loses
# -------------------------------------------------
# The same model, with the features as they are and cleaned, on rows that it has not seen:
one_hot = OneHotEncoder(sparse_output=False)
as_they_are = ColumnTransformer(
    [("encode", one_hot, ["sector"]), ("scale", StandardScaler(), ["hours", "years"])]
)
model = make_pipeline(as_they_are, LogisticRegression())
released = columns.named_transformers_["clean"][0].transform(staff)
attacks = audit(released, staff["sex"], raw=staff[features])
best = attacks.groupby("attacked", sort=False)["accuracy"].max()
models = [cross_val_score(each, staff, promoted).mean() for each in (model, cleaned)]
right = pd.DataFrame(
    {"the model": models, "an attacker": best.to_numpy()},
    index=["features as they are", "cleaned"],
).T
axis = (100 * right).plot.bar(figsize=(5.6, 3.4), rot=0, color=["0.7", "tab:green"])
for bars in axis.containers:
    axis.bar_label(bars, fmt="{:.0f}%")
axis.set(title="guesses that are right", ylim=(0, 105), yticks=[])
axis.spines[["top", "right", "left"]].set_visible(False)
axis.legend(frameon=False)
plt.show()

# %%
# A blind guess of sex is right in about half of the cases. This is by how much the cleverest
# attacker does better than that:
print(f"{100 * mechanism.attacker_advantage:.1f} percentage points")

# %%
# S as metadata
# -------------
# Where S is not a column of X, pass it separately. With metadata routing it reaches the
# transformer inside pipelines and searches.
with sklearn.config_context(enable_metadata_routing=True):
    routed = clone(funnel).set_params(sensitive=None)
    routed.set_fit_request(sensitive_features=True)
    model = make_pipeline(routed, OneHotEncoder(), LogisticRegression())
    model.fit(staff[features], promoted, sensitive_features=staff["sex"])
print(f"leakage about sex: {model[0].mechanism_.max_leakage:.4f}")

# %%
# What next
# ---------
# :doc:`/auto_examples/choosing_epsilon` finds the budget for a model. :doc:`/transformer` has all
# the options, and :doc:`/auto_examples/parity_in_practice` is about models that must treat groups
# alike.
