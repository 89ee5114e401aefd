"""Messages for Python and commands alike, warnings, and progress."""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from ast import literal_eval
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from multiprocessing import parent_process
from numbers import Real
from string import Formatter
from threading import RLock
from types import FrameType
from typing import Any, Self, TypeAlias, TypeVar


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

    @classmethod
    def of(cls, template: str, **values: object) -> Self:
        """Return a message by a template.

        ``{name}`` is one of the values, S, X, or else a parameter; ``{name=value}`` is a setting.

        >>> Message.of("{column!r}: set {alphabet='cells'}, or mend {columns}.", column=7)
        "7: set alphabet='cells', or mend columns."
        """
        values = {"S": SENSITIVE, "X": RELEASED, **values}
        parts: list[str | Mention] = []
        for text, name, form, conversion in Formatter().parse(template):
            parts.append(text)
            if name is None:
                continue
            parameter, is_setting, value = name.partition("=")
            if is_setting:
                parts.append(Setting(parameter, literal_eval(value)))
            elif isinstance(part := values.get(name, Named(name)), Mention | Message):
                parts.append(part)
            else:
                parts.append(format(repr(part) if conversion == "r" else part, form or ""))
        return cls(*parts)

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


# Warnings that point at the user's line, and progress of long computations.


# Packages that call us, or are called by us and call back: no line of theirs is the user's.
_BETWEEN = sys.stdlib_module_names | {
    "cloudpickle",
    "dask",
    "distributed",
    "imblearn",
    "joblib",
    "narwhals",
    "numpy",
    "pandas",
    "polars",
    "py4j",
    "pyarrow",
    "pyspark",
    "sklearn",
    "skprivacy",
    "tqdm",
}


@dataclass(frozen=True)
class _Shown:
    """What was shown in a module, as long as its registry is the same."""

    registry: dict[Any, Any]
    warnings: set[Hashable] = field(default_factory=set)


_shown: dict[str, _Shown] = {}

_formatting = RLock()


class Notice(UserWarning):
    """How a release is made: no threat to the guarantee, and most likely no mistake.

    The commands show it. Python does not, unless a filter asks for it.
    """


# After all other filters: any of them that is about notices comes first.
warnings.simplefilter("ignore", Notice, append=True)


def warn(message: str, category: type[Warning] = UserWarning, *, in_workers: bool = True) -> None:
    """Warn at the line of the user's code that led here, once for that line by default.

    A worker thread or process has none: the warning is then at the line where that began.
    in_workers : whether worker processes warn too; each of them would do so once.
    """
    frame = _users_frame(sys._getframe(1))
    if not in_workers and _is_between(frame) and parent_process() is not None:
        return
    file, line = frame.f_code.co_filename, frame.f_lineno
    module = frame.f_globals.get("__name__", "<string>")
    # The module and the registry of that line, as `warnings.warn` takes those of its caller:
    # filters by module work, and a warning is shown once for each line.
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    shown = _shown_in(module, registry)
    key = str(message), category, line
    # Python forgets what it has shown wherever somebody enters `catch_warnings`, as scikit-learn
    # does in every fold of a search. We forget it where filters really are different.
    entry = file, key, _filters_of(category)
    if entry in shown:
        return
    with _in_one_line():
        warnings.warn_explicit(message, category, file, line, module, registry)
    if registry.get(key):  # the filters say: once for each line
        shown.add(entry)


@contextmanager
def _in_one_line() -> Iterator[None]:
    """Within it, warnings are printed without the source line below them."""
    with _formatting:
        original = warnings.formatwarning

        def in_one_line(
            message: Any, category: Any, filename: str, lineno: int, line: str | None = None
        ) -> str:
            return original(message, category, filename, lineno, "")

        warnings.formatwarning = in_one_line
        try:
            yield
        finally:
            warnings.formatwarning = original


def _filters_of(category: type[Warning]) -> Hashable:
    """Return the filters that may concern a warning; a pattern is the same as its text."""
    found = [each for each in warnings.filters if issubclass(category, each[2])]
    return tuple(tuple(getattr(part, "pattern", part) for part in each) for each in found)


def _shown_in(module: str, registry: dict[Any, Any]) -> set[Hashable]:
    """Return what was shown in a module; nothing where a new registry asks to see it again."""
    if module not in _shown or _shown[module].registry is not registry:
        _shown[module] = _Shown(registry)
    return _shown[module].warnings


def _users_frame(frame: FrameType) -> FrameType:
    while _is_between(frame) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def _is_between(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__")
    if name == "__main__":  # a worker of joblib is a module of joblib that is run
        name = getattr(frame.f_globals.get("__spec__"), "name", name)
    return str(name).partition(".")[0] in _BETWEEN


@contextmanager
def silenced(category: type[Warning]) -> Iterator[None]:
    """Within it, warnings of a kind are not shown: they are about parts of what was asked for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        yield


# What is being done, and what is made meanwhile, told to whoever watches.


_T = TypeVar("_T")
Tell: TypeAlias = Callable[[str], None]

_tell: ContextVar[Tell | None] = ContextVar("tell", default=None)
_take: ContextVar[Callable[[Any], None] | None] = ContextVar("take", default=None)


@contextmanager
def watched(tell: Tell) -> Iterator[None]:
    """Call `tell` with each thing that is done in the block, when it begins."""
    token = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(token)


def doing(what: str) -> None:
    """Say what is done from now on, in a few words that name no value of any column."""
    if (tell := _tell.get()) is not None:
        tell(what)


@contextmanager
def taken(take: Callable[[Any], None]) -> Iterator[None]:
    """Call `take` with each of several things that are made in the block, once it is made."""
    token = _take.set(take)
    try:
        yield
    finally:
        _take.reset(token)


def made(thing: _T) -> _T:
    """Hand over one of several things, and return it: the others may take long."""
    if (take := _take.get()) is not None:
        take(thing)
    return thing


@contextmanager
def part_of(whole: str) -> Iterator[None]:
    """Say of each thing that is done in the block what it is a part of."""
    tell = _tell.get()
    if tell is None:
        yield
        return
    tell(whole)
    with watched(lambda what: tell(f"{whole}: {what}")):
        yield


def each_done(items: Iterator[_T], what: str, total: int) -> Iterator[_T]:
    """Yield items that take their time; what : is done, such as "designing {} budgets"."""
    for number in range(1, total + 1):
        if total > 1:
            doing(what.format(f"{number} of {total}"))
        yield next(items)
