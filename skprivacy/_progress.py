"""What is being done, told to whoever watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias, TypeVar

_T = TypeVar("_T")
Tell: TypeAlias = Callable[[str], None]

_tell: ContextVar[Tell | None] = ContextVar("tell", default=None)


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


def each_done(items: Iterator[_T], what: str, total: int) -> Iterator[_T]:
    """Yield items that take their time; what : is done, such as "designing {} budgets"."""
    for number in range(1, total + 1):
        if total > 1:
            doing(what.format(f"{number} of {total}"))
        yield next(items)
