import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import naive_value

from skprivacy import design_mechanism
from skprivacy.measures import (
    KL,
    L1,
    MEASURES,
    AlphaLift,
    Chi2,
    Lip,
    MaxLift,
    Measure,
    Parity,
    get_measure,
)
from skprivacy.measures.measure import leakage_unchanged

SHIPPED = [
    KL(),
    L1(),
    Chi2(),
    MaxLift(),
    AlphaLift(2),
    AlphaLift(5),
    Lip(),
    Lip(lower=0.7),
    Parity(),
]


@st.composite
def distributions(draw, n, smallest=0.0):
    """Distributions on n symbols, zeros included where smallest is 0."""
    weights = draw(
        st.lists(st.floats(smallest, 1.0), min_size=n, max_size=n).filter(lambda w: sum(w) > 0.01)
    )
    return np.array(weights) / np.sum(weights)


@st.composite
def prior_and_posteriors(draw, count=1):
    n = draw(st.integers(2, 5))
    prior = draw(distributions(n, smallest=0.02))
    return prior, *(draw(distributions(n)) for _ in range(count))


@pytest.mark.parametrize("measure", SHIPPED, ids=repr)
class TestEveryMeasure:
    @given(case=prior_and_posteriors())
    def test_value_is_the_formula_of_the_table(self, measure, case):
        prior, posterior = case
        with np.errstate(divide="ignore", over="ignore"):
            expected = naive_value(measure, posterior, prior)
        assert_allclose(measure.value(posterior, prior), expected, atol=1e-12)

    @given(case=prior_and_posteriors(count=2))
    def test_subgradient_supports_the_convex_function_from_below(self, measure, case):
        prior, posterior, other = case
        # Where a posterior is zero the gradient is that of a clamped lift: keep away from it.
        posterior = 0.99 * posterior + 0.01 * prior
        value = measure.value(posterior, prior)
        if np.isfinite(value):
            tangent = value + measure.subgradient(posterior, prior) @ (other - posterior)
            assert measure.value(other, prior) >= tangent - 1e-9

    @given(case=prior_and_posteriors())
    def test_the_prior_says_least(self, measure, case):
        prior, posterior = case
        assert measure.leakage(prior, prior) <= 1e-12
        assert measure.value(posterior, prior) >= measure.value(prior, prior) - 1e-12

    @given(epsilon=st.floats(0, 20))
    def test_inverse_undoes_threshold(self, measure, epsilon):
        assert_allclose(measure.inverse(measure.threshold(epsilon)), epsilon, atol=1e-9)

    def test_batches_give_what_single_posteriors_give(self, measure):
        rng = np.random.default_rng(0)
        prior, batch = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4), size=(3, 5))
        values, gradients = measure.value(batch, prior), measure.subgradient(batch, prior)
        assert values.shape == (3, 5)
        assert gradients.shape == (3, 5, 4)
        for i, j in np.ndindex(3, 5):
            # Vectors of other lengths may be rounded by other routines.
            assert_allclose(values[i, j], measure.value(batch[i, j], prior), rtol=1e-14)
            assert_allclose(gradients[i, j], measure.subgradient(batch[i, j], prior), rtol=1e-13)

    def test_an_impossible_symbol_changes_nothing(self, measure):
        prior, posterior = np.array([0.3, 0.7]), np.array([0.4, 0.6])
        padded = measure.value(np.append(posterior, 0.0), np.append(prior, 0.0))
        assert_allclose(padded, measure.value(posterior, prior))

    def test_infinite_epsilon_allows_everything(self, measure):
        assert measure.threshold(np.inf) == np.inf
        assert measure.threshold(1000.0) > 1e2

    def test_round_trip_through_its_dictionary(self, measure):
        content = measure.to_dict()
        assert get_measure(content.pop("name"), **content) == measure

    @given(case=prior_and_posteriors(), epsilon=st.floats(0.01, 1.5))
    def test_facets_are_the_budget(self, measure, case, epsilon):
        prior, posterior = case
        facets = measure.facets(prior, epsilon)
        if measure.name in ("kl", "chi2", "alpha_lift"):
            assert facets is None
            return
        excess = (facets[0] @ posterior - facets[1]).max()
        distance = measure.leakage(posterior, prior) - epsilon
        if abs(excess) > 1e-9 and abs(distance) > 1e-9:
            assert (excess < 0) == (distance < 0)

    @given(case=prior_and_posteriors(), epsilon=st.floats(0.001, 1.5))
    def test_implied_deviations_imply_the_budget(self, measure, case, epsilon):
        prior, posterior = case
        low, high = measure.implied_deviations(epsilon)
        deviations = posterior / prior - 1
        if deviations.max() <= high and deviations.min() >= low:
            assert measure.leakage(posterior, prior) <= epsilon + 1e-9
        elif measure.is_lift_box and (
            deviations.max() > high + 1e-3 or deviations.min() < low - 1e-3
        ):
            assert measure.leakage(posterior, prior) > epsilon


