"""Certificate: what a channel leaks in the population at most, proven by fresh rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import beta

from .._messages import SENSITIVE, Message, Parameter
from .._typing import FloatArray, Labels, Scope
from .._validation import check_integer, check_real
from ..describing.numbers import limit
from ..joint import confidence_of_each, readonly
from ..measures import KL, L1, AlphaLift, Chi2, Lip, MaxLift, Measure, Parity
from ..measures.measure import leakage_in, output_values, posteriors


@dataclass(frozen=True, eq=False)
class Box:
    """Limits of several numbers at once, along the last axis."""

    low: FloatArray
    high: FloatArray

    def within(self, other: Box) -> Box:
        """Return the limits that both say."""
        return Box(np.maximum(self.low, other.low), np.minimum(self.high, other.high))

    def summing_to(self, total: float) -> Box:
        """Return the limits that follow where the sum of the numbers is known too."""
        low = total - (self.high.sum(axis=-1, keepdims=True) - self.high)
        high = total - (self.low.sum(axis=-1, keepdims=True) - self.low)
        return self.within(Box(low, high))

    def times(self, other: Box) -> Box:
        """Return the limits of products."""
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Box(np.minimum.reduce(ends), np.maximum.reduce(ends))


@dataclass(frozen=True, eq=False)
class Centre:
    """What P(S) and P(Y) are thought to be, before any of the rows is seen.

    The closer they are, the closer are the limits; the limits hold whatever they are.
    """

    prior: FloatArray
    p_y: FloatArray


@dataclass(frozen=True, eq=False)
class PopulationLimits:
    """Limits of P(S), of P(Y), and of P(S|y) - P(S) with one row per output."""

    prior: Box
    p_y: Box
    shifts: Box


def shares(counts: FloatArray, failure: float) -> Box:
    """Return the limits of Clopper and Pearson; each end fails with probability `failure`."""
    others = counts.sum() - counts
    low = beta.ppf(failure, np.maximum(counts, 1), others + 1)
    high = beta.ppf(1 - failure, counts + 1, np.maximum(others, 1))
    return Box(np.where(counts > 0, low, 0.0), np.where(others > 0, high, 1.0))


def means(mean: FloatArray, square: FloatArray, span: FloatArray, n: int, failure: float) -> Box:
    """Return limits of expectations; each end fails with probability `failure`.

    The empirical Bernstein inequality (Maurer and Pontil 2009, Theorem 4): for n independent
    values within an interval of length `span`, with the unbiased variance V and
    ``r = log(2 / failure)``, the expectation is below the mean plus
    ``sqrt(2 V r / n) + 7 span r / (3 (n - 1))``. square : the mean of the squared values.
    """
    rate = np.log(2 / failure)
    variance = np.maximum(square - mean**2, 0.0) * n / (n - 1)
    radius = np.sqrt(2 * variance * rate / n) + 7 * span * rate / (3 * (n - 1))
    return Box(mean - radius, mean + radius)


def population_limits(
    counts: FloatArray, channel: FloatArray, centre: Centre, failure: float
) -> PopulationLimits:
    """Return limits that all hold at once, but for a probability of `failure`.

    counts : of pairs (s, x), of independent rows that neither channel nor centre depends on.

    With ``c = P(y|X)``, ``Z = (c - c0) (1{S=s} - p0)`` has the expectation
    ``P(y) (P(s|y) - P(s)) + (P(y) - c0) (P(s) - p0)`` for any constants c0 and p0. Limits of it,
    of P(y) and of P(s) are those of ``P(s|y) - P(s)`` too. The failure is split evenly among all
    ends of all limits (Bonferroni). Two groups mirror each other: one of them is enough.
    """
    n, n_s, n_y = int(counts.sum()), len(counts), channel.shape[1]
    n_limited = 1 if n_s == 2 else n_s
    each = failure / (2 * (n_limited * n_y + n_y + n_limited))
    p_x, least, most = counts.sum(axis=0) / n, channel.min(axis=0), channel.max(axis=0)
    above = means(p_x @ (channel - least), p_x @ (channel - least) ** 2, most - least, n, each)
    p_y = Box(least + above.low, least + above.high).within(Box(least, most))
    prior = shares(counts.sum(axis=1), each).summing_to(1.0)
    covariances = _moments(counts / n, channel, centre, n, each)
    known_y, known_s = centre.p_y[:, None], centre.prior
    beside = Box(p_y.low[:, None] - known_y, p_y.high[:, None] - known_y).times(
        Box(prior.low - known_s, prior.high - known_s)
    )
    parts = Box(covariances.low - beside.high, covariances.high - beside.low)
    if n_limited == 1:
        low, high = parts.low[:, :1], parts.high[:, :1]
        parts = Box(np.hstack([low, -high]), np.hstack([high, -low]))
    anything = Box(-prior.high, 1 - prior.low)
    shifts = _divided(parts, p_y).within(anything).summing_to(0.0)
    return PopulationLimits(prior, p_y, shifts)


def _moments(p_sx: FloatArray, channel: FloatArray, centre: Centre, n: int, failure: float) -> Box:
    """Return limits of the expectation of Z, for every output and every group."""
    p0, shifted, p_x = centre.prior[:, None], channel - centre.p_y, p_sx.sum(axis=0)
    mean = (p_sx - p0 * p_x) @ shifted
    square = (p_sx * (1 - 2 * p0) + p0**2 * p_x) @ shifted**2
    values = Box(shifted.min(axis=0)[:, None], shifted.max(axis=0)[:, None])
    range_ = values.times(Box(-centre.prior, 1 - centre.prior))
    return means(mean.T, square.T, range_.high - range_.low, n, failure)


def _divided(parts: Box, p_y: Box) -> Box:
    """Return limits of parts / P(y); none where P(y) may be zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = [part / p[:, None] for part in (parts.low, parts.high) for p in (p_y.low, p_y.high)]
    is_known = (p_y.low > 0)[:, None]
    low, high = np.minimum(*ends[:2]), np.maximum(*ends[2:])
    return Box(np.where(is_known, low, -np.inf), np.where(is_known, high, np.inf))


