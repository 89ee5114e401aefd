"""From what a channel leaks under the joint of some rows to the population that they are from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .._typing import FloatArray, Scope, Seed
from ..joint import readonly
from ..limits import upper_limits
from ..solvers.one_thread import one_thread
from .evaluation import Evaluation

# The confidence of limits that nobody asked for, and how many budgets such a limit must exceed to
# be told of.
USUAL_CONFIDENCE, FAR_ABOVE = 0.95, 2.0


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


@one_thread
def population_limits(
    evaluation: Evaluation,
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
        evaluation.channel,
        evaluation.measure,
        confidence,
        n_draws=n_draws,
        random_state=random_state,
        is_rough=is_rough,
    )
    # The population should not be expected to leak less than the rows do.
    each = readonly(np.maximum(limits.per_output, evaluation.leakage))
    labels = pd.Index(evaluation.y_labels, tupleize_cols=False)
    return PopulationLeakage(
        max(limits.worst, evaluation.max_leakage),
        max(limits.average, evaluation.average_leakage),
        pd.Series(each, labels, copy=False),
        round(counts.sum()),
        confidence,
    )
