"""The answer: a channel that provably keeps the budget of every secret, with all its figures."""

from ..channels import Channel
from ..describing.numbers import name_of_secret
from .evaluation import Evaluation
from .guarantee import (
    FAR_ABOVE,
    USUAL_CONFIDENCE,
    Guarantee,
    Leakage,
    PopulationLeakage,
    population_limits,
)
from .mechanism import Mechanism, make_mechanism, named_channel, one_secret

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
