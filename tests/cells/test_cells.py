"""Cells: a whole table as a few kinds of rows."""

import base64
import io
import json
import pickle
import warnings
import zipfile

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import skops.io
from documents import sealed
from example_tables import quick_scores
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skprivacy import (
    FiniteSampleWarning,
    PrivacyFunnelTransformer,
    PrivacyReport,
    ScoreCells,
    TreeCells,
)
from skprivacy._json import checksum
from skprivacy.cells import fewest_rows
from skprivacy.cells.models import read_models, write_models
from skprivacy.cells.trees import _features
from skprivacy.describing.numbers import at_most
from skprivacy.fitting.fitted_estimator import fitted_of
from skprivacy.metrics import estimate_distribution


def people(n=1500, seed=0):
    """Return a table of all kinds of columns, with a group and a target that depend on it."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    town = rng.choice(["Aix", "Bonn", "Cork", "Delft"], n, p=[0.5, 0.3, 0.15, 0.05])
    income = rng.lognormal(10, 0.5, n).round(2)
    since = pd.Timestamp("2001-01-01") + pd.to_timedelta(rng.integers(0, 5000, n), "D")
    score = 0.04 * (age - 50) + (town == "Bonn") - 0.00002 * income
    table = pd.DataFrame({
        "age": age, "town": town, "income": income, "since": since,
        "owner": rng.random(n) < 0.3,
        "note": pd.Series(rng.choice(["x", "y", None], n, p=[0.2, 0.1, 0.7])),
    })  # fmt: skip
    table["group"] = np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "a", "b")
    table["bought"] = rng.random(n) < 1 / (1 + np.exp(0.00005 * (income - 22_000)))
    return table


class Counting(GaussianNB):
    """A classifier that counts how often one like it was fitted."""

    n_fits = 0

    def fit(self, table, classes):
        Counting.n_fits += 1
        return super().fit(table, classes)


class Drawing(LogisticRegression):
    """A classifier that draws anew each time."""

    def predict_proba(self, table):
        noise = np.random.default_rng().uniform(0, 0.1, (len(table), 1))
        return super().predict_proba(table) + np.hstack([noise, -noise])


class Ranking(LogisticRegression):
    """A classifier whose scores depend on the other rows."""

    def predict_proba(self, table):
        found = super().predict_proba(table)
        return found / found.max(axis=0)


class Nameless(ClassifierMixin, BaseEstimator):
    """A classifier that does not say which classes it has."""

    def fit(self, table, classes):
        self.share_ = np.mean(classes)

    def predict_proba(self, table):
        return np.tile([1 - self.share_, self.share_], (len(table), 1))


class Renaming(Nameless):
    """A classifier that has other classes than it was given."""

    def fit(self, table, classes):
        super().fit(table, classes)
        self.classes_ = np.array([1, 2])


class Own(LogisticRegression):
    """A classifier that no file is trusted with."""


TABLE = people()
X = TABLE.drop(columns="bought")


def make(**options):
    """Return a transformer for the table."""
    return PrivacyFunnelTransformer(
        **{"epsilon": 0.05, "sensitive": "group", "alphabet": "cells", "random_state": 0} | options
    )


def fitted(**options):
    """Return it fitted, without warnings of few rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        target = TABLE["bought"] if options.get("utility") == "target" else None
        return make(**options).fit(X, target)


@pytest.fixture(scope="module")
def tree():
    """Return a transformer with cells of a tree."""
    return fitted(alphabet=TreeCells(max_cells=30))


@pytest.fixture(scope="module")
def scores():
    """Return a transformer with cells of scores."""
    return fitted(utility="target", alphabet=ScoreCells(max_cells=12))


@pytest.fixture(scope="module")
def few_trees():
    """Return a transformer with cells of scores whose models are small."""
    return fitted(utility="target", alphabet=quick_scores(12))


@pytest.fixture(params=["tree", "scores"])
def both(request):
    """Return each of them in turn."""
    return request.getfixturevalue(request.param)


def cells_of(transformer, table):
    """Return the cell of each row."""
    found = fitted_of(transformer)
    return found.alphabet.encode([table[name] for name in found.x_names], found.x_names)[0]


