"""Joint distributions P_SX of one or several secrets, with their budgets."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from ._messages import Message
from ._numerics import DEVIATION_ROUNDING, SAME_DIGITS
from ._typing import CountArray, FloatArray, IntArray, Labels, TableLike
from ._validation import about, check_real, message
from .codes import count, n_cells, pack
from .geometry import Points

# Smaller positive probabilities are refused: lifts could overflow.
_SMALLEST = 1e-100

_Array = TypeVar("_Array", FloatArray, IntArray)


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint distribution of a sensitive S (rows) and a useful X (columns)."""

    p_sx: FloatArray
    s_labels: Labels
    x_labels: Labels

    @cached_property
    def p_s(self) -> FloatArray:
        """The prior P(S)."""
        return self.p_sx.sum(axis=1)

    @cached_property
    def p_x(self) -> FloatArray:
        """The marginal P(X)."""
        return self.p_sx.sum(axis=0)

    @cached_property
    def deviations(self) -> FloatArray:
        """``P(s|x) / P(s) - 1``, |S| x |X|: the lift of each symbol released unchanged, minus 1.

        The lifts of any output are ``1 + deviations @ W``. Needs a joint without empty rows or
        columns. Computed in extended precision: where S and X are nearly independent, this is a
        small difference of large numbers.
        """
        p_sx = self.p_sx.astype(np.longdouble)
        p_sx /= p_sx.sum()
        independent = p_sx.sum(axis=1, keepdims=True) * p_sx.sum(axis=0, keepdims=True)
        deviations = ((p_sx - independent) / independent).astype(float)
        # Symbols of S that are independent of X, except for the rounding of their probabilities.
        deviations[np.abs(deviations).max(axis=1) <= DEVIATION_ROUNDING] = 0.0
        return deviations

    def sensitive_posterior(self, points: Points) -> FloatArray:
        """Return ``P(S | Y = y)`` for each point ``P(X | Y = y)``, as rows."""
        return np.maximum(1 + points.times(self.deviations), 0.0) * self.p_s

    def without_empty(self) -> Joint:
        """Return the joint without symbols of probability zero."""
        s, x = self.p_s > 0, self.p_x > 0
        if s.all() and x.all():
            return self
        s_labels, x_labels = compress(self.s_labels, s), compress(self.x_labels, x)
        return Joint(self.p_sx[np.ix_(s, x)], tuple(s_labels), tuple(x_labels))

    def without_copies(self) -> Joint:
        """Return the joint with symbols of S that have the same P(X|s) merged.

        They have the same lifts in every output, so merging them changes no leakage. An S with
        very many values often has few different P(X|s).
        """
        given_s = (self.p_sx / self.p_s[:, None]).round(SAME_DIGITS)
        first, copies = np.unique(given_s, axis=0, return_index=True, return_inverse=True)[1:]
        if len(first) == len(given_s):
            return self
        merged = np.zeros((len(first), self.p_sx.shape[1]))
        np.add.at(merged, copies.reshape(-1), self.p_sx)
        return Joint(merged, tuple(self.s_labels[i] for i in first), self.x_labels)

    def merged(self, symbols: IntArray) -> Joint:
        """Return the joint with symbols of X merged; symbols : the new symbol of each."""
        merged = np.zeros((len(self.p_s), symbols.max() + 1))
        np.add.at(merged.T, symbols, self.p_sx.T)
        return Joint.numbered(merged)

    @classmethod
    def numbered(cls, p_sx: FloatArray) -> Joint:
        """Return a joint with symbols labelled 0, 1, 2, ..."""
        return cls(p_sx, tuple(range(p_sx.shape[0])), tuple(range(p_sx.shape[1])))


