import copy
import json
import pickle
import warnings
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from documents import sealed
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import estimator_checks

from skprivacy import (
    AlphaLift,
    PrivacyFunnelTransformer,
    PrivacyLeakWarning,
    SolverError,
    Target,
    design_mechanism,
)
from skprivacy.releasing.noise import Noise, RowNoise, fresh_key
from skprivacy.releasing.output_names import name_outputs
from skprivacy.releasing.sampler import (
    Sampler,
    integer_boundaries,
    sampled_channel,
    within_budget_as_sampled,
)
from skprivacy.transformer import fitted_of
from skprivacy.utilities import mutual_information

N = 2000


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(3)
    sex = rng.choice(["f", "m"], size=N)
    shift = np.where(sex == "f", 0.15, -0.1)
    level = np.clip((rng.random(N) + shift) * 4, 0, 3).astype(int)
    return pd.DataFrame(
        {
            "sex": sex,
            "education": np.array(["none", "school", "college", "phd"])[level],
            "income": np.round(rng.lognormal(10 - shift, 0.4), 2),
            "children": rng.integers(0, 4, size=N),
            "city": pd.Categorical(
                rng.choice(["x", "y", "z"], size=N), ["z", "y", "x"], ordered=True
            ),
            "since": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(rng.integers(0, 900, N), unit="D"),
        },
        index=pd.Index(np.arange(N) * 3, name="row"),
    )


