"""From the joint distribution of some rows to that of the population they were drawn from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._typing import FloatArray, Scope, Seed
from .._validation import check_integer, check_real, message
from ..measures.leakage import output_values, posteriors
from ..mechanism import Mechanism
from ..transformer import PrivacyFunnelTransformer, fitted_of

_NO_JOINT = "{} needs the joint distribution, which was left out when the mechanism was saved."

# Rows in every cell before any was seen: Jeffreys' prior.
_PRIOR = 0.5


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


def population_leakage(
    mechanism: Mechanism | PrivacyFunnelTransformer,
    n_samples: int | None = None,
    *,
    confidence: float = 0.95,
    n_resamples: int = 999,
    random_state: Seed = 0,
) -> PopulationLeakage:
    """Return upper confidence limits of the leakage under the true joint distribution.

    The guarantee of a mechanism is about the joint distribution that it was designed for. If
    that was estimated from rows, the true leakage is mostly larger: the design has adapted to
    the rows. Joints are drawn around the estimate in two ways: by drawing rows from it anew (the
    bootstrap), and from the posterior with half a row added to every cell, which allows for pairs
    that no row has. The leakage of the same channel is computed under each; the limit is the
    larger quantile.

    Parameters
    ----------
    mechanism : PrivacyFunnelTransformer or Mechanism
        Fitted; or designed for a joint distribution that was estimated from `n_samples` rows.
    n_samples : int, default=None
        The number of independent rows. A transformer knows it; with weights, it uses the number
        of equally weighted rows that carry as much information.
    confidence : float, default=0.95
        How often the limits should hold.
    n_resamples : int, default=999
        How many joints are drawn in each way.
    random_state : int, Generator or None, default=0
        The seed for drawing them.

    Returns
    -------
    PopulationLeakage

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> from skprivacy.metrics import population_leakage
    >>> mechanism = design_mechanism([[20, 10, 10], [10, 20, 30]], 0.02)
    >>> limits = population_leakage(mechanism, n_samples=100)
    >>> limits.max_leakage > mechanism.max_leakage
    True
    """
    owner = "population_leakage"
    check_real(owner, "confidence", confidence, low=0, high=1, low_open=True, high_open=True)
    check_integer(owner, "n_resamples", n_resamples, low=1)
    if (n_resamples + 1) * (1 - confidence) < 1:
        needed = f"at least {int(np.ceil(1 / (1 - confidence)))} for a confidence of {confidence}"
        raise ValueError(message(owner, "n_resamples", needed, n_resamples))
    mechanism, counts = _counted(mechanism, n_samples, owner)
    measure: Any  # `mechanism` is a Mechanism by now, which mypy cannot tell
    rng, measure = np.random.default_rng(random_state), mechanism.measure
    limits = [
        _limits(joints, mechanism, confidence) for joints in _around(counts, n_resamples, rng)
    ]
    worst, average, each = (
        measure.inverse(np.maximum(*pair)) for pair in zip(*limits, strict=True)
    )
    # The population should not be expected to leak less than the rows do.
    average = max(float(average), mechanism.average_leakage)
    labels = pd.Index(mechanism.y_labels, tupleize_cols=False)
    return PopulationLeakage(
        max(float(worst), mechanism.max_leakage),
        average if "average" in measure.scopes else float("nan"),
        pd.Series(np.maximum(each, mechanism.leakage), labels),
        round(counts.sum()),
        confidence,
    )


def _counted(
    mechanism: Mechanism | PrivacyFunnelTransformer, n_samples: int | None, owner: str
) -> tuple[Mechanism, FloatArray]:
    """Return the mechanism and the table of counts that its joint was estimated from."""
    if isinstance(mechanism, PrivacyFunnelTransformer):
        fitted = fitted_of(mechanism)
        if (training := fitted.training) is None:
            raise ValueError(_NO_JOINT.format(owner))
        rows = training.effective_rows if n_samples is None else n_samples
        return fitted.mechanism, training.counts * (rows / training.counts.sum())
    if not isinstance(mechanism, Mechanism):
        requirement = "a Mechanism or a fitted PrivacyFunnelTransformer"
        raise TypeError(message(owner, "mechanism", requirement, mechanism))
    if mechanism.p_sx is None:
        raise ValueError(_NO_JOINT.format(owner))
    return mechanism, check_integer(owner, "n_samples", n_samples, low=1) * mechanism.p_sx


def _around(
    counts: FloatArray, n_resamples: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Yield joints around that of a table of counts, drawn in two ways."""
    n = max(1, round(counts.sum()))
    rows = rng.multinomial(n, counts.ravel() / counts.sum(), size=n_resamples)
    yield rows.reshape(n_resamples, *counts.shape) / n
    drawn = rng.gamma(counts + _PRIOR, size=(n_resamples, *counts.shape))
    yield drawn / drawn.sum(axis=(1, 2), keepdims=True)


def _limits(joints: FloatArray, mechanism: Mechanism, confidence: float) -> list[FloatArray]:
    """Return upper limits of g: of the worst output, of the average, of each output."""
    weights, values = _leakages(joints, mechanism)
    figures = values.max(axis=1), (weights * values).sum(axis=1), values
    return [_upper_limit(figure, confidence) for figure in figures]


def _leakages(joints: FloatArray, mechanism: Mechanism) -> tuple[FloatArray, FloatArray]:
    """Return P(y), and g of each output, for each joint as rows."""
    weights, values = [], []
    for p_sx in joints:
        p_sy, prior = p_sx @ mechanism.channel, p_sx.sum(axis=1)
        p_y = p_sy.sum(axis=0)
        weights.append(p_y)
        values.append(output_values(mechanism.measure, posteriors(p_sy, p_y, prior), prior))
    return np.array(weights), np.array(values)


def _upper_limit(figures: FloatArray, confidence: float) -> FloatArray:
    """Return the order statistic that is exceeded by a share of at most 1 - confidence."""
    rank = min(len(figures), int(np.ceil(confidence * (len(figures) + 1)))) - 1
    return np.sort(figures, axis=0)[rank]
