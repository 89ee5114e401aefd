"""What was fitted, on rows that it has not seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._messages import Message, Setting
from .._typing import ColumnsLike, FloatArray, IntArray
from ..encoding import UNKNOWN
from ..fitted import Fitted
from ..mechanism import Evaluation, Mechanism
from ..tables.cross_tables import coded
from ..tables.frames import as_table
from ..utilities import Distortion, Target, Utility
from .inputs import sensitive_columns


def evaluated_on(
    fitted: Fitted,
    owner: str,
    sensitive: Any,
    X: Any,
    y: ColumnsLike | None,
    sensitive_features: ColumnsLike | None,
) -> Evaluation:
    """Return the `Evaluation` of a channel under the joint of other rows.

    owner, sensitive : the name and the parameter of the transformer; the rest as in `fit`.
    """
    training, mechanism = fitted.training, fitted.mechanism
    if training is None or mechanism.s_labels is None:
        raise ValueError(
            f"This {owner} was loaded without the values of S, and cannot recognise them in other "
            f"rows. Use mechanism_.evaluate(p_sx) with a table of counts."
        )
    table = as_table(X, owner)
    s_columns, _ = sensitive_columns(owner, table, y, sensitive, sensitive_features)
    s_codes, _ = training.alphabet.encode(list(s_columns.values()), list(s_columns))
    x_columns = table.named(fitted.roles.x_in(table, owner))
    x_codes, _ = fitted.alphabet.encode(list(x_columns.values()), list(x_columns))
    # A value that was not seen: one more group of S, or one more symbol of X, drawn from P(Y).
    n_s, n_x = len(mechanism.s_labels), len(mechanism.x_labels)
    s_codes = np.where(s_codes == UNKNOWN, n_s, s_codes)
    x_codes = np.where(x_codes == UNKNOWN, n_x, x_codes)
    counts = _counts(s_codes, x_codes, (n_s + 1, n_x + 1))
    return Evaluation(
        np.vstack([mechanism.channel, mechanism.p_y]),
        counts / counts.sum(),
        (*mechanism.s_labels, "unseen"),
        (*mechanism.x_labels, "unseen"),
        mechanism.y_labels,
        mechanism.measure,
        _objective(mechanism, y, x_codes),
    )


def _counts(rows: IntArray, columns: IntArray, shape: tuple[int, int]) -> FloatArray:
    """Return the table of counts of two columns of codes; symbols that never occur count 0."""
    counts = np.zeros(shape)
    np.add.at(counts, (rows, columns), 1.0)
    return counts


def _objective(mechanism: Mechanism, y: ColumnsLike | None, x_codes: IntArray) -> Utility:
    """Return the utility for these rows: a target is their own."""
    objective = mechanism.objective
    if isinstance(objective, Distortion):  # an unseen value is as far from all labels as can be
        furthest = np.full((1, objective.loss.shape[1]), objective.loss.max())
        return Distortion.of_symbols(np.vstack([objective.loss, furthest]))
    if not isinstance(objective, Target):
        return objective
    if y is None:
        raise ValueError(
            Message(
                "A transformer with ",
                Setting("utility", "target"),
                " needs y, the target, to be evaluated.",
            )
        )
    v_codes, _ = coded(y, "y")
    return Target(_counts(v_codes, x_codes, (v_codes.max() + 1, len(mechanism.x_labels) + 1)))
