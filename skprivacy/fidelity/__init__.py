"""What a reader who takes released values at face value gets."""

from .columns import (
    ComparedColumn,
    RawX,
    mid_ranks,
    places_of,
    ranked_columns,
    unit_of,
)
from .fidelity import Fidelity, NamedChannel, fidelity_of_columns, fidelity_of_symbols
from .names import closest_names
from .spread import spread

__all__ = [
    "ComparedColumn",
    "Fidelity",
    "NamedChannel",
    "RawX",
    "closest_names",
    "fidelity_of_columns",
    "fidelity_of_symbols",
    "mid_ranks",
    "places_of",
    "ranked_columns",
    "spread",
    "unit_of",
]
