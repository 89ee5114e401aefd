"""Numerical tolerances that several modules share, and one thread for linear algebra.

Tolerances of budgets are in ``measures/measure.py``, of utilities in ``utilities/utility.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

# Relative rounding error of one operation. A sum is off by a few times this, times its terms.
EPS = np.finfo(float).eps

# Keeps denominators positive; far below every number that matters.
TINY = 1e-300

# Probabilities and weights below this are residue of the tolerances of HiGHS.
NEGLIGIBLE = 1e-12

# Lifts this close to 1 differ from it by rounding only: a tenth of the tolerance of budgets.
DEVIATION_ROUNDING = 1e-13

# Distributions, deviations and utilities that agree to this many decimals count as equal.
SAME_DIGITS = 13

# Bisection steps on [0, 1]: down to 1e-18, below the rounding error of probabilities.
BISECTIONS = 60


# One thread for linear algebra: designs multiply many small matrices.


_P = ParamSpec("_P")
_R = TypeVar("_R")


def one_thread(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Limit BLAS to one thread while a function runs.

    On small matrix products, several threads mostly wait for each other: they use several times
    the processor time and finish later.
    """

    @wraps(function)
    def limited(*arguments: _P.args, **options: _P.kwargs) -> _R:
        with _limits.hold():
            return function(*arguments, **options)

    return limited


class _Limits:
    """A thread limit that several callers share; the last one to finish lifts it."""

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
    """Return the controller of the loaded BLAS libraries; finding them takes milliseconds."""
    import scipy.linalg  # noqa: F401  # brings a BLAS of its own

    return ThreadpoolController()


_limits = _Limits()
