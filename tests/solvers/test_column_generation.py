"""Large alphabets: close to the certified optimum where both run."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from skprivacy import design_mechanism, privacy_utility_path
from skprivacy.measures import AlphaLift, Lip
from skprivacy.solvers import ColumnGenerationSolver
from skprivacy.utilities import Guess, Target

SCOPES = ["per_output", "average"]

# The proof of a gap takes most of the time, and the smaller the gap the longer.
tolerances = pytest.mark.parametrize("tol", [1e-3, pytest.param(1e-5, marks=pytest.mark.slow)])


def optimal(joint, epsilon, **options):
    return design_mechanism(joint, epsilon, solver="optimal", **options)


class TestColumnGeneration:
    @tolerances
    @pytest.mark.parametrize("scope", SCOPES)
    @pytest.mark.parametrize("measure", ["kl", "chi2", "l1", AlphaLift(3), "max_lift"], ids=str)
    def test_is_close_to_the_certified_optimum(self, measure, scope, tol):
        options = {"measure": measure, "scope": scope}
        for seed, (shape, epsilon) in enumerate([((3, 7), 0.02), ((4, 6), 0.2)]):
            joint = np.random.default_rng(seed).random(shape)
            best = optimal(joint, epsilon, solver_options={"tol": 1e-4}, **options)
            mechanism = design_mechanism(
                joint, epsilon, solver="column_generation", solver_options={"tol": tol}, **options
            )
            assert mechanism.utility >= 0.995 * best.utility
            assert mechanism.utility <= best.upper_bound + 1e-9
            assert mechanism.upper_bound >= best.utility
            assert mechanism.leakage_in(scope) <= epsilon * (1 + 1e-9)

    # From 48 symbols on, outputs at kinks are searched for in ways of their own.
    @pytest.mark.slow
    @pytest.mark.parametrize("scope", SCOPES)
    @pytest.mark.parametrize(("measure", "epsilon"), [("l1", 0.2), ("max_lift", 0.2)])
    def test_gaps_of_polyhedral_measures_are_proven(self, measure, epsilon, scope):
        joint = np.random.default_rng(0).random((6, 48))
        options = {"measure": measure, "scope": scope, "solver": "column_generation"}
        mechanism = design_mechanism(joint, epsilon, **options)
        assert 0 <= mechanism.gap <= 0.01 * mechanism.utility
        assert mechanism.leakage_in(scope) <= epsilon * (1 + 1e-9)

    # Targets of smaller tables are in test_priced_bound.py.
    @tolerances
    @pytest.mark.parametrize(
        "utility",
        [
            pytest.param(Target(np.random.default_rng(0).random((3, 10))), marks=pytest.mark.slow),
            Guess(),
        ],
        ids=repr,
    )
    def test_other_utilities(self, utility, tol):
        joint = np.random.default_rng(1).random((3, 10))
        best = optimal(joint, 0.05, utility=utility)
        mechanism = design_mechanism(
            joint, 0.05, utility=utility, solver="column_generation", solver_options={"tol": tol}
        )
        assert mechanism.utility >= 0.995 * best.utility

    @tolerances
    @pytest.mark.parametrize(
        "measure", ["kl", "chi2", "l1", "max_lift", "lip", Lip(lower=0.1), "parity"], ids=str
    )
    def test_is_not_worse_than_bounded_lifts(self, measure, tol):
        joint = np.random.default_rng(2).random((4, 8))
        ours, lifts = (
            design_mechanism(joint, 0.1, measure=measure, solver=solver)
            for solver in (ColumnGenerationSolver(tol=tol), "lift_polytope")
        )
        assert ours.utility >= lifts.utility - 1e-6

    def test_pairs_are_exact(self):
        joint = np.random.default_rng(0).random((2, 120))
        mechanism = design_mechanism(joint, 0.01, solver="column_generation")
        assert mechanism.gap <= 1e-6
        assert_allclose(mechanism.utility, optimal(joint, 0.01).utility, atol=1e-6)

    def test_special_budgets(self):
        joint = np.random.default_rng(0).random((3, 12))
        nothing, everything = privacy_utility_path(joint, [0.0, 9.0], solver="column_generation")
        assert nothing.sensitive_information <= 1e-12
        assert nothing.utility >= 0.99 * optimal(joint, 0.0).utility
        assert_allclose(everything.normalized_utility, 1.0)

    def test_stops_in_time(self):
        joint = np.random.default_rng(0).random((5, 60))
        match = "Column generation has stopped because its max_time"
        with pytest.warns(ConvergenceWarning, match=match) as caught:
            mechanism = design_mechanism(
                joint, 0.02, solver="column_generation", solver_options={"max_time": 1.0}
            )
        assert caught[0].filename == __file__
        assert mechanism.max_leakage <= 0.02 * (1 + 1e-9)
        assert mechanism.normalized_utility > 0.1
