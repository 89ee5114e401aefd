"""What a reader of released values sees: closed forms, and against releases."""

import numpy as np
import pandas as pd
import pytest
from example_tables import funnel, graduates, people, quiet_fit

from skprivacy import Mechanism, PrivacyFunnelTransformer, design_mechanism
from skprivacy.fitting import tally
from skprivacy.measures import KL
from skprivacy.mechanism import Channel, Guarantee
from skprivacy.utilities import Distortion, Guess, MutualInformation

COPIES = 100


@pytest.fixture(scope="module")
def rows():
    table = graduates().iloc[:600].reset_index(drop=True)
    rng = np.random.default_rng(1)
    table["town"] = rng.choice([f"t{i}" for i in range(9)], 600, p=np.arange(9, 0, -1) / 45)
    table.loc[rng.random(600) < 0.1, "children"] = np.nan
    return table


def released(rows, **options):
    """A transformer, many copies of its rows, and their release."""
    transformer = PrivacyFunnelTransformer(
        sensitive="sex", random_state=0, **{"epsilon": 0.005} | options
    )
    quiet_fit(transformer, rows)
    many = pd.concat([rows] * COPIES, ignore_index=True)
    return transformer, many, transformer.transform(many)


def numbers(column):
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.where(column.notna()).astype(float)
    if column.dtype.kind == "M":
        return (column - pd.Timestamp("2020-01-01")) / pd.Timedelta(days=1)
    return column.astype(float)


def observed(before, after):
    same = (before == after) | (before.isna() & after.isna())
    figures = {"unchanged": same.mean()}
    shares = [
        c.astype(object).where(c.notna(), "missing").map(str).value_counts(normalize=True)
        for c in (before, after)
    ]
    figures["total_variation"] = shares[0].sub(shares[1], fill_value=0).abs().sum() / 2
    if before.dtype != object and before.dtype != "str":
        a, b = numbers(before), numbers(after)
        figures["mean_shift"] = (a - b).abs().mean()
        figures["correlation"] = a.corr(b)
    return figures


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        (["income"], {"n_bins": 5}),
        (["since", "education"], {"n_bins": 3}),
        (["city", "children"], {"n_bins": None}),
        (["town"], {"max_categories": 5}),
        (["town", "children"], {"min_frequency": 70, "utility": "distortion"}),
    ],
)
def test_figures_are_those_of_a_release(rows, columns, options):
    transformer, many, out = released(rows, columns=columns, **options)
    fidelity = transformer.fidelity_
    exact = fidelity.columns if fidelity.raw_columns is None else fidelity.raw_columns
    for name in columns:
        for figure, value in observed(many[name], out[name]).items():
            scale = many[name].pipe(numbers).std() if figure == "mean_shift" else 1.0
            assert exact.loc[name, figure] == pytest.approx(value, abs=0.02 * scale), figure
    unit = exact["unit"].to_dict()
    expected = {"city": "steps", "since": "days"}
    assert unit == {name: expected.get(name, "") for name in columns}


def test_rows_that_keep_all_values(rows):
    transformer, many, out = released(rows, columns=["town", "education"], max_categories=4)
    same = (many[out.columns] == out).all(axis=1).mean()
    assert transformer.fidelity_.unchanged == pytest.approx(same, abs=0.01)
    pooled = ~many["town"].isin(["t0", "t1", "t2"])
    assert transformer.fidelity_.pooled == pytest.approx(pooled.mean(), abs=1e-9)


def test_bins_count_as_values_where_they_were_cut(rows):
    transformer, many, out = released(rows, columns=["income"], n_bins=4)
    edges = np.append(-np.inf, np.append(fitted_edges(transformer), np.inf))
    bins = [pd.cut(column, edges).cat.codes for column in (many["income"], out["income"])]
    same = (bins[0] == bins[1]).mean()
    assert transformer.fidelity_.columns.loc["income", "unchanged"] == pytest.approx(
        same, abs=0.01
    )
    assert transformer.fidelity_.unchanged == pytest.approx(same, abs=0.01)


