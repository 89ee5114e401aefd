"""From released rows back: frequencies of X, attacks on S, scores of pipelines."""

import pickle

import numpy as np
import pandas as pd
import pytest
from example_tables import funnel, people, quiet_fit
from numpy.testing import assert_allclose
from sklearn import config_context
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from test_metrics import assert_covers

from skprivacy import (
    PrivacyFunnelTransformer,
    PrivacyLeakWarning,
    audit,
    design_mechanism,
    metrics,
)
from skprivacy.measures import KL, L1, AlphaLift, Chi2, Lip, MaxLift, Parity
from skprivacy.metrics import estimate_distribution
from skprivacy.metrics.attack import BayesTable


class TestFrequencies:
    def test_are_unbiased_and_their_errors_are_honest(self):
        rng = np.random.default_rng(1)
        joint = rng.random((3, 5))
        mechanism = design_mechanism(joint, 0.05, solver="randomized_response")
        truth = rng.dirichlet(np.full(5, 3))
        p_y = truth @ mechanism.channel
        estimates, errors = [], []
        for _ in range(400):
            y = np.array(mechanism.y_labels)[rng.choice(5, size=500, p=p_y)]
            table = estimate_distribution(y, mechanism)
            estimates.append(table["estimate"])
            errors.append(table["standard_error"])
        estimates, errors = np.array(estimates), np.array(errors)
        spread = estimates.std(axis=0)
        assert (np.abs(estimates.mean(axis=0) - truth) < 4 * spread / 20).all()
        assert_allclose(np.sqrt((errors**2).mean(axis=0)), spread, rtol=0.15)
        within = np.abs(estimates - truth) < 1.96 * errors
        assert within.mean() > 0.93

    @pytest.mark.parametrize("output", ["label", "symbol", "posterior"])
    def test_of_a_transformer(self, output):
        frame = people(20_000)
        transformer = funnel(solver="randomized_response", output=output)
        released = transformer.fit_transform(frame)
        table = estimate_distribution(released, transformer)
        truth = frame["band"].value_counts(normalize=True)[table.index]
        assert (np.abs(table["estimate"] - truth) < 4.5 * table["standard_error"]).all()
        # Without it, shares of released values are off by much more than their errors.
        if output == "label":
            naive = released["band"].value_counts(normalize=True)[table.index]
            assert np.abs(naive - truth).max() > 0.05

    def test_of_several_columns_and_bins(self):
        rng = np.random.default_rng(2)
        frame = people(20_000).assign(age=rng.normal(40, 10, size=20_000).round(1))
        transformer = funnel(columns=["band", "age"], n_bins=2, solver="randomized_response")
        released = transformer.fit_transform(frame)
        table = estimate_distribution(released, transformer)
        symbols = pd.Series(transformer.mechanism_.p_x, table.index)
        assert (np.abs(table["estimate"] - symbols) < 4.5 * table["standard_error"]).all()

    def test_a_cross_table(self):
        frame = people(20_000)
        transformer = funnel(solver="randomized_response")
        released = transformer.fit_transform(frame)
        table = estimate_distribution(released, transformer, by=frame["label"])
        truth = frame.groupby(["band", "label"]).size() / len(frame)
        truth = truth.reindex(table.index)
        assert len(table) == 10
        assert (np.abs(table["estimate"] - truth) < 4.5 * table["standard_error"]).all()
        alone = estimate_distribution(released, transformer)["estimate"]
        assert_allclose(table["estimate"].groupby(level=0).sum(), alone.sort_index(), atol=1e-12)

    def test_what_was_merged_cannot_be_told_apart(self):
        joint = [[0.16, 0.14, 0.12, 0.08], [0.08, 0.12, 0.14, 0.16]]
        mechanism = design_mechanism(joint, 0.01, scope="average", solver="greedy_funnel")
        table = estimate_distribution([0, 1, 2, 0], mechanism)
        assert table["estimate"].isna().tolist() == [True, False, False, True]
        assert_allclose(table["estimate"].dropna(), 0.25)

    def test_values_that_were_never_released(self):
        mechanism = design_mechanism([[2, 1], [1, 2]], 0.01)
        with pytest.raises(
            ValueError, match="'released' .* Got 7, which is not one of its y_labels"
        ):
            estimate_distribution([0, 7], mechanism)
        transformer = funnel().fit(people())
        with pytest.raises(ValueError, match="1 released rows hold values .* does not release"):
            estimate_distribution(pd.DataFrame({"band": ["a", "z"]}), transformer)
        with pytest.raises(ValueError, match="lack the column 'band'"):
            estimate_distribution(pd.DataFrame({"x": ["a"], "y": ["b"], "z": ["c"]}), transformer)
        with pytest.raises(TypeError, match="'mechanism' .* a Mechanism or a fitted"):
            estimate_distribution([0], "mechanism")
        with pytest.raises(ValueError, match="released has 2 rows, by has 1"):
            estimate_distribution([0, 1], mechanism, by=[1])
        with pytest.raises(ValueError, match="0 sample"):
            estimate_distribution([], mechanism)

    def test_columns_with_other_names_are_not_guessed(self):
        frame = people(300)
        transformer = funnel(columns=["band", "zip"], solver="randomized_response")
        released = transformer.fit_transform(frame)
        swapped = released.rename(columns={"band": "place", "zip": "group"})
        with pytest.raises(ValueError, match="lack the column 'band'"):
            estimate_distribution(swapped, transformer)
        array = estimate_distribution(released.to_numpy(dtype=object), transformer)
        assert_allclose(array, estimate_distribution(released, transformer))

    def test_one_row_and_several_columns_beside(self):
        mechanism = design_mechanism([[2, 1], [1, 2]], 0.01, solver="randomized_response")
        assert estimate_distribution([0], mechanism)["standard_error"].isna().all()
        by = pd.DataFrame({"a": [1, 1, 2], "b": ["u", "v", "u"]})
        table = estimate_distribution([0, 1, 0], mechanism, by=by)
        assert len(table) == 6
        assert_allclose(table["estimate"].sum(), 1.0)


