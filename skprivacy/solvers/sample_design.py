"""Designs for the joint distributions as they are: of one or more secrets, on one or more faces.

One secret, and nothing beside the release, is what solvers know. Per output, several secrets are
one stacked secret, and every face is a design of its own; on average, each budget has a price.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._messages import SENSITIVE, InPython, Message, Named, Setting
from .._typing import FloatArray
from .._warnings import silenced, warn
from ..channels import expanded
from ..exceptions import BesideError, SolverError
from ..joint import Joint, as_given
from ..measures.base import leakage_of
from ..utilities import DEFAULT_TOL
from ..utilities.base import Through
from .automatic import automatic
from .average_budgets import AverageBudgets
from .base import DesignTask, Solution, Solver
from .optimal import OptimalSolver
from .problem import OccurringSymbols
from .stacking import Face, Secret, faces_of, secrets_of, side_by_side

# The solvers that a budget on average of several secrets, or faces, can be made of.
_ANY_AVERAGE = ("optimal", "column_generation", "one_per_label")

# These certify what they find: a larger gap than this, as a share of the utility, is told of.
_CERTIFYING, _LARGE_GAP = {"optimal", "one_per_label"}, 100 * DEFAULT_TOL


class SampleDesign:
    """Solves a task, given a budget for each secret; choose : the solver of a plain task."""

    def __init__(self, task: DesignTask, choose: Callable[[DesignTask], Solver]) -> None:
        self._task, self._choose = task, choose
        self._used: dict[str, None] = {}
        self._occurs = task.p_x > 0
        self._p_x = task.p_x[self._occurs]
        self._utility = task.utility.restricted(self._occurs)

    def path(self, budgets: Sequence[Mapping[Any, float]]) -> Iterator[Solution]:
        """Yield a solution for each of several budgets; those of one secret must increase."""
        if (plain := self._plain_task) is None:
            yield from map(self.solve, budgets)
            return
        increasing = [next(iter(each.values())) for each in budgets]
        found = self._solver.solve_path(plain.task, increasing)
        for epsilon, solution in zip(increasing, found, strict=True):
            yield self._of_plain(plain, solution, epsilon)

    def solve(self, budgets: Mapping[Any, float]) -> Solution:
        """Return the solution for all symbols of X."""
        if (plain := self._plain_task) is not None:
            (epsilon,) = budgets.values()
            return self._of_plain(plain, self._prepared(epsilon), epsilon)
        with silenced(ConvergenceWarning):  # of parts, whose budgets nobody has asked for
            solution = self.of_symbols_that_occur(budgets)
            solution = replace(solution, upper_bound=self._bound(solution, budgets))
        self._warn_of_gap(solution, budgets)
        channel = expanded(_normalised(solution.channel), self._task.p_x, self._task.groups)
        return Solution(channel, solution.upper_bound, "+".join(self._used) or "unchanged")

    @cached_property
    def _plain_task(self) -> OccurringSymbols | None:
        """The task as solvers know it; None if it has to be made of several such tasks."""
        is_plain = len(self._task.secrets) == 1 and self._task.groups is None
        return OccurringSymbols(self._task) if is_plain else None

    @cached_property
    def _solver(self) -> Solver:
        assert self._plain_task is not None
        return self._choose(self._plain_task.task)

    @cached_property
    def _prepared(self) -> Callable[[float], Solution]:
        assert self._plain_task is not None
        return self._solver.prepared(self._plain_task.task)

    def _of_plain(self, plain: OccurringSymbols, solution: Solution, epsilon: float) -> Solution:
        """Return a solution for the symbols that occur as one for all of X."""
        # A budget on average may allow Y = X where solvers that bound every output would miss it.
        if self._task.scope == "average" and plain.leakage_unchanged <= epsilon:
            solution = Solution(np.eye(len(self._p_x)))
        channel = plain.expanded(solution.channel)
        return replace(solution, channel=channel, solver=solution.solver or self._solver.name)

    def of_symbols_that_occur(self, budgets: Mapping[Any, float]) -> Solution:
        """Return the solution for the symbols that occur."""
        secrets = secrets_of(self._task, budgets)
        faces = faces_of(self._task, secrets)
        self._check_room(budgets, faces)
        if not secrets:
            return self._joined(faces, [_unchanged(face) for face in faces])
        if self._task.groups is None and len(secrets) == 1:
            task = faces[0].plain()
            return self._plain(task, secrets[0].epsilon, self._chosen(task))
        if self._task.groups is None and len({secret.epsilon == 0 for secret in secrets}) == 2:
            return self._after_perfect_privacy(budgets)
        return self._together(secrets, faces)

    def _bound(self, solution: Solution, budgets: Mapping[Any, float]) -> float | None:
        """Return the least bound that is known: that of a solution, or of one secret alone."""
        bounds = [] if solution.upper_bound is None else [solution.upper_bound]
        reached, most = self._value(solution.channel), self._utility.of_identity(self._p_x)
        span = self._utility.span(self._p_x)
        for name, joint in self._task.secrets.items():
            if min([most, *bounds]) - reached > _LARGE_GAP * span:
                bounds += self._bounds_of(joint, budgets[name])
        # The tolerance of budgets may add a little to a bound that is reached; more is wrong.
        credible = [bound for bound in bounds if bound >= reached - DEFAULT_TOL * span]
        return max(min(credible), reached) if credible else None

    def _bounds_of(self, joint: Joint, epsilon: float) -> list[float]:
        """Return bounds by one of the secrets: other budgets, and faces, only allow less."""
        measure, scope = self._task.measure, self._task.scope
        known = joint.without_empty().without_copies()
        task = DesignTask({None: known}, measure, scope, self._utility)
        bounds = [measure.information(epsilon) + self._utility.given_sensitive(task.joint)]
        name, options = automatic(task)
        if name == OptimalSolver.name:
            found = self._plain(task, epsilon, OptimalSolver(**options)).upper_bound
            bounds += [] if found is None else [found]
        return bounds

    def _together(self, secrets: list[Secret], faces: list[Face]) -> Solution:
        if self._task.scope == "average":
            return AverageBudgets(self._task, self._chosen, secrets, faces).solve()
        return self._joined(faces, [self._per_output(face, secrets) for face in faces])

    def _plain(self, task: DesignTask, epsilon: float, solver: Solver) -> Solution:
        """Return the design for one secret."""
        unchanged = OccurringSymbols(task).leakage_unchanged
        if task.scope == "average" and unchanged <= epsilon:
            return Solution(np.eye(len(self._p_x)), task.utility.of_identity(self._p_x))
        return solver.prepared(task)(epsilon)

    def _per_output(self, face: Face, secrets: list[Secret]) -> Solution:
        if len(face.p_x) == 1:
            return _unchanged(face)
        task = face.per_output()
        is_strict = all(secret.epsilon == 0 for secret in secrets)
        return self._chosen(task).prepared(task)(0.0 if is_strict else 1.0)

    def _joined(self, faces: list[Face], solutions: list[Solution]) -> Solution:
        """Return the solutions of faces side by side, with what they bound together."""
        bound = self._utility.offset(self._p_x)
        for face, solution in zip(faces, solutions, strict=True):
            most = face.utility.of_identity(face.p_x)
            most = most if solution.upper_bound is None else min(most, solution.upper_bound)
            bound += face.share * (most - face.utility.offset(face.p_x))
        return Solution(
            side_by_side([face.symbols for face in faces], [s.channel for s in solutions]), bound
        )

    def _after_perfect_privacy(self, budgets: Mapping[Any, float]) -> Solution:
        """Return a design where some secrets must not leak at all, and others may a little.

        First X is replaced by the best K that says nothing about the former, then K is released
        for the latter; or nothing is said about either. Also, all are tried at once, with tiny
        budgets in place of those of zero, which bounds what is possible; rounding may prevent that
        its outputs are allowed.
        """
        strict = {name: 0.0 for name, epsilon in budgets.items() if epsilon == 0}
        lenient = {name: e for name, e in budgets.items() if name not in strict}
        first = self._for_some(self._task, strict)
        second = self._for_some(self._seen_through(first.channel, lenient), lenient)
        nothing = self._for_some(self._task, dict.fromkeys(budgets, 0.0))
        found = [_normalised(first.channel) @ _normalised(second.channel), nothing.channel]
        bounds = [first.upper_bound, self._for_some(self._task, lenient).upper_bound]
        with suppress(SolverError):
            secrets = secrets_of(self._task, budgets)
            nearly = self._together(secrets, faces_of(self._task, secrets))
            bounds.append(nearly.upper_bound)
            found += [nearly.channel] if self._is_within(nearly.channel, budgets) else []
        best = max(found, key=self._value)
        known = [bound for bound in bounds if bound is not None]
        return Solution(best, min(known, default=None))

    def _for_some(self, task: DesignTask, budgets: Mapping[Any, float]) -> Solution:
        """Return the solution for some of the secrets, for the symbols that occur."""
        part = replace(task, secrets={name: task.secrets[name] for name in budgets})
        return SampleDesign(part, self._chosen).of_symbols_that_occur(budgets)

    def _seen_through(self, channel: FloatArray, names: Mapping[Any, float]) -> DesignTask:
        """Return the task of releasing the outputs K of a channel in place of X."""
        channel = _normalised(channel)
        p_k = self._p_x @ channel
        channel, p_k = channel[:, p_k > 0], p_k[p_k > 0]
        secrets = {n: _joint(self._known(self._task.secrets[n]) @ channel) for n in names}
        through = Through(self._utility, self._p_x[:, None] * channel / p_k)
        faces = np.zeros(len(p_k), dtype=int)
        return replace(self._task, secrets=secrets, utility=through, faces=faces)

    def _is_within(self, channel: FloatArray, budgets: Mapping[Any, float]) -> bool:
        """Return whether a channel for the symbols that occur keeps all budgets."""
        scope, measure = self._task.scope, self._task.measure
        return all(
            leakage_of(scope, measure, self._known(joint), _normalised(channel))
            <= measure.budget(budgets[name])
            for name, joint in self._task.secrets.items()
        )

    def _known(self, joint: Joint) -> FloatArray:
        """Return P_SX of the symbols that occur."""
        return joint.p_sx[:, self._occurs]

    def _value(self, channel: FloatArray) -> float:
        return self._utility.of_channel(self._p_x, _normalised(channel))

    def _chosen(self, task: DesignTask) -> Solver:
        """Return the solver of a plain task."""
        solver = self._choose(task)
        if self._task.scope == "average" and solver.name not in _ANY_AVERAGE:
            beside = len(self._task.secrets) == 1
            raise ValueError(
                Message(
                    f"The solver {solver.name!r} cannot share a budget with ",
                    Setting("scope", "average"),
                    f" between {'groups of X' if beside else 'several secrets'}: use one of "
                    f"{', '.join(_ANY_AVERAGE)}, or ",
                    Setting("scope", "per_output"),
                    ".",
                )
            )
        self._used[solver.name] = None
        return solver

    def _check_room(self, budgets: Mapping[Any, float], faces: list[Face]) -> None:
        """Check that the columns beside the release do not exceed a budget by themselves."""
        if self._task.groups is None:
            return
        finite = [name for name in self._task.secrets if budgets[name] < np.inf]
        shares = np.array([face.share for face in faces])
        for i, name in enumerate(finite):
            starts = np.array([face.starts[i] for face in faces])
            is_average, worst = self._task.scope == "average", int(starts.argmax())
            value = float(shares @ starts) if is_average else float(starts[worst])
            leakage = float(self._task.measure.inverse(value))
            if not leakage <= self._task.measure.budget(budgets[name]):
                label = self._task.face_labels[worst]
                raise _too_much_beside(name, label, leakage, budgets[name], is_average)

    def _warn_of_gap(self, solution: Solution, budgets: Mapping[Any, float]) -> None:
        """Warn where solvers that certify what they find have stopped before."""
        if solution.upper_bound is None or not self._used.keys() <= _CERTIFYING:
            return
        span = self._utility.span(self._p_x)
        gap = (solution.upper_bound - self._value(solution.channel)) / span if span else 0.0
        if gap > _LARGE_GAP:
            warn(
                Message(
                    "The search has stopped at ",
                    Setting("epsilon", as_given(budgets)),
                    f": the mechanism keeps every budget, but it may fall short of the optimum by "
                    f"up to {gap:.2g} of the largest utility.",
                    InPython(" See mechanism.gap."),
                ),
                ConvergenceWarning,
            )


def _joint(p_sx: FloatArray) -> Joint:
    n_s, n_x = p_sx.shape
    return Joint(p_sx, tuple(range(n_s)), tuple(range(n_x)))


def _unchanged(face: Face) -> Solution:
    return Solution(np.eye(len(face.p_x)), face.utility.of_identity(face.p_x))


def _normalised(channel: FloatArray) -> FloatArray:
    """Return a channel whose rows sum to 1."""
    return channel / channel.sum(axis=1, keepdims=True)


def _too_much_beside(
    name: Any, label: Any, leakage: float, epsilon: float, is_average: bool
) -> BesideError:
    """Return the error of columns that exceed a budget by themselves."""
    about = SENSITIVE if name is None else repr(name)
    what = f"the value {label!r} says {leakage:.4g}"
    if is_average:
        what = f"their values say {leakage:.4g} on average ({label!r} says most)"
    return BesideError(
        Message(
            "No mechanism keeps ",
            Setting("epsilon", epsilon),
            f" beside these columns: {what} about ",
            about,
            " by itself. The smallest ",
            Named("epsilon"),
            f" that would do is {_rounded_up(leakage)}; the other way out is to release these "
            f"columns too, instead of publishing them as they are.",
        )
    )


def _rounded_up(figure: float) -> str:
    """Return a figure with four digits, none of which makes it smaller."""
    shown = float(f"{figure:.3e}")
    return f"{shown if shown >= figure else shown * (1 + 1e-3):.4g}"
