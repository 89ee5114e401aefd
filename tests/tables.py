"""Rows to try transformers on."""

import numpy as np
import pandas as pd

from skprivacy import PrivacyFunnelTransformer


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