@pytest.mark.parametrize("measure", [KL(), L1(), Chi2(), AlphaLift(2), AlphaLift(5)], ids=repr)
@given(copies=st.integers(2, 6))
def test_implied_deviations_are_tight(measure, copies):
    # All lifts 0 or M is the worst posterior under a largest lift of M.
    prior = np.full(copies, 1 / copies)
    posterior = np.eye(copies)[0]
    epsilon = float(measure.leakage(posterior, prior))
    assert_allclose(measure.implied_deviations(epsilon)[1], copies - 1)


class TestThePaper:
    def test_proposition_1_is_false_for_l1_and_chi2(self):
        prior, lifts = np.full(4, 0.25), np.array([0, 4 / 3, 4 / 3, 4 / 3])
        epsilon = lifts.max() - 1
        assert_allclose(L1().value(lifts * prior, prior), 1 / 2)
        assert_allclose(Chi2().value(lifts * prior, prior), 1 / 3)
        assert L1().value(lifts * prior, prior) > epsilon
        assert Chi2().value(lifts * prior, prior) > epsilon**2

    @given(case=prior_and_posteriors())
    def test_what_is_true_instead(self, case):
        prior, posterior = case
        largest = MaxLift().value(posterior, prior)
        assert KL().value(posterior, prior) <= np.log(largest) + 1e-12
        assert L1().value(posterior, prior) <= 2 * (1 - 1 / largest) + 1e-12
        assert Chi2().value(posterior, prior) <= largest - 1 + 1e-12

    @given(case=prior_and_posteriors())
    def test_proposition_2_is_right(self, case):
        prior, posterior = case
        l1, chi2 = L1().value(posterior, prior), Chi2().value(posterior, prior)
        assert l1 <= np.sqrt(chi2) + 1e-12
        assert chi2 <= l1**2 / prior.min() + 1e-12

    @given(case=prior_and_posteriors())
    def test_alpha_lift_grows_with_alpha_up_to_max_lift(self, case):
        prior, posterior = case
        values = [AlphaLift(alpha).value(posterior, prior) for alpha in (1.5, 2, 5, 50)]
        assert (np.diff(values) >= -1e-12).all()
        assert values[-1] <= MaxLift().value(posterior, prior) + 1e-12


def test_large_alpha_does_not_overflow():
    value = AlphaLift(1e4).value(np.array([1.0, 0.0]), np.array([1e-9, 1 - 1e-9]))
    assert_allclose(value, 1e9 ** (1 - 1e-4))


@pytest.mark.parametrize("measure", [KL(), Chi2(), MaxLift(), AlphaLift(2)], ids=repr)
def test_mass_on_an_impossible_symbol_is_infinitely_surprising(measure):
    assert measure.value(np.array([0.5, 0.5]), np.array([1.0, 0.0])) == np.inf


