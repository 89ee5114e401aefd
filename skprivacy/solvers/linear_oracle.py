"""The best allowed posterior for a linear objective: a small linear program with tangents."""

import numpy as np

from .._messages import SMALLER, Message
from .._typing import FloatArray
from ..exceptions import SolverError
from ..geometry import Points
from .highs import Columns, Program
from .leakage_function import LeakageFunction

# A point is accepted if g exceeds its bound by at most this share of the threshold: it is pulled
# back afterwards.
_CLOSE = 0.2

_MOST_TANGENTS_KEPT = 200
_MOST_TANGENTS = 20  # for one objective
_NEGLIGIBLE_PROBABILITY = 1e-12


class LinearOracle:
    """Maximises ``slope . W - price g(W)`` over the simplex, or with ``g(W) <= threshold``.

    The tangents that it needs are kept for later objectives.

    Parameters
    ----------
    leakage : LeakageFunction
    threshold : float
        The threshold of the budget, infinite for none. With `on_average`, the scale on which g
        matters.
    on_average : bool
        Whether g has a price instead of a bound.
    rows, upper : ndarray, default=None
        Further bounds, ``rows @ W <= upper``.
    """

    def __init__(
        self,
        leakage: LeakageFunction,
        threshold: float,
        on_average: bool,
        rows: FloatArray | None = None,
        upper: FloatArray | None = None,
    ) -> None:
        self._leakage = leakage
        self._threshold = threshold
        self._on_average = on_average
        self._deviations = leakage.deviations
        n_x = self._deviations.shape[1]
        # The last column is z, the height that g must not exceed.
        index, ones = np.zeros((n_x + 1, 1), int), np.append(np.ones(n_x), 0.0)
        self._columns = Columns.from_rows(np.zeros(n_x + 1), index, ones[:, None])
        self._bounds = None if rows is None or upper is None else (rows, upper, 0.0)
        self._program = Program()
        self._restart()

    def _restart(self) -> None:
        """Start over without tangents: old ones make every program slower."""
        self._n_tangents = 0
        self._program.load(self._columns, np.ones(1), np.ones(1))
        if self._bounds is not None:
            self._add(*self._bounds)

    def _add(self, rows: FloatArray, upper: FloatArray, height: float) -> None:
        """Add rows ``rows @ W + height z <= upper``, divided by their size."""
        rows = np.hstack([rows, np.full((len(rows), 1), height)])
        scale = np.abs(rows).max(axis=1)
        rows, upper, scale = rows[scale > 0], upper[scale > 0], scale[scale > 0]
        self._program.add_rows(rows / scale[:, None], upper / scale)

    def best(self, slope: FloatArray, price: float = 0.0) -> Points:
        """Return the best point of the simplex that is nearly allowed."""
        if self._n_tangents > _MOST_TANGENTS_KEPT:
            self._restart()
        self._program.change_costs(np.append(-slope, price))
        for _ in range(_MOST_TANGENTS):
            answer = self._program.run()
            if answer is None:
                self._restart()
                raise SolverError(
                    Message(f"HiGHS could not find an output: {self._program.status!r}. ", SMALLER)
                )
            weights = answer.values[:-1]
            weights = np.where(weights > _NEGLIGIBLE_PROBABILITY, weights, 0.0)
            weights /= weights.sum()
            bound = max(answer.values[-1], 0.0) if self._on_average else self._threshold
            if bound == np.inf:
                break
            deviations = (self._deviations @ weights)[None]
            excess = self._leakage.value(deviations)[0] - bound
            if excess <= _CLOSE * self._threshold:
                break
            self._cut(deviations, bound)
        return Points.from_dense(weights[None])

    def _cut(self, deviations: FloatArray, bound: float) -> None:
        """Add a tangent that cuts off a point: one near it, or the one at it."""
        self._n_tangents += 1
        if self._on_average:
            normals, offsets, _ = self._leakage.tangents(deviations, self._threshold)
            self._add(normals @ self._deviations, offsets, -1.0)
            return
        share = self._leakage.shrunk(deviations, bound)[:, None]
        normals, offsets, _ = self._leakage.cuts(deviations, share * deviations, bound, bound)
        self._add(normals @ self._deviations, offsets + bound, 0.0)
