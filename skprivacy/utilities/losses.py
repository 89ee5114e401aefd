"""Losses of labels: how often, or how far, what is read off an output is wrong."""

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

_AT_ONCE = 5_000_000  # entries of posteriors


class Guess(Utility):
    """The chance of guessing X from Y: ``sum q max W``.

    The solver "auto" has one output at most for each guess: then released values, taken at face
    value, are right with this chance. Several mechanisms often have the same chance; among those
    that a solver finds, the one with the largest ``I(X;Y)`` is preferred before outputs with the
    same guess are merged.

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
    #: Whether symbols are cells of rows: who guesses a cell has not guessed the row.
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
    """Return the utility for symbols that are cells of rows."""
    guess = Guess()
    guess.of_cells = True
    return guess


class Distortion(Utility):
    """Minus the loss of taking released values at face value: ``-E loss(X, label of Y)``.

    Each output is read as the label with the smallest expected loss. Several outputs with one
    label are no better than one: a design has one output per label at most. `Guess` is the case
    of a loss of 1 for every wrong label.

    Parameters
    ----------
    loss : array-like of shape (n_x, n_x), "auto" or "positions", default="auto"
        The loss where the symbol of the row is read as the one of the column: not negative, and
        in each row smallest on the diagonal. In the order of the columns of p_sx. "auto" asks the
        columns of a table, or the labels of a joint: 0 or 1 for categories, the share of rows
        between two values for numbers, times or ordered categories, averaged over the columns
        (Gower's distance). "positions" is how many columns of p_sx lie between two symbols.
    column_weights : dict, default=None
        With "auto", how much each column of X counts; 1 for those that are not in it.

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
    #: Whether symbols are cells of rows: the best would then be the rows themselves, without loss.
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
            only = "Distortion takes column_weights with loss='auto' only"
            raise ValueError(f"{only}: a table has its weights in it.")
        if not isinstance(column_weights, Mapping | None):
            requirement = "a dict or None"
            raise TypeError(message("Distortion", "column_weights", requirement, column_weights))
        check = partial(check_real, "Distortion", "column_weights", low=0, high_open=True)
        self.column_weights = {n: check(weight) for n, weight in (column_weights or {}).items()}
        self.loss = readonly(np.zeros((0, 0)) if self.is_open else _check_loss(loss))

    @property
    def is_open(self) -> bool:
        """Whether it has no table yet, and waits for the X that it is used with."""
        return self.is_automatic or self.is_by_position

    @classmethod
    def of_symbols(cls, loss: FloatArray, *, of_cells: bool = False) -> Distortion:
        """Return the distortion of a table with a row for some symbols only, all being labels.

        of_cells : whether even X itself, shown as its own symbol, is not what it was.
        """
        distortion = cls()
        distortion.is_automatic, distortion.of_cells = False, of_cells
        distortion.loss = readonly(np.array(loss, dtype=float))
        return distortion

    @classmethod
    def of_positions(cls, n_x: int) -> Distortion:
        """Return the distortion of symbols in a row, each one step from the next."""
        return cls.of_symbols(np.abs(np.subtract.outer(range(n_x), range(n_x))))

    def within(self, strata: IntArray) -> Distortion:
        """Return the distortion where no symbol is read as one of another group."""
        is_other = strata[:, None] != strata
        loss = self.loss + is_other * (1 + self.loss.max(initial=0.0))
        return Distortion.of_symbols(loss, of_cells=self.of_cells)

    def weights_of(self, columns: Sequence[Any], owner: str) -> list[float]:
        """Return the weights of some columns; owner : whose columns they are."""
        if unknown := [name for name in self.column_weights if name not in columns]:
            told = (
                f" names {unknown[0]!r}, which is not one of the columns that {owner} releases: "
            )
            raise ValueError(about("Distortion", "column_weights", told, f"{list(columns)}."))
        weights = [self.column_weights.get(name, 1.0) for name in columns]
        if not sum(weights):
            told = " must not be zero for all columns: every value would be as good as another."
            raise ValueError(about("Distortion", "column_weights", told))
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
        n_parts = 1 + len(points) * len(self.loss) // _AT_ONCE
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
        """Return the loss, if it belongs to this X."""
        if len(p_x) != len(self.loss):
            requirement = f"a table with {len(p_x)} rows, one per symbol of X"
            raise ValueError(message("Distortion", "loss", requirement, self))
        return self.loss


def _check_loss(loss: TableLike) -> FloatArray:
    """Return a loss as an array, if it is one."""
    try:
        table = np.array(loss, dtype=float)
    except (TypeError, ValueError) as error:
        raise TypeError(message("Distortion", "loss", "a table of numbers", loss)) from error
    if table.ndim != 2 or table.shape[0] != table.shape[1] or not table.size:
        requirement = "a square table, with a row and a column for each symbol of X"
        raise ValueError(message("Distortion", "loss", requirement, loss))
    if not (np.isfinite(table).all() and (table >= 0).all()):
        requirement = "a table of finite numbers that are not negative"
        raise ValueError(message("Distortion", "loss", requirement, loss))
    if (wrong := np.flatnonzero(np.diag(table) > table.min(axis=1))).size:
        told = " must be smallest on its diagonal: a symbol is best read as itself. In row "
        row = f"{wrong[0]} another label has a smaller loss."
        raise ValueError(about("Distortion", "loss", told, row))
    return table


class EachColumn(Utility):
    """The mean of ``I(X_j;Y) / H(X_j)`` over the columns X_j of a table whose symbols are cells.

    With J a column drawn with a probability in proportion to 1 / H(X_j), it is ``I((J, X_J); Y)``
    times a constant: a target, one of whose values is a column with a value.

    p_vx : a stack of such tables, see `of_tables`; scale : that constant.
    """

    name: ClassVar[str] = "columns"

    def __init__(self, target: Target, scale: float) -> None:
        self._target, self._scale = target, scale

    @classmethod
    def of_tables(cls, tables: Sequence[FloatArray]) -> EachColumn:
        """Return the utility for tables of counts, values (rows) by cells; one for each column."""
        shares = [table / table.sum() for table in tables]
        entropies = [float(entropy(share.sum(axis=1))) for share in shares]
        varied = [(share, h) for share, h in zip(shares, entropies, strict=True) if h > 0]
        if not varied:
            raise ValueError("Every column of X is constant: there is nothing to keep.")
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
