"""The budgets of a curve are round, and cover what it is about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skprivacy.cli.explore import round_budgets


def test_ones_twos_and_fives():
    assert round_budgets(0.5176) == [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0]
    assert round_budgets(0.2) == [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2]


def test_two_digits_where_few_are_left():
    assert round_budgets(0.031, 0.0141) == [0.015, 0.016, 0.018, 0.02, 0.023, 0.025, 0.028, 0.031]
    assert round_budgets(0.01, 0.02) == [0.02]


@given(st.floats(1e-9, 1e3), st.floats(0, 1.5))
def test_they_cover_the_range(top, share):
    budgets = round_budgets(top, share * top)
    assert 1 <= len(budgets) <= 8
    assert budgets == sorted(set(budgets))
    assert budgets[-1] >= top * (1 - 2e-9)
    assert budgets[0] >= share * top * (1 - 2e-9)
    assert all(float(f"{budget:.2g}") == pytest.approx(budget) for budget in budgets)
