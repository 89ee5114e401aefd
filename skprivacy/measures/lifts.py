"""Measures of the lift: norms, bounds, and how much the lifts of two groups can differ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from .._numerics import BISECTIONS, TINY
from .._typing import FloatArray, IntArray, Scope
from .._validation import check_real
from .measure import (
    SMALLEST_LIFT,
    ShippedMeasure,
    Support,
    budget_with_tolerance,
    covariance,
    exp,
    expm1,
    lift,
    smooth_largest,
)


class _LiftScale(ShippedMeasure):
    """Measures on the scale of the lift itself: threshold ``e^eps``."""

    def threshold(self, epsilon: float) -> float:
        return exp(epsilon)

    def inverse(self, value: npt.ArrayLike) -> FloatArray:
        return np.log(value)


class _BoundedLifts(_LiftScale):
    """Measures with a budget that bounds every lift."""

    is_lift_box: ClassVar[bool] = True

    def information(self, epsilon: float) -> float:
        """Maximal leakage is at least the mutual information."""
        return epsilon

    def advantage(self, epsilon: float, prior: npt.ArrayLike) -> float:
        """With lifts up to M, max T <= M max ps, and total variation is at most 1 - 1/M."""
        return min(-math.expm1(-epsilon), expm1(epsilon) * float(np.max(prior)))


@dataclass(frozen=True)
class MaxLift(_BoundedLifts):
    """The largest lift. On average over outputs its logarithm is maximal leakage.

    Examples
    --------
    >>> from skprivacy.measures import MaxLift
    >>> float(MaxLift().value([0.75, 0.25], [0.5, 0.5]))
    1.5
    """

    name: ClassVar[str] = "max_lift"
    is_linear: ClassVar[bool] = True

    def value(self, posterior: npt.ArrayLike, prior: npt.ArrayLike) -> FloatArray:
        return lift(posterior, prior).max(axis=-1)

    def subgradient(self, posterior: npt.ArrayLike, prior: npt.ArrayLike) -> FloatArray:
        return _lift_gradient(lift(posterior, prior).argmax(axis=-1), prior)

    def implied_deviations(self, epsilon: float) -> tuple[float, float]:
        return -1.0, expm1(epsilon)

    def support(
        self, normals: FloatArray, prior: FloatArray, epsilon: float, smoothing: FloatArray
    ) -> Support:
        """All lifts are the largest, except that of the group with the smallest normal."""
        excess = expm1(epsilon)
        least, smooth, share, bend = smooth_largest(-excess * normals, smoothing)
        mean = excess * (normals @ prior)
        return mean + least, mean + smooth, excess * (prior - share), excess**2 * bend

    def facets(self, prior: FloatArray, epsilon: float) -> tuple[FloatArray, FloatArray]:
        return np.eye(len(prior)), self.threshold(epsilon) * np.asarray(prior)


@dataclass(frozen=True)
class AlphaLift(_LiftScale):
    """The alpha-norm of the lift, ``(sum ps l^alpha)^(1/alpha)``.

    On average it is Sibson information of order alpha, times (alpha - 1) / alpha.

    Parameters
    ----------
    alpha : float, default=2
        Larger than 1 and finite; `MaxLift` is its limit.

    Examples
    --------
    >>> from skprivacy.measures import AlphaLift
    >>> round(float(AlphaLift(alpha=2).value([1.0, 0.0], [0.5, 0.5])), 6)
    1.414214
    """

    alpha: float = 2.0
    name: ClassVar[str] = "alpha_lift"

    def __post_init__(self) -> None:
        check_real("AlphaLift", "alpha", self.alpha, low=1, low_open=True, high_open=True)

    def value(self, posterior: npt.ArrayLike, prior: npt.ArrayLike) -> FloatArray:
        lifts = lift(posterior, prior)
        largest = lifts.max(axis=-1, keepdims=True)  # factored out against overflow
        with np.errstate(invalid="ignore"):  # inf / inf, where an impossible symbol has mass
            mean = ((lifts / largest) ** self.alpha * prior).sum(axis=-1)
        largest = largest[..., 0]
        return np.where(np.isinf(largest), np.inf, largest * mean ** (1 / self.alpha))

    def subgradient(self, posterior: npt.ArrayLike, prior: npt.ArrayLike) -> FloatArray:
        norm = self.value(posterior, prior)[..., None]
        return (lift(posterior, prior) / norm) ** (self.alpha - 1)

    def information(self, epsilon: float) -> float:
        """Sibson information does not decrease with alpha, and for alpha = 1 it is I(S;Y)."""
        return epsilon * self.alpha / (self.alpha - 1)

    def advantage(self, epsilon: float, prior: npt.ArrayLike) -> float:
        """From alpha = 2 on the norm bounds chi2; below, Sibson information bounds I(S;Y)."""
        if self.alpha >= 2:
            return min(1.0, math.sqrt(expm1(2 * epsilon)) / 2)
        return min(1.0, math.sqrt(self.information(epsilon) / 2))

    def curvature(self, largest_lift: float) -> float:
        """The second derivatives are at most (alpha - 1) (l / g)^(alpha - 1) / T, and g >= 1."""
        return (self.alpha - 1) * largest_lift ** (self.alpha - 1)

    def implied_deviations(self, epsilon: float) -> tuple[float, float]:
        """Lifts up to M give an alpha-norm of at most M^((alpha - 1) / alpha), tight."""
        return -1.0, expm1(epsilon * self.alpha / (self.alpha - 1))


@dataclass(frozen=True)
class Lip(_BoundedLifts):
    """Local information privacy: ``e^-lower <= l <= e^epsilon`` for every symbol of S.

    By default ``g = max(max l, 1 / min l)``, which is convex and does not depend on epsilon.
    With a `lower`, g is the largest lift where the lower bound holds and infinite elsewhere.
    Averages over outputs are not meaningful: scope "per_output" only.

    Parameters
    ----------
    lower : float, default=None
        Bound on ``-log l``; None: the same as epsilon.

    Examples
    --------
    >>> from skprivacy.measures import Lip
    >>> float(Lip().value([0.8, 0.2], [0.5, 0.5]))
    2.5
    >>> float(Lip(lower=1.0).value([0.8, 0.2], [0.5, 0.5]))
    1.6
    """

    lower: float | None = None
    name: ClassVar[str] = "lip"
    scopes: ClassVar[tuple[Scope, ...]] = ("per_output",)

    def __post_init__(self) -> None:
        if self.lower is not None:
            check_real("Lip", "lower", self.lower, low=0)

    @property
    def jumps(self) -> bool:
        return self.lower is not None

    def budget(self, epsilon: float, share: float = 1.0) -> float:
        """Finite with a `lower`: not even an infinite epsilon allows smaller lifts."""
        most = np.inf if self.lower is None else np.finfo(float).max
        return min(budget_with_tolerance(epsilon, share), most)

    def value(self, posterior: npt.ArrayLike, prior: npt.ArrayLike) -> FloatArray:
        lifts = lift(posterior, prior)
        largest, smallest = lifts.max(axis=-1), lifts.min(axis=-1)
        if self.lower is not None:
            return np.where(smallest >= _smallest_lift(self.lower), largest, np.inf)
        with np.errstate(divide="ignore", over="ignore"):
            return np.maximum(largest, 1 / smallest)

    def subgradient(self, posterior: npt.ArrayLike, prior: npt.ArrayLike) -> FloatArray:
        """Gradient of the bound that is exceeded most; lifts of zero are clamped."""
        lifts = lift(posterior, prior)
        smallest = np.maximum(lifts.min(axis=-1), SMALLEST_LIFT)
        if self.lower is None:
            low = 1 / smallest > lifts.max(axis=-1)
        else:
            low = smallest < _smallest_lift(self.lower)
        row = np.where(low, lifts.argmin(axis=-1), lifts.argmax(axis=-1))
        slope = np.where(low, -1 / smallest**2, 1.0)
        return slope[..., None] * _lift_gradient(row, prior)

    def implied_deviations(self, epsilon: float) -> tuple[float, float]:
        return expm1(-(epsilon if self.lower is None else self.lower)), expm1(epsilon)

    def support(
        self, normals: FloatArray, prior: FloatArray, epsilon: float, smoothing: FloatArray
    ) -> Support:
        """Groups with a normal above some level have the largest lift, others the smallest.

        The level is where lifts are 1 on average: where the result is smallest.
        """
        low, high = self.implied_deviations(epsilon)
        high = min(high, float(1 / prior.min()) - 1)  # no lift is larger, even without a budget
        above = normals[:, None, :] - normals[:, :, None]
        value = (np.maximum(low * above, high * above) @ prior).min(axis=1)
        width = (smoothing / (high - low))[:, None]
        bottom = normals.min(axis=1, keepdims=True) - 40 * width
        top = normals.max(axis=1, keepdims=True) + 40 * width
        for _ in range(BISECTIONS):
            level = (bottom + top) / 2
            is_low = (expit((normals - level) / width) @ prior)[:, None] * (high - low) > -low
            bottom, top = np.where(is_low, level, bottom), np.where(is_low, top, level)
        scaled = (normals - level) / width
        smooth = smoothing * (np.logaddexp(0, scaled) @ prior) + low * ((normals - level) @ prior)
        share = expit(scaled)
        bend = prior * share * (1 - share) * (high - low) / width
        total = np.maximum(bend.sum(axis=1), TINY)
        curvature = total[:, None, None] * covariance(bend / total[:, None])
        return value, smooth, prior * (low + (high - low) * share), curvature

    def facets(self, prior: FloatArray, epsilon: float) -> tuple[FloatArray, FloatArray]:
        low, high = self.implied_deviations(epsilon)
        eye, prior = np.eye(len(prior)), np.asarray(prior)
        return np.vstack([eye, -eye]), np.concatenate([(1 + high) * prior, -(1 + low) * prior])


def _smallest_lift(lower: float) -> float:
    """Return the smallest lift that `lower` allows, with the tolerance of budgets."""
    return exp(-budget_with_tolerance(lower))


def _lift_gradient(symbol: IntArray, prior: npt.ArrayLike) -> FloatArray:
    """Return the gradient of the lift of each `symbol`."""
    gradient = np.eye(np.shape(prior)[-1])[symbol]
    return np.divide(gradient, prior, out=gradient, where=gradient > 0)


@dataclass(frozen=True)
class Parity(ShippedMeasure):
    """Half the difference between the largest and the smallest lift.

    ``P(y|s) = P(y) lift``, so the average over outputs bounds the total variation between the
    releases of any two groups; if there are only two, it is equal. Whatever classifier is trained
    on the release, the shares of its predictions differ by no more between two groups (demographic
    parity).

    Examples
    --------
    >>> from skprivacy.measures import Parity
    >>> round(float(Parity().value([0.6, 0.4], [0.5, 0.5])), 6)  # lifts of 1.2 and 0.8
    0.2
    """

    name: ClassVar[str] = "parity"
    is_linear: ClassVar[bool] = True

    def value(self, posterior: npt.ArrayLike, prior: npt.ArrayLike) -> FloatArray:
        # Groups that do not occur have a lift of 1, which lies between the other lifts.
        return np.ptp(lift(posterior, prior), axis=-1) / 2

    def subgradient(self, posterior: npt.ArrayLike, prior: npt.ArrayLike) -> FloatArray:
        prior = np.asarray(prior, float)
        lifts = lift(posterior, prior)
        slope = 0.5 / np.where(prior > 0, prior, np.inf)
        places = np.arange(lifts.shape[-1])
        highest = places == lifts.argmax(axis=-1)[..., None]
        lowest = places == lifts.argmin(axis=-1)[..., None]
        return slope * (highest.astype(float) - lowest)

    def advantage(self, epsilon: float, prior: npt.ArrayLike) -> float:
        """Lifts within 2 eps of each other, 1 on average, deviate by at most eps on average.

        So the posterior is within a total variation of eps / 2 of the prior. And a group s that
        overtakes the most frequent one gains ``p_s (l_s - l) <= 2 eps p_s`` on it.
        """
        second = float(np.sort(np.append(prior, 0.0))[-2])
        return min(1.0, epsilon / 2, 2 * epsilon * second)

    def implied_deviations(self, epsilon: float) -> tuple[float, float]:
        return -min(epsilon, 1.0), max(epsilon, 2 * epsilon - 1)

    def support(
        self, normals: FloatArray, prior: FloatArray, epsilon: float, smoothing: FloatArray
    ) -> Support:
        """Groups with a normal above the mean have the largest lift, all others the smallest."""
        above = 2 * epsilon * (normals - (normals @ prior)[:, None])
        width = smoothing[:, None]
        share = prior * expit(above / width)
        bend = (share - share**2 / prior) / width
        slope = share - share.sum(axis=1, keepdims=True) * prior
        crossed = bend[:, :, None] * prior
        curvature = bend.sum(axis=1)[:, None, None] * np.outer(prior, prior)
        curvature = curvature - crossed - np.swapaxes(crossed, 1, 2)
        np.einsum("nii->ni", curvature)[...] += bend
        smooth = width * np.logaddexp(0, above / width)
        scale = 2 * epsilon
        return np.maximum(above, 0) @ prior, smooth @ prior, scale * slope, scale**2 * curvature

    def facets(self, prior: FloatArray, epsilon: float) -> tuple[FloatArray, FloatArray]:
        """``T_s / p_s - T_s' / p_s' <= 2 eps`` for every two groups."""
        pairs = np.array(list(permutations(range(len(prior)), 2)), dtype=int).reshape(-1, 2)
        lifts = np.diag(1 / np.asarray(prior))
        return lifts[pairs[:, 0]] - lifts[pairs[:, 1]], np.full(len(pairs), 2 * epsilon)
