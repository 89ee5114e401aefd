"""The branch and bound behind column generation: against brute force, and against all solvers."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog, minimize
from sklearn.exceptions import ConvergenceWarning

from skprivacy import design_mechanism
from skprivacy.geometry import Points
from skprivacy.measures import KL, L1, Chi2, Lip, MaxLift, Parity, get_measure
from skprivacy.solvers import priced_bound
from skprivacy.solvers.column_generation import ColumnSearch
from skprivacy.solvers.linear_program import Prices
from skprivacy.solvers.priced_bound import Relaxation, can_be_proven, largest_surplus
from skprivacy.solvers.problem import Problem
from skprivacy.solvers.solver import DesignTask
from skprivacy.utilities import MutualInformation, Target

SCOPES = ("per_output", "average")
BUDGETS = (("kl", 0.05), ("chi2", 0.3), ("l1", 0.2), ("max_lift", 0.2), ("parity", 0.2))
POLYHEDRAL = (L1(), MaxLift(), Parity(), Lip(), Lip(lower=0.3))


def random_joint(seed, shape):
    joint = np.random.default_rng(seed).random(shape) ** 2
    return joint / joint.sum()


def random_target(seed, n_x, n_v=3):
    return Target(np.random.default_rng(seed).dirichlet(np.ones(n_v), n_x).T)


def problem_of(joint, epsilon, measure, scope, utility):
    return Problem(DesignTask.checked("test", joint, [epsilon], measure, scope, utility))


def no_outputs(rows):
    return -np.inf


def best_of_samples(problem, epsilon, prices, rows):
    """Return the largest surplus of dense rows, and then of rows ever closer to the best one."""
    centre = problem.p_x
    for share in (1.0, 0.3, 0.1, 0.03):
        closer = centre + share * (rows - centre)
        centre = closer[surplus_of(problem, epsilon, prices, closer).argmax()]
    return surplus_of(problem, epsilon, prices, centre[None])[0]


def surplus_of(problem, epsilon, prices, rows):
    """Return the surplus of dense rows, written down naively; none if they are not allowed."""
    prior, deviations = problem.leakage.prior, problem.leakage.deviations
    posteriors = np.maximum((1 + rows @ deviations.T) * prior, 0.0)
    leakage = problem.measure.value(posteriors, prior) - problem.measure.value(prior, prior)
    found = problem.utility.value(Points.from_dense(rows)) - rows @ prices.symbols
    if problem.scope == "average":
        return found - prices.budget * leakage / problem.threshold(epsilon)
    return np.where(leakage <= problem.threshold(epsilon), found, -np.inf)


@pytest.mark.parametrize("measure", [KL(), Chi2()], ids=["kl", "chi2"])
def test_the_conjugate_is_the_largest_difference(measure):
    rng = np.random.default_rng(0)
    prior, normals = rng.dirichlet(np.ones(4)), 0.3 * rng.normal(size=(5, 4))
    value, slope, curvature = measure.conjugate(normals, prior)
    anywhere = rng.dirichlet(np.ones(4), 2000)
    differences = anywhere @ normals.T - measure.value(anywhere, prior)[:, None]
    assert (differences <= value + 1e-12).all()
    # It is attained at its slope, which is a distribution.
    np.testing.assert_allclose(slope.sum(axis=1), 1)
    reached = (normals * slope).sum(axis=1) - measure.value(slope, prior)
    np.testing.assert_allclose(reached, value, rtol=1e-10)
    step = 1e-6 * np.eye(4)
    for i in range(4):
        ahead, behind = (measure.conjugate(normals + sign * step[i], prior) for sign in (1, -1))
        np.testing.assert_allclose((ahead[0] - behind[0]) / 2e-6, slope[:, i], atol=1e-8)
        np.testing.assert_allclose((ahead[1] - behind[1]) / 2e-6, curvature[:, i], atol=1e-8)


def largest_by_linear_programs(measure, normals, prior, epsilon):
    """Return the largest ``normal . (T - prior)`` within a budget of a polyhedral measure."""
    rows, upper = measure.facets(prior, epsilon)
    sums_to_one = {"A_eq": np.ones((1, len(prior))), "b_eq": [1], "bounds": (None, None)}
    found = [linprog(-normal, A_ub=rows, b_ub=upper, **sums_to_one) for normal in normals]
    return np.array([-each.fun for each in found]) - normals @ prior


@pytest.mark.parametrize("measure", POLYHEDRAL, ids=str)
@given(
    normals=arrays(float, (3, 4), elements=st.floats(-5, 5)),
    shares=arrays(float, 4, elements=st.floats(0.05, 1)),
    epsilon=st.floats(1e-4, 1.5),
)
@settings(max_examples=50, deadline=None)
def test_the_support_is_the_optimum_of_a_linear_program(measure, normals, shares, epsilon):
    prior = shares / shares.sum()
    value, smooth, _, _ = measure.support(normals, prior, epsilon, np.full(3, 0.01))
    best = largest_by_linear_programs(measure, normals, prior, epsilon)
    np.testing.assert_allclose(value, best, atol=1e-7)
    assert (smooth >= value - 1e-12).all()
    assert (smooth <= value + 0.05).all()


@pytest.mark.parametrize("measure", POLYHEDRAL, ids=str)
@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_the_smooth_support_has_the_derivatives_it_says(measure, epsilon):
    rng = np.random.default_rng(0)
    prior, normals, smoothing = rng.dirichlet(np.full(4, 3)), rng.normal(size=(6, 4)), 0.05
    width = np.full(6, smoothing)
    _, _, slope, curvature = measure.support(normals, prior, epsilon, width)
    step = 1e-5 * np.eye(4)
    for i in range(4):
        ahead, behind = (
            measure.support(normals + sign * step[i], prior, epsilon, width) for sign in (1, -1)
        )
        np.testing.assert_allclose((ahead[1] - behind[1]) / 2e-5, slope[:, i], atol=1e-6)
        np.testing.assert_allclose((ahead[2] - behind[2]) / 2e-5, curvature[:, i], atol=1e-5)


@pytest.mark.parametrize("name", ["l1", "max_lift", "parity"])
def test_linear_measures_grow_in_proportion_to_the_distance(name):
    measure, rng = get_measure(name), np.random.default_rng(1)
    prior, posteriors = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5), 20)
    assert measure.is_linear
    rise = measure.value(posteriors, prior) - measure.value(prior, prior)
    for t in (0.1, 0.7):
        closer = measure.value(prior + t * (posteriors - prior), prior)
        np.testing.assert_allclose(closer - measure.value(prior, prior), t * rise, atol=1e-12)


@pytest.mark.parametrize(
    ("measure", "epsilon", "scope"),
    [
        *((measure, epsilon, scope) for measure, epsilon in BUDGETS for scope in SCOPES),
        ("lip", 0.3, "per_output"),
    ],
)
@pytest.mark.parametrize("has_target", [False, True])
def test_no_output_exceeds_the_bound_at_any_prices(measure, epsilon, scope, has_target):
    for seed in range(2):
        rng, shape = np.random.default_rng(seed), (3, 5)
        utility = random_target(seed, 5) if has_target else MutualInformation()
        problem = problem_of(random_joint(seed, shape), epsilon, measure, scope, utility)
        prices = Prices(rng.normal(size=5), float(rng.exponential()))
        rows = np.concatenate([rng.dirichlet(np.full(5, a), 10_000) for a in (0.1, 0.3, 1.0)])
        rows = np.concatenate([rows, np.eye(5), problem.p_x + 0.2 * (rows - problem.p_x)])
        best = best_of_samples(problem, epsilon, prices, rows)
        target = best + 0.1  # it stops there; samples miss the best output by less
        relaxation = Relaxation(problem, epsilon, prices)
        found, _ = largest_surplus(relaxation, target, 4000, np.inf, no_outputs)
        assert best <= found <= target
        # Whatever it is aiming at, and wherever it stops.
        low, _ = largest_surplus(relaxation, best - 1.0, 300, np.inf, no_outputs)
        assert low >= best


def test_boxes_without_outputs_are_told():
    """A bound may fall without end only where no output is allowed."""
    problem = problem_of(random_joint(0, (3, 4)), 0.01, "kl", "per_output", MutualInformation())
    relaxation = Relaxation(problem, 0.01, Prices(np.zeros(4), 0.0))
    most = minimize(
        lambda w: -w[0],
        problem.p_x,
        bounds=[(0, 1)] * 4,
        constraints=[
            {"type": "eq", "fun": lambda w: w.sum() - 1},
            {"type": "ineq", "fun": lambda w: 0.01 - problem.leakage_of(Points.from_dense(w[None]))[0]},
        ],
    ).x[0]  # fmt: skip
    for low, is_empty in ((0.98 * most, False), (1.02 * most, True)):
        box = relaxation.whole()
        inside = box.low.copy()
        inside[0, 0] = low
        box = relaxation._bounded(inside, box.high, box.multipliers, np.full(1, 0.02), 60)
        assert (box.bound[0] < -1) == is_empty


def test_what_it_tries_are_outputs():
    problem = problem_of(random_joint(1, (4, 9)), 0.02, "kl", "average", random_target(1, 9))
    relaxation = Relaxation(problem, 0.02, Prices(np.zeros(9), 0.1))
    rows = relaxation.outputs(relaxation.halves(relaxation.whole(), 0.0))
    np.testing.assert_allclose(rows.sum(axis=1), 1)
    assert rows.min() >= 0


def test_measures_without_a_conjugate_or_support_have_other_bounds():
    problem = problem_of(
        random_joint(0, (3, 5)), 0.1, "alpha_lift", "per_output", MutualInformation()
    )
    assert not can_be_proven(problem, 0.1)


@pytest.mark.parametrize("has_target", [False, True])
@pytest.mark.parametrize("measure", ["max_lift", "lip"])
def test_the_bound_is_the_optimum_over_all_vertices(measure, has_target):
    """With bounded lifts, the vertices of the paper's polytope can be enumerated."""
    joint, options = random_joint(4, (4, 8)), {"measure": measure}
    options["utility"] = random_target(4, 8) if has_target else MutualInformation()
    best = design_mechanism(joint, 0.2, solver="lift_polytope", **options)
    options |= {"solver": "column_generation", "solver_options": {"tol": 1e-3}}
    ours = design_mechanism(joint, 0.2, **options)
    assert best.utility <= ours.upper_bound + 1e-9
    assert ours.utility <= best.utility + 1e-9
    assert ours.gap <= 1.2e-3 * ours.objective.span(ours.p_x)


