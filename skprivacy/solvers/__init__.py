"""Solvers, which choose P(Y|X), by name, and the classes needed to write your own."""

from dataclasses import fields
from typing import Any

from .._messages import InPython, Message, Owner, Setting
from .._validation import check_choice, message
from ..geometry import Points
from .algorithm1 import Algorithm1Solver, LiftPolytopeSolver
from .baselines import (
    BestPartitionSolver,
    Chi2DesignSolver,
    GreedyFunnelSolver,
    RandomizedResponseSolver,
    SubsetMergingSolver,
    WatchdogSolver,
)
from .column_generation import ColumnGenerationSolver
from .one_per_label import OnePerLabelSolver
from .optimal import OptimalSolver
from .solver import DesignTask, Solution, Solver, automatic
from .solver import most_symbols as most_symbols

_CLASSES = (
    OptimalSolver,
    OnePerLabelSolver,
    ColumnGenerationSolver,
    Algorithm1Solver,
    LiftPolytopeSolver,
    BestPartitionSolver,
    SubsetMergingSolver,
    WatchdogSolver,
    GreedyFunnelSolver,
    Chi2DesignSolver,
    RandomizedResponseSolver,
)
SOLVERS: dict[str, type[Solver]] = {cls.name: cls for cls in _CLASSES}

__all__ = [
    "Algorithm1Solver",
    "BestPartitionSolver",
    "Chi2DesignSolver",
    "ColumnGenerationSolver",
    "DesignTask",
    "GreedyFunnelSolver",
    "LiftPolytopeSolver",
    "OnePerLabelSolver",
    "OptimalSolver",
    "Points",
    "RandomizedResponseSolver",
    "Solution",
    "Solver",
    "SubsetMergingSolver",
    "WatchdogSolver",
]


def get_solver(
    solver: str | Solver,
    options: dict[str, Any] | None,
    owner: str,
    task: DesignTask,
    tol: float | None = None,
) -> Solver:
    """Return a solver object from a name and its options, or the object itself.

    The task decides which solver "auto" is; tol : its tolerance, if it has one.
    """
    if not isinstance(options, dict | None):
        raise TypeError(message(owner, "solver_options", "a dict or None", options))
    if isinstance(solver, Solver):
        if options:
            both = f"the options {sorted(options)} in addition to the solver object {solver!r}"
            raise TypeError(f"{owner} got {both}. Set them on the object.")
    else:
        check_solver_name(owner, "solver", solver)
        defaults: dict[str, Any] = {}
        if is_automatic := solver == "auto":
            solver, defaults = automatic(task)
        # All shipped solvers are dataclasses, which the type of their base class cannot express.
        allowed = [field.name for field in fields(SOLVERS[solver])]  # type: ignore[arg-type]
        if is_automatic and tol is not None and "tol" in allowed:
            defaults["tol"] = tol
        options = defaults | (options or {})
        if unknown := sorted(set(options) - set(allowed)):
            unexpected = f"{owner} got an unexpected option {unknown[0]!r} for solver {solver!r}"
            raise TypeError(f"{unexpected}, which takes {', '.join(allowed) or 'none'}.")
        solver = SOLVERS[solver](**options)
    if requirement := solver.requirement(task):
        template = "The solver {name!r} needs {requirement}. {owner} got {measure}, {scope}."
        measure = InPython(f"measure={task.measure!r}", Setting("measure", task.measure.name))
        got = {"owner": Owner(owner), "measure": measure, "scope": Setting("scope", task.scope)}
        raise ValueError(Message.of(template, name=solver.name, requirement=requirement, **got))
    return solver


def check_solver_name(owner: str, parameter: str, solver: object) -> None:
    """Check that `solver` is the name of a solver."""
    if isinstance(solver, type):
        requirement = f"an instance: write {solver.__name__}(), not the class"
        raise TypeError(message(owner, parameter, requirement, solver))
    check_choice(owner, parameter, solver, {"auto", *SOLVERS}, " or a solver object")
