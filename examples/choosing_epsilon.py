"""
Choosing epsilon
================

Mathematics cannot choose a budget, but it can compute what each budget costs, and what it allows
an attacker. This example shows four views of the same choice, for the 442 patients of
scikit-learn's diabetes data. We release their blood pressure in five bands (X, released as Y) and
protect their sex (S). The budget, epsilon, is the most that a released value may reveal about S,
in nats.
"""

# %%
# What each budget costs
# ----------------------
# ``privacy_utility_path`` designs a mechanism for each of many budgets. A budget can hold for
# every output (released value) or on average. These two curves are certified: no mechanism within
# the budget lies above them. The third is randomised response, which now and then releases a
# random band.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skprivacy import LeakageDisplay, PrivacyUtilityDisplay, design_mechanism, privacy_utility_path
from skprivacy.budgets import mechanism_for_utility
from skprivacy.datasets import load_diabetes_joint
from skprivacy.metrics import population_leakage

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
# there are five bands and only two sexes, so most of the information in X is not about S.
# Randomised response cannot exploit that. Where the curve is flat, a smaller epsilon costs almost
# nothing.
perfect = design_mechanism(counts, 0)
print(f"at epsilon = 0, {perfect.normalized_utility:.1%} of H(X) is kept")

# %%
# Start from the utility
# ----------------------
# Most people know how much utility they need rather than which epsilon. ``mechanism_for_utility``
# returns the mechanism with the least leakage that keeps a given share of the information; its
# ``epsilon`` is the budget.
needed = [mechanism_for_utility(counts, share) for share in (0.6, 0.7, 0.8, 0.9)]
pd.DataFrame(
    {
        "utility needed": [0.6, 0.7, 0.8, 0.9],
        "smallest epsilon": [mechanism.epsilon for mechanism in needed],
        "I(S;Y)": [mechanism.sensitive_information for mechanism in needed],
    }
).round(4)

# %%
# What an attacker gains
# ----------------------
# The best attacker knows the joint distribution and the channel, sees one released value and
# guesses the sex. The *advantage* is how much more often that guess is right than the best blind
# guess. The budget alone bounds it: for ``kl``, by the square root of epsilon over two. The
# designed mechanism allows less.
path = paths["every output"]
figure, axis = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
bound = [100 * mechanism.advantage_bound for mechanism in path]
axis.plot(epsilons, bound, color="tab:red", lw=2, label="any mechanism within the budget")
reached = [100 * mechanism.attacker_advantage for mechanism in path]
axis.plot(epsilons, reached, color="tab:blue", lw=2, label="the optimal mechanism")
raw = path[0].with_channel(np.eye(len(path[0].x_labels))).attacker_advantage
axis.axhline(100 * raw, color="0.5", ls=":", lw=2, label="X itself")
axis.set(xscale="log", xlabel="budget ε (KL, per output)", ylim=0)
axis.set_ylabel("attacker's advantage (percentage points)")
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False)
plt.show()

# %%
# What the sample adds
# --------------------
# The budget holds under the joint distribution of S and X that was estimated from 442 rows. In the
# population they were drawn from, more may leak: ``population_leakage`` gives an upper confidence
# limit. Below a certain epsilon a smaller budget helps little, because the estimation error does
# not shrink with it; more rows do help.
rows = {"442 rows": 442, "10 times as many": 4420, "100 times as many": 44200}
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
# The larger tables are hypothetical: the same shares, estimated from more rows.
#
# The choice
# ----------
# Suppose that we need 70% of the utility. This is the leakage of each output of that mechanism, in
# these rows and in the population, against the budget.
chosen = needed[1]
LeakageDisplay.from_mechanism(chosen, limits=population_leakage(chosen, 442))
plt.show()
