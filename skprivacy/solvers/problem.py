"""What is to be solved, as the solvers see it, and the cases with an immediate exact answer."""

from functools import cached_property

import numpy as np

from .._messages import InPython, Message, Setting, table_size
from .._typing import FloatArray
from ..exceptions import SolverError
from ..geometry import Points, slab_vertices
from ..geometry.bases import count_bases
from ..measures.leakage import value_in
from ..merging import tidied
from ..utilities import DEFAULT_TOL, NO_UTILITY
from .base import Solution
from .candidates import Candidates, all_candidates, excess_over
from .leakage_function import LeakageFunction
from .linear_oracle import LinearOracle
from .linear_program import MixtureProgram, Offers
from .max_lift import DEFAULT_MAX_BASES
from .reductions import InterchangeableSymbols
from .task import DesignTask

# How much of the tolerance may be given up for the utility's preference between equals, and the
# same amount again for fewer outputs.
_PREFERENCE = 0.01

# Singular values between the rounding of deviations and this share of the largest blur a rank.
_BLURRED = 1e-7
_SINGULAR_ROUNDING = 1e-14

# How accurately enumerated vertices are known, in relative terms; the bound allows for it.
_VERTEX_ACCURACY = 1e-11

# How far the prices of all vertices may be from their optimum, in nats.
_PRICE_ACCURACY = 1e-9


