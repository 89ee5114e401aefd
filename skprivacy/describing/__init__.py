"""Summaries of a release for readers who do not know the theory."""

from .face_value import (
    DOES_NOT_APPLY,
    compared_values,
    listed_swaps,
    never_released,
    rarely_kept,
    rows_unchanged,
)
from .numbers import Range, figure, limit, name_of_secret, percent, rounded_up, shown
from .summary import CAUTION, FAIL, NO_VERDICT, PASS, ReleaseSummary, SecretSummary
from .verdict import LEVELS, Verdict, verdict_of

__all__ = [
    "CAUTION",
    "DOES_NOT_APPLY",
    "FAIL",
    "LEVELS",
    "NO_VERDICT",
    "PASS",
    "Range",
    "ReleaseSummary",
    "SecretSummary",
    "Verdict",
    "compared_values",
    "figure",
    "limit",
    "listed_swaps",
    "name_of_secret",
    "never_released",
    "percent",
    "rarely_kept",
    "rounded_up",
    "rows_unchanged",
    "shown",
    "verdict_of",
]
