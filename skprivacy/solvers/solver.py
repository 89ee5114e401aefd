"""The protocol of solvers; design tasks and their checks; the choice of "auto"."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from .._messages import InPython, Message, doing, warn
from .._typing import FloatArray, IntArray, Labels, Scope, TableLike
from .._validation import about, check_confidence, check_integer, check_real, message
from ..fidelity import label_distances
from ..geometry import normalised
from ..geometry.lift_polytopes import count_bases
from ..joint import Joint, check_beside, confidence_of_each, joints_of, stacked_joint
from ..measures import Measure, check_scope, get_measure
from ..utilities import DEFAULT_TOL, Distortion, Utility, get_utility


@dataclass(frozen=True, eq=False)
class Solution:
    """A channel of shape (n_x, n_y), and an upper bound on the utility within the budget.

    upper_bound : None if the solver proves none; solver : the name of the solver that was used, if
    it was chosen during the design.

    Examples
    --------
    A constant output, without a bound:

    >>> import numpy as np
    >>> from skprivacy.solvers import Solution
    >>> Solution(np.ones((3, 1))).upper_bound is None
    True
    """

    channel: FloatArray
    upper_bound: float | None = None
    solver: str | None = None


class Solver(ABC):
    """Base class of solvers, which choose P(Y|X). Options are fields of a frozen dataclass.

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
        """Return a requirement of the solver that the task does not meet, or None."""
        return None

    @abstractmethod
    def solve_path(self, task: DesignTask, epsilons: Sequence[float]) -> Iterator[Solution]:
        """Yield one `Solution` per epsilon.

        task : checked, and without symbols of probability zero; epsilons : increasing, without
        repeats.
        """

    def prepared(self, task: DesignTask) -> Callable[[float], Solution]:
        """Return a function that solves for one epsilon, to be called in any order.

        Solvers may override it to share work between calls.
        """
        return lambda epsilon: next(iter(self.solve_path(task, [epsilon])))


