"""Leakage of a channel about one secret, and the guarantee that it is within a budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from .._numerics import one_thread
from .._typing import FloatArray, IntArray, Labels, Scope, Seed
from .._validation import check_confidence, check_real
from ..channels import OWNER, ROW_TOLERANCE, Channel, Frozen, check_labels, of_channel
from ..describing.numbers import limit
from ..joint import as_joint, readonly
from ..measures import Measure, check_scope, lift
from ..measures.measure import leakage_in, may_reach, output_values, posterior_ranges, posteriors
from ..population.limits import UpperLimits, draws_of_limits, kept_draws, limits_of
from ..utilities import mutual_information

# Default confidence of limits, and the multiple of the budget above which users are told of one.
USUAL_CONFIDENCE, FAR_ABOVE = 0.95, 2.0

# Relative tolerance for the marginals of X in the tables of secrets, as in designs.
_SAME_MARGINALS = 1e-9


@dataclass(frozen=True, eq=False)
class PopulationLeakage:
    """Upper confidence limits of the leakage under the true joint distribution.

    Attributes
    ----------
    max_leakage, average_leakage : float
        Limits of the worst output and of the average, on the epsilon scale.
    per_output : Series
        Limit of each output. Each holds with the confidence, not all at once.
    n_samples : int
        Number of rows that the joint distribution was estimated from.
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
        """Return the limit of the leakage in a scope.

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


class ChannelFigures(Frozen):
    """Figures of the channel `y_given_x`."""

    y_given_x: Channel

    channel: FloatArray = of_channel("matrix")
    p_x: FloatArray = of_channel("p_x")
    p_y: FloatArray = of_channel("p_y")
    y_labels: Labels = of_channel("y_labels")
    strata: IntArray | None = of_channel("strata")


@dataclass(frozen=True, eq=False, repr=False)
class Leakage(ChannelFigures):
    """Leakage of a channel P(Y|X) about one secret S, under a joint distribution of S and X.

    Attributes
    ----------
    y_given_x : Channel
        The channel, with the names of its symbols.
    p_sx : ndarray of shape (n_s, n_x) or None
        The joint distribution of S and X; None if it was left out of a file.
    s_labels : tuple or None
        Names of the groups of S.
    measure : Measure
        The measure of leakage.
    confidence, n_samples : float or None
        How often limits for the population hold, and the number of rows behind `p_sx`.

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
        """``P(S, X)``; an error if it was left out of a file."""
        if self.p_sx is None:
            raise AttributeError(
                "This mechanism was saved without its joint distribution, so its leakage is not "
                "known here. Use evaluate(p_sx) with a joint of your own."
            )
        return self.p_sx

    @cached_property
    def prior(self) -> FloatArray:
        """``P(S)``, of shape (n_s,)."""
        return readonly(self.joint.sum(axis=1))

    def with_channel(self, channel: Channel) -> Leakage:
        """Return the leakage of another channel under the same joint."""
        sure = self.confidence, self.n_samples
        found = Leakage(channel, self.p_sx, self.s_labels, self.measure, *sure)
        return found._set(_draws=vars(self).get("_draws"))

    def with_kept_draws(self) -> Leakage:
        """Return a copy that keeps the draws for limits, to judge many channels."""
        if self.confidence is None or self.n_samples is None:
            return self
        return self._copy(_draws=kept_draws(self.n_samples * self.joint, self.confidence))

    def with_measure(self, measure: Measure) -> Leakage:
        """Return the leakage of the same channel by another measure."""
        sure = self.confidence, self.n_samples
        return Leakage(self.y_given_x, self.p_sx, self.s_labels, measure, *sure)

    @cached_property
    def sensitive_posterior(self) -> FloatArray:
        """``P(S | Y = y)``, of shape (n_y, n_s); P(S) for an output of probability zero."""
        # By the marginal of this table: P(Y) of the channel may differ by rounding.
        return readonly(posteriors(self._p_sy, self._p_sy.sum(axis=0), self.prior))

    @cached_property
    def _p_sy(self) -> FloatArray:
        return self.joint @ self.channel

    @cached_property
    def _values(self) -> FloatArray:
        """g(P(S|y)) of every output, over the symbols of S that occur."""
        return output_values(self.measure, self.sensitive_posterior, self.prior)

    @cached_property
    def leakage(self) -> FloatArray:
        """Leakage of each output on the epsilon scale of the measure, of shape (n_y,)."""
        return readonly(np.array(self.measure.inverse(self._values), dtype=float))

    @property
    def max_leakage(self) -> float:
        """Leakage of the worst output."""
        return leakage_in("per_output", self.measure, self._values, self.p_y)

    @cached_property
    def average_leakage(self) -> float:
        """Leakage on average over outputs, epsilon scale; NaN for a measure without an average."""
        return leakage_in("average", self.measure, self._values, self.p_y)

    def leakage_in(self, scope: Scope) -> float:
        """Return the leakage in a scope.

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
        """How much more often the best attacker is right than the best blind guess."""
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
        """Upper limits of the leakage in the population; None without a `confidence`.

        It has a limit of the worst output (`max_leakage`), of the average (`average_leakage`) and
        of each output (`per_output`).
        """
        if self.confidence is None or self.n_samples is None:
            return None
        return _population(self, self._all_limits, round(self.n_samples), self.confidence)

    def limit_in(self, scope: Scope) -> float:
        """Return the leakage in a scope; with a confidence, its limit in the population.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[200, 100, 90], [90, 200, 310]], 0.1, confidence=0.95)
        >>> mechanism.max_leakage < mechanism.secrets[None].limit_in("per_output") <= 0.1
        True
        """
        if self.confidence is None:
            return self.leakage_in(scope)
        limits = self._worst_limits if scope == "per_output" else self._all_limits
        return max(limits.in_scope(scope), self.leakage_in(scope))

    # The limit of the average takes as long as all others, so it is computed only if needed.
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
        """Yield the figures in `repr`."""
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
) -> PopulationLeakage:
    """Return the limits of a channel in the population `counts` were drawn from.

    By default the same counts give the same limits.
    """
    draws = draws_of_limits(counts, confidence, n_draws, random_state)
    limits = limits_of(leakage.channel, draws, leakage.measure, confidence)
    return _population(leakage, limits, round(counts.sum()), confidence)


def _population(
    leakage: Leakage, limits: UpperLimits, n_samples: int, confidence: float
) -> PopulationLeakage:
    # A limit for the population is at least the leakage in the rows.
    each = readonly(np.maximum(limits.per_output, leakage.leakage))
    labels = pd.Index(leakage.y_labels, tupleize_cols=False)
    return PopulationLeakage(
        max(limits.worst, leakage.max_leakage),
        max(limits.average, leakage.average_leakage),
        pd.Series(each, labels, copy=False),
        n_samples,
        confidence,
    )


# Guarantee: leakage about one secret within a budget, which is checked here.


# A probability that counts as certainty, and the largest prior from which reaching it counts.
_CERTAIN, _LARGEST_PRIOR = 0.99, 0.5


@dataclass(frozen=True, eq=False, repr=False)
class Guarantee(Leakage):
    """Leakage about one secret, within a budget.

    A broken guarantee cannot exist: leakage is computed from the floats of the channel itself, and
    with a confidence its limit for the population is within the budget too. If `p_sx` was left out
    of a file, the budget is only what the file claims.

    Attributes
    ----------
    epsilon : float
        The budget.
    scope : {"per_output", "average"}
        The scope of the budget.
    y_given_x, p_sx, s_labels, measure, confidence, n_samples
        As in `Leakage`. Each of several secrets has its share of the risk that a limit fails, so
        its `confidence` is larger than the `confidence` of the mechanism.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
    >>> mechanism.secrets[None]
    Guarantee(KL(): epsilon=0.02 per_output, max_leakage=0.02, average_leakage=0.0168399)
    """

    epsilon: float = field(kw_only=True)
    scope: Scope = field(kw_only=True)

    @classmethod
    def of(cls, leakage: Leakage, epsilon: float, scope: Scope) -> Guarantee:
        """Return the guarantee that a leakage is within a budget, without computing it again."""
        guarantee = object.__new__(cls)
        guarantee.__dict__.update(vars(leakage) | {"_draws": None})
        guarantee._set(epsilon=epsilon, scope=scope)._check_budget()
        return guarantee

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_budget()

    def _check_budget(self) -> None:
        self._set(epsilon=check_real(OWNER, "epsilon", self.epsilon, low=0))
        check_scope(OWNER, self.scope, self.measure)
        channel = self.y_given_x
        unseen, expected = (each[self.p_x == 0] for each in (channel.matrix, channel.independent))
        if self.confidence is not None and not np.allclose(unseen, expected, rtol=0, atol=1e-9):
            raise ValueError(
                "With a confidence, the output of symbols of X without rows must be drawn from "
                "P(Y): it is unknown what they reveal."
            )
        if self.p_sx is None:
            return
        leakage, allowed = self.leakage_in(self.scope), self.measure.budget(self.epsilon)
        broken = f"its leakage is {leakage}" if not leakage <= allowed else ""
        if not broken and not (most := self.leakage_at_most()) <= allowed:
            broken = (
                f"in the population it may be {most}, with a confidence of {self.confidence} "
                f"from {self.n_samples:g} rows"
            )
        if broken:
            raise ValueError(
                f"The channel breaks its budget: epsilon={self.epsilon} for {self.measure!r}, "
                f"{self.scope}, but {broken}."
            )

    def leakage_at_most(self) -> float:
        """Return what the budget bounds: the leakage in its scope; with a confidence, its limit.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[200, 100, 90], [90, 200, 310]], 0.1, confidence=0.95)
        >>> mechanism.max_leakage < mechanism.leakage_at_most() <= 0.1
        True
        """
        return self.limit_in(self.scope)

    def excess(self, channel: Channel) -> float:
        """Return by how much another channel would exceed the budget; at most 0 if it does not."""
        allowed = self.measure.budget(self.epsilon)
        if allowed == np.inf:
            return -np.inf
        return self.with_channel(channel).limit_in(self.scope) - allowed

    def renamed(self, channel: Channel, s_labels: Labels | None = None) -> Guarantee:
        """Return the same guarantee with other names, without checking the budget again."""
        if not channel.is_renamed(self.y_given_x):
            raise ValueError("Only names may differ: the budget of another channel is unchecked.")
        labels = self.s_labels if s_labels is None else s_labels
        if labels is not None:
            check_labels("s_labels", labels, len(self.prior))
        return self._copy(y_given_x=channel, s_labels=labels)

    @property
    def advantage_bound(self) -> float:
        """Upper bound on `attacker_advantage`, given the budget."""
        advantage = self.measure.advantage(self.epsilon, self.prior)
        return min(advantage, 1 - float(self.prior.max()))

    def posterior_ranges(self) -> pd.DataFrame:
        """Return how far a released value moves the probability of each group of S.

        Returns
        -------
        DataFrame
            One row per group. `prior` is its share; `reached_low` and `reached_high` are the
            smallest and the largest P(s|y); `allowed_low` and `allowed_high` are the limits that
            the budget implies for any channel: NaN for a budget on average, which bounds no single
            output.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> mechanism.posterior_ranges().round(2).reset_index()
           s  prior  reached_low  reached_high  allowed_low  allowed_high
        0  0    0.4          0.3           0.5          0.3           0.5
        1  1    0.6          0.5           0.7          0.5           0.7
        """
        prior, posteriors = self.prior, self.sensitive_posterior[self.p_y > 0]
        allowed = np.full((len(prior), 2), np.nan)
        if self.scope == "per_output":
            allowed = posterior_ranges(self.measure, prior, self.epsilon)
        figures = {
            "prior": prior,
            "reached_low": posteriors.min(axis=0),
            "reached_high": posteriors.max(axis=0),
            "allowed_low": allowed[:, 0],
            "allowed_high": allowed[:, 1],
        }
        labels = pd.Index(self.s_labels or (), name="s", tupleize_cols=False)
        return pd.DataFrame(figures, index=labels)

    @property
    def allows_certainty(self) -> bool:
        """Whether the budget lets a single value reveal a group with near certainty.

        A group with more than half of the rows does not count. False for a budget on average,
        which bounds no single value, and for a measure of your own if this is unknown.
        """
        is_allowed = may_reach(self.measure, self.prior, self.epsilon, _CERTAIN)
        return self.scope == "per_output" and bool(is_allowed[self.prior <= _LARGEST_PRIOR].any())

    def _figures(self) -> Iterator[str]:
        claimed = "claimed " if self.p_sx is None else ""
        yield f"{claimed}epsilon={self.epsilon:.6g} {self.scope}"
        yield from super()._figures()
        if self.confidence is None:
            return
        sure = f"confidence={self.confidence:g} from {self.n_samples:g} rows"
        if self.p_sx is not None:
            sure = f"population_limit={limit(self.leakage_at_most(), 6)} with {sure}"
        yield sure
