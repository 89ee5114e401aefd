"""Columns as symbols, and back."""

from datetime import datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from example_tables import N, make, quiet_fit
from numpy.testing import assert_allclose
from sklearn.compose import make_column_selector
from sklearn.preprocessing import OneHotEncoder

from skprivacy import PrivacyLeakWarning
from skprivacy.fitting.fitted_estimator import fitted_of


class TestWhatXIs:
    @pytest.mark.parametrize(
        "columns", ["education", ["education"], 1, [1], make_column_selector("educ")]
    )
    def test_columns(self, frame, columns):
        assert make(columns=columns).fit(frame).get_feature_names_out().tolist() == ["education"]

    def test_none_is_every_column_that_is_not_sensitive(self, frame):
        fitted = make(columns=None).fit(frame[["education", "sex", "city"]])
        assert fitted.get_feature_names_out().tolist() == ["education", "city"]

    @pytest.mark.parametrize(
        "column",
        [
            pd.Series(["a", "b", None, "c"] * 500),
            pd.Series(["a", "b", "c", "a"] * 500, dtype=object),
            pd.Series(["lo", "hi", "lo", "mid"] * 500, dtype=pd.CategoricalDtype(["lo", "mid", "hi", "never"], ordered=True)),
            pd.Series([True, False, True, True] * 500),
            pd.Series([True, None, False, True] * 500, dtype="boolean"),
            pd.Series([1, 2, None, 3] * 500, dtype="Int64"),
            pd.Series([1, 2, 5, 3] * 500, dtype="uint8"),
            pd.Series([1.5, np.nan, 2.5, 2.5] * 500, dtype="float32"),
            pd.Series(pd.date_range("2020", periods=4).repeat(500)),
            pd.Series(pd.date_range("2020", periods=2000, tz="Europe/Berlin")),
            pd.Series(pd.to_timedelta(np.arange(2000), unit="h")),
            pd.Series(np.arange(2000)),
            pd.Series(np.random.default_rng(0).normal(size=2000)),
            pd.Series(pd.array(np.arange(2000), dtype="Int32")),
            pd.Series(["a", "b", "c", "a"] * 500, dtype="string[pyarrow]"),
        ],
        ids=lambda column: str(column.dtype),
    )  # fmt: skip
    def test_dtypes_and_domains_are_kept(self, frame, column):
        table = pd.DataFrame({"sex": frame["sex"].to_numpy(), "x": column})
        transformer = make(columns=["x"], epsilon=0.001)
        released = quiet_fit(transformer, table).transform(table)["x"]
        expected = column.dtype
        if released.dtype == "category":  # those of the mechanism, which has not seen "never"
            expected = pd.CategoricalDtype(["lo", "mid", "hi"], ordered=True)
        if str(column.dtype) == "string":  # stored as this pandas stores texts
            expected = pd.StringDtype()
        assert released.dtype == expected
        assert (released.isin(column) | (released.isna() & column.hasnans)).all()
        # What comes out is understood by the same transformer.
        again = fitted_of(transformer).alphabet.encode([released], ["x"])[1]
        assert again == {}

    def test_numbers_are_cut_at_weighted_quantiles_and_shown_by_medians(self, frame):
        fitted = make(columns=["income"]).fit(frame)
        codes = fitted_of(fitted).alphabet.encode([frame["income"]], ["income"])[0]
        assert_allclose(np.bincount(codes), N / 10, atol=2)
        values = fitted_of(fitted).alphabet.columns[0].values
        for code, value in enumerate(values):
            inside = frame["income"][codes == code]
            assert value in set(inside)
            assert abs((inside <= value).mean() - 0.5) < 0.02
        weights = np.where(frame["income"] < frame["income"].median(), 3.0, 1.0)
        weighted = make(columns=["income"], n_bins=4).fit(frame, sample_weight=weights)
        codes = fitted_of(weighted).alphabet.encode([frame["income"]], ["income"])[0]
        assert_allclose(np.bincount(codes, weights=weights) / weights.sum(), 0.25, atol=0.01)

    def test_n_bins(self, frame):
        def symbols(n_bins):
            fitted = quiet_fit(make(columns=["income"], n_bins=n_bins), frame)
            return fitted.mechanism_.x_labels

        assert len(symbols(3)) == len(symbols({"income": 3})) == 3
        assert symbols([0, 20000, np.inf]) == ("income <= 20000", "income > 20000")
        assert len(symbols({"income": [0, 15000, 20000, 1e6]})) == 3
        few = quiet_fit(make(columns=["children"], n_bins=None), frame).mechanism_.x_labels
        assert few == (0, 1, 2, 3)
        empty = quiet_fit(make(columns=["children"], n_bins=[-1, 0, 0.5, 3]), frame)
        assert empty.mechanism_.x_labels == ("children 0", "children >= 1")

    def test_pooling_is_one_hot_encoders(self, frame):
        rng = np.random.default_rng(0)
        values = rng.choice(list("abcdef"), p=[0.4, 0.3, 0.15, 0.1, 0.03, 0.02], size=N)
        table = pd.DataFrame({"sex": frame["sex"].to_numpy(), "x": values})
        for options in ({"min_frequency": 150}, {"min_frequency": 0.05}, {"max_categories": 3}):
            ours = quiet_fit(make(columns=["x"], **options), table)
            theirs = OneHotEncoder(**options).fit(table[["x"]])
            pooled = {v for v, s in zip(fitted_of(ours).alphabet.columns[0].values, fitted_of(ours).alphabet.columns[0].symbols, strict=True)
                      if ours.mechanism_.x_labels[s] == "(pooled)"}  # fmt: skip
            assert pooled == set(theirs.infrequent_categories_[0])
        released = ours.transform(pd.concat([table] * 50))["x"]
        share = released.value_counts()
        # Members of the pool come out as often as they went in, relative to each other.
        inside = pd.Series(values).value_counts()
        pool = sorted(pooled)
        assert_allclose(
            share[pool] / share[pool].sum(), inside[pool] / inside[pool].sum(), atol=0.02
        )

    def test_a_frame_with_many_combinations_is_pooled_and_says_so(self):
        rng = np.random.default_rng(0)
        table = pd.DataFrame(rng.normal(size=(2000, 13)))
        with (
            pytest.warns(PrivacyLeakWarning, match="sensitive column 0 holds numbers"),
            pytest.warns(UserWarning, match="X has too many symbols .* rarest are pooled"),
        ):
            quiet = make(sensitive=[0], columns=None, n_bins=3, alphabet="values").fit(table)
        assert quiet.transform(table).shape == (2000, 12)

    @pytest.mark.parametrize(
        "cell", [np.int64, Decimal, lambda i: datetime(2020, 1, 1) + timedelta(i)]
    )
    def test_objects_that_are_numbers_or_times_are_cut(self, cell):
        values = pd.Series([cell(i) for i in range(60)] * 20, dtype=object)
        table = pd.DataFrame({"sex": ["f", "m"] * 600, "x": values})
        fitted = quiet_fit(make(columns=["x"]), table)
        assert len(fitted.mechanism_.x_labels) == 10
        assert fitted.transform(table)["x"].isin(values).all()

    @pytest.mark.parametrize("measure", ["lip", "max_lift", "kl"])
    def test_many_groups_and_symbols_end_in_seconds_for_every_measure(self, measure):
        rng = np.random.default_rng(0)
        table = pd.DataFrame({"sex": rng.integers(0, 8, 5000), "x": rng.integers(0, 14, 5000)})
        fitted = quiet_fit(
            make(columns=["x"], measure=measure, n_bins=None, solver_options={"tol": 1e-3}), table
        )
        assert fitted.mechanism_.solver == "column_generation"  # not by all vertices
        assert fitted.mechanism_.max_leakage <= 0.01 * (1 + 1e-9)

    def test_constant_s_with_many_symbols(self):
        table = pd.DataFrame({"sex": 1, "x": [f"name {i // 2}" for i in range(6000)]})
        assert len(quiet_fit(make(columns=["x"]), table).mechanism_.x_labels) == 1000

    def test_two_groups_keep_more_symbols_where_outputs_are_pairs(self):
        rng = np.random.default_rng(0)
        x = np.arange(6000) % 600
        s = np.where(rng.random(6000) < 0.3 + 0.4 * (x % 7 > 3), "f", "m")
        table = pd.DataFrame({"sex": s, "x": [f"name {i}" for i in x]})
        fitted = quiet_fit(make(columns=["x"], alphabet="values", scope="average"), table)
        assert len(fitted.mechanism_.x_labels) == 600
        fitted = quiet_fit(make(columns=["x"], alphabet="values", utility="guess"), table)
        assert len(fitted.mechanism_.x_labels) == 500

    def test_tens_of_thousands_of_strings(self):
        rng = np.random.default_rng(0)
        names = np.array([f"name {i}" for i in range(30_000)])
        table = pd.DataFrame({"sex": rng.choice(["f", "m"], 60_000), "x": np.tile(names, 2)})
        with pytest.warns(UserWarning, match="X has too many symbols"):
            released = make(columns=["x"]).fit_transform(table)
        # A pool of names that two people have each shows none of them.
        assert released["x"].dropna().isin(names).all()
        assert released["x"].isna().mean() > 0.9

    def test_smoothing_and_weights_enter_the_joint(self, frame):
        counts = pd.crosstab(frame["sex"], frame["education"]).to_numpy() + 5.0
        assert_allclose(make(smoothing=5.0).fit(frame).p_sx_, counts / counts.sum())
        weights = np.where(frame["sex"] == "f", 2.0, 1.0)
        counts = pd.crosstab(frame["sex"], frame["education"]).to_numpy() * [[2.0], [1.0]]
        fitted = make().fit(frame, sample_weight=weights)
        assert_allclose(fitted.p_sx_, counts / counts.sum())
