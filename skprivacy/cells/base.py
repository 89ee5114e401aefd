"""What cells are learned from, and what learning them gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import brentq
from sklearn.base import BaseEstimator

from .._typing import FloatArray, IntArray
from .._validation import check_integer
from ..measures import Measure, get_measure
from .columns import CellColumn

# A cell has so many rows that its own noise is at most this share of the budget.
_SHARE_OF_NOISE = 0.5

# But never so many that there are fewer cells than this,
_FEWEST_CELLS = 20

# nor so few that a cell shows a person: combinations that are unique then come out hardly more
# often than if all columns were shuffled.
_FEWEST_ROWS = 20

# A budget too small to be reached by any posterior but the prior.
_SMALLEST = 1e-12


@dataclass(frozen=True, eq=False)
class CellTask:
    """Rows that cells are learned from.

    columns : of X; codes : (n, n_columns); weights : of the rows; most_cells : that a design can
    handle; least_share : of the rows that a cell must have; fewest_distinct : rows that it must
    have, where weights do not tell how many there are; s_codes, v_codes : the group of S and the
    target of each row, only for cells that need a target; folds : of the rows, where these follow
    from the keys of people.
    """

    columns: tuple[CellColumn, ...]
    codes: IntArray
    weights: FloatArray
    most_cells: int
    least_share: float
    fewest_distinct: int = 1
    s_codes: IntArray | None = None
    v_codes: IntArray | None = None
    folds: IntArray | None = None


class Partition(ABC):
    """A function from rows of codes to cells: the same for rows of `fit` and for new ones."""

    #: What X itself says about a target, in nats, as far as is known.
    information: float = 0.0

    @property
    @abstractmethod
    def n_cells(self) -> int:
        """How many cells there are."""

    @abstractmethod
    def cells(
        self, columns: Sequence[CellColumn], codes: IntArray, folds: IntArray | None = None
    ) -> IntArray:
        """Return the cell of each row of codes; folds : as in `CellTask`."""

    @abstractmethod
    def in_words(self, columns: Sequence[CellColumn], names: Sequence[Hashable]) -> list[str]:
        """Return what the rows of each cell have in common."""

    @abstractmethod
    def rules(self) -> list[Any]:
        """Return, as JSON, what decides on the cell of a row."""


class Cells(BaseEstimator, ABC):
    """How cells are learned."""

    name: ClassVar[str]
    #: Whether the cells keep what X says about a target, which they need.
    needs_target: ClassVar[bool] = False

    max_cells: int
    #: The column that tells people apart, where they may have several rows.
    groups: Any = None

    @abstractmethod
    def learn(self, task: CellTask) -> Partition:
        """Return cells for some rows."""

    def check(self) -> None:
        """Check the parameters."""
        check_integer(type(self).__name__, "max_cells", self.max_cells, low=2)


def fewest_rows(n_rows: float, n_groups: int, epsilon: float, measure: str | Measure) -> float:
    """Return how many rows a cell must have, so that P(S | cell) is known well enough.

    The divergence of a sample of n rows from the truth is about (|S| - 1) / 2n: it must be small
    beside the budget.
    """
    noise = _SHARE_OF_NOISE * max(_as_divergence(epsilon, get_measure(measure)), _SMALLEST)
    return max(_FEWEST_ROWS, min((n_groups - 1) / noise, n_rows / _FEWEST_CELLS))


def _as_divergence(epsilon: float, measure: Measure) -> float:
    """Return the KL divergence of a posterior that uses up a budget, for two equal groups."""
    prior, kl = np.full(2, 0.5), get_measure("kl")

    def excess(shift: float) -> float:
        return float(measure.value(_shifted(shift), prior)[0]) - float(measure.threshold(epsilon))

    if excess(1 - 1e-9) <= 0:
        return float(np.log(2))
    if excess(_SMALLEST) >= 0:
        return 0.0
    return float(kl.value(_shifted(float(brentq(excess, _SMALLEST, 1 - 1e-9))), prior)[0])


def _shifted(shift: float) -> FloatArray:
    return np.array([[0.5 + shift / 2, 0.5 - shift / 2]])
