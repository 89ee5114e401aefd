"""Losses of labels: how often, or how far, a released value differs from the true one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from .._typing import BoolArray, FloatArray, IntArray, TableLike
from .._validation import about, check_real, message
from ..geometry import Points
from ..joint import readonly
from .information import Target, entropy, recorded_utility
from .utility import Utility


class Guess(Utility):
    """The chance of guessing X from Y: ``sum q max W``.

    The solver "auto" uses at most one output for each guess: then released values, taken at face
    value, are right with this chance. Several mechanisms often have the same chance; solvers
    prefer the one with the largest ``I(X;Y)``, before they merge outputs with the same guess.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> from skprivacy.utilities import Guess
    >>> joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
    >>> mechanism = design_mechanism(joint, 0.02, utility=Guess())
    >>> round(mechanism.utility, 3)
    0.787
    >>> round(Guess().smallest(mechanism.p_x), 3)  # without Y
    0.4
    """

    name: ClassVar[str] = "guess"
    #: Whether symbols are cells of rows: guessing a cell is not guessing the row.
    of_cells: bool = False

    def __repr__(self) -> str:
        return "Guess()"

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | ({"of_cells": True} if self.of_cells else {})

    def in_words(self, names: str) -> str:
        guessed = "the cell of a row" if self.of_cells else names
        return f"the chance of guessing {guessed}, beyond a blind guess"

    def value(self, points: Points) -> FloatArray:
        return points.values.max(axis=1)

    def preference(self, points: Points) -> FloatArray:
        return -entropy(points.values) / max(1.0, np.log(points.values.shape[1]))

    def slope(self, points: Points, n_x: int) -> FloatArray:
        best = points.values.argmax(axis=1)
        return np.eye(n_x)[points.support[np.arange(len(points)), best]]

    def offset(self, p_x: FloatArray) -> float:
        return 0.0

    def of_channel(self, p_x: FloatArray, channel: FloatArray) -> float:
        return float((p_x[:, None] * channel).max(axis=0).sum())

    def largest(self, p_x: FloatArray) -> float:
        return 1.0

    def smallest(self, p_x: FloatArray) -> float:
        return float(np.max(p_x))

    def traits(self, n_x: int) -> FloatArray:
        return np.empty((0, n_x))

    def as_loss(self, n_x: int) -> tuple[FloatArray, float]:
        return 1.0 - np.eye(n_x), 1.0


def guess_of_cells() -> Guess:
    """Return `Guess` for symbols that are cells of rows."""
    guess = Guess()
    guess.of_cells = True
    return guess


class Distortion(Utility):
    """Minus the loss of taking released values at face value: ``-E loss(X, label of Y)``.

    Each output is read as the label with the smallest expected loss. Several outputs with the
    same label are no better than one: a design has at most one output per label. `Guess` has a
    loss of 1 for every wrong label.

    Parameters
    ----------
    loss : array-like of shape (n_x, n_x), "auto" or "positions", default="auto"
        The loss if the symbol of the row is read as that of the column: not negative, and in each
        row smallest on the diagonal. In the order of the columns of p_sx. "auto" takes it from
        the columns of a table, or the labels of a joint: 0 or 1 for categories, the share of rows
        between two values for numbers, times or ordered categories, averaged over the columns
        (Gower's distance). "positions" is the distance of two symbols in the order of p_sx.
    column_weights : dict, default=None
        With "auto", the weight of each column of X; 1 for columns that are not listed.

    Examples
    --------
    >>> import numpy as np
    >>> from skprivacy import design_mechanism
    >>> from skprivacy.utilities import Distortion
    >>> joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
    >>> steps = np.abs(np.subtract.outer(range(3), range(3)))  # 0, 1 and 2 apart
    >>> mechanism = design_mechanism(joint, 0.02, utility=Distortion(steps))
    >>> round(mechanism.utility, 3)
    -0.359
    >>> round(mechanism.normalized_utility, 3)  # 0: nothing is released, 1: X itself
    0.487

    The same, by name:

    >>> mechanism = design_mechanism(joint, 0.02, utility=Distortion("positions"))
    >>> round(mechanism.utility, 3)
    -0.359

    In a table, where a wrong age is twice as bad as a wrong town:

    >>> from skprivacy import PrivacyFunnelTransformer
    >>> closeness = Distortion("auto", column_weights={"age": 2})
    >>> funnel = PrivacyFunnelTransformer(
    ...     0.02, sensitive="sex", columns=["age", "town"], utility=closeness
    ... )
    """

    name: ClassVar[str] = "distortion"
    #: Whether symbols are cells of rows: only the rows themselves have no loss.
    of_cells: bool = False

    def __init__(
        self,
        loss: TableLike | Literal["auto", "positions"] = "auto",
        *,
        column_weights: Mapping[Any, float] | None = None,
    ) -> None:
        self.is_automatic = isinstance(loss, str) and loss == "auto"
        self.is_by_position = isinstance(loss, str) and loss == "positions"
        if column_weights is not None and not self.is_automatic:
            raise ValueError("Distortion takes column_weights with loss='auto' only.")
        if not isinstance(column_weights, Mapping | None):
            given = "column_weights", "a dict or None", column_weights
            raise TypeError(message("Distortion", *given))
        check = partial(check_real, "Distortion", "column_weights", low=0, high_open=True)
        self.column_weights = {n: check(weight) for n, weight in (column_weights or {}).items()}
        self.loss = readonly(np.zeros((0, 0)) if self.is_open else _check_loss(loss))

    @property
    def is_open(self) -> bool:
        """Whether it has no table yet: the X it is used with will define one."""
        return self.is_automatic or self.is_by_position

    @classmethod
    def of_symbols(cls, loss: FloatArray, *, of_cells: bool = False) -> Distortion:
        """Return the distortion of a table with a column per label, and a row per symbol.

        Not every label needs a row. of_cells : whether symbols are cells of rows.
        """
        distortion = cls()
        distortion.is_automatic, distortion.of_cells = False, of_cells
        distortion.loss = readonly(np.array(loss, dtype=float))
        return distortion

    @classmethod
    def of_positions(cls, n_x: int) -> Distortion:
        """Return the distortion ``|i - j|`` of symbols in order."""
        return cls.of_symbols(np.abs(np.subtract.outer(range(n_x), range(n_x))))

    def within(self, strata: IntArray) -> Distortion:
        """Return the distortion in which no symbol is read as one of another stratum."""
        is_other = strata[:, None] != strata
        loss = self.loss + is_other * (1 + self.loss.max(initial=0.0))
        return Distortion.of_symbols(loss, of_cells=self.of_cells)

    def weights_of(self, columns: Sequence[Any], owner: str) -> list[float]:
        """Return the weight of each column; owner : the releasing class, for messages."""
        if unknown := [name for name in self.column_weights if name not in columns]:
            listed = f" names {unknown[0]!r}, but {owner} releases only {list(columns)}."
            raise ValueError(about("Distortion", "column_weights", listed))
        weights = [self.column_weights.get(name, 1.0) for name in columns]
        if not sum(weights):
            zeros = " must not be zero for all columns."
            raise ValueError(about("Distortion", "column_weights", zeros))
        return weights

    def __repr__(self) -> str:
        if self.is_by_position:
            return "Distortion('positions')"
        if not self.is_automatic:
            return "Distortion(<{} x {} table>)".format(*self.loss.shape)
        weights = f", column_weights={self.column_weights}" if self.column_weights else ""
        return f"Distortion('auto'{weights})"

    def in_words(self, names: str) -> str:
        return f"the closeness to the true values of {names}, beyond a blind guess"

    def value(self, points: Points) -> FloatArray:
        n_parts = 1 + len(points) * len(self.loss) // 5_000_000  # limits memory
        parts = np.array_split(np.arange(len(points)), n_parts)
        return np.concatenate([-self._losses(points[part]).min(axis=1) for part in parts])

    def slope(self, points: Points, n_x: int) -> FloatArray:
        return -self.loss.T[self._losses(points).argmin(axis=1)]

    def _losses(self, points: Points) -> FloatArray:
        """Return the expected loss of each label, one row for each point."""
        return points.dense(len(self.loss)) @ self.loss

    def offset(self, p_x: FloatArray) -> float:
        return 0.0

    def of_channel(self, p_x: FloatArray, channel: FloatArray) -> float:
        return -float(((p_x[:, None] * channel).T @ self._matched(p_x)).min(axis=1).sum())

    def largest(self, p_x: FloatArray) -> float:
        return 0.0 if self.of_cells else -float(p_x @ self._matched(p_x).min(axis=1))

    def smallest(self, p_x: FloatArray) -> float:
        return -float((p_x @ self._matched(p_x)).min())

    def traits(self, n_x: int) -> FloatArray:
        return self.loss.T

    def restricted(self, symbols: BoolArray | IntArray) -> Utility:
        return Distortion.of_symbols(self.loss[symbols], of_cells=self.of_cells)

    def as_loss(self, n_x: int) -> tuple[FloatArray, float]:
        return self.loss, 0.0

    def to_dict(self) -> dict[str, Any]:
        cells = {"of_cells": True} if self.of_cells else {}
        return {"name": self.name, "loss": self.loss.tolist(), **cells}

    def _matched(self, p_x: FloatArray) -> FloatArray:
        """Return the loss, after checking that it has a row for each symbol of this X."""
        if len(p_x) != len(self.loss):
            requirement = f"a table with {len(p_x)} rows, one per symbol of X"
            raise ValueError(message("Distortion", "loss", requirement, self))
        return self.loss


def _check_loss(loss: TableLike) -> FloatArray:
    """Check a table of losses, and return it as an array."""
    requirement = "a square table of finite, nonnegative numbers, one row per symbol of X"
    try:
        table = np.array(loss, dtype=float)
    except (TypeError, ValueError) as error:
        raise TypeError(message("Distortion", "loss", requirement, loss)) from error
    is_square = table.ndim == 2 and table.shape[0] == table.shape[1] and table.size
    if not (is_square and np.isfinite(table).all() and (table >= 0).all()):
        raise ValueError(message("Distortion", "loss", requirement, loss))
    if (wrong := np.flatnonzero(np.diag(table) > table.min(axis=1))).size:
        smallest = " must be smallest on its diagonal: a symbol is best read as itself."
        row = f" In row {wrong[0]} another label has a smaller loss."
        raise ValueError(about("Distortion", "loss", smallest + row))
    return table


class EachColumn(Utility):
    """The mean of ``I(X_j;Y) / H(X_j)`` over the columns X_j of a table whose symbols are cells.

    With J a column drawn with probability proportional to 1 / H(X_j), it is ``I((J, X_J); Y)``
    times a constant: the target is a pair of a column and its value.

    target : that pair, see `of_tables`; scale : the constant.
    """

    name: ClassVar[str] = "columns"

    def __init__(self, target: Target, scale: float) -> None:
        self._target, self._scale = target, scale

    @classmethod
    def of_tables(cls, tables: Sequence[FloatArray]) -> EachColumn:
        """Return the utility for a table of counts per column: values (rows) by cells."""
        shares = [table / table.sum() for table in tables]
        entropies = [float(entropy(share.sum(axis=1))) for share in shares]
        varied = [(share, h) for share, h in zip(shares, entropies, strict=True) if h > 0]
        if not varied:
            raise ValueError("Every column of X is constant: there is no information to keep.")
        stacked = np.vstack([share[share.any(axis=1)] / h for share, h in varied])
        return cls(Target(stacked), sum(1 / h for _, h in varied) / len(varied))

    def __repr__(self) -> str:
        return "EachColumn(<{} x {} table>)".format(*self._target.p_v_given_x.shape)

    def in_words(self, names: str) -> str:
        return "the information in a column, on average over all columns"

    def value(self, points: Points) -> FloatArray:
        return self._scale * self._target.value(points)

    def slope(self, points: Points, n_x: int) -> FloatArray:
        return self._scale * self._target.slope(points, n_x)

    def offset(self, p_x: FloatArray) -> float:
        return self._scale * self._target.offset(p_x)

    def of_channel(self, p_x: FloatArray, channel: FloatArray) -> float:
        return self._scale * self._target.of_channel(p_x, channel)

    def largest(self, p_x: FloatArray) -> float:
        return 1.0  # of the table itself, not of its cells

    def traits(self, n_x: int) -> FloatArray:
        return self._target.traits(n_x)

    def restricted(self, symbols: BoolArray | IntArray) -> Utility:
        return EachColumn(Target(self._target.p_v_given_x[:, symbols]), self._scale)

    def recorded(self, p_x: FloatArray, channel: FloatArray) -> Utility:
        return recorded_utility(self, p_x, channel)

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "p_vx": self._target.p_v_given_x.tolist(), "scale": self._scale}
