"""Channels P(Y|X) with their labels; merging of outputs; repair of rounding errors."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np

from ._json import label_key
from ._typing import FloatArray, IntArray, Labels
from ._validation import message
from .exceptions import SolverError
from .geometry import Points, normalised
from .joint import readonly
from .measures.measure import posteriors
from .utilities import NO_UTILITY, Utility, mutual_information

# The stratum of each symbol of X, if columns are published beside the release.
Strata: TypeAlias = IntArray | None


class Merging:
    """Merges outputs pair by pair, always the pair whose merger costs least utility.

    The costs of all pairs are cached: a merger changes only those of one output. strata : the
    stratum of each symbol of X; outputs of different strata are never merged.
    """

    def __init__(
        self, channel: FloatArray, p_x: FloatArray, utility: Utility, strata: Strata = None
    ) -> None:
        self.channel, self._utility = channel, utility
        self._joint = (p_x[:, None] * channel).T
        stratum_of_symbol = np.zeros(len(p_x), dtype=int) if strata is None else strata
        self._strata = stratum_of_symbol[channel.argmax(axis=0)]
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
        """Return, for each output, its pair with the output that is cheapest to merge it with."""
        costs = np.minimum(self._costs, self._costs.T)
        pairs = enumerate(costs.argmin(axis=1).tolist())
        return list(dict.fromkeys((min(p), max(p)) for p in pairs if costs[p] < np.inf))

    def merge(self) -> int:
        """Merge the cheapest pair; return the index of the output that is gone."""
        i, j = map(int, np.unravel_index(self._costs.argmin(), self._costs.shape))
        channel, joint = np.delete(self.channel, j, axis=1), np.delete(self._joint, j, axis=0)
        channel[:, i] += self.channel[:, j]
        joint[i] += self._joint[j]
        self.channel, self._joint = channel, joint
        self._worth, self._strata = np.delete(self._worth, j), np.delete(self._strata, j)
        self._worth[i] = self._worth_of(joint[i : i + 1])[0]
        self._costs = np.delete(np.delete(self._costs, j, axis=0), j, axis=1)
        before, after = np.arange(i), np.arange(i + 1, len(joint))
        self._costs[before, i] = self._costs_with(i, before)
        self._costs[i, after] = self._costs_with(i, after)
        return j

    def _worth_of(self, joint: FloatArray) -> FloatArray:
        """Return the utility of each output, without the offset; joint : P(X, y) as rows."""
        p_y = joint.sum(axis=1)
        posterior = joint / np.where(p_y > 0, p_y, 1.0)[:, None]
        return p_y * self._utility.value(Points.from_dense(posterior))

    def _costs_with(self, i: int, others: IntArray) -> FloatArray:
        """Return the costs of merging output i with each of `others`."""
        if not len(others):
            return np.zeros(0)
        merged = self._worth_of(self._joint[others] + self._joint[i])
        cost = self._worth[i] + self._worth[others] - merged
        return np.where(self._strata[others] == self._strata[i], cost, np.inf)


def merged_to(
    channel: FloatArray, p_x: FloatArray, utility: Utility, n_outputs: int, strata: Strata = None
) -> FloatArray:
    """Merge outputs until at most `n_outputs` are left: at least one per stratum."""
    if channel.shape[1] <= n_outputs:
        return channel
    merging = Merging(channel, p_x, utility, strata)
    while len(merging) > n_outputs:
        merging.merge()
    return merging.channel


def merged_by_label(channel: FloatArray, p_x: FloatArray, loss: FloatArray) -> FloatArray:
    """Merge the outputs for which the same label is best."""
    best = ((p_x[:, None] * channel).T @ loss).argmin(axis=1)
    merged = np.stack([channel[:, best == label].sum(axis=1) for label in np.unique(best)], axis=1)
    # Outputs that hardly ever occur join the most frequent one: they add no utility, and their
    # probabilities are too small for the integers that are used for sampling.
    p_y = p_x @ merged
    is_rare = p_y < 1e-9
    if not is_rare.any():
        return merged
    merged[:, p_y.argmax()] += merged[:, is_rare].sum(axis=1)
    return merged[:, ~is_rare]


def tidied(
    channel: FloatArray, p_x: FloatArray, utility: Utility, allowance: float, strata: Strata = None
) -> FloatArray:
    """Merge outputs as long as that costs at most `allowance` of the utility in total.

    Solvers may return several nearly equal outputs, or one with a probability of 1e-11.
    """
    if strata is None and (loss := utility.as_loss(len(p_x))) is not None:
        return merged_by_label(channel, p_x, loss[0])
    if channel.shape[1] > 200:  # too many pairs
        return channel
    merging = Merging(channel, p_x, utility, strata)
    while len(merging) > 1 and (cost := merging.cost) <= allowance:
        merging.merge()
        allowance -= max(cost, 0.0)
    return merging.channel


# Repair of channels that rounding pushed over budget, by mixing in P(Y). -------------------------

T = TypeVar("T")

# Rounding explains an excess up to this, or one that a share of independence up to this repairs.
# A larger one is a failure of the solver.
_MOST_ROUNDING = 1e-8

# The smallest share that changes a channel, tried first; then it is doubled.
SMALLEST_SHARE = 2.0**-53


def independent(channel: FloatArray, p_x: FloatArray, strata: Strata = None) -> FloatArray:
    """Return the channel with the same P(Y) that is independent of X: P(Y) in every row.

    With strata, the row of each symbol is P(Y|z) of its stratum z.
    """
    if strata is None:
        return np.tile(p_x @ channel, (len(p_x), 1))
    _, codes = np.unique(strata, return_inverse=True)
    joint = np.zeros((codes.max() + 1, channel.shape[1]))
    np.add.at(joint, codes, p_x[:, None] * channel)
    return normalised(joint)[codes]


def expanded(channel: FloatArray, p_x: FloatArray, strata: Strata = None) -> FloatArray:
    """Extend a channel for the symbols that occur to all of X; the other rows are independent."""
    whole = np.zeros((len(p_x), channel.shape[1]))
    whole[p_x > 0] = channel
    return np.where((p_x > 0)[:, None], whole, independent(whole, p_x, strata))


def repaired(
    channel: FloatArray,
    nothing: FloatArray,
    judge: Callable[[FloatArray], T],
    excess: Callable[[T], float],
) -> T:
    """Return ``judge(channel)``, with independence mixed in until the excess is at most 0.

    nothing : the result of `independent`. ``(1 - a) channel + a nothing`` keeps P(X) and P(Y) and
    moves every posterior toward the prior, or toward P(S|z) of its stratum, by the same share a,
    so every convex measure falls.
    """
    judged, share = judge(channel), SMALLEST_SHARE
    before = excess(judged)
    while not excess(judged) <= 0:
        # More independence would cost utility.
        if share > (0.01 if before <= _MOST_ROUNDING else _MOST_ROUNDING):
            over = f"The solver returned a channel that exceeds its budget by {before}"
            raise SolverError(f"{over}, which rounding cannot explain.")
        judged = judge(normalised((1 - share) * channel + share * nothing))
        share *= 2
    return judged


# P(Y|X) with labels and utility. -----------------------------------------------------------------


OWNER = "Mechanism"

# How far the sums of the rows of a channel may be from 1.
ROW_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Frozen:
    """Base of immutable classes with read-only arrays and cached figures."""

    def _set(self, **values: Any) -> Self:
        for name, value in values.items():
            object.__setattr__(self, name, value)
        return self

    def _copy(self, **values: Any) -> Self:
        """Return a copy that keeps cached figures: for fields that no figure depends on."""
        return copy(self)._set(**values)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # numpy unlocks arrays when they are copied or unpickled
        self.__dict__.update(state)
        for value in state.values():
            if isinstance(value, np.ndarray):
                readonly(value)


@dataclass(frozen=True, eq=False)
class Channel(Frozen):
    """P(Y|X), with labels of symbols and outputs.

    matrix : P(Y = y | X = x), of shape (n_x, n_y); p_x : the distribution of X; objective : the
    utility it was designed for; strata : the stratum number of each symbol of X if columns are
    published beside Y, else None: every output belongs to one stratum; symbol_of_output : the
    symbol of X that each output is released as, None if outputs are not named after symbols.

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
    strata: Strata = None
    symbol_of_output: IntArray | None = None

    def __post_init__(self) -> None:
        for name in ("matrix", "p_x"):
            self._set(**{name: readonly(np.array(getattr(self, name), dtype=float, order="C"))})
        if self.strata is not None:
            self._set(strata=readonly(np.array(self.strata, dtype=np.intp)))
        p_x, matrix = self.p_x, self.matrix
        if matrix.ndim != 2 or p_x.shape != matrix.shape[:1]:
            rows = f"one row for each of the {len(p_x)} symbols of X"
            raise ValueError(f"The channel must have {rows}. Got shape {matrix.shape}.")
        if not (matrix >= 0).all():  # NaN fails too
            raise ValueError("The channel must hold probabilities: no negative numbers, no NaN.")
        error = np.abs(matrix.sum(axis=1) - 1).max()
        if not error <= ROW_TOLERANCE:
            raise ValueError(f"The rows of the channel must sum to 1. They are off by {error}.")
        if not (p_x >= 0).all() or not abs(p_x.sum() - 1) <= ROW_TOLERANCE:
            raise ValueError(f"The distribution of X must sum to 1. Got a sum of {p_x.sum()}.")
        self._check_strata()
        self._check_names()

    def _check_strata(self) -> None:
        """Check that no output mixes symbols of different strata."""
        if (strata := self.strata) is None:
            return
        if strata.shape != self.p_x.shape:
            requirement = f"None, or one number for each of the {len(self.p_x)} symbols of X"
            raise ValueError(message(OWNER, "strata", requirement, strata))
        of_output = strata[self.matrix.argmax(axis=0)]
        if ((self.matrix > 0) & (strata[:, None] != of_output)).any():
            mixes = "An output mixes symbols of different strata"
            more = "with the columns beside it, it would reveal more than its leakage says"
            raise ValueError(f"{mixes}: {more}.")

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
        self._set(symbol_of_output=readonly(symbols))

    def renamed(
        self,
        *,
        x_labels: Labels | None = None,
        y_labels: Labels | None = None,
        symbol_of_output: IntArray | None = None,
    ) -> Channel:
        """Return the same channel with other names; None keeps the present ones."""
        names = {"x_labels": x_labels, "y_labels": y_labels, "symbol_of_output": symbol_of_output}
        renamed = self._copy(**{name: new for name, new in names.items() if new is not None})
        renamed._check_names()
        return renamed

    def is_renamed(self, other: Channel) -> bool:
        """Whether `other` is the same channel, except for names."""
        pairs = [(getattr(self, n), getattr(other, n)) for n in ("matrix", "p_x", "strata")]
        return all(ours is theirs for ours, theirs in pairs)

    def with_matrix(self, matrix: FloatArray) -> Channel:
        """Return a channel with another matrix for the same X."""
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
        """The utility according to `objective`: ``I(X;Y)`` by default."""
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
        """Return a utility as a share of the range from least to largest; 1 if it is empty."""
        room = self.largest_utility - self.least_utility
        return (utility - self.least_utility) / room if room > NO_UTILITY else 1.0

    @property
    def normalized_utility(self) -> float:
        """The share of the utility of X that is kept, beyond the utility of a constant output.

        1 if a constant output is as useful as X.
        """
        return self.normalized(self.utility)

    @property
    def cell_utility(self) -> float:
        """The `normalized_utility` of unchanged symbols: less than 1 if they are cells of X."""
        return self.normalized(self.objective.of_identity(self.p_x))

    @cached_property
    def independent(self) -> FloatArray:
        """The channel with the same P(Y) that reveals no more than the columns beside it.

        P(Y) in every row, or P(Y|z) where columns z are published beside Y.
        """
        p_x = self.p_x
        if self.strata is not None:  # a stratum without rows: all symbols alike
            _, codes = np.unique(self.strata, return_inverse=True)
            p_x = np.where(np.bincount(codes, p_x)[codes] == 0, 1.0, p_x)
        return readonly(independent(self.matrix, p_x, self.strata))

    @property
    def unseen(self) -> FloatArray:
        """P(Y) in one row, for values of X that were not seen during design.

        Where columns z are published beside Y, P(Y|z), a row for each z.
        """
        if self.strata is None:
            return self.p_y[None]
        return self.independent[np.unique(self.strata, return_index=True)[1]]


def of_channel(name: str) -> Any:
    """Return a property that forwards to the channel `y_given_x`."""
    return property(attrgetter(f"y_given_x.{name}"), doc=doc_of(Channel, name))


def doc_of(kind: type, name: str) -> str:
    """Return the docstring of an attribute, or a reference to the class."""
    return getattr(kind, name).__doc__ if hasattr(kind, name) else f"As in `{kind.__name__}`."


def check_labels(name: str, labels: Labels | None, count: int) -> None:
    """Check that there is a different name for each symbol."""
    keys = {(type(label), label_key(label)) for label in labels or ()}
    if not isinstance(labels, tuple) or len(labels) != count or len(keys) != count:
        given = "others" if name == "s_labels" else labels  # groups of S must not be shown
        raise ValueError(message(OWNER, name, f"a tuple of {count} different names", given))


def constant_output(p_x: FloatArray, strata: IntArray | None) -> FloatArray:
    """Return the channel with a constant output, or one output per stratum of X."""
    return np.ones((len(p_x), 1)) if strata is None else np.eye(strata.max() + 1)[strata]
