"""How long designs with a confidence take, also as multiples of designs for the rows alone.

Run ``python benchmarks/speed_of_confidence.py``; it takes a minute or two. Each figure is the
median over some tables: random ones, and one of the shape of sex by education. The last line is
a grid search: five budgets, five folds.
"""

import argparse
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from skprivacy import PrivacyFunnelTransformer, design_mechanism

EPSILON, CONFIDENCE = 0.02, 0.95

# Shares of the levels of education in two groups: made up, of the shape that real ones have.
EDUCATION = np.array([
    [334, 148, 91, 65, 46, 43, 37, 27, 21, 18, 16, 15, 11, 7, 3, 2],
    [315, 263, 163, 52, 50, 43, 29, 42, 14, 16, 14, 9, 6, 12, 5, 2],
]) * [[0.67], [0.33]]  # fmt: skip


def spread(rng, n_s, n_x):
    """Return a random joint."""
    joint = rng.random((n_s, n_x))
    return joint / joint.sum()


def like_adult(rng):
    """Return a joint of two groups and sixteen values, most of them rare."""
    return EDUCATION / EDUCATION.sum()


# Joints, numbers of rows, and the seconds that a design may take.
CASES = {
    "4 x 7": (lambda rng: spread(rng, 4, 7), 1000, 0.3),
    "2 x 16, as sex by education": (like_adult, 10_000, 1.0),
    "5 x 64": (lambda rng: spread(rng, 5, 64), 20_000, 10.0),
    "2 x 225": (lambda rng: spread(rng, 2, 225), 50_000, 10.0),
}

SEARCH = "a grid search of 25 fits"


def seconds(call, *arguments, **options):
    """Return the processor time of a call: what else runs does not count."""
    began = time.process_time()
    call(*arguments, **options)
    return time.process_time() - began


def timed(case, n_tables):
    """Return the median seconds of designs for the rows, and with a confidence."""
    make, n_rows, _ = CASES[case]
    rng, found = np.random.default_rng(0), []
    for _ in range(n_tables):
        joint = make(rng)
        counts = rng.multinomial(n_rows, joint.ravel()).reshape(joint.shape)
        found.append([seconds(design_mechanism, counts, EPSILON, confidence=c)
                      for c in (None, CONFIDENCE)])  # fmt: skip
    return np.median(found, axis=0)


def searched(n_rows=2000):
    """Return the same for a grid search over budgets."""
    rng = np.random.default_rng(0)
    s, x = rng.integers(2, size=n_rows), rng.integers(8, size=n_rows)
    x = np.where(rng.random(n_rows) < 0.2, 4 * s + x % 4, x)
    frame = pd.DataFrame({"s": s, "x": x.astype(str)})
    target = (x + rng.integers(3, size=n_rows) > 5).astype(int)
    found = []
    for confidence in (None, CONFIDENCE):
        funnel = PrivacyFunnelTransformer(sensitive="s", confidence=confidence, random_state=0)
        model = make_pipeline(funnel, OrdinalEncoder(), CategoricalNB(min_categories=8))
        budgets = {"privacyfunneltransformer__epsilon": [0.005, 0.01, 0.02, 0.05, 0.1]}
        found.append(seconds(GridSearchCV(model, budgets, cv=5).fit, frame, target))
    return found


def main(n_tables, cases):
    """Print the table."""
    print(f"{'seconds':<30}{'rows alone':>11}{'confidence':>12}{'ratio':>8}{'aim':>8}")
    for case in cases:
        alone, sure = searched() if case == SEARCH else timed(case, n_tables)
        aim = f"{CASES[case][2]:8.1f}" if case in CASES else ""
        print(f"{case:<30}{alone:11.3f}{sure:12.3f}{sure / alone:8.1f}{aim}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=3)
    parser.add_argument("--cases", nargs="*", default=[*CASES, SEARCH])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    main(options.tables, options.cases)
