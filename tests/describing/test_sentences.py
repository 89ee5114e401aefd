"""What is said about a mechanism, and what is not."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from example_tables import funnel, people, quiet_fit

from skprivacy import Mechanism, PrivacyReport, design_mechanism
from skprivacy.describing import exposure, most_exposed, never_released, ranges_of, shown

JOINT = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
COUNTS = [[200, 100, 90], [90, 200, 310]]


def ranges(prior, low, high):
    columns = {"prior": prior, "allowed_low": low, "allowed_high": high}
    columns |= {"reached_low": prior, "reached_high": prior}
    return pd.DataFrame(columns)


class TestNeverReleased:
    @pytest.fixture
    def constant(self):
        return design_mechanism([[0.3, 0.2, 0], [0.5, 0, 0]], 0, utility="guess").fidelity()

    def test_values_that_occur_and_are_never_released(self, constant):
        assert constant.never_released.to_dict("records") == [
            {"column": "X", "value": 1, "rows": pytest.approx(0.2), "is_rare": False}
        ]
        assert never_released(constant) == ["Never released: '1'."]
        assert never_released(design_mechanism(JOINT, 9).fidelity()) == []

    def test_a_dozen_is_named_and_nothing_rare(self, constant):
        values = pd.DataFrame({"column": "X", "value": range(20), "is_rare": [True, False] * 10})
        (text,) = never_released(replace(constant, never_released=values))
        assert text.startswith("Never released: '1', '3', ")
        assert text.endswith(", '19' and 10 more.")
        (text,) = never_released(replace(constant, never_released=values[::2]))
        assert text == "Never released: 10 rare values."
        two = pd.concat([constant.columns] * 2)
        (text,) = never_released(replace(constant, never_released=values[1:2], columns=two))
        assert text == "Never released: '1' (X)."


class TestExposure:
    def test_it_is_the_range_that_the_budget_allows(self):
        mechanism = design_mechanism([[0.255, 0.255], [0.245, 0.245]], 0.02)
        expected = "the most exposed group from 49.0% to between 39.0% and 59.0%, at most"
        assert expected in exposure(mechanism.posterior_ranges())

    def test_ends_are_rounded_outwards(self):
        (found,) = ranges_of(ranges([0.5], [0.41049], [0.60011]))
        assert found.in_words() == "50.0% to between 41.0% and 60.1%"

    def test_rounding_of_the_last_bits_is_not_a_reason_to_show_more(self):
        (found,) = ranges_of(ranges([0.5], [0.1 + 0.2], [0.7]))
        assert found.in_words() == "50.0% to between 30.0% and 70.0%"

    def test_a_rare_group_is_mentioned(self):
        # kl 0.02 lets 1% become 3.6%.
        joint = np.array([0.01, 0.45, 0.54])[:, None] * np.array([0.3, 0.7])
        text = exposure(design_mechanism(joint, 0.02).posterior_ranges())
        assert text.endswith(
            ", and that of a group of 1.0% to 3.6%, at most, if groups have the same shares as here."
        )

    def test_of_two_groups_the_rarer_one_is_named(self):
        found = ranges_of(ranges([0.99, 0.01], [0.96, 0.0], [1.0, 0.04]))
        assert most_exposed(found) == 1

    def test_a_small_move_is_shown_with_more_digits(self):
        (found,) = ranges_of(ranges([0.5], [0.4991], [0.5009]))
        assert found.in_words() == "50.00% to between 49.91% and 50.09%"

    def test_nothing_moves_without_a_budget(self):
        text = exposure(design_mechanism(JOINT, 0.0).posterior_ranges())
        assert text == "No released value moves the probability of any group."

    def test_an_average_bounds_no_single_value(self):
        mechanism = design_mechanism(JOINT, 0.02, scope="average")
        low = mechanism.posterior_ranges()["reached_low"][0]
        text = exposure(mechanism.posterior_ranges())
        assert f"between {math.floor(1000 * low) / 10}%" in text
        assert text.endswith("the budget, being an average, bounds no single one.")

    def test_names_only_if_they_are_given(self):
        found = ranges([0.9, 0.1], [0.8, 0.0], [1.0, 0.2])
        assert "the probability of b from 10.0%" in exposure(found, ["a", "b"])


@pytest.fixture(scope="module")
def fitted():
    table = people(600).assign(sex=lambda t: t["sex"].map({"f": "group one", "m": "group two"}))
    return quiet_fit(funnel(0.02), table)


class TestMechanism:
    def test_three_sentences(self):
        leak, kept, face_value = design_mechanism(JOINT, 0.02).sentences()
        assert "at most epsilon = 0.02 about S (kl; reached: 0.02)" in leak
        assert "the most exposed group from 40.0% to between" in leak
        assert kept.startswith("It keeps 63.4% of the information in X; no mechanism")
        assert face_value.startswith(
            "Taken at face value, 78.7% of the rows keep their values; 45%"
        )

    def test_without_its_joint_the_budget_is_a_claim(self):
        text = design_mechanism(JOINT, 0.02).to_json(include_joint=False)
        leak, *_ = Mechanism.from_json(text).sentences()
        assert leak.endswith("(kl; as its file claims).")

    def test_with_a_confidence_they_are_about_the_population(self):
        mechanism = design_mechanism(COUNTS, 0.1, confidence=0.95)
        leak, kept, _ = mechanism.sentences(s_name="sex")
        limit = mechanism.population_limit.max_leakage
        assert leak.startswith(
            f"In the population that the rows of the design are from, each released value reveals "
            f"at most epsilon = 0.1 about sex, with 95% confidence, from 990 rows (kl; limit: "
            f"{limit:.4g}; in these rows: {mechanism.max_leakage:.4g})."
        )
        assert "no mechanism within the budget, for the rows alone, keeps more than" in kept
        assert "in these rows: " in mechanism._repr_html_()
        shipped = Mechanism.from_json(mechanism.to_json(include_joint=False))
        assert shipped.sentences()[0].endswith("from 990 rows (kl; as its file claims).")

    def test_a_confidence_on_average(self):
        mechanism = design_mechanism(COUNTS, 0.1, scope="average", confidence=0.999)
        limit = mechanism.population_limit.average_leakage
        leak, *_ = mechanism.sentences()
        assert (
            "released values reveal at most epsilon = 0.1 about S on average, with 99.9%" in leak
        )
        assert f"limit: {limit:.4g}" in leak

    def test_repr_has_the_range(self):
        assert "most exposed group from 40.0% to between" in repr(design_mechanism(JOINT, 0.02))

    def test_groups_are_named_in_the_report_only(self, fitted):
        mechanism = fitted.mechanism_
        for text in (repr(mechanism), mechanism._repr_html_(), fitted._repr_html_()):
            assert "group one" not in text
            assert "group two" not in text
        assert "'group one'" in str(PrivacyReport.from_estimator(fitted))
        assert set(mechanism.posterior_ranges().index) == {"group one", "group two"}

    def test_more_can_be_kept_than_is(self):
        mechanism = design_mechanism(JOINT, 0.02, solver="watchdog")
        most = f"{mechanism.normalized_upper_bound:.1%}"
        assert most == "100.0%"
        assert (
            mechanism.sentences()[1]
            == "It keeps 56.1% of the information in X: not proven optimal."
        )
        mechanism = mechanism.changed(upper_bound=0.9 * mechanism.objective.largest(mechanism.p_x))
        said = "No mechanism within the budget keeps more than 90.0%: not proven optimal."
        assert mechanism.sentences()[1].endswith(said)
        assert not mechanism.is_certified
        assert design_mechanism(JOINT, 0.02).is_certified


class TestNotebook:
    def test_the_channel_is_a_table(self):
        joint = pd.DataFrame(JOINT, columns=["<a>", "b", ("c", None)])
        html = design_mechanism(joint, 0.02)._repr_html_()
        assert html.count("<tr>") == 4
        assert "&lt;a&gt;" in html
        assert "<a>" not in html
        assert "c, missing" in html

    def test_a_large_channel_shows_its_most_frequent_symbols(self):
        joint = np.random.default_rng(0).random((2, 40))
        html = design_mechanism(joint, 0.001)._repr_html_()
        assert html.count("<tr>") == 13
        assert "for the most frequent ones" in html

    def test_a_transformer_shows_it_under_its_diagram(self, fitted):
        html = fitted._repr_html_()
        assert "sk-top-container" in html
        assert html.index("sk-top-container") < html.index("Taken at face value")
        assert "of the information in band" in html

    def test_one_that_is_not_fitted_shows_the_diagram_only(self):
        assert "skprivacy-mechanism" not in funnel()._repr_html_()

    def test_nothing_is_designed_for_it(self):
        streamed = funnel().partial_fit(people(200))
        assert "skprivacy-mechanism" not in streamed._repr_html_()
        assert streamed.mechanism_ is not None
        assert "skprivacy-mechanism" in streamed._repr_html_()
        assert "skprivacy-mechanism" not in streamed.set_params(epsilon=0.5)._repr_html_()


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("a", "'a'"),
        (("a", None, 3), "'a, missing, 3'"),
        ("x" * 80 + "y", repr("x" * 29 + "..." + "x" * 27 + "y")),
        (None, "'missing'"),
    ],
)
def test_labels(label, text):
    assert shown(label) == text
