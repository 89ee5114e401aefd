r"""Limits of what one output leaks in the population, as functions of its posterior of X.

The rows are n draws from a joint that nobody knows. The root leakage of an output W (the square
root for kl and alpha_lift, which are quadratic near the prior) has a mean and a standard deviation
over the joints that they may be from. The limit ``U_z(W)`` is the mean plus z standard deviations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from .._typing import FloatArray
from ..measures import Measure

# Measures whose epsilon is quadratic in the deviations of lifts from 1.
_QUADRATIC = {"kl", "alpha_lift"}


@dataclass(frozen=True, eq=False)
class Sample:
    """Counts of pairs (s, x), every symbol of X with rows, and what they say about the joint.

    p_x : as counted; joint : with one pseudo-row per group, spread as p_x; n_rows : of both.
    """

    counts: FloatArray
    p_x: FloatArray
    joint: FloatArray
    n_rows: float

    @classmethod
    def of(cls, counts: FloatArray) -> Sample:
        """Add the pseudo-rows."""
        p_x = counts.sum(axis=0) / counts.sum()
        with_prior = counts + p_x
        total = float(with_prior.sum())
        return cls(counts, p_x, with_prior / total, total + 1)


class OutputLimit(ABC):
    """``U_z`` of posteriors of X, given as dense rows, and its gradient."""

    def __init__(self, sample: Sample, measure: Measure) -> None:
        self.sample, self.measure = sample, measure

    def at_centre(self, z: float) -> float:
        """Return what limits start from on the way from P(X) outwards, if that matters."""
        return 0.0

    @abstractmethod
    def value(self, points: FloatArray, z: float) -> FloatArray:
        """Return ``U_z`` of each point."""

    @abstractmethod
    def with_slope(self, points: FloatArray, z: float) -> tuple[FloatArray, FloatArray]:
        """Return ``U_z`` of each point, and its gradient, one row each."""


def root_budget(measure: Measure, epsilon: float) -> float:
    """Return a budget on the scale of the limits."""
    return float(root_leakage(measure, np.array(epsilon)))


def root_leakage(measure: Measure, leakage: FloatArray) -> FloatArray:
    """Return the leakage on a scale on which it is about linear in the deviations of lifts."""
    leakage = np.maximum(leakage, 0.0)
    return np.sqrt(leakage) if measure.name in _QUADRATIC else leakage