def as_joint(p_sx: TableLike, owner: str, name: str = "p_sx") -> Joint:
    """Return a `Joint` from an array or DataFrame of probabilities or counts.

    Rows are symbols of S, columns are symbols of X; entries are divided by their total.
    """
    table = _as_table(p_sx, owner, name)
    with np.errstate(over="ignore"):
        total = table.sum()
    if not 0 < total < np.inf:
        problem = f" must have a positive and finite total. Got a total of {total}."
        raise ValueError(about(owner, name, problem))
    joint = Joint.numbered(readonly(table / total))
    if isinstance(p_sx, pd.DataFrame):
        for axis, index in (("index", p_sx.index), ("columns", p_sx.columns)):
            if not index.is_unique:
                repeated = index[index.duplicated()][0]
                got = f"Got {repeated!r} more than once in its {axis}."
                raise ValueError(about(owner, name, f" must have unique labels. {got}"))
        joint = replace(joint, s_labels=tuple(p_sx.index), x_labels=tuple(p_sx.columns))
    smallest = joint.p_sx[joint.p_sx > 0].min()
    if smallest < _SMALLEST:
        limit = f" must not hold probabilities between 0 and {_SMALLEST}: set them to zero."
        raise ValueError(about(owner, name, f"{limit} Got {smallest}."))
    return joint


def _as_table(p_sx: TableLike, owner: str, name: str) -> FloatArray:
    """Check that a table holds finite, nonnegative numbers; return it as an array."""
    shape = " must be a two-dimensional table of numbers, one row per symbol of S and one column "
    requirement = about(owner, name, shape + "per symbol of X.")
    try:
        array = np.asarray(p_sx)
        if array.dtype.kind in "cmMSU" or isinstance(p_sx, np.ma.MaskedArray):
            raise TypeError
        table = np.array(array, dtype=float)
    except (TypeError, ValueError, OverflowError):
        # numpy's own message would show a cell, which may hold somebody's S.
        got = f" Got {type(p_sx).__name__} with entries that are not numbers."
        hint = " Count rows first, for instance with pandas.crosstab."
        raise TypeError(Message(requirement, got, hint)) from None
    if table.ndim != 2 or table.size == 0:
        raise ValueError(Message(requirement, f" Got shape {table.shape}."))
    wrongs = {"NaN": np.isnan(table), "infinite": np.isinf(table), "negative": table < 0}
    for what, wrong in wrongs.items():
        if wrong.any():
            row, column = map(int, np.argwhere(wrong)[0])
            got = f" must hold finite, nonnegative numbers. Got {int(wrong.sum())} {what} entries"
            where = f", the first {table[row, column]} at row {row}, column {column}."
            raise ValueError(about(owner, name, got + where))
    return table


def readonly(array: _Array) -> _Array:
    """Lock `array` against writing, and return it."""
    array.flags.writeable = False
    return array


def count_pairs(
    s_codes: IntArray, x_codes: IntArray, weights: FloatArray | None, n_s: int | None = None
) -> CountArray:
    """Return the contingency table of two columns of codes from 0 on, weighted or not.

    n_s : the number of rows; None: as many as the codes need.
    """
    sizes = n_s or int(s_codes.max()) + 1, int(x_codes.max()) + 1
    counts = count(pack([s_codes, x_codes], sizes), int(n_cells(sizes)), weights)[:-1]
    return counts.reshape(sizes[0] + 1, sizes[1] + 1)[1:, 1:].copy()


# Several secrets and their budgets. --------------------------------------------------------------


# Marginals of X may differ by this much, from rounding.
_SAME_MARGINALS = 1e-9


def joints_of(tables: TableLike | Mapping[Any, TableLike], owner: str) -> dict[Any, Joint]:
    """Return the joint of each secret with X, all with the same P(X).

    tables : a dict of tables, or the table of the only secret, which is then called None.
    """
    if not isinstance(tables, Mapping):
        return {None: as_joint(tables, owner)}
    if not tables:
        raise ValueError(about(owner, "p_sx", " must hold at least one table."))
    joints = {name: as_joint(table, owner, f"p_sx[{name!r}]") for name, table in tables.items()}
    (first, reference), *others = joints.items()
    for name, joint in others:
        p_x, other = reference.p_x, joint.p_x
        same = f"The tables of {first!r} and {name!r} given to {owner} must be about the same X"
        if len(other) != len(p_x):
            raise ValueError(f"{same}. Got {len(p_x)} and {len(other)} columns.")
        if joint.x_labels != reference.x_labels:
            raise ValueError(f"{same}, with the same labels in the same order.")
        difference = np.abs(other - p_x)
        if difference.max() > _SAME_MARGINALS:
            where = f"{difference.max():.3g}, at {reference.x_labels[int(difference.argmax())]!r}"
            differ = f"their marginals of X differ by up to {where}"
            raise ValueError(f"{same}: {differ}. Count all tables from the same rows.")
        # The last digits of P(X) differ between tables of probabilities.
        scaled = joint.p_sx * np.divide(p_x, other, out=np.ones_like(p_x), where=other > 0)
        joints[name] = replace(joint, p_sx=readonly(scaled / scaled.sum()))
    return joints