class TestAudit:
    def test_the_release_protects_and_the_rest_does_not(self):
        frame = people()
        transformer = funnel(remainder="passthrough")
        with pytest.warns(UserWarning, match="zip"):
            released = transformer.fit_transform(frame)
        table = audit(
            released[["band"]],
            frame["sex"],
            raw=frame[["band"]],
            mechanism=transformer,
            remainder=released[["zip", "noise"]],
            cv=3,
        )
        best = table.groupby("attacked")["advantage"].max()
        assert best["raw"] > 0.15
        bound = table.loc[table["attacked"] == "released", "advantage_bound"]
        assert best["released"] < bound.iloc[0]
        assert best["released"] < 0.05
        assert best["released and remainder"] > 0.3
        assert best["remainder: zip"] > 0.3
        assert best["remainder: noise"] < 0.05
        assert set(table["attacker"]) == {"gradient boosting", "Bayes table"}
        assert (table["low"] <= table["advantage"]).all()
        assert (table["advantage"] <= table["high"]).all()
        assert_allclose(table["advantage"], table["accuracy"] - table["blind"])

    def test_two_releases_taken_together_leak_more(self):
        frame = people(20_000)
        first, second = (funnel(0.05, random_state=i).fit_transform(frame) for i in (1, 2))
        both = pd.concat([first, second.add_suffix("2")], axis=1)
        once = audit(first, frame["sex"], attacker=BayesTable())["advantage"].max()
        transformer = funnel(0.05).fit(frame)
        twice = audit(both, frame["sex"], mechanism=transformer, attacker=BayesTable())
        assert twice["advantage"].max() > once + 0.01
        # The exact figures are about one release, and about the S that it protects.
        exact = ["bayes_accuracy", "advantage_bound"]
        assert twice[exact].isna().all(axis=None)
        for given in (transformer, transformer.mechanism_):
            options = {"mechanism": given, "attacker": BayesTable()}
            assert audit(first, frame["sex"], **options)[exact].notna().all(axis=None)
            assert audit(first, frame["label"], **options)[exact].isna().all(axis=None)

    def test_an_unfitted_transformer(self):
        with pytest.raises(NotFittedError):
            audit([1, 2] * 9, [0, 1] * 9, mechanism=funnel())

    def test_columns_that_say_nothing_and_an_id(self):
        frame = people(2000).sort_values("sex").reset_index(drop=True)
        names = pd.Series([f"row {i:05d}" for i in range(2000)])
        empty = pd.Series(np.full(2000, np.nan))
        beside = pd.DataFrame({"empty": empty, "id": names})
        table = audit(frame[["band"]], frame["sex"], remainder=beside, cv=3).set_index("attacked")
        assert table.loc["remainder: empty", "advantage"].abs().max() < 0.02
        assert table.loc["remainder: id", "advantage"].max() > 0.4

    @pytest.mark.parametrize("column", ["band", "zip"])
    def test_the_order_of_the_rows_does_not_matter(self, column):
        frame = people()
        shuffled, ordered = (
            audit(table[[column]], table["sex"], cv=3)["advantage"].max()
            for table in (frame, frame.sort_values(column))
        )
        assert shuffled > 0.15
        assert_allclose(ordered, shuffled, atol=0.03)

    def test_many_categories_beside_others(self):
        frame = people(3000)
        rng = np.random.default_rng(5)
        sex = (frame["sex"] == "m").to_numpy()
        place = pd.Series([f"place {i}" for i in 2 * rng.integers(150, size=3000) + sex])
        alone = audit(place, frame["sex"], cv=3)["advantage"].max()
        table = audit(frame[["band"]], frame["sex"], remainder=place.to_frame("place"), cv=3)
        joint = table[table["attacked"] == "released and remainder"]["advantage"].max()
        assert joint > alone - 0.02

    def test_exact_figures(self):
        frame = people()
        transformer = funnel().fit(frame)
        mechanism = transformer.mechanism_
        released = transformer.transform(frame)
        for given in (transformer, mechanism):
            table = audit(released, frame["sex"], mechanism=given)
            p_sy = mechanism.p_sx @ mechanism.channel
            assert_allclose(table["bayes_accuracy"], p_sy.max(axis=0).sum())
            assert_allclose(table["advantage_bound"], np.sqrt(0.005))
        alone = audit(released, frame["sex"])
        assert alone[["bayes_accuracy", "advantage_bound"]].isna().all(axis=None)

    @pytest.mark.parametrize("epsilon", [0.01, {"sex": 0.01}], ids=["number", "dict"])
    def test_exact_figures_are_those_of_the_secret(self, epsilon):
        """A number and a dict with one key agree, and another column is not the secret."""
        frame = people().assign(other=lambda rows: rows["sex"].to_numpy()[::-1])
        transformer = funnel(epsilon).fit(frame)
        released = transformer.transform(frame)
        sex, expected = frame["sex"], transformer.mechanism_.attacker_accuracy

        def exact(sensitive):
            options = {"mechanism": transformer, "attacker": BayesTable(), "cv": 2}
            table = audit(released, sensitive, **options)
            return table[["bayes_accuracy", "advantage_bound"]].iloc[0].tolist()

        for given in (sex, sex.to_frame(), sex.to_numpy(), sex.tolist(), sex.rename("gender")):
            assert_allclose(exact(given), [expected, np.sqrt(0.005)])
        for given in (frame["other"], sex.rename("other"), sex.replace({"f": "female"})):
            assert np.isnan(exact(given)).all()

    @pytest.mark.parametrize("epsilon", [0.01, {("sex", "label"): 0.01}], ids=["number", "dict"])
    def test_exact_figures_of_a_joint_secret(self, epsilon):
        frame = people()
        transformer = quiet_fit(funnel(epsilon, sensitive=["sex", "label"]), frame)
        released = transformer.transform(frame)
        options = {"mechanism": transformer, "attacker": BayesTable(), "cv": 2}
        for names in (["sex", "label"], ["label", "sex"]):
            table = audit(released, frame[names], **options)
            expected = transformer.mechanism_.attacker_accuracy
            assert table["bayes_accuracy"][0] == pytest.approx(expected)
        assert np.isnan(audit(released, frame["sex"], **options)["bayes_accuracy"][0])

    def test_one_secret_of_a_mechanism(self):
        frame, budgets = people(), {"sex": 0.01, "label": 0.02}
        transformer = quiet_fit(funnel(budgets, sensitive=["sex", "label"]), frame)
        released, mechanism = transformer.transform(frame), transformer.mechanism_
        with pytest.raises(TypeError, match=r"pass mechanism\.secrets\['sex'\], and so on"):
            audit(released, frame["sex"], mechanism=mechanism)
        secret = mechanism.secrets["sex"]
        table = audit(released, frame["sex"], mechanism=secret, attacker=BayesTable(), cv=2)
        assert table["bayes_accuracy"][0] == pytest.approx(secret.attacker_accuracy)
        assert table["advantage_bound"][0] == pytest.approx(secret.advantage_bound)

    @pytest.mark.parametrize("repeats", [80, pytest.param(200, marks=pytest.mark.slow)])
    def test_the_interval_of_a_known_advantage(self, repeats):
        # Y tells S with probability .7, S is uniform: the advantage is .2.
        rng = np.random.default_rng(3)
        covered = []
        for _ in range(repeats):
            s = rng.integers(2, size=400)
            y = np.where(rng.random(400) < 0.7, s, 1 - s)
            row = audit(y, s, attacker=BayesTable(), cv=3).iloc[0]
            covered.append(row["low"] <= 0.2 <= row["high"])
        assert_covers(covered, 0.95)

    def test_a_guess_that_is_never_better_is_not_known_to_be(self):
        rng = np.random.default_rng(4)
        s, y = rng.random(400) < 0.1, rng.integers(2, size=400)
        row = audit(y, s, attacker=BayesTable()).iloc[0]
        assert row["low"] < 0.0 < row["high"]

    def test_an_advantage_below_zero_is_explained(self):
        rng = np.random.default_rng(4)
        s, y = rng.random(300) < 0.4, rng.integers(40, size=300)
        table = audit(y, s, attacker=BayesTable())
        assert table["advantage"].min() < -0.01
        (note,) = table.attrs["notes"]
        assert f"here down to {100 * table['advantage'].min():.1f} points, is noise" in note
        assert "Read it as zero" in note

    def test_together_is_never_safer_than_a_part_without_a_word(self):
        # A table of the values seen together has hardly a row twice, and learns nothing from them.
        rng = np.random.default_rng(5)
        s = np.arange(300) % 2
        club = np.where(rng.random(300) < 0.8, s, 1 - s)
        names = pd.DataFrame({"club": club, "id": [f"row {i}" for i in range(300)]})
        table = audit(club, s, remainder=names, attacker=BayesTable())
        best = table.set_index("attacked")["advantage"]
        assert best["released and remainder"] < best["remainder: club"] - 0.2
        (note,) = [note for note in table.attrs["notes"] if note.startswith("Together")]
        assert f'+{100 * best["released"]:.1f} points, the advantage of "released"' in note
        assert f"{100 * best['released and remainder']:+.1f} points" in note

    def test_figures_that_mean_what_they_say_need_no_word(self):
        frame = people()
        table = audit(frame["zip"], frame["sex"], attacker=BayesTable())
        assert table.attrs["notes"] == []

    def test_attackers_of_ones_own(self):
        frame = people(500)
        table = audit(frame[["band"]], frame["sex"], attacker=LogisticRegression())
        assert table["attacker"].tolist() == ["LogisticRegression"]
        table = audit(
            frame[["band"]],
            frame["sex"],
            attacker={"mine": BayesTable()},
            cv=StratifiedKFold(3, shuffle=True, random_state=0),
        )
        assert table["attacker"].tolist() == ["mine"]

    @pytest.mark.parametrize(
        ("arguments", "options", "error", "text"),
        [
            (([1, 2], [0, 1, 0]), {}, ValueError, "sensitive has 3 rows, released has 2"),
            (([1, 2], [0, 0]), {}, ValueError, "at least two values"),
            (
                ([1, 2] * 9, [0] * 16 + [1] * 2),
                {},
                ValueError,
                "has 2 rows, fewer than the 5 folds",
            ),
            (([1, 2] * 9, [0, 1] * 9), {"attacker": 3}, TypeError, "'attacker' .* Got 3"),
            (([1, 2] * 9, [0, 1] * 9), {"attacker": {}}, TypeError, "'attacker' .* Got {}"),
            (([1, 2] * 9, [0, 1] * 9), {"attacker": BayesTable}, TypeError, "'attacker'"),
            (([1, 2] * 9, [0, 1] * 9), {"attacker": LinearRegression()}, TypeError, "'attacker'"),
            (([1, 2] * 9, [0, 1] * 9), {"mechanism": 3}, TypeError, "'mechanism' .* Got 3"),
            (([1, 2] * 9, [0, 1] * 9), {"confidence": 2}, ValueError, "'confidence'"),
        ],
    )
    def test_bad_arguments(self, arguments, options, error, text):
        with pytest.raises(error, match=text):
            audit(*arguments, **options)


