"""Mechanisms: channels that provably keep the budget of every secret, with all their figures."""

from ..channels import Channel
from ..describing.numbers import name_of_secret
from .guarantee import (
    FAR_ABOVE,
    USUAL_CONFIDENCE,
    Guarantee,
    Leakage,
    PopulationLeakage,
    population_limits,
)
from .mechanism import Evaluation, Mechanism, make_mechanism, named_channel, one_secret

__all__ = [
    "FAR_ABOVE",
    "USUAL_CONFIDENCE",
    "Channel",
    "Evaluation",
    "Guarantee",
    "Leakage",
    "Mechanism",
    "PopulationLeakage",
    "make_mechanism",
    "name_of_secret",
    "named_channel",
    "one_secret",
    "population_limits",
]
