"""Several secrets with budgets of their own, in the transformer and all that is made from it."""

import pickle
import re
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from documents import edited
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import skprivacy
from skprivacy import (
    FiniteSampleWarning,
    LeakageDisplay,
    Mechanism,
    MechanismDisplay,
    PrivacyFunnelTransformer,
    PrivacyLeakWarning,
    PrivacyReport,
    PrivacyUtilityDisplay,
    audit,
    design_mechanism,
)
from skprivacy.files import fit_file, transform_file
from skprivacy.fitting.leak_warnings import Budget, leaking_columns
from skprivacy.measures import KL
from skprivacy.metrics import (
    estimate_distribution,
    neg_leakage_scorer,
    population_leakage,
    utility_scorer,
)

mpl.use("agg")

BUDGETS = {"sex": 0.002, "race": 0.02, ("sex", "race"): 0.1}
ROUNDING = 1 + 1e-9


def rows(n=20_000, seed=0):
    """Return rows in which a band says something about two secrets."""
    rng = np.random.default_rng(seed)
    sex, race = rng.integers(2, size=n), rng.choice(3, p=[0.5, 0.3, 0.2], size=n)
    return pd.DataFrame(
        {
            "sex": np.array(["f", "m"])[sex],
            "race": np.array(list("pqr"))[race],
            "band": np.array(list("abcd"))[rng.binomial(3, 0.3 + 0.2 * sex + 0.1 * race)],
            "town": rng.choice(list("uvw"), size=n),
        }
    )


def make(epsilon=None, **options):
    defaults = {"sensitive": ["sex", "race"], "columns": ["band"], "random_state": 0}
    return PrivacyFunnelTransformer(epsilon or BUDGETS, **(defaults | options))


