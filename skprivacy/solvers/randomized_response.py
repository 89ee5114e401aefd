"""k-ary randomised response on X: what one would do by hand."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..measures.leakage import value_in
from .base import Solution, Solver
from .partitions import Risk
from .task import DesignTask

_BISECTIONS = 60  # to 1e-18

# The answer stays this far inside the budget, against rounding where a measure jumps.
_INSIDE = 1e-14


@dataclass(frozen=True)
class RandomizedResponseSolver(Solver):
    """Release X with some probability, and otherwise a symbol drawn uniformly.

    The probability is the largest that meets the budget: leakage grows with it, whatever the
    measure, and the root is found on the measure itself.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
    >>> mechanism = design_mechanism(joint, 0.01, solver="randomized_response")
    >>> round(mechanism.max_leakage, 9)
    0.01
    """

    name: ClassVar[str] = "randomized_response"

    def solve_path(self, task: DesignTask, epsilons: Sequence[float]) -> Iterator[Solution]:
        """Find the largest share of rows that may be released unchanged under each epsilon."""
        risk, n_x = Risk(task), len(task.joint.p_x)

        def leakage(unchanged: float) -> float:
            # The rows that are drawn anew reveal nothing: they add mass but no moment.
            mass = unchanged * risk.mass + (1 - unchanged) / n_x
            return value_in(task.scope, risk.of(mass, unchanged * risk.moments), mass)

        for epsilon in epsilons:
            unchanged = _largest(leakage, risk.limit(epsilon))
            yield Solution(unchanged * np.eye(n_x) + (1 - unchanged) / n_x)


def _largest(leakage: Callable[[float], float], limit: float) -> float:
    """Return the largest number from 0 to 1 whose leakage is within a limit.

    Leakage grows with it: the outputs for a smaller number are those for a larger one with noise
    added.
    """
    if leakage(1.0) <= limit:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if leakage(middle) <= limit else (low, middle)
    return max(0.0, low - _INSIDE)
