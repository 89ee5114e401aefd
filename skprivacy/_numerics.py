"""Numerical tolerances that several modules share, and one thread for linear algebra.

Those of budgets are in ``measures/measure.py``, of utilities in ``utilities/utility.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

# The relative rounding of one operation: sums are off by a few times this, times their terms.
EPS = np.finfo(float).eps

# Keeps a denominator positive: nothing that matters is smaller.
TINY = 1e-300

# A probability, or a weight, below this is left over from the tolerances of HiGHS.
NEGLIGIBLE = 1e-12

# Deviations of lifts from 1 up to this are rounding: a tenth of the tolerance of budgets.
DEVIATION_ROUNDING = 1e-13

# Distributions, deviations and utilities that agree to this many digits are the same.
SAME_DIGITS = 13

# Halvings of an interval from 0 to 1: to 1e-18, less than any probability is rounded by.
BISECTIONS = 60


# One thread for linear algebra: designs multiply many small matrices.


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
