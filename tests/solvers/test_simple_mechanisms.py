"""Merging, randomised response, the chi-squared design: what the optimum is compared with."""

from functools import partial
from pathlib import Path

import naive_merging as naive
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import EXAMPLE_1, MEASURES, THREE_BY_THREE, entropy, naive_value, random_joint
from sklearn.exceptions import ConvergenceWarning

from skprivacy import PrivacyFunnelTransformer, SolverError, design_mechanism, privacy_utility_path
from skprivacy.measures import Lip, get_measure
from skprivacy.solvers import (
    BestPartitionSolver,
    ColumnGenerationSolver,
    OptimalSolver,
    column_generation,
)
from skprivacy.solvers.baselines import all_partitions
from skprivacy.utilities import Target

PUBLISHED = Path(__file__).parents[2] / "examples" / "published" / "fig1a_utility.csv"
MERGING = ["watchdog", "subset_merging", "best_partition"]
SCOPES = ["per_output", "average"]
CASES = [(m, s) for m in MEASURES for s in SCOPES if s in get_measure(m).scopes]

problems = pytest.mark.parametrize(("measure", "scope"), CASES, ids=str)


def blocks_of(mechanism):
    """Return the blocks that a deterministic mechanism releases, as a set of sets."""
    assert np.isin(mechanism.channel, [0.0, 1.0]).all()
    return {frozenset(np.flatnonzero(column).tolist()) for column in mechanism.channel.T}


def as_set(blocks):
    return {frozenset(block) for block in blocks}


def naive_threshold(measure, epsilon):
    """Return the threshold for a g that is not 0 at the prior."""
    return get_measure(measure).threshold(epsilon) * (1 + 1e-12)


def random_cases(seed, n=25):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        joint = rng.random((rng.integers(2, 5), rng.integers(2, 7)))
        yield joint / joint.sum(), float(10 ** rng.uniform(-3, 0))


@problems
class TestAgainstTheNaiveImplementation:
    def functions(self, measure):
        return partial(naive_value, get_measure(measure))

    def test_watchdog(self, measure, scope):
        g = self.functions(measure)
        for joint, epsilon in random_cases(1):
            ours = design_mechanism(
                joint, epsilon, measure=measure, scope=scope, solver="watchdog"
            )
            expected = naive.watchdog(joint, naive_threshold(measure, epsilon), g, scope)
            assert blocks_of(ours) == as_set(expected)

    def test_best_partition(self, measure, scope):
        g, options = self.functions(measure), {"measure": measure, "scope": scope}
        for joint, epsilon in random_cases(2, 12):
            ours = design_mechanism(joint, epsilon, solver="best_partition", **options)
            threshold = naive_threshold(measure, epsilon)
            expected = naive.best_partition(joint, threshold, g, scope)
            assert_allclose(ours.utility, expected, atol=1e-12)
            assert_allclose(naive.utility(joint, blocks_of(ours)), expected, atol=1e-12)

    def test_subset_merging(self, measure, scope):
        g, options = self.functions(measure), {"measure": measure, "scope": scope}
        for joint, epsilon in random_cases(3):
            ours = design_mechanism(joint, epsilon, solver="subset_merging", **options)
            expected = naive.subset_merging(joint, naive_threshold(measure, epsilon), g, scope)
            assert blocks_of(ours) == as_set(expected)

    def test_greedy_funnel(self, measure, scope):
        g, options = self.functions(measure), {"measure": measure, "solver": "greedy_funnel"}
        if scope == "per_output":
            with pytest.raises(ValueError, match="'greedy_funnel' needs scope='average'"):
                design_mechanism(THREE_BY_THREE, 0.1, **options)
            return
        for joint, epsilon in random_cases(4):
            ours = design_mechanism(joint, epsilon, scope=scope, **options)
            expected = naive.greedy_funnel(joint, naive_threshold(measure, epsilon), g)
            assert blocks_of(ours) == as_set(expected)


