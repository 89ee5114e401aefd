"""What usefulness is: ``sum q u(W)`` over the outputs, with u convex in ``W = P(X | Y = y)``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import rel_entr, xlogy

from ._messages import Message, Parameter
from ._typing import BoolArray, FloatArray, IntArray, TableLike
from ._validation import check_choice, check_real, message
from .geometry import Points
from .joint import Joint, as_joint, readonly

# A utility below this, or a share of it below this, is rounding.
UTILITY_ROUNDING = 1e-12

# If X itself has no more utility than a constant, up to this, there is none to keep.
NO_UTILITY = 1e-13

# A bound below the utility of a mechanism by more than this is wrong; by less, it is rounding.
BOUND_TOLERANCE = 1e-9

# Where a probability is zero an entropy has no slope: gradients are taken at this probability.
# They need not be exact: they only point the search for columns somewhere.
_SMALLEST_PROBABILITY = 1e-3

_AT_ONCE = 5_000_000  # entries of posteriors


def entropy(distribution: FloatArray) -> FloatArray:
    """Return the entropy in nats along the last axis, with 0 log 0 = 0."""
    return -xlogy(distribution, distribution).sum(axis=-1)


def mutual_information(joint: FloatArray) -> float:
    """Return the mutual information in nats of the two variables of a joint distribution."""
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    return max(0.0, float(rel_entr(joint, independent).sum()))


class Utility(ABC):
    """A convex function u of the posterior of X; a mechanism is worth ``offset + sum q u(W)``.

    Posteriors come as `skprivacy.solvers.Points`, which store their few positive entries.

    Examples
    --------
    How often a draw from P(X|y) guesses X:

    >>> from skprivacy import Utility, design_mechanism
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
        """Return what decides between mixtures of equal utility: numbers from 0 down to -1."""
        return np.zeros(len(points))

    @abstractmethod
    def slope(self, points: Points, n_x: int) -> FloatArray:
        """Return a gradient of u at each of `points`, of shape (n_points, n_x).

        It need not be exact where u has none: it points the search for columns somewhere.
        """

    @abstractmethod
    def offset(self, p_x: FloatArray) -> float:
        """Return what to add to ``sum q u(W)`` to get the utility."""

    @abstractmethod
    def of_channel(self, p_x: FloatArray, channel: FloatArray) -> float:
        """Return the utility of a channel, from its own floats."""

    @abstractmethod
    def largest(self, p_x: FloatArray) -> float:
        """Return the utility of releasing X itself: no mechanism has more."""

    def smallest(self, p_x: FloatArray) -> float:
        """Return the utility of releasing nothing: no mechanism needs to have less."""
        return 0.0

    def span(self, p_x: FloatArray) -> float:
        """Return how much more releasing X is worth than releasing nothing."""
        return self.largest(p_x) - self.smallest(p_x)

    def as_loss(self, n_x: int) -> tuple[FloatArray, float] | None:
        """Return (loss, constant) with ``u(W) = constant - min_l sum_x W_x loss(x, l)``, or None.

        Such a utility needs one output for each label l at most.
        """
        return None

    def given_sensitive(self, joint: Joint) -> float:
        """Return ``I(V;X|S)`` if the utility is an ``I(V;Y)``, else infinity.

        ``I(V;Y) <= I(S;Y) + I(V;X|S)`` then bounds what can be kept under a budget on average.
        """
        return np.inf

    def traits(self, n_x: int) -> FloatArray:
        """Return a matrix with a column per symbol of X: symbols with equal ones are as useful."""
        return np.eye(n_x)

    def restricted(self, symbols: BoolArray | IntArray) -> Utility:
        """Return the utility for the remaining symbols of X, given as a mask or an index."""
        return self

    def recorded(self, p_x: FloatArray, channel: FloatArray) -> Utility:
        """Return what can be shipped without the data behind it: the utility, or its figures."""
        return self

    def elsewhere(self) -> Utility:
        """Return the utility to use under another joint."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the name and parameters, from which an equal object can be made."""
        return {"name": self.name}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.name)


