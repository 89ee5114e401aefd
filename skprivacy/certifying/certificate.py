"""Certificate: what a channel leaks at most in the population, by rows that it has not seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from .._messages import SENSITIVE, Message, Parameter
from .._typing import FloatArray, Labels, Scope
from .._validation import check_integer, check_real
from ..joint import readonly
from ..limits.risk import confidence_of_each
from ..measures import Measure, Parity
from ..measures.leakage import leakage_in, output_values, posteriors
from .largest import largest_average, largest_values, most_groups
from .limits import Centre, population_limits
from .parity import parity_margin

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
        yield f"max_leakage={self.max_leakage:.6g}, at most {self.max_leakage_bound:.6g}"
        if "average" in self.measure.scopes:
            average, bound = self.average_leakage, self.average_leakage_bound
            yield f"average_leakage={average:.6g}, at most {bound:.6g}"

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
