"""Where S, X and the target come from, and what is refused."""

import uuid

import numpy as np
import pandas as pd
import polars as pl
import pytest
from example_tables import N, make, quiet_fit
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_selector

from skprivacy import (
    PrivacyFunnelTransformer,
    PrivacyLeakWarning,
    PrivacyReport,
    TreeCells,
    audit,
)
from skprivacy.progress import watched
from skprivacy.utilities import Target, mutual_information


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

    @pytest.mark.parametrize("name", ["sex", None])
    def test_s_that_was_passed_is_passed_again(self, frame, name):
        """y has other values than S, which would be one unknown group without any leakage."""
        rest, other = frame.drop(columns="sex"), frame["children"]
        fitted = make(sensitive=None).fit(rest, sensitive_features=frame["sex"].rename(name))
        expected = fitted.evaluate(rest, sensitive_features=frame["sex"]).max_leakage
        for call in (fitted.evaluate, fitted.certify):
            with pytest.raises(ValueError, match="got S apart from X"):
                call(rest, other)
        with pytest.raises(ValueError, match="got S apart from X"):
            PrivacyReport.from_estimator(fitted, rest)
        if name is None:
            with pytest.raises(ValueError, match="got S apart from X"):
                fitted.evaluate(frame, other)
        else:
            assert fitted.evaluate(frame, other).max_leakage == expected > 0

    def test_s_goes_first_again_where_it_was_passed(self, frame):
        fitted = quiet_fit(make(sensitive="sex"), frame, sensitive_features=frame["city"])
        by_city = fitted.evaluate(frame, sensitive_features=frame["city"]).max_leakage
        assert fitted.evaluate(frame).max_leakage == by_city
        lazy = pl.from_pandas(frame.astype({"city": str})).lazy()
        assert fitted.evaluate(lazy).max_leakage == pytest.approx(by_city)

    def test_y_is_s_again_if_it_was(self, frame):
        rest = frame.drop(columns="sex")
        fitted = quiet_fit(make(sensitive=None), rest, frame["sex"].to_numpy())
        assert fitted.evaluate(rest, frame["sex"]).max_leakage > 0  # without a warning

    def test_columns_of_s_are_found_by_name(self, frame):
        s = frame[["sex", "city"]]
        fitted = quiet_fit(make(sensitive=None), frame, sensitive_features=s)
        one, two = (
            fitted.evaluate(frame, sensitive_features=each).max_leakage
            for each in (s, s[["city", "sex"]])
        )
        assert one == two > 0
        with pytest.raises(ValueError, match="must be 2 columns, as in fit"):
            fitted.evaluate(frame, sensitive_features=frame["sex"])

    def test_s_in_another_code(self, frame):
        """Unknown values hide nothing: all are an error, and some are left out."""
        fitted = make().fit(frame)
        for call in (fitted.evaluate, fitted.certify):
            with pytest.raises(ValueError, match="100% of these rows have values of S") as caught:
                call(frame.assign(sex=frame["sex"].str.upper()))
            assert "F" not in str(caught.value).split()
        half = np.arange(len(frame)) % 4 == 0
        some = frame.assign(sex=frame["sex"].where(~half, "x"))
        with pytest.warns(PrivacyLeakWarning, match="Some of these rows have values of S"):
            found = fitted.evaluate(some)
        assert_array_equal(found.p_sx, fitted.evaluate(frame[~half]).p_sx)
        with pytest.raises(ValueError, match="25% of these rows"):
            PrivacyReport.from_estimator(fitted, some)

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


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"sensitive": "gender"}, "'sensitive' parameter .* 'gender', which X does not have"),
            ({"columns": ["degree"]}, "'columns' parameter .* 'degree', which X does not have"),
            ({"columns": [17]}, "17, which X does not have"),
            ({"columns": ["education", "education"]}, "'education' more than once"),
            ({"sensitive": ["sex", "sex"]}, "'sex' more than once"),
            ({"columns": ["education", "sex"]}, "'sex' is both sensitive and in columns"),
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
            ([1.0, np.inf], ValueError, "'x' contains infinity"),
            ([1, "a"], TypeError, "'x' mixes numbers and str values: convert"),
            ([[1], [2]], TypeError, "'x' has cells that cannot be compared"),
            ([1j, 2j], TypeError, "'x' has values that cannot be sorted"),
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


