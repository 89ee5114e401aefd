"""Joint distributions in, mechanisms out: solve, judge against the budgets, repair rounding."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ._messages import InPython, Message, doing, each_done, emit, progress_bar, warn
from ._numerics import one_thread
from ._typing import FloatArray, IntArray, Scope, TableLike
from ._validation import message
from .channels import constant_output, independent, merged_to, repaired
from .exceptions import FiniteSampleWarning
from .joint import check_budgets
from .measures import Measure
from .mechanism import Channel, Guarantee, Leakage, Mechanism
from .population.confident_design import ConfidentDesign
from .population.search import Attempt
from .solvers import DesignTask, Solution, Solver, get_solver
from .solvers.sample_design import SampleDesign
from .utilities import BOUND_TOLERANCE, Utility

# Merges and orders the outputs of a channel; also returns the symbols of X they are released as.
Arrange: TypeAlias = Callable[[FloatArray], tuple[FloatArray, IntArray | None]]

# A single table or budget, or several by name of the secret.
AnyTable: TypeAlias = TableLike | Mapping[Any, TableLike]
Budgets: TypeAlias = Mapping[Any, float]
Beside: TypeAlias = Sequence[Hashable] | npt.ArrayLike

# If the limit of a channel exceeds a budget for the draws that judge it, a channel is taken whose
# limit for the draws of the search is within such a share of the budget. The shares are fixed in
# advance: the draws that judge decide yes or no, and calibrate nothing.
_CAUTION = (0.995, 0.985, 0.97, 0.94, 0.88, 0.76, 0.5, 0.0)


def judge_and_repair(
    task: DesignTask,
    solution: Solution,
    budgets: Budgets,
    arrange: Arrange | None = None,
    as_sampled: Callable[[FloatArray], FloatArray] | None = None,
    cautious: Callable[[float], FloatArray] | None = None,
) -> Mechanism:
    """Return the mechanism of a solution, with outputs in order, repaired if needed, and judged.

    arrange : None for outputs without names; as_sampled : rounds a channel to the probabilities
    that are sampled, which are then judged; cautious : with a confidence, returns a channel whose
    limits, for the draws of the search, are within a share of the budgets.
    """
    judge = Judge(task, budgets, as_sampled)
    channel, names = _in_order(solution.channel, task, arrange)
    judged = judge.of(channel, names)
    for share in _CAUTION:
        if cautious is None or judged.excess() <= 0:
            break
        channel, names = _in_order(cautious(share), task, arrange)
        judged = judge.of(channel, names)
    if judged.excess() > 0:
        nothing = independent(channel, task.p_x, task.strata)
        judged = repaired(channel, nothing, partial(judge.of, names=names), Judged.excess)
    bound, utility_of = solution.upper_bound, task.utility.of_channel
    if bound is None or utility_of(task.p_x, solution.channel) > bound + BOUND_TOLERANCE:
        bound = np.inf  # unknown, or wrong because it is exceeded
    return judged.mechanism(solution.solver or "", bound)


def _in_order(
    channel: FloatArray, task: DesignTask, arrange: Arrange | None
) -> tuple[FloatArray, IntArray | None]:
    """Return a channel with its outputs merged and in order, and the symbols they stand for."""
    if task.max_outputs is not None:
        channel = merged_to(channel, task.p_x, task.utility, task.max_outputs, task.strata)
    # Order outputs by their likeliest symbol, then by their probability.
    likeliest = (task.p_x[:, None] * channel).argmax(axis=0)
    channel = channel[:, np.lexsort((-(task.p_x @ channel), likeliest))]
    return (channel, None) if arrange is None else arrange(channel)


class Judge:
    """Judges channels for a task and its budgets; as_sampled : as in `judge_and_repair`."""

    def __init__(
        self,
        task: DesignTask,
        budgets: Budgets,
        as_sampled: Callable[[FloatArray], FloatArray] | None,
    ) -> None:
        self._task, self._budgets, self._as_sampled = task, budgets, as_sampled
        asked = task.measure, task.confidence_of_each, task.n_samples
        constant = self._channel(constant_output(task.p_x, task.strata), None)
        self._leakages = {
            name: Leakage(constant, joint.p_sx, joint.s_labels, *asked).with_kept_draws()
            for name, joint in task.secrets.items()
        }

    def _channel(self, matrix: FloatArray, names: IntArray | None) -> Channel:
        task, y_labels = self._task, tuple(range(matrix.shape[1]))
        x_labels = next(iter(task.secrets.values())).x_labels
        if names is not None:
            y_labels = tuple(x_labels[symbol] for symbol in names)
        return Channel(matrix, task.p_x, x_labels, y_labels, task.utility, task.strata, names)

    def of(self, matrix: FloatArray, names: IntArray | None = None) -> Judged:
        """Return the leakage of a channel; names : the symbols of X that outputs stand for."""
        matrix = matrix if self._as_sampled is None else self._as_sampled(matrix)
        channel = self._channel(matrix, names)
        leakages = {name: each.with_channel(channel) for name, each in self._leakages.items()}
        return Judged(self._task, self._budgets, channel, leakages)


@dataclass(frozen=True, eq=False)
class Judged:
    """The leakage of a channel about each secret, and the budgets."""

    task: DesignTask
    budgets: Budgets
    channel: Channel
    leakages: Mapping[Any, Leakage]

    def excess(self) -> float:
        """Return by how much the channel exceeds a budget, at most 0 if it exceeds none."""
        allowed = {name: self.task.measure.budget(e) for name, e in self.budgets.items()}
        each = [
            leakage.limit_in(self.task.scope) - allowed[name]
            for name, leakage in self.leakages.items()
            if allowed[name] < np.inf
        ]
        return max(each, default=-np.inf)

    def mechanism(self, solver: str, upper_bound: float) -> Mechanism:
        """Return the mechanism; a `Guarantee` raises ValueError if its budget is exceeded."""
        secrets = {
            name: Guarantee.of(leakage, self.budgets[name], self.task.scope)
            for name, leakage in self.leakages.items()
        }
        return Mechanism(self.channel, secrets, solver, upper_bound, self.task.confidence)


# A joint distribution in, mechanisms out: the functions around the solvers.


# Below this share of the utility, a warning says that there are too few rows.
_HARDLY_ANY = 0.01

_TOO_FEW_ROWS = Message.of(
    "Almost nothing about {X} can be released: there are too few rows for {epsilon} with this "
    "{confidence}{more}; fewer values of {X} or groups of {S}, or a larger {epsilon}, help too.",
    more=InPython(". See rows_needed for how many would do"),
)


def design_mechanism(
    p_sx: AnyTable,
    epsilon: float | Budgets,
    *,
    measure: str | Measure = "kl",
    scope: Scope = "per_output",
    utility: str | Utility = "mutual_information",
    solver: str | Solver = "auto",
    max_outputs: int | None = None,
    confidence: float | None = None,
    n_samples: float | None = None,
    beside: Beside | None = None,
    solver_options: dict[str, Any] | None = None,
) -> Mechanism:
    """Design the channel P(Y|X) that keeps the most about X within a privacy budget on S.

    Parameters
    ----------
    p_sx : array-like or DataFrame of shape (n_s, n_x)
        Joint distribution of S (rows) and X (columns), as probabilities or counts. A DataFrame,
        such as the one `pandas.crosstab` returns, has the labels. For several secrets, a dict of
        such tables, all with the same X.
    epsilon : float or dict
        The budget, from 0 (the output reveals nothing about S) to infinity (Y = X), in nats for
        the logarithmic measures. For several secrets, a dict with the budget of each. Separate
        budgets bound no combination of secrets; a table of combined groups does.
    measure : str or Measure, default="kl"
        Measure of leakage: "kl", "l1", "chi2", "max_lift", "alpha_lift", "lip", "parity", or an
        object such as ``AlphaLift(alpha=5)`` or one of your own.
    scope : {"per_output", "average"}, default="per_output"
        Whether the budget bounds every output, or their average.
    utility : str or Utility, default="mutual_information"
        What is maximised: "mutual_information" is I(X;Y), "guess" is the chance of guessing X
        from Y, ``Target(p_vx)`` is I(V;Y) for a target V, and "distortion" or
        ``Distortion(loss)`` is minus the expected loss of taking Y at face value.
    solver : str or Solver, default="auto"
        "optimal" (certified), "one_per_label" (certified, for a loss of labels),
        "column_generation" (large alphabets), "lift_polytope" (bounded lifts, optimal for
        `max_lift` and `lip` per output), or "auto" for one of these, named in `Mechanism.solver`.
        For comparison: "algorithm1" (the paper's), "best_partition", "subset_merging",
        "watchdog", "greedy_funnel" (merged, no noise), "randomized_response", "chi2_design".
    max_outputs : int, default=None
        Merge outputs, at the least cost in utility, until at most this many are left. That never
        adds leakage. `upper_bound` is still about any number of outputs.
    confidence : float, default=None
        How often the budget holds for the population the rows of `p_sx` were drawn from, such as
        0.95. None: it holds for `p_sx` itself, and the true leakage mostly exceeds it.
    n_samples : float, default=None
        With a confidence, the number of independent rows behind `p_sx`. None: `p_sx` has counts.
    beside : list, default=None
        For each symbol of X, the value of columns published unchanged beside the output. No output
        then mixes these values, and the budget holds for output and columns together.
    solver_options : dict, default=None
        Options of the solver, such as ``{"tol": 1e-4}``; see its class in `skprivacy.solvers`.

    Returns
    -------
    Mechanism
        Its leakage about every secret, computed from the floats of its channel, is at most
        ``epsilon (1 + 1e-9) + 1e-12``, and with a confidence so is its `population_limit`.

    Raises
    ------
    SolverError
        If the solver fails.

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

    With a confidence, 160 rows allow less:

    >>> careful = design_mechanism(counts, epsilon=0.02, confidence=0.95)
    >>> careful.utility < mechanism.utility
    True
    >>> bool(careful.population_limit.max_leakage <= 0.02)
    True
    >>> beside = design_mechanism(counts, epsilon=0.2, beside=["old", "old", "young"])
    >>> bool(((beside.channel > 0).sum(axis=0) <= 2).all())  # none mixes old and young
    True
    """
    owner = "design_mechanism"
    budgets = check_budgets(owner, epsilon, p_sx)
    asked = measure, scope, utility, max_outputs, confidence, n_samples, beside
    task = DesignTask.checked(owner, p_sx, budgets.values(), *asked)
    return design_task(task, budgets, owner, solver, solver_options)


@one_thread
def design_task(
    task: DesignTask,
    budgets: Budgets,
    owner: str,
    solver: str | Solver,
    solver_options: dict[str, Any] | None,
    tol: float | None = None,
    **finishing: Any,
) -> Mechanism:
    """Return the mechanism of a task, with a warning if there are too few rows to keep anything.

    tol : as in `get_solver`; finishing : as in `judge_and_repair`.
    """
    doing("designing a mechanism")
    mechanism = Designer(task, owner, solver, solver_options, tol, **finishing)(budgets)
    is_empty = mechanism.normalized_utility < _HARDLY_ANY and min(budgets.values()) > 0
    if task.confidence is not None and is_empty:
        for_rows = replace(task, confidence=None, n_samples=None)
        without = Designer(for_rows, owner, solver, solver_options)(budgets)
        if without.normalized_utility >= _HARDLY_ANY:  # so it is the rows that are missing
            warn(_TOO_FEW_ROWS, FiniteSampleWarning)
    return mechanism


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
    beside: Beside | None = None,
    solver_options: dict[str, Any] | None = None,
    verbose: bool = False,
) -> list[Mechanism]:
    """Design mechanisms for several budgets, sharing the work between them.

    Parameters
    ----------
    p_sx : array-like or DataFrame of shape (n_s, n_x), or dict of them
        As in `design_mechanism`.
    epsilons : sequence of float, or of dict
        The budgets, in any order. For several secrets, each is a dict.
    measure, scope, utility, solver, max_outputs, confidence, n_samples, beside, solver_options
        As in `design_mechanism`.
    verbose : bool, default=False
        Whether to show a progress bar.

    Returns
    -------
    list of Mechanism
        One per epsilon, in the order given. A larger budget never has less utility; for several
        secrets, if all their budgets are larger.

    Notes
    -----
    With a confidence, the search for each budget also starts from what it found for the next
    smaller one. Every mechanism keeps its own budget, whatever the others are, but may differ from
    that of `design_mechanism`, which a transformer has: this one depends on nothing else.

    Examples
    --------
    >>> from skprivacy import privacy_utility_path
    >>> path = privacy_utility_path([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], [0.1, 0.01])
    >>> path[0].utility > path[1].utility
    True
    """
    owner = "privacy_utility_path"
    asked = measure, scope, utility, max_outputs, confidence, n_samples, beside
    budgets = check_epsilons(owner, epsilons, p_sx)
    every = [epsilon for each in budgets for epsilon in each.values()]
    task = DesignTask.checked(owner, p_sx, every, *asked)
    distinct = in_order(budgets)
    path = mechanism_path(task, distinct, owner, solver, solver_options)
    path = each_done(path, "designing {} budgets", len(distinct))
    bar = progress_bar(path, is_shown=verbose, total=len(distinct), unit="epsilon")
    designs = dict(zip(map(_key, distinct), map(emit, bar), strict=True))
    return [designs[_key(each)] for each in budgets]


def check_epsilons(owner: str, epsilons: Any, tables: Any) -> list[dict[Any, float]]:
    """Return the budgets by name of the secret, for each of a sequence of budgets."""
    what = "dict" if isinstance(tables, Mapping) else "float"
    if isinstance(epsilons, str | Mapping) or not np.iterable(epsilons):
        raise TypeError(message(owner, "epsilons", f"a sequence of {what}s", epsilons))
    budgets = [check_budgets(owner, each, tables, "epsilons") for each in epsilons]
    if not budgets:
        raise ValueError(message(owner, "epsilons", f"at least one {what}", epsilons))
    return budgets


def in_order(budgets: Iterable[Budgets]) -> list[Budgets]:
    """Return the distinct budgets, smaller ones first."""
    return sorted({_key(each): each for each in budgets}.values(), key=lambda b: sum(b.values()))


def _key(budgets: Budgets) -> tuple[float, ...]:
    return tuple(budgets.values())


def mechanism_path(
    task: DesignTask,
    increasing: Sequence[Budgets],
    owner: str,
    solver: str | Solver,
    solver_options: dict[str, Any] | None = None,
) -> Iterator[Mechanism]:
    """Yield one mechanism per budget; a larger budget never has less utility."""
    found: list[Mechanism] = []
    design = Designer(task, owner, solver, solver_options)
    for mechanism, budgets in zip(design.path(increasing), increasing, strict=True):
        for before in found:
            # A mechanism within smaller budgets is within larger ones. Solvers fall short of it by
            # rounding, heuristics such as subset merging by more.
            is_allowed = all(before.secrets[n].epsilon <= e for n, e in budgets.items())
            if is_allowed and before.utility > mechanism.utility:
                mechanism = before.with_budgets(budgets, mechanism.upper_bound)
        found.append(mechanism)
        yield mechanism


class Designer:
    """Designs mechanisms for a task, for one budget after another.

    tol : as in `get_solver`; finishing : as in `judge_and_repair`.
    """

    def __init__(
        self,
        task: DesignTask,
        owner: str,
        solver: str | Solver,
        solver_options: dict[str, Any] | None,
        tol: float | None = None,
        **finishing: Any,
    ) -> None:
        self._task, self._finishing = task, finishing
        # A solver chosen by the user is kept with a confidence too, with smaller budgets.
        self._is_automatic = isinstance(solver, str) and solver == "auto"
        self._for_sample = lambda: SampleDesign(
            task, lambda plain: get_solver(solver, solver_options, owner, plain, tol)
        )
        self._shared = self._for_sample()

    def __call__(self, budgets: Budgets) -> Mechanism:
        if self._task.confidence is None:
            return self._judged(self._shared.solve(budgets), budgets)
        return self._confident(self._search(budgets), budgets)

    def _search(self, budgets: Budgets, **near: Any) -> ConfidentDesign:
        # Solvers share nothing between budgets: a design must not depend on those before it.
        for_sample = self._for_sample().solve
        return ConfidentDesign(self._task, budgets, for_sample, self._is_automatic, **near)

    def _confident(self, search: ConfidentDesign, budgets: Budgets) -> Mechanism:
        solution = search.solve()
        if self._is_automatic:
            solution = replace(solution, solver="confident")
        return self._judged(solution, budgets, cautious=search.cautious)

    def path(self, increasing: Sequence[Budgets]) -> Iterator[Mechanism]:
        """Yield a mechanism for each of several budgets, in increasing order.

        With a confidence, each search starts from what it found for the budget before.
        """
        if self._task.confidence is None:
            yield from map(self._judged, self._shared.path(increasing), increasing)
            return
        near: Mapping[bool, Attempt] = {}
        for budgets in increasing:
            search = self._search(budgets, near=near)
            yield self._confident(search, budgets)
            near = search.attempts

    def _judged(self, solution: Solution, budgets: Budgets, **options: Any) -> Mechanism:
        return judge_and_repair(self._task, solution, budgets, **self._finishing, **options)
