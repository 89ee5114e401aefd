"""Cells along one score, and the models and scores behind them."""

import json
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from documents import sealed
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from quick_models import learn_quickly
from scipy.special import softmax
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression

from skprivacy import PrivacyFunnelTransformer, ScoreCells
from skprivacy.cells.additive import AdditiveModel, fit_additive
from skprivacy.cells.cells import CellTask, Classes
from skprivacy.cells.lines import PARTS, along_line, lines
from skprivacy.cells.scores import directions_of
from skprivacy.fitting.fitted_estimator import fitted_of
from skprivacy.fitting.learned_cells import _worth


def task_of(weights, n_groups=2, **options):
    """Return a task with these weights; only they and its limits matter to lines."""
    n = len(weights)
    given = {"columns": (), "codes": np.zeros((n, 0)), "weights": weights, "n_rows": weights.sum(),
             "most_cells": 64, "least_share": 0.01,
             "s": Classes(np.zeros(n, int), n_groups, False)}  # fmt: skip
    return CellTask(**given | options)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(100, 600), st.sampled_from([1, 3]))
def test_places_are_mixtures_of_two_ranks(seed, n, n_scores_of_s):
    rng = np.random.default_rng(seed)
    of_target = np.rint(100 * rng.beta(1, 2, n)).astype(int)
    of_s = rng.integers(0, 101, (n, n_scores_of_s))
    weights = rng.integers(1, 4, n).astype(float)
    found = lines(of_target[:, None], of_s, task_of(weights, n_scores_of_s + 1), 64)
    for share, line in zip((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), found, strict=False):
        if n_scores_of_s > 1:
            share *= 2
        if share > 0.8:
            continue
        in_bin = line.bins.cells(of_s)
        repeated = np.repeat(np.arange(n), weights.astype(int))  # a naive rank: rows one by one

        def rank(rows, repeated=repeated):
            of = of_target[repeated][rows]
            return (rankdata(of) - 0.5) / len(of)

        among_all, within = rank(slice(None)), np.empty(len(repeated))
        for number in np.unique(in_bin):
            within[in_bin[repeated] == number] = rank(in_bin[repeated] == number)
        place = ((1 - share) * among_all + share * within).round(9)
        cell = line.cells(np.column_stack([of_target, of_s]))[repeated]
        ends = [(place[cell == k].min(), place[cell == k].max()) for k in range(line.n_cells)]
        assert all(low[1] < high[0] for low, high in pairwise(ends))


@given(st.integers(0, 10_000), st.integers(60, 600))
def test_no_cell_is_smaller_than_its_share(seed, n):
    rng = np.random.default_rng(seed)
    of_target, of_s = rng.integers(0, rng.integers(2, 101), n), rng.integers(0, 101, (n, 1))
    weights = rng.uniform(0.1, 5, n)
    for line in lines(of_target[:, None], of_s, task_of(weights, fewest_distinct=5), 64):
        cells = line.cells(np.column_stack([of_target, of_s]))
        sizes = np.bincount(cells, weights, line.n_cells)
        assert line.n_cells <= 20
        assert line.n_cells == 1 or sizes.min() >= weights.sum() / 20 * (1 - 1e-6)
        assert line.n_cells == 1 or np.bincount(cells).min() >= 5


def test_classes_of_a_target_are_points_on_a_line():
    assert_array_equal(
        along_line(np.array([[0], [37], [100]]), np.array([0.0, 1.0])), [0, 37, 100]
    )
    certain = np.array([[0, 0], [100, 0], [0, 100]])
    assert_array_equal(along_line(certain, np.array([0.4, 1.0, 0.0])), [40, 100, 0])


def test_ordered_classes_have_one_score():
    shares = np.array([0.5, 0.25, 0.25])
    assert_allclose(directions_of(shares, True), [[0.0, 0.6, 1.0]])  # mid-ranks .25, .625, .875
    assert_allclose(directions_of(shares, False), np.eye(3)[1:])


