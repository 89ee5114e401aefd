"""Figures as texts; limits are rounded outwards."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._messages import listed

# Moves smaller than the first are shown as "the same": the rounding that a budget of zero allows
# for. Moves smaller than the second are shown with one more digit.
NO_MOVE, _SHORT_MOVE = 1e-6, 0.002

# Leakage below this is rounding error.
_NO_LEAKAGE = 1e-12

# Longer labels are cut in the middle: many differ only at the end.
_LONGEST_LABEL = 60


@dataclass(frozen=True)
class Range:
    """A probability before a release, and the range it may move to."""

    prior: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """The largest move."""
        return max(self.high - self.prior, self.prior - self.low)

    @property
    def growth(self) -> float:
        """The largest factor: how many times as likely it may become."""
        return self.high / self.prior if self.prior > 0 else 1.0

    def in_words(self) -> str:
        """Return "51.0% to between 41.0% and 61.0%", rounded outwards."""
        digits = 2 if self.width < _SHORT_MOVE else 1
        prior = f"{self.prior:.{digits}%}"
        if self.width < NO_MOVE:
            return f"{prior} to the same"
        low, high = self.ends(digits)
        return f"{prior} to between {low} and {high}"

    def shown(self) -> str:
        """Return "41.0% to 61.0%", rounded outwards; the prior if it does not move."""
        low, high = self.ends()
        return f"{self.prior:.1%}" if self.width < NO_MOVE else f"{low} to {high}"

    def ends(self, digits: int = 1) -> tuple[str, str]:
        """Return both ends in percent, rounded outwards."""
        low = -float(rounded_up(-100 * self.low, digits))
        return f"{low + 0.0:.{digits}f}%", f"{rounded_up(100 * self.high, digits)}%"


def rounded_up(figure: float, digits: int) -> str:
    """Return a figure rounded up to some digits after the point.

    >>> rounded_up(4.9001, 1), rounded_up(0.1 + 0.2, 1), rounded_up(float("inf"), 1)
    ('5.0', '0.3', 'infinitely many')
    """
    if math.isinf(figure):
        return "infinitely many"
    # Rounding errors in the last bits must not add a unit.
    return f"{math.ceil(round(figure * 10**digits, 6)) / 10**digits:.{digits}f}"


def limit(leakage: float, digits: int = 4) -> str:
    """Return an upper limit of leakage, rounded up to some significant digits.

    >>> limit(0.020000000001), limit(0.0123412), limit(0.0), limit(float("inf"))
    ('0.02', '0.01235', '0', 'infinity')
    """
    return _rounded(leakage, digits, math.ceil)


def rounded_down(leakage: float, digits: int = 4) -> str:
    """Return a budget that must not be exceeded, rounded down to some significant digits.

    >>> rounded_down(0.0123489), rounded_down(0.02)
    ('0.01234', '0.02')
    """
    return _rounded(leakage, digits, math.floor)


def _rounded(leakage: float, digits: int, towards: Callable[[float], int]) -> str:
    if math.isnan(leakage):
        return "nan"
    if not _NO_LEAKAGE <= leakage < math.inf:
        return "infinity" if leakage > 1 else "0"
    unit = 10.0 ** (math.floor(math.log10(leakage)) + 1 - digits)
    # Budgets are kept up to a relative 1e-9, which must not add a unit.
    return f"{towards(round(leakage / unit, 8 - digits)) * unit:.{digits}g}"


def at_most(share: float) -> str:
    """Return an upper limit of a share in percent, rounded up.

    >>> at_most(0.79010), at_most(0.5)
    ('79.1%', '50.0%')
    """
    return f"{rounded_up(100 * share, 1)}%"


def figure(leakage: float) -> str:
    """Return computed leakage, rounded to four significant digits."""
    if math.isinf(leakage):
        return "infinity"
    return "0" if leakage < _NO_LEAKAGE else f"{leakage:.4g}"


def percent(share: float) -> str:
    """Return a confidence in percent: "95%", "99.9%"."""
    return f"{100 * share:.6g}%"


def shown(label: Any) -> str:
    """Return the label of a symbol in quotes, with commas between the parts of a joint one."""
    parts = label if isinstance(label, tuple) else (label,)
    text = ", ".join("missing" if part is None else str(part) for part in parts)
    if len(text) > _LONGEST_LABEL:
        tail = (_LONGEST_LABEL - 3) // 2
        text = f"{text[: _LONGEST_LABEL - 3 - tail]}...{text[-tail:]}"
    return repr(text)


def name_of_secret(name: Any) -> str:
    """Return the name of a secret in words."""
    return listed(name if isinstance(name, tuple) else (name,))
