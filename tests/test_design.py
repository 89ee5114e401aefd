import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from reference import THREE_BY_THREE, entropy

from skprivacy import design_mechanism, privacy_utility_path
from skprivacy.measures import MEASURES, AlphaLift, Lip
from skprivacy.solvers import Algorithm1Solver
from skprivacy.utilities import Target

ALL_MEASURES = [*sorted(MEASURES), AlphaLift(5), Lip(lower=0.1)]


class TestBadInput:
    @pytest.mark.parametrize(
        ("p_sx", "error", "text"),
        [
            ([[0.5, -0.1], [0.3, 0.3]], ValueError, r"1 negative entries, the first -0\.1 at row 0, column 1"),
            ([[0.5, np.nan], [0.3, 0.3]], ValueError, "1 NaN entries"),
            ([[0.5, np.inf], [0.3, 0.3]], ValueError, "1 infinite entries"),
            ([[0.0, 0.0], [0.0, 0.0]], ValueError, r"positive and finite total. Got a total of 0\.0"),
            ([[1e308, 1e308], [1e308, 1e308]], ValueError, "Got a total of inf"),
            ([0.5, 0.5], ValueError, r"two-dimensional table of numbers.*Got shape \(2,\)"),
            (0.5, ValueError, r"Got shape \(\)"),
            (np.empty((0, 3)), ValueError, r"Got shape \(0, 3\)"),
            (np.ones((2, 2, 2)), ValueError, r"Got shape \(2, 2, 2\)"),
            ([[0.5, "a"], [0.1, 0.2]], TypeError, "table of numbers.*Got list"),
            ([[0.5], [0.1, 0.2]], TypeError, "table of numbers"),
            (np.ones((2, 2)) * 1j, TypeError, "Got ndarray with entries that are not numbers"),
            ([[1e-120, 0.5], [0.3, 0.3]], ValueError, "probabilities between 0 and 1e-100"),
            (None, ValueError, r"Got shape \(\)"),
            (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "Got 'a' more than once in its columns"),
        ],
    )  # fmt: skip
    def test_joint(self, p_sx, error, text):
        for design in (design_mechanism, lambda p_sx, e: privacy_utility_path(p_sx, [e])):
            with pytest.raises(error, match=f"'p_sx' parameter of (design|privacy).*{text}"):
                design(p_sx, 0.1)

    @pytest.mark.parametrize(
        ("epsilon", "error"),
        [(-0.1, ValueError), (np.nan, ValueError), ("0.1", TypeError), (None, TypeError),
         (True, TypeError), ([0.1], TypeError), (1j, TypeError)],
    )  # fmt: skip
    def test_epsilon(self, epsilon, error):
        with pytest.raises(error, match=r"'epsilon' parameter of design_mechanism .*\[0, inf\]"):
            design_mechanism(THREE_BY_THREE, epsilon)
        with pytest.raises(error, match="'epsilons' parameter of privacy_utility_path"):
            privacy_utility_path(THREE_BY_THREE, [0.1, epsilon])

    @pytest.mark.parametrize(
        ("epsilons", "error"), [(0.1, TypeError), ("0.1", TypeError), ([], ValueError)]
    )
    def test_epsilons(self, epsilons, error):
        with pytest.raises(error, match="'epsilons' parameter of privacy_utility_path"):
            privacy_utility_path(THREE_BY_THREE, epsilons)

    @pytest.mark.parametrize(
        ("options", "error", "text"),
        [
            ({"measure": "renyi"}, ValueError, "'measure' .*'alpha_lift', 'chi2', 'kl'.* Got 'renyi'"),
            ({"measure": 2}, TypeError, "'measure' .* Got 2 instead"),
            ({"scope": "worst"}, ValueError, "'scope' .*{'average', 'per_output'}. Got 'worst'"),
            ({"measure": "lip", "scope": "average"}, ValueError, r"Lip\(.* has no scope 'average'.*per_output"),
            ({"utility": "accuracy"}, ValueError, "'utility' .*{'distortion', 'guess', 'mutual_information', 'target'}.*Got 'accuracy'"),
            ({"utility": "target"}, ValueError, r"'target', which needs .* Target\(p_vx\)"),
            ({"utility": Target}, TypeError, "an instance of Target, not the class"),
            ({"utility": Target([[1, 2], [2, 1]])}, ValueError, "'p_vx' .* 3 columns, one per symbol"),
            ({"utility": Target([[1, 0, 1]])}, ValueError, "Got only zeros in its column 1"),
            ({"utility": 3}, TypeError, "'utility' .* Got 3"),
            ({"utility": np.array([1, 2])}, TypeError, "'utility' .* Got ndarray of shape"),
            ({"solver": "magic"}, ValueError, "'solver' .*{'algorithm1', 'auto', .*'optimal', .*'watchdog'}.* Got 'magic'"),
            ({"solver": 3}, TypeError, "'solver' .* Got 3"),
            ({"solver": "lift_polytope", "solver_options": {"delta": 0.1}}, TypeError,
             "unexpected option 'delta' for solver 'lift_polytope', which takes engine, max_bases"),
            ({"solver_options": 3}, TypeError, "'solver_options' .* Got 3"),
            ({"solver_options": {"detla": 0.1}}, TypeError, "unexpected option 'detla' for solver 'optimal'"),
        ],
    )  # fmt: skip
    def test_the_rest(self, options, error, text):
        with pytest.raises(error, match=text):
            design_mechanism(THREE_BY_THREE, 0.1, **options)


