"""Designs whose budget holds for the population: what they promise, and to whom."""

import json
import warnings
from dataclasses import replace
from fractions import Fraction
from zlib import crc32

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from skprivacy import (
    FiniteSampleWarning,
    Mechanism,
    PrivacyFunnelTransformer,
    compare_mechanisms,
    design_mechanism,
    privacy_utility_path,
)
from skprivacy.budgets import mechanism_for_utility, rows_needed
from skprivacy.metrics import population_leakage
from skprivacy.releasing.sampler import integer_boundaries, sampled_channel
from skprivacy.utilities import Distortion, Target

JOINT = np.array([[0.20, 0.10, 0.06, 0.04], [0.10, 0.15, 0.20, 0.15]])
COUNTS = np.random.default_rng(3).multinomial(2000, JOINT.ravel()).reshape(2, 4)


@pytest.fixture(scope="module")
def mechanism():
    return design_mechanism(COUNTS, 0.02, confidence=0.95)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    s, x = np.divmod(rng.choice(8, size=2000, p=JOINT.ravel()), 4)
    return pd.DataFrame({"s": np.array(["f", "m"])[s], "x": np.array(list("abcd"))[x]})


def random_counts(shape, n_rows, seed):
    rng = np.random.default_rng(seed)
    joint = rng.random(shape)
    return rng.multinomial(n_rows, joint.ravel() / joint.sum()).reshape(shape)


class TestSearch:
    def test_many_groups_and_symbols_keep_most(self):
        # Where programs ended early, this design kept a quarter of it.
        counts = random_counts((3, 60), 20_000, seed=2)
        assert design_mechanism(counts, 0.02, confidence=0.95).normalized_utility > 0.7

    def test_something_is_kept_where_no_program_is_feasible_for_the_limits_that_judge(self):
        seed = crc32(b"2x40"), 6  # one of a hundred such tables
        joint = np.random.default_rng(seed).dirichlet(np.ones(80))
        drawn = np.random.default_rng((*seed, 300)).multinomial(300, joint)
        kept = design_mechanism(drawn.reshape(2, 40), 0.02, confidence=0.95)
        assert kept.normalized_utility > 0.1


class TestMechanism:
    def test_the_limit_is_within_the_budget_and_the_rows_leak_less(self, mechanism):
        limit = mechanism.population_limit
        assert mechanism.max_leakage < limit.max_leakage <= 0.02
        assert limit.max_leakage > 0.018  # nothing is given away
        assert (limit.per_output >= mechanism.leakage).all()
        assert limit.max_leakage >= limit.per_output.max()
        with pytest.raises(ValueError, match="read-only"):
            limit.per_output.iloc[0] = 0.0
        assert (limit.confidence, limit.n_samples) == (0.95, 2000)
        assert 0 < mechanism.utility < design_mechanism(COUNTS, 0.02).utility

    def test_the_report_of_the_population_agrees(self, mechanism):
        assert population_leakage(mechanism).max_leakage == mechanism.population_limit.max_leakage

    def test_the_same_counts_give_the_same_mechanism(self, mechanism):
        again = design_mechanism(COUNTS, 0.02, confidence=0.95)
        assert (again.channel == mechanism.channel).all()

    def test_the_integers_of_the_sampler_keep_the_limit(self, mechanism):
        sampled = sampled_channel(integer_boundaries(mechanism.channel))
        assert mechanism.excess(sampled) <= 0

    def test_it_cannot_be_made_with_a_channel_that_only_keeps_the_budget_for_the_rows(self):
        plug_in = design_mechanism(COUNTS, 0.02)
        with pytest.raises(ValueError, match=r"in the population it may be 0\.\d+, with a confid"):
            replace(plug_in.secrets[None], confidence=0.95, n_samples=2000)

    def test_json_keeps_what_it_claims_and_checks_it(self, mechanism):
        again = Mechanism.from_json(mechanism.to_json())
        assert (again.confidence, again.n_samples) == (0.95, 2000)
        assert again.population_limit.max_leakage == mechanism.population_limit.max_leakage
        shipped = Mechanism.from_json(mechanism.to_json(include_joint=False))
        assert (shipped.confidence, shipped.n_samples) == (0.95, 2000)
        with pytest.raises(AttributeError, match="without its joint"):
            _ = shipped.population_limit

    @pytest.mark.parametrize(
        ("key", "value", "match"),
        [
            ("n_samples", 300, "The channel breaks its budget"),
            ("confidence", 0.999, "The channel breaks its budget"),
            ("confidence", 1.5, r"range \(0, 1\)"),
            ("n_samples", None, "n_samples"),
        ],
    )
    def test_an_edited_file_is_refused(self, mechanism, key, value, match):
        fields = {"confidence": mechanism.confidence, "n_samples": mechanism.n_samples}
        with pytest.raises((ValueError, TypeError), match=match):
            replace(mechanism.secrets[None], **(fields | {key: value}))

    def test_an_edited_text_is_refused(self, mechanism):
        document = json.loads(mechanism.to_json())
        document["n_samples"] = 300.0
        with pytest.raises(ValueError, match="checksum|breaks its budget"):
            Mechanism.from_json(json.dumps(document))

    def test_symbols_without_rows_must_say_nothing(self):
        counts = np.insert(COUNTS, 1, 0, axis=1)
        made = design_mechanism(counts, 5.0, confidence=0.95)
        channel = made.channel.copy()
        channel[1] = np.eye(channel.shape[1])[0]
        with pytest.raises(ValueError, match="symbols of X without rows must be drawn from P"):
            replace(made.secrets[None], y_given_x=made.y_given_x.with_matrix(channel))

    def test_numbers_become_floats(self):
        made = design_mechanism(COUNTS, 0.02, confidence=Fraction(19, 20), n_samples=np.int64(9))
        assert (type(made.confidence), type(made.n_samples)) == (float, float)

    def test_repr_says_both(self, mechanism):
        assert "max_leakage=" in repr(mechanism)
        assert "with confidence=0.95 from 2000 rows" in repr(mechanism)


