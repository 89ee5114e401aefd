"""
Quickstart: release a column without giving away another
=========================================================

442 patients, from scikit-learn's diabetes data. Their blood pressure is useful, and it gives away
their sex. We release it, in five bands, so that whoever sees a released band learns at most
epsilon about the sex of that patient. Five steps: fit, look, release, attack, report.
"""

# %%
# The table
# ---------
# ``sex`` is what must not leak, S. ``band`` is what is to be released, X: the blood pressure in
# five bands of about equal size. The data set codes sex as 1 and 2 and does not say which is
# which.
import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_diabetes

from skprivacy import (
    LeakageDisplay,
    MechanismDisplay,
    PrivacyFunnelTransformer,
    PrivacyReport,
    audit,
    population_leakage,
)

data = load_diabetes(as_frame=True, scaled=False).data
names = ["lowest", "low", "middle", "high", "highest"]
patients = pd.DataFrame(
    {
        "sex": "sex " + data["sex"].astype(int).astype(str),
        "band": pd.qcut(data["bp"], 5, labels=names),
    }
)
pd.crosstab(patients["sex"], patients["band"])

# %%
# Fit
# ---
# One object, as in scikit-learn. The budget is in nats: ``epsilon=0.005`` means that no released
# value moves the distribution of sex by more than 0.005, as a Kullback-Leibler divergence.
# ``random_state`` makes this page the same each time; leave it out when you release.
funnel = PrivacyFunnelTransformer(epsilon=0.005, sensitive="sex", columns=["band"], random_state=0)
funnel.fit(patients)
mechanism = funnel.mechanism_
print(f"leakage of the worst output: {mechanism.max_leakage:.4f} nats")
print(f"information about the band that is kept: {mechanism.normalized_utility:.1%}")
print(f"and no mechanism could keep more than {mechanism.normalized_upper_bound:.1%}")

# %%
# Look at the mechanism
# ---------------------
# Each row is a band of blood pressure, each column a released value, and each cell how often the
# one becomes the other. Only as much noise is added as the budget asks for.
MechanismDisplay.from_estimator(funnel)
plt.show()

# %%
# What a released value says about S. Left, its leakage against the budget. Right, the share of
# each sex among the patients with that released value: close to that of all patients, which the
# lines show. The budget is about the 442 rows; the orange marks are limits for the population
# that they come from. They are far above it: 442 rows are few.
limits = population_leakage(funnel)
LeakageDisplay.from_estimator(funnel, limits=limits)
plt.show()

# %%
# Release
# -------
# ``transform`` needs no S, and S never comes out of it. The released column has the name and the
# dtype of the old one.
released = funnel.transform(patients)
released.head()

# %%
# Audit
# -----
# Classifiers are trained to guess the sex from the raw and from the released column, and judged
# on rows that they have not seen. ``advantage_bound`` is the most that the budget allows any
# attacker beyond a blind guess, under the joint distribution of these rows.
attacks = audit(released, patients["sex"], raw=patients[["band"]], mechanism=funnel)
columns = ["attacked", "attacker", "accuracy", "blind", "advantage", "advantage_bound"]
attacks[columns].round(3)

# %%
# Report
# ------
# For whoever signs off the release: ``report.save("report.html")`` writes one page that needs no
# network. As text it begins so:
report = PrivacyReport.from_estimator(funnel, patients)
print("\n".join(str(report).splitlines()[:22]))
