"""The verdict on a release, and the leakage to somebody who already knows a column.

It is about protection, not arithmetic: a large budget protects nobody, even if it is kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from .._typing import FilePath, FloatArray, IntArray, Scope
from ..measures import Measure
from ..measures.measure import output_values, posteriors
from .numbers import NO_MOVE, Range, at_most, rounded_up

# From best to worst. Unknown is worse than weak: nobody should sign for it.
LEVELS = ("strong", "moderate", "weak", "unknown", "none")

# The status of a release, by level.
PASS, CAUTION, NO_VERDICT, FAIL = "PASS", "CAUTION", "NO VERDICT", "FAIL"
STATUS = dict(zip(LEVELS, (PASS, PASS, CAUTION, NO_VERDICT, FAIL), strict=True))

# The largest move and the largest growth of a probability at each level. The move alone would miss
# a group that grows from 1% to 6%.
ALLOWS = {"strong": (0.05, 2.0), "moderate": (0.15, 3.0), "weak": (0.30, 5.0)}


@dataclass(frozen=True)
class Scale:
    """What each level of a verdict allows: the largest move and growth of a probability.

    Attributes
    ----------
    allows : dict of (float, float)
        For each of "strong", "moderate" and "weak", the largest move, as a difference of shares,
        and how many times as likely a group may become.
    name : str
        Who the scale is of.
    sha256 : str
        The SHA-256 of its file; empty for the default scale.
    """

    allows: Mapping[str, tuple[float, float]]
    name: str = "default"
    sha256: str = ""

    @classmethod
    def from_file(cls, path: FilePath) -> Self:
        """Read a scale from a JSON file.

        The file has a `name` and, for each of `strong`, `moderate` and `weak`, `points` and
        `times`: {"name": "Example", "strong": {"points": 5, "times": 2}, ...}
        """
        content = Path(path).read_bytes()
        try:
            given = json.loads(content)
            allows = {level: _allowed(given[level]) for level in ALLOWS}
            name = " ".join(given["name"].split())
            if not name or given.keys() != {"name", *ALLOWS}:
                raise ValueError
            for before, after in zip(allows.values(), [*allows.values()][1:], strict=False):
                if before[0] > after[0] or before[1] > after[1]:
                    raise ValueError
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a scale of verdicts. {_HOW_SCALES_LOOK}") from error
        return cls(allows, name, hashlib.sha256(content).hexdigest())

    @property
    def is_default(self) -> bool:
        """Whether it is the scale of this package."""
        return not self.sha256

    def in_words(self) -> str:
        """Return the levels as sentences."""
        (first, (points, times)), *others = self.allows.items()
        said = (
            f"{first.capitalize()}: no group's probability moves by more than "
            f"{_points(points)} or becomes more than {times:g} times as large."
        )
        for level, (points, times) in others:
            said += f" {level.capitalize()}: {_points(points)}, {times:g} times."
        return (
            f"{said} None: beyond that, or a released value may show for certain which group "
            f"somebody is in, or is not in."
        )


def _points(share: float) -> str:
    text = f"{100 * share:g} point"
    return text if text == "1 point" else f"{text}s"


def _allowed(given: Any) -> tuple[float, float]:
    """Return (largest move, largest growth) of a level in a file."""
    points, times = given["points"], given["times"]
    are_numbers = all(type(x) in (int, float) for x in (points, times))
    if given.keys() != {"points", "times"} or not are_numbers:
        raise ValueError
    if not (0 < points <= 100 and 1 <= times < float("inf")):
        raise ValueError
    return points / 100, float(times)


_HOW_SCALES_LOOK = (
    "It must be JSON with a name and, for strong, moderate and weak, the largest move of a "
    "probability in points, and how many times as large it may become; no level may allow less "
    'than the one before: {"name": "Example", "strong": {"points": 5, "times": 2}, "moderate": '
    '{"points": 15, "times": 3}, "weak": {"points": 30, "times": 5}}'
)

DEFAULT_SCALE = Scale(ALLOWS)

# A group with more than the first share may become certain; one below the second, ruled out.
_NEARLY_ALL, _NEARLY_NONE = 0.95, 0.05

# Ranges are computed by bisection, and rounded outwards by less than this.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Verdict:
    """How well a secret is protected; with several, the worst protected.

    Attributes
    ----------
    level : str
        "strong": no group's probability moves by more than 5 points or more than doubles.
        "moderate": 15 points, three times. "weak": 30 points, five times. "none": beyond that, or
        a group of less than 95% may become certain, or one of at least 5% be ruled out. "unknown":
        there is nothing to judge by. A budget enforced for these rows only is at best "moderate";
        a budget on average, which bounds no single value, at best "weak".
    points : float
        The largest move of a group's probability, as a difference of shares.
    factor : float
        How many times as likely a group may become.
    reasons : tuple of str
        Why the level is "none": what a released value may do.

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
        """Return the largest effect of a released value in words, without a full stop."""
        if self.reasons:
            return f"a released value may {' and '.join(self.reasons)}"
        times = f", or makes a group more than {rounded_up(self.factor, 1)} times as likely"
        return self.move_in_words() + ("" if self.points < NO_MOVE else times)

    def move_in_words(self) -> str:
        """Return the largest move in words, without a full stop."""
        far = f" by more than {rounded_up(100 * self.points, 1)} points"
        moved = "no released value moves the probability of a group"
        return moved if self.points < NO_MOVE else moved + far


