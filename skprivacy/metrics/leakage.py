"""What a released column reveals about a sensitive one, measured on samples.

A measure (`skprivacy.measures`) acts on probabilities, a metric on samples. With few rows, even a
column that has nothing to do with S seems to leak: `leakage_report` shows by how much.
"""

from __future__ import annotations

from typing import Literal, overload

import numpy as np
import pandas as pd

from .._typing import ColumnsLike, FloatArray, Scope, Seed
from .._validation import check_integer, check_real
from ..measures import KL, L1, AlphaLift, Chi2, MaxLift, Measure, check_scope, get_measure, lift
from ..measures.leakage import leakage_in, output_values
from ..tables.cross_tables import CrossTable, observed
from .information import chance_tables, interval, jackknife

_METRICS = {
    "mutual information": (KL(), 1.0),
    "total variation": (L1(), 0.5),
    "l1": (L1(), 1.0),
    "chi2": (Chi2(), 1.0),
    "alpha-lift": (AlphaLift(), 1.0),
    "maximal leakage": (MaxLift(), 1.0),
}


# The columns of a report.
_SCOPES: dict[Scope, str] = {"average": "average", "per_output": "worst_output"}


def leakage(
    s: ColumnsLike, y: ColumnsLike, *, measure: str | Measure = "kl", scope: Scope = "per_output"
) -> float:
    """Return the leakage of samples by any measure, on its epsilon scale.

    Parameters
    ----------
    s, y : array-like or frame of n_samples rows
        The sensitive column and the released one; the columns of a frame are taken jointly.
    measure : str or Measure, default="kl"
        As in `design_mechanism`.
    scope : {"per_output", "average"}, default="per_output"
        The leakage of the worst value of y, or on average.

    Returns
    -------
    float

    Examples
    --------
    >>> from skprivacy.metrics import leakage
    >>> leakage(["a", "a", "b", "b"], [0, 0, 1, 1], measure="l1", scope="average")
    1.0
    """
    measure = get_measure(measure, "leakage")
    check_scope("leakage", scope, measure)
    return _in_scope(observed(s, y, "leakage"), measure, scope)


@overload
def max_lift(s: ColumnsLike, y: ColumnsLike, *, per_output: Literal[False] = ...) -> float: ...
@overload
def max_lift(s: ColumnsLike, y: ColumnsLike, *, per_output: Literal[True]) -> pd.Series: ...
def max_lift(s: ColumnsLike, y: ColumnsLike, *, per_output: bool = False) -> float | pd.Series:
    """Return the largest P(s|y) / P(s): how much likelier a value of S can become.

    Parameters
    ----------
    s, y : array-like or frame of n_samples rows
        As in `leakage`.
    per_output : bool, default=False
        Whether to return a Series with the largest lift of each value of y.

    Examples
    --------
    >>> from skprivacy.metrics import max_lift
    >>> max_lift(["a", "a", "b", "b"], [0, 0, 0, 1])
    2.0
    """
    sample = observed(s, y, "max_lift")
    lifts = lift(sample.posteriors, sample.prior).max(axis=1)
    return pd.Series(lifts, sample.y_values) if per_output else float(lifts.max())


@overload
def l1_leakage(s: ColumnsLike, y: ColumnsLike, *, per_output: Literal[False] = ...) -> float: ...
@overload
def l1_leakage(s: ColumnsLike, y: ColumnsLike, *, per_output: Literal[True]) -> pd.Series: ...
def l1_leakage(s: ColumnsLike, y: ColumnsLike, *, per_output: bool = False) -> float | pd.Series:
    """Return the l1 distance of P(S|y) from P(S), on average over y.

    Parameters
    ----------
    s, y : array-like or frame of n_samples rows
        As in `leakage`.
    per_output : bool, default=False
        Whether to return a Series with that of each value of y.

    Examples
    --------
    >>> from skprivacy.metrics import l1_leakage
    >>> l1_leakage(["a", "a", "b", "b"], [0, 1, 0, 1])
    0.0
    """
    return _average_or_each(observed(s, y, "l1_leakage"), L1(), per_output)