def fitted_edges(transformer):
    labels = [str(label) for label in transformer.categories_[0]]
    return [float(label.split()[-1]) for label in labels[:-1]]


class TestTwoSymbols:
    """Closed forms for a channel that swaps u and v with probabilities a and b."""

    a, b, p = 0.3, 0.1, 0.6

    @pytest.fixture
    def mechanism(self):
        p_sx = np.array([[self.p, 1 - self.p]]) / 2
        channel = np.array([[1 - self.a, self.a], [self.b, 1 - self.b]])
        labels = (10, 12), ("first", "second")
        y_given_x = Channel(channel, 2 * p_sx[0], *labels, MutualInformation())
        about = np.vstack([p_sx, p_sx]), ("s", "t"), KL()
        guarantee = Guarantee(y_given_x, *about, epsilon=0.1, scope="per_output")
        return Mechanism(y_given_x, {None: guarantee}, solver="by hand")

    def test_figures(self, mechanism):
        a, b, p = self.a, self.b, self.p
        fidelity = mechanism.fidelity()
        assert fidelity.unchanged == pytest.approx(1 - p * a - (1 - p) * b)
        row = fidelity.columns.loc["X"]
        moved = p * a + (1 - p) * b
        assert row["mean_shift"] == pytest.approx(2 * moved)
        assert row["total_variation"] == pytest.approx(abs(p * a - (1 - p) * b))
        q = p * (1 - a) + (1 - p) * b
        correlation = (p * (1 - a) - p * q) / np.sqrt(p * (1 - p) * q * (1 - q))
        assert row["correlation"] == pytest.approx(correlation)

    def test_swaps(self, mechanism):
        swaps = mechanism.fidelity().swaps
        assert swaps["value"].tolist() == [10, 12]
        assert swaps["released_as"].tolist() == [12, 10]
        np.testing.assert_allclose(swaps["share"], [self.a, self.b])
        np.testing.assert_allclose(swaps["rows"], [self.p * self.a, (1 - self.p) * self.b])

    def test_names_that_are_given_are_kept(self, mechanism):
        crossed = mechanism.renamed(symbol_of_output=np.array([1, 0]))
        expected = self.p * self.a + (1 - self.p) * self.b
        assert crossed.fidelity().unchanged == pytest.approx(expected)
        again = Mechanism.from_json(crossed.to_json())
        assert again.fidelity().unchanged == pytest.approx(expected)

    @pytest.mark.parametrize("names", [[0], [0, 2], [-1, 0], [0.0, 1.0], [[0, 1]]])
    def test_names_that_are_none(self, mechanism, names):
        with pytest.raises(ValueError, match="'symbol_of_output' parameter of Mechanism must be"):
            mechanism.renamed(symbol_of_output=np.array(names))


def test_outputs_without_names_are_read_as_the_objective_asks():
    joint = np.random.default_rng(0).random((2, 5))
    loss = np.abs(np.subtract.outer(range(5), range(5)))
    mechanism = design_mechanism(joint, 0.005, utility=Distortion(loss))
    assert mechanism.fidelity().columns.loc["X", "mean_shift"] == pytest.approx(-mechanism.utility)
    guessed = design_mechanism(joint, 0.005, utility=Guess())
    assert guessed.fidelity().unchanged == pytest.approx(guessed.utility)


