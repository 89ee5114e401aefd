"""Design in reverse: budgets for a required utility, or for a largest shift."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.interpolate import PchipInterpolator

from ._messages import InPython, Message, Setting, doing, part_of
from ._numerics import one_thread
from ._typing import FloatArray, Scope
from ._validation import about, check_confidence, check_real, message
from .describing.numbers import limit
from .describing.verdict import ALLOWS
from .design import AnyTable, Beside, Designer
from .exceptions import BesideError
from .joint import as_given, as_joint, check_budgets
from .measures import Measure, get_measure
from .measures.measure import leakage_unchanged
from .mechanism import Mechanism
from .population.limits import limit_unchanged
from .solvers import DesignTask, Solver
from .solvers.solver import check_inverse
from .utilities import UTILITY_ROUNDING, Utility

_Design: TypeAlias = "Callable[[float], _Scaled]"
_UtilityOf: TypeAlias = Callable[[float], float]

# Relative tolerance of budgets, without a confidence and with one: that is a search in a search.
_RTOL, _ROUGH_RTOL = 1e-4, 0.01

# With a confidence: the accuracy of the budget for the rows alone, a lower end of the search;
# where between its ends the search starts, on a logarithmic scale; the smallest slope that it
# assumes; the logarithm of the ratio of budgets that are near; and after how many steps that do
# not halve the range the next one does.
_ROUGH_FOR_ROWS, _FIRST_SHARE, _LEAST_RISE, _NEAR, _MOST_SLOW = 1.05, 0.4, 1.0, 0.15, 3
_ATOL = 1e-12

# Up to this many pairs (s, x) designs for the rows alone are always quick.
_FEW_PAIRS = 50

# Numbers of rows: the first and the largest to be tried; the factor that is close enough.
_FIRST_ROWS, _MOST_ROWS, _ROUGH_ROWS = 1e3, 1e9, 1.1

# Factor between two arguments that are tried until one is below and one above.
_FAR = 4.0

# Margins above the leakage of columns beside: for rounding, and for limits, which are random.
_ROUNDING, _LIMIT_MARGIN = 1e-12, 0.05

# A budget that exceeds a leakage by this much certainly allows it.
_ALLOWING_RTOL, _ALLOWING_ATOL = 1e-12, 1e-15

# Above this budget, only an infinite one is tried.
_LARGEST = 1e3


def epsilon_for_shift(
    p_s: npt.ArrayLike,
    max_shift: float,
    measure: str | Measure = "kl",
    max_factor: float | None = None,
) -> float:
    """Return the largest budget that keeps shifts of every group's probability below a limit.

    Parameters
    ----------
    p_s : array-like of shape (n_s,)
        The distribution of S, as probabilities or counts.
    max_shift : float
        The most that a released value may move the probability of any group: with 0.05, from 51%
        to between 46% and 56%.
    measure : str or Measure, default="kl"
        As in `design_mechanism`.
    max_factor : float, default=None
        The most by which a released value may multiply the probability of any group, at least 1.
        A shift alone hardly protects rare groups: 0.05 lets 1% become 6%. None: the factor of the
        verdict that allows the shift: 2 for up to 0.05, 3 for up to 0.15, else 5. Infinity for no
        limit.

    Returns
    -------
    float
        An epsilon for the scope "per_output"; a budget on average bounds no single value. Infinity
        if every budget keeps both limits.

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
    for p in _group_shares(p_s, owner):  # against all other groups as one
        for end in (min(p + shift, p * factor), p - shift):
            if 0 <= end <= 1:
                leakage = measure.leakage(np.array([end, 1 - end]), np.array([p, 1 - p]))
                smallest = min(smallest, float(leakage))
    return smallest


def epsilon_beside(
    counts: npt.ArrayLike,
    measure: str | Measure = "kl",
    scope: Scope = "per_output",
    confidence: float | None = None,
) -> float:
    """Return the smallest budget that allows publishing columns unchanged beside a release.

    Parameters
    ----------
    counts : array-like of shape (n_s, n_z)
        The number of rows with each group of S and each value of the published columns.
    measure, scope : default="kl", "per_output"
        As in `design_mechanism`.
    confidence : float, default=None
        How often the budget is to hold for the population the rows were drawn from. None: it is to
        hold for these rows.

    Returns
    -------
    float
        What the columns leak alone, rounded up a little; with a confidence, 5% more than the limit
        of that, which is random.

    Examples
    --------
    >>> from skprivacy.budgets import epsilon_beside
    >>> counts = [[30, 20], [20, 30]]
    >>> round(epsilon_beside(counts), 4), round(epsilon_beside(counts, confidence=0.95), 3)
    (0.0201, 0.082)
    """
    owner = "epsilon_beside"
    measure, table = get_measure(measure, owner), as_joint(counts, owner)
    if confidence is None:
        return (1 + _ROUNDING) * leakage_unchanged(scope, measure, table.p_sx)
    sure = check_confidence(owner, confidence)
    rows: FloatArray = np.asarray(counts, dtype=float)
    return (1 + _LIMIT_MARGIN) * limit_unchanged(rows, measure, scope, sure)


