"""A joint distribution in, mechanisms out: the functions around the solvers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt
from tqdm.auto import tqdm

from ._messages import RELEASED, SENSITIVE, Message, Named, Setting
from ._progress import doing, each_done, made
from ._typing import Scope, TableLike
from ._validation import check_real, message
from ._warnings import warn
from .confidence import ConfidentDesign
from .exceptions import FiniteSampleWarning
from .finishing import finish, finished
from .measures import Measure
from .mechanism import Mechanism, SeveralSecretsMechanism
from .secrets import check_budgets
from .solvers import DesignTask, Solution, Solver, get_solver
from .solvers.broad import BroadDesign
from .solvers.one_thread import one_thread
from .solvers.reductions import OccurringSymbols
from .utilities import Utility

# What a design with limits for outputs, rather than by one of the solvers, says of itself.
_CONFIDENT = "confident"

# What those who watch are told.
_DESIGNING = "designing {} budgets"

# With a smaller share of the utility than this there is a warning of too few rows.
_HARDLY_ANY = 0.01


# Those of one secret, and those of several by their names.
AnyTable: TypeAlias = TableLike | Mapping[Any, TableLike]
Budget: TypeAlias = float | Mapping[Any, float]
AnyMechanism: TypeAlias = Mechanism | SeveralSecretsMechanism
Groups: TypeAlias = Sequence[Hashable] | npt.ArrayLike


@overload
def design_mechanism(
    p_sx: TableLike,
    epsilon: float,
    *,
    measure: str | Measure = ...,
    scope: Scope = ...,
    utility: str | Utility = ...,
    solver: str | Solver = ...,
    max_outputs: int | None = ...,
    confidence: float | None = ...,
    n_samples: float | None = ...,
    groups: Groups | None = ...,
    **options: Any,
) -> Mechanism: ...


@overload
def design_mechanism(
    p_sx: Mapping[Any, TableLike],
    epsilon: Mapping[Any, float],
    *,
    measure: str | Measure = ...,
    scope: Scope = ...,
    utility: str | Utility = ...,
    solver: str | Solver = ...,
    max_outputs: int | None = ...,
    confidence: float | None = ...,
    n_samples: float | None = ...,
    groups: Groups | None = ...,
    **options: Any,
) -> SeveralSecretsMechanism: ...


@one_thread
def design_mechanism(
    p_sx: AnyTable,
    epsilon: Budget,
    *,
    measure: str | Measure = "kl",
    scope: Scope = "per_output",
    utility: str | Utility = "mutual_information",
    solver: str | Solver = "auto",
    max_outputs: int | None = None,
    confidence: float | None = None,
    n_samples: float | None = None,
    groups: Groups | None = None,
    **options: Any,
) -> AnyMechanism:
    """Design the channel P(Y|X) that keeps the most about X within a privacy budget on S.

    Parameters
    ----------
    p_sx : array-like or DataFrame of shape (n_s, n_x)
        The joint distribution of S (rows) and X (columns), as probabilities or counts. Labels
        are taken from a DataFrame, such as the one that `pandas.crosstab` returns. For several
        secrets, a dict of such tables, all about the same X.
    epsilon : float or dict
        The budget, from 0 (the output reveals nothing about S) to infinity (Y = X), in nats for
        the logarithmic measures. For several secrets, a dict with the budget of each. Separate
        budgets bound no combination of secrets: for that, a table may be about a joint one.
    measure : str or Measure, default="kl"
        What leakage is: "kl", "l1", "chi2", "max_lift", "alpha_lift", "lip", "parity", or an
        object such as ``AlphaLift(alpha=5)`` or one of your own.
    scope : {"per_output", "average"}, default="per_output"
        Whether every output must keep the budget, or all on average.
    utility : str or Utility, default="mutual_information"
        What is maximised: "mutual_information" is I(X;Y), "guess" is the chance of guessing X
        from Y, ``Target(p_vx)`` is I(V;Y) for a target V, and "distortion" or
        ``Distortion(loss)`` is minus the expected loss of taking Y at face value.
    solver : str or Solver, default="auto"
        "optimal" (certified), "one_per_label" (certified, for a loss of labels),
        "column_generation" (large alphabets), "max_lift" (bounded lifts,
        optimal for `max_lift` and `lip` per output), or "auto": one of these; `Mechanism.solver`
        says which. For comparison: "algorithm1" (the paper's), "best_partition",
        "subset_merging", "watchdog", "greedy_funnel" (symbols merged, no noise),
        "randomized_response", "chi2_design".
    max_outputs : int, default=None
        Merge the two outputs whose merger costs least of the utility, until so many are left.
        That never adds leakage. `upper_bound` is still about any number of outputs.
    confidence : float, default=None
        How often the budget is to hold for the population that the rows of `p_sx` were drawn from,
        such as 0.95. None: it holds for `p_sx` itself, and the true leakage mostly exceeds it.
    n_samples : float, default=None
        With a confidence, how many independent rows `p_sx` is from. None: `p_sx` has counts.
    groups : list, default=None
        For each symbol of X, the value of columns that are published beside the output, as they
        are. No output then mixes symbols of different groups, and the budget holds for the output
        and these columns together.
    **options
        Options of the solver; see its class in `skprivacy.solvers`: `OptimalSolver`,
        `OnePerLabelSolver`, `ColumnGenerationSolver`, `Algorithm1Solver`, `MaxLiftSolver`,
        `BestPartitionSolver`; the others take none.

    Returns
    -------
    Mechanism or SeveralSecretsMechanism
        Its leakage, computed from the floats of its channel, is at most
        ``epsilon (1 + 1e-9) + 1e-12``; with a confidence, its `population_limit` too. For a dict
        of tables, so is that of every secret.

    Raises
    ------
    SolverError
        If the solver fails; there is then no mechanism.

    Examples
    --------
    >>> import pandas as pd
    >>> from skprivacy import design_mechanism
    >>> counts = pd.DataFrame([[40, 30, 10], [20, 30, 30]], columns=["low", "middle", "high"])
    >>> mechanism = design_mechanism(counts, epsilon=0.02)
    >>> mechanism.x_labels
    ('low', 'middle', 'high')
    >>> bool(mechanism.max_leakage <= 0.02 * (1 + 1e-9))
    True

    From 160 rows, less can be released without the risk that it says more in the population:

    >>> careful = design_mechanism(counts, epsilon=0.02, confidence=0.95)
    >>> careful.utility < mechanism.utility
    True
    >>> bool(careful.population_limit.max_leakage <= 0.02)
    True

    Beside a column that is published, the same X may say less:

    >>> beside = design_mechanism(counts, epsilon=0.2, groups=["old", "old", "young"])
    >>> bool(((beside.channel > 0).sum(axis=0) <= 2).all())  # none mixes old and young
    True
    """
    owner = "design_mechanism"
    budgets = check_budgets(owner, epsilon, list(p_sx) if isinstance(p_sx, Mapping) else None)
    asked = measure, scope, utility, max_outputs, confidence, n_samples, groups
    task = DesignTask.checked(owner, p_sx, budgets.values(), *asked)
    doing("designing a mechanism")
    if task.secrets is not None:
        return designer(task, owner, solver, options)(budgets)
    epsilon = budgets[None]
    mechanism = mechanisms(task, [epsilon], owner, solver, options)[0]
    if not task.is_plain:
        return mechanism
    if confidence is not None and epsilon > 0 and mechanism.normalized_utility < _HARDLY_ANY:
        alone = designer(replace(task, confidence=None, n_samples=None), owner, solver, options)
        if alone(epsilon).normalized_utility >= _HARDLY_ANY:  # so rows are what is missing
            design = _confident_design(task, owner, solver, options, with_margins=False)
            _warn_of_few_rows(task, epsilon, design.rows_for_a_release(budgets))
    return mechanism


@overload
def privacy_utility_path(
    p_sx: TableLike,
    epsilons: Iterable[float],
    *,
    measure: str | Measure = ...,
    scope: Scope = ...,
    utility: str | Utility = ...,
    solver: str | Solver = ...,
    max_outputs: int | None = ...,
    confidence: float | None = ...,
    n_samples: float | None = ...,
    groups: Groups | None = ...,
    verbose: bool = ...,
    **options: Any,
) -> list[Mechanism]: ...


@overload
def privacy_utility_path(
    p_sx: Mapping[Any, TableLike],
    epsilons: Iterable[Mapping[Any, float]],
    *,
    measure: str | Measure = ...,
    scope: Scope = ...,
    utility: str | Utility = ...,
    solver: str | Solver = ...,
    max_outputs: int | None = ...,
    confidence: float | None = ...,
    n_samples: float | None = ...,
    groups: Groups | None = ...,
    verbose: bool = ...,
    **options: Any,
) -> list[SeveralSecretsMechanism]: ...


@one_thread
def privacy_utility_path(
    p_sx: AnyTable,
    epsilons: Iterable[Any],
    *,
    measure: str | Measure = "kl",
    scope: Scope = "per_output",
    utility: str | Utility = "mutual_information",
    solver: str | Solver = "auto",
    max_outputs: int | None = None,
    confidence: float | None = None,
    n_samples: float | None = None,
    groups: Groups | None = None,
    verbose: bool = False,
    **options: Any,
) -> Any:
    """Design mechanisms for several budgets, sharing the work between them.

    Parameters
    ----------
    p_sx : array-like or DataFrame of shape (n_s, n_x), or dict of them
        As in `design_mechanism`.
    epsilons : sequence of float, or of dict
        The budgets, in any order. For several secrets, each is a dict.
    measure, scope, utility, solver, max_outputs, confidence, n_samples, groups, **options
        As in `design_mechanism`.
    verbose : bool, default=False
        Whether to show a progress bar.

    Returns
    -------
    list of Mechanism or SeveralSecretsMechanism
        One per epsilon, in the order given. A larger budget never has less utility; of several
        budgets, all must be larger.

    Examples
    --------
    >>> from skprivacy import privacy_utility_path
    >>> path = privacy_utility_path([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], [0.1, 0.01])
    >>> path[0].utility > path[1].utility
    True
    """
    owner = "privacy_utility_path"
    asked = measure, scope, utility, max_outputs, confidence, n_samples, groups
    if not isinstance(p_sx, Mapping):
        epsilons = check_epsilons(owner, epsilons)
        task = DesignTask.checked(owner, p_sx, epsilons, *asked)
        return mechanisms(task, epsilons, owner, solver, options, verbose)
    if isinstance(epsilons, (str, Mapping)) or not np.iterable(epsilons):
        raise TypeError(message(owner, "epsilons", "a sequence of dicts", epsilons))
    budgets = [check_budgets(owner, each, list(p_sx), "epsilons") for each in epsilons]
    if not budgets:
        raise ValueError(message(owner, "epsilons", "at least one dict", epsilons))
    every = [epsilon for each in budgets for epsilon in each.values()]
    task = DesignTask.checked(owner, p_sx, every, *asked)
    return _path_of_several(budgets, designer(task, owner, solver, options), verbose)


def _path_of_several(
    budgets: Sequence[Mapping[Any, float]],
    design: Callable[[Any], SeveralSecretsMechanism],
    verbose: bool,
) -> list[SeveralSecretsMechanism]:
    """Return a mechanism for each dict of budgets, in the order given."""
    designs: dict[int, SeveralSecretsMechanism] = {}
    increasing = sorted(range(len(budgets)), key=lambda i: sum(budgets[i].values()))
    in_order = each_done(iter(increasing), _DESIGNING, len(budgets))
    for i in tqdm(in_order, total=len(budgets), unit="epsilon", disable=not verbose):
        designs[i] = design(budgets[i])
        for before in designs.values():
            # What smaller budgets allow, larger ones do too; heuristics may miss it.
            is_allowed = all(before.epsilon[n] <= e for n, e in budgets[i].items())
            if is_allowed and before.utility > designs[i].utility:
                designs[i] = before.with_budgets(budgets[i], designs[i].upper_bound)
        made(designs[i])
    return [designs[i] for i in range(len(budgets))]


def check_epsilons(owner: str, epsilons: Iterable[float]) -> list[float]:
    """Return a list of floats if `epsilons` is a sequence of budgets."""
    if isinstance(epsilons, str) or not np.iterable(epsilons):
        raise TypeError(message(owner, "epsilons", "a sequence of floats", epsilons))
    epsilons = [check_real(owner, "epsilons", epsilon, low=0) for epsilon in epsilons]
    if not epsilons:
        raise ValueError(message(owner, "epsilons", "at least one float", epsilons))
    return epsilons


def mechanisms(
    task: DesignTask,
    epsilons: Sequence[float],
    owner: str,
    solver: str | Solver,
    options: dict[str, Any],
    verbose: bool = False,
) -> list[Mechanism]:
    """Return one mechanism per epsilon, in the order given."""
    increasing = sorted(set(epsilons))
    path = mechanism_path(task, increasing, owner, solver, options)
    path = each_done(path, _DESIGNING, len(increasing))
    bar = tqdm(path, total=len(increasing), unit="epsilon", disable=not verbose)
    designs = dict(zip(increasing, map(made, bar), strict=True))
    return [designs[epsilon] for epsilon in epsilons]


def mechanism_path(
    task: DesignTask,
    increasing: Sequence[float],
    owner: str,
    solver: str | Solver,
    options: dict[str, Any],
) -> Iterator[Mechanism]:
    """Yield one mechanism per epsilon; a larger budget never has less utility."""
    before = None
    for mechanism in _in_order(task, increasing, owner, solver, options):
        if before is not None and before.utility > mechanism.utility:
            # What a smaller budget allows, a larger one does too. Solvers fall short of that by
            # rounding, heuristics such as subset merging by more.
            bound = max(before.utility, mechanism.upper_bound)
            mechanism = replace(before, epsilon=mechanism.epsilon, upper_bound=bound)
        before = mechanism
        yield mechanism


def _in_order(
    task: DesignTask,
    increasing: Sequence[float],
    owner: str,
    solver: str | Solver,
    options: dict[str, Any],
) -> Iterator[Mechanism]:
    """Yield one mechanism per epsilon, with what the solver shares between them."""
    if task.confidence is not None or not task.is_plain:
        yield from map(designer(task, owner, solver, options), increasing)
        return
    symbols = OccurringSymbols(task)
    chosen = get_solver(solver, options, owner, symbols.task)
    solutions = chosen.solve_path(symbols.task, increasing)
    for epsilon, solution in zip(increasing, solutions, strict=True):
        yield finished(task, _whole(symbols, solution, epsilon), epsilon, chosen.name)


def designer(
    task: DesignTask, owner: str, solver: str | Solver, options: dict[str, Any]
) -> Callable[[Any], Any]:
    """Return a function that designs for one budget after another, in any order."""
    find = _for_sample if task.confidence is None else _confident
    name, solve = find(task, owner, solver, options)

    def design(budget: Budget) -> AnyMechanism:
        if not isinstance(budget, Mapping):
            return finished(task, solve(float(budget)), float(budget), name)
        parts = finish(task, solve(budget), budget, name)
        return SeveralSecretsMechanism(parts, confidence=task.confidence)

    return design


def _confident(
    task: DesignTask, owner: str, solver: str | Solver, options: dict[str, Any]
) -> tuple[str, Callable[[Any], Solution]]:
    """Return the name of the solver, and what designs with a confidence."""
    # A solver that was asked for by name is asked for smaller budgets.
    is_free = isinstance(solver, str) and solver == "auto"

    def solve(budget: Budget) -> Solution:
        # Nothing is shared between budgets: the search goes on from what solvers find, and the
        # same budget must lead to the same design whichever ones came before it.
        return _confident_design(task, owner, solver, options, is_free).solve(_by_secret(budget))

    name = _CONFIDENT if is_free else _for_sample(task, owner, solver, options)[0]
    return name, solve


def _confident_design(
    task: DesignTask,
    owner: str,
    solver: str | Solver,
    options: dict[str, Any],
    with_margins: bool,
) -> ConfidentDesign:
    for_sample = _for_sample(task, owner, solver, options)[1]

    def plug_in(budgets: Mapping[Any, float]) -> Solution:
        return for_sample(budgets if task.secrets else budgets[None])

    return ConfidentDesign(task, plug_in, with_margins)


def _by_secret(budget: Budget) -> Mapping[Any, float]:
    return budget if isinstance(budget, Mapping) else {None: budget}


def _for_sample(
    task: DesignTask, owner: str, solver: str | Solver, options: dict[str, Any]
) -> tuple[str, Callable[[Any], Solution]]:
    """Return the name of the solver, and what solves the task for the joint as it is."""
    if not task.is_plain:
        broad = BroadDesign(task, lambda plain: get_solver(solver, options, owner, plain))
        return str(solver), broad.solve
    symbols = OccurringSymbols(task)
    chosen = get_solver(solver, options, owner, symbols.task)
    solve = chosen.prepared(symbols.task)
    return chosen.name, lambda epsilon: _whole(symbols, solve(epsilon), epsilon)


def _warn_of_few_rows(task: DesignTask, epsilon: float, enough: float | None) -> None:
    """Warn that nothing can be released from so few rows; enough : how many would do, if any."""
    way_out = "Not even a million times as many would do."
    if not task.joint.p_s.all():
        way_out = "No number of rows would help where some group of S has none: leave it out."
    if enough is not None:
        way_out = f"About {float(f'{enough:.2g}'):,.0f} rows would allow a first release."
    warn(
        Message(
            "The output hardly tells anything of ",
            RELEASED,
            f": {task.n_samples:,.0f} rows are too few for ",
            Setting("epsilon", epsilon),
            " with ",
            Setting("confidence", task.confidence),
            f". {way_out} Fewer values of ",
            RELEASED,
            " or groups of ",
            SENSITIVE,
            ", or a larger ",
            Named("epsilon"),
            ", help too.",
        ),
        FiniteSampleWarning,
    )


def _whole(symbols: OccurringSymbols, solution: Solution, epsilon: float) -> Solution:
    """Return a solution for the symbols that occur as one for all of X."""
    task = symbols.task
    # A budget on average may allow Y = X where solvers that bound every output would miss it.
    if task.scope == "average" and symbols.leakage_unchanged <= epsilon:
        solution = Solution(np.eye(len(task.joint.p_x)))
    return replace(solution, channel=symbols.expanded(solution.channel))
