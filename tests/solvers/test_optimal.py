"""The certified optimum, against oracles, brute force and itself."""

import warnings
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import (
    EXAMPLE_1,
    THREE_BY_THREE,
    Hellinger,
    best_on_grid,
    entropy,
    random_joint,
    simplex_grid,
)
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from test_solvers import OPTIMUM, THREE_EPSILONS

from skprivacy import design_mechanism, privacy_utility_path
from skprivacy.budgets import mechanism_for_utility
from skprivacy.measures import AlphaLift, Lip, get_measure
from skprivacy.solvers import OptimalSolver
from skprivacy.utilities import Guess, MutualInformation, Target

# The optimum on average for the 3 x 3 joint at epsilon .05, .1 and .3.
ON_AVERAGE = {
    "kl": (0.27466009, 0.50285437, 0.85726232),
    "l1": (0.07835336, 0.15670672, 0.47012016),
    "chi2": (0.00782141, 0.03071293, 0.26289133),
    "max_lift": (0.06648168, 0.13637195, 0.44201158),
    AlphaLift(2): (0.30922815, 0.55023704, 1.05025145),
    AlphaLift(5): (0.11803482, 0.22875924, 0.63326899),
}
V = Target([[0.9, 0.5, 0.1], [0.1, 0.5, 0.9]])
OTHER_UTILITIES = [
    (V, "per_output", (0.08823385, 0.15620113, 0.21274318)),
    (V, "average", (0.09401530, 0.15766665, 0.21283187)),
    (Guess(), "per_output", (0.59646836, 0.70384982, 0.90542142)),
    (Guess(), "average", (0.59673982, 0.70421083, 0.91476425)),
]
CURVED = ["kl", "chi2", "l1", AlphaLift(2), AlphaLift(5), "max_lift", "parity"]
SCOPES = ["per_output", "average"]
UTILITIES = [MutualInformation(), V, Guess()]


def every_pair(measures):
    """Return problems in which every two of measure, scope and utility meet; the rest is slow."""
    rest = pytest.mark.slow
    return pytest.mark.parametrize(
        ("measure", "scope", "utility"),
        [
            pytest.param(measure, scope, utility, marks=[rest] if (i + j + k) % 2 else [])
            for i, measure in enumerate(measures)
            for j, scope in enumerate(SCOPES)
            for k, utility in enumerate(UTILITIES)
        ],
        ids=str,
    )


def optimal(joint, epsilon, tol=1e-5, **options):
    return design_mechanism(joint, epsilon, solver=OptimalSolver(tol=tol), **options)


def certified(mechanism, tol):
    largest = mechanism.objective.largest(mechanism.p_x)
    return mechanism.utility <= mechanism.upper_bound and mechanism.gap <= tol * largest


