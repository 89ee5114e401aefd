"""Guarantee: the leakage about one secret within a budget, which is checked here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from .._typing import Labels, Scope
from .._validation import check_real
from ..describing import limit
from ..measures import check_scope
from ..measures.base import may_reach, posterior_ranges
from .channel import OWNER, Channel, check_labels
from .leakage import Leakage

# A probability that is as good as 1, and the largest one from which it would be a surprise.
_CERTAIN, _LIKELY = 0.99, 0.5


@dataclass(frozen=True, eq=False, repr=False)
class Guarantee(Leakage):
    """What leaks about one secret, and the budget that it keeps.

    One that is broken cannot be made: what leaks is computed from the floats of the channel
    itself, and with a confidence its limit for the population is within the budget too. Where
    `p_sx` was left out of a file, the budget is only what the file claims.

    Attributes
    ----------
    epsilon : float
        The budget.
    scope : {"per_output", "average"}
        Which leakage is within it.
    y_given_x, p_sx, s_labels, measure, confidence, n_samples
        As in `Leakage`. Of several secrets, each has its share of the risk that a limit fails, so
        its `confidence` is larger than that of the mechanism.

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
        """Return the guarantee that what leaks is within a budget; it is not computed again."""
        made = object.__new__(cls)
        made.__dict__.update(vars(leakage) | {"_draws": None})
        made._set(epsilon=epsilon, scope=scope)._check_budget()
        return made

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
                "P(Y): nothing is known about what they reveal."
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
        """Return what the budget bounds: the leakage in its scope, with a confidence its limit.

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
        """Return the same guarantee with other names: nothing is judged again."""
        if not channel.is_renamed(self.y_given_x):
            raise ValueError("Only names may differ: another channel has to be judged.")
        labels = self.s_labels if s_labels is None else s_labels
        if labels is not None:
            check_labels("s_labels", labels, len(self.prior))
        return self._copy(y_given_x=channel, s_labels=labels)

    @property
    def advantage_bound(self) -> float:
        """How much more often than blindly S can be guessed from Y, at most, given the budget."""
        advantage = self.measure.advantage(self.epsilon, self.prior)
        return min(advantage, 1 - float(self.prior.max()))

    def posterior_ranges(self) -> pd.DataFrame:
        """Return how far a released value moves the probability of each group of S.

        Returns
        -------
        DataFrame
            One row per group. `prior` is its share; `reached_low` and `reached_high` are the
            smallest and the largest P(s|y); `allowed_low` and `allowed_high` are what the budget
            alone allows, whatever the channel. A budget on average allows single outputs anything:
            these are then NaN.

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
        """Whether the budget lets one value tell a group with near certainty.

        A group that is the likeliest anyway does not count. False for a budget on average, which
        bounds no single value, and for a measure of your own of which that is not known.
        """
        is_allowed = may_reach(self.measure, self.prior, self.epsilon, _CERTAIN)
        return self.scope == "per_output" and bool(is_allowed[self.prior <= _LIKELY].any())

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
