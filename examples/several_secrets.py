"""
Two secrets, each with its own budget
=====================================

We release the blood pressure of patients. It must say next to nothing about a patient's sex, and
not too much about their age. The two secrets are not equally sensitive, so each gets its own
budget.
"""

# %%
# The table
# ---------
# 442 patients of scikit-learn's diabetes data, with blood pressure in six bands and age in three.
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from skprivacy import FiniteSampleWarning, PrivacyFunnelTransformer, PrivacyLeakWarning

data = load_diabetes(as_frame=True, scaled=False).data
patients = pd.DataFrame(
    {
        "sex": "sex " + data["sex"].astype(int).astype(str),
        "age": pd.cut(data["age"], [0, 40, 55, 99], labels=["to 40", "41 to 55", "from 56"]),
        "pressure": pd.qcut(data["bp"], 6, labels=[f"band {i}" for i in range(1, 7)]),
    }
)
pd.crosstab(patients["pressure"], [patients["sex"]]).join(
    pd.crosstab(patients["pressure"], patients["age"])
)

# %%
# Two ways to ask for it
# ----------------------
# ``epsilon`` is the most that a released value may say. A dict gives each secret its own: 0.005
# for sex, 0.05 for age. The other way is to protect both as one, with a single budget. It must be
# the smaller of the two, and covers all pairs of sex and age, so it costs more. (We silence two
# warnings: 442 rows are few, and see the last section.)
budgets = {"sex": 0.005, "age": 0.05}
with warnings.catch_warnings():
    for kind in (FiniteSampleWarning, PrivacyLeakWarning):
        warnings.simplefilter("ignore", kind)
    separate, as_one = (
        PrivacyFunnelTransformer(epsilon, sensitive=["sex", "age"], columns=["pressure"]).fit(
            patients
        )
        for epsilon in (budgets, min(budgets.values()))
    )
for name, funnel in {"separate budgets": separate, "as one": as_one}.items():
    print(f"{name}: keeps {funnel.mechanism_.normalized_utility:.1%} of the information")

# %%
# What each released value says about each secret
# -----------------------------------------------
# ``secrets`` has the figures for each of them. No bar exceeds the budget, the red line.
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
for axis, (name, secret) in zip(axes, separate.mechanism_.secrets.items(), strict=True):
    places = np.arange(len(secret.leakage))
    axis.bar(places, secret.leakage, color="tab:blue")
    axis.axhline(budgets[name], color="tab:red", lw=1.5, label=f"budget {budgets[name]:g}")
    axis.set_xticks(places, [str(label) for label in secret.y_labels], rotation=30)
    axis.set(title=f"what is said about {name}", ylim=(0, 1.35 * budgets[name]))
    axis.legend(frameon=False, loc="upper right")
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("leakage of a released value, nats")
plt.show()

# %%
# What is not covered
# -------------------
# Two budgets bound no combination: a released value may say more about sex *and* age together, and
# ``fit`` warns if it does. If somebody may know the age of a patient and must not learn the sex,
# add a budget for the pair, such as ``{"sex": 0.005, "age": 0.05, ("sex", "age"): 0.05}``.
print(f"about both together: {separate.mechanism_.together.max_leakage:.3f}")

# %%
# What next
# ---------
# :doc:`/several_secrets` has the details, and the same for the command line.