class TestAdvantage:
    """What a budget allows an attacker to gain, whatever the mechanism."""

    @pytest.mark.parametrize(
        "measure",
        [
            KL(),
            L1(),
            Chi2(),
            MaxLift(),
            AlphaLift(1.5),
            AlphaLift(2),
            AlphaLift(5),
            Lip(),
            Parity(),
        ],
        ids=repr,
    )
    def test_holds_for_the_best_attacker(self, measure):
        rng = np.random.default_rng(4)
        for _ in range(40):
            joint = rng.dirichlet(np.full(12, 0.5)).reshape(3, 4)
            epsilon = float(10 ** rng.uniform(-3, 0))
            for scope in measure.scopes:
                problem = {"measure": measure, "scope": scope, "solver": "randomized_response"}
                mechanism = design_mechanism(joint, epsilon, **problem)
                p_s = joint.sum(axis=1)
                gained = (mechanism.p_sx @ mechanism.channel).max(axis=0).sum() - p_s.max()
                assert gained <= measure.advantage(epsilon, p_s) + 1e-9

    def test_of_a_measure_of_ones_own_nothing_is_known(self):
        from reference import Hellinger

        assert Hellinger().advantage(0.1, np.array([0.5, 0.5])) == 1.0

    @pytest.mark.parametrize("measure", [L1(), Chi2(), MaxLift(), AlphaLift(2)], ids=repr)
    def test_is_reached_where_s_is_x(self, measure):
        mechanism = design_mechanism(np.eye(2), 0.1, measure=measure, solver="randomized_response")
        assert_allclose(mechanism.attacker_advantage, mechanism.advantage_bound, rtol=1e-6)

    def test_is_not_more_than_there_is_to_gain(self):
        mechanism = design_mechanism([[0.5, 0.4], [0.03, 0.07]], 2.0)
        assert_allclose(mechanism.advantage_bound, 0.1)