def quiet_fit(transformer, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return transformer.fit(*arguments, **options)


def make(epsilon=0.01, **options):
    return PrivacyFunnelTransformer(
        epsilon, **{"sensitive": "sex", "columns": ["education"], "random_state": 0} | options
    )


class TestTheLineAUserWrites:
    def test_label(self, frame):
        transformer = make()
        released = transformer.fit_transform(frame)
        assert released.columns.tolist() == ["education"]
        assert released.index.equals(frame.index)
        assert released.dtypes.equals(frame[["education"]].dtypes)
        assert set(released["education"]) <= set(frame["education"])
        assert (released["education"] != frame["education"]).any()
        assert transformer.mechanism_.max_leakage <= 0.01 * (1 + 1e-9)
        assert_allclose(transformer.p_sx_, pd.crosstab(frame["sex"], frame["education"]) / N)
        assert transformer.categories_[0].tolist() == ["college", "none", "phd", "school"]
        assert transformer.sensitive_categories_[0].tolist() == ["f", "m"]
        assert transformer.n_features_in_ == 6
        assert transformer.feature_names_in_.tolist() == frame.columns.tolist()

    def test_released_rows_leak_what_the_mechanism_says(self, frame):
        big = pd.concat([frame] * 200, ignore_index=True)
        transformer = make().fit(frame)
        released = transformer.transform(big)["education"]
        joint = pd.crosstab(big["sex"], released).to_numpy() / len(big)
        leakage = transformer.mechanism_.measure.leakage(
            (joint / joint.sum(axis=0)).T, joint.sum(axis=1)
        )
        assert_allclose(leakage.max(), 0.01, atol=2e-3)

    def test_each_output_is_named_by_a_value_it_may_stand_for(self, frame):
        mechanism = make().fit(frame).mechanism_
        assert len(set(mechanism.y_labels)) == len(mechanism.y_labels)
        for y, label in enumerate(mechanism.y_labels):
            assert mechanism.posterior[y, mechanism.x_labels.index(label)] > 0

    def test_symbol(self, frame):
        released = make(columns=["education", "city"], output="symbol").fit_transform(frame)
        assert released.columns.tolist() == ["education|city"]
        assert released.iloc[:, 0].dtype == "category"
        assert "college|x" in released.iloc[:, 0].cat.categories
        # The same draws as labels: a symbol is their combination.
        labels = make(columns=["education", "city"]).fit_transform(frame)
        texts = labels["education"].astype(str) + "|" + labels["city"].astype(str)
        assert (texts == released.iloc[:, 0].astype(str)).all()

    def test_posterior(self, frame):
        transformer = make(columns=["education"], output="posterior")
        released = transformer.fit_transform(frame)
        assert released.columns.tolist() == [
            "education_college", "education_none", "education_phd", "education_school",
        ]  # fmt: skip
        labels = make(columns=["education"]).fit_transform(frame)["education"]
        index = [transformer.mechanism_.y_labels.index(label) for label in labels]
        assert_allclose(released, transformer.mechanism_.posterior[index])
        joint = make(columns=["education", "city"], output="posterior").fit(frame)
        assert "education|city_college|x" in joint.get_feature_names_out()

    @pytest.mark.parametrize("output", ["label", "symbol", "posterior"])
    @pytest.mark.parametrize("remainder", ["drop", "passthrough"])
    def test_the_sensitive_column_never_comes_out_and_order_is_kept(
        self, frame, output, remainder
    ):
        transformer = make(columns=["children", "education"], output=output, remainder=remainder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            released = transformer.fit_transform(frame)
        names = released.columns.tolist()
        assert "sex" not in names
        assert names == transformer.get_feature_names_out().tolist()
        if remainder == "passthrough":
            assert released["income"].equals(frame["income"])
            assert names.index("income") < names.index("city") < names.index("since")
        if output == "label":
            wanted = (
                ["education", "children"] if remainder == "drop" else frame.columns[1:].tolist()
            )
            assert names == wanted


class TestWhereSComesFrom:
    def test_all_three_ways_agree(self, frame):
        by_name = make().fit(frame)
        passed = make(sensitive=None).fit(frame, sensitive_features=frame["sex"])
        rest = frame.drop(columns="sex")
        with pytest.warns(PrivacyLeakWarning, match="y is taken as the sensitive variable"):
            by_y = make(sensitive=None).fit(rest, frame["sex"])
        for other in (passed, by_y):
            assert_array_equal(by_name.p_sx_, other.p_sx_)

    def test_sensitive_features_go_first_and_their_column_stays_hidden(self, frame):
        transformer = make(sensitive=None, columns=None, n_bins=3, max_categories=3)
        quiet_fit(transformer, frame[["sex", "education"]], sensitive_features=frame["sex"])
        assert transformer.get_feature_names_out().tolist() == ["education"]
        other = quiet_fit(make(sensitive="sex"), frame, sensitive_features=frame["city"])
        assert other.sensitive_categories_[0].tolist() == ["z", "y", "x"]
        assert "sex" not in other.transform(frame)

    @pytest.mark.parametrize("remainder", ["drop", "passthrough"])
    @pytest.mark.parametrize(
        "sensitive",
        ["sex", 0, np.int64(0), ["sex"], make_column_selector("sex")],
        ids=["name", "position", "numpy", "list", "selector"],
    )
    def test_a_named_column_stays_hidden_when_s_is_passed_beside_it(
        self, frame, sensitive, remainder
    ):
        transformer = make(sensitive=sensitive, remainder=remainder)
        quiet_fit(transformer, frame, sensitive_features=frame["sex"].to_numpy())
        assert "sex" not in transformer.transform(frame).columns

    def test_a_column_named_like_y_stays_hidden(self, frame):
        transformer = quiet_fit(make(sensitive=None, remainder="passthrough"), frame, frame["sex"])
        assert "sex" not in transformer.transform(frame).columns

    def test_a_sensitive_column_that_is_not_there_is_no_error_when_s_is_passed(self, frame):
        rest = frame.drop(columns="sex")
        fitted = make().fit(rest, sensitive_features=frame["sex"])
        assert_array_equal(fitted.p_sx_, make().fit(frame).p_sx_)

    @pytest.mark.parametrize("kind", ["list", "array", "frame", "polars"])
    def test_sensitive_features_of_every_kind(self, frame, kind):
        given = {
            "list": frame["sex"].tolist(),
            "array": frame["sex"].to_numpy(),
            "frame": frame[["sex"]],
            "polars": pl.Series("sex", frame["sex"].tolist()),
        }[kind]
        fitted = make(sensitive=None).fit(frame, sensitive_features=given)
        assert_array_equal(fitted.p_sx_, make().fit(frame).p_sx_)

    def test_several_columns_are_taken_jointly(self, frame):
        fitted = make(sensitive=["sex", "city"]).fit(frame)
        assert fitted.p_sx_.shape == (6, 4)
        assert fitted.mechanism_.s_labels[0] == ("f", "z")
        assert len(fitted.sensitive_categories_) == 2

    def test_numeric_and_missing_s(self, frame):
        fitted = quiet_fit(make(sensitive="income"), frame)
        assert fitted.p_sx_.shape == (10, 4)
        holes = frame.assign(sex=frame["sex"].where(frame.index % 4 > 0))
        assert make().fit(holes).mechanism_.s_labels == ("f", "m", None)

    def test_no_s_at_all(self, frame):
        with pytest.raises(ValueError, match=r"requires y to be passed.*sensitive=\.\.\."):
            make(sensitive=None).fit(frame)


class TestTarget:
    """With utility="target" the output keeps what X says about y."""

    @pytest.fixture
    def target(self, frame):
        return frame["children"] > 1

    def test_y_is_the_target(self, frame, target):
        fitted = make(utility="target", epsilon=0.01).fit(frame, target)
        mechanism = fitted.mechanism_
        counts = pd.crosstab(target, frame["education"])[list(mechanism.x_labels)].to_numpy()
        assert mechanism.objective == Target(counts)
        p_vy = counts / counts.sum() @ mechanism.channel
        assert_allclose(mechanism.utility, mutual_information(p_vy), atol=1e-12)
        plain = make(epsilon=0.01).fit(frame, target).mechanism_
        other = Target(counts).of_channel(plain.p_x, plain.channel)
        assert mechanism.utility >= other - 1e-5
        assert mechanism.mutual_information <= plain.utility + 1e-5

    def test_weights_and_numbers(self, frame):
        weights = np.arange(len(frame)) % 3
        y = np.random.default_rng(0).normal(size=len(frame))
        fitted = make(utility="target").fit(frame, y, sample_weight=weights)
        assert fitted.mechanism_.objective.p_v_given_x.shape[0] == 10  # quantile bins

    def test_needs_y(self, frame):
        with pytest.raises(ValueError, match="utility='target' requires y"):
            make(utility="target").fit(frame)

    def test_y_must_not_be_s(self, frame):
        with pytest.raises(ValueError, match="got the sensitive variable itself as y"):
            make(utility="target").fit(frame, frame["sex"])
        with pytest.raises(ValueError, match="itself as y"), pytest.warns(PrivacyLeakWarning):
            make(utility="target", sensitive=None).fit(frame[["education"]], frame["sex"])

    def test_is_shipped(self, frame, target):
        fitted = make(utility="target").fit(frame, target)
        shipped = PrivacyFunnelTransformer.from_json(fitted.to_json())
        assert shipped.mechanism_.utility == fitted.mechanism_.utility


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
        assert symbols([0, 20000, np.inf]) == ("<= 20000", "> 20000")
        assert len(symbols({"income": [0, 15000, 20000, 1e6]})) == 3
        few = quiet_fit(make(columns=["children"], n_bins=None), frame).mechanism_.x_labels
        assert few == (0, 1, 2, 3)
        empty = quiet_fit(make(columns=["children"], n_bins=[-1, 0, 0.5, 3]), frame)
        assert empty.mechanism_.x_labels == ("<= 0", "> 0.5")

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
        table = pd.DataFrame(rng.normal(size=(3000, 25)))
        with (
            pytest.warns(PrivacyLeakWarning, match="sensitive column 0 holds numbers"),
            pytest.warns(UserWarning, match=r"X has \d+ symbols, too many .* rarest are pooled"),
        ):
            quiet = make(sensitive=[0], columns=None).fit(table)
        assert quiet.transform(table).shape == (3000, 24)

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
        table = pd.DataFrame({"sex": rng.integers(0, 8, 5000), "x": rng.integers(0, 40, 5000)})
        fitted = quiet_fit(make(columns=["x"], measure=measure, n_bins=None), table)
        assert fitted.mechanism_.max_leakage <= 0.01 * (1 + 1e-9)

    def test_constant_s_with_many_symbols(self):
        table = pd.DataFrame({"sex": 1, "x": [f"name {i}" for i in range(30_000)]})
        assert len(quiet_fit(make(columns=["x"]), table).mechanism_.x_labels) == 1000

    def test_a_hundred_thousand_strings(self):
        rng = np.random.default_rng(0)
        names = np.array([f"name {i}" for i in range(100_000)])
        table = pd.DataFrame({"sex": rng.choice(["f", "m"], 200_000), "x": np.tile(names, 2)})
        with pytest.warns(UserWarning, match="X has 100000 symbols"):
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


class TestUnknownValues:
    def test_resample_draws_from_p_y_and_counts(self, frame):
        transformer = make().fit(frame)
        strange = pd.DataFrame({"education": ["college"] * 10 + ["guru"] * 200_000})
        with pytest.warns(UserWarning, match=r"draws from P\(Y\): 200,000 rows of 'education'\."):
            released = transformer.transform(strange)["education"].iloc[10:]
        share = released.value_counts(normalize=True)
        expected = pd.Series(transformer.mechanism_.p_y, index=transformer.mechanism_.y_labels)
        assert_allclose(share.reindex(expected.index, fill_value=0), expected, atol=5e-3)

    def test_error_names_the_column_and_up_to_five_values(self, frame):
        transformer = make(handle_unknown="error").fit(frame)
        strange = pd.DataFrame({"education": [f"guru {i}" for i in range(9)]})
        with pytest.raises(
            ValueError, match="'education' during transform: 'guru 0', .* 'guru 4'. Use"
        ):
            transformer.transform(strange)

    def test_unseen_combinations(self, frame):
        seen = frame[~((frame["education"] == "phd") & (frame["city"] == "x"))]
        transformer = make(columns=["education", "city"]).fit(seen)
        with pytest.warns(UserWarning, match="combination of 'education', 'city'"):
            transformer.transform(frame)
        with pytest.raises(ValueError, match=r"combination of .*: \('phd', 'x'\)"):
            transformer.set_params(handle_unknown="error").transform(frame)

    @pytest.mark.parametrize("columns", [["income"], ["income", "city"], ["city", "income"]])
    def test_a_bin_that_was_empty_at_fit_is_unknown(self, frame, columns):
        edges = [0, 20000, frame["income"].max(), 1e9, 2e9]
        transformer = quiet_fit(make(columns=columns, n_bins=edges), frame)
        beyond = frame.assign(income=frame["income"].where(frame.index > 5, 1.5e9))
        symbols, unknown = fitted_of(transformer).alphabet.encode(
            [beyond[c] for c in columns], columns
        )
        assert unknown == {"income": 2}
        assert (symbols[:2] == -1).all()
        assert 0 <= symbols[2:].min() <= symbols.max() < len(transformer.mechanism_.x_labels)

    def test_outside_of_given_edges(self, frame):
        edges = [0, 20000, frame["income"].max()]
        transformer = make(columns=["income"], n_bins=edges).fit(frame)
        with pytest.warns(UserWarning, match="1 row of 'income'"):
            transformer.transform(frame.assign(income=frame["income"].where(frame.index > 0, 1e9)))


class TestFrames:
    def test_the_same_rows_give_the_same_symbols_in_every_kind_of_table(self, frame):
        columns = ["education", "income", "children", "flag"]
        holes = frame["education"].where(frame.index % 7 > 0)
        plain = frame.assign(education=holes, flag=frame["children"] > 1)
        plain = plain[["sex", *columns]].reset_index(drop=True)
        options = {"columns": columns, "n_bins": 3, "max_categories": 3}
        expected = make(**options).fit_transform(plain)
        polars, arrow = pl.from_pandas(plain), pa.Table.from_pandas(plain, preserve_index=False)
        out = make(**options).fit_transform(polars)
        assert isinstance(out, pl.DataFrame)
        assert out.schema == polars.select(columns).schema
        pd.testing.assert_frame_equal(out.to_pandas(), expected)
        out = make(**options).fit_transform(arrow)
        assert isinstance(out, pa.Table)
        assert out.schema.types == arrow.select(columns).schema.types
        pd.testing.assert_frame_equal(out.to_pandas(), expected)
        positions = {"sensitive": 0, "columns": [1, 2, 3, 4], "n_bins": 3, "max_categories": 3}
        array = plain.to_numpy(dtype=object)
        out = make(**positions).fit_transform(array)
        assert isinstance(out, np.ndarray)
        missing = pd.isna(out) & expected.isna().to_numpy()
        assert ((out == expected.to_numpy(dtype=object)) | missing).all()

    @pytest.mark.parametrize("kind", ["polars", "pyarrow"])
    def test_large_integers_with_missing_ones_keep_their_digits(self, kind):
        numbers = [2**53 + 1, 2**53 + 3, None, 2**53 + 5] * 100
        native = pl.DataFrame({"s": [0, 1] * 200, "x": numbers})
        native = native if kind == "polars" else native.to_arrow()
        transformer = quiet_fit(make(0.0, sensitive="s", columns="x"), native)
        released = transformer.transform(native)
        values = released["x"].to_list() if kind == "polars" else released["x"].to_pylist()
        assert set(values) <= set(numbers)
        assert transformer.categories_[0].tolist()[:3] == [2**53 + 1, 2**53 + 3, 2**53 + 5]

    @pytest.mark.parametrize("output", ["label", "symbol", "posterior"])
    @pytest.mark.parametrize("kind", ["polars", "pyarrow"])
    def test_other_frames(self, frame, kind, output):
        table = frame.reset_index(drop=True)
        holes = table["education"].where(table.index % 5 > 0)
        table = table.assign(education=holes, flag=table["children"] > 1)
        native = pl.from_pandas(table)
        native = native if kind == "polars" else native.to_arrow()
        transformer = make(
            columns=["education", "flag", "city"], output=output, remainder="passthrough"
        )
        quiet_fit(transformer, native)
        released = transformer.transform(native)
        assert type(released) is type(native)
        names = released.columns if kind == "polars" else released.column_names
        assert list(names) == transformer.get_feature_names_out().tolist()
        assert "sex" not in names
        if output == "label":
            schema = released.schema
            for name in ("education", "flag", "city", "since"):
                before = (
                    native.schema[name] if kind == "polars" else native.schema.field(name).type
                )
                after = schema[name] if kind == "polars" else schema.field(name).type
                if before == pl.Categorical:  # which lists what other frames have seen, too
                    before = pl.Enum(["x", "y", "z"])
                assert before == after

    def test_fitted_on_one_kind_and_applied_to_another(self, frame):
        table = frame.reset_index(drop=True)
        transformer = make().fit(table)
        out = transformer.transform(pl.from_pandas(table[["education"]]))
        assert out["education"].to_list() == transformer.transform(table)["education"].tolist()

    def test_columns_at_transform(self, frame):
        transformer = make(columns=["education", "children"]).fit(frame)
        expected = transformer.transform(frame)
        other = frame[["children", "education"]].assign(extra=1)
        pd.testing.assert_frame_equal(transformer.transform(other), expected)
        with pytest.raises(ValueError, match=r"lacks the columns \['children'\]"):
            transformer.transform(frame[["education"]])

    def test_set_output(self, frame):
        numbers = frame[["children", "income"]].to_numpy()
        transformer = make(sensitive=None, columns=None, max_categories=3, n_bins=3)
        transformer.set_output(transform="pandas")
        quiet_fit(transformer, numbers, sensitive_features=frame["sex"])
        assert transformer.transform(numbers).columns.tolist() == ["x0", "x1"]
        polars = make().set_output(transform="polars").fit_transform(frame)
        assert isinstance(polars, pl.DataFrame)
        assert polars.columns == ["education"]
        pandas = make().set_output(transform="pandas").fit_transform(pl.from_pandas(frame))
        assert isinstance(pandas, pd.DataFrame)
        assert pandas.columns.tolist() == ["education"]

    def test_categories_that_a_new_frame_does_not_have(self, frame):
        transformer = make(columns=["city"], epsilon=1e-6).fit(frame)
        part = frame[frame["city"] == "x"].assign(
            city=lambda f: f["city"].cat.remove_unused_categories()
        )
        released = transformer.transform(part)["city"]
        assert released.isin(["x", "y", "z"]).all()

    def test_a_missing_value_in_a_column_that_has_none(self):
        table = pd.DataFrame({"s": [0, 1] * 100, "x": [1.0, np.nan, 2.0, 1.0] * 50})
        transformer = quiet_fit(make(sensitive="s", columns="x", epsilon=0.0), table)
        released = transformer.transform(pd.DataFrame({"x": np.ones(500, dtype="int64")}))
        assert released["x"].isin([1, 2]).sum() + released["x"].isna().sum() == 500


class TestRandomness:
    def test_a_seed_repeats_and_none_does_not(self, frame):
        seeded = make(random_state=5).fit(frame)
        assert seeded.transform(frame).equals(seeded.transform(frame))
        assert not make(random_state=6).fit(frame).transform(frame).equals(seeded.transform(frame))
        fresh = make(random_state=None).fit(frame)
        assert not fresh.transform(frame).equals(fresh.transform(frame))

    @pytest.mark.parametrize("kind", [np.random.RandomState, np.random.default_rng])
    def test_generators_advance(self, frame, kind):
        first, second = (make(random_state=kind(1)).fit(frame) for _ in range(2))
        a, b = first.transform(frame), first.transform(frame)
        assert not a.equals(b)
        assert a.equals(second.transform(frame))

    @pytest.mark.parametrize("output", ["label", "symbol", "posterior"])
    @pytest.mark.parametrize("columns", [["education"], ["education", "city"]])
    def test_transform_stores_nothing(self, frame, columns, output):
        transformer = make(random_state=None, columns=columns, output=output).fit(frame)
        before = pickle.dumps(transformer.__dict__)
        transformer.transform(frame)
        assert pickle.dumps(transformer.__dict__) == before

    def test_noise_is_independent_of_data_drawn_with_the_same_seed(self):
        rng = np.random.default_rng(0)
        s, x = rng.integers(0, 2, 50_000), rng.integers(0, 16, 50_000)
        transformer = make(0.0, sensitive=0, columns=1, n_bins=None).fit(np.column_stack([s, x]))
        table = np.column_stack([s, np.zeros_like(x)])
        drawn = np.bincount(transformer.transform(table)[:, 0].astype(int), minlength=16) / 50_000
        names = np.array(transformer.mechanism_.y_labels)
        assert_allclose(drawn[names], transformer.mechanism_.channel[0], atol=0.01)

    def test_invariance_in_distribution(self, frame):
        """Order and subsets change the draw of a row, not its distribution."""
        transformer = make(random_state=None).fit(frame)
        mechanism = transformer.mechanism_
        for part in (frame, frame[::-1], frame[::3]):
            big = pd.concat([part] * (400_000 // len(part)))
            released = transformer.transform(big)["education"].to_numpy()
            for x, label in enumerate(mechanism.x_labels):
                rows = released[big["education"].to_numpy() == label]
                share = pd.Series(rows).value_counts(normalize=True).reindex(mechanism.y_labels)
                assert_allclose(share.fillna(0), mechanism.channel[x], atol=0.01)


class TestState:
    @pytest.mark.parametrize(
        "options",
        [
            {"columns": ["education", "nothing"]},
            {"solver": "algorithm1", "solver_options": {"max_bases": 1}},
            {"remainder": "passthrough", "output": "posterior"},
        ],
        ids=["before", "during", "after the design"],
    )
    def test_a_failed_fit_leaves_nothing(self, frame, options):
        clash = frame.assign(education_phd=1)
        for fitted in (False, True):
            transformer = make()
            if fitted:
                transformer.fit(frame)
            transformer.set_params(**options)
            before = dict(vars(transformer))
            with pytest.raises((ValueError, SolverError)):
                quiet_fit(transformer, clash)
            assert list(vars(transformer)) == list(before)
            assert all(vars(transformer)[name] is before[name] for name in before)

    @pytest.mark.parametrize(
        "copies", [clone, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))]
    )
    def test_copies(self, frame, copies):
        transformer = make(measure=AlphaLift(3), columns=["education", "income"]).fit(frame)
        other = copies(transformer)
        assert other.get_params() == transformer.get_params()
        if copies is clone:
            other.fit(frame)
        assert other.transform(frame).equals(transformer.transform(frame))

    def test_html_repr(self, frame):
        assert "PrivacyFunnelTransformer" in make().fit(frame)._repr_html_()
        assert "epsilon=0.01" in repr(make())

    def test_refitting_without_names_forgets_them(self, frame):
        transformer = make().fit(frame)
        transformer.set_params(sensitive=0, columns=1).fit(frame.to_numpy(dtype=object))
        assert not hasattr(transformer, "feature_names_in_")

    @pytest.mark.parametrize("options", [{}, {"columns": ["education", "income", "since", "city"], "max_categories": 3},
                                         {"output": "posterior"}, {"scope": "average", "measure": AlphaLift(3)}])  # fmt: skip
    def test_json(self, frame, options):
        transformer = quiet_fit(make(**options, remainder="passthrough"), frame)
        text = transformer.to_json()
        other = PrivacyFunnelTransformer.from_json(text)
        assert other.to_json() == text
        assert other.random_state is None
        other.set_params(random_state=0)
        rows = frame.drop(columns="sex")
        assert other.transform(rows).equals(transformer.transform(rows))
        assert "sex" not in other.transform(frame)
        assert not hasattr(other, "p_sx_")

    def test_json_checks_edges(self, frame):
        content = json.loads(quiet_fit(make(columns=["income"]), frame).to_json())
        edges = content["columns"][0]["edges"]
        for wrong in (edges[::-1], edges[:-1], [*edges, 1e9]):
            content["columns"][0]["edges"] = wrong
            with pytest.raises(ValueError, match=r"columns\[0\].edges(\[1\])? must be"):
                PrivacyFunnelTransformer.from_json(sealed(content))

    def test_json_says_nothing_of_s(self, frame):
        content = json.loads(make().fit(frame.replace({"f": "woman", "m": "man"})).to_json())
        text = json.dumps(content)
        assert "woman" not in text
        assert "p_sx" not in text

    @pytest.mark.parametrize(
        ("change", "text"),
        [
            ({"schema": "other"}, "no schema 'skprivacy.transformer'"),
            ({"version": 7}, "format version 7"),
            ({"names": [0, 0, 0, 99]}, r"names\[3\] must be an integer from 0 to 3. Got 99"),
            (
                {"names": [0, 0, 0, 0]},
                r"names\[1\] must be a symbol that is not in the list before",
            ),
            ({"weights": [-1, 1, 1, 1]}, r"weights\[0\] must be a finite number from 0"),
            ({"comment": 1}, "comment is not a key"),
            (
                {"symbols": [3, 2, 1, 0]},
                r"mechanism.x_labels\[0\] must be the label that this symbol has in columns",
            ),
            ({"columns": []}, "columns must be a list of at least 1"),
            ({"columns": [1]}, r"columns\[0\] must be an object"),
            ({"layout": {}}, "layout.names is missing"),
            ({"parameters": {}}, "parameters.output is missing"),
        ],
    )
    def test_json_is_checked(self, frame, change, text):
        content = json.loads(make().fit(frame).to_json()) | change
        with pytest.raises(ValueError, match=text):
            PrivacyFunnelTransformer.from_json(sealed(content))
        with pytest.raises(ValueError, match="not the JSON text"):
            PrivacyFunnelTransformer.from_json("{")


class TestWarnings:
    def check(self, table, text, **options):
        with pytest.warns(PrivacyLeakWarning, match=text):
            make(**options).fit(table)

    def test_small_groups_are_counted_and_not_named(self, frame):
        rare = frame.assign(sex=frame["sex"].where(frame.index > 5, "Huntington"))
        with pytest.warns(PrivacyLeakWarning) as caught:
            make().fit(rare)
        (text,) = (str(warning.message) for warning in caught)
        assert "1 of the 3 sensitive groups has fewer rows than X has symbols (4), 2 rows" in text
        assert "Huntington" not in text

    def test_x_unchanged(self, frame):
        self.check(frame, "No noise is added to X: epsilon=5 allows", epsilon=5.0)

    def test_output_constant(self):
        table = pd.DataFrame({"sex": list("ab") * 500, "education": list("uvuvuvuvuu") * 100})
        self.check(table, "constant or says nothing", epsilon=0.0)

    def test_x_determines_s(self, frame):
        self.check(frame.assign(education=frame["sex"]), "X determines S")

    def test_a_column_passed_through_that_alone_says_too_much(self, frame):
        proxy = frame.assign(proxy=np.where(frame["sex"] == "f", "p", "q"))
        self.check(proxy, r"(?s)more about S on their own.*\nproxy +0.72", remainder="passthrough")

    def test_a_column_that_cannot_be_judged_is_passed_through_all_the_same(self, frame):
        odd = frame[["sex", "education"]].assign(odd=[[1]] * N)
        with pytest.warns(PrivacyLeakWarning, match=r"\['odd'\] say about S cannot be judged"):
            released = make(remainder="passthrough").fit_transform(odd)
        assert released["odd"].tolist() == [[1]] * N

    def test_a_column_is_judged_by_its_values_and_not_by_bins(self, frame):
        parity = np.random.default_rng(0).integers(0, 50, N) * 2 + (frame["sex"] == "f")
        self.check(frame.assign(parity=parity), r"\nparity +0\.", remainder="passthrough")

    def test_warnings_point_to_the_line_of_the_user(self, frame):
        with pytest.warns(PrivacyLeakWarning) as caught:
            make(epsilon=5.0).fit(frame)
        assert caught[0].filename == __file__
        with pytest.warns(PrivacyLeakWarning) as caught:
            make(sensitive=None).fit(frame, frame["sex"])
        assert caught[0].filename == __file__
        with pytest.warns(UserWarning, match="did not see") as caught:
            make().fit(frame).transform(frame.assign(education="guru"))
        assert caught[0].filename == __file__

    def test_constant_s(self, frame):
        constant = frame.assign(sex="f")
        with pytest.warns(PrivacyLeakWarning, match="single value: there is nothing to protect"):
            released = make().fit_transform(constant)
        assert released["education"].equals(frame["education"])


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"sensitive": "gender"}, "'sensitive' parameter .* 'gender', which X does not have"),
            ({"columns": ["degree"]}, "'columns' parameter .* 'degree', which X does not have"),
            ({"columns": [17]}, "17, which X does not have"),
            ({"columns": ["education", "education"]}, "'education' more than once"),
            ({"sensitive": ["sex", "sex"]}, "'sex' more than once"),
            ({"columns": ["education", "sex"]}, "'sex' is both sensitive and one of the 'columns'"),
            ({"columns": []}, "must name at least one column"),
            ({"sensitive": []}, "'sensitive' parameter .* at least one column"),
            ({"epsilon": -1}, r"'epsilon' parameter of PrivacyFunnelTransformer .* Got -1 instead"),
            ({"output": "values"}, "'output' parameter .*'label', 'posterior', 'symbol'"),
            ({"remainder": "keep"}, "'remainder' parameter"),
            ({"handle_unknown": "ignore"}, "'handle_unknown' parameter"),
            ({"smoothing": -1.0}, "'smoothing' parameter"),
            ({"n_bins": 0}, "'n_bins' parameter"),
            ({"min_frequency": 0}, "'min_frequency' parameter"),
            ({"min_frequency": 1.5}, "'min_frequency' parameter"),
            ({"max_categories": 0}, "'max_categories' parameter"),
            ({"measure": "unknown"}, "'measure' parameter"),
            ({"n_bins": [0, 1], "columns": ["income"]}, "'income' do not cover its values. Got .* begin with -inf"),
            ({"n_bins": [3, 2, 1], "columns": ["income"]}, "'income' must increase"),
            ({"n_bins": [5], "columns": ["income"]}, "at least two"),
            ({"n_bins": {"incom": 3}}, "'n_bins' parameter .* 'incom', which X does not have"),
        ],
    )  # fmt: skip
    def test_parameters(self, frame, options, text):
        with pytest.raises(ValueError, match=text):
            make(**options).fit(frame)

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"epsilon": "0.1"}, "'epsilon' parameter"),
            ({"random_state": "seed"}, "'random_state' parameter"),
            ({"solver_options": [1]}, "'solver_options' parameter"),
            ({"n_bins": "ten"}, "'n_bins' parameter"),
        ],
    )
    def test_types(self, frame, options, text):
        with pytest.raises(TypeError, match=text):
            make(**options).fit(frame)

    @pytest.mark.parametrize(
        ("cells", "error", "text"),
        [
            ([1.0, np.inf], ValueError, "'x' has infinity among its numbers"),
            ([1, "a"], TypeError, "'x' mixes numbers and str values: convert"),
            ([[1], [2]], TypeError, "'x' has cells that cannot be compared"),
            ([1j, 2j], TypeError, "'x' has values without an order"),
        ],
    )
    def test_cells(self, cells, error, text):
        table = pd.DataFrame({"sex": list("fm") * 50})
        table["x"] = cells * 50
        with pytest.raises(error, match=text):
            make(columns=["x"]).fit(table)

    def test_names_that_clash(self, frame):
        with pytest.raises(ValueError, match="'education_phd' twice: rename"):
            quiet_fit(
                make(output="posterior", remainder="passthrough"), frame.assign(education_phd=1)
            )

    def test_shapes(self, frame):
        with pytest.raises(ValueError, match="0 sample"):
            make().fit(frame.iloc[:0])
        with pytest.raises(ValueError, match="inconsistent numbers of samples.*y has 3"):
            make().fit(frame, [1, 2, 3])
        with pytest.raises(ValueError, match="sensitive_features has 3"):
            make().fit(frame, sensitive_features=[1, 2, 3])
        with pytest.raises(ValueError, match="sample_weight has 3"):
            make().fit(frame, sample_weight=[1, 2, 3])
        with pytest.raises(ValueError, match="finite and not negative"):
            make().fit(frame, sample_weight=np.full(N, -1.0))
        with pytest.raises(ValueError, match="must not be all zero"):
            make().fit(frame, sample_weight=np.zeros(N))
        with pytest.raises(ValueError, match="more than once"):
            make().fit(pd.concat([frame, frame], axis=1))
        with pytest.raises(ValueError, match=r"the Series 'education': use \.to_frame"):
            make().fit(frame["education"])

    def test_little_data_works(self, frame):
        one = quiet_fit(make(), frame.iloc[:1])
        assert len(one.transform(frame.iloc[:1])) == 1
        missing = frame.assign(education=None)
        assert quiet_fit(make(), missing).transform(missing)["education"].isna().all()
        constant = frame.assign(education="same")
        assert (quiet_fit(make(), constant).transform(constant)["education"] == "same").all()
        assert make().fit(frame).transform(frame.iloc[:0]).shape == (0, 1)


