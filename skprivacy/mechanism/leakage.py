"""Leakage: what a channel leaks about one secret, in its rows and in the population."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from .._threads import one_thread
from .._typing import FloatArray, IntArray, Labels, Scope, Seed
from .._validation import check_confidence, check_real
from ..joint import as_joint, readonly
from ..measures import Measure, lift
from ..measures.base import leakage_in, output_values, posteriors
from ..population.limits import UpperLimits, draws_of_limits, kept_draws, limits_of, upper_limits
from ..utilities import mutual_information
from .channel import OWNER, ROW_TOLERANCE, Channel, Frozen, check_labels, of_channel

# The confidence of limits that nobody asked for, and how many budgets such a limit must exceed to
# be told of.
USUAL_CONFIDENCE, FAR_ABOVE = 0.95, 2.0

# As in designs: the marginals of X in the tables of secrets differ by rounding only, by such a
# share of each.
_SAME_MARGINALS = 1e-9


@dataclass(frozen=True, eq=False)
class PopulationLeakage:
    """Upper confidence limits of what a mechanism leaks under the true joint distribution.

    Attributes
    ----------
    max_leakage, average_leakage : float
        The limits of the worst output and of the average, on the epsilon scale.
    per_output : Series
        The limit of each output. Each holds with that confidence, not all at once.
    n_samples : int
        How many rows the joint distribution was estimated from.
    confidence : float
        How often such limits hold.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> from skprivacy.metrics import population_leakage
    >>> mechanism = design_mechanism([[200, 100, 100], [100, 200, 300]], 0.02)
    >>> limits = population_leakage(mechanism, n_samples=1000)
    >>> limits.n_samples, limits.confidence
    (1000, 0.95)
    >>> bool((limits.per_output > mechanism.leakage).all())
    True
    """

    max_leakage: float
    average_leakage: float
    per_output: pd.Series
    n_samples: int
    confidence: float

    def leakage_in(self, scope: Scope) -> float:
        """Return the limit of the leakage that a budget of some scope is about.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> from skprivacy.metrics import population_leakage
        >>> mechanism = design_mechanism([[200, 100, 100], [100, 200, 300]], 0.02)
        >>> limits = population_leakage(mechanism, n_samples=1000)
        >>> limits.leakage_in("average") < limits.leakage_in("per_output")
        True
        """
        return self.max_leakage if scope == "per_output" else self.average_leakage


class OfChannel(Frozen):
    """The figures of the channel, for what is about one."""

    y_given_x: Channel

    channel: FloatArray = of_channel("matrix")
    p_x: FloatArray = of_channel("p_x")
    p_y: FloatArray = of_channel("p_y")
    y_labels: Labels = of_channel("y_labels")
    groups: IntArray | None = of_channel("groups")


@dataclass(frozen=True, eq=False, repr=False)
class Leakage(OfChannel):
    """What a channel P(Y|X) leaks about one secret S, given their joint distribution with X.

    Attributes
    ----------
    y_given_x : Channel
        The channel, with the names of its symbols.
    p_sx : ndarray of shape (n_s, n_x) or None
        The joint distribution that all figures are about; None if it was left out of a file.
    s_labels : tuple or None
        Names of the groups of S.
    measure : Measure
        The measure of leakage.
    confidence, n_samples : float or None
        How often limits for the population hold, and how many rows `p_sx` was counted from.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> sex, race = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], [[0.1, 0.2, 0.1], [0.2, 0.1, 0.3]]
    >>> budgets = {"sex": 0.002, "race": 0.02}
    >>> mechanism = design_mechanism({"sex": sex, "race": race}, budgets)
    >>> round(mechanism.secrets["race"].attacker_advantage, 3)
    0.0
    """

    y_given_x: Channel
    p_sx: FloatArray | None
    s_labels: Labels | None
    measure: Measure
    confidence: float | None = None
    n_samples: float | None = None

    def __post_init__(self) -> None:
        if (self.confidence is None) != (self.n_samples is None):
            raise ValueError("A Mechanism has both a confidence and n_samples, or none of them.")
        if self.confidence is not None:
            rows = check_real(OWNER, "n_samples", self.n_samples, low=1, high_open=True)
            self._set(confidence=check_confidence(OWNER, self.confidence), n_samples=rows)
        if self.p_sx is None:
            return
        self._set(p_sx=readonly(np.array(self.p_sx, dtype=float, order="C")))
        as_joint(self.p_sx, OWNER)
        if not abs(self.p_sx.sum() - 1) <= ROW_TOLERANCE:
            raise ValueError(f"p_sx must sum to 1. Got a sum of {self.p_sx.sum()}.")
        p_x = self.p_sx.sum(axis=0)
        if p_x.shape != self.p_x.shape or not np.allclose(p_x, self.p_x, _SAME_MARGINALS, 0.0):
            raise ValueError("p_sx does not have the distribution of X that the channel is for.")
        check_labels("s_labels", self.s_labels, len(self.p_sx))

    @property
    def joint(self) -> FloatArray:
        """``P(S, X)``; an error if it is not known here."""
        if self.p_sx is None:
            raise AttributeError(
                "This mechanism was saved without its joint distribution, so what it leaks is "
                "not known here. Use evaluate(p_sx) with a joint of your own."
            )
        return self.p_sx

    @cached_property
    def prior(self) -> FloatArray:
        """``P(S)``, of shape (n_s,)."""
        return readonly(self.joint.sum(axis=1))

    def with_channel(self, channel: Channel) -> Leakage:
        """Return what another channel leaks under the same joint."""
        sure = self.confidence, self.n_samples
        made = Leakage(channel, self.p_sx, self.s_labels, self.measure, *sure)
        return made._set(_draws=vars(self).get("_draws"))

    def with_kept_draws(self) -> Leakage:
        """Return the same with the draws for limits kept, to judge many channels by them."""
        if self.confidence is None or self.n_samples is None:
            return self
        return self._copy(_draws=kept_draws(self.n_samples * self.joint, self.confidence))

    def with_measure(self, measure: Measure) -> Leakage:
        """Return what the same channel leaks by another measure."""
        sure = self.confidence, self.n_samples
        return Leakage(self.y_given_x, self.p_sx, self.s_labels, measure, *sure)

    @cached_property
    def sensitive_posterior(self) -> FloatArray:
        """``P(S | Y = y)``, of shape (n_y, n_s); P(S) for an output of probability zero."""
        # By the marginal of this very table: that of the channel may differ by rounding.
        return readonly(posteriors(self._p_sy, self._p_sy.sum(axis=0), self.prior))

    @cached_property
    def _p_sy(self) -> FloatArray:
        return self.joint @ self.channel

    @cached_property
    def _values(self) -> FloatArray:
        """g of every output, over the symbols of S that occur."""
        return output_values(self.measure, self.sensitive_posterior, self.prior)

    @cached_property
    def leakage(self) -> FloatArray:
        """Leakage of each output on the eps scale of the measure, of shape (n_y,)."""
        return readonly(np.array(self.measure.inverse(self._values), dtype=float))

    @property
    def max_leakage(self) -> float:
        """The leakage of the worst output."""
        return leakage_in("per_output", self.measure, self._values, self.p_y)

    @cached_property
    def average_leakage(self) -> float:
        """Leakage on average over outputs, eps scale; NaN for a measure without an average."""
        return leakage_in("average", self.measure, self._values, self.p_y)

    def leakage_in(self, scope: Scope) -> float:
        """Return the leakage that a budget of some scope is about.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> [round(mechanism.leakage_in(scope), 3) for scope in ("per_output", "average")]
        [0.02, 0.017]
        """
        return self.max_leakage if scope == "per_output" else self.average_leakage

    @cached_property
    def sensitive_information(self) -> float:
        """``I(S;Y)`` in nats."""
        return mutual_information(self._p_sy)

    @cached_property
    def attacker_accuracy(self) -> float:
        """How often the best attacker, who knows the joint and the channel, guesses S from Y.

        ``sum_y max_s P(s,y)``.
        """
        return float(self._p_sy.max(axis=0).sum())

    @property
    def attacker_advantage(self) -> float:
        """How much more often that is right than the best blind guess."""
        return max(0.0, self.attacker_accuracy - float(self.prior.max()))

    @cached_property
    def output_lifts(self) -> FloatArray:
        """The largest ``P(s|y) / P(s)`` of each output."""
        return readonly(lift(self.sensitive_posterior, self.prior).max(axis=1))

    @property
    def max_lift(self) -> float:
        """The largest ``P(s|y) / P(s)``."""
        return float(self.output_lifts.max())

    @property
    def population_limit(self) -> PopulationLeakage | None:
        """Upper limits of what is leaked in the population; None without a `confidence`.

        `max_leakage` of it is about the worst output, `average_leakage` about all on average,
        `per_output` about each of them.
        """
        if self.confidence is None or self.n_samples is None:
            return None
        return _population(self, self._all_limits, round(self.n_samples), self.confidence)

    def limit_in(self, scope: Scope) -> float:
        """Return the leakage of a scope: with a confidence, the limit of it in the population.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[200, 100, 90], [90, 200, 310]], 0.1, confidence=0.95)
        >>> mechanism.max_leakage < mechanism.secrets[None].limit_in("per_output") <= 0.1
        True
        """
        if self.confidence is None:
            return self.leakage_in(scope)
        return max(self.limits_in(scope)[0], self.leakage_in(scope))

    def limits_in(self, scope: Scope) -> tuple[float, FloatArray]:
        """Return the limit for the population in a scope, and that of each output."""
        limits = self._worst_limits if scope == "per_output" else self._all_limits
        return limits.in_scope(scope), limits.per_output

    # The limit of the average takes as long as all others, and is drawn only if it is wanted.
    @cached_property
    def _worst_limits(self) -> UpperLimits:
        return self._drawn_limits(with_average=False)

    @cached_property
    def _all_limits(self) -> UpperLimits:
        return self._drawn_limits(with_average=True)

    @one_thread
    def _drawn_limits(self, with_average: bool) -> UpperLimits:
        assert self.confidence is not None
        assert self.n_samples is not None
        draws = vars(self).get("_draws")
        if draws is None:
            draws = draws_of_limits(self.n_samples * self.joint, self.confidence)
        about = self.measure, self.confidence
        return limits_of(self.channel, draws, *about, with_average=with_average)

    def _figures(self) -> Iterator[str]:
        """Yield what `repr` says about leakage."""
        if self.p_sx is None:
            yield "joint left out"
        else:
            yield f"max_leakage={self.max_leakage:.6g}"
            yield f"average_leakage={self.average_leakage:.6g}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.measure!r}: {', '.join(self._figures())})"


@one_thread
def population_limits(
    leakage: Leakage,
    counts: FloatArray,
    confidence: float,
    *,
    n_draws: int | None = None,
    random_state: Seed = 0,
    is_rough: bool = False,
) -> PopulationLeakage:
    """Return the limits of a channel where the rows of `counts` come from.

    By default they are drawn from a fixed stream: the same counts give the same limits. is_rough :
    as in `upper_limits`.
    """
    limits = upper_limits(
        counts,
        leakage.channel,
        leakage.measure,
        confidence,
        n_draws=n_draws,
        random_state=random_state,
        is_rough=is_rough,
    )
    return _population(leakage, limits, round(counts.sum()), confidence)


def _population(
    leakage: Leakage, limits: UpperLimits, n_samples: int, confidence: float
) -> PopulationLeakage:
    # The population should not be expected to leak less than the rows do.
    each = readonly(np.maximum(limits.per_output, leakage.leakage))
    labels = pd.Index(leakage.y_labels, tupleize_cols=False)
    return PopulationLeakage(
        max(limits.worst, leakage.max_leakage),
        max(limits.average, leakage.average_leakage),
        pd.Series(each, labels, copy=False),
        n_samples,
        confidence,
    )