def factor_for(shift: float) -> float:
    """Return the factor of the best verdict that allows a shift, or of the last verdict."""
    factors = [factor for points, factor in ALLOWS.values() if shift <= points]
    return factors[0] if factors else max(factor for _, factor in ALLOWS.values())


def _group_shares(p_s: npt.ArrayLike, owner: str) -> FloatArray:
    """Return the shares of the groups that occur; none if there is only one, which cannot move."""
    try:
        counts = np.asarray(p_s, dtype=float)
    except (TypeError, ValueError) as error:
        requirement = "a list of numbers, one for each group of S"
        advice = " Count rows first, for instance with Series.value_counts()."
        raise TypeError(Message(message(owner, "p_s", requirement, p_s), advice)) from error
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

    Parameters
    ----------
    p_sx : array-like or DataFrame of shape (n_s, n_x), or dict of them
        As in `design_mechanism`.
    utility_at_least : float, default=0.9
        The required `normalized_utility`, from 0 to 1.
    proportions : dict, default=None
        For several secrets, the proportions of their budgets: ``{"sex": 1, "race": 10}`` allows
        ten times as much leakage about race. The budgets are a common factor times these.
    measure, scope, utility, solver, max_outputs, confidence, n_samples, beside, solver_options
        As in `design_mechanism`.

    Returns
    -------
    Mechanism
        Its `epsilon` is the smallest budget that allows the utility, to within a share of 1e-4
        and the tolerance of the solver; with a confidence, to within a share of 0.01, as far as
        designs for budgets around it tell.

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
    scale = _checked_proportions(owner, proportions, p_sx)
    asked = measure, scope, utility, max_outputs, confidence, n_samples, beside
    task = DesignTask.checked(owner, p_sx, [0.0], *asked)
    everything = _allowing(task, scale, {n: joint.p_sx for n, joint in task.secrets.items()})
    check_inverse(task.measure, [everything * each for each in scale.values()], owner)
    asked_of_solver = owner, solver, solver_options
    design = _by_factor(Designer(task, *asked_of_solver), scale)
    below, above = design(_allowing_nothing(task, scale)), design(everything)
    if above.utility < needed - UTILITY_ROUNDING:
        relax, more = "relax the measure", Setting("max_outputs", max_outputs)
        if max_outputs is not None:
            relax = Message.of("allow more outputs: {more}", more=more)
        found = " is {asked}, which no budget allows: {measure!r} keeps {kept} at {most} or less. "
        kept, most = InPython("normalized_utility", "the utility"), limit(above.utility, 6)
        values = {"asked": needed, "measure": task.measure, "kept": kept, "most": most}
        text = Message.of(found + "Ask for less, or {relax}.", relax=relax, **values)
        raise ValueError(about(owner, "utility_at_least", text))
    if below.utility >= needed - UTILITY_ROUNDING:
        return below.mechanism
    if above.factor == np.inf:
        below, above = _finite(design, below, above, needed)
    if above.factor == np.inf:
        return above.mechanism
    if confidence is None:
        return _search(design, below, above, needed).mechanism
    if not _rows_are_quick(task):
        return _rough_search(design, below, above, needed).mechanism
    of_rows = Designer(replace(task, confidence=None, n_samples=None), *asked_of_solver)
    least, for_rows = _needed_for_rows(_by_factor(of_rows, scale), below, above, needed)
    if for_rows[least] >= needed - UTILITY_ROUNDING:  # any budget will do for the rows alone
        return _rough_search(design, below, above, needed).mechanism
    return _search_from_rows(design, least, for_rows, above, needed).mechanism


