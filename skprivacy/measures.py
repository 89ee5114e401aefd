r"""What leakage is: convex functions of the posterior ``P(S | Y = y)``.

A released symbol y turns the prior ``P(S)`` into a posterior ``T = P(S | Y = y)`` with lifts
``l = T / P(S)``. A measure is a convex ``g(T)`` with a threshold that depends on epsilon; a
mechanism is private when ``g(T) <= threshold(epsilon)`` for every output, or on average over
outputs. Nothing outside this module has to know which measure is in use.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from itertools import product
from typing import ClassVar

import numpy as np
from scipy.special import kl_div

from ._validation import check_choice, check_real, message

SCOPES = ("per_output", "average")

# A budget holds when leakage <= epsilon (1 + BUDGET_RTOL) + BUDGET_ATOL.
BUDGET_RTOL = 1e-9
BUDGET_ATOL = 1e-12

# Where a posterior is zero some measures have no tangent: gradients are taken at this lift.
_SMALLEST_LIFT = 1e-12

_MOST_FACETS = 2**16


def budget_with_tolerance(epsilon, share=1.0):
    """Return epsilon and a `share` of the tolerance of budgets."""
    return epsilon * (1 + share * BUDGET_RTOL) + share * BUDGET_ATOL


def lift(posterior, prior):
    """Return ``posterior / prior``, with 0 / 0 = 1: an impossible symbol says nothing."""
    posterior, prior = np.asarray(posterior, float), np.asarray(prior, float)
    if prior.min(initial=1.0) > 0:
        return posterior / prior
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = posterior / prior
    return np.where((prior == 0) & (posterior == 0), 1.0, ratio)


@np.errstate(over="ignore")
def _exp(value):
    return float(np.exp(value))


@np.errstate(over="ignore")
def _expm1(value):
    return float(np.expm1(value))


class Measure(ABC):
    """A convex function of the posterior, and its threshold.

    Subclass it to bring a measure of your own: `value`, `subgradient`, `threshold` and
    `inverse` are enough. ``value`` must be convex in the posterior and smallest at the prior.
    `posterior` has shape (..., n_s), `prior` has shape (n_s,).

    Examples
    --------
    >>> import numpy as np
    >>> from skprivacy import Measure, design_mechanism
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
    scopes: ClassVar[tuple[str, ...]] = SCOPES
    #: Whether `implied_deviations` is the budget itself and not merely sufficient for it.
    is_lift_box: ClassVar[bool] = False
    #: Whether the prior alone has the smallest value, so that epsilon = 0 is independence. Say so
    #: of a measure of your own, and its optimum at epsilon = 0 is certified too.
    is_strict: ClassVar[bool] = False

    @abstractmethod
    def value(self, posterior, prior):
        """Return ``g(posterior)``, of shape (...,)."""

    @abstractmethod
    def subgradient(self, posterior, prior):
        """Return a subgradient of g at `posterior`, of the shape of `posterior`."""

    @abstractmethod
    def threshold(self, epsilon):
        """Return the largest value of g that epsilon allows."""

    @abstractmethod
    def inverse(self, value):
        """Return the smallest epsilon that allows `value`: leakage on the eps scale."""

    def budget(self, epsilon, share=1.0):
        """Return the largest leakage that is accepted under `epsilon`.

        `share` < 1 leaves part of the tolerance to the rounding of later steps.
        """
        return budget_with_tolerance(epsilon, share)

    def leakage(self, posterior, prior):
        """Return the leakage of each posterior on the eps scale, of shape (...,)."""
        return self.inverse(self.value(posterior, prior))

    def implied_deviations(self, epsilon):
        """Return (low, high): the budget surely holds where ``low <= l - 1 <= high``.

        None where the measure does not know: they are then found from the data. Deviations from
        1, and not lifts: a lift of 1 + 1e-12 cannot be told from 1 + 1.0001e-12 in floats.
        """
        return None

    def information(self, epsilon):
        """Return the largest I(S;Y) that a budget of epsilon on average allows, if it is known.

        Infinity where it is not.
        """
        return math.inf

    def advantage(self, epsilon, prior):
        """Return how much oftener than blindly S can be guessed from Y, at most, in any scope."""
        return 1.0

    def curvature(self, largest_lift):
        """Return a k such that ``k KL(T) - g(T)`` is convex where lifts are bounded, if known.

        Infinity where none is. It makes bounds tighter where S is nearly a function of X.
        """
        return math.inf

    def facets(self, prior, epsilon):
        """Return (normals, offsets) such that the budget is ``normals @ T <= offsets``.

        Only for polyhedral measures; None for the others.
        """
        return None

    def to_dict(self):
        """Return the name and parameters, from which `get_measure` makes an equal object."""
        return {"name": self.name}