@pytest.mark.parametrize("measure", ALL_MEASURES, ids=str)
class TestSpecialCases:
    def test_perfect_privacy_keeps_what_the_null_space_of_c_allows(self, measure):
        joint = np.random.default_rng(0).random((2, 5))
        mechanism = design_mechanism(joint, 0, measure=measure)
        assert mechanism.sensitive_information <= 1e-12
        assert mechanism.normalized_utility > 0.3
        invertible = design_mechanism(THREE_BY_THREE, 0, measure=measure)
        assert invertible.utility <= 1e-9

    @pytest.mark.parametrize("epsilon", [50.0, 1e6, np.inf])
    def test_a_huge_budget_releases_x(self, measure, epsilon):
        for solver in ("auto", "algorithm1", "lift_polytope"):
            mechanism = design_mechanism(THREE_BY_THREE, epsilon, measure=measure, solver=solver)
            if measure == Lip(lower=0.1):  # a bound of its own that no epsilon lifts
                lifts = mechanism.sensitive_posterior / THREE_BY_THREE.sum(axis=1)
                assert -np.log(lifts.min()) <= 0.1 * (1 + 1e-9) + 1e-12
            else:
                assert_allclose(mechanism.channel, np.eye(3), atol=1e-12)
                assert_allclose(mechanism.normalized_utility, 1.0)

    def test_independent_s_and_x(self, measure):
        joint = np.outer([0.3, 0.7], [0.2, 0.5, 0.3])
        for mechanism in privacy_utility_path(joint, [0.0, 0.1], measure=measure):
            assert_allclose(mechanism.normalized_utility, 1.0)

    def test_s_equal_to_x(self, measure):
        nothing, something = privacy_utility_path(np.eye(3), [0.0, 0.1], measure=measure)
        assert nothing.utility <= 1e-9
        assert something.utility > 1e-4

    @pytest.mark.parametrize("joint", [[[1.0]], [[0.3], [0.7]], [[0.3, 0.7]]], ids=str)
    def test_a_single_symbol(self, measure, joint):
        mechanism = design_mechanism(joint, 0.0, measure=measure)
        assert_allclose(mechanism.normalized_utility, 1.0)
        assert mechanism.max_leakage == 0

    def test_empty_rows_and_columns(self, measure):
        dense = np.random.default_rng(1).random((3, 4))
        sparse = np.insert(np.insert(dense, 1, 0.0, axis=0), [0, 2], 0.0, axis=1)
        expected = design_mechanism(dense, 0.1, measure=measure)
        mechanism = design_mechanism(sparse, 0.1, measure=measure)
        assert_allclose(mechanism.utility, expected.utility, atol=1e-9)
        assert mechanism.channel.shape[0] == 6
        # A symbol that was never seen is released like an independent draw of Y.
        assert_allclose(mechanism.channel[[0, 3]], np.tile(mechanism.p_y, (2, 1)))

    def test_identical_columns(self, measure):
        column = np.array([[0.1], [0.3]])
        joint = np.hstack([column, column, [[0.15], [0.05]]])
        mechanism = design_mechanism(joint, 0.05, measure=measure)
        # Two symbols that say the same about S may be told apart freely.
        merged = design_mechanism(np.hstack([2 * column, joint[:, 2:]]), 0.05, measure=measure)
        p_x = mechanism.p_sx.sum(axis=0)
        merged_p_x = merged.p_sx.sum(axis=0)
        assert_allclose(
            entropy(p_x) - mechanism.utility, entropy(merged_p_x) - merged.utility, atol=1e-8
        )