@pytest.mark.parametrize(
    ("alphabet", "utility"),
    [(TreeCells(30), "mutual_information"), (ScoreCells(max_cells=12), "target"),
     (ScoreCells(Own(), max_cells=12), "target")],
    ids=["tree", "scores", "own model"],
)  # fmt: skip
def test_rows_are_counted_in_the_cells_that_transform_finds(alphabet, utility):
    table = pd.concat([TABLE, TABLE[:700]]).sample(frac=1, random_state=0)
    rows, target = table[X.columns], table["bought"] if utility == "target" else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        funnel = make(alphabet=alphabet, utility=utility).fit(rows, target)
    found = np.bincount(cells_of(funnel, rows), minlength=len(funnel.cells_))
    assert_array_equal(funnel.cells_["rows"], found)


class TestCellsOfATree:
    def test_questions_lead_to_the_leaves_of_the_tree(self, tree):
        alphabet = fitted_of(tree).alphabet
        columns, names = alphabet.cell_columns, fitted_of(tree).x_names
        codes = np.column_stack(
            [c.codes(X[name], name) for c, name in zip(columns, names, strict=True)]
        )
        features, questions = _features(columns, codes)
        own = alphabet.partition.cut
        for cell, path in enumerate(own.paths()):  # a naive walk through the rules
            inside = np.ones(len(X), dtype=bool)
            for column, code, is_category, is_left in path:
                at = questions.index((column, code if is_category else None))
                goes_left = features[:, at] <= (0.5 if is_category else code + 0.5)
                inside &= goes_left == is_left
            assert_array_equal(inside, own.cells(codes) == cell)

    def test_every_cell_has_enough_rows(self, tree):
        least = fewest_rows(len(X), 2, 0.05, "kl")
        assert least == pytest.approx(40)  # 1 / (0.5 * 0.05)
        assert tree.cells_["rows"].min() >= 40

    @pytest.mark.parametrize("heavy", [1.0, 30.0])
    def test_no_cell_shows_a_single_person(self, heavy):
        weights = np.where(np.arange(len(X)) % 100 == 0, heavy, 1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            funnel = make(epsilon=np.inf).fit(X, sample_weight=weights)
        assert np.bincount(cells_of(funnel, X)).min() >= (20 if heavy == 1 else 5)

    def test_rules_tell_which_rows_are_in_a_cell(self, tree):
        in_cell = cells_of(tree, X)
        for number, rule in enumerate(tree.cells_["rule"]):
            rows = X[in_cell == number]
            if "town = Aix" in rule:
                assert (rows["town"] == "Aix").all()
            if "town not Aix" in rule:
                assert (rows["town"] != "Aix").all()
            if "note missing" in rule or "note = missing" in rule:
                assert rows["note"].isna().all()
        assert tree.cells_["rule"].str.contains("town").any()

    def test_cells_do_not_depend_on_s(self, tree):
        shuffled = X.assign(group=X["group"].sample(frac=1, random_state=1).to_numpy())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other = make(alphabet=TreeCells(max_cells=30)).fit(shuffled)
        assert fitted_of(other).alphabet.rules() == fitted_of(tree).alphabet.rules()


class TestRows:
    def test_the_budget_holds_for_what_is_counted(self, both):
        mechanism = both.mechanism_
        in_cell, group = cells_of(both, X), (X["group"] == "b").astype(int)
        counts = np.zeros((2, len(both.cells_)))
        np.add.at(counts, (group, in_cell), 1)
        assert_allclose(mechanism.p_sx, counts / counts.sum())
        assert mechanism.max_leakage <= 0.05 * (1 + 1e-9)
        assert_allclose(both.cells_["rows"], counts.sum(axis=0))

    @pytest.mark.parametrize("values", [
        pd.Categorical([3, 9, 1, 7], categories=[9, 3, 1, 7]),
        [2**60, 2**60 + 1, 2**60 + 2, 2**60 + 3],
        [1e308, 1.1e308, 1.2e308, 1.3e308],
        pd.to_datetime([10, 60, 110, 160]),
        [-0.0, 0.0, 1.0, 2.0],
    ])  # fmt: skip
    @pytest.mark.parametrize("options", [{}, {"utility": "target"}])
    def test_rows_are_released_from_the_cell_that_they_are_counted_in(self, values, options):
        rng = np.random.default_rng(0)
        code, number = rng.integers(4, size=1000), rng.integers(0, 60, 1000)
        table = pd.DataFrame(
            {"a": pd.Series(values).iloc[code].reset_index(drop=True), "b": number}
        )
        groups = rng.random(1000) < 0.2 + 0.15 * code
        target = rng.random(1000) < number / 60
        cells = ScoreCells(LogisticRegression()) if options else TreeCells()
        if options:
            table["a"] = np.arange(4.0)[code]
        funnel = PrivacyFunnelTransformer(0.02, alphabet=cells, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            funnel.fit(table, target, sensitive_features=groups)
            evaluated = funnel.evaluate(table, target, sensitive_features=groups)
        assert evaluated.max_leakage == pytest.approx(funnel.mechanism_.max_leakage)

    def test_order_of_rows_does_not_matter(self, both):
        order = np.random.default_rng(0).permutation(len(X))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other = clone(both).fit(X.iloc[order], TABLE["bought"].iloc[order])
        assert fitted_of(other).alphabet.rules() == fitted_of(both).alphabet.rules()
        assert_array_equal(other.mechanism_.channel, both.mechanism_.channel)

    def test_values_that_fit_did_not_see_have_a_cell(self, both):
        new = X.head(6).assign(
            age=[7, 120, 18, 44, 44, 44],
            town=["Zug", None, "Aix", "Ulm", "Aix", "Aix"],
            income=[-1.0, 1e9, np.nan, 2.0, 3.0, 4.0],
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            released = both.transform(new)
        assert released.shape == (6, 6)
        both_again = clone(both).set_params(handle_unknown="error")
        assert_array_equal(cells_of(both, new), cells_of(both, new.iloc[::-1])[::-1])
        assert both_again.handle_unknown == "error"

    def test_columns_are_drawn_separately_and_rare_values_are_not_shown(self, both):
        released = both.transform(X)
        assert list(released) == list(X.drop(columns="group"))
        assert (released.dtypes == X.drop(columns="group").dtypes).all()
        as_rows = set(map(tuple, X.drop(columns="group").astype(str).to_numpy()))
        shown = [tuple(row) in as_rows for row in released.astype(str).to_numpy()]
        assert np.mean(shown) < 0.01
        assert not released["income"].isin(X["income"][X["income"].map(
            X["income"].value_counts()) == 1]).all()  # fmt: skip

    def test_unique_people_come_out_hardly_more_often_than_by_chance(self):
        rng = np.random.default_rng(0)
        shares = 0.5 ** np.arange(8) / sum(0.5 ** np.arange(8))
        frame = pd.DataFrame(
            {f"x{i}": rng.choice(list("abcdefgh"), 6000, p=shares) for i in range(5)}
        )
        groups = rng.choice(["f", "m"], 6000)
        funnel = PrivacyFunnelTransformer(0.5, alphabet="cells", random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            released = funnel.fit(frame, sensitive_features=groups).transform(frame)
        shuffled = frame.apply(rng.permutation)
        alone = frame.drop_duplicates(keep=False)
        found, by_chance = (len(alone.merge(f.drop_duplicates())) for f in (released, shuffled))
        assert len(alone) > 500
        assert found < 1.25 * by_chance

    def test_keyed_releases_repeat(self, both):
        key, ids = bytes(range(32)), np.arange(len(X))
        first = both.transform(X, record_ids=ids, secret_key=key)
        copy = pickle.loads(pickle.dumps(both))
        order = np.random.default_rng(0).permutation(len(X))
        again = copy.transform(X.iloc[order], record_ids=ids[order], secret_key=key)
        pd.testing.assert_frame_equal(first.iloc[order], again)

    def test_evaluate_and_certify(self, both):
        new = people(1000, seed=5)
        y = new["bought"]
        evaluated = both.evaluate(new.drop(columns="bought"), y)
        assert evaluated.normalized_utility > 0.05
        own = both.evaluate(X, TABLE["bought"])
        assert_allclose(own.max_leakage, both.mechanism_.max_leakage)
        assert both.certify(new, y).average_leakage_bound > 0

    def test_the_same_rows_have_the_same_figures(self, both):
        rows = X.sample(frac=1, random_state=0)
        figures = both.evaluate(rows, TABLE["bought"][rows.index])
        for name in ("max_leakage", "utility", "normalized_utility"):
            assert getattr(figures, name) == pytest.approx(getattr(both.mechanism_, name))
        for utility in ("guess", "distortion"):
            other = fitted(utility=utility, alphabet=TreeCells(max_cells=8))
            kept = other.mechanism_.normalized_utility
            assert other.evaluate(rows).normalized_utility == pytest.approx(kept)

    @pytest.mark.parametrize("output", ["symbol", "posterior"])
    def test_other_outputs(self, both, output):
        other = clone(both).set_params(output=output)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            released = other.fit_transform(X, TABLE["bought"])
        assert list(released) == list(other.get_feature_names_out())
        if output == "posterior":
            assert_allclose(released.sum(axis=1), 1)


class TestTargets:
    def test_the_posterior_is_that_of_the_target(self, scores):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            funnel = clone(scores).set_params(output="posterior").fit(X, TABLE["bought"])
        released = funnel.transform(X)
        assert list(released) == ["bought=False", "bought=True"]
        # What is shown for an output is the share of buyers among the rows that it is drawn for.
        bought = TABLE["bought"].groupby(cells_of(funnel, X)).mean().to_numpy()
        expected = funnel.mechanism_.posterior @ bought
        assert np.isin(released["bought=True"].round(9), expected.round(9)).all()

    def test_outputs_that_say_the_same_about_the_target_are_merged(self, scores):
        mechanism = scores.mechanism_
        assert mechanism.channel.shape[1] < len(scores.cells_)
        assert mechanism.normalized_upper_bound * 0.99 < mechanism.normalized_utility

    def test_a_report_says_what_the_target_adds(self, scores):
        text = " ".join(str(PrivacyReport.from_estimator(scores)).split())
        assert "Together with it, a released value reveals up to" in text
        assert "score of target" in text
        figure = float(text.split("reveals up to ")[1].split()[0])
        # Naively: P(S | v, y), from counts of all three.
        channel, in_cell = scores.mechanism_.channel, cells_of(scores, X)
        worst, p_s = 0.0, X["group"].value_counts(normalize=True)
        for v in (False, True):
            joint = [channel[in_cell[(X["group"] == s) & (TABLE["bought"] == v)]].sum(axis=0)
                     for s in p_s.index]  # fmt: skip
            given = np.array(joint) / np.sum(joint, axis=0)
            terms = given.T * np.log(np.maximum(given.T, 1e-300) / p_s.to_numpy())
            worst = max(worst, terms.sum(axis=1).max())
        assert figure == pytest.approx(worst, rel=1e-3)


class TestMemory:
    """Models that are kept in a folder."""

    def fitted(self, memory, epsilon=0.05, rows=slice(None)):
        cells = ScoreCells(Counting(), max_cells=8, memory=memory)
        asked = {"columns": ["age", "income"], "utility": "target", "alphabet": cells}
        before = Counting.n_fits
        funnel = make(epsilon=epsilon, **asked).fit(X[rows], TABLE["bought"][rows])
        return funnel.mechanism_.channel, Counting.n_fits - before

    def test_a_second_budget_needs_no_new_models(self, tmp_path):
        for epsilon in (0.05, 0.2):
            alone, n_fits = self.fitted(None, epsilon)
            kept, n_kept = self.fitted(str(tmp_path), epsilon)
            assert_array_equal(kept, alone)
            assert (n_fits, n_kept) == (8, 8 if epsilon == 0.05 else 0)

    def test_other_rows_have_other_models(self, tmp_path):
        memory = joblib.Memory(tmp_path, verbose=0)
        self.fitted(memory)
        alone, _ = self.fitted(None, rows=slice(1000))
        kept, n_fits = self.fitted(memory, rows=slice(1000))
        assert_array_equal(kept, alone)
        assert n_fits == 8


class TestUtility:
    def test_shares_are_of_the_raw_columns(self, tree):
        found, mechanism = fitted_of(tree), tree.mechanism_
        in_cell, shares = cells_of(tree, X), []
        for position, name in enumerate(found.x_names):
            column = found.alphabet.cell_columns[position]
            counts = pd.crosstab(column.codes(X[name], name), in_cell).to_numpy()
            p_vy = counts @ mechanism.channel / len(X)
            p_v, p_y = p_vy.sum(axis=1), p_vy.sum(axis=0)
            ratio = np.divide(p_vy, np.outer(p_v, p_y), where=p_vy > 0, out=np.ones_like(p_vy))
            shares.append((p_vy * np.log(ratio)).sum() / -(p_v * np.log(p_v)).sum())
        assert mechanism.normalized_utility == pytest.approx(np.mean(shares))
        assert mechanism.normalized_utility <= mechanism.cell_utility < 1

    def test_sentences_and_reports_tell_what_cells_lose(self, tree):
        lost = at_most(tree.mechanism_.cell_utility)  # rounded up
        assert lost in tree.summary_.kept_sentence()
        report = str(PrivacyReport.from_estimator(tree))
        assert lost in report
        assert "town = Aix" in report
        assert "6 columns released" in report

    def test_who_guesses_a_cell_has_not_guessed_the_row(self):
        funnel = fitted(utility="guess", alphabet=TreeCells(max_cells=12))
        kept = "the chance of guessing the cell of a row, beyond a blind guess"
        assert kept in " ".join(str(PrivacyReport.from_estimator(funnel)).split())
        loaded = PrivacyFunnelTransformer.from_json(funnel.to_json())
        assert loaded.mechanism_.objective.in_words("X") == kept
        assert loaded.mechanism_.objective == funnel.mechanism_.objective

    def test_rows_of_cells_cannot_be_read_back(self, both):
        with pytest.raises(ValueError, match="rows of a cell are made up"):
            estimate_distribution(both.transform(X), both)
        released = both.set_params(output="symbol").transform(X)
        both.set_params(output="label")
        assert estimate_distribution(released, both.mechanism_).shape[1] == 2

    def test_distances_are_from_the_true_values(self):
        funnel = fitted(utility="distortion", alphabet=TreeCells(max_cells=10))
        assert funnel.mechanism_.normalized_utility <= funnel.mechanism_.cell_utility < 1

    def test_with_a_confidence(self):
        funnel = fitted(confidence=0.95, alphabet=TreeCells(max_cells=10))
        assert funnel.mechanism_.population_limit.max_leakage <= 0.05 * (1 + 1e-9)


class TestJson:
    def test_a_tree_is_written_and_read(self, tree):
        key, ids = bytes(range(32)), np.arange(len(X))
        loaded = PrivacyFunnelTransformer.from_json(tree.to_json())
        pd.testing.assert_frame_equal(
            loaded.transform(X, record_ids=ids, secret_key=key),
            tree.transform(X, record_ids=ids, secret_key=key),
        )
        pd.testing.assert_frame_equal(loaded.cells_, tree.cells_)
        assert loaded.to_json() == tree.to_json()

    def test_scores_are_written_and_read_without_pickle(self, scores):
        key, ids = bytes(range(32)), np.arange(len(X))
        text = scores.to_json()
        loaded = PrivacyFunnelTransformer.from_json(text)
        pd.testing.assert_frame_equal(
            loaded.transform(X, record_ids=ids, secret_key=key),
            scores.transform(X, record_ids=ids, secret_key=key),
        )
        content = json.loads(text)["scores"]
        inside = json.dumps(content).encode()
        if (models := content["models"]) is not None:
            with zipfile.ZipFile(io.BytesIO(base64.b64decode(models))) as archive:
                inside += b"".join(archive.read(name) for name in archive.namelist())
        assert b"group" not in inside  # neither the name nor the values of S

    def test_other_types_are_refused_when_written_and_when_read(self, scores):
        funnel = fitted(utility="target", alphabet=ScoreCells(Own(), 8), columns=["age", "owner"])
        with pytest.raises(ValueError, match=r"The models of ScoreCells hold .*Own"):
            funnel.to_json()
        content = json.loads(scores.to_json())
        del content["checksum"]
        models = [[Own()] * 4] * 2
        content["scores"]["models"] = base64.b64encode(skops.io.dumps(models)).decode()
        forged = json.dumps({**content, "checksum": checksum(content)})
        with pytest.raises(
            ValueError, match=r"scores.models: models hold .*Own, which is refused"
        ):
            PrivacyFunnelTransformer.from_json(forged)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"classes_": np.array([], dtype=int)}, "must be a classifier of these classes"),
            ({"classes_": np.array([1, 0])}, "must be a classifier of these classes"),
            ({"classes_": np.array([0, 0])}, "must be a classifier of these classes"),
            ({"classes_": np.array([[0, 1]])}, "must be a classifier of these classes"),
            ({"classes_": np.array([0, 2])}, "must be a classifier of these classes"),
            ({"classes_": np.array([0])}, "must be a classifier of these classes"),
            (
                {"coef_": np.zeros((1, 9))},
                "must score .*: LogisticRegression must have coef_ with",
            ),
            ({"coef_": None}, "must score .*: LogisticRegression must have coef_ with"),
            ({"predict_proba": 1}, "must score .* with no other attributes"),
            ({"feature_names_in_": np.array(["a", "b"])}, "must score a row of these columns"),
        ],
    )
    def test_models_that_cannot_score(self, change, message):
        model = LogisticRegression()
        funnel = fitted(utility="target", alphabet=ScoreCells(model, 8), columns=["age", "owner"])
        content = json.loads(funnel.to_json())
        models = skops.io.loads(base64.b64decode(content["scores"]["models"]))
        vars(models[1][2]).update(change)
        content["scores"]["models"] = base64.b64encode(skops.io.dumps(models)).decode()
        with pytest.raises(ValueError, match=rf"scores\.models: every model {message}\b"):
            PrivacyFunnelTransformer.from_json(sealed(content))

    def test_trees_that_lead_nowhere(self, few_trees):
        content = json.loads(few_trees.to_json())
        read = read_models(content["scores"]["models"])
        tree = read[0][3]._predictors[0][0]
        tree.nodes = tree.nodes.copy()
        tree.nodes["left"][0] = 0  # it would be followed forever
        content["scores"]["models"] = write_models(read)
        with pytest.raises(
            ValueError, match=r"scores\.models: .*TreePredictor must have questions"
        ):
            PrivacyFunnelTransformer.from_json(sealed(content))


