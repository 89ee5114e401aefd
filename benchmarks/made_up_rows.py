"""Made-up rows: what they keep of a table, how often they contradict it, and what they give away.

Each table is released in several ways, with a design for a target. Figures are about people who
were not fitted, two splits one after the other. In the columns: similarity of single columns and
of pairs to true rows (1 is best; raw rows of other people show what chance allows); the mean AUC
of models of each column, trained on released and tested on true rows (as near to raw as can be);
the AUC of a model of the target from a released row (the same); that of the better of two models
of S, boosting and logistic regression, which must not exceed what the channel allows beyond
chance; rows that contradict an exact dependency (none); the upper 95% limit of how much better
members are found than others (at most 0.05); CPU seconds of the fit, and released rows in
thousands a second, most of which is scoring them for their cells. Below each table is what a
column should reach with rows for any use, as a mean of the splits: similarities and models that
a simple prototype had with the same cells, splits and figures (leaves of 25 people, numbers as
people have them); an attacker at most at what the channel allows, and 0.02 for chance; a fit at
most twice as long as with columns drawn one by one; 100,000 rows a second. Two tables come with
packages: statsmodels (fair) and causaldata (cps_mixtape); adult.csv is the census data. For the
page in docs:

    python benchmarks/made_up_rows.py adult.csv > docs/measured/made_up_rows.txt
"""

import argparse
import time
import warnings
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import ks_2samp
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skprivacy import PrivacyFunnelTransformer, ScoreCells
from skprivacy.metrics import linkage

EPSILON = 0.02
WAYS = {
    "column by column": {"made_up": "column_by_column"},
    "for any use": {"made_up": "for_any_use"},
    "for one model": {"made_up": "for_one_model"},
    "confidence 0.95": {"made_up": "for_any_use", "confidence": 0.95},
}


def adult(path):
    """Return (X, S, V): the census data; S is sex, V a high income."""
    table = pd.read_csv(path)
    texts = table.select_dtypes(exclude="number").columns
    table[texts] = table[texts].fillna("missing")
    s, v = table.pop("sex"), table.pop("income")
    return table, s.eq("Male").to_numpy(int), v.str.contains(">").to_numpy(int)


def fair():
    """Return (X, S, V): a survey of wives; S is having no children, V an affair."""
    from statsmodels.datasets import fair as source

    table = source.load_pandas().data
    s, v = table.pop("children").eq(0), table.pop("affairs").gt(0)
    return table, s.to_numpy(int), v.to_numpy(int)


def cps():
    """Return (X, S, V): men in a survey; S is being black or Hispanic, V high earnings in 1978."""
    from causaldata import cps_mixtape

    table = cps_mixtape.load_pandas().data.drop(columns=["data_id", "treat"])
    s = table.pop("black").gt(0) | table.pop("hisp").gt(0)
    v = table.pop("re78")
    return table, s.to_numpy(int), v.gt(v.median()).to_numpy(int)


def coded(frame, edges=None):
    """Return numbers as the tenth of the rows that they are in, and other columns as texts."""
    parts = {}
    for name in frame:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column) and column.nunique() > 10:
            cuts = np.unique(np.quantile(edges[name], np.linspace(0, 1, 11)[1:-1]))
            parts[name] = np.searchsorted(cuts, column)
        else:
            parts[name] = column.astype(str).to_numpy()
    return pd.DataFrame(parts)


def shapes(real, made):
    """Return the mean similarity of columns: 1 less the Kolmogorov distance, or variation."""
    found = []
    for name in real:
        a, b = real[name], made[name]
        if pd.api.types.is_numeric_dtype(a):
            found.append(1 - ks_2samp(a, b).statistic)
        else:
            shares = [x.astype(str).value_counts(normalize=True) for x in (a, b)]
            found.append(1 - shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)
    return float(np.mean(found))


