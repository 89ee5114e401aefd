"""
Quickstart: release a column without giving away another
=========================================================

The data are 442 patients from scikit-learn's diabetes data. Their blood pressure is useful, but it
gives away their sex. We release it, in five bands, so that a released band reveals at most epsilon
about the sex of that patient. It takes six steps: fit, look, read, release, attack, report.
"""

# %%
# The table
# ---------
# ``sex`` must not leak; we call it S. We want to release ``band``, X: the blood pressure in five
# bands of about equal size. The release in its place is called Y. The data set codes sex as 1 and
# 2 and does not say which is which.
import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_diabetes

from skprivacy import (
    LeakageDisplay,
    MechanismDisplay,
    PrivacyFunnelTransformer,
    PrivacyReport,
    audit,
)
from skprivacy.metrics import population_leakage

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
# The budget is in nats, the unit of information when logarithms are natural: ``epsilon=0.005``
# means that no released value moves the distribution of sex by more than 0.005, measured as a
# Kullback-Leibler divergence. ``random_state`` makes this page the same each time; leave it out
# when you release real data.
funnel = PrivacyFunnelTransformer(epsilon=0.005, sensitive="sex", columns=["band"], random_state=0)
funnel.fit(patients)
mechanism = funnel.mechanism_
print(f"leakage of the worst output: {mechanism.max_leakage:.4f} nats")
print(f"information about the band that is kept: {mechanism.normalized_utility:.1%}")
print(f"and no mechanism could keep more than {mechanism.normalized_upper_bound:.1%}")

# %%
# Look at the mechanism
# ---------------------
# Each row is a band of blood pressure, each column a released value, and each cell shows how often
# the one becomes the other. Only as much noise is added as the budget requires.
MechanismDisplay.from_estimator(funnel)
plt.show()

# %%
# The next picture shows what each released value reveals about S. On the left is its leakage
# against the budget. On the right is the share of each sex among the patients with that released
# value: it is close to the share among all patients, which the lines show. The budget holds for
# these 442 rows. The orange marks are limits for the population that they come from; they are far
# above the budget, because 442 rows are few.
limits = population_leakage(funnel)
LeakageDisplay.from_estimator(funnel, limits=limits)
plt.show()

# %%
# At face value
# -------------
# The default design keeps as much information as possible, whatever a released band is called:
# many of the highest are released as low. A model can learn that, but people who read the table
# cannot. ``utility="distortion"`` keeps released bands close to the true ones instead, within the
# same budget. ``mean_shift`` is how many bands a value moves.
close = PrivacyFunnelTransformer(
    epsilon=0.005, sensitive="sex", columns=["band"], utility="distortion"
)
close.fit(patients)
both = {"for information": funnel, "for closeness": close}
pd.concat({name: each.fidelity_.columns for name, each in both.items()}).round(2)

# %%
# Release
# -------
# ``transform`` needs no S, and never releases it. The released column has the same name and dtype
# as the original.
released = funnel.transform(patients)
released.head()

# %%
# Audit
# -----
# Classifiers are trained to guess the sex from the raw and from the released column, and judged on
# rows that they have not seen. ``advantage`` is how much more often they are right than a blind
# guess, and ``advantage_bound`` is the most that the budget allows any attacker, under the joint
# distribution of these rows.
attacks = audit(released, patients["sex"], raw=patients[["band"]], mechanism=funnel)
columns = ["attacked", "attacker", "accuracy", "blind", "advantage", "advantage_bound"]
attacks[columns].round(3)

# %%
# Report
# ------
# The report is for whoever signs off the release: ``report.save("report.html")`` writes a single
# page that needs no network. As text it begins like this:
report = PrivacyReport.from_estimator(funnel, patients)
print("\n".join(str(report).splitlines()[:22]))

# %%
# What next
# ---------
# Read :doc:`/guarantee` before you release anything: it says what is protected and what is not.
# :doc:`/auto_examples/choosing_epsilon` helps with the budget, :doc:`/transformer` has all the
# options, and :doc:`/commands` does the same for files, without Python.
