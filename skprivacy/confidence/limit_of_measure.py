"""Which limit a measure has: in closed form where there is one."""

from __future__ import annotations

from ..measures import KL, L1, AlphaLift, Chi2, Lip, MaxLift, Measure, Parity
from .divergence_limits import AlphaLiftLimit, Chi2Limit, KLLimit, L1Limit
from .drawn_limit import DrawnLimit
from .lift_limits import LipLimit, MaxLiftLimit, ParityLimit
from .output_limits import OutputLimit, Sample

_CLOSED: dict[type[Measure], type[OutputLimit]] = {
    KL: KLLimit,
    L1: L1Limit,
    Chi2: Chi2Limit,
    AlphaLift: AlphaLiftLimit,
    MaxLift: MaxLiftLimit,
    Parity: ParityLimit,
}


def output_limit(sample: Sample, measure: Measure, epsilon: float) -> OutputLimit:
    """Return the limit of outputs that a budget of epsilon is about."""
    if isinstance(measure, Lip):
        return LipLimit(sample, measure, epsilon)
    return _CLOSED.get(type(measure), DrawnLimit)(sample, measure)
