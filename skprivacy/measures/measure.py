"""The protocol of measures; leakage per output and on average; posteriors within a budget."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from .._numerics import BISECTIONS
from .._typing import BoolArray, FloatArray, Scope

# The paper bounds every output; the privacy funnel bounds the average (correction 8).
SCOPES: tuple[Scope, ...] = ("per_output", "average")

# A budget holds when leakage <= epsilon (1 + BUDGET_RTOL) + BUDGET_ATOL.
BUDGET_RTOL = 1e-9
BUDGET_ATOL = 1e-12

# Values, slopes and curvatures of a conjugate, one row each.
Conjugate: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]

# Values of a support function; values, slopes and curvatures of a smooth one. One row each.
Support: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray]

# Gradients are taken at lifts of at least this: some measures have no tangent at zero.
SMALLEST_LIFT = 1e-12


def budget_with_tolerance(epsilon: float, share: float = 1.0) -> float:
    """Return epsilon plus a `share` of the tolerance of budgets."""
    return epsilon * (1 + share * BUDGET_RTOL) + share * BUDGET_ATOL


def lift(posterior: npt.ArrayLike, prior: npt.ArrayLike) -> FloatArray:
    """Return ``posterior / prior``, with 0 / 0 = 1: an impossible symbol reveals nothing."""
    posterior, prior = np.asarray(posterior, float), np.asarray(prior, float)
    if prior.min(initial=1.0) > 0:
        return posterior / prior
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = posterior / prior
    return np.where((prior == 0) & (posterior == 0), 1.0, ratio)


@np.errstate(over="ignore")
def exp(value: float) -> float:
    """Return ``e^value``, or infinity where it overflows."""
    return float(np.exp(value))


@np.errstate(over="ignore")
def expm1(value: float) -> float:
    """Return ``e^value - 1``, or infinity where it overflows."""
    return float(np.expm1(value))


def covariance(shares: FloatArray) -> FloatArray:
    """Return the covariance matrix of the indicators of symbols, for each row of `shares`."""
    found = -shares[:, :, None] * shares[:, None, :]
    np.einsum("nii->ni", found)[...] += shares
    return found


def smooth_largest(normals: FloatArray, width: FloatArray) -> Support:
    """Return the largest number of each row, and a smooth function above it: a log-sum-exp."""
    largest = normals.max(axis=1)
    shares = np.exp((normals - largest[:, None]) / width[:, None])
    total = shares.sum(axis=1)
    shares /= total[:, None]
    second = covariance(shares) / width[:, None, None]
    return largest, largest + width * np.log(total), shares, second


class Measure(ABC):
    """A convex function of the posterior, with a threshold.

    Subclass it to define your own measure: `value`, `subgradient`, `threshold` and `inverse` are
    enough. ``value`` must be convex in the posterior and smallest at the prior.
    `posterior` has shape (..., n_s), `prior` has shape (n_s,).

    Examples
    --------
    >>> import numpy as np
    >>> from skprivacy import design_mechanism
    >>> from skprivacy.measures import Measure
    >>> class Hellinger(Measure):
    ...     def value(self, posterior, prior):
    ...         return ((np.sqrt(posterior) - np.sqrt(prior)) ** 2).sum(axis=-1) / 2
    ...     def subgradient(self, posterior, prior):
    ...         return (1 - np.sqrt(prior / np.maximum(posterior, 1e-12))) / 2
    ...     def threshold(self, epsilon):
    ...         return epsilon**2
    ...     def inverse(self, value):
    ...         return np.sqrt(value)
    >>> joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
    >>> mechanism = design_mechanism(joint, 0.1, measure=Hellinger())
    >>> bool(mechanism.max_leakage <= 0.1 * (1 + 1e-9))
    True
    """

    name: ClassVar[str] = "custom"
    scopes: ClassVar[tuple[Scope, ...]] = SCOPES
    #: Whether `implied_deviations` is the budget itself and not merely sufficient for it.
    is_lift_box: ClassVar[bool] = False
    #: Whether only the prior has the smallest value, so that epsilon = 0 means independence. If
    #: set, the optimum at epsilon = 0 is certified too.
    is_strict: ClassVar[bool] = False
    #: Whether merging groups of S never raises it. If set, reports say how far a budget lets the
    #: probability of a group move.
    is_monotone: ClassVar[bool] = False
    #: Whether a posterior t times as far from the prior has a value t^2 times as large.
    is_quadratic: ClassVar[bool] = False
    #: Whether for a posterior t times as far from the prior, the value rises t times as much.
    is_linear: ClassVar[bool] = False

    @abstractmethod
    def value(self, posterior: FloatArray, prior: FloatArray) -> FloatArray:
        """Return ``g(posterior)``, of shape (...,)."""

    @abstractmethod
    def subgradient(self, posterior: FloatArray, prior: FloatArray) -> FloatArray:
        """Return a subgradient of g at `posterior`, with the same shape as `posterior`."""

    @abstractmethod
    def threshold(self, epsilon: float) -> float:
        """Return the largest value of g that epsilon allows."""

    @abstractmethod
    def inverse(self, value: FloatArray | float) -> FloatArray:
        """Return the smallest epsilon that allows `value`: leakage on the scale of epsilon."""

    @property
    def jumps(self) -> bool:
        """Whether the value jumps to infinity: tangents then do not show where a budget ends."""
        return False

    def budget(self, epsilon: float, share: float = 1.0) -> float:
        """Return the largest accepted leakage: `epsilon` plus a `share` of the tolerance.

        A share below 1 leaves room for the rounding of later steps.

        Examples
        --------
        >>> from skprivacy.measures import KL
        >>> KL().budget(0.02) - 0.02 < 1e-10
        True
        """
        return budget_with_tolerance(epsilon, share)

    def leakage(self, posterior: FloatArray, prior: FloatArray) -> FloatArray:
        """Return the leakage of each posterior on the scale of epsilon, of shape (...,).

        Examples
        --------
        >>> import numpy as np
        >>> from skprivacy.measures import MaxLift
        >>> posteriors, prior = np.array([[0.5, 0.5], [0.75, 0.25]]), np.array([0.5, 0.5])
        >>> MaxLift().leakage(posteriors, prior).round(3).tolist()
        [0.0, 0.405]
        """
        return self.inverse(self.value(posterior, prior))

    def implied_deviations(self, epsilon: float) -> tuple[float, float] | None:
        """Return (low, high) such that ``low <= l - 1 <= high`` implies the budget.

        None if no such bounds are known: they are then computed from the data. These are
        deviations from 1 rather than lifts, because floats cannot distinguish a lift of
        1 + 1e-12 from one of 1 + 1.0001e-12.
        """
        return None

    def information(self, epsilon: float) -> float:
        """Return the largest I(S;Y) that a budget on average allows; infinity if unknown."""
        return math.inf

    def advantage(self, epsilon: float, prior: FloatArray) -> float:
        """Return a bound on the chance of guessing S from Y minus that without Y, in any scope."""
        return 1.0

    def curvature(self, largest_lift: float) -> float:
        """Return a k such that ``k KL(T) - g(T)`` is convex up to `largest_lift`.

        Infinity if unknown. It tightens bounds where S is nearly a function of X.
        """
        return math.inf

    def conjugate(self, normals: FloatArray, prior: FloatArray) -> Conjugate | None:
        """Return ``sup over T of normal . T - g(T)`` for each row, its slope and its curvature.

        The supremum is over distributions T, or over all T whose sum is 1. None if it is unknown
        or not smooth: then `support` may do instead.
        """
        return None

    def support(
        self, normals: FloatArray, prior: FloatArray, epsilon: float, smoothing: FloatArray
    ) -> Support | None:
        """Return the largest ``normal . (T - prior)`` that epsilon allows, for each row.

        Also a convex smooth function that is larger by about `smoothing`, one number for each row,
        with its slope and curvature. For measures that are polyhedral; on average, they must be
        linear. None if it is unknown: then fewer bounds on the utility can be proven.
        """
        return None

    def facets(self, prior: FloatArray, epsilon: float) -> tuple[FloatArray, FloatArray] | None:
        """Return (normals, offsets) such that the budget is ``normals @ T <= offsets``.

        None unless the measure is polyhedral.
        """
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the name and parameters; `get_measure` turns them into an equal object.

        Examples
        --------
        >>> from skprivacy.measures import AlphaLift, get_measure
        >>> parameters = AlphaLift(alpha=5).to_dict()
        >>> parameters
        {'name': 'alpha_lift', 'alpha': 5}
        >>> get_measure(parameters.pop("name"), **parameters)
        AlphaLift(alpha=5)
        """
        return {"name": self.name}


