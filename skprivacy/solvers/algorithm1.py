"""The mechanisms of the paper: Section II-B (bounded lifts) and Algorithm 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from .._typing import FloatArray, IntArray
from .._validation import check_choice, check_integer, check_real, message
from ..geometry import Points
from ..geometry.lift_polytopes import Engine
from .leakage_function import DEFAULT_MAX_BASES, Candidates, all_candidates, excess_over
from .linear_program import MixtureProgram
from .solver import DesignTask, Solution, Solver


@dataclass(frozen=True)
class LiftPolytopeSolver(Solver):
    """The best mechanism whose lifts are bounded: Section II-B of the paper.

    Optimal for `max_lift` and `lip`. For other measures it uses a bound on lifts that implies the
    budget, which is feasible but not optimal.

    Parameters
    ----------
    engine : {"parametric", "cdd"}, default="parametric"
        How vertices are enumerated: once for all epsilons, or by cdd for each of them, which
        needs the extra `cdd`.
    max_bases : int, default=1_000_000
        The largest number of candidate vertices; more raise a `SolverError`.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> uniform = [[0.25, 0, 0, 0], [0, 0.25, 0, 0], [0, 0, 0.25, 0], [0, 0, 0, 0.25]]
    >>> mechanism = design_mechanism(uniform, 0.25, measure="max_lift", solver="lift_polytope")
    >>> round(mechanism.utility, 8)
    0.17008204
    """

    engine: Engine = "parametric"
    max_bases: int = DEFAULT_MAX_BASES
    name: ClassVar[str] = "lift_polytope"

    def __post_init__(self) -> None:
        check_choice("LiftPolytopeSolver", "engine", self.engine, {"parametric", "cdd"})
        check_integer("LiftPolytopeSolver", "max_bases", self.max_bases, low=1)

    def solve_path(self, task: DesignTask, epsilons: Sequence[float]) -> Iterator[Solution]:
        """Take steps 1 to 3 of the paper for each epsilon."""
        return map(self.prepared(task), epsilons)

    def prepared(self, task: DesignTask) -> Callable[[float], Solution]:
        """Enumerate the vertices for all epsilons at once."""
        candidates = Candidates(task, self.max_bases, self.engine)
        program = MixtureProgram(task.joint.p_x, task.utility)
        # cdd in floating point may miss a vertex, so that the bound would be wrong.
        exact = task.measure.is_lift_box and task.scope == "per_output" and self.engine != "cdd"
        every_output = replace(task, scope="per_output")  # serves the average too

        def solve(epsilon: float) -> Solution:
            vertices = candidates.vertices(epsilon)
            mixture = program.solve(vertices, excess_over(every_output, epsilon))
            bound = mixture.bound + task.utility.offset(task.joint.p_x) if exact else None
            return Solution(mixture.channel, bound)

        return solve


# Algorithm 1 of the paper: candidates from max-lift polytopes, then one linear program.
#
# The names follow the paper: E are the budgets, E' the exponents of the max-lift polytopes whose
# vertices are tried, N the numbers of exponents between two budgets, F the candidates of a budget.
#
# For `kl` this is exactly the paper's algorithm. For the other measures its line 3 is wrong,
# because Proposition 1 is (corrections 1 and 2, docs/corrections.rst). Here F starts from the
# optimal max-lift mechanism at the bound M that really implies the budget, and E' starts at log M.


@dataclass(frozen=True)
class Algorithm1Solver(Solver):
    """The paper's heuristic.

    Parameters
    ----------
    candidates : {"window", "all"}, default="window"
        "window": as in the paper, vertices for exponents on a grid whose leakage is between
        (1 - delta) epsilon and epsilon. "all": all vertices within the budget, for any exponent.
        It is never worse, and needs no grid: vertices move along segments, and the two ends of
        the part within the budget make the rest superfluous.
    delta : float, default=0.05
        The width of the window. This and the next three parameters have no effect on "all".
    n_between : int or sequence of int, default=5
        Number of exponents between one epsilon and the next: n_1, n_2, ...
    n_last : int, default=500
        Number of exponents between the last epsilon and `eps_last`.
    eps_last : float, default=None
        Where the grid ends. None: the logarithm of the largest lift, beyond which nothing
        changes.
    max_bases : int, default=1_000_000
        The largest number of candidate vertices; more raise a `SolverError`.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> from skprivacy.solvers import Algorithm1Solver
    >>> joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
    >>> paper = design_mechanism(joint, 0.02, solver=Algorithm1Solver())
    >>> every = design_mechanism(joint, 0.02, solver=Algorithm1Solver(candidates="all"))
    >>> round(paper.utility, 3), round(every.utility, 3)
    (0.584, 0.69)
    """

    candidates: Literal["window", "all"] = "window"
    delta: float = 0.05
    n_between: int | Sequence[int] = 5
    n_last: int = 500
    eps_last: float | None = None
    max_bases: int = DEFAULT_MAX_BASES
    name: ClassVar[str] = "algorithm1"

    def __post_init__(self) -> None:
        owner = "Algorithm1Solver"
        check_choice(owner, "candidates", self.candidates, {"window", "all"})
        check_real(owner, "delta", self.delta, low=0, high=1)
        counts: Any = [self.n_between] if np.ndim(self.n_between) == 0 else self.n_between
        for n in counts:
            check_integer(owner, "n_between", n, low=1)
        check_integer(owner, "n_last", self.n_last, low=1)
        if self.eps_last is not None:
            check_real(owner, "eps_last", self.eps_last, low=0)
        check_integer(owner, "max_bases", self.max_bases, low=1)

    def solve_path(self, task: DesignTask, epsilons: Sequence[float]) -> Iterator[Solution]:
        """Run Algorithm 1 with E = `epsilons`."""
        candidates = Candidates(task, self.max_bases)
        program = MixtureProgram(task.joint.p_x, task.utility)
        extremal: Iterable[Points] = (all_candidates(candidates, e) for e in epsilons)
        if self.candidates == "window":
            extremal = self._in_window(candidates, epsilons)
        every_output = replace(task, scope="per_output")  # serves the average too
        in_use: list[Points] = []
        for epsilon, points in zip(epsilons, extremal, strict=True):
            optimal_max_lift = program.solve(candidates.vertices(epsilon)).points  # line 3
            parts = [optimal_max_lift, *in_use, candidates.within(points, epsilon)]
            excess = excess_over(every_output, epsilon)
            mixture = program.solve(Points.concatenate(parts), excess)  # line 12
            in_use = [mixture.points]
            yield Solution(mixture.channel)

    def _in_window(self, candidates: Candidates, epsilons: Sequence[float]) -> list[Points]:
        """Return, for each epsilon, the vertices that lines 7 to 11 add to F."""
        leakage, largest = candidates.leakage, candidates.polytopes.largest
        implied = [candidates.bounds(epsilon)[1] for epsilon in epsilons]
        exponents, starts = self._exponents(np.log1p(implied), np.log1p(largest))
        excesses = np.expm1(np.minimum(exponents, np.log1p(largest))).clip(max=largest)
        chosen: list[list[tuple[IntArray, FloatArray]]] = [[] for _ in epsilons]
        n, size = len(leakage.segments), max(1, 2_000_000 // len(exponents))  # limits memory
        for index in np.split(np.arange(n), range(size, n, size)):
            fraction, inside = leakage.segments.locate(index, excesses)
            values = np.where(inside, leakage.at(fraction, index), np.nan)
            for i, epsilon in enumerate(epsilons):
                later = values[:, starts[i] :]
                window = later <= candidates.task.measure.budget(epsilon, share=0.25)
                # Drops symbols that could be released unchanged (correction 3).
                window &= later >= (1 - self.delta) * epsilon
                # As in `all_candidates`, vertices between two others on a segment do not help.
                rows = np.flatnonzero(window.any(axis=1))
                first = window[rows].argmax(axis=1)
                last = window.shape[1] - 1 - window[rows, ::-1].argmax(axis=1)
                rows, columns = np.tile(rows, 2), np.concatenate([first, last])
                chosen[i].append((index[rows], fraction[rows, columns + starts[i]]))
        found = [map(np.concatenate, zip(*parts, strict=True)) for parts in chosen]
        return [leakage.segments.at(*each) for each in found]

    def _exponents(self, log_bounds: FloatArray, log_max: float) -> tuple[FloatArray, IntArray]:
        """Return E' and the start of the part E'_i of each budget."""
        # The last exponent must be above a single budget (correction 6).
        last = max(log_max, log_bounds[-1]) if self.eps_last is None else self.eps_last
        if self.eps_last is not None and not last > log_bounds[-1]:
            requirement = f"larger than {log_bounds[-1]}, the exponent of the last epsilon"
            raise ValueError(message("Algorithm1Solver", "eps_last", requirement, self.eps_last))
        ends = np.append(log_bounds, last)
        # Beyond the largest lift the polytope is the whole simplex: infinity is not needed.
        ends[np.isinf(ends)] = ends[np.isfinite(ends)].max(initial=log_max)
        between, n = np.asarray(self.n_between, dtype=int), len(log_bounds) - 1
        if between.ndim and len(between) != n:
            requirement = f"an int, or a sequence of {n} for {n + 1} epsilons"
            raise ValueError(message("Algorithm1Solver", "n_between", requirement, self.n_between))
        counts = np.append(between if between.ndim else np.full(n, between), self.n_last)  # N
        pieces = zip(ends[:-1], ends[1:], counts, strict=True)
        parts = [start + np.arange(n) * (stop - start) / n for start, stop, n in pieces]
        return np.concatenate(parts), np.cumsum(counts) - counts
