"""How far the labels of a joint distribution are from each other, as the values that they name."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from .._typing import FloatArray
from .alphabets import learn_alphabet
from .distances import gower


def label_distances(
    columns: pd.Index, p_x: FloatArray, column_weights: Sequence[float]
) -> FloatArray:
    """Return the distance of each label (rows) from each (columns); p_x : how frequent they are.

    A label of several levels is a row of several columns.
    """
    series = label_columns(columns)
    names = list(range(len(series)))
    in_order = [getattr(each.dtype, "ordered", None) is True for each in series]
    options: list[dict[str, Any]] = [{"n_bins": None}] * len(series)
    # Labels that never occur are labels all the same.
    weights = np.maximum(p_x, np.finfo(float).tiny)
    alphabet, symbols = learn_alphabet(series, names, weights, options)
    return gower(alphabet, in_order, column_weights)[np.ix_(symbols, symbols)]


def label_columns(columns: pd.Index) -> list[pd.Series]:
    """Return the labels of a table as columns, one for each level."""
    levels = [columns.get_level_values(level) for level in range(columns.nlevels)]
    return [pd.Series(level, index=range(len(level))) for level in levels]
