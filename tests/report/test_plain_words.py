"""What a report says where its first lines could be taken for more than they are."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from skprivacy import PrivacyFunnelTransformer, PrivacyReport, design_mechanism
from skprivacy.exceptions import PrivacyLeakWarning
from skprivacy.report.attackers import best_attacker


def people(n=4000):
    """Return rows in which two columns give sex away; a third of them are women."""
    rng = np.random.default_rng(0)
    sex = rng.random(n) < 1 / 3
    return pd.DataFrame({
        "sex": np.where(sex, "f", "m"),
        "work": rng.binomial(12, 0.4 + 0.2 * sex),
        "hours": rng.binomial(40, 0.6 - 0.1 * sex),
    })  # fmt: skip


def report_of(epsilon, **options):
    options = {"sensitive": "sex", "alphabet": "cells"} | options
    fitted = PrivacyFunnelTransformer(epsilon, **options).fit(people())
    return " ".join(str(PrivacyReport.from_estimator(fitted, with_curve=False)).split())


class TestABudgetThatProtectsNothing:
    def test_it_is_told_first_and_nobody_is_to_sign(self):
        with pytest.warns(PrivacyLeakWarning, match="epsilon protects next to nothing"):
            said = report_of(3)
        first = said.partition("Files and columns")[0]
        assert "FAIL: No protection of sex" in first
        assert "Sign under" not in first
        # The budget it names is enough for moderate protection.
        named = float(re.search(r"at most ([\d.]+) about sex for moderate", first)[1])
        assert "PASS: Moderate" in report_of(named, confidence=0.95)
        assert ": Moderate" not in report_of(1.1 * named, confidence=0.95)

    def test_others_are_signed(self):
        first = report_of(0.05, confidence=0.95).partition("Files and columns")[0]
        assert "FAIL" not in first
        assert "Sign under 'Signatures'." in first

    @pytest.mark.parametrize(("epsilon", "is_weak"), [(0.9, False), (1.09, True)])
    def test_certainty_about_the_smaller_group_counts(self, epsilon, is_weak):
        """A third of the rows: to be sure of it takes log(3) = 1.0986."""
        joint = np.array([[0.2, 0.1, 1 / 30], [0.1, 0.3, 8 / 30]])
        assert design_mechanism(joint, epsilon).allows_certainty == is_weak

    def test_a_budget_on_average_says_nothing_of_one_value(self):
        assert not design_mechanism(np.eye(3) / 3, 9.0, scope="average").allows_certainty
        assert design_mechanism(np.eye(3) / 3, 9.0).allows_certainty

    def test_it_is_what_the_ranges_say(self):
        for seed in range(40):
            rng = np.random.default_rng(seed)
            measure = rng.choice(["kl", "l1", "chi2", "max_lift", "lip", "alpha_lift"])
            joint, epsilon = rng.random((3, 4)), float(10 ** rng.uniform(-2, 1))
            options = {"measure": measure, "solver": "randomized_response"}
            found = design_mechanism(joint, epsilon, **options)
            ranges = found.posterior_ranges()
            may_be_sure = ranges["allowed_high"][ranges["prior"] <= 0.5] >= 0.99
            assert found.allows_certainty == may_be_sure.any()


@pytest.fixture(scope="module")
def said():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return report_of(3)


class TestCells:
    def test_values_are_drawn_anew_whatever_the_budget(self, said):
        assert "unchanged, without noise" not in said
        assert re.search(r"randomised work, hours: \d+ symbols", said)

    def test_columns_may_be_read_together_if_they_are_drawn_together(self, said):
        may, _, may_not = said.partition("May not conclude")
        assert "How two columns relate to each other" in may
        assert "Anything about one person from one row" in may_not
        with pytest.warns(PrivacyLeakWarning):
            apart = report_of(3, made_up="column_by_column")
        assert (
            "How the values of work and hours are distributed over many rows, one column at a time"
            in apart
        )
        assert "How two columns relate to each other" in apart.partition("May not conclude")[2]
        assert "How two columns relate to each other" not in report_of(
            0.05, columns=["work"], alphabet="auto"
        )

    def test_the_worst_one_is_described(self, said):
        assert re.search(
            r"reveals most in the rows is '(cell \d+)'.* Rows of '\1': .*(work|hours)", said
        )


def test_the_recipient_is_told_no_shares():
    said = report_of(0.05).partition("What the recipient may and may not conclude")[2]
    said = said.partition("Signatures")[0]
    assert re.search(
        r"no released value moves the probability of a group by more than [\d.]+ points\.", said
    )
    assert "33." not in said


def test_a_guess_that_the_budget_cannot_change():
    joint = np.array([[0.2, 0.1, 0.03], [0.1, 0.3, 0.27]])
    small, large = (design_mechanism(joint, epsilon) for epsilon in (0.02, 0.2))
    small_said, large_said = (best_attacker(m.summary().secrets[None]) for m in (small, large))
    assert "The budget allows no more: whatever is released" in small_said
    assert "its budget allows at most" in large_said
    assert small.attacker_advantage == pytest.approx(0, abs=1e-12)
