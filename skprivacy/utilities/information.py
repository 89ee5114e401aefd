"""Mutual information: of X and Y, or of a target and Y."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import rel_entr, xlogy

from .._typing import BoolArray, FloatArray, IntArray, TableLike
from .._validation import about, message
from ..codes import chunks
from ..geometry import Points
from ..joint import Joint, as_joint, readonly
from .utility import Utility

# Gradients are taken at probabilities of at least this: an entropy has no slope at zero. They need
# not be exact, because they only guide the search for columns.
_SMALLEST_PROBABILITY = 1e-3

# Posteriors of a target are computed this many numbers at a time, which a processor's cache holds.
_MOST_AT_ONCE = 1 << 17


def entropy(distribution: FloatArray) -> FloatArray:
    """Return the entropy in nats along the last axis, with 0 log 0 = 0."""
    return -xlogy(distribution, distribution).sum(axis=-1)


def mutual_information(joint: FloatArray) -> float:
    """Return the mutual information of a joint distribution, in nats."""
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    return max(0.0, float(rel_entr(joint, independent).sum()))


class MutualInformation(Utility):
    """``I(X;Y) = H(X) - sum q h(W)``: u is minus the entropy of the posterior of X.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> from skprivacy.utilities import MutualInformation
    >>> joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
    >>> mechanism = design_mechanism(joint, 0.02, utility=MutualInformation())
    >>> mechanism.utility == mechanism.mutual_information
    True
    """

    name: ClassVar[str] = "mutual_information"
    # By the data processing inequality: Y reveals no more about S than about X.
    surplus_convexity: ClassVar[float] = 1.0

    def __repr__(self) -> str:
        return "MutualInformation()"

    def in_words(self, names: str) -> str:
        return f"the information in {names}"

    def value(self, points: Points) -> FloatArray:
        return -entropy(points.values)

    def slope(self, points: Points, n_x: int) -> FloatArray:
        return np.log(np.maximum(points.dense(n_x), _SMALLEST_PROBABILITY)) + 1

    def offset(self, p_x: FloatArray) -> float:
        return float(entropy(p_x))

    def of_channel(self, p_x: FloatArray, channel: FloatArray) -> float:
        return mutual_information(p_x[:, None] * channel)

    def largest(self, p_x: FloatArray) -> float:
        return float(entropy(p_x))

    def given_sensitive(self, joint: Joint) -> float:
        """Return ``H(X|S)``."""
        return float(joint.p_s @ entropy(joint.p_sx / joint.p_s[:, None]))

    def traits(self, n_x: int) -> FloatArray:
        return np.empty((0, n_x))


class Target(Utility):
    """``I(V;Y)`` for a target V that X is meant to predict.

    u is minus the entropy of ``P(V | Y = y) = P(V|X) W``.

    Parameters
    ----------
    p_vx : array-like or DataFrame of shape (n_v, n_x)
        The joint distribution of V (rows) and X (columns), as probabilities or counts, or
        P(V|X): only the shares within each column matter. Columns are in the same order as in
        p_sx.
    whole : float, default=0.0
        If symbols are cells of a larger X: I(V;X) of X itself, in nats. Shares of the utility
        are then shares of this.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> from skprivacy.utilities import Target
    >>> joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
    >>> target = Target([[30, 10, 5], [5, 20, 30]])
    >>> mechanism = design_mechanism(joint, 0.02, utility=target)
    >>> 0 < mechanism.utility < mechanism.mutual_information
    True
    """

    name: ClassVar[str] = "target"

    def __init__(self, p_vx: TableLike, *, whole: float = 0.0) -> None:
        self.whole = whole
        table = as_joint(p_vx, "Target", "p_vx").p_sx
        total = table.sum(axis=0)
        # A column of zeros is refused only if that symbol of X occurs.
        self._unseen = np.flatnonzero(total == 0)
        self.p_v_given_x = readonly(table / np.where(total > 0, total, 1.0))

    @classmethod
    def of_conditional(cls, p_v_given_x: FloatArray) -> Target:
        """Return the target with exactly this P(V|X), without normalising it again."""
        target = cls(p_v_given_x)
        target.p_v_given_x = readonly(np.array(p_v_given_x))
        return target

    def __repr__(self) -> str:
        return "Target(<{} x {} table>)".format(*self.p_v_given_x.shape)

    def in_words(self, names: str) -> str:
        return f"the information in {names} about the target"

    def value(self, points: Points) -> FloatArray:
        matrix = np.asfortranarray(self.p_v_given_x)  # what a symbol says is contiguous
        found = np.empty(len(points))
        for rows in chunks(len(points), 1 + _MOST_AT_ONCE // len(matrix)):
            found[rows] = -entropy(np.maximum(points[rows].times(matrix), 0.0))
        return found

    def slope(self, points: Points, n_x: int) -> FloatArray:
        given_y = np.maximum(points.times(self.p_v_given_x), _SMALLEST_PROBABILITY)
        return (np.log(given_y) + 1) @ self.p_v_given_x

    def offset(self, p_x: FloatArray) -> float:
        return float(entropy(self._matched(p_x) @ p_x))

    def of_channel(self, p_x: FloatArray, channel: FloatArray) -> float:
        return mutual_information(self._matched(p_x) @ (p_x[:, None] * channel))

    def largest(self, p_x: FloatArray) -> float:
        return max(self.whole, mutual_information(self._matched(p_x) * p_x))

    def given_sensitive(self, joint: Joint) -> float:
        given = [mutual_information(self.p_v_given_x * p_x / p_x.sum()) for p_x in joint.p_sx]
        return float(joint.p_s @ given)

    def traits(self, n_x: int) -> FloatArray:
        return self.p_v_given_x

    def surprise(self) -> FloatArray:
        """Return the cross entropy of V if symbol i (row) is read as symbol j (column)."""
        return -self.p_v_given_x.T @ np.log(np.maximum(self.p_v_given_x, _SMALLEST_PROBABILITY))

    def restricted(self, symbols: BoolArray | IntArray) -> Utility:
        return Target(self.p_v_given_x[:, symbols], whole=self.whole)

    def recorded(self, p_x: FloatArray, channel: FloatArray) -> Utility:
        return recorded_utility(self, p_x, channel)

    def to_dict(self) -> dict[str, Any]:
        whole = {"whole": self.whole} if self.whole else {}
        return {"name": self.name, "p_vx": self.p_v_given_x.tolist(), **whole}

    def _matched(self, p_x: FloatArray) -> FloatArray:
        """Return P(V|X), after checking that it fits this distribution of X."""
        if len(p_x) != self.p_v_given_x.shape[1]:
            requirement = f"a table with {len(p_x)} columns, one per symbol of X"
            raise ValueError(message("Target", "p_vx", requirement, self))
        if (unseen := self._unseen[p_x[self._unseen] > 0]).size:
            needs = " must describe V for every symbol of X that occurs."
            got = f" Got only zeros in its column {unseen[0]}."
            raise ValueError(about("Target", "p_vx", needs + got))
        return self.p_v_given_x


class RecordedUtility(Utility):
    """Recorded values of a utility whose data was not saved with the mechanism."""

    def __init__(
        self, name: str, reached: float, largest: float, of_symbols: float | None = None
    ) -> None:
        self.name = name  # type: ignore[misc]  # of the recorded utility
        self._reached, self._largest = float(reached), float(largest)
        self._of_symbols = self._largest if of_symbols is None else float(of_symbols)
        self._least: float | None = None

    def __repr__(self) -> str:
        return f"<{self.name}, whose data was left out>"

    def value(self, *_: Any) -> Any:
        raise AttributeError(f"The data of the utility {self.name!r} was not saved.")

    slope = offset = value  # type: ignore[assignment]

    def of_channel(self, p_x: FloatArray, channel: FloatArray) -> float:
        return self._reached

    def largest(self, p_x: FloatArray) -> float:
        return self._largest

    def of_identity(self, p_x: FloatArray) -> float:
        return self._of_symbols

    def with_least(self, least: float) -> RecordedUtility:
        """Return a copy that records the utility of the columns beside alone."""
        figures = RecordedUtility(self.name, self._reached, self._largest, self._of_symbols)
        figures._least = float(least)
        return figures

    def least(self, p_x: FloatArray, strata: IntArray | None) -> float:
        return self.smallest(p_x) if self._least is None else self._least

    def elsewhere(self) -> Utility:
        return MutualInformation()

    def to_dict(self) -> dict[str, Any]:
        of_cells = [self._of_symbols] if self._of_symbols < self._largest else []
        least = {} if self._least is None else {"least": self._least}
        return {"name": self.name, "recorded": [self._reached, self._largest, *of_cells], **least}


def recorded_utility(utility: Utility, p_x: FloatArray, channel: FloatArray) -> RecordedUtility:
    """Return the values of a utility for a channel, without its data."""
    figures = utility.of_channel(p_x, channel), utility.largest(p_x), utility.of_identity(p_x)
    return RecordedUtility(utility.name, *figures)