# The largest leakage within confidence limits, by every measure for which it is known.


# Largest and smallest lifts decide: each group is looked at on its own.
_OF_LIFTS = (MaxLift, Lip, Parity)

# Convex in (P(S|y), P(S)), or an increasing function of what is: largest at vertices.
_CONVEX = (KL, L1, Chi2, AlphaLift)

# Even where a "posterior" is negative.
_CONVEX_EVERYWHERE = (L1, Chi2)

# The vertices are counted in powers of four of the groups.
_MOST_GROUPS: dict[type[Measure], int] = {
    **dict.fromkeys(_OF_LIFTS, 1000),
    **dict.fromkeys(_CONVEX, 8),
}

_ROUNDING = 1e-12


def most_groups(measure: Measure) -> int | None:
    """Return for how many groups of S a bound is computed; None where none is proven."""
    return _MOST_GROUPS.get(type(measure))  # a subclass may be something else


def largest_values(measure: Measure, limits: PopulationLimits) -> FloatArray:
    """Return the largest g of each output within limits."""
    boxes = map(Box, limits.shifts.low, limits.shifts.high)
    if isinstance(measure, _OF_LIFTS):
        return np.array([_of_lifts(measure, limits.prior, shift) for shift in boxes])
    priors = vertices(limits.prior, 1.0)
    return np.array([_at_vertices(measure, limits.prior, priors, shift) for shift in boxes])


def largest_average(values: FloatArray, p_y: Box) -> float:
    """Return the largest average of values, with weights within limits that sum to 1."""
    order = np.argsort(-values)
    room = 1 - p_y.low.sum() - np.append(0.0, np.cumsum((p_y.high - p_y.low)[order])[:-1])
    weights = p_y.low[order] + np.clip(room, 0.0, (p_y.high - p_y.low)[order])
    return float(weights[weights > 0] @ values[order][weights > 0])