class TestTheOrder:
    """Merging <= the best partition <= the optimum per output <= the optimum on average."""

    def check(self, joint, epsilon, **options):
        scope = options.pop("scope", "per_output")

        def design(solver, scope):
            return design_mechanism(joint, epsilon, scope=scope, solver=solver, **options)

        watchdog, subsets, best, response, optimum = (
            design(solver, scope) for solver in (*MERGING, "randomized_response", "optimal")
        )
        assert max(watchdog.utility, subsets.utility) <= best.utility + 1e-12
        # What the certificate proves; the optimum itself lacks no more than its gap.
        assert max(best.utility, response.utility) <= optimum.upper_bound + 1e-9
        assert optimum.gap <= 1e-5 * max(1.0, entropy(optimum.p_x))
        if scope == "average":
            greedy = design("greedy_funnel", scope)
            assert greedy.utility <= best.utility + 1e-12
        elif "average" in get_measure(options.get("measure", "kl")).scopes:
            assert optimum.utility <= design("optimal", "average").upper_bound + 1e-9

    @pytest.mark.parametrize("n_joints", [25, pytest.param(200, marks=pytest.mark.slow)])
    def test_on_random_joints_for_kl(self, n_joints):
        rng = np.random.default_rng(200)
        for i in range(n_joints):
            joint = rng.random((4, 7)) if i % 2 else rng.random(rng.integers(2, [5, 8]))
            self.check(joint, (0.005, 0.02, 0.05, 0.1, 0.2)[i % 5])

    @problems
    @settings(max_examples=4)
    @given(
        seed=st.integers(0, 2**32 - 1),
        epsilon=st.floats(1e-4, 1.0),
        utility=st.sampled_from(["mutual_information", "guess", "target"]),
    )
    def test_for_every_measure(self, measure, scope, seed, epsilon, utility):
        rng = np.random.default_rng(seed)
        joint = random_joint(rng, (4, 6))
        if utility == "target":
            utility = Target(rng.random((3, joint.shape[1])) + 0.01)
        self.check(joint, epsilon, measure=measure, scope=scope, utility=utility)


class TestBestPartition:
    @pytest.mark.parametrize(("n", "count"), [(1, 1), (2, 2), (5, 52), (7, 877), (9, 21_147)])
    def test_looks_at_every_partition_once(self, n, count):
        partitions = all_partitions(n)
        assert len(np.unique(partitions, axis=0)) == len(partitions) == count

    def test_says_what_to_do_with_many_symbols(self):
        joint = np.random.default_rng(0).random((2, 11))
        match = "11 symbols, more than max_symbols=10. Pool .*'subset_merging'.* raise max_symbols"
        with pytest.raises(SolverError, match=match):
            design_mechanism(joint, 0.1, solver="best_partition")
        with pytest.raises(ValueError, match="'max_symbols' .* Got 0 "):
            BestPartitionSolver(max_symbols=0)
        mechanism = design_mechanism(
            joint, 9.0, solver="best_partition", solver_options={"max_symbols": 11}
        )
        assert_allclose(mechanism.normalized_utility, 1.0)

    def test_of_equally_useful_partitions_it_takes_the_one_that_leaks_least(self):
        # Merging any two symbols costs the same; merging the first and the last says nothing.
        joint = np.array([[0.20, 0.15, 0.10], [0.10, 0.15, 0.20]])
        mechanism = design_mechanism(joint, 0.02, solver="best_partition")
        assert blocks_of(mechanism) == {frozenset({0, 2}), frozenset({1})}
        assert mechanism.max_leakage <= 1e-12

    @pytest.mark.parametrize("epsilon", [0.02, 0.05, 0.1])
    def test_published_subset_merging_is_above_every_partition(self, epsilon):
        joints = np.random.default_rng(0).random((100, 4, 7))
        best, strict = (
            np.array([
                design_mechanism(joint, epsilon, solver=solver).normalized_utility
                for joint in joints
            ])
            for solver in ("best_partition", "subset_merging")
        )  # fmt: skip
        published = pd.read_csv(PUBLISHED, index_col="epsilon")["subset_merging"][epsilon]
        assert strict.mean() < best.mean()
        # Both are means over 100 joints, which are not the same.
        assert best.mean() + 3 * np.sqrt(2) * best.std() / 10 < published

    def test_guess_prefers_the_larger_mutual_information(self):
        rng = np.random.default_rng(10)
        for _ in range(10):
            joint = rng.random((3, 5))
            joint /= joint.sum()
            ours = design_mechanism(joint, 0.05, utility="guess", solver="best_partition")
            p_x, g = joint.sum(axis=0), partial(naive_value, get_measure("kl"))
            within = [
                blocks
                for blocks in naive.partitions(list(range(5)))
                if naive.leakage(joint, blocks, g, "per_output") <= 0.05
            ]
            guesses = [sum(max(p_x[x] for x in block) for block in blocks) for blocks in within]
            assert_allclose(ours.utility, max(guesses))
            equal = [b for b, c in zip(within, guesses, strict=True) if c > max(guesses) - 1e-12]
            most = max(naive.utility(joint, blocks) for blocks in equal)
            assert_allclose(ours.mutual_information, most)


