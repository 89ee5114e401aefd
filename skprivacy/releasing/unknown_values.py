"""Values of X that `fit` did not see."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd

from .._messages import InPython, Message, Setting
from .._typing import IntArray
from .._warnings import warn
from ..encoding import UNKNOWN, Alphabet

_LONGEST = 80  # of a value in a message

# What is drawn where nothing is known.
_OUTPUTS = InPython("P(Y)", "the distribution of the release")


def warn_of_unknown(labels: Sequence[Hashable], unknown: Mapping[Hashable, int]) -> None:
    """Warn of rows that are drawn from P(Y).

    unknown : for each column, how many rows have values that `fit` did not see; the key None is
    for combinations.
    """
    if not unknown:
        return
    named = {_joint(labels) if label is None else repr(label): n for label, n in unknown.items()}
    counted = (f"{n:,} row{'s' if n > 1 else ''} of {name}" for name, n in named.items())
    warn(
        Message(
            "Values that fit did not see are replaced by draws from ",
            _OUTPUTS,
            ": ",
            InPython(", ".join(named), ", ".join(counted)),
            ". ",
            Setting("handle_unknown", "error"),
            " refuses them.",
        )
    )


def _joint(labels: Sequence[Hashable]) -> str:
    return "the combination of " + ", ".join(map(repr, labels))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def unknown_error(
    alphabet: Alphabet,
    series: Sequence[pd.Series],
    labels: Sequence[Hashable],
    symbols: IntArray,
    unknown: Mapping[Hashable, int],
) -> ValueError:
    """Return an error that shows some of the values that `fit` did not see.

    series, labels, symbols : the columns of X, their names, and the symbols of their rows.
    """
    label = next(iter(unknown))
    rows = np.flatnonzero(symbols < 0)
    if label is None:
        values = [tuple(s.iloc[row] for s in series) for row in rows[:1000]]
    else:
        column = labels.index(label)
        codes = alphabet.columns[column].encode(series[column], label)
        values = series[column].iloc[np.flatnonzero(codes == UNKNOWN)[:1000]].tolist()
    first = [_short(text) for text in list(dict.fromkeys(map(repr, values)))[:5]]
    where = _joint(labels) if label is None else repr(label)
    return ValueError(
        Message(
            f"Found unknown values in column {where} during transform: {', '.join(first)}. Use ",
            Setting("handle_unknown", "resample"),
            " to draw them from ",
            _OUTPUTS,
            ".",
        )
    )
