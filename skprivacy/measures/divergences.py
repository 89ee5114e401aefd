"""Divergences of the posterior from the prior."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import kl_div

from .._typing import FloatArray
from .measure import (
    SMALLEST_LIFT,
    Conjugate,
    ShippedMeasure,
    Support,
    covariance,
    expm1,
    lift,
    smooth_largest,
)


@dataclass(frozen=True)
class KL(ShippedMeasure):
    """The paper's L(y), the Kullback-Leibler divergence of the posterior from the prior.

    Its average over outputs is ``I(S;Y)``: scope "average" is the privacy funnel itself.

    Examples
    --------
    >>> from skprivacy.measures import KL
    >>> round(float(KL().value([1.0, 0.0], [0.5, 0.5])), 6)
    0.693147
    """

    name: ClassVar[str] = "kl"

    def value(self, posterior: npt.ArrayLike, prior: npt.ArrayLike) -> FloatArray:
        """Return ``sum ps (l log l - l + 1)``, nonnegative even after rounding."""
        return kl_div(posterior, prior).sum(axis=-1)

    def subgradient(self, posterior: npt.ArrayLike, prior: npt.ArrayLike) -> FloatArray:
        return np.log(np.maximum(lift(posterior, prior), SMALLEST_LIFT))

    def information(self, epsilon: float) -> float:
        return epsilon

    def advantage(self, epsilon: float, prior: npt.ArrayLike) -> float:
        """Follows from Pinsker's inequality, as the square root is concave."""
        return min(1.0, math.sqrt(epsilon / 2))

    def curvature(self, largest_lift: float) -> float:
        return 1.0

    def conjugate(self, normals: FloatArray, prior: FloatArray) -> Conjugate:
        """The logarithm of the mean of ``exp(normal)``."""
        largest = normals.max(axis=1, keepdims=True)
        tilted = prior * np.exp(normals - largest)
        total = tilted.sum(axis=1, keepdims=True)
        tilted /= total
        return (largest + np.log(total))[:, 0], tilted, covariance(tilted)

    def implied_deviations(self, epsilon: float) -> tuple[float, float]:
        return -1.0, expm1(epsilon)


@dataclass(frozen=True)
class L1(ShippedMeasure):
    """The l1 distance of the posterior from the prior: twice the total variation.

    Examples
    --------
    >>> from skprivacy.measures import L1
    >>> float(L1().value([1.0, 0.0], [0.5, 0.5]))
    1.0
    """

    name: ClassVar[str] = "l1"
    is_linear: ClassVar[bool] = True

    def value(self, posterior: npt.ArrayLike, prior: npt.ArrayLike) -> FloatArray:
        return np.abs(np.asarray(posterior) - prior).sum(axis=-1)

    def subgradient(self, posterior: npt.ArrayLike, prior: npt.ArrayLike) -> FloatArray:
        return np.sign(np.asarray(posterior) - prior)

    def advantage(self, epsilon: float, prior: npt.ArrayLike) -> float:
        """Half of l1 is the total variation, which bounds the advantage."""
        return min(1.0, epsilon / 2)

    def implied_deviations(self, epsilon: float) -> tuple[float, float]:
        """Lifts up to M give l1 <= 2 (1 - 1/M), tight; not the paper's M - 1 (correction 1)."""
        return -1.0, (epsilon / (2 - epsilon) if epsilon < 2 else math.inf)

    def support(
        self, normals: FloatArray, prior: FloatArray, epsilon: float, smoothing: FloatArray
    ) -> Support:
        """Half of epsilon moves from the smallest normal to the largest."""
        moved = normals * epsilon / 2
        most, smooth_most, up, bend = smooth_largest(moved, smoothing)
        least, smooth_least, down, other = smooth_largest(-moved, smoothing)
        slope, curvature = (up - down) * epsilon / 2, (bend + other) * (epsilon / 2) ** 2
        return most + least, smooth_most + smooth_least, slope, curvature

    def facets(self, prior: FloatArray, epsilon: float) -> tuple[FloatArray, FloatArray]:
        """Sum over A of (T - ps) <= eps / 2 for every proper subset A of the symbols of S."""
        n_s = len(prior)
        if n_s > 16:
            raise ValueError(f"l1 has 2^{n_s} - 2 facets here: use subgradients instead.")
        normals = np.array(list(product((0.0, 1.0), repeat=n_s)))[1:-1]
        return normals, normals @ prior + epsilon / 2


@dataclass(frozen=True)
class Chi2(ShippedMeasure):
    """The chi-squared divergence of the posterior from the prior; its threshold is eps^2.

    Examples
    --------
    >>> from skprivacy.measures import Chi2
    >>> float(Chi2().value([1.0, 0.0], [0.5, 0.5]))
    1.0
    """

    name: ClassVar[str] = "chi2"
    is_quadratic: ClassVar[bool] = True

    def value(self, posterior: npt.ArrayLike, prior: npt.ArrayLike) -> FloatArray:
        return ((np.asarray(posterior) - prior) * (lift(posterior, prior) - 1)).sum(axis=-1)

    def subgradient(self, posterior: npt.ArrayLike, prior: npt.ArrayLike) -> FloatArray:
        return 2 * (lift(posterior, prior) - 1)

    def threshold(self, epsilon: float) -> float:
        return epsilon * epsilon

    def inverse(self, value: npt.ArrayLike) -> FloatArray:
        return np.sqrt(value)

    def information(self, epsilon: float) -> float:
        """The KL divergence is at most the logarithm of 1 + chi2, which is concave."""
        return math.log1p(epsilon * epsilon)

    def advantage(self, epsilon: float, prior: npt.ArrayLike) -> float:
        """Twice the total variation is at most the square root of chi2, which is concave."""
        return min(1.0, epsilon / 2)

    def curvature(self, largest_lift: float) -> float:
        """The second derivatives are 2 / ps, and those of KL are 1 / T >= 1 / (M ps)."""
        return 2 * largest_lift

    def conjugate(self, normals: FloatArray, prior: FloatArray) -> Conjugate:
        """The mean of the normal, and a quarter of its variance."""
        mean = normals @ prior
        off = normals - mean[:, None]
        second = np.broadcast_to(covariance(prior[None]) / 2, (len(normals), *(2 * prior.shape)))
        return mean + off**2 @ prior / 4, prior * (1 + off / 2), second

    def implied_deviations(self, epsilon: float) -> tuple[float, float]:
        """Lifts up to M give chi2 <= M - 1, tight; not the paper's (M - 1)^2 (correction 1)."""
        return -1.0, epsilon * epsilon