@pytest.mark.parametrize(
    ("measure", "epsilon", "scope", "has_target"),
    [
        ("kl", 0.02, "per_output", False),
        ("kl", 0.02, "average", True),
        ("chi2", 0.15, "per_output", True),
        ("chi2", 0.15, "average", False),
        ("kl", 0.0, "per_output", True),
        ("l1", 0.15, "per_output", False),
        ("l1", 0.15, "average", True),
        ("max_lift", 0.15, "average", False),
        ("parity", 0.15, "per_output", True),
        ("parity", 0.15, "average", False),
        ("l1", 0.0, "per_output", False),
    ],
)
def test_column_generation_proves_the_optimum_of_the_other_solver(
    measure, epsilon, scope, has_target
):
    joint = random_joint(3, (4, 7))
    options = {"measure": measure, "scope": scope}
    options["utility"] = random_target(3, 7) if has_target else MutualInformation()
    ours = design_mechanism(
        joint, epsilon, solver="column_generation", solver_options={"tol": 1e-3}, **options
    )
    best = design_mechanism(
        joint, epsilon, solver="optimal", solver_options={"tol": 1e-3}, **options
    )
    assert best.utility <= ours.upper_bound + 1e-9
    assert ours.utility <= best.upper_bound + 1e-9
    assert ours.gap <= 1.2e-3 * ours.objective.span(ours.p_x)


