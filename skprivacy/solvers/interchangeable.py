"""Symbols of X that say the same about S: they are one symbol to the search for outputs.

Of symbols with the same P(S|x) no useful output needs more than one, and which one makes no
difference to a utility that treats them alike. Real tables have many: rare symbols that go with
one group only.
"""

import numpy as np

from .._typing import FloatArray, IntArray
from ..geometry import Points
from ..joint import Joint
from ..utilities import Utility

# Deviations that agree to so many digits are the same.
_DIGITS = 13


class InterchangeableSymbols:
    """The symbols of X by groups that differ neither in P(S|x) nor in use.

    Attributes
    ----------
    groups : ndarray of shape (n_x,)
        The group of each symbol.
    representatives : ndarray
        A symbol of each group.
    """

    def __init__(self, joint: Joint, utility: Utility) -> None:
        traits = np.vstack([joint.deviations, utility.traits(len(joint.p_x))]).round(_DIGITS)
        _, self.representatives, groups = np.unique(
            traits, axis=1, return_index=True, return_inverse=True
        )
        self.groups = groups.reshape(-1)
        self._p_x = joint.p_x

    @property
    def are_distinct(self) -> bool:
        """Whether every group has one symbol, at its own place."""
        return len(self.representatives) == len(self.groups)

    def expanded(self, points: Points) -> tuple[Points, IntArray]:
        """Return points of all symbols of X whose mixtures include those of `points`, and which.

        The second array has the one of `points` that each comes from.

        The symbols of each group are laid side by side on [0, 1], by their share of the group. At
        any place there is one symbol of each group, and between two ends of symbols it is the
        same: as many points as there are such intervals have the shares that are needed.
        """
        parts = [self._expanded(*pair) for pair in zip(points.support, points.values, strict=True)]
        origin = np.repeat(np.arange(len(points)), [len(part) for part in parts])
        return Points.concatenate(parts), origin

    def _expanded(self, support: IntArray, values: FloatArray) -> Points:
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
