"""One output per label: the exact design for a loss of labels."""

import numpy as np
import pytest
from reference import Hellinger, random_joint
from scipy.optimize import brentq, linprog
from sklearn.exceptions import ConvergenceWarning

from skprivacy import Mechanism, design_mechanism, privacy_utility_path
from skprivacy._messages import watched
from skprivacy.budgets import mechanism_for_utility
from skprivacy.measures import L1, AlphaLift, Lip, get_measure
from skprivacy.releasing.output_names import named_outputs
from skprivacy.solvers import DesignTask, OnePerLabelSolver, one_per_label
from skprivacy.solvers.label_program import (
    LabelTask,
    MixedFacets,
    RelativeLeakage,
    SmoothedDual,
    TouchingTangents,
)
from skprivacy.solvers.problem import Problem
from skprivacy.utilities import Distortion, Guess

MEASURES = ["kl", "l1", "chi2", "max_lift", AlphaLift(5), "lip", "parity"]


def a_joint(seed, shape):
    return np.random.default_rng(seed).random(shape)


def steps(n):
    return Distortion(np.abs(np.subtract.outer(range(n), range(n))) / max(1, n - 1))


def random_loss(n, seed):
    loss = np.random.default_rng(seed).random((n, n))
    return Distortion(np.where(np.eye(n) > 0, 0.0, loss))


@pytest.mark.parametrize("epsilon", [0.001, 0.01, 0.05])
def test_two_groups_and_two_symbols_in_closed_form(epsilon):
    joint = np.array([[0.35, 0.15], [0.2, 0.3]])
    p, symbols = joint[1].sum(), joint[1] / joint.sum(axis=0)  # P(S=1), and given each symbol

    def excess(a):
        return a * np.log(a / p) + (1 - a) * np.log((1 - a) / (1 - p)) - epsilon

    low, high = brentq(excess, 1e-9, p), brentq(excess, p, 1 - 1e-9)
    ends = np.clip([low, high], *symbols)
    q = np.array([ends[1] - p, p - ends[0]]) / (ends[1] - ends[0])
    second = (ends - symbols[0]) / (symbols[1] - symbols[0])  # P(X=1|y)
    expected = q @ np.minimum(second, 1 - second)
    mechanism = design_mechanism(joint, epsilon, utility=steps(2))
    assert mechanism.solver == "one_per_label"
    assert mechanism.utility == pytest.approx(-expected, abs=1e-6)
    assert mechanism.gap < 1e-4


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("scope", ["per_output", "average"])
@pytest.mark.parametrize("shape", [(2, 6), (3, 5)])
def test_it_is_the_certified_optimum(measure, scope, shape):
    if measure == "lip" and scope == "average":
        scope = "per_output"
    for seed, epsilon in enumerate([0.0, 0.02, 0.2]):
        joint, utility = a_joint(seed, shape), random_loss(shape[1], seed)
        options = {"measure": measure, "scope": scope, "utility": utility}
        ours = design_mechanism(joint, epsilon, **options)
        other = design_mechanism(joint, epsilon, solver="optimal", **options)
        tolerance = 1.1e-4 * utility.span(ours.p_x)
        assert ours.utility == pytest.approx(other.utility, abs=tolerance)
        assert ours.utility <= other.upper_bound + 1e-9
        assert other.utility <= ours.upper_bound + 1e-9
        assert ours.gap <= tolerance or ours.upper_bound == utility.largest(ours.p_x)


@pytest.mark.parametrize("scope", ["per_output", "average"])
@pytest.mark.parametrize("measure", ["kl", "l1", "chi2"])
def test_joints_of_every_kind(measure, scope):
    rng = np.random.default_rng(9)
    for _ in range(12):
        joint, epsilon = random_joint(rng, (3, 6)), 10.0 ** rng.uniform(-6, 0)
        options = {"measure": measure, "scope": scope, "utility": steps(joint.shape[1])}
        ours = design_mechanism(joint, epsilon, **options)
        other = design_mechanism(joint, epsilon, solver="optimal", **options)
        assert ours.utility <= other.upper_bound + 1e-9
        assert other.utility <= ours.upper_bound + 1e-9


