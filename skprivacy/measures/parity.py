"""Parity: how differently a released value comes to the groups of S."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from .._typing import FloatArray
from .base import ShippedMeasure, lift


@dataclass(frozen=True)
class Parity(ShippedMeasure):
    """Half the difference between the largest and the smallest lift.

    ``P(y|s) = P(y) lift``, so the average over outputs bounds the total variation between what any
    two groups get, and for two groups it is that. No classifier that is trained on the release, by
    anyone, treats two groups more differently: their shares of any prediction differ by no more
    (demographic parity).

    Examples
    --------
    >>> from skprivacy import Parity
    >>> round(float(Parity().value([0.6, 0.4], [0.5, 0.5])), 6)  # lifts of 1.2 and 0.8
    0.2
    """

    name: ClassVar[str] = "parity"

    def value(self, posterior: npt.ArrayLike, prior: npt.ArrayLike) -> FloatArray:
        lifts = lift(posterior, prior)
        # A group that does not occur is like any other: its lift is 1, which is in between.
        return (lifts.max(axis=-1) - lifts.min(axis=-1)) / 2

    def subgradient(self, posterior: npt.ArrayLike, prior: npt.ArrayLike) -> FloatArray:
        prior = np.asarray(prior, float)
        lifts = lift(posterior, prior)
        slope = 0.5 / np.where(prior > 0, prior, np.inf)
        places = np.arange(lifts.shape[-1])
        highest = places == lifts.argmax(axis=-1)[..., None]
        lowest = places == lifts.argmin(axis=-1)[..., None]
        return slope * (highest.astype(float) - lowest)

    def threshold(self, epsilon: float) -> float:
        return epsilon

    def inverse(self, value: npt.ArrayLike) -> FloatArray:
        return np.asarray(value, float)

    def advantage(self, epsilon: float, prior: npt.ArrayLike) -> float:
        """Lifts that differ by at most 2 eps and are 1 on average are off by eps on average.

        So the posterior is within a total variation of eps / 2 of the prior. And a group s that
        overtakes the most frequent one gains ``p_s (l_s - l) <= 2 eps p_s`` on it.
        """
        second = float(np.sort(np.append(prior, 0.0))[-2])
        return min(1.0, epsilon / 2, 2 * epsilon * second)

    def implied_deviations(self, epsilon: float) -> tuple[float, float]:
        return -min(epsilon, 1.0), max(epsilon, 2 * epsilon - 1)

    def facets(self, prior: FloatArray, epsilon: float) -> tuple[FloatArray, FloatArray]:
        """``T_s / p_s - T_s' / p_s' <= 2 eps`` for every two groups."""
        pairs = np.array(list(permutations(range(len(prior)), 2)), dtype=int).reshape(-1, 2)
        normals = np.zeros((len(pairs), len(prior)))
        rows = np.arange(len(pairs))
        normals[rows, pairs[:, 0]], normals[rows, pairs[:, 1]] = (
            1 / prior[pairs[:, 0]],
            -1 / prior[pairs[:, 1]],
        )
        return normals, np.full(len(pairs), 2 * epsilon)
