"""Smaller tasks with the same answers: each class makes one, and translates its answers back."""

from functools import cached_property

import numpy as np

from .._typing import FloatArray, IntArray
from ..geometry import Points
from ..joint import SAME_DIGITS
from ..measures.leakage import leakage_unchanged
from .task import DesignTask


class OccurringSymbols:
    """Only the symbols that occur, with values of S that have the same P(X|s) merged.

    Attributes
    ----------
    task : DesignTask
        The task about these symbols.
    """

    def __init__(self, task: DesignTask) -> None:
        self._p_x = task.joint.p_x
        joint = task.joint.without_empty().without_copies()
        self.task = task.about(joint, utility=task.utility.restricted(self._p_x > 0))

    @cached_property
    def leakage_unchanged(self) -> float:
        """What releasing X itself leaks."""
        return leakage_unchanged(self.task.scope, self.task.measure, self.task.joint.p_sx)

    def expanded(self, channel: FloatArray) -> FloatArray:
        """Return a channel for these symbols, with rows scaled to 1, as one for all of X."""
        whole = np.zeros((len(self._p_x), channel.shape[1]))
        whole[self._p_x > 0] = channel / channel.sum(axis=1, keepdims=True)
        whole[self._p_x == 0] = self._p_x @ whole  # reveals nothing, should it ever occur
        return whole


class InterchangeableSymbols:
    """Groups of symbols of X that differ neither in P(S|x) nor in use.

    The search for outputs treats a group as one symbol: no useful output needs more than one of
    several symbols with the same P(S|x), and which one makes no difference to a utility that
    treats them alike. Real tables have many such symbols: rare ones seen with one value of S only.

    Attributes
    ----------
    task : DesignTask
        The task with each group as one symbol.
    groups : ndarray of shape (n_x,)
        The group of each symbol.
    """

    def __init__(self, task: DesignTask) -> None:
        self._p_x = task.joint.p_x
        traits = np.vstack([task.joint.deviations, task.utility.traits(len(self._p_x))])
        _, representatives, groups = np.unique(
            traits.round(SAME_DIGITS), axis=1, return_index=True, return_inverse=True
        )
        self.groups = groups.reshape(-1)
        self.task = task
        if len(representatives) < len(self.groups):
            self.task = task.about(
                task.joint.merged(self.groups), utility=task.utility.restricted(representatives)
            )

    @property
    def are_distinct(self) -> bool:
        """Whether every group has one symbol, at its own place."""
        return len(self.task.joint.p_x) == len(self.groups)

    def expanded(
        self, points: Points, charges: FloatArray | None = None
    ) -> tuple[Points, FloatArray | None]:
        """Return points over all symbols of X whose mixtures include those of `points`.

        Also return what each uses of a budget on average, where that is given. The points include
        those of the independent output, which tell which symbol of its group X was.
        """
        if self.are_distinct:
            return points, charges
        points = Points.concatenate([points, Points.from_dense(self.task.joint.p_x[None])])
        points, origin = self.split(points)
        return points, None if charges is None else np.append(charges, 0.0)[origin]

    def split(self, points: Points) -> tuple[Points, IntArray]:
        """Return `points` in terms of all symbols of X, and which of them each comes from.

        The symbols of each group are laid side by side on [0, 1], by their share of the group. At
        any place there is one symbol of each group, and it stays the same until the next symbol
        begins: one point for each of these intervals gives the shares that are needed.
        """
        parts = [self._split(*pair) for pair in zip(points.support, points.values, strict=True)]
        origin = np.repeat(np.arange(len(points)), [len(part) for part in parts])
        return Points.concatenate(parts), origin

    def _split(self, support: IntArray, values: FloatArray) -> Points:
        support, values = support[values > 0], values[values > 0]
        members = [np.flatnonzero(self.groups == group) for group in support]
        ends = [np.cumsum(self._p_x[m]) / self._p_x[m].sum() for m in members]
        cuts = np.unique(np.concatenate([[0.0, 1.0], *(end[:-1] for end in ends)]))
        middles = (cuts[1:] + cuts[:-1]) / 2
        symbols = [
            m[np.minimum(np.searchsorted(end, middles), len(m) - 1)]
            for m, end in zip(members, ends, strict=True)
        ]
        return Points(np.stack(symbols, axis=1), np.tile(values, (len(middles), 1)))
