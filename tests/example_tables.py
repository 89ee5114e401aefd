"""Rows to try transformers on."""

import warnings

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from skprivacy import PrivacyFunnelTransformer, ScoreCells


def people(n=3000, seed=0):
    """Return rows in which a band and a place give sex away."""
    rng = np.random.default_rng(seed)
    sex = rng.integers(2, size=n)
    return pd.DataFrame(
        {
            "sex": np.array(["f", "m"])[sex],
            "band": np.array(list("abcde"))[rng.binomial(4, 0.3 + 0.3 * sex)],
            "zip": np.where(rng.random(n) < 0.9, sex, 1 - sex) + 10 * rng.integers(3, size=n),
            "noise": rng.normal(size=n),
            "label": rng.random(n) < 0.3 + 0.4 * sex,
        }
    )


def funnel(epsilon=0.01, **options):
    options = {"sensitive": "sex", "columns": ["band"], "random_state": 0} | options
    return PrivacyFunnelTransformer(epsilon, **options)


N = 2000


def graduates():
    """Return rows in which education and income give sex away."""
    rng = np.random.default_rng(3)
    sex = rng.choice(["f", "m"], size=N)
    shift = np.where(sex == "f", 0.15, -0.1)
    level = np.clip((rng.random(N) + shift) * 4, 0, 3).astype(int)
    return pd.DataFrame(
        {
            "sex": sex,
            "education": np.array(["none", "school", "college", "phd"])[level],
            "income": np.round(rng.lognormal(10 - shift, 0.4), 2),
            "children": rng.integers(0, 4, size=N),
            "city": pd.Categorical(
                rng.choice(["x", "y", "z"], size=N), ["z", "y", "x"], ordered=True
            ),
            "since": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(rng.integers(0, 900, N), unit="D"),
        },
        index=pd.Index(np.arange(N) * 3, name="row"),
    )


def quick_scores(max_cells=8):
    """Return cells by scores of models that take no time."""
    estimator = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    return ScoreCells(estimator, max_cells=max_cells)


def quiet_fit(transformer, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return transformer.fit(*arguments, **options)


def make(epsilon=0.01, **options):
    return PrivacyFunnelTransformer(
        epsilon, **{"sensitive": "sex", "columns": ["education"], "random_state": 0} | options
    )