def test_six_groups_and_sixteen_symbols_are_proven():
    joint = random_joint(5, (6, 16))
    mechanism = design_mechanism(joint, 0.02, solver_options={"tol": 1e-3})
    assert mechanism.solver == "column_generation"
    assert mechanism.normalized_utility == pytest.approx(0.7003, abs=1e-3)
    assert mechanism.normalized_upper_bound - mechanism.normalized_utility <= 1.1e-3
    assert not mechanism.is_certified


def check_random_bounds(seeds, largest, tol):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            rng = np.random.default_rng([7, seed])
            shape = tuple(int(rng.integers(3, 1 + most)) for most in largest)
            joint = rng.random(shape) ** rng.choice([1, 2, 6])
            joint /= joint.sum()
            epsilon = float(10 ** rng.uniform(-4, -0.3))
            measure = str(rng.choice([name for name, _ in BUDGETS]))
            scope = str(rng.choice(SCOPES))
            options = {"measure": measure, "scope": scope}
            if rng.random() < 0.3:
                options["utility"] = random_target(seed, shape[1], int(rng.integers(2, 5)))
            ours = design_mechanism(
                joint, epsilon, solver="column_generation", solver_options={"tol": tol}, **options
            )
            best = design_mechanism(
                joint,
                epsilon,
                solver="optimal",
                solver_options={"tol": tol, "max_time": 5},
                **options,
            )
            about = seed, shape, epsilon, options
            assert ours.leakage_in(ours.scope) <= epsilon * (1 + 1e-9) + 1e-12, about
            assert best.utility <= ours.upper_bound + 1e-9, about
            assert ours.utility <= best.upper_bound + 1e-9, about