class _Shipped(Measure):
    """The shipped measures: frozen dataclasses that compare and print by their parameters."""

    is_strict: ClassVar[bool] = True

    def to_dict(self):
        return {"name": self.name, **asdict(self)}


class _LiftScale(_Shipped):
    """Measures on the scale of the lift itself: threshold ``e^eps``."""

    def threshold(self, epsilon):
        return _exp(epsilon)

    def inverse(self, value):
        return np.log(value)


class _BoundedLifts(_LiftScale):
    """Measures whose budget bounds every lift."""

    is_lift_box: ClassVar[bool] = True

    def information(self, epsilon):
        """Maximal leakage is not below mutual information."""
        return epsilon

    def advantage(self, epsilon, prior):
        """With lifts up to M, max T <= M max ps, and total variation is at most 1 - 1/M."""
        return min(-math.expm1(-epsilon), _expm1(epsilon) * float(np.max(prior)))


@dataclass(frozen=True)
class KL(_Shipped):
    """The paper's L(y), the Kullback-Leibler divergence of the posterior from the prior.

    Its average over outputs is ``I(S;Y)``: scope "average" is the privacy funnel itself.

    Examples
    --------
    >>> from skprivacy import KL
    >>> round(float(KL().value([1.0, 0.0], [0.5, 0.5])), 6)
    0.693147
    """

    name: ClassVar[str] = "kl"

    def value(self, posterior, prior):
        """Return sum ps (l log l - l + 1): nonnegative also after rounding."""
        return kl_div(posterior, prior).sum(axis=-1)

    def subgradient(self, posterior, prior):
        return np.log(np.maximum(lift(posterior, prior), _SMALLEST_LIFT))

    def threshold(self, epsilon):
        return epsilon

    def inverse(self, value):
        return np.asarray(value, float)

    def information(self, epsilon):
        return epsilon

    def advantage(self, epsilon, prior):
        """By Pinsker's inequality, and the root is concave."""
        return min(1.0, math.sqrt(epsilon / 2))

    def curvature(self, largest_lift):
        return 1.0

    def implied_deviations(self, epsilon):
        return -1.0, _expm1(epsilon)


@dataclass(frozen=True)
class L1(_Shipped):
    """The l1 distance of the posterior from the prior: twice the total variation.

    Examples
    --------
    >>> from skprivacy import L1
    >>> float(L1().value([1.0, 0.0], [0.5, 0.5]))
    1.0
    """

    name: ClassVar[str] = "l1"

    def value(self, posterior, prior):
        return np.abs(np.asarray(posterior) - prior).sum(axis=-1)

    def subgradient(self, posterior, prior):
        return np.sign(np.asarray(posterior) - prior)

    def threshold(self, epsilon):
        return epsilon

    def inverse(self, value):
        return np.asarray(value, float)

    def advantage(self, epsilon, prior):
        """Half of l1 is total variation, which bounds it."""
        return min(1.0, epsilon / 2)

    def implied_deviations(self, epsilon):
        """Lifts up to M give l1 <= 2 (1 - 1/M), tight; not the paper's M - 1."""
        return -1.0, (epsilon / (2 - epsilon) if epsilon < 2 else math.inf)

    def facets(self, prior, epsilon):
        """Sum over A of (T - ps) <= eps / 2 for every proper subset A of the symbols of S."""
        n_s = len(prior)
        if 2**n_s > _MOST_FACETS:
            raise ValueError(f"l1 has 2^{n_s} - 2 facets here: take subgradients instead.")
        normals = np.array(list(product((0.0, 1.0), repeat=n_s)))[1:-1]
        return normals, normals @ prior + epsilon / 2