class TestOracles:
    """Section 4 of the design: every value to 1e-6 at tol=1e-7."""

    @pytest.mark.parametrize("measure", OPTIMUM, ids=str)
    def test_per_output(self, measure):
        for epsilon, value in zip(THREE_EPSILONS, OPTIMUM[measure], strict=True):
            mechanism = optimal(THREE_BY_THREE, epsilon, measure=measure, tol=1e-7)
            assert_allclose(mechanism.utility, value, atol=2e-7)
            assert certified(mechanism, 1e-7)

    @pytest.mark.parametrize("measure", ON_AVERAGE, ids=str)
    def test_on_average(self, measure):
        for epsilon, value in zip(THREE_EPSILONS, ON_AVERAGE[measure], strict=True):
            mechanism = optimal(
                THREE_BY_THREE, epsilon, measure=measure, scope="average", tol=1e-7
            )
            assert_allclose(mechanism.utility, value, atol=2e-7)
            assert certified(mechanism, 1e-7)

    @pytest.mark.parametrize(("utility", "scope", "values"), OTHER_UTILITIES, ids=str)
    def test_other_utilities(self, utility, scope, values):
        for epsilon, value in zip(THREE_EPSILONS, values, strict=True):
            mechanism = optimal(THREE_BY_THREE, epsilon, scope=scope, utility=utility, tol=1e-7)
            assert_allclose(mechanism.utility, value, atol=2e-7)
            assert certified(mechanism, 1e-7)

    def test_a_local_solver_is_far_from_it(self):
        """A published difference-of-convex sweep of 144 runs found 0.205 nats here."""
        assert optimal(THREE_BY_THREE, 0.1, scope="average").utility > 2.4 * 0.205

    def test_example_1(self):
        for epsilon, value in (
            (0.01, 0.00274476086), (0.05, 0.07287184356), (0.078, 0.21561924246),
        ):  # fmt: skip
            mechanism = optimal(EXAMPLE_1, epsilon, measure="chi2", tol=1e-7)
            assert_allclose(mechanism.utility, value, atol=1e-9)

    @pytest.mark.parametrize(
        ("p_x", "epsilon", "utility"),
        [
            ((0.2, 0.3, 0.5), 0.1, 0.0118892739),
            ((0.2, 0.3, 0.5), 0.2, 0.0611950953),
            ((0.25,) * 4, 0.25, 0.1700820366),
        ],
    )
    def test_s_equal_to_x(self, p_x, epsilon, utility):
        mechanism = optimal(np.diag(p_x), epsilon, measure="max_lift", tol=1e-7)
        assert_allclose(mechanism.utility, utility, atol=1e-8)

    @pytest.mark.parametrize(
        ("q", "d", "kept", "leaked"),
        [
            (0.14, 0.24, 0.14598483, 0.01830301),
            (0.3, 0.1, 0.33360543, 0.16872682),
            (0.3, 0.1, 0.08161371, 0.03760955),
        ],
    )
    def test_binary_symmetric_channel(self, q, d, kept, leaked):
        joint = np.array([[1 - d, d], [d, 1 - d]]) * [1 - q, q]
        mechanism = optimal(joint, leaked, scope="average", tol=1e-7)
        assert_allclose(mechanism.utility, kept, atol=1e-6)


class TestBruteForce:
    """A dense grid of the simplex, for |X| <= 3: feasible points, and nearly all of them."""

    @every_pair(["kl", "chi2", "l1", AlphaLift(3), "max_lift"])
    def test_against_a_grid(self, measure, scope, utility):
        rng = np.random.default_rng(3)
        for joint in (THREE_BY_THREE, rng.dirichlet(np.ones(9)).reshape(3, 3)):
            for epsilon in (0.02, 0.15):
                mechanism = optimal(
                    joint, epsilon, measure=measure, scope=scope, utility=utility, tol=1e-6
                )
                reached = best_on_grid(joint, epsilon, get_measure(measure), scope, utility)
                largest = utility.largest(joint.sum(axis=0))
                assert reached <= mechanism.upper_bound + 1e-9
                assert mechanism.utility >= reached - 1e-6 * largest
                assert mechanism.utility <= reached + 0.015 * largest  # the grid is fine

    def test_the_grid_itself(self):
        grid = simplex_grid(3, 10)
        assert len(grid) == 66
        assert_allclose(grid.sum(axis=1), 1.0)