def _of_lifts(measure: Measure, prior: Box, shift: Box) -> float:
    """Return the largest g where it depends on the largest and on the smallest lift.

    A lift is 1 + shift / prior, which is largest at a corner of their limits. Any two groups are
    compared as if there were no others.
    """
    ends = [shift.low / prior.low, shift.low / prior.high]
    low = np.maximum(0.0, 1 + np.minimum(*ends))
    high = 1 + np.maximum(shift.high / prior.low, shift.high / prior.high)
    groups = np.arange(len(low))
    s, other = (part.ravel() for part in np.meshgrid(groups, groups))
    lifts = np.stack([high[s], low[other]], axis=-1)[s != other]
    return float(measure.value(lifts / 2, np.array([0.5, 0.5])).max())


def _at_vertices(measure: Measure, prior: Box, priors: FloatArray, shift: Box) -> float:
    """Return the largest g at vertices: a convex function has its maximum over a polytope there.

    There are two polytopes that hold (P(S), P(S|y)): limits of P(S) times limits of the shift,
    which serves where it has no negative posterior; and limits of P(S) times limits of P(S|y).
    """
    shifts = vertices(shift, 0.0)
    by_shift = [_largest(measure, p + shifts, p) for p in priors]
    posterior = Box(prior.low + shift.low, prior.high + shift.high)
    points = vertices(posterior.within(Box(np.zeros(1), np.ones(1))), 1.0)
    by_posterior = [_largest(measure, points, p) for p in priors]
    return min(max(by_shift, default=np.inf), max(by_posterior, default=np.inf))


def _largest(measure: Measure, posteriors: FloatArray, prior: FloatArray) -> float:
    """Return the largest g of posteriors; infinity where it is not known."""
    if not isinstance(measure, _CONVEX_EVERYWHERE):
        if posteriors.min(initial=0.0) < -_ROUNDING:
            return np.inf
        posteriors = np.maximum(posteriors, 0.0)
    return float(measure.value(posteriors, prior).max()) if len(posteriors) else np.inf


def vertices(box: Box, total: float) -> FloatArray:
    """Return the vertices of a box cut by the plane of a sum, as rows.

    All coordinates but one are at an end of their limits.
    """
    n, found = len(box.low), []
    ends = np.array(list(product((False, True), repeat=n - 1)))
    for free in range(n):
        rest = np.arange(n) != free
        points = np.empty((len(ends), n))
        points[:, rest] = np.where(ends, box.high[rest], box.low[rest])
        points[:, free] = total - points[:, rest].sum(axis=1)
        inside = points[:, free] >= box.low[free] - _ROUNDING
        found.append(points[inside & (points[:, free] <= box.high[free] + _ROUNDING)])
    return np.unique(np.vstack(found), axis=0)


# A theorem on parity: how differently a release comes to the groups of S, on average.


# Beyond this many rows of a channel their distances are bounded rather than computed.
_MOST_ROWS = 2000


def parity_margin(group_sizes: FloatArray, channel: FloatArray, failure: float) -> float:
    """Return how far the parity of the population exceeds that of rows, at most.

    It fails with probability `failure`. ``half the sum over y of the largest minus the smallest
    P(y|s)`` is convex in P(Y|S), so on average over samples it is no smaller for rows than for
    the population (Jensen). Another X in one row of group s moves it by at most D / n_s, where D
    is the largest total variation between two rows of the channel. Given the sizes n_s of the
    groups, it is below its expectation by ``D sqrt(log(1 / failure) / 2 sum of 1 / n_s)`` with
    probability `failure` at most (McDiarmid).
    """
    spread = np.log(1 / failure) / 2 * (1 / group_sizes).sum()
    return largest_distance(channel) * float(np.sqrt(spread))


