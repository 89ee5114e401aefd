"""Trees of gradient boosting that somebody else may have made, checked before they are followed.

scikit-learn follows them without looking: a forged one would have no end, or lead out of memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder

from .._typing import BoolArray

# What gradient boosting makes of a table: codes of categories, and numbers as they are.
_STEPS = (OrdinalEncoder, FunctionTransformer, str)

# Words of 32 bits: as many bits as a column may have categories.
_WORDS = 8


def is_boosting(model: Any) -> bool:
    """Return whether a model is gradient boosting itself, rather than something around it."""
    return type(model) is HistGradientBoostingClassifier


def has_sound_trees(model: Any, row: pd.DataFrame) -> bool:
    """Return whether all trees of gradient boosting end, and ask for what there is.

    row : one row as the model takes it.
    """
    own = vars(model)
    steps, is_category = own["_preprocessor"], np.asarray(own["_bin_mapper"].is_categorical_)
    n_columns = row.shape[1]
    if steps is not None:
        if type(steps) is not ColumnTransformer:
            return False
        if not all(type(step) in _STEPS for _, step, _ in steps.transformers_):
            return False
        n_columns = steps.transform(row).shape[1]
    if n_columns != model.n_features_in_ or is_category.shape != (n_columns,):
        return False
    trees = [tree for trees in own["_predictors"] for tree in trees]
    return all(_is_sound(tree, is_category.astype(bool)) for tree in trees)


def _is_sound(tree: Any, is_category: BoolArray) -> bool:
    nodes, bits = tree.nodes, tree.raw_left_cat_bitsets
    if nodes.ndim != 1 or not len(nodes) or bits.ndim != 2 or bits.shape[1] != _WORDS:
        return False
    at = np.flatnonzero(nodes["is_leaf"] == 0)
    inner = nodes[at]
    for side in ("left", "right"):  # later in the list, so that there is an end
        if not ((inner[side] > at) & (inner[side] < len(nodes))).all():
            return False
    asked, of_category = inner["feature_idx"], inner["is_categorical"] != 0
    if not ((asked >= 0) & (asked < len(is_category))).all():
        return False
    return bool((is_category[asked] & (inner["bitset_idx"] < len(bits)))[of_category].all())
