"""Summaries of a release for readers who do not know the theory."""

from .face_value import (
    DOES_NOT_APPLY,
    compared_values,
    listed_swaps,
    never_released,
    rarely_kept,
    rows_unchanged,
)
from .numbers import (
    Range,
    at_most,
    figure,
    limit,
    name_of_secret,
    percent,
    rounded_down,
    rounded_up,
    shown,
)
from .summary import ReleaseSummary, SecretSummary, plain
from .verdict import ALLOWS, CAUTION, FAIL, LEVELS, NO_VERDICT, PASS, Verdict, verdict_of

__all__ = [
    "ALLOWS",
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
    "at_most",
    "compared_values",
    "figure",
    "limit",
    "listed_swaps",
    "name_of_secret",
    "never_released",
    "percent",
    "plain",
    "rarely_kept",
    "rounded_down",
    "rounded_up",
    "rows_unchanged",
    "shown",
    "verdict_of",
]