class TestErrorsKeepS:
    """An error message shows no cell of a table: it may be somebody's S."""

    def test_rows_instead_of_counts(self):
        with pytest.raises(TypeError, match="crosstab") as caught:
            design_mechanism([["secret", "a"], ["m", "b"]], 0.1)
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None

    def test_swapped_arguments(self):
        counts = pd.DataFrame([[3, 4], [5, 6]], index=["secret", "m"])
        with pytest.raises(TypeError, match=r"Got DataFrame of shape \(2, 2\)") as caught:
            design_mechanism(0.1, counts)
        assert "secret" not in str(caught.value)


def test_saturation_on_average_is_exact():
    leakage = 0.4541057321  # I(S;X), from the design
    mechanism = design_mechanism(THREE_BY_THREE, leakage + 1e-9, scope="average")
    assert_allclose(mechanism.normalized_utility, 1.0)
    assert_allclose(mechanism.sensitive_information, leakage, atol=1e-9)
    assert design_mechanism(THREE_BY_THREE, 0.45, scope="average").normalized_utility < 1


class TestInvariance:
    @pytest.mark.parametrize("measure", ["kl", "l1", "chi2", "max_lift", "alpha_lift", "lip"])
    def test_splitting_s_and_permuting_symbols_change_nothing(self, measure):
        rng = np.random.default_rng(2)
        joint = rng.random((3, 6))
        options = {"measure": measure}
        if measure not in ("max_lift", "lip"):
            options |= {"solver": Algorithm1Solver(candidates="all")}
        expected = design_mechanism(joint, 0.05, **options)
        split = np.vstack([joint[:1] * 0.3, joint[:1] * 0.7, joint[1:]])
        assert_allclose(
            design_mechanism(split, 0.05, **options).utility, expected.utility, atol=1e-8
        )
        permuted = joint[::-1][:, rng.permutation(6)]
        assert_allclose(
            design_mechanism(permuted, 0.05, **options).utility, expected.utility, atol=1e-8
        )

    def test_counts_are_probabilities(self):
        counts = np.array([[40, 30, 10], [20, 30, 30]])
        mechanism = design_mechanism(counts, 0.02)
        assert mechanism.utility == design_mechanism(counts.tolist(), 0.02).utility
        assert_allclose(
            mechanism.utility, design_mechanism(counts / 160, 0.02).utility, atol=1e-12
        )


class TestAuto:
    def test_takes_a_solver_that_certifies(self):
        solvers = {
            name: design_mechanism(THREE_BY_THREE, 0.1, measure=name).solver for name in MEASURES
        }
        assert solvers == {
            "kl": "optimal", "l1": "optimal", "chi2": "optimal", "alpha_lift": "optimal",
            "max_lift": "lift_polytope", "lip": "lift_polytope", "parity": "optimal",
        }  # fmt: skip
        average = design_mechanism(THREE_BY_THREE, 0.1, measure="max_lift", scope="average")
        assert average.solver == "optimal"

    @pytest.mark.parametrize(
        ("shape", "options", "solver"),
        [
            ((4, 40), {}, "column_generation"),
            ((4, 24), {"measure": "lip"}, "column_generation"),
            ((2, 150), {}, "optimal"),
            ((2, 40), {"scope": "average"}, "optimal"),
        ],
    )
    def test_takes_column_generation_for_large_alphabets(self, shape, options, solver):
        joint = np.random.default_rng(0).random(shape)
        mechanism = design_mechanism(joint, 0.2, solver_options={"tol": 1e-2}, **options)
        assert mechanism.solver == solver

    @pytest.mark.parametrize("measure", ["kl", "l1", "chi2", "alpha_lift"])
    def test_is_never_worse_than_algorithm1(self, measure):
        epsilons = [0.005, 0.05, 0.2]
        for seed in range(3):
            joint = np.random.default_rng(seed).random((3, 6))
            ours, theirs = (
                privacy_utility_path(joint, epsilons, measure=measure, solver=solver)
                for solver in ("auto", "algorithm1")
            )
            for one, other in zip(ours, theirs, strict=True):
                assert one.utility >= other.utility - 1e-7


def test_labels_from_a_crosstab():
    frame = pd.DataFrame({"sex": list("ffmmfm"), "band": pd.cut([1, 2, 3, 4, 5, 6], 3)})
    counts = pd.crosstab(frame["sex"], [frame["band"], frame["sex"] == "f"])
    mechanism = design_mechanism(counts, 0.1)
    assert mechanism.s_labels == ("f", "m")
    assert all(isinstance(label, tuple) for label in mechanism.x_labels)
    assert isinstance(mechanism.x_labels[0][0], pd.Interval)
