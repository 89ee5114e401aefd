"""One thread for linear algebra: designs multiply many small matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

_P = ParamSpec("_P")
_R = TypeVar("_R")


def one_thread(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let BLAS have one thread while a function runs.

    Threads that share out small products mostly wait for each other: they take several times as
    much of the processors, and longer.
    """

    @wraps(function)
    def limited(*arguments: _P.args, **options: _P.kwargs) -> _R:
        with _limits.hold():
            return function(*arguments, **options)

    return limited


class _Limits:
    """A limit that holds until the last of those that asked for it is done."""

    def __init__(self) -> None:
        self._lock, self._n_holders, self._limiter = Lock(), 0, None

    @contextmanager
    def hold(self) -> Iterator[None]:
        with self._lock:
            self._n_holders += 1
            if self._n_holders == 1:
                self._limiter = _libraries().limit(limits=1, user_api="blas")
        try:
            yield
        finally:
            with self._lock:
                self._n_holders -= 1
                if not self._n_holders and self._limiter is not None:
                    self._limiter.restore_original_limits()


@cache
def _libraries() -> Any:
    """Return what knows the libraries that are loaded: to look for them takes milliseconds."""
    import scipy.linalg  # noqa: F401  # which has one of its own

    return ThreadpoolController()


_limits = _Limits()
