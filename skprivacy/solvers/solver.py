"""The protocol of solvers, tasks, and the solver that "auto" stands for."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from .._messages import InPython, Message, Named, warn
from .._typing import FloatArray, IntArray, Labels, Scope, TableLike
from .._validation import about, check_confidence, check_integer, check_real, message
from ..fidelity import label_distances
from ..geometry import normalised
from ..geometry.lift_polytopes import count_bases
from ..joint import Joint, check_beside, confidence_of_each, joints_of, stacked_joint
from ..measures import Measure, check_scope, get_measure
from ..utilities import DEFAULT_TOL, Distortion, Utility, get_utility

# The two scales of a measure may differ by this much: more is an error in one, not rounding.
_SCALES_RTOL, _SCALES_ATOL = 1e-6, 1e-9


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
        """Return the requirement of the solver that this task does not meet, or None."""
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


@dataclass(frozen=True, eq=False)
class DesignTask:
    """Everything about a design except its budgets: the one argument that every solver takes.

    Attributes
    ----------
    secrets : dict of Joint
        P_SX of each secret; an only one without a name is called None.
    joint : Joint
        P_SX of the only secret, or several secrets as one. Its `p_sx`, `p_s` and `p_x` are arrays;
        solvers always get one secret, with positive `p_s` and `p_x`.
    measure : Measure
        The measure of leakage.
    scope : {"per_output", "average"}
        Which leakage is bounded.
    utility : Utility
        The measure of what is kept of X.
    max_outputs : int or None
        The largest number of outputs. Solvers may ignore it: outputs are merged afterwards.
    confidence, n_samples : float or None
        How often the budgets are to hold for the population, and how many rows the joint was
        counted from. Solvers may ignore them: they design for the joint, and are asked for smaller
        budgets.
    stratum_of_symbol : ndarray of int
        The number of each symbol's value in the columns published beside the release. Symbols
        with the same value are a stratum. Everybody sees the stratum, so every output belongs to
        one: P(X|y) lies on a face of the simplex. Solvers get a single stratum.
    stratum_labels : tuple
        The values that the strata stand for; empty where nothing is published beside the release.

    Examples
    --------
    >>> from skprivacy.solvers import DesignTask, OptimalSolver
    >>> joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
    >>> task = DesignTask.checked("me", joint, [0.02], "kl", "average", "mutual_information")
    >>> (solution,) = OptimalSolver().solve_path(task, [0.02])
    >>> round(task.utility.of_channel(task.joint.p_x, solution.channel), 3)
    0.735
    """

    secrets: Mapping[Any, Joint]
    measure: Measure
    scope: Scope
    utility: Utility
    max_outputs: int | None = None
    confidence: float | None = None
    n_samples: float | None = None
    stratum_of_symbol: IntArray = None  # type: ignore[assignment]  # all the same, once made
    stratum_labels: Labels = ()

    def __post_init__(self) -> None:
        if self.stratum_of_symbol is None:
            object.__setattr__(self, "stratum_of_symbol", np.zeros(len(self.p_x), dtype=int))

    @cached_property
    def joint(self) -> Joint:
        """P_SX of the only secret, or several secrets as one."""
        if len(self.secrets) == 1:
            return next(iter(self.secrets.values()))
        return stacked_joint(self.secrets)

    @property
    def p_x(self) -> FloatArray:
        """P(X)."""
        return next(iter(self.secrets.values())).p_x

    @property
    def strata(self) -> IntArray | None:
        """The strata, None where nothing is published beside the release."""
        return self.stratum_of_symbol if self.stratum_labels else None

    @property
    def confidence_of_each(self) -> float | None:
        """With how much confidence the budget of each secret holds, so that all of them do."""
        if self.confidence is None:
            return None
        return confidence_of_each(self.confidence, len(self.secrets))

    def reached(self, channel: FloatArray) -> float:
        """Return the utility of a channel whose rows need not sum to 1 exactly."""
        return self.utility.of_channel(self.joint.p_x, normalised(channel))

    def about(self, joint: Joint, **changed: Any) -> DesignTask:
        """Return the same task about another joint distribution of a single secret."""
        plain: dict[str, Any] = {"stratum_of_symbol": None, "stratum_labels": ()}
        return replace(self, secrets={None: joint}, **plain, **changed)

    @classmethod
    def checked(
        cls,
        owner: str,
        p_sx: TableLike | Mapping[Any, TableLike],
        epsilons: Iterable[float],
        measure: str | Measure,
        scope: Scope,
        utility: str | Utility,
        max_outputs: int | None = None,
        confidence: float | None = None,
        n_samples: float | None = None,
        beside: Sequence[Hashable] | npt.ArrayLike | None = None,
    ) -> DesignTask:
        """Return the task that these arguments of `owner` describe, as in `design_mechanism`."""
        secrets = joints_of(p_sx, owner)
        table = next(iter(p_sx.values())) if isinstance(p_sx, Mapping) else p_sx
        joint = next(iter(secrets.values()))
        measure = get_measure(measure, owner)
        check_scope(owner, scope, measure)
        utility = _with_distances(get_utility(utility, owner), table, joint, owner)
        utility.largest(joint.p_x)  # checks that it is about this X
        for each in secrets.values():
            _check_smallest_at_prior(measure, each.without_empty(), owner)
        check_inverse(measure, epsilons, owner)
        if max_outputs is not None:
            check_integer(owner, "max_outputs", max_outputs, low=1)
        rows = _check_rows(table, confidence, n_samples, owner)
        strata, labels = check_beside(beside, joint.p_x, max_outputs, owner)
        if measure.jumps and (len(secrets) > 1 or strata is not None):
            requirement = "one without a jump to infinity for several secrets or columns beside"
            raise ValueError(message(owner, "measure", requirement, measure))
        if strata is not None and isinstance(utility, Distortion):
            utility = utility.within(strata)
        of_symbols: tuple[Any, Labels] = strata, labels
        return cls(secrets, measure, scope, utility, max_outputs, *rows, *of_symbols)


# Searches that stop at a tolerance, or at a time. -----------------------------------------------


def check_search(owner: str, tol: float, max_time: float | None) -> None:
    """Check the two options that all searches have."""
    check_real(owner, "tol", tol, low=0, low_open=True)
    if max_time is not None:
        check_real(owner, "max_time", max_time, low=0)


def deadline_after(max_time: float | None) -> float:
    """Return when a search must stop, as `is_late` takes it."""
    return np.inf if max_time is None else time.perf_counter() + max_time


def is_late(deadline: float) -> bool:
    """Whether the time of a search is up."""
    return time.perf_counter() >= deadline


def warn_of_gap(search: str, why: str) -> None:
    """Warn that a search has stopped before its tolerance; why : a clause, or empty.

    The text has no figures: Python shows it once for a line, whatever the budgets.
    """
    told = f"{search} has stopped{why}: the mechanism keeps its budget, but may not be the best."
    where = InPython(" Mechanism.gap says how much more utility another one can have at most.")
    warn(Message(told, where), ConvergenceWarning)


# Checks of a task. -------------------------------------------------------------------------------


def _check_rows(
    p_sx: TableLike, confidence: float | None, n_samples: float | None, owner: str
) -> tuple[float | None, float | None]:
    """Return a confidence, and how many rows the joint was counted from, as floats."""
    if confidence is None:
        if n_samples is not None:
            requirement = "None where there is no confidence"
            raise ValueError(message(owner, "n_samples", requirement, n_samples))
        return None, None
    confidence = check_confidence(owner, confidence)
    if n_samples is not None:
        return confidence, check_real(owner, "n_samples", n_samples, low=1, high_open=True)
    counts = np.asarray(p_sx, dtype=float)
    if (counts != np.round(counts)).any():
        told = (
            f" is {confidence} and the table holds no counts but probabilities or weights. "
            f"How many rows is it from? (Weighted rows are worth fewer than there are.)"
        )
        needed = about(owner, "n_samples", " is needed, because ", Named("confidence"), told)
        raise ValueError(needed)
    return confidence, float(counts.sum())


def _with_distances(utility: Utility, p_sx: TableLike, joint: Joint, owner: str) -> Utility:
    """Return the utility; a distortion that has no table yet gets the table of this X."""
    if not isinstance(utility, Distortion) or not utility.is_open:
        return utility
    if utility.is_by_position:
        return Distortion.of_positions(len(joint.p_x))
    if not isinstance(p_sx, pd.DataFrame) or isinstance(p_sx.columns, pd.RangeIndex):
        told = (
            " is 'distortion', which needs labels to be close to: pass a DataFrame whose "
            "columns are the values of X, Distortion(loss) with a table of what a wrong label "
            "costs, or Distortion('positions') if the columns are in order."
        )
        raise ValueError(about(owner, "utility", told))
    weights = utility.weights_of(list(p_sx.columns.names), owner)
    return Distortion.of_symbols(label_distances(p_sx.columns, joint.p_x, weights))


def _check_smallest_at_prior(measure: Measure, joint: Joint, owner: str) -> None:
    """Check the assumption of the whole theory: releasing nothing is always allowed."""
    at_prior = measure.value(joint.p_s, joint.p_s)
    at_symbols = measure.value(joint.p_s * (1 + joint.deviations.T), joint.p_s)
    if np.shape(at_symbols) != joint.p_x.shape:
        raise ValueError(
            f"The 'value' of measure {measure!r} given to {owner} must have one number per row of "
            f"posteriors. Got shape {np.shape(at_symbols)} for {len(joint.p_x)} rows."
        )
    if np.isnan(at_prior) or np.isnan(at_symbols).any():
        raise ValueError(f"The 'value' of measure {measure!r} given to {owner} is NaN somewhere.")
    allowed = measure.budget(0.0)
    if not (measure.inverse(at_prior) <= allowed and (at_symbols >= at_prior - allowed).all()):
        raise ValueError(
            f"The measure {measure!r} given to {owner} must be smallest at the prior, with "
            f"leakage 0 there: an output that reveals nothing must be allowed at any epsilon."
        )


def check_inverse(measure: Measure, epsilons: Iterable[float], owner: str) -> None:
    """Check that the two scales of a measure agree: budgets are compared on the eps scale."""
    for epsilon in epsilons:
        again = float(measure.inverse(measure.threshold(epsilon)))
        if np.isfinite(again) and abs(again - epsilon) > _SCALES_RTOL * epsilon + _SCALES_ATOL:
            raise ValueError(
                f"The measure {measure!r} given to {owner} must have an 'inverse' that undoes its "
                f"'threshold'. Got inverse(threshold({epsilon})) = {again}."
            )


# The solver that "auto" stands for, by utility and number of vertices.


# Above this many vertices of (22), a certificate takes longer than it is worth to most users.
_MOST_BASES = 60_000

# With one degree of freedom of S there are only pairs: on average, at some twenty places each.
_MOST_SYMBOLS_IN_PAIRS = 400

# Where X has no more symbols than this, a loss is certified as exactly as anything else.
_FEW_SYMBOLS = 12

# Alphabets of X for which a design takes seconds, not minutes, by the number of values of S: with
# one there is nothing to do, with two there are pairs, with more, columns are generated.
_MOST_SYMBOLS = {1: 1000, 2: 500}
_MOST_SYMBOLS_ELSE = 64


def automatic(task: DesignTask) -> tuple[str, dict[str, Any]]:
    """Return the name of the solver, and the options that differ from its defaults."""
    measure, scope = task.measure, task.scope
    n_s, n_x = task.joint.p_sx.shape
    if task.utility.as_loss(n_x) is not None and not measure.jumps:
        return "one_per_label", {"tol": DEFAULT_TOL} if n_x <= _FEW_SYMBOLS else {}
    rank = min(n_s, n_x)
    if scope == "per_output" and measure.is_lift_box:
        low, _ = measure.implied_deviations(1.0) or (-1.0, 1.0)
        few = count_bases(n_s, n_x, rank, sides=1 if low == -1 else 2) <= _MOST_BASES
        return ("lift_polytope" if few else "column_generation"), {}
    if rank <= 2 and scope == "per_output":
        return "optimal", {}
    if count_bases(n_s, n_x, rank) <= _MOST_BASES:
        return "optimal", {"start": "algorithm1"}
    if rank <= 2 and n_x <= _MOST_SYMBOLS_IN_PAIRS:
        return "optimal", {}
    return "column_generation", {}


def most_symbols(n_s: int) -> int:
    """Return the number of symbols of X that "auto" handles within seconds."""
    return _MOST_SYMBOLS.get(n_s, _MOST_SYMBOLS_ELSE)
