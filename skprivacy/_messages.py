"""Messages that read differently in Python and on the command line.

Their text is for those who write Python. The command line calls a parameter an option, and rewords
these parts; names and values of the user are plain text, which is never touched.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self


class Mention(ABC):
    """A part of a message with another name outside Python; its `str` is the name in Python."""

    @abstractmethod
    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Parameter(Mention):
    """A parameter at the start of a sentence.

    >>> str(Parameter("epsilon", "PrivacyFunnelTransformer"))
    "The 'epsilon' parameter of PrivacyFunnelTransformer"
    """

    parameter: str
    owner: str

    def __str__(self) -> str:
        return f"The {self.parameter!r} parameter of {self.owner}"


@dataclass(frozen=True)
class Named(Mention):
    """A parameter by its bare name."""

    parameter: str

    def __str__(self) -> str:
        return self.parameter


@dataclass(frozen=True)
class Setting(Mention):
    """A parameter with a value: ... for any, [...] for any list.

    >>> str(Setting("handle_unknown", "resample")), str(Setting("names", [...]))
    ("handle_unknown='resample'", 'names=[...]')
    """

    parameter: str
    value: Any

    def __str__(self) -> str:
        return f"{self.parameter}={self._written}"

    @property
    def _written(self) -> str:
        if self.value is ...:
            return "..."
        if isinstance(self.value, list):
            return "[...]"
        is_number = isinstance(self.value, Real) and not isinstance(self.value, bool)
        return f"{self.value:g}" if is_number else repr(self.value)


@dataclass(frozen=True)
class BinsOf(Mention):
    """How to treat the numbers of a column: cut at edges, or as codes.

    >>> str(BinsOf("age", at_edges=True)), str(BinsOf("code", at_edges=False))
    ("n_bins={'age': [...]}", "n_bins={'code': None}")
    """

    column: Hashable
    at_edges: bool
    parameter = "n_bins"

    def __str__(self) -> str:
        return f"n_bins={{{self.column!r}: {'[...]' if self.at_edges else 'None'}}}"


@dataclass(frozen=True)
class Owner(Mention):
    """The class or function that a message is about."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class InPython(Mention):
    """Words that only Python needs; elsewhere : what is said in their place, if anything."""

    words: str
    elsewhere: str | Mention = ""

    def __str__(self) -> str:
        return self.words


# Where a key meets a fresh fit. Designs agree between processors, but not to the last bit.
UNSAVED = (
    "A key draws the same rows only with the very same mechanism, and another fit, on another "
    "machine for instance, differs in its last digits: what it releases is a second release."
)

# What formulas call S and X: where there are options, there are columns.
SENSITIVE = InPython("S", "the sensitive columns")
RELEASED = InPython("X", "the released columns")

# What helps where a problem is too large or too hard.
SMALLER = InPython(
    "Pool the rarest symbols of X, or coarsen S.",
    "Pool rare values of the released columns, or take fewer groups of the sensitive ones.",
)


def table_size(n_s: int, n_x: int) -> InPython:
    """Return how large a joint of S and X is, at the start of a sentence.

    >>> table_size(2, 5).elsewhere
    'A table of 2 groups of the sensitive columns and 5 released values'
    """
    return InPython(
        f"A joint of {n_s} symbols of S and {n_x} of X",
        f"A table of {n_s} groups of the sensitive columns and {n_x} released values",
    )


class Message(str):
    """A text that keeps its parts; a message among them is split into its own.

    >>> message = Message("Use ", Setting("handle_unknown", "resample"), " instead.")
    >>> message
    "Use handle_unknown='resample' instead."
    >>> message.parameter
    'handle_unknown'
    >>> message.rendered(lambda mention: mention.parameter.upper())
    'Use HANDLE_UNKNOWN instead.'
    """

    parts: tuple[str | Mention, ...]

    def __new__(cls, *parts: str | Mention) -> Self:
        flat = tuple(_flat(parts))
        self = super().__new__(cls, "".join(map(str, flat)))
        self.parts = flat
        return self

    def __reduce__(self) -> tuple[type[Self], tuple[str | Mention, ...]]:
        return type(self), self.parts

    @property
    def parameter(self) -> str | None:
        """The first parameter that is mentioned."""
        mentioned = (getattr(part, "parameter", None) for part in self.parts)
        return next(filter(None, mentioned), None)

    def rendered(self, said: Callable[[Mention], str]) -> str:
        """Return the text with each mention in other words."""
        return "".join(said(x) if isinstance(x, Mention) else x for x in self.parts)


def _flat(parts: tuple[str | Mention, ...]) -> Iterator[str | Mention]:
    for part in parts:
        if isinstance(part, Message):
            yield from part.parts
        else:
            yield part


def message_of(error: BaseException) -> str:
    """Return what an error or a warning says, with its parts if it has any."""
    given = error.args[0] if error.args else None
    return given if isinstance(given, Message) else str(error)


def in_points(share: float, form: str = "+z.1f") -> str:
    """Return a difference of shares in percentage points.

    >>> in_points(0.0321), in_points(-1e-6), in_points(0.0321, ".2f")
    ('+3.2 points', '+0.0 points', '3.21 points')
    """
    return f"{100 * share:{form}} points"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of texts as lines with aligned columns: the first to the left.

    >>> aligned([("column", "leaks"), ("club", "0.37")])
    ['column  leaks', 'club     0.37']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            text.ljust(width) if i == 0 else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
