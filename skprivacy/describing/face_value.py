"""How close released values are to the true ones, in sentences and as a table."""

import textwrap
from typing import Any

import numpy as np
import pandas as pd

from .._messages import aligned
from ..fidelity import Fidelity
from .numbers import shown

# Stands for a figure that does not apply, in tables.
DOES_NOT_APPLY = "\N{EN DASH}"

# Swaps of several columns may take more than a line.
_WIDTH = 99

# Larger shifts have no decimals.
_LARGE = 1000

# Maximum number of values named in a line.
_MOST_NAMED = 12


def at_face_value(fidelity: Fidelity) -> str:
    """Return a sentence on how many rows are unchanged, and on the most frequent swap."""
    swaps = listed_swaps(fidelity.swaps)
    return f"{rows_unchanged(fidelity)}; {swaps[0]}." if swaps else f"{rows_unchanged(fidelity)}."


def rows_unchanged(fidelity: Fidelity) -> str:
    """Return the share of unchanged rows in words, without a full stop."""
    if fidelity.of_cells:
        text = "Each column of a released row is drawn separately from the rows of a cell"
        if fidelity.is_joint:
            text = "Released rows are made up: their columns are drawn together, as in a cell"
        if np.isnan(fidelity.unchanged):
            return text
        return f"{text}: taken at face value, {_share(fidelity.unchanged)} of the rows are true"
    values = "values" if fidelity.raw_columns is None else "values or bins"
    return f"Taken at face value, {fidelity.unchanged:.1%} of the rows have their true {values}"


def listed_swaps(swaps: pd.DataFrame) -> list[str]:
    """Return swaps in words."""
    columns = (swaps[name] for name in ("share", "value", "released_as", "rows"))
    return [
        f"{_share(share)} of {shown(value)} are released as {shown(other)} ({rows:.1%} of rows)"
        for share, value, other, rows in zip(*columns, strict=True)
    ]


def never_released(fidelity: Fidelity) -> list[str]:
    """Return a sentence that names values never released; rare ones, maybe of one person, not."""
    found = fidelity.never_released
    if found.empty:
        return []
    named = found[~found["is_rare"]][:_MOST_NAMED]
    is_one = len(fidelity.columns) == 1
    names = [
        shown(value) if is_one else f"{shown(value)} ({column})"
        for column, value in zip(named["column"], named["value"], strict=True)
    ]
    more = len(found) - len(named)
    if not names:
        return [f"Never released: {more:,} rare value{'s'[: more != 1]}."]
    return [f"Never released: {', '.join(names)}{f' and {more:,} more' if more else ''}."]


def compared_values(fidelity: Fidelity) -> pd.DataFrame:
    """Return the figures of each column as texts; of binned columns, also against raw values."""
    figures, raw = fidelity.columns, fidelity.raw_columns
    names = [str(name) for name in figures.index]
    if raw is not None:
        is_binned = (raw.fillna(0) != figures.fillna(0)).any(axis=1).to_numpy()
        names += [f"{name}, before binning" for name in figures.index[is_binned]]
        figures = pd.concat([figures, raw[is_binned]])
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


def fidelity_facts(fidelity: Fidelity) -> dict[str, Any]:
    """Return the figures for machines, without rare values."""
    columns, raw_columns = (
        {str(name): dict(zip(each, row, strict=True)) for name, *row in each.itertuples()}
        if each is not None
        else None
        for each in (fidelity.columns, fidelity.raw_columns)
    )
    return {
        "unchanged": fidelity.unchanged,
        "columns": columns,
        "raw_columns": raw_columns,
        "raw_utility": fidelity.raw_utility,
        "pooled": fidelity.pooled,
        "swaps": [
            {**each, **{key: shown(each[key])[1:-1] for key in ("value", "released_as")}}
            for each in fidelity.swaps.to_dict("records")
        ],
        "never_released": [
            {"column": each["column"], "value": shown(each["value"])[1:-1], "rows": each["rows"]}
            for each in fidelity.never_released.to_dict("records")
            if not each["is_rare"]
        ],
    }


def _figure(value: float, form: str, unit: str = "") -> str:
    form = ",.0f" if abs(value) >= _LARGE else form  # not 1.68e+03
    return DOES_NOT_APPLY if np.isnan(value) else f"{value:{form}} {unit}".rstrip()


def _share(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else f"{share:.1%}"


def face_value_lines(fidelity: Fidelity) -> list[str]:
    """Return lines on how close released values are to the true ones."""
    cells = compared_values(fidelity)
    rows = [("column", *cells.columns), *cells.itertuples(name=None)]
    lines = [f"{rows_unchanged(fidelity)}:", *(f"  {line}" for line in aligned(rows))]
    if fidelity.of_cells:  # their names mean nothing to a reader
        return lines
    if fidelity.pooled:
        lines.append(f"{fidelity.pooled:.1%} of the rows have values that are pooled.")
    if swaps := listed_swaps(fidelity.swaps):
        lines.append("The most frequent swaps:")
        for swap in swaps:
            lines += textwrap.wrap(f"  {swap}", _WIDTH, subsequent_indent="    ")
    return lines + never_released(fidelity)
