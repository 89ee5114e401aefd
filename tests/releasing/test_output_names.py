"""What outputs are called."""

from itertools import permutations

import numpy as np
from numpy.testing import assert_allclose

from skprivacy import design_mechanism
from skprivacy.releasing.output_names import named_outputs


def named(mechanism, channel, loss):
    """The outputs of a channel and their names, as fit finds them."""
    return named_outputs(channel, mechanism.p_x, mechanism.objective, loss, mechanism.strata)


class TestNaming:
    def smallest_by_brute_force(self, costs):
        n_y, n_x = costs.shape
        return min(costs[range(n_y), list(names)].sum() for names in permutations(range(n_x), n_y))

    def test_names_are_as_close_as_possible(self):
        rng = np.random.default_rng(0)
        for _ in range(30):
            mechanism = design_mechanism(rng.random((2, 5)), 0.02)
            loss = rng.random((5, 5))
            channel, names = named(mechanism, mechanism.channel, loss)
            costs = (mechanism.p_x[:, None] * channel).T @ loss
            assert (np.diff(names) > 0).all()
            reached = costs[range(len(names)), names].sum()
            assert_allclose(reached, self.smallest_by_brute_force(costs))
            assert_allclose(mechanism.with_channel(channel).utility, mechanism.utility)

    def test_an_output_may_be_called_by_a_value_that_it_never_comes_from(self):
        channel = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])  # both ends, or the middle
        design = design_mechanism(np.full((2, 3), 1 / 6), 1.0)
        squares = np.subtract.outer(range(3), range(3)) ** 2
        found, names = named(design, channel, squares)
        assert names.tolist() == [0, 1]
        assert found[:, 1].tolist() == [1.0, 0.0, 1.0]

    def test_one_output_too_many_is_merged_where_it_costs_least(self):
        channel = np.array([[0.8, 0.1, 0.1], [0.1, 0.5, 0.4]])  # the last two say about the same
        design = design_mechanism(np.full((2, 2), 0.25), 1.0, scope="average")
        found, names = named(design, channel, 1 - np.eye(2))
        assert names.tolist() == [0, 1]
        assert_allclose(found, [[0.8, 0.2], [0.1, 0.9]])

    def test_ties_are_broken_the_same_way_each_time(self):
        mechanism = design_mechanism(np.full((2, 4), 0.125), 0.1)
        loss = 1 - np.eye(4)
        first, again = (named(mechanism, mechanism.channel, loss)[1] for _ in range(2))
        assert (first == again).all()
