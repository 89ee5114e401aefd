"""Certificate: proven bounds on what a channel leaks in the population, from fresh rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import beta

from .._messages import Message
from .._numerics import NEGLIGIBLE
from .._typing import FloatArray, Labels, Scope
from .._validation import about, check_integer, check_real
from ..describing.numbers import limit
from ..joint import confidence_of_each, readonly
from ..measures import KL, L1, AlphaLift, Chi2, Lip, MaxLift, Measure, Parity
from ..measures.measure import leakage_in, output_values, posteriors


@dataclass(frozen=True, eq=False)
class Box:
    """Lower and upper limits of several numbers at once, along the last axis."""

    low: FloatArray
    high: FloatArray

    def within(self, other: Box) -> Box:
        """Return the intersection of two boxes."""
        return Box(np.maximum(self.low, other.low), np.minimum(self.high, other.high))

    def summing_to(self, total: float) -> Box:
        """Return the limits tightened by a known sum of the numbers."""
        low = total - (self.high.sum(axis=-1, keepdims=True) - self.high)
        high = total - (self.low.sum(axis=-1, keepdims=True) - self.low)
        return self.within(Box(low, high))

    def times(self, other: Box) -> Box:
        """Return the limits of products."""
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Box(np.minimum.reduce(ends), np.maximum.reduce(ends))


@dataclass(frozen=True, eq=False)
class Centre:
    """Guesses of P(S) and P(Y), made before any of the rows is seen.

    The better the guesses, the tighter the limits, which hold for any guess.
    """

    prior: FloatArray
    p_y: FloatArray


@dataclass(frozen=True, eq=False)
class PopulationLimits:
    """Limits of P(S), of P(Y), and of P(S|y) - P(S), with one row per output."""

    prior: Box
    p_y: Box
    shifts: Box


def shares(counts: FloatArray, failure: float) -> Box:
    """Return Clopper-Pearson limits; each end fails with probability `failure`."""
    others = counts.sum() - counts
    low = beta.ppf(failure, np.maximum(counts, 1), others + 1)
    high = beta.ppf(1 - failure, counts + 1, np.maximum(others, 1))
    return Box(np.where(counts > 0, low, 0.0), np.where(others > 0, high, 1.0))


def means(mean: FloatArray, square: FloatArray, span: FloatArray, n: int, failure: float) -> Box:
    """Return limits of expectations; each end fails with probability `failure`.

    The empirical Bernstein inequality (Maurer and Pontil 2009, Theorem 4): for n independent
    values within an interval of length `span`, with the unbiased variance V and
    ``r = log(2 / failure)``, the expectation is below the mean plus
    ``sqrt(2 V r / n) + 7 span r / (3 (n - 1))``. square : mean of the squared values.
    """
    rate = np.log(2 / failure)
    variance = np.maximum(square - mean**2, 0.0) * n / (n - 1)
    radius = np.sqrt(2 * variance * rate / n) + 7 * span * rate / (3 * (n - 1))
    return Box(mean - radius, mean + radius)


def population_limits(
    counts: FloatArray, channel: FloatArray, centre: Centre, failure: float
) -> PopulationLimits:
    """Return limits that hold simultaneously, except with probability `failure`.

    counts : pairs (s, x) in independent rows, on which neither channel nor centre depends.

    With ``c = P(y|X)``, ``Z = (c - c0) (1{S=s} - p0)`` has the expectation
    ``P(y) (P(s|y) - P(s)) + (P(y) - c0) (P(s) - p0)`` for any constants c0 and p0. Limits of it,
    of P(y) and of P(s) imply limits of ``P(s|y) - P(s)``. The failure is split evenly among all
    ends of all limits (Bonferroni). Two groups mirror each other, so one of them suffices.
    """
    n, n_s, n_y = int(counts.sum()), len(counts), channel.shape[1]
    n_limited = 1 if n_s == 2 else n_s
    each = failure / (2 * (n_limited * n_y + n_y + n_limited))
    p_x, least, most = counts.sum(axis=0) / n, channel.min(axis=0), channel.max(axis=0)
    above = means(p_x @ (channel - least), p_x @ (channel - least) ** 2, most - least, n, each)
    p_y = Box(least + above.low, least + above.high).within(Box(least, most))
    prior = shares(counts.sum(axis=1), each).summing_to(1.0)
    moments = _moments(counts / n, channel, centre, n, each)
    p0, c0 = centre.prior, centre.p_y[:, None]
    errors = Box(p_y.low[:, None] - c0, p_y.high[:, None] - c0).times(
        Box(prior.low - p0, prior.high - p0)
    )
    low, high = moments.low - errors.high, moments.high - errors.low  # of P(y) (P(s|y) - P(s))
    if n_limited == 1:
        low, high = low[:, :1], high[:, :1]
        low, high = np.hstack([low, -high]), np.hstack([high, -low])
    possible = Box(-prior.high, 1 - prior.low)
    shifts = _divided(Box(low, high), p_y).within(possible).summing_to(0.0)
    return PopulationLimits(prior, p_y, shifts)


def _moments(p_sx: FloatArray, channel: FloatArray, centre: Centre, n: int, failure: float) -> Box:
    """Return limits of the expectation of Z, for every output and group."""
    p0, shifted, p_x = centre.prior[:, None], channel - centre.p_y, p_sx.sum(axis=0)
    mean = (p_sx - p0 * p_x) @ shifted
    square = (p_sx * (1 - 2 * p0) + p0**2 * p_x) @ shifted**2
    values = Box(shifted.min(axis=0)[:, None], shifted.max(axis=0)[:, None])
    range_ = values.times(Box(-centre.prior, 1 - centre.prior))
    return means(mean.T, square.T, range_.high - range_.low, n, failure)


def _divided(parts: Box, p_y: Box) -> Box:
    """Return limits of parts / P(y); infinite where P(y) may be zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = [part / p[:, None] for part in (parts.low, parts.high) for p in (p_y.low, p_y.high)]
    is_known = (p_y.low > 0)[:, None]
    low, high = np.minimum(*ends[:2]), np.maximum(*ends[2:])
    return Box(np.where(is_known, low, -np.inf), np.where(is_known, high, np.inf))


