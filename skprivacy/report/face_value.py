"""What the report says to those who read released values as they are."""

import numpy as np

from ..describing import compared_values, listed_swaps, rows_kept
from ..fidelity import Fidelity
from ..mechanism import Mechanism, SeveralSecretsMechanism
from .sections import Section, Table


def face_value(
    fidelity: Fidelity, mechanism: Mechanism | SeveralSecretsMechanism, names: str
) -> Section:
    """Return how close released values are to the true ones; names : of the columns."""
    everywhere = " in all columns" if len(fidelity.columns) > 1 else ""
    paragraphs = [
        f"For those who read released values as they are. {rows_kept(fidelity)}{everywhere}. "
        f"These figures are exact: they follow from the channel."
    ]
    if swaps := listed_swaps(fidelity.swaps):
        paragraphs.append(f"The swaps that concern most rows: {'; '.join(swaps)}.")
    if fidelity.pooled:
        paragraphs.append(
            f"{fidelity.pooled:.1%} of the rows have rare values, which are pooled: each column "
            f"of such a row is drawn from the values of the pool."
        )
    if not np.isnan(fidelity.raw_utility):
        paragraphs.append(
            f"Against the raw values, before numbers were cut into bins and rare values were "
            f"pooled, it keeps {fidelity.raw_utility:.1%} of "
            f"{mechanism.objective.in_words(names)}."
        )
    table = Table("Values before and after, column by column", compared_values(fidelity))
    return Section("At face value", paragraphs, [table])