class TestEarlyStop:
    @pytest.mark.parametrize("scope", SCOPES)
    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            ({"max_time": 0.0}, "max_time"),
            ({"max_vertices": 20}, "max_vertices"),
            ({"max_visits": 20}, "max_visits are used up"),
        ],
    )
    def test_says_so_and_keeps_the_budget(self, options, reason, scope):
        joint = np.random.default_rng(0).random((4, 7))
        match = (
            f"^The optimal solver .* because .*{reason}\\D*Mechanism.gap\\D*$"  # without figures
        )
        with pytest.warns(ConvergenceWarning, match=match) as caught:
            mechanism = design_mechanism(
                joint, 0.05, measure="chi2", scope=scope, solver=OptimalSolver(**options)
            )
        assert caught[0].filename == __file__
        assert mechanism.leakage_in(scope) <= 0.05 * (1 + 1e-9)
        best = optimal(joint, 0.05, measure="chi2", scope=scope)
        assert mechanism.upper_bound >= best.utility
        assert mechanism.gap > 1e-3

    def test_of_a_path_leaves_the_rest_feasible(self):
        joint = np.random.default_rng(0).random((4, 7))
        with pytest.warns(ConvergenceWarning):
            path = privacy_utility_path(
                joint,
                [0.01, 0.05, 0.1, 0.7],
                measure="chi2",
                solver="optimal",
                solver_options={"max_vertices": 100},
            )
        for mechanism in path:
            assert mechanism.max_leakage <= mechanism.epsilon * (1 + 1e-9)
        assert (np.diff([mechanism.utility for mechanism in path]) > 0).all()

    def test_a_path_has_room_for_every_budget(self):
        # 8,000 vertices are enough for each of these budgets alone.
        joint, epsilons = np.random.default_rng(0).random((4, 7)), np.geomspace(0.005, 0.1, 12)
        options = {"scope": "average", "solver": OptimalSolver(max_vertices=8000)}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            path = privacy_utility_path(joint, epsilons, **options)
        assert all(m.gap <= 1e-5 * entropy(m.p_x) for m in path)

    def test_no_warning_otherwise(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            solver = OptimalSolver(max_time=100.0, max_vertices=10**5)
            design_mechanism(THREE_BY_THREE, 0.1, solver=solver)


class TestSpecialCases:
    @pytest.mark.parametrize("scope", SCOPES)
    @pytest.mark.parametrize("measure", CURVED, ids=str)
    def test_perfect_privacy(self, measure, scope):
        joint = np.random.default_rng(1).random((2, 5))
        mechanism = optimal(joint, 0.0, measure=measure, scope=scope)
        # By hand: the best mixture of pairs of symbols with P(S|y) = P(S).
        p_x, t = joint.sum(axis=0) / joint.sum(), joint[0] / joint.sum(axis=0)
        level, points = joint[0].sum() / joint.sum(), []
        for a in np.flatnonzero(t < level):
            for b in np.flatnonzero(t > level):
                point = np.zeros(5)
                point[[a, b]] = [t[b] - level, level - t[a]]
                points.append(point / point.sum())
        points = np.array(points)
        best = linprog(entropy(points), A_eq=points.T, b_eq=p_x)
        assert_allclose(mechanism.utility, entropy(p_x) - best.fun, atol=1e-8)
        assert mechanism.gap <= 1e-8
        assert mechanism.sensitive_information <= 1e-15

    @every_pair(CURVED)
    def test_saturation(self, measure, scope, utility):
        limit = mechanism_for_utility(
            THREE_BY_THREE, 1.0, measure=measure, scope=scope, utility=utility
        )
        mechanism = optimal(
            THREE_BY_THREE, limit.epsilon, measure=measure, scope=scope, utility=utility
        )
        assert_allclose(mechanism.normalized_utility, 1.0)
        assert mechanism.gap <= 1e-9

    def test_a_measure_that_is_flat_at_the_prior_is_not_certified_at_zero(self):
        class Forgiving(Hellinger):
            def value(self, posterior, prior):
                return np.maximum(super().value(posterior, prior) - 0.001, 0.0)

        mechanism = optimal(THREE_BY_THREE, 0.0, measure=Forgiving())
        larger = optimal(THREE_BY_THREE, 0.03, measure=Hellinger())  # 0.03^2 < 0.001
        assert mechanism.upper_bound >= larger.utility

    def test_identical_symbols(self):
        """Splitting a symbol of X into identical halves keeps H(X|Y) and the chance to guess."""
        joint = np.random.default_rng(5).random((3, 4))
        joint /= joint.sum()
        split = np.hstack(
            [joint[:, :1] * 0.3, joint[:, :1] * 0.7, joint[:, 1:] * 0.5, joint[:, 1:] * 0.5]
        )
        p_x, p_split = joint.sum(axis=0), split.sum(axis=0)
        for scope in SCOPES:
            plain, copies = (optimal(table, 0.05, scope=scope) for table in (joint, split))
            assert_allclose(
                entropy(p_x) - plain.utility, entropy(p_split) - copies.utility, atol=4e-5
            )
            assert copies.channel.shape[1] <= 9
            plain, copies = (
                optimal(table, 0.05, scope=scope, utility="guess") for table in (joint, split)
            )
            assert_allclose(plain.utility, copies.utility, atol=2e-5)

    def test_a_user_measure_that_is_not_convex(self):
        class Wrong(Hellinger):
            def subgradient(self, posterior, prior):
                return -super().subgradient(posterior, prior)

        for solver in ("optimal", "column_generation"):
            with pytest.raises(ValueError, match="must be convex .*'subgradient'"):
                design_mechanism(THREE_BY_THREE, 0.1, measure=Wrong(), solver=solver)

    @pytest.mark.parametrize("scope", SCOPES)
    def test_a_user_measure(self, scope):
        mechanism = optimal(THREE_BY_THREE, 0.1, measure=Hellinger(), scope=scope, tol=1e-6)
        assert certified(mechanism, 1e-6)
        reached = best_on_grid(THREE_BY_THREE, 0.1, Hellinger(), scope, MutualInformation())
        assert reached - 1e-6 <= mechanism.utility <= reached + 0.01

    def test_lip_has_no_average(self):
        with pytest.raises(ValueError, match="has no scope 'average'"):
            optimal(THREE_BY_THREE, 0.1, measure="lip", scope="average")

    def test_ties_of_guess_are_broken_by_information(self):
        """Two outputs are enough to guess as well; a third one tells more."""
        joint = np.diag([0.5, 0.25, 0.25])
        mechanism = optimal(joint, np.log(1.6), measure="max_lift", utility="guess")
        assert mechanism.mutual_information > 0.1
        assert mechanism.normalized_utility < 1


class TestPath:
    @pytest.mark.parametrize("measure", ["kl", "chi2", "l1"])
    @pytest.mark.parametrize("scope", SCOPES)
    def test_equals_single_designs(self, measure, scope):
        joint = np.random.default_rng(0).random((3, 6))
        epsilons = [0.3, 0.01, 0.02, 0.1, 5.0, 0.0]
        options = {"measure": measure, "scope": scope, "solver": "optimal"}
        path = privacy_utility_path(joint, epsilons, **options)
        for epsilon, mechanism in zip(epsilons, path, strict=True):
            alone = design_mechanism(joint, epsilon, **options)
            assert mechanism.epsilon == epsilon
            assert certified(mechanism, 1e-5)
            assert alone.utility <= mechanism.upper_bound + 1e-12
            assert mechanism.utility <= alone.upper_bound + 1e-12

    @pytest.mark.parametrize("measure", ["kl", "chi2", "max_lift", AlphaLift(3)], ids=str)
    def test_is_concave_in_the_threshold_on_average(self, measure):
        joint = np.random.default_rng(1).random((3, 5))
        measure = get_measure(measure)
        thresholds = np.linspace(measure.threshold(0.01), measure.threshold(0.25), 9)
        epsilons = [float(measure.inverse(t)) for t in thresholds]
        path = privacy_utility_path(
            joint,
            epsilons,
            measure=measure,
            scope="average",
            solver="optimal",
            solver_options={"tol": 1e-6},
        )
        utilities = np.array([m.utility for m in path])
        assert (np.diff(utilities) >= 0).all()
        assert (np.diff(utilities, 2) <= 4e-6 * entropy(joint.sum(axis=0) / joint.sum())).all()

    def test_shows_a_progress_bar_when_asked(self, capsys):
        privacy_utility_path(THREE_BY_THREE, [0.1, 0.2], solver="optimal")
        assert capsys.readouterr().err == ""
        privacy_utility_path(THREE_BY_THREE, [0.1, 0.2], solver="optimal", verbose=True)
        assert "2/2" in capsys.readouterr().err


class TestSmallestEpsilon:
    @every_pair(["kl", "l1", "chi2", "max_lift", AlphaLift(3)])
    def test_is_the_smallest(self, measure, scope, utility):
        options = {"measure": measure, "scope": scope, "utility": utility}
        mechanism = mechanism_for_utility(THREE_BY_THREE, 0.7, **options)
        assert mechanism.normalized_utility >= 0.7 - 1e-12
        below = optimal(THREE_BY_THREE, mechanism.epsilon * (1 - 2e-3), **options)
        smallest = utility.smallest(below.p_x)
        assert below.upper_bound < smallest + 0.7 * (utility.largest(below.p_x) - smallest)

    def test_lip(self):
        mechanism = mechanism_for_utility(THREE_BY_THREE, 0.2, measure=Lip())
        assert_allclose(mechanism.normalized_utility, 0.2, atol=1e-3)

    def test_all_and_nothing(self):
        assert mechanism_for_utility(THREE_BY_THREE, 0.0).epsilon == 0
        everything = mechanism_for_utility(THREE_BY_THREE, 1.0)
        assert_allclose(everything.normalized_utility, 1.0)
        assert_allclose(everything.epsilon, everything.max_leakage)

    def test_what_perfect_privacy_keeps_costs_nothing(self):
        joint = np.random.default_rng(0).random((3, 8))
        mechanism = mechanism_for_utility(joint, 0.4)
        assert mechanism.epsilon == 0
        assert mechanism.normalized_utility >= 0.4

    @pytest.mark.parametrize("share", [-0.1, 1.1, np.nan])
    def test_out_of_range(self, share):
        with pytest.raises(ValueError, match=r"'utility_at_least' .* range \[0, 1\]"):
            mechanism_for_utility(THREE_BY_THREE, share)

    def test_everything_is_a_share_of_one_but_for_rounding(self):
        for seed in range(8):
            mechanism = mechanism_for_utility(np.random.default_rng(seed).random((3, 5)), 1.0)
            assert_allclose(mechanism.normalized_utility, 1.0)

    def test_where_releasing_x_leaks_infinitely_much(self):
        mechanism = mechanism_for_utility(np.diag([0.2, 0.3, 0.5]), 0.5, measure="lip")
        assert_allclose(mechanism.normalized_utility, 0.5, atol=1e-3)

    def test_what_no_budget_allows(self):
        with pytest.raises(ValueError, match="'utility_at_least' .* 0.5, which no budget allows"):
            mechanism_for_utility(np.diag([0.2, 0.3, 0.5]), 0.5, measure=Lip(lower=0.2))

    def test_scope(self):
        with pytest.raises(ValueError, match="has no scope 'average'"):
            mechanism_for_utility(THREE_BY_THREE, 0.5, measure="lip", scope="average")


class TestUtilities:
    def test_mechanisms_report_what_they_were_designed_for(self):
        mechanism = optimal(THREE_BY_THREE, 0.1, utility=V)
        assert mechanism.objective == V
        assert_allclose(mechanism.utility, V.of_channel(mechanism.p_x, mechanism.channel))
        assert_allclose(mechanism.normalized_utility, mechanism.utility / V.largest(mechanism.p_x))
        assert mechanism.utility < mechanism.mutual_information
        for part in ("objective=Target(<2 x 3 table>)", "I(X;Y)=0.49"):
            assert part in repr(mechanism)

    def test_guess_is_normalised_between_blind_and_sure(self):
        mechanism = optimal(THREE_BY_THREE, 0.1, utility="guess")
        by_hand = (mechanism.p_x[:, None] * mechanism.channel).max(axis=0).sum()
        assert_allclose(mechanism.utility, by_hand)
        assert_allclose(mechanism.normalized_utility, (by_hand - 1 / 3) / (2 / 3))
        nothing = optimal(THREE_BY_THREE, 0.0, utility="guess")
        assert_allclose(nothing.normalized_utility, 0.0, atol=1e-9)

    def test_target_equal_to_x_is_mutual_information(self):
        ours, plain = (
            optimal(THREE_BY_THREE, 0.1, utility=utility)
            for utility in (Target(np.eye(3)), "mutual_information")
        )
        assert_allclose(ours.utility, plain.utility, atol=1e-5)

    def test_target_that_x_does_not_tell(self):
        mechanism = optimal(THREE_BY_THREE, 0.1, utility=Target(np.ones((2, 3))))
        assert mechanism.utility <= 1e-12
        assert mechanism.normalized_utility == 1.0

    def test_symbols_that_never_occur(self):
        joint = np.hstack([THREE_BY_THREE[:, :1], np.zeros((3, 1)), THREE_BY_THREE[:, 1:]])
        target = Target([[0.9, 0.0, 0.5, 0.1], [0.1, 0.0, 0.5, 0.9]])
        mechanism = optimal(joint, 0.1, utility=target)
        assert_allclose(mechanism.utility, 0.15620113, atol=1e-5)


@st.composite
def joints(draw):
    return random_joint(np.random.default_rng(draw(st.integers(0, 2**32 - 1))), largest=(4, 8))


# Rounding ends the search over pairs of its symbols.
NEARLY_CONSTANT = np.array(
    [
        [5.68121152e-07, 2.03952385e-10, 8.20302419e-08, 1.17871598e-07],
        [9.01507891e-09, 4.51845409e-05, 9.99918767e-01, 3.52712916e-05],
    ]
)


class TestTheorems:
    """On random and degenerate joints: zeros, ties, low rank, 1e-9."""

    @settings(max_examples=25, deadline=None)
    @given(
        joint=joints(),
        measure=st.sampled_from([*CURVED, "lip"]),
        scope=st.sampled_from(SCOPES),
        utility=st.sampled_from(["mutual_information", "guess"]),
    )
    @example(joint=NEARLY_CONSTANT, measure="chi2", scope="average", utility="mutual_information")
    def test_bounds_budgets_and_order(self, joint, measure, scope, utility):
        if scope not in get_measure(measure).scopes:
            return
        path = privacy_utility_path(
            joint, [0.0, 0.003, 0.05, 0.4, 3.0], measure=measure, scope=scope, utility=utility,
            solver="optimal",
        )  # fmt: skip
        for mechanism in path:
            assert mechanism.utility <= mechanism.upper_bound
            assert certified(mechanism, 1e-5)
            assert mechanism.leakage_in(scope) <= mechanism.epsilon * (1 + 1e-9) + 1e-12
        assert (np.diff([m.utility for m in path]) >= 0).all()

    @settings(max_examples=25, deadline=None)
    @given(
        joint=joints(),
        measure=st.sampled_from(CURVED),
        scope=st.sampled_from(SCOPES),
        seed=st.integers(0, 1000),
    )
    def test_invariance(self, joint, measure, scope, seed):
        """Splitting S, or permuting symbols, changes nothing."""
        rng = np.random.default_rng(seed)
        split = np.vstack([joint[:1] * 0.3, joint[:1] * 0.7, joint[1:]])
        changed = rng.permutation(rng.permutation(split, axis=0), axis=1)
        one, other = (
            optimal(table, 0.05, measure=measure, scope=scope) for table in (joint, changed)
        )
        largest = one.objective.largest(one.p_x)
        assert abs(one.utility - other.utility) <= 1.1e-5 * largest
        assert one.utility <= other.upper_bound + 1e-9
        assert other.utility <= one.upper_bound + 1e-9

    @settings(max_examples=20, deadline=None)
    @given(joint=joints(), epsilon=st.sampled_from([0.003, 0.05, 0.4]))
    def test_the_order_of_scopes(self, joint, epsilon):
        """For kl: optimum per output <= on average <= min(H(X), epsilon + H(X|S))."""
        per_output, average = (optimal(joint, epsilon, scope=scope) for scope in SCOPES)
        p_s, p_x = joint.sum(axis=1), joint.sum(axis=0)
        given_s = joint[p_s > 0] / p_s[p_s > 0, None]
        assert per_output.utility <= average.upper_bound + 1e-9
        assert average.utility <= entropy(p_x) + 1e-9
        assert average.utility <= epsilon + p_s[p_s > 0] @ entropy(given_s) + 1e-9


@pytest.mark.slow
class TestOneHundredJoints:
    """The table of section 3: paired mean gains of normalised utility over Algorithm 1."""

    EPSILONS = (0.005, 0.02, 0.05, 0.1, 0.2, 0.5)
    ALGORITHM_1 = np.array([0.5667, 0.7000, 0.8004, 0.8881, 0.9634, 0.9971])
    PUBLISHED: ClassVar = {
        "per_output": np.array([0.5847, 0.7085, 0.8044, 0.8908, 0.9647, 0.9992]),
        "average": np.array([0.6070, 0.7388, 0.8491, 0.9444, 0.9983, 1.0]),
    }

    @pytest.mark.parametrize("scope", SCOPES)
    def test_gains(self, scope):
        gains, path = [], np.arange(1, 201) * 0.0025  # the paper's
        at = [round(epsilon / 0.0025) - 1 for epsilon in self.EPSILONS]
        for joint in np.random.default_rng(0).random((100, 4, 7)):
            options = {"solver": OptimalSolver(start="algorithm1"), "scope": scope}
            ours = privacy_utility_path(joint, self.EPSILONS, **options)
            theirs = privacy_utility_path(
                joint, path, solver="algorithm1", solver_options={"eps_last": 1.0}
            )
            gains.append([
                one.normalized_utility - theirs[i].normalized_utility
                for one, i in zip(ours, at, strict=True)
            ])  # fmt: skip
        gains = np.array(gains)
        assert gains.min() >= -1e-7
        error = gains.std(axis=0, ddof=1) / np.sqrt(len(gains))
        expected = self.PUBLISHED[scope] - self.ALGORITHM_1
        # The published means come from other draws, with errors of the same size.
        assert (np.abs(gains.mean(axis=0) - expected) <= 3 * error * np.sqrt(2) + 1e-4).all()
