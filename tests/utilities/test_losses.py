"""Losses of labels, and what is none."""

import numpy as np
import pytest

from skprivacy import design_mechanism
from skprivacy.geometry import Points
from skprivacy.utilities import Distortion, Guess, Target


def steps(n):
    return Distortion(np.abs(np.subtract.outer(range(n), range(n))) / max(1, n - 1))


def test_the_value_is_minus_the_loss_of_the_best_label():
    rng = np.random.default_rng(0)
    loss = np.where(np.eye(4) > 0, 0.0, rng.random((4, 4)))
    posteriors = rng.dirichlet(np.ones(4), size=50)
    naive = [-min(sum(w * row[label] for w, row in zip(posterior, loss, strict=True)) for label in range(4))
             for posterior in posteriors]  # fmt: skip
    np.testing.assert_allclose(Distortion(loss).value(Points.from_dense(posteriors)), naive)


def test_utilities_that_are_losses_say_so():
    points = Points.from_dense(np.random.default_rng(1).dirichlet(np.ones(5), size=20))
    for utility in (steps(5), Guess()):
        loss, constant = utility.as_loss(5)
        expected = constant - (points.dense(5) @ loss).min(axis=1)
        np.testing.assert_allclose(utility.value(points), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        ([[0, 1, 1], [1, 0, 1]], "a square table"),
        ([[0, -1], [1, 0]], "nonnegative"),
        ([[0, np.nan], [1, 0]], "finite"),
        ([[0, 1], [0.5, 1]], "smallest on its diagonal.* In row 1 another label"),
        (["a", "b"], "numbers"),
    ],
)
def test_losses_that_are_none(loss, text):
    with pytest.raises((ValueError, TypeError), match=f"'loss' parameter of Distortion.*{text}"):
        Distortion(loss)


def test_a_loss_of_another_alphabet():
    with pytest.raises(ValueError, match="'loss' parameter of Distortion must be a table with 2"):
        design_mechanism([[1, 2], [2, 1]], 0.1, utility=steps(3))


@pytest.mark.parametrize("n_v", [3, 70_000])
def test_values_of_many_points_are_those_of_each(n_v):
    rng = np.random.default_rng(0)
    target = Target(rng.random((n_v, 4)) * (rng.random((n_v, 4)) < 0.5))
    rows = rng.dirichlet(np.ones(4), 50)
    rows[:20, 2:] = 0
    rows /= rows.sum(axis=1, keepdims=True)
    values = target.value(Points.from_dense(rows))
    given = rows @ target.p_v_given_x.T
    with np.errstate(divide="ignore", invalid="ignore"):
        naive = np.nansum(given * np.log(given), axis=1)
    np.testing.assert_allclose(values, naive, rtol=1e-12)