@dataclass(frozen=True)
class Chi2(_Shipped):
    """The chi-squared divergence of the posterior from the prior; its threshold is eps^2.

    Examples
    --------
    >>> from skprivacy import Chi2
    >>> float(Chi2().value([1.0, 0.0], [0.5, 0.5]))
    1.0
    """

    name: ClassVar[str] = "chi2"

    def value(self, posterior, prior):
        return ((np.asarray(posterior) - prior) * (lift(posterior, prior) - 1)).sum(axis=-1)

    def subgradient(self, posterior, prior):
        return 2 * (lift(posterior, prior) - 1)

    def threshold(self, epsilon):
        return epsilon * epsilon

    def inverse(self, value):
        return np.sqrt(value)

    def information(self, epsilon):
        """The divergence is at most the logarithm of 1 + chi2, which is concave."""
        return math.log1p(epsilon * epsilon)

    def advantage(self, epsilon, prior):
        """Twice the total variation is not above the root of chi2, which is concave."""
        return min(1.0, epsilon / 2)

    def curvature(self, largest_lift):
        """The second derivatives are 2 / ps, and those of KL are 1 / T >= 1 / (M ps)."""
        return 2 * largest_lift

    def implied_deviations(self, epsilon):
        """Lifts up to M give chi2 <= M - 1, tight; not the paper's (M - 1)^2."""
        return -1.0, epsilon * epsilon


@dataclass(frozen=True)
class MaxLift(_BoundedLifts):
    """The largest lift. On average over outputs its logarithm is maximal leakage.

    Examples
    --------
    >>> from skprivacy import MaxLift
    >>> float(MaxLift().value([0.75, 0.25], [0.5, 0.5]))
    1.5
    """

    name: ClassVar[str] = "max_lift"

    def value(self, posterior, prior):
        return lift(posterior, prior).max(axis=-1)

    def subgradient(self, posterior, prior):
        return _lift_gradient(lift(posterior, prior).argmax(axis=-1), prior)

    def implied_deviations(self, epsilon):
        return -1.0, _expm1(epsilon)

    def facets(self, prior, epsilon):
        return np.eye(len(prior)), self.threshold(epsilon) * np.asarray(prior)


@dataclass(frozen=True)
class AlphaLift(_LiftScale):
    """The alpha-norm of the lift, ``(sum ps l^alpha)^(1/alpha)``.

    On average it is Sibson information of order alpha, times (alpha - 1) / alpha.

    Parameters
    ----------
    alpha : float, default=2
        Larger than 1 and finite; `MaxLift` is its limit.

    Examples
    --------
    >>> from skprivacy import AlphaLift
    >>> round(float(AlphaLift(alpha=2).value([1.0, 0.0], [0.5, 0.5])), 6)
    1.414214
    """

    alpha: float = 2.0
    name: ClassVar[str] = "alpha_lift"

    def __post_init__(self):
        check_real("AlphaLift", "alpha", self.alpha, low=1, low_open=True, high_open=True)

    def value(self, posterior, prior):
        lifts = lift(posterior, prior)
        largest = lifts.max(axis=-1, keepdims=True)  # factored out against overflow
        with np.errstate(invalid="ignore"):  # inf / inf, where an impossible symbol has mass
            mean = ((lifts / largest) ** self.alpha * prior).sum(axis=-1)
        largest = largest[..., 0]
        return np.where(np.isinf(largest), np.inf, largest * mean ** (1 / self.alpha))

    def subgradient(self, posterior, prior):
        norm = self.value(posterior, prior)[..., None]
        return (lift(posterior, prior) / norm) ** (self.alpha - 1)

    def information(self, epsilon):
        """Sibson information does not fall with alpha, and for alpha = 1 it is I(S;Y)."""
        return epsilon * self.alpha / (self.alpha - 1)

    def advantage(self, epsilon, prior):
        """From alpha = 2 on the norm bounds chi2; below, Sibson information bounds I(S;Y)."""
        if self.alpha >= 2:
            return min(1.0, math.sqrt(_expm1(2 * epsilon)) / 2)
        return min(1.0, math.sqrt(self.information(epsilon) / 2))

    def curvature(self, largest_lift):
        """The second derivatives are at most (alpha - 1) (l / g)^(alpha - 1) / T, and g >= 1."""
        return (self.alpha - 1) * largest_lift ** (self.alpha - 1)

    def implied_deviations(self, epsilon):
        """Lifts up to M give an alpha-norm of at most M^((alpha - 1) / alpha), tight."""
        return -1.0, _expm1(epsilon * self.alpha / (self.alpha - 1))