class TestAuto:
    def test_it_takes_cells_where_most_combinations_are_unique(self):
        with pytest.warns(UserWarning, match="rows that are alike share a cell"):
            assert len(make(alphabet="auto").fit(X).cells_) > 1

    @pytest.mark.parametrize("options", [
        {"columns": ["town"]}, {"columns": ["town", "owner"]}, {"alphabet": "values"},
        {"columns": ["age", "town"], "solver": "column_generation", "n_bins": 4},
    ])  # fmt: skip
    def test_it_keeps_values_elsewhere(self, options):
        assert not hasattr(fitted(**{"alphabet": "auto"} | options), "cells_")

    def test_batches_keep_values(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            streamed = make(alphabet="auto").partial_fit(X[["town", "owner", "group"]])
        assert not hasattr(streamed, "cells_")

    def test_counted_rows_are_as_many_as_they_stand_for(self):
        few = pd.DataFrame({"a": ["u", "v"] * 400, "b": ["x", "y"] * 400})
        few["s"] = few["a"]  # each combination is one distinct row of all three
        funnel = PrivacyFunnelTransformer(0.05, sensitive="s")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert not hasattr(funnel.fit(pl.LazyFrame(few)), "cells_")

    def test_a_search_over_the_number_of_cells(self):
        funnel = make(alphabet=TreeCells(), columns=["age", "town", "income", "owner"])
        ends = FunctionTransformer(lambda frame: frame[["age", "income", "owner"]])
        pipeline = make_pipeline(funnel, ends, LogisticRegression())
        names = "privacyfunneltransformer__alphabet__max_cells"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search = GridSearchCV(pipeline, {names: [4, 12]}, cv=2).fit(X, TABLE["bought"])
        assert len(search.best_estimator_[0].cells_) <= search.best_params_[names]


class TestBadInput:
    @pytest.mark.parametrize(("options", "error", "message"), [
        ({"alphabet": "rows"}, ValueError, "'alphabet' parameter"),
        ({"alphabet": TreeCells}, TypeError, "an instance of TreeCells, not the class"),
        ({"alphabet": TreeCells(max_cells=1)}, ValueError, "'max_cells' parameter of TreeCells"),
        ({"alphabet": ScoreCells()}, ValueError, "utility='target'"),
        ({"alphabet": ScoreCells(LinearRegression()), "utility": "target"}, TypeError,
         "classifier with predict_proba"),
        ({"alphabet": ScoreCells(LogisticRegression), "utility": "target"}, TypeError,
         "classifier with predict_proba"),
        ({"alphabet": ScoreCells(memory=3), "utility": "target"}, ValueError, "'memory' should be"),
    ])  # fmt: skip
    def test_parameters(self, options, error, message):
        with pytest.raises(error, match=message):
            fitted(**options)

    def test_a_target_with_one_value(self):
        with pytest.raises(ValueError, match="The target has one value only"):
            make(utility="target").fit(X, np.zeros(len(X)))

    def test_too_few_rows(self):
        with pytest.raises(ValueError, match="too few, or too alike"):
            make().fit(X.iloc[:1])

    def test_constant_columns(self):
        constant = X[["group"]].assign(a=1, b="x")
        with pytest.raises(ValueError, match=r"too few, or too alike"):
            make().fit(constant)

    def test_a_column_that_names_rows_is_left_out_or_refused(self):
        named = X.assign(name=[f"person {i}" for i in range(len(X))], number=np.arange(len(X)))
        with pytest.warns(UserWarning, match="Left out of the release: 'name', 'number'"):
            funnel = make().fit(named)
        assert list(funnel.transform(named)) == list(X.drop(columns="group"))
        with pytest.raises(ValueError, match="'name' has a different value"):
            make(columns=["name", "age"]).fit(named)

    def test_one_column(self):
        with pytest.raises(ValueError, match="X has one: use alphabet='values'"):
            make(columns=["age"]).fit(X)

    def test_cells_that_nearly_determine_s_keep_the_budget(self):
        known = X.assign(group=np.where(X["age"] > 50, "a", "b"))
        with pytest.warns(FiniteSampleWarning, match="holds for these rows only"):
            funnel = make(columns=["age", "town"], epsilon=1e-6).fit(known)
        assert funnel.mechanism_.max_leakage <= 1e-6 * (1 + 1e-9)

    def test_texts_with_thousands_of_values(self):
        rng = np.random.default_rng(0)
        rare = [f"word {i}" for i in rng.zipf(1.3, len(X)).clip(max=5000)]
        funnel = make(columns=["age", "word"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            released = funnel.fit(X.assign(word=rare)).transform(X.assign(word="never seen"))
        counts = pd.Series(rare).value_counts()
        assert (counts[released["word"].unique()] >= 5).all()

    def test_other_estimators(self):
        for model in (LogisticRegression(), KNeighborsClassifier()):  # the second takes no weights
            fitted(utility="target", alphabet=ScoreCells(model, 8), columns=["age", "owner"])

    @pytest.mark.parametrize(
        ("model", "message"),
        [
            (Drawing(), "Drawing, the .* another score .* set its random_state to an integer"),
            (Ranking(), "Ranking, the .* another score .* must score each row by itself"),
            (Nameless(), "Nameless, the estimator of ScoreCells, has no classes_ after fit"),
            (Renaming(), "Renaming, .* has other classes_ after fit than it was given"),
        ],
    )
    def test_estimators_that_cannot_be_used(self, model, message):
        with pytest.raises(ValueError, match=message):
            fitted(utility="target", alphabet=ScoreCells(model, 8), columns=["age", "owner"])

    def test_weights_may_be_why_there_are_no_cells(self):
        weights = np.where(np.arange(len(X)) < 1, 1e9, 1.0)
        with pytest.raises(ValueError, match="too alike, or a few have most of the weight, to"):
            make().fit(X, sample_weight=weights)
        with pytest.raises(ValueError, match="too few, or too alike, to be"):
            make().fit(X[:25])


@pytest.mark.parametrize("measure", ["lip", "max_lift"])
def test_cuts_are_compared_for_measures_with_an_exact_solver(measure):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 3)), columns=[*"abc"])
    s = np.searchsorted([-0.5, 0.5], table["a"] + rng.normal(size=200))
    funnel = PrivacyFunnelTransformer(
        0.5, measure=measure, utility="target", alphabet=ScoreCells(GaussianNB())
    )
    funnel.fit(table, table["b"] + table["a"] > 0, sensitive_features=s)
    assert funnel.mechanism_.max_leakage <= 0.5 * (1 + 1e-9)