class TestYAmongTheColumns:
    """A target that is released as a column of X makes scores for it trivially good."""

    @pytest.mark.parametrize("options", [{"columns": None}, {"remainder": ["children"]}])
    @pytest.mark.parametrize("named", [True, False])
    def test_a_warning(self, frame, options, named):
        y = frame["children"] if named else frame["children"].to_numpy()
        with pytest.warns(UserWarning, match="'children' is y, and is released"):
            make(alphabet="values", **options).fit(frame[["sex", "education", "children"]], y)
        make().fit(frame, y)  # which leaves it out, without a warning

    def test_a_summary_does_not_say_that_it_is_left_out(self, frame):
        both = make(columns=["education", "children"], utility="target", alphabet="values")
        with pytest.warns(UserWarning, match="is y, and is released"):
            assert both.fit(frame, frame["children"]).summary_.left_out == ()
        many = frame["children"] > 1  # which keeps the name, but is another column
        for columns, y in ((["education"], frame["children"]), (["children"], many)):
            alone = make(columns=columns, utility="target").fit(frame, y)
            assert alone.summary_.left_out == ("children",)

    def test_it_is_not_released_twice(self, frame):
        """And nobody waits for a design to hear that."""
        both = make(columns=["education", "children"], utility="target", release_target=True)
        said = []
        with (
            watched(said.append),
            pytest.raises(ValueError, match="'children' is one of them: leave it out of columns"),
        ):
            both.fit(frame, frame["children"])
        assert "designing a mechanism" not in said
        with pytest.raises(ValueError, match="'children' is one of them"):
            both.fit(pl.from_pandas(frame).lazy(), "children")


class TestIdentifiers:
    @pytest.mark.parametrize(
        ("ids", "options"),
        [
            ([f"u{i}" for i in range(N)], {}),
            (pd.Categorical([f"u{i}" for i in range(N)]), {}),
            ([uuid.UUID(int=i) for i in range(N)], {}),
            (np.arange(N), {"n_bins": None}),
            (pd.date_range("2020-01-01", periods=N), {"n_bins": None}),
        ],
        ids=["text", "category", "uuid", "integers", "dates"],
    )
    @pytest.mark.parametrize("columns", [["id"], ["id", "education"]])
    def test_they_are_refused_alone_and_beside_others(self, frame, ids, options, columns):
        funnel = make(columns=columns, alphabet="values", **options)
        with pytest.raises(ValueError, match="'id' has a different value in nearly every row"):
            funnel.fit(frame.assign(id=ids))

    def test_pools(self, frame):
        """What is pooled is not shown: a pool for all values allows them."""
        rows = frame.assign(id=[f"u{i}" for i in range(N)])
        assert make(columns=["id"], min_frequency=5).fit_transform(rows)["id"].isna().all()
        with pytest.raises(ValueError, match="'id' has a different value"):
            make(columns=["id"], max_categories=50).fit(rows)

    def test_numbers_in_bins_and_batches(self, frame):
        """A bin shows one value for many rows; batches are judged by all rows."""
        rows = frame.assign(id=np.arange(N), key=[f"u{i}" for i in range(N)])
        make(columns=["id"]).fit(rows)
        batches = make(columns=["key"]).partial_fit(rows[: N // 2]).partial_fit(rows[N // 2 :])
        with pytest.raises(ValueError, match="'key' has a different value"):
            batches.transform(rows)


def test_rows_sorted_by_s(frame):
    """Their order is released, with any index."""
    plain = frame.reset_index(drop=True)
    for key in (plain["sex"], plain["sex"].where(plain.index % 20 > 0)):
        rows = plain.loc[key.sort_values(kind="stable").index].reset_index(drop=True)
        for table in (rows, pl.from_pandas(rows)):
            with pytest.warns(PrivacyLeakWarning, match="sorted by S, or nearly"):
                make().fit(table)
    quiet = make(np.inf)
    quiet.fit(rows)


@pytest.mark.parametrize("call", [
    lambda f: make(sensitive=None).fit(f, sensitive_features="sex"),
    lambda f: make().fit(f, sample_weight="children"),
    lambda f: audit(f["education"], "sex"),
])  # fmt: skip
def test_a_name_is_no_column(frame, call):
    with pytest.raises(TypeError, match="must be the column itself, not its name"):
        call(frame)


def test_parameters_that_need_another(frame):
    with pytest.raises(ValueError, match="keys of epsilon are budgets"):
        make({"sex": 0.1}, sensitive=None).fit(frame)
    with pytest.raises(ValueError, match="'alphabet' parameter.*an instance"):
        make().set_params(alphabet__max_cells=8)
    assert make(alphabet=TreeCells()).set_params(alphabet__max_cells=8).alphabet.max_cells == 8
    with pytest.raises(TypeError, match="fit_transform takes no record_ids"):
        make().fit_transform(frame, record_ids=range(N), secret_key=b"k" * 16)


def test_a_summary_of_symbols_speaks_of_no_values(frame):
    fitted = make(columns=["education", "city", "children"], alphabet="cells").fit(frame)
    assert fitted.summary_.n_samples == N
    for output in ("symbol", "posterior"):
        said = str(fitted.set_params(output=output).summary_)
        assert "made up" not in said
        assert "face value" not in said
    assert "made up" in str(fitted.set_params(output="label").summary_)
