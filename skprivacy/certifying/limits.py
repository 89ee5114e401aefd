"""Confidence limits that hold for any number of rows: of means, of shares, and of what S is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from .._typing import FloatArray


@dataclass(frozen=True, eq=False)
class Box:
    """Limits of several numbers at once, along the last axis."""

    low: FloatArray
    high: FloatArray

    def within(self, other: Box) -> Box:
        """Return the limits that both say."""
        return Box(np.maximum(self.low, other.low), np.minimum(self.high, other.high))

    def summing_to(self, total: float) -> Box:
        """Return the limits that follow where the sum of the numbers is known too."""
        low = total - (self.high.sum(axis=-1, keepdims=True) - self.high)
        high = total - (self.low.sum(axis=-1, keepdims=True) - self.low)
        return self.within(Box(low, high))

    def times(self, other: Box) -> Box:
        """Return the limits of products."""
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Box(np.minimum.reduce(ends), np.maximum.reduce(ends))


@dataclass(frozen=True, eq=False)
class Centre:
    """What P(S) and P(Y) are thought to be, before any of the rows is seen.

    The closer they are, the closer are the limits; the limits hold whatever they are.
    """

    prior: FloatArray
    p_y: FloatArray


@dataclass(frozen=True, eq=False)
class PopulationLimits:
    """Limits of P(S), of P(Y), and of P(S|y) - P(S) with one row per output."""

    prior: Box
    p_y: Box
    shifts: Box


def shares(counts: FloatArray, failure: float) -> Box:
    """Return the limits of Clopper and Pearson; each end fails with probability `failure`."""
    others = counts.sum() - counts
    low = beta.ppf(failure, np.maximum(counts, 1), others + 1)
    high = beta.ppf(1 - failure, counts + 1, np.maximum(others, 1))
    return Box(np.where(counts > 0, low, 0.0), np.where(others > 0, high, 1.0))


def means(mean: FloatArray, square: FloatArray, span: FloatArray, n: int, failure: float) -> Box:
    """Return limits of expectations; each end fails with probability `failure`.

    The empirical Bernstein inequality (Maurer and Pontil 2009, Theorem 4): for n independent
    values within an interval of length `span`, with the unbiased variance V and
    ``r = log(2 / failure)``, the expectation is below the mean plus
    ``sqrt(2 V r / n) + 7 span r / (3 (n - 1))``. square : the mean of the squared values.
    """
    rate = np.log(2 / failure)
    variance = np.maximum(square - mean**2, 0.0) * n / (n - 1)
    radius = np.sqrt(2 * variance * rate / n) + 7 * span * rate / (3 * (n - 1))
    return Box(mean - radius, mean + radius)


def population_limits(
    counts: FloatArray, channel: FloatArray, centre: Centre, failure: float
) -> PopulationLimits:
    """Return limits that all hold at once, but for a probability of `failure`.

    counts : of pairs (s, x), of independent rows that neither channel nor centre depends on.

    With ``c = P(y|X)``, ``Z = (c - c0) (1{S=s} - p0)`` has the expectation
    ``P(y) (P(s|y) - P(s)) + (P(y) - c0) (P(s) - p0)`` for any constants c0 and p0. Limits of it,
    of P(y) and of P(s) are those of ``P(s|y) - P(s)`` too. The failure is split evenly among all
    ends of all limits (Bonferroni). Two groups mirror each other: one of them is enough.
    """
    n, n_s, n_y = int(counts.sum()), len(counts), channel.shape[1]
    n_limited = 1 if n_s == 2 else n_s
    each = failure / (2 * (n_limited * n_y + n_y + n_limited))
    p_x, least, most = counts.sum(axis=0) / n, channel.min(axis=0), channel.max(axis=0)
    above = means(p_x @ (channel - least), p_x @ (channel - least) ** 2, most - least, n, each)
    p_y = Box(least + above.low, least + above.high).within(Box(least, most))
    prior = shares(counts.sum(axis=1), each).summing_to(1.0)
    covariances = _moments(counts / n, channel, centre, n, each)
    known_y, known_s = centre.p_y[:, None], centre.prior
    beside = Box(p_y.low[:, None] - known_y, p_y.high[:, None] - known_y).times(
        Box(prior.low - known_s, prior.high - known_s)
    )
    parts = Box(covariances.low - beside.high, covariances.high - beside.low)
    if n_limited == 1:
        low, high = parts.low[:, :1], parts.high[:, :1]
        parts = Box(np.hstack([low, -high]), np.hstack([high, -low]))
    anything = Box(-prior.high, 1 - prior.low)
    shifts = _divided(parts, p_y).within(anything).summing_to(0.0)
    return PopulationLimits(prior, p_y, shifts)


def _moments(p_sx: FloatArray, channel: FloatArray, centre: Centre, n: int, failure: float) -> Box:
    """Return limits of the expectation of Z, for every output and every group."""
    p0, shifted, p_x = centre.prior[:, None], channel - centre.p_y, p_sx.sum(axis=0)
    mean = (p_sx - p0 * p_x) @ shifted
    square = (p_sx * (1 - 2 * p0) + p0**2 * p_x) @ shifted**2
    values = Box(shifted.min(axis=0)[:, None], shifted.max(axis=0)[:, None])
    range_ = values.times(Box(-centre.prior, 1 - centre.prior))
    return means(mean.T, square.T, range_.high - range_.low, n, failure)


def _divided(parts: Box, p_y: Box) -> Box:
    """Return limits of parts / P(y); none where P(y) may be zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = [part / p[:, None] for part in (parts.low, parts.high) for p in (p_y.low, p_y.high)]
    is_known = (p_y.low > 0)[:, None]
    low, high = np.minimum(*ends[:2]), np.maximum(*ends[2:])
    return Box(np.where(is_known, low, -np.inf), np.where(is_known, high, np.inf))
