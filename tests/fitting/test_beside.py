"""Columns that are published beside a release: the budget holds for both together."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from example_tables import people, quick_scores
from scipy.special import rel_entr
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skprivacy import PrivacyFunnelTransformer, PrivacyLeakWarning, PrivacyReport, TreeCells, audit
from skprivacy.fitting.fitted_estimator import fitted_of
from skprivacy.metrics import estimate_distribution
from skprivacy.releasing.output_names import outputs_of

KEY = bytes(range(32))

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def rows():
    table, rng = people(4000), np.random.default_rng(1)
    table["paid"] = np.where(rng.random(4000) < 0.4 + 0.1 * (table["sex"] == "m"), "high", "low")
    table["size"] = rng.integers(3, size=4000)
    return table


def funnel(epsilon=0.05, **options):
    options = {"sensitive": "sex", "columns": ["band"], "random_state": 0} | options
    return PrivacyFunnelTransformer(epsilon, **{"beside": "paid"} | options)


def leakage_of_pairs(released, sensitive):
    """What each distinct released row says about S, by kl, in these rows."""
    keys = released.groupby(list(released), observed=True, dropna=False).ngroup()
    counts = pd.crosstab(sensitive.to_numpy(), keys.to_numpy()).to_numpy()
    prior = counts.sum(axis=1) / counts.sum()
    return rel_entr(counts / counts.sum(axis=0), prior[:, None]).sum(axis=0), counts.sum(axis=0)


class TestGuarantee:
    @pytest.mark.parametrize("output", ["label", "symbol", "posterior"])
    def test_every_pair_keeps_the_budget_in_many_draws_of_the_rows(self, rows, output):
        fitted = funnel(output=output).fit(rows)
        many = pd.concat([rows] * 50, ignore_index=True)
        leakage, sizes = leakage_of_pairs(fitted.transform(many), many["sex"])
        assert (leakage < 0.05 + 1.5 / np.sqrt(sizes)).all()  # four standard errors
        assert leakage.max() > 0.04  # the budget is used

    def test_without_it_pairs_exceed_the_budget(self, rows):
        fitted = funnel(0.01, beside=None, remainder=["paid"]).fit(rows)
        many = pd.concat([rows] * 50, ignore_index=True)
        leakage, sizes = leakage_of_pairs(fitted.transform(many), many["sex"])
        assert leakage[sizes > 2000].max() > 0.02

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"scope": "average"},
            {"measure": "max_lift", "epsilon": 0.3},
            {"utility": "distortion"},
            {"columns": ["band", "noise"], "alphabet": "values", "utility": "guess"},
            {"columns": ["band", "zip"], "utility": "target"},
            {"columns": ["band", "noise"], "alphabet": TreeCells(max_cells=8)},
            {"columns": ["band", "noise"], "alphabet": quick_scores(), "utility": "target"},
            {"beside": ["paid", "size"], "epsilon": 0.1},
            {"confidence": 0.95, "epsilon": 0.1},
        ],
    )
    def test_the_channel_keeps_it_on_the_counts(self, rows, options):
        asked = {"measure": "kl", "scope": "per_output"} | options
        fitted = funnel(**options).fit(rows, rows["label"])
        mechanism = fitted.mechanism_
        assert mechanism.leakage_in(asked["scope"]) <= options.get("epsilon", 0.05) * (1 + 1e-9)
        # No output occurs with two values of what is published.
        groups = mechanism.strata[mechanism.channel.argmax(axis=0)]
        assert (mechanism.strata[:, None] == groups)[mechanism.channel > 0].all()
        assert (mechanism.strata[mechanism.symbol_of_output] == groups).all()
        evaluated = fitted.evaluate(rows, rows["label"])
        assert evaluated.max_leakage == pytest.approx(mechanism.max_leakage)
        assert evaluated.normalized_utility <= 1 + 1e-9
        named = [c for c in ("paid", "size") if c in np.atleast_1d(asked.get("beside", "paid"))]
        released = fitted.transform(rows)
        pd.testing.assert_frame_equal(released[named], rows[named])

    def test_weights(self, rows):
        weights = np.random.default_rng(0).integers(1, 4, size=len(rows))
        repeated = rows.loc[rows.index.repeat(weights)]
        by_weight = funnel().fit(rows, sample_weight=weights)
        assert (by_weight.mechanism_.channel == funnel().fit(repeated).mechanism_.channel).all()

    def test_it_is_that_of_the_columns_released_jointly_and_unchanged(self, rows):
        beside, pair = funnel(), funnel(columns=["band", "paid"], beside=None, epsilon=0.05)
        kept = [f.fit(rows).mechanism_.mutual_information for f in (beside, pair)]
        assert kept[0] <= kept[1] + 1e-9  # z may change in the latter


class TestColumns:
    def test_where_and_as_what_they_come_out(self, rows):
        table = rows[["size", "sex", "band", "noise", "paid"]].astype({"size": "int8"})
        table["paid"] = table["paid"].astype("category")
        fitted = funnel(columns=None, beside=["paid", "size"], epsilon=0.2, n_bins=3).fit(table)
        released = fitted.transform(table)
        assert released.columns.tolist() == ["size", "band", "noise", "paid"]
        pd.testing.assert_frame_equal(released[["size", "paid"]], table[["size", "paid"]])
        assert fitted.get_feature_names_out().tolist() == released.columns.tolist()

    @pytest.mark.parametrize("remainder", ["drop", "passthrough", ["paid"], ["noise"]])
    def test_whatever_becomes_of_others(self, rows, remainder):
        fitted = funnel(remainder=remainder).fit(rows)
        released = fitted.transform(rows)
        assert "paid" in released
        assert fitted_of(fitted).roles.beside_positions == (rows.columns.get_loc("paid"),)
        assert fitted_of(fitted).leaking.keys() <= {"zip", "label"}

    def test_arrays_and_other_frames(self, rows):
        array = rows[["sex", "band", "paid"]].to_numpy()
        fitted = PrivacyFunnelTransformer(0.05, sensitive=0, beside=2, random_state=0).fit(array)
        released = fitted.transform(array)
        assert (released[:, 1] == array[:, 2]).all()
        assert fitted.get_feature_names_out().tolist() == ["x1", "x2"]
        frame = pl.from_pandas(rows)
        here, there = funnel().fit(rows).transform(rows), funnel().fit(frame).transform(frame)
        assert there["paid"].equals(frame["paid"])
        assert there["band"].to_list() == here["band"].tolist()

    def test_pipelines(self, rows):
        column_transformer = ColumnTransformer([("out", funnel(), ["sex", "band", "paid"])])
        pipeline = make_pipeline(column_transformer.set_output(transform="pandas"))
        released = pipeline.fit_transform(rows)
        assert released.columns.tolist() == ["out__band", "out__paid"]
        assert make_pipeline(funnel(), OneHotEncoder()).fit_transform(rows).shape[1] == 7

    def test_transform_needs_them(self, rows):
        with pytest.raises(ValueError, match=r"X lacks the columns \['paid'\]"):
            funnel().fit(rows).transform(rows[["band"]])

    def test_partial_fit(self, rows):
        batches = funnel()
        for start in range(0, len(rows), 1000):
            batches.partial_fit(rows[start : start + 1000])
        at_once = funnel().fit(rows)
        assert (batches.mechanism_.channel == at_once.mechanism_.channel).all()
        with pytest.raises(ValueError, match="differ from those of the first batch"):
            batches.set_params(beside="size").partial_fit(rows)


class TestUnseen:
    def test_values_of_x_are_drawn_from_what_is_released_with_their_z(self, rows):
        fitted = funnel().fit(rows)
        many = pd.concat([rows] * 20, ignore_index=True).assign(band="new")
        with pytest.warns(UserWarning, match="did not see.*: 'band'"):
            released = fitted.transform(many)
        expected = fitted.mechanism_.unseen
        outputs = outputs_of(fitted_of(fitted), released, "label")
        for z, value in enumerate(["high", "low"]):
            shares = np.bincount(outputs[many["paid"] == value], minlength=expected.shape[1])
            assert np.abs(shares / shares.sum() - expected[z]).max() < 0.01
        with pytest.raises(ValueError, match="Found unknown values in column 'band'"):
            fitted.set_params(handle_unknown="error").transform(many)

    def test_pairs(self, rows):
        some = rows[(rows["band"] != "a") | (rows["paid"] == "low")]
        fitted = funnel().fit(some)
        with pytest.warns(UserWarning, match="the combination of 'band', 'paid'"):
            released = fitted.transform(rows)
        assert (released["paid"] == rows["paid"]).all()
        assert not ((released["band"] == "a") & (released["paid"] == "high")).any()
        evaluated = fitted.evaluate(rows)
        assert evaluated.x_labels[-2:] == (("unseen", "high"), ("unseen", "low"))

    def test_a_value_of_z_is_an_error(self, rows):
        fitted = funnel().fit(rows)
        strange = rows.assign(paid="unknown")
        for use in (fitted.transform, fitted.evaluate, fitted.certify):
            with pytest.raises(ValueError, match=r"The column 'paid', in beside, .*'unknown'"):
                use(strange)


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"columns": ["band", "paid"]}, "'paid' is both in beside and in columns.*Leave it"),
            ({"beside": ["paid", "sex"]}, "'sex' is both sensitive and in beside"),
            (
                {"beside": "noise"},
                "'noise', in beside: 4,000 values in 4,000 rows.* coarser",
            ),
            (
                {"beside": ["zip", "size", "label", "count"]},
                "in beside: 1,?[0-9]* values in 4,000 rows",
            ),
            ({"beside": "pay"}, "'beside' parameter .* names the column 'pay', which X does not"),
            ({"beside": "id"}, "names 'id', which is the index of X: .*reset_index"),
            ({"max_outputs": 1}, "'max_outputs' .* must be at least 2: no output is shared"),
            ({"n_bins": {"size": 2}, "beside": "size"}, "'n_bins' .* names the column 'size'"),
            (
                {"epsilon": 0.001},
                r"epsilon=0.001 beside these columns: the value 'paid = high' says",
            ),
            ({"epsilon": 0.0001, "scope": "average"}, "their values say .* on average"),
        ],
    )
    def test_with_the_way_out(self, rows, options, sentence):
        ids = pd.Index([f"p{i}" for i in range(4000)], name="id")
        table = rows.assign(count=np.arange(4000) % 50).set_index(ids)
        with pytest.raises(ValueError, match=sentence) as caught:
            funnel(**options).fit(table)
        assert "'f'" not in str(caught.value)  # no value of S is named

    def test_s_that_is_passed_separately(self, rows):
        with pytest.raises(ValueError, match="'sex' is both sensitive and in beside"):
            funnel(sensitive=None, beside="sex").fit(rows, sensitive_features=rows["sex"])
        with pytest.raises(ValueError, match="No mechanism keeps epsilon=0.05"):
            funnel(sensitive=None, beside="sex").fit(
                rows, sensitive_features=rows["sex"].to_numpy()
            )

    def test_columns_that_leak_are_suggested(self, rows):
        sentence = r"With few values \(label, paid\), columns can also be named in beside"
        with pytest.warns(PrivacyLeakWarning, match=sentence):
            funnel(0.002, beside=None, remainder=["paid", "label", "noise"]).fit(rows)
        with warnings.catch_warnings():
            warnings.simplefilter("error", PrivacyLeakWarning)
            funnel(remainder=["size"]).fit(rows)


class TestAfterwards:
    @pytest.mark.parametrize("output", ["label", "symbol", "posterior"])
    def test_released_rows_are_read_back(self, rows, output):
        fitted = funnel(output=output).fit(rows)
        outputs = outputs_of(fitted_of(fitted), fitted.transform(rows), output)
        groups = fitted.mechanism_.strata[fitted.mechanism_.symbol_of_output][outputs]
        assert (np.array(["high", "low"])[groups] == rows["paid"]).all()

    def test_two_loads_are_one_transformer(self, rows):
        fitted = funnel(columns=["band", "zip"], beside=["paid", "size"], epsilon=0.2).fit(rows)
        loaded = PrivacyFunnelTransformer.from_json(fitted.to_json())
        assert loaded.beside == ["paid", "size"]
        keyed = {"record_ids": np.arange(len(rows)), "secret_key": KEY}
        here, there = fitted.transform(rows, **keyed), loaded.transform(rows, **keyed)
        pd.testing.assert_frame_equal(here, there)
        assert loaded.mechanism_.normalized_utility == fitted.mechanism_.normalized_utility
        other = clone(fitted).set_params(beside=["size", "paid"]).fit(rows)
        assert other.transform(rows, **keyed).equals(here)  # by their order in the table
        assert loaded.certify(rows).max_leakage == pytest.approx(fitted.mechanism_.max_leakage)

    def test_the_posterior_is_that_of_x(self, rows):
        fitted = funnel(output="posterior").fit(rows)
        released = fitted.transform(rows)
        assert released.columns.tolist() == [*(f"band_{x}" for x in "abcde"), "paid"]
        assert np.allclose(released.drop(columns="paid").sum(axis=1), 1)

    def test_report_and_audit(self, rows):
        fitted = funnel(remainder=["size"]).fit(rows)
        text = str(PrivacyReport.from_estimator(fitted, rows))
        assert "paid, as published, under the same budget" in text
        assert "size, not covered by the guarantee" in text
        released = fitted.transform(rows)[["band", "paid"]]
        figures = audit(released, rows["sex"], mechanism=fitted, cv=2)
        assert figures["bayes_accuracy"].notna().all()
        assert (
            audit(released[["band"]], rows["sex"], mechanism=fitted, cv=2)["bayes_accuracy"]
            .isna()
            .all()
        )

    def test_frequencies_are_those_of_pairs(self, rows):
        fitted = funnel(0.2).fit(rows)
        found = estimate_distribution(fitted.transform(rows), fitted)["estimate"]
        true = rows.groupby(["band", "paid"]).size() / len(rows)
        assert all(abs(found[x] - share) < 0.05 for x, share in true.items() if x in found)


def test_several_secrets(rows):
    table, rng = rows.copy(), np.random.default_rng(4)
    table["race"] = rng.integers(3, size=len(rows))
    budgets = {"sex": 0.05, "race": 0.02}
    fitted = funnel(budgets, sensitive=["sex", "race"]).fit(table)
    evaluated = fitted.evaluate(table)
    for name, budget in budgets.items():
        assert evaluated.secrets[name].max_leakage <= budget * (1 + 1e-6)
    loaded = PrivacyFunnelTransformer.from_json(fitted.to_json())
    keyed = {"record_ids": np.arange(len(rows)), "secret_key": KEY}
    assert loaded.transform(table, **keyed).equals(fitted.transform(table, **keyed))
    with pytest.raises(ValueError, match=r"'paid = \w+' says .* about 'sex' by itself"):
        funnel({"sex": 0.001, "race": 0.02}, sensitive=["sex", "race"]).fit(table)
