from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import (
    EXAMPLE_1,
    THREE_BY_THREE,
    Hellinger,
    best_weights,
    cdd_vertices,
    entropy,
    exact_max_lift_vertices,
    imported_cdd,
    naive_algorithm1,
    random_joint,
)

from skprivacy import SolverError, design_mechanism, privacy_utility_path
from skprivacy.geometry import Points
from skprivacy.joint import as_joint
from skprivacy.measures import L1, AlphaLift, Chi2, Lip
from skprivacy.solvers import Algorithm1Solver, DesignTask, LiftPolytopeSolver
from skprivacy.solvers.leakage_function import Candidates
from skprivacy.solvers.linear_program import MixtureProgram
from skprivacy.utilities import MutualInformation

# The optimum per output for the 3 x 3 joint at epsilon .05, .1 and .3.
OPTIMUM = {
    "kl": (0.22914731, 0.49421284, 0.82771987),
    "l1": (0.00811687, 0.03287974, 0.36617348),
    "chi2": (0.00521895, 0.02104380, 0.21115539),
    "max_lift": (0.00770123, 0.03401477, 0.34951698),
    AlphaLift(2): (0.25405238, 0.50666631, 0.94664946),
    AlphaLift(5): (0.06151134, 0.15224354, 0.51586189),
    "lip": (0.00324208, 0.01279277, 0.10876334),
}
THREE_EPSILONS = (0.05, 0.1, 0.3)
ALL = {"solver": "algorithm1", "solver_options": {"candidates": "all"}}
PUBLISHED = Path(__file__).parents[2] / "examples" / "published"


def utilities(joint, epsilons, **options):
    return [m.utility for m in privacy_utility_path(joint, epsilons, **options)]


class TestMaxLift:
    @pytest.mark.parametrize("engine", ["parametric", "cdd"])
    @pytest.mark.parametrize("measure", ["max_lift", "lip"])
    def test_three_by_three(self, measure, engine):
        if engine == "cdd":
            imported_cdd()
        path = privacy_utility_path(
            THREE_BY_THREE, THREE_EPSILONS, measure=measure, solver_options={"engine": engine}
        )
        assert [m.solver for m in path] == ["lift_polytope"] * 3
        assert_allclose([m.utility for m in path], OPTIMUM[measure], atol=2e-8)
        if engine == "parametric":
            assert all(m.gap < 1e-8 for m in path)

    @pytest.mark.parametrize(
        ("p_x", "epsilon", "utility"),
        [
            ((0.2, 0.3, 0.5), 0.1, 0.0118892739),
            ((0.2, 0.3, 0.5), 0.2, 0.0611950953),
            ((0.25, 0.25, 0.25, 0.25), 0.25, 0.1700820366),
        ],
    )
    def test_s_equal_to_x(self, p_x, epsilon, utility):
        mechanism = design_mechanism(np.diag(p_x), epsilon, measure="max_lift")
        assert_allclose(mechanism.utility, utility, atol=2e-8)

    @pytest.mark.parametrize("measure", ["kl", "l1", "chi2", AlphaLift(2), AlphaLift(5)], ids=repr)
    def test_other_measures_get_the_bound_that_implies_their_budget(self, measure):
        for mechanism in privacy_utility_path(
            THREE_BY_THREE, THREE_EPSILONS, measure=measure, solver="lift_polytope"
        ):
            _, implied = mechanism.measure.implied_deviations(mechanism.epsilon)
            assert mechanism.max_lift - 1 <= implied * (1 + 1e-9)
            same = design_mechanism(THREE_BY_THREE, np.log1p(implied), measure="max_lift")
            assert_allclose(mechanism.utility, same.utility, atol=1e-9)

    def test_the_bound_is_not_claimed_where_it_does_not_hold(self):
        # For another measure, or on average, better mechanisms exist.
        largest = entropy(THREE_BY_THREE.sum(axis=0))
        for options in ({"measure": "kl"}, {"measure": "max_lift", "scope": "average"}):
            mechanism = design_mechanism(THREE_BY_THREE, 0.1, solver="lift_polytope", **options)
            assert_allclose(mechanism.upper_bound, largest)

    def test_asymmetric_lip_lies_between_symmetric_lip_and_max_lift(self):
        joint = np.random.default_rng(0).random((4, 7))
        symmetric, loose, free = (
            design_mechanism(joint, 0.1, measure=measure).utility
            for measure in ("lip", Lip(lower=0.3), "max_lift")
        )
        assert symmetric < loose < free
        assert_allclose(
            design_mechanism(joint, 0.1, measure=Lip(lower=0.1)).utility, symmetric, atol=1e-9
        )
        for lower in (0.0, 1e-13):  # no output may make any symbol less likely: perfect privacy
            mechanism = design_mechanism(joint, 0.1, measure=Lip(lower=lower))
            assert_allclose(mechanism.utility, design_mechanism(joint, 0.0).utility, atol=1e-9)


