"""Figures in words, for those who do not know the theory."""

from .face_value import compared_values
from .notebook import as_html
from .sentences import (
    at_face_value,
    exposure,
    leak,
    listed_swaps,
    most_exposed,
    ranges_of,
    rarely_kept,
    reached_or_allowed,
    rows_kept,
    shown,
    what_is_kept,
)

__all__ = [
    "as_html",
    "at_face_value",
    "compared_values",
    "exposure",
    "leak",
    "listed_swaps",
    "most_exposed",
    "ranges_of",
    "rarely_kept",
    "reached_or_allowed",
    "rows_kept",
    "shown",
    "what_is_kept",
]
