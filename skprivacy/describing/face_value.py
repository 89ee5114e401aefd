"""How close released values are to the true ones, as a table of texts."""

import numpy as np
import pandas as pd

from ..fidelity import Fidelity

# Of a column of texts, say, which have no mean.
_NO_FIGURE = "\N{EN DASH}"


def compared_values(fidelity: Fidelity) -> pd.DataFrame:
    """Return the figures of each column as texts, also as it was before it was cut into bins."""
    figures, raw = fidelity.columns, fidelity.raw_columns
    names = [str(name) for name in figures.index]
    if raw is not None:
        was_cut = (raw.fillna(0) != figures.fillna(0)).any(axis=1).to_numpy()
        names += [f"{name}, before it was cut" for name in figures.index[was_cut]]
        figures = pd.concat([figures, raw[was_cut]])
    shifts = zip(figures["mean_shift"], figures["unit"], strict=True)
    return pd.DataFrame(
        {
            "unchanged": [f"{share:.1%}" for share in figures["unchanged"]],
            "mean shift": [_figure(shift, ".3g", unit) for shift, unit in shifts],
            "correlation": [_figure(value, ".2f") for value in figures["correlation"]],
            "total variation": [f"{value:.3f}" for value in figures["total_variation"]],
        },
        index=pd.Index(names, name="column"),
    )


def _figure(value: float, form: str, unit: str = "") -> str:
    return _NO_FIGURE if np.isnan(value) else f"{value:{form}} {unit}".rstrip()
