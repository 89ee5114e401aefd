"""What to keep in mind when reading the figures of an audit, where these would mislead."""

import pandas as pd

from .._messages import in_points

TOGETHER = "released and remainder"


def attack_notes(attacks: pd.DataFrame) -> list[str]:
    """Return sentences about figures of `audit` that look better than they are.

    >>> table = pd.DataFrame({"attacked": ["released"], "advantage": [-0.013]})
    >>> attack_notes(table)[0][:52]
    'An advantage below zero, here down to -1.3 points, i'
    """
    return [*_below_zero(attacks), *_safer_than_a_part(attacks)]


def _below_zero(attacks: pd.DataFrame) -> list[str]:
    smallest = attacks["advantage"].min()
    if _as_shown(smallest) >= 0:
        return []
    return [
        f"An advantage below zero, here down to {in_points(smallest)}, is noise: the attacker "
        f"took chance in the rows it learned from for a pattern, and on rows that it had not seen "
        f"was right less often than a blind guess. Read it as zero; it is no sign of protection."
    ]


def _safer_than_a_part(attacks: pd.DataFrame) -> list[str]:
    """Say so where all columns together seem to give away less than some of them."""
    best = attacks.groupby("attacked", sort=False)["advantage"].max()
    if TOGETHER not in best:
        return []
    parts = best[[name for name in best.index if name not in ("raw", TOGETHER)]]
    name, largest, together = parts.idxmax(), parts.max(), best[TOGETHER]
    if _as_shown(largest) <= max(_as_shown(together), 0):
        return []
    return [
        f'Together, the columns give away no less than any of them: "{TOGETHER}" counts as '
        f'{in_points(largest)}, the advantage of "{name}" alone, and not as the '
        f"{in_points(together)} that were measured: the other columns, or chance, misled the "
        f"attackers."
    ]


def _as_shown(advantage: float) -> float:
    """Return it in tenths of a point: smaller differences are not seen."""
    return round(advantage, 3)