def pairs(real, made):
    """Return the mean similarity of pairs of columns, 1 less the total variation."""
    a, b = coded(real, real), coded(made, real)
    found = []
    for one, other in combinations(a, 2):
        counts = [x.groupby([one, other], observed=True).size() / len(x) for x in (a, b)]
        found.append(1 - counts[0].sub(counts[1], fill_value=0).abs().sum() / 2)
    return float(np.mean(found))


def features(*frames):
    """Return frames as gradient boosting takes them, with the same categories."""
    frames = [frame.copy() for frame in frames]
    for name in frames[0]:
        if not pd.api.types.is_numeric_dtype(frames[0][name]):
            every = pd.Index(pd.concat([f[name].astype(str) for f in frames]).unique())
            for frame in frames:
                frame[name] = pd.Categorical(frame[name].astype(str), categories=every)
        else:
            for frame in frames:
                frame[name] = frame[name].astype(float)
    return frames


def boosting():
    """Return a classifier."""
    return HistGradientBoostingClassifier(
        max_iter=60, min_samples_leaf=40, categorical_features="from_dtype", random_state=0
    )


def logistic():
    """Return another classifier."""
    texts = make_column_selector(dtype_include="category")
    numbers = make_column_selector(dtype_exclude="category")
    return make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), texts), (StandardScaler(), numbers)
        ),
        LogisticRegression(max_iter=300),
    )


def auc(make, train, y_train, test, y_test):
    """Return the AUC of a model."""
    train, test = features(train, test)
    model = make().fit(train, y_train)
    return roc_auc_score(y_test, model.predict_proba(test)[:, 1])


def other_models(made, real):
    """Return the mean AUC of models of single columns, trained on one table, tested on another."""
    found = []
    for name in real:
        if pd.api.types.is_numeric_dtype(real[name]):
            limit = real[name].median()
            classes = [frame[name].gt(limit).to_numpy(int) for frame in (made, real)]
        else:
            commonest = real[name].mode()[0]
            classes = [frame[name].eq(commonest).to_numpy(int) for frame in (made, real)]
        if min(map(len, map(np.unique, classes))) == 2:
            others = [frame.drop(columns=name) for frame in (made, real)]
            found.append(auc(boosting, others[0], classes[0], others[1], classes[1]))
    return float(np.mean(found))