def largest_distance(channel: FloatArray) -> float:
    """Return the largest total variation between two rows, or a bound where there are many."""
    if 1 < len(channel) <= _MOST_ROWS:
        return float(pdist(channel, "cityblock").max()) / 2
    return max(0.0, 1 - float(channel.min(axis=0).sum()))


# Certificate: what a channel leaks at most in the population, by rows that it has not seen.


_OWNER = "certify"


@dataclass(frozen=True, eq=False, repr=False)
class LeakageBounds:
    """What a channel leaks about one secret, in some rows and at most in their population.

    Attributes
    ----------
    measure : Measure
        The measure of leakage.
    scope : {"per_output", "average"}
        What the budget of the mechanism is about.
    confidence : float
        How often such bounds hold, at least. Each of several secrets has its share of the risk.
    n_settings : int
        Of how many settings the best may have been chosen on these rows.
    n_rows, n_groups : int
        How many rows there were, and how many groups of the secret they had.
    y_labels : tuple
        Names of the outputs.
    leakage, leakage_bound : ndarray of shape (n_y,)
        What each output leaks, on the epsilon scale: in the rows, and at most.
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
        """The leakage of the worst output, in the rows."""
        return float(self.leakage.max())

    @property
    def max_leakage_bound(self) -> float:
        """What the worst output leaks at most."""
        return float(self.leakage_bound.max())

    def bound_in(self, scope: Scope) -> float:
        """Return the bound that a budget of some scope is about."""
        return self.max_leakage_bound if scope == "per_output" else self.average_leakage_bound

    def holds(self, epsilon: float, scope: Scope | None = None) -> bool:
        """Return whether a budget is certified; scope : None for that of the mechanism."""
        return bool(self.bound_in(scope or self.scope) <= self.measure.budget(epsilon))

    def _figures(self) -> Iterator[str]:
        yield f"{self.n_rows:,} rows, {self.n_groups} groups, confidence {self.confidence:g}"
        if self.n_settings > 1:
            yield f"one of {self.n_settings} settings"
        yield f"max_leakage={self.max_leakage:.6g}, at most {limit(self.max_leakage_bound, 6)}"
        if "average" in self.measure.scopes:
            average, bound = self.average_leakage, limit(self.average_leakage_bound, 6)
            yield f"average_leakage={average:.6g}, at most {bound}"

    @property
    def _said(self) -> str:
        return f"{self.measure!r}: {'; '.join(self._figures())}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._said})"


@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    """What a channel leaks on rows that its design has not seen, and at most in their population.

    Each bound holds with the stated confidence, for any number of rows: nothing is approximated.
    Those of all secrets and all outputs hold at once; so does that of the average, but for
    `Parity`, where it is a theorem of its own.

    The figures of a secret are those of `LeakageBounds`. With one secret, all of them are
    members of the certificate; with several, ask ``certificate.secrets["sex"].max_leakage_bound``.

    Attributes
    ----------
    secrets : dict of LeakageBounds
        By the name of the secret; the only one of a budget that is a number is called None.
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
        """Return whether a budget is certified, or those of several secrets by their names.

        scope : None for that of the mechanism.
        """
        if not isinstance(epsilon, Mapping):
            return self._only("holds").holds(epsilon, scope)
        return all(self.secrets[name].holds(each, scope) for name, each in epsilon.items())

    def __repr__(self) -> str:
        is_one = len(self.secrets) == 1
        each = (one._said if is_one else f"{n}: {one._said}" for n, one in self.secrets.items())
        together = [f"confidence {self.confidence:g}"] if len(self.secrets) > 1 else []
        return f"{type(self).__name__}({'; '.join([*together, *each])})"


_FIGURES = {figure.name for figure in fields(LeakageBounds)}