class TestDesign:
    def test_probabilities_need_to_know_how_many_rows_they_are_from(self, mechanism):
        shares = COUNTS / COUNTS.sum()
        same = design_mechanism(shares, 0.02, confidence=0.95, n_samples=2000)
        np.testing.assert_allclose(same.channel, mechanism.channel, atol=1e-9)
        with pytest.raises(ValueError, match="'n_samples' parameter of design_mechanism is neede"):
            design_mechanism(shares, 0.02, confidence=0.95)

    def test_rows_that_count_less_than_one_each(self, mechanism):
        assert design_mechanism(COUNTS, 0.02, confidence=0.95, n_samples=500).utility < (
            mechanism.utility
        )

    @pytest.mark.parametrize("confidence", [0, 1, -1, 1.5, np.nan, 0.99999])
    def test_confidences_that_make_no_sense(self, confidence):
        with pytest.raises(ValueError, match="'confidence' parameter of design_mechanism"):
            design_mechanism(COUNTS, 0.02, confidence=confidence)

    @pytest.mark.parametrize("n_samples", [0, -3, np.inf, np.nan])
    def test_numbers_of_rows_that_make_no_sense(self, n_samples):
        with pytest.raises(ValueError, match="'n_samples' parameter of design_mechanism"):
            design_mechanism(COUNTS, 0.02, confidence=0.95, n_samples=n_samples)

    def test_rows_without_a_confidence_are_a_mistake(self):
        with pytest.raises(ValueError, match="None where there is no confidence"):
            design_mechanism(COUNTS, 0.02, n_samples=2000)

    @pytest.mark.parametrize("text", ["0.95", True])
    def test_confidences_of_another_type(self, text):
        with pytest.raises(TypeError, match="'confidence' parameter"):
            design_mechanism(COUNTS, 0.02, confidence=text)

    def test_a_higher_confidence_keeps_less(self):
        kept = [design_mechanism(COUNTS, 0.02, confidence=c).utility for c in (0.5, 0.95, 0.999)]
        assert kept == sorted(kept, reverse=True)

    def test_more_rows_keep_more_up_to_what_the_joint_allows(self):
        kept = [
            design_mechanism(JOINT, 0.02, confidence=0.95, n_samples=n).utility
            for n in (100, 1000, 10_000, 1e8)
        ]
        assert kept == sorted(kept)
        best = design_mechanism(JOINT, 0.02).utility
        assert 0.99 * best < kept[-1] <= best

    @pytest.mark.parametrize("scope", ["per_output", "average"])
    @pytest.mark.parametrize(
        ("measure", "epsilon"),
        [("kl", 0.02), ("l1", 0.2), ("chi2", 0.2), ("max_lift", 0.2), ("alpha_lift", 0.05),
         ("parity", 0.15)],
    )  # fmt: skip
    def test_every_measure(self, measure, epsilon, scope):
        made = design_mechanism(COUNTS, epsilon, measure=measure, scope=scope, confidence=0.95)
        assert made.leakage_in(scope) < made.population_limit.leakage_in(scope) <= epsilon
        assert made.normalized_utility > 0.2

    def test_a_measure_without_an_average(self):
        made = design_mechanism(COUNTS, 0.3, measure="lip", confidence=0.95)
        assert made.max_leakage < made.population_limit.max_leakage <= 0.3
        assert np.isnan(made.population_limit.average_leakage)
        assert made.normalized_utility > 0.2

    @pytest.mark.parametrize(
        "utility",
        ["guess", Distortion("positions"), Target([[5, 3, 2, 1], [1, 2, 3, 5]])],
        ids=["guess", "distortion", "target"],
    )
    def test_every_utility(self, utility):
        made = design_mechanism(COUNTS, 0.02, utility=utility, confidence=0.95)
        plug_in = design_mechanism(COUNTS, 0.02, utility=utility)
        assert made.population_limit.max_leakage <= 0.02
        assert 0.5 * plug_in.normalized_utility < made.normalized_utility
        assert made.utility <= plug_in.utility + 1e-9

    def test_a_named_solver_gets_a_smaller_budget(self, mechanism):
        made = design_mechanism(COUNTS, 0.02, solver="optimal", confidence=0.95)
        assert made.solver == "optimal"
        assert made.population_limit.max_leakage <= 0.02
        assert made.max_leakage < 0.02 / 1.2
        # What "auto" does instead is at least as good, but for the steps of either search.
        assert mechanism.utility > 0.97 * made.utility

    def test_fewer_outputs(self):
        made = design_mechanism(COUNTS, 0.02, confidence=0.95, max_outputs=2)
        assert len(made.p_y) <= 2
        assert made.population_limit.max_leakage <= 0.02

    @pytest.mark.parametrize("epsilon", [0.02, 5.0, np.inf])
    def test_symbols_without_rows_say_nothing(self, epsilon):
        counts = np.insert(COUNTS, 1, 0, axis=1)
        made = design_mechanism(counts, epsilon, confidence=0.95)
        np.testing.assert_allclose(made.channel[1], made.p_y, atol=1e-12)
        assert made.population_limit.max_leakage <= epsilon

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("epsilon", [0.0, 5.0, np.inf])
    def test_budgets_at_the_ends(self, epsilon):
        made = design_mechanism(COUNTS, epsilon, confidence=0.95)
        assert made.normalized_utility == pytest.approx(0 if epsilon == 0 else 1, abs=1e-9)

    def test_one_group_has_nothing_to_hide(self):
        made = design_mechanism(COUNTS[:1], 0.0, confidence=0.95)
        assert made.normalized_utility == pytest.approx(1)

    def test_a_path_never_keeps_less_with_a_larger_budget(self):
        epsilons = [0.0, 0.005, 0.02, 0.1, 3.0]
        path = privacy_utility_path(COUNTS, epsilons, confidence=0.95)
        assert all(m.population_limit.max_leakage <= m.epsilon + 1e-12 for m in path)
        assert [m.utility for m in path] == sorted(m.utility for m in path)

    @pytest.mark.parametrize("utility", ["mutual_information", Distortion("positions")])
    def test_a_path_is_as_high_as_designs_alone(self, utility):
        counts = np.random.default_rng(0).multinomial(3000, np.full(18, 1 / 18)).reshape(3, 6)
        counts[0, :3] += 200
        options = {"utility": utility, "confidence": 0.95}
        path = privacy_utility_path(counts, (epsilons := [0.01, 0.03, 0.1]), **options)
        alone = [design_mechanism(counts, epsilon, **options) for epsilon in epsilons]
        gains = [
            p.normalized_utility - a.normalized_utility for p, a in zip(path, alone, strict=True)
        ]
        assert min(gains) > -0.01
        assert np.mean(gains) > -0.002
        for mechanism in path:
            limit = population_leakage(mechanism).max_leakage
            assert limit == mechanism.population_limit.max_leakage
            assert limit <= mechanism.epsilon * (1 + 1e-9)

    def test_a_released_design_knows_of_no_path(self, mechanism):
        privacy_utility_path(COUNTS, [0.01, 0.02], confidence=0.95)
        again = design_mechanism(COUNTS, 0.02, confidence=0.95)
        assert (again.channel == mechanism.channel).all()

    def test_the_budget_for_a_utility_is_designed_alone(self):
        found = mechanism_for_utility(COUNTS, 0.5, confidence=0.95)
        alone = design_mechanism(COUNTS, found.epsilon, confidence=0.95)
        assert found.normalized_utility >= 0.5 - 1e-9
        assert (found.channel == alone.channel).all()

    def test_the_smallest_budget_for_a_utility(self):
        made = mechanism_for_utility(COUNTS, 0.6, confidence=0.95)
        assert made.normalized_utility >= 0.6 - 1e-9
        assert made.population_limit.max_leakage <= made.epsilon
        assert design_mechanism(COUNTS, 0.8 * made.epsilon, confidence=0.95).utility < (
            made.utility
        )
        assert made.epsilon > mechanism_for_utility(COUNTS, 0.6).epsilon

    def test_solvers_side_by_side(self):
        table = compare_mechanisms(
            COUNTS, [0.02], ["auto", "watchdog", "randomized_response"], confidence=0.95
        )
        assert (table["population_limit"] <= 0.02).all()
        assert (table["leakage"] <= table["population_limit"]).all()
        assert table["utility"].idxmax() == 0
        assert "population_limit" not in compare_mechanisms(COUNTS, [0.02], ["watchdog"])


