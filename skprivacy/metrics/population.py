"""From the joint distribution of some rows to that of the population they were drawn from."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .._validation import check_integer, check_real, message
from ..mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class PopulationLeakage:
    """Upper confidence limits of what a mechanism leaks under the true joint distribution.

    Attributes
    ----------
    max_leakage, average_leakage : float
        The limits of the worst output and of the average, on the epsilon scale.
    per_output : Series
        The limit of each output. Each holds with the confidence, not all at once.
    n_samples : int
        From how many rows the joint distribution was estimated.
    confidence : float
        How often such limits hold.
    """

    max_leakage: float
    average_leakage: float
    per_output: pd.Series
    n_samples: int
    confidence: float

    def leakage_in(self, scope):
        """Return the limit of the leakage that a budget of some scope is about."""
        return self.max_leakage if scope == "per_output" else self.average_leakage


def population_leakage(mechanism, n_samples, *, confidence=0.95, n_resamples=999, random_state=0):
    """Return upper confidence limits of the leakage under the true joint distribution.

    The guarantee of a mechanism is about the joint distribution that it was designed for. If
    that was estimated from rows, the true leakage is larger: the design has adapted to the rows.
    The rows are drawn anew from the estimate, and the leakage of the same channel under each
    such joint is as far from the design's as the truth is.

    Parameters
    ----------
    mechanism : Mechanism
        With its joint distribution.
    n_samples : int
        From how many independent rows it was estimated.
    confidence : float, default=0.95
        How often the limits are to hold.
    n_resamples : int, default=999
        How many joints are drawn.
    random_state : int, RandomState, Generator or None, default=0
        Draws them.

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
    if not isinstance(mechanism, Mechanism):
        raise TypeError(message(owner, "mechanism", "a Mechanism", mechanism))
    check_integer(owner, "n_samples", n_samples, low=1)
    check_real(owner, "confidence", confidence, low=0, high=1, low_open=True, high_open=True)
    check_integer(owner, "n_resamples", n_resamples, low=1)
    rng = np.random.default_rng(random_state)
    measure, shape = mechanism.measure, mechanism.p_sx.shape
    drawn = rng.multinomial(n_samples, mechanism.p_sx.ravel(), size=n_resamples)
    joints = drawn.reshape(n_resamples, *shape) / n_samples
    weights, values = _leakages(joints, mechanism)
    highest = np.where(weights > 0, values, -np.inf)
    limits = (
        _upper_limit(figure, confidence)
        for figure in (highest.max(axis=1), (weights * values).sum(axis=1), highest)
    )
    worst, average, each = (measure.inverse(limit) for limit in limits)
    return PopulationLeakage(
        float(worst),
        float(average) if "average" in measure.scopes else float("nan"),
        pd.Series(each, pd.Index(mechanism.y_labels, tupleize_cols=False)),
        int(n_samples),
        confidence,
    )


def _leakages(joints, mechanism):
    """Return P(y), and g of each output, for each joint as rows."""
    weights, values = [], []
    for p_sx in joints:
        p_sy, prior = p_sx @ mechanism.channel, p_sx.sum(axis=1)
        p_y = p_sy.sum(axis=0)
        posterior = (p_sy / np.where(p_y > 0, p_y, 1.0)).T
        posterior[p_y == 0] = prior
        weights.append(p_y)
        values.append(mechanism.measure.value(posterior[:, prior > 0], prior[prior > 0]))
    return np.array(weights), np.array(values)


def _upper_limit(figures, confidence):
    """Return the order statistic that is exceeded by a share of at most 1 - confidence."""
    rank = min(len(figures), int(np.ceil(confidence * (len(figures) + 1)))) - 1
    return np.sort(figures, axis=0)[rank]
