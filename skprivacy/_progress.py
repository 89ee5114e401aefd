"""What is being done, and what is made meanwhile, told to whoever watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias, TypeVar

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
