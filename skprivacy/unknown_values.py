"""Values of X that `fit` did not see."""

import warnings
from collections.abc import Hashable, Sequence

import numpy as np
import pandas as pd

from ._typing import IntArray
from .encoding import UNKNOWN, Alphabet


def report_unknown(
    alphabet: Alphabet,
    handle_unknown: str,
    series: Sequence[pd.Series],
    labels: Sequence[Hashable],
    symbols: IntArray,
    unknown: dict[Hashable, int],
) -> None:
    """Warn of rows that are drawn from P(Y), or raise an error that shows some of their values.

    series, labels, symbols : the columns of X, their names, and the symbols of their rows;
    unknown : how many rows of each column were not seen by `fit`.
    """
    joint = "combination of " + ", ".join(map(repr, labels))
    shown = {joint if label is None else label: count for label, count in unknown.items()}
    if handle_unknown == "resample":
        warnings.warn(
            f"Values that fit did not see are replaced by draws from P(Y): {shown} (rows per "
            f"column).",
            UserWarning,
            stacklevel=5,  # scikit-learn wraps transform
        )
        return
    label = next(iter(unknown))
    rows = np.flatnonzero(symbols == UNKNOWN)
    if label is None:
        values = [tuple(s.iloc[row] for s in series) for row in rows[:1000]]
    else:
        column = labels.index(label)
        codes = alphabet.columns[column].encode(series[column], label)
        values = series[column].iloc[np.flatnonzero(codes == UNKNOWN)[:1000]].tolist()
    first = list(dict.fromkeys(map(repr, values)))[:5]
    raise ValueError(
        f"Found unknown values in column {joint if label is None else repr(label)} during "
        f"transform: {', '.join(first)}. Use handle_unknown='resample' to draw them from P(Y)."
    )