def _checked_proportions(
    owner: str, proportions: Mapping[Any, float] | None, p_sx: AnyTable
) -> dict[Any, float]:
    """Return the proportions of the budgets by name of the secret."""
    scale = {None: 1.0}
    if isinstance(p_sx, Mapping):
        if proportions is None and len(p_sx) < 2:
            proportions = dict.fromkeys(p_sx, 1.0)
        scale = check_budgets(owner, proportions, p_sx, "proportions")
    elif proportions is not None:
        raise ValueError(message(owner, "proportions", "None for a single table", proportions))
    if not all(0 < each < np.inf for each in scale.values()):
        raise ValueError(message(owner, "proportions", "positive and finite", proportions))
    return scale


@dataclass(frozen=True, eq=False)
class _Scaled:
    """A mechanism whose budgets are a factor times the proportions."""

    factor: float
    mechanism: Mechanism

    @property
    def utility(self) -> float:
        return self.mechanism.normalized_utility


def _by_factor(design: Designer, scale: Mapping[Any, float]) -> _Design:
    """Return a function that designs for a factor times the budgets in `scale`."""
    utilities: list[float] = []  # of the designs so far

    def scaled(factor: float) -> _Scaled:
        before = f", the last kept {utilities[-1]:.0%}" if utilities else ""
        with part_of(f"looking for a budget, design {len(utilities) + 1}{before}"):
            found = _Scaled(factor, design({name: factor * each for name, each in scale.items()}))
        utilities.append(found.utility)
        return found

    return scaled


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
    """Return about how many rows a design with a confidence needs to keep a share of the utility.

    Parameters
    ----------
    p_sx : array-like or DataFrame of shape (n_s, n_x), or dict of them
        As in `design_mechanism`. Of counts, only the proportions matter: more rows are assumed to
        be like these.
    epsilon : float or dict
        The budget, or a dict with the budget of each secret.
    utility_at_least : float
        The required `normalized_utility`, from 0 to 1.
    confidence : float, default=0.95
        How often the budget is to hold for the population.
    measure, scope, utility, solver, max_outputs, beside, solver_options
        As in `design_mechanism`.

    Returns
    -------
    int
        To within about 10%, rounded to two digits. How much a given sample of that size allows is
        a matter of chance.

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

    def utility_from(n_samples: float) -> float:
        doing(f"looking for a number of rows, {n_samples:,.0f}")
        from_rows = replace(task, confidence=confidence, n_samples=n_samples)
        try:
            return Designer(from_rows, owner, solver, solver_options)(budgets).normalized_utility
        except BesideError:
            return -np.inf  # too few rows even to prove that columns beside are within the budget

    most = Designer(task, owner, solver, solver_options)(budgets).normalized_utility
    source = "if the joint distribution is known"
    if most >= needed - UTILITY_ROUNDING:
        # No number of rows suffices for a budget of zero, or with a group of S without rows.
        most, source = utility_from(_MOST_ROWS), f"from {_MOST_ROWS:,.0f} rows"
    if most < needed - UTILITY_ROUNDING:
        found = " is {asked}, which no number of rows allows: {budget} keeps {most:.3g} {source}. "
        budget, advice = as_given(budgets), "Ask for less, or use a larger {epsilon}."
        values = {"budget": Setting("epsilon", budget), "most": most, "source": source}
        text = Message.of(found + advice, asked=needed, **values)
        raise ValueError(about(owner, "utility_at_least", text))
    return _fewest_rows(utility_from, needed)


def _fewest_rows(utility_from: _UtilityOf, needed: float) -> int:
    """Return the number of rows needed: try powers of four, then search between two of them."""
    low, high = (1.0, 0.0), (_MOST_ROWS, 1.0)
    tried = _FIRST_ROWS
    while low[0] < tried < high[0]:
        found = tried, utility_from(tried)
        if found[1] >= needed - UTILITY_ROUNDING:
            high, tried = found, tried / _FAR
        else:
            low, tried = found, tried * _FAR
    return int(float(f"{_smallest(utility_from, needed, low, high, _ROUGH_ROWS):.2g}"))


def _smallest(
    utility_of: _UtilityOf,
    needed: float,
    low: tuple[float, float],
    high: tuple[float, float],
    factor: float,
) -> float:
    """Return the smallest argument with the needed utility, up to a factor.

    low, high : (argument, utility) below and above; utility is about linear in the logarithm.
    """
    step, stuck = factor**0.9, 0
    while (width := high[0] / low[0]) > factor:
        share = 0.5 if stuck > 1 else (needed - low[1]) / (high[1] - low[1])
        # Not closer to an end than the step that ends the search if the answer is in between.
        tried = float(np.clip(low[0] * width**share, low[0] * step, high[0] / step))
        found = tried, utility_of(tried)
        low, high = (low, found) if found[1] >= needed - UTILITY_ROUNDING else (found, high)
        stuck = stuck + 1 if high[0] / low[0] > np.sqrt(width) else 0
    return high[0]


def _allowing(
    task: DesignTask, scale: Mapping[Any, float], tables: Mapping[Any, FloatArray]
) -> float:
    """Return the factor of the budgets that allows releasing a column, rounded up a little.

    tables : P(S, column) by name of the secret.
    """
    factor = max(_leakage_unchanged(task, p_sx) / scale[name] for name, p_sx in tables.items())
    return factor * (1 + _ALLOWING_RTOL) + _ALLOWING_ATOL


def _leakage_unchanged(task: DesignTask, p_sx: FloatArray) -> float:
    """Return the leakage of releasing X itself; with a confidence, its limit if that is larger."""
    unchanged = max(0.0, leakage_unchanged(task.scope, task.measure, p_sx))
    if task.confidence_of_each is None or task.n_samples is None:
        return unchanged
    counts: FloatArray = task.n_samples * p_sx
    limit = limit_unchanged(counts, task.measure, task.scope, task.confidence_of_each)
    return max(unchanged, limit)


def _allowing_nothing(task: DesignTask, scale: Mapping[Any, float]) -> float:
    """Return the smallest factor with a mechanism: zero, or what the columns beside leak."""
    if task.strata is None:
        return 0.0
    tables = {}
    for name, joint in task.secrets.items():
        tables[name] = np.zeros((len(joint.p_sx), task.stratum_of_symbol.max() + 1))
        np.add.at(tables[name].T, task.stratum_of_symbol, joint.p_sx.T)
    return _allowing(task, scale, tables)


def _finite(
    design: _Design, below: _Scaled, above: _Scaled, needed: float
) -> tuple[_Scaled, _Scaled]:
    """Return designs with finite budgets around the needed utility, if there are any."""
    factor = 1.0
    while factor < _LARGEST:
        middle = design(factor)
        if middle.utility >= needed - UTILITY_ROUNDING:
            return below, middle
        below, factor = middle, 2 * factor
    return below, above


def _rows_are_quick(task: DesignTask) -> bool:
    """Return whether designs for the rows alone take a small part of those with a confidence."""
    groups = sum(len(joint.p_sx) - 1 for joint in task.secrets.values()) + 1
    is_loss = task.utility.as_loss(len(task.p_x)) is not None
    return is_loss or groups == 2 or groups * len(task.p_x) <= _FEW_PAIRS


def _rough_search(design: _Design, below: _Scaled, above: _Scaled, needed: float) -> _Scaled:
    """Return the result of `_search` roughly, from a few designs."""
    designs = {above.factor: above}

    def utility_of(factor: float) -> float:
        designs[factor] = design(factor)
        return designs[factor].utility

    least = below.factor  # not zero if columns are published beside
    high, tried = (above.factor, above.utility), max(above.factor / _FAR, least)
    while (found := (tried, utility_of(tried)))[1] >= needed - UTILITY_ROUNDING and tried > _ATOL:
        high, tried = found, max(tried / _FAR, least)
    return designs[_smallest(utility_of, needed, found, high, 1 + _ROUGH_RTOL)]


def _search_from_rows(
    design: _Design, least: float, for_rows: Mapping[float, float], above: _Scaled, needed: float
) -> _Scaled:
    """Return the result of `_search` roughly, from a few designs with a confidence.

    least, for_rows : as `_needed_for_rows` returns them. Designs for the rows alone keep at least
    as much, so the budget that they need is a lower end. And the logarithm of the budget is about
    linear in that of the budget with which they keep the same utility.
    """
    arguments = sorted(for_rows)
    kept = np.maximum.accumulate([for_rows[x] for x in arguments])

    def as_for_rows(utility: float) -> float:
        return float(np.interp(utility, kept, np.log(arguments)))

    # Pairs of logarithms: a budget, and the one that keeps as much of the rows alone.
    aim, step = as_for_rows(needed), np.log1p(_ROUGH_RTOL)
    low, high = None, (np.log(above.factor), as_for_rows(above.utility))
    best, end = above, np.log(least)
    tried, guess, n_slow = end + _FIRST_SHARE * (high[0] - end), -np.inf, 0
    # Where designs on both sides are near, a line between them tells where the answer is.
    while (width := high[0] - end) > step and high[0] - guess > step:
        # Not closer to an end than the step that ends the search if the answer is in between.
        tried = float(np.clip(tried, end + 0.9 * step, high[0] - 0.9 * step))
        made = design(float(np.exp(tried)))
        found = tried, as_for_rows(made.utility)
        if made.utility >= needed - UTILITY_ROUNDING:
            other, best, high = low or high, made, found
        else:
            other, low, end = high, found, tried
        rise = max((found[1] - other[1]) / (found[0] - other[0]), _LEAST_RISE)
        answer = found[0] + (aim - found[1]) / rise
        n_slow = n_slow + 1 if high[0] - end > width / 2 else 0
        tried = answer + 0.5 * step if n_slow < _MOST_SLOW else (end + high[0]) / 2
        if low is not None and high[0] - end < _NEAR:
            guess = answer
    return best


def _needed_for_rows(
    design: _Design, below: _Scaled, above: _Scaled, needed: float
) -> tuple[float, dict[float, float]]:
    """Return about the budget that rows alone need, and the utilities of budgets around it.

    The budget is the smallest that is tried if that is more than enough.
    """
    factor, utilities, far = above.factor, {above.factor: above.utility}, _FAR
    while utilities[factor] >= needed - UTILITY_ROUNDING and factor > max(below.factor, _ATOL):
        factor, far = max(factor / far, below.factor), far * _FAR
        utilities[factor] = design(factor).utility

    def utility_of(factor: float) -> float:
        return design(factor).utility

    if utilities[factor] < needed - UTILITY_ROUNDING:
        smallest_on_curve(utility_of, needed, utilities, _ROUGH_FOR_ROWS)
        factor = _around(utilities, needed)[0]
    return factor, utilities


def _search(design: _Design, below: _Scaled, above: _Scaled, needed: float) -> _Scaled:
    """Return the design with the smallest budgets between two that has the needed utility."""
    designs = {above.factor: above}

    def utility_of(factor: float) -> float:
        designs[factor] = design(factor)
        return designs[factor].utility

    utilities, tried, far = {above.factor: above.utility}, above.factor, _FAR
    if below.factor > 0:  # columns are published beside
        utilities[below.factor] = below.utility
    while min(utilities.values()) >= needed - UTILITY_ROUNDING and tried > _ATOL:
        tried, far = tried / far, far * _FAR
        utilities[tried] = utility_of(tried)
    return designs[smallest_on_curve(utility_of, needed, utilities, 1 + _RTOL)]


def smallest_on_curve(
    utility_of: _UtilityOf, needed: float, utilities: dict[float, float], factor: float
) -> float:
    """Return the smallest argument with the needed utility, up to a factor, if utility is smooth.

    Designs with a confidence jump about too much for this: their search uses `_smallest`.

    utilities : of arguments tried so far, of which some have the needed utility.
    """
    step, n_slow, guess = factor**0.9, 0, 0.0
    low, high = _around(utilities, needed)
    while (width := high / low) > factor:
        before, guess = guess, _interpolated(utilities, needed)
        # Guesses tend to be on one side: try one that is off by what the last was off, towards the
        # end that is farther away.
        error = abs(np.log(guess / (before or guess)))
        middle = np.sqrt(low * high)
        tried = middle if n_slow > 1 else guess * np.exp(error if guess < middle else -error)
        # Not closer to an end than the step that ends the search if the answer is in between.
        tried = float(np.clip(tried, low * step, high / step))
        utilities[tried] = utility_of(tried)
        low, high = _around(utilities, needed)
        n_slow = n_slow + 1 if high / low > np.sqrt(width) else 0
    return high


def _around(utilities: Mapping[float, float], needed: float) -> tuple[float, float]:
    """Return the smallest argument with the needed utility, and the one before it."""
    enough = [x for x, utility in utilities.items() if utility >= needed - UTILITY_ROUNDING]
    return max((x for x in utilities if x < min(enough)), default=min(enough)), min(enough)


def _interpolated(utilities: Mapping[float, float], needed: float) -> float:
    """Return where a smooth increasing curve through all utilities is as needed.

    Utility is about linear in the logarithm of the argument.
    """
    arguments = sorted(utilities)
    # Designs fall short of the optimum by the tolerance of the solver: not all are in order.
    increasing = np.maximum.accumulate([max(0.0, utilities[x]) for x in arguments])
    curve = PchipInterpolator(np.log(arguments), increasing)
    found = curve.solve(needed, extrapolate=False)
    return float(np.exp(found[0])) if len(found) else arguments[-1]  # of the largest, by rounding
