"""
Values that people read
=======================

People who read a released table take a body mass index of 27 for 27. Here a patient's body mass
index is released, so that it says little about the patient's sex, in two ways with the same
budget. The first keeps as much information as possible, which suits models. The second keeps
released values close to the true ones, which suits readers.
"""

# %%
# The table
# ---------
# 442 patients of scikit-learn's diabetes data. The data set codes sex as 1 and 2, and does not say
# which is which.
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skprivacy import FiniteSampleWarning, PrivacyFunnelTransformer
from skprivacy.datasets import load_diabetes_patients

patients = load_diabetes_patients()[["sex", "bmi"]]
patients.head(3)

# %%
# Two designs
# -----------
# The numbers are cut into eight bins, and a bin is released as its median. The budget,
# ``epsilon``, is the most that a released value may say about sex. Both designs keep it exactly,
# but maximise different utilities. (We silence the warning that 442 rows are few: see
# :doc:`/auto_examples/enough_rows`.)
utilities = {"for information": "mutual_information", "for closeness": "distortion"}
funnels = {}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", FiniteSampleWarning)
    for name, utility in utilities.items():
        funnels[name] = PrivacyFunnelTransformer(
            epsilon=0.005, sensitive="sex", n_bins=8, utility=utility, random_state=0
        ).fit(patients)

# %%
# What a reader gets
# ------------------
# ``fidelity_`` compares released values with true ones, exactly, from the probabilities of the
# channel. ``unchanged`` is the share of patients who keep their bin, ``mean_shift`` how far a
# value moves on average, in the unit of the column, and ``correlation`` is between the values
# before and after.
shown = ["unchanged", "mean_shift", "correlation"]
table = pd.concat([funnel.fidelity_.columns[shown] for funnel in funnels.values()])
table.index = list(funnels)
table["says about sex, at most"] = [f.mechanism_.max_leakage for f in funnels.values()]
table.round(3)

# %%
# Look at it
# ----------
# Every dot is a patient: the true body mass index to the right, the released one upward. On the
# line, the two are equal. Designed for information, patients of about 24 are released as 20 or as
# 31: a model can learn what a released value stands for, a reader cannot. Designed for closeness,
# most dots stay near the line.
figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained", sharex=True, sharey=True)
rng = np.random.default_rng(0)
for axis, (name, funnel) in zip(axes, funnels.items(), strict=True):
    released = funnel.transform(patients)["bmi"]
    apart = rng.uniform(-0.4, 0.4, len(patients))  # keeps dots apart
    axis.plot([18, 40], [18, 40], color="0.7", lw=1)
    axis.plot(patients["bmi"], released + apart, ".", alpha=0.4, ms=5)
    axis.set(title=f"designed {name}", xlabel="true body mass index")
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("released body mass index")
plt.show()

# %%
# What next
# ---------
# The commands design for closeness by default; in Python, set ``utility="distortion"``.
# :doc:`/face_value` defines "close", also for categories and for several columns.
