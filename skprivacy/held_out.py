"""A fitted transformer on rows that it has not seen."""

import numpy as np

from .encoding import UNKNOWN
from .fit_inputs import sensitive_columns
from .frames import as_table
from .joint import count_pairs
from .mechanism import Evaluation
from .samples import coded
from .utilities import Target


def evaluated_on(transformer, X, y, sensitive_features):
    """Return the `Evaluation` of the channel of a transformer under the joint of other rows."""
    owner = type(transformer).__name__
    if not hasattr(transformer, "_sensitive"):
        raise ValueError(
            f"This {owner} was loaded without the values of S, and does not know them in other "
            f"rows. Use mechanism_.evaluate(p_sx) with a table of counts."
        )
    table = as_table(X, owner)
    s_columns, _ = sensitive_columns(owner, table, y, transformer.sensitive, sensitive_features)
    s_codes, _ = transformer._sensitive.encode(list(s_columns.values()), list(s_columns))
    x_codes = _symbols(transformer, table, owner)
    mechanism = transformer.mechanism_
    # A value that was not seen: one more group of S, or one more symbol of X, drawn from P(Y).
    n_s, n_x = len(mechanism.s_labels), len(mechanism.x_labels)
    counts = np.zeros((n_s + 1, n_x + 1))
    seen = count_pairs(
        np.where(s_codes == UNKNOWN, n_s, s_codes),
        np.where(x_codes == UNKNOWN, n_x, x_codes),
        None,
    )
    counts[: seen.shape[0], : seen.shape[1]] = seen
    return Evaluation(
        np.vstack([mechanism.channel, mechanism.p_y]),
        counts / counts.sum(),
        (*mechanism.s_labels, "unseen"),
        (*mechanism.x_labels, "unseen"),
        mechanism.y_labels,
        mechanism.measure,
        _objective(transformer, y, np.where(x_codes == UNKNOWN, n_x, x_codes)),
    )


def _symbols(transformer, table, owner):
    layout = transformer._layout
    positions = layout.match(table, owner, False)
    x_positions = [positions[p] for p in layout.x_positions]
    labels = [table.label(p) for p in x_positions]
    return transformer._alphabet.encode([table.column(p) for p in x_positions], labels)[0]


def _objective(transformer, y, x_codes):
    """Return the utility as these rows have it: a target is theirs."""
    objective = transformer.mechanism_.objective
    if not isinstance(objective, Target):
        return objective
    if y is None:
        raise ValueError(
            "A transformer with utility='target' needs y, the target, to be evaluated."
        )
    v_codes, _ = coded(y, "y")
    table = np.zeros((v_codes.max() + 1, len(transformer.mechanism_.x_labels) + 1))
    np.add.at(table, (v_codes, x_codes), 1.0)
    return Target(table)