class TestTheBoundIsABound:
    """No mechanism within the budget has a larger utility than `upper_bound`."""

    @pytest.mark.parametrize("kind", ["plain", "nearly independent", "rare x"])
    @pytest.mark.parametrize("epsilon", [0.0, 1e-5, 0.01])
    def test_against_exact_vertices(self, kind, epsilon):
        rng = np.random.default_rng(7)
        for _ in range(5):
            joint = rng.random((3, 5))
            if kind == "nearly independent":
                joint = 1 + 1e-3 * joint
            elif kind == "rare x":
                joint *= 10.0 ** -rng.integers(0, 8, (1, 5))
            mechanism = design_mechanism(joint, epsilon, measure="max_lift")
            vertices = exact_max_lift_vertices(mechanism.p_sx, np.exp(epsilon))
            if epsilon == 0.0:  # exactly 1 has next to no vertices once the joint is rounded
                vertices = exact_max_lift_vertices(mechanism.p_sx, 1 + 1e-13)
            p_x = mechanism.p_x
            program = MixtureProgram(p_x, MutualInformation())
            exact = program.solve(Points.from_dense(vertices)).bound + entropy(p_x)
            assert_allclose(mechanism.utility, exact, atol=1e-7)
            assert_allclose(mechanism.upper_bound, exact, atol=1e-7)

    def test_what_a_smaller_budget_reaches_a_larger_one_does(self):
        joint = [[5, 3, 4, 8], [8, 2, 1, 4], [3e-7, 2e-7, 3e-7, 5e-7]]
        path = privacy_utility_path(joint, [0, 1e-9, 1e-6], measure="max_lift")
        assert (np.diff([m.utility for m in path]) >= 0).all()
        assert_allclose([m.utility for m in path], 0.2805, atol=1e-3)

    def test_a_witness_by_hand(self):
        counts = [[250001, 249998, 500001], [249999, 250002, 499999]]
        witness = np.array([[1, 0], [0.5, 0.5], [0, 1]])  # says nothing about S, exactly
        p_x = np.sum(counts, axis=0) / np.sum(counts)
        reached = MutualInformation().of_channel(p_x, witness)
        for measure in ("max_lift", "lip", "kl", "l1", "chi2"):
            mechanism = design_mechanism(counts, 0, measure=measure)
            assert mechanism.upper_bound >= mechanism.utility >= reached - 1e-9


