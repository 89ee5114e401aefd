"""Ways to choose P(Y|X), by name."""

from dataclasses import fields

from .._validation import check_choice, message
from .algorithm1 import Algorithm1Solver
from .automatic import automatic, most_symbols
from .base import Solution, Solver
from .column_generation import ColumnGenerationSolver
from .max_lift import MaxLiftSolver
from .optimal import OptimalSolver

_CLASSES = Algorithm1Solver, ColumnGenerationSolver, MaxLiftSolver, OptimalSolver
SOLVERS = {cls.name: cls for cls in _CLASSES}

__all__ = [
    "SOLVERS",
    "Algorithm1Solver",
    "ColumnGenerationSolver",
    "MaxLiftSolver",
    "OptimalSolver",
    "Solution",
    "Solver",
    "get_solver",
    "most_symbols",
]


def get_solver(solver, options, owner, joint, measure, scope):
    """Return a solver object from a name and its options, or the object itself.

    "auto" is decided by the joint, the measure and the scope.
    """
    if isinstance(solver, Solver):
        if options:
            raise TypeError(
                f"{owner} got the options {sorted(options)} beside the solver object {solver!r}; "
                f"set them on the object, or give the solver by name."
            )
        return solver
    if isinstance(solver, type):
        requirement = f"an instance: write {solver.__name__}(), not the class"
        raise TypeError(message(owner, "solver", requirement, solver))
    check_choice(owner, "solver", solver, {"auto", *SOLVERS}, " or a solver object")
    if solver == "auto":
        solver, defaults = automatic(joint, measure, scope)
        options = defaults | options
    allowed = [field.name for field in fields(SOLVERS[solver])]
    unknown = sorted(set(options) - set(allowed))
    if unknown:
        raise TypeError(
            f"{owner} got an unexpected option {unknown[0]!r} for solver {solver!r}, which takes "
            f"{', '.join(allowed)}."
        )
    return SOLVERS[solver](**options)
