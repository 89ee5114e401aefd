"""Design in reverse: from a required utility or a bearable shift to a budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ._messages import InPython, Message, Named, Parameter, Setting, doing
from ._numerics import one_thread
from ._typing import FloatArray, Scope
from ._validation import check_confidence, check_real, message
from .describing.numbers import limit
from .describing.verdict import ALLOWS
from .design import AnyTable, Beside, Designer
from .exceptions import BesideError
from .joint import as_given, check_budgets
from .measures import Measure, get_measure
from .measures.measure import leakage_unchanged
from .mechanism import Mechanism
from .population.limits import limit_unchanged
from .solvers import DesignTask, Solver
from .solvers.solver import check_inverse
from .utilities import UTILITY_ROUNDING, Utility

_Design: TypeAlias = "Callable[[float], _Made]"
_Kept: TypeAlias = Callable[[float], float]

# The budget is found to within this share of itself; with a confidence, which is a search in a
# search, roughly.
_RTOL = 1e-4
_ROUGH_RTOL = 0.01

# Numbers of rows: the first to be tried, those beyond which none are, and how close is enough.
_FIRST_ROWS, _MOST_ROWS, _ROUGH_ROWS = 1e3, 1e9, 1.1
_ATOL = 1e-12

# Factor between two arguments that are tried, as long as nothing is known.
_FAR = 4.0

# A budget that exceeds a leakage by this much surely allows it.
_ALLOWING_RTOL = 1e-12
_ALLOWING_ATOL = 1e-15

# Above this budget, only an infinite one is tried.
_LARGEST = 1e3


def epsilon_for_shift(
    p_s: npt.ArrayLike,
    max_shift: float,
    measure: str | Measure = "kl",
    max_factor: float | None = None,
) -> float:
    """Return the largest budget with which no group's probability moves too far.

    Parameters
    ----------
    p_s : array-like of shape (n_s,)
        The distribution of S, as probabilities or counts.
    max_shift : float
        How far a released value may move the probability of any group: 0.05 is from 51% to between
        46% and 56%.
    measure : str or Measure, default="kl"
        As in `design_mechanism`.
    max_factor : float, default=None
        How many times as likely a released value may make any group, at least 1. A shift alone
        hardly protects rare groups: 0.05 lets 1% become 6%. None: the factor of the verdict that
        allows the shift: 2 for up to 0.05, 3 for up to 0.15, else 5. Infinity for no limit.

    Returns
    -------
    float
        An epsilon for the scope "per_output"; a budget on average bounds no single value. Infinity
        where every budget keeps both limits.

    Examples
    --------
    >>> from skprivacy.budgets import epsilon_for_shift
    >>> round(epsilon_for_shift([0.4, 0.6], 0.05), 4)
    0.0051

    A group of 1% may at most double:

    >>> round(epsilon_for_shift([0.01, 0.99], 0.05), 4)
    0.0039
    >>> round(epsilon_for_shift([0.01, 0.99], 0.05, max_factor=6), 4)
    0.0588
    """
    owner = "epsilon_for_shift"
    measure = get_measure(measure, owner)
    shift = check_real(owner, "max_shift", max_shift, low=0, high=1)
    factor = factor_for(shift)
    if max_factor is not None:
        factor = check_real(owner, "max_factor", max_factor, low=1)
    if not measure.is_monotone:
        requirement = "one for which fusing groups adds no leakage (is_monotone)"
        raise ValueError(message(owner, "measure", requirement, measure))
    smallest = np.inf
    for p in _groups(p_s, owner):  # the others move together
        for end in (min(p + shift, p * factor), p - shift):
            if 0 <= end <= 1:
                leakage = measure.leakage(np.array([end, 1 - end]), np.array([p, 1 - p]))
                smallest = min(smallest, float(leakage))
    return smallest


def factor_for(shift: float) -> float:
    """Return the factor of the best verdict that allows a shift, or else of the last."""
    factors = [factor for points, factor in ALLOWS.values() if shift <= points]
    return factors[0] if factors else max(factor for _, factor in ALLOWS.values())


def _groups(p_s: npt.ArrayLike, owner: str) -> FloatArray:
    """Return the shares of the strata that occur; one alone cannot move."""
    counts = np.asarray(p_s, dtype=float)
    if counts.ndim != 1 or not len(counts) or not (np.isfinite(counts) & (counts >= 0)).all():
        requirement = "a list of finite numbers that are not negative"
        raise ValueError(message(owner, "p_s", requirement, p_s))
    if not counts.sum():
        raise ValueError(message(owner, "p_s", "positive for some group", p_s))
    shares = counts[counts > 0] / counts.sum()
    return shares if len(shares) > 1 else shares[:0]


@one_thread
def mechanism_for_utility(
    p_sx: AnyTable,
    utility_at_least: float = 0.9,
    *,
    proportions: Mapping[Any, float] | None = None,
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
    """Return the Mechanism with the smallest epsilon that keeps a share of the utility.

    It returns not a number but a mechanism that is ready for use; the budget is its `epsilon`.

    Parameters
    ----------
    p_sx : array-like or DataFrame of shape (n_s, n_x), or dict of them
        As in `design_mechanism`.
    utility_at_least : float, default=0.9
        The `normalized_utility` that is needed, from 0 to 1.
    proportions : dict, default=None
        For several secrets, how their budgets relate to each other: ``{"sex": 1, "race": 10}``
        allows ten times as much about race. The budgets are a factor times these.
    measure, scope, utility, solver, max_outputs, confidence, n_samples, beside, solver_options
        As in `design_mechanism`.

    Returns
    -------
    Mechanism
        Its `epsilon` is the smallest budget that allows the utility, to within a share of 1e-4
        and the tolerance of the solver; with a confidence, to within a share of 0.01.

    Examples
    --------
    >>> from skprivacy.budgets import mechanism_for_utility
    >>> mechanism = mechanism_for_utility([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.8)
    >>> round(mechanism.epsilon, 4)
    0.0563
    >>> 0.8 <= mechanism.normalized_utility < 0.801
    True
    """
    owner = "mechanism_for_utility"
    needed = check_real(owner, "utility_at_least", utility_at_least, low=0, high=1)
    scale = {None: 1.0}
    if isinstance(p_sx, Mapping):
        if proportions is None and len(p_sx) < 2:
            proportions = dict.fromkeys(p_sx, 1.0)
        scale = check_budgets(owner, proportions, p_sx, "proportions")
    elif proportions is not None:
        requirement = "None where there is one table"
        raise ValueError(message(owner, "proportions", requirement, proportions))
    if not all(0 < each < np.inf for each in scale.values()):
        raise ValueError(message(owner, "proportions", "positive and finite", proportions))
    asked = measure, scope, utility, max_outputs, confidence, n_samples, beside
    task = DesignTask.checked(owner, p_sx, [0.0], *asked)
    everything = _allowing(task, scale, {n: joint.p_sx for n, joint in task.secrets.items()})
    check_inverse(task.measure, [everything * each for each in scale.values()], owner)
    design = _by_factor(Designer(task, owner, solver, solver_options), scale)
    nothing, enough = design(_allowing_nothing(task, scale)), design(everything)
    if enough.normalized_utility < needed - UTILITY_ROUNDING:
        raise ValueError(
            Message(
                Parameter("utility_at_least", owner),
                f" is {needed}, which no budget allows: {task.measure!r} keeps ",
                InPython("normalized_utility", "the utility"),
                f" at {limit(enough.normalized_utility, 6)} or less. Ask for less, or ",
                "relax the measure." if max_outputs is None else "allow more outputs: ",
                *(() if max_outputs is None else (Setting("max_outputs", max_outputs), ".")),
            )
        )
    if nothing.normalized_utility >= needed - UTILITY_ROUNDING:
        return nothing.mechanism
    if enough.epsilon == np.inf:
        nothing, enough = _finite(design, nothing, enough, needed)
    if confidence is None or enough.epsilon == np.inf:
        return _search(design, nothing, enough, needed).mechanism
    return _rough_search(design, nothing, enough, needed).mechanism


@dataclass(frozen=True, eq=False)
class _Made:
    """A mechanism, and the factor of its budgets: for one secret, its budget itself."""

    epsilon: float
    mechanism: Mechanism

    @property
    def normalized_utility(self) -> float:
        return self.mechanism.normalized_utility


def _by_factor(design: Designer, scale: Mapping[Any, float]) -> _Design:
    """Return a function that designs for a factor times the budgets in `scale`."""
    kept: list[float] = []  # by the designs so far

    def made(factor: float) -> _Made:
        before = f", the last kept {kept[-1]:.0%}" if kept else ""
        doing(f"looking for a budget, design {len(kept) + 1}{before}")
        budget = {name: factor * each for name, each in scale.items()}
        found = _Made(factor, design(budget))
        kept.append(found.normalized_utility)
        return found

    return made


@one_thread
def rows_needed(
    p_sx: AnyTable,
    epsilon: float | Mapping[Any, float],
    utility_at_least: float,
    *,
    confidence: float = 0.95,
    measure: str | Measure = "kl",
    scope: Scope = "per_output",
    utility: str | Utility = "mutual_information",
    solver: str | Solver = "auto",
    max_outputs: int | None = None,
    beside: Beside | None = None,
    solver_options: dict[str, Any] | None = None,
) -> int:
    """Return from about how many rows a design with a confidence keeps a share of the utility.

    Parameters
    ----------
    p_sx : array-like or DataFrame of shape (n_s, n_x), or dict of them
        As in `design_mechanism`. Of counts, only the proportions matter: more rows are taken to be
        like these.
    epsilon : float or dict
        The budget, or that of each secret.
    utility_at_least : float
        The `normalized_utility` that is needed, from 0 to 1.
    confidence : float, default=0.95
        How often the budget is to hold for the population.
    measure, scope, utility, solver, max_outputs, beside, solver_options
        As in `design_mechanism`.

    Returns
    -------
    int
        To within some 10%, rounded to two digits. Chance decides how much a given sample of that
        size allows.

    Examples
    --------
    >>> from skprivacy.budgets import rows_needed
    >>> joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
    >>> rows_needed(joint, 0.02, 0.3) < rows_needed(joint, 0.02, 0.5) < 5000
    True
    """
    owner = "rows_needed"
    budgets = check_budgets(owner, epsilon, p_sx)
    needed = check_real(owner, "utility_at_least", utility_at_least, low=0, high=1)
    confidence = check_confidence(owner, confidence)
    asked = measure, scope, utility, max_outputs, None, None, beside
    task = DesignTask.checked(owner, p_sx, budgets.values(), *asked)

    def kept(n_samples: float) -> float:
        doing(f"looking for a number of rows, {n_samples:,.0f}")
        from_rows = replace(task, confidence=confidence, n_samples=n_samples)
        try:
            return Designer(from_rows, owner, solver, solver_options)(budgets).normalized_utility
        except BesideError:
            return -np.inf  # so few rows do not even show that columns beside keep the budget

    most = Designer(task, owner, solver, solver_options)(budgets).normalized_utility
    kept_by_all = f"keeps {most:.3g} where the joint distribution is known"
    if most >= needed - UTILITY_ROUNDING:
        # A budget of zero, or a group of S that no row shows.
        most = kept(_MOST_ROWS)
        kept_by_all = f"keeps {most:.3g} from {_MOST_ROWS:,.0f} rows"
    if most < needed - UTILITY_ROUNDING:
        raise ValueError(
            Message(
                Parameter("utility_at_least", owner),
                f" is {needed}, which no number of rows allows: ",
                Setting("epsilon", as_given(budgets)),
                f" {kept_by_all}. Ask for less, or use a larger ",
                Named("epsilon"),
                ".",
            )
        )
    return _fewest_rows(kept, needed)


def _fewest_rows(kept: _Kept, needed: float) -> int:
    """Return how many rows keep what is needed: by powers of four, then between two of them."""
    low, high = (1.0, 0.0), (_MOST_ROWS, 1.0)
    tried = _FIRST_ROWS
    while low[0] < tried < high[0]:
        found = tried, kept(tried)
        if found[1] >= needed - UTILITY_ROUNDING:
            high, tried = found, tried / _FAR
        else:
            low, tried = found, tried * _FAR
    return int(float(f"{_smallest(kept, needed, low, high, _ROUGH_ROWS):.2g}"))


def _smallest(
    kept: _Kept,
    needed: float,
    low: tuple[float, float],
    high: tuple[float, float],
    factor: float,
) -> float:
    """Return the smallest argument that keeps what is needed, up to a factor.

    low, high : arguments around it, with what they keep, which is about linear in their logarithm.
    """
    step, stuck = factor**0.9, 0
    while (width := high[0] / low[0]) > factor:
        share = 0.5 if stuck > 1 else (needed - low[1]) / (high[1] - low[1])
        # Next to an end, as far from it as ends the search if the argument is between the two.
        tried = float(np.clip(low[0] * width**share, low[0] * step, high[0] / step))
        found = tried, kept(tried)
        low, high = (low, found) if found[1] >= needed - UTILITY_ROUNDING else (found, high)
        stuck = stuck + 1 if high[0] / low[0] > np.sqrt(width) else 0
    return high[0]


def _allowing(
    task: DesignTask, scale: Mapping[Any, float], tables: Mapping[Any, FloatArray]
) -> float:
    """Return the factor that allows X itself, or groups of it, and a little more for rounding.

    tables : the joint of each secret with what is released.
    """
    factor = max(_leakage_unchanged(task, p_sx) / scale[name] for name, p_sx in tables.items())
    return factor * (1 + _ALLOWING_RTOL) + _ALLOWING_ATOL


def _leakage_unchanged(task: DesignTask, p_sx: FloatArray) -> float:
    """Return what releasing X itself leaks, at most where there is a confidence."""
    unchanged = max(0.0, leakage_unchanged(task.scope, task.measure, p_sx))
    if task.confidence_of_each is None or task.n_samples is None:
        return unchanged
    counts: FloatArray = task.n_samples * p_sx
    of_each = task.confidence_of_each
    return max(unchanged, limit_unchanged(counts, task.measure, task.scope, of_each))


def _allowing_nothing(task: DesignTask, scale: Mapping[Any, float]) -> float:
    """Return the smallest factor that allows anything: zero, unless columns are published beside.

    These are then released by themselves.
    """
    if task.strata is None:
        return 0.0
    tables = {}
    for name, joint in task.secrets.items():
        tables[name] = np.zeros((len(joint.p_sx), task.stratum_of_symbol.max() + 1))
        np.add.at(tables[name].T, task.stratum_of_symbol, joint.p_sx.T)
    return _allowing(task, scale, tables)


def _finite(design: _Design, below: _Made, above: _Made, needed: float) -> tuple[_Made, _Made]:
    """Return two finite budgets around the one that is needed, if there are any."""
    epsilon = 1.0
    while epsilon < _LARGEST:
        middle = design(epsilon)
        if middle.normalized_utility >= needed - UTILITY_ROUNDING:
            return below, middle
        below, epsilon = middle, 2 * epsilon
    return below, above


def _rough_search(design: _Design, below: _Made, above: _Made, needed: float) -> _Made:
    """Return the same as `_search`, roughly, from a few designs."""
    made = {above.epsilon: above}

    def kept(epsilon: float) -> float:
        made[epsilon] = design(epsilon)
        return made[epsilon].normalized_utility

    least = below.epsilon  # not zero if columns are published beside
    high, tried = (above.epsilon, above.normalized_utility), max(above.epsilon / _FAR, least)
    while (found := (tried, kept(tried)))[1] >= needed - UTILITY_ROUNDING and tried > _ATOL:
        high, tried = found, max(tried / _FAR, least)
    return made[_smallest(kept, needed, found, high, 1 + _ROUGH_RTOL)]


def _search(design: _Design, below: _Made, above: _Made, needed: float) -> _Made:
    """Return the mechanism of the smallest budget between two that keeps what is needed."""
    bisect = False
    while np.isfinite(above.epsilon) and (
        above.epsilon - below.epsilon > _RTOL * above.epsilon + _ATOL
    ):
        share = 0.5
        if not bisect:
            # A chord of a concave function is below it: its crossing is not too small.
            kept = above.normalized_utility - below.normalized_utility
            share = np.clip((needed - below.normalized_utility) / kept, 0.02, 0.98)
        middle = design(below.epsilon + share * (above.epsilon - below.epsilon))
        width = above.epsilon - below.epsilon
        if middle.normalized_utility >= needed - UTILITY_ROUNDING:
            above = middle
        else:
            below = middle
        # A chord alone may approach from one side only, in ever smaller steps.
        bisect = above.epsilon - below.epsilon > 0.5 * width
    return above