@dataclass(frozen=True)
class ShippedMeasure(Measure):
    """Base of the shipped measures: frozen dataclasses, by default on the scale of epsilon."""

    is_strict: ClassVar[bool] = True
    is_monotone: ClassVar[bool] = True

    def threshold(self, epsilon: float) -> float:
        return epsilon

    def inverse(self, value: npt.ArrayLike) -> FloatArray:
        return np.asarray(value, float)

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, **asdict(self)}


# Leakage of a release: P(S|y), g of each output, worst or average, then the scale of epsilon. ----


def posteriors(joint_with_y: FloatArray, p_y: FloatArray, prior: FloatArray) -> FloatArray:
    """Return P(.|y) as rows; the prior for an output of probability zero.

    joint_with_y : P(., y), one column per output; p_y : the probability of each.
    """
    rows = joint_with_y.T / np.where(p_y > 0, p_y, 1.0)[:, None]
    return np.where((p_y > 0)[:, None], rows, prior)


def output_values(measure: Measure, posteriors: FloatArray, prior: FloatArray) -> FloatArray:
    """Return g of each output, ignoring symbols of S that never occur; posteriors : P(S|y)."""
    return measure.value(posteriors[:, prior > 0], prior[prior > 0])


def value_in(scope: Scope, values: FloatArray, p_y: FloatArray) -> float:
    """Return g of a release: the largest or the average over its outputs."""
    return float(values.max() if scope == "per_output" else p_y @ values)