class TestScorers:
    def pipeline(self, **options):
        encoder = OneHotEncoder(handle_unknown="ignore")
        return make_pipeline(funnel(**options), encoder, LogisticRegression())

    def test_the_leakage_is_that_of_the_rows_held_out(self):
        frame = people()
        pipeline = self.pipeline().fit(frame, frame["label"])
        other = people(seed=1)
        channel = pipeline[0].mechanism_
        counts = pd.crosstab(other["sex"], other["band"])
        exact = channel.evaluate(counts)
        score = metrics.neg_leakage_scorer()(pipeline, other)
        assert_allclose(-score, exact.max_leakage)
        average = metrics.neg_leakage_scorer("l1", "average")(pipeline, other)
        assert_allclose(-average, exact.with_measure(L1()).average_leakage)
        assert_allclose(metrics.utility_scorer()(pipeline, other), exact.normalized_utility)

    def test_values_that_fit_did_not_see_say_nothing(self):
        transformer = funnel().fit(people())
        other = people(200, seed=2)
        other["band"] = "z"
        assert_allclose(transformer.evaluate(other).max_leakage, 0.0, atol=1e-12)

    def test_epsilon_is_chosen_on_accuracy_and_leakage(self):
        frame = people()
        search = GridSearchCV(
            self.pipeline(),
            {"privacyfunneltransformer__epsilon": [0.001, 0.01, 0.1]},
            scoring={
                "accuracy": "accuracy",
                "leakage": metrics.neg_leakage_scorer(scope="average"),
                "kept": metrics.utility_scorer(),
            },
            refit=metrics.best_within_leakage(0.02, score="accuracy"),
            cv=3,
        ).fit(frame, frame["label"])
        results = pd.DataFrame(search.cv_results_)
        assert (np.diff(results["mean_test_leakage"]) < 0).all()
        assert (np.diff(results["mean_test_kept"]) > 0).all()
        assert search.best_index_ == 1
        assert metrics.utility_scorer()(search, frame) > 0.5

    def test_no_candidate_is_private_enough(self):
        results = {"mean_test_score": [0.7], "mean_test_leakage": [-0.3]}
        with pytest.raises(
            ValueError, match=r"leaks at most 0\.1 .* smallest mean leakage is 0\.3"
        ):
            metrics.best_within_leakage(0.1)(results)

    def test_candidates_without_a_score_are_not_chosen(self):
        rule = pickle.loads(pickle.dumps(metrics.best_within_leakage(0.1)))
        results = {
            "mean_test_score": [0.9, np.nan, 0.5],
            "mean_test_leakage": [-0.3, -0.01, -0.02],
        }
        assert rule(results) == 2

    def test_a_target_is_that_of_the_rows_held_out(self):
        frame, other = people(), people(seed=1)
        transformer = funnel(utility="target").fit(frame, frame["label"])
        figures = transformer.evaluate(other, other["label"])
        released = design_mechanism(pd.crosstab(other["label"], other["band"]), np.inf)
        p_vy = released.p_sx @ transformer.mechanism_.channel
        independent = np.outer(p_vy.sum(axis=1), p_vy.sum(axis=0))
        assert_allclose(figures.utility, (p_vy * np.log(p_vy / independent)).sum())
        with pytest.raises(ValueError, match="needs y, the target"):
            transformer.evaluate(other)

    def test_a_measure_without_an_average(self):
        with pytest.raises(ValueError, match="has no scope 'average'"):
            metrics.neg_leakage_scorer("lip", "average")

    def test_inside_a_column_transformer(self):
        frame = people()
        columns = make_column_transformer((funnel(), ["sex", "band"]), remainder="drop")
        model = make_pipeline(columns, OneHotEncoder(), LogisticRegression())
        model.fit(frame, frame["label"])
        score = metrics.neg_leakage_scorer()(model, frame)
        assert_allclose(-score, columns.transformers_[0][1].mechanism_.max_leakage)
        sliced = make_column_transformer((funnel(), slice(0, 2)))
        sliced.fit(frame)
        assert_allclose(metrics.neg_leakage_scorer()(sliced, frame), score)

    def test_sensitive_features_are_routed(self):
        frame = people()
        sex, rest = frame["sex"], frame[["band"]]
        with config_context(enable_metadata_routing=True):
            transformer = funnel(sensitive=None).set_fit_request(sensitive_features=True)
            model = make_pipeline(transformer, OneHotEncoder(), LogisticRegression())
            scores = cross_validate(
                model,
                rest,
                frame["label"],
                scoring={"leakage": metrics.neg_leakage_scorer(scope="average")},
                params={"sensitive_features": sex},
            )
        assert (scores["test_leakage"] < 0).all()
        assert (scores["test_leakage"] > -0.05).all()

    def search(self, X, frame, scoring, refit):
        grid = {"privacyfunneltransformer__epsilon": [0.001, 0.1]}
        search = GridSearchCV(
            self.pipeline(sensitive=None), grid, scoring=scoring, refit=refit, cv=2
        )
        return search.fit(
            X, frame["label"], privacyfunneltransformer__sensitive_features=frame["sex"]
        )

    @pytest.mark.filterwarnings("ignore:Scoring failed", "ignore:One or more of the test scores")
    def test_y_is_never_taken_for_s(self):
        """Its values are no groups of S, about which nothing would seem to leak."""
        frame, leakage = people(), metrics.neg_leakage_scorer(scope="average")
        scoring = {"score": "accuracy", "leakage": leakage, "kept": metrics.utility_scorer()}
        rule = metrics.best_within_leakage(0.01)
        with pytest.raises(ValueError, match="of no candidate could be measured"):
            self.search(frame[["band"]], frame, scoring, rule)
        kept = self.search(frame[["band"]], frame, scoring, "kept")
        assert np.isnan(kept.cv_results_["mean_test_leakage"]).all()
        assert kept.cv_results_["mean_test_kept"].min() > 0  # which needs no S
        found = self.search(frame[["band", "sex"]], frame, scoring, rule)
        assert found.best_index_ == 0
        assert (found.cv_results_["mean_test_leakage"] < 0).all()

    def test_scorers_by_other_names(self):
        results = {"mean_test_accuracy": [0.7], "mean_test_leakage": [-0.3]}
        with pytest.raises(ValueError, match=r"'score' parameter.*\['accuracy', 'leakage'\]"):
            metrics.best_within_leakage(0.1)(results)
        with pytest.raises(ValueError, match=r"\['score'\].*needs a search with two scorers"):
            metrics.best_within_leakage(0.1)({"mean_test_score": [-0.3]})

    def test_one_group_shows_nothing(self):
        frame = people()
        fitted, women = funnel().fit(frame), frame[frame["sex"] == "f"]
        with pytest.warns(PrivacyLeakWarning, match="single group of S"):
            assert fitted.evaluate(women).max_leakage == pytest.approx(0, abs=1e-12)
        with (
            pytest.warns(PrivacyLeakWarning, match="single group"),
            pytest.raises(ValueError, match="single group of S"),
        ):
            metrics.neg_leakage_scorer()(fitted, women)

    def test_without_a_transformer(self):
        frame = people(200)
        model = LogisticRegression().fit(frame[["noise"]], frame["label"])
        with pytest.raises(ValueError, match="one with a PrivacyFunnelTransformer"):
            metrics.neg_leakage_scorer()(model, frame)

    def test_a_transformer_from_a_file_does_not_know_s(self):
        frame = people()
        shipped = PrivacyFunnelTransformer.from_json(funnel().fit(frame).to_json())
        with pytest.raises(ValueError, match="loaded without the values of S"):
            shipped.evaluate(frame)
