"""How far a budget lets the probability of a group move."""

import numpy as np
import pytest
from reference import Hellinger
from scipy.optimize import brentq

from skprivacy import design_mechanism
from skprivacy.budgets import epsilon_for_shift
from skprivacy.measures import KL, L1, AlphaLift, Chi2, Lip, MaxLift, Parity
from skprivacy.measures.measure import posterior_ranges

PRIOR = np.array([0.51, 0.3, 0.18, 0.01])
SHIPPED = [KL(), L1(), Chi2(), MaxLift(), AlphaLift(5), Lip(), Lip(lower=0.3), Parity()]


def closed_form(measure, p, eps):
    """The table of the ranges, as the theory has it."""
    match measure:
        case L1():
            ends = p - eps / 2, p + eps / 2
        case Chi2():
            ends = p - eps * np.sqrt(p * (1 - p)), p + eps * np.sqrt(p * (1 - p))
        case MaxLift():
            ends = 1 - (1 - p) * np.exp(eps), p * np.exp(eps)
        case Lip(lower=lower):
            low, high = np.exp(-(eps if lower is None else lower)), np.exp(eps)
            ends = max(p * low, 1 - (1 - p) * high), min(p * high, 1 - (1 - p) * low)
        case Parity():
            ends = p - 2 * eps * p * (1 - p), p + 2 * eps * p * (1 - p)
        case KL() | AlphaLift():
            return roots(measure, p, eps)
    return np.clip(ends, 0, 1)


def roots(measure, p, eps):
    def excess(a):
        if isinstance(measure, KL):
            return a * np.log(a / p) + (1 - a) * np.log((1 - a) / (1 - p)) - eps
        alpha = measure.alpha
        lifted = p * (a / p) ** alpha + (1 - p) * ((1 - a) / (1 - p)) ** alpha
        return lifted - np.exp(alpha * eps)

    ends = [1e-12, 1 - 1e-12]
    return [
        brentq(excess, *sorted((p, e)), xtol=1e-14) if excess(e) > 0 else round(e) for e in ends
    ]


@pytest.mark.parametrize("measure", SHIPPED, ids=repr)
@pytest.mark.parametrize("epsilon", [0.001, 0.02, 0.2, 3.0])
def test_closed_forms(measure, epsilon):
    expected = [closed_form(measure, p, epsilon) for p in PRIOR]
    np.testing.assert_allclose(posterior_ranges(measure, PRIOR, epsilon), expected, atol=2e-6)


@pytest.mark.parametrize("measure", SHIPPED, ids=repr)
def test_no_posterior_within_the_budget_is_outside(measure):
    rng = np.random.default_rng(0)
    posteriors = rng.dirichlet(50 * PRIOR, size=20_000)
    within = posteriors[measure.leakage(posteriors, PRIOR) <= 0.1]
    assert len(within) > 50
    low, high = posterior_ranges(measure, PRIOR, 0.1).T
    assert (within >= low - 1e-12).all()
    assert (within <= high + 1e-12).all()


def test_a_rare_group_can_become_several_times_as_likely():
    low, high = posterior_ranges(KL(), PRIOR, 0.02)[3]
    assert high == pytest.approx(0.036, abs=5e-4)
    low, high = posterior_ranges(KL(), PRIOR, 0.02)[0]
    assert (low, high) == (pytest.approx(0.41, abs=0.005), pytest.approx(0.61, abs=0.005))


def test_what_is_not_known_is_not_promised():
    assert posterior_ranges(Hellinger(), PRIOR, 0.01).tolist() == [[0.0, 1.0]] * 4
    with pytest.raises(ValueError, match="'measure' parameter of epsilon_for_shift .*is_monotone"):
        epsilon_for_shift(PRIOR, 0.05, Hellinger())


@pytest.mark.parametrize("scope", ["per_output", "average"])
def test_a_mechanism_stays_within_what_is_allowed(scope):
    joint = np.random.default_rng(1).random((3, 6))
    table = design_mechanism(joint, 0.03, scope=scope).posterior_ranges()
    assert (table["reached_low"] < table["prior"]).all()
    assert (table["prior"] < table["reached_high"]).all()
    if scope == "average":
        assert table[["allowed_low", "allowed_high"]].isna().all(axis=None)
        return
    assert (table["allowed_low"] <= table["reached_low"] + 1e-9).all()
    assert (table["reached_high"] <= table["allowed_high"] + 1e-9).all()


@pytest.mark.parametrize("measure", SHIPPED[:-1], ids=repr)
def test_the_largest_epsilon_for_a_shift(measure):
    epsilon = epsilon_for_shift(100 * PRIOR, 0.05, measure, max_factor=np.inf)
    ranges = posterior_ranges(measure, PRIOR, epsilon)
    assert np.abs(ranges - PRIOR[:, None]).max() == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize("measure", SHIPPED[:-1], ids=repr)
@pytest.mark.parametrize(("shift", "factor"), [(0.05, 2), (0.15, 3), (0.3, 5), (0.4, 5)])
def test_the_factor_is_that_of_the_verdict(measure, shift, factor):
    epsilon = epsilon_for_shift(PRIOR, shift, measure)
    assert epsilon == epsilon_for_shift(PRIOR, shift, measure, max_factor=factor)
    ranges = posterior_ranges(measure, PRIOR, epsilon)
    moved, grown = np.abs(ranges - PRIOR[:, None]).max(), (ranges[:, 1] / PRIOR).max()
    assert moved <= shift + 1e-6
    assert grown <= factor + 1e-6
    assert moved > shift - 1e-6 or grown > factor - 1e-6


def test_a_rare_group_may_not_grow_too_much():
    """Points alone let 1% become 6%, which the verdict calls no protection."""
    epsilon = epsilon_for_shift([0.01, 0.99], 0.05)
    joint = np.array([[0.01, 0.01], [0.99, 0.99]]) / 2
    assert design_mechanism(joint, epsilon).summary().verdict.factor == pytest.approx(2, abs=1e-6)
    assert design_mechanism(joint, epsilon).summary().verdict.level == "moderate"
    assert (
        epsilon
        < epsilon_for_shift([0.01, 0.99], 0.05, max_factor=6)
        == pytest.approx(0.0588, abs=1e-4)
    )


def test_shifts_that_no_budget_exceeds():
    assert epsilon_for_shift([0.5, 0.5], 0.6) == np.inf
    assert epsilon_for_shift([1.0, 0.0], 0.1) == np.inf
    assert epsilon_for_shift([0.5, 0.5], 0.0) == 0.0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ([[0.5, 0.5]], 0.1),
            "'p_s' parameter of epsilon_for_shift must be a list of finite numbers",
        ),
        (
            ([0.5, -0.5], 0.1),
            "'p_s' parameter of epsilon_for_shift must be a list of finite numbers",
        ),
        (
            ([0.0, 0.0], 0.1),
            "'p_s' parameter of epsilon_for_shift must be positive for some group",
        ),
        (([0.5, 0.5], 1.5), "'max_shift' parameter of epsilon_for_shift must be a float"),
        (([0.5, 0.5], 0.1, "kl", 0.5), "'max_factor' parameter of epsilon_for_shift must be"),
    ],
)
def test_bad_input(arguments, text):
    with pytest.raises(ValueError, match=text):
        epsilon_for_shift(*arguments)
