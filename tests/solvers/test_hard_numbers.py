"""The certified optimum on tables and budgets at the limits of floating point."""

import warnings

import numpy as np
import pytest
from reference import Hellinger
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning
from test_optimal import SCOPES, certified, optimal

from skprivacy import SolverError, design_mechanism, privacy_utility_path
from skprivacy.measures import MEASURES, Lip
from skprivacy.solvers.linear_program import _refined

slow = pytest.mark.slow


class TestHardNumbers:
    """Each of these once gave a wrong bound, a poor mechanism, an exception, or no answer."""

    def test_the_bound_holds_where_s_and_x_are_nearly_independent(self):
        rng = np.random.default_rng(0)
        joint = rng.random((2, 4))
        joint[1] = joint[0] * (1 + 1e-8 * rng.random(4))
        other = design_mechanism(
            joint, 1e-9, measure="l1", solver="algorithm1", solver_options={"candidates": "all"}
        )
        assert optimal(joint, 1e-9, measure="l1").upper_bound >= other.utility

    @pytest.mark.parametrize("measure", ["kl", "chi2", "alpha_lift"])
    def test_budgets_that_are_nearly_the_same(self, measure):
        joint = np.random.default_rng(0).random((4, 7))
        epsilons = [0.05, *(0.1 * (1 + k * 1e-13) for k in range(5))]
        path = privacy_utility_path(joint, epsilons, measure=measure, solver="optimal")
        assert all(certified(mechanism, 1e-5) for mechanism in path)

    @pytest.mark.parametrize("utility", ["mutual_information", "guess"])
    def test_outputs_that_are_nearly_dependent(self, utility):
        for seed in range(40):
            joint = np.random.default_rng(seed).random((3, 3))
            mechanism = optimal(joint, 0.02, measure="l1", scope="average", utility=utility)
            assert certified(mechanism, 1e-5)

    def test_a_rare_symbol(self):
        q = 1e-9
        joint = [[0.3, 0.1, q], [0.1, 0.5, q / 3], [0.2, 0.05, q / 2]]
        assert certified(optimal(joint, 0.1, measure="max_lift"), 1e-5)

    @pytest.mark.parametrize(
        "epsilon",
        [1e-12, 1e-8, *(pytest.param(each, marks=slow) for each in (1e-10, 1e-6, 1e-4))],
    )
    @pytest.mark.parametrize("measure", ["kl", "l1", "chi2", "alpha_lift"])
    @pytest.mark.parametrize("scope", SCOPES)
    def test_tiny_budgets_end_with_a_mechanism(self, measure, epsilon, scope):
        rng = np.random.default_rng(1)
        rare, low_rank = rng.random((3, 6)), rng.random((4, 2)) @ rng.random((2, 6))
        rare[:, 5] *= 1e-9
        low_rank *= 1 + 1e-9 * rng.normal(size=(4, 6))
        for joint in (rare, low_rank):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # rounding leaves a gap
                mechanism = optimal(joint, epsilon, measure=measure, scope=scope)
            nothing = optimal(joint, 0.0, measure=measure, scope=scope)
            assert mechanism.upper_bound >= nothing.utility - 1e-9
            assert mechanism.leakage_in(scope) <= epsilon * (1 + 1e-9) + 1e-12

    @pytest.mark.parametrize(
        "counts",
        [
            [[3, 1, 1], [0, 0, 3]],
            [[4, 2, 2, 4], [3, 3, 3, 1]],
            [[15, 23, 5], [23, 15, 24]],
            [[3, 4, 2], [1, 3, 1]],
            [[2, 2, 2, 2], [0, 2, 0, 1], [1, 1, 2, 0]],
        ],
    )
    @pytest.mark.parametrize("measure", ["kl", "l1", "chi2", "max_lift", "alpha_lift", "lip"])
    @pytest.mark.parametrize(
        "epsilons", [(1e-12, 1e-15), pytest.param((1e-6, 1e-11, 1e-13), marks=slow)], ids=str
    )
    def test_budgets_below_the_tolerances_of_the_programs(self, counts, measure, epsilons):
        nothing = design_mechanism(counts, 0.0, measure=measure).utility
        for scope in MEASURES[measure].scopes:
            for epsilon in epsilons:
                mechanism = design_mechanism(counts, epsilon, measure=measure, scope=scope)
                assert mechanism.leakage_in(scope) <= epsilon * (1 + 1e-9) + 1e-12
                assert mechanism.utility >= nothing - 1e-5
                assert certified(mechanism, 1e-5)

    def test_a_group_of_a_thousandth(self):
        joint = np.random.default_rng(2).random((3, 6)) * [[1.0], [0.4], [0.001]]
        for scope in SCOPES:
            for mechanism in privacy_utility_path(joint, [0.001, 0.05], scope=scope):
                assert certified(mechanism, 1e-5)

    @pytest.mark.parametrize("solver", ["optimal", "column_generation", "auto"])
    def test_a_lower_bound_holds_at_an_infinite_budget(self, solver):
        joint = np.random.default_rng(0).random((3, 5))
        mechanism = design_mechanism(joint, np.inf, measure=Lip(lower=0.1), solver=solver)
        lifts = mechanism.sensitive_posterior / mechanism.p_sx.sum(axis=1)
        assert lifts.min() >= np.exp(-0.1) * (1 - 1e-9)

    def test_an_infinite_measure_has_no_average(self):
        class Reverse(Hellinger):
            def value(self, posterior, prior):
                with np.errstate(divide="ignore"):
                    return -(prior * np.log(np.asarray(posterior) / prior)).sum(axis=-1)

            def subgradient(self, posterior, prior):
                return -prior / np.maximum(posterior, 1e-12)

            def threshold(self, epsilon):
                return epsilon

            def inverse(self, value):
                return np.asarray(value, float)

        joint = np.array([[0.2, 0.0, 0.1], [0.1, 0.3, 0.3]])
        assert certified(optimal(joint, 0.05, measure=Reverse()), 1e-5)
        with pytest.raises(ValueError, match="infinite for some symbol of X.*per_output"):
            optimal(joint, 0.05, measure=Reverse(), scope="average")

    def test_too_many_vertices_for_a_certificate(self):
        joint = np.random.default_rng(0).random((5, 60))
        with pytest.raises(SolverError, match="Use solver='column_generation'"):
            optimal(joint, 0.05, measure="max_lift")

    def test_an_answer_with_negative_weights_is_kept_but_for_what_is_wrong(self):
        """A program of 396 symbols ended with them: what replaced its answer revealed nothing."""
        rng = np.random.default_rng(0)
        labels = 0.9 * np.eye(30) + 0.1 * rng.random((30, 30))
        shares = np.append(rng.random(29), 0.0)
        labels /= (labels @ shares)[:, None]
        channel = np.hstack([labels, np.ones((30, 1))])  # the last output reveals nothing
        spoilt = np.append(shares, 0.0) + 1e-4 * rng.normal(size=31)
        spoilt[29] = -1e-4
        refined = _refined(channel, spoilt, None)
        assert refined.min() >= 0
        np.testing.assert_allclose(channel @ refined, 1, atol=1e-9)
        np.testing.assert_allclose(refined[:30], shares, atol=0.01)
        assert nnls(channel, np.ones(30))[0][-1] == pytest.approx(
            1
        )  # a solution, but a useless one
