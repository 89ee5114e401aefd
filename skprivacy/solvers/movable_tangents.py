"""Tangents of g that move with their coordinates: where they touch, or which facets they mix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeAlias

import numpy as np

from .._typing import FloatArray, IntArray
from .relative_leakage import RelativeLeakage

# Normals and offsets.
_Tangents: TypeAlias = tuple[FloatArray, FloatArray]

# Coordinates are scaled so that a step moves tangents this much further, which takes fewer steps.
_STRETCH = 10.0

# Lifts are at least this where tangents start.
_SMALLEST_LIFT = 1e-9

# How far to look to see a slope change, as a share of what keeps lifts positive.
_STEP = 1e-6

# Facets that a tangent mixes with a smaller share hardly matter.
_SMALL_SHARE = 1e-3


class MovableTangents(ABC):
    """One tangent for each row of coordinates, below g for any coordinates."""

    def __init__(self, leakage: RelativeLeakage) -> None:
        self.leakage = leakage

    @abstractmethod
    def coordinates(self, deviations: FloatArray) -> FloatArray:
        """Return the coordinates of tangents that are high at each row of `deviations`."""

    @abstractmethod
    def tangents(self, coordinates: FloatArray) -> _Tangents:
        """Return the tangents, up to rounding."""

    @abstractmethod
    def slope(self, coordinates: FloatArray, q: FloatArray, r: FloatArray) -> FloatArray:
        """Return how ``n . r - o q`` of each tangent changes with its coordinates."""

    @abstractmethod
    def sure(self, coordinates: FloatArray) -> _Tangents:
        """Return tangents that rounding keeps below g."""

    def parts(self, coordinates: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return what the tangents consist of, and which of them each part is of."""
        return np.arange(len(coordinates)), *self.sure(coordinates)

    @abstractmethod
    def translated(self, coordinates: FloatArray, before: MovableTangents) -> FloatArray:
        """Return coordinates of tangents of the same kind, of another threshold, as ours."""


class TouchingTangents(MovableTangents):
    """Tangents that touch g at places: for measures with a slope that changes everywhere.

    Coordinates are logarithms of lifts: any numbers, once centred, are a posterior.
    """

    def coordinates(self, deviations: FloatArray) -> FloatArray:
        unit = self.leakage.unit
        return np.log(np.maximum(1 + unit * deviations, _SMALLEST_LIFT)) / (_STRETCH * unit)

    def _places(self, coordinates: FloatArray) -> FloatArray:
        unit, prior = self.leakage.unit, self.leakage.prior
        above = np.expm1(_STRETCH * unit * (coordinates - coordinates.max(axis=1, keepdims=True)))
        mean = (above @ prior)[:, None]
        return (above - mean) / (1 + mean) / unit

    def tangents(self, coordinates: FloatArray) -> _Tangents:
        places = self._places(coordinates)
        normals = self.leakage.slope(places)
        return normals, (normals * places).sum(axis=1) - self.leakage.value(places)

    def slope(self, coordinates: FloatArray, q: FloatArray, r: FloatArray) -> FloatArray:
        """Return the second derivative of g at the places, applied to where a label is from there.

        It is taken as a difference of slopes, then by the coordinates.
        """
        places, unit = self._places(coordinates), self.leakage.unit
        lifts, toward = 1 + unit * places, r - q[:, None] * places
        size = np.maximum(np.abs(toward).max(axis=1, keepdims=True), np.finfo(float).tiny)
        room = np.maximum(lifts.min(axis=1, keepdims=True), _SMALLEST_LIFT) / unit
        step = _STEP * room * (toward / size)
        ahead, behind = self.leakage.slope(places + step), self.leakage.slope(places - step)
        slope = _STRETCH * (ahead - behind) * (size / (2 * _STEP * room)) * lifts
        return slope - self.leakage.prior * lifts * slope.sum(axis=1, keepdims=True)

    def sure(self, coordinates: FloatArray) -> _Tangents:
        return self.leakage.tangents(self._places(coordinates))

    def translated(self, coordinates: FloatArray, before: MovableTangents) -> FloatArray:
        assert isinstance(before, TouchingTangents)
        scale = before.leakage.unit / self.leakage.unit
        return self.coordinates(scale * before._places(coordinates))


class MixedFacets(MovableTangents):
    """Mixtures of the facets of a polyhedral g; coordinates are logarithms of their shares.

    rows : what is to be small in each facet, as `Measure.facets` has it.
    """

    def __init__(self, leakage: RelativeLeakage, rows: FloatArray) -> None:
        super().__init__(leakage)
        toward = rows - (rows @ leakage.prior)[:, None]
        toward /= 2 * np.abs(toward).max(axis=1, keepdims=True)  # lifts remain positive
        self._normals, self._offsets = leakage.tangents(leakage.shrunk(toward / leakage.unit))

    def coordinates(self, deviations: FloatArray) -> FloatArray:
        return (deviations @ self._normals.T - self._offsets) / _STRETCH  # all have some share

    def _shares(self, coordinates: FloatArray) -> FloatArray:
        shares = np.exp(_STRETCH * (coordinates - coordinates.max(axis=1, keepdims=True)))
        return shares / shares.sum(axis=1, keepdims=True)

    def tangents(self, coordinates: FloatArray) -> _Tangents:
        shares = self._shares(coordinates)
        return shares @ self._normals, shares @ self._offsets

    def slope(self, coordinates: FloatArray, q: FloatArray, r: FloatArray) -> FloatArray:
        shares = self._shares(coordinates)
        heights = r @ self._normals.T - q[:, None] * self._offsets
        return _STRETCH * shares * (heights - (shares * heights).sum(axis=1, keepdims=True))

    def sure(self, coordinates: FloatArray) -> _Tangents:
        return self.tangents(coordinates)

    def parts(self, coordinates: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
        labels, facets = np.nonzero(self._shares(coordinates) > _SMALL_SHARE)
        return labels, self._normals[facets], self._offsets[facets]

    def translated(self, coordinates: FloatArray, before: MovableTangents) -> FloatArray:
        return coordinates
