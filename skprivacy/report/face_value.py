"""What the report says to those who read released values as they are."""

import numpy as np

from ..describing import compared_values, listed_swaps, rows_kept
from ..fidelity import Fidelity
from ..fitted import Fitted
from .changed_values import changed_values
from .sections import Points, Section, Table

_READING = (
    "In the table, the mean shift is how far a number moves on average, in its own unit; the "
    "correlation is that of values before and after, 1 where nothing is lost; the total variation "
    "is how far the distributions before and after are apart, from 0 to 1."
)


def face_value(fitted: Fitted, fidelity: Fidelity, names: str) -> Section:
    """Return how close released values are to the true ones.

    fidelity : that of what was fitted; names : of the columns.
    """
    everywhere = " in all columns" if len(fidelity.columns) > 1 else ""
    paragraphs = [
        f"For those who read released values as they are. {rows_kept(fidelity)}{everywhere}. "
        f"These figures are exact: they follow from the channel."
    ]
    if not np.isnan(fidelity.raw_utility):
        paragraphs.append(
            f"Against the raw values, before numbers were cut into bins and rare values were "
            f"pooled, it keeps {fidelity.raw_utility:.1%} of "
            f"{fitted.mechanism.objective.in_words(names)}."
        )
    swaps = listed_swaps(fidelity.swaps)
    points = [Points("The swaps that concern most rows", swaps)] if swaps else []
    lost, changed = changed_values(fitted, fidelity)
    table = Table("Values before and after, column by column", compared_values(fidelity))
    return Section(
        "At face value",
        [*paragraphs, _READING],
        [table, *changed],
        points=[*lost, *points],
    )
