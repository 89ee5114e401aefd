"""Where there are too many distinct rows to count, cells are counted instead."""

from __future__ import annotations

from .._messages import InPython, Message, Named, Setting
from .._warnings import warn
from ..cells import Cells
from .learned_cells import cells_of, default_cells, may_be_cells
from .parameters import Settings
from .tally import TooManyRowsError


def cells_instead(settings: Settings, n_columns: int, error: TooManyRowsError) -> Cells:
    """Return the cells to count in place of values; raise the error where values are wanted."""
    if (cells := cells_of(settings)) is not None:
        return cells
    if not may_be_cells(settings, n_columns):
        way_out = " Or let rows that are alike share a symbol: ", Setting("alphabet", "cells"), "."
        raise ValueError(Message(error.args[0], *way_out)) from error
    warn(
        Message(
            InPython("X has", "The released columns have"),
            " too many combinations of values to count: rows that are alike share a cell. ",
            Setting("alphabet", "cells"),
            " says that this is wanted; to keep combinations of values, give the edges of numbers "
            "in ",
            InPython("n_bins", Named("edges")),
            ", or release fewer columns jointly.",
        )
    )
    return default_cells(settings)
