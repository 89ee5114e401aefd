"""How far symbols are from each other, against sums over pairs of rows."""

import numpy as np
import pandas as pd
import pytest
from example_tables import funnel, people, quiet_fit

from skprivacy import PrivacyFunnelTransformer
from skprivacy.fitting.fitted_estimator import fitted_of
from skprivacy.utilities import Distortion

ROWS = 1500


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    table = people(ROWS)
    table["count"] = rng.poisson(3, ROWS).astype(float)
    table.loc[rng.random(ROWS) < 0.1, "count"] = np.nan
    table["grade"] = pd.Categorical(
        rng.choice(["low", "mid", "high"], ROWS), ["low", "mid", "high"], ordered=True
    )
    table["town"] = rng.choice([f"town {i}" for i in range(12)], ROWS, p=np.arange(12, 0, -1) / 78)
    table["when"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 5, ROWS), "D")
    return table


def loss_of(transformer):
    return transformer.mechanism_.objective.loss


def naive(column, has_order):
    """The distance of each row from each, symbol by symbol as the documentation has it."""
    known = column.notna().to_numpy()
    apart = (column.to_numpy()[:, None] != column.to_numpy()[None]).astype(float)
    if has_order:
        codes = column.cat.codes if isinstance(column.dtype, pd.CategoricalDtype) else column
        ranks = (codes.where(known).rank(method="average") - 0.5).to_numpy() / known.sum()
        apart = np.abs(ranks[:, None] - ranks[None])
        apart[known[:, None] != known[None]] = 1.0
    apart[~known[:, None] & ~known[None]] = 0.0
    return apart


def by_symbol(transformer, rows, columns, distances):
    symbols, _ = fitted_of(transformer).alphabet.encode([rows[c] for c in columns], columns)
    is_symbol = np.eye(symbols.max() + 1)[symbols]
    is_symbol /= is_symbol.sum(axis=0)
    return is_symbol.T @ distances @ is_symbol


@pytest.mark.parametrize(
    ("column", "has_order"),
    [("count", True), ("grade", True), ("when", True), ("town", False), ("label", False)],
)
def test_one_column(rows, column, has_order):
    fitted = quiet_fit(funnel(1e-4, columns=[column], utility="distortion", n_bins=None), rows)
    expected = by_symbol(fitted, rows, [column], naive(rows[column], has_order))
    np.testing.assert_allclose(loss_of(fitted), expected, atol=1e-12)
    assert (np.diag(loss_of(fitted)) == 0).all()


def test_several_columns_and_pools(rows):
    columns, weights = ["town", "count"], {"count": 3.0}
    closeness = Distortion("auto", column_weights=weights)
    fitted = funnel(columns=columns, utility=closeness, n_bins=None, max_categories=5).fit(rows)
    distances = (naive(rows["town"], False) + 3 * naive(rows["count"], True)) / 4
    expected = by_symbol(fitted, rows, columns, distances)
    assert (np.diag(expected) > 0).any()  # of pools, which are read as themselves
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(loss_of(fitted), expected, atol=1e-12)


def test_bins_are_as_far_as_the_rows_between_them(rows):
    fitted = quiet_fit(funnel(columns=["noise"], utility="distortion", n_bins=4), rows)
    steps = np.abs(np.subtract.outer(range(4), range(4))) / 4
    np.testing.assert_allclose(loss_of(fitted), steps, atol=2e-3)


def test_released_values_are_close_to_the_true_ones(rows):
    options = {"columns": ["noise"], "n_bins": 12, "epsilon": 0.002}
    table = rows.assign(noise=rows["noise"] + 0.7 * (rows["sex"] == "f"))
    shifts = {}
    for utility in ("mutual_information", "distortion"):
        fitted = funnel(utility=utility, **options).fit(table)
        mechanism, names = fitted.mechanism_, fitted_of(fitted).symbol_of_output
        p_xy = mechanism.p_x[:, None] * mechanism.channel
        shifts[utility] = (p_xy * np.abs(np.arange(12)[:, None] - names)).sum()
        assert mechanism.max_leakage <= 0.002 * (1 + 1e-9)
    assert shifts["distortion"] < shifts["mutual_information"]
    # What is released is the label that the mechanism was designed for.
    assert (p_xy.T @ loss_of(fitted)).argmin(axis=1).tolist() == names.tolist()


def test_on_other_rows_saved_and_in_batches(rows):
    settings = funnel(columns=["band", "grade"], utility="distortion")
    fitted = settings.fit(rows)
    assert fitted.evaluate(rows).utility == pytest.approx(fitted.mechanism_.utility)
    unseen = rows.assign(band="z")
    assert fitted.evaluate(unseen).utility < fitted.mechanism_.utility
    shipped = PrivacyFunnelTransformer.from_json(fitted.to_json())
    assert shipped.mechanism_.utility == fitted.mechanism_.utility
    batches = funnel(columns=["band", "grade"], utility="distortion")
    for start in range(0, ROWS, 500):
        batches.partial_fit(rows.iloc[start : start + 500])
    assert batches.mechanism_.channel.tobytes() == fitted.mechanism_.channel.tobytes()


def test_weights_that_make_no_sense(rows):
    def fit(**weights):
        return funnel(utility=Distortion("auto", column_weights=weights)).fit(rows)

    with pytest.raises(ValueError, match="'column_weights' .* names 'age'"):  # fmt: skip
        fit(age=2.0)
    with pytest.raises(ValueError, match="'column_weights' .* must not be zero for all columns"):
        fit(band=0.0)
    with pytest.raises(ValueError, match="'column_weights' parameter of Distortion"):
        fit(band=-1.0)
    with pytest.raises(TypeError, match="'column_weights' parameter of Distortion .* a dict"):
        Distortion("auto", column_weights=[1])
    with pytest.raises(ValueError, match="column_weights with loss='auto' only"):
        Distortion([[0, 1], [1, 0]], column_weights={"band": 1})
    assert repr(Distortion("auto", column_weights={"a": 2})) == (
        "Distortion('auto', column_weights={'a': 2.0})"
    )
