"""Compare mechanisms: utility, leakage and time under the same budgets."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ._messages import progress_bar
from ._numerics import one_thread
from ._typing import Scope
from ._validation import about, message
from .design import AnyTable, Budgets, check_epsilons, in_order, mechanism_path
from .measures import Measure, every_measure
from .mechanism import Mechanism, name_of_secret
from .solvers import SOLVERS, DesignTask, Solver, check_solver_name
from .solvers.problem import OccurringSymbols
from .solvers.solver import automatic
from .utilities import BOUND_TOLERANCE, Utility

_OWNER = "compare_mechanisms"

# "auto" is one of these, unless something simpler is optimal.
_GENERAL = ("optimal", "column_generation")

# Prefixes of the columns of leakage.
_PREFIXES: dict[Scope, str] = {"per_output": "worst", "average": "average"}


@one_thread
def compare_mechanisms(
    p_sx: AnyTable,
    epsilons: Iterable[Any],
    solvers: Iterable[str | Solver] | Mapping[str, str | Solver] | None = None,
    *,
    measure: str | Measure = "kl",
    scope: Scope = "per_output",
    utility: str | Utility = "mutual_information",
    max_outputs: int | None = None,
    confidence: float | None = None,
    n_samples: float | None = None,
    verbose: bool = False,
) -> pd.DataFrame:
    """Compare the mechanisms that several solvers design for several budgets.

    Parameters
    ----------
    p_sx : array-like or DataFrame of shape (n_s, n_x), or dict of them
        As in `design_mechanism`.
    epsilons : sequence of float, or of dict
        The budgets; for several secrets, dicts.
    solvers : list of str or Solver, or dict, default=None
        Names or objects, such as ``Algorithm1Solver(candidates="all")``; a dict gives them names.
        None: "auto" and every other solver that supports the measure and scope.
    measure, scope, utility, max_outputs, confidence, n_samples
        As in `design_mechanism`.
    verbose : bool, default=False
        Whether to show a progress bar.

    Returns
    -------
    DataFrame
        One row per solver and epsilon, with the mechanisms of `privacy_utility_path`: where a
        heuristic does worse with a larger budget, the mechanism of the smaller one is kept.

        - `solver`, `epsilon`;
        - `utility` and `normalized_utility`, as in a `Mechanism`;
        - `leakage`, which epsilon bounds, and with a confidence its `population_limit`;
        - `worst_kl`, `average_kl`, ...: leakage by every measure, of the worst output and on
          average, on the epsilon scale of the measure (`worst_max_lift` is a logarithm; alpha is
          2 unless set in `measure`); `max_lift`, the largest lift itself;
        - `seconds` of the design, after those for smaller budgets: work that solvers share
          between budgets counts for the smallest budget;
        - `outputs`: the number of symbols of Y;
        - `gap`: the most utility that any other mechanism could add at that budget. The tightest
          bound proved by any of the solvers holds for all of them;
        - `reason`: the error with which a solver failed. Its figures are then missing; the other
          rows are unaffected.

        With several secrets, each has its own columns: `epsilon sex`, `leakage sex`, and so on.

    Examples
    --------
    >>> from skprivacy import compare_mechanisms
    >>> joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
    >>> table = compare_mechanisms(joint, [0.02], ["optimal", "randomized_response"])
    >>> table[["solver", "utility", "worst_kl"]].round(3)
                    solver  utility  worst_kl
    0              optimal    0.690      0.02
    1  randomized_response    0.144      0.02
    """
    budgets = check_epsilons(_OWNER, epsilons, p_sx)
    asked = measure, scope, utility, max_outputs, confidence, n_samples
    every = [epsilon for each in budgets for epsilon in each.values()]
    task = DesignTask.checked(_OWNER, p_sx, every, *asked)
    if solvers is None:
        used_by_auto, _ = automatic(OccurringSymbols(task).task)
        others = (cls() for name, cls in SOLVERS.items() if name not in (*_GENERAL, used_by_auto))
        solvers = ["auto", *(s.name for s in others if s.requirement(task) is None)]
    solvers = _named(solvers)
    increasing, measures = in_order(budgets), every_measure(task.measure)
    outcomes, total = _outcomes(task, solvers, increasing), len(solvers) * len(increasing)
    rows = {}
    bar = progress_bar(outcomes, is_shown=verbose, total=total, unit="design")
    for name, budget, seconds, outcome in bar:
        row = {"solver": name, **_of_each("epsilon", budget), "seconds": seconds}
        if isinstance(outcome, Exception):
            row["reason"] = f"{type(outcome).__name__}: {outcome}"
        else:
            row |= _figures(outcome, measures)
        rows[name, tuple(budget.values())] = row
    chosen = [rows[name, tuple(each.values())] for name in solvers for each in budgets]
    return _table(chosen, _columns(task, measures), list(_of_each("epsilon", budgets[0])))


def _outcomes(
    task: DesignTask, solvers: dict[str, str | Solver], increasing: list[Budgets]
) -> Iterator[tuple[str, Budgets, float, Mechanism | Exception]]:
    """Yield (name, budgets, seconds, mechanism or exception) for every design."""
    for name, solver in solvers.items():
        left, path = increasing, None
        while left:
            start = time.perf_counter()
            outcome: Mechanism | Exception
            try:
                path = path or mechanism_path(task, left, _OWNER, solver)
                outcome = next(path)
            except Exception as error:  # no error must hide the other designs
                outcome, path = error, None
            yield name, left[0], time.perf_counter() - start, outcome
            left = left[1:]


def _named(
    solvers: Iterable[str | Solver] | Mapping[str, str | Solver],
) -> dict[str, str | Solver]:
    """Return ``{name: solver}``, checked."""
    if isinstance(solvers, str | Solver) or not np.iterable(solvers):
        raise TypeError(message(_OWNER, "solvers", "a list or a dict of solvers", solvers))
    named = [(s.name if isinstance(s, Solver) else s, s) for s in solvers]
    named = list(solvers.items()) if isinstance(solvers, Mapping) else named
    for name, solver in named:
        if not isinstance(solver, Solver):
            check_solver_name(_OWNER, "solvers", solver)
        if not isinstance(name, str):
            raise TypeError(message(_OWNER, "solvers", "a dict with names as keys", name))
    names = [name for name, _ in named]
    if not names:
        raise ValueError(message(_OWNER, "solvers", "at least one solver", solvers))
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        problem = f" has {repeated[0]!r} more than once: pass a dict with a name for each."
        raise ValueError(about(_OWNER, "solvers", problem))
    return dict(named)


def _of_each(column: str, figures: Mapping[Any, Any]) -> dict[str, Any]:
    """Return ``{column: figure}``, with one column per secret if there are several."""
    if len(figures) == 1:
        return {column: next(iter(figures.values()))}
    return {f"{column} {name_of_secret(name)}": figure for name, figure in figures.items()}


def _figures(mechanism: Mechanism, measures: dict[str, Measure]) -> dict[str, Any]:
    """Return the figures of a mechanism, by column."""
    secrets, scope = mechanism.secrets, mechanism.scope
    row = {
        "utility": mechanism.utility,
        "normalized_utility": mechanism.normalized_utility,
        **_of_each("leakage", {s: each.leakage_in(scope) for s, each in secrets.items()}),
        **_of_each("population_limit", {s: each.leakage_at_most() for s, each in secrets.items()}),
        **_of_each("max_lift", {s: each.max_lift for s, each in secrets.items()}),
        "outputs": len(mechanism.p_y),
        "upper_bound": mechanism.upper_bound,
    }
    for column, (name, of) in _leakages(measures).items():
        by_measure = {s: each.with_measure(measures[name]) for s, each in secrets.items()}
        row |= _of_each(column, {s: each.leakage_in(of) for s, each in by_measure.items()})
    return row


def _leakages(measures: dict[str, Measure]) -> dict[str, tuple[str, Scope]]:
    """Return the columns of leakage: ``{column: (name of the measure, scope)}``."""
    return {
        f"{prefix}_{name}": (name, scope)
        for name, measure in measures.items()
        for scope, prefix in _PREFIXES.items()
        if scope in measure.scopes
    }


def _columns(task: DesignTask, measures: dict[str, Measure]) -> list[str]:
    """Return all columns, in order."""
    limit = [] if task.confidence is None else ["population_limit"]
    of_secrets = ["leakage", *limit, *_leakages(measures), "max_lift"]
    each = [column for name in of_secrets for column in _of_each(name, task.secrets)]
    first = ["solver", *_of_each("epsilon", task.secrets), "utility", "normalized_utility"]
    return [*first, *each, "seconds", "outputs", "upper_bound", "reason"]


def _table(rows: list[dict[str, Any]], columns: list[str], budgets: list[str]) -> pd.DataFrame:
    """Return the rows as a DataFrame, with the gaps to the tightest bounds."""
    table = pd.DataFrame(rows, columns=columns)
    bound, of_budget = table.pop("upper_bound"), [table[column] for column in budgets]
    # A bound that another solver exceeds by more than the tolerance of budgets is wrong.
    reached = table["utility"].groupby(of_budget).transform("max")
    bound = bound.where(bound >= reached - BOUND_TOLERANCE)
    bound = bound.groupby(of_budget).transform("min")
    gap = (bound - table["utility"]).clip(lower=0.0)
    table.insert(len(table.columns) - 1, "gap", gap)
    return table.astype({"outputs": "Int64", "reason": "string"})
