"""The summary of a release: its figures, and what is said and what is not."""

import dataclasses
import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from example_tables import funnel, people, quiet_fit

from skprivacy import PrivacyFunnelTransformer, PrivacyReport, design_mechanism
from skprivacy.describing.face_value import never_released
from skprivacy.describing.numbers import Range, limit, shown
from skprivacy.metrics import population_leakage

JOINT = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
COUNTS = [[200, 100, 90], [90, 200, 310]]


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


def secret_of(joint, epsilon=0.02, **options):
    return design_mechanism(joint, epsilon, **options).summary().secrets[None]


class TestExposure:
    def test_it_is_the_range_that_the_budget_allows(self):
        secret = secret_of([[0.255, 0.255], [0.245, 0.245]])
        assert secret.moves()[1].in_words() == "49.0% to between 39.0% and 59.0%"
        assert "49.0% to between 39.0% and 59.0%" in secret.exposure()

    @pytest.mark.parametrize(
        ("ends", "text"),
        [
            ((0.41049, 0.60011), "50.0% to between 41.0% and 60.1%"),
            ((0.1 + 0.2, 0.7), "50.0% to between 30.0% and 70.0%"),  # the last bits do not count
            ((0.4991, 0.5009), "50.00% to between 49.91% and 50.09%"),
            ((0.5, 0.5), "50.00% to the same"),
        ],
    )
    def test_ends_are_rounded_outwards(self, ends, text):
        assert Range(0.5, *ends).in_words() == text

    def test_a_rare_group_is_mentioned(self):
        # kl 0.02 lets 1% become 3.6%.
        joint = np.array([0.01, 0.45, 0.54])[:, None] * np.array([0.3, 0.7])
        assert "group from 1.0% to 3.6%" in secret_of(joint).exposure()

    def test_of_two_groups_the_rarer_one_is_named(self):
        joint = np.array([0.9, 0.1])[:, None] * np.array([0.3, 0.7])
        assert secret_of(joint).most_exposed == 1

    def test_nothing_moves_without_a_budget(self):
        (found, _) = secret_of(JOINT, 0.0).moves()
        assert found.width < 1e-5

    @pytest.mark.parametrize("measure", ["kl", "l1", "chi2", "max_lift", "alpha_lift", "lip"])
    @pytest.mark.parametrize("scope", ["per_output", "average"])
    def test_a_budget_of_zero_is_said_to_move_nothing(self, measure, scope):
        if measure == "lip" and scope == "average":
            return
        counts = pd.DataFrame([[20, 10, 20], [10, 20, 20]])
        summary = design_mechanism(counts, 0, measure=measure, scope=scope).summary()
        text = " ".join(summary.sentences())
        assert "o released value moves the probability of a group." in text
        assert "by more than" not in text
        assert [found.shown() for found in summary.secrets[None].moves()] == ["50.0%", "50.0%"]

    def test_an_average_bounds_no_single_value(self):
        secret = secret_of(JOINT, scope="average")
        assert secret.moves() == secret.moves("reached")
        low = math.floor(1000 * secret.moves()[0].low) / 10
        assert f"between {low}%" in secret.exposure()

    def test_names_only_if_that_is_asked_for(self):
        joint = pd.DataFrame(JOINT, index=["one", "two"])
        secret = secret_of(joint)
        assert "one" not in secret.exposure()
        assert "'one'" in secret.exposure(show_groups=True)


@pytest.fixture(scope="module")
def fitted():
    table = people(600).assign(sex=lambda t: t["sex"].map({"f": "group one", "m": "group two"}))
    return quiet_fit(funnel(0.02), table)


SCENARIOS = {
    "rows": {},
    "average": {"scope": "average"},
    "l1": {"measure": "l1"},
    "confidence": {"confidence": 0.95},
    "distortion": {"utility": "distortion"},
    "two columns": {"columns": ["band", "zip"]},
    "beside": {"beside": ["label"], "epsilon": 0.2},
    "a secret with a name": {"epsilon": {"sex": 0.02}},
    "two secrets": {"epsilon": {"sex": 0.02, "label": 0.05}, "sensitive": ["sex", "label"]},
}