@overload
def chi2_leakage(s: ColumnsLike, y: ColumnsLike, *, per_output: Literal[False] = ...) -> float: ...
@overload
def chi2_leakage(s: ColumnsLike, y: ColumnsLike, *, per_output: Literal[True]) -> pd.Series: ...
def chi2_leakage(s: ColumnsLike, y: ColumnsLike, *, per_output: bool = False) -> float | pd.Series:
    """Return the square root of the chi-squared divergence of P(S|y) from P(S), averaged over y.

    Parameters
    ----------
    s, y : array-like or frame of n_samples rows
        As in `leakage`.
    per_output : bool, default=False
        Whether to return a Series with that of each value of y.

    Examples
    --------
    >>> from skprivacy.metrics import chi2_leakage
    >>> chi2_leakage(["a", "a", "b", "b"], [0, 0, 1, 1])
    1.0
    """
    return _average_or_each(observed(s, y, "chi2_leakage"), Chi2(), per_output)


@overload
def alpha_lift(
    s: ColumnsLike, y: ColumnsLike, *, alpha: float = ..., per_output: Literal[False] = ...
) -> float: ...
@overload
def alpha_lift(
    s: ColumnsLike, y: ColumnsLike, *, alpha: float = ..., per_output: Literal[True]
) -> pd.Series: ...
def alpha_lift(
    s: ColumnsLike, y: ColumnsLike, *, alpha: float = 2.0, per_output: bool = False
) -> float | pd.Series:
    """Return the logarithm of the alpha-norm of the lift, averaged over y.

    Parameters
    ----------
    s, y : array-like or frame of n_samples rows
        As in `leakage`.
    alpha : float, default=2
        As in `AlphaLift`.
    per_output : bool, default=False
        Whether to return a Series with that of each value of y.

    Examples
    --------
    >>> from skprivacy.metrics import alpha_lift
    >>> round(alpha_lift(["a", "a", "b", "b"], [0, 0, 1, 1]), 4)
    0.3466
    """
    return _average_or_each(observed(s, y, "alpha_lift"), AlphaLift(alpha), per_output)


@overload
def total_variation(
    s: ColumnsLike, y: ColumnsLike, *, per_output: Literal[False] = ...
) -> float: ...
@overload
def total_variation(s: ColumnsLike, y: ColumnsLike, *, per_output: Literal[True]) -> pd.Series: ...
def total_variation(
    s: ColumnsLike, y: ColumnsLike, *, per_output: bool = False
) -> float | pd.Series:
    """Return the total variation between P(S|y) and P(S), on average over y: half of l1.

    No attacker who sees y can gain more than this over guessing S blindly.

    Parameters
    ----------
    s, y : array-like or frame of n_samples rows
        As in `leakage`.
    per_output : bool, default=False
        Whether to return a Series with that of each value of y.

    Examples
    --------
    >>> from skprivacy.metrics import total_variation
    >>> total_variation(["a", "a", "b", "b"], [0, 0, 1, 1])
    0.5
    """
    return _average_or_each(observed(s, y, "total_variation"), L1(), per_output) / 2


@overload
def maximal_leakage(
    s: ColumnsLike, y: ColumnsLike, *, per_output: Literal[False] = ...
) -> float: ...
@overload
def maximal_leakage(s: ColumnsLike, y: ColumnsLike, *, per_output: Literal[True]) -> pd.Series: ...
def maximal_leakage(
    s: ColumnsLike, y: ColumnsLike, *, per_output: bool = False
) -> float | pd.Series:
    """Return maximal leakage in nats: the logarithm of the average over y of the largest lift.

    Parameters
    ----------
    s, y : array-like or frame of n_samples rows
        As in `leakage`.
    per_output : bool, default=False
        Whether to return a Series with the pointwise maximal leakage of each value of y.

    Examples
    --------
    >>> from skprivacy.metrics import maximal_leakage
    >>> round(maximal_leakage(["a", "a", "b", "b"], [0, 0, 1, 1]), 4)
    0.6931
    """
    return _average_or_each(observed(s, y, "maximal_leakage"), MaxLift(), per_output)