class Problem:
    """A task with interchangeable symbols of X merged; solutions are for all symbols."""

    def __init__(self, task: DesignTask) -> None:
        self._whole = task
        self._symbols = InterchangeableSymbols(task)
        self._merged = self._symbols.task
        self.measure, self.scope, self.utility = task.measure, task.scope, self._merged.utility
        self.leakage = LeakageFunction(self._merged.joint, task.measure)
        self.program = MixtureProgram(self.p_x, self.utility)
        self._whole_program = MixtureProgram(task.joint.p_x, task.utility)

    @property
    def p_x(self) -> FloatArray:
        """The distribution of the merged X."""
        return self._merged.joint.p_x

    @cached_property
    def rank(self) -> int:
        """The rank of P(S|X): a useful output has no larger support."""
        return self._candidates.polytopes.rank

    @cached_property
    def _candidates(self) -> Candidates:
        return Candidates(self._merged, DEFAULT_MAX_BASES)

    def count_bases(self) -> int:
        """Return how many vertices polytopes of bounded lifts may have."""
        low, _ = self.measure.implied_deviations(1.0) or (-1.0, 1.0)
        n_s, n_x = self._merged.joint.p_sx.shape
        return count_bases(n_s, n_x, self.rank, sides=1 if low == -1 else 2)

    def threshold(self, epsilon: float) -> float:
        """Return the largest g that epsilon allows."""
        return self.leakage.threshold(epsilon)

    def allows_identity(self, epsilon: float) -> bool:
        """Return whether the budget allows Y = X."""
        leakage = self._leakage_of_identity
        return leakage <= self.threshold(epsilon) or self.measure.budget(epsilon) == np.inf

    @cached_property
    def _leakage_of_identity(self) -> float:
        values = self.leakage.value(self.leakage.deviations.T)
        return value_in(self.scope, values, self.p_x)

    def is_trivial(self, epsilon: float) -> bool:
        """Return whether a budget allows X itself, or no output is of any use."""
        return self.allows_identity(epsilon) or self._is_useless()

    def is_easy(self, epsilon: float) -> bool:
        """Return whether a budget has an immediate exact answer, however large X's alphabet."""
        is_pairs = self.rank <= 2 and not self.measure.is_lift_box
        is_pairs = is_pairs and (self.scope == "per_output" or self.threshold(epsilon) <= 0)
        return is_pairs or self.is_trivial(epsilon)

    def _is_useless(self) -> bool:
        """Return whether no output has any utility: V and X are independent."""
        return self.span <= NO_UTILITY

    def is_special(self, epsilon: float) -> bool:
        """Return whether a budget is solved exactly once all vertices of (22) are known."""
        is_box = self.scope == "per_output" and self.measure.is_lift_box
        return self.is_easy(epsilon) or self.threshold(epsilon) <= 0 or is_box

    def special(self, epsilon: float) -> Solution | None:
        """Return the exact solution of a special budget; None for the others.

        Saturation: Y = X. Perfect privacy: the outputs with ``deviations @ W = 0``. Bounded lifts:
        the vertices of (22). One degree of freedom of S: pairs of symbols.
        """
        if not self.is_special(epsilon):
            return None
        if self.is_trivial(epsilon):
            p_x = self._whole.joint.p_x
            channel = np.eye(len(p_x)) if self.allows_identity(epsilon) else np.ones((len(p_x), 1))
            return Solution(channel, self._whole.utility.largest(p_x))
        threshold = self.threshold(epsilon)
        if self.rank <= 2 and not self.measure.is_lift_box:
            vertices = self._slab(threshold)
            around = self._slab(threshold + self.leakage.rounding) if threshold > 0 else vertices
            return self._enumerated(vertices, around, epsilon)
        if self.count_bases() > DEFAULT_MAX_BASES:
            raise SolverError(
                Message(
                    table_size(*self._merged.joint.p_sx.shape),
                    f" has up to {self.count_bases():,} candidate vertices, too many for a "
                    f"certificate at ",
                    Setting("epsilon", epsilon),
                    ". Use ",
                    Setting("solver", "column_generation"),
                    InPython(
                        ", pool rare symbols of X, or coarsen S.",
                        ", pool rare values of the released columns, or take fewer groups of the "
                        "sensitive ones.",
                    ),
                )
            )
        if threshold > 0:
            vertices = self._candidates.vertices(epsilon)
        else:
            vertices = self.perfectly_private()
        return self._enumerated(vertices, vertices, epsilon)

    def perfectly_private(self) -> Points:
        """Return the vertices of the outputs that reveal nothing about S."""
        return self._candidates.polytopes.vertices(-1.0, 0.0)

    def _slab(self, threshold: float) -> Points:
        """Return the vertices of the allowed set where it is an interval of one number."""
        row = np.ptp(self.leakage.deviations, axis=1).argmax()
        t = self.leakage.deviations[row]
        if threshold <= 0:
            return slab_vertices(t, 0.0, 0.0)
        ends = self.leakage.deviations[:, [t.argmin(), t.argmax()]].T
        return slab_vertices(t, *(self.leakage.shrunk(ends, threshold) * [t.min(), t.max()]))

    def _enumerated(self, vertices: Points, around: Points, epsilon: float) -> Solution:
        """Return the solution whose outputs are among all `vertices` of the allowed set.

        The bound comes from the vertices `around`, which are a little further out.
        """
        if not len(vertices):  # rounding hides them all
            vertices = around = Points.from_dense(self.p_x[None])
        offers = Offers(vertices, self.utility.value(vertices))
        few = np.argsort(-offers.values)[: 20 * len(self.p_x)]
        weights, prices = self.program.price(offers, _PRICE_ACCURACY, few)
        # A vertex that is off by some share of itself changes its cost by that share.
        outer = Offers(around, self.utility.value(around))
        cost = (np.abs(prices.symbols)[around.support] * around.values).sum(axis=1)
        bound = prices.bound(self.p_x, outer, _VERTEX_ACCURACY * (np.abs(outer.values) + cost))
        if not self.knows_all_allowed(epsilon):
            bound = np.inf
        most = np.argsort(-prices.surplus(offers))[: 10 * len(self.p_x)]
        return self.solution(offers[np.union1d(np.flatnonzero(weights), most)], bound, epsilon)

    def knows_all_allowed(self, epsilon: float) -> bool:
        """Return whether no outputs are allowed but those that leakage tells.

        At a budget of zero these are the independent ones, unless others have the smallest value
        too, or rounding hides which are independent.
        """
        return self.threshold(epsilon) > 0 or (self.measure.is_strict and self._is_clear())

    def _is_clear(self) -> bool:
        """Return whether rounding blurs neither the rank of P(S|X) nor any of its vertices."""
        scale = np.abs(self.leakage.deviations).max(axis=1)
        rows = self.leakage.deviations[scale > 0] / scale[scale > 0, None]
        singular = np.linalg.svd(rows, compute_uv=False)
        singular /= singular.max(initial=1.0)
        # Rows were divided by their scale, and so was the rounding of deviations.
        rounding = _SINGULAR_ROUNDING / scale[scale > 0].min(initial=1.0)
        return not ((singular > rounding) & (singular < _BLURRED)).any()

    def allowed(self, points: Points, epsilon: float) -> Points:
        """Return allowed points next to `points`; on average all are."""
        threshold = self.threshold(epsilon)
        if threshold <= 0:
            return self._candidates.within(self._independent(points), epsilon)
        if self.scope == "average":
            return points
        deviations = points.times(self.leakage.deviations)
        return self.leakage.allowed(points, deviations, threshold, self.p_x)[0]

    def _independent(self, points: Points) -> Points:
        """Return points whose lifts are 1 up to rounding, moved until they are exactly 1."""
        columns = np.swapaxes(self.leakage.deviations.T[points.support], 1, 2)
        system = np.concatenate([columns, np.ones((len(points), 1, columns.shape[2]))], axis=1)
        system *= (points.values > 0)[:, None, :]
        right = np.append(np.zeros(len(self.leakage.deviations)), 1.0)
        inverse, values = np.linalg.pinv(system), points.values
        for _ in range(2):
            missing = right - np.einsum("nsw,nw->ns", system, values)
            values = values + np.einsum("nws,ns->nw", inverse, missing)
        values = np.maximum(values, 0.0)
        return Points(points.support, values / values.sum(axis=1, keepdims=True))

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
        """Return the oracle of the lifts that imply the budget: the polytope (22)."""
        low, high = self.measure.implied_deviations(epsilon) or (0.0, 0.0)
        rows = self.leakage.deviations
        rows, upper = np.vstack([rows, -rows]), np.repeat([high, -low], len(rows))
        finite = upper < np.inf
        return LinearOracle(self.leakage, np.inf, False, rows[finite], upper[finite])

    def algorithm1_candidates(self, epsilon: float) -> Points:
        """Return what Algorithm 1 would choose from, for any exponent."""
        vertices = self._candidates.vertices(epsilon)
        if self.measure.is_lift_box:
            return vertices
        return Points.concatenate([vertices, all_candidates(self._candidates, epsilon)])

    def solution(
        self, offers: Offers, bound: float, epsilon: float, tol: float = DEFAULT_TOL
    ) -> Solution:
        """Return the solution that mixes allowed points, with a bound on ``sum q u(W)``."""
        utility, p_x = self._whole.utility, self._whole.joint.p_x
        points, charges = self._symbols.expanded(offers.points, offers.charges)
        preference = _PREFERENCE * tol * utility.preference(points)
        mixture = self._whole_program.solve(
            points,
            excess_over(self._whole, epsilon),
            charges,
            utility.value(points) + preference,
        )
        allowance = _PREFERENCE * tol * utility.span(p_x)
        channel = tidied(mixture.channel, p_x, utility, allowance)
        bound = min(bound, self.ceiling(epsilon))
        return Solution(channel, bound + utility.offset(p_x))

    @property
    def span(self) -> float:
        """How much more X is worth than nothing."""
        return self._whole.utility.span(self._whole.joint.p_x)

    @property
    def convexity(self) -> float:
        """A c such that u - c g is convex."""
        largest_lift = 1 + self.leakage.deviations.max()
        return self.utility.surplus_convexity / self.measure.curvature(largest_lift)

    def ceiling(self, epsilon: float) -> float:
        """Return a bound on ``sum q u(W)`` that holds for any channel within the budget.

        ``I(V;Y) <= I(S;Y) + I(V;X|S)``, and a budget bounds the former: attained where S is a
        function of X, and where the refinement is slow.
        """
        utility, joint = self._whole.utility, self._whole.joint
        most = self.measure.information(epsilon) + utility.given_sensitive(joint)
        return most - utility.offset(joint.p_x)

    def gap(self, solution: Solution) -> float:
        """Return how much a solution lacks at most, as a share of the span of the utility."""
        utility, p_x = self._whole.utility, self._whole.joint.p_x
        channel = solution.channel / solution.channel.sum(axis=1, keepdims=True)
        reached = utility.of_channel(p_x, channel)
        largest = utility.largest(p_x)
        bound = largest if solution.upper_bound is None else min(solution.upper_bound, largest)
        return (bound - reached) / self.span
