"""Limits of what a channel leaks in the population that some rows were drawn from."""

from .draws import Draws, draws_around
from .upper_limits import UpperLimits, draws_for, limit_unchanged, limits_of, upper_limits

__all__ = [
    "Draws",
    "UpperLimits",
    "draws_around",
    "draws_for",
    "limit_unchanged",
    "limits_of",
    "upper_limits",
]