class TestRandomizedResponse:
    @problems
    def test_keeps_as_much_as_the_budget_allows(self, measure, scope):
        for joint, epsilon in random_cases(5):
            mechanism = design_mechanism(
                joint, epsilon, measure=measure, scope=scope, solver="randomized_response"
            )
            kept, drawn = mechanism.channel.max(axis=1), mechanism.channel.min(axis=1)
            assert_allclose(kept, kept[0], rtol=1e-12)
            assert_allclose(drawn, drawn[0], rtol=1e-12)
            assert_allclose(kept + (len(kept) - 1) * drawn, 1.0)
            if kept[0] < 1 and measure != Lip(lower=0.1):  # the lower bound may come first
                assert_allclose(mechanism.leakage_in(scope), epsilon, rtol=1e-8)

    @pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.3, 1.5])
    def test_closed_form_where_s_is_x(self, epsilon):
        # The largest lift of a uniform X on k symbols is k times the probability to keep it.
        mechanism = design_mechanism(
            np.eye(4), epsilon, measure="max_lift", solver="randomized_response"
        )
        assert_allclose(mechanism.channel.max(), min(np.exp(epsilon) / 4, 1.0), rtol=1e-9)

    @pytest.mark.parametrize("lower", [0.0, 1e-12, 1e-8])
    def test_a_lower_bound_next_to_nothing(self, lower):
        # Beyond it the measure is infinite at once.
        for joint, epsilon in random_cases(12):
            mechanism = design_mechanism(
                joint, epsilon, measure=Lip(lower=lower), solver="randomized_response"
            )
            assert mechanism.max_leakage <= epsilon

    def test_perfect_privacy(self):
        mechanism = design_mechanism(THREE_BY_THREE, 0.0, solver="randomized_response")
        assert_allclose(mechanism.channel, 1 / 3)


class TestChi2Design:
    @pytest.mark.parametrize("epsilon", [0.0, 1e-4, 0.01, 0.05, 0.078, 0.0780075])
    def test_is_optimal_on_example_1(self, epsilon):
        ours, optimum = (
            design_mechanism(EXAMPLE_1, epsilon, measure="chi2", solver=solver)
            for solver in ("chi2_design", "optimal")
        )
        assert_allclose(ours.utility, optimum.utility, atol=1e-9)
        assert_allclose(ours.leakage, epsilon, rtol=1e-8, atol=1e-12)
        assert_allclose(ours.p_y, 0.5)

    @pytest.mark.parametrize(
        ("epsilon", "utility"),
        [(0.01, 0.00274476086), (0.05, 0.07287184356), (0.078, 0.21561924246)],
    )
    def test_numbers_of_example_1(self, epsilon, utility):
        mechanism = design_mechanism(EXAMPLE_1, epsilon, measure="chi2", solver="chi2_design")
        assert_allclose(mechanism.utility, utility, atol=1e-10)

    def test_with_three_symbols_it_is_nearly_optimal_for_small_epsilon(self):
        for epsilon in (0.01, 0.05):
            ours, optimum = (
                design_mechanism(THREE_BY_THREE, epsilon, measure="chi2", solver=solver)
                for solver in ("chi2_design", OptimalSolver(tol=1e-7))
            )
            assert 0.99 * optimum.utility <= ours.utility <= optimum.upper_bound

    @pytest.mark.parametrize(
        ("joint", "options", "error", "text"),
        [
            (EXAMPLE_1, {"epsilon": 0.0781}, SolverError, r"at most 0.0780076.* Got 0\.0781"),
            (np.ones((2, 3)) + np.eye(2, 3), {}, SolverError, "invertible .* Got 2 x 3 of rank 2"),
            ([[3, 2, 1], [1, 2, 3], [2, 2, 2]], {}, SolverError, "Got 3 x 3 of rank 2"),
            (EXAMPLE_1, {"measure": "kl"}, ValueError, "'chi2_design' needs measure='chi2'"),
        ],
    )
    def test_conditions(self, joint, options, error, text):
        options = {"epsilon": 0.01, "measure": "chi2"} | options
        with pytest.raises(error, match=text):
            design_mechanism(joint, solver="chi2_design", **options)

    def test_a_nearly_singular_channel(self):
        joint = np.ones((3, 3)) + 1e-6 * np.random.default_rng(0).random((3, 3))
        mechanism = design_mechanism(joint, 1e-8, measure="chi2", solver="chi2_design")
        assert_allclose(mechanism.leakage, 1e-8, rtol=1e-6)

    def test_a_single_symbol(self):
        mechanism = design_mechanism([[1.0]], 0.1, measure="chi2", solver="chi2_design")
        assert mechanism.utility == 0.0