@dataclass(frozen=True, eq=False)
class Candidate:
    """What is to be certified: a channel, its outputs, and what P(S) and P(Y) are thought to be.

    scope : of its budget.
    """

    channel: FloatArray
    y_labels: Labels
    scope: Scope
    centre: Centre


@dataclass(frozen=True)
class Terms:
    """What a certificate is to say: by which measure, and how often it holds."""

    measure: Measure
    confidence: float = 0.95
    n_settings: int = 1

    def __post_init__(self) -> None:
        inside: dict[str, Any] = {"low": 0, "high": 1, "low_open": True, "high_open": True}
        check_real(_OWNER, "confidence", self.confidence, **inside)
        check_integer(_OWNER, "n_settings", self.n_settings, low=1)
        check_measure(self.measure, 0)

    @property
    def failure(self) -> float:
        """How often the bounds of one setting may fail.

        Those of k settings then all hold with the confidence (Bonferroni), and so does the best.
        """
        return (1 - self.confidence) / self.n_settings


def certificate_of(
    counts: Mapping[Any, FloatArray], candidates: Mapping[Any, Candidate], terms: Terms
) -> Certificate:
    """Return the `Certificate` of a channel by the counts of each secret, by its name."""
    of_each = confidence_of_each(terms.confidence, len(counts))
    each = replace(terms, confidence=of_each)
    found = {name: certify(table, candidates[name], each) for name, table in counts.items()}
    return Certificate(found, terms.confidence)


def certify(counts: FloatArray, candidate: Candidate, terms: Terms) -> LeakageBounds:
    """Return what is proven about a secret by counts of pairs (s, x), of rows not seen before."""
    measure, failure = terms.measure, terms.failure
    check_measure(measure, len(counts))
    _check_rows(counts)
    channel, n = candidate.channel, counts.sum()
    prior, p_y, p_sy = counts.sum(axis=1) / n, counts.sum(axis=0) @ channel / n, counts @ channel
    values = output_values(measure, posteriors(p_sy / n, p_y, prior), prior)
    limits = population_limits(counts, channel, candidate.centre, failure)
    # What the rows leak is within the limits, but for rounding.
    largest = np.maximum(largest_values(measure, limits), values)
    average = leakage_in("average", measure, values, p_y)
    if isinstance(measure, Parity):
        bound = average + parity_margin(counts.sum(axis=1), channel, failure)
    elif "average" in measure.scopes:
        bound = max(average, float(measure.inverse(largest_average(largest, limits.p_y))))
    else:
        bound = float("nan")
    return LeakageBounds(
        measure,
        candidate.scope,
        terms.confidence,
        terms.n_settings,
        int(n),
        len(counts),
        candidate.y_labels,
        _leakages(measure, values),
        _leakages(measure, largest),
        average,
        bound,
    )


def _leakages(measure: Measure, values: FloatArray) -> FloatArray:
    return readonly(np.array(measure.inverse(values), dtype=float))


def check_measure(measure: Measure, n_groups: int) -> None:
    """Check that a bound of a measure is proven, and within reach, for so many groups of S."""
    most = most_groups(measure)
    if most is None:
        raise ValueError(
            Message(
                Parameter("measure", _OWNER),
                f" must be one of those that are shipped: no bound is proven for {measure!r}.",
            )
        )
    if n_groups > most:
        raise ValueError(
            Message(
                f"The rows have more than {most:,} groups of ",
                SENSITIVE,
                f", the most that {measure.name} is certified for: cut numbers into bins, or pool "
                f"groups.",
            )
        )


def _check_rows(counts: FloatArray) -> None:
    """Check that every group has rows; their values are not named."""
    if len(counts) < 2:
        told = ": there is nothing to compare it with."
        raise ValueError(Message("The rows have a single group of ", SENSITIVE, told))
    if missing := int((counts.sum(axis=1) == 0).sum()):
        raise ValueError(
            f"{missing} of the {len(counts)} groups of S that fit saw have no row here: nothing "
            f"can be certified about them. Use more rows, or pool groups."
        )
