"""What every engine must do, on a real one: mixed into the tests of each."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from example_tables import funnel, people, quick_scores, quiet_fit
from sklearn.base import clone

from skprivacy import PrivacyFunnelTransformer, PrivacyLeakWarning, TreeCells
from skprivacy.fitting import learned_cells as teachers
from skprivacy.fitting import tally
from skprivacy.fitting.fitted_estimator import fitted_of
from skprivacy.metrics import leakage
from skprivacy.releasing.keyed import fingerprint
from skprivacy.transformer import release_by

KEY = bytes(range(32))

COLUMNS = ["band", "zip", "noise", "maybe"]
CELLS = [
    {"columns": COLUMNS, "alphabet": TreeCells(max_cells=12)},
    {"columns": COLUMNS, "alphabet": quick_scores(), "utility": "target"},
]


def plain(frame):
    """Return a frame as objects, whatever an engine makes of missing values and texts."""
    return frame.reset_index(drop=True).astype(object).where(frame.notna().to_numpy(), None)


def rows_to_release(n=4000):
    rows = people(n, seed=2)
    rng = np.random.default_rng(2)
    rows["noise"] += rows["sex"] == "f"
    rows["maybe"] = rows["band"].where(rng.random(n) < 0.9)
    rows["id"] = np.arange(n)
    return rows


class EngineChecks:
    """Needs methods of the class that it is mixed into.

    `lazily` makes a lazy frame with a number of partitions from one of pandas, `collected` is the
    way back, and `only` keeps the rows with a value in a column.
    """

    @pytest.fixture
    def rows(self):
        return rows_to_release()

    def test_fit_is_that_of_the_frame(self, rows):
        lazy = self.lazily(rows, 5)
        for options in (
            {"columns": ["band"]},
            {"columns": ["noise", "maybe"], "max_categories": 4},
            {"columns": ["label", "zip"], "sensitive": ["sex"], "smoothing": 0.5},
        ):
            settings = funnel(**options)
            here, there = clone(settings).fit(rows), clone(settings).fit(lazy)
            assert here.p_sx_.tobytes() == there.p_sx_.tobytes()
            assert here.mechanism_.channel.tobytes() == there.mechanism_.channel.tobytes()
            assert here.n_samples_seen_ == there.n_samples_seen_ == len(rows)
            assert there.feature_names_in_.tolist() == rows.columns.tolist()
            for ours, theirs in zip(here.categories_, there.categories_, strict=True):
                assert pd.Series(ours).equals(pd.Series(theirs))

    def test_a_computation_repeats_its_draw_and_a_call_does_not(self, rows):
        lazy = self.lazily(rows, 4)
        fitted = funnel(columns=["noise", "maybe"], max_categories=4, random_state=None).fit(rows)
        released = fitted.transform(lazy)
        assert type(released) is type(lazy)
        first = self.collected(released)
        assert len(first) == len(rows)
        assert plain(self.collected(released)).equals(plain(first))
        assert not plain(self.collected(fitted.transform(lazy))).equals(plain(first))

    def test_a_seed_gives_the_same_rows(self, rows):
        fitted = funnel().fit(rows)
        first = self.collected(fitted.transform(self.lazily(rows, 4)))
        assert plain(self.collected(fitted.transform(self.lazily(rows, 4)))).equals(plain(first))
        # The first partition has the words of the first rows of a frame.
        here = fitted.transform(rows)
        assert plain(here)[:500].equals(plain(first)[:500])
        # And no partition has those of another: they would agree as much as with themselves.
        alike = rows.assign(band=rows["band"].iloc[0])
        drawn = (
            self.collected(fitted.transform(self.lazily(alike, 4)))["band"]
            .to_numpy()
            .reshape(4, -1)
        )
        assert all((drawn[i] != drawn[j]).mean() > 0.1 for i in range(4) for j in range(i))

    def test_a_filter_afterwards_is_one_of_released_rows(self, rows):
        fitted = funnel(remainder="drop").fit(rows)
        released = fitted.transform(self.lazily(rows, 4))
        first = self.collected(released)["band"]
        assert len(self.collected(self.only(released, "band", "c"))) == (first == "c").sum()

    def test_record_ids(self, rows):
        fitted = funnel(columns=["noise", "maybe"], max_categories=4).fit(rows)
        here = fitted.transform(rows, record_ids="id", secret_key=KEY)
        shuffled = rows.sample(frac=1, random_state=0)
        there = self.collected(
            fitted.transform(self.lazily(shuffled, 3), record_ids="id", secret_key=KEY)
        )
        assert there.columns.tolist() == ["noise", "maybe"]
        assert plain(there).equals(plain(here.loc[shuffled.index]))
        with pytest.raises(TypeError, match="record_ids must be the name of one of its columns"):
            fitted.transform(self.lazily(rows, 3), record_ids=rows["id"], secret_key=KEY)
        with pytest.raises(ValueError, match=r"X lacks the columns \['name'\]"):
            fitted.transform(self.lazily(rows, 3), record_ids="name", secret_key=KEY)

    @pytest.mark.filterwarnings("ignore::skprivacy.PrivacyLeakWarning")
    @pytest.mark.parametrize("alphabet", ["values", TreeCells(max_cells=8)])
    def test_copied_columns_are_judged_as_those_of_the_frame(self, rows, alphabet, monkeypatch):
        rows = rows.assign(proxy=rows["sex"], uid=[f"u{i}" for i in range(len(rows))])
        copied = ["proxy", "uid", "noise"]
        settings = funnel(columns=["band", "maybe"], remainder=copied, alphabet=alphabet)
        settings.set_params(beside="label", epsilon=0.3)
        here = clone(settings).fit(rows).summary_
        assert (set(here.exceeding), here.unjudged) == ({"proxy", "noise"}, ["uid"])
        lazy = self.lazily(rows, 3)
        there = clone(settings).fit(lazy).summary_
        assert here.leaking == pytest.approx(there.leaking, nan_ok=True)
        assert there.status == "FAIL"
        # And by some rows, where there are very many.
        monkeypatch.setattr(tally, "most_rows", lambda _: 1000)
        sampled = clone(settings).fit(lazy).summary_
        assert sampled.unjudged == ["uid"]
        assert sampled.leaking["proxy"] == pytest.approx(here.leaking["proxy"], rel=0.1)
        assert sampled.leaking["proxy"] != here.leaking["proxy"]

    @pytest.mark.filterwarnings("ignore::skprivacy.PrivacyLeakWarning")
    def test_what_is_not_judged_does_not_pass(self, rows):
        rows = rows.assign(uid=[f"u{i}" for i in range(len(rows))])
        for frame in (rows, self.lazily(rows, 2)):
            summary = funnel(0.005, remainder=["uid"]).fit(frame).summary_
            assert summary.status == "CAUTION"
            assert "could not be judged: uid." in summary.lead()
        assert funnel(0.005).fit(self.lazily(rows, 2)).summary_.status == "PASS"

    @pytest.mark.parametrize("output", ["label", "symbol", "posterior"])
    def test_every_output_and_what_is_beside_it(self, rows, output):
        settings = funnel(output=output, remainder="passthrough", columns=["band", "maybe"])
        lazy = self.lazily(rows, 1)
        with pytest.warns(PrivacyLeakWarning, match=r"more about S on their own.*: zip, "):
            fitted = settings.fit(lazy)
        there, here = self.collected(fitted.transform(lazy)), fitted.transform(rows)
        assert "sex" not in there
        assert there.columns.tolist() == here.columns.tolist()
        assert list(fitted.get_feature_names_out()) == there.columns.tolist()
        assert plain(there).equals(plain(here))

    @pytest.mark.parametrize(
        "options", [{}, {"columns": ["maybe", "noise"], "alphabet": TreeCells(max_cells=8)}]
    )
    def test_columns_under_the_budget_beside_it(self, rows, options, monkeypatch):
        settings = funnel(0.3, beside=["label", "grade"], handle_unknown="error", **options)
        rows = rows.assign(grade=np.arange(len(rows)) % 3)
        lazy = self.lazily(rows, 4)
        here, there = clone(settings).fit(rows), clone(settings).fit(lazy)
        assert here.mechanism_.channel.tobytes() == there.mechanism_.channel.tobytes()
        released = self.collected(there.transform(lazy, record_ids="id", secret_key=KEY))
        assert plain(released).equals(plain(here.transform(rows, record_ids="id", secret_key=KEY)))
        assert plain(released[["label", "grade"]]).equals(plain(rows[["label", "grade"]]))
        if options:  # cells are learned from some rows, and counted in all of them
            monkeypatch.setattr(tally, "MOST_DISTINCT", 1000)
            counted = clone(settings).fit(lazy).mechanism_
            assert counted.strata.max() == 5
            assert counted.max_leakage <= 0.3 * (1 + 1e-9)

    def test_edges(self, rows):
        edges = {"noise": [-np.inf, -1, 0.5, np.inf]}
        settings = funnel(columns=["noise"], n_bins=edges)
        here, there = clone(settings).fit(rows), clone(settings).fit(self.lazily(rows, 4))
        assert here.p_sx_.tobytes() == there.p_sx_.tobytes()
        released = self.collected(there.transform(self.lazily(rows, 4)))["noise"]
        for value, exact in zip(sorted(set(released)), fitted_of(here).alphabet.columns[0].values, strict=True):  # fmt: skip
            assert value in set(rows["noise"])
            assert abs((rows["noise"] <= value).mean() - (rows["noise"] <= exact).mean()) < 0.05
        narrow = clone(settings).set_params(n_bins={"noise": [-1, 0, 1]})
        with pytest.raises(ValueError, match="noise' do not cover its values"):
            narrow.fit(self.lazily(rows, 4))

    @pytest.mark.parametrize("unit", ["ns", "s", "python"])
    def test_edges_of_times(self, rows, unit):
        rows["when"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rows["noise"].round(1), "D")
        rows["when"] = rows["when"].dt.as_unit("us")
        days = ["2020-01-01", "2023-12-31", "2024-01-01", "2024-01-02", "2030-01-01"]
        edges = pd.to_datetime(days).to_numpy("datetime64[s]")
        edges = edges.tolist() if unit == "python" else edges.astype(f"datetime64[{unit}]")
        settings = funnel(columns=["when"], n_bins={"when": edges})
        here, there = clone(settings).fit(rows), clone(settings).fit(self.lazily(rows, 3))
        assert here.p_sx_.shape == (2, 4)
        assert here.p_sx_.tobytes() == there.p_sx_.tobytes()
        for wrong in ([0], [1, 0]):
            with pytest.raises(ValueError, match="'noise' must increase, and there must be"):
                funnel(columns=["noise"], n_bins={"noise": wrong}).fit(self.lazily(rows, 3))

    def test_too_many_values_ask_for_edges(self, rows, monkeypatch):
        assert tally.MOST_DISTINCT == 500_000
        monkeypatch.setattr(tally, "MOST_DISTINCT", 3000)
        message = r"More than 3,000 distinct .* 'noise' has the most .* edges, n_bins"
        with pytest.raises(ValueError, match=message):
            funnel(columns=["noise"]).fit(self.lazily(rows, 3))

    @pytest.mark.parametrize("options", CELLS, ids=["tree", "scores"])
    def test_cells_are_those_of_the_frame(self, rows, options):
        settings = funnel(0.05, **options)
        is_target = settings.utility == "target"
        here = quiet_fit(clone(settings), rows, rows["label"] if is_target else None)
        there = quiet_fit(clone(settings), self.lazily(rows, 3), "label" if is_target else None)
        assert here.mechanism_.channel.tobytes() == there.mechanism_.channel.tobytes()
        assert here.p_sx_.tobytes() == there.p_sx_.tobytes()
        assert here.cells_["rule"].tolist() == there.cells_["rule"].tolist()
        ids = {"record_ids": "id", "secret_key": KEY}
        released = self.collected(there.transform(self.lazily(rows, 3), **ids))
        assert plain(released).equals(plain(here.transform(rows, **ids)))

    @pytest.mark.parametrize("options", CELLS, ids=["tree", "scores"])
    def test_some_rows_teach_cells_and_all_are_counted(self, rows, options, monkeypatch):
        monkeypatch.setattr(tally, "MOST_DISTINCT", 3000)
        monkeypatch.setattr(teachers, "MOST_ROWS", 1500)
        rows.insert(0, "cell", rows.pop("sex"))  # what the column of cells would be called
        settings = funnel(0.05, **options | {"sensitive": "cell"})
        target = "label" if settings.utility == "target" else None
        fitted = quiet_fit(settings, self.lazily(rows, 3), target)
        assert fitted.n_samples_seen_ == len(rows)
        alphabet = fitted_of(fitted).alphabet
        assert alphabet.tables()[0].sum() == pytest.approx(len(rows), rel=0.1)
        shuffled = rows.sample(frac=1, random_state=0)
        here = quiet_fit(clone(settings), shuffled, target and shuffled[target])
        assert fingerprint(release_by(here)) == fingerprint(release_by(fitted))
        cells, _ = alphabet.encode([rows[name] for name in COLUMNS], COLUMNS)
        counts = pd.crosstab(rows["cell"], cells).to_numpy()
        assert (fitted_of(fitted).training.counts == counts).all()
        assert fitted.cells_["rows"].tolist() == counts.sum(axis=0).tolist()
        released = self.collected(fitted.transform(self.lazily(rows, 3)))
        assert released.columns.tolist() == COLUMNS
        assert len(released) == len(rows)

    @pytest.mark.slow
    @pytest.mark.parametrize("options", CELLS, ids=["tree", "scores"])
    def test_so_are_those_of_many_rows_in_any_order(self, options):
        rows, settings = rows_to_release(210_000), funnel(0.05, **options)
        target = "label" if settings.utility == "target" else None
        here = quiet_fit(clone(settings), rows, target and rows[target])
        shuffled = rows.sample(frac=1, random_state=0)
        there = quiet_fit(clone(settings), self.lazily(shuffled, 5), target)
        assert fingerprint(release_by(here)) == fingerprint(release_by(there))
        ids = {"record_ids": "id", "secret_key": KEY}
        assert plain(there.transform(rows, **ids)).equals(plain(here.transform(rows, **ids)))

    def test_a_target_is_released_only_if_it_is_named(self, rows):
        own, lazy = ["sex", *COLUMNS], self.lazily(rows[["sex", *COLUMNS, "label"]], 3)
        settings = funnel(0.05, columns=None, alphabet=quick_scores(), utility="target")
        there = quiet_fit(clone(settings), lazy, "label")
        here = quiet_fit(clone(settings), rows[own], rows["label"])
        assert here.mechanism_.channel.tobytes() == there.mechanism_.channel.tobytes()
        without = self.lazily(rows[COLUMNS], 2)
        assert self.collected(there.transform(without)).columns.tolist() == COLUMNS
        settings.set_params(columns=[*COLUMNS, "label"])
        assert quiet_fit(settings, lazy, "label").get_feature_names_out()[-1] == "label"

    def test_rows_of_a_person_stay_together(self, rows):
        rows["person"] = rows["id"].to_numpy()[::-1] // 3
        cells = quick_scores().set_params(person="person")
        given = {"columns": COLUMNS, "alphabet": cells, "utility": "target"}
        settings, lazy = funnel(0.05, **given), self.lazily(rows, 3)
        here = quiet_fit(clone(settings), rows, rows["label"])
        there = quiet_fit(clone(settings), lazy, "label")
        assert here.mechanism_.channel.tobytes() == there.mechanism_.channel.tobytes()
        ids = {"record_ids": "id", "secret_key": KEY}
        released = self.collected(there.transform(lazy, **ids))
        assert released.columns.tolist() == COLUMNS
        assert plain(released).equals(plain(here.transform(rows, **ids)))
        without = self.lazily(rows.drop(columns="person"), 3)
        with pytest.raises(ValueError, match="lacks .*'person'.* is read, and not released"):
            there.transform(without)
        with pytest.raises(ValueError, match="name a column .* nor of person ids"):
            clone(settings).fit(lazy, "person")

    def test_too_many_combinations_become_cells(self, rows, monkeypatch):
        monkeypatch.setattr(tally, "MOST_DISTINCT", 3000)
        settings, lazy = funnel(0.05, columns=["noise", "id"]), self.lazily(rows, 3)
        with pytest.raises(ValueError, match=r"edges, n_bins.* share a symbol: alphabet='cells'"):
            clone(settings).set_params(alphabet="values").fit(lazy)
        with pytest.raises(ValueError, match="'id' has a different value .* out of columns"):
            clone(settings).set_params(alphabet="cells").fit(lazy)
        with pytest.warns(match="too many combinations .* alphabet='cells' .* n_bins, or"):
            fitted = settings.set_params(columns=["noise", "band"]).fit(lazy)
        assert fitted.n_samples_seen_ == len(rows)
        assert (fitted.p_sx_.sum(axis=0) > 0).all()

    def test_types_come_back(self):
        n = 600
        rng = np.random.default_rng(0)
        large = pd.array(rng.integers(2**60, 2**60 + 3, n), dtype="Int64")
        large[::7] = pd.NA
        rows = pd.DataFrame(
            {
                "sex": rng.choice(["f", "m"], n),
                "large": large,
                "day": rng.choice([datetime.date(2024, 1, d) for d in (1, 2, 3)], n),
                "is": rng.random(n) < 0.5,
                "price": rng.choice([Decimal("1.10"), Decimal("2.20")], n),
            }
        )
        for name in ("large", "day", "is", "price"):
            settings = funnel(columns=[name], n_bins=None, epsilon=1e-7)
            lazy = self.lazily(rows, 2)
            fitted = settings.fit(lazy)
            released = self.collected(fitted.transform(lazy))
            assert set(plain(released)[name]) <= set(plain(rows)[name])
            assert fitted.p_sx_.tobytes() == clone(settings).fit(rows).p_sx_.tobytes()

    @pytest.mark.filterwarnings("ignore:Values that fit did not see", "ignore:100% of the rows")
    def test_values_that_fit_did_not_see(self, rows):
        strange = rows.assign(band="?")
        fitted = funnel().fit(rows)
        released = self.collected(fitted.transform(self.lazily(strange, 2)))
        shares = released["band"].value_counts(normalize=True).sort_index()
        expected = pd.Series(fitted.mechanism_.p_y, fitted.mechanism_.y_labels)
        assert np.abs(shares - expected).max() < 0.05
        fitted.set_params(handle_unknown="error")
        with pytest.raises(Exception, match="Found unknown values in column 'band'"):
            self.collected(fitted.transform(self.lazily(strange, 2)))

    def test_a_target_is_a_column(self, rows):
        settings = funnel(utility="target", columns=["noise"])
        here, there = clone(settings).fit(rows, rows["label"]), clone(settings)
        there.fit(self.lazily(rows, 3), "label")
        assert here.mechanism_.channel.tobytes() == there.mechanism_.channel.tobytes()
        for wrong in (None, "sex", "other", rows["label"]):
            with pytest.raises(ValueError, match="must name a column of the frame"):
                there.fit(self.lazily(rows, 3), wrong)

    @pytest.mark.parametrize("options", [{}, *CELLS], ids=["values", "tree", "scores"])
    def test_it_is_evaluated_and_certified_like_a_frame(self, rows, options):
        settings = funnel(0.05, **options)
        target = "label" if settings.utility == "target" else None
        fitted = quiet_fit(settings, rows[:2000], target and rows[target][:2000])
        fresh = rows[2000:]
        lazy = self.lazily(fresh, 3)
        here, there = (
            fitted.evaluate(fresh, target and fresh[target]),
            fitted.evaluate(lazy, target),
        )
        np.testing.assert_array_equal(here.p_sx, there.p_sx)
        assert here.normalized_utility == pytest.approx(there.normalized_utility, rel=1e-12)
        here, there = fitted.certify(fresh), fitted.certify(lazy)
        np.testing.assert_array_equal(here.leakage_bound, there.leakage_bound)
        assert there.n_rows == 2000
        with pytest.raises(TypeError, match="cannot be passed with a lazy"):
            fitted.evaluate(lazy, target, sample_weight=np.ones(2000))
        with pytest.raises(ValueError, match="'band' is released"):
            fitted.set_params(sensitive="band").certify(lazy)

    def test_what_a_lazy_frame_cannot_do(self, rows):
        lazy = self.lazily(rows, 2)
        with pytest.raises(ValueError, match="'sensitive' parameter .* must name columns of the"):
            PrivacyFunnelTransformer().fit(lazy)
        with pytest.raises(TypeError, match="sensitive_features cannot be passed with a"):
            PrivacyFunnelTransformer().fit(lazy, sensitive_features=rows["sex"])
        with pytest.raises(TypeError, match="sample_weight cannot be .*: collect .* partial_fit"):
            funnel().fit(lazy, sample_weight=np.ones(len(rows)))
        with pytest.raises(ValueError, match="'columns' parameter .* names the column 'age'"):
            funnel(columns=["age"]).fit(lazy)
        with pytest.raises(ValueError, match="has no rows"):
            funnel().fit(self.lazily(rows.iloc[:0], 1))
        with pytest.raises(TypeError, match="eager frame, but got a lazy one"):
            funnel().partial_fit(lazy)
        fitted = funnel().fit(lazy)
        with pytest.raises(ValueError, match=r"X lacks the columns \['band'\]"):
            fitted.transform(self.lazily(rows[["sex", "zip"]], 2))
        with pytest.raises(TypeError, match="does not apply to lazy frames"):
            clone(fitted).set_output(transform="pandas").fit(rows).transform(lazy)
        with pytest.raises(ValueError, match="was fitted without column names"):
            PrivacyFunnelTransformer(0.01, sensitive=1).fit(rows[["zip", "label"]].to_numpy(float)).transform(lazy)  # fmt: skip

    @pytest.mark.parametrize("n", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
    def test_many_rows_keep_the_budget(self, n):
        rows = people(n)[["sex", "band"]].assign(id=np.arange(n))
        settings = funnel(0.01, remainder="passthrough")
        lazy = self.lazily(rows, 8)
        fitted = settings.fit(lazy)
        released = self.collected(fitted.transform(lazy)).set_index("id")["band"].sort_index()
        assert released.index.equals(pd.RangeIndex(len(rows), name="id"))
        # The worst output is rare: its leakage is known to about a tenth.
        assert leakage(rows["sex"], released.to_numpy()) == pytest.approx(0.01, rel=0.4)
        assert leakage(rows["sex"], rows["band"]) > 0.2
        shares = pd.crosstab(rows["band"], released.to_numpy(), normalize="index").to_numpy()
        assert np.abs(shares - fitted.mechanism_.channel).max() < 0.01