class TestAlgorithm1:
    def test_it_is_the_papers_pseudocode(self):
        for joint in np.random.default_rng(1).random((3, 4, 6)):
            joint /= joint.sum()
            epsilons = np.arange(1, 13) * 0.02
            ours = utilities(joint, epsilons, solver=Algorithm1Solver(eps_last=0.9, n_last=60))
            naive = naive_algorithm1(joint, epsilons, eps_last=0.9, n_last=60)
            assert_allclose(ours, naive, atol=1e-9)

    @pytest.mark.parametrize("measure", ["kl", "l1", "chi2", AlphaLift(2), AlphaLift(5)], ids=repr)
    def test_between_the_max_lift_mechanism_and_the_optimum(self, measure):
        options = {"measure": measure}
        lift = utilities(THREE_BY_THREE, THREE_EPSILONS, solver="lift_polytope", **options)
        window = utilities(THREE_BY_THREE, THREE_EPSILONS, solver="algorithm1", **options)
        all_ = utilities(THREE_BY_THREE, THREE_EPSILONS, **ALL, **options)
        optimum = OPTIMUM[measure]
        assert (np.array(lift) <= np.array(window) + 1e-9).all()
        assert (np.array(window) <= np.array(all_) + 1e-9).all()
        assert (np.array(all_) <= np.array(optimum) + 2e-8).all()

    def test_all_candidates_reach_the_optimum_where_it_is_known_to_be_among_them(self):
        for measure, epsilons in {
            "kl": (0.1, 0.3), AlphaLift(2): (0.1, 0.3), AlphaLift(5): (0.3,),
        }.items():  # fmt: skip
            ours = utilities(THREE_BY_THREE, epsilons, measure=measure, **ALL)
            assert_allclose(ours, OPTIMUM[measure][-len(epsilons) :], atol=2e-8)

    def test_example_1(self):
        ours = utilities(EXAMPLE_1, (0.01, 0.05, 0.078), measure="chi2", **ALL)
        assert_allclose(ours, (0.00274476086, 0.07287184356, 0.21561924246), atol=1e-9)
        assert_allclose(entropy(EXAMPLE_1.sum(axis=0)), 0.5623351446, atol=1e-10)

    def test_example_1_moves_with_the_published_slope_up_to_where_it_is_feasible(self):
        p_x, limit = EXAMPLE_1.sum(axis=0), 0.0780076
        mechanism = design_mechanism(EXAMPLE_1, 0.01, measure="chi2", **ALL)
        assert_allclose(np.abs(mechanism.posterior - p_x) / 0.01, 3.2048141, atol=1e-6)
        inside, outside = (
            design_mechanism(EXAMPLE_1, limit * factor, measure="chi2", **ALL)
            for factor in (1 - 1e-5, 1 + 1e-5)
        )
        assert inside.posterior.min() > 0
        assert outside.posterior.min() == 0

    def test_figure_3(self):
        published = pd.read_csv(PUBLISHED / "fig3a_utility.csv")
        path = privacy_utility_path(
            EXAMPLE_1,
            published["epsilon"],
            measure="chi2",
            solver="algorithm1",
            solver_options={"candidates": "all"},
        )
        ours = np.array([m.normalized_utility for m in path])
        wanted = published["epsilon"] >= 0.01 - 1e-9
        assert wanted.sum() == 69
        assert_allclose(ours[wanted], published["theory"][wanted], rtol=0.01)

    @pytest.mark.slow
    def test_figure_1(self):
        published = pd.read_csv(PUBLISHED / "fig1a_utility.csv").set_index("epsilon")
        epsilons = np.arange(1, 201) * 0.0025
        joints = np.random.default_rng(0).random((100, 4, 7))
        curves_of = {"algorithm1": Algorithm1Solver(eps_last=1.0), "max_lift": "lift_polytope"}
        for name, solver in curves_of.items():
            curves = [
                [m.normalized_utility for m in privacy_utility_path(j, epsilons, solver=solver)]
                for j in joints
            ]
            ours = pd.Series(np.mean(curves, axis=0), index=epsilons.round(4))
            upper = published.index[published.index <= 0.25 + 1e-9]
            difference = ours.reindex(upper.round(4)).to_numpy() - published.loc[upper, name]
            assert np.abs(difference).max() <= 0.025

    def test_two_symbols_of_s_are_exact(self):
        # With |S| = 2 the budget is an interval of P(S=0|y); all pairs at its ends are optimal.
        joint = np.random.default_rng(2).random((2, 6))
        joint /= joint.sum()
        mechanism = design_mechanism(
            joint, 0.03, solver="algorithm1", solver_options={"candidates": "all"}
        )
        assert_allclose(mechanism.utility, _best_of_interval(joint, 0.03), atol=1e-8)

    @settings(max_examples=25)
    @given(
        seed=st.integers(0, 2**32 - 1),
        measure=st.sampled_from(["kl", "l1", "chi2", "max_lift", "alpha_lift", "lip"]),
        candidates=st.sampled_from(["window", "all"]),
    )
    def test_utility_does_not_fall_along_a_path(self, seed, measure, candidates):
        joint = random_joint(np.random.default_rng(seed), largest=(4, 6))
        epsilons = [0.0, 0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 4.0]
        solver = Algorithm1Solver(candidates, n_last=50)
        path = utilities(joint, epsilons, measure=measure, solver=solver)
        assert (np.diff(path) >= -1e-8).all()

    def test_an_unsorted_path_is_a_sorted_one_in_the_order_given(self):
        joint = np.random.default_rng(3).random((3, 5))
        path = privacy_utility_path(joint, [0.2, 0.05, 0.1, 0.05])
        assert [m.epsilon for m in path] == [0.2, 0.05, 0.1, 0.05]
        assert path[1] is path[3]
        ordered = privacy_utility_path(joint, [0.05, 0.1, 0.2])
        assert path[0].utility == ordered[2].utility

    def test_a_sequence_of_grid_sizes(self):
        joint = np.random.default_rng(4).random((3, 5))

        def path(n_between):
            solver = Algorithm1Solver(n_between=n_between, n_last=20)
            return utilities(joint, [0.05, 0.1, 0.2], solver=solver)

        assert path((4, 4)) == path(4)
        with pytest.raises(ValueError, match=r"sequence of 2 for 3 epsilons\. Got \(4,\)"):
            path((4,))

    def test_eps_last_must_exceed_epsilon(self):
        with pytest.raises(ValueError, match=r"'eps_last' .* larger than 0\.2.* Got 0\.1 instead"):
            design_mechanism(
                THREE_BY_THREE, 0.2, solver="algorithm1", solver_options={"eps_last": 0.1}
            )

    @pytest.mark.parametrize("measure", [L1(), Chi2()], ids=repr)
    def test_the_paper_as_written_has_no_solution_for_l1_and_chi2(self, measure):
        # Its F: the max-lift mechanism at 1 + eps (Proposition 1), and vertices for eps' >= eps.
        epsilon = 0.05
        for joint in np.random.default_rng(5).random((5, 4, 7)):
            joint /= joint.sum()
            p_s, p_x = joint.sum(axis=1), joint.sum(axis=0)
            lifts = joint / p_x / p_s[:, None]
            points = [cdd_vertices(lifts, 1 + epsilon)]
            points += [cdd_vertices(lifts, np.exp(e)) for e in np.linspace(epsilon, 1, 40)]
            points = np.vstack(points)
            leakage = measure.leakage(points @ (lifts * p_s[:, None]).T, p_s)
            private = points[leakage <= epsilon]
            with pytest.raises(AssertionError, match="infeasible"):
                best_weights(private, p_x)
            mechanism = design_mechanism(joint, epsilon, measure=measure, solver="algorithm1")
            assert 0 < mechanism.max_leakage <= epsilon * (1 + 1e-9)


