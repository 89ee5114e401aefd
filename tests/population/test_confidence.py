"""Designs for the population: budgets with a margin, the program, and the search."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from skprivacy.measures import KL, L1, AlphaLift, Chi2, Lip, MaxLift, Parity
from skprivacy.population.cone_program import ConeProgram, RobustBudget
from skprivacy.population.limits import BudgetUse, ChannelLimits, upper_limits
from skprivacy.population.search import ConfidentSearch, blocks
from skprivacy.utilities import Distortion, Guess, MutualInformation, entropy

RNG = np.random.default_rng
COUNTS = RNG(1).multinomial(3000, RNG(0).dirichlet(np.ones(28))).reshape(4, 7).astype(float)
P_X = COUNTS.sum(axis=0) / COUNTS.sum()


class OwnMeasure(KL):
    """A measure of a user, which has no cone of its own."""

    name = "own"


MEASURES = [
    (KL(), 0.02),
    (Chi2(), 0.2),
    (AlphaLift(), 0.02),
    (AlphaLift(alpha=5), 0.05),
    (L1(), 0.2),
    (MaxLift(), 0.2),
    (Lip(), 0.2),
    (Lip(lower=0.4), 0.2),
    (Parity(), 0.2),
    (OwnMeasure(), 0.02),
]
BY_MEASURE = pytest.mark.parametrize(("measure", "epsilon"), MEASURES, ids=repr)
UTILITIES = pytest.mark.parametrize("utility", [MutualInformation(), Guess()], ids=repr)


def design(counts, measure=None, epsilon=0.02, utility=None, confidence=0.95, strata=None):
    """Return a channel for one secret, the search starting from nothing but the symbols."""
    counts, measure = np.asarray(counts, float), measure or KL()
    limits = ChannelLimits(counts, measure, "per_output", confidence)

    def use(channel):
        limit, per_output = limits.budget_use(channel, epsilon)
        return BudgetUse(limit, per_output[None])

    search = ConfidentSearch(
        [RobustBudget(counts, measure, epsilon)],
        use,
        utility or MutualInformation(),
        np.zeros(counts.shape[1], dtype=int) if strata is None else np.asarray(strata),
    )
    return search.run(confidence, lambda share: None).channel


def some_channel(n_y=5, seed=3):
    return RNG(seed).dirichlet(np.ones(n_y), COUNTS.shape[1])


class TestRobustBudget:
    @BY_MEASURE
    def test_a_gauge_of_one_is_the_budget(self, measure, epsilon):
        budget = RobustBudget(COUNTS, measure, epsilon)
        deviations = budget.deviations(some_channel())
        at_edge = deviations / budget.gauge(deviations)[:, None]
        just = [budget.p_s * (1 + share * at_edge) for share in (0.999, 1.001)]
        within, beyond = (measure.leakage(posterior, budget.p_s) for posterior in just)
        assert (within <= epsilon).all()
        assert (beyond > epsilon).all()

    @BY_MEASURE
    def test_normals_contain_the_budget_and_touch_it(self, measure, epsilon):
        budget = RobustBudget(COUNTS, measure, epsilon)
        deviations = RNG(0).normal(size=(50, 4))
        deviations -= (deviations @ budget.p_s)[:, None]
        at_edge = deviations / budget.gauge(deviations)[:, None]
        normals = np.vstack([budget.normals, budget.tangents(deviations)])
        if measure.jumps:  # no tangent tells where it ends
            normals = budget.normals
        assert (normals @ at_edge.T).max() < 1 + 1e-6
        assert_allclose((normals @ at_edge.T).max(axis=0), 1, rtol=1e-6)

    def test_the_noise_is_the_spread_of_the_root_of_kl_over_samples(self):
        """At an output near the prior, where n kl is a chi-squared with three degrees."""
        budget = RobustBudget(1000 * COUNTS, KL(), 0.02)
        channel = np.stack([0.5 + 0.01 * np.arange(7), 0.5 - 0.01 * np.arange(7)], axis=1)
        joint = budget.p_s[:, None] * budget.p_x  # S says nothing: all that is seen is noise
        drawn = RNG(0).multinomial(10_000, joint.ravel(), 4000).reshape(-1, 4, 7)
        p_sy = drawn @ channel[:, 0] / 10_000
        prior = drawn.sum(axis=2) / 10_000
        kl = KL().value(p_sy / p_sy.sum(axis=1, keepdims=True), prior)
        flat = RobustBudget(1e9 * joint, KL(), 0.02)
        expected = flat.noise(channel)[0] ** 2 / 10_000 * 0.02
        assert_allclose(kl.mean(), expected, rtol=0.05)

    def test_a_margin_counts_for_more_where_fewer_rows_tell(self):
        budget = RobustBudget(COUNTS, KL(), 0.02)
        single, broad = np.eye(7)[:, :1] * 0.9 + 0.1, np.eye(7)[:, :1] * 0.1 + 0.9
        assert budget.noise(single) > 3 * budget.noise(broad)
        assert_allclose(budget.used(broad, 2.0), budget.used(broad, 0.0) + 2 * budget.noise(broad))
        assert budget.peak(single) > 3 * budget.peak(broad)

    def test_what_a_face_tells_anyway_is_no_peak(self):
        budget = RobustBudget(COUNTS, KL(), 0.5, strata=np.arange(7) % 2)
        centres = np.stack([np.arange(7) % 2 == face for face in (0, 1)], axis=1).astype(float)
        assert_allclose(budget.peak(centres), 0, atol=1e-12)


class TestConeProgram:
    @staticmethod
    def solved(measure, epsilon, beta=0.05, loss=None):
        budget = RobustBudget(COUNTS, measure, epsilon)
        program = ConeProgram([budget], np.ones((7, 7), dtype=bool))
        loss = 1 - np.eye(7) if loss is None else loss
        return budget, program.solve(loss, np.full((1, 7), beta))

    @BY_MEASURE
    def test_outputs_use_their_budget_and_no_more(self, measure, epsilon):
        budget, channel = self.solved(measure, epsilon)
        channel = channel[:, P_X @ channel > 1e-3]
        used = budget.used(channel, 0.05)
        assert used.max() < 1 + 1e-3
        assert np.median(used) > 1 - 1e-3

    @BY_MEASURE
    def test_no_small_change_within_the_cone_is_better(self, measure, epsilon):
        """Mixtures with other channels of the cone are not."""
        budget, channel = self.solved(measure, epsilon)
        loss = 1 - np.eye(7)
        best = (P_X[:, None] * channel * loss).sum()
        for seed in range(20):
            other = some_channel(7, seed)
            nothing = np.tile(P_X @ other, (7, 1))
            share = 1 / np.maximum(budget.used(other, 0.05).max(), 1.0)
            allowed = share * other + (1 - share) * nothing
            assert budget.used(allowed, 0.05).max() < 1 + 1e-6
            assert (P_X[:, None] * allowed * loss).sum() > best - 1e-4

    def test_as_a_general_solver_finds_it(self):
        """Two labels and two groups: one probability for each symbol."""
        counts = COUNTS[:2]
        budget = RobustBudget(counts, KL(), 0.05)
        loss = np.stack([np.arange(7.0), 6 - np.arange(7.0)], axis=1)
        program = ConeProgram([budget], np.ones((7, 2), dtype=bool))
        found = program.solve(loss, np.full((1, 2), 0.03))

        def as_channel(g):
            return np.stack([g, 1 - g], axis=1)

        def cost(g):
            return (budget.p_x[:, None] * as_channel(g) * loss).sum()

        naive = minimize(
            cost,
            np.full(7, 0.5) + 0.01 * np.arange(7, 0, -1),
            bounds=[(1e-6, 1 - 1e-6)] * 7,
            constraints={"type": "ineq", "fun": lambda g: 1 - budget.used(as_channel(g), 0.03)},
        )
        assert naive.success
        assert_allclose(cost(found[:, 0]), naive.fun, atol=2e-5)

    def test_pairs_that_are_let_in_are_enough(self):
        """Of 3600 pairs, those that matter; to three digits."""
        joint = RNG(4).dirichlet(np.full(120, 2.0)).reshape(2, 60)
        budget = RobustBudget(10_000 * joint, KL(), 0.02)
        loss = np.abs(np.subtract.outer(np.arange(60.0), np.arange(60.0)))
        allowed, betas = np.ones(loss.shape, dtype=bool), np.full((1, 60), 0.01)
        programs = [ConeProgram([budget], allowed, known) for known in (allowed, None)]
        whole, fewer = (program.solve(loss, betas) for program in programs)
        costs = [(budget.p_x[:, None] * channel * loss).sum() for channel in (whole, fewer)]
        assert_allclose(costs[1], costs[0], rtol=2e-3)
        assert (fewer > 0).sum() < 1000 < (whole > 0).sum()

    def test_outputs_stay_within_their_strata(self):
        budget = RobustBudget(COUNTS, KL(), 0.5)
        strata = np.arange(7) % 2
        channel = ConeProgram([budget], strata[:, None] == strata).solve(
            1 - np.eye(7), np.full((1, 7), 0.05)
        )
        assert (channel[strata[:, None] != strata] == 0).all()
        assert_allclose(channel.sum(axis=1), 1)

    def test_two_secrets_are_kept_at_once(self):
        budgets = [
            RobustBudget(part, KL(), e) for part, e in ((COUNTS[:2], 0.02), (COUNTS[2:], 0.01))
        ]
        channel = ConeProgram(
            [RobustBudget(COUNTS, KL(), 0.05), RobustBudget(COUNTS[[1, 0, 3, 2]], Chi2(), 0.1)],
            np.ones((7, 7), dtype=bool),
        ).solve(1 - np.eye(7), np.full((2, 7), 0.02))
        channel = channel[:, P_X @ channel > 1e-3]
        assert KL().leakage(_posteriors(budgets[0], channel), budgets[0].p_s).max() < 1
        for measure, epsilon in ((KL(), 0.05), (Chi2(), 0.1)):
            assert RobustBudget(COUNTS, measure, epsilon).used(channel, 0.02).max() < 1 + 1e-3


def _posteriors(budget, channel):
    return budget.p_s * (1 + budget.deviations(channel))


class TestSearch:
    """Channels whose limits keep the budget."""

    @UTILITIES
    @BY_MEASURE
    def test_limit_on_fresh_draws(self, measure, epsilon, utility):
        channel = design(COUNTS, measure, epsilon, utility)
        limits = upper_limits(COUNTS, channel, measure, 0.95, n_draws=2000, random_state=9)
        assert_allclose(channel.sum(axis=1), 1)
        assert limits.worst <= epsilon * (1.08 if np.isfinite(limits.worst) else 0)
        assert utility.of_channel(P_X, channel) > utility.smallest(P_X) + 1e-3

    @UTILITIES
    def test_nothing_is_given_away(self, utility):
        channel = design(COUNTS, utility=utility)
        limits = ChannelLimits(COUNTS, KL(), "per_output", 0.95)
        assert 0.999 < limits.budget_use(channel, 0.02).limit <= 1

    @pytest.mark.parametrize(
        "utility", [Guess(), Distortion.of_positions(7), MutualInformation()], ids=repr
    )
    def test_rounding_changes_next_to_nothing(self, utility):
        """As another processor rounds. A count of 1 has another distribution than 1 + 1e-12."""
        counts = COUNTS + 2
        kept = [
            utility.of_channel(P_X, design(counts * (1 + error), utility=utility))
            for error in (0.0, 1e-12 * RNG(1).normal(size=COUNTS.shape))
        ]
        assert abs(kept[1] - kept[0]) < 1e-3 * utility.span(P_X)

    def test_more_rows_keep_more(self):
        information = MutualInformation()
        kept = [
            information.of_channel(P_X, design(n * COUNTS)) / entropy(P_X) for n in (0.1, 1, 100)
        ]
        assert kept[0] + 0.05 < kept[1] < kept[2]

    def test_a_small_group_does_not_cost_everything(self):
        """One more row of a group of 5% decides about its limits."""
        p_x = RNG(0).dirichlet(np.full(24, 2.0))
        share = 0.05 * np.exp(RNG(1).normal(0, 0.6, 24))
        joint = np.vstack([share * p_x, (1 - share) * p_x])
        counts = RNG(2).multinomial(2000, joint.ravel() / joint.sum()).reshape(2, 24)
        p_x = counts.sum(axis=0) / counts.sum()
        kept = MutualInformation().of_channel(p_x, design(counts)) / entropy(p_x)
        assert kept > 0.65

    def test_blocks_are_all_subsets_or_some(self):
        few, many = (blocks(np.ones((2, n)), np.ones(n, dtype=bool)) for n in (4, 12))
        assert len(few) == 2**4 - 2
        assert len(many) >= 12 + 12 * 11 / 2
        assert_allclose(many.sum(axis=1), 1)


class TestDegenerate:
    """Tables at the edge of what there is."""

    def test_a_huge_budget_releases_everything(self):
        channel = design(100 * COUNTS + 100, epsilon=50.0)
        assert MutualInformation().of_channel(P_X, channel) > 0.995 * entropy(P_X)

    @pytest.mark.parametrize("measure", [m for m, _ in MEASURES], ids=repr)
    @pytest.mark.parametrize(
        "counts",
        [
            [[5.0], [3.0]],
            [[30.0, 20.0, 9.0], [0.0, 0.0, 0.0]],
            [[1.0, 2.0], [1.0, 1.0]],
            [[4e6, 1e6, 2e6], [1e6, 1e6, 1e6]],
            [[50.0, 0.0, 30.0], [0.0, 40.0, 30.0]],
        ],
        ids=["symbol", "no rows", "5 rows", "1e7 rows", "zeros"],
    )
    def test_a_channel_within_the_budget(self, counts, measure):
        with np.errstate(all="raise", under="ignore"):
            channel = design(counts, measure, 0.1)
        assert (channel >= 0).all()
        assert_allclose(channel.sum(axis=1), 1)
        worst = upper_limits(np.array(counts), channel, measure, 0.95, random_state=3).worst
        assert worst <= 0.1 * 1.15 + 1e-9
