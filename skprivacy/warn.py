"""Warnings where a release keeps its budget and would mislead its user all the same."""

import warnings

import numpy as np

from .alphabets import learn_column
from .exceptions import PrivacyLeakWarning
from .joint import as_joint
from .measures import budget_with_tolerance

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
            f"The sensitive groups {shown}{more} have fewer rows than X has symbols ({n_x}): their "
            f"distribution is estimated badly, and the true leakage may exceed epsilon. Pool "
            f"symbols of X or set smoothing."
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
            f"{_leakage(mechanism):.3g}."
        )
    elif mechanism.utility < 1e-12:
        yield (
            f"The output is constant or says nothing about X: epsilon={mechanism.epsilon:g} allows "
            f"no more."
        )


def _leakage(mechanism):
    return mechanism.max_leakage if mechanism.scope == "per_output" else mechanism.average_leakage


def _about_columns(mechanism, columns, s_codes, weights):
    """Warn of columns that are passed through and alone say more than the budget."""
    prior = mechanism.p_sx.sum(axis=1)
    measure, n_s = mechanism.measure, len(prior)
    for name, column in columns.items():
        alphabet, codes = learn_column(column, weights, name)
        shape = (n_s, alphabet.n_symbols)
        packed = s_codes.astype(np.int64) * shape[1] + codes
        counts = np.bincount(packed, weights=weights, minlength=shape[0] * shape[1])
        joint = as_joint(counts.reshape(shape), "PrivacyFunnelTransformer").without_empty()
        values = measure.value((joint.lifts * joint.p_s[:, None]).T, joint.p_s)
        if mechanism.scope == "average":
            leakage = float(measure.inverse(joint.p_x @ values))
        else:
            leakage = float(np.max(measure.inverse(values)))
        if leakage > budget_with_tolerance(mechanism.epsilon):
            yield (
                f"The column {name!r} is passed through and alone says more about S "
                f"({leakage:.3g}) than epsilon={mechanism.epsilon:g} allows: release it through a "
                f"transformer too, or drop it."
            )