def fit_quietly(transformer, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return transformer.fit(*args, **options)


def leakage(table, channel):
    """KL of the worst output, from scratch."""
    joint = np.asarray(table, dtype=float) @ channel / np.sum(np.asarray(table))
    posterior, prior = joint / joint.sum(axis=0), joint.sum(axis=1)
    return (posterior * np.log(posterior / prior[:, None])).sum(axis=0).max()


@pytest.fixture(scope="module")
def frame():
    return rows()


@pytest.fixture(scope="module")
def fitted(frame):
    return fit_quietly(make(), frame)


class TestDesign:
    def test_every_secret_keeps_its_own_budget(self, frame, fitted):
        mechanism = fitted.mechanism_
        assert mechanism.epsilon == BUDGETS
        groups = {"sex": frame["sex"], "race": frame["race"]}
        groups["sex", "race"] = frame["sex"] + frame["race"]
        for name, budget in BUDGETS.items():
            table = pd.crosstab(groups[name], frame["band"])
            assert leakage(table, mechanism.channel) <= budget * ROUNDING
            assert mechanism.secrets[name].p_sx == pytest.approx(table.to_numpy() / len(frame))

    def test_labels_are_those_of_the_columns(self, fitted):
        secrets = fitted.mechanism_.secrets
        assert secrets["sex"].s_labels == ("f", "m")
        assert secrets["race"].s_labels == ("p", "q", "r")
        assert secrets["sex", "race"].s_labels[1] == ("f", "q")
        assert fitted.mechanism_.x_labels == ("a", "b", "c", "d")

    def test_all_columns_as_one_are_known_too(self, fitted):
        together = fitted.mechanism_.together
        assert together.p_sx.shape == fitted.p_sx_.shape == (6, 4)
        joint = fitted.mechanism_.secrets["sex", "race"]
        assert together.max_leakage == pytest.approx(joint.max_leakage)

    def test_separate_budgets_keep_more_than_the_joint_one_that_implies_them(self, frame, fitted):
        joint = fit_quietly(make(0.002), frame)
        assert fitted.mechanism_.utility > joint.mechanism_.utility

    def test_only_the_tuple_is_the_joint_secret(self, frame):
        one = fit_quietly(make(0.01), frame).mechanism_
        several = fit_quietly(make({("sex", "race"): 0.01}), frame).mechanism_
        assert several.utility == pytest.approx(one.utility, abs=1e-6)

    def test_an_infinite_budget_protects_nothing(self, frame):
        one = fit_quietly(make(0.002, sensitive="sex"), frame).mechanism_
        budgets = {"sex": 0.002, "race": np.inf}
        several = fit_quietly(make(budgets), frame).mechanism_
        assert several.utility == pytest.approx(one.utility, abs=1e-6)

    @pytest.mark.parametrize(
        "options",
        [
            {"scope": "average"},
            {"smoothing": 1.0},
            {"measure": "max_lift"},
            {"utility": "distortion"},
            {"max_outputs": 2},
            {"output": "posterior"},
        ],
    )
    def test_options_of_the_transformer(self, frame, options):
        mechanism = fit_quietly(make(**options), frame).mechanism_
        for name, secret in mechanism.secrets.items():
            assert secret.leakage_in(mechanism.scope) <= BUDGETS[name] * ROUNDING + 1e-12

    @pytest.mark.parametrize("utility", ["mutual_information", "distortion", "guess"])
    def test_numbers_that_are_cut_into_bins(self, frame, utility):
        numbers = np.random.default_rng(0).normal(size=len(frame)) + (frame["sex"] == "m")
        table = frame[["sex", "race"]].assign(number=numbers)
        options = {"sensitive": ["sex", "race"], "n_bins": 4, "utility": utility}
        funnel = PrivacyFunnelTransformer(BUDGETS, **options).fit(table)
        assert 0 < funnel.fidelity_.raw_utility < 1
        assert len(funnel.transform(table)) == len(table)

    def test_with_a_confidence_all_budgets_hold_in_the_population(self, frame):
        budgets = {"sex": 0.02, "race": 0.05}
        mechanism = fit_quietly(make(budgets, confidence=0.9), frame).mechanism_
        assert mechanism.confidence == 0.9
        for name, secret in mechanism.secrets.items():
            assert secret.confidence == pytest.approx(0.95)
            assert secret.population_limit.max_leakage <= budgets[name] * ROUNDING

    def test_a_declared_group_without_rows_counts_with_a_confidence(self, frame):
        declared = frame.assign(race=pd.Categorical(frame["race"], categories=list("pqrz")))
        budgets = {"sex": 0.02, "race": 0.05}
        mechanism = fit_quietly(make(budgets, confidence=0.9), declared).mechanism_
        assert mechanism.secrets["race"].s_labels == ("p", "q", "r", "z")

    def test_weights_count(self, frame):
        weights = np.where(frame["race"] == "p", 2.0, 1.0)
        mechanism = fit_quietly(make(), frame, sample_weight=weights).mechanism_
        table = pd.crosstab(frame["race"], frame["band"], values=weights, aggfunc="sum")
        assert mechanism.secrets["race"].p_sx == pytest.approx(table.to_numpy() / weights.sum())

    def test_cells(self, frame):
        options = {"columns": ["band", "town"], "alphabet": "cells"}
        mechanism = fit_quietly(make(**options), frame).mechanism_
        for name, secret in mechanism.secrets.items():
            assert secret.max_leakage <= BUDGETS[name] * ROUNDING


class TestInputs:
    def test_unnamed_features_have_positions_as_keys(self, frame):
        s, x = frame[["sex", "race"]].to_numpy(), frame[["band"]]
        funnel = PrivacyFunnelTransformer({0: 0.002, 1: 0.02, (0, 1): 0.1})
        mechanism = fit_quietly(funnel, x, sensitive_features=s).mechanism_
        assert list(mechanism.secrets) == [0, 1, (0, 1)]
        assert mechanism.secrets[1].s_labels == ("p", "q", "r")

    def test_named_features(self, frame):
        funnel = PrivacyFunnelTransformer(BUDGETS)
        s, x = frame[["sex", "race"]], frame[["band"]]
        assert fit_quietly(funnel, x, sensitive_features=s).mechanism_.epsilon == BUDGETS

    def test_batches_are_one_fit(self, frame, fitted):
        streamed = make()
        for start in range(0, len(frame), 7000):
            streamed.partial_fit(frame[start : start + 7000])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert (streamed.mechanism_.channel == fitted.mechanism_.channel).all()
            streamed.set_params(epsilon={"sex": 0.001, "race": 0.02})
            assert streamed.mechanism_.epsilon == {"sex": 0.001, "race": 0.02}

    def test_a_lazy_frame(self, frame, fitted):
        polars = pytest.importorskip("polars")
        lazy = fit_quietly(make(), polars.from_pandas(frame).lazy())
        assert (lazy.mechanism_.channel == fitted.mechanism_.channel).all()

    def test_a_file(self, frame, fitted, tmp_path):
        frame.to_csv(tmp_path / "in.csv", index=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from_file = fit_file(make(), tmp_path / "in.csv")
        assert (from_file.mechanism_.channel == fitted.mechanism_.channel).all()
        assert transform_file(from_file, tmp_path / "in.csv", tmp_path / "out.csv") == len(frame)

    def test_scikit_learn(self, frame):
        funnel = clone(make())
        assert funnel.get_params()["epsilon"] == BUDGETS
        grid = {"epsilon": [{"sex": 0.001, "race": 0.01}, {"sex": 0.01, "race": 0.1}]}
        search = GridSearchCV(make(), grid, scoring=utility_scorer(), cv=2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search.fit(frame)
        assert search.best_params_ == {"epsilon": {"sex": 0.01, "race": 0.1}}


class TestErrors:
    @pytest.mark.parametrize(
        ("epsilon", "error", "text"),
        [
            ({"sex": 0.1}, ValueError, "no budget for the sensitive column 'race': give it one"),
            ({"sex": 0.1, "age": 1}, ValueError, "'age', which is not a sensitive column"),
            ({"sex": 0.1, ("race", "age"): 1}, ValueError, "'age', which is not a sensitive"),
            ({("sex", "race"): 1, ("sex", "sex"): 1}, ValueError, "names no sensitive column"),
            ({}, ValueError, "a dict with a budget for at least one secret"),
            ([0.1, 0.2], TypeError, "a number, or a dict with a budget for each secret"),
            ("0.1", TypeError, "a number, or a dict with a budget for each secret"),
            ({"sex": -1, "race": 1}, ValueError, r"epsilon\['sex'\].*range \[0, inf\]"),
            ({"sex": "much", "race": 1}, TypeError, r"epsilon\['sex'\]"),
            ({"sex": np.nan, "race": 1}, ValueError, r"epsilon\['sex'\]"),
        ],
    )
    def test_budgets(self, frame, epsilon, error, text):
        funnel = make().set_params(epsilon=epsilon)
        with pytest.raises(error, match=text):
            funnel.fit(frame)
        assert not hasattr(funnel, "n_features_in_")

    def test_of_arrays(self, frame):
        funnel = PrivacyFunnelTransformer({"sex": 0.1, 1: 0.1})
        with pytest.raises(ValueError, match=r"'sex', which is not .* name those of \[0, 1\]"):
            funnel.fit(frame[["band"]], sensitive_features=frame[["sex", "race"]].to_numpy())

    def test_figures_of_one_secret_name_the_secrets(self, fitted):
        with pytest.raises(AttributeError, match=r"mechanism.secrets\['sex'\].max_leakage"):
            _ = fitted.mechanism_.max_leakage
        with pytest.raises(AttributeError, match=r"\.secrets\['sex'\].max_leakage"):
            _ = fitted.evaluate(rows(100)).max_leakage
        with pytest.raises(AttributeError, match=r"\.secrets\['sex'\].max_leakage_bound"):
            _ = fitted.certify(rows(1000)).max_leakage_bound

    def test_what_is_about_one_secret_says_so(self, fitted):
        with pytest.raises(TypeError, match="pass secret='sex'"):
            LeakageDisplay.from_mechanism(fitted.mechanism_)
        for about in (fitted, fitted.mechanism_):
            with pytest.raises(TypeError, match="pass secret='sex'"):
                population_leakage(about)
            with pytest.raises(ValueError, match=r"'secret' parameter .* one of \['sex', "):
                population_leakage(about, secret="age")

    def test_an_audit_takes_one_of_the_secrets(self, frame, fitted):
        with pytest.raises(TypeError, match=r"mechanism.secrets\['sex'\]"):
            audit(frame["band"], frame["sex"], mechanism=fitted.mechanism_)


class TestWarnings:
    def test_separate_budgets_bound_no_combination(self):
        rng = np.random.default_rng(0)
        one, other = rng.integers(2, size=(2, 4000))
        xor = pd.DataFrame({"one": one, "other": other, "x": one ^ other})
        funnel = PrivacyFunnelTransformer({"one": 0.01, "other": 0.01}, sensitive=["one", "other"])
        assert said(funnel, xor, "about all sensitive columns together")
        assert funnel.mechanism_.together.max_leakage > 0.6
        bounded = funnel.set_params(epsilon={**funnel.epsilon, ("one", "other"): 0.05})
        assert fit_quietly(bounded, xor).mechanism_.together.max_leakage <= 0.05 * ROUNDING

    def test_columns_are_judged_by_each_secret(self, frame):
        proxy = frame.assign(proxy=np.where(frame["race"] == "r", "y", "n"))
        funnel = make({"sex": 0.01, "race": 0.02}, remainder=["proxy"])
        assert said(funnel, proxy, r"on their own .*: proxy\.")
        quiet = make({"sex": 0.01, "race": np.inf}, remainder=["proxy"])
        assert not fitted_leaks(quiet, proxy)

    def test_an_index_is_judged_by_each_secret(self, frame):
        by_race = frame.sort_values("race", ignore_index=True)
        by_race.index = by_race.index.to_numpy() * 2
        assert said(make(), by_race, "The index of X is released")

    def test_small_groups_and_single_values(self, frame):
        few = frame[:300].assign(race=["z"] * 2 + ["p"] * 298)
        budgets = {"sex": 1.0, "race": 1.0}
        assert said(make(budgets), few, "they are few", FiniteSampleWarning)
        assert said(make(budgets), few[2:], "a single value of race")
        assert said(make(budgets), few, "next to nothing.* a group of sex with certainty")

    def test_chance(self, frame):
        assert said(make(), frame[:1000], "much more may leak", FiniteSampleWarning)


def said(transformer, table, text, category=PrivacyLeakWarning):
    """Whether a warning of fit says something."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        transformer.fit(table)
    return any(
        issubclass(each.category, category) and re.search(text, str(each.message))
        for each in caught
    )


def fitted_leaks(transformer, table):
    fit_quietly(transformer, table)
    return skprivacy.fitting.fitted_estimator.fitted_of(transformer).leaking


class TestHeldOut:
    def test_evaluate(self, frame, fitted):
        fresh = rows(seed=1)
        figures = fitted.evaluate(fresh)
        for name, columns in {"sex": ["sex"], "race": ["race"]}.items():
            table = pd.crosstab([fresh[c] for c in columns], fresh["band"])
            expected = leakage(table, fitted.mechanism_.channel)
            assert figures.secrets[name].max_leakage == pytest.approx(expected)
        assert figures.together.p_sx.shape == (7, 5)

    def test_a_group_is_known_in_a_combination_that_was_not_seen(self, frame):
        known = frame[(frame["sex"] == "f") | (frame["race"] != "r")]
        fitted = fit_quietly(make(), known)
        figures = fitted.evaluate(frame)
        assert figures.secrets["race"].p_sx[-1].sum() == 0
        assert figures.together.p_sx[-1].sum() > 0

    def test_certify_divides_the_confidence(self, frame, fitted):
        fresh = rows(seed=1)
        several = fitted.certify(fresh, confidence=0.94)
        assert several.confidence == 0.94
        one = several.secrets["sex"]
        assert one.confidence == pytest.approx(0.98)
        alone = fit_quietly(make(0.002, sensitive="sex"), frame)
        assert one.n_groups == alone.certify(fresh).n_groups == 2
        assert several.holds({"sex": 1.0, "race": 2.0})
        assert not several.holds({"sex": 0.001})
        loaded = PrivacyFunnelTransformer.from_json(fitted.to_json())
        again = loaded.certify(fresh, confidence=0.94)
        assert again.secrets["race"].n_groups == 3

    @pytest.mark.parametrize("epsilon", [0.002, {"sex": 0.002}])
    def test_s_by_any_other_name(self, frame, epsilon):
        fitted = fit_quietly(make(epsilon, sensitive="sex"), frame)
        loaded = PrivacyFunnelTransformer.from_json(fitted.to_json())
        fresh = rows(seed=1)
        for s in (fresh["sex"].to_numpy(), fresh["sex"].rename("gender")):
            assert len(fitted.evaluate(fresh, sensitive_features=s).p_sx) == 3  # one is unseen
            for each in (fitted, loaded):
                found, expected = each.certify(fresh, sensitive_features=s), each.certify(fresh)
                np.testing.assert_array_equal(found.leakage_bound, expected.leakage_bound)

    def test_several_columns_by_any_other_name(self, frame, fitted):
        fresh = rows(seed=1)
        loaded, s = PrivacyFunnelTransformer.from_json(fitted.to_json()), fresh[["sex", "race"]]
        swapped = loaded.certify(fresh, sensitive_features=s[["race", "sex"]])
        assert swapped.secrets["race"].n_groups == 3
        for each in (fitted, loaded):
            assert (
                each.certify(fresh, sensitive_features=s.to_numpy()).secrets["race"].n_groups == 3
            )

    def test_a_loaded_number_knows_what_is_protected(self, frame):
        for epsilon in (0.002, {"sex": 0.002}):
            text = fit_quietly(make(epsilon, sensitive="sex"), frame).to_json()
            assert PrivacyFunnelTransformer.from_json(text).summary_.protected == ("sex",)
        text = fit_quietly(make(0.002, sensitive=None), frame[["band"]], sensitive_features=frame["sex"].to_numpy()).to_json()  # fmt: skip
        assert PrivacyFunnelTransformer.from_json(text).summary_.protected == ("S",)

    def test_a_table_of_what_leaks_names_secrets_only_where_there_are_several(self, frame):
        codes, _ = pd.factorize(frame["race"])
        for names in ([None], ["race"], ["race", "other"]):
            budgets = dict.fromkeys(names, Budget(0.01, KL(), "per_output"))
            of_each = dict.fromkeys(names, codes)
            found = leaking_columns(budgets, {"proxy": frame["race"]}, of_each, None)
            assert ("about" in found.table()) is (len(names) > 1)

    def test_scorers(self, frame, fitted):
        figures = fitted.evaluate(frame)
        worst = max(one.max_leakage for one in figures.secrets.values())
        assert neg_leakage_scorer()(fitted, frame) == -worst
        own = neg_leakage_scorer(secret="sex")(fitted, frame)
        assert own == -figures.secrets["sex"].max_leakage
        with pytest.raises(ValueError, match="'secret' parameter.*one of"):
            neg_leakage_scorer(secret="age")(fitted, frame)


class TestMetrics:
    def test_an_audit_is_about_the_secret_that_it_gets(self, frame, fitted):
        some = frame[:3000]
        released = fitted.transform(some)
        secrets, together = fitted.mechanism_.secrets, fitted.mechanism_.together
        attacked = audit(released, some["race"], mechanism=fitted)
        assert attacked["bayes_accuracy"][0] == secrets["race"].attacker_accuracy
        both = audit(released, some[["sex", "race"]], mechanism=fitted)
        assert both["bayes_accuracy"][0] == pytest.approx(together.attacker_accuracy)
        assert audit(released, some["town"], mechanism=fitted)["bayes_accuracy"].isna().all()

    def test_frequencies_need_no_secret(self, frame, fitted):
        released = fitted.transform(frame)
        assert len(estimate_distribution(released, fitted)) == 4


class TestShowing:
    def test_report(self, frame, fitted):
        report = PrivacyReport.from_estimator(fitted, frame[:2000])
        titles = [section.title for section in report.sections]
        assert titles[:3] == ["In short", "What leaks about sex", "What leaks about race"]
        assert report.sections[0].tables[0].cells.index.tolist() == [
            "sex", "race", "sex and race", "all together",
        ]  # fmt: skip
        assert "Attacked, for sex and race" in titles
        text = str(report)
        for name, budget in {"sex": "0.002", "race": "0.02", "sex and race": "0.1"}.items():
            assert f"{budget} about {name}" in text
        assert "all together" in text
        assert "{'sex': 0.002, 'race': 0.02, ('sex', 'race'): 0.1}" in report.to_html().replace(
            "&#x27;", "'"
        )

    def test_that_separate_budgets_bound_no_combination_is_said(self, frame, fitted):
        separate = fit_quietly(make({"sex": 0.002, "race": 0.02}), frame)
        text = "separate budgets do not bound this"
        assert text in " ".join(separate.mechanism_.sentences())
        assert text not in " ".join(fitted.mechanism_.sentences())
        assert text in " ".join(str(PrivacyReport.from_estimator(separate)).split())

    def test_notebook(self, fitted):
        html = fitted._repr_html_()
        assert "about race" in html
        assert "About all secrets together" in html

    def test_displays(self, fitted):
        assert MechanismDisplay.from_estimator(fitted).ax_ is not None
        assert LeakageDisplay.from_mechanism(fitted.mechanism_.secrets["race"]).ax_ is not None
        budgets = [{name: f * x for name, x in BUDGETS.items()} for f in (0.5, 1, 2)]
        display = PrivacyUtilityDisplay.from_estimator(fitted, epsilons=budgets)
        assert display.ax_.get_xlabel() == (
            "budget ε (sex; kl, per output; race, sex and race in proportion)"
        )
        assert display.lines_[0].get_xdata().tolist() == [0.001, 0.002, 0.004]


class TestFiles:
    def test_transformer(self, frame, fitted):
        loaded = PrivacyFunnelTransformer.from_json(fitted.to_json())
        assert loaded.epsilon == BUDGETS
        assert (loaded.mechanism_.channel == fitted.mechanism_.channel).all()
        assert loaded.mechanism_.secrets["sex"].p_sx is None
        assert "claimed epsilon=0.002" in repr(loaded.mechanism_)
        key, ids = b"0" * 32, np.arange(len(frame))
        first, again = (
            funnel.transform(frame, record_ids=ids, secret_key=key) for funnel in (fitted, loaded)
        )
        assert first.equals(again)
        with pytest.raises(AttributeError, match="p_sx_"):
            _ = loaded.p_sx_

    def test_pickle(self, frame, fitted):
        again = pickle.loads(pickle.dumps(fitted))
        assert again.mechanism_.epsilon == BUDGETS
        assert again.mechanism_.together.max_leakage == fitted.mechanism_.together.max_leakage

    def test_mechanism(self, fitted):
        mechanism = fitted.mechanism_
        again = Mechanism.from_json(mechanism.to_json())
        assert repr(again) == repr(mechanism)
        for name, secret in again.secrets.items():
            assert (secret.p_sx == mechanism.secrets[name].p_sx).all()
            assert secret.s_labels == mechanism.secrets[name].s_labels
        assert again.to_json() == mechanism.to_json()
        bare = mechanism.to_json(include_joint=False)
        assert "p_sx" not in bare
        assert "together" not in bare
        assert Mechanism.from_json(bare).to_json() == bare

    def test_a_confidence_survives(self):
        tables = {"a": [[300, 200], [100, 400]], "b": [[150, 350], [250, 250]]}
        made = design_mechanism(tables, {"a": 0.1, "b": 0.1}, confidence=0.9)
        again = Mechanism.from_json(made.to_json())
        assert again.confidence == 0.9
        assert again.secrets["a"].confidence == made.secrets["a"].confidence

    @pytest.mark.parametrize(
        ("steps", "value", "text"),
        [
            (("secrets",), [], "secrets must be a list of at least 1"),
            (("secrets",), {}, "secrets must be a list"),
            (("secrets", 0), 3, r"secrets\[0\] must be an object"),
            (("secrets", 0, "epsilon"), 0.0001, "breaks its budget"),
            (("secrets", 1, "epsilon"), -1, r"secrets\[1\]\.epsilon must be a number"),
            (("secrets", 1, "name"), "sex", r"secrets\[1\] must be a secret that is not in"),
            (("secrets", 1, "name"), None, r"secrets\[1\]\.name must be a name"),
            (("secrets", 0, "p_sx", 0, 0), "x", r"secrets\[0\]\.p_sx\[0\]\[0\] must be"),
            (("secrets", 0, "channel"), [[1]], r"secrets\[0\]\.channel is not a key"),
            (("secrets", 0, "s_labels"), ["f"], r"secrets\[0\]\.p_sx must be a list of 1"),
            (("channel", 0, 0), 2, r"channel\[0\]\[0\] must be"),
            (("together", "p_sx", 0, 0), 0.9, r"together.*p_sx must sum to 1"),
            (("together", "s_labels"), [], r"together"),
            (("together",), 5, "together must be an object"),
            (("more",), 5, "more is not a key"),
        ],
    )
    def test_hostile_files_are_refused_with_a_place(self, fitted, steps, value, text):
        document = edited(fitted.mechanism_.to_json(), *steps, to=value)
        with pytest.raises(ValueError, match=text):
            Mechanism.from_json(document)

    def test_values_of_s_appear_in_no_message(self, fitted):
        document = edited(
            fitted.mechanism_.to_json(), "secrets", 0, "s_labels", to=["Huntington", "Huntington"]
        )
        with pytest.raises(ValueError, match="s_labels") as caught:
            Mechanism.from_json(document)
        assert "Huntington" not in str(caught.value)
