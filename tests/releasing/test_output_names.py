"""What outputs are called."""

from dataclasses import replace
from itertools import permutations

import numpy as np
from numpy.testing import assert_allclose

from skprivacy import (
    design_mechanism,
)
from skprivacy.releasing.output_names import name_outputs


class TestNaming:
    def best_by_brute_force(self, p_xy):
        n_x, n_y = p_xy.shape
        picked = (p_xy[list(names), range(n_y)] for names in permutations(range(n_x), n_y))
        return max(values.sum() for values in picked if (values > 0).all())

    def test_names_are_right_as_often_as_possible(self):
        rng = np.random.default_rng(0)
        for _ in range(30):
            mechanism = design_mechanism(rng.random((2, 5)), 0.02)
            named, names = name_outputs(mechanism)
            p_xy = named.p_x[:, None] * named.channel
            reached = p_xy[names, range(len(names))]
            assert (reached > 0).all()
            assert (np.diff(names) > 0).all()
            assert_allclose(reached.sum(), self.best_by_brute_force(p_xy))
            assert_allclose(named.utility, mechanism.utility)

    def test_one_output_too_many_is_merged_where_it_costs_least(self):
        channel = np.array([[0.8, 0.1, 0.1], [0.1, 0.5, 0.4]])  # the last two say about the same
        design = design_mechanism(np.full((2, 2), 0.25), 1.0, scope="average")
        mechanism = replace(design, channel=channel, y_labels=(0, 1, 2), upper_bound=None)
        named, names = name_outputs(mechanism)
        assert names.tolist() == [0, 1]
        assert_allclose(named.channel, [[0.8, 0.2], [0.1, 0.9]])

    def test_ties_are_broken_the_same_way_each_time(self):
        mechanism = design_mechanism(np.full((2, 4), 0.125), 0.1)
        assert (name_outputs(mechanism)[1] == name_outputs(mechanism)[1]).all()
