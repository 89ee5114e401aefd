"""What somebody who already knows a part of a row learns from its release. No budget bounds it."""

from collections.abc import Sequence

import numpy as np

from .._typing import FloatArray, IntArray
from ..measures import Measure
from ..measures.leakage import output_values, posteriors


def learned_beside(
    p_sx: FloatArray, channel: FloatArray, measure: Measure, codes: IntArray
) -> float:
    """Return the most that Y tells about S to somebody who knows the value z of a column.

    The largest leakage of P(S|z,y) against P(S|z), over all z and y with P(z,y) > 0, on the scale
    of epsilon; codes : the z of each symbol of X.
    """
    if len(np.unique(codes)) == len(codes):  # z is all of x, and P(S|x,y) = P(S|x)
        return 0.0
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=codes[order[0]] - 1))
    parts: Sequence[IntArray] = np.split(order, starts[1:])
    # One z after the other: each has a prior of its own.
    worst = (_of_value(p_sx[:, part], channel[part], measure) for part in parts)
    return float(measure.inverse(max(worst)))


def _of_value(p_sx: FloatArray, channel: FloatArray, measure: Measure) -> float:
    """Return the largest value of the measure for one z; p_sx, channel : of its symbols."""
    total = p_sx.sum()
    if total <= 0:
        return -np.inf
    together = p_sx @ channel / total
    p_y, prior = together.sum(axis=0), p_sx.sum(axis=1) / total
    together, p_y = together[:, p_y > 0], p_y[p_y > 0]
    return float(output_values(measure, posteriors(together, p_y, prior), prior).max())
