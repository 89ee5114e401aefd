"""Where a release keeps its budget and would mislead its user all the same."""

import warnings
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ._typing import CountArray, FloatArray, IntArray, NamedColumns
from .encoding import Alphabet, learn_column
from .exceptions import PrivacyLeakWarning
from .joint import as_joint, count_pairs
from .mechanism import Mechanism

_MOST_NAMES = 5

# A column with more distinct values than this share of its rows is judged by its bins: that nearly
# every value occurs with a single S says nothing about the next row.
_MOST_DISTINCT = 0.2
_MANY_ROWS = 50


def warn_of_bins(names: Sequence[Hashable], alphabet: Alphabet, n_bins: Any) -> None:
    """Warn of numbers of S that are cut into bins although nobody has asked for it."""
    for name, column in zip(names, alphabet.columns, strict=True):
        if column.edges is not None and not (isinstance(n_bins, dict) and name in n_bins):
            warnings.warn(
                f"The sensitive column {name!r} holds numbers with many values: what is protected "
                f"is which of {len(column.edges) + 1} bins they fall into, not the number within "
                f"its bin. If they are codes, do not cut them: n_bins={{{name!r}: None}}. To "
                f"choose the bins, give edges there.",
                PrivacyLeakWarning,
                stacklevel=4,
            )


def warn_if_misleading(mechanism: Mechanism, counts: CountArray, group_sizes: CountArray) -> None:
    """Warn of what a user of the release should know and might not.

    counts : of pairs (s, x), before smoothing; group_sizes : rows for each s, without weights.
    """
    for text in (*_about_groups(mechanism, group_sizes), *_about_release(mechanism, counts)):
        warnings.warn(text, PrivacyLeakWarning, stacklevel=4)


def _about_groups(mechanism: Mechanism, sizes: CountArray) -> Iterator[str]:
    if len(sizes) == 1:
        yield "S has a single value: there is nothing to protect, and no noise is added to X."
        return
    assert mechanism.s_labels is not None  # every design has them
    n_x = len(mechanism.x_labels)
    small = [label for label, size in zip(mechanism.s_labels, sizes, strict=True) if size < n_x]
    if small:
        shown = ", ".join(map(repr, small[:_MOST_NAMES]))
        more = f" and {len(small) - _MOST_NAMES} more" if len(small) > _MOST_NAMES else ""
        yield (
            f"The sensitive groups {shown}{more} have fewer rows than X has symbols ({n_x}): "
            f"their distribution is estimated badly, and the true leakage may exceed epsilon. "
            f"Pool symbols of X or set smoothing."
        )


def _about_release(mechanism: Mechanism, counts: CountArray) -> Iterator[str]:
    assert mechanism.s_labels is not None  # every design has them
    if len(mechanism.s_labels) == 1 or len(mechanism.x_labels) == 1:
        return
    if ((counts > 0).sum(axis=0) <= 1).all():
        yield "X determines S in the data: every symbol of X occurs with a single value of S."
    if mechanism.normalized_utility > 1 - 1e-12:
        yield (
            f"No noise is added to X: epsilon={mechanism.epsilon:g} allows to release its symbols "
            f"as they are, with a leakage of {mechanism.leakage_in(mechanism.scope):.3g}."
        )
    elif mechanism.normalized_utility < 1e-12:
        yield (
            f"The output is constant or says nothing about X: epsilon={mechanism.epsilon:g} "
            f"allows no more."
        )


def warn_of_passed_through(
    mechanism: Mechanism, columns: NamedColumns, s_codes: IntArray, weights: FloatArray | None
) -> None:
    """Warn of columns that are passed through and alone say more than the budget."""
    too_much, unclear = {}, []
    for name, column in columns.items():
        try:
            counts = _counts(name, column, s_codes, weights)
        except (TypeError, ValueError):  # names, lists, mixed types: not ours to encode
            unclear.append(name)
            continue
        leakage = _leakage_unchanged(mechanism, counts)
        if leakage > mechanism.measure.budget(mechanism.epsilon):
            too_much[name] = round(leakage, 4)
    if too_much:
        warnings.warn(
            f"Columns that are passed through say more about S on their own than "
            f"epsilon={mechanism.epsilon:g} allows: {too_much}. Name them in sensitive=... if "
            f"they are S, protect them too, or drop them.",
            PrivacyLeakWarning,
            stacklevel=4,
        )
    if unclear:
        warnings.warn(
            f"What the columns {unclear} say about S cannot be judged (nearly every row has a "
            f"value of its own, or types are mixed), and they are passed through: drop them if in "
            f"doubt.",
            PrivacyLeakWarning,
            stacklevel=4,
        )


def warn_of_unjudged(names: Sequence[Hashable]) -> None:
    """Warn of columns that are passed through, and of which too little is known."""
    if names:
        warnings.warn(
            f"What the columns {list(names)} say about S is not measured, and they are passed "
            f"through: fit some of the rows in memory to have them judged, or drop them if in "
            f"doubt.",
            PrivacyLeakWarning,
            stacklevel=4,
        )


def _counts(
    name: Hashable, column: pd.Series, s_codes: IntArray, weights: FloatArray | None
) -> CountArray:
    alphabet, codes = learn_column(column, weights, name, n_bins=None)
    if alphabet.n_symbols > _MOST_DISTINCT * len(codes):
        alphabet, codes = learn_column(column, weights, name)
    if alphabet.n_symbols > _MOST_DISTINCT * len(codes) and len(codes) >= _MANY_ROWS:
        raise ValueError("nearly every row has a value of its own")
    return count_pairs(s_codes, codes, weights)


def _leakage_unchanged(mechanism: Mechanism, counts: CountArray) -> float:
    """Return what releasing a column unchanged leaks."""
    joint = as_joint(counts, "PrivacyFunnelTransformer").without_empty()
    values = mechanism.measure.value((joint.p_sx / joint.p_x).T, joint.p_s)
    if mechanism.scope == "average":
        return float(mechanism.measure.inverse(joint.p_x @ values))
    return float(np.max(mechanism.measure.inverse(values)))
