"""The budget of one secret, with room for what the rows do not tell.

An output has ``w(x) = P(y|x) / P(y)``, lifts ``l_s = E[w | s]`` and variances ``Var(w | s)``, all
under the counts with one pseudo-row per group. It keeps the budget with a margin of beta if

    gauge(l - 1) + cost (max w - 1) + beta noise(w) <= 1,
    noise(w)^2 = sum_s weight_s Var(w | s),

where the gauge is the factor by which the budget for the sample is used. A linear function
``n . (l - 1)`` of the lifts has, for one row, the variance ``sum_s n_s^2 / p_s Var(w | s)``; the
weights are as large as those of normals of the budget, and in proportion to ``1 - p_s``, which
is exact for two groups and for kl near the prior. The peak, ``max w``, is what a few more rows of
a group would add if all of them had the symbol that tells most: it matters for groups with few
rows. All terms are convex and positively homogeneous, so that outputs with a margin form a convex
cone. Where published columns divide X into faces, the peak is compared with ``1 / P(face)``.
"""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray, IntArray
from ..measures import Measure

# Measures are continued linearly below this lift: a margin may take lifts below zero.
SMALL_LIFT = 0.05

# A measure with more facets than this is bounded by the tangents that matter.
_MOST_FACETS = 64

_SMALLEST_GAUGE, _LARGEST_GAUGE, _HALVINGS = 1e-12, 1e6, 60