class TestSubsetMerging:
    @pytest.mark.parametrize(
        ("n", "measure", "epsilon"), [(5, "l1", 1.59999999984), (6, "kl", 1.7917594690488794)]
    )
    def test_all_symbols_at_the_limit(self, n, measure, epsilon):
        problem = {"measure": measure, "scope": "average", "solver": "subset_merging"}
        mechanism = design_mechanism(np.eye(n), epsilon, **problem)
        assert mechanism.average_leakage <= epsilon * (1 + 1e-9)


def test_where_the_optimum_stops_early_it_is_not_worse_than_a_simple_mechanism():
    joint = 1 + 1e-7 * np.random.default_rng(3).random((4, 4))
    problem = {"measure": "chi2", "epsilon": 1e-10}
    simple = design_mechanism(joint, solver="chi2_design", **problem)
    with pytest.warns(ConvergenceWarning):
        optimum = design_mechanism(joint, solver="optimal", **problem)
    assert optimum.utility >= simple.utility - 1e-12


class TestColumnGenerationIsNotWorse:
    # Whatever gap is proven; the proof takes most of the time.
    @pytest.mark.parametrize(
        ("tol", "shapes"),
        [
            (1e-2, [(3, 5)]),
            pytest.param(1e-5, [(2, 5), (4, 4), (3, 7)], marks=pytest.mark.slow),
        ],
    )
    @problems
    def test_than_any_simple_mechanism(self, measure, scope, tol, shapes):
        rng = np.random.default_rng(6)
        for shape in shapes:
            joint, epsilon = rng.random(shape), float(rng.choice([1e-3, 0.02, 0.3]))
            self.check(joint, epsilon, measure, scope, tol=tol)

    @pytest.mark.parametrize("scope", SCOPES)
    def test_with_more_symbols(self, scope):
        self.check(np.random.default_rng(6).random((5, 15)), 0.02, "kl", scope, tol=1e-2)

    def test_at_a_budget_next_to_nothing(self):
        self.check(np.random.default_rng(6).random((2, 5)), 1e-9, "chi2", "average")

    @pytest.mark.parametrize("scope", SCOPES)
    def test_not_even_without_time(self, scope):
        joint = np.random.default_rng(7).random((4, 30))
        with pytest.warns(ConvergenceWarning, match="max_time has passed"):
            self.check(joint, 0.02, "kl", scope, max_time=0)

    @pytest.mark.parametrize(
        ("tol", "n_x"), [(1e-2, 5), pytest.param(1e-5, 7, marks=pytest.mark.slow)]
    )
    @problems
    def test_nor_is_its_own_search(self, measure, scope, tol, n_x, monkeypatch):
        nothing = lambda task, epsilons: ([] for _ in epsilons)  # noqa: E731
        monkeypatch.setattr(column_generation, "simple_solutions", nothing)
        joint = np.random.default_rng(11).random((4, n_x))
        self.check(joint, 0.02, measure, scope, slack=1e-5 * np.log(n_x), tol=tol)

    def check(self, joint, epsilon, measure, scope, slack=1e-11, **options):
        problem = {"measure": measure, "scope": scope}
        ours = design_mechanism(
            joint, epsilon, solver=ColumnGenerationSolver(**options), **problem
        )
        for solver in [*MERGING, "randomized_response", "greedy_funnel", "chi2_design"]:
            try:
                other = design_mechanism(joint, epsilon, solver=solver, **problem)
            except (SolverError, ValueError) as error:
                assert "needs" in str(error) or "max_symbols" in str(error)  # noqa: PT017
            else:
                assert other.utility <= ours.utility + slack, solver


