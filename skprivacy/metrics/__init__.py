"""Leakage and utility measured on samples: columns in, numbers out."""

from ..mechanism import PopulationLeakage
from .attack import audit
from .frequencies import estimate_distribution
from .information import mutual_information, mutual_information_interval
from .leakage import (
    alpha_lift_leakage,
    chi2_leakage,
    l1_leakage,
    largest_lift,
    leakage,
    leakage_report,
    maximal_leakage,
    population_leakage,
    total_variation,
)
from .scorers import best_within_leakage, neg_leakage_scorer, utility_scorer

__all__ = [
    "PopulationLeakage",
    "alpha_lift_leakage",
    "audit",
    "best_within_leakage",
    "chi2_leakage",
    "estimate_distribution",
    "l1_leakage",
    "largest_lift",
    "leakage",
    "leakage_report",
    "maximal_leakage",
    "mutual_information",
    "mutual_information_interval",
    "neg_leakage_scorer",
    "population_leakage",
    "total_variation",
    "utility_scorer",
]
