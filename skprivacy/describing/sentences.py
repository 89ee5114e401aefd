"""What is revealed, what is kept, and what a reader sees, in sentences that name no group of S."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._typing import Scope
from ..fidelity import Fidelity
from ..utilities import Utility

# A group that can become this many times as likely is mentioned, however rare it is.
_MUCH_LIKELIER = 1.5

# A probability that moves by less than this does not; by less than that, it is shown exactly.
_NO_MOVE, _SHORT_MOVE = 1e-6, 0.002

# Symbols that keep a larger share than this of X are X.
_WHOLE = 1 - 1e-9

# A line names at most so many values.
_MOST_NAMED = 12

# Labels longer than this are cut in the middle: many differ at the end only.
_LONGEST_LABEL = 60


def leak(
    epsilon: float, reached: float | None, scope: Scope, measure: str, name: str = "S"
) -> str:
    """Say what is revealed about S at most; reached : None if the joint is not known here."""
    where = "each released value reveals" if scope == "per_output" else "released values reveal"
    how = "" if scope == "per_output" else " on average"
    known = "as its file claims" if reached is None else f"reached: {reached:.4g}"
    return (
        f"Under the joint distribution of the design, {where} at most epsilon = {epsilon:g} about "
        f"{name}{how} ({measure}; {known})."
    )


@dataclass(frozen=True)
class Sure:
    """For what a budget holds besides the rows: how often, and from how many rows.

    limit : what is leaked in the population, at most; None if the joint is not known here.
    """

    confidence: float
    n_samples: float
    limit: float | None

    def in_words(self) -> str:
        """Return "with 95% confidence, from 442 rows"."""
        return f"with {percent(self.confidence)} confidence, from {self.n_samples:,.0f} rows"


def leak_in_population(
    epsilon: float, reached: float | None, scope: Scope, measure: str, name: str, sure: Sure
) -> str:
    """Say what is revealed about S in the population at most, and in the rows of the design."""
    where = "each released value reveals" if scope == "per_output" else "released values reveal"
    how = "" if scope == "per_output" else " on average"
    known = "as its file claims"
    if reached is not None:
        known = f"limit: {sure.limit:.4g}; in these rows: {reached:.4g}"
    return (
        f"In the population that the rows of the design are from, {where} at most epsilon = "
        f"{epsilon:g} about {name}{how}, {sure.in_words()} ({measure}; {known})."
    )


def leak_together(reached: float, scope: Scope, measure: str, is_bounded: bool) -> str:
    """Say what is revealed about all secrets together, which separate budgets do not bound.

    is_bounded : whether there is a budget for them together.
    """
    where = "each released value reveals at most" if scope == "per_output" else "they reveal"
    how = "" if scope == "per_output" else " on average"
    told = "." if is_bounded else "; separate budgets do not bound this."
    return f"About all secrets together {where} {reached:.4g}{how} ({measure}){told}"


def percent(share: float) -> str:
    """Return a confidence in percent: "95%", "99.9%"."""
    return f"{100 * share:.6g}%"


def what_is_kept(
    objective: Utility,
    kept: float,
    bound: float,
    names: str = "X",
    is_sure: bool = False,
    by_cells: float = 1.0,
) -> str:
    """Say which share of the utility is kept, and that no mechanism keeps more.

    is_sure : whether the budget is for the population, while the bound is for the rows; by_cells :
    the share that cells keep, where symbols are cells.
    """
    share, most = f"{kept:.1%}", f"{min(1.0, bound):.1%}"
    text = f"It keeps {share} of {objective.in_words(names)}"
    if by_cells < _WHOLE and by_cells > 0:
        text += f": the cells keep {by_cells:.1%}, and the channel {kept / by_cells:.1%} of that"
    if share == most == "100.0%":
        return f"{text}."
    if most == share:
        return f"{text}; no mechanism within the budget keeps more."
    if most == "100.0%":
        return f"{text}: not proven optimal."
    if is_sure:
        return (
            f"{text}; no mechanism within the budget, for the rows alone, keeps more than {most}."
        )
    return f"{text}. No mechanism within the budget keeps more than {most}: not proven optimal."


def at_face_value(fidelity: Fidelity) -> str:
    """Say how many rows keep their values, and which swap concerns most rows."""
    swaps = listed_swaps(fidelity.swaps)
    return f"{rows_kept(fidelity)}; {swaps[0]}." if swaps else f"{rows_kept(fidelity)}."


def rows_kept(fidelity: Fidelity) -> str:
    """Say how many rows keep their values; it is no sentence yet."""
    if fidelity.of_cells:
        return _rows_of_cells(fidelity.unchanged)
    values = "values" if fidelity.raw_columns is None else "values or bins"
    return f"Taken at face value, {fidelity.unchanged:.1%} of the rows keep their {values}"


def _rows_of_cells(unchanged: float) -> str:
    text = "Each column of a released row is drawn separately from the rows of a cell"
    if np.isnan(unchanged):
        return text
    return f"{text}: taken at face value, {_share(unchanged)} of the rows keep all values"


def listed_swaps(swaps: pd.DataFrame) -> list[str]:
    """Return swaps in words."""
    columns = (swaps[name] for name in ("share", "value", "released_as"))
    return [
        f"{_share(share)} of {shown(value)} are released as {shown(other)}"
        for share, value, other in zip(*columns, strict=True)
    ]


def never_released(fidelity: Fidelity) -> list[str]:
    """Name values that are never released, but for rare ones: each may be that of one person."""
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


def rarely_kept(fidelity: Fidelity) -> str:
    """Say how many rows have values that are mostly released as others, and name the worst."""
    (worst,) = listed_swaps(fidelity.worst_swap)
    return (
        f"Values that make up {_share(fidelity.replaced)} of the rows are mostly released as "
        f"others: {worst}."
    )


def shown(label: Any) -> str:
    """Return the label of a symbol in quotes, the parts of a joint one after each other."""
    parts = label if isinstance(label, tuple) else (label,)
    text = ", ".join("missing" if part is None else str(part) for part in parts)
    if len(text) > _LONGEST_LABEL:
        tail = (_LONGEST_LABEL - 3) // 2
        text = f"{text[: _LONGEST_LABEL - 3 - tail]}...{text[-tail:]}"
    return repr(text)


def _share(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else f"{share:.1%}"


@dataclass(frozen=True)
class Range:
    """Where a probability is, and between which it moves."""

    prior: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """How far it moves, at most."""
        return max(self.high - self.prior, self.prior - self.low)

    @property
    def growth(self) -> float:
        """How many times as likely it becomes, at most."""
        return self.high / self.prior if self.prior > 0 else 1.0

    def in_words(self) -> str:
        """Return "51.0% to between 41.0% and 61.0%", rounded outwards."""
        digits = 2 if self.width < _SHORT_MOVE else 1
        prior = f"{self.prior:.{digits}%}"
        if self.width < _NO_MOVE:
            return f"{prior} to the same"
        low, high = self.ends(digits)
        return f"{prior} to between {low} and {high}"

    def ends(self, digits: int = 1) -> tuple[str, str]:
        """Return both ends in percent, rounded outwards: what is said is never too little."""
        return _outwards(self.low, digits, False), _outwards(self.high, digits, True)


def _outwards(share: float, digits: int, is_high: bool) -> str:
    """Return a share in percent, rounded up or down."""
    scale = 10.0**digits
    # Rounding of the last bits is not a reason to show one unit more.
    exact = round(100 * share * scale, 6)
    whole = math.ceil(exact) if is_high else math.floor(exact)
    return f"{whole / scale:.{digits}f}%"


def single_group(protected: str) -> str:
    """Say that a budget is about nothing that is known."""
    return f"The rows show a single group of {protected}: nothing is known about others."


def exposure(ranges: pd.DataFrame, names: Sequence[str] | None = None) -> str:
    """Say how far a released value can move the probability of a group.

    ranges : `Mechanism.posterior_ranges`; names : of the groups, None to name none.
    """
    found = ranges_of(ranges)
    widest = most_exposed(found)
    if found[widest].width < _NO_MOVE:
        return "No released value moves the probability of any group."
    group = "the most exposed group" if names is None else names[widest]
    text = (
        f"Whoever sees a released value can move the probability of {group} from "
        f"{found[widest].in_words()}"
    )
    if not _is_bounded(ranges):
        return f"{text} with these values; the budget, being an average, bounds no single one."
    rarest = int(np.argmax([each.growth for each in found]))
    if rarest != widest and found[rarest].growth >= _MUCH_LIKELIER:
        rare = found[rarest]
        group = f"a group of {rare.prior:.1%}" if names is None else names[rarest]
        start = "" if names is None else f" from {rare.prior:.1%}"
        text += f", and that of {group}{start} to {_outwards(rare.high, 1, True)}"
    return f"{text}, at most, if groups have the same shares as here."


def largest_move(ranges: pd.DataFrame) -> float:
    """Return the most by which the probability of any group moves, in either direction.

    ranges : `Mechanism.posterior_ranges`.
    """
    return max(found.width for found in ranges_of(ranges))


def ranges_of(ranges: pd.DataFrame) -> list[Range]:
    """Return what the budget allows each group or, if it bounds no single value, what is reached.

    ranges : `Mechanism.posterior_ranges`.
    """
    return reached_or_allowed(ranges, "allowed" if _is_bounded(ranges) else "reached")


def reached_or_allowed(ranges: pd.DataFrame, kind: str) -> list[Range]:
    """Return the ranges of one kind."""
    columns = ranges[["prior", f"{kind}_low", f"{kind}_high"]].to_numpy()
    return [Range(*map(float, row)) for row in columns]


def most_exposed(found: Sequence[Range]) -> int:
    """Return the group that moves the furthest; of two that move as far, the rarer one."""
    return max(range(len(found)), key=lambda i: (round(found[i].width, 9), found[i].growth))


def _is_bounded(ranges: pd.DataFrame) -> bool:
    return bool(ranges["allowed_low"].notna().all())
