"""Which limit a measure has: in closed form where there is one."""

from __future__ import annotations

import math

from ..measures import KL, L1, AlphaLift, Chi2, Lip, MaxLift, Measure, Parity
from .closed_limit import ClosedLimit
from .divergence_limits import AlphaLiftLimit, Chi2Limit, KLLimit, L1Limit
from .drawn_limit import DrawnLimit
from .lift_limits import LipLimit, MaxLiftLimit, ParityLimit
from .output_limits import OutputLimit, Sample

_CLOSED: dict[type[Measure], type[ClosedLimit]] = {
    KL: KLLimit,
    L1: L1Limit,
    Chi2: Chi2Limit,
    AlphaLift: AlphaLiftLimit,
    MaxLift: MaxLiftLimit,
    Parity: ParityLimit,
}


def output_limit(
    sample: Sample, measure: Measure, epsilon: float, confidence: float
) -> OutputLimit:
    """Return the limit of outputs that are to keep a budget of epsilon."""
    # No more than so many rows were missed: their number is exponential, of mean 1.
    more_rows = -math.log(1 - confidence)
    if isinstance(measure, Lip):
        return LipLimit(sample, measure, more_rows, epsilon)
    if type(measure) in _CLOSED:
        return _CLOSED[type(measure)](sample, measure, more_rows)
    return DrawnLimit(sample, measure)