def test_no_bound_is_below_what_is_reached():
    check_random_bounds(range(100), largest=(3, 3), tol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(50))
def test_no_bound_is_below_what_is_reached_in_many_tables(part):
    check_random_bounds(range(100 * part, 100 * (part + 1)), largest=(5, 8), tol=1e-2)


def test_a_box_without_a_price_of_leakage_does_not_leave_its_parts_without_one():
    """At the prices of this table the whole box needs none: its parts then stayed above 0.25."""
    joint = random_joint(2, (5, 12))
    mechanism = design_mechanism(
        joint,
        0.02,
        solver="column_generation",
        utility=random_target(2, 12),
        solver_options={"tol": 0.02},
    )
    assert mechanism.gap <= 0.021 * mechanism.objective.span(mechanism.p_x)


def test_boxes_improved_in_small_parts_have_the_same_bounds(monkeypatch):
    """Parts fit into the cache; boxes below the target get no more steps, and others all."""
    problem = problem_of(random_joint(3, (5, 9)), 0.02, "kl", "per_output", MutualInformation())
    found = []
    for size in (1, 2**16):
        monkeypatch.setattr(priced_bound, "CACHED", size)
        relaxation = Relaxation(problem, 0.02, Prices(np.zeros(9), 0.0))
        found.append(largest_surplus(relaxation, -0.5, 300, np.inf, no_outputs))
    assert found[0][1] == found[1][1]
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-9)


def test_a_limit_of_work_tells_its_bound(monkeypatch):
    joint = random_joint(1, (6, 16))
    best = design_mechanism(joint, 0.02, solver="column_generation")
    monkeypatch.setattr(ColumnSearch, "most_boxes", lambda search, target: 2)
    with pytest.warns(ConvergenceWarning, match="its limit of work is reached"):
        early = design_mechanism(joint, 0.02, solver="column_generation")
    assert best.is_certified
    assert best.utility <= early.upper_bound
