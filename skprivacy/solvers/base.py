"""What a solver is: a frozen set of options that turns a joint into channels."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np


@dataclass(frozen=True, eq=False)
class Solution:
    """A channel of shape (n_x, n_y), and a bound that no channel within the budget exceeds.

    The bound is on the utility; None where the solver knows of none.
    """

    channel: np.ndarray
    upper_bound: float | None = None


class Solver(ABC):
    """A way to choose P(Y|X); its options are the fields of a frozen dataclass."""

    name: ClassVar[str]

    def requirement(self, measure, scope):
        """Return what the solver needs that this measure or scope is not, or None."""
        return None

    @abstractmethod
    def solve_path(self, joint, epsilons, measure, scope, utility):
        """Yield one `Solution` per epsilon.

        joint : without symbols of probability zero; epsilons : increasing, without repeats;
        measure, scope, utility : as in `design_mechanism`, checked.
        """
