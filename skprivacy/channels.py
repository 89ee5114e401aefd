"""Channels P(Y|X): the matrix with its labels, outputs merged, and repairs by independence."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, Self, TypeVar

import numpy as np

from ._json import label_key
from ._typing import FloatArray, IntArray, Labels
from ._validation import message
from .exceptions import SolverError
from .geometry import Points, normalised
from .joint import readonly
from .measures.measure import posteriors
from .utilities import NO_UTILITY, Utility, mutual_information

# With more outputs than this, there are too many pairs to tidy up all of them.
_MOST_OUTPUTS = 200

# Outputs rarer than this are left over from the linear programs.
_DUST = 1e-9


class Merging:
    """Outputs that are merged one pair after another, the one that costs least utility first.

    What mergers cost is kept for all pairs: a merger changes it for one output only. strata : of
    the symbols of X; outputs of different strata are never merged.
    """

    def __init__(
        self,
        channel: FloatArray,
        p_x: FloatArray,
        utility: Utility,
        strata: IntArray | None = None,
    ) -> None:
        self.channel, self._utility = channel, utility
        self._joint = (p_x[:, None] * channel).T
        of_symbols = np.zeros(len(p_x), dtype=int) if strata is None else strata
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
    strata: IntArray | None = None,
) -> FloatArray:
    """Return the channel with so many outputs at most; there must be as many as strata of X."""
    if channel.shape[1] <= n_outputs:
        return channel
    merging = Merging(channel, p_x, utility, strata)
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
    strata: IntArray | None = None,
) -> FloatArray:
    """Return the channel with outputs merged as long as that costs at most `allowance` in total.

    Solvers may find several points next to each other, or use one with a weight of 1e-11.
    """
    if strata is None and (loss := utility.as_loss(len(p_x))) is not None:
        return merged_by_label(channel, p_x, loss[0])
    if channel.shape[1] > _MOST_OUTPUTS:
        return channel
    merging = Merging(channel, p_x, utility, strata)
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
    channel: FloatArray, p_x: FloatArray, strata: IntArray | None = None
) -> FloatArray:
    """Return the channel with the same P(Y) that tells nothing: P(Y) in every row.

    Where X belongs to strata that are known anyway, P(Y|z) for the group z of each symbol.
    """
    if strata is None:
        return np.tile(p_x @ channel, (len(p_x), 1))
    _, codes = np.unique(strata, return_inverse=True)
    joint = np.zeros((codes.max() + 1, channel.shape[1]))
    np.add.at(joint, codes, p_x[:, None] * channel)
    return normalised(joint)[codes]


def expanded(channel: FloatArray, p_x: FloatArray, strata: IntArray | None = None) -> FloatArray:
    """Return a channel for the symbols that occur as one for all: the others tell nothing."""
    whole = np.zeros((len(p_x), channel.shape[1]))
    whole[p_x > 0] = channel
    return np.where((p_x > 0)[:, None], whole, independent(whole, p_x, strata))


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


# Channel: P(Y|X), the names of its symbols, and how much of X it keeps.


OWNER = "Mechanism"

# How far the sums of the rows of a channel may be from 1.
ROW_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Frozen:
    """What has arrays that nobody writes to, and figures that are computed once."""

    def _set(self, **values: Any) -> Self:
        for name, value in values.items():
            object.__setattr__(self, name, value)
        return self

    def _copy(self, **values: Any) -> Self:
        """Return a copy that keeps what was computed: for what no figure depends on."""
        return copy(self)._set(**values)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # numpy unlocks arrays when they are copied or unpickled
        self.__dict__.update(state)
        for value in state.values():
            if isinstance(value, np.ndarray):
                readonly(value)


@dataclass(frozen=True, eq=False)
class Channel(Frozen):
    """How X becomes Y.

    matrix : P(Y = y | X = x), of shape (n_x, n_y); p_x : the distribution of X; objective : what
    `utility` measures; strata : where columns are published beside Y, their value for each symbol
    of X, as a number: every output belongs to one of them; symbol_of_output : the symbol of X that
    each output is released as, None where outputs have no names.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> channel = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02).y_given_x
    >>> channel.matrix.shape, round(channel.normalized_utility, 3)
    ((3, 3), 0.634)
    """

    matrix: FloatArray
    p_x: FloatArray
    x_labels: Labels
    y_labels: Labels
    objective: Utility
    strata: IntArray | None = None
    symbol_of_output: IntArray | None = None

    def __post_init__(self) -> None:
        for name in ("matrix", "p_x"):
            self._set(**{name: readonly(np.array(getattr(self, name), dtype=float, order="C"))})
        if self.strata is not None:
            strata = np.array(self.strata, dtype=np.intp)
            strata.flags.writeable = False
            self._set(strata=strata)
        p_x, matrix = self.p_x, self.matrix
        if matrix.ndim != 2 or p_x.shape != matrix.shape[:1]:
            raise ValueError(
                f"The channel must have one row for each of the {len(p_x)} symbols of X. "
                f"Got shape {matrix.shape}."
            )
        if not (matrix >= 0).all():  # NaN fails too
            raise ValueError("The channel must hold probabilities: no negative numbers, no NaN.")
        error = np.abs(matrix.sum(axis=1) - 1).max()
        if not error <= ROW_TOLERANCE:
            raise ValueError(f"The rows of the channel must sum to 1. They are off by {error}.")
        if not (p_x >= 0).all() or not abs(p_x.sum() - 1) <= ROW_TOLERANCE:
            raise ValueError(f"The distribution of X must sum to 1. Got a sum of {p_x.sum()}.")
        self._check_groups()
        self._check_names()

    def _check_groups(self) -> None:
        """Check that no output mixes symbols of X with different values beside it."""
        if (strata := self.strata) is None:
            return
        if strata.shape != self.p_x.shape:
            requirement = f"None, or one group for each of the {len(self.p_x)} symbols of X"
            raise ValueError(message(OWNER, "strata", requirement, strata))
        of_output = strata[self.matrix.argmax(axis=0)]
        if ((self.matrix > 0) & (strata[:, None] != of_output)).any():
            raise ValueError(
                "An output mixes symbols of different strata: beside the columns that are "
                "published it would say more than its leakage tells."
            )

    def _check_names(self) -> None:
        n_x, n_y = self.matrix.shape
        check_labels("x_labels", self.x_labels, n_x)
        check_labels("y_labels", self.y_labels, n_y)
        if self.symbol_of_output is None:
            return
        symbols = np.array(self.symbol_of_output)
        is_one_each = symbols.shape == (n_y,) and symbols.dtype.kind in "iu"
        if not is_one_each or not ((symbols >= 0) & (symbols < n_x)).all():
            requirement = f"None, or {n_y} positions of symbols of X, which has {n_x}"
            given = self.symbol_of_output
            raise ValueError(message(OWNER, "symbol_of_output", requirement, given))
        symbols.flags.writeable = False
        self._set(symbol_of_output=symbols)

    def renamed(
        self,
        *,
        x_labels: Labels | None = None,
        y_labels: Labels | None = None,
        symbol_of_output: IntArray | None = None,
    ) -> Channel:
        """Return the same channel with other names; None keeps those that it has."""
        names = {"x_labels": x_labels, "y_labels": y_labels, "symbol_of_output": symbol_of_output}
        made = self._copy(**{name: given for name, given in names.items() if given is not None})
        made._check_names()
        return made

    def is_renamed(self, other: Channel) -> bool:
        """Whether it is another channel but for names."""
        pairs = [(getattr(self, n), getattr(other, n)) for n in ("matrix", "p_x", "strata")]
        return all(ours is theirs for ours, theirs in pairs)

    def with_matrix(self, matrix: FloatArray) -> Channel:
        """Return another channel for the same X."""
        n_y = np.shape(matrix)[-1]
        labels = self.y_labels if n_y == len(self.y_labels) else tuple(range(n_y))
        return Channel(matrix, self.p_x, self.x_labels, labels, self.objective, self.strata)

    @cached_property
    def p_y(self) -> FloatArray:
        """``P(Y)``, of shape (n_y,)."""
        return readonly(self.p_x @ self.matrix)

    @cached_property
    def posterior(self) -> FloatArray:
        """``P(X | Y = y)``, of shape (n_y, n_x); P(X) for an output of probability zero."""
        return readonly(posteriors(self.p_x[:, None] * self.matrix, self.p_y, self.p_x))

    @cached_property
    def utility(self) -> float:
        """The utility that the channel was designed for: ``I(X;Y)`` unless `objective` differs."""
        return self.objective.of_channel(self.p_x, self.matrix)

    @cached_property
    def mutual_information(self) -> float:
        """``I(X;Y)`` in nats, whatever the objective."""
        return mutual_information(self.p_x[:, None] * self.matrix)

    @cached_property
    def largest_utility(self) -> float:
        """The utility of releasing X itself."""
        return self.objective.largest(self.p_x)

    @cached_property
    def least_utility(self) -> float:
        """The utility of releasing nothing, or nothing but the columns beside."""
        return self.objective.least(self.p_x, self.strata)

    def normalized(self, utility: float) -> float:
        """Return a utility as a share of what there is to keep; 1 where there is nothing."""
        room = self.largest_utility - self.least_utility
        return (utility - self.least_utility) / room if room > NO_UTILITY else 1.0

    @property
    def normalized_utility(self) -> float:
        """The share of the utility of X that is kept, beyond what a constant output has.

        1 where there is none to keep.
        """
        return self.normalized(self.utility)

    @property
    def cell_utility(self) -> float:
        """The `normalized_utility` of symbols as they are: less than 1 if they are cells of X."""
        return self.normalized(self.objective.of_identity(self.p_x))

    @cached_property
    def independent(self) -> FloatArray:
        """The channel that tells no more than the columns beside it, with the same P(Y).

        P(Y) in every row, or P(Y|z) where columns z are published beside Y.
        """
        p_x = self.p_x
        if self.strata is not None:  # nothing is known of a group without rows
            _, codes = np.unique(self.strata, return_inverse=True)
            p_x = np.where(np.bincount(codes, p_x)[codes] == 0, 1.0, p_x)
        return readonly(independent(self.matrix, p_x, self.strata))

    @property
    def unseen(self) -> FloatArray:
        """What values of X that nobody has seen are drawn from: P(Y) in one row.

        Where columns z are published beside Y, P(Y|z), a row for each z.
        """
        if self.strata is None:
            return self.p_y[None]
        return self.independent[np.unique(self.strata, return_index=True)[1]]


def of_channel(name: str) -> Any:
    """Return a property that is a figure of the channel `y_given_x`."""
    return property(attrgetter(f"y_given_x.{name}"), doc=doc_of(Channel, name))


def doc_of(kind: type, name: str) -> str:
    """Return what the docstring of a figure says."""
    return getattr(kind, name).__doc__ if hasattr(kind, name) else f"As in `{kind.__name__}`."


def check_labels(name: str, labels: Labels | None, count: int) -> None:
    """Check that there is a name for each symbol, and that all are different."""
    keys = {(type(label), label_key(label)) for label in labels or ()}
    if not isinstance(labels, tuple) or len(labels) != count or len(keys) != count:
        given = "others" if name == "s_labels" else labels  # strata of S are not shown
        raise ValueError(message(OWNER, name, f"a tuple of {count} different names", given))


def constant_output(p_x: FloatArray, strata: IntArray | None) -> FloatArray:
    """Return the channel with a constant output, or one output per stratum of X."""
    return np.ones((len(p_x), 1)) if strata is None else np.eye(strata.max() + 1)[strata]
