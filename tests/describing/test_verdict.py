"""The verdict follows from how far a budget lets probabilities move, and from nothing else."""

import hashlib
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skprivacy import ReleaseSummary, design_mechanism
from skprivacy.describing.numbers import Range, limit, rounded_up
from skprivacy.describing.verdict import LEVELS, Scale, verdict_of
from skprivacy.measures import Measure

MEASURES = ["kl", "l1", "chi2", "max_lift", "alpha_lift", "lip", "parity"]


def two_groups(p, epsilon, measure="kl", **options):
    """Return the verdict on a budget for two groups, whatever the channel is."""
    joint = np.array([[p, p], [1 - p, 1 - p]]) / 2
    return design_mechanism(joint, epsilon, measure=measure, **options).summary().verdict


def sure(p, epsilon, n=10**6, **options):
    """Return the verdict on a release that is known to leak next to nothing."""
    joint = n * np.array([[p, p], [1 - p, 1 - p]]) / 2
    mechanism = design_mechanism(joint, epsilon, confidence=0.95, **options)
    return mechanism.summary().verdict


class TestLevels:
    @pytest.mark.parametrize(
        ("ranges", "level"),
        [
            ([(0.4, 0.35, 0.45), (0.6, 0.55, 0.65)], "strong"),
            ([(0.4, 0.349, 0.45)], "moderate"),
            ([(0.02, 0.0, 0.041)], "moderate"),
            ([(0.4, 0.25, 0.55)], "moderate"),
            ([(0.4, 0.25, 0.551)], "weak"),
            ([(0.02, 0.01, 0.061)], "weak"),
            ([(0.4, 0.1, 0.7)], "weak"),
            ([(0.4, 0.1, 0.701)], "none"),
            ([(0.01, 0.0, 0.06)], "none"),
            ([(0.94, 0.93, 1.0)], "none"),
            ([(0.96, 0.95, 1.0)], "strong"),
            ([(0.05, 0.0, 0.06)], "none"),
            ([(0.049, 0.0, 0.06)], "strong"),
        ],
    )
    def test_points_and_factors(self, ranges, level):
        assert verdict_of([Range(*each) for each in ranges]).level == level

    def test_figures_are_those_of_the_furthest_group(self):
        found = verdict_of([Range(0.5, 0.4, 0.55), Range(0.1, 0.1, 0.19)])
        assert found.points == pytest.approx(0.1)
        assert found.factor == pytest.approx(1.9)


class TestCaps:
    """What a verdict is at best is decided in one place, and only for the better levels."""

    @pytest.mark.parametrize(
        ("scope", "is_sure", "levels"),
        [
            ("per_output", True, ["strong", "moderate", "weak", "none"]),
            ("per_output", False, ["moderate", "moderate", "weak", "none"]),
            ("average", True, ["weak", "weak", "weak", "none"]),
            ("average", False, ["weak", "weak", "weak", "none"]),
        ],
    )
    def test_at_best(self, scope, is_sure, levels):
        moves = [0.05, 0.15, 0.3, 0.35]
        found = [verdict_of([Range(0.5, 0.5 - x, 0.5 + x)], scope, is_sure) for x in moves]
        assert [verdict.level for verdict in found] == levels

    def test_nothing_is_known_without_ranges(self):
        assert verdict_of([]).level == "unknown"

    def test_every_level_and_status_is_documented(self):
        for name in (*LEVELS, "PASS", "CAUTION", "NO VERDICT", "FAIL"):
            assert f'"{name}"' in ReleaseSummary.__doc__


