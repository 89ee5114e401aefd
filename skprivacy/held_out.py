"""A fitted transformer on rows that it has not seen."""

import numpy as np

from .encoding import UNKNOWN
from .fit_inputs import sensitive_columns
from .frames import as_table
from .joint import count_pairs
from .mechanism import Evaluation
from .utilities import Guess, MutualInformation


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
    is_guess = isinstance(mechanism.objective, Guess)
    return Evaluation(
        np.vstack([mechanism.channel, mechanism.p_y]),
        counts / counts.sum(),
        (*mechanism.s_labels, "unseen"),
        (*mechanism.x_labels, "unseen"),
        mechanism.y_labels,
        mechanism.measure,
        mechanism.objective if is_guess else MutualInformation(),
    )


def _symbols(transformer, table, owner):
    layout = transformer._layout
    positions = layout.match(table, owner, False)
    x_positions = [positions[p] for p in layout.x_positions]
    labels = [table.label(p) for p in x_positions]
    return transformer._alphabet.encode([table.column(p) for p in x_positions], labels)[0]
