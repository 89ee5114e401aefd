"""Two groups on average: pairs of symbols, against linear programs over fine grids of pairs."""

import warnings
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import Hellinger
from scipy.optimize import linprog

from skprivacy import design_mechanism, privacy_utility_path
from skprivacy.geometry import Points
from skprivacy.geometry.lift_polytopes import balanced_pairs
from skprivacy.measures import AlphaLift, get_measure
from skprivacy.measures.measure import leakage_of
from skprivacy.solvers import OptimalSolver
from skprivacy.solvers.linear_program import best_of_each_symbol
from skprivacy.solvers.pairs import PairSearch
from skprivacy.solvers.problem import Problem
from skprivacy.solvers.solver import DesignTask
from skprivacy.utilities import Guess, MutualInformation, Target

MEASURES = ["kl", "chi2", "l1", "max_lift", "parity", AlphaLift(3), Hellinger()]


def two_groups(seed, n_x, kind="plain"):
    rng = np.random.default_rng(seed)
    joint = rng.random((2, n_x)) ** 2
    if kind == "zeros":
        joint *= rng.random((2, n_x)) < 0.6
        joint += 1e-3 * (joint.sum(axis=0) == 0)
        joint[:, 0] += 1e-3
    if kind == "rare":
        joint *= 10.0 ** -rng.integers(0, 6, size=n_x)
    return joint / joint.sum()


def utilities(seed, n_x):
    target = Target(np.random.default_rng(seed).dirichlet(np.ones(3), n_x).T)
    return [MutualInformation(), target, Guess()]


def pairs_on_a_grid(n_x, n_steps):
    rows = [np.eye(n_x)]
    for one, other in combinations(range(n_x), 2):
        w = np.linspace(0, 1, n_steps + 1)[1:-1]
        rows.append(np.zeros((len(w), n_x)))
        rows[-1][:, one], rows[-1][:, other] = 1 - w, w
    return np.vstack(rows)


def values_of(joint, points, measure, utility):
    """Return u and g of dense points, by the definition of g."""
    given = joint / joint.sum(axis=0)
    prior = joint.sum(axis=1)
    leakage = measure.value(points @ given.T, prior) - measure.value(prior, prior)
    return utility.value(Points.from_dense(points)), leakage


def best_on_grid(joint, epsilon, measure, utility, n_steps):
    points = pairs_on_a_grid(joint.shape[1], n_steps)
    measure, p_x, p_s = get_measure(measure), joint.sum(axis=0), joint.sum(axis=1)
    u, g = values_of(joint, points, measure, utility)
    threshold = measure.threshold(epsilon) - measure.value(p_s, p_s)
    answer = linprog(-u, g[None], [threshold], points.T, p_x)
    return -answer.fun + utility.offset(p_x)


class TestAgainstGrids:
    @pytest.mark.parametrize(
        "measure", MEASURES, ids=lambda measure: getattr(measure, "name", measure)
    )
    @pytest.mark.parametrize(("n_x", "kind"), [(4, "plain"), (6, "zeros"), (12, "rare")])
    def test_the_optimum_is_that_of_a_fine_grid(self, measure, n_x, kind):
        joint = two_groups(n_x, n_x, kind)
        unchanged = leakage_of("average", get_measure(measure), joint, np.eye(n_x))
        for utility in utilities(n_x, n_x):
            epsilon = 0.4 * unchanged
            found = design_mechanism(
                joint, epsilon, measure=measure, scope="average", utility=utility, solver="optimal"
            )
            expected = best_on_grid(joint, epsilon, measure, utility, 200)
            span = utility.span(joint.sum(axis=0))
            assert found.gap <= 1e-5 * span
            assert found.upper_bound >= expected - 1e-9
            assert found.utility >= expected - 1e-5 * span
            assert_allclose(found.utility, expected, rtol=0, atol=3e-3 * span)

    @pytest.mark.parametrize("measure", ["kl", "l1", "chi2"])
    def test_tiny_budgets_are_close_to_perfect_privacy(self, measure):
        joint = two_groups(1, 8)
        nothing = design_mechanism(joint, 0.0, measure=measure, scope="average")
        for epsilon in (1e-15, 1e-12, 1e-9):
            found = design_mechanism(joint, epsilon, measure=measure, scope="average")
            assert found.gap <= 1e-5 * MutualInformation().largest(found.p_x)
            assert found.utility >= nothing.utility - 1e-9


