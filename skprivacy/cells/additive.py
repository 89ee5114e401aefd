"""Logistic regression of codes of columns, as a table of log-odds for each column.

A number enters by its value, its rank and the square of its rank, a category by an indicator. So
the score of a row is a sum of entries of tables: it needs no matrix product, whose rounding could
depend on the rows beside it, and a file holds nothing but numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from .._numerics import TINY
from .._typing import FloatArray, IntArray
from .cells import CellColumn

# Values farther from the mean than this many standard deviations count as this far.
_FARTHEST = 4.0

# Where rows times squared coefficients are at most this, Newton steps are quick, and so exact that
# every processor gives the same after rounding; beyond, many cheap steps are taken.
_MOST_NEWTON, _NEWTON_TOL, _OTHER_TOL = 3e8, 1e-8, 1e-5

# With more rows times features, these models take longer than all others.
_MOST_ENTRIES = 2.5e6

# Log-odds have this many decimals: further ones depend on the processor.
_DECIMALS = 6


# The number of codes of a column, and their places if they are numbers.
CodedColumn: TypeAlias = tuple[int, FloatArray | None]


def coded_columns(columns: Sequence[CellColumn]) -> tuple[CodedColumn, ...]:
    """Return what models need to know of columns."""
    return tuple((c.n_codes, c.places if c.has_order else None) for c in columns)


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """P(class | x) by log-odds relative to the first class that are sums over columns.

    classes : that occurred; constant : the log-odds of the other classes; tables : what each code
    of each column adds to them, the last row for code -1.
    """

    classes: IntArray
    constant: FloatArray
    tables: tuple[FloatArray, ...]

    def probabilities(self, codes: IntArray) -> FloatArray:
        """Return the probability of each class in `classes`, for rows of codes."""
        log_odds = np.tile(self.constant, (len(codes), 1))
        for table, of_column in zip(self.tables, codes.T, strict=True):
            log_odds += table[of_column]
        return softmax(np.pad(log_odds, ((0, 0), (1, 0))), axis=1)


def is_quick(columns: Sequence[CodedColumn], n_rows: int) -> bool:
    """Whether a table is small enough for such models."""
    n_features = sum(n_codes if places is None else 4 for n_codes, places in columns)
    return n_features * n_rows <= _MOST_ENTRIES


def fit_additive(
    columns: Sequence[CodedColumn],
    codes: IntArray,
    classes: IntArray,
    weights: FloatArray,
    strengths: Sequence[float],
) -> list[AdditiveModel]:
    """Return models of some rows; strengths : inverses of the penalty, C of scikit-learn."""
    parts = [
        _features(*column, of_column, weights)
        for column, of_column in zip(columns, codes.T, strict=True)
    ]
    features = np.hstack([part[of] for part, of in zip(parts, codes.T, strict=True)])
    given, labels = np.unique(classes, return_inverse=True)
    n_odds = len(given) - 1
    is_small = len(codes) * (n_odds * features.shape[1]) ** 2 <= _MOST_NEWTON
    steps = ("newton-cholesky", _NEWTON_TOL) if is_small else ("lbfgs", _OTHER_TOL)
    model = LogisticRegression(solver=steps[0], tol=steps[1], max_iter=1000)
    ends, found = np.cumsum([part.shape[1] for part in parts])[:-1], []
    for strength in strengths:
        model.set_params(C=strength).fit(features, labels, weights)
        slopes, constant = model.coef_, model.intercept_
        if len(given) > 2:
            slopes, constant = slopes[1:] - slopes[0], constant[1:] - constant[0]
        by_column = zip(parts, np.split(slopes, ends, axis=1), strict=True)
        tables = tuple((part @ of_part.T).round(_DECIMALS) for part, of_part in by_column)
        found.append(AdditiveModel(given, constant.round(_DECIMALS), tables))
    return found


def _features(
    n_codes: int, places: FloatArray | None, codes: IntArray, weights: FloatArray
) -> FloatArray:
    """Return the features of each code of a column, the last row for code -1."""
    if places is None:
        return np.eye(n_codes + 1)[:, :n_codes]
    known = codes >= 0
    share = np.bincount(codes[known], weights[known], n_codes)
    share = share / max(share.sum(), TINY)
    rank = np.sqrt(12) * (np.cumsum(share) - share / 2 - 0.5)  # of variance 1
    place = np.clip(_standardised(places, share), -_FARTHEST, _FARTHEST)
    parts = [place] if n_codes <= 2 else [place, rank, rank**2]
    features = np.zeros((n_codes + 1, len(parts) + 1))
    features[:-1, :-1] = np.column_stack([part - share @ part for part in parts])
    features[-1, -1] = 1.0  # missing
    return features if not known.all() else features[:, :-1]


def _standardised(places: FloatArray, share: FloatArray) -> FloatArray:
    """Return numbers with mean 0 and variance 1, whatever their size."""
    largest = np.abs(places).max(initial=0.0)
    places = places / largest if largest > 0 else places
    centred = places - share @ places
    return centred / max(float(np.sqrt(share @ centred**2)), TINY)
