"""Leakage as a share of a threshold, of deviations in units of those that the threshold allows.

Numbers of order 1 however small a budget is: HiGHS knows absolute tolerances only.
"""

import numpy as np

from .._typing import FloatArray
from .leakage_function import LeakageFunction


class RelativeLeakage:
    """``g(unit d) / threshold``, with its tangents ``normal . d - offset``.

    Attributes
    ----------
    threshold : float
        The unit of g.
    deviations : ndarray of shape (n_s, n_x)
        Those of the symbols of X.
    unit : float
        The largest deviation on the way from the prior to a symbol that the threshold allows.
    prior : ndarray of shape (n_s,)
        P(S).
    """

    def __init__(self, leakage: LeakageFunction, threshold: float) -> None:
        self._leakage, self.threshold, self.prior = leakage, threshold, leakage.prior
        symbols = leakage.deviations.T
        allowed = leakage.shrunk(symbols, threshold)[:, None] * symbols
        self.unit = float(np.abs(allowed).max()) or 1.0
        self.deviations = leakage.deviations / self.unit

    def value(self, deviations: FloatArray) -> FloatArray:
        """Return the share of the threshold that each row of `deviations` leaks."""
        return self._leakage.value(self.unit * deviations) / self.threshold

    def slope(self, deviations: FloatArray) -> FloatArray:
        """Return a gradient at each row."""
        return self._leakage.slope(self.unit * deviations) * (self.unit / self.threshold)

    def shrunk(self, deviations: FloatArray, limits: FloatArray | float = 1.0) -> FloatArray:
        """Return each row, or what of it keeps a limit."""
        share = self._leakage.shrunk(self.unit * deviations, limits * self.threshold)
        return share[:, None] * deviations

    def tangents(self, deviations: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the normals and offsets of tangents at each row."""
        at = self.unit * deviations
        return self.relative(*self._leakage.tangents(at, self.threshold)[:2])

    def cuts(
        self, deviations: FloatArray, limits: FloatArray | float
    ) -> tuple[FloatArray, FloatArray]:
        """Return tangents at each row, or where on the way to it the limit is reached.

        By convexity such a tangent exceeds the limit at the row itself.
        """
        return self.tangents(self.shrunk(deviations, limits))

    def relative(self, normals: FloatArray, offsets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return tangents of g in these units."""
        return normals * (self.unit / self.threshold), offsets / self.threshold

    def absolute(self, normals: FloatArray, offsets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return tangents as those of g itself, which serve any threshold."""
        return normals * (self.threshold / self.unit), offsets * self.threshold
