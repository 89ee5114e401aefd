"""Figures in words, for those who do not know the theory."""

from .face_value import DOES_NOT_APPLY, compared_values
from .notebook import as_html
from .sentences import (
    Sure,
    at_face_value,
    exposure,
    largest_move,
    leak,
    leak_in_population,
    leak_together,
    listed_swaps,
    most_exposed,
    never_released,
    percent,
    ranges_of,
    rarely_kept,
    reached_or_allowed,
    rows_kept,
    shown,
    single_group,
    what_is_kept,
)

__all__ = [
    "DOES_NOT_APPLY",
    "Sure",
    "as_html",
    "at_face_value",
    "compared_values",
    "exposure",
    "largest_move",
    "leak",
    "leak_in_population",
    "leak_together",
    "listed_swaps",
    "most_exposed",
    "never_released",
    "percent",
    "ranges_of",
    "rarely_kept",
    "reached_or_allowed",
    "rows_kept",
    "shown",
    "single_group",
    "what_is_kept",
]
