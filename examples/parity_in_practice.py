"""
Parity in practice, with Fairlearn
==================================

Others will train models on your table, and you do not know which. Their decisions should not
depend much on sex: by demographic parity, each sex is selected at nearly the same rate. Other
tools achieve this for one model. Here the released table itself guarantees it, with a certificate,
for every model that is trained on it and applied to it.

This example needs Fairlearn: ``pip install fairlearn``.
"""

# %%
# A table
# -------
# The table is simulated, with a seed, to look like a census: six columns, a sensitive one (sex)
# and a target (whether the income is high). Half of the rows are for the design and for training,
# the other half is kept apart.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from fairlearn.metrics import demographic_parity_difference
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skprivacy import PrivacyFunnelTransformer


def census(n, seed):
    """Return n people: their columns, their sex, and whether their income is high."""
    rng = np.random.default_rng(seed)
    is_man = rng.random(n) < 0.55
    age = rng.integers(18, 70, n)
    schooling = np.clip(rng.normal(12.5, 2.5, n).round(), 6, 20)
    hours = np.clip(rng.normal(33 + 10 * is_man, 8).round(), 5, 80)
    sector = np.where(
        is_man,
        rng.choice(["care", "office", "trade", "craft"], n, p=[0.08, 0.25, 0.32, 0.35]),
        rng.choice(["care", "office", "trade", "craft"], n, p=[0.36, 0.36, 0.22, 0.06]),
    )
    couple = rng.random(n) < 0.3 + 0.35 * is_man + 0.004 * (age - 40)
    tenure = np.minimum(rng.exponential(3 + 4 * is_man).round(), age - 16)
    score = 0.35 * (schooling - 12.5) + 0.07 * (hours - 40) + 0.04 * (age - 45) + 1.2 * couple
    score += 0.08 * tenure + 0.6 * (sector == "office") - 0.8 * (sector == "care") - 2
    columns = {"age": age, "schooling": schooling, "hours": hours, "sector": sector,
               "couple": couple, "tenure": tenure}  # fmt: skip
    sex = pd.Series(np.where(is_man, "man", "woman"), name="sex")
    return pd.DataFrame(columns), sex, rng.logistic(size=n) < score


people, sex, has_high_income = census(12_000, seed=0)
new_people, new_sex, new_high_income = census(12_000, seed=1)
people.head()

# %%
# Release it
# ----------
# ``measure="parity"`` with ``scope="average"`` bounds the distance between what the two sexes
# release: at most epsilon, as total variation. The six columns have nearly as many combinations of
# values as rows, so ``alphabet="cells"`` groups rows that say the same about the target and about
# sex (see :doc:`../whole_tables`). ``max_outputs=8`` keeps eight kinds of released rows: few are
# enough here, and they can be certified more tightly than many.
funnel = PrivacyFunnelTransformer(
    epsilon=0.1,
    measure="parity",
    scope="average",
    utility="target",
    alphabet="cells",
    max_outputs=8,
    output="symbol",
    random_state=0,
)
funnel.fit(people, has_high_income, sensitive_features=sex)
released, new_released = funnel.transform(people), funnel.transform(new_people)
print(funnel.mechanism_)

# %%
# Certify it
# ----------
# The budget holds for the rows of ``fit``. For the population, rows that the design has not seen
# prove a bound: a theorem, for any number of rows, here with a confidence of 95%.
certificate = funnel.certify(new_people, sensitive_features=new_sex)
bound = certificate.average_leakage_bound
print(f"{certificate.average_leakage:.3f} on these rows, at most {bound:.3f} in the population")

# %%
# Try to be unfair
# ----------------
# No decision about a released row can select one sex more often than the other by more than this
# bound, whichever model makes it and wherever its threshold lies. Four models are trained on the
# raw rows and on the released ones. The last one is malicious: its target is sex itself. Fairlearn
# computes the difference in selection rates, here the largest at five thresholds.
models = {
    "logistic regression": LogisticRegression(max_iter=1000),
    "random forest": RandomForestClassifier(50, min_samples_leaf=5, random_state=0),
    "decision tree": DecisionTreeClassifier(max_depth=5, random_state=0),
    "one that guesses sex": LogisticRegression(max_iter=1000),
}


def scores(name, rows, new_rows):
    """Return what a model that is trained on some rows says about new ones."""
    columns = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    target = sex == "man" if name == "one that guesses sex" else has_high_income
    model = make_pipeline(columns, models[name]).fit(rows, target)
    return model.predict_proba(new_rows)[:, 1]


def largest_difference(score):
    """Return the largest demographic parity difference of decisions by a score."""
    return max(
        demographic_parity_difference(
            new_high_income, score >= threshold, sensitive_features=new_sex
        )
        for threshold in np.quantile(score, [0.15, 0.3, 0.5, 0.7, 0.85])
    )


kinds = {"raw": (people, new_people), "released": (released, new_released)}
figures = pd.DataFrame(index=list(models))
for kind, (rows, new_rows) in kinds.items():
    found = [scores(name, rows, new_rows) for name in models]
    figures[f"AUC, {kind}"] = [roc_auc_score(new_high_income, score) for score in found]
    figures[f"difference, {kind}"] = [largest_difference(score) for score in found]
assert figures["difference, released"].max() <= bound
figures.round(3)

# %%
# On raw rows, the models select men far more often. On released rows no model exceeds the bound,
# not even the one that tries to. Their AUC is lower than on raw rows: in this table men earn more,
# and a model that cannot tell men from women cannot use everything that is related to income.
figure, axis = plt.subplots(figsize=(6.8, 3.6), layout="constrained")
places = np.arange(len(models))
for shift, kind, color, place in [
    (-0.2, "raw", "0.75", "edge"),
    (0.2, "released", "tab:green", "center"),
]:
    bars = axis.barh(places + shift, figures[f"difference, {kind}"], 0.38, color=color, label=kind)
    axis.bar_label(bars, fmt="{:.2f}", padding=2, label_type=place)
axis.axvline(bound, color="tab:red", lw=1.8, label=f"certified for released rows, {bound:.2f}")
axis.set_yticks(places, list(models))
axis.set(xlabel="demographic parity difference", xlim=(0, 0.85))
axis.invert_yaxis()
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, loc="center right")
plt.show()