class TestBounds:
    @settings(deadline=None, max_examples=60)
    @given(
        seed=st.integers(0, 2**32),
        n_x=st.integers(2, 12),
        kind=st.sampled_from(["plain", "zeros", "rare"]),
        measure=st.sampled_from(MEASURES),
        which=st.integers(0, 2),
        share=st.sampled_from([1e-6, 0.01, 0.3, 0.9]),
    )
    def test_no_channel_within_the_budget_exceeds_it(self, seed, n_x, kind, measure, which, share):
        joint, rng, measure = two_groups(seed, n_x, kind), np.random.default_rng(seed), measure
        measure, utility = get_measure(measure), utilities(seed, n_x)[which]
        epsilon = share * leakage_of("average", measure, joint, np.eye(n_x))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = design_mechanism(
                joint, epsilon, measure=measure, scope="average", utility=utility, solver="optimal"
            )
        assert found.average_leakage <= epsilon * (1 + 1e-9) + 1e-12
        p_x = joint.sum(axis=0)
        for _ in range(5):
            channel = rng.dirichlet(np.full(rng.integers(1, n_x + 2), 0.2), n_x) + 1e-12
            channel /= channel.sum(axis=1, keepdims=True)
            mixed, part = channel, 1.0
            while leakage_of("average", measure, joint, mixed) > epsilon:
                part *= 0.7
                mixed = part * channel + (1 - part) * (p_x @ channel)
            assert utility.of_channel(p_x, mixed) <= found.upper_bound + 1e-9

    @settings(deadline=None, max_examples=60)
    @given(
        seed=st.integers(0, 2**32),
        n_x=st.integers(2, 9),
        kind=st.sampled_from(["plain", "zeros", "rare"]),
        measure=st.sampled_from(MEASURES),
        which=st.integers(0, 2),
    )
    def test_prices_with_what_is_added_leave_no_surplus(self, seed, n_x, kind, measure, which):
        joint, rng = two_groups(seed, n_x, kind), np.random.default_rng(seed)
        measure, utility = get_measure(measure), utilities(seed, n_x)[which]
        task = DesignTask.checked("test", joint, [0.1], measure, "average", utility)
        problem = Problem(task)
        if len(problem.p_x) < n_x:  # some symbols were merged
            return
        search, points = PairSearch(problem), pairs_on_a_grid(n_x, 150)
        u, g = values_of(joint, points, measure, utility)
        symbols, price = rng.normal(size=n_x), rng.exponential(5)
        for target in (0.1, 1e-3, 1e-5):  # bounds are kept from search to search
            symbols, price = symbols + 0.1 * rng.normal(size=n_x), price * rng.uniform(0.5, 1.5)
            outputs, added = search.search(symbols, price, target)
            assert (u - points @ (symbols + added) - price * g).max() <= 1e-12
            # What is found has a surplus, and where nothing is found there is none.
            dense = outputs.dense(n_x)
            mine, leaks = values_of(joint, dense, measure, utility)
            assert (mine - dense @ symbols - price * leaks > target / 2 - 1e-7).all()
            pairs = u[n_x:] - points[n_x:] @ symbols - price * g[n_x:]
            assert len(outputs) or pairs.max() <= target

    @pytest.mark.parametrize("kind", ["plain", "zeros", "rare"])
    @pytest.mark.parametrize("which", [0, 1, 2])
    def test_vertices_that_are_left_out_have_no_surplus(self, which, kind, monkeypatch):
        seen, bounding = [], Problem.bounding

        def watched(problem, inner, around, prices):
            seen.append(
                (problem, around, prices, found := bounding(problem, inner, around, prices))
            )
            return found

        monkeypatch.setattr(Problem, "bounding", watched)
        joint, utility = two_groups(3, 40, kind), utilities(3, 40)[which]
        bound = design_mechanism(joint, 0.1, utility=utility, solver="optimal").upper_bound
        ((problem, around, prices, found),) = seen
        every = problem._uncharged(around)
        useful = prices.surplus(every) + prices.error(every) > 0
        kept = {tuple(row) for row in np.hstack([found.support, found.values]).tolist()}
        assert len(found) < len(around) / 2
        assert kept >= set(map(tuple, np.hstack([around.support, around.values])[useful].tolist()))
        monkeypatch.setattr(Problem, "bounding", lambda _, inner, around, prices: around)
        again = design_mechanism(joint, 0.1, utility=utility, solver="optimal")
        assert again.upper_bound == bound


