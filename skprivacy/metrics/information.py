"""Mutual information of two columns of samples, with confidence intervals."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import xlogy
from scipy.stats import chi2, ncx2, norm, random_table

from .._typing import ColumnsLike, CountArray, FloatArray, Seed
from .._validation import check_real
from ..encoding import DEFAULT_BINS, learn_column
from ..joint import count_pairs
from ..tables.frames import coded, observed
from ..utilities import entropy

_DRAWS = 200  # of tables

# With a variance below this share of the squared mean, there is only one possible table.
_CONSTANT = 1e-6

_ROOT_RTOL = 1e-9  # of a noncentrality


def mutual_information(s: ColumnsLike, y: ColumnsLike, *, corrected: bool = True) -> float:
    """Return I(S;Y) in nats, estimated from samples.

    The plain estimate is too large: if S with k values and Y with m values are nearly independent,
    by about (k - 1)(m - 1) / 2n. The jackknife corrects this to first order; with fewer rows than
    pairs of values, much of the bias remains.

    Parameters
    ----------
    s, y : array-like or frame of n_samples rows
        Two columns; the columns of a frame are taken jointly.
    corrected : bool, default=True
        Whether to correct the bias. A corrected estimate may be slightly negative.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from skprivacy.metrics import mutual_information
    >>> rng = np.random.default_rng(0)
    >>> s, y = rng.integers(4, size=500), rng.integers(7, size=500)  # independent
    >>> round(mutual_information(s, y, corrected=False), 3)
    0.012
    >>> round(mutual_information(s, y), 3)
    -0.007
    """
    counts = observed(s, y, "mutual_information").counts
    return float(jackknife(counts)[0] if corrected else plain(counts))


def information_by_column(
    columns: pd.DataFrame, sensitive: ColumnsLike, *, n_bins: int = DEFAULT_BINS
) -> pd.Series:
    """Return the share of the entropy of S that each column alone gives away.

    Parameters
    ----------
    columns : DataFrame of n_samples rows
        The columns. Numbers with more distinct values than `n_bins` are cut at quantiles, as in a
        release.
    sensitive : array-like or frame of n_samples rows
        S; the columns of a frame are taken jointly.
    n_bins : int, default=10
        The largest number of distinct numbers that are not cut.

    Returns
    -------
    Series
        I(S;X) / H(S) by column, with the bias corrected, from 0 (nothing) to 1 (the column
        determines S). NaN for a column whose values cannot be counted, or if S has one value.

    Examples
    --------
    >>> from skprivacy.datasets import load_diabetes_patients
    >>> from skprivacy.metrics import information_by_column
    >>> patients = load_diabetes_patients()
    >>> information_by_column(patients.drop(columns="sex"), patients["sex"]).round(3).to_dict()
    {'blood_pressure': 0.053, 'bmi': 0.036}
    """
    s_codes, _ = coded(sensitive, "sensitive")
    whole = float(entropy(np.bincount(s_codes) / len(s_codes)))

    def share(name: Hashable) -> float:
        try:
            _, codes = learn_column(columns[name], None, name, n_bins=n_bins)
        except (TypeError, ValueError):  # values that cannot be compared, or infinity
            return np.nan
        found = jackknife(count_pairs(s_codes, codes, None))[0]
        return float(np.clip(found / whole, 0, 1))

    names = list(columns)
    shares = [share(name) if whole > 0 else np.nan for name in names]
    return pd.Series(shares, index=pd.Index(names, dtype=object), dtype=float)


def mutual_information_interval(
    s: ColumnsLike, y: ColumnsLike, *, confidence: float = 0.95, random_state: Seed = 0
) -> tuple[float, float]:
    """Return a confidence interval for I(S;Y) in nats.

    It is designed to cover the truth at least as often as it claims, even near zero. It spans
    three intervals: from the likelihood ratio, 2n times the plain estimate, which near
    independence is noncentral chi-squared with noncentrality 2n I(S;Y), with degrees of freedom
    and scale taken from random tables with the same margins; from the jackknife, for columns that
    depend strongly on each other; and from the posterior with half a row added to every cell, for
    rare values. If a column shows only one value, the interval allows for another that n rows did
    not show.

    Parameters
    ----------
    s, y : array-like or frame of n_samples rows
        As in `mutual_information`.
    confidence : float, default=0.95
        The share of intervals that should contain the true value.
    random_state : int, Generator or None, default=0
        The seed for drawing the tables.

    Returns
    -------
    low, high : float

    Examples
    --------
    >>> import numpy as np
    >>> from skprivacy.metrics import mutual_information_interval
    >>> rng = np.random.default_rng(0)
    >>> s, y = rng.integers(4, size=500), rng.integers(7, size=500)  # independent
    >>> low, high = mutual_information_interval(s, y)
    >>> low, round(high, 2)
    (0.0, 0.01)
    """
    owner = "mutual_information_interval"
    check_real(owner, "confidence", confidence, low=0, high=1, low_open=True, high_open=True)
    return interval(observed(s, y, owner).counts, confidence, random_state)


def plain(counts: CountArray) -> FloatArray:
    """Return the plug-in estimates of mutual information for tables of counts."""
    n = counts.sum(axis=(-1, -2))
    margins = (xlogy(m, m).sum(axis=-1) for m in (counts.sum(axis=-1), counts.sum(axis=-2)))
    information = xlogy(counts, counts).sum(axis=(-1, -2)) - sum(margins) + xlogy(n, n)
    return np.maximum(information, 0.0) / n


def jackknife(counts: CountArray) -> tuple[float, float]:
    """Return the leave-one-out estimate and its variance, with one term per cell of the table."""
    n = counts.sum()
    s, y = np.nonzero(counts)
    cell, of_s, of_y = counts[s, y], counts.sum(axis=1)[s], counts.sum(axis=0)[y]
    less = lambda count: xlogy(count, count) - xlogy(count - 1, count - 1)  # noqa: E731
    everything = float(plain(counts))
    if n == 1:
        return everything, 0.0
    total = n * everything - xlogy(n, n)
    without = (total - less(cell) + less(of_s) + less(of_y) + xlogy(n - 1, n - 1)) / (n - 1)
    mean = (cell * without).sum() / n
    variance = (n - 1) / n * (cell * (without - mean) ** 2).sum()
    return n * everything - (n - 1) * mean, variance


def chance_tables(counts: CountArray, n_tables: int, random_state: Seed) -> CountArray:
    """Return random tables with the same margins, as permutations of S give them."""
    margins = counts.sum(axis=1).astype(int), counts.sum(axis=0).astype(int)
    return random_table(*margins, seed=random_state).rvs(n_tables)


def interval(counts: CountArray, confidence: float, random_state: Seed) -> tuple[float, float]:
    """Return a confidence interval for the mutual information of a table of counts."""
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    rng, tail = np.random.default_rng(random_state), (1 - confidence) / 2
    if min(counts.shape) == 1:
        # The largest entropy of a column that shows only one value in n rows:
        share = -np.expm1(np.log(tail) / counts.sum())  # (1 - share)^n = tail
        return 0.0, float(entropy(np.array([share, 1 - share])) if share < 0.5 else np.log(2))
    by_chance = plain(chance_tables(counts, _DRAWS, rng))
    estimate, variance = jackknife(counts)
    reach = norm.ppf(1 - tail) * np.sqrt(variance)
    intervals = [
        _by_ratio(counts, tail, by_chance),
        [estimate - reach, estimate + reach],
        _by_posterior(counts, tail, by_chance.mean(), rng),
    ]
    lows, highs = zip(*intervals, strict=True)
    return float(max(0.0, min(lows))), float(max(highs))


def _by_ratio(counts: CountArray, tail: float, by_chance: FloatArray) -> list[float]:
    """Invert the likelihood ratio: near independence it is noncentral chi-squared."""
    n = counts.sum()
    mean, variance = 2 * n * by_chance.mean(), 4 * n**2 * by_chance.var()
    scale, freedom = 1.0, float(np.prod(np.subtract(counts.shape, 1)))
    if variance > _CONSTANT * mean**2:
        scale, freedom = variance / (2 * mean), 2 * mean**2 / variance
    ratio = 2 * n * plain(counts) / scale
    shares = 1 - tail, tail
    return [scale * _noncentrality(ratio, freedom, share) / (2 * n) for share in shares]


def _by_posterior(
    counts: CountArray, tail: float, bias: float, rng: np.random.Generator
) -> FloatArray:
    """Return quantiles over the posterior with half a row added to every cell: for small groups.

    The plain estimate is too large by the bias, and draws around it by the same amount again.
    """
    tables = rng.gamma(counts + 0.5, size=(_DRAWS, *counts.shape))
    return np.quantile(plain(tables), [tail, 1 - tail]) - 2 * bias


def _noncentrality(ratio: float, freedom: float, share: float) -> float:
    """Return the noncentrality for which `share` of the distribution is below `ratio`."""
    if chi2.cdf(ratio, freedom) <= share:
        return 0.0
    high = max(1.0, ratio)
    while ncx2.cdf(ratio, freedom, high) > share:
        high *= 2
    return brentq(lambda c: ncx2.cdf(ratio, freedom, c) - share, 0.0, high, rtol=_ROOT_RTOL)