def stacked_joint(joints: Mapping[Any, Joint]) -> Joint:
    """Return the joint of X and the pair (a secret drawn at random, its value)."""
    stack = np.vstack([joint.p_sx for joint in joints.values()]) / len(joints)
    labels = tuple((name, label) for name, joint in joints.items() for label in joint.s_labels)
    return Joint(readonly(stack), labels, next(iter(joints.values())).x_labels)


def check_budgets(
    owner: str, epsilon: Any, tables: Any, parameter: str = "epsilon"
) -> dict[Any, float]:
    """Return the budget of each secret; tables : as in `joints_of`."""
    if not isinstance(tables, Mapping):
        if isinstance(epsilon, Mapping):
            requirement = "a number if there is one table; for a dict, pass a dict of tables"
            raise TypeError(message(owner, parameter, requirement, epsilon))
        return {None: check_real(owner, parameter, epsilon, low=0)}
    names = list(tables)
    if not isinstance(epsilon, Mapping):
        requirement = f"a dict with a budget for each of {names}"
        raise TypeError(message(owner, parameter, requirement, epsilon))
    if missing := [name for name in names if name not in epsilon]:
        hint = " has no budget for the secret {secret!r}. Add one, for instance "
        example = "{epsilon}[{secret!r}] = 0.02, or infinity if it need not be protected."
        raise ValueError(about(owner, parameter, Message.of(hint + example, secret=missing[0])))
    if unknown := [name for name in epsilon if name not in names]:
        no_secret = f" has a budget for {unknown[0]!r}, which is not one of the secrets: {names}."
        raise ValueError(about(owner, parameter, no_secret))
    return {n: check_real(owner, f"{parameter}[{n!r}]", epsilon[n], low=0) for n in names}


def as_given(budgets: Mapping[Any, float]) -> float | dict[Any, float]:
    """Return budgets in the form of `epsilon`: a number for one secret, else a dict."""
    return dict(budgets) if len(budgets) > 1 else next(iter(budgets.values()))


def check_beside(
    beside: Sequence[Hashable] | npt.ArrayLike | None,
    p_x: FloatArray,
    max_outputs: int | None,
    owner: str,
) -> tuple[IntArray | None, Labels]:
    """Return the stratum number of each symbol of X, and the published value of each stratum."""
    if beside is None:
        return None, ()
    given = list(beside) if isinstance(beside, Sequence) else np.asarray(beside).tolist()
    if isinstance(beside, str) or not isinstance(given, list) or len(given) != len(p_x):
        requirement = f"a list with a value for each of the {len(p_x)} symbols of X"
        raise ValueError(message(owner, "beside", requirement, beside))
    labels = tuple(dict.fromkeys(given))
    codes = np.array([labels.index(label) for label in given])
    sizes = np.bincount(codes, p_x, len(labels))
    if (sizes == 0).any():
        empty = labels[int(sizes.argmin())]
        hint = f" has the value {empty!r}, but only for symbols that never occur: leave them out."
        raise ValueError(about(owner, "beside", hint))
    if max_outputs is not None and max_outputs < len(labels):
        least = f" must be at least {len(labels)}, one for each value beside X. Got {max_outputs}."
        raise ValueError(about(owner, "max_outputs", least))
    return codes, labels


def confidence_of_each(confidence: float, n_secrets: int) -> float:
    """Return the confidence for each secret that makes all budgets hold at once (Bonferroni).

    The risk is split equally, before rows are seen, and never moved between secrets.
    """
    return confidence if n_secrets == 1 else 1 - (1 - confidence) / n_secrets
