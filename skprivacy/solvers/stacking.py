"""Several secrets, or columns published beside a release, as tasks with one secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from .._typing import BoolArray, FloatArray, Scope
from ..joint import Joint
from ..measures import KL, Measure
from ..measures.base import BUDGET_ATOL
from ..measures.stacked import Block, Stacked
from .base import DesignTask

# A budget of zero beside others is taken as this budget of kl, less than every budget tolerates:
# whatever the measure, it means that outputs are independent of S.
_ZERO, _NEARLY_INDEPENDENT = BUDGET_ATOL / 2, KL()

# Start, scale and tilt of a `Block`.
_Allowed: TypeAlias = tuple[float, float, FloatArray | None]


@dataclass(frozen=True, eq=False)
class Secret:
    """The joint of one secret with X, without groups that do not occur, and its budget."""

    joint: Joint
    epsilon: float
    measure: Measure

    @property
    def threshold(self) -> float:
        """The largest g that the budget allows."""
        return float(self.measure.threshold(max(self.epsilon, _ZERO)))


def secrets_of(task: DesignTask, budgets: Mapping[Any, float]) -> list[Secret]:
    """Return the secrets that have a finite budget, about the symbols of X that occur.

    Groups that differ in nothing are merged, unless what they say of a part of X matters.
    """
    found = []
    for name in [name for name in task.secrets if budgets[name] < np.inf]:
        joint = task.secrets[name].without_empty()
        joint = joint.without_copies() if task.groups is None else joint
        measure = _NEARLY_INDEPENDENT if budgets[name] == 0 else task.measure
        found.append(Secret(joint, budgets[name], measure))
    return found


class Face:
    """The part of a task whose symbols share one value of the columns that are published.

    Its centre is P(X|z), which tells what z tells.

    Attributes
    ----------
    symbols : ndarray of bool
        Which of the symbols that occur are on it.
    share, p_x : float, ndarray
        How often they occur, and each of them given that.
    utility : Utility
        What is to be kept, for these symbols.
    """

    def __init__(self, task: DesignTask, secrets: list[Secret], symbols: BoolArray) -> None:
        self._task, self._secrets, self.symbols = task, secrets, symbols
        p_x = task.p_x[task.p_x > 0]
        self.share = float(p_x[symbols].sum())
        self.p_x = p_x[symbols] / self.share
        self.utility = task.utility.restricted(task.p_x > 0).restricted(symbols)
        # P(S, X) of each secret, given that X is on this face.
        self._tables = [secret.joint.p_sx[:, symbols] for secret in secrets]
        if not symbols.all():
            self._tables = [table / table.sum() for table in self._tables]
        self._is_whole = task.groups is None

    @cached_property
    def starts(self) -> list[float]:
        """g at the centre, for each secret."""
        pairs = zip(self._tables, self._secrets, strict=True)
        return [float(s.measure.value(t.sum(axis=1), s.joint.p_s)) for t, s in pairs]

    def per_output(self) -> DesignTask:
        """Return the task in which every output keeps every budget; its epsilon is 1."""
        # g of what tells nothing is subtracted: it need not be what the centre of a face tells.
        is_zero = all(secret.epsilon == 0 for secret in self._secrets)
        allowed: list[_Allowed] = []
        for secret in self._secrets:
            start = float(secret.measure.value(secret.joint.p_s, secret.joint.p_s))
            allowed.append((start, 1.0 if is_zero else secret.threshold - start, None))
        return self._stacked("per_output", allowed)

    def on_average(self, rooms: FloatArray, weights: FloatArray) -> DesignTask:
        """Return the task in which outputs share one budget: a weighted sum over secrets.

        rooms : how much each secret may leak beyond what the centres of all faces do. Minus its
        tangent at the centre, g averages to that excess, and it is never negative.
        """
        allowed: list[_Allowed] = [(s, r, None) for s, r in zip(self.starts, rooms, strict=True)]
        if not self._is_whole:
            for i, (table, secret) in enumerate(zip(self._tables, self._secrets, strict=True)):
                centre = table.sum(axis=1)
                tilt = secret.measure.subgradient(centre, secret.joint.p_s)
                allowed[i] = self.starts[i] - float(centre @ tilt), rooms[i], tilt
        return self._stacked("average", allowed, weights)

    def _stacked(
        self, scope: Scope, allowed: list[_Allowed], weights: FloatArray | None = None
    ) -> DesignTask:
        """Return the task about the secrets one below the other."""
        share, first = 1 / len(self._secrets), 0
        blocks, tables = [], []
        for table, secret, own in zip(self._tables, self._secrets, allowed, strict=True):
            kept = None if self._is_whole else np.flatnonzero(table.sum(axis=1) > 0)
            tables.append(share * (table if kept is None else table[kept]))
            rows = slice(first, first + len(tables[-1]))
            first = rows.stop
            blocks.append(Block(secret.measure, rows, share, secret.joint.p_s, kept, *own))
        implied = None
        if self._is_whole and weights is None:  # deviations of lifts that imply all budgets
            each = [secret.measure.implied_deviations(secret.epsilon) for secret in self._secrets]
            known = [bounds for bounds in each if bounds is not None]
            if len(known) == len(each):
                implied = max(low for low, _ in known), min(high for _, high in known)
        stack = np.vstack(tables)
        measure = Stacked(blocks, weights, implied)
        return DesignTask({None: Joint.numbered(stack)}, measure, scope, self.utility)


def faces_of(task: DesignTask, secrets: list[Secret]) -> list[Face]:
    """Return the faces of a task: one for all symbols, unless columns are published beside."""
    faces = task.faces[task.p_x > 0]
    return [Face(task, secrets, faces == z) for z in np.unique(faces)]


def side_by_side(parts: Sequence[BoolArray], channels: Sequence[FloatArray]) -> FloatArray:
    """Return the channels of parts of X as one: no output belongs to two of them.

    parts : for each channel, a mask of its symbols.
    """
    n_outputs = [channel.shape[1] for channel in channels]
    whole = np.zeros((len(parts[0]), sum(n_outputs)))
    for symbols, channel, stop in zip(parts, channels, np.cumsum(n_outputs), strict=True):
        whole[symbols, stop - channel.shape[1] : stop] = channel
    return whole
