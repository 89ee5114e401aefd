"""Special cases of a task, a linear oracle, and smaller equivalent tasks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np

from .._messages import SMALLER, Message, Setting, table_size
from .._numerics import NEGLIGIBLE, SAME_DIGITS, TINY
from .._typing import FloatArray, IntArray
from ..channels import expanded, tidied
from ..exceptions import SolverError
from ..geometry import Points, normalised, slab_vertices
from ..geometry.lift_polytopes import balanced_pairs, count_bases
from ..measures.measure import value_in
from ..utilities import DEFAULT_TOL, NO_UTILITY
from .leakage_function import (
    DEFAULT_MAX_BASES,
    Candidates,
    LeakageFunction,
    all_candidates,
    excess_over,
)
from .linear_program import Columns, MixtureProgram, Offers, Prices, Program
from .solver import DesignTask, Solution

# (rows, upper) of bounds ``rows @ W <= upper``, or none.
_Bounds: TypeAlias = tuple[FloatArray, FloatArray] | None


class LinearOracle:
    """Maximises ``slope . W - price g(W)`` over the simplex, or with ``g(W) <= threshold``.

    Tangents are kept for later objectives.

    Parameters
    ----------
    leakage : LeakageFunction
    threshold : float
        The largest g, infinite for none. With `on_average`, the size of g that matters.
    on_average : bool
        Whether g has a price instead of a bound.
    bounds : (rows, upper), default=None
        Further bounds.
    """

    def __init__(
        self, leakage: LeakageFunction, threshold: float, on_average: bool, bounds: _Bounds = None
    ) -> None:
        self._leakage, self._deviations = leakage, leakage.deviations
        self._threshold, self._on_average = threshold, on_average
        n_x = self._deviations.shape[1]
        # The last column is z, an upper bound on g.
        index, ones = np.zeros((n_x + 1, 1), int), np.append(np.ones(n_x), 0.0)
        self._columns = Columns.from_rows(np.zeros(n_x + 1), index, ones[:, None])
        self._bounds, self._program = bounds, Program()
        self._restart()

    def _restart(self) -> None:
        """Start over without tangents: old ones slow down the program."""
        self._n_tangents = 0
        self._program.load(self._columns, np.ones(1), np.ones(1))
        if self._bounds is not None:
            self._add(*self._bounds, height=0.0)

    def _add(self, rows: FloatArray, upper: FloatArray, height: float) -> None:
        """Add rows ``rows @ W + height z <= upper``, divided by their size."""
        rows = np.hstack([rows, np.full((len(rows), 1), height)])
        scale = np.abs(rows).max(axis=1)
        rows, upper, scale = rows[scale > 0], upper[scale > 0], scale[scale > 0]
        self._program.add_rows(rows / scale[:, None], upper / scale)

    def best(self, slope: FloatArray, price: float = 0.0) -> Points:
        """Return the best point; g may exceed its bound by 20% of the threshold."""
        if self._n_tangents > 200:
            self._restart()
        self._program.change_costs(np.append(-slope, price))
        for _ in range(20):
            answer = self._program.run()
            if answer is None:
                failure = self._program.failure("find an output")
                self._restart()
                raise failure
            weights = answer.values[:-1]
            weights = np.where(weights > NEGLIGIBLE, weights, 0.0)
            weights /= weights.sum()
            bound = max(answer.values[-1], 0.0) if self._on_average else self._threshold
            deviations = (self._deviations @ weights)[None]
            excess = self._leakage.value(deviations)[0] - bound
            if bound == np.inf or excess <= 0.2 * self._threshold:
                break
            self._cut(deviations, bound)
        return Points.from_dense(weights[None])

    def _cut(self, deviations: FloatArray, bound: float) -> None:
        """Add a tangent that cuts off a point."""
        self._n_tangents += 1
        if self._on_average:
            normals, offsets, _ = self._leakage.tangents(deviations, self._threshold)
            return self._add(normals @ self._deviations, offsets, -1.0)
        share = self._leakage.shrunk(deviations, bound)[:, None]
        normals, offsets, _ = self._leakage.cuts(deviations, share * deviations, bound, bound)
        self._add(normals @ self._deviations, offsets + bound, 0.0)


# Share of the tolerance that may be spent on the utility's preference, and again on fewer outputs.
_PREFERENCE = 0.01


class Problem:
    """A task with interchangeable symbols of X merged; solutions are for all symbols.

    Budgets with an immediate exact answer are solved here, see `special`. p_x : the distribution
    of the merged X; span : the utility of X minus that of a constant.
    """

    def __init__(self, task: DesignTask) -> None:
        self.task = task
        self._symbols = InterchangeableSymbols(task)
        self._merged = self._symbols.task
        self.measure, self.scope, self.utility = task.measure, task.scope, self._merged.utility
        self.p_x, self.span = self._merged.joint.p_x, task.utility.span(task.joint.p_x)
        self.leakage = LeakageFunction(self._merged.joint, task.measure)
        self.program = MixtureProgram(self.p_x, self.utility)
        self._task_program = MixtureProgram(task.joint.p_x, task.utility)
        unchanged = self.leakage.value(self.leakage.deviations.T)
        self._leakage_of_identity = value_in(self.scope, unchanged, self.p_x)

    @cached_property
    def rank(self) -> int:
        """The rank of P(S|X): no useful output has a larger support."""
        return self._candidates.polytopes.rank

    @cached_property
    def _candidates(self) -> Candidates:
        return Candidates(self._merged, DEFAULT_MAX_BASES)

    def count_bases(self) -> int:
        """Return the largest possible number of vertices of polytopes of bounded lifts."""
        low, _ = self.measure.implied_deviations(1.0) or (-1.0, 1.0)
        n_s, n_x = self._merged.joint.p_sx.shape
        return count_bases(n_s, n_x, self.rank, sides=1 if low == -1 else 2)

    def threshold(self, epsilon: float) -> float:
        """Return the largest g that epsilon allows."""
        return self.leakage.threshold(epsilon)

    def allows_identity(self, epsilon: float) -> bool:
        """Whether the budget allows Y = X."""
        is_within = self._leakage_of_identity <= self.threshold(epsilon)
        return is_within or self.measure.budget(epsilon) == np.inf

    def is_trivial(self, epsilon: float) -> bool:
        """Whether a budget allows Y = X, or no output is of any use: V and X are independent."""
        return self.allows_identity(epsilon) or self.span <= NO_UTILITY

    def is_easy(self, epsilon: float) -> bool:
        """Whether a budget has an immediate exact answer, however large the alphabet of X."""
        is_pairs = self._has_pairs and (self.scope == "per_output" or self.threshold(epsilon) <= 0)
        return is_pairs or self.is_trivial(epsilon)

    def is_special(self, epsilon: float) -> bool:
        """Whether a budget has an exact answer by enumerating the vertices of (22)."""
        is_box = self.scope == "per_output" and self.measure.is_lift_box
        return self.is_easy(epsilon) or self.threshold(epsilon) <= 0 or is_box

    def special(self, epsilon: float) -> Solution | None:
        """Return the exact solution of a special budget, None for other budgets.

        Saturation: Y = X. Perfect privacy: outputs with ``deviations @ W = 0``. Bounded lifts:
        vertices of (22). One degree of freedom of S: pairs of symbols.
        """
        if not self.is_special(epsilon):
            return None
        if self.is_trivial(epsilon):
            p_x = self.task.joint.p_x
            channel = np.eye(len(p_x)) if self.allows_identity(epsilon) else np.ones((len(p_x), 1))
            return Solution(channel, self.task.utility.largest(p_x))
        threshold = self.threshold(epsilon)
        if self._has_pairs:
            vertices = self._slab(threshold)
            around = self._slab(threshold + self.leakage.rounding) if threshold > 0 else vertices
            first = Points.concatenate(list(balanced_pairs(self.t, self.p_x)))
            return self._enumerated(vertices, around, epsilon, first)
        if (count := self.count_bases()) > DEFAULT_MAX_BASES:
            has = "{size} has up to {count:,} candidate vertices, too many for a certificate at "
            use = "{budget}. Use {solver='column_generation'}. {hint}"
            size, budget = table_size(*self._merged.joint.p_sx.shape), Setting("epsilon", epsilon)
            text = Message.of(has + use, size=size, count=count, budget=budget, hint=SMALLER)
            raise SolverError(text)
        if threshold <= 0:
            vertices = self.perfectly_private()
        else:
            vertices = self._candidates.vertices(epsilon)
        return self._enumerated(vertices, vertices, epsilon)

    def perfectly_private(self) -> Points:
        """Return the vertices of the set of outputs that reveal nothing about S."""
        return self._candidates.polytopes.vertices(-1.0, 0.0)

    @property
    def _has_pairs(self) -> bool:
        """Whether the allowed outputs are those with one number in an interval."""
        return self.rank <= 2 and not self.measure.jumps

    @property
    def t(self) -> FloatArray:
        """For rank 2: what each symbol reveals about S, as one number, 0 on average."""
        return self.leakage.deviations[np.ptp(self.leakage.deviations, axis=1).argmax()]

    def _slab(self, threshold: float) -> Points:
        """Return the vertices of the allowed set, an interval of one number, for rank 2."""
        t = self.t
        if threshold <= 0:
            return slab_vertices(t, 0.0, 0.0)
        ends = self.leakage.deviations[:, [t.argmin(), t.argmax()]].T
        return slab_vertices(t, *(self.leakage.shrunk(ends, threshold) * [t.min(), t.max()]))

    def _enumerated(
        self, vertices: Points, around: Points, epsilon: float, first: Points | None = None
    ) -> Solution:
        """Return the best mixture of `vertices`, all those of the allowed set.

        The bound comes from the vertices `around`, which are slightly further out. first : allowed
        points to start from if there are many vertices, else the most useful ones are.
        """
        if not len(vertices):  # rounding hides them all
            vertices = around = Points.from_dense(self.p_x[None])
        n_first, inner = 20 * len(self.p_x), self._uncharged(vertices)
        if first is not None and len(vertices) > n_first:
            offers = Offers.concatenate([self._uncharged(first), inner])
            few = np.arange(len(first))
        else:
            offers, few = inner, np.argsort(-inner.values)[:n_first]
        weights, prices = self.program.price(offers, 1e-9, few)
        outer = inner
        if around is not vertices:
            outer = self._uncharged(self.bounding(inner, around, prices))
        bound = prices.bound(self.p_x, outer, prices.error(outer))
        if not self.knows_all_allowed(epsilon):
            bound = np.inf
        most = np.argsort(-prices.surplus(offers))[: 10 * len(self.p_x)]
        return self.solution(offers[np.union1d(np.flatnonzero(weights), most)], bound, epsilon)

    def bounding(self, inner: Offers, around: Points, prices: Prices) -> Points:
        """Return the points `around` that a bound needs: those that may have a surplus.

        A vertex further out lies between one of `inner` and a symbol. As u is convex, its surplus
        is at most the mean of theirs. Computing u takes long if there are many columns.
        """
        if not np.array_equal(inner.points.support, around.support):
            return around
        rows, moved = np.arange(len(around)), around.values - inner.points.values
        towards = moved.argmax(axis=1)
        left = np.maximum(1.0 - inner.points.values[rows, towards], TINY)
        share = moved[rows, towards] / left
        symbols = prices.surplus(self._uncharged(Points.from_dense(np.eye(len(self.p_x)))))
        at_end = symbols[around.support[rows, towards]]
        most = (1 - share) * prices.surplus(inner) + share * at_end
        may = most + 2 * prices.error(inner) > 0  # twice, for rounding
        return around[may] if may.any() else around

    def _uncharged(self, points: Points) -> Offers:
        return Offers(points, self.utility.value(points))

    def knows_all_allowed(self, epsilon: float) -> bool:
        """Whether all allowed outputs are known, so that bounds are valid.

        At a budget of zero these are the independent ones, unless other outputs have a g of zero
        too, or rounding blurs which ones are independent.
        """
        return self.threshold(epsilon) > 0 or (self.measure.is_strict and self._is_clear())

    def _is_clear(self) -> bool:
        """Whether rounding blurs neither the rank of P(S|X) nor any of its vertices."""
        scale = np.abs(self.leakage.deviations).max(axis=1)
        rows = self.leakage.deviations[scale > 0] / scale[scale > 0, None]
        singular = np.linalg.svd(rows, compute_uv=False)
        singular /= singular.max(initial=1.0)
        # Rows were divided by their scale, and so was their rounding error.
        rounding = 1e-14 / scale[scale > 0].min(initial=1.0)
        return not ((singular > rounding) & (singular < 1e-7)).any()

    def allowed(self, points: Points, epsilon: float) -> Points:
        """Return allowed points next to `points`; on average, all points are allowed."""
        threshold = self.threshold(epsilon)
        if threshold <= 0:
            return self._candidates.within(self._independent(points), epsilon)
        if self.scope == "average":
            return points
        deviations = points.times(self.leakage.deviations)
        return self.leakage.allowed(points, deviations, threshold, self.p_x)[0]

    def _independent(self, points: Points) -> Points:
        """Return points with lifts of 1 up to rounding, corrected to exactly 1."""
        columns = np.swapaxes(self.leakage.deviations.T[points.support], 1, 2)
        system = np.concatenate([columns, np.ones((len(points), 1, columns.shape[2]))], axis=1)
        system *= (points.values > 0)[:, None, :]
        right = np.append(np.zeros(len(self.leakage.deviations)), 1.0)
        inverse, values = np.linalg.pinv(system), points.values
        for _ in range(2):
            missing = right - np.einsum("nsw,nw->ns", system, values)
            values = values + np.einsum("nws,ns->nw", inverse, missing)
        return Points(points.support, normalised(np.maximum(values, 0.0)))

    def offers(self, points: Points, epsilon: float) -> Offers:
        """Return allowed points as offers, with charges if the budget is on average."""
        threshold, charges = self.threshold(epsilon), None
        if self.scope == "average" and threshold > 0:
            charges = np.maximum(self.leakage_of(points), 0.0) / threshold
        return Offers(points, self.utility.value(points), charges)

    def leakage_of(self, points: Points) -> FloatArray:
        """Return g of points."""
        return self.leakage.value(points.times(self.leakage.deviations))

    def oracle(self, epsilon: float) -> LinearOracle:
        """Return the oracle that finds the best allowed point for a linear objective."""
        threshold, on_average = self.threshold(epsilon), self.scope == "average"
        if threshold <= 0:
            return self.lift_oracle(0.0)
        if self.measure.is_lift_box and not on_average:
            return self.lift_oracle(epsilon)
        return LinearOracle(self.leakage, threshold, on_average)

    def lift_oracle(self, epsilon: float) -> LinearOracle:
        """Return the oracle of the polytope (22), whose bounds on lifts imply the budget."""
        low, high = self.measure.implied_deviations(epsilon) or (0.0, 0.0)
        rows = self.leakage.deviations
        rows, upper = np.vstack([rows, -rows]), np.repeat([high, -low], len(rows))
        finite = upper < np.inf
        return LinearOracle(self.leakage, np.inf, False, (rows[finite], upper[finite]))

    def algorithm1_candidates(self, epsilon: float) -> Points:
        """Return the candidates of Algorithm 1, for all exponents."""
        vertices = self._candidates.vertices(epsilon)
        if self.measure.is_lift_box:
            return vertices
        return Points.concatenate([vertices, all_candidates(self._candidates, epsilon)])

    def solution(
        self, offers: Offers, bound: float, epsilon: float, tol: float = DEFAULT_TOL
    ) -> Solution:
        """Return the best mixture of allowed points; bound : on ``sum q u(W)``."""
        utility, p_x = self.task.utility, self.task.joint.p_x
        points, charges = self._symbols.expanded(offers.points, offers.charges)
        preference = _PREFERENCE * tol * utility.preference(points)
        values, excess = utility.value(points) + preference, excess_over(self.task, epsilon)
        mixture = self._task_program.solve(points, excess, charges, values)
        allowance = _PREFERENCE * tol * utility.span(p_x)
        channel = tidied(mixture.channel, p_x, utility, allowance)
        return Solution(channel, min(bound, self.ceiling(epsilon)) + utility.offset(p_x))

    @property
    def convexity(self) -> float:
        """The largest known c such that u - c g is convex."""
        largest_lift = 1 + self.leakage.deviations.max()
        return self.utility.surplus_convexity / self.measure.curvature(largest_lift)

    def ceiling(self, epsilon: float) -> float:
        """Return a bound on ``sum q u(W)`` of any channel within the budget.

        ``I(V;Y) <= I(S;Y) + I(V;X|S)``, and the budget bounds I(S;Y). It is attained where S is a
        function of X, where refinement is slow.
        """
        utility, joint = self.task.utility, self.task.joint
        most = self.measure.information(epsilon) + utility.given_sensitive(joint)
        return most - utility.offset(joint.p_x)

    def gap(self, solution: Solution) -> float:
        """Return the gap between a solution and its bound, as a share of `span`."""
        bound = self.task.utility.largest(self.task.joint.p_x)
        if solution.upper_bound is not None:
            bound = min(solution.upper_bound, bound)
        return (bound - self.task.reached(solution.channel)) / self.span


# Smaller equivalent tasks: each class makes one, and translates its answers back. ----------------


class OccurringSymbols:
    """Only the symbols that occur, with values of S that have the same P(X|s) merged.

    Attributes
    ----------
    task : DesignTask
        The task about these symbols.
    """

    def __init__(self, task: DesignTask) -> None:
        self._p_x = task.joint.p_x
        joint = task.joint.without_empty().without_copies()
        self.task = task.about(joint, utility=task.utility.restricted(self._p_x > 0))

    def expanded(self, channel: FloatArray) -> FloatArray:
        """Extend a channel for these symbols to all of X, with rows that sum to 1."""
        return expanded(normalised(channel), self._p_x)


class InterchangeableSymbols:
    """Kinds of symbols of X: symbols of one kind have the same P(S|x) and are equally useful.

    The search for outputs treats a kind as one symbol: no useful output needs more than one of
    several symbols with the same P(S|x), and it makes no difference which. Real tables have many
    such symbols: rare ones that occur with only one value of S.

    Attributes
    ----------
    task : DesignTask
        The task with each kind as one symbol.
    kinds : ndarray of shape (n_x,)
        The kind of each symbol.
    are_distinct : bool
        Whether every symbol is a kind of its own.
    """

    def __init__(self, task: DesignTask) -> None:
        self.task, self._p_x = task, task.joint.p_x
        traits = np.vstack([task.joint.deviations, task.utility.traits(len(self._p_x))])
        traits = traits.round(SAME_DIGITS)
        _, first, kinds = np.unique(traits, axis=1, return_index=True, return_inverse=True)
        self.kinds = kinds.reshape(-1)
        self.are_distinct = len(first) == len(self.kinds)
        if not self.are_distinct:
            merged, utility = task.joint.merged(self.kinds), task.utility.restricted(first)
            self.task = task.about(merged, utility=utility)

    def expanded(
        self, points: Points, charges: FloatArray | None = None
    ) -> tuple[Points, FloatArray | None]:
        """Return points over all symbols of X whose mixtures include those of `points`.

        Also return their charges, if given. The points include the split independent output, which
        distinguishes symbols of the same kind.
        """
        if self.are_distinct:
            return points, charges
        points = Points.concatenate([points, Points.from_dense(self.task.joint.p_x[None])])
        points, origin = self.split(points)
        return points, None if charges is None else np.append(charges, 0.0)[origin]

    def split(self, points: Points) -> tuple[Points, IntArray]:
        """Return points over all symbols of X, and the position in `points` each comes from.

        The symbols of each kind are laid side by side on [0, 1], by their share of the kind. At
        any place there is one symbol of each kind, which changes only where a symbol ends: one
        point for each interval between such ends gives every symbol its share.
        """
        kinds = np.arange(self.kinds.max() + 1)
        members: list[IntArray] = [np.flatnonzero(self.kinds == kind) for kind in kinds]
        ends = [np.cumsum(self._p_x[m]) / self._p_x[m].sum() for m in members]
        parts = [
            _split(support, values, members, ends)
            for support, values in zip(points.support, points.values, strict=True)
        ]
        origin = np.repeat(np.arange(len(points)), [len(part) for part in parts])
        return Points.concatenate(parts), origin


def _split(
    support: IntArray, values: FloatArray, members: Sequence[IntArray], ends: Sequence[FloatArray]
) -> Points:
    """Return the parts of one point; members : of each kind; ends : of the symbols in a kind."""
    support, values = support[values > 0], values[values > 0]
    cuts = np.unique(np.concatenate([[0.0, 1.0], *(ends[kind][:-1] for kind in support)]))
    middles = (cuts[1:] + cuts[:-1]) / 2
    symbols = [members[kind][np.searchsorted(ends[kind][:-1], middles)] for kind in support]
    return Points(np.stack(symbols, axis=1), np.tile(values, (len(middles), 1)))
