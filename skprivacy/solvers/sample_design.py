"""Designs for given joint distributions, with one or more secrets and strata.

Solvers handle one secret and one stratum. Per output, several secrets are stacked into one, and
every stratum has a design of its own; on average, each budget has a price.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._messages import SENSITIVE, Message, Setting, silenced
from .._typing import FloatArray
from ..channels import expanded
from ..exceptions import BesideError, SolverError
from ..geometry import normalised
from ..joint import Joint
from ..measures.measure import leakage_of, leakage_unchanged
from ..utilities import DEFAULT_TOL, Utility
from ..utilities.utility import Through
from .optimal import OptimalSolver
from .problem import OccurringSymbols
from .several_secrets import AverageBudgets, Secret, Stratum, secrets_of, side_by_side, strata_of
from .solver import Choose, DesignTask, Solution, Solver, automatic, warn_gap

# Solvers that can share a budget on average between several secrets or strata.
_ANY_AVERAGE = ("optimal", "column_generation", "one_per_label")

# Solvers that certify their results: larger gaps than this share of the utility cause a warning.
_CERTIFYING, _LARGE_GAP = {"optimal", "one_per_label"}, 100 * DEFAULT_TOL


class SampleDesign:
    """Solves a task for budgets of its secrets; choose : returns the solver of a plain task."""

    def __init__(self, task: DesignTask, choose: Choose) -> None:
        self._task, self._choose = task, choose
        # Plain tasks, with one secret and no columns beside the release, go to a solver directly.
        self._is_plain = len(task.secrets) == 1 and task.strata is None
        self._used: dict[str, None] = {}
        self._occurs = task.p_x > 0
        self._p_x = task.p_x[self._occurs]
        self._utility = task.utility.restricted(self._occurs)

    def path(self, budgets: Sequence[Mapping[Any, float]]) -> Iterator[Solution]:
        """Yield a solution for each of `budgets`; those of a single secret must increase."""
        if not self._is_plain:
            yield from map(self.solve, budgets)
            return
        increasing = [next(iter(each.values())) for each in budgets]
        found = self._solver.solve_path(self._occurring.task, increasing)
        for epsilon, solution in zip(increasing, found, strict=True):
            yield self._for_all_symbols(solution, epsilon)

    def solve(self, budgets: Mapping[Any, float]) -> Solution:
        """Return the solution for all symbols of X."""
        if self._is_plain:
            (epsilon,) = budgets.values()
            return self._for_all_symbols(self._prepared(epsilon), epsilon)
        with silenced(ConvergenceWarning):  # of parts with budgets the user did not set
            solution = self.of_symbols_that_occur(budgets)
            reached = self._value(solution.channel)
            solution = replace(solution, upper_bound=self._bound(solution, reached, budgets))
        # Solvers that certify their results may have stopped early.
        if solution.upper_bound is not None and self._used.keys() <= _CERTIFYING:
            gap, span = solution.upper_bound - reached, self._utility.span(self._p_x)
            if span and gap / span > _LARGE_GAP:
                warn_gap("The search", "")
        channel = expanded(normalised(solution.channel), self._task.p_x, self._task.strata)
        return Solution(channel, solution.upper_bound, "+".join(self._used) or "unchanged")

    @cached_property
    def _occurring(self) -> OccurringSymbols:
        return OccurringSymbols(self._task)

    @cached_property
    def _solver(self) -> Solver:
        return self._choose(self._occurring.task)

    @cached_property
    def _prepared(self) -> Callable[[float], Solution]:
        return self._solver.prepared(self._occurring.task)

    def _for_all_symbols(self, solution: Solution, epsilon: float) -> Solution:
        """Extend a solution of the plain task, for the symbols that occur, to all of X."""
        if _allows_unchanged(self._occurring.task, epsilon):
            solution = Solution(np.eye(len(self._p_x)))
        channel = self._occurring.expanded(solution.channel)
        return replace(solution, channel=channel, solver=solution.solver or self._solver.name)

    def of_symbols_that_occur(self, budgets: Mapping[Any, float]) -> Solution:
        """Return the solution for the symbols that occur."""
        secrets = secrets_of(self._task, budgets)
        strata = strata_of(self._task, secrets)
        self._check_room(budgets, strata)
        if not secrets:
            return self._joined(strata, [_unchanged(each.utility, each.p_x) for each in strata])
        if self._task.strata is None and len(secrets) == 1:
            task = self._task.about(secrets[0].joint, utility=strata[0].utility)
            return _with_one_secret(task, secrets[0].epsilon, self._chosen(task))
        if self._task.strata is None and len({secret.epsilon == 0 for secret in secrets}) == 2:
            return self._after_perfect_privacy(budgets)
        return self._together(secrets, strata)

    def _bound(
        self, solution: Solution, reached: float, budgets: Mapping[Any, float]
    ) -> float | None:
        """Return the smallest known bound: of the solution, or of one secret alone."""
        bounds = [] if solution.upper_bound is None else [solution.upper_bound]
        most, span = self._utility.of_identity(self._p_x), self._utility.span(self._p_x)
        for name, joint in self._task.secrets.items():
            if min([most, *bounds]) - reached > _LARGE_GAP * span:
                bounds += self._bounds_of(joint, budgets[name])
        # The tolerance of budgets may put a utility slightly above its bound; more is an error.
        credible = [bound for bound in bounds if bound >= reached - DEFAULT_TOL * span]
        return max(min(credible), reached) if credible else None

    def _bounds_of(self, joint: Joint, epsilon: float) -> list[float]:
        """Return bounds from one secret alone: other budgets and strata only lower the utility."""
        known = joint.without_empty().without_copies()
        task = self._task.about(known, utility=self._utility)
        bounds = [task.measure.information(epsilon) + self._utility.given_sensitive(known)]
        name, options = automatic(task)
        if name == OptimalSolver.name:
            found = _with_one_secret(task, epsilon, OptimalSolver(**options))
            bounds += [] if found.upper_bound is None else [found.upper_bound]
        return bounds

    def _together(self, secrets: list[Secret], strata: list[Stratum]) -> Solution:
        if self._task.scope == "average":
            return AverageBudgets(self._task, self._chosen, secrets, strata).solve()
        epsilon, solutions = float(any(secret.epsilon > 0 for secret in secrets)), []
        for stratum in strata:
            if len(stratum.p_x) == 1:
                solutions.append(_unchanged(stratum.utility, stratum.p_x))
                continue
            task = stratum.per_output()
            solutions.append(self._chosen(task).prepared(task)(epsilon))
        return self._joined(strata, solutions)

    def _joined(self, strata: list[Stratum], solutions: list[Solution]) -> Solution:
        """Return the solutions of all strata as one, with their joint bound."""
        bound = self._utility.offset(self._p_x)
        for stratum, solution in zip(strata, solutions, strict=True):
            most = stratum.utility.of_identity(stratum.p_x)
            most = most if solution.upper_bound is None else min(most, solution.upper_bound)
            bound += stratum.share * (most - stratum.utility.offset(stratum.p_x))
        symbols, channels = [stratum.symbols for stratum in strata], [s.channel for s in solutions]
        return Solution(side_by_side(symbols, channels), bound)

    def _after_perfect_privacy(self, budgets: Mapping[Any, float]) -> Solution:
        """Return a design where some budgets are zero, and others are not.

        Candidates: release the best K that reveals nothing about the former through a channel for
        the latter; reveal nothing about any secret; or use tiny budgets instead of zero, which
        also gives a bound, but rounding may put the outputs over budget.
        """
        strict = {name: 0.0 for name, epsilon in budgets.items() if epsilon == 0}
        lenient = {name: e for name, e in budgets.items() if name not in strict}
        first = self._for_some(self._task, strict)
        second = self._for_some(self._seen_through(first.channel, lenient), lenient)
        nothing = self._for_some(self._task, dict.fromkeys(budgets, 0.0))
        found = [normalised(first.channel) @ normalised(second.channel), nothing.channel]
        bounds = [first.upper_bound, self._for_some(self._task, lenient).upper_bound]
        with suppress(SolverError):
            secrets = secrets_of(self._task, budgets)
            nearly = self._together(secrets, strata_of(self._task, secrets))
            bounds.append(nearly.upper_bound)
            found += [nearly.channel] if self._is_within(nearly.channel, budgets) else []
        best = max(found, key=self._value)
        known = [bound for bound in bounds if bound is not None]
        return Solution(best, min(known, default=None))

    def _for_some(self, task: DesignTask, budgets: Mapping[Any, float]) -> Solution:
        """Return the solution for the secrets in `budgets`, for the symbols that occur."""
        part = replace(task, secrets={name: task.secrets[name] for name in budgets})
        return SampleDesign(part, self._chosen).of_symbols_that_occur(budgets)

    def _seen_through(self, channel: FloatArray, names: Mapping[Any, float]) -> DesignTask:
        """Return the task of releasing the outputs K of a channel instead of X."""
        channel = normalised(channel)
        p_k = self._p_x @ channel
        channel, p_k = channel[:, p_k > 0], p_k[p_k > 0]
        known = {name: self._known(self._task.secrets[name]) for name in names}
        secrets = {name: Joint.numbered(p_sx @ channel) for name, p_sx in known.items()}
        through = Through(self._utility, self._p_x[:, None] * channel / p_k)
        strata = np.zeros(len(p_k), dtype=int)
        return replace(self._task, secrets=secrets, utility=through, stratum_of_symbol=strata)

    def _is_within(self, channel: FloatArray, budgets: Mapping[Any, float]) -> bool:
        """Whether a channel for the symbols that occur is within all budgets."""
        scope, measure, channel = self._task.scope, self._task.measure, normalised(channel)
        for name, joint in self._task.secrets.items():
            leakage = leakage_of(scope, measure, self._known(joint), channel)
            if not leakage <= measure.budget(budgets[name]):
                return False
        return True

    def _known(self, joint: Joint) -> FloatArray:
        """Return P_SX of the symbols of X that occur."""
        return joint.p_sx[:, self._occurs]

    def _value(self, channel: FloatArray) -> float:
        return self._utility.of_channel(self._p_x, normalised(channel))

    def _chosen(self, task: DesignTask) -> Solver:
        """Return the solver of a plain task, and record its name."""
        solver = self._choose(task)
        if self._task.scope == "average" and solver.name not in _ANY_AVERAGE:
            parts = "columns beside" if len(self._task.secrets) == 1 else "several secrets"
            cannot = "The solver {name!r} does not support {scope='average'} with {parts}: "
            use = "use one of {others}, or {scope='per_output'}."
            values = {"name": solver.name, "parts": parts, "others": ", ".join(_ANY_AVERAGE)}
            raise ValueError(Message.of(cannot + use, **values))
        self._used[solver.name] = None
        return solver

    def _check_room(self, budgets: Mapping[Any, float], strata: list[Stratum]) -> None:
        """Check that the columns beside the release are within the budgets by themselves."""
        if self._task.strata is None:
            return
        finite = [name for name in self._task.secrets if budgets[name] < np.inf]
        shares = np.array([stratum.share for stratum in strata])
        for i, name in enumerate(finite):
            starts = np.array([stratum.starts[i] for stratum in strata])
            is_average, worst = self._task.scope == "average", int(starts.argmax())
            value = float(shares @ starts) if is_average else float(starts[worst])
            leakage = float(self._task.measure.inverse(value))
            if not leakage <= self._task.measure.budget(budgets[name]):
                label = self._task.stratum_labels[worst]
                raise _too_much_beside(name, label, leakage, budgets[name], is_average)


def _allows_unchanged(task: DesignTask, epsilon: float) -> bool:
    """Whether a budget on average allows Y = X, which solvers per output would miss."""
    scope, measure, p_sx = task.scope, task.measure, task.joint.p_sx
    return scope == "average" and leakage_unchanged(scope, measure, p_sx) <= epsilon


def _with_one_secret(task: DesignTask, epsilon: float, solver: Solver) -> Solution:
    """Return the design for one secret, for the symbols that occur."""
    if _allows_unchanged(task, epsilon):
        return _unchanged(task.utility, task.joint.p_x)
    return solver.prepared(task)(epsilon)


def _unchanged(utility: Utility, p_x: FloatArray) -> Solution:
    return Solution(np.eye(len(p_x)), utility.of_identity(p_x))


def _too_much_beside(
    name: Any, label: Any, leakage: float, epsilon: float, is_average: bool
) -> BesideError:
    """Return the error for columns beside the release that exceed a budget by themselves."""
    what = f"the value {label!r} says {leakage:.4g}"
    if is_average:
        what = f"their values say {leakage:.4g} on average ({label!r} says most)"
    rounded = float(f"{leakage:.3e}")
    enough = f"{rounded if rounded >= leakage else rounded * (1 + 1e-3):.4g}"  # rounded up
    keeps = "No mechanism keeps {budget} beside these columns: {what} about {secret} by itself. "
    use = "Set {epsilon} to at least {least}, or release these columns instead of publishing them."
    budget, secret = Setting("epsilon", epsilon), SENSITIVE if name is None else repr(name)
    values = {"budget": budget, "what": what, "secret": secret, "least": enough}
    return BesideError(Message.of(keeps + use, **values))