def splits(n, n_fit, seed):
    """Return three kinds of rows: to fit, to train models on, and to test them."""
    order = np.random.default_rng(seed).permutation(n)
    rest = order[n_fit:]
    half = min(len(rest) // 2, 12_000)
    return order[:n_fit], rest[:half], rest[half : 2 * half]


def contradictions(X, made):
    """Return the share of rows with a pair of values that some exact dependency rules out."""
    is_wrong = np.zeros(len(made), dtype=bool)
    for a in X:
        for b in X:
            pairs_of = X[[a, b]].drop_duplicates()
            if (
                a != b
                and pairs_of[a].is_unique
                and len(pairs_of) < len(X) / 25
                and pairs_of[b].nunique() > 1
            ):
                follows = pairs_of.set_index(a)[b]
                is_wrong |= made[a].map(follows).ne(made[b]).to_numpy()
    return is_wrong.mean()


def allowed(funnel, X, s, v):
    """Return the AUC of the best attacker who sees Y, on some rows: computed from the channel."""
    figures = funnel.evaluate(
        X, pd.Series(v, name="target"), sensitive_features=pd.Series(s, name="S")
    )
    p_y, given_y = figures.p_y, figures.secrets[None].sensitive_posterior[:, 1]
    order = np.argsort(given_y, kind="stable")
    ones, zeros = (p_y * given_y)[order], (p_y * (1 - given_y))[order]
    below = np.cumsum(zeros) - zeros / 2
    return float(ones @ below / (ones.sum() * zeros.sum()))


def attacked(s, kinds, made):
    """Return the AUC of the better of two attackers on rows of people who were not fitted."""
    _, train, test = kinds
    return max(auc(m, made[1], s[train], made[2], s[test]) for m in (boosting, logistic))


def figures_of(X, s, v, kinds, made):
    """Return the figures of one release; made : of the rows of all three kinds."""
    _, train, test = kinds
    real = X.iloc[train]
    return [
        shapes(real, made[2]), pairs(real, made[2]), other_models(made[1], X.iloc[test]),
        auc(boosting, made[1], v[train], made[2], v[test]), attacked(s, kinds, made),
        contradictions(X, made[2]),
    ]  # fmt: skip


def released(X, s, v, kinds, seed, **parameters):
    """Return a fitted transformer, its released rows of each kind, and how long both took."""
    fit = kinds[0]
    labels = pd.Series(v[fit], name="target"), pd.Series(s[fit], name="S")
    funnel = PrivacyFunnelTransformer(
        EPSILON, alphabet=ScoreCells(), utility="target", random_state=seed, **parameters
    )
    start = time.process_time()
    funnel.fit(X.iloc[fit], labels[0], sensitive_features=labels[1])
    seconds = time.process_time() - start
    start = time.process_time()
    made = [funnel.transform(X.iloc[rows]) for rows in kinds]
    per_second = sum(map(len, kinds)) / (time.process_time() - start)
    return funnel, made, [seconds, per_second / 1000]


def shown(name, values):
    """Print one line of the table."""
    cells = (f"{'' if np.isnan(x) else format(x, '.3f'):>11s}" for x in values)
    print(f"{name:18s}{''.join(cells)}", flush=True)


HEADER = ["shapes", "pairs", "models", "own target", "attacker", "contradict", "allowed",
          "linkage", "seconds", "1000/s"]  # fmt: skip


# Of the prototype: shapes, pairs, models, own target.
PROTOTYPE = {
    "adult": [0.986, 0.960, 0.815, 0.852],
    "fair": [0.971, 0.923, 0.744, 0.648],
    "cps_mixtape": [0.979, 0.931, 0.888, 0.854],
}


def compared(name, figures):
    """Print the mean of the splits for rows for any use, and what it should reach."""
    one_by_one, any_use = (
        np.mean(figures[way], axis=0) for way in ("column by column", "for any use")
    )
    shown("mean, for any use", any_use)
    allowed, seconds = any_use[HEADER.index("allowed")], one_by_one[HEADER.index("seconds")]
    more = allowed + 0.02, 0, np.nan, 0.05, 2 * seconds, 100
    shown("to reach", [*PROTOTYPE[name], *more])


def main():
    """Print a table for each table and split."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("adult", help="adult.csv")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = {
        "adult": (*adult(options.adult), 6000),
        "fair": (*fair(), 3000),
        "cps_mixtape": (*cps(), 6000),
    }
    for name, (X, s, v, n_fit) in tables.items():
        print(f"{name}: {len(X):,} rows, {len(X.columns)} columns, {n_fit:,} rows fitted")
        print(" " * 18 + "".join(f"{h:>11s}" for h in HEADER))
        figures = {way: [] for way in WAYS}
        for seed in range(options.seeds):
            kinds = splits(len(X), n_fit, seed)
            raw = [X.iloc[rows] for rows in kinds]
            shown("raw", [*figures_of(X, s, v, kinds, raw), *[np.nan] * 4])
            for way, parameters in WAYS.items():
                funnel, made, seconds = released(X, s, v, kinds, seed, **parameters)
                found = linkage(made[0], *(X.iloc[rows] for rows in kinds[:2]))
                test = X.iloc[kinds[2]], s[kinds[2]], v[kinds[2]]
                more = allowed(funnel, *test), found["high"].max()
                figures[way].append([*figures_of(X, s, v, kinds, made), *more, *seconds])
                shown(way, figures[way][-1])
        compared(name, figures)
        print()


if __name__ == "__main__":
    main()
