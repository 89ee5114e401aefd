"""
Pipelines, grid search and routing
==================================

``PrivacyFunnelTransformer`` is a scikit-learn transformer. It works inside ``Pipeline`` and
``ColumnTransformer``. ``GridSearchCV`` can search its epsilon, the most that a release may reveal
about the sensitive column, S. You can pass S as metadata. The transformer can also keep just what
a model needs.

The data are the 442 patients of scikit-learn's diabetes data. A model predicts from blood
pressure, body mass index and a blood value whether the disease has progressed more than the median
a year later. The released columns must not give away the patient's sex.
"""

# %%
# A pipeline
# ----------
# The transformer finds S in the table by its name, drops it, and passes the released columns on.
# Columns that are released jointly are protected jointly. Without a seed the noise differs each
# time; here a seed keeps this page the same.
import matplotlib.pyplot as plt
import pandas as pd
import sklearn
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skprivacy import PrivacyFunnelTransformer
from skprivacy.metrics import best_within_leakage, neg_leakage_scorer, utility_scorer

# This swaps values, which a model can learn to read and people cannot.

diabetes = load_diabetes(as_frame=True, scaled=False)
patients = diabetes.data[["sex", "bp", "bmi", "s5"]]
progressed = diabetes.target > diabetes.target.median()

funnel = PrivacyFunnelTransformer(
    epsilon=0.02, sensitive="sex", columns=["bp", "bmi"], n_bins=3, random_state=0
)
model = make_pipeline(funnel, OneHotEncoder(), LogisticRegression())
scores = cross_val_score(model, patients, progressed)
print(f"accuracy {scores.mean():.3f}")

# %%
# What the model needs
# --------------------
# By default, as much as possible of X (the released columns) is kept. A model needs only what X
# says about its target, V. ``utility="target"`` keeps that, within the same budget; V is the y
# that the pipeline passes to ``fit``. ``I(V;Y)`` is the information about V in the release Y.
target = PrivacyFunnelTransformer(
    epsilon=0.02, sensitive="sex", columns=["bp", "bmi"], n_bins=3, utility="target"
).fit(patients, progressed)
mechanism = target.mechanism_
print(f"I(V;Y) = {mechanism.utility:.4f} nats, of at most {mechanism.upper_bound:.4f}")
print(f"leakage about sex: {mechanism.max_leakage:.4f}")

# %%
# The share of I(V;X) that each of the two keeps, at the same epsilon:
plain = funnel.fit(patients).mechanism_
same_scale = mechanism.objective.of_channel(plain.p_x, plain.channel)
largest = mechanism.objective.largest(plain.p_x)
pd.Series(
    {
        "utility='mutual_information'": same_scale / largest,
        "utility='target'": mechanism.normalized_utility,
    },
    name="share of I(V;X)",
).round(3).to_frame()

# %%
# Several columns, one transformer each
# -------------------------------------
# In a ``ColumnTransformer`` each transformer gets its own columns, including S. Each release keeps
# its budget, but taken together they may leak more. What has to be protected together belongs in
# one transformer. A column that is merely scaled, such as ``s5`` here, is not protected at all.
columns = ColumnTransformer(
    [
        ("bp", PrivacyFunnelTransformer(0.02, sensitive="sex", n_bins=5), ["sex", "bp"]),
        ("bmi", PrivacyFunnelTransformer(0.02, sensitive="sex", n_bins=5), ["sex", "bmi"]),
        ("s5", StandardScaler(), ["s5"]),
    ]
)
columns.set_output(transform="pandas").fit_transform(patients).head(3).round(2)

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
# we choose by the share of ``I(V;X)`` that is kept.
model = make_pipeline(
    PrivacyFunnelTransformer(
        sensitive="sex",
        columns=["bp", "bmi"],
        n_bins=3,
        utility="target",
        output="posterior",
        random_state=0,
    ),
    LogisticRegression(C=100.0),
)
accepted = 0.025
search = GridSearchCV(
    model,
    {"privacyfunneltransformer__epsilon": [0.001, 0.01, 0.03, 0.06]},
    scoring={
        "accuracy": "accuracy",
        "leakage": neg_leakage_scorer(scope="average"),
        "kept": utility_scorer(),
    },
    refit=best_within_leakage(accepted, score="kept"),
    cv=RepeatedStratifiedKFold(n_splits=2, n_repeats=3, random_state=0),
).fit(patients, progressed)

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
# S as metadata
# -------------
# Where S is not a column of X, pass it separately. With metadata routing it reaches the
# transformer inside pipelines and searches, and also the scorers, which request it by themselves.
without_sex = patients.drop(columns="sex")
with sklearn.config_context(enable_metadata_routing=True):
    routed = PrivacyFunnelTransformer(columns=["bp", "bmi"], n_bins=3, random_state=0)
    routed.set_fit_request(sensitive_features=True)
    search = GridSearchCV(
        make_pipeline(routed, OneHotEncoder(), LogisticRegression()),
        {"privacyfunneltransformer__epsilon": [0.01, 0.02]},
        scoring={"accuracy": "accuracy", "leakage": neg_leakage_scorer(scope="average")},
        refit=best_within_leakage(0.1, score="accuracy"),
    )
    search.fit(without_sex, progressed, sensitive_features=patients["sex"])
print(search.best_params_)
print(f"leakage about sex: {search.best_estimator_[0].mechanism_.max_leakage:.4f}")
