"""Warnings where a release keeps its budget and would mislead its user all the same."""

import warnings

import numpy as np

from .encoding import learn_column
from .exceptions import PrivacyLeakWarning
from .joint import as_joint, count_pairs
from .mechanism import Evaluation

_MOST_NAMES = 5


def warn_if_misleading(mechanism, group_sizes, group_labels, passed_through, s_codes, weights):
    """Warn of everything that a user of the release should know and might not."""
    for text in (
        *_about_groups(mechanism, group_sizes, group_labels),
        *_about_release(mechanism),
        *_about_columns(mechanism, passed_through, s_codes, weights),
    ):
        warnings.warn(text, PrivacyLeakWarning, stacklevel=3)


def _about_groups(mechanism, sizes, labels):
    if len(sizes) == 1:
        yield "S has a single value: there is nothing to protect, and X is released unchanged."
        return
    n_x = len(mechanism.x_labels)
    small = [label for label, size in zip(labels, sizes, strict=True) if size < n_x]
    if small:
        shown = ", ".join(map(repr, small[:_MOST_NAMES]))
        more = f" and {len(small) - _MOST_NAMES} more" if len(small) > _MOST_NAMES else ""
        yield (
            f"The sensitive groups {shown}{more} have fewer rows than X has symbols ({n_x}): "
            f"their distribution is estimated badly, and the true leakage may exceed epsilon. "
            f"Pool symbols of X or set smoothing."
        )


def _about_release(mechanism):
    if len(mechanism.s_labels) == 1 or len(mechanism.x_labels) == 1:
        return
    seen = mechanism.p_sx[:, mechanism.p_x > 0]
    if ((seen > 0).sum(axis=0) == 1).all():
        yield "X determines S in the data: every value of X occurs with a single value of S."
    if mechanism.normalized_utility > 1 - 1e-12:
        yield (
            f"X is released unchanged: epsilon={mechanism.epsilon:g} allows it, its leakage is "
            f"{_leakage(mechanism, mechanism.scope):.3g}."
        )
    elif mechanism.utility < 1e-12:
        yield (
            f"The output is constant or says nothing about X: epsilon={mechanism.epsilon:g} "
            f"allows no more."
        )


def _leakage(figures, scope):
    return figures.max_leakage if scope == "per_output" else figures.average_leakage


def _about_columns(mechanism, columns, s_codes, weights):
    """Warn of columns that are passed through and alone say more than the budget."""
    too_much = {}
    for name, column in columns.items():
        leakage = _leakage_of_column(mechanism, name, column, s_codes, weights)
        if leakage > mechanism.measure.budget(mechanism.epsilon):
            too_much[name] = round(leakage, 4)
    if too_much:
        yield (
            f"Columns that are passed through say more about S on their own than "
            f"epsilon={mechanism.epsilon:g} allows: {too_much}. Release them through a "
            f"transformer too, or drop them."
        )


def _leakage_of_column(mechanism, name, column, s_codes, weights):
    """Return what releasing a column unchanged leaks."""
    alphabet, codes = learn_column(column, weights, name)
    joint = as_joint(count_pairs(s_codes, codes, weights), "PrivacyFunnelTransformer")
    unchanged = Evaluation(
        np.eye(alphabet.n_symbols),
        joint.p_sx,
        joint.s_labels,
        joint.x_labels,
        joint.x_labels,
        mechanism.measure,
    )
    return _leakage(unchanged, mechanism.scope)
