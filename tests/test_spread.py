"""Figures of one column, against sums over all pairs of rows and shown values."""

import numpy as np
import pytest

from skprivacy.fidelity import mid_ranks, spread

N_X, K, ROWS = 4, 5, 60


@pytest.fixture(params=range(8))
def column(request):
    """Rows with places, shown values and a release; one shown value and some rows are missing."""
    rng = np.random.default_rng(request.param)
    places = rng.permutation(np.append(rng.normal(size=K - 1) * 100, np.nan))
    own = rng.integers(-1, K, ROWS)
    at = np.where(own >= 0, places[own], rng.normal(size=ROWS) * 100)
    symbols = np.append(rng.integers(N_X, size=ROWS - N_X), np.arange(N_X))
    weights = rng.random(ROWS) if request.param % 2 else None
    released = rng.dirichlet(np.full(K, 0.4), N_X)
    p_x = rng.dirichlet(np.ones(N_X))
    return own, at, symbols, weights, places, released, p_x


def pairs(column):
    """How likely each row is to be shown as each value."""
    _, _, symbols, weights, _, released, p_x = column
    weights = np.ones(ROWS) if weights is None else weights
    within = weights / np.bincount(symbols, weights)[symbols]
    return (p_x[symbols] * within)[:, None] * released[symbols]


def made(column):
    own, at, symbols, weights, places, *_ = column
    return spread(own, symbols, weights, (N_X, K), at, places)


def test_values_that_stay(column):
    own, *_, released, p_x = column
    joint = pairs(column)
    expected = joint[own[:, None] == np.arange(K)].sum()
    assert made(column).unchanged(p_x, released) == pytest.approx(expected, abs=1e-13)


def test_how_far_distributions_are_apart(column):
    own, *_, released, p_x = column
    joint = pairs(column)
    before = np.bincount(own + 1, joint.sum(axis=1), K + 1)
    after = np.append(0.0, joint.sum(axis=0))
    expected = np.abs(before - after).sum() / 2
    assert made(column).total_variation(p_x, released) == pytest.approx(expected, abs=1e-13)


def test_shifts_and_correlation_where_nothing_is_missing(column):
    _, at, _, _, places, released, p_x = column
    joint = pairs(column)
    known = ~np.isnan(at)[:, None] & ~np.isnan(places)
    a, b = (np.broadcast_to(part, joint.shape)[known] for part in (at[:, None], places))
    weights = joint[known] / joint[known].sum()
    found = made(column)
    shift = weights @ np.abs(a - b)
    assert found.mean_shift(p_x, released) == pytest.approx(shift, rel=1e-10)
    covariance = np.cov(np.stack([a, b]), aweights=weights)
    expected = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert found.correlation(p_x, released) == pytest.approx(expected, abs=1e-10)


def test_a_missing_value_is_one_away_from_all_others(column):
    _, at, _, _, places, released, p_x = column
    apart = np.abs(at[:, None] - places)
    one, both = (
        (np.isnan(at)[:, None] != np.isnan(places)),
        np.isnan(at)[:, None] & np.isnan(places),
    )
    apart = np.where(both, 0.0, np.where(one, 1.0, apart))
    joint = pairs(column)
    assert made(column).distance(p_x, released) == pytest.approx((joint * apart).sum(), rel=1e-10)
    expected = joint.sum(axis=1) @ apart
    np.testing.assert_allclose(made(column).distances(p_x), expected, rtol=1e-10)


def test_without_an_order_another_value_is_one_away(column):
    own, _, symbols, weights, _, released, p_x = column
    found = spread(own, symbols, weights, (N_X, K))
    joint = pairs(column)
    differs = own[:, None] != np.arange(K)
    assert found.distance(p_x, released) == pytest.approx(joint[differs].sum(), abs=1e-13)
    np.testing.assert_allclose(found.distances(p_x), joint.sum(axis=1) @ differs, atol=1e-13)


def test_a_constant_release_has_no_correlation():
    at, symbols = np.array([1.0, 2.0, 3.0]), np.arange(3)
    found = spread(np.arange(3), symbols, None, (3, 3), at, at)
    always_two = np.tile([0.0, 1.0, 0.0], (3, 1))
    assert found.correlation(np.full(3, 1 / 3), always_two) == 0.0
    assert found.correlation(np.full(3, 1 / 3), np.eye(3)) == pytest.approx(1)
    assert np.isnan(found.correlation(np.array([1.0, 0.0, 0.0]), np.eye(3)))


def test_times_in_nanoseconds_keep_their_digits():
    at = 1.7e18 + np.array([0.0, 1e9, 5e9])
    found = spread(np.arange(3), np.arange(3), None, (3, 3), at, at)
    one_later = np.roll(np.eye(3), 1, axis=1)
    shift = found.mean_shift(np.full(3, 1 / 3), one_later)
    assert shift == pytest.approx((1e9 + 4e9 + 5e9) / 3, rel=1e-6)


def test_mid_ranks():
    values, weights = np.array([3.0, 1.0, np.nan, 3.0, 2.0]), np.array([1.0, 2.0, 9.0, 1.0, 4.0])
    ranks = mid_ranks(values, weights, np.array([1.0, 2.0, 2.5, 3.0, np.nan]))
    np.testing.assert_allclose(ranks, [1 / 8, 4 / 8, 6 / 8, 7 / 8, np.nan])
