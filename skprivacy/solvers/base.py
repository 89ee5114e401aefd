"""What a solver is: a frozen set of options that turns a joint into channels."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from .._typing import FloatArray
from .task import DesignTask


@dataclass(frozen=True, eq=False)
class Solution:
    """A channel of shape (n_x, n_y), and a bound that no channel within the budget exceeds.

    The bound is on the utility; None where the solver knows no bound. solver : the name of the one
    that was used, where that is decided late.

    Examples
    --------
    Nothing is kept, and there is no claim that more is impossible:

    >>> import numpy as np
    >>> from skprivacy.solvers import Solution
    >>> Solution(np.ones((3, 1))).upper_bound is None
    True
    """

    channel: FloatArray
    upper_bound: float | None = None
    solver: str | None = None


class Solver(ABC):
    """A way to choose P(Y|X); its options are the fields of a frozen dataclass.

    Examples
    --------
    A constant output, whatever the budget:

    >>> import numpy as np
    >>> from skprivacy import design_mechanism
    >>> from skprivacy.solvers import Solution, Solver
    >>> class Nothing(Solver):
    ...     name = "nothing"
    ...     def solve_path(self, task, epsilons):
    ...         for epsilon in epsilons:
    ...             yield Solution(np.ones((len(task.joint.p_x), 1)))
    >>> design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02, solver=Nothing()).utility
    0.0
    """

    name: ClassVar[str]

    def requirement(self, task: DesignTask) -> str | None:
        """Return what the solver needs that this task does not have, or None."""
        return None

    @abstractmethod
    def solve_path(self, task: DesignTask, epsilons: Sequence[float]) -> Iterator[Solution]:
        """Yield one `Solution` per epsilon.

        task : checked, with a joint that has no symbols of probability zero; epsilons :
        increasing, without repeats.
        """

    def prepared(self, task: DesignTask) -> Callable[[float], Solution]:
        """Return a function that solves for one epsilon after another, in any order.

        A solver may override it to share work between them.
        """
        return lambda epsilon: next(iter(self.solve_path(task, [epsilon])))
