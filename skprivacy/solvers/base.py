"""What a solver is: a frozen set of options that turns a joint into channels."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from .._typing import FloatArray, Scope
from ..joint import Joint
from ..measures import Measure
from ..utilities import Utility


@dataclass(frozen=True, eq=False)
class Solution:
    """A channel of shape (n_x, n_y), and a bound that no channel within the budget exceeds.

    The bound is on the utility; None where the solver knows of none.
    """

    channel: FloatArray
    upper_bound: float | None = None


class Solver(ABC):
    """A way to choose P(Y|X); its options are the fields of a frozen dataclass."""

    name: ClassVar[str]

    def requirement(self, measure: Measure, scope: Scope) -> str | None:
        """Return what the solver needs that this measure or scope is not, or None."""
        return None

    @abstractmethod
    def solve_path(
        self,
        joint: Joint,
        epsilons: Sequence[float],
        measure: Measure,
        scope: Scope,
        utility: Utility,
    ) -> Iterator[Solution]:
        """Yield one `Solution` per epsilon.

        joint : without symbols of probability zero; epsilons : increasing, without repeats;
        measure, scope, utility : as in `design_mechanism`, checked.
        """