def leakage_report(
    s: ColumnsLike,
    y: ColumnsLike,
    *,
    confidence: float = 0.95,
    n_permutations: int = 200,
    random_state: Seed = 0,
) -> pd.DataFrame:
    """Return what y reveals about S by every measure, and what chance alone would show.

    Parameters
    ----------
    s, y : array-like or frame of n_samples rows
        As in `leakage`.
    confidence : float, default=0.95
        The confidence of the interval for the mutual information, and of what chance shows.
    n_permutations : int, default=200
        How often S is permuted for the baseline.
    random_state : int, Generator or None, default=0
        The seed for drawing the permutations.

    Returns
    -------
    DataFrame
        One row per metric: the `average` over the values of y, and the `worst_output`. For each,
        also what permuted S shows, about which y reveals nothing: the mean as `*_baseline`, and
        as `*_by_chance` what a share `confidence` of the permutations does not exceed. For the
        mutual information, also the estimate with its bias corrected, `corrected`, and its
        interval, `low` and `high`. (Its worst output is a divergence.)

    Examples
    --------
    >>> import numpy as np
    >>> from skprivacy.metrics import leakage_report
    >>> rng = np.random.default_rng(0)
    >>> s, y = rng.integers(2, size=300), rng.integers(5, size=300)  # independent
    >>> leakage_report(s, y)[["average", "average_baseline"]].round(3)
                        average  average_baseline
    mutual information    0.002             0.007
    total variation       0.030             0.047
    l1                    0.061             0.093
    chi2                  0.069             0.109
    alpha-lift            0.002             0.007
    maximal leakage       0.059             0.089
    """
    owner = "leakage_report"
    check_real(owner, "confidence", confidence, low=0, high=1, low_open=True, high_open=True)
    check_integer(owner, "n_permutations", n_permutations, low=1)
    sample = observed(s, y, owner)
    tables = chance_tables(sample.counts, n_permutations, random_state)
    by_chance = np.array([_every_figure(CrossTable(table, sample.y_values)) for table in tables])
    columns = list(_SCOPES.values())
    report = pd.DataFrame(_every_figure(sample), list(_METRICS), columns)
    for i, column in enumerate(columns):
        report[f"{column}_baseline"] = by_chance[:, :, i].mean(axis=0)
        report[f"{column}_by_chance"] = np.quantile(by_chance[:, :, i], confidence, axis=0)
    report = report[sorted(report.columns)]
    corrected, _ = jackknife(sample.counts)
    low, high = interval(sample.counts, confidence, random_state)
    report.loc["mutual information", ["corrected", "low", "high"]] = corrected, low, high
    return report


def _every_figure(sample: CrossTable) -> FloatArray:
    """Return an array with a row per metric: on average and for the worst value of y."""
    figures = []
    for measure, factor in _METRICS.values():
        values = _values(sample, measure)
        pair = [leakage_in(scope, measure, values, sample.p_y) for scope in _SCOPES]
        figures.append(factor * np.array(pair))
    return np.array(figures)


def _values(sample: CrossTable, measure: Measure) -> FloatArray:
    """Return g of each value of y, without the values of S that never occur."""
    return output_values(measure, sample.posteriors, sample.prior)


def _in_scope(sample: CrossTable, measure: Measure, scope: Scope) -> float:
    return leakage_in(scope, measure, _values(sample, measure), sample.p_y)


def _average_or_each(sample: CrossTable, measure: Measure, per_output: bool) -> float | pd.Series:
    if per_output:
        return pd.Series(measure.inverse(_values(sample, measure)), sample.y_values)
    return _in_scope(sample, measure, "average")
