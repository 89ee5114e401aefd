"""What the commands say about people: groups of S, and readers of released values."""

import argparse
from collections.abc import Sequence
from typing import Any

import pandas as pd

from .._messages import aligned
from ..describing import (
    compared_values,
    exposure,
    listed_swaps,
    never_released,
    rows_kept,
    shown,
)
from ..fidelity import Fidelity
from ..mechanism import Mechanism


def exposed(
    ranges: pd.DataFrame, labels: Sequence[Any] | None, options: argparse.Namespace
) -> str:
    """Say how far the probability of a group can move; it is named with --show-groups only.

    ranges : of `Mechanism.posterior_ranges`; labels : of the groups.
    """
    return exposure(ranges, list(map(shown, labels or ())) if options.show_groups else None)


def group_facts(
    ranges: pd.DataFrame, labels: Sequence[Any] | None, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Return the same for machines."""
    facts: list[dict[str, Any]] = ranges.to_dict("records")  # type: ignore[assignment]
    if not options.show_groups:
        return facts
    return [
        {"group": shown(label)[1:-1], **each}
        for label, each in zip(labels or (), facts, strict=True)
    ]


def about_attacker(guessed: str, mechanisms: Sequence[Mechanism]) -> str:
    """Say what the attacker of a table is, and how good a blind guess is; guessed : what."""
    joints = [m.p_sx for m in mechanisms if m.p_sx is not None]
    blind = " and ".join(f"{p_sx.sum(axis=1).max():.1%}" for p_sx in joints)
    return (
        f'"attacker" is how often the best attacker, who knows how the release was made, guesses '
        f"{guessed}; a blind guess is right {blind} of the time."
    )


def face_value_lines(fidelity: Fidelity, in_cells: bool = False) -> list[str]:
    """Return what those who read released values as they are should know.

    in_cells : whether the symbols are cells, whose names say nothing to a reader.
    """
    cells = compared_values(fidelity)
    rows = [("column", *cells.columns), *cells.itertuples(name=None)]
    lines = [f"{rows_kept(fidelity)}:"]
    lines += [f"  {line}" for line in aligned(rows)]
    if in_cells:
        return lines
    if fidelity.pooled:
        lines.append(f"{fidelity.pooled:.1%} of the rows have rare values, which are pooled.")
    if swaps := listed_swaps(fidelity.swaps):
        lines += ["The swaps that concern most rows:", *(f"  {swap}" for swap in swaps)]
    return lines + never_released(fidelity)


def fidelity_facts(fidelity: Fidelity) -> dict[str, Any]:
    """Return the same for machines."""
    raw = fidelity.raw_columns
    swaps = fidelity.swaps.to_dict("records")
    gone = fidelity.never_released.to_dict("records")
    return {
        "unchanged": fidelity.unchanged,
        "columns": _by_name(fidelity.columns),
        "raw_columns": None if raw is None else _by_name(raw),
        "raw_utility_kept": fidelity.raw_utility,
        "pooled": fidelity.pooled,
        "swaps": [
            {**each, **{key: shown(each[key])[1:-1] for key in ("value", "released_as")}}
            for each in swaps
        ],
        "never_released": [
            {"column": each["column"], "value": shown(each["value"])[1:-1], "rows": each["rows"]}
            for each in gone
            if not each["is_rare"]
        ],
    }


def _by_name(figures: pd.DataFrame) -> dict[str, Any]:
    return {
        str(name): dict(zip(figures.columns, row, strict=True))
        for name, *row in figures.itertuples()
    }
