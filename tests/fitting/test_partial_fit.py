"""Batches that add up to one fit."""

import pickle
import warnings
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
from example_tables import funnel, people, quick_scores
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skprivacy import PrivacyFunnelTransformer, PrivacyLeakWarning, TreeCells
from skprivacy.exceptions import NotDesignedError
from skprivacy.files import fit_file
from skprivacy.fitting import tally
from skprivacy.fitting.fitted_estimator import fitted_of
from skprivacy.fitting.tally import Tally
from skprivacy.solvers import OptimalSolver


def batches_of(frame, n):
    for rows in np.array_split(np.arange(len(frame)), n):
        yield frame.iloc[rows] if isinstance(frame, pd.DataFrame) else frame[rows]


def streamed(settings, frame, n=13):
    fitted = clone(settings)
    for batch in batches_of(frame, n):
        fitted.partial_fit(batch)
    return fitted


def assert_same(one, other, frame):
    """All that two transformers learned is the same, to the last bit."""
    assert one.p_sx_.tobytes() == other.p_sx_.tobytes()
    assert one.mechanism_.channel.tobytes() == other.mechanism_.channel.tobytes()
    for name in ("categories_", "sensitive_categories_"):
        for ours, theirs in zip(getattr(one, name), getattr(other, name), strict=True):
            assert pd.Series(ours).equals(pd.Series(theirs))
    assert one.n_samples_seen_ == other.n_samples_seen_
    assert one.n_features_in_ == other.n_features_in_
    rows_in = [fitted_of(each).training.effective_rows for each in (one, other)]
    assert rows_in[0] == rows_in[1]
    released = one.transform(frame), other.transform(frame)
    assert released[0].equals(released[1])


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    rows = people(6000, seed=5)
    shift = (rows["sex"] == "f").to_numpy().astype(int)
    rows["noise"] += shift
    rows["when"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(
        rng.integers(0, 400, 6000) + 99 * shift, "D"
    )
    rows["grade"] = pd.Categorical(
        np.array(["low", "mid", "high"])[rng.binomial(2, 0.3 + 0.3 * shift)],
        ["low", "mid", "high"],
        ordered=True,
    )
    rows["maybe"] = rows["band"].where(rng.random(6000) < 0.9)
    rows["count"] = pd.Series(rng.poisson(20 + 5 * shift, 6000), dtype="Int64").where(
        rng.random(6000) < 0.9
    )
    rows["text"] = rows["band"].astype(object)
    return rows


@pytest.mark.parametrize(
    "columns",
    [["band"], ["noise"], ["when"], ["grade"], ["maybe"], ["count"], ["text"], ["label"], ["grade", "noise", "maybe"]],
)  # fmt: skip
def test_batches_are_one_fit(frame, columns):
    settings = funnel(columns=columns)
    assert_same(streamed(settings, frame), clone(settings).fit(frame), frame)


def test_hundreds_of_batches_are_one_fit(frame):
    rows = frame.iloc[:2000]
    settings = funnel(columns=["noise", "maybe"], sensitive=["sex", "label"], max_categories=4)
    assert_same(streamed(settings, rows, 120), clone(settings).fit(rows), rows)


@pytest.mark.parametrize(
    "options",
    [
        {"max_categories": 3},
        {"min_frequency": 0.1, "columns": ["band", "maybe"]},
        {"columns": ["noise"], "n_bins": {"noise": [-np.inf, -1, 0.5, np.inf]}},
        {"smoothing": 0.5, "measure": "max_lift", "output": "symbol"},
        {"sensitive": "noise", "n_bins": {"noise": 3}, "epsilon": 0.001},
    ],
)
def test_with_other_parameters(frame, options):
    settings = funnel(**options)
    assert_same(streamed(settings, frame), clone(settings).fit(frame), frame)


def test_other_kinds_of_tables(frame):
    table = pl.from_pandas(frame[["sex", "band", "noise"]])
    settings = funnel(columns=["band", "noise"])
    assert_same(streamed(settings, table), clone(settings).fit(table), table)
    array = frame[["zip", "label"]].to_numpy(dtype=float)
    settings = PrivacyFunnelTransformer(0.01, sensitive=1, random_state=0)
    one, other = streamed(settings, array), clone(settings).fit(array)
    assert one.p_sx_.tobytes() == other.p_sx_.tobytes()
    assert (one.transform(array) == other.transform(array)).all()


def test_values_come_as_they_come():
    # Integers in one batch, floats in the next; a category that only the last batch has.
    rows = pd.DataFrame({"sex": list("abab") * 4, "x": [1.0, 2.0, 2.5, 1.0] * 4})
    fitted = PrivacyFunnelTransformer(0.1, sensitive="sex", random_state=0)
    fitted.partial_fit(pd.DataFrame({"sex": list("abab"), "x": [1, 2, 2, 1]}))
    fitted.partial_fit(rows)
    together = pd.concat([pd.DataFrame({"sex": list("abab"), "x": [1, 2, 2, 1]}), rows])
    assert_same(fitted, PrivacyFunnelTransformer(0.1, sensitive="sex", random_state=0).fit(together), rows)  # fmt: skip
    grown = clone(fitted).partial_fit(rows).partial_fit(rows.assign(sex="c"))
    assert grown.p_sx_.shape == (3, 3)


def test_s_and_y_beside_the_table(frame):
    settings = PrivacyFunnelTransformer(0.02, utility="target", random_state=0)
    X, y, s = frame[["band", "noise"]], frame["label"], frame["sex"]
    fitted = clone(settings)
    for rows in np.array_split(np.arange(len(frame)), 7):
        fitted.partial_fit(X.iloc[rows], y.iloc[rows], sensitive_features=s.iloc[rows])
    assert_same(fitted, clone(settings).fit(X, y, sensitive_features=s), X)


def test_weights(frame):
    weights = np.random.default_rng(0).integers(0, 5, len(frame)).astype(float)
    fitted = funnel()
    for rows in np.array_split(np.arange(len(frame)), 7):
        fitted.partial_fit(frame.iloc[rows], sample_weight=weights[rows])
    assert_same(fitted, funnel().fit(frame, sample_weight=weights), frame)
    with pytest.raises(ValueError, match="sample_weight must be passed with every batch or with"):
        fitted.partial_fit(frame)


class CountingSolver(OptimalSolver):
    """Counts the designs that it is asked for; an option of it can be anything."""

    designs: ClassVar[list[int]] = []

    def prepared(self, task):
        self.designs.append(1)
        return super().prepared(task)


@pytest.fixture
def designs(monkeypatch):
    monkeypatch.setattr(CountingSolver, "designs", [])
    return CountingSolver.designs


def test_the_channel_is_designed_when_it_is_asked_for(frame, designs):
    fitted = streamed(funnel(solver=CountingSolver()), frame, 5)
    check_is_fitted(fitted)
    assert fitted.n_samples_seen_ == len(frame)
    assert fitted.feature_names_in_.tolist() == frame.columns.tolist()
    assert not designs
    fitted.set_params(epsilon=0.003)
    assert fitted.mechanism_.epsilon == 0.003
    fitted.transform(frame)
    fitted.get_feature_names_out()
    fitted.to_json()
    assert len(designs) == 1
    before = fitted.p_sx_
    fitted.partial_fit(frame.iloc[:100])
    assert fitted.n_samples_seen_ == len(frame) + 100
    assert len(designs) == 1
    assert (fitted.p_sx_ != before).any()
    assert len(designs) == 2


def test_a_copy_goes_on_where_it_was(frame):
    half = streamed(funnel(), frame.iloc[:3000])
    copied = pickle.loads(pickle.dumps(half))
    copied.partial_fit(frame.iloc[3000:])
    assert_same(copied, funnel().fit(frame), frame)
    assert half.n_samples_seen_ == 3000
    with pytest.raises(NotFittedError):
        clone(half).transform(frame)
    # A fit begins anew.
    assert half.fit(frame).n_samples_seen_ == 6000


@pytest.fixture
def few_values(monkeypatch):
    """Let few distinct rows be too many."""
    assert tally.MOST_DISTINCT == 500_000
    monkeypatch.setattr(tally, "MOST_DISTINCT", 8000)


def test_too_many_values_ask_for_edges(few_values):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"sex": rng.choice(["f", "m"], 10_000), "x": rng.normal(size=10_000)})
    rows["x"] += rows["sex"] == "f"
    fitted = PrivacyFunnelTransformer(0.01, sensitive="sex")
    fitted.partial_fit(rows.iloc[:100])
    with pytest.raises(ValueError, match=r"More than 8,000 distinct .* 'x' has the most values.* edges, n_bins"):  # fmt: skip
        fitted.partial_fit(rows.iloc[100:])
    # The batch that failed was not counted, and edges are a way out.
    assert fitted.n_samples_seen_ == 100
    edges = {"x": [-np.inf, -1, 0, 1, np.inf]}
    fitted.set_params(n_bins=edges).partial_fit(rows.iloc[100:])
    at_once = PrivacyFunnelTransformer(0.01, sensitive="sex", n_bins=edges).fit(rows)
    assert fitted.n_samples_seen_ == len(rows)
    assert fitted.p_sx_.tobytes() == at_once.p_sx_.tobytes()