class TestClosedForms:
    @pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.3, 0.59])
    def test_l1_moves_half_a_budget(self, epsilon):
        assert two_groups(0.6, epsilon, "l1").points == pytest.approx(epsilon / 2, abs=1e-8)

    @pytest.mark.parametrize("epsilon", [0.05, 0.2])
    def test_chi2_moves_a_standard_deviation(self, epsilon):
        expected = epsilon * math.sqrt(0.3 * 0.7)
        assert two_groups(0.3, epsilon, "chi2").points == pytest.approx(expected, abs=1e-8)

    def test_max_lift_is_the_factor(self):
        found = two_groups(0.3, math.log(1.4), "max_lift")
        assert found.factor == pytest.approx(1.4, abs=1e-6)

    @pytest.mark.parametrize("p", [0.2, 0.5])
    def test_kl_reaches_its_budget(self, p):
        points = two_groups(p, 0.02).points
        a = p + points
        leaks = a * math.log(a / p) + (1 - a) * math.log((1 - a) / (1 - p))
        assert leaks == pytest.approx(0.02, rel=1e-6)

    def test_kl_at_the_largest_move_of_a_rare_group(self):
        """A group of 1% may become six times as likely at 0.0588: points alone say nothing."""
        found = two_groups(0.01, 0.0588)
        assert found.factor == pytest.approx(6, abs=0.01)
        assert found.points < 0.051
        assert found.level == "none"

    def test_the_exact_threshold_is_within(self):
        assert sure(0.5, 0.1, measure="l1").level == "strong"
        assert two_groups(0.5, 0.3, "l1").level == "moderate"
        assert two_groups(0.5, 0.6, "l1").level == "weak"
        assert two_groups(0.5, 0.601, "l1").level == "none"


class TestWhatItIsAbout:
    def test_rows_alone_are_at_best_moderate(self):
        assert two_groups(0.5, 1e-6).level == "moderate"
        assert sure(0.5, 1e-3).level == "strong"

    def test_what_is_allowed_counts_and_not_what_is_reached(self):
        joint = np.array([[0.17, 0.17], [0.33, 0.33]])  # X says nothing about S
        mechanism = design_mechanism(joint, 0.5)
        assert mechanism.max_leakage == pytest.approx(0, abs=1e-12)
        assert mechanism.summary().verdict.level == "none"
        assert mechanism.summary().status == "FAIL"

    def test_with_a_confidence_the_limit_counts(self):
        mechanism = design_mechanism(
            10**6 * np.array([[0.17, 0.17], [0.33, 0.33]]), 0.5, confidence=0.95
        )
        (secret,) = mechanism.summary().secrets.values()
        assert secret.guaranteed == secret.limit < 0.5
        assert secret.verdict.level == "strong"

    def test_hardly_any_confidence_is_none(self):
        counts = 10**6 * np.array([[0.17, 0.17], [0.33, 0.33]])
        found = design_mechanism(counts, 0.5, confidence=0.4).summary()
        assert found.secrets[None].guaranteed == 0.5
        assert found.verdict.level == "none"

    def test_on_average_it_is_at_best_weak(self):
        assert two_groups(0.5, 1e-6, scope="average").level == "weak"
        joint = np.array([[0.5, 0], [0, 0.5]])
        assert design_mechanism(joint, 0.6, scope="average").summary().verdict.level == "none"

    def test_the_worst_secret_counts(self):
        one, other = [[0.2, 0.2], [0.3, 0.3]], [[0.3, 0.3], [0.2, 0.2]]
        mechanism = design_mechanism({"a": one, "b": other}, {"a": 0.001, "b": 0.09})
        found = mechanism.summary()
        assert [each.verdict.level for each in found.secrets.values()] == ["moderate", "weak"]
        assert found.verdict == found.secrets["b"].verdict

    def test_a_single_group_is_unknown(self):
        found = design_mechanism([[0.5, 0.5]], 0.02).summary()
        assert (found.verdict.level, found.status) == ("unknown", "NO VERDICT")

    def test_a_measure_that_is_not_known_to_be_monotone_is_unknown(self):
        class Own(Measure):
            def value(self, posterior, prior):
                return np.abs(posterior - prior).sum(axis=-1)

            def subgradient(self, posterior, prior):
                return np.sign(posterior - prior)

            def threshold(self, epsilon):
                return epsilon

            def inverse(self, value):
                return value

        assert two_groups(0.5, 0.1, Own()).level == "unknown"


@given(
    st.sampled_from(MEASURES),
    st.lists(st.floats(0.01, 1), min_size=2, max_size=5),
    st.floats(1e-4, 2),
    st.floats(0, 1),
)
def test_a_smaller_budget_is_never_worse(measure, weights, epsilon, share):
    prior = np.array(weights) / np.sum(weights)
    joint = prior[:, None] * np.array([0.5, 0.5])
    options = {"measure": measure, "solver": "randomized_response"}
    levels = [
        LEVELS.index(design_mechanism(joint, each, **options).summary().verdict.level)
        for each in (share * epsilon, epsilon)
    ]
    assert levels[0] <= levels[1]


