"""A score that anybody could build from the two models of ScoreCells: no noise, and no promise.

It is the rank of P(V|x), or its mean with the rank among rows with a similar P(S|x), cut into
levels of equally many rows.
"""

from typing import NamedTuple

import numpy as np

from skprivacy.cells.cells import N_FOLDS, coded_rows
from skprivacy.cells.scores import ScoredRows
from skprivacy.fitting.fitted_estimator import fitted_of

# The rank in the bin has these shares in the mean. None is the "coarse score", all others are the
# "score within P(S|x)".
SHARES, LEVELS = (0.0, 0.3, 0.6, 0.8, 0.9, 1.0), (2, 3, 4, 6, 8, 12, 20, 40)

# A bin of P(S|x) for so many rows, within limits.
_ROWS_FOR_A_BIN, _BINS = 80, (4, 20)


class Forecasts(NamedTuple):
    """P(V = 1|x) and P(S = 1|x) of rows, by models that have not seen a row like it."""

    v: np.ndarray
    s: np.ndarray


def forecasts(funnel, X):
    """Return the forecasts of the models that a transformer with ScoreCells has chosen."""
    fitted = fitted_of(funnel)
    alphabet, names = fitted.alphabet, list(fitted.x_names)
    codes = coded_rows(alphabet.cell_columns, [X[name] for name in names], names)
    rows = ScoredRows.of(alphabet.cell_columns, codes, None)
    found = np.empty((2, len(X)))
    for fold in range(N_FOLDS):
        of_fold = np.flatnonzero(rows.folds == fold)
        for row, scorer in enumerate((alphabet.partition.target, alphabet.partition.sensitive)):
            found[row, of_fold] = scorer.probabilities(rows.at(of_fold), fold)[:, 1]
    return Forecasts(*found)


def scores(fitted, rows, share):
    """Return the score of rows; fitted : the forecasts of the rows that ranks are taken among."""
    low, high = _BINS
    n_bins = int(np.clip(len(fitted.s) // _ROWS_FOR_A_BIN, low, high))
    edges = inner_quantiles(fitted.s, n_bins)
    bin_of_fitted, bin_of_row = (np.searchsorted(edges, part.s) for part in (fitted, rows))
    within = np.empty(len(rows.v))
    for number in range(len(edges) + 1):
        in_bin = bin_of_row == number
        within[in_bin] = ranks(fitted.v[bin_of_fitted == number], rows.v[in_bin])
    return (1 - share) * ranks(fitted.v, rows.v) + share * within


def inner_quantiles(values, n):
    """Return values that cut others into n parts of about the same size."""
    shares = np.linspace(0, 1, n + 1)[1:-1]
    return np.unique(np.quantile(values, shares, method="inverted_cdf"))


def ranks(values, others):
    """Return the share of the values below each of the others, ties counted half."""
    values = np.sort(values)
    below = np.searchsorted(values, others, "left") + np.searchsorted(values, others, "right")
    return below / 2 / max(len(values), 1)


def releases(funnel, tables, shares=SHARES, numbers=LEVELS):
    """Yield the method, the setting and the levels of the rows of each table, the fitted first."""
    of_tables = [forecasts(funnel, X) for X in tables]
    for share in shares:
        found = [scores(of_tables[0], rows, share) for rows in of_tables]
        for n in numbers:
            edges = inner_quantiles(found[0], n)
            levels = [np.searchsorted(edges, score) for score in found]
            name = "score within P(S|x)" if share else "coarse score"
            setting = f"{share:g}, {n} levels" if share else f"{n} levels"
            yield name, setting, levels
