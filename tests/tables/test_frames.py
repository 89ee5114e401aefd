"""Tables of every kind."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from example_tables import make, quiet_fit

from skprivacy import PrivacyFunnelTransformer


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

    @pytest.mark.filterwarnings("ignore:X does not have valid feature names")
    def test_whole_numbers_that_no_integer_holds_stay_floats(self):
        table = pd.DataFrame({"s": [0, 1] * 50, "x": [0, 1, 1, 2] * 25, "kept": 1.0})
        funnel = PrivacyFunnelTransformer(0.2, sensitive="s", columns="x", remainder=["kept"])
        rows = table.to_numpy()
        rows[:2, 2] = 1e300, -(2.0**63)
        kept = quiet_fit(funnel, table).transform(rows)[:, 1]
        assert kept.tolist() == rows[:, 2].tolist()

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
