"""Messages that name parameters in Python and options in commands; warnings; progress."""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from ast import literal_eval
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain
from multiprocessing import parent_process
from numbers import Real
from string import Formatter
from threading import RLock
from types import FrameType
from typing import Any, Self, TypeAlias, TypeVar


class Mention(ABC):
    """A part of a message that commands word differently; its `str` is the wording in Python."""

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
    """A parameter with a value; ... stands for any value, [...] for any list.

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
    """How to treat numbers in a column: bin them at edges, or read them as codes.

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
    """The class or function a message is about."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class InPython(Mention):
    """Words for Python users; elsewhere : what commands print instead, if anything."""

    words: str
    elsewhere: str | Mention = ""

    def __str__(self) -> str:
        return self.words


# For keyed releases after a fresh fit. Designs agree between processors, but not to the last bit.
UNSAVED = (
    "A key draws the same values only with the very same mechanism. Another fit, for instance on "
    "another machine, differs in the last digits, so its output is a second release."
)

# Python messages say S and X, commands speak of columns.
SENSITIVE = InPython("S", "the sensitive columns")
RELEASED = InPython("X", "the released columns")

# Advice for problems that are too large or too hard.
SMALLER = InPython(
    "Pool the rarest symbols of X, or coarsen S.",
    "Pool rare values of the released columns, or use fewer groups of the sensitive ones.",
)


def table_size(n_s: int, n_x: int) -> InPython:
    """Return the size of a joint distribution, as the start of a sentence.

    >>> table_size(2, 5).elsewhere
    'A table of 2 groups of the sensitive columns and 5 released values'
    """
    return InPython(
        f"A joint of {n_s} symbols of S and {n_x} of X",
        f"A table of {n_s} groups of the sensitive columns and {n_x} released values",
    )


class Message(str):
    """A text that keeps its parts; nested messages are flattened.

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
        nested = (part.parts if isinstance(part, Message) else (part,) for part in parts)
        flat = tuple(chain.from_iterable(nested))
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
        """The first parameter mentioned."""
        mentioned = (getattr(part, "parameter", None) for part in self.parts)
        return next(filter(None, mentioned), None)

    def rendered(self, render: Callable[[Mention], str]) -> str:
        """Return the text, with each mention rendered by a function."""
        return "".join(render(x) if isinstance(x, Mention) else x for x in self.parts)


def message_of(error: BaseException) -> str:
    """Return the message of an error or a warning, as a `Message` if it was raised with one."""
    given = error.args[0] if error.args else None
    return given if isinstance(given, Message) else str(error)


def in_points(share: float, form: str = "+z.1f") -> str:
    """Return a difference of shares as text, in percentage points.

    >>> in_points(0.0321), in_points(-1e-6), in_points(0.0321, ".2f")
    ('+3.2 points', '+0.0 points', '3.21 points')
    """
    return f"{100 * share:{form}} points"


def listed(names: Iterable[object]) -> str:
    """Return names as part of a sentence; an empty text if there are none.

    >>> listed(["age"]), listed(["age", "sex", "race"])
    ('age', 'age, sex and race')
    """
    *most, last = ["", *map(str, names)]
    return f"{', '.join(most[1:])} and {last}" if most[1:] else last


# So many letters may be the beginning of a longer name.
_LETTERS = 3


def closest(name: str, known: Iterable[str], least: float = 0.6) -> str:
    """Return which known name may be meant by one that is not known; empty if none is close.

    least : how similar it has to be, from 0 to 1.

    >>> closest("--colums", ["--columns", "--help"]), closest("Age", ["sex", "age"])
    ('--columns', 'age')
    """
    folded = {each.casefold().lstrip("-"): each for each in known if each != name}
    name = name.casefold().lstrip("-")
    begun = [each for each in folded if len(name) >= _LETTERS and each.startswith(name)]
    close = begun or get_close_matches(name, folded, n=1, cutoff=least)
    return folded[close[0]] if close else ""


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of texts as lines: the first column aligned left, the others right.

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


# Packages between the user's code and ours: callers, and libraries that call back.
_LIBRARIES = sys.stdlib_module_names | {
    "cloudpickle", "dask", "distributed", "imblearn", "joblib", "narwhals", "numpy", "pandas",
    "polars", "py4j", "pyarrow", "pyspark", "sklearn", "skprivacy", "tqdm",
}  # fmt: skip

# By module: its warning registry, and the warnings shown while that registry was in use.
_shown: dict[str, tuple[dict[Any, Any], set[Hashable]]] = {}

_formatting = RLock()


class Notice(UserWarning):
    """A remark on how a release is made: the guarantee holds, and it is probably no mistake.

    Commands show notices; Python hides them unless a filter is set.
    """


# Appended, so that any filter a user sets for notices takes precedence.
warnings.simplefilter("ignore", Notice, append=True)