class TestEverywhere:
    """They are solvers like the others."""

    @pytest.mark.parametrize("solver", [*MERGING, "greedy_funnel", "randomized_response"])
    def test_paths(self, solver):
        joint = np.random.default_rng(8).random((4, 7))
        epsilons = [0.2, 0.0, 0.005, 0.02, np.inf]
        path = privacy_utility_path(joint, epsilons, scope="average", solver=solver)
        assert [m.epsilon for m in path] == epsilons
        assert [m.solver for m in path] == [solver] * 5
        assert path[-1].normalized_utility == pytest.approx(1.0)
        assert (np.diff(sorted(m.utility for m in path)) >= 0).all()
        for mechanism in path[:-1]:
            alone = design_mechanism(joint, mechanism.epsilon, scope="average", solver=solver)
            assert alone.utility <= mechanism.utility + 1e-12

    @pytest.mark.parametrize("solver", [*MERGING, "randomized_response", "greedy_funnel"])
    def test_transformer(self, solver):
        rng = np.random.default_rng(9)
        sex = rng.integers(2, size=4000)
        band = rng.binomial(5, 0.4 + 0.1 * sex)
        frame = pd.DataFrame({"sex": sex, "band": band.astype(str)})
        transformer = PrivacyFunnelTransformer(
            0.01, sensitive="sex", scope="average", solver=solver, random_state=0
        )
        released = transformer.fit_transform(frame)["band"]
        assert transformer.mechanism_.solver == solver
        assert transformer.mechanism_.average_leakage <= 0.01 * (1 + 1e-9)
        assert set(released) <= set(frame["band"])
        if solver != "randomized_response":  # a value is released as one value
            assert (released.groupby(frame["band"]).nunique() == 1).all()

    def test_the_chi2_design(self):
        problem = {"measure": "chi2", "solver": "chi2_design"}
        path = privacy_utility_path(EXAMPLE_1, [0.05, 0.0, 0.01], **problem)
        assert_allclose([m.max_leakage for m in path], [0.05, 0.0, 0.01], atol=1e-9)
        sex = np.random.default_rng(9).integers(2, size=4000)
        frame = pd.DataFrame(
            {"sex": sex, "band": np.random.default_rng(8).binomial(1, 0.4 + 0.1 * sex)}
        )
        transformer = PrivacyFunnelTransformer(0.01, sensitive="sex", random_state=0, **problem)
        assert set(transformer.fit_transform(frame)["band"]) == {0, 1}
        assert_allclose(transformer.mechanism_.leakage, 0.01)

    @pytest.mark.parametrize("solver", [*MERGING, "randomized_response", "chi2_design"])
    def test_symbols_that_never_occur(self, solver):
        joint = np.array([[0.0625, 0.0, 0.3], [0.0, 0.0, 0.0], [0.1875, 0.0, 0.45]])
        mechanism = design_mechanism(joint, 0.05, measure="chi2", solver=solver)
        assert mechanism.channel.shape[0] == 3
        assert mechanism.max_leakage <= 0.05 * (1 + 1e-9)

    def test_one_without_options_says_so(self):
        match = "unexpected option 'tol' for solver 'watchdog', which takes none"
        with pytest.raises(TypeError, match=match):
            design_mechanism(THREE_BY_THREE, 0.1, solver="watchdog", solver_options={"tol": 1e-3})