def verdict_of(
    ranges: Sequence[Range],
    scope: Scope = "per_output",
    is_sure: bool = True,
    scale: Scale = DEFAULT_SCALE,
) -> Verdict:
    """Return the verdict on the ranges of all groups; without any, it is unknown.

    scope : of the budget; is_sure : whether it holds for the population, with a confidence.
    Whatever the scale, certainty about a group is no protection.
    """
    if not ranges:
        return Verdict("unknown")
    points = max(found.width for found in ranges)
    factor = max(found.growth for found in ranges)
    reasons = []
    if any(found.high >= 1 - _ROUNDING and found.prior < _NEARLY_ALL for found in ranges):
        reasons.append("show for certain which group somebody is in")
    elif gone := [x.prior for x in ranges if x.low <= _ROUNDING and x.prior >= _NEARLY_NONE]:
        reasons.append(
            f"show for certain that somebody is not in a group, which {max(gone):.1%} are in"
        )
    if reasons:
        return Verdict("none", points, factor, tuple(reasons))
    best = "weak" if scope == "average" else "strong" if is_sure else "moderate"
    for level in LEVELS[LEVELS.index(best) : LEVELS.index("weak") + 1]:
        most_points, most_times = scale.allows[level]
        if points <= most_points + _ROUNDING and factor <= most_times * (1 + _ROUNDING):
            return Verdict(level, points, factor)
    if points > most_points + _ROUNDING:  # those of "weak", the last level checked
        reasons.append(f"move the probability of a group by {rounded_up(100 * points, 1)} points")
    if factor > most_times * (1 + _ROUNDING):
        reasons.append(f"make a group {rounded_up(factor, 1)} times as likely")
    return Verdict("none", points, factor, tuple(reasons))


def worst(verdicts: Sequence[Verdict]) -> int:
    """Return the position of the worst verdict."""
    return max(
        range(len(verdicts)),
        key=lambda i: (LEVELS.index(verdicts[i].level), verdicts[i].points, -i),
    )


@dataclass(frozen=True)
class Learned:
    """What a release tells somebody who already knows the value z of a column; nothing by default.

    Attributes
    ----------
    leakage : float
        The largest leakage of P(S|z,y) against P(S|z), on the scale of epsilon.
    points : float
        The largest move from P(s|z) to P(s|z,y), as a difference of shares.
    is_certain : bool
        Whether a group becomes certain that was not nearly so before.
    share : float
        The share of rows for which a guess moves by more than a given number of points.
    """

    leakage: float = 0.0
    points: float = 0.0
    is_certain: bool = False
    share: float = 0.0

    def in_words(self, about: str, far: float) -> str:
        """Return what it may do, as the end of a sentence.

        about : the name of the secret; far : the number of points that `share` is about.
        """
        said = f"can move a guess about {about} by up to {rounded_up(100 * self.points, 1)} points"
        if self.is_certain:
            said = f"may become certain about {about}"
        if self.share == 0:
            return said
        return f"{said}; guesses move by more than {_points(far)} in {at_most(self.share)} of rows"


def learned_beside(
    p_sx: FloatArray, channel: FloatArray, measure: Measure, codes: IntArray, far: float = 1.0
) -> Learned:
    """Return what Y tells about S to somebody who knows the value z of a column of X.

    No budget bounds it. codes : the z of each symbol of X; far : the move that `share` is about.
    """
    if len(np.unique(codes)) == len(codes):  # z is all of x, and P(S|x,y) = P(S|x)
        return Learned()
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=codes[order[0]] - 1))
    # One z at a time: each has its own prior.
    parts = (part for part in np.split(order, starts[1:]) if p_sx[:, part].sum() > 0)
    found = [_given_value(p_sx[:, part], channel[part], measure, far) for part in parts]
    return Learned(
        max(each.leakage for each in found),
        max(each.points for each in found),
        any(each.is_certain for each in found),
        sum(each.share for each in found),
    )


def _given_value(p_sx: FloatArray, channel: FloatArray, measure: Measure, far: float) -> Learned:
    """Return what one z tells; p_sx, channel : of its symbols."""
    total = p_sx.sum()
    together = p_sx @ channel / total
    p_y, prior = together.sum(axis=0), p_sx.sum(axis=1) / total
    together, p_y = together[:, p_y > 0], p_y[p_y > 0]
    given_y = posteriors(together, p_y, prior)
    moves = np.abs(given_y - prior).max(axis=1)
    is_certain = (given_y >= 1 - _ROUNDING) & (prior < _NEARLY_ALL)
    return Learned(
        float(measure.inverse(output_values(measure, given_y, prior).max())),
        float(moves.max()),
        bool(is_certain.any()),
        float(total * p_y[moves > far].sum()),
    )
