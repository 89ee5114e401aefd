"""Texts with an order, and labels of bins."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

from skprivacy import PrivacyFunnelTransformer, TreeCells
from skprivacy.encoding.columns import learn_column
from skprivacy.encoding.values import scale_of
from skprivacy.files import fit_file

STEPS = ["Low", "Medium", "High"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    s = rng.integers(2, size=3000)
    step = np.clip(rng.integers(3, size=3000) + s * (rng.random(3000) < 0.4), 0, 2)
    return pd.DataFrame({"s": s, "x": np.array(STEPS)[step.astype(int)]})


def fit(rows, **options):
    funnel = PrivacyFunnelTransformer(0.002, sensitive="s", utility="distortion", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return funnel.fit(rows)


@pytest.fixture(scope="module")
def by_parameter(rows):
    return fit(rows, ordered={"x": STEPS})


def test_high_is_not_released_as_low_without_need(rows, by_parameter):
    assert by_parameter.mechanism_.x_labels == tuple(STEPS)
    released = by_parameter.transform(rows)
    assert released.dtypes.equals(rows[["x"]].dtypes)
    steps = [frame["x"].map(STEPS.index) for frame in (rows, released)]
    far = (steps[0] - steps[1]).abs().eq(2).mean()
    without = fit(rows).transform(rows)["x"].map(STEPS.index)
    assert far < (steps[0] - without).abs().eq(2).mean()


def ordered_table(rows, folder):
    categories = pd.Categorical(rows["x"], STEPS, ordered=True)
    pandas = rows.assign(x=categories)
    enum = pl.DataFrame({"s": rows["s"], "x": pl.Series(rows["x"].tolist(), dtype=pl.Enum(STEPS))})
    codes = pa.array(categories.codes.astype(int))
    arrow = pa.table({
        "s": rows["s"], "x": pa.DictionaryArray.from_arrays(codes, pa.array(STEPS), ordered=True)
    })  # fmt: skip
    pq.write_table(arrow, folder / "rows.parquet")
    return {"pandas": pandas, "polars": enum, "lazy polars": enum.lazy(), "pyarrow": arrow}


def test_ordered_columns_of_all_libraries_count_as_ordered(rows, by_parameter, tmp_path):
    expected = by_parameter.mechanism_
    for name, table in ordered_table(rows, tmp_path).items():
        found = fit(table).mechanism_
        assert found.x_labels == expected.x_labels, name
        assert (found.channel == expected.channel).all(), name
    funnel = PrivacyFunnelTransformer(0.002, sensitive="s", utility="distortion")
    found = fit_file(funnel, tmp_path / "rows.parquet").mechanism_
    assert (found.channel == expected.channel).all()


def test_files_batches_and_json(rows, by_parameter, tmp_path):
    expected = by_parameter.mechanism_.channel
    rows.to_csv(tmp_path / "rows.csv", index=False)
    funnel = PrivacyFunnelTransformer(
        0.002, sensitive="s", utility="distortion", ordered={"x": STEPS}
    )
    assert (fit_file(funnel, tmp_path / "rows.csv").mechanism_.channel == expected).all()
    funnel = clone(funnel)
    for start in range(0, 3000, 1000):
        funnel = funnel.partial_fit(rows[start : start + 1000])
    assert (funnel.mechanism_.channel == expected).all()
    loaded = PrivacyFunnelTransformer.from_json(funnel.to_json())
    assert loaded.fidelity_.columns.equals(funnel.fidelity_.columns)
    assert loaded.fidelity_.columns.loc["x", "unit"] == "steps"


def test_cells(rows):
    table = rows.assign(y=np.random.default_rng(1).integers(5, size=len(rows)))
    made = fit(table, ordered={"x": STEPS}, alphabet=TreeCells(max_cells=6))
    assert made.fidelity_.columns.loc["x", "unit"] == "steps"


@pytest.mark.parametrize(
    ("ordered", "message"),
    [
        ({"x": ["Low", "High"]}, "of the column 'x' lacks 'Medium'"),
        ({"y": STEPS}, "names the column 'y'"),
        ({"s": [0, 1]}, "holds numbers"),
        ({"x": "LMH"}, "must be a list"),
        ({"x": ["Low", "Low"]}, "must be a list"),
        ([STEPS], "must be a dict"),
    ],
)
def test_mistakes(rows, ordered, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fit(rows, ordered=ordered)


def test_values_of_s_are_not_shown(rows):
    swapped = rows.rename(columns={"x": "s", "s": "x"})
    with pytest.raises(ValueError, match="of the column 's' lacks 1 of its distinct") as caught:
        fit(swapped, ordered={"s": ["Low", "High"]})
    assert "Medium" not in str(caught.value)


@pytest.mark.parametrize(
    "scale",
    [
        ["low", "medium", "high"],
        ["Very Low", "Low", "High", "Very High"],
        ["never", "rarely", "sometimes", "often", "always"],
        ["strongly_disagree", "disagree", "neutral", "agree", "strongly_agree"],
        ["S", "M", "L", "XL"],
        ["< 18", "18-25", "26 to 40", "41+"],
    ],
)
def test_scales(scale):
    assert scale_of(sorted(scale)) == scale


@pytest.mark.parametrize(
    "values",
    [
        ["low", "high"],
        ["low", "red", "high"],
        ["1", "2", "3"],
        [1, 2, 3],
        ["a", "b", "c"],
        ["moderate", "medium", "low"],
    ],
)
def test_what_is_no_scale(values):
    assert scale_of(values) is None


@pytest.mark.parametrize(
    ("values", "edges", "labels"),
    [
        ([0] * 9 + [1] * 9 + [2] * 9 + [3] * 9, [-np.inf, 0, 1, np.inf], ("n 0", "n 1", "n >= 2")),
        (list(range(40)), [-np.inf, 9, 19, np.inf], ("n <= 9", "n 10 to 19", "n >= 20")),
        ([0.5, 1.5, 2.5], [-np.inf, 1, 2, np.inf], ("n <= 1", "n 1 to 2", "n > 2")),
    ],
)
def test_labels_of_bins(values, edges, labels):
    assert learn_column(pd.Series(values), None, "n", n_bins=edges)[0].labels == labels
