"""Distances of the labels of a joint: the same as those of the rows that it counts."""

import numpy as np
import pandas as pd
import pytest
from example_tables import funnel, graduates, quiet_fit

from skprivacy import compare_mechanisms, design_mechanism, privacy_utility_path
from skprivacy.budgets import mechanism_for_utility
from skprivacy.utilities import Distortion


@pytest.mark.parametrize(
    "columns",
    [["education"], ["children"], ["city"], ["education", "children"], ["city", "children"]],
)
def test_they_are_those_of_the_columns(columns):
    rows = graduates().iloc[:500]
    counts = pd.crosstab(rows["sex"], [rows[name] for name in columns])
    fitted = quiet_fit(funnel(0.001, columns=columns, utility="distortion", n_bins=None), rows)
    mechanism = design_mechanism(counts, 0.001, utility="distortion")
    where = [fitted.mechanism_.x_labels.index(label) for label in mechanism.x_labels]
    expected = fitted.mechanism_.objective.loss[np.ix_(where, where)]
    np.testing.assert_allclose(mechanism.objective.loss, expected, atol=1e-12)
    assert mechanism.utility == pytest.approx(fitted.mechanism_.utility, abs=1e-6)


def test_levels_have_weights_by_name():
    rows = graduates().iloc[:500]
    counts = pd.crosstab(rows["sex"], [rows["city"], rows["children"]])
    weights = Distortion("auto", column_weights={"city": 0})
    loss = design_mechanism(counts, 0.001, utility=weights).objective.loss
    same = [a[1] == b[1] for a in counts.columns for b in counts.columns]
    assert (loss.ravel()[same] == 0).all()
    with pytest.raises(ValueError, match="'column_weights' parameter of Distortion names 'town'"):
        design_mechanism(counts, 0.1, utility=Distortion(column_weights={"town": 2}))


def test_labels_in_another_order_and_some_that_never_occur():
    counts = pd.DataFrame([[2, 0, 1, 4], [1, 0, 5, 2]], columns=[30, 10, 20, 40])
    loss = design_mechanism(counts, 0.001, utility="distortion").objective.loss
    ranks = np.array([(6 + 1.5) / 15, 0.0, 3 / 15, (9 + 3) / 15])
    np.testing.assert_allclose(loss, np.abs(np.subtract.outer(ranks, ranks)), atol=1e-12)


@pytest.mark.parametrize("joint", [[[1, 2], [2, 1]], pd.DataFrame([[1, 2], [2, 1]])])
def test_positions_are_used_only_if_asked_for(joint):
    for utility in ("distortion", Distortion("auto")):
        with pytest.raises(
            ValueError,
            match=r"'utility' parameter of design_mechanism is 'distortion'.*"
            r"Distortion\('positions'\) if the columns are in order",
        ):
            design_mechanism(joint, 0.1, utility=utility)
    assert design_mechanism(
        joint, 1e-3, utility=Distortion("positions")
    ).objective.loss.tolist() == [
        [0, 1],
        [1, 0],
    ]
    assert repr(Distortion("positions")) == "Distortion('positions')"


def test_every_function_that_designs_knows_them():
    counts = pd.DataFrame([[2, 3, 1, 4], [1, 4, 5, 2]], columns=[30, 10, 20, 40])
    (one,) = privacy_utility_path(counts, [0.01], utility="distortion")
    assert one.utility == design_mechanism(counts, 0.01, utility="distortion").utility
    assert (
        mechanism_for_utility(counts, 0.8, utility="distortion").normalized_utility >= 0.8 - 1e-9
    )
    table = compare_mechanisms(counts, [0.01], utility="distortion", solvers=["auto"])
    assert table["utility"].iloc[0] == pytest.approx(one.utility)