class RobustBudget:
    """The outputs that keep a budget of epsilon with a margin.

    counts : of pairs (s, x) with at least two groups, every symbol of X with rows; faces : of the
    symbols; more_rows : how many rows of a group may have been missed; by_group : whether rows of
    a polyhedral budget have noises of their own, larger ones for rare groups, instead of a peak.

    Attributes
    ----------
    p_s, p_x, given_s : ndarray
        P(S), P(X) and P(x|s) with the pseudo-rows.
    normals, noise_scales : ndarray of shape (n, n_s) and (n,)
        The budget is contained in ``normals . (l - 1) <= 1``; how large the noise of each row is.
    weights : ndarray of shape (n_s,)
        The weights of the noise.
    peak_cost, flat : float, ndarray of shape (n_x,)
        What a peak of 1 costs, and what the peak of each symbol is compared with.
    is_exact : bool
        Whether the normals are the whole budget.
    """

    def __init__(
        self,
        counts: FloatArray,
        measure: Measure,
        epsilon: float,
        faces: IntArray | None = None,
        more_rows: float = 3.0,
        by_group: bool = False,
    ) -> None:
        with_prior = counts + counts.sum(axis=0) / counts.sum()
        self.n_rows = float(with_prior.sum()) + 1
        joint = with_prior / with_prior.sum()
        self.p_s, self.p_x = joint.sum(axis=1), joint.sum(axis=0)
        self.given_s = joint / self.p_s[:, None]
        self.measure, self.threshold = measure, float(measure.threshold(epsilon))
        self.normals, self.is_exact = self._first_normals(epsilon)
        faces = np.zeros(len(self.p_x), dtype=int) if faces is None else faces
        self.flat = 1 / np.bincount(faces, self.p_x)[faces]
        missed = more_rows / (self.n_rows * self.p_s + more_rows)
        self.peak_cost = 0.0 if by_group else float((self.normals.max(axis=0) * missed).max())
        sizes = (self.normals**2 / self.p_s).sum(axis=1)
        self.weights = np.median(sizes) * (1 - self.p_s)
        self.noise_scales = np.sqrt(sizes / np.median(sizes)) if by_group else np.ones(len(sizes))

    def _first_normals(self, epsilon: float) -> tuple[FloatArray, bool]:
        """Return the facets of the budget, or tangents where a single group deviates."""
        is_small = 2 ** len(self.p_s) - 2 <= _MOST_FACETS or self.measure.is_lift_box
        facets = self.measure.facets(self.p_s, epsilon) if is_small else None
        if facets is not None:
            normals, offsets = facets
            room = offsets - normals @ self.p_s
            return self._centred(normals * self.p_s) / room[:, None], True
        single = (np.eye(len(self.p_s)) - self.p_s) / self.p_s
        if len(self.p_s) == 2:  # the second group deviates in the opposite direction
            return self.tangents(single), True
        return self.tangents(np.vstack([single, -single])), False

    def _centred(self, normals: FloatArray) -> FloatArray:
        """Return normals that say the same of deviations: ``p_s . (l - 1) = 0``."""
        return normals - self.p_s * normals.sum(axis=1, keepdims=True)

    def tangents(self, deviations: FloatArray) -> FloatArray:
        """Return normals of the budget where rays through some deviations leave it."""
        edge = deviations / self._bisected(deviations)[:, None]
        posterior = np.maximum(self.p_s * (1 + edge), SMALL_LIFT * self.p_s)
        slopes = self.measure.subgradient(posterior, self.p_s)
        normals = self._centred(slopes * self.p_s)
        return normals / (normals * edge).sum(axis=1, keepdims=True)

    def add(self, normals: FloatArray) -> None:
        """Add tangents."""
        self.normals = np.vstack([self.normals, normals])
        self.noise_scales = np.append(self.noise_scales, np.ones(len(normals)))

    def gauge(self, deviations: FloatArray) -> FloatArray:
        """Return the factors by which deviations use the budget."""
        if self.is_exact:
            return (deviations @ self.normals.T).max(axis=1)
        return self._bisected(deviations)

    def _bisected(self, deviations: FloatArray) -> FloatArray:
        low, high = (np.full(len(deviations), end) for end in (_SMALLEST_GAUGE, _LARGEST_GAUGE))
        for _ in range(_HALVINGS):
            middle = np.sqrt(low * high)
            posterior = self.p_s * (1 + deviations / middle[:, None])
            inside = np.maximum(posterior, SMALL_LIFT * self.p_s)
            beyond = self.measure.subgradient(inside, self.p_s) * (posterior - inside)
            within = self.measure.value(inside, self.p_s) + beyond.sum(axis=1) <= self.threshold
            low, high = np.where(within, low, middle), np.where(within, middle, high)
        return high

    def deviations(self, channel: FloatArray) -> FloatArray:
        """Return ``l - 1`` of each output, one row each."""
        return (self.given_s @ (channel / (self.p_x @ channel))).T - 1

    def noise(self, channel: FloatArray) -> FloatArray:
        """Return the noise of each output."""
        w = channel / (self.p_x @ channel)
        variances = self.given_s @ w**2 - (self.given_s @ w) ** 2
        return np.sqrt(self.weights @ np.maximum(variances, 0.0))

    def peak(self, channel: FloatArray) -> FloatArray:
        """Return the excess of the largest w of each output over a flat one."""
        w = channel / (self.p_x @ channel)
        return w.max(axis=0) - self.flat[channel.argmax(axis=0)]

    def parts(
        self, channel: FloatArray, betas: FloatArray | float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gauge, with the peak, and the noise of each output.

        Of the row that uses most of both.
        """
        deviations, noise = self.deviations(channel), self.noise(channel)
        peak = self.peak_cost * self.peak(channel)
        if not self.is_exact:
            return self.gauge(deviations) + peak, noise
        gauges, noises = deviations @ self.normals.T, noise[:, None] * self.noise_scales
        worst = (gauges + np.reshape(betas, (-1, 1)) * noises).argmax(axis=1)
        rows = np.arange(len(worst))
        return gauges[rows, worst] + peak, noises[rows, worst]

    def used(self, channel: FloatArray, betas: FloatArray | float) -> FloatArray:
        """Return the share of the budget that each output uses, with its margin."""
        gauge, noise = self.parts(channel, betas)
        return gauge + betas * noise