# The largest leakage within confidence limits, for every measure with a proof.


# Determined by the largest and the smallest lift, so by single groups.
_OF_LIFTS = (MaxLift, Lip, Parity)

# Convex in (P(S|y), P(S)), or an increasing function of something convex: largest at vertices.
_CONVEX = (KL, L1, Chi2, AlphaLift)

# Also where a "posterior" is negative.
_CONVEX_EVERYWHERE = (L1, Chi2)

# The largest number of groups of S: the number of vertices grows like 4 to the power of it.
_MOST_GROUPS: dict[Any, int] = dict.fromkeys(_OF_LIFTS, 1000) | dict.fromkeys(_CONVEX, 8)


def largest_values(measure: Measure, limits: PopulationLimits) -> FloatArray:
    """Return the largest g(P(S|y)) of each output within limits."""
    boxes = map(Box, limits.shifts.low, limits.shifts.high)
    if isinstance(measure, _OF_LIFTS):
        return np.array([_of_lifts(measure, limits.prior, shift) for shift in boxes])
    priors = vertices(limits.prior, 1.0)
    return np.array([_at_vertices(measure, limits.prior, priors, shift) for shift in boxes])


def largest_average(values: FloatArray, p_y: Box) -> float:
    """Return the largest average of values, for weights within limits that sum to 1."""
    order = np.argsort(-values)
    room = 1 - p_y.low.sum() - np.append(0.0, np.cumsum((p_y.high - p_y.low)[order])[:-1])
    weights = p_y.low[order] + np.clip(room, 0.0, (p_y.high - p_y.low)[order])
    return float(weights[weights > 0] @ values[order][weights > 0])


def _of_lifts(measure: Measure, prior: Box, shift: Box) -> float:
    """Return the largest g of a measure that depends on the largest and the smallest lift.

    A lift is 1 + shift / prior, which is largest at a corner of their limits. Any two groups are
    compared as if there were no others.
    """
    low = np.maximum(0.0, 1 + np.minimum(shift.low / prior.low, shift.low / prior.high))
    high = 1 + np.maximum(shift.high / prior.low, shift.high / prior.high)
    groups = np.arange(len(low))
    s, other = (part.ravel() for part in np.meshgrid(groups, groups))
    lifts = np.stack([high[s], low[other]], axis=-1)[s != other]
    return float(measure.value(lifts / 2, np.array([0.5, 0.5])).max())