class TestFewRows:
    def test_says_that_rows_are_what_is_missing(self):
        with pytest.warns(FiniteSampleWarning, match="rows_needed"):
            made = design_mechanism([[3, 2], [2, 3]], 0.001, confidence=0.95)
        assert made.population_limit.max_leakage <= 0.001

    def test_a_group_without_rows_may_merely_be_rare(self):
        counts = np.vstack([COUNTS, np.zeros(4)])
        with pytest.warns(FiniteSampleWarning, match="too few rows"):
            design_mechanism(counts, 0.02, measure="max_lift", confidence=0.95)
        made = design_mechanism(counts, 0.02, confidence=0.95)  # kl: a rare group matters less
        assert made.population_limit.max_leakage <= 0.02
        assert made.normalized_utility > 0.5

    def test_fewer_rows_than_groups(self):
        with pytest.warns(FiniteSampleWarning, match="too few rows"):
            made = design_mechanism([[1, 1], [0, 0], [0, 0]], 0.001, confidence=0.95)
        assert made.population_limit.max_leakage <= 0.001

    def test_rows_needed_are_enough_and_not_far_too_many(self):
        enough = rows_needed(JOINT, 0.02, 0.5)
        kept = [
            design_mechanism(JOINT, 0.02, confidence=0.95, n_samples=n).normalized_utility
            for n in (enough / 1.6, 1.1 * enough)
        ]
        assert kept[0] < 0.5 <= kept[1]

    def test_a_budget_of_zero_takes_no_number_of_rows(self):
        joint = np.full((2, 3), 1 / 6)
        with pytest.raises(ValueError, match=r"epsilon=0 keeps 0 from 1,000,000,000 rows"):
            rows_needed(joint, 0.0, 0.4)

    def test_a_budget_that_allows_nothing_is_not_blamed_on_rows(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error", FiniteSampleWarning)
            design_mechanism([[5e8, 0], [0, 5e8]], 1e-6, confidence=0.95)
            design_mechanism(COUNTS, 0.02, confidence=0.95, max_outputs=1)

    def test_more_than_the_joint_allows_takes_no_number_of_rows(self):
        with pytest.raises(ValueError, match="is 0.95, which no number of rows allows: epsilon=0"):
            rows_needed(JOINT, 0.02, 0.95)


class TestTransformer:
    def test_fit_designs_for_the_population(self, frame):
        funnel = PrivacyFunnelTransformer(0.02, sensitive="s", confidence=0.95).fit(frame)
        mechanism = funnel.mechanism_
        assert (mechanism.confidence, mechanism.n_samples) == (0.95, 2000)
        assert mechanism.population_limit.max_leakage <= 0.02
        assert population_leakage(funnel).max_leakage == mechanism.population_limit.max_leakage
        assert set(funnel.transform(frame)["x"]) <= set("abcd")
        loaded = PrivacyFunnelTransformer.from_json(funnel.to_json())
        assert (loaded.confidence, loaded.mechanism_.n_samples) == (0.95, 2000)

    def test_batches_are_the_same_as_one_fit(self, frame):
        whole = PrivacyFunnelTransformer(0.02, sensitive="s", confidence=0.95).fit(frame)
        parts = PrivacyFunnelTransformer(0.02, sensitive="s", confidence=0.95)
        for start in range(0, len(frame), 500):
            parts.partial_fit(frame.iloc[start : start + 500])
        assert (parts.mechanism_.channel == whole.mechanism_.channel).all()

    def test_another_confidence_is_another_design_for_batches(self, frame):
        parts = PrivacyFunnelTransformer(0.02, sensitive="s").partial_fit(frame)
        plug_in = parts.mechanism_.utility
        assert parts.set_params(confidence=0.95).mechanism_.utility < plug_in

    def test_a_group_that_is_declared_may_merely_be_rare(self, frame):
        declared = ["none yet", *sorted(set(frame["s"])), "nobody"]
        frame = frame.assign(s=pd.Categorical(frame["s"], categories=declared))
        funnel = PrivacyFunnelTransformer(0.02, sensitive="s", confidence=0.95)
        mechanism = funnel.fit(frame).mechanism_
        assert mechanism.s_labels == tuple(declared)
        assert (mechanism.p_sx.sum(axis=1)[[0, -1]] == 0).all()
        counts = len(frame) * mechanism.p_sx
        plain = design_mechanism(counts, 0.02, confidence=0.95)
        np.testing.assert_allclose(plain.utility, mechanism.utility, rtol=1e-12)
        parts = clone(funnel)
        for start in range(0, len(frame), 500):
            parts.partial_fit(frame.iloc[start : start + 500])
        assert (parts.mechanism_.channel == mechanism.channel).all()
        alone = clone(funnel).set_params(confidence=None).fit(frame).mechanism_
        assert alone.s_labels == tuple(declared[1:-1])

    def test_weighted_rows_count_as_many_as_say_as_much(self, frame):
        weights = np.where(np.arange(len(frame)) % 2, 9.0, 1.0)
        funnel = PrivacyFunnelTransformer(0.02, sensitive="s", confidence=0.95)
        n_samples = funnel.fit(frame, sample_weight=weights).mechanism_.n_samples
        kish = weights.sum() ** 2 / (weights**2).sum()
        assert 0.8 * kish < n_samples <= kish

    def test_a_few_heavy_rows_do_not_pass_for_many(self):
        frame = pd.DataFrame({"s": ["a"] * 3000 + ["b"] * 3, "x": [*"uvw"] * 1001})
        weights = np.where(frame["s"] == "a", 1.0, 100.0)
        funnel = PrivacyFunnelTransformer(0.02, sensitive="s", confidence=0.95)
        mechanism = funnel.fit(frame, sample_weight=weights).mechanism_
        # 33 rows in all, and 3 of them in the small group.
        assert mechanism.n_samples == 33
        batches = PrivacyFunnelTransformer(0.02, sensitive="s", confidence=0.95)
        for part in (slice(0, 2000), slice(2000, None)):
            batches.partial_fit(frame[part], sample_weight=weights[part])
        assert batches.mechanism_.n_samples == 33

    @pytest.mark.parametrize("size", [1e-200, 1e200])
    def test_weights_that_cannot_be_squared(self, frame, size):
        with pytest.raises(ValueError, match="sample_weight is too large or too small"):
            PrivacyFunnelTransformer(sensitive="s").fit(frame, sample_weight=np.full(2000, size))

    def test_smoothing_would_hide_what_chance_does(self, frame):
        funnel = PrivacyFunnelTransformer(0.02, sensitive="s", confidence=0.95, smoothing=1.0)
        with pytest.raises(ValueError, match="'smoothing' parameter .* must be 0 with a confiden"):
            funnel.fit(frame)

    def test_grid_search_over_budgets(self, frame):
        model = make_pipeline(
            PrivacyFunnelTransformer(sensitive="s", confidence=0.95, random_state=0),
            OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=4),
            CategoricalNB(min_categories=5),
        )
        search = GridSearchCV(model, {"privacyfunneltransformer__epsilon": [0.01, 0.1]}, cv=2)
        search.fit(frame, frame["x"] == "a")
        mechanism = search.best_estimator_[0].mechanism_
        assert mechanism.population_limit.max_leakage <= mechanism.epsilon


class TestWarning:
    def fit(self, frame, **parameters):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            PrivacyFunnelTransformer(sensitive="s", **parameters).fit(frame)
        return [str(w.message) for w in caught if w.category is FiniteSampleWarning]

    def test_few_rows_are_told_once(self, frame):
        (text,) = self.fit(frame.iloc[:150])
        assert text.startswith("epsilon holds for these rows only")
        assert "confidence=0.95" in text
        assert self.fit(frame.iloc[:150], epsilon=0.0)

    @pytest.mark.parametrize(
        "parameters", [{"confidence": 0.95}, {"epsilon": 0.5}, {"epsilon": np.inf}]
    )
    def test_who_asks_for_a_confidence_or_for_little_is_not_warned(self, frame, parameters):
        assert not self.fit(frame, **parameters)

    def test_enough_rows_are_not_told(self, frame):
        assert not self.fit(pd.concat([frame] * 10))

    def test_weights_make_rows_fewer(self, frame):
        weights = np.r_[np.full(60, 1000.0), np.ones(len(frame) - 60)]
        with pytest.warns(FiniteSampleWarning, match="holds for these rows only"):
            PrivacyFunnelTransformer(sensitive="s").fit(frame, sample_weight=weights)
