"""The answer: a channel with its figures, and a mechanism that cannot break its budget."""

from .evaluation import Evaluation
from .mechanism import Mechanism, named_channel
from .population import FAR_ABOVE, USUAL_CONFIDENCE, PopulationLeakage, population_limits
from .several_evaluations import SeveralSecretsEvaluation
from .several_secrets import (
    SeveralSecretsMechanism,
    check_one_secret,
    make_any_mechanism,
    mechanism_content_of_any,
    name_of_secret,
    one_of,
    said_together,
)

__all__ = [
    "FAR_ABOVE",
    "USUAL_CONFIDENCE",
    "Evaluation",
    "Mechanism",
    "PopulationLeakage",
    "SeveralSecretsEvaluation",
    "SeveralSecretsMechanism",
    "check_one_secret",
    "make_any_mechanism",
    "mechanism_content_of_any",
    "name_of_secret",
    "named_channel",
    "one_of",
    "population_limits",
    "said_together",
]
