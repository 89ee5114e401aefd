"""
Pick epsilon by cross-validation
================================

Mathematics cannot choose a budget, but it can compute what each budget costs.
``PrivacyFunnelTransformer`` works in ``GridSearchCV``, so the search for epsilon, the most that a
released value may reveal about the sensitive column S, is one line.

The data are the 442 patients of scikit-learn's diabetes data. A model predicts from blood pressure
and body mass index whether the disease has progressed more than the median a year later. The
features must not give away the sex of a patient.
"""

# %%
# What each budget costs, without a model
# ---------------------------------------
# ``privacy_utility_path`` designs a mechanism for each of many budgets, here for blood pressure in
# five bands. A budget can hold for every output (released value) or on average. These two curves
# are certified: no mechanism within the budget lies above them. The third is randomised response,
# which now and then releases a random band.
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline

from skprivacy import (
    FiniteSampleWarning,
    PrivacyFunnelTransformer,
    PrivacyUtilityDisplay,
    design_mechanism,
    privacy_utility_path,
)
from skprivacy.budgets import mechanism_for_utility
from skprivacy.datasets import load_diabetes_joint
from skprivacy.metrics import (
    best_within_leakage,
    neg_leakage_scorer,
    population_leakage,
    utility_scorer,
)

warnings.simplefilter(
    "ignore", FiniteSampleWarning
)  # 442 rows are few: see "What the sample adds"

counts = load_diabetes_joint("bp", n_bands=5)
epsilons = np.geomspace(0.0005, 0.1, 25)
paths = {
    "every output": privacy_utility_path(counts, epsilons),
    "on average": privacy_utility_path(counts, epsilons, scope="average"),
    "randomised response": privacy_utility_path(counts, epsilons, solver="randomized_response"),
}
display = PrivacyUtilityDisplay.from_path(paths)
display.ax_.set_xlabel("budget ε (KL)")
plt.show()

# %%
# At a budget of zero, Y reveals nothing about sex, but still says a lot about blood pressure:
# there are five bands and only two sexes. Randomised response cannot exploit that. Where the curve
# is flat, a smaller epsilon costs almost nothing.
perfect = design_mechanism(counts, 0)
print(f"at epsilon = 0, {perfect.normalized_utility:.1%} of H(X) is kept")

# %%
# A search over epsilon
# ---------------------
# Each budget gets three scores on held-out rows: the accuracy of the model, the leakage of the
# channel (the probabilities ``P(Y|X)``), and the share of the utility that is kept. The last two
# are computed from the channel, without drawing any Y. ``best_within_leakage`` takes the best
# score among those whose leakage is small enough.
#
# On few rows the leakage comes out too large, because they differ by chance from the rows of the
# design: on 221 rows even a budget of 0.001 seems to leak more than 0.01. So the accepted leakage
# is set above the budgets that it is meant for. The accuracies differ by less than their error, so
# we choose by the share that is kept of what the features say about the disease.
diabetes = load_diabetes(as_frame=True, scaled=False)
patients = diabetes.data[["sex", "bp", "bmi"]]
progressed = diabetes.target > diabetes.target.median()
funnel = PrivacyFunnelTransformer(
    sensitive="sex",
    columns=["bp", "bmi"],
    n_bins=3,
    utility="target",
    output="posterior",
    random_state=0,
)
accepted = 0.025
search = GridSearchCV(
    make_pipeline(funnel, LogisticRegression(C=100.0)),
    {"privacyfunneltransformer__epsilon": [0.001, 0.01, 0.03, 0.06]},
    scoring={
        "accuracy": "accuracy",
        "leakage": neg_leakage_scorer(scope="average"),
        "kept": utility_scorer(),
    },
    refit=best_within_leakage(accepted, score="kept"),
    cv=RepeatedStratifiedKFold(n_splits=2, n_repeats=3, random_state=0),
).fit(patients, progressed)
print(search.best_params_)

# %%
results = pd.DataFrame(search.cv_results_).set_index("param_privacyfunneltransformer__epsilon")
shown = pd.DataFrame(
    {
        "accuracy": results["mean_test_accuracy"],
        "leakage, held out": -results["mean_test_leakage"],
        "utility kept": results["mean_test_kept"],
    }
).rename_axis("epsilon")
shown.round(3)

# %%
# The dashed line is the accepted leakage, the ring the chosen budget.
figure, axis = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
axis.plot(shown["leakage, held out"], shown["utility kept"], "o-", color="tab:blue")
for epsilon, row in shown.iterrows():
    axis.annotate(
        f"ε = {epsilon:g}",
        (row["leakage, held out"], row["utility kept"]),
        xytext=(9, -9),
        textcoords="offset points",
        fontsize="small",
    )
chosen = shown.iloc[search.best_index_]
ring = {"ms": 15, "mfc": "none", "mec": "tab:red", "mew": 2}
axis.plot(chosen["leakage, held out"], chosen["utility kept"], "o", **ring)
axis.axvline(accepted, color="0.5", ls="--", lw=1)
axis.set(xlabel="I(S;Y) on rows held out (nats)", ylabel="share of I(V;X) that is kept")
axis.yaxis.set_major_formatter("{x:.0%}")
axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Start from the utility
# ----------------------
# Without a model, say how much you need. ``mechanism_for_utility`` returns the mechanism with the
# least leakage that keeps a given share of the information; its ``epsilon`` is the budget.
needed = [mechanism_for_utility(counts, share) for share in (0.6, 0.7, 0.8, 0.9)]
pd.DataFrame(
    {
        "utility needed": [0.6, 0.7, 0.8, 0.9],
        "smallest epsilon": [mechanism.epsilon for mechanism in needed],
        "an attacker gains, points": [100 * mechanism.attacker_advantage for mechanism in needed],
    }
).round(4)

# %%
# What the sample adds
# --------------------
# The budget holds under the joint distribution of S and X that was estimated from 442 rows. In the
# population they were drawn from, more may leak: ``population_leakage`` gives an upper confidence
# limit. Below a certain epsilon a smaller budget helps little, because the estimation error does
# not shrink with it; more rows do help. (The larger tables are hypothetical: the same shares,
# estimated from more rows.)
rows = {"442 rows": 442, "10 times as many": 4420, "100 times as many": 44200}
path = paths["every output"]
limits = pd.DataFrame(
    {
        name: {
            mechanism.epsilon: population_leakage(mechanism, n, n_resamples=199).max_leakage
            for mechanism in path
        }
        for name, n in rows.items()
    }
)
figure, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for name, color in zip(limits, ["#9a3412", "#ea580c", "#fdba74"], strict=True):
    axis.plot(limits.index, limits[name], color=color, lw=2, label=f"95% limit, {name}")
axis.plot(epsilons, epsilons, color="0.4", ls="--", lw=1.5, label="the budget itself")
axis.set(xscale="log", yscale="log", xlabel="budget ε (KL, per output)")
axis.set_ylabel("leakage of the worst output (nats)")
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False)
plt.show()

# %%
# What next
# ---------
# :doc:`/confidence` makes the budget hold for the population. :doc:`/choosing` has the other
# settings, and :doc:`/auto_examples/pipelines` what a model gains and loses by a cleaned feature.
