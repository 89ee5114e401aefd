import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import exact_max_lift_vertices, imported_cdd, random_joint

from skprivacy import SolverError
from skprivacy.geometry import LiftPolytopes, Points
from skprivacy.geometry.lift_polytopes import count_bases
from skprivacy.joint import as_joint


def polytopes_of(p_sx, **options):
    joint = as_joint(p_sx, "test").without_empty()
    return LiftPolytopes(joint.deviations, options.pop("max_bases", 10**6), **options), joint


def assert_same_points(left, right, tolerance):
    distances = np.abs(left[:, None] - right[None]).max(axis=2)
    assert distances.min(axis=1).max() <= tolerance, "a point on the left is missing on the right"
    assert distances.min(axis=0).max() <= tolerance, "a point on the right is missing on the left"


def dense_vertices(polytopes, lower, upper):
    return polytopes.vertices(lower, upper).dense(polytopes.deviations.shape[1])


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), epsilon=st.sampled_from([1e-4, 0.01, 0.2, 1.0, 5.0]))
def test_parametric_vertices_are_the_exact_ones(seed, epsilon):
    polytopes, joint = polytopes_of(random_joint(np.random.default_rng(seed), largest=(4, 5)))
    bound = np.exp(epsilon)
    exact = exact_max_lift_vertices(joint.p_sx, bound)
    ours = dense_vertices(polytopes, -1.0, bound - 1)
    # No vertex is missed. A point that is none does no harm, as long as it is in the polytope.
    assert np.abs(exact[:, None] - ours[None]).max(axis=2).min(axis=1).max() <= 1e-7
    # The product itself is rounded: deviations are as large as 1 / min P(S).
    rounding = np.finfo(float).eps * np.abs(polytopes.deviations).max()
    largest = (ours @ polytopes.deviations.T).max(axis=1)
    assert (largest <= (bound - 1) * (1 + 1e-10) + rounding).all()


@pytest.mark.parametrize("shape", [(2, 6), (3, 5), (4, 7), (5, 6), (7, 4)])
@pytest.mark.parametrize("bounds", [(-1.0, 0.05), (-1.0, 0.6), (-0.1, 0.1), (-0.5, 0.3)])
def test_both_engines_agree(shape, bounds):
    imported_cdd()
    for joint in np.random.default_rng(1).random((5, *shape)):
        parametric, cdd = (
            dense_vertices(polytopes_of(joint, engine=engine)[0], *bounds)
            for engine in ("parametric", "cdd")
        )
        assert_same_points(parametric, cdd, 1e-7)


def test_pairs_are_the_bases_of_two_rows():
    for p_sx in np.random.default_rng(2).random((10, 2, 7)):
        polytopes, _ = polytopes_of(p_sx)
        # Splitting a symbol of S takes the general path and changes no polytope.
        general, _ = polytopes_of(np.vstack([p_sx[:1] / 2, p_sx[:1] / 2, p_sx[1:]]))
        for excess in (0.0, 0.02, 0.3, 1.0):
            assert_same_points(
                dense_vertices(polytopes, -1.0, excess),
                dense_vertices(general, -1.0, excess),
                1e-9,
            )


def test_vertices_move_on_straight_lines():
    polytopes, _ = polytopes_of(np.random.default_rng(3).random((4, 7)))
    segments = polytopes.segments
    index = np.arange(len(segments))
    low, middle, high = (
        segments.at(index, np.full(len(index), fraction)).dense(7) for fraction in (0.0, 0.5, 1.0)
    )
    assert_allclose(middle, (low + high) / 2, atol=1e-12)
    # ... and are as far out as the bound they belong to.
    halfway = (segments.start + segments.stop) / 2
    reached = (middle @ polytopes.deviations.T).max(axis=1)
    moving = np.abs(high - low).max(axis=1) > 1e-9
    assert_allclose(reached[moving], halfway[moving], rtol=1e-9)


def test_beyond_the_largest_lift_is_the_whole_simplex():
    polytopes, _ = polytopes_of(np.random.default_rng(4).random((3, 5)))
    for excess in (polytopes.largest, 1e6, np.inf):
        assert_same_points(dense_vertices(polytopes, -1.0, excess), np.eye(5), 1e-12)


def test_perfect_privacy_when_one_bound_is_one():
    polytopes, joint = polytopes_of(np.random.default_rng(5).random((3, 6)))
    for bounds in ((-1.0, 0.0), (0.0, 1.0), (-0.5, 0.0)):
        vertices = dense_vertices(polytopes, *bounds)
        assert len(vertices) > 0
        assert_allclose(vertices @ joint.deviations.T, 0.0, atol=1e-12)


def test_supports_are_no_larger_than_the_rank():
    rng = np.random.default_rng(6)
    polytopes, _ = polytopes_of(rng.random((5, 2)) @ rng.random((2, 8)))
    assert polytopes.rank == 2
    for excess in (0.0, 0.1, 0.5):
        assert ((dense_vertices(polytopes, -1.0, excess) > 0).sum(axis=1) <= 2).all()


def test_too_many_bases_say_how_many_and_what_to_do():
    polytopes, _ = polytopes_of(np.random.default_rng(7).random((4, 30)), max_bases=1000)
    count = count_bases(4, 30, 4)
    with pytest.raises(
        SolverError, match=rf"{count:,} candidate vertices.*max_bases=1,000\. Pool"
    ):
        polytopes.vertices(-1.0, 0.1)


@pytest.mark.parametrize("size", [1e-2, 1e-4, 1e-6])
def test_nearly_independent_tables_keep_their_vertices(size):
    rng = np.random.default_rng(8)
    for _ in range(3):
        polytopes, joint = polytopes_of(1 + size * rng.standard_normal((4, 5)))
        excess = 0.1 * polytopes.largest
        exact = exact_max_lift_vertices(joint.p_sx, 1 + excess)
        assert_same_points(dense_vertices(polytopes, -1.0, excess), exact, 1e-6)


def test_cdd_says_so_where_it_cannot_tell():
    imported_cdd()
    polytopes, _ = polytopes_of(np.random.default_rng(9).random((3, 4)), engine="cdd")
    with pytest.raises(SolverError, match="exceed 1 by only 1.0e-08: use engine='parametric'"):
        polytopes.vertices(-1.0, 1e-8)


class TestPoints:
    rows = np.array([[0.2, 0.0, 0.8], [0.0, 1.0, 0.0], [0.5, 0.25, 0.25]])

    def test_round_trip(self):
        assert_allclose(Points.from_dense(self.rows).dense(3), self.rows)

    def test_times_is_a_matrix_product(self):
        matrix = np.random.default_rng(0).random((2, 3))
        assert_allclose(Points.from_dense(self.rows).times(matrix), self.rows @ matrix.T)

    def test_concatenate_pads(self):
        parts = [Points.from_dense(self.rows[:2]), Points.from_dense(self.rows[2:])]
        assert_allclose(Points.concatenate(parts).dense(3), self.rows)