class TestFigures:
    @pytest.mark.parametrize("scenario", SCENARIOS)
    def test_they_are_those_of_the_mechanism(self, scenario):
        fitted = quiet_fit(funnel(**{"epsilon": 0.02} | SCENARIOS[scenario]), people(900))
        mechanism, summary = fitted.mechanism_, fitted.summary_
        assert summary.kept == mechanism.normalized_utility
        assert summary.fidelity.unchanged == fitted.fidelity_.unchanged
        assert summary.secrets.keys() == mechanism.secrets.keys()
        for name, secret in summary.secrets.items():
            own = mechanism.secrets[name]
            assert secret.epsilon == own.epsilon
            assert secret.leakage == own.leakage_in(mechanism.scope)
            if mechanism.confidence is None:
                assert secret.guaranteed == own.epsilon
                pd.testing.assert_frame_equal(secret.ranges, own.posterior_ranges())
            else:
                assert secret.limit == own.leakage_at_most() == secret.guaranteed
                assert (
                    secret.ranges["allowed_high"] <= own.posterior_ranges()["allowed_high"]
                ).all()
        if len(summary.secrets) > 1:
            assert summary.together == mechanism.together.leakage_in(mechanism.scope)

    @pytest.mark.parametrize("scenario", SCENARIOS)
    def test_they_can_be_written_as_json_and_name_no_group(self, scenario):
        table = people(900).assign(
            sex=lambda t: t["sex"].map({"f": "group one", "m": "group two"})
        )
        fitted = quiet_fit(funnel(**{"epsilon": 0.02} | SCENARIOS[scenario]), table)
        text = json.dumps(fitted.summary_.to_dict(), allow_nan=False)
        assert "group one" not in text
        assert "group one" in json.dumps(fitted.summary_.to_dict(show_groups=True))
        for said in (repr(fitted.summary_), str(fitted.summary_), fitted.summary_._repr_html_()):
            assert "group one" not in said

    def test_an_infinite_budget_can_be_written_too(self):
        fitted = quiet_fit(funnel(np.inf), people(300))
        facts = json.loads(json.dumps(fitted.summary_.to_dict(), allow_nan=False))
        assert facts["secrets"][0]["epsilon"] is None
        assert facts["verdict"] == "none"

    def test_a_secret_with_a_name_differs_by_its_name_only(self):
        plain, named = (
            quiet_fit(funnel(epsilon), people(900)).summary_.to_dict()
            for epsilon in (0.02, {"sex": 0.02})
        )
        assert plain["secrets"][0].pop("secret") is None
        assert named["secrets"][0].pop("secret") == "sex"
        assert plain["secrets"] == named["secrets"]

    def test_what_is_not_known_of_a_loaded_one(self, fitted):
        loaded = PrivacyFunnelTransformer.from_json(fitted.to_json())
        summary = loaded.summary_
        (secret,) = summary.secrets.values()
        assert math.isnan(secret.leakage)
        assert (summary.verdict.level, summary.kept) == ("unknown", fitted.summary_.kept)
        assert json.dumps(summary.to_dict(), allow_nan=False)
        assert all(summary.sentences())

    def test_limits_that_are_found_later_do_not_make_a_verdict_better(self):
        fitted = quiet_fit(funnel(0.02), people(300))
        summary = fitted.summary_
        limited = summary.with_limits({None: population_leakage(fitted)})
        assert (summary.status, limited.status) == ("PASS", "CAUTION")
        assert limited.verdict == summary.verdict
        assert limited.secrets[None].limit > 0.02


class TestSentences:
    def test_they_have_the_figures(self):
        mechanism = design_mechanism(JOINT, 0.02)
        text = " ".join(mechanism.sentences())
        for figure in ("epsilon = 0.02", "reached: 0.02", "63.4%", "78.7%", "40.0% to between"):
            assert figure in text

    def test_with_a_confidence_they_are_about_the_population(self):
        mechanism = design_mechanism(COUNTS, 0.1, confidence=0.95)
        text = " ".join(mechanism.sentences())
        shown_limit = limit(mechanism.population_limit.max_leakage)
        for figure in ("95% confidence", "990 rows", f"limit: {shown_limit}"):
            assert figure in text
        assert f"{mechanism.max_leakage:.4g}" in text

    def test_a_confidence_on_average(self):
        mechanism = design_mechanism(COUNTS, 0.1, scope="average", confidence=0.999)
        text = " ".join(mechanism.sentences())
        assert "99.9%" in text
        assert f"limit: {limit(mechanism.population_limit.average_leakage)}" in text

    def test_repr_has_the_range(self):
        assert "40.0% to between" in repr(design_mechanism(JOINT, 0.02))

    def test_groups_are_named_in_the_report_only(self, fitted):
        mechanism = fitted.mechanism_
        for text in (repr(mechanism), mechanism._repr_html_(), fitted._repr_html_()):
            assert "group one" not in text
            assert "group two" not in text
        assert "'group one'" in str(PrivacyReport.from_estimator(fitted))

    def test_more_can_be_kept_than_is(self):
        mechanism = design_mechanism(JOINT, 0.02, solver="watchdog")
        assert "not proven optimal" in mechanism.summary().kept_sentence()
        bound = 0.9 * mechanism.objective.largest(mechanism.p_x)
        mechanism = dataclasses.replace(mechanism, upper_bound=bound)
        assert mechanism.summary().kept_at_most == pytest.approx(0.9)
        assert "90.0%" in mechanism.summary().kept_sentence()

    def test_no_noise_is_told(self):
        assert "without noise" in str(design_mechanism(JOINT, 0.5).summary())
        assert "without noise" not in str(design_mechanism(JOINT, 0.02).summary())


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