class TestAdditiveModels:
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_they_are_logistic_regression_of_the_same_features(self, n_classes):
        rng = np.random.default_rng(0)
        codes = np.column_stack([rng.integers(0, 30, 800), rng.integers(-1, 4, 800)])
        places = np.sort(rng.lognormal(size=30))
        level = codes[:, 0] / 10 + 0.5 * codes[:, 1] + rng.logistic(size=800)
        classes = np.digitize(level, [1.5, 2.5][: n_classes - 1])
        weights = rng.uniform(0.5, 2, 800)
        (model,) = fit_additive([(30, places), (4, None)], codes, classes, weights, [1.0])
        # The features are spelled out here once more, row by row.
        share = np.bincount(codes[:, 0], weights, 30) / weights.sum()
        mean = share @ places
        number = ((places - mean) / np.sqrt(share @ (places - mean) ** 2)).clip(-4, 4)
        rank = np.sqrt(12) * (share.cumsum() - share / 2 - 0.5)
        columns = [f[codes[:, 0]] - share @ f for f in (number, rank, rank**2)]
        features = np.column_stack(columns + [codes[:, 1] == k for k in range(4)])
        own = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000)
        own.fit(features, classes, weights)
        assert_allclose(model.probabilities(codes), own.predict_proba(features), rtol=0, atol=1e-4)

    def test_a_row_has_the_same_score_beside_any_others(self):
        rng = np.random.default_rng(1)
        codes = rng.integers(0, 50, (3000, 9))
        (model,) = fit_additive(
            [(50, np.arange(50.0))] * 9, codes, rng.integers(3, size=3000), np.ones(3000), [0.1]
        )
        every = model.probabilities(codes)
        assert_array_equal(every[::-7], model.probabilities(codes[::-7]))
        odds = model.constant + sum(
            table[of] for table, of in zip(model.tables, codes.T, strict=True)
        )
        assert_allclose(every, softmax(np.pad(odds, ((0, 0), (1, 0))), axis=1))

    @pytest.mark.parametrize("places", [np.array([7.0]), np.array([1e308, 1.7e308]), np.empty(0)])
    def test_columns_that_say_nothing_or_are_huge(self, places):
        codes = np.arange(40)[:, None] % max(len(places), 1) - (len(places) == 0)
        classes = np.arange(40) // 2 % 2
        (model,) = fit_additive([(len(places), places)], codes, classes, np.ones(40), [1.0])
        assert_allclose(model.probabilities(codes), 0.5, atol=1e-6)


