"""The answer: a channel with its figures, and a mechanism that cannot break its budget."""

from .evaluation import Evaluation
from .mechanism import Mechanism, make_mechanism, mechanism_content, named_channel
from .population import FAR_ABOVE, USUAL_CONFIDENCE, PopulationLeakage, population_limits
from .several_secrets import SeveralSecretsMechanism

__all__ = [
    "FAR_ABOVE",
    "USUAL_CONFIDENCE",
    "Evaluation",
    "Mechanism",
    "PopulationLeakage",
    "SeveralSecretsMechanism",
    "make_mechanism",
    "mechanism_content",
    "named_channel",
    "population_limits",
]
