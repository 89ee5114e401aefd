"""Limits for the population: against naive ones, closed forms, and by simulation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import beta

from skprivacy import design_mechanism
from skprivacy.measures import KL, MEASURES, Lip, Measure
from skprivacy.population import limits as draws
from skprivacy.population.limits import (
    draws_around,
    limit_unchanged,
    limits_of,
    upper_limits,
    with_one_more_row,
)

RNG = np.random.default_rng
COUNTS = np.array([[30, 10, 5, 0], [10, 20, 25, 3], [0, 2, 1, 4]])
CHANNEL = RNG(3).dirichlet(np.full(3, 0.5), size=4)
CELLS = list(np.ndindex(COUNTS.shape))
EVERY = [*(cls() for cls in MEASURES.values()), Lip(lower=50.0)]


def figures(joint, channel, measure):
    """Return g of each output and their mean, for one joint."""
    p_sy, prior = joint @ channel / joint.sum(), joint.sum(axis=1) / joint.sum()
    p_y = p_sy.sum(axis=0)
    values = np.array([measure.value(column / column.sum(), prior) for column in p_sy.T])
    return values, p_y @ values


def quantile(figures, confidence):
    return np.sort(figures, axis=0)[int(np.ceil(confidence * (len(figures) + 1))) - 1]


def added(joint, s, x, extra):
    """Return a joint with one more row."""
    joint = joint.copy()
    joint[s, x] += extra[s]
    return joint


def naive(channel, batch, measure, confidence):
    """Return the limits (worst, average, each), one joint, one group and one cell at a time."""
    posterior = [figures(joint, channel, measure) for joint in batch.posterior]
    each, averages = [], []
    for joint, extra in zip(batch.rows, batch.extra, strict=True):
        one_more = {cell: figures(added(joint, *cell, extra), channel, measure) for cell in CELLS}
        likeliest = enumerate(channel.argmax(axis=0))
        each.append([max(one_more[s, x][0][y] for s in range(3)) for y, x in likeliest])
        averages.append([[one_more[s, x][1] for x in range(4)] for s in range(3)])
    # The symbol of the row that raises the average most is the same in every joint.
    averages = np.array(averages)
    best = averages.mean(axis=0).argmax(axis=1)
    average = averages[:, np.arange(3), best].max(axis=1)
    both = [tuple(zip(*posterior, strict=True)), (each, average)]
    limits = [
        [quantile(f, confidence) for f in (np.max(values, axis=1), means, values)]
        for values, means in both
    ]
    return [np.maximum(*pair) for pair in zip(*limits, strict=True)]


class ByOnePrior(Measure):
    """A measure of a user, which works with a prior of one axis only."""

    def value(self, posterior, prior):
        assert np.ndim(prior) == 1
        return KL().value(posterior, prior)

    def subgradient(self, posterior, prior):
        return KL().subgradient(posterior, prior)

    def threshold(self, epsilon):
        return epsilon

    def inverse(self, value):
        return np.asarray(value)


class TestFormulas:
    """Vectors over draws against loops, and limits against closed forms."""

    @pytest.mark.parametrize("measure", EVERY, ids=repr)
    def test_like_naive_limits(self, measure):
        batch = next(draws_around(COUNTS + 1, 60, RNG(1)))
        found = limits_of(CHANNEL, [batch], measure, 0.8)
        worst, average, each = naive(CHANNEL, batch, measure, 0.8)
        assert_allclose(found.worst, measure.inverse(worst))
        assert_allclose(found.per_output, measure.inverse(each))
        if "average" in measure.scopes:
            assert_allclose(found.average, measure.inverse(average))
        else:
            assert np.isnan(found.average)

    def test_measures_of_users_get_one_prior_at_a_time(self):
        own, shipped = (
            upper_limits(COUNTS, CHANNEL, measure, 0.9, n_draws=99)
            for measure in (ByOnePrior(), KL())
        )
        assert_allclose(own.per_output, shipped.per_output)
        assert_allclose([own.worst, own.average], [shipped.worst, shipped.average])

    def test_clopper_and_pearson(self):
        """A small group beside a large one whose distribution is known."""
        counts = np.array([[2.0, 8.0], [3e8, 7e8]])
        found = upper_limits(counts, np.eye(2), MEASURES["max_lift"](), 0.95, n_draws=40_000)
        limit = beta.ppf(0.95, 2 + 1, 10 - 2)
        assert_allclose(np.exp(found.per_output[0]), limit / 0.3, rtol=0.02)


class TestDraws:
    """What is drawn."""

    def test_an_average_that_nobody_asks_for_changes_nothing_else(self):
        both, worst = (
            upper_limits(COUNTS, CHANNEL, KL(), 0.9, with_average=asked) for asked in (True, False)
        )
        assert both.worst == worst.worst
        assert_array_equal(both.per_output, worst.per_output)
        assert np.isfinite(both.average)
        assert np.isnan(worst.average)

    def test_what_x_itself_leaks(self):
        whole = upper_limits(COUNTS, np.eye(COUNTS.shape[1]), KL(), 0.9)
        for scope in ("per_output", "average"):
            assert limit_unchanged(COUNTS, KL(), scope, 0.9) == whole.in_scope(scope)

    def test_the_same_counts_give_the_same_figures(self):
        first, second = (upper_limits(COUNTS, CHANNEL, KL(), 0.9) for _ in range(2))
        assert first.worst == second.worst
        assert_array_equal(first.per_output, second.per_output)

    def test_batches_are_bounded_and_complete(self, monkeypatch):
        monkeypatch.setattr(draws, "MOST_CELLS", 100)
        batches = list(draws_around(COUNTS, 20, RNG(0)))
        assert [len(batch.posterior) for batch in batches] == [8, 8, 4]
        assert len(upper_limits(COUNTS, CHANNEL, KL(), 0.9, n_draws=20).per_output) == 3

    def test_a_symbol_without_rows_has_no_say(self):
        more = np.insert(COUNTS, 1, 0, axis=1)
        channel = np.insert(CHANNEL, 1, [1, 0, 0], axis=0)
        found, expected = (
            upper_limits(n, c, KL(), 0.9, n_draws=5000)
            for n, c in ((more, channel), (COUNTS, CHANNEL))
        )
        assert_allclose(found.per_output, expected.per_output, rtol=0.03)

    def test_an_output_that_nothing_gives(self):
        channel = np.insert(CHANNEL, 1, 0, axis=1)
        for measure in (KL(), ByOnePrior()):
            found = upper_limits(COUNTS, channel, measure, 0.9, n_draws=99)
            assert found.per_output[1] == 0
            assert np.isfinite(found.worst)

    @pytest.mark.parametrize("measure", ["kl", "max_lift", "alpha_lift"])
    def test_a_group_without_rows_may_be_rare(self, measure):
        more = np.vstack([COUNTS, np.zeros(4, int)])
        found, without = (
            upper_limits(n, CHANNEL, MEASURES[measure](), 0.9) for n in (more, COUNTS)
        )
        assert without.worst < found.worst < np.inf


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_outputs_does_not_matter(seed):
    """Where several symbols of X raise the average alike, rounding must not choose."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(1000, rng.dirichlet(np.ones(28))).reshape(4, 7)
    mechanism = design_mechanism(counts, 0.1, measure="parity", scope="average")
    order = rng.permutation(mechanism.channel.shape[1])
    limits = [
        upper_limits(counts, channel, mechanism.measure, 0.95, n_draws=99).average
        for channel in (mechanism.channel, mechanism.channel[:, order])
    ]
    assert limits[0] == pytest.approx(limits[1], rel=1e-9)


@pytest.mark.parametrize("name", ["kl", "l1", "max_lift", "parity"])
def test_where_there_are_many_groups_some_of_them_are_enough(name):
    """One more row is tried in sixteen groups, and hardly matters more in any of the others."""
    rng, measure = RNG(4), MEASURES[name]()
    counts = rng.multinomial(1500, rng.dirichlet(np.full(20 * 4, 0.6))).reshape(20, 4)
    channel = 0.3 * CHANNEL + 0.7 * CHANNEL.mean(axis=0)
    (batch,) = draws_around(counts, 99, RNG(0))
    worst = []
    for joint, extra in zip(batch.rows, batch.extra, strict=True):
        tried = []
        for s, y in np.ndindex(20, 3):
            more = joint.copy()
            more[s, channel[:, y].argmax()] += extra[s]
            tried.append(figures(more, channel, measure)[0][y])
        worst.append(max(tried))
    reached = with_one_more_row(channel, batch, measure).per_output.max(axis=1)
    assert_allclose(np.sort(reached)[-10:], np.sort(worst)[-10:], rtol=0.02)
