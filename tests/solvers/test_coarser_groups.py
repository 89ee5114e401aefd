"""Bounds by fewer groups of S: never below what is feasible, and close where S has one axis."""

import numpy as np
import pytest

from skprivacy import design_mechanism
from skprivacy.solvers import DesignTask
from skprivacy.solvers.priced_bound import CoarserGroups

RNG = np.random.default_rng


def bound(joint, epsilon, measure, scope):
    task = DesignTask.checked("test", joint, [epsilon], measure, scope, "mutual_information")
    return CoarserGroups(task).bound(epsilon, 0.0)


@pytest.mark.parametrize("scope", ["per_output", "average"])
@pytest.mark.parametrize(
    ("measure", "epsilon"),
    [("kl", 0.02), ("l1", 0.2), ("chi2", 0.2), ("max_lift", 0.2), ("alpha_lift", 0.02)],
)
def test_no_bound_is_below_the_optimum(measure, epsilon, scope):
    for seed in range(2):
        joint = RNG(seed).random((4, 5)) ** 2
        best = design_mechanism(joint, epsilon, measure=measure, scope=scope, solver="optimal")
        assert bound(joint, epsilon, measure, scope) >= best.utility - 1e-9


@pytest.mark.parametrize(
    ("measure", "epsilon"),
    [
        ("l1", 0.1),
        ("max_lift", 0.1),
        pytest.param("kl", 0.01, marks=pytest.mark.slow),  # which has a proof of its own
    ],
)
def test_groups_that_differ_in_one_way_only(measure, epsilon):
    """Ten groups of two kinds: the two kinds alone have the same optimum."""
    kinds = RNG(0).random((2, 30)) + 0.1
    joint = np.repeat(kinds, 5, axis=0) * RNG(1).random((10, 1))
    joint *= 1 + 1e-6 * RNG(2).random(joint.shape)
    mechanism = design_mechanism(joint, epsilon, measure=measure, solver="column_generation")
    assert mechanism.gap < 1e-3 * mechanism.utility


def test_a_measure_that_fusing_may_raise_has_no_such_bound():
    assert bound(RNG(3).random((4, 5)), 0.3, "parity", "per_output") >= 0
    task = DesignTask.checked(
        "test", RNG(3).random((2, 5)), [0.1], "kl", "per_output", "mutual_information"
    )
    assert CoarserGroups(task).bound(0.1, 0.0) == np.inf