class TestNotBetterThanItIs:
    """What is not known, or not covered, never makes a verdict better."""

    def test_a_declared_group_without_rows_counts_as_one_row(self):
        counts = np.array([[10_000, 20_000, 30_000], [10_000, 20_000, 31_000], [0, 0, 0]])
        summary = design_mechanism(counts, 0.02, confidence=0.95).summary()
        assert summary.verdict.level == "none"
        assert summary.verdict.factor > 5

    def test_one_group_with_rows_is_no_verdict(self):
        assert design_mechanism([[10, 20, 30], [0, 0, 0]], 0.02).summary().status == "NO VERDICT"

    def test_smoothed_counts_are_not_the_rows(self):
        rng = np.random.default_rng(0)
        s = rng.integers(2, size=400)
        rows = pd.DataFrame({"s": s, "x": rng.binomial(2, 0.2 + 0.6 * s)})
        fitted = PrivacyFunnelTransformer(0.02, sensitive="s", smoothing=1000).fit(rows)
        reached = fitted.evaluate(rows).max_leakage
        assert reached > 0.5
        assert fitted.summary_.secrets[None].guaranteed == pytest.approx(reached)
        assert fitted.summary_.status == "FAIL"
        assert "In these rows" not in fitted.summary_.secrets[None].revealed()

    def test_bins_are_not_the_values_that_were_cut(self):
        age, job = np.arange(4000) % 200, np.arange(4000) // 200 % 2
        rows = pd.DataFrame({"s": (age % 2) ^ job, "age": age, "job": job})
        summary = PrivacyFunnelTransformer(0.02, sensitive="s").fit(rows).summary_
        assert "age" in summary.coarse
        assert "job" not in summary.coarse

    def test_secrets_that_are_told_together(self):
        rng = np.random.default_rng(0)
        a, b = rng.integers(2, size=(2, 20_000))
        rows = pd.DataFrame({"a": a, "b": b, "x": a ^ b})
        fitted = PrivacyFunnelTransformer(
            {"a": 0.02, "b": 0.02}, sensitive=["a", "b"], columns="x", confidence=0.95
        )
        summary = quiet_fit(fitted, rows).summary_
        assert summary.verdict.level == "strong"
        assert summary.status == "CAUTION"

    def test_little_confidence_is_not_strong(self):
        counts = [[5000, 5000, 5000], [5000, 5000, 5001]]
        levels = [
            design_mechanism(counts, 0.005, measure="l1", scope="per_output", confidence=sure)
            .summary()
            .verdict.level
            for sure in (0.6, 0.95)
        ]
        assert levels == ["moderate", "strong"]

    def test_an_index_that_tells_s_fails(self):
        rows = people(400).sort_values("sex")
        rows.index = pd.Index(np.arange(400) * 7, name="number")
        fitted = quiet_fit(funnel(0.05), rows)
        assert list(fitted.summary_.exceeding) == ["number (the index)"]
        assert fitted.summary_.status == "FAIL"

    def test_smoothing_does_not_hide_a_rare_group(self):
        rng = np.random.default_rng(0)
        rare = rng.random(2000) < 0.02
        education = np.where(rare, rng.choice(3, 2000, p=[0.9, 0.05, 0.05]), rng.choice(3, 2000))
        rows = pd.DataFrame({"s": rare, "x": education})
        fitted = PrivacyFunnelTransformer(0.01, sensitive="s", smoothing=2000).fit(rows)
        reached = fitted.evaluate(rows).sensitive_posterior.max(axis=0)[1] / rare.mean()
        assert reached > 2
        assert fitted.summary_.verdict.factor >= reached * (1 - 1e-9)

    @pytest.mark.parametrize("n_rows", [20, 49, 50])
    def test_few_rows_do_not_hide_a_column_that_tells_s(self, n_rows):
        is_f = np.arange(n_rows) % 2 == 0
        ids = [f"{'F' if f else 'M'}{i}" for i, f in enumerate(is_f)]
        numbers = 100 * is_f + np.random.default_rng(0).normal(size=n_rows)
        rows = pd.DataFrame({"s": is_f, "x": np.arange(n_rows) % 3, "id": ids, "number": numbers})
        fitted = PrivacyFunnelTransformer(
            0.005, sensitive="s", columns="x", remainder="passthrough"
        )
        summary = quiet_fit(fitted, rows).summary_
        assert summary.exceeding == ["number"]
        assert summary.unjudged == ["id"]
        assert summary.status == "FAIL"