def _best_of_interval(joint, epsilon):
    """Solve |S| = 2 from scratch: bisect for the interval, enumerate pairs, one program."""
    p_s, p_x = joint.sum(axis=1), joint.sum(axis=0)
    given_x = joint[0] / p_x

    def kl(t):
        return t * np.log(t / p_s[0]) + (1 - t) * np.log((1 - t) / p_s[1])

    ends = []
    for outside in (1e-15, 1 - 1e-15):
        inside = p_s[0]
        for _ in range(200):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if kl(middle) <= epsilon else (inside, middle)
        ends.append(inside)
    points = [unit for unit, t in zip(np.eye(6), given_x, strict=True) if ends[0] <= t <= ends[1]]
    for end in ends:
        for x in range(6):
            for other in range(6):
                if given_x[x] < end < given_x[other]:
                    weight = (end - given_x[x]) / (given_x[other] - given_x[x])
                    points.append((1 - weight) * np.eye(6)[x] + weight * np.eye(6)[other])
    weights = best_weights(np.array(points), p_x)
    return entropy(p_x) - weights @ entropy(np.array(points))


class TestAverageScope:
    @pytest.mark.parametrize("measure", ["kl", "l1", "chi2", "max_lift", "alpha_lift"])
    def test_served_by_per_output_solvers_within_the_optimum(self, measure):
        optimum = {
            "kl": (0.27466009, 0.50285437, 0.85726232),
            "l1": (0.07835336, 0.15670672, 0.47012016),
            "chi2": (0.00782141, 0.03071293, 0.26289133),
            "max_lift": (0.06648168, 0.13637195, 0.44201158),
            "alpha_lift": (0.30922815, 0.55023704, 1.05025145),
        }
        path = privacy_utility_path(
            THREE_BY_THREE, THREE_EPSILONS, measure=measure, scope="average"
        )
        for mechanism, best in zip(path, optimum[measure], strict=True):
            assert mechanism.scope == "average"
            assert mechanism.average_leakage <= mechanism.epsilon * (1 + 1e-9)
            assert 0 < mechanism.utility <= best + 2e-8

    def test_never_above_the_bound_that_holds_for_every_mechanism(self):
        # I(X;Y) <= I(S;Y) + H(X|S)
        given_s = entropy(THREE_BY_THREE / THREE_BY_THREE.sum(axis=1, keepdims=True))
        rest = THREE_BY_THREE.sum(axis=1) @ given_s
        for scope in ("per_output", "average"):
            for mechanism in privacy_utility_path(THREE_BY_THREE, [0.01, 0.1, 0.4], scope=scope):
                assert mechanism.utility <= mechanism.sensitive_information + rest + 1e-12

    def test_kl_on_average_is_mutual_information(self):
        mechanism = design_mechanism(THREE_BY_THREE, 0.1)
        assert_allclose(mechanism.average_leakage, mechanism.sensitive_information, atol=1e-14)

    @pytest.mark.parametrize(
        ("q", "d", "utility", "leakage"),
        [
            (0.14, 0.24, 0.14598483, 0.01830301),
            (0.3, 0.1, 0.33360543, 0.16872682),
            (0.3, 0.1, 0.08161371, 0.03760955),
        ],
    )
    def test_no_solver_beats_the_funnel_of_the_binary_symmetric_channel(
        self, q, d, utility, leakage
    ):
        joint = np.array([[(1 - d) * (1 - q), d * q], [d * (1 - q), (1 - d) * q]])
        mechanism = design_mechanism(joint, leakage, scope="average")
        assert 0 < mechanism.utility <= utility + 2e-8


