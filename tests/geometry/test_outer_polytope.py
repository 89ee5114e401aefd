"""The outer polytope against brute force, and what is built on it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import THREE_BY_THREE, exact_vertices, imported_cdd, random_joint

from skprivacy.geometry import (
    OuterPolytope,
    Points,
    TooManyVerticesError,
    slab_vertices,
)
from skprivacy.geometry.lift_polytopes import simplex_vertices
from skprivacy.geometry.points import GrowingTable
from skprivacy.joint import as_joint
from skprivacy.measures import KL, get_measure
from skprivacy.solvers import DesignTask
from skprivacy.solvers.leakage_function import LeakageFunction
from skprivacy.solvers.problem import InterchangeableSymbols, OccurringSymbols
from skprivacy.utilities import MutualInformation


def task_of(joint):
    return DesignTask({None: joint}, KL(), "per_output", MutualInformation())


def nothing(points, deviations):
    return np.zeros((len(points), 0))


def polytope(deviations, low=1.0, high=1.0, max_vertices=10**6):
    rank = min(np.linalg.matrix_rank(deviations) + 1, deviations.shape[1])
    return OuterPolytope(deviations, rank, low, high, nothing, 0, max_vertices)


def random_cuts(rng, deviations, n):
    """Return n halfspaces that the prior satisfies and some symbols do not."""
    normals = rng.normal(size=(n, len(deviations)))
    offsets = rng.random(n) * (normals @ deviations).max(axis=1) * 0.7
    return normals, np.maximum(offsets, 0.01)


def distinct(points, digits=6):
    return np.unique(np.round(points, digits) + 0.0, axis=0)


def same_points(one, other, atol=1e-6):
    """Check that two sets of points are the same but for ties that were broken."""
    distances = np.abs(one[:, None, :] - other[None, :, :]).max(axis=2)
    assert distances.min(axis=1).max() <= atol
    assert distances.min(axis=0).max() <= atol


class TestVertices:
    @pytest.mark.parametrize("shape", [(2, 5), (3, 5), (4, 6)])
    def test_equal_those_of_cdd(self, shape):
        imported_cdd()
        for seed in range(5):
            rng = np.random.default_rng(seed)
            deviations = as_joint(rng.random(shape), "test").deviations
            normals, offsets = random_cuts(rng, deviations, 6)
            ours = polytope(deviations, low=0.0, high=0.0)
            ours.cut(normals, offsets, np.full(6, 1e-12))
            points = ours.select()[0].dense(shape[1])
            same_points(points, simplex_vertices(normals @ deviations, offsets))

    def test_equal_all_bases_in_rational_arithmetic(self):
        rng = np.random.default_rng(1)
        deviations = as_joint(rng.random((3, 5)), "test").deviations
        normals, offsets = random_cuts(rng, deviations, 5)
        ours = polytope(deviations, low=0.0, high=0.0)
        ours.cut(normals, offsets, np.full(5, 1e-13))
        same_points(ours.select()[0].dense(5), exact_vertices(normals @ deviations, offsets))

    def test_of_a_prism_equal_those_of_its_slices(self):
        imported_cdd()
        rng = np.random.default_rng(2)
        deviations = as_joint(rng.random((3, 6)), "test").deviations
        normals, offsets = random_cuts(rng, deviations, 5)
        prism = polytope(deviations, low=0.1, high=1.0)
        prism.cut(normals, offsets, np.full(5, 1e-12))
        for height in (0.1, 0.3, 0.8):
            if height > 0.1:
                prism.raise_floor(height)
            points, _, heights, _ = prism.select(on_floor=True)
            assert_allclose(heights, height, rtol=1e-9)
            expected = simplex_vertices(normals @ deviations, offsets + height)
            same_points(points.dense(6), expected)

    def test_are_consistent(self):
        rng = np.random.default_rng(3)
        deviations = as_joint(rng.random((4, 7)), "test").deviations
        body = polytope(deviations, low=0.0, high=2.0)
        normals, offsets = random_cuts(rng, deviations, 12)
        body.cut(normals, offsets, np.full(12, 1e-11))
        points, own, heights, _ = body.select()
        assert_allclose(points.values.sum(axis=1), 1.0)
        assert (points.values >= 0).all()
        assert_allclose(points.times(deviations), own, atol=1e-12)
        assert (own @ normals.T - heights[:, None] <= offsets + 1e-10).all()
        assert body.n_vertices == len(points)

    @settings(max_examples=30, deadline=None)
    @given(st.integers(0, 2**32 - 1))
    def test_contain_what_they_are_around(self, seed):
        """Whatever is degenerate, every allowed point is a mixture of vertices."""
        rng = np.random.default_rng(seed)
        joint = as_joint(random_joint(rng, largest=(4, 6)), "test").without_empty()
        deviations, n_x = joint.deviations, len(joint.p_x)
        leakage = LeakageFunction(joint, get_measure("chi2"))
        body = polytope(deviations, low=0.02, high=0.02)
        for _ in range(4):
            beyond = body.select()[1]
            beyond = beyond[leakage.value(beyond) > 0.02][:8]
            if not len(beyond):
                break
            places = leakage.shrunk(beyond, 0.02)[:, None] * beyond
            body.cut(*leakage.tangents(places, 0.02))
        vertices = body.select()[0].dense(n_x)
        # In any direction, no allowed point is further out than all vertices.
        for direction in rng.normal(size=(20, n_x)):
            points = rng.dirichlet(np.ones(n_x), size=200)
            points = leakage.allowed(
                Points.from_dense(points), points @ deviations.T, 0.02, joint.p_x
            )[0].dense(n_x)
            assert (points @ direction).max() <= (vertices @ direction).max() + 1e-9

    def test_too_many(self):
        rng = np.random.default_rng(4)
        deviations = as_joint(rng.random((4, 7)), "test").deviations
        body = polytope(deviations, low=0.0, high=0.0, max_vertices=12)
        with pytest.raises(TooManyVerticesError):
            body.cut(*random_cuts(rng, deviations, 4), np.full(4, 1e-12))
        assert 7 <= body.n_vertices <= 12
        points, own, _, _ = body.select()
        assert_allclose(points.times(deviations), own, atol=1e-14)  # as before the cut

    def test_a_cut_through_vertices(self):
        imported_cdd()
        """Ties: the cut passes through symbols and through vertices of other cuts."""
        deviations = as_joint(np.eye(4) + 0.5, "test").deviations
        body = polytope(deviations, low=0.0, high=0.0)
        normals = np.vstack([np.eye(4), np.ones((1, 4)), np.eye(4)])
        offsets = np.append(
            np.repeat(deviations.max() / 2, 4), [0.0, *np.full(4, deviations.max() / 2)]
        )
        body.cut(normals, offsets, np.full(len(offsets), 1e-11))
        expected = simplex_vertices(np.eye(4) @ deviations, np.repeat(deviations.max() / 2, 4))
        same_points(body.select()[0].dense(4), expected)


class TestSlab:
    def test_vertices_equal_those_of_cdd(self):
        imported_cdd()
        t = np.array([-0.9, -0.3, 0.2, 0.2, 0.7, 1.1])
        ours = slab_vertices(t, -0.4, 0.5).dense(6)
        expected = simplex_vertices(np.vstack([t, -t]), np.array([0.5, 0.4]))
        assert_allclose(distinct(ours), distinct(expected), atol=1e-9)


class TestLeakageFunction:
    @pytest.fixture
    def joint(self):
        return as_joint(THREE_BY_THREE, "test")

    @pytest.mark.parametrize("name", ["kl", "l1", "chi2", "max_lift", "alpha_lift"])
    def test_tangents_are_below_and_touch(self, joint, name):
        rng = np.random.default_rng(0)
        leakage = LeakageFunction(joint, get_measure(name))
        at = rng.dirichlet(np.ones(3), size=10) @ joint.deviations.T
        normals, offsets, slack = leakage.tangents(at, 0.1)
        touching = (normals * at).sum(axis=1) - leakage.value(at)
        assert_allclose(touching, offsets, atol=1e-12)
        others = rng.dirichlet(np.ones(3), size=200) @ joint.deviations.T
        assert (others @ normals.T - leakage.value(others)[:, None] <= offsets).all()
        assert (slack > 0).all()

    @pytest.mark.parametrize("name", ["kl", "l1", "chi2", "max_lift", "alpha_lift", "lip"])
    def test_allowed_points(self, joint, name):
        rng = np.random.default_rng(1)
        leakage = LeakageFunction(joint, get_measure(name))
        points = Points.from_dense(rng.dirichlet(np.ones(3), size=50))
        allowed, places, index = leakage.allowed(
            points, points.times(joint.deviations), 0.05, joint.p_x
        )
        assert sorted(index) == list(range(50))
        assert (leakage.value(places) <= 0.05).all()
        assert_allclose(allowed.times(joint.deviations), places, atol=1e-14)
        inside = leakage.value(points.times(joint.deviations)) <= 0.05
        assert_allclose(allowed.dense(3)[np.argsort(index)][inside], points.dense(3)[inside])

    def test_shrunk_is_the_largest_share(self, joint):
        leakage = LeakageFunction(joint, get_measure("chi2"))
        directions = joint.deviations.T
        share = leakage.shrunk(directions, 0.01)
        assert_allclose(leakage.value(share[:, None] * directions), 0.01, rtol=1e-9)
        assert (leakage.shrunk(directions * 1e-6, 0.01) == 1).all()


class TestInterchangeableSymbols:
    def test_expanded_points_mix_to_the_same(self):
        joint = as_joint(np.repeat(THREE_BY_THREE, [3, 1, 2], axis=1) * [1, 2, 3, 4, 5, 6], "test")
        symbols = InterchangeableSymbols(task_of(joint))
        merged = symbols.task.joint
        assert len(merged.p_x) == 3
        assert_allclose(merged.p_x, np.bincount(symbols.kinds, joint.p_x))
        point = np.zeros((1, 3))
        point[0, :] = [0.5, 0.3, 0.2]
        points, origin = symbols.split(Points.from_dense(point))
        assert (origin == 0).all()
        # Each has one symbol of every group, with the weight of the group.
        dense = points.dense(6)
        for row in dense:
            assert_allclose(np.bincount(symbols.kinds, row), point[0])
        # And P(X) given the kinds is a mixture of them.
        wanted = point[0][symbols.kinds] * joint.p_x / merged.p_x[symbols.kinds]
        weights = np.linalg.lstsq(dense.T, wanted, rcond=None)[0]
        assert_allclose(dense.T @ weights, wanted, atol=1e-12)

    def test_nothing_to_merge(self):
        joint = as_joint(THREE_BY_THREE, "test")
        symbols = InterchangeableSymbols(task_of(joint))
        assert symbols.are_distinct
        points = Points.from_dense(np.eye(3))
        assert symbols.expanded(points) == (points, None)


def test_a_channel_of_the_symbols_that_occur_is_one_of_all():
    joint = np.array([[0.2, 0.0, 0.1, 0.1], [0.0, 0.0, 0.0, 0.0], [0.1, 0.0, 0.2, 0.3]])
    symbols = OccurringSymbols(task_of(as_joint(joint, "test")))
    assert symbols.task.joint.p_sx.shape == (2, 3)
    channel = symbols.expanded(np.array([[2.0, 0.0], [0.5, 0.5], [0.0, 1.0]]))
    assert_allclose(channel, [[1, 0], [0.45, 0.55], [0.5, 0.5], [0, 1]])  # P(Y) where X is not


def test_growing_table():
    table = GrowingTable(a=(int, ()), b=(float, (2,)))
    for start in range(0, 300, 100):
        table.append(a=np.arange(start, start + 100), b=np.ones((100, 2)))
    assert len(table) == 300
    table.keep(table["a"] % 2 == 0)
    assert table["a"].tolist() == list(range(0, 300, 2))
    assert table["b"].shape == (150, 2)