EXPECTED_FAILURES = {
    "check_fit_score_takes_y": "calls partial_fit after fit, which keeps no raw counts to go on with",
    "check_methods_sample_order_invariance": "every row gets fresh noise, in the order of rows",
    "check_methods_subset_invariance": "every row gets fresh noise, in the order of rows",
}


class TestScikitLearn:
    @pytest.mark.filterwarnings("ignore")
    def test_check_estimator(self):
        results = estimator_checks.check_estimator(
            PrivacyFunnelTransformer(random_state=0),
            expected_failed_checks=EXPECTED_FAILURES,
            on_fail=None,
            on_skip=None,
        )
        status = {}
        for result in results:
            status.setdefault(result["status"], set()).add(result["check_name"])
        assert len(results) > 45
        assert status.get("failed", set()) == set()
        assert status["xfail"] == set(EXPECTED_FAILURES)
        # Skipped unless an environment variable turns on array API dispatch.
        assert status.get("skipped", set()) <= {"check_array_api_input"}

    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize(
        "check",
        [
            "check_get_feature_names_out_error",
            "check_global_output_transform_pandas",
            "check_global_set_output_transform_polars",
            "check_set_output_transform",
            "check_set_output_transform_pandas",
            "check_set_output_transform_polars",
            "check_transformer_get_feature_names_out",
            "check_transformer_get_feature_names_out_pandas",
            pytest.param(
                "check_dataframe_column_names_consistency",
                marks=pytest.mark.xfail(
                    raises=AssertionError,
                    reason="columns are found by name: reordered ones are fine, as in ColumnTransformer",
                ),
            ),
        ],
    )
    def test_checks_that_check_estimator_leaves_out(self, check):
        transformer = PrivacyFunnelTransformer(random_state=0)
        getattr(estimator_checks, check)("PrivacyFunnelTransformer", transformer)

    def test_grid_search_over_epsilon(self):
        diabetes = load_diabetes(as_frame=True, scaled=False)
        target = diabetes.target > diabetes.target.median()
        pipeline = make_pipeline(
            PrivacyFunnelTransformer(
                sensitive="sex", columns=["bmi", "bp"], n_bins=3, random_state=0
            ),
            OneHotEncoder(handle_unknown="ignore"),
            LogisticRegression(),
        )
        grid = {"privacyfunneltransformer__epsilon": [0.001, 0.05, 1.0]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search = GridSearchCV(pipeline, grid, n_jobs=2, cv=3).fit(diabetes.data, target)
        assert search.best_score_ > 0.6
        scores = search.cv_results_["mean_test_score"]
        assert scores.max() > 0.5
        assert not np.isnan(scores).any()

    def test_routing_off(self, frame):
        pipeline = Pipeline(
            [
                ("funnel", make(sensitive=None, columns=["education"])),
                ("encode", OneHotEncoder(handle_unknown="ignore")),
                ("model", LogisticRegression()),
            ]
        )
        rows = frame.drop(columns="sex")
        pipeline.fit(rows, frame["children"] > 1, funnel__sensitive_features=frame["sex"])
        assert_array_equal(pipeline["funnel"].p_sx_, make().fit(frame).p_sx_)

    def test_routing_on(self, frame):
        rows, target = frame.drop(columns="sex"), frame["children"] > 1
        with sklearn.config_context(enable_metadata_routing=True):
            funnel = make(sensitive=None, columns=["education"])
            funnel.set_fit_request(sensitive_features=True, sample_weight=True)
            columns = ColumnTransformer(
                [("funnel", funnel, ["education"]), ("rest", "passthrough", ["income"])]
            )
            columns.fit(rows, target, sensitive_features=frame["sex"])
            assert_array_equal(
                columns.named_transformers_["funnel"].p_sx_, make().fit(frame).p_sx_
            )
            model = LogisticRegression().set_fit_request(sample_weight=False)
            pipeline = make_pipeline(funnel, OneHotEncoder(handle_unknown="ignore"), model)
            search = GridSearchCV(
                pipeline, {"privacyfunneltransformer__epsilon": [0.01, 0.1]}, cv=2
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                search.fit(rows, target, sensitive_features=frame["sex"])
                weights = np.where(frame["sex"] == "f", 2.0, 1.0)
                pipeline.fit(rows, target, sensitive_features=frame["sex"], sample_weight=weights)
            weighted = pipeline["privacyfunneltransformer"].p_sx_
        fitted = search.best_estimator_["privacyfunneltransformer"]
        assert_array_equal(fitted.p_sx_, make().fit(frame).p_sx_)
        assert_array_equal(weighted, make().fit(frame, sample_weight=weights).p_sx_)

    def test_cross_validation_of_a_plain_pipeline(self, frame):
        pipeline = make_pipeline(
            make(), OneHotEncoder(handle_unknown="ignore"), LogisticRegression()
        )
        # In this order, row numbers say no more about sex than chance in any fold.
        rows = frame.sample(frac=1, random_state=0)
        assert cross_val_score(pipeline, rows, rows["children"] > 1).shape == (5,)


class TestNaming:
    def best_by_brute_force(self, p_xy):
        n_x, n_y = p_xy.shape
        picked = (p_xy[list(names), range(n_y)] for names in permutations(range(n_x), n_y))
        return max(values.sum() for values in picked if (values > 0).all())

    def test_names_are_right_as_often_as_possible(self):
        rng = np.random.default_rng(0)
        for _ in range(30):
            mechanism = design_mechanism(rng.random((2, 5)), 0.02)
            named, names = name_outputs(mechanism)
            p_xy = named.p_x[:, None] * named.channel
            reached = p_xy[names, range(len(names))]
            assert (reached > 0).all()
            assert (np.diff(names) > 0).all()
            assert_allclose(reached.sum(), self.best_by_brute_force(p_xy))
            assert_allclose(named.utility, mechanism.utility)

    def test_one_output_too_many_is_merged_where_it_costs_least(self):
        channel = np.array([[0.8, 0.1, 0.1], [0.1, 0.5, 0.4]])  # the last two say about the same
        design = design_mechanism(np.full((2, 2), 0.25), 1.0, scope="average")
        mechanism = replace(design, channel=channel, y_labels=(0, 1, 2), upper_bound=None)
        named, names = name_outputs(mechanism)
        assert names.tolist() == [0, 1]
        assert_allclose(named.channel, [[0.8, 0.2], [0.1, 0.9]])

    def test_ties_are_broken_the_same_way_each_time(self):
        mechanism = design_mechanism(np.full((2, 4), 0.125), 0.1)
        assert (name_outputs(mechanism)[1] == name_outputs(mechanism)[1]).all()


class TestSampler:
    def test_the_integer_table_is_what_is_sampled_and_keeps_the_budget(self):
        rng = np.random.default_rng(1)
        for epsilon in (0.0, 1e-6, 0.01, 0.3):
            for _ in range(20):
                joint = rng.random((3, 6)) * 10.0 ** -rng.integers(0, 9, size=(1, 6))
                mechanism = design_mechanism(joint, epsilon, measure="max_lift")
                mechanism = within_budget_as_sampled(mechanism)
                channel = sampled_channel(integer_boundaries(mechanism.channel))
                assert_allclose(channel, mechanism.channel, atol=2**-52)
                assert (channel[mechanism.channel == 0] == 0).all()
                sampled = mechanism.with_channel(channel)
                assert sampled.max_leakage <= epsilon * (1 + 1e-9) + 1e-12

    def test_every_word_gives_the_output_of_its_interval(self):
        channel = np.array([[0.3, 0.0, 0.7], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
        sampler = Sampler(channel, np.array([0.5, 0.25, 0.25]))
        words = np.array(
            [0, int(0.3 * 2**64) - 3000, int(0.3 * 2**64) + 3000, 2**64 - 1], dtype=np.uint64
        )

        class Given(Noise):
            def __len__(self):
                return 4

            def words(self, lane, start, stop):
                return words

        source = Given()
        assert sampler.draw(np.zeros(4, int), source).tolist() == [0, 0, 2, 2]
        assert sampler.draw(np.ones(4, int), source).tolist() == [0, 0, 0, 0]
        assert sampler.draw(np.full(4, 2), source).tolist() == [2, 2, 2, 2]
        assert sampler.draw(np.full(4, -1), source).tolist() == [0, 0, 0, 2]

    @pytest.mark.parametrize("seed", [0, None])
    def test_frequencies(self, seed):
        rng = np.random.default_rng(0)
        channel = rng.dirichlet(np.full(300, 0.1), size=40)
        sampler = Sampler(channel, channel.mean(axis=0))
        symbols = np.repeat(np.arange(-1, 40), 50_000)
        drawn = sampler.draw(symbols, RowNoise(fresh_key(seed), range(len(symbols))))
        counts = np.zeros((41, 300))
        np.add.at(counts, (symbols + 1, drawn), 1)
        expected = np.vstack([channel.mean(axis=0), channel]) * 50_000
        # Chi-squared per row against its degrees of freedom.
        statistic = np.where(expected > 5, (counts - expected) ** 2 / np.maximum(expected, 5), 0)
        freedom = (expected > 5).sum(axis=1)
        assert (np.abs(statistic.sum(axis=1) - freedom) < 6 * np.sqrt(2 * freedom) + 10).all()
        assert (counts[expected == 0] == 0).all()
