"""The protocol of utilities, and the tolerances of their values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from .._typing import BoolArray, FloatArray, IntArray
from ..geometry import Points
from ..joint import Joint

# Utilities, and shares of a utility, below this are rounding.
UTILITY_ROUNDING = 1e-12

# If releasing X adds no more than this to the utility of a constant, there is none to keep.
NO_UTILITY = 1e-13

# Default gap at which solvers stop, as a share of the largest utility: a mechanism with no larger
# gap counts as optimal.
DEFAULT_TOL = 1e-5

# An upper bound may be below the utility of a mechanism by this much, from rounding.
BOUND_TOLERANCE = 1e-9


class Utility(ABC):
    """A convex function u of the posterior of X; a mechanism has ``offset + sum q u(W)``.

    Posteriors come as `skprivacy.solvers.Points`, which store their few positive entries.

    Examples
    --------
    The chance that a draw from P(X|y) equals X:

    >>> from skprivacy import design_mechanism
    >>> from skprivacy.utilities import Utility
    >>> class RandomGuess(Utility):
    ...     def value(self, points):
    ...         return (points.values**2).sum(axis=1)
    ...     def slope(self, points, n_x):
    ...         return 2 * points.dense(n_x)
    ...     def offset(self, p_x):
    ...         return 0.0
    ...     def of_channel(self, p_x, channel):
    ...         p_xy = p_x[:, None] * channel
    ...         return float((p_xy**2 / p_xy.sum(axis=0)).sum())
    ...     def largest(self, p_x):
    ...         return 1.0
    ...     def smallest(self, p_x):
    ...         return float(p_x @ p_x)
    >>> joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
    >>> mechanism = design_mechanism(joint, 0.02, utility=RandomGuess())
    >>> round(mechanism.utility, 3)
    0.728
    """

    name: ClassVar[str] = "custom"
    #: A c such that ``u(W) - c KL(P(S|y))`` is convex in W, whatever P(S|X) is.
    surplus_convexity: ClassVar[float] = 0.0

    @abstractmethod
    def value(self, points: Points) -> FloatArray:
        """Return u of each of `points`."""

    def preference(self, points: Points) -> FloatArray:
        """Return numbers from -1 to 0 that break ties between mixtures of equal utility."""
        return np.zeros(len(points))

    @abstractmethod
    def slope(self, points: Points, n_x: int) -> FloatArray:
        """Return a gradient of u at each of `points`, of shape (n_points, n_x).

        It need not be exact where u has none: it only guides the search for columns.
        """

    @abstractmethod
    def offset(self, p_x: FloatArray) -> float:
        """Return the utility minus ``sum q u(W)``, a constant."""

    @abstractmethod
    def of_channel(self, p_x: FloatArray, channel: FloatArray) -> float:
        """Return the utility of a channel."""

    @abstractmethod
    def largest(self, p_x: FloatArray) -> float:
        """Return the utility of releasing X itself, the largest possible."""

    def smallest(self, p_x: FloatArray) -> float:
        """Return the utility of releasing nothing."""
        return 0.0

    def least(self, p_x: FloatArray, strata: IntArray | None) -> float:
        """Return the utility of releasing nothing, or only the stratum of each symbol."""
        if strata is None:
            return self.smallest(p_x)
        beside = np.eye(strata.max() + 1)[strata]
        return self.of_channel(p_x, beside[:, beside.any(axis=0)])

    def of_identity(self, p_x: FloatArray) -> float:
        """Return the utility of unchanged symbols; less than `largest` if they are cells of X."""
        return self.of_channel(p_x, np.eye(len(p_x)))

    def span(self, p_x: FloatArray) -> float:
        """Return the difference in utility between releasing X and releasing nothing."""
        return self.largest(p_x) - self.smallest(p_x)

    def as_loss(self, n_x: int) -> tuple[FloatArray, float] | None:
        """Return (loss, constant) with ``u(W) = constant - min_l sum_x W_x loss(x, l)``, or None.

        Such a utility needs at most one output for each label l.
        """
        return None

    def given_sensitive(self, joint: Joint) -> float:
        """Return ``I(V;X|S)`` if the utility is an ``I(V;Y)``, else infinity.

        ``I(V;Y) <= I(S;Y) + I(V;X|S)`` then bounds the utility under a budget on average.
        """
        return np.inf

    def traits(self, n_x: int) -> FloatArray:
        """Return a matrix with a column per symbol of X; equal columns are equally useful."""
        return np.eye(n_x)

    def in_words(self, names: str) -> str:
        """Return a noun phrase that completes "90% of ..."; names : the columns of X."""
        return f"the utility of {names}, {self!r}"

    def restricted(self, symbols: BoolArray | IntArray) -> Utility:
        """Return the utility for some symbols of X, given as a mask or an index."""
        return self

    def recorded(self, p_x: FloatArray, channel: FloatArray) -> Utility:
        """Return the utility as it may be saved: only its values if its data is private."""
        return self

    def elsewhere(self) -> Utility:
        """Return the utility to use with another joint."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the name and parameters, enough to create an equal object."""
        return {"name": self.name}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.name)


class Through(Utility):
    """The utility of outputs Y that depend on X only through K, an output of another channel.

    utility : the utility about X; posteriors : P(X|k), a column for each symbol of K.
    """

    def __init__(self, utility: Utility, posteriors: FloatArray) -> None:
        self._utility, self._posteriors = utility, posteriors

    def __repr__(self) -> str:
        return repr(self._utility)

    def _of_x(self, points: Points) -> Points:
        return Points.from_dense(np.maximum(points.times(self._posteriors), 0.0))

    def value(self, points: Points) -> FloatArray:
        return self._utility.value(self._of_x(points))

    def slope(self, points: Points, n_x: int) -> FloatArray:
        return self._utility.slope(self._of_x(points), len(self._posteriors)) @ self._posteriors

    def offset(self, p_x: FloatArray) -> float:
        return self._utility.offset(self._posteriors @ p_x)

    def of_channel(self, p_x: FloatArray, channel: FloatArray) -> float:
        of_x, joint = self._posteriors @ p_x, self._posteriors @ (p_x[:, None] * channel)
        anything = np.full(joint.shape, 1 / joint.shape[1])
        through = np.divide(joint, of_x[:, None], out=anything, where=of_x[:, None] > 0)
        return self._utility.of_channel(of_x, through)

    def largest(self, p_x: FloatArray) -> float:
        return self.of_identity(p_x)

    def smallest(self, p_x: FloatArray) -> float:
        return self._utility.smallest(self._posteriors @ p_x)

    def as_loss(self, n_x: int) -> tuple[FloatArray, float] | None:
        found = self._utility.as_loss(len(self._posteriors))
        return None if found is None else (self._posteriors.T @ found[0], found[1])

    def traits(self, n_x: int) -> FloatArray:
        return self._posteriors

    def restricted(self, symbols: BoolArray | IntArray) -> Utility:
        return Through(self._utility, self._posteriors[:, symbols])