class TestOwnMeasure:
    @pytest.mark.parametrize(
        "solver", ["auto", "algorithm1", "lift_polytope", "column_generation"]
    )
    @pytest.mark.parametrize("scope", ["per_output", "average"])
    def test_works_with_every_solver_and_scope(self, solver, scope):
        joint = np.random.default_rng(0).random((3, 5))
        for mechanism in privacy_utility_path(
            joint, [0.0, 0.01, 0.1, 5.0], measure=Hellinger(), solver=solver, scope=scope
        ):
            leakage = mechanism.leakage_in(scope)
            assert leakage <= mechanism.epsilon * (1 + 1e-9) + 1e-12
        assert_allclose(mechanism.normalized_utility, 1.0)

    def test_the_lift_that_implies_its_budget_is_found_from_the_data(self):
        joint = np.random.default_rng(0).random((3, 6))
        known = {None: as_joint(joint, "test")}
        task = DesignTask(known, Hellinger(), "per_output", MutualInformation())
        candidates = Candidates(task, max_bases=10**6)
        _, bound = candidates.bounds(0.05)
        for factor, worst in ((1.0, 0.05), (1.001, 0.0501), (0.999, 0.0499)):
            vertices = candidates.polytopes.vertices(-1.0, bound * factor)
            posterior = candidates.task.joint.sensitive_posterior(vertices)
            leakage = Hellinger().leakage(posterior, candidates.task.joint.p_s).max()
            assert np.sign(leakage - 0.05) == np.sign(factor - 1) or abs(leakage - 0.05) < 1e-9
            assert_allclose(leakage, worst, rtol=0.02)

    def test_must_be_smallest_at_the_prior(self):
        class Wrong(Hellinger):
            def value(self, posterior, prior):
                return np.asarray(posterior)[..., 0]

        with pytest.raises(ValueError, match="smallest at the prior"):
            design_mechanism(THREE_BY_THREE, 0.1, measure=Wrong())

    def test_must_have_two_scales_that_agree(self):
        class Wrong(Hellinger):
            def inverse(self, value):
                return np.sqrt(value) / 10

        with pytest.raises(ValueError, match=r"inverse\(threshold\(0\.1\)\) = 0\.01"):
            design_mechanism(THREE_BY_THREE, 0.1, measure=Wrong())

    def test_must_not_be_nan(self):
        class Wrong(Hellinger):
            def value(self, posterior, prior):
                return super().value(posterior, prior) * np.nan

        with pytest.raises(ValueError, match="'value' .* NaN"):
            design_mechanism(THREE_BY_THREE, 0.1, measure=Wrong())

    def test_must_give_one_number_per_posterior(self):
        class Wrong(Hellinger):
            def value(self, posterior, prior):
                return super().value(posterior, prior).sum()

        with pytest.raises(ValueError, match=r"one number per posterior.* Got shape \(\)"):
            design_mechanism(THREE_BY_THREE, 0.1, measure=Wrong())


