"""What `choose` says about the number of rows: what few of them cost, and how many would do."""

from dataclasses import dataclass
from math import floor, inf
from typing import Any

from ..design import design_mechanism
from ..inverse_design import rows_needed
from ..mechanism import Mechanism
from .words import budgets_of, given

# A difference of less than this is hardly any; shares to aim for are multiples of this.
_HARDLY, _ROUND = 0.01, 0.05

# More rows never make up for all that chance costs: the aim is this share of it.
_MADE_UP_FOR = 0.9

# Tables with more cells than this take long to design for again and again.
_MOST_CELLS = 64


@dataclass(frozen=True)
class CostOfRows:
    """What a share of the utility would be without the need to allow for chance.

    kept : by the design; alone : by one for the rows alone; aim, enough : a share between the
    two and about how many rows it takes, None where that is not known.
    """

    kept: float
    alone: float
    aim: float | None = None
    enough: int | None = None


def cost_of_rows(mechanism: Mechanism, tables: Any, design: dict[str, Any]) -> CostOfRows | None:
    """Return what a design with a confidence has paid for it; None where there is no price.

    tables, design : what the mechanism was designed for.
    """
    secrets = mechanism.secrets.values()
    if mechanism.confidence is None or any(secret.epsilon == inf for secret in secrets):
        return None
    asked = {**design, "confidence": None, "n_samples": None}
    kept, epsilon = mechanism.normalized_utility, given(budgets_of(mechanism))
    alone = max(kept, design_mechanism(tables, epsilon, **asked).normalized_utility)
    aim = _round_share(kept, alone)
    n_cells = sum(secret.p_sx.size for secret in secrets if secret.p_sx is not None)
    if aim is None or n_cells > _MOST_CELLS or mechanism.groups is not None:
        return CostOfRows(kept, alone)
    asked = {name: value for name, value in design.items() if name != "n_samples"}
    try:
        enough = rows_needed(tables, epsilon, aim, **asked)
    except ValueError:  # no number of rows makes up for it
        return CostOfRows(kept, alone)
    return CostOfRows(kept, alone, aim, enough)


def _round_share(kept: float, alone: float) -> float | None:
    """Return a round share well above what is kept, which more rows might keep."""
    aim = _ROUND * floor((kept + _MADE_UP_FOR * (alone - kept)) / _ROUND)
    return aim if aim > kept + _HARDLY else None


def cost_lines(cost: CostOfRows | None) -> list[str]:
    """Say what the number of rows costs."""
    if cost is None:
        return []
    if cost.alone - cost.kept < _HARDLY:
        return ["More rows would hardly keep more."]
    text = f"For the rows alone (--confidence none), the same budget would keep {cost.alone:.1%}"
    if cost.enough is None:
        return [f"{text}."]
    return [f"{text}; about {cost.enough:,} rows like these would keep {cost.aim:.0%}."]


def cost_facts(cost: CostOfRows | None) -> dict[str, Any]:
    """Return the same for machines."""
    if cost is None:
        return {"kept_for_rows_alone": None, "more_rows": None}
    more = None if cost.enough is None else {"rows": cost.enough, "kept": cost.aim}
    return {"kept_for_rows_alone": cost.alone, "more_rows": more}