def _at_vertices(measure: Measure, prior: Box, priors: FloatArray, shift: Box) -> float:
    """Return the largest g over vertices, where a convex function on a polytope is largest.

    Two polytopes contain (P(S), P(S|y)): limits of P(S) times limits of the shift, useful if it
    has no negative posterior; and limits of P(S) times limits of P(S|y).
    """
    shifts = vertices(shift, 0.0)
    by_shift = [_largest(measure, p + shifts, p) for p in priors]
    posterior = Box(prior.low + shift.low, prior.high + shift.high)
    points = vertices(posterior.within(Box(np.zeros(1), np.ones(1))), 1.0)
    by_posterior = [_largest(measure, points, p) for p in priors]
    return min(max(by_shift, default=np.inf), max(by_posterior, default=np.inf))


def _largest(measure: Measure, posteriors: FloatArray, prior: FloatArray) -> float:
    """Return the largest g of posteriors; infinity where it is unknown."""
    if not isinstance(measure, _CONVEX_EVERYWHERE):
        if posteriors.min(initial=0.0) < -NEGLIGIBLE:
            return np.inf
        posteriors = np.maximum(posteriors, 0.0)
    return float(measure.value(posteriors, prior).max()) if len(posteriors) else np.inf


def vertices(box: Box, total: float) -> FloatArray:
    """Return the vertices of a box cut by the plane ``sum = total``, as rows.

    All coordinates but one are at an end of their limits.
    """
    n, found = len(box.low), []
    ends = np.array(list(product((False, True), repeat=n - 1)))
    for free in range(n):
        rest = np.arange(n) != free
        points = np.empty((len(ends), n))
        points[:, rest] = np.where(ends, box.high[rest], box.low[rest])
        points[:, free] = total - points[:, rest].sum(axis=1)
        inside = points[:, free] >= box.low[free] - NEGLIGIBLE
        found.append(points[inside & (points[:, free] <= box.high[free] + NEGLIGIBLE)])
    return np.unique(np.vstack(found), axis=0)


# A theorem on parity: how much the distribution of Y can differ between groups of S, on average.


def parity_margin(group_sizes: FloatArray, channel: FloatArray, failure: float) -> float:
    """Return the most by which the parity of the population exceeds the parity of the rows.

    It fails with probability `failure`. Parity, half the sum over y of the largest minus the
    smallest P(y|s), is convex in P(Y|S), so on average over samples it is no smaller for rows
    than for the population (Jensen). Another X in one row of group s moves it by at most D / n_s,
    where D is the largest total variation between two rows of the channel. Given the sizes n_s of
    the groups, it is below its expectation by ``D sqrt(log(1 / failure) / 2 sum of 1 / n_s)``
    with probability `failure` at most (McDiarmid).
    """
    spread = np.log(1 / failure) / 2 * (1 / group_sizes).sum()
    return largest_distance(channel) * float(np.sqrt(spread))


def largest_distance(channel: FloatArray) -> float:
    """Return the largest total variation between two rows, or a bound if there are many rows."""
    if 1 < len(channel) <= 2000:
        return float(pdist(channel, "cityblock").max()) / 2
    return max(0.0, 1 - float(channel.min(axis=0).sum()))


# Certificate: bounds for the population, from rows that the design has not seen.


_OWNER = "certify"


