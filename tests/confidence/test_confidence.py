"""Designs for the population: limits of outputs, the search, and the calibration."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skprivacy import KL, L1, AlphaLift, Chi2, Guess, Lip, MaxLift, MutualInformation, Parity
from skprivacy.confidence.calibration import Aim, Part, budgets_on_roots, confident_channel
from skprivacy.confidence.channel_limits import ChannelLimits
from skprivacy.confidence.drawn_limit import DrawnLimit
from skprivacy.confidence.limit_of_measure import _CLOSED, output_limit
from skprivacy.confidence.output_limits import Sample, root_leakage
from skprivacy.confidence.search import ConfidentSearch
from skprivacy.limits import upper_limits
from skprivacy.utilities import entropy

RNG = np.random.default_rng
COUNTS = RNG(1).multinomial(3000, RNG(0).dirichlet(np.ones(28))).reshape(4, 7).astype(float)
SAMPLE = Sample.of(COUNTS)

CLOSED = [
    (KL(), 0.02),
    (Chi2(), 0.2),
    (AlphaLift(), 0.02),
    (AlphaLift(alpha=5), 0.05),
    (L1(), 0.2),
    (MaxLift(), 0.2),
    (Lip(), 0.2),
    (Lip(lower=0.4), 0.2),
    (Parity(), 0.2),
]
BY_MEASURE = pytest.mark.parametrize(("measure", "epsilon"), CLOSED, ids=repr)

# With a lower bound, lip is infinite in some draws.
FINITE = [pair for pair in CLOSED if pair[0] != Lip(lower=0.4)]


class OwnMeasure(KL):
    """A measure of a user, which has no closed form."""

    name = "own"


def at_limit(limit, budget, z, n=12):
    """Return random points, moved towards P(X) until they are at the limit."""
    points = RNG(2).dirichlet(np.ones(len(SAMPLE.p_x)), n)
    for _ in range(30):
        share = np.minimum(1.0, budget / limit.value(points, z))
        points = SAMPLE.p_x + share[:, None] * (points - SAMPLE.p_x)
    return points


def budget_of(measure, epsilon):
    return float(root_leakage(measure, np.array(epsilon)))


def design(counts, measure=None, epsilon=0.02, utility=None, confidence=0.95):
    """Return a channel, the points to start from being the symbols themselves."""
    sample = Sample.of(np.asarray(counts, float))
    measure, utility, every = measure or KL(), utility or MutualInformation(), len(sample.p_x)
    budgets = budgets_on_roots(measure, epsilon, "per_output")
    aim = Aim(*budgets, utility, sample.p_x, confidence)
    limit = output_limit(sample, measure, epsilon, confidence)
    part = Part(limit, utility, np.ones(every, dtype=bool), np.eye(every), aim)
    limits = ChannelLimits(sample.counts, measure, "per_output", confidence)
    return confident_channel([part], aim, limits)


class TestLimits:
    """Closed forms against draws, and gradients against differences."""

    @BY_MEASURE
    @pytest.mark.parametrize("z", [0.5, 2.5])
    def test_gradients(self, measure, epsilon, z):
        limit = output_limit(SAMPLE, measure, epsilon, 0.95)
        self.check_gradient(limit, at_limit(limit, budget_of(measure, epsilon), z), z, 1e-5)

    def test_gradient_from_draws(self):
        limit = output_limit(SAMPLE, OwnMeasure(), 0.02, 0.95)
        assert isinstance(limit, DrawnLimit)
        self.check_gradient(limit, at_limit(limit, 0.02, 2.0), 2.0, 1e-3)

    @staticmethod
    def check_gradient(limit, points, z, tolerance):
        values, slopes = limit.with_slope(points, z)
        assert_allclose(values, limit.value(points, z))
        steps = 1e-6 * np.eye(points.shape[1])
        ahead, behind = ([limit.value(points + s * d, z) for d in steps] for s in (1, -1))
        found = (np.array(ahead) - np.array(behind)).T / 2e-6
        assert_allclose(found, slopes, atol=tolerance * np.abs(slopes).max())

    @pytest.mark.parametrize(("measure", "epsilon"), FINITE, ids=repr)
    def test_like_many_draws(self, measure, epsilon):
        """Where two groups are at their limits at once, the larger one is a little larger."""
        cls = type(output_limit(SAMPLE, measure, epsilon, 0.95))
        more = (epsilon,) if isinstance(measure, Lip) else ()
        closed = cls(SAMPLE, measure, 0.0, *more)
        drawn = DrawnLimit(SAMPLE, measure, n_draws=8000)
        points = at_limit(closed, budget_of(measure, epsilon), 2.0)
        spread = drawn.value(points, 1.0) - drawn.value(points, 0.0)
        apart = np.abs(closed.value(points, 2.0) - drawn.value(points, 2.0)) / spread
        is_largest = isinstance(measure, MaxLift | Lip | Parity)
        assert np.median(apart) < 0.12
        assert apart.max() < (0.45 if is_largest else 0.15)

    @BY_MEASURE
    def test_more_rows_of_a_group_raise_limits(self, measure, epsilon):
        points = RNG(5).dirichlet(np.ones(7), 20)
        low, high = (
            output_limit(SAMPLE, measure, epsilon, confidence).value(points, 2.0)
            for confidence in (0.5, 0.99)
        )
        assert (high >= low - 1e-12).all()
        assert (high > low).any()

    def test_the_independent_output_leaks_nothing(self):
        for measure, epsilon in CLOSED:
            limit = output_limit(SAMPLE, measure, epsilon, 0.95)
            assert limit.value(SAMPLE.p_x[None], 2.0)[0] < 1e-6

    def test_measures_of_users_have_none_in_closed_form(self):
        assert OwnMeasure not in _CLOSED


class TestSearch:
    """Points within the limit, and weights that average to P(X)."""

    @pytest.mark.parametrize("utility", [MutualInformation(), Guess()], ids=repr)
    @BY_MEASURE
    def test_points_in_use_keep_the_limit(self, measure, epsilon, utility):
        limit, budget = output_limit(SAMPLE, measure, epsilon, 0.95), budget_of(measure, epsilon)
        search = ConfidentSearch(limit, utility, budget)
        found = search.run(2.0, search.first_proposals())
        assert len(found.points)
        assert limit.value(found.points, 2.0).max() <= budget * (1 + 1e-6)
        rest = SAMPLE.p_x - found.weights @ found.points
        assert_allclose(rest, (1 - found.weights.sum()) * SAMPLE.p_x, atol=1e-7)


class TestCalibration:
    """Channels whose limits keep the budget."""

    @pytest.mark.parametrize("utility", [MutualInformation(), Guess()], ids=repr)
    @BY_MEASURE
    def test_limit_on_fresh_draws(self, measure, epsilon, utility):
        channel = design(COUNTS, measure, epsilon, utility)
        limits = upper_limits(COUNTS, channel, measure, 0.95, n_draws=2000, random_state=9)
        assert_allclose(channel.sum(axis=1), 1)
        assert limits.worst <= epsilon * (1.08 if np.isfinite(limits.worst) else 0)
        assert utility.of_channel(SAMPLE.p_x, channel) > utility.smallest(SAMPLE.p_x) + 1e-3

    def test_more_rows_keep_more(self):
        kept = [
            MutualInformation().of_channel(SAMPLE.p_x, design(n * COUNTS)) / entropy(SAMPLE.p_x)
            for n in (0.1, 1, 100)
        ]
        assert kept[0] + 0.05 < kept[1] < kept[2]

    def test_a_small_group_does_not_cost_everything(self):
        """One more row of a group of 5% decides about its limits."""
        p_x = RNG(0).dirichlet(np.full(24, 2.0))
        share = 0.05 * np.exp(RNG(1).normal(0, 0.6, 24))
        joint = np.vstack([share * p_x, (1 - share) * p_x])
        counts = RNG(2).multinomial(2000, joint.ravel() / joint.sum()).reshape(2, 24)
        sample = Sample.of(counts.astype(float))
        kept = MutualInformation().of_channel(sample.p_x, design(counts)) / entropy(sample.p_x)
        assert kept > 0.65


class TestDegenerate:
    """Tables at the edge of what there is."""

    def test_a_huge_budget_releases_everything(self):
        channel = design(100 * COUNTS + 100, epsilon=50.0)
        assert MutualInformation().of_channel(SAMPLE.p_x, channel) > 0.995 * entropy(SAMPLE.p_x)

    @pytest.mark.parametrize("measure", [m for m, _ in CLOSED], ids=repr)
    @pytest.mark.parametrize(
        "counts",
        [
            [[5.0], [3.0]],
            [[5.0, 3.0, 2.0]],
            [[30.0, 20.0, 9.0], [0.0, 0.0, 0.0]],
            [[1.0, 2.0], [1.0, 1.0]],
            [[4e6, 1e6, 2e6], [1e6, 1e6, 1e6]],
            [[50.0, 0.0, 30.0], [0.0, 40.0, 30.0]],
        ],
        ids=["symbol", "group", "no rows", "5 rows", "1e7 rows", "zeros"],
    )
    def test_a_channel_within_the_budget(self, counts, measure):
        with np.errstate(all="raise", under="ignore"):
            channel = design(counts, measure, 0.1)
        assert (channel >= 0).all()
        assert_allclose(channel.sum(axis=1), 1)
        worst = upper_limits(np.array(counts), channel, measure, 0.95, random_state=3).worst
        assert worst <= 0.1 * 1.15 + 1e-9
