"""Certificate: what a channel leaks at most in the population, by rows that it has not seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._messages import SENSITIVE, Message, Parameter
from .._typing import FloatArray, Labels, Scope
from .._validation import check_integer, check_real
from ..joint import readonly
from ..measures import Measure, Parity
from ..measures.leakage import leakage_in, output_values, posteriors
from .largest import largest_average, largest_values, most_groups
from .limits import Centre, population_limits
from .parity import parity_margin

_OWNER = "certify"


@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    """What a channel leaks on rows that its design has not seen, and at most in their population.

    Each bound holds with the stated confidence, for any number of rows: nothing is approximated.
    Those of all outputs hold at once; so does that of the average, but for `Parity`, where it is
    a theorem of its own.

    Attributes
    ----------
    measure : Measure
        The measure of leakage.
    scope : {"per_output", "average"}
        What the budget of the mechanism is about.
    confidence : float
        How often such bounds hold, at least.
    n_settings : int
        Of how many settings the best may have been chosen on these rows.
    n_rows, n_groups : int
        How many rows there were, and how many groups of S they had.
    y_labels : tuple
        Names of the outputs.
    leakage, leakage_bound : ndarray of shape (n_y,)
        What each output leaks, on the epsilon scale: judging by the rows, and at most.
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
    >>> design, fresh = rows[:20_000], rows[20_000:]
    >>> fitted = PrivacyFunnelTransformer(0.02, sensitive="sex").fit(design)
    >>> certificate = fitted.certify(fresh)
    >>> certificate.holds(0.02), certificate.holds(0.06)
    (False, True)
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
        """The leakage of the worst output, judging by the rows."""
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

    def __repr__(self) -> str:
        return f"Certificate({self.measure!r}: {'; '.join(self._figures())})"


@dataclass(frozen=True, eq=False)
class Candidate:
    """What is to be certified: a channel, its outputs, and what P(S) and P(Y) are thought to be.

    scope : of its budget.
    """

    channel: FloatArray
    y_labels: Labels
    scope: Scope
    centre: Centre


def certify(
    counts: FloatArray,
    candidate: Candidate,
    measure: Measure,
    confidence: float = 0.95,
    n_settings: int = 1,
) -> Certificate:
    """Return the `Certificate` of a channel by counts of pairs (s, x), of rows not seen before."""
    failure = failure_of(confidence, n_settings)
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
    return Certificate(
        measure,
        candidate.scope,
        confidence,
        n_settings,
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


def failure_of(confidence: float, n_settings: int) -> float:
    """Return how often the bounds of one setting may fail.

    Those of k settings then all hold with the confidence (Bonferroni), and so does the best.
    """
    check_real(_OWNER, "confidence", confidence, low=0, high=1, low_open=True, high_open=True)
    return (1 - confidence) / check_integer(_OWNER, "n_settings", n_settings, low=1)


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