@dataclass(frozen=True, eq=False, repr=False)
class LeakageBounds:
    """Leakage of a channel about one secret: in some rows, and bounds for their population.

    Attributes
    ----------
    measure : Measure
        The measure of leakage.
    scope : {"per_output", "average"}
        The scope of the mechanism's budget.
    confidence : float
        How often such bounds hold, at least. Each of several secrets has its share of the risk.
    n_settings : int
        Number of settings compared on these rows (for a multiple-testing correction).
    n_rows, n_groups : int
        Number of rows, and of groups of the secret among them.
    y_labels : tuple
        Names of the outputs.
    leakage, leakage_bound : ndarray of shape (n_y,)
        Leakage of each output, on the epsilon scale: in the rows, and its upper bound.
    average_leakage, average_leakage_bound : float
        The same on average over outputs; NaN for a measure without an average.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skprivacy import PrivacyFunnelTransformer
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(2, size=40_000)
    >>> rows = pd.DataFrame({"sex": sex, "band": rng.binomial(4, 0.4 + 0.2 * sex)})
    >>> fitted = PrivacyFunnelTransformer({"sex": 0.02}, sensitive="sex").fit(rows[:20_000])
    >>> fitted.certify(rows[20_000:]).secrets["sex"].holds(0.06)
    True
    """

    measure: Measure
    scope: Scope
    confidence: float
    n_settings: int
    n_rows: int
    n_groups: int
    y_labels: Labels
    leakage: FloatArray
    leakage_bound: FloatArray
    average_leakage: float
    average_leakage_bound: float

    @property
    def max_leakage(self) -> float:
        """Leakage of the worst output, in the rows."""
        return float(self.leakage.max())

    @property
    def max_leakage_bound(self) -> float:
        """Upper bound on the leakage of the worst output."""
        return float(self.leakage_bound.max())

    def bound_in(self, scope: Scope) -> float:
        """Return the bound in a scope."""
        return self.max_leakage_bound if scope == "per_output" else self.average_leakage_bound

    def holds(self, epsilon: float, scope: Scope | None = None) -> bool:
        """Return whether a budget is certified; scope : None for the scope of the mechanism."""
        return bool(self.bound_in(scope or self.scope) <= self.measure.budget(epsilon))

    def _figures(self) -> Iterator[str]:
        yield f"{self.n_rows:,} rows, {self.n_groups} groups, confidence {self.confidence:g}"
        if self.n_settings > 1:
            yield f"one of {self.n_settings} settings"
        yield f"max_leakage={self.max_leakage:.6g}, at most {limit(self.max_leakage_bound, 6)}"
        if "average" in self.measure.scopes:
            average, bound = self.average_leakage, limit(self.average_leakage_bound, 6)
            yield f"average_leakage={average:.6g}, at most {bound}"

    def _in_words(self) -> str:
        return f"{self.measure!r}: {'; '.join(self._figures())}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._in_words()})"


@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    """Leakage of a channel on rows its design has not seen, and bounds for their population.

    Each bound holds with the stated confidence, for any number of rows: nothing is approximated.
    The bounds of all secrets and all outputs hold at once, and so does the bound on the average,
    except for `Parity`, where it is a separate theorem.

    The figures of a secret are those of `LeakageBounds`. With one secret, all of them are
    members of the certificate; with several, ask ``certificate.secrets["sex"].max_leakage_bound``.

    Attributes
    ----------
    secrets : dict of LeakageBounds
        By the name of the secret; it is None if the budget was a number.
    confidence : float
        How often the bounds of all secrets hold at once, at least.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skprivacy import PrivacyFunnelTransformer
    >>> rng = np.random.default_rng(0)
    >>> sex, old = rng.integers(2, size=(2, 40_000))
    >>> band = rng.binomial(4, 0.4 + 0.1 * sex + 0.1 * old)
    >>> rows = pd.DataFrame({"sex": sex, "old": old, "band": band})
    >>> design, fresh = rows[:20_000], rows[20_000:]
    >>> fitted = PrivacyFunnelTransformer(0.02, sensitive="sex", columns="band").fit(design)
    >>> certificate = fitted.certify(fresh)
    >>> certificate.holds(0.02), certificate.holds(0.1)
    (False, True)

    With several secrets:

    >>> budgets = {"sex": 0.02, "old": 0.05, ("sex", "old"): 0.06}
    >>> fitted = PrivacyFunnelTransformer(budgets, sensitive=["sex", "old"]).fit(design)
    >>> certificate = fitted.certify(fresh)
    >>> certificate.holds({"sex": 0.1, "old": 0.2})
    True
    >>> round(certificate.secrets["sex"].confidence, 3)
    0.983
    """

    secrets: Mapping[Any, LeakageBounds]
    confidence: float

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not (name in _FIGURES or hasattr(LeakageBounds, name)):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._only(name), name)

    def _only(self, name: str) -> LeakageBounds:
        if len(self.secrets) == 1:
            return next(iter(self.secrets.values()))
        names = list(self.secrets)
        raise AttributeError(
            f"Each of the secrets {', '.join(map(repr, names))} has its own {name!r}: ask "
            f"certificate.secrets[{names[0]!r}].{name}."
        )

    def holds(self, epsilon: float | Mapping[Any, float], scope: Scope | None = None) -> bool:
        """Return whether a budget is certified, or all budgets in a dict by name of the secret.

        scope : None for the scope of the mechanism.
        """
        if not isinstance(epsilon, Mapping):
            return self._only("holds").holds(epsilon, scope)
        return all(self.secrets[name].holds(each, scope) for name, each in epsilon.items())

    def __repr__(self) -> str:
        words = [bounds._in_words() for bounds in self.secrets.values()]
        if len(words) > 1:
            words = [f"{name}: {each}" for name, each in zip(self.secrets, words, strict=True)]
            words.insert(0, f"confidence {self.confidence:g}")
        return f"{type(self).__name__}({'; '.join(words)})"


