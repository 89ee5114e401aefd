"""The rows that teach cells of large tables, whatever their order and whoever holds them."""

import datetime
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from example_tables import funnel, people, quick_scores
from quick_models import learn_quickly
from sklearn.base import clone

from skprivacy import ScoreCells, TreeCells
from skprivacy.cells import cells as alphabet
from skprivacy.cells.cells import N_BUCKETS, N_FOLDS, buckets, kept_buckets
from skprivacy.files import fit_file
from skprivacy.fitting import learned_cells as teachers
from skprivacy.fitting import tally
from skprivacy.fitting.fitted_estimator import fitted_of
from skprivacy.fitting.inputs import LabelledRows
from skprivacy.fitting.learned_cells import Buckets, Sample
from skprivacy.releasing.keyed import fingerprint
from skprivacy.releasing.record_ids import folds_of_keys
from skprivacy.tables.frames import as_table
from skprivacy.transformer import release_by

KEY = bytes(range(32))
COLUMNS = ["band", "zip", "noise", "maybe"]


def rows_of(n):
    rows = people(n, seed=2)
    rng = np.random.default_rng(2)
    rows["noise"] = (rows["noise"] + (rows["sex"] == "f")).round(9)
    rows.loc[rng.random(n) < 0.4, ["zip", "noise"]] = [0, 0.5]  # rows that are alike
    rows["maybe"] = rows["band"].where(rng.random(n) < 0.9)
    return rows.assign(id=np.arange(n), person=rng.integers(n // 3, size=n))


def in_batches(settings, frame, target):
    for start in range(0, len(frame), len(frame) // 3):
        part = frame.iloc[start : start + len(frame) // 3]
        settings.partial_fit(part, target and part[target])
    return settings


def through_file(name):
    def fit(settings, frame, target, folder):
        path = folder / f"rows.{name}"
        getattr(frame, f"to_{name}")(path, index=False)
        return fit_file(settings, path, target=target)

    return fit


def through_frame(made):
    def fit(settings, frame, target, folder):
        there = made(frame)
        return settings.fit(there, target and there[target])

    return fit


def with_categories(frame):
    return frame.assign(band=frame["band"].astype("category"), zip=frame["zip"].astype(float))


ROUTES = {
    "shuffled": lambda settings, frame, target, _: settings.fit(frame, target and frame[target]),
    "categories": through_frame(with_categories),
    "polars": through_frame(pl.from_pandas),
    "pyarrow": through_frame(pa.Table.from_pandas),
    "lazy polars": lambda s, frame, target, _: s.fit(pl.from_pandas(frame).lazy(), target),
    "csv": through_file("csv"),
    "parquet": through_file("parquet"),
    "batches": lambda settings, frame, target, _: in_batches(settings, frame, target),
}
SETTINGS = {
    "tree": {"alphabet": TreeCells(max_cells=12)},
    "scores": {"alphabet": ScoreCells(max_cells=8, cut="line"), "utility": "target"},
    "people": {"alphabet": quick_scores().set_params(person="person"), "utility": "target"},
}


@pytest.fixture(autouse=True)
def _quickly_and_quiet(monkeypatch):
    learn_quickly(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def keyed(fitted, rows):
    released = fitted.transform(rows, record_ids="id", secret_key=KEY)
    return released.astype(object).where(released.notna(), None)


class TestOrderAndEngine:
    @pytest.mark.parametrize(
        ("cells", "can_count"),
        [("tree", True), ("tree", False), ("scores", False), ("people", True)],
    )
    def test_a_second_fit_is_the_same_release(self, cells, can_count, tmp_path, monkeypatch):
        assert teachers.MOST_ROWS == 200_000
        monkeypatch.setattr(teachers, "MOST_ROWS", 1000)
        routes = list(ROUTES)
        if not can_count:
            monkeypatch.setattr(tally, "MOST_DISTINCT", 1500)
            routes.remove("batches")  # they come once: the first ones teach
        self.check(rows_of(3000), cells, routes, tmp_path)

    @pytest.mark.slow
    @pytest.mark.parametrize("cells", SETTINGS)
    def test_so_is_that_of_many_rows(self, cells, tmp_path):
        self.check(rows_of(350_000), cells, ROUTES, tmp_path)  # 210,000 of them differ

    def check(self, rows, cells, routes, folder):
        settings = funnel(0.05, columns=COLUMNS, output="symbol", **SETTINGS[cells])
        target = None if cells == "tree" else "label"
        here = clone(settings).fit(rows, target and rows[target])
        expected = keyed(here, rows)
        shuffled = rows.sample(frac=1, random_state=0, ignore_index=True)
        for route in routes:
            there = ROUTES[route](clone(settings), shuffled, target, folder)
            assert fingerprint(release_by(there)) == fingerprint(release_by(here)), route
            assert keyed(there, rows).equals(expected), route
            counts = fitted_of(there).training.counts
            assert (counts == fitted_of(here).training.counts).all(), route
            assert counts.sum() == len(rows)


class TestBuckets:
    def test_a_value_has_one_bucket_whatever_its_type(self):
        numbers = [3, -1, 0, 7, None] * 3
        reordered = pd.Categorical(numbers, categories=[7, 0, 3, -1])
        same = [
            pd.Series(numbers, dtype=float),
            pd.Series(numbers, dtype="Int64"),
            pd.Series(numbers, dtype="int64[pyarrow]"),
            pd.Series([x if x is None else Decimal(x) for x in numbers], dtype=object),
            pd.Series(reordered),
            pd.Series(numbers, dtype=float).replace(0.0, -0.0),
            as_table(pl.DataFrame({"a": numbers}), "test").column(0),
            as_table(pa.table({"a": pa.array(numbers, pa.int8())}), "test").column(0),
        ]
        found = [Buckets(("a",)).of_table({"a": column}).tolist() for column in same]
        assert all(one == found[0] for one in found)
        assert len(set(found[0])) == 5

    def test_texts_and_times_too(self):
        texts = ["b", "", "ä", None, "b"]
        days = [datetime.date(2024, 1, day) for day in (1, 2, 3, 4, 1)]
        for same in (
            [pd.Series(texts, dtype=object), pd.Series(texts, dtype="str").astype("category")],
            [pd.Series(days), pd.Series(pd.to_datetime(days)).dt.as_unit("s")],
        ):
            first, second = (Buckets(("a",)).of_table({"a": column}) for column in same)
            assert first.tolist() == second.tolist()
            assert len(set(first.tolist())) == 4

    def test_values_between_two_edges_are_the_same(self):
        cut = Buckets(("a",), {"a": [-np.inf, 0, 5, np.inf]})
        found = cut.of_table({"a": pd.Series([-3.0, 0, 1, 5, 6, np.nan])})
        assert found[0] == found[1] != found[2] == found[3] != found[4] != found[5]


class TestKeptBuckets:
    def drawn(self, weights, limit, seed):
        """Return the factors of rows of these weights that happen to be in other buckets."""
        at = np.random.default_rng(seed).choice(N_BUCKETS, len(weights), replace=False)
        sizes = np.zeros(N_BUCKETS)
        sizes[at] = weights
        return kept_buckets(sizes, limit)[at]

    def test_few_rows_are_all_kept(self):
        sizes = np.zeros(N_BUCKETS)
        sizes[:1000] = 7
        assert kept_buckets(sizes, 1001) is None
        assert np.count_nonzero(kept_buckets(sizes, 999)) in (998, 999)

    def test_weights_are_right_on_average_and_heavy_rows_stay(self):
        weights = np.append(np.random.default_rng(0).integers(1, 9, 3000), [5000, 900])
        found = np.array([self.drawn(weights, 800, seed) for seed in range(60)])
        assert (found[:, -2:] == 1).all()
        assert (abs(np.count_nonzero(found, axis=1) - 800) <= 3).all()
        for part in (slice(0, 300), slice(300, 3000)):
            totals = found[:, part] @ weights[part]
            error = totals.std() / np.sqrt(len(totals))
            assert abs(totals.mean() - weights[part].sum()) < 4 * error

    def test_however_many_rows_there_are_the_sample_stays_small(self):
        n = 3 * N_BUCKETS
        rows = np.arange(n, dtype=np.uint64)
        bucket = buckets([rows], n)
        factors = kept_buckets(np.bincount(bucket, minlength=N_BUCKETS), 2000)
        assert 2000 < np.count_nonzero(factors[bucket]) < 1.4 * 2000

    def test_every_fold_keeps_its_share(self):
        keys = pd.Series(np.arange(40_000))
        bucket = Buckets(("key",)).of_table({"key": keys})
        factors = kept_buckets(np.bincount(bucket, minlength=N_BUCKETS), 10_000)
        of_fold = np.bincount(folds_of_keys(keys, "key")[factors[bucket] > 0], minlength=N_FOLDS)
        assert (abs(of_fold / of_fold.sum() - 1 / N_FOLDS) < 0.02).all()


def test_the_order_of_rows_does_not_matter_for_how_many_stay_whole(monkeypatch):
    monkeypatch.setattr(alphabet, "MOST_PAIRS", 6000)
    settings, rows = funnel(0.05, columns=COLUMNS, **SETTINGS["tree"]), rows_of(2000)
    both = [clone(settings).fit(r) for r in (rows, rows.sample(frac=1, random_state=0))]
    first, second = (fitted_of(one).alphabet.matches() for one in both)
    np.testing.assert_allclose(first, second, rtol=1e-9)
    monkeypatch.undo()
    every = fitted_of(clone(settings).fit(rows)).alphabet.matches()
    assert abs(every - first).max() < 0.1
    assert (every != first).any()


def test_cells_without_a_target_do_not_depend_on_s(monkeypatch):
    monkeypatch.setattr(teachers, "MOST_ROWS", 1000)
    settings, rows = funnel(0.05, columns=COLUMNS, **SETTINGS["tree"]), rows_of(3000)
    other = rows.assign(sex=rows["sex"].sample(frac=1, random_state=0).to_numpy())
    rules = [clone(settings).fit(table).cells_["rule"].tolist() for table in (rows, other)]
    assert rules[0] == rules[1]


def test_a_weight_makes_no_people(monkeypatch):
    monkeypatch.setattr(teachers, "MOST_ROWS", 300)
    n = 3000
    own = LabelledRows({"s": pd.Series(["f"] * n)}, {"x": pd.Series(np.arange(n))})
    of_x = Buckets(("x",))
    sizes = np.bincount(of_x.of_rows(own), minlength=N_BUCKETS)
    sample = Sample.of_sizes(of_x, sizes, n).weighted(own)
    assert sample.weights.sum() == pytest.approx(n, rel=0.3)
    assert sample.weights.min() > 5
    assert (sample.multiplicities == 1).all()
    assert sample.effective_rows() == pytest.approx(300, abs=5)
