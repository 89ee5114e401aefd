"""What a user of the page chose, and the transformer, command and script that this means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from .._messages import listed
from ..recipes import command, script

if TYPE_CHECKING:
    from ..transformer import PrivacyFunnelTransformer

#: The stops of the slider, in percentage points: also the points of the curve.
STOPS = (1, 2, 3, 5, 7, 10, 15, 20, 30)

ROLES = ("drop", "protect", "randomise", "beside")
_UTILITIES = {"near": "distortion", "predict": "target", "information": "mutual_information"}

CONFIDENCE = 0.95
_MOST_POINTS, _MOST_BINS, _MOST_POOLED = 90.0, 50, 50

# Names of the files of a release.
REPORT, MECHANISM = "report.html", "mechanism.json"


@dataclass(frozen=True)
class Choices:
    """Choices that lead to one release.

    points : the most that a probability may move; population : whether that holds for the
    population, with a confidence; bins : of numbers; pooled : the number of values that rare ones
    are pooled down to in each column, None: they are not; ordered : texts that are a scale.
    """

    protect: tuple[str, ...] = ()
    randomise: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    purpose: str = "near"
    target: str | None = None
    points: float = 10.0
    population: bool = True
    bins: int = 10
    pooled: int | None = None
    ordered: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Return the choices that a page sent, or raise ValueError."""
        if not isinstance(data, dict) or not isinstance(roles := data.get("roles", {}), dict):
            raise ValueError("Choices are a JSON object with an object of roles.")
        if wrong := [role for role in roles.values() if role not in ROLES]:
            raise ValueError(f"{wrong[0]!r} is none of {', '.join(ROLES)}.")
        if (purpose := data.get("purpose", "near")) not in _UTILITIES:
            raise ValueError(f"{purpose!r} is none of {', '.join(_UTILITIES)}.")
        target, pooled = data.get("target"), data.get("pooled")
        if target is not None and not isinstance(target, str):
            raise ValueError("The column to predict must be named by a text.")
        if not isinstance(population := data.get("population", True), bool):
            raise ValueError("The choice of the population must be true or false.")
        protect, randomise, beside = (
            tuple(name for name in roles if roles[name] == role) for role in ROLES[1:]
        )
        return cls(
            protect,
            randomise,
            beside,
            purpose,
            target if purpose == "predict" else None,
            _number("points", data.get("points", 10), 0.1, _MOST_POINTS),
            population,
            int(_number("bins", data.get("bins", 10), 2, _MOST_BINS)),
            None if pooled is None else int(_number("pooled", pooled, 2, _MOST_POOLED)),
            _scales(data.get("ordered", {}), roles),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the choices as the page sends them."""
        roles = {name: role for role in ROLES[1:] for name in getattr(self, role)}
        fields = {name: x for name, x in asdict(self).items() if name not in ROLES}
        return fields | {"roles": roles, "ordered": self._scales}

    @property
    def _scales(self) -> dict[str, list[str]]:
        return {name: list(texts) for name, texts in self.ordered}

    def missing(self) -> str:
        """Return what is still to be chosen, as a sentence; empty if nothing is."""
        if not self.protect:
            return "Say which column to protect."
        if not self.randomise:
            return "Say which columns to randomise."
        if self.purpose == "predict" and not self.target:
            return "Say which column is to be predicted."
        if self.target in self.protect:
            return f"{self.target} is to be protected, and so cannot be the one to predict."
        if self.target in self.beside:
            return f"{self.target} is published as it is: choose another column to predict."
        if not self.columns:
            return f"Randomise another column too: {self.target} is drawn from the others."
        return ""

    def at(self, points: float) -> Choices:
        """Return the same choices with another protection."""
        return replace(self, points=float(points))

    def stops(self) -> list[float]:
        """Return the points of the curve, the nearest ones first."""
        every = {*map(float, STOPS), self.points}
        return sorted(every, key=lambda points: (abs(points - self.points), points))

    @property
    def about(self) -> str:
        """The protected columns in words."""
        return listed(self.protect)

    @property
    def releases_target(self) -> bool:
        """Whether the column to predict is drawn with each row."""
        return self.target in self.randomise

    @property
    def columns(self) -> list[str]:
        """The columns to randomise from their own values: not the one to predict."""
        return [name for name in self.randomise if name != self.target]

    def transformer(self, epsilon: float = 0.02) -> PrivacyFunnelTransformer:
        """Return the transformer, not fitted."""
        from ..transformer import PrivacyFunnelTransformer

        return PrivacyFunnelTransformer(
            epsilon,
            sensitive=list(self.protect),
            columns=self.columns,
            beside=list(self.beside) or None,
            utility=_UTILITIES[self.purpose],
            confidence=CONFIDENCE if self.population else None,
            # Not one number: that would cut the protected columns too.
            n_bins=dict.fromkeys(self.columns, self.bins),
            ordered={n: x for n, x in self._scales.items() if n in self.columns} or None,
            release_target=self.releases_target,
            max_categories=self.pooled,
            handle_unknown="error",
        )

    def recipes(
        self, epsilon: float, source: str, number: int, suffix: str, **more: Any
    ) -> dict[str, str]:
        """Return the command and the script that make the same release.

        number : of the release; more : how the table is read, purpose and recipient.
        """
        transformer, out = self.transformer(epsilon), numbered(f"released{suffix}", number)
        more = {name: x for name, x in more.items() if x not in (None, "")}
        more |= {"target": self.target, "report": numbered(REPORT, number)}
        more["save_mechanism"] = numbered(MECHANISM, number)
        return {
            "command": command(transformer, source, out, **more),
            "script": script(transformer, source, out, **more),
        }


def numbered(name: str, number: int) -> str:
    """Return the name of a file of a release: the first of a table has no number."""
    stem, suffix = name.rsplit(".", 1)
    return name if number == 1 else f"{stem}-{number}.{suffix}"


def in_points(points: float) -> str:
    """Return a number of percentage points in words."""
    return f"{points:g} point" if points == 1 else f"{points:g} points"


def _number(name: str, given: Any, low: float, high: float) -> float:
    """Return a number in a range."""
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not low <= given <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}. Got {given!r}.")
    return float(given)


def _scales(given: Any, roles: Mapping[str, str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the order of texts, of columns that are randomised."""
    if not isinstance(given, dict):
        raise ValueError("The order of texts must be an object of lists.")
    for texts in given.values():
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ValueError("The order of texts must be an object of lists of texts.")
    found = ((n, tuple(x)) for n, x in given.items() if roles.get(n) == "randomise" and x)
    return tuple(sorted(found))
