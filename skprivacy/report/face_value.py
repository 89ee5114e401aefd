"""What the report says to those who read released values as they are."""

import numpy as np
import pandas as pd

from ..describing import listed_swaps
from ..fidelity import Fidelity
from ..mechanism import Mechanism
from .sections import Section, Table


def face_value(fidelity: Fidelity, mechanism: Mechanism, names: str) -> Section:
    """Return how close released values are to the true ones; names : of the columns."""
    kept = f"{fidelity.unchanged:.1%} of the rows keep their values"
    paragraphs = [
        f"For those who read released values as they are: {kept}"
        f"{' in all columns' if len(fidelity.columns) > 1 else ''}. These figures are exact: they "
        f"follow from the channel."
    ]
    if swaps := listed_swaps(fidelity.swaps):
        paragraphs.append(f"The swaps that concern most rows: {'; '.join(swaps)}.")
    if fidelity.pooled:
        paragraphs.append(
            f"{fidelity.pooled:.1%} of the rows have rare values, which are pooled: each column "
            f"of such a row is drawn from the values of the pool."
        )
    tables = [Table("Values before and after, column by column", _cells(fidelity.columns))]
    if fidelity.raw_columns is not None:
        caption = "The same, against numbers as they were before they were cut into bins"
        tables.append(Table(caption, _cells(fidelity.raw_columns)))
    if not np.isnan(fidelity.raw_utility):
        paragraphs.append(
            f"Against the raw values, before numbers were cut into bins and rare values were "
            f"pooled, it keeps {fidelity.raw_utility:.1%} of "
            f"{mechanism.objective.in_words(names)}."
        )
    return Section("At face value", paragraphs, tables)


def _cells(figures: pd.DataFrame) -> pd.DataFrame:
    shifts = zip(figures["mean_shift"], figures["unit"], strict=True)
    return pd.DataFrame(
        {
            "unchanged": [f"{share:.1%}" for share in figures["unchanged"]],
            "mean shift": [_figure(shift, ".3g", unit) for shift, unit in shifts],
            "correlation": [_figure(value, ".2f") for value in figures["correlation"]],
            "total variation": [f"{value:.3f}" for value in figures["total_variation"]],
        },
        index=figures.index,
    )


def _figure(value: float, form: str, unit: str = "") -> str:
    return "none" if np.isnan(value) else f"{value:{form}} {unit}".rstrip()