def warn(message: str, category: type[Warning] = UserWarning, *, in_workers: bool = True) -> None:
    """Warn at the line of the user's code that led here, by default once per line.

    In a worker thread or process, which runs no user code, warn at the line that started it.
    in_workers : whether worker processes warn too, each of them once.
    """
    frame = sys._getframe(1)
    while _is_library(frame) and frame.f_back is not None:
        frame = frame.f_back
    if not in_workers and _is_library(frame) and parent_process() is not None:
        return
    file, line = frame.f_code.co_filename, frame.f_lineno
    module = frame.f_globals.get("__name__", "<string>")
    # The module and the registry of that line, as `warnings.warn` uses those of its caller:
    # filters by module work, and a warning is shown once per line.
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    if module not in _shown or _shown[module][0] is not registry:  # a new one: show all again
        _shown[module] = registry, set()
    shown = _shown[module][1]
    key = str(message), category, line
    # Python forgets what it has shown whenever `catch_warnings` is entered, as scikit-learn does
    # in every fold of a search. We forget it only when the filters really change.
    entry = file, key, _filters_of(category)
    if entry in shown:
        return
    with _without_source_line():
        warnings.warn_explicit(message, category, file, line, module, registry)
    if registry.get(key):  # the filters say: once per line
        shown.add(entry)


@contextmanager
def _without_source_line() -> Iterator[None]:
    """Print warnings without the line of source code below them."""
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
    """Return the filters that match a category, with patterns as text so that they compare."""
    found = [each for each in warnings.filters if issubclass(category, each[2])]
    return tuple(tuple(getattr(part, "pattern", part) for part in each) for each in found)


def _is_library(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__")
    if name == "__main__":  # joblib workers run a joblib module as __main__
        name = getattr(frame.f_globals.get("__spec__"), "name", name)
    return str(name).partition(".")[0] in _LIBRARIES


@contextmanager
def silenced(category: type[Warning]) -> Iterator[None]:
    """Hide warnings of a category within the block: they would be about intermediate steps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        yield


# Progress messages, and results that are passed on before the last one is ready.


_T = TypeVar("_T")
_Callback: TypeAlias = Callable[[Any], None]

_on_progress: ContextVar[_Callback | None] = ContextVar("on_progress", default=None)
_on_result: ContextVar[_Callback | None] = ContextVar("on_result", default=None)


@contextmanager
def _calling(callback: _Callback, variable: ContextVar[_Callback | None]) -> Iterator[None]:
    token = variable.set(callback)
    try:
        yield
    finally:
        variable.reset(token)


def watched(tell: Callable[[str], None]) -> AbstractContextManager[None]:
    """Call a function with each progress message of a block.

    It may cancel what runs by raising an exception, which comes out of the block: a fit that is
    cancelled leaves the transformer as it was, and a file that is not complete is never published.

    Parameters
    ----------
    tell : callable
        Gets a few words, such as "counting rows, 40% of the file". They name no value of a column.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> from skprivacy.progress import watched
    >>> said = []
    >>> with watched(said.append):
    ...     mechanism = design_mechanism([[30, 20], [20, 30]], 0.01)
    >>> said[0]
    'designing a mechanism'
    >>> def cancel(what):
    ...     raise RuntimeError("cancelled")
    >>> with watched(cancel):
    ...     design_mechanism([[30, 20], [20, 30]], 0.01)
    Traceback (most recent call last):
    ...
    RuntimeError: cancelled
    """
    return _calling(tell, _on_progress)


def doing(what: str) -> None:
    """Send a progress message: a few words that name no value of any column."""
    if (tell := _on_progress.get()) is not None:
        tell(what)


def on_each_result(take: _Callback) -> AbstractContextManager[None]:
    """Call `take` with each result of the block, as soon as it is ready."""
    return _calling(take, _on_result)


def emit(result: _T) -> _T:
    """Pass on one of several results, and return it."""
    if (take := _on_result.get()) is not None:
        take(result)
    return result


def progress_bar(items: Iterable[_T] | None = None, *, is_shown: bool, **options: Any) -> Any:
    """Return a bar of tqdm around some items: in a notebook that of notebooks, where it works."""
    with warnings.catch_warnings():
        # Importing it warns in notebooks without ipywidgets, where a bar of text does as well.
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm
    return tqdm(items, disable=not is_shown, **options)


@contextmanager
def part_of(whole: str) -> Iterator[None]:
    """Prefix each progress message of the block with the task it is a part of."""
    tell = _on_progress.get()
    if tell is None:
        yield
        return
    tell(whole)
    with watched(lambda what: tell(f"{whole}: {what}")):
        yield


def each_done(items: Iterator[_T], what: str, total: int) -> Iterator[_T]:
    """Yield items with a progress message for each; what : such as "designing {} budgets"."""
    for number in range(1, total + 1):
        if total == 1:
            yield next(items)
            continue
        with part_of(what.format(f"{number} of {total}")):
            item = next(items)
        yield item
