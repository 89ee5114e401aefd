"""Leakage and utility measured on samples: columns in, numbers out."""

from ..mechanism import PopulationLeakage
from .attack import audit, linkage
from .frequencies import estimate_distribution
from .information import (
    information_by_column,
    mutual_information,
    mutual_information_interval,
)
from .leakage import (
    leakage,
    leakage_per_output,
    leakage_report,
    population_leakage,
)
from .scorers import best_within_leakage, neg_leakage_scorer, utility_scorer

__all__ = [
    "PopulationLeakage",
    "audit",
    "best_within_leakage",
    "estimate_distribution",
    "information_by_column",
    "leakage",
    "leakage_per_output",
    "leakage_report",
    "linkage",
    "mutual_information",
    "mutual_information_interval",
    "neg_leakage_scorer",
    "population_leakage",
    "utility_scorer",
]
