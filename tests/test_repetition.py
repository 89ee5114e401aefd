"""Several releases of the same row: counting outputs against all sequences, and bounds."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import THREE_BY_THREE, naive_value, random_joint

from skprivacy import Evaluation, Mechanism, design_mechanism, repetition
from skprivacy.measures import KL, L1, AlphaLift, Chi2, Lip, MaxLift
from skprivacy.repetition import repeated_release_leakage

MEASURES = [KL(), L1(), Chi2(), MaxLift(), AlphaLift(2), AlphaLift(5), Lip(), Lip(lower=0.5)]
FIGURES = ["max_leakage", "average_leakage", "sensitive_information", "attacker_accuracy"]

# S is the first group for the first two symbols of X. One release: both outputs are equally
# likely in both groups. Two releases are equal in the first group, and half of the time in the
# second.
COINS = np.array([[0.25, 0.25, 0.0], [0.0, 0.0, 0.5]])


def evaluation(p_sx, channel, measure=None):
    return Evaluation.of_channel(channel, p_sx, measure or KL())


def random_evaluation(rng, measure=None, largest=(4, 5)):
    """Return a random channel under a random joint: plain, with zeros, or with copies."""
    p_sx = random_joint(rng, largest)
    n_x, n_y = p_sx.shape[1], rng.integers(1, 4)
    channel = rng.dirichlet(np.ones(n_y), size=n_x)
    kind = rng.choice(["plain", "zeros", "equal symbols", "proportional outputs", "blocks"])
    if kind == "zeros":
        channel *= rng.random(channel.shape) < 0.6
        channel[np.arange(n_x), rng.integers(n_y, size=n_x)] += 0.1
    elif kind == "equal symbols":
        channel = channel[rng.integers(n_x, size=n_x)]
    elif kind == "proportional outputs":
        channel = np.hstack([0.3 * channel, 0.7 * channel[:, ::-1], np.zeros((n_x, 1))])
    elif kind == "blocks":
        channel = np.eye(n_x)[:, rng.integers(n_x, size=n_x)] + 1e-300
        channel = np.where(channel < 0.5, 0.0, channel)
        channel[channel.sum(axis=1) == 0, 0] = 1.0
    return evaluation(p_sx, channel / channel.sum(axis=1, keepdims=True), measure)


def naive_figures(evaluation, k):
    """Return the figures of all n_y^k sequences of outputs, one after the other."""
    p_sx, prior = evaluation.p_sx, evaluation.p_sx.sum(axis=1)
    worst, mean, information, accuracy = -np.inf, 0.0, 0.0, 0.0
    for sequence in product(range(evaluation.channel.shape[1]), repeat=k):
        p_s = p_sx @ np.prod(evaluation.channel[:, sequence], axis=1)
        p = p_s.sum()
        if p == 0:
            continue
        posterior = p_s[prior > 0] / p
        with np.errstate(divide="ignore"):
            value = naive_value(evaluation.measure, posterior, prior[prior > 0])
        worst, mean = max(worst, value), mean + p * value
        information += p * naive_value(KL(), posterior, prior[prior > 0])
        accuracy += p * posterior.max()
    if "average" not in evaluation.measure.scopes:
        mean = np.nan
    inverse = evaluation.measure.inverse
    return [float(inverse(worst)), float(inverse(mean)), information, accuracy]


def figures(repeated):
    return [getattr(repeated, name) for name in FIGURES]


def bounds(monkeypatch_context, evaluation, k):
    with monkeypatch_context() as patch:
        patch.setattr(repetition, "MOST_CELLS", 0)
        repeated = repeated_release_leakage(evaluation, k)
    assert not repeated.is_exact
    return repeated


seeds = st.integers(0, 2**32 - 1)


class TestExact:
    @pytest.mark.parametrize("measure", MEASURES, ids=str)
    def test_against_all_sequences(self, measure):
        rng = np.random.default_rng(1)
        for _ in range(12):
            one = random_evaluation(rng, measure)
            for k in (1, 2, 4):
                repeated = repeated_release_leakage(one, k)
                assert repeated.is_exact
                assert repeated.k == k
                assert_allclose(figures(repeated), naive_figures(one, k), rtol=1e-8, atol=1e-9)

    @pytest.mark.parametrize("measure", MEASURES, ids=str)
    def test_one_release_is_what_the_mechanism_says(self, measure):
        mechanism = design_mechanism(THREE_BY_THREE, 0.1, measure=measure)
        repeated = repeated_release_leakage(mechanism, 1)
        assert repr(figures(repeated)) == repr([getattr(mechanism, name) for name in FIGURES])
        counted = repetition._Release.of(mechanism.secrets[None]).exact_figures(1)
        assert_allclose(counted, figures(repeated), rtol=1e-9, atol=1e-9)

    @settings(max_examples=30)
    @given(seeds)
    def test_more_releases_never_say_less(self, seed):
        rng = np.random.default_rng(seed)
        one = random_evaluation(rng, MEASURES[rng.integers(len(MEASURES))])
        found = np.array([figures(repeated_release_leakage(one, k)) for k in (1, 2, 3, 5, 9)])
        for column in found.T:
            # Not equal in float: sqrt turns a rounding of 1e-16 into 1e-8.
            assert not (column[1:] < column[:-1] - 1e-7).any()

    @pytest.mark.parametrize("measure", MEASURES, ids=str)
    def test_very_many_releases_say_what_x_says(self, measure):
        channel = [[0.8, 0.2], [0.2, 0.8], [0.4, 0.6], [0.2, 0.8]]
        p_sx = np.array([[0.1, 0.05, 0.2, 0.1], [0.2, 0.1, 0.1, 0.15]])
        many = repeated_release_leakage(evaluation(p_sx, channel, measure), 20_000)
        assert many.is_exact
        # The second and the fourth symbol cannot be told apart.
        told_apart = np.column_stack([p_sx[:, 0], p_sx[:, 1] + p_sx[:, 3], p_sx[:, 2]])
        released = evaluation(told_apart, np.eye(3), measure)
        # Outputs that no float can hold the probability of count too: the worst is as bad as X.
        assert_allclose(
            figures(many), figures(repeated_release_leakage(released, 1)), rtol=1e-8, atol=1e-9
        )

    def test_the_order_of_outputs_and_their_copies_do_not_matter(self):
        channel = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
        copied = np.hstack([channel[:, ::-1] / 4, channel * 3 / 4])
        one, other = evaluation(THREE_BY_THREE, channel), evaluation(THREE_BY_THREE, copied)
        found, expected = (repeated_release_leakage(e, 6) for e in (other, one))
        assert_allclose(figures(found), figures(expected), rtol=1e-12)
        assert repetition._Release.of(other.secrets[None]).channel.shape == (3, 3)

    def test_merging_can_be_repeated_any_number_of_times(self):
        mechanism = design_mechanism(THREE_BY_THREE, 0.6, solver="best_partition")
        assert 1 < mechanism.channel.shape[1] < 3
        for k in (2, 1000, 10**9, 10**400):
            repeated = repeated_release_leakage(mechanism, k)
            assert repeated.is_exact
            assert_allclose(figures(repeated), figures(repeated_release_leakage(mechanism, 1)))

    def test_tiny_probabilities_are_not_taken_for_each_other(self):
        """An output that is next to impossible decides between symbols that others exclude."""
        channel = np.array([[1.0, 0.0, 0.0], [1e-14, 1e-20, 0.5], [1e-14, 1e-14, 0.5]])
        channel[:, 0] += 1 - channel.sum(axis=1)
        one = evaluation(THREE_BY_THREE, channel, MaxLift())
        found = figures(repeated_release_leakage(one, 2))
        assert_allclose(found, naive_figures(one, 2), rtol=1e-9)


class TestPerfectPrivacyOnce:
    def test_k_epsilon_is_false(self):
        mechanism = design_mechanism(COINS, epsilon=0)
        assert mechanism.sensitive_information < 1e-12
        # P(equal) is 1 and 1/2: I(S;Y,Y') = h(1/4) - log(2) / 2 = 3/4 log(4/3), by hand.
        twice = repeated_release_leakage(mechanism, 2)
        assert_allclose(twice.sensitive_information, 0.75 * np.log(4 / 3), rtol=1e-9)
        assert_allclose(twice.sensitive_information, 0.2157615543, rtol=1e-9)
        # Different outputs exclude the first group; equal ones make it twice as likely as not.
        assert_allclose(twice.max_leakage, np.log(2), rtol=1e-9)
        assert_allclose(twice.attacker_accuracy, 0.75, rtol=1e-9)

    @pytest.mark.parametrize("n", [2, 5, 20])
    def test_two_releases_can_give_nearly_all_of_s_away(self, n):
        p_sx = np.zeros((2, n + 1))
        p_sx[0, :n], p_sx[1, n] = 0.5 / n, 0.5
        one = evaluation(p_sx, np.vstack([np.eye(n), np.full(n, 1 / n)]))
        assert one.sensitive_information < 1e-12
        twice = repeated_release_leakage(one, 2)
        assert_allclose(twice.attacker_accuracy, 1 - 1 / (2 * n))
        assert twice.sensitive_information <= np.log(2)


class TestBounds:
    @pytest.mark.parametrize("measure", MEASURES, ids=str)
    @settings(max_examples=25)
    @given(seed=seeds)
    def test_no_figure_is_above_its_bound(self, measure, seed):
        """I <= min(I(S;X), k eta I(X;Y)); L <= min(L(S->X), k L(X->Y)); g <= max_x g(e_x)."""
        rng = np.random.default_rng(seed)
        one = random_evaluation(rng, measure)
        for k in (2, 3, 7, 40):
            exact = figures(repeated_release_leakage(one, k))
            bound = figures(bounds(pytest.MonkeyPatch.context, one, k))
            assert not np.any(np.array(exact) > np.array(bound) + 1e-7)

    def test_the_bounds_are_those_of_the_design(self):
        channel = np.array([[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]])
        one = evaluation(THREE_BY_THREE, channel)
        eta = max(
            np.abs(a / a.sum() - b / b.sum()).sum() / 2
            for a in THREE_BY_THREE.T
            for b in THREE_BY_THREE.T
        )
        x_itself = one.with_channel(np.eye(3))
        for k, smallest in ((2, 2 * eta * one.mutual_information), (10**6, 0.4541057321)):
            found = bounds(pytest.MonkeyPatch.context, one, k)
            assert_allclose(found.sensitive_information, smallest, rtol=1e-9)
            assert found.average_leakage == found.sensitive_information
            assert_allclose(found.max_leakage, x_itself.max_leakage, rtol=1e-12)
            assert_allclose(found.attacker_accuracy, x_itself.attacker_accuracy, rtol=1e-12)
        one, x_itself = one.with_measure(MaxLift()), x_itself.with_measure(MaxLift())
        for k, smallest in ((2, 2 * np.log(1.2)), (10**6, x_itself.average_leakage)):
            found = bounds(pytest.MonkeyPatch.context, one, k)
            assert_allclose(found.average_leakage, smallest, rtol=1e-12)

    def test_beyond_the_limit(self):
        mechanism = design_mechanism(THREE_BY_THREE, 0.1)
        repeated = repeated_release_leakage(mechanism, 10**400)
        assert not repeated.is_exact
        assert_allclose(repeated.sensitive_information, 0.4541057321, rtol=1e-9)
        few = repeated_release_leakage(mechanism, 30)
        assert few.is_exact
        assert all(a <= b for a, b in zip(figures(few), figures(repeated), strict=True))

    def test_symbols_that_no_release_tells_apart_are_one(self):
        channel = [[0.5, 0.5], [0.5, 0.5], [0.1, 0.9]]
        found = bounds(pytest.MonkeyPatch.context, evaluation(THREE_BY_THREE, channel), 10**9)
        merged = np.column_stack([THREE_BY_THREE[:, :2].sum(axis=1), THREE_BY_THREE[:, 2]])
        released = evaluation(merged, np.eye(2))
        assert_allclose(figures(found), figures(repeated_release_leakage(released, 1)))
        assert found.sensitive_information < 0.3 < 0.4541057321


class TestObject:
    def test_what_it_says(self):
        mechanism = design_mechanism(COINS, epsilon=0)
        twice, often = (repeated_release_leakage(mechanism, k) for k in (2, 10**8))
        assert repr(twice) == (
            "RepeatedLeakage(KL(), k=2: max_leakage=0.693147, average_leakage=0.215762, "
            "sensitive_information=0.215762, attacker_accuracy=0.75)"
        )
        assert "max_leakage<=0.693148" in repr(often)  # a bound: rounded up
        assert twice.leakage_in("per_output") == twice.max_leakage
        assert twice.leakage_in("average") == twice.average_leakage

    def test_a_measure_without_an_average(self):
        mechanism = design_mechanism(THREE_BY_THREE, 0.1, measure="lip")
        for k in (1, 2, 10**9):
            assert np.isnan(repeated_release_leakage(mechanism, k).average_leakage)

    def test_under_another_joint(self):
        mechanism = design_mechanism(THREE_BY_THREE, 0.1)
        elsewhere = mechanism.evaluate(THREE_BY_THREE[:, ::-1])
        found = figures(repeated_release_leakage(elsewhere, 2))
        assert_allclose(found, naive_figures(elsewhere, 2), rtol=1e-9)

    @pytest.mark.parametrize(("k", "error"), [(0, ValueError), (-3, ValueError), (2.0, TypeError), (True, TypeError)])  # fmt: skip
    def test_wrong_numbers(self, k, error):
        mechanism = design_mechanism(THREE_BY_THREE, 0.1)
        match = r"The 'k' parameter of repeated_release_leakage must be an int in the range \[1"
        with pytest.raises(error, match=match):
            repeated_release_leakage(mechanism, k)

    def test_numpys_integers(self):
        mechanism = design_mechanism(THREE_BY_THREE, 0.1)
        assert repeated_release_leakage(mechanism, np.int8(2)).k == 2

    def test_wrong_mechanisms(self):
        with pytest.raises(TypeError, match="'mechanism' parameter of repeated_release_leakage"):
            repeated_release_leakage(THREE_BY_THREE, 2)

    def test_without_a_joint(self):
        mechanism = design_mechanism(THREE_BY_THREE, 0.1)
        shipped = Mechanism.from_json(mechanism.to_json(include_joint=False))
        for k in (1, 2):
            with pytest.raises(AttributeError, match="saved without its joint"):
                repeated_release_leakage(shipped, k)
