"""Counts gathered chunk by chunk, and rows chosen from a stream."""

import numpy as np
import pandas as pd
import pytest

from skprivacy.fitting.tally import RowSample, Tally, most_rows


class TestTally:
    def rows(self, n=5000):
        rng = np.random.default_rng(1)
        return pd.DataFrame(
            {"s": rng.choice(["a", "b", None], n), "x": rng.normal(size=n).round(1)}
        ).astype({"s": object})

    def test_it_counts_like_a_group_by(self):
        rows = self.rows()
        tally = Tally(["s", "x"], limit=200)
        for start in range(0, len(rows), 300):
            chunk = rows.iloc[start : start + 300]
            tally.add([chunk["s"], chunk["x"]])
        counted = pd.DataFrame(tally.columns()).assign(n=tally.counts).fillna("none")
        expected = rows.fillna("none").value_counts(["s", "x"])
        assert counted.set_index(["s", "x"])["n"].to_dict() == expected.to_dict()

    def test_beyond_the_limit_edges_are_asked_for(self):
        rows = self.rows()
        tally = Tally(["s", "x"], limit=50)
        with pytest.raises(
            ValueError, match="More than 50 distinct .* of s, x .* 'x' has the most"
        ):
            tally.add([rows["s"], rows["x"]])

    def test_with_edges_a_value_stands_for_each_bin(self):
        rows = self.rows()
        edges = [-np.inf, -1, 0, 1, np.inf]
        tally = Tally(["s", "x"], edges={"x": edges}, limit=50)
        for start in range(0, len(rows), 300):
            chunk = rows.iloc[start : start + 300]
            tally.add([chunk["s"], chunk["x"]])
        columns = tally.columns()
        assert len(columns["x"].unique()) == 4
        bins = pd.cut(columns["x"], edges, labels=False)
        counted = pd.Series(tally.counts).groupby([columns["s"].fillna("none"), bins]).sum()
        of_rows = pd.cut(rows["x"], edges, labels=False)
        expected = rows.groupby([rows["s"].fillna("none"), of_rows]).size()
        assert counted.to_dict() == expected.to_dict()
        narrow = Tally(["x"], edges={"x": [-9, 0, 9]}, limit=2)
        narrow.add([rows["x"]])
        with pytest.raises(ValueError, match="column 'x' do not cover"):
            narrow.add([pd.Series([10.0])])

    def test_a_missing_number_stays_missing_in_bins(self):
        tally = Tally(["x"], edges={"x": [-np.inf, 0, np.inf]}, limit=3)
        tally.add([pd.Series([-2.0, -1.0, 1.0, 2.0, np.nan])])
        tally.add([pd.Series([np.nan, 5.0])])
        counted = dict(zip(tally.columns()["x"].fillna(99).tolist(), tally.counts, strict=True))
        assert counted == {-2.0: 2, 1.0: 3, 99: 2}

    def test_integers_first_and_floats_later(self):
        tally = Tally(["x"], edges={"x": [-np.inf, 10, np.inf]}, limit=3)
        tally.add([pd.Series([1, 2, 3, 4], dtype="Int64")])
        tally.add([pd.Series([20.5, 20.9, 30.5])])
        assert dict(zip(tally.columns()["x"], tally.counts, strict=True)) == {2.0: 4, 20.9: 3}

    def test_a_bin_that_comes_late(self):
        tally = Tally(["x"], edges={"x": [-np.inf, 0, 10, np.inf]}, limit=3)
        tally.add([pd.Series([1.0, 2.0, 3.0, 4.0])])
        tally.add([pd.Series([-3.0, -1.0, -2.0, 11.0])])
        assert dict(zip(tally.columns()["x"], tally.counts, strict=True)) == {2: 4, -2: 3, 11: 1}


class TestSubsample:
    def chosen(self, n, limit, size):
        sample = RowSample(["n"], limit)
        for start in range(0, n, size):
            numbers = pd.Series(range(start, min(n, start + size)))
            sample.add(len(numbers), lambda _, rows, numbers=numbers: numbers.iloc[rows])
        return sample.rows()["n"].tolist()

    def test_which_rows_does_not_depend_on_the_blocks(self):
        assert self.chosen(5000, 300, 7) == self.chosen(5000, 300, 1000)
        assert self.chosen(200, 300, 50) == list(range(200))

    def test_long_texts_and_many_columns_take_little_room(self):
        def long_texts(name, rows):
            return pd.Series(pd.Categorical([f"{number:0>5000}" for number in rows]))

        sample = RowSample(["text"], 1000)
        sample.add(500, long_texts)
        texts = sample.rows()["text"]
        assert texts.nunique() == 500
        assert texts.str.len().max() < 300
        assert most_rows(10) == 50_000
        assert most_rows(10_000) == 100

    def test_they_are_spread_and_follow_no_pattern(self):
        chosen = np.array(self.chosen(100_000, 4000, 1000))
        assert 1500 < len(chosen) <= 4000
        for modulus in (2, 3, 4, 8):
            shares = np.bincount(chosen % modulus) / len(chosen)
            assert np.abs(shares - 1 / modulus).max() < 0.03
        assert abs(np.median(chosen) - 50_000) < 3000
