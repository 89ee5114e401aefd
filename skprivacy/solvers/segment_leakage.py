"""The leakage of vertices that move along straight lines: convex along every line."""

from functools import cached_property

import numpy as np

from .._typing import FloatArray, IntArray
from ..geometry.lift_polytopes import VertexSegments
from ..joint import Joint
from ..measures import Measure

_GOLDEN = (np.sqrt(5) - 1) / 2
_GOLDEN_STEPS = 50  # to 4e-11 of a segment
_BISECTIONS = 50  # to 1e-15 of a segment


class SegmentLeakage:
    """How much the points of `segments` reveal about S, as a function of where they are."""

    def __init__(self, segments: VertexSegments, joint: Joint, measure: Measure) -> None:
        self.segments = segments
        self._prior = joint.p_s
        self._measure = measure
        low, high = (
            (1 + points.times(joint.deviations)) * joint.p_s for points in segments.ends()
        )
        self._start, self._step = low, high - low

    def at(self, fraction: FloatArray, index: slice | IntArray = slice(None)) -> FloatArray:
        """Return the leakage, eps scale, of segments `index` at `fraction` of their length.

        `fraction` is (n,), or (n, k) for k points on each of the n segments.
        """
        start, step = self._start[index], self._step[index]
        if np.ndim(fraction) == 2:
            start, step = start[:, None], step[:, None]
        posterior = np.maximum(start + np.asarray(fraction)[..., None] * step, 0.0)
        return self._measure.leakage(posterior, self._prior)

    @cached_property
    def _lowest(self) -> FloatArray:
        """Where the leakage is smallest on each segment, by golden section."""
        left, right = np.zeros(len(self._start)), np.ones(len(self._start))
        for _ in range(_GOLDEN_STEPS):
            width = _GOLDEN * (right - left)
            falling = self.at(right - width) > self.at(left + width)
            left, right = (
                np.where(falling, right - width, left),
                np.where(falling, right, left + width),
            )
        candidates = np.stack([left, np.zeros_like(left), np.ones_like(left)], axis=1)
        best = self.at(candidates).argmin(axis=1)
        return np.take_along_axis(candidates, best[:, None], axis=1)[:, 0]

    def within(self, epsilon: float) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return (index, first, last): the segments that meet the budget somewhere, and where.

        The budget holds at every point from `first` to `last`, both included.
        """
        # The tolerance is for rounding, not for going further out: kl and chi2 are flat at the
        # prior, where a leakage of 1e-12 means a lift of 1e-6.
        index = np.flatnonzero(self.at(self._lowest) <= self._measure.budget(epsilon, share=0.25))
        # The searches toward both ends of every segment run side by side.
        limit = self._measure.budget(epsilon, share=0.0)
        inside, end = np.tile(self._lowest[index], 2), np.repeat([0.0, 1.0], len(index))
        first, last = np.split(self._crossing(np.tile(index, 2), inside, end, limit), 2)
        return index, first, last

    def _crossing(
        self, index: IntArray, inside: FloatArray, outside: FloatArray, limit: float
    ) -> FloatArray:
        """Return the last point within the budget on the way from `inside` to `outside`."""
        result = np.where(self.at(outside, index) <= limit, outside, inside)
        beyond = np.flatnonzero(result != outside)
        index, inside, outside = index[beyond], inside[beyond], outside[beyond]
        for _ in range(_BISECTIONS):
            middle = (inside + outside) / 2
            within = self.at(middle, index) <= limit
            inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
        result[beyond] = inside
        return result

    def largest_safe_excess(self, epsilon: float) -> float:
        """Return the largest excess of lifts over 1 such that all of Delta_t keeps the budget.

        The largest leakage in Delta_t is that of one of its vertices and does not decrease with t:
        t may grow until the first vertex breaks the budget.
        """
        index, first, last = self.within(epsilon)
        safe = self.segments.start.copy()
        start, stop = self.segments.start[index], self.segments.stop[index]
        reached = np.where(last < 1, start + last * (stop - start), np.inf)
        safe[index] = np.where(first > 0, start, reached)
        return max(0.0, float(safe.min()))