class TestSizes:
    @pytest.mark.parametrize("measure", ["kl", "max_lift"])
    def test_many_symbols_are_certified(self, measure):
        joint = two_groups(5, 300)
        found = design_mechanism(joint, 0.02, measure=measure, scope="average")
        assert found.solver == "optimal"
        assert found.gap <= 1e-5 * MutualInformation().largest(found.p_x)
        assert found.average_leakage <= 0.02 * (1 + 1e-9)
        assert len(found.p_y) <= 301

    @pytest.mark.parametrize("measure", ["max_lift", "lip", "kl"])
    def test_many_symbols_are_certified_per_output(self, measure):
        found = design_mechanism(two_groups(5, 300), 0.1, measure=measure)
        assert found.gap <= 1e-8
        assert found.max_leakage <= 0.1 * (1 + 1e-9)

    @pytest.mark.slow
    @pytest.mark.parametrize("scope", ["per_output", "average"])
    def test_a_thousand_symbols_are_certified(self, scope):
        found = design_mechanism(two_groups(5, 1000), 0.02, scope=scope)
        assert found.gap <= 1e-5 * MutualInformation().largest(found.p_x)

    def test_a_path_is_as_good_as_each_budget_alone(self):
        joint, epsilons = two_groups(0, 30), [1e-4, 0.01, 0.05, 0.2]
        path = privacy_utility_path(joint, epsilons, scope="average", solver="optimal")
        for epsilon, mechanism in zip(epsilons, path, strict=True):
            alone = design_mechanism(joint, epsilon, scope="average", solver="optimal")
            assert abs(mechanism.utility - alone.utility) <= 1e-5 * alone.upper_bound

    def test_it_stops_in_time_with_a_bound(self):
        joint = two_groups(0, 60)
        with pytest.warns(UserWarning, match="max_time has passed"):
            found = design_mechanism(
                joint, 0.02, scope="average", solver=OptimalSolver(max_time=0.0)
            )
        best = design_mechanism(joint, 0.02, scope="average")
        assert found.average_leakage <= 0.02 * (1 + 1e-9)
        assert found.upper_bound >= best.utility


def test_balanced_pairs_reveal_nothing_and_mix_to_all_symbols():
    joint = two_groups(3, 11)
    p_x = joint.sum(axis=0)
    t = joint[0] / p_x / joint[0].sum() - 1
    for pairs in balanced_pairs(t, p_x):
        assert_allclose(pairs.times(t[None]), 0, atol=1e-13)
        answer = linprog(np.zeros(len(pairs)), A_eq=pairs.dense(11).T, b_eq=p_x)
        assert answer.status == 0


def test_the_best_of_each_symbol():
    rng = np.random.default_rng(0)
    points = Points(np.array(list(combinations(range(9), 2))), np.full((36, 2), 0.5))
    surplus = rng.random(36)
    chosen = best_of_each_symbol(points, surplus)
    for column in (0, 1):
        for symbol in range(9):
            mine = np.flatnonzero(points.support[:, column] == symbol)
            assert set(mine[np.argsort(-surplus[mine])[:4]]) <= set(chosen)
    assert len(chosen) < 36
