"""The verdict on a budget, and what somebody who already knows a column learns.

It is about protection and not about arithmetic: a large budget that is kept protects nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._typing import FloatArray, IntArray, Scope
from ..measures import Measure
from ..measures.measure import output_values, posteriors
from .numbers import NO_MOVE, Range, rounded_up

# From the best to the worst. Unknown is worse than weak: nobody should sign for it.
LEVELS = ("strong", "moderate", "weak", "unknown", "none")

# What is said of a release before anything else.
PASS, CAUTION, NO_VERDICT, FAIL = "PASS", "CAUTION", "NO VERDICT", "FAIL"
STATUS = dict(zip(LEVELS, (PASS, PASS, CAUTION, NO_VERDICT, FAIL), strict=True))

# What each level allows: the move of a probability, and how many times as likely a group becomes.
# Points alone would say nothing about a group of 1% that moves to 6%.
ALLOWS = {"strong": (0.05, 2.0), "moderate": (0.15, 3.0), "weak": (0.30, 5.0)}

# A group that is nearly everybody may become certain, and one that is nearly nobody ruled out.
_NEARLY_ALL, _NEARLY_NONE = 0.95, 0.05

# Ranges are computed by bisection, and rounded outwards by less than this.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Verdict:
    """How well one secret is protected, or the worst protected of several.

    Attributes
    ----------
    level : str
        "strong": no probability of a group moves by more than 5 points, and none more than
        doubles. "moderate": 15 points, three times. "weak": 30 points, five times. "none": beyond
        that, or a group of less than 95% may become certain, or one of at least 5% be ruled out.
        "unknown": there is nothing to judge it by. A budget that was enforced for these rows only
        is at best "moderate", and one on average, which bounds no single value, at best "weak".
    points : float
        The furthest that the probability of a group may move, as a difference of shares.
    factor : float
        How many times as likely a group may become.
    reasons : tuple of str
        What a released value may do, where the level is "none".

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> counts = [[200, 100, 90], [90, 200, 310]]
    >>> verdict = design_mechanism(counts, 0.1, measure="l1").summary().verdict
    >>> verdict.level, round(verdict.points, 6)  # for these rows only, and so not strong
    ('moderate', 0.05)
    """

    level: str
    points: float = float("nan")
    factor: float = float("nan")
    reasons: tuple[str, ...] = ()

    def in_words(self) -> str:
        """Return what a released value can do at most, without a full stop."""
        if self.reasons:
            return f"a released value may {' and '.join(self.reasons)}"
        times = f", or makes a group more than {rounded_up(self.factor, 1)} times as likely"
        return self.move_in_words() + ("" if self.points < NO_MOVE else times)

    def move_in_words(self) -> str:
        """Return how far a released value moves probabilities at most, without a full stop."""
        far = f" by more than {rounded_up(100 * self.points, 1)} points"
        moved = "no released value moves the probability of a group"
        return moved if self.points < NO_MOVE else moved + far


def verdict_of(
    ranges: Sequence[Range], scope: Scope = "per_output", is_sure: bool = True
) -> Verdict:
    """Return the verdict on ranges of probabilities, one for each group; none : nothing is known.

    scope : of the budget; is_sure : whether it holds for the population, with a confidence.
    """
    if not ranges:
        return Verdict("unknown")
    points = max(found.width for found in ranges)
    factor = max(found.growth for found in ranges)
    reasons = []
    if any(found.high >= 1 - _ROUNDING and found.prior < _NEARLY_ALL for found in ranges):
        reasons.append("tell a group with certainty")
    if gone := [x.prior for x in ranges if x.low <= _ROUNDING and x.prior >= _NEARLY_NONE]:
        reasons.append(f"rule out a group of {max(gone):.1%}")
    if reasons:
        return Verdict("none", points, factor, tuple(reasons))
    best = "weak" if scope == "average" else "strong" if is_sure else "moderate"
    for level in LEVELS[LEVELS.index(best) : LEVELS.index("weak") + 1]:
        most_points, most_times = ALLOWS[level]
        if points <= most_points + _ROUNDING and factor <= most_times * (1 + _ROUNDING):
            return Verdict(level, points, factor)
    if points > most_points:  # those of "weak", the last level that is looked at
        reasons.append(f"move the probability of a group by {rounded_up(100 * points, 1)} points")
    if factor > most_times:
        reasons.append(f"make a group {rounded_up(factor, 1)} times as likely")
    return Verdict("none", points, factor, tuple(reasons))


def worst(verdicts: Sequence[Verdict]) -> int:
    """Return which of several verdicts is the worst."""
    return max(
        range(len(verdicts)),
        key=lambda i: (LEVELS.index(verdicts[i].level), verdicts[i].points, -i),
    )


# What somebody who already knows a part of a row learns from its release. No budget bounds it.


def learned_beside(
    p_sx: FloatArray, channel: FloatArray, measure: Measure, codes: IntArray
) -> float:
    """Return the most that Y tells about S to somebody who knows the value z of a column.

    The largest leakage of P(S|z,y) against P(S|z), over all z and y with P(z,y) > 0, on the scale
    of epsilon; codes : the z of each symbol of X.
    """
    if len(np.unique(codes)) == len(codes):  # z is all of x, and P(S|x,y) = P(S|x)
        return 0.0
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=codes[order[0]] - 1))
    parts: Sequence[IntArray] = np.split(order, starts[1:])
    # One z after the other: each has a prior of its own.
    worst = (_of_value(p_sx[:, part], channel[part], measure) for part in parts)
    return float(measure.inverse(max(worst)))


def _of_value(p_sx: FloatArray, channel: FloatArray, measure: Measure) -> float:
    """Return the largest value of the measure for one z; p_sx, channel : of its symbols."""
    total = p_sx.sum()
    if total <= 0:
        return -np.inf
    together = p_sx @ channel / total
    p_y, prior = together.sum(axis=0), p_sx.sum(axis=1) / total
    together, p_y = together[:, p_y > 0], p_y[p_y > 0]
    return float(output_values(measure, posteriors(together, p_y, prior), prior).max())