@dataclass(frozen=True, eq=False)
class DesignTask:
    """Everything about a design except its budgets: the argument of every solver.

    Attributes
    ----------
    secrets : dict of Joint
        P_SX of each secret; a single one without a name is called None.
    joint : Joint
        P_SX of the only secret, or of several secrets stacked into one. Its `p_sx`, `p_s` and
        `p_x` are arrays; solvers always get one secret, with positive `p_s` and `p_x`.
    measure : Measure
        The measure of leakage.
    scope : {"per_output", "average"}
        Whether every output must keep the budget, or all on average.
    utility : Utility
        What is maximised.
    max_outputs : int or None
        The largest number of outputs. Solvers may ignore it: outputs are merged afterwards.
    confidence, n_samples : float or None
        Confidence with which the budgets hold for the population, and the number of rows the
        joint was counted from. Solvers may ignore them: they design for the joint, and get
        smaller budgets.
    stratum_of_symbol : ndarray of int
        The stratum of each symbol: symbols with the same value in the columns published beside
        the release are a stratum. Everybody sees the stratum, so every output belongs to one:
        P(X|y) lies on a face of the simplex. Solvers get a single stratum.
    stratum_labels : tuple
        The published value of each stratum; empty if nothing is published beside the release.

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
    stratum_of_symbol: IntArray = None  # type: ignore[assignment]  # None: one stratum
    stratum_labels: Labels = ()

    def __post_init__(self) -> None:
        if self.stratum_of_symbol is None:
            object.__setattr__(self, "stratum_of_symbol", np.zeros(len(self.p_x), dtype=int))

    @cached_property
    def joint(self) -> Joint:
        """P_SX of the only secret, or of several secrets stacked into one."""
        if len(self.secrets) == 1:
            return next(iter(self.secrets.values()))
        return stacked_joint(self.secrets)

    @property
    def p_x(self) -> FloatArray:
        """P(X)."""
        return next(iter(self.secrets.values())).p_x

    @property
    def strata(self) -> IntArray | None:
        """The stratum of each symbol, None if nothing is published beside the release."""
        return self.stratum_of_symbol if self.stratum_labels else None

    @property
    def confidence_of_each(self) -> float | None:
        """The confidence for each secret that makes all budgets hold at once."""
        if self.confidence is None:
            return None
        return confidence_of_each(self.confidence, len(self.secrets))

    def reached(self, channel: FloatArray) -> float:
        """Return the utility of a channel whose rows need not sum to 1 exactly."""
        return self.utility.of_channel(self.joint.p_x, normalised(channel))

    def about(self, joint: Joint, **changed: Any) -> DesignTask:
        """Return the task with another joint of a single secret, without strata."""
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
        """Check the arguments of `owner`, as in `design_mechanism`, and return the task."""
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
            requirement = "finite everywhere for several secrets or columns beside X"
            raise ValueError(message(owner, "measure", requirement, measure))
        if strata is not None and isinstance(utility, Distortion):
            utility = utility.within(strata)
        beside_x: tuple[Any, Labels] = strata, labels
        return cls(secrets, measure, scope, utility, max_outputs, *rows, *beside_x)


# Returns the solver of a task.
Choose: TypeAlias = Callable[[DesignTask], Solver]


# Searches that stop at a tolerance, or at a time. -----------------------------------------------

# Searches aim at this share of the tolerance: the rest is for the rounding of the channel.
SHARE_OF_TOLERANCE = 0.9


def check_search(owner: str, tol: float, max_time: float | None) -> None:
    """Check the options that all searches have."""
    check_real(owner, "tol", tol, low=0, low_open=True)
    if max_time is not None:
        check_real(owner, "max_time", max_time, low=0)


def deadline_after(max_time: float | None) -> float:
    """Return the time at which a search must stop, for `is_late`."""
    return np.inf if max_time is None else time.perf_counter() + max_time


def is_late(deadline: float) -> bool:
    """Whether the deadline has passed."""
    return time.perf_counter() >= deadline


def tell_round(n_rounds: int) -> None:
    """Send a progress message every ten rounds of a search."""
    if n_rounds % 10 == 0:
        doing(f"designing a mechanism, round {n_rounds}")


def warn_gap(search: str, why: str) -> None:
    """Warn that a search has stopped before its tolerance; why : a clause, or empty.

    The text has no figures, so that Python shows it only once per line, whatever the budgets.
    """
    stopped = f"{search} has stopped{why}. The mechanism keeps its budget, but may not be optimal."
    hint = InPython(" Mechanism.gap bounds how much more utility is possible.")
    warn(Message(stopped, hint), ConvergenceWarning)


# Checks of a task. -------------------------------------------------------------------------------


def _check_rows(
    p_sx: TableLike, confidence: float | None, n_samples: float | None, owner: str
) -> tuple[float | None, float | None]:
    """Return (confidence, number of rows that the joint was counted from) as floats."""
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
        template = (
            " is needed, because {confidence} is {level} and the table holds probabilities or "
            "weights, not counts. Give the number of rows behind it (for weighted rows, the "
            "effective number)."
        )
        raise ValueError(about(owner, "n_samples", Message.of(template, level=confidence)))
    return confidence, float(counts.sum())


def _with_distances(utility: Utility, p_sx: TableLike, joint: Joint, owner: str) -> Utility:
    """Return the utility; a distortion without a table gets the one of this X."""
    if not isinstance(utility, Distortion) or not utility.is_open:
        return utility
    if utility.is_by_position:
        return Distortion.of_positions(len(joint.p_x))
    if not isinstance(p_sx, pd.DataFrame) or isinstance(p_sx.columns, pd.RangeIndex):
        why = " is 'distortion', which needs the values of X. Pass a DataFrame whose columns are "
        hint = "these values, Distortion(loss) with a table of losses, or Distortion('positions') "
        raise ValueError(about(owner, "utility", why + hint + "if the columns are in order."))
    weights = utility.weights_of(list(p_sx.columns.names), owner)
    return Distortion.of_symbols(label_distances(p_sx.columns, joint.p_x, weights))


def _check_smallest_at_prior(measure: Measure, joint: Joint, owner: str) -> None:
    """Check an assumption of all solvers: releasing nothing is allowed at any epsilon."""
    given = f"The measure {measure!r} given to {owner}"
    at_prior = measure.value(joint.p_s, joint.p_s)
    at_symbols = measure.value(joint.p_s * (1 + joint.deviations.T), joint.p_s)
    if np.shape(at_symbols) != joint.p_x.shape:
        got = f"Got shape {np.shape(at_symbols)} for {len(joint.p_x)} rows."
        raise ValueError(f"{given} must have a 'value' with one number per posterior. {got}")
    if np.isnan(at_prior) or np.isnan(at_symbols).any():
        raise ValueError(f"{given} must have a 'value' that is never NaN.")
    allowed = measure.budget(0.0)
    if not (measure.inverse(at_prior) <= allowed and (at_symbols >= at_prior - allowed).all()):
        why = "an output that reveals nothing must be allowed at any epsilon"
        raise ValueError(f"{given} must be smallest at the prior, with leakage 0 there: {why}.")


def check_inverse(measure: Measure, epsilons: Iterable[float], owner: str) -> None:
    """Check that `inverse` undoes `threshold`, up to rounding."""
    for epsilon in epsilons:
        again = float(measure.inverse(measure.threshold(epsilon)))
        if np.isfinite(again) and abs(again - epsilon) > 1e-6 * epsilon + 1e-9:
            given = f"The measure {measure!r} given to {owner}"
            got = f"Got inverse(threshold({epsilon})) = {again}."
            raise ValueError(f"{given} must have an 'inverse' that undoes its 'threshold'. {got}")


# The choice of "auto". ---------------------------------------------------------------------------


# Above this many vertices of (22), a certificate takes too long for most users.
_MOST_BASES = 60_000

# With one degree of freedom of S, all vertices are pairs: some twenty per pair on average.
_MOST_SYMBOLS_IN_PAIRS = 400

# Up to this many symbols of X, or with two groups, losses are certified to the default tolerance,
# in little more time.
_FEW_SYMBOLS = 100

# Sizes of X for which a design takes seconds, by the number of values of S: with one there is
# nothing to do, with two all vertices are pairs, with more, columns are generated.
_MOST_SYMBOLS, _MOST_SYMBOLS_ELSE = {1: 1000, 2: 500}, 64


def automatic(task: DesignTask) -> tuple[str, dict[str, Any]]:
    """Return the name of the solver for a task, and options that differ from its defaults."""
    measure, scope = task.measure, task.scope
    n_s, n_x = task.joint.p_sx.shape
    if task.utility.as_loss(n_x) is not None and not measure.jumps:
        is_quick = n_s <= 2 or n_x <= _FEW_SYMBOLS
        return "one_per_label", {"tol": DEFAULT_TOL} if is_quick else {}
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