def leakage_in(scope: Scope, measure: Measure, values: FloatArray, p_y: FloatArray) -> float:
    """Return the leakage of a release from g of its outputs; NaN if the scope is meaningless.

    On average it is the leakage of the mean of g, never the mean of the leakages.
    """
    if scope == "average" and "average" not in measure.scopes:
        return float("nan")
    return float(measure.inverse(value_in(scope, values, p_y)))


def leakage_unchanged(scope: Scope, measure: Measure, p_sx: FloatArray) -> float:
    """Return the leakage of releasing X itself."""
    p_x, prior = p_sx.sum(axis=0), p_sx.sum(axis=1)
    values = output_values(measure, posteriors(p_sx, p_x, prior), prior)
    return leakage_in(scope, measure, values, p_x)


def leakage_of(scope: Scope, measure: Measure, p_sx: FloatArray, channel: FloatArray) -> float:
    """Return the leakage of the outputs of a channel."""
    return leakage_unchanged(scope, measure, p_sx @ channel)


# How far a budget lets the probability of a group of S move. -------------------------------------
#
# Of all posteriors with ``P(s|y) = a``, the one that scales all other groups alike leaks least,
# because merging groups never adds leakage. So a budget allows a if it allows the posterior
# ``(a, 1 - a)`` of two groups with the prior ``(p, 1 - p)``.


def posterior_ranges(measure: Measure, prior: FloatArray, epsilon: float) -> FloatArray:
    """Return the range (low, high) of each P(s|y) under a budget per output, as rows.

    (0, 1) unless the measure is monotone.
    """
    if not measure.is_monotone:
        return np.tile([0.0, 1.0], (len(prior), 1))
    limit = measure.budget(epsilon)
    return np.array([[_furthest(measure, p, limit, end) for end in (0.0, 1.0)] for p in prior])


def may_reach(measure: Measure, prior: FloatArray, epsilon: float, share: float) -> BoolArray:
    """Whether a budget per output lets each P(s|y) reach `share`; False if unknown."""
    if not measure.is_monotone:
        return np.zeros(len(prior), bool)
    limit = measure.budget(epsilon)
    return np.array([_is_allowed(measure, p, limit, share) for p in prior])


def _is_allowed(measure: Measure, p: float, limit: float, a: float) -> bool:
    """Whether the probability of a group may move from p to a."""
    if p in (0.0, 1.0):  # nothing can change
        return a == p
    return bool(measure.leakage(np.array([a, 1 - a]), np.array([p, 1 - p])) <= limit)


def _furthest(measure: Measure, p: float, limit: float, end: float) -> float:
    """Return the furthest allowed probability from p toward `end`, rounded outward."""
    if _is_allowed(measure, p, limit, end):
        return end
    inside, outside = p, end
    for _ in range(BISECTIONS):
        middle = (inside + outside) / 2
        is_allowed = _is_allowed(measure, p, limit, middle)
        inside, outside = (middle, outside) if is_allowed else (inside, middle)
    return outside
