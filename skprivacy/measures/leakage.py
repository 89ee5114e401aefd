"""What a release leaks: from P(S|y) over g and a scope to the scale of epsilon."""

import numpy as np

from .._typing import FloatArray, Scope
from .base import Measure


def posteriors(joint_with_y: FloatArray, p_y: FloatArray, prior: FloatArray) -> FloatArray:
    """Return P(.|y) as rows; the prior for an output of probability zero.

    joint_with_y : P(., y), one column per output; p_y : the probability of each.
    """
    rows = joint_with_y.T / np.where(p_y > 0, p_y, 1.0)[:, None]
    return np.where((p_y > 0)[:, None], rows, prior)


def output_values(measure: Measure, posteriors: FloatArray, prior: FloatArray) -> FloatArray:
    """Return g of each output, over the symbols of S that occur; posteriors : P(S|y) as rows."""
    return measure.value(posteriors[:, prior > 0], prior[prior > 0])


def value_in(scope: Scope, values: FloatArray, p_y: FloatArray) -> float:
    """Return g of a release from that of its outputs: the worst of them, or their average."""
    return float(values.max() if scope == "per_output" else p_y @ values)


def leakage_in(scope: Scope, measure: Measure, values: FloatArray, p_y: FloatArray) -> float:
    """Return the leakage of a release from g of its outputs.

    On average it is the leakage of the mean of g, never the mean of the leakages; NaN for a
    measure without an average.
    """
    if scope == "average" and "average" not in measure.scopes:
        return float("nan")
    return float(measure.inverse(value_in(scope, values, p_y)))


def leakage_unchanged(scope: Scope, measure: Measure, p_sx: FloatArray) -> float:
    """Return what releasing X itself leaks."""
    p_x, prior = p_sx.sum(axis=0), p_sx.sum(axis=1)
    values = output_values(measure, posteriors(p_sx, p_x, prior), prior)
    return leakage_in(scope, measure, values, p_x)


def leakage_of(scope: Scope, measure: Measure, p_sx: FloatArray, channel: FloatArray) -> float:
    """Return what the outputs of a channel leak."""
    return leakage_unchanged(scope, measure, p_sx @ channel)
