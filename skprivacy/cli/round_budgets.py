"""Round budgets that cover what a curve is about."""

from math import ceil, floor, log10

import numpy as np

# A picture shows no more, and each takes a design.
_MOST = 8

# Two digits tell budgets apart where there are too few rounder ones.
_FEW = 4


def round_budgets(top: float, least: float = 0.0) -> list[float]:
    """Return up to eight budgets of 1, 2 or 5 times a power of ten, the last of at least `top`.

    least : no budget may be smaller.
    """
    powers = range(floor(log10(top)) - _MOST, ceil(log10(top)) + 1)
    rounder = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
    last = next(i for i, budget in enumerate(rounder) if budget >= top)
    found = [budget for budget in rounder[: last + 1] if budget >= least][-_MOST:]
    return found if len(found) >= _FEW else _of_two_digits(max(least, top / 200), max(top, least))


def _of_two_digits(least: float, top: float) -> list[float]:
    """Return budgets from one to another, rounded up to two digits."""
    return sorted({_rounded_up(budget) for budget in np.geomspace(least, top, _MOST)})


def _rounded_up(budget: float) -> float:
    unit = floor(log10(budget)) - 1
    return float(f"{ceil(budget / 10.0**unit - 1e-9)}e{unit}")
