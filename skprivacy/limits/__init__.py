"""Limits of what a channel leaks in the population that some rows were drawn from."""

from .draws import Draws, draws_around
from .risk import confidence_of_each
from .upper_limits import (
    UpperLimits,
    draws_of_limits,
    kept_draws,
    limit_unchanged,
    limits_of,
    upper_limits,
)

__all__ = [
    "Draws",
    "UpperLimits",
    "confidence_of_each",
    "draws_around",
    "draws_of_limits",
    "kept_draws",
    "limit_unchanged",
    "limits_of",
    "upper_limits",
]
