"""Operations on the matrix of a channel: merge outputs, mix with independence."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from ._typing import FloatArray, IntArray
from .exceptions import SolverError
from .geometry import Points, normalised
from .utilities import Utility

# With more outputs than this, there are too many pairs to tidy up all of them.
_MOST_OUTPUTS = 200

# Outputs rarer than this are left over from the linear programs.
_DUST = 1e-9


class Merging:
    """Outputs that are merged one pair after another, the one that costs least utility first.

    What mergers cost is kept for all pairs: a merger changes it for one output only. groups : of
    the symbols of X; outputs of different groups are never merged.
    """

    def __init__(
        self,
        channel: FloatArray,
        p_x: FloatArray,
        utility: Utility,
        groups: IntArray | None = None,
    ) -> None:
        self.channel, self._utility = channel, utility
        self._joint = (p_x[:, None] * channel).T
        of_symbols = np.zeros(len(p_x), dtype=int) if groups is None else groups
        self._groups = of_symbols[channel.argmax(axis=0)]
        self._worth = self._worth_of(self._joint)
        n = len(self._joint)
        self._costs = np.full((n, n), np.inf)  # of pairs (i, j) with i < j
        for i in range(n - 1):
            self._costs[i, i + 1 :] = self._costs_with(i, np.arange(i + 1, n))

    def __len__(self) -> int:
        return len(self._joint)

    @property
    def cost(self) -> float:
        """The cost of the cheapest merger."""
        return float(self._costs.min())

    def cheapest_pairs(self) -> list[tuple[int, int]]:
        """Return, for each output, the pair with the one that it is cheapest to merge it with."""
        costs = np.minimum(self._costs, self._costs.T)
        found = [
            (i, j) for i, j in enumerate(costs.argmin(axis=1).tolist()) if costs[i, j] < np.inf
        ]
        return list(dict.fromkeys((min(pair), max(pair)) for pair in found))

    def merge(self) -> int:
        """Merge the two outputs whose merger costs least; return which one is gone."""
        i, j = map(int, np.unravel_index(self._costs.argmin(), self._costs.shape))
        channel, joint = np.delete(self.channel, j, axis=1), np.delete(self._joint, j, axis=0)
        channel[:, i] += self.channel[:, j]
        joint[i] += self._joint[j]
        self.channel, self._joint = channel, joint
        self._worth, self._groups = np.delete(self._worth, j), np.delete(self._groups, j)
        self._worth[i] = self._worth_of(joint[i : i + 1])[0]
        self._costs = np.delete(np.delete(self._costs, j, axis=0), j, axis=1)
        before, after = np.arange(i), np.arange(i + 1, len(joint))
        self._costs[before, i] = self._costs_with(i, before)
        self._costs[i, after] = self._costs_with(i, after)
        return j

    def _worth_of(self, joint: FloatArray) -> FloatArray:
        """Return the utility of outputs with P(X, y) as rows, without the offset."""
        p_y = joint.sum(axis=1)
        posterior = joint / np.where(p_y > 0, p_y, 1.0)[:, None]
        return p_y * self._utility.value(Points.from_dense(posterior))

    def _costs_with(self, i: int, others: IntArray) -> FloatArray:
        """Return the costs of merging an output with each of others."""
        if not len(others):
            return np.zeros(0)
        merged = self._worth_of(self._joint[others] + self._joint[i])
        cost = self._worth[i] + self._worth[others] - merged
        return np.where(self._groups[others] == self._groups[i], cost, np.inf)


def merged_to(
    channel: FloatArray,
    p_x: FloatArray,
    utility: Utility,
    n_outputs: int,
    groups: IntArray | None = None,
) -> FloatArray:
    """Return the channel with so many outputs at most; there must be as many as groups of X."""
    if channel.shape[1] <= n_outputs:
        return channel
    merging = Merging(channel, p_x, utility, groups)
    while len(merging) > n_outputs:
        merging.merge()
    return merging.channel


def merged_by_label(channel: FloatArray, p_x: FloatArray, loss: FloatArray) -> FloatArray:
    """Return the channel with one output for all that the same label is best for."""
    best = ((p_x[:, None] * channel).T @ loss).argmin(axis=1)
    merged = np.stack([channel[:, best == label].sum(axis=1) for label in np.unique(best)], axis=1)
    # Outputs that hardly ever occur join the most frequent one: nothing is gained by them, and
    # integers for sampling cannot tell their probabilities.
    p_y = p_x @ merged
    is_dust = p_y < _DUST
    if not is_dust.any():
        return merged
    merged[:, p_y.argmax()] += merged[:, is_dust].sum(axis=1)
    return merged[:, ~is_dust]


def tidied(
    channel: FloatArray,
    p_x: FloatArray,
    utility: Utility,
    allowance: float,
    groups: IntArray | None = None,
) -> FloatArray:
    """Return the channel with outputs merged as long as that costs at most `allowance` in total.

    Solvers may find several points next to each other, or use one with a weight of 1e-11.
    """
    if groups is None and (loss := utility.as_loss(len(p_x))) is not None:
        return merged_by_label(channel, p_x, loss[0])
    if channel.shape[1] > _MOST_OUTPUTS:
        return channel
    merging = Merging(channel, p_x, utility, groups)
    while len(merging) > 1 and (cost := merging.cost) <= allowance:
        merging.merge()
        allowance -= max(cost, 0.0)
    return merging.channel


# Repair of channels that rounding pushed over budget, by mixing in P(Y). -------------------------

T = TypeVar("T")

# What rounding can explain: a small excess, or one that a small share of independence repairs.
# Anything else is a solver's failure.
_MOST_ROUNDING = 1e-8

# The smallest share that changes a channel: it is doubled until it is enough.
SMALLEST_SHARE = 2.0**-53

# The largest share of independence that is mixed in: more would cost utility.
_MOST_SHARE = 0.01


def independent(
    channel: FloatArray, p_x: FloatArray, groups: IntArray | None = None
) -> FloatArray:
    """Return the channel with the same P(Y) that tells nothing: P(Y) in every row.

    Where X belongs to groups that are known anyway, P(Y|z) for the group z of each symbol.
    """
    if groups is None:
        return np.tile(p_x @ channel, (len(p_x), 1))
    _, codes = np.unique(groups, return_inverse=True)
    joint = np.zeros((codes.max() + 1, channel.shape[1]))
    np.add.at(joint, codes, p_x[:, None] * channel)
    return normalised(joint)[codes]


def expanded(channel: FloatArray, p_x: FloatArray, groups: IntArray | None = None) -> FloatArray:
    """Return a channel for the symbols that occur as one for all: the others tell nothing."""
    whole = np.zeros((len(p_x), channel.shape[1]))
    whole[p_x > 0] = channel
    return np.where((p_x > 0)[:, None], whole, independent(whole, p_x, groups))


def repaired(
    channel: FloatArray,
    nothing: FloatArray,
    judge: Callable[[FloatArray], T],
    excess: Callable[[T], float],
) -> T:
    """Return the judgement of a channel, mixed with independence until no budget is exceeded.

    nothing : what `independent` returns. ``(1 - a) channel + a nothing`` keeps P(X) and P(Y) and
    moves every posterior toward the prior, or toward P(S|z) of its group, by the same share a, so
    every convex measure falls.
    """
    judged, share = judge(channel), SMALLEST_SHARE
    before = excess(judged)
    while not excess(judged) <= 0:
        if share > (_MOST_SHARE if before <= _MOST_ROUNDING else _MOST_ROUNDING):
            raise SolverError(
                f"The solver returned a channel that exceeds its budget by {before}, which "
                f"rounding cannot explain."
            )
        judged = judge(normalised((1 - share) * channel + share * nothing))
        share *= 2
    return judged