def test_l1_refuses_to_list_too_many_facets():
    with pytest.raises(ValueError, match=r"2\^20 - 2 facets"):
        L1().facets(np.full(20, 0.05), 0.1)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (
            lambda: AlphaLift(1),
            ValueError,
            r"'alpha' parameter of AlphaLift .*\(1, inf\).* Got 1 ",
        ),
        (lambda: AlphaLift(np.inf), ValueError, "'alpha' parameter"),
        (lambda: AlphaLift("2"), TypeError, "'alpha' parameter"),
        (lambda: Lip(lower=-0.1), ValueError, r"'lower' parameter of Lip .* Got -0\.1 "),
        (
            lambda: get_measure("lift"),
            ValueError,
            "one of {'alpha_lift', .*} .* Got 'lift' instead",
        ),
        (lambda: get_measure(3), TypeError, "'measure' parameter .* Got 3 instead"),
        (lambda: get_measure(KL), TypeError, r"write KL\(\), not the class"),
    ],
)
def test_bad_parameters(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_every_name_has_a_measure_and_objects_pass_through():
    assert sorted(MEASURES) == ["alpha_lift", "chi2", "kl", "l1", "lip", "max_lift", "parity"]
    measure = AlphaLift(3)
    assert get_measure(measure) is measure
    assert isinstance(get_measure("kl"), Measure)


@pytest.mark.parametrize("measure", SHIPPED, ids=repr)
def test_what_x_leaks_unchanged_is_that_of_its_symbols(measure):
    p_sx = np.array([[0.2, 0.0, 0.1, 0.1], [0.0, 0.0, 0.0, 0.0], [0.1, 0.0, 0.2, 0.3]])
    p_x, prior = np.array([0.3, 0.3, 0.4]), np.array([0.4, 0.6])
    posteriors = np.array([[2, 1], [1, 2], [1, 3]]) / [[3], [3], [4]]
    values = np.array([naive_value(measure, posterior, prior) for posterior in posteriors])
    worst = measure.inverse(values.max())
    assert_allclose(leakage_unchanged("per_output", measure, p_sx), worst, rtol=1e-12)
    average = measure.inverse(p_x @ values) if "average" in measure.scopes else np.nan
    assert_allclose(leakage_unchanged("average", measure, p_sx), average, rtol=1e-12)


class TestParity:
    @staticmethod
    def total_variations(channel, p_sx):
        given_s = (p_sx / p_sx.sum(axis=1, keepdims=True)) @ channel
        return [np.abs(a - b).sum() / 2 for a in given_s for b in given_s]

    @pytest.mark.parametrize("n_s", [2, 4])
    def test_its_average_bounds_how_differently_groups_are_treated(self, n_s):
        rng = np.random.default_rng(n_s)
        for _ in range(10):
            joint = rng.dirichlet(np.ones(5 * n_s)).reshape(n_s, 5)
            mechanism = design_mechanism(joint, 0.1, measure="parity", scope="average")
            largest = max(self.total_variations(mechanism.channel, mechanism.p_sx))
            assert largest <= mechanism.average_leakage + 1e-12
            if n_s == 2:
                assert largest == pytest.approx(mechanism.average_leakage, abs=1e-12)

    def test_of_two_groups_it_is_l1_on_another_scale(self):
        joint = np.array([[0.1, 0.1, 0.05], [0.05, 0.3, 0.4]])
        p = joint.sum(axis=1)
        mechanism = design_mechanism(joint, 0.1, measure="parity", scope="average")
        same = design_mechanism(joint, 0.1 * 4 * p[0] * p[1], measure="l1", scope="average")
        assert mechanism.utility == pytest.approx(same.utility, abs=1e-6)

    def test_its_facets_are_the_budget(self):
        rng = np.random.default_rng(0)
        prior = rng.dirichlet(np.ones(4))
        normals, offsets = Parity().facets(prior, 0.3)
        posteriors = rng.dirichlet(20 * prior, size=500)
        within = (posteriors @ normals.T <= offsets).all(axis=1)
        assert 0 < within.sum() < 500
        assert (within == (Parity().value(posteriors, prior) <= 0.3)).all()