@dataclass(frozen=True)
class Lip(_BoundedLifts):
    """Local information privacy: ``e^-lower <= l <= e^epsilon`` for every symbol of S.

    Symmetric: ``g = max(max l, 1 / min l)``, which is convex and does not depend on epsilon.
    With a `lower` of its own, g is the largest lift where the lower bound holds and infinite
    elsewhere. It says nothing useful on average over outputs: scope "per_output" only.

    Parameters
    ----------
    lower : float, default=None
        The bound on ``-log l``; None: the same as epsilon.

    Examples
    --------
    >>> from skprivacy import Lip
    >>> float(Lip().value([0.8, 0.2], [0.5, 0.5]))
    2.5
    >>> float(Lip(lower=1.0).value([0.8, 0.2], [0.5, 0.5]))
    1.6
    """

    lower: float | None = None
    name: ClassVar[str] = "lip"
    scopes: ClassVar[tuple[str, ...]] = ("per_output",)

    def __post_init__(self):
        if self.lower is not None:
            check_real("Lip", "lower", self.lower, low=0)

    @property
    def _smallest_lift(self):
        """The lower bound has the tolerance that every budget has."""
        return _exp(-budget_with_tolerance(self.lower))

    def budget(self, epsilon, share=1.0):
        """Not even an infinite epsilon allows a lift below `lower`: infinity is never accepted."""
        most = np.inf if self.lower is None else np.finfo(float).max
        return min(budget_with_tolerance(epsilon, share), most)

    def value(self, posterior, prior):
        lifts = lift(posterior, prior)
        largest, smallest = lifts.max(axis=-1), lifts.min(axis=-1)
        if self.lower is not None:
            return np.where(smallest >= self._smallest_lift, largest, np.inf)
        with np.errstate(divide="ignore", over="ignore"):
            return np.maximum(largest, 1 / smallest)

    def subgradient(self, posterior, prior):
        """Of the bound that is broken most; of the clamped lift where a posterior is zero."""
        lifts = lift(posterior, prior)
        smallest = np.maximum(lifts.min(axis=-1), _SMALLEST_LIFT)
        if self.lower is None:
            low = 1 / smallest > lifts.max(axis=-1)
        else:
            low = smallest < self._smallest_lift
        row = np.where(low, lifts.argmin(axis=-1), lifts.argmax(axis=-1))
        slope = np.where(low, -1 / smallest**2, 1.0)
        return slope[..., None] * _lift_gradient(row, prior)

    def implied_deviations(self, epsilon):
        return _expm1(-(epsilon if self.lower is None else self.lower)), _expm1(epsilon)

    def facets(self, prior, epsilon):
        low, high = self.implied_deviations(epsilon)
        eye, prior = np.eye(len(prior)), np.asarray(prior)
        return np.vstack([eye, -eye]), np.concatenate([(1 + high) * prior, -(1 + low) * prior])


def _lift_gradient(symbol, prior):
    """Return the gradient of the lift of each `symbol`."""
    return np.eye(len(prior))[symbol] / np.asarray(prior)[symbol][..., None]


MEASURES = {cls.name: cls for cls in (KL, L1, Chi2, MaxLift, AlphaLift, Lip)}


def get_measure(measure, owner="get_measure", **parameters):
    """Return a measure object from a name, or the object itself.

    Examples
    --------
    >>> from skprivacy import get_measure
    >>> get_measure("alpha_lift")
    AlphaLift(alpha=2.0)
    """
    if isinstance(measure, Measure):
        if parameters:
            raise TypeError(f"{owner} got {sorted(parameters)} beside the object {measure!r}.")
        return measure
    if isinstance(measure, type) and issubclass(measure, Measure):
        requirement = f"an instance: write {measure.__name__}(), not the class"
        raise TypeError(message(owner, "measure", requirement, measure))
    check_choice(owner, "measure", measure, MEASURES, " or an instance of skprivacy.Measure")
    return MEASURES[measure](**parameters)


def check_scope(owner, scope, measure):
    """Return `scope`, if `measure` has it."""
    check_choice(owner, "scope", scope, SCOPES)
    if scope not in measure.scopes:
        raise ValueError(
            f"The measure {measure!r} has no scope {scope!r}: it says nothing useful there. "
            f"{owner} can serve it with scope={measure.scopes[0]!r}."
        )
    return scope