class TestRawX:
    def test_information_is_compared_with_that_of_the_raw_rows(self, rows):
        fitted = quiet_fit(funnel(0.005, columns=["income", "city"], n_bins=3), rows)
        counts = rows.groupby(["income", "city"], observed=True).size() / len(rows)
        entropy = -(counts * np.log(counts)).sum()
        expected = fitted.mechanism_.mutual_information / entropy
        assert fitted.fidelity_.raw_utility == pytest.approx(expected)

    def test_the_chance_of_guessing_is_that_of_raw_values(self, rows):
        fitted = quiet_fit(
            funnel(0.005, columns=["town"], max_categories=4, utility="guess"), rows
        )
        shares = rows["town"].value_counts(normalize=True)
        mechanism, best = fitted.mechanism_, shares.max()
        symbols = np.minimum([int(town[1:]) for town in shares.index], 3)
        joint = shares.to_numpy()[:, None] * mechanism.channel[symbols]
        expected = (joint.max(axis=0).sum() - best) / (1 - best)
        assert fitted.fidelity_.raw_utility == pytest.approx(expected)

    def test_a_target_is_told_by_raw_values(self, rows):
        options = {"columns": ["children"], "n_bins": 2, "utility": "target"}
        fitted = quiet_fit(funnel(0.005, **options), rows, rows["city"])
        shares = pd.crosstab(rows["children"].fillna(-1), rows["city"], normalize=True).to_numpy()
        product = shares.sum(axis=1, keepdims=True) * shares.sum(axis=0)
        information = (shares[shares > 0] * np.log(shares[shares > 0] / product[shares > 0])).sum()
        expected = fitted.mechanism_.utility / information
        assert fitted.fidelity_.raw_utility == pytest.approx(expected)

    def test_distances_are_those_from_raw_values(self, rows):
        columns = ["income", "education"]
        fitted, many, out = released(rows, columns=columns, n_bins=3, utility="distortion")
        ranks = rows["income"].rank(method="average") / len(rows) - 0.5 / len(rows)
        of = dict(zip(rows["income"], ranks, strict=True))

        def distance(before, after):
            moved = (before["income"].map(of) - after["income"].map(of)).abs()
            return (moved + (before["education"] != after["education"])).mean() / 2

        shown = out.drop_duplicates()
        nothing = min(
            distance(rows, pd.DataFrame([label] * len(rows)).reset_index(drop=True))
            for label in shown.to_dict("records")
        )
        expected = 1 - distance(many, out) / nothing
        assert fitted.fidelity_.raw_utility == pytest.approx(expected, abs=0.02)

    def test_nothing_was_cut_or_pooled(self):
        fitted = quiet_fit(funnel(), people())
        assert fitted.fidelity_.raw_columns is None
        assert np.isnan(fitted.fidelity_.raw_utility)
        assert fitted.fidelity_.pooled == 0

    def test_batches_and_files_know_the_raw_values_too(self, rows):
        at_once = quiet_fit(funnel(0.005, columns=["income"], n_bins=4), rows)
        streamed = funnel(0.005, columns=["income"], n_bins=4)
        for start in range(0, 600, 200):
            streamed.partial_fit(rows.iloc[start : start + 200])
        pd.testing.assert_frame_equal(
            streamed.fidelity_.raw_columns, at_once.fidelity_.raw_columns, rtol=1e-9
        )
        assert streamed.fidelity_.raw_utility == pytest.approx(at_once.fidelity_.raw_utility)

    def test_values_that_stand_for_bins_are_not_called_raw(self, rows, monkeypatch):
        monkeypatch.setattr(tally, "MOST_DISTINCT", 50)
        edges = {"income": [-np.inf, 20000, 25000, np.inf]}
        streamed = funnel(0.005, columns=["income"], n_bins=edges).partial_fit(rows)
        assert streamed.fidelity_.raw_columns is None
        assert np.isnan(streamed.fidelity_.raw_utility)

    def test_one_that_was_loaded_does_not_know_them(self, rows):
        fitted = quiet_fit(funnel(0.005, columns=["income"], n_bins=4), rows)
        loaded = PrivacyFunnelTransformer.from_json(fitted.to_json())
        pd.testing.assert_frame_equal(loaded.fidelity_.columns, fitted.fidelity_.columns)
        assert loaded.fidelity_.raw_columns is None