@pytest.mark.parametrize("n_joints", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_guesses_are_as_good_as_the_general_solvers_know(n_joints):
    for seed in range(n_joints):
        joint = a_joint(seed, (2 + seed % 2, 3 + seed % 4))
        measure, other = (("kl", "optimal"), ("max_lift", "lift_polytope"))[seed // 2 % 2]
        scope = "per_output" if other == "lift_polytope" else ("per_output", "average")[seed % 2]
        options = {"utility": "guess", "scope": scope, "measure": measure}
        ours = design_mechanism(joint, 0.03, **options)
        before = design_mechanism(joint, 0.03, solver=other, **options)
        assert ours.solver == "one_per_label"
        assert ours.utility == pytest.approx(before.utility, abs=2e-5)
        assert ours.gap < 1e-5


def test_released_values_are_right_as_often_as_a_guess():
    for seed in range(20):
        joint = a_joint(seed, (3, 6))
        mechanism = design_mechanism(joint, 0.02, utility="guess")
        about = mechanism.channel, mechanism.p_x, mechanism.objective
        channel, names = named_outputs(*about, 1 - np.eye(6), None)
        unchanged = (mechanism.p_x[:, None] * channel)[names, range(len(names))].sum()
        assert unchanged == pytest.approx(mechanism.utility, abs=1e-12)


class Worth(Guess):
    """Guesses of which some are worth more than others."""

    worth = np.array([1.0, 2.0, 1.0, 3.0, 1.0])

    def value(self, points):
        return (points.values * self.worth[points.support]).max(axis=1)

    def of_channel(self, p_x, channel):
        return float(((self.worth * p_x)[:, None] * channel).max(axis=0).sum())

    def largest(self, p_x):
        return float(self.worth @ p_x)

    def smallest(self, p_x):
        return float((self.worth * p_x).max())

    def traits(self, n_x):
        return np.eye(n_x)

    def as_loss(self, n_x):
        return self.worth.max() - np.diag(self.worth), self.worth.max()


def test_a_utility_of_ones_own_says_that_it_is_a_loss():
    joint = a_joint(8, (3, 5))
    ours = design_mechanism(joint, 0.05, utility=Worth())
    other = design_mechanism(joint, 0.05, utility=Worth(), solver="optimal")
    assert ours.solver == "one_per_label"
    assert ours.utility == pytest.approx(other.utility, abs=1e-4)
    assert ours.channel.shape[1] <= 5


@pytest.mark.parametrize(
    ("measure", "scope"), [(m, s) for m in MEASURES for s in get_measure(m).scopes], ids=str
)
def test_the_smoothed_dual_changes_no_answer(measure, scope, monkeypatch):
    joint, utility = a_joint(12, (3, 9)), steps(9)
    options = {"measure": measure, "scope": scope, "utility": utility}
    without = design_mechanism(joint, 0.05, **options)
    monkeypatch.setattr(one_per_label, "MANY_PAIRS", 0)
    ours = design_mechanism(joint, 0.05, **options)
    tolerance = 1.1e-4 * utility.span(ours.p_x)
    assert ours.gap <= tolerance
    assert ours.utility == pytest.approx(without.utility, abs=tolerance)
    assert without.utility <= ours.upper_bound + 1e-9


@pytest.mark.parametrize("on_average", [False, True])
@pytest.mark.parametrize(
    ("measure", "tangents"),
    [
        ("kl", TouchingTangents),
        ("l1", lambda leakage: MixedFacets(leakage, L1().facets(leakage.prior, 0.02)[0])),
    ],
)
def test_the_slope_of_the_smoothed_dual(measure, tangents, on_average):
    task = DesignTask.checked("test", a_joint(3, (3, 6)), [], measure, "average", "guess")
    problem = Problem(task)
    leakage = RelativeLeakage(problem.leakage, 0.02)
    task = LabelTask(problem.p_x, 1 - np.eye(6), on_average)
    dual = SmoothedDual(task, tangents(leakage), 0.7, None)
    at = dual._at + np.random.default_rng(0).normal(scale=0.03, size=len(dual._at))
    value, slope = dual._objective(at, 0.05)
    steps = 1e-6 * np.eye(len(at))
    ahead = np.array([dual._objective(at + step, 0.05)[0] for step in steps])
    np.testing.assert_allclose((ahead - value) / 1e-6, slope, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("many", [0, 10**9])
@pytest.mark.parametrize("scope", ["per_output", "average"])
def test_budgets_in_any_order(scope, many, monkeypatch):
    monkeypatch.setattr(one_per_label, "MANY_PAIRS", many)
    joint, utility = a_joint(13, (3, 7)), steps(7)
    task = DesignTask.checked("test", joint, [], "kl", scope, utility)
    solve = OnePerLabelSolver().prepared(task)
    for epsilon in (0.1, 0.0, 10.0, 0.02):
        alone = design_mechanism(joint, epsilon, scope=scope, utility=utility)
        solution = solve(epsilon)
        tolerance = 1.1e-4 * utility.span(alone.p_x)
        reached = utility.of_channel(alone.p_x, solution.channel)
        assert reached == pytest.approx(alone.utility, abs=tolerance)
        assert alone.utility - 1e-9 <= solution.upper_bound <= reached + tolerance


def test_tiny_budgets_end():
    joint = [[0.123, 0.0, 0.19, 0.193, 0.198], [0.0, 0.101, 0.111, 0.0, 0.084]]
    options = {"measure": "chi2", "scope": "average", "utility": "guess"}
    options["solver_options"] = {"tol": 1e-3}
    mechanism = design_mechanism(joint, 1.2e-6, **options)
    other = design_mechanism(joint, 1.2e-6, solver="optimal", **options)
    assert mechanism.utility == pytest.approx(other.utility, abs=2e-3)
    assert other.utility <= mechanism.upper_bound + 1e-9


def test_a_loss_of_one_is_a_guess():
    joint = a_joint(1, (3, 6))
    wrong = Distortion(1 - np.eye(6))
    loss = design_mechanism(joint, 0.02, utility=wrong)
    guess = design_mechanism(joint, 0.02, utility="guess", solver="one_per_label")
    assert 1 + loss.utility == pytest.approx(guess.utility, abs=1e-4)
    assert loss.normalized_utility == pytest.approx(guess.normalized_utility, abs=2e-4)


def test_there_is_one_output_for_each_label():
    mechanism = design_mechanism(a_joint(2, (4, 12)), 0.05, utility=steps(12))
    losses = (mechanism.p_x[:, None] * mechanism.channel).T @ steps(12).loss
    labels = losses.argmin(axis=1)
    assert len(set(labels)) == len(labels)
    assert -losses.min(axis=1).sum() == pytest.approx(mechanism.utility)


def test_a_larger_alphabet_is_certified():
    joint = a_joint(3, (5, 40))
    mechanism = design_mechanism(joint, 0.02, utility=steps(40), solver_options={"tol": 1e-3})
    assert mechanism.gap <= 1e-3 * steps(40).span(mechanism.p_x)
    assert 0 < mechanism.normalized_utility < 1


def test_paths_and_the_smallest_budget():
    joint, utility = a_joint(4, (3, 8)), steps(8)
    path = privacy_utility_path(joint, [0.0, 0.01, 0.1, 10.0], utility=utility)
    kept = [mechanism.normalized_utility for mechanism in path]
    assert kept == sorted(kept)
    assert kept[-1] == 1.0
    found = mechanism_for_utility(joint, 0.6, utility=utility)
    assert 0.6 <= found.normalized_utility < 0.61


def test_it_stops_in_time_with_a_bound_that_is_true():
    joint, utility = a_joint(5, (4, 20)), steps(20)
    with pytest.warns(ConvergenceWarning, match="one output per label .* max_time"):
        early = design_mechanism(joint, 0.02, utility=utility, solver_options={"max_time": 0})
    late = design_mechanism(joint, 0.02, utility=utility)
    assert early.utility <= late.utility <= early.upper_bound


def test_it_claims_nothing_about_a_measure_that_it_does_not_know():
    joint, utility = a_joint(7, (3, 6)), steps(6)
    options = {"measure": Hellinger(), "utility": utility}
    nothing, little = privacy_utility_path(joint, [0.0, 0.05], **options)
    assert nothing.upper_bound == utility.largest(nothing.p_x)
    other = design_mechanism(joint, 0.05, solver="optimal", **options)
    assert little.utility == pytest.approx(other.utility, abs=2e-4 * utility.span(little.p_x))
    assert little.gap < 2e-4 * utility.span(little.p_x)


def test_it_is_saved_with_its_loss():
    mechanism = design_mechanism(a_joint(6, (2, 5)), 0.02, utility=random_loss(5, 6))
    again = Mechanism.from_json(mechanism.to_json())
    assert again.objective == mechanism.objective
    assert again.utility == mechanism.utility


def test_it_needs_a_loss():
    with pytest.raises(ValueError, match="'one_per_label' needs a utility that is a loss"):
        design_mechanism([[1, 2], [2, 1]], 0.1, solver="one_per_label")
    with pytest.raises(
        ValueError, match="'utility' parameter of design_mechanism is 'distortion'"
    ):
        design_mechanism([[1, 2], [2, 1]], 0.1, utility="distortion")
    with pytest.raises(ValueError, match="'tol' parameter of OnePerLabelSolver"):
        OnePerLabelSolver(tol=0)
    with pytest.raises(ValueError, match="'max_pivots' parameter of OnePerLabelSolver"):
        OnePerLabelSolver(max_pivots=0)


def test_a_polyhedral_measure_with_more_facets_than_can_be_listed():
    joint = np.random.default_rng(0).random((18, 20))
    mechanism = design_mechanism(joint, 0.02, measure="l1", utility="guess")
    assert mechanism.solver == "one_per_label"
    assert mechanism.gap <= 1e-4


@pytest.mark.parametrize(
    "utility", ["guess", Distortion("positions")], ids=["guess", "distortion"]
)
def test_a_measure_that_jumps_has_no_tangents(utility):
    measure = Lip(lower=0.1)
    for seed in range(5):
        joint = a_joint(seed, (2, 6))
        mechanism = design_mechanism(joint, 0.3, measure=measure, utility=utility)
        assert mechanism.solver == "lift_polytope"
        assert mechanism.gap < 1e-6
    with pytest.raises(ValueError, match="needs a measure without a jump to infinity"):
        design_mechanism(joint, 0.3, measure=measure, utility="guess", solver="one_per_label")


@pytest.mark.parametrize("epsilon", [0.0005, 0.02, 0.2])
@pytest.mark.parametrize("utility", ["guess", "distortion"])
def test_two_groups_are_certified_however_rare_some_symbols_are(utility, epsilon):
    joint = np.random.default_rng(0).random((2, 130)) ** 3
    ranks = (joint.sum(axis=0) / joint.sum()).cumsum()
    objective = Distortion(np.abs(ranks[:, None] - ranks)) if utility == "distortion" else utility
    mechanism = design_mechanism(joint, epsilon, utility=objective)
    assert mechanism.is_certified
    assert mechanism.solver == "one_per_label"


@pytest.mark.parametrize("many", [0, 10**9])
@pytest.mark.parametrize("measure", ["kl", "l1", "chi2", "max_lift", AlphaLift(5)], ids=str)
def test_two_groups_are_one_linear_program(measure, many, monkeypatch):
    monkeypatch.setattr(one_per_label, "MANY_PAIRS", many)
    for seed, epsilon in enumerate([0.003, 0.05, 0.3]):
        joint, utility = a_joint(seed, (2, 8)), random_loss(8, seed)
        ours = design_mechanism(joint, epsilon, measure=measure, utility=utility)
        loss = naive_loss(joint / joint.sum(), utility.loss, get_measure(measure), epsilon)
        assert ours.utility == pytest.approx(-loss, abs=1e-7)
        assert -loss <= ours.upper_bound + 1e-9


def naive_loss(joint, loss, measure, epsilon):
    """Return the smallest loss of one output per label, as a single linear program."""
    p_s, p_x = joint.sum(axis=1), joint.sum(axis=0)

    def excess(first):
        at = float(measure.value(np.array([[first, 1 - first]]), p_s)[0])
        return at - float(measure.threshold(epsilon))

    n, first = len(p_x), joint[0] / p_x  # P(S=0|x), between `low` and `high` for each output
    low = brentq(excess, 1e-12, p_s[0]) if excess(1e-12) > 0 else 0.0
    high = brentq(excess, p_s[0], 1 - 1e-12) if excess(1 - 1e-12) > 0 else 1.0
    above = np.kron(first - high, np.eye(n))  # columns are pairs of a symbol and a label
    below = np.kron(low - first, np.eye(n))
    rows, marginals = np.vstack([above, below]), np.kron(np.eye(n), np.ones(n))
    answer = linprog(loss.ravel(), rows, np.zeros(2 * n), marginals, p_x)
    assert answer.status == 0
    return answer.fun


def test_it_stops_after_so_many_pivots_with_a_bound_that_is_true():
    joint, utility = a_joint(5, (4, 20)), steps(20)
    late = design_mechanism(joint, 0.02, utility=utility)
    for max_pivots in (1, 100, 300):
        options = {"utility": utility, "solver_options": {"max_pivots": max_pivots}}
        with pytest.warns(ConvergenceWarning, match="one output per label .* max_pivots are used"):
            early, again = (design_mechanism(joint, 0.02, **options) for _ in range(2))
        assert early.utility <= late.upper_bound + 1e-9
        assert late.utility <= early.upper_bound + 1e-9
        assert early.max_leakage <= 0.02 * (1 + 1e-9)
        np.testing.assert_array_equal(early.channel, again.channel)  # whatever the clock says


def test_a_path_stops_after_so_many_pivots_for_each_budget():
    joint, budgets = a_joint(5, (4, 20)), [0.01, 0.02]
    late = privacy_utility_path(joint, budgets, utility=steps(20))
    solver = OnePerLabelSolver(max_pivots=100)
    with pytest.warns(ConvergenceWarning, match="max_pivots"):
        early = privacy_utility_path(joint, budgets, utility=steps(20), solver=solver)
    for one, other in zip(early, late, strict=True):
        assert one.utility <= other.upper_bound + 1e-9
        assert other.utility <= one.upper_bound + 1e-9


@pytest.mark.parametrize("utility", ["guess", "mutual_information"])
def test_long_searches_tell_their_rounds(utility):
    told = []
    with watched(told.append):
        design_mechanism(a_joint(1, (6, 9)), 0.05, measure="chi2", utility=utility)
    assert told[:2] == ["designing a mechanism", "designing a mechanism, round 10"]


def test_rounds_are_a_part_of_what_is_done():
    told = []
    with watched(told.append):
        mechanism_for_utility(a_joint(1, (6, 9)), 0.5, utility="guess")
    first, second = told[:2]
    assert first == "looking for a budget, design 1"
    assert second.startswith("looking for a budget, design ")
    assert any(text.endswith(": designing a mechanism, round 10") for text in told)
