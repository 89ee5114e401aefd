"""Bounds by fewer groups of S: fusing groups adds no leakage, so every budget allows more.

With two groups the optimum is known exactly, with three it is found soon. Where S mostly differs
in one way, as in real tables, these are nearly as strict as all groups.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._typing import IntArray
from .._warnings import silenced
from ..joint import Joint
from ..utilities import mutual_information
from .base import Solution
from .optimal import OptimalSolver
from .task import DesignTask

# Up to so many groups of S, all ways to tell two kinds of them apart are known; otherwise only
# those of one group against the rest.
_MOST_GROUPS = 10

# How many ways are tried, those that X tells most about first: of two kinds, by scope, and of
# three, for so many seconds each, with so many symbols of X at most.
_PAIRS = {"per_output": 12, "average": 3}
_TRIPLES, _SECONDS, _MOST_SYMBOLS = 2, 3.0, 80

_TOL = 1e-4


class CoarserGroups:
    """What no mechanism keeps more of, judged by tasks with two or three groups of S."""

    def __init__(self, task: DesignTask) -> None:
        self._task = task
        n_s = len(task.joint.p_s)
        self._is_known = task.measure.is_monotone and n_s > 2
        self._pairs = [Coarser(task, codes) for codes in _pairs(n_s)] if self._is_known else []
        self._pairs.sort(key=lambda pair: -pair.told)
        del self._pairs[_PAIRS[task.scope] :]
        self._triples: list[Coarser] | None = None

    def bound(self, epsilon: float, reached: float, deadline: float = np.inf) -> float:
        """Return the least bound that is found on the utility, infinity for none.

        reached : it need not be smaller than this by much.
        """
        if not self._pairs:
            return np.inf
        bounds = [pair.bound(epsilon, deadline) for pair in self._pairs]
        least = min(bounds)
        close = reached + _TOL * self._task.utility.span(self._task.joint.p_x)
        if least > close and len(self._task.joint.p_x) <= _MOST_SYMBOLS:
            best = self._pairs[int(np.argmin(bounds))]
            least = min([least, *(t.bound(epsilon, deadline) for t in self._refined(best))])
        return least

    def _refined(self, best: Coarser) -> list[Coarser]:
        """Return ways to tell three kinds of groups apart, one of the best two being split."""
        if self._triples is None:
            found = [Coarser(self._task, codes) for codes in _splits(best.codes)]
            self._triples = sorted(found, key=lambda triple: -triple.told)[:_TRIPLES]
        return self._triples


class Coarser:
    """A task with some groups of S fused.

    codes : the new group of each; told : what X tells about it, in nats.
    """

    def __init__(self, task: DesignTask, codes: IntArray) -> None:
        self.codes = codes
        fused = np.zeros((codes.max() + 1, len(task.joint.p_x)))
        np.add.at(fused, codes, task.joint.p_sx)
        self.told = mutual_information(fused)
        joint = Joint(fused, tuple(range(len(fused))), task.joint.x_labels)
        self._task = task.about(joint.without_copies())
        self._solve: Callable[[float], Solution] | None = None

    def bound(self, epsilon: float, deadline: float) -> float:
        """Return the bound on the utility that the task proves."""
        left = min(deadline - time.perf_counter(), _SECONDS)
        if left <= 0:
            return np.inf
        if self._solve is None:
            self._solve = OptimalSolver(tol=_TOL, max_time=left).prepared(self._task)
        with silenced(ConvergenceWarning):  # a bound is true wherever the search has stopped
            found = self._solve(epsilon).upper_bound
        return np.inf if found is None else found


def _pairs(n_s: int) -> Iterator[IntArray]:
    """Yield all ways to tell two kinds of groups apart, or one group from the rest."""
    if n_s > _MOST_GROUPS:
        yield from np.eye(n_s, dtype=int)
        return
    for others in product((0, 1), repeat=n_s - 1):
        if any(others):
            yield np.array((0, *others))


def _splits(codes: IntArray) -> Iterator[IntArray]:
    """Yield the ways to split one of two kinds of groups in two."""
    for kind in (0, 1):
        members = np.flatnonzero(codes == kind)
        if len(members) < 2 or len(members) > _MOST_GROUPS:
            continue
        for split in _pairs(len(members)):
            new = codes.copy()
            new[members] = np.where(split == 1, 2, kind)
            yield new
