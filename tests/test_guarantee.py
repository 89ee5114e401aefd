"""No mechanism breaks its budget: on hard joints, and on what is really sampled."""

import numpy as np
import pytest
from reference import MEASURES, THREE_BY_THREE, naive_value, random_joint

from skprivacy import SolverError, design_mechanism, privacy_utility_path
from skprivacy.channels import repaired
from skprivacy.measures import AlphaLift, Lip, get_measure
from skprivacy.mechanism import Evaluation

SIMPLE = ["watchdog", "subset_merging", "best_partition", "randomized_response"]
EPSILONS = [0.0, 1e-4, 0.01, 0.2, 3.0]


def check(joint, measure, **options):
    """Recompute the guarantee from the floats of the channel, by formulas of our own."""
    utilities = []
    for mechanism in privacy_utility_path(joint, EPSILONS, measure=measure, **options):
        channel, p_sx = mechanism.channel, mechanism.p_sx
        assert (channel >= 0).all()
        assert np.abs(channel.sum(axis=1) - 1).max() <= 1e-12
        p_sy = p_sx @ channel
        posterior, prior = (p_sy / p_sy.sum(axis=0)).T, p_sx.sum(axis=1)
        keep = prior > 0
        table = mechanism.measure
        if table == Lip(lower=0.1):  # this bound has the tolerance of budgets too
            table = Lip(lower=0.1 * (1 + 1e-9) + 1e-12)
        values = [naive_value(table, t, prior[keep]) for t in posterior[:, keep]]
        if mechanism.scope == "average":
            values = [p_sy.sum(axis=0) @ values]
        threshold = _threshold(mechanism.measure, mechanism.epsilon * (1 + 1e-9) + 1e-12)
        assert max(values) <= threshold * (1 + 1e-14) + 1e-14
        assert np.abs(p_sy.sum(axis=0) @ mechanism.posterior - p_sx.sum(axis=0)).max() <= 1e-12
        utilities.append(mechanism.utility)
    assert (np.diff(utilities) >= -1e-8).all()


def _threshold(measure, epsilon):
    match measure.name:
        case "kl" | "l1" | "parity":
            return epsilon
        case "chi2":
            return epsilon**2
    return np.exp(epsilon)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("n_joints", [9, pytest.param(50, marks=pytest.mark.slow)])
def test_sweep_of_hard_joints(measure, n_joints):
    rng = np.random.default_rng(20)
    for i in range(n_joints):
        check(random_joint(rng), measure, solver=("auto", "algorithm1", "lift_polytope")[i % 3])


@pytest.mark.parametrize(
    "measure", [m for m in MEASURES if "average" in get_measure(m).scopes], ids=str
)
@pytest.mark.parametrize("n_joints", [5, pytest.param(40, marks=pytest.mark.slow)])
def test_sweep_of_hard_joints_on_average(measure, n_joints):
    rng = np.random.default_rng(20)
    for _ in range(n_joints):  # smaller ones: it is not the size that is hard about them
        check(random_joint(rng, largest=(4, 6)), measure, scope="average")


@pytest.mark.parametrize(
    ("measure", "scope", "solver"),
    [
        (measure, scope, solver)
        for measure in MEASURES
        for scope in get_measure(measure).scopes
        for solver in [*SIMPLE, *(["greedy_funnel"] if scope == "average" else [])]
    ],
    ids=str,
)
@pytest.mark.parametrize("n_joints", [5, pytest.param(20, marks=pytest.mark.slow)])
def test_simple_mechanisms_on_hard_joints(measure, scope, solver, n_joints):
    rng = np.random.default_rng(22)
    for _ in range(n_joints):
        check(random_joint(rng), measure, solver=solver, scope=scope)


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("solver", ["auto", "algorithm1", "lift_polytope", *SIMPLE])
def test_sweep_of_a_thousand_hard_joints(measure, solver):
    rng = np.random.default_rng(21)
    for _ in range(1000):
        check(random_joint(rng), measure, solver=solver)


@pytest.mark.parametrize(
    ("measure", "epsilon"),
    [
        ("kl", 0.05),
        ("l1", 0.2),
        ("chi2", 0.3),
        ("max_lift", 0.3),
        (AlphaLift(2), 0.1),
        ("lip", 0.3),
    ],
    ids=str,
)
def test_sampled_rows_leak_what_the_mechanism_claims(measure, epsilon):
    """Draw (S, X), then Y from the channel, and measure the leakage of the sample."""
    rng = np.random.default_rng(0)
    mechanism = design_mechanism(THREE_BY_THREE, epsilon, measure=measure)
    n, (n_s, n_x), n_y = 2_000_000, THREE_BY_THREE.shape, len(mechanism.y_labels)
    s, x = np.divmod(rng.choice(n_s * n_x, size=n, p=mechanism.p_sx.ravel()), n_x)
    y = (rng.random(n)[:, None] > mechanism.channel.cumsum(axis=1)[x, :-1]).sum(axis=1)
    counts = np.zeros((n_s, n_y))
    np.add.at(counts, (s, y), 1)
    # The plug-in leakage of 2e6 rows is within about 1% of these budgets.
    sampled = mechanism.measure.leakage((counts / counts.sum(axis=0)).T, counts.sum(axis=1) / n)
    np.testing.assert_allclose(sampled, mechanism.leakage, atol=0.02 * epsilon)
    assert sampled.max() <= epsilon * 1.02
    assert np.abs(counts.sum(axis=0) / n - mechanism.p_y).max() < 2e-3


class TestRepair:
    channel = 0.7 * np.eye(3) + 0.1

    def figures(self, channel):
        return Evaluation.of_channel(channel, THREE_BY_THREE)

    @pytest.mark.parametrize("figure", ["max_leakage", "average_leakage"])
    def test_rounding_is_mended_by_a_little_independence(self, figure):
        before = self.figures(self.channel)
        budget = getattr(before, figure) * (1 - 1e-8)  # over budget by a hair
        after = repaired(
            self.channel, before.p_y, self.figures, lambda c: getattr(c, figure) - budget
        )
        assert getattr(after, figure) <= budget
        assert np.abs(after.channel - self.channel).max() < 1e-7
        np.testing.assert_allclose(after.p_y, before.p_y, atol=1e-15)

    def over(self, budget):
        return self.figures, lambda judged: judged.max_leakage - budget

    def test_a_channel_that_is_wrong_is_an_error_and_no_mechanism(self):
        with pytest.raises(SolverError, match=r"exceeds its budget by 0\..*, which rounding"):
            repaired(np.eye(3), np.full(3, 1 / 3), *self.over(0.1))

    def test_it_ends_where_nothing_helps(self):
        with pytest.raises(SolverError, match="rounding cannot explain"):
            repaired(self.channel, np.full(3, 1 / 3), self.figures, lambda _: 1e-9)

    def test_within_the_budget_nothing_changes(self):
        judged = repaired(self.channel, np.full(3, 1 / 3), *self.over(1.0))
        assert (judged.channel == self.channel).all()