class TestLinearProgram:
    def test_rare_symbols_are_not_dropped(self):
        p_x = np.array([0.5, 0.5 - 1.1e-9, 1e-9, 1e-10])
        points = Points.from_dense(np.eye(4))
        mixture = MixtureProgram(p_x, MutualInformation()).solve(points)
        assert_allclose(mixture.channel, np.eye(4), atol=1e-14)

    def test_the_independent_output_makes_it_feasible(self):
        p_x = np.array([0.5, 0.3, 0.2])
        points = Points.from_dense(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
        mixture = MixtureProgram(p_x, MutualInformation()).solve(points)
        assert_allclose(mixture.channel.sum(axis=1), 1.0)
        assert_allclose(mixture.channel[:, -1], mixture.channel[2, -1])

    @settings(max_examples=50)
    @given(seed=st.integers(0, 2**32 - 1))
    def test_the_bound_holds_for_every_mixture(self, seed):
        rng = np.random.default_rng(seed)
        points = rng.dirichlet(np.full(4, 0.3), size=12)
        weights = rng.dirichlet(np.ones(12))
        p_x = weights @ points
        mixture = MixtureProgram(p_x, MutualInformation()).solve(Points.from_dense(points))
        value = -(p_x @ mixture.channel) @ entropy(
            (p_x[:, None] * mixture.channel / (p_x @ mixture.channel)).T
        )
        assert -weights @ entropy(points) <= mixture.bound + 1e-12
        assert value <= mixture.bound + 1e-12
        assert_allclose(value, mixture.bound, atol=1e-8)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (
            lambda: LiftPolytopeSolver(engine="qhull"),
            ValueError,
            "'engine' .*{'cdd', 'parametric'}",
        ),
        (lambda: LiftPolytopeSolver(max_bases=0), ValueError, "'max_bases' .* Got 0 "),
        (lambda: Algorithm1Solver(candidates="some"), ValueError, "'candidates' .* Got 'some' "),
        (lambda: Algorithm1Solver(delta=1.5), ValueError, r"'delta' .*\[0, 1\].* Got 1\.5 "),
        (lambda: Algorithm1Solver(n_between=0), ValueError, "'n_between' .* Got 0 "),
        (lambda: Algorithm1Solver(n_last=2.5), TypeError, r"'n_last' .* Got 2\.5 "),
        (lambda: Algorithm1Solver(eps_last=np.nan), ValueError, "'eps_last' .* Got nan "),
    ],
)
def test_bad_options(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_a_large_joint_is_refused_with_a_way_out():
    joint = np.random.default_rng(0).random((5, 40))
    with pytest.raises(SolverError, match="Pool rare symbols of X, coarsen S, or raise max_bases"):
        design_mechanism(joint, 0.1, solver="algorithm1")


def test_a_solver_object_is_taken_as_it_is():
    solver = Algorithm1Solver(candidates="all")
    by_object = design_mechanism(THREE_BY_THREE, 0.1, solver=solver)
    by_name = design_mechanism(
        THREE_BY_THREE, 0.1, solver="algorithm1", solver_options={"candidates": "all"}
    )
    assert by_object.utility == by_name.utility
    with pytest.raises(TypeError, match=r"\['delta'\] in addition to the solver object"):
        design_mechanism(THREE_BY_THREE, 0.1, solver=solver, solver_options={"delta": 0.1})
    with pytest.raises(TypeError, match=r"write Algorithm1Solver\(\), not the class"):
        design_mechanism(THREE_BY_THREE, 0.1, solver=Algorithm1Solver)