def drawn(n=1500, seed=0, n_groups=2):
    """Return columns, groups and a target that depend on them."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n, 3)).round(2), columns=list("abc"))
    table["town"] = rng.choice(["Aix", "Bonn", "Cork"], n)
    lean = table["a"] + (table["town"] == "Aix") + rng.logistic(size=n)
    target = table["b"] + 0.5 * table["a"] + rng.logistic(size=n)
    return table, np.digitize(lean, np.linspace(-1, 2, n_groups - 1)), target.to_numpy()


def fitted(table, s, v, **options):
    """Return a transformer fitted, without warnings of few rows."""
    cells = ScoreCells(**options)
    funnel = PrivacyFunnelTransformer(0.02, utility="target", alphabet=cells, output="symbol")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return funnel.fit(table, v, sensitive_features=s)


class TestScoreCells:
    @pytest.mark.parametrize(("n_groups", "n_classes"), [(2, 3), (4, 2)])
    def test_every_cut_is_a_function_of_the_row(self, n_groups, n_classes, monkeypatch):
        learn_quickly(monkeypatch)
        table, s, v = drawn(n_groups=n_groups)
        v = np.digitize(v, [0.0, 1.0][: n_classes - 1]).astype(str)
        for cut in ("plane", "line", "best"):
            funnel = fitted(table, s, v, cut=cut)
            assert funnel.mechanism_.max_leakage <= 0.02 * (1 + 1e-9)
            found, names = fitted_of(funnel).alphabet, fitted_of(funnel).x_names
            cells, _ = found.encode([table[name] for name in names], names)
            assert_array_equal(np.bincount(cells), funnel.cells_["rows"])
            some, _ = found.encode([table[name][::-3] for name in names], names)
            assert_array_equal(some, cells[::-3])
            text = funnel.to_json()
            loaded = PrivacyFunnelTransformer.from_json(text)
            again, _ = fitted_of(loaded).alphabet.encode([table[name] for name in names], names)
            assert_array_equal(again, cells)
            assert loaded.cells_["rule"].tolist() == funnel.cells_["rule"].tolist()

    @pytest.mark.parametrize(
        "options",
        [
            {"measure": "lip"},
            {"measure": "max_lift", "scope": "average"},
            {"measure": "l1", "max_outputs": 3},
            {"solver": "randomized_response"},
            {"smoothing": 1.0},
            {"confidence": 0.9},
        ],
        ids=str,
    )
    def test_whatever_is_asked_for(self, options, monkeypatch):
        learn_quickly(monkeypatch)
        table, s, v = drawn(600, n_groups=3)
        cells = {"utility": "target", "alphabet": ScoreCells(), "output": "symbol"}
        funnel = PrivacyFunnelTransformer(0.1, **cells, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mechanism = funnel.fit(table, v > 0, sensitive_features=s).mechanism_
        is_average = options.get("scope") == "average"
        leakage = mechanism.average_leakage if is_average else mechanism.max_leakage
        assert leakage <= 0.1 * (1 + 1e-9) + 1e-12

    def test_the_best_cut_keeps_at_least_as_much(self, monkeypatch):
        learn_quickly(monkeypatch)
        table, s, v = drawn()
        kept = {
            cut: fitted(table, s, v > 0, cut=cut).mechanism_.utility
            for cut in ("best", "plane", "line")
        }
        assert kept["best"] in (kept["plane"], kept["line"])
        assert kept["best"] >= kept["plane"] - 0.003  # a plane of many cells has more bias

    def test_each_variable_has_the_models_that_forecast_it_best(self, monkeypatch):
        learn_quickly(monkeypatch)
        rng = np.random.default_rng(0)
        table = pd.DataFrame(rng.normal(size=(1500, 3)), columns=list("abc"))
        crossed = (table["a"] > 0) ^ (table["b"] > 0)
        straight = table["c"] > rng.logistic(size=1500)
        for s, v in ((crossed, straight), (straight, crossed)):
            partition = fitted_of(fitted(table, s, v)).alphabet.partition
            for scorer, labels in ((partition.target, v), (partition.sensitive, s)):
                is_sum = [isinstance(part[0], AdditiveModel) for part in scorer.parts]
                assert any(is_sum) == (labels is straight)

    def test_a_cut_is_worth_nothing_where_there_is_nothing_to_keep(self, monkeypatch):
        learn_quickly(monkeypatch)
        seen, learn = [], ScoreCells.learn
        monkeypatch.setattr(
            ScoreCells, "learn", lambda cells, task: seen.append(task) or learn(cells, task)
        )
        table, s, v = drawn(600)
        funnel = fitted(table, s, np.digitize(v, [0.0, 1.0]).astype(str), cut="line")
        partition = fitted_of(funnel).alphabet.partition
        cells = partition.cells(seen[0].columns, seen[0].codes)
        *given, target, weights, n_rows = seen[0].worth.args
        rng = np.random.default_rng(0)
        shuffled = [target._replace(codes=rng.permutation(target.codes)) for _ in range(60)]
        kept, worth = (
            np.array([_worth(*given, of, weights, n, cells) for of in shuffled])
            for n in (np.inf, n_rows)
        )
        error = kept.std() / np.sqrt(len(kept))
        assert kept.mean() > 10 * error
        assert abs(worth.mean()) < 0.2 * kept.mean()

    def test_rules_of_a_line_tell_which_rows_are_in_a_cell(self, monkeypatch):
        learn_quickly(monkeypatch)
        table, s, v = drawn()
        funnel = fitted(table, s, v > 0, cut="line")
        partition = fitted_of(funnel).alphabet.partition
        every = np.array([(i, j) for i in range(PARTS + 1) for j in range(PARTS + 1)])
        cells = partition.cut.cells(every)
        assert len(set(funnel.cells_["rule"])) == partition.n_cells
        for number, rule in enumerate(funnel.cells_["rule"]):  # read as a person would
            inside = np.zeros(len(every), dtype=bool)
            for part in rule.split("; "):
                place, _, bins = part.partition(" where ")
                holds = _holds(place, every[:, 0])
                in_bin = [_holds(each, every[:, 1]) for each in bins.split(" or ")] if bins else []
                inside |= holds & (np.any(in_bin, axis=0) if in_bin else True)
            assert_array_equal(inside, cells == number)

    def test_a_target_with_an_order_has_one_score(self, monkeypatch):
        learn_quickly(monkeypatch)
        table, s, v = drawn(600)
        for target in (v, pd.Series(pd.cut(v, 5, labels=list("edcba"), ordered=True))):
            scorer = fitted_of(fitted(table, s, target)).alphabet.partition.target
            assert scorer.n_scores == 1
            assert scorer.n_classes > 3
        scorer = fitted_of(fitted(table, s, pd.cut(v, 3, labels=list("bac")).astype(str)))
        assert scorer.alphabet.partition.target.n_scores == 2

    @pytest.mark.parametrize("cut", ["tree", None, 2])
    def test_other_cuts_are_refused(self, cut):
        table, s, v = drawn(200)
        with pytest.raises((TypeError, ValueError), match="'cut' parameter of ScoreCells must be"):
            fitted(table, s, v > 0, cut=cut)


def _holds(text, scores):
    """Return whether scores of 0 to PARTS are as a text says, such as "0.20 < a <= 0.31"."""
    inside = np.ones(len(scores), dtype=bool)
    if " <= " in text:
        inside &= scores <= round(float(text.split(" <= ")[1]) * PARTS)
    if " < " in text:
        inside &= scores > round(float(text.split(" < ")[0]) * PARTS)
    if " > " in text:
        inside &= scores > round(float(text.split(" > ")[1]) * PARTS)
    return inside


@pytest.fixture(scope="module")
def content():
    """Return a transformer by a line, as JSON."""
    table, s, v = drawn(400)
    return fitted(table, s, v > 0, cut="line").to_json()


class TestJson:
    @pytest.mark.parametrize(
        ("steps", "value"),
        [
            (["line", "ends", 1], 1.5),
            (["line", "ends"], [0.0]),
            (["line", "cells", 0, 3], -1),
            (["line", "cells", 0, 3], 10**6),
            (["line", "cells", 0], [0]),
            (["scorers", 0, "directions", 0, 1], 2.0),
            (["scorers", 0, "directions"], []),
            (["scorers", 1, "constants", 0], 7),
            (["scorers", 0, "additive", 1, "classes"], [1, 0]),
            (["scorers", 0, "additive", 1, "classes"], [0, 2]),
            (["scorers", 0, "additive", 1, "constant"], [0.0, 1.0]),
            (["scorers", 0, "additive", 2, "tables"], []),
            (["scorers", 0, "additive", 2, "tables", 0, 0], [None]),
            (["scorers", 0, "additive"], None),
            (["scorers"], []),
        ],
        ids=str,
    )
    def test_what_is_changed_is_refused(self, content, steps, value):
        document = json.loads(content)
        place = document["scores"]
        for step in steps[:-1]:
            place = place[step]
        place[steps[-1]] = value
        with pytest.raises(ValueError, match=r"malformed: scores\."):
            PrivacyFunnelTransformer.from_json(sealed(document))
