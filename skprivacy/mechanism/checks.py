"""What every mechanism is checked for when it is made: distributions, names, groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._json import label_key
from .._typing import IntArray
from .._validation import check_confidence, check_real, message
from ..joint import as_joint
from .content import ROW_TOLERANCE
from .evaluation import Evaluation

_OWNER = "Mechanism"


def check_distributions(figures: Evaluation) -> None:
    """Check that the joint, the channel and the distribution of X are what they are called."""
    p_sx, p_x, channel = figures.p_sx, figures.p_x, figures.channel
    if p_sx is not None:
        as_joint(p_sx, _OWNER)
        if not abs(p_sx.sum() - 1) <= ROW_TOLERANCE:
            raise ValueError(f"p_sx must sum to 1. Got a sum of {p_sx.sum()}.")
    if channel.ndim != 2 or p_x.shape != channel.shape[:1]:
        raise ValueError(
            f"The channel must have one row for each of the {len(p_x)} symbols of X. "
            f"Got shape {channel.shape}."
        )
    if not (channel >= 0).all():  # NaN fails too
        raise ValueError("The channel must hold probabilities: no negative numbers, no NaN.")
    error = np.abs(channel.sum(axis=1) - 1).max()
    if not error <= ROW_TOLERANCE:
        raise ValueError(f"The rows of the channel must sum to 1. They are off by {error}.")
    error = np.abs(figures.p_y @ figures.posterior - p_x).max()
    if not error <= ROW_TOLERANCE or not abs(p_x.sum() - 1) <= ROW_TOLERANCE:
        raise ValueError("The channel does not reproduce the distribution of X.")


def check_names(figures: Evaluation, solver: Any) -> None:
    """Check that all symbols have names, each its own, and that the solver has one."""
    counts = {"x_labels": figures.channel.shape[0], "y_labels": figures.channel.shape[1]}
    if figures.p_sx is not None:
        counts["s_labels"] = len(figures.p_sx)
    for name, count in counts.items():
        labels = getattr(figures, name)
        keys = {(type(label), label_key(label)) for label in labels}
        if not isinstance(labels, tuple) or len(labels) != count or len(keys) != count:
            requirement = f"a tuple of {count} different names"
            given = "others" if name == "s_labels" else labels  # groups of S are not shown
            raise ValueError(message(_OWNER, name, requirement, given))
    if not isinstance(solver, str):
        raise TypeError(message(_OWNER, "solver", "a str", solver))


def check_groups(figures: Evaluation) -> None:
    """Check that no output mixes symbols of X with different values beside it."""
    groups, channel, p_x = figures.groups, figures.channel, figures.p_x
    if groups is None:
        return
    if groups.shape != p_x.shape:
        requirement = f"None, or one group for each of the {len(p_x)} symbols of X"
        raise ValueError(message(_OWNER, "groups", requirement, groups))
    of_output = groups[channel.argmax(axis=0)]
    if ((channel > 0) & (groups[:, None] != of_output)).any():
        raise ValueError(
            "An output mixes symbols of different groups: beside the columns that are "
            "published it would say more than its leakage tells."
        )


def checked_confidence(
    confidence: float | None, n_samples: float | None
) -> tuple[float | None, float | None]:
    """Return a confidence and the number of rows that it is based on, or None and None."""
    if (confidence is None) != (n_samples is None):
        raise ValueError("A Mechanism has both a confidence and n_samples, or none of them.")
    if confidence is None:
        return None, None
    rows = check_real(_OWNER, "n_samples", n_samples, low=1, high_open=True)
    return check_confidence(_OWNER, confidence), rows


def checked_symbols(given: IntArray | None, n_x: int, n_y: int) -> IntArray | None:
    """Return the symbol of X that each output is released as, read-only; None if it has none."""
    if given is None:
        return None
    symbols = np.array(given)
    is_one_each = symbols.shape == (n_y,) and symbols.dtype.kind in "iu"
    if not is_one_each or not ((symbols >= 0) & (symbols < n_x)).all():
        requirement = f"None, or {n_y} positions of symbols of X, which has {n_x}"
        raise ValueError(message(_OWNER, "symbol_of_output", requirement, given))
    symbols.flags.writeable = False
    return symbols