_FIGURES = {figure.name for figure in fields(LeakageBounds)}


@dataclass(frozen=True, eq=False)
class Candidate:
    """A channel to certify, with the scope of its budget and guesses of P(S) and P(Y)."""

    channel: FloatArray
    y_labels: Labels
    scope: Scope
    centre: Centre


@dataclass(frozen=True)
class Terms:
    """The measure and the confidence of a certificate."""

    measure: Measure
    confidence: float = 0.95
    n_settings: int = 1

    def __post_init__(self) -> None:
        check_real(
            _OWNER, "confidence", self.confidence, low=0, high=1, low_open=True, high_open=True
        )
        check_integer(_OWNER, "n_settings", self.n_settings, low=1)
        check_measure(self.measure, 0)

    @property
    def failure(self) -> float:
        """Probability with which the bounds of one setting may fail.

        The bounds of all settings, and of the best, then hold with the confidence (Bonferroni).
        """
        return (1 - self.confidence) / self.n_settings


def certificate_of(
    counts: Mapping[Any, FloatArray], candidates: Mapping[Any, Candidate], terms: Terms
) -> Certificate:
    """Return the `Certificate` of a channel, from counts by name of the secret."""
    each = replace(terms, confidence=confidence_of_each(terms.confidence, len(counts)))
    bounds = {name: certify(table, candidates[name], each) for name, table in counts.items()}
    return Certificate(bounds, terms.confidence)


def certify(counts: FloatArray, candidate: Candidate, terms: Terms) -> LeakageBounds:
    """Return the proven bounds for one secret; counts : pairs (s, x) in rows not seen before."""
    measure, failure = terms.measure, terms.failure
    check_measure(measure, len(counts))
    _check_rows(counts)
    channel, n = candidate.channel, counts.sum()
    prior, p_y, p_sy = counts.sum(axis=1) / n, counts.sum(axis=0) @ channel / n, counts @ channel
    values = output_values(measure, posteriors(p_sy / n, p_y, prior), prior)
    limits = population_limits(counts, channel, candidate.centre, failure)
    # The leakage in the rows is within the limits, except for rounding.
    largest = np.maximum(largest_values(measure, limits), values)
    average = leakage_in("average", measure, values, p_y)
    if isinstance(measure, Parity):
        bound = average + parity_margin(counts.sum(axis=1), channel, failure)
    elif "average" in measure.scopes:
        bound = max(average, float(measure.inverse(largest_average(largest, limits.p_y))))
    else:
        bound = float("nan")
    asked = measure, candidate.scope, terms.confidence, terms.n_settings
    leakage, most = (readonly(np.array(measure.inverse(v), float)) for v in (values, largest))
    sizes, names = (int(n), len(counts)), candidate.y_labels
    return LeakageBounds(*asked, *sizes, names, leakage, most, average, bound)


def check_measure(measure: Measure, n_groups: int) -> None:
    """Check that a bound is proven for a measure, and feasible for a number of groups of S."""
    most = _MOST_GROUPS.get(type(measure))  # no bound is proven for a subclass
    if most is None:
        problem = f" must be one of skprivacy's own: no bound is proven for {measure!r}."
        raise ValueError(about(_OWNER, "measure", problem))
    if n_groups > most:
        problem = "The rows have more than {most:,} groups of {S}, the most that {name} supports: "
        advice = "cut numbers into bins, or pool groups."
        raise ValueError(Message.of(problem + advice, most=most, name=measure.name))


def _check_rows(counts: FloatArray) -> None:
    """Check that every group has rows; the message names no group."""
    if len(counts) < 2:
        template = "The rows have a single group of {S}: there is nothing to compare it with."
        raise ValueError(Message.of(template))
    if missing := int((counts.sum(axis=1) == 0).sum()):
        raise ValueError(
            f"{missing} of the {len(counts)} groups of S seen by fit have no row here: nothing "
            f"can be certified about them. Use more rows, or pool groups."
        )