class TestOutwards:
    @given(st.floats(1e-9, 100))
    def test_a_limit_is_never_shown_smaller(self, leakage):
        assert float(limit(leakage)) >= leakage * (1 - 1e-7)
        assert float(limit(leakage)) <= leakage * 1.0011

    @given(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)))
    def test_ranges_are_never_shown_narrower(self, ends):
        low, prior, high = sorted(ends)
        shown = [float(end[:-1]) for end in Range(prior, low, high).ends()]
        assert shown[0] <= 100 * low + 1e-6
        assert shown[1] >= 100 * high - 1e-6
        assert shown[1] - shown[0] <= 100 * (high - low) + 0.2001

    def test_rounding_of_the_last_bits_is_not_shown(self):
        assert rounded_up(5 + 1e-9, 1) == "5.0"
        assert limit(0.02 * (1 + 1e-9)) == "0.02"


OWN_SCALE = {
    "name": "Example Office",
    "strong": {"points": 1, "times": 1.2},
    "moderate": {"points": 3, "times": 1.5},
    "weak": {"points": 8, "times": 2},
}


class TestScale:
    @pytest.fixture
    def write(self, tmp_path):
        def write(**changes):
            path = tmp_path / "scale.json"
            path.write_text(json.dumps(OWN_SCALE | changes))
            return path

        return write

    @pytest.mark.parametrize(
        ("width", "own", "default"),
        [
            (0.005, "strong", "strong"),
            (0.02, "moderate", "strong"),
            (0.06, "weak", "moderate"),
            (0.1, "none", "moderate"),
        ],
    )
    def test_it_decides(self, write, width, own, default):
        ranges = [Range(0.5, 0.5 - width, 0.5 + width)]
        assert verdict_of(ranges, scale=Scale.from_file(write())).level == own
        assert verdict_of(ranges).level == default

    def test_certainty_is_no_protection_on_any_scale(self, write):
        lenient = {
            level: {"points": 100, "times": 1000} for level in ("strong", "moderate", "weak")
        }
        scale = Scale.from_file(write(**lenient))
        assert verdict_of([Range(0.5, 0.4, 1.0)], scale=scale).level == "none"
        assert verdict_of([Range(0.5, 0.0, 0.6)], scale=scale).level == "none"
        assert verdict_of([Range(0.5, 0.1, 0.9)], "average", scale=scale).level == "weak"

    def test_the_hash_is_that_of_the_file(self, write):
        path = write()
        scale = Scale.from_file(path)
        assert scale.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
        assert not scale.is_default
        assert "moves by more than 1 point or" in scale.in_words()

    @pytest.mark.parametrize(
        "changes",
        [
            {"name": ""},
            {"strong": {"points": 5}},
            {"strong": {"points": 5, "times": 2}},  # more than moderate allows
            {"weak": {"points": 8, "times": 1.4}},
            {"weak": {"points": 101, "times": 2}},
            {"weak": {"points": True, "times": 2}},
            {"weak": {"points": 8, "times": float("nan")}},
            {"weak": {"points": 8, "times": float("inf")}},
            {"strong": {"points": 0, "times": 1}},
            {"other": 1},
        ],
        ids=str,
    )
    def test_what_is_no_scale_is_refused(self, write, changes):
        with pytest.raises(ValueError, match="is not a scale of verdicts"):
            Scale.from_file(write(**changes))

    def test_a_summary_shows_both(self, write):
        joint = [[200, 100, 90], [90, 200, 310]]
        summary = design_mechanism(joint, 0.02, confidence=0.95).summary()
        own = summary.on_scale(Scale.from_file(write()))
        assert (summary.status, own.status) == ("PASS", "FAIL")
        assert own.to_dict()["on_default_scale"] == {"status": "PASS", "verdict": "moderate"}
        assert own.scale.sha256 in own.by_default()
        assert "the verdict is moderate (PASS)" in str(own)
        assert summary.by_default() == ""
        assert "on_default_scale" not in summary.to_dict()