class MutualInformation(Utility):
    """``I(X;Y) = H(X) - sum q h(W)``: u is minus the entropy of the posterior of X.

    Examples
    --------
    >>> from skprivacy import MutualInformation, design_mechanism
    >>> joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
    >>> mechanism = design_mechanism(joint, 0.02, utility=MutualInformation())
    >>> mechanism.utility == mechanism.mutual_information
    True
    """

    name: ClassVar[str] = "mutual_information"
    # By the data processing inequality: S cannot be told better than X.
    surplus_convexity: ClassVar[float] = 1.0

    def __repr__(self) -> str:
        return "MutualInformation()"

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

    Examples
    --------
    >>> from skprivacy import Target, design_mechanism
    >>> joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
    >>> target = Target([[30, 10, 5], [5, 20, 30]])
    >>> mechanism = design_mechanism(joint, 0.02, utility=target)
    >>> 0 < mechanism.utility < mechanism.mutual_information
    True
    """

    name: ClassVar[str] = "target"

    def __init__(self, p_vx: TableLike) -> None:
        table = as_joint(p_vx, "Target", "p_vx").p_sx
        total = table.sum(axis=0)
        # A column of zeros says nothing about V. It is refused if X ever takes that symbol.
        self._unseen = np.flatnonzero(total == 0)
        self.p_v_given_x = readonly(table / np.where(total > 0, total, 1.0))

    @classmethod
    def of_conditional(cls, p_v_given_x: FloatArray) -> Target:
        """Return the target with exactly this P(V|X): dividing again would round it again."""
        target = cls(p_v_given_x)
        target.p_v_given_x = readonly(np.array(p_v_given_x))
        return target

    def __repr__(self) -> str:
        return "Target(<{} x {} table>)".format(*self.p_v_given_x.shape)

    def value(self, points: Points) -> FloatArray:
        return -entropy(np.maximum(points.times(self.p_v_given_x), 0.0))

    def slope(self, points: Points, n_x: int) -> FloatArray:
        given_y = np.maximum(points.times(self.p_v_given_x), _SMALLEST_PROBABILITY)
        return (np.log(given_y) + 1) @ self.p_v_given_x

    def offset(self, p_x: FloatArray) -> float:
        return float(entropy(self._matched(p_x) @ p_x))

    def of_channel(self, p_x: FloatArray, channel: FloatArray) -> float:
        return mutual_information(self._matched(p_x) @ (p_x[:, None] * channel))

    def largest(self, p_x: FloatArray) -> float:
        return mutual_information(self._matched(p_x) * p_x)

    def given_sensitive(self, joint: Joint) -> float:
        given = [mutual_information(self.p_v_given_x * p_x / p_x.sum()) for p_x in joint.p_sx]
        return float(joint.p_s @ given)

    def traits(self, n_x: int) -> FloatArray:
        return self.p_v_given_x

    def restricted(self, symbols: BoolArray | IntArray) -> Utility:
        return Target(self.p_v_given_x[:, symbols])

    def recorded(self, p_x: FloatArray, channel: FloatArray) -> Utility:
        return RecordedUtility(self.name, self.of_channel(p_x, channel), self.largest(p_x))

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "p_vx": self.p_v_given_x.tolist()}

    def _matched(self, p_x: FloatArray) -> FloatArray:
        """Return P(V|X) if it fits this distribution of X."""
        if len(p_x) != self.p_v_given_x.shape[1]:
            requirement = f"a table with {len(p_x)} columns, one per symbol of X"
            raise ValueError(message("Target", "p_vx", requirement, self))
        if (unseen := self._unseen[p_x[self._unseen] > 0]).size:
            raise ValueError(
                f"The 'p_vx' parameter of Target must describe V for every symbol of X that "
                f"occurs. Got only zeros in its column {unseen[0]}."
            )
        return self.p_v_given_x


class Guess(Utility):
    """The chance of guessing X from Y: ``sum q max W``.

    Several mechanisms often have the same chance; of those, the one with the largest ``I(X;Y)``
    is preferred.

    Examples
    --------
    >>> from skprivacy import Guess, design_mechanism
    >>> joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
    >>> mechanism = design_mechanism(joint, 0.02, utility=Guess())
    >>> round(mechanism.utility, 3)
    0.787
    >>> round(Guess().smallest(mechanism.p_x), 3)  # without Y
    0.4
    """

    name: ClassVar[str] = "guess"

    def __repr__(self) -> str:
        return "Guess()"

    def value(self, points: Points) -> FloatArray:
        return points.values.max(axis=1)

    def preference(self, points: Points) -> FloatArray:
        return -entropy(points.values) / max(1.0, np.log(points.values.shape[1]))

    def slope(self, points: Points, n_x: int) -> FloatArray:
        best = points.values.argmax(axis=1)
        return np.eye(n_x)[points.support[np.arange(len(points)), best]]

    def offset(self, p_x: FloatArray) -> float:
        return 0.0

    def of_channel(self, p_x: FloatArray, channel: FloatArray) -> float:
        return float((p_x[:, None] * channel).max(axis=0).sum())

    def largest(self, p_x: FloatArray) -> float:
        return 1.0

    def smallest(self, p_x: FloatArray) -> float:
        return float(np.max(p_x))

    def traits(self, n_x: int) -> FloatArray:
        return np.empty((0, n_x))

    def as_loss(self, n_x: int) -> tuple[FloatArray, float]:
        return 1.0 - np.eye(n_x), 1.0


class Distortion(Utility):
    """Minus the loss of taking released values at face value: ``-E loss(X, label of Y)``.

    Each output is read as the label with the smallest expected loss. Several outputs with one
    label are no better than one: a design has one output per label at most. `Guess` is the case
    of a loss of 1 for every wrong label.

    Parameters
    ----------
    loss : array-like of shape (n_x, n_x) or "auto", default="auto"
        What is lost where the symbol of the row is read as that of the column: not negative, and
        in each row smallest on the diagonal. In the order of the columns of p_sx. "auto" is for
        `PrivacyFunnelTransformer`: 0 or 1 in a column of categories, the share of rows between
        two values in a column of numbers, times or ordered categories, averaged over the columns
        (Gower's distance).
    column_weights : dict, default=None
        With "auto", how much each column of X counts; 1 for those that are not in it.

    Examples
    --------
    >>> import numpy as np
    >>> from skprivacy import Distortion, design_mechanism
    >>> joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
    >>> steps = np.abs(np.subtract.outer(range(3), range(3)))  # 0, 1 and 2 apart
    >>> mechanism = design_mechanism(joint, 0.02, utility=Distortion(steps))
    >>> round(mechanism.utility, 3)
    -0.359
    >>> round(mechanism.normalized_utility, 3)  # 0: nothing is released, 1: X itself
    0.487

    In a table, where a wrong age is twice as bad as a wrong town:

    >>> from skprivacy import PrivacyFunnelTransformer
    >>> closeness = Distortion("auto", column_weights={"age": 2})
    >>> funnel = PrivacyFunnelTransformer(
    ...     0.02, sensitive="sex", columns=["age", "town"], utility=closeness
    ... )
    """

    name: ClassVar[str] = "distortion"

    def __init__(
        self,
        loss: TableLike | Literal["auto"] = "auto",
        *,
        column_weights: Mapping[Any, float] | None = None,
    ) -> None:
        self.is_automatic = isinstance(loss, str) and loss == "auto"
        if column_weights is not None and not self.is_automatic:
            raise ValueError(
                "Distortion takes column_weights with loss='auto' only: a table has its weights "
                "in it."
            )
        self.column_weights = _check_column_weights(column_weights)
        self.loss = np.zeros((0, 0)) if self.is_automatic else readonly(_check_loss(loss))

    @classmethod
    def of_symbols(cls, loss: FloatArray) -> Distortion:
        """Return the distortion of a table with a row for some symbols only, all being labels."""
        distortion = cls()
        distortion.is_automatic, distortion.loss = False, readonly(np.array(loss, dtype=float))
        return distortion

    def weights_of(self, columns: Sequence[Any], owner: str) -> list[float]:
        """Return the weights of some columns; owner : whose columns they are."""
        if unknown := [name for name in self.column_weights if name not in columns]:
            raise ValueError(
                Message(
                    Parameter("column_weights", "Distortion"),
                    f" names {unknown[0]!r}, which is not one of the columns that {owner} "
                    f"releases: {list(columns)}.",
                )
            )
        weights = [self.column_weights.get(name, 1.0) for name in columns]
        if not sum(weights):
            raise ValueError(
                Message(
                    Parameter("column_weights", "Distortion"),
                    " must not be zero for all columns: every value would be as good as another.",
                )
            )
        return weights

    def __repr__(self) -> str:
        if not self.is_automatic:
            return "Distortion(<{} x {} table>)".format(*self.loss.shape)
        weights = f", column_weights={self.column_weights}" if self.column_weights else ""
        return f"Distortion('auto'{weights})"

    def value(self, points: Points) -> FloatArray:
        n_parts = 1 + len(points) * len(self.loss) // _AT_ONCE
        parts = np.array_split(np.arange(len(points)), n_parts)
        return np.concatenate([-self._losses(points[part]).min(axis=1) for part in parts])

    def slope(self, points: Points, n_x: int) -> FloatArray:
        return -self.loss.T[self._losses(points).argmin(axis=1)]

    def _losses(self, points: Points) -> FloatArray:
        """Return the expected loss of each label, one row for each point."""
        return points.dense(len(self.loss)) @ self.loss

    def offset(self, p_x: FloatArray) -> float:
        return 0.0

    def of_channel(self, p_x: FloatArray, channel: FloatArray) -> float:
        return -float(((p_x[:, None] * channel).T @ self._matched(p_x)).min(axis=1).sum())

    def largest(self, p_x: FloatArray) -> float:
        return -float(p_x @ self._matched(p_x).min(axis=1))

    def smallest(self, p_x: FloatArray) -> float:
        return -float((p_x @ self._matched(p_x)).min())

    def traits(self, n_x: int) -> FloatArray:
        return self.loss.T

    def restricted(self, symbols: BoolArray | IntArray) -> Utility:
        return Distortion.of_symbols(self.loss[symbols])

    def as_loss(self, n_x: int) -> tuple[FloatArray, float]:
        return self.loss, 0.0

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "loss": self.loss.tolist()}

    def _matched(self, p_x: FloatArray) -> FloatArray:
        """Return the loss, if it belongs to this X."""
        if self.is_automatic:
            raise ValueError(
                "Distortion('auto') asks the columns of a table, which a joint distribution does "
                "not have: pass Distortion(loss) with a table of symbols and labels, or use "
                "PrivacyFunnelTransformer."
            )
        if len(p_x) != len(self.loss):
            requirement = f"a table with {len(p_x)} rows, one per symbol of X"
            raise ValueError(message("Distortion", "loss", requirement, self))
        return self.loss


def _check_column_weights(weights: Mapping[Any, float] | None) -> dict[Any, float]:
    if not isinstance(weights, Mapping | None):
        raise TypeError(message("Distortion", "column_weights", "a dict or None", weights))
    return {
        name: check_real("Distortion", "column_weights", weight, low=0, high_open=True)
        for name, weight in (weights or {}).items()
    }


def _check_loss(loss: TableLike) -> FloatArray:
    """Return a loss as an array, if it is one."""
    try:
        table = np.array(loss, dtype=float)
    except (TypeError, ValueError) as error:
        raise TypeError(message("Distortion", "loss", "a table of numbers", loss)) from error
    if table.ndim != 2 or table.shape[0] != table.shape[1] or not table.size:
        requirement = "a square table, with a row and a column for each symbol of X"
        raise ValueError(message("Distortion", "loss", requirement, loss))
    if not (np.isfinite(table).all() and (table >= 0).all()):
        raise ValueError(
            message("Distortion", "loss", "a table of finite numbers that are not negative", loss)
        )
    if (wrong := np.flatnonzero(np.diag(table) > table.min(axis=1))).size:
        raise ValueError(
            Message(
                Parameter("loss", "Distortion"),
                f" must be smallest on its diagonal: a symbol is best read as itself. In row "
                f"{wrong[0]} another label has a smaller loss.",
            )
        )
    return table


class RecordedUtility(Utility):
    """The figures of a utility whose data was left out of a saved mechanism."""

    def __init__(self, name: str, reached: float, largest: float) -> None:
        self.name = name  # type: ignore[misc]  # of the utility that it stands for
        self._reached, self._largest = float(reached), float(largest)

    def __repr__(self) -> str:
        return f"<{self.name}, whose data was left out>"

    def value(self, points: Points) -> FloatArray:
        raise self._forgotten()

    def slope(self, points: Points, n_x: int) -> FloatArray:
        raise self._forgotten()

    def offset(self, p_x: FloatArray) -> float:
        raise self._forgotten()

    def _forgotten(self) -> AttributeError:
        return AttributeError(
            f"The data of the utility {self.name!r} was left out when the mechanism was saved."
        )

    def of_channel(self, p_x: FloatArray, channel: FloatArray) -> float:
        return self._reached

    def largest(self, p_x: FloatArray) -> float:
        return self._largest

    def elsewhere(self) -> Utility:
        return MutualInformation()

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "recorded": [self._reached, self._largest]}


UTILITIES: dict[str, type[Utility]] = {
    cls.name: cls for cls in (MutualInformation, Target, Guess, Distortion)
}


def get_utility(utility: str | Utility, owner: str = "get_utility") -> Utility:
    """Return a utility object from a name, or the object itself.

    Examples
    --------
    >>> from skprivacy import get_utility
    >>> get_utility("guess")
    Guess()
    """
    if isinstance(utility, Utility):
        return utility
    if isinstance(utility, type) and issubclass(utility, Utility):
        requirement = f"an instance of {utility.__name__}, not the class"
        raise TypeError(message(owner, "utility", requirement, utility))
    check_choice(owner, "utility", utility, UTILITIES, " or an instance of skprivacy.Utility")
    if utility == Target.name:
        raise ValueError(
            Message(
                Parameter("utility", owner),
                " is 'target', which needs to know the target: pass Target(p_vx) with the table "
                "of V and X. (PrivacyFunnelTransformer takes y instead.)",
            )
        )
    if utility == Distortion.name:
        raise ValueError(
            Message(
                Parameter("utility", owner),
                " is 'distortion', which needs to know what a wrong label costs: pass "
                "Distortion(loss) with a table of symbols and labels. (PrivacyFunnelTransformer "
                "asks the columns.)",
            )
        )
    return UTILITIES[utility]()