class TestCells:
    columns: ClassVar = ["band", "zip", "noise", "label"]

    def settings(self, **options):
        cells = {"columns": self.columns, "alphabet": TreeCells(max_cells=12)}
        return funnel(0.05, **cells | options)

    @pytest.fixture(autouse=True)
    def _quiet(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield

    def test_batches_add_up_to_one_fit(self, frame):
        here, there = self.settings().fit(frame), streamed(self.settings(), frame)
        assert_same(here, there, frame)
        assert here.cells_.equals(there.cells_)

    @pytest.mark.parametrize("is_weighted", [False, True])
    def test_the_first_rows_teach_cells_and_all_are_counted(self, frame, is_weighted, monkeypatch):
        monkeypatch.setattr(tally, "MOST_DISTINCT", 2000)
        weights = pd.Series(np.where(frame["noise"] > 0, 1, 3))
        fitted = self.settings()
        for batch in batches_of(frame, 13):
            own = weights[batch.index].to_numpy() if is_weighted else None
            fitted.partial_fit(batch, sample_weight=own)
        alphabet = fitted_of(fitted).alphabet
        n_taught = sum(map(len, list(batches_of(frame, 13))[:4]))
        taught = weights[:n_taught].sum() if is_weighted else n_taught
        assert alphabet.tables()[0].sum() == taught
        cells, _ = alphabet.encode([frame[name] for name in self.columns], self.columns)
        of_rows = weights if is_weighted else np.ones(len(frame))
        counts = pd.crosstab(frame["sex"], cells, of_rows, aggfunc="sum").to_numpy()
        assert (fitted_of(fitted).training.counts == counts).all()
        assert fitted.n_samples_seen_ == len(frame)
        effective = fitted_of(fitted).training.effective_rows
        assert effective < len(frame) if is_weighted else effective == len(frame)

    def test_a_large_batch_teaches_cells_itself(self, frame, monkeypatch):
        monkeypatch.setattr(tally, "MOST_DISTINCT", 2000)
        alone = self.settings().partial_fit(frame)
        after = self.settings().partial_fit(frame[:500]).partial_fit(frame[500:])
        for fitted in (alone, after):
            assert fitted.cells_["rows"].sum() == fitted.n_samples_seen_ == len(frame)

    def test_rows_beyond_the_limit_that_were_not_noticed(self, frame, monkeypatch):
        monkeypatch.setattr(tally, "MOST_DISTINCT", 2000)
        # Brought together after the second batch, and then not before there are twice as many.
        parts = [frame[:1500], frame[:1500], frame[1500:2900]]
        fitted = self.settings()
        for part in parts:
            fitted.partial_fit(part)
        everything = pd.concat(parts)
        assert_same(fitted, self.settings().fit(everything), frame)
        with pytest.raises(ValueError, match="More than 2,000 distinct"):
            clone(fitted).set_params(alphabet="values").partial_fit(everything)
        fitted.partial_fit(frame[2900:])
        assert fitted.n_samples_seen_ == len(frame) + 1500
        alphabet = fitted_of(fitted).alphabet
        assert alphabet.tables()[0].sum() == len(everything)
        rows = pd.concat([everything, frame[2900:]])
        cells, _ = alphabet.encode([rows[name] for name in self.columns], self.columns)
        counts = pd.crosstab(rows["sex"], cells).to_numpy()
        assert (fitted_of(fitted).training.counts == counts).all()

    def test_a_pickle_goes_on(self, frame, monkeypatch):
        monkeypatch.setattr(tally, "MOST_DISTINCT", 2000)
        fitted = self.settings(utility="target", alphabet=quick_scores())
        first, second = frame[:4000], frame[4000:]
        fitted.partial_fit(first, first["label"])
        pickled = pickle.loads(pickle.dumps(fitted))
        for each in (fitted, pickled):
            each.partial_fit(second, second["label"])
        assert_same(fitted, pickled, frame)

    def test_what_was_counted_cannot_be_counted_otherwise(self, frame, monkeypatch):
        monkeypatch.setattr(tally, "MOST_DISTINCT", 2000)
        fitted = streamed(self.settings(), frame, 2)
        for alphabet in ("values", "auto", "cells", TreeCells(max_cells=9)):
            fitted.set_params(alphabet=alphabet)
            with pytest.raises(ValueError, match="counted by cells .* set alphabet as it was"):
                fitted.transform(frame)
        fitted.set_params(alphabet=TreeCells(max_cells=12), epsilon=0.2)
        assert fitted.mechanism_.epsilon == 0.2
        with pytest.raises(ValueError, match=r"n_bins.* share a symbol: alphabet='cells'"):
            self.settings(alphabet="auto").partial_fit(frame)


def test_columns_that_are_passed_through_are_judged(frame):
    settings = funnel(remainder="passthrough", columns=["band"])
    fitted = clone(settings)
    for batch in batches_of(frame[["sex", "band", "zip"]], 5):
        fitted.partial_fit(batch)
    with pytest.warns(PrivacyLeakWarning, match=r"more about S on their own.*: zip\."):
        _ = fitted.mechanism_


def test_a_pickle_holds_counts_and_no_rows(frame):
    rows = frame[["sex", "band"]].assign(name=[f"person number {i}" for i in range(len(frame))])
    fitted = funnel(remainder="passthrough").partial_fit(rows)
    pickled = pickle.dumps(fitted)
    assert b"person number" not in pickled
    again = pickle.loads(pickled)
    with pytest.warns(PrivacyLeakWarning, match="name reveal about S is not measured"):
        assert again.summary_.unjudged == ["name"]
    assert again.summary_.status != "PASS"  # what was not judged
    loaded = PrivacyFunnelTransformer.from_json(again.to_json())
    assert loaded.summary_.unjudged == ["name"]
    with pytest.warns(PrivacyLeakWarning, match="name reveal about S cannot be judged"):
        _ = fitted.mechanism_


def test_a_batch_that_fails_leaves_nothing(frame):
    rows = frame[["sex", "noise", "band"]]
    fitted = funnel(columns=["noise", "band"]).partial_fit(rows)
    broken = rows.assign(noise=-1.0, band=[[1]] * len(rows))
    with pytest.raises(TypeError, match="'band' has cells that cannot be compared"):
        fitted.partial_fit(broken)
    assert_same(fitted, funnel(columns=["noise", "band"]).fit(rows), rows)


@pytest.mark.parametrize("first", ["bool", "int", "float", "str", "boolean", "Int64", "object"])
@pytest.mark.parametrize("second", ["bool", "int", "float", "str", "boolean", "Int64", "object"])
def test_batches_of_other_types_are_refused_in_either_order(frame, first, second):
    flags = (frame["sex"] == "f") | (frame.index % 3 == 0)
    families = {"bool": "bool", "boolean": "bool", "object": "bool", "str": "str"}
    rows = {dtype: frame.assign(flag=flags.astype(dtype)) for dtype in (first, second)}
    fitted = funnel(columns=["flag"]).partial_fit(rows[first])
    found = {families.get(dtype, "numbers") for dtype in rows}
    if len(found) == 1:
        fitted.partial_fit(rows[second])
        assert fitted.mechanism_.p_x.shape == (2,)
        return
    with pytest.raises(TypeError, match=f"'flag' mixes {' and '.join(sorted(found))} values"):
        fitted.partial_fit(rows[second])
    assert_same(fitted, funnel(columns=["flag"]).fit(rows[first]), rows[first])


@pytest.mark.parametrize("values", [[1, True], [True, 1], [0.0, False], [2, True, 1]])
def test_booleans_among_numbers_are_refused_in_one_frame_too(frame, values):
    mixed = np.array(values, dtype=object)[frame.index % len(values)]
    with pytest.raises(TypeError, match="'mixed' mixes bool and numbers values"):
        funnel(columns=["mixed"]).fit(frame.assign(mixed=mixed))


def test_empty_batches_and_empty_parts_of_a_stream(frame):
    fitted = funnel().partial_fit(frame).partial_fit(frame.iloc[:0])
    assert_same(fitted, funnel().fit(frame), frame)
    with pytest.raises(ValueError, match="0 sample"):
        funnel().partial_fit(frame.iloc[:0])
    weights = np.ones(len(frame))
    weighted = funnel().partial_fit(frame, sample_weight=weights)
    weighted.partial_fit(frame, sample_weight=0 * weights)
    assert weighted.p_sx_.tobytes() == fitted.p_sx_.tobytes()


def test_sparse_integers(frame):
    rows = frame[["sex"]].assign(x=pd.arrays.SparseArray(frame["zip"].to_numpy() % 10))
    settings = funnel(columns=["x"])
    one, other = streamed(settings, rows), clone(settings).fit(rows)
    assert one.p_sx_.tobytes() == other.p_sx_.tobytes()
    assert set(other.transform(rows)["x"]) <= {0, 1}


def test_edges_are_for_numbers_only(frame, few_values):
    rows = frame[["sex", "label", "noise", "band"]]
    settings = funnel(columns=["label", "noise", "band"], n_bins=[-np.inf, 0, 1, np.inf])
    assert_same(streamed(settings, rows), clone(settings).fit(rows), rows)
    many = pd.DataFrame({"sex": ["f", "m"] * 5000, "text": list("ab") * 5000})
    many["x"] = np.random.default_rng(0).normal(size=10_000)
    coarse = funnel(columns=["x", "text"], n_bins=[-np.inf, 0, 1, np.inf])
    with pytest.warns(match="X determines S"):
        at_once = clone(coarse).fit(many)
    with pytest.warns(match="X determines S"):
        assert streamed(coarse, many, 3).p_sx_.tobytes() == at_once.p_sx_.tobytes()


def test_categories_keep_the_order_of_the_first_batch(frame):
    first = frame.assign(grade=frame["grade"].cat.reorder_categories(["mid", "low", "high"], ordered=False))  # fmt: skip
    second = frame.assign(grade=frame["grade"].cat.reorder_categories(["high", "mid", "low"], ordered=False))  # fmt: skip
    settings = funnel(columns=["grade"])
    fitted = clone(settings).partial_fit(first).partial_fit(second)
    assert_same(fitted, clone(settings).fit(pd.concat([first, second])), first)
    table = pl.from_pandas(frame[["sex", "band"]]).with_columns(
        pl.col("band").cast(pl.Categorical)
    )
    assert_same(streamed(funnel(), table), funnel().fit(table), table)


def test_the_limit_holds_whatever_the_size_of_batches():
    tally = Tally(["x"], limit=100)
    for first, last in ((0, 80), (0, 30), (80, 120)):  # the last batch is not looked at again
        tally.add([pd.Series(range(first, last))])
    with pytest.raises(ValueError, match="More than 100 distinct"):
        _ = tally.counts


def test_parameters_are_checked_when_they_are_used(frame):
    fitted = funnel().partial_fit(frame).set_params(min_frequency=-3)
    with pytest.raises(ValueError, match="'min_frequency' parameter"):
        _ = fitted.mechanism_
    # What leaves is decided by the first batch.
    fitted.set_params(min_frequency=None, remainder="passthrough")
    assert fitted.transform(frame).columns.tolist() == ["band"]


def test_a_file_begins_anew(frame, tmp_path):
    fitted = funnel().partial_fit(frame)
    frame.iloc[:1000].to_csv(tmp_path / "rows.csv", index=False)
    fit_file(fitted, tmp_path / "rows.csv")
    assert fitted.n_samples_seen_ == 1000
    with pytest.raises(ValueError, match="fitted by fit, or loaded"):
        fitted.partial_fit(frame)


def test_batches_that_do_not_fit(frame):
    fitted = funnel().partial_fit(frame)
    with pytest.raises(ValueError, match="X has 2 features, but PrivacyFunnelTransformer is expecting"):  # fmt: skip
        fitted.partial_fit(frame[["sex", "band"]])
    with pytest.raises(ValueError, match="columns of X, S or the target differ"):
        fitted.partial_fit(frame.rename(columns={"zip": "place"}))
    with pytest.raises(ValueError, match=r"differ .* with S in \['other'\]"):
        fitted.partial_fit(frame, sensitive_features=frame["label"].rename("other"))
    assert fitted.n_samples_seen_ == len(frame)
    with pytest.raises(ValueError, match="fitted by fit, or loaded.*Start with partial_fit"):
        funnel().fit(frame).partial_fit(frame)
    loaded = PrivacyFunnelTransformer.from_json(fitted.to_json())
    with pytest.raises(ValueError, match="fitted by fit, or loaded"):
        loaded.partial_fit(frame)


def test_an_error_of_the_design_is_not_hidden(frame):
    fitted = funnel(columns=["mixed"])
    fitted.partial_fit(frame.assign(mixed=np.array(["a", 1], dtype=object)[frame.index % 2]))
    with pytest.raises(TypeError, match="'mixed' mixes numbers and str"):
        fitted.transform(frame)
    with pytest.raises(NotDesignedError, match="'mixed' mixes numbers and str") as raised:
        _ = fitted.mechanism_
    assert isinstance(raised.value.__cause__, TypeError)
    assert isinstance(raised.value, ValueError)
    assert isinstance(raised.value, AttributeError)
    assert not hasattr(fitted, "p_sx_")
    with pytest.raises(AttributeError, match="no attribute 'nothing_'"):
        _ = fitted.nothing_


@pytest.mark.parametrize(
    "wrong", [{"epsilon": -1}, {"epsilon": "much"}, {"measure": "kI"}, {"solver": "best"}, {"n_bins": [[1]]}]
)  # fmt: skip
def test_hasattr_never_raises(frame, wrong):
    fitted = funnel().partial_fit(frame)
    for name in ("mechanism_", "p_sx_", "categories_", "sensitive_categories_"):
        assert hasattr(fitted, name)
        assert not hasattr(clone(fitted), name)
    fitted.set_params(**wrong)  # that somebody has looked before makes no difference
    for name in ("mechanism_", "p_sx_", "categories_", "sensitive_categories_"):
        assert not hasattr(fitted, name)
        with pytest.raises(NotDesignedError):
            getattr(fitted, name)
    with pytest.raises((ValueError, TypeError)):
        fitted.transform(frame)


def test_parameters_take_effect_whether_or_not_somebody_looked(frame, designs):
    edges = {"noise": [-np.inf, 0.0, np.inf]}
    fitted = funnel(columns=["noise"], n_bins=edges, solver=CountingSolver()).partial_fit(frame)
    assert fitted.mechanism_.epsilon != 0.3
    assert fitted.mechanism_ is fitted.mechanism_
    fitted.set_params(epsilon=0.3)
    assert fitted.mechanism_.epsilon == 0.3
    edges["noise"].insert(1, -1.0)  # in place
    assert fitted.p_sx_.shape == (2, 3)
    assert len(designs) == 3
    fitted.set_params(output="symbol", random_state=0, handle_unknown="error")  # no new design
    fitted.transform(frame)
    pickle.loads(pickle.dumps(fitted)).transform(frame)
    assert len(designs) == 3
    fitted.set_params(epsilon=-1.0)
    with pytest.raises(ValueError, match="'epsilon' parameter"):
        fitted.transform(frame)
    fitted.set_params(epsilon=0.3).transform(frame)
    assert len(designs) == 3


def test_a_share_of_all_is_not_one_row(frame):
    fitted = funnel(columns=["zip"], min_frequency=1).partial_fit(frame)
    n_symbols = len(fitted.categories_[0])
    assert n_symbols > 2
    assert len(fitted.set_params(min_frequency=1.0).categories_[0]) < n_symbols


def test_showing_it_in_a_notebook_designs_nothing(frame, designs):
    fitted = funnel(solver=CountingSolver()).partial_fit(frame)
    pipeline = Pipeline([("funnel", fitted)])
    for each in (fitted, pipeline):
        assert "PrivacyFunnelTransformer" in each._repr_html_()
        assert repr(each)
    assert not designs
    _ = fitted.mechanism_
    fitted.set_params(epsilon=-1)
    for each in (fitted, pipeline):
        assert "PrivacyFunnelTransformer" in each._repr_html_()
    assert len(designs) == 1


@pytest.mark.skipif(
    not hasattr(BaseEstimator, "_get_fitted_attr_html"), reason="shown since scikit-learn 1.9"
)
def test_attributes_in_a_notebook_are_shown_once_they_are_there(frame, designs):
    fitted = funnel(solver=CountingSolver(), output="posterior").partial_fit(frame)
    assert "band_a" in fitted._repr_html_()
    assert fitted.get_feature_names_out().tolist() == [f"band_{name}" for name in "abcde"]
    assert "mechanism_" not in fitted._get_fitted_attr_html()
    assert fitted._get_fitted_attr_html()["n_samples_seen_"]["value"] == len(frame)
    assert not designs
    _ = fitted.mechanism_
    assert "mechanism_" in fitted._get_fitted_attr_html()
    fitted.set_params(epsilon=-1)
    assert "mechanism_" not in fitted._get_fitted_attr_html()
    assert len(designs) == 1


def test_no_warning_is_lost(frame):
    fitted = funnel(1.0).partial_fit(frame)
    with pytest.warns(PrivacyLeakWarning, match="next to nothing"):
        _ = fitted.mechanism_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _ = fitted.mechanism_  # said once
