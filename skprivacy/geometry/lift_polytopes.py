r"""The max-lift polytopes of the paper's equation (22), for every bound at once.

``Delta_t = {W in the simplex: lifts @ W <= t}`` with ``t = e^eps'``. For a fixed basis (m - 1
tight lift rows, a support of m symbols) the vertex is ``W(t) = a + b t``: it moves on a straight
line while t runs through an interval. One enumeration therefore gives the vertices of every
Delta_t, as segments from ``W(t_low)`` to ``W(t_high)``.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from .bases import check_count, regular_bases
from .cdd_vertices import simplex_vertices
from .points import Points

# Relative slack in deciding which bases are vertices, and for which t. A wrong vertex is
# harmless, because every candidate is measured before it is used; a missed one costs utility.
_SLACK = 1e-11

# A segment that starts this close to t = 1 may start at t = 1 but for rounding.
_NEAR_ONE = 1e-6

# Slopes of a linear function of t below this are taken as rounding.
_FLAT = 1e-12


@dataclass(frozen=True, eq=False)
class VertexSegments:
    """The lines on which vertices of Delta_t move, for t in [t_low, t_high].

    support : (n, width) symbols; low, high : (n, width), the point at either end. An end that is
    off by rounding may have small negative entries: clipping it would bend the whole line.
    """

    support: np.ndarray
    low: np.ndarray
    high: np.ndarray
    t_low: np.ndarray
    t_high: np.ndarray

    def __len__(self):
        return len(self.t_low)

    def fractions(self, index, t):
        """Return where each t lies on segments `index`, (n, len(t)), and whether it does.

        0 is the low end of a segment, 1 its high end.
        """
        low, high = self.t_low[index][:, None], self.t_high[index][:, None]
        inside = (low <= t * (1 + _SLACK)) & (high >= t * (1 - _SLACK))
        length = np.where(high > low, high - low, 1.0)
        return np.clip((t - low) / length, 0.0, 1.0), inside

    def at(self, index, fraction):
        """Return the points of segments `index` at `fraction` of their length."""
        fraction = fraction[:, None]
        values = (1 - fraction) * self.low[index] + fraction * self.high[index]
        return Points(self.support[index], _on_simplex(values))

    def ends(self):
        """Return the points at the low and at the high ends."""
        return Points(self.support, self.low), Points(self.support, self.high)

    def vertices(self, t):
        """Return the vertices of Delta_t."""
        fraction, inside = self.fractions(slice(None), np.array([t]))
        index = np.flatnonzero(inside)
        return self.at(index, fraction[index, 0])


@dataclass(frozen=True, eq=False)
class LiftPolytopes:
    """The polytopes ``{W in the simplex: lower <= lifts @ W <= upper}`` of a joint.

    lifts : |S| x |X|, the lifts of the unit vectors; engine : "parametric" or "cdd".
    """

    lifts: np.ndarray
    max_bases: int
    engine: str = "parametric"

    @cached_property
    def largest_lift(self):
        """The t from which on Delta_t is the whole simplex."""
        return float(self.lifts.max())

    @cached_property
    def rank(self):
        """The rank of P(S|X): a vertex has no larger support."""
        return int(np.linalg.matrix_rank(self.lifts * self.scale))

    @cached_property
    def scale(self):
        """Scales the columns of `lifts` to a largest entry of 1."""
        return 1 / self.lifts.max(axis=0)

    @cached_property
    def segments(self):
        """The vertices of Delta_t for every t between 1 and `largest_lift`."""
        units = self._unit_segments()
        if len(self.lifts) == 2:
            parts = [units, *(self._pair_segments(row) for row in self.lifts)]
        else:
            check_count(*self.lifts.shape, self.rank, self.max_bases)
            bases = regular_bases(self.lifts, self.rank)
            parts = [units, *(self._basis_segments(batch) for batch in bases)]
        return _join([part for part in parts if len(part)])

    def vertices(self, lower, upper):
        """Return the vertices for lifts between `lower` and `upper` >= 1."""
        # The mean of the lifts is 1: where one bound is 1, all lifts are.
        upper = 1.0 if lower >= 1 else min(upper, self.largest_lift)
        if lower <= self.lifts.min() or upper <= 1:
            if self.engine == "cdd":
                return self._cdd(self.lifts, np.full(len(self.lifts), upper))
            return self.segments.vertices(upper)
        if self.engine == "cdd":
            rows = np.vstack([self.lifts, -self.lifts])
            return self._cdd(rows, np.repeat([upper, -lower], len(self.lifts)))
        return Points.concatenate(
            [
                self._box_vertices(batch, np.array(sides), lower, upper)
                for batch in self._bases
                for sides in product([lower, upper], repeat=batch.active.shape[1])
            ]
        )

    @cached_property
    def _bases(self):
        """All regular bases, for boxes of every size."""
        check_count(*self.lifts.shape, self.rank, self.max_bases, sides=2)
        return list(regular_bases(self.lifts, self.rank))

    def _box_vertices(self, bases, sides, lower, upper):
        """Return the vertices whose tight rows are at `sides`, each the lower or upper bound."""
        values = bases.solve(sides, 1.0)
        lifts = Points(bases.support, values).times(self.lifts)
        slack = _SLACK * (1 + np.abs(lifts))
        keep = (values >= -_SLACK).all(axis=1)
        keep &= ((lifts >= lower - slack) & (lifts <= upper + slack)).all(axis=1)
        return Points(bases.support[keep], _on_simplex(values[keep]))

    def _cdd(self, rows, offsets):
        return Points.from_dense(simplex_vertices(rows, offsets))

    def _unit_segments(self):
        """A symbol released unchanged is a vertex from its own largest lift on."""
        symbols = np.arange(self.lifts.shape[1])[:, None]
        ones = np.ones(symbols.shape)
        t_low = self.lifts.max(axis=0)
        return VertexSegments(symbols, ones, ones, t_low, np.full(len(symbols), self.largest_lift))

    def _pair_segments(self, row):
        """|S| = 2: with this row tight, all pairs of symbols in closed form.

        The lift of this row is t >= 1, so the other one is below 1 and never binds.
        """
        small, large = np.nonzero((row[:, None] < row[None, :]) & (row[None, :] > 1))
        # A segment starts where all lifts are 1, or in its smaller symbol if that is above 1.
        # The former is the same for both rows; the one that varies more gives it accurately.
        wide = self.lifts[np.ptp(self.lifts, axis=1).argmax()]
        with np.errstate(divide="ignore", invalid="ignore"):
            weight = (1 - wide[small]) / (wide[large] - wide[small])
        weight = np.where((row[small] < 1) & (weight > 0), np.minimum(weight, 1.0), 0.0)
        low = np.stack([1 - weight, weight], axis=1)
        high = np.broadcast_to([0.0, 1.0], low.shape)
        support = np.stack([small, large], axis=1)
        return VertexSegments(support, low, high, np.maximum(row[small], 1.0), row[large])

    def _basis_segments(self, bases):
        if bases.support.shape[1] == 1:  # the unit vectors, which have a segment already
            return _EMPTY
        # Entries W = a + b t and slacks t - lifts @ W = c + d t must not be negative.
        a, b = bases.solve(0.0, 1.0), bases.solve(1.0, 0.0)
        rows = self.lifts.T[bases.support]
        c, d = -np.einsum("nm,nms->ns", a, rows), 1 - np.einsum("nm,nms->ns", b, rows)
        noise = _FLAT * (1 + np.einsum("nm,nms->ns", np.abs(a) + np.abs(b), rows))
        tight = (np.arange(len(bases.active))[:, None], bases.active)
        c[tight] = d[tight] = 0.0
        entry_noise = _FLAT * (np.abs(a) + np.abs(b)).max(axis=1, keepdims=True)
        constant, slope = np.hstack([a, c]), np.hstack([b, d])
        t_low, t_high = _interval(
            constant, slope, np.hstack([np.broadcast_to(entry_noise, a.shape), noise])
        )
        t_low, t_high = np.maximum(t_low, 1.0), np.minimum(t_high, self.largest_lift)
        keep = t_high > t_low
        bases, t_low, t_high = bases[keep], t_low[keep], t_high[keep]
        low, high = (bases.solve(t[:, None], 1.0) for t in (t_low, t_high))
        start, private = self._perfectly_private(bases.support, t_low < 1 + _NEAR_ONE)
        t_low[start], low[start] = 1.0, private
        return VertexSegments(bases.support, low, high, t_low, t_high)

    def _perfectly_private(self, supports, near):
        """Return which of the segments marked `near` start at t = 1, and their points there.

        At t = 1 every lift is 1. Many segments start in the same such point. Computed from the
        few rows that are tight on a segment it would come out differently each time, and badly
        where those rows hardly vary: so it is computed from all rows at once.
        """
        index = np.flatnonzero(near)
        supports, inverse = np.unique(supports[index], axis=0, return_inverse=True)
        inverse = inverse.reshape(-1)  # two-dimensional in numpy 2.0.0
        columns = np.moveaxis(self.lifts[:, supports], 0, 1)
        system = np.concatenate([columns, np.ones((len(supports), 1, supports.shape[1]))], axis=1)
        pseudoinverse = np.linalg.pinv(system)
        points = pseudoinverse.sum(axis=2, keepdims=True)
        for _ in range(2):  # rows of very different size need a refinement
            points += pseudoinverse @ (1 - system @ points)
        valid = (np.abs(system @ points - 1) <= _SLACK).all(axis=(1, 2))
        points = points[:, :, 0]
        valid &= (points >= -_SLACK).all(axis=1)
        return index[valid[inverse]], points[inverse][valid[inverse]]


_EMPTY = VertexSegments(
    np.empty((0, 1), np.intp), np.empty((0, 1)), np.empty((0, 1)), np.empty(0), np.empty(0)
)


def _interval(constant, slope, noise):
    """Return where ``constant + slope t >= 0`` for every column, up to `noise`."""
    rising, falling = slope > noise, slope < -noise
    with np.errstate(divide="ignore", invalid="ignore"):
        root = -constant / slope
    t_low = np.where(rising, root, -np.inf).max(axis=1)
    t_high = np.where(falling, root, np.inf).min(axis=1)
    impossible = (~rising & ~falling & (constant < -noise)).any(axis=1)
    return t_low, np.where(impossible, -np.inf, t_high)


def _on_simplex(values):
    values = np.maximum(values, 0.0)
    return values / values.sum(axis=1, keepdims=True)


def _join(parts):
    """Return the segments of all `parts`, padded to one width."""
    low = Points.concatenate([Points(part.support, part.low) for part in parts])
    high = Points.concatenate([Points(part.support, part.high) for part in parts])
    return VertexSegments(
        low.support,
        low.values,
        high.values,
        np.concatenate([part.t_low for part in parts]),
        np.concatenate([part.t_high for part in parts]),
    )
