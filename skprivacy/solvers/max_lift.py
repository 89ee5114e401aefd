"""The optimal max-lift mechanism: Section II-B of the paper."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from .._validation import check_choice, check_integer
from ..geometry.lift_polytopes import Engine
from .base import Solution, Solver
from .candidates import Candidates, excess_over
from .linear_program import MixtureProgram
from .task import DesignTask

DEFAULT_MAX_BASES = 1_000_000


@dataclass(frozen=True)
class MaxLiftSolver(Solver):
    """The best mechanism whose lifts are bounded.

    Optimal for `max_lift` and `lip`. For any other measure it uses the lift bound that implies
    its budget, which is feasible but not optimal.

    Parameters
    ----------
    engine : {"parametric", "cdd"}, default="parametric"
        How vertices are enumerated: once for all epsilons, or by cdd for each of them, which
        needs the extra `cdd`.
    max_bases : int, default=1_000_000
        The most candidate vertices to examine; more than that raise a `SolverError`.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> uniform = [[0.25, 0, 0, 0], [0, 0.25, 0, 0], [0, 0, 0.25, 0], [0, 0, 0, 0.25]]
    >>> mechanism = design_mechanism(uniform, 0.25, measure="max_lift", solver="max_lift")
    >>> round(mechanism.utility, 8)
    0.17008204
    """

    engine: Engine = "parametric"
    max_bases: int = DEFAULT_MAX_BASES
    name: ClassVar[str] = "max_lift"

    def __post_init__(self) -> None:
        check_choice("MaxLiftSolver", "engine", self.engine, {"parametric", "cdd"})
        check_integer("MaxLiftSolver", "max_bases", self.max_bases, low=1)

    def solve_path(self, task: DesignTask, epsilons: Sequence[float]) -> Iterator[Solution]:
        """Take steps 1 to 3 of the paper for each epsilon."""
        return map(self.prepared(task), epsilons)

    def prepared(self, task: DesignTask) -> Callable[[float], Solution]:
        """Enumerate the vertices of all epsilons at once."""
        candidates = Candidates(task, self.max_bases, self.engine)
        program = MixtureProgram(task.joint.p_x, task.utility)
        # cdd in floating point may miss a vertex, which would make its bound wrong.
        exact = task.measure.is_lift_box and task.scope == "per_output" and self.engine != "cdd"
        every_output = replace(task, scope="per_output")  # serves the average too

        def solve(epsilon: float) -> Solution:
            vertices = candidates.vertices(epsilon)
            mixture = program.solve(vertices, excess_over(every_output, epsilon))
            bound = mixture.bound + task.utility.offset(task.joint.p_x) if exact else None
            return Solution(mixture.channel, bound)

        return solve
