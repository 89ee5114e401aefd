"""All that leaves is a function of the mechanism and the noise: not of the batch that is released."""

import itertools
import pickle
import warnings
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from example_tables import funnel, people
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from skprivacy import PrivacyFunnelTransformer, PrivacyLeakWarning, audit
from skprivacy.cli import main
from skprivacy.files import fit_file, transform_file
from skprivacy.fitting.fitted_estimator import fitted_of
from skprivacy.metrics import estimate_distribution

N = 400


@pytest.fixture(scope="module")
def rows():
    return people(N)


def loaded(fitted):
    return PrivacyFunnelTransformer.from_json(fitted.to_json())


def one_by_one(frame):
    """Yield one-row frames, with the categories that are present in each."""
    for i in range(len(frame)):
        row = frame.iloc[[i]].reset_index(drop=True)
        yield row.assign(
            **{
                name: column.cat.remove_unused_categories()
                for name, column in row.items()
                if isinstance(column.dtype, pd.CategoricalDtype)
            }
        )


class TestCategories:
    """A released category column listed the values of the batch."""

    @pytest.fixture
    def frame(self, rows):
        return rows[["sex", "band"]].assign(band=rows["band"].astype("category"))

    @pytest.fixture
    def fitted(self, frame):
        return funnel(0.0).fit(frame)

    def test_they_are_those_of_the_mechanism_in_its_order(self, frame, fitted):
        expected = list(fitted.mechanism_.x_labels)
        for transformer in (fitted, loaded(fitted), pickle.loads(pickle.dumps(fitted))):
            for row in one_by_one(frame[:50]):
                assert transformer.transform(row)["band"].cat.categories.tolist() == expected

    def test_an_order_is_kept(self, rows):
        band = rows["band"].astype(pd.CategoricalDtype(list("edcba"), ordered=True))
        fitted = funnel(0.0).fit(rows[["sex"]].assign(band=band))
        reversed_ = rows[["sex"]].assign(band=band.cat.reorder_categories(list("abcde")))
        assert fitted.transform(reversed_)["band"].dtype == band.dtype

    def test_unknown_values_are_not_among_them(self, fitted):
        row = pd.DataFrame({"band": pd.Categorical(["HIV"])})
        with pytest.warns(UserWarning, match="did not see.*: 'band'"):
            released = fitted.transform(row)
        assert released["band"].cat.categories.tolist() == list("abcde")

    @pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(list("edcba"))])
    def test_of_polars(self, rows, dtype):
        frame = pl.from_pandas(rows[["sex", "band"]]).with_columns(pl.col("band").cast(dtype))
        fitted = funnel(0.0).fit(frame)
        # Codes of a Categorical would say in which order values came by, in any frame.
        expected = pl.Enum(list("abcde") if dtype == pl.Categorical else list("edcba"))
        for transformer in (fitted, loaded(fitted)):
            for i in range(20):
                assert transformer.transform(frame[i])["band"].dtype == expected

    def test_of_pyarrow(self, rows):
        column = pa.array(rows["band"]).dictionary_encode()
        frame = pa.table({"sex": rows["sex"], "band": column})
        fitted = funnel(0.0).fit(frame)
        for transformer in (fitted, loaded(fitted)):
            for i in range(20):
                one = pa.table({"band": pa.array(rows["band"][i : i + 1]).dictionary_encode()})
                (chunk,) = transformer.transform(one)["band"].chunks
                assert chunk.dictionary.to_pylist() == list("abcde")

    @pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
    def test_of_symbols(self, rows, kind):
        fitted = funnel(0.0, output="symbol").fit(rows[["sex", "band"]])
        for i in range(5):
            row = rows[["band"]][i : i + 1].reset_index(drop=True)
            if kind == "pandas":
                found = fitted.transform(row)["band"].cat.categories.tolist()
            elif kind == "polars":
                found = fitted.transform(pl.from_pandas(row))["band"].dtype.categories.to_list()
            else:
                released = fitted.transform(pa.Table.from_pandas(row))
                found = released["band"].chunk(0).dictionary.to_pylist()
            assert found == list(fitted.mechanism_.y_labels)

    def test_of_files(self, rows, tmp_path):
        column = pa.array(rows["band"]).dictionary_encode()
        pq.write_table(pa.table({"sex": rows["sex"], "band": column}), tmp_path / "in.parquet")
        fitted = fit_file(funnel(0.0), tmp_path / "in.parquet")
        one = pa.table({"band": pa.array(["c"]).dictionary_encode()})
        pq.write_table(one, tmp_path / "one.parquet")
        transform_file(fitted, tmp_path / "one.parquet", tmp_path / "out.parquet")
        (chunk,) = pq.read_table(tmp_path / "out.parquet")["band"].chunks
        assert chunk.dictionary.to_pylist() == list("abcde")


def columns():
    """Return columns of many types, with and without what is missing, by name."""
    texts = pd.Series(list("abca") * 100)
    return {
        "str": texts,
        "object": texts.astype(object),
        "with holes": texts.where(texts != "c"),
        "int64": pd.Series([1, 2, 3, 4] * 100),
        "int8": pd.Series([1, 2, 3, 4] * 100, dtype="int8"),
        "Int64": pd.Series([1, 2, None, 4] * 100, dtype="Int64"),
        "float": pd.Series([1.0, 2.0, 3.0, 2.5] * 100),
        "float32": pd.Series([1.5, np.nan, 3.0, 2.5] * 100, dtype="float32"),
        "bool": pd.Series([True, False, True, True] * 100),
        "boolean": pd.Series([True, False, None, True] * 100, dtype="boolean"),
        "times": pd.Series(pd.date_range("2020", periods=400, tz="Europe/Berlin")),
        "durations": pd.Series(pd.to_timedelta(np.arange(400), unit="h")),
        "bins": pd.Series(np.random.default_rng(0).normal(size=400)),
        "category": texts.astype("category"),
    }


def in_kind(frame, kind):
    if kind == "pandas":
        return frame
    if kind == "numpy":
        return frame.to_numpy()
    return pl.from_pandas(frame) if kind == "polars" else pa.Table.from_pandas(frame)


def type_of(released, kind):
    if kind == "numpy":
        return released.dtype
    return released["x"].type if kind == "pyarrow" else released["x"].dtype


@pytest.mark.filterwarnings("ignore::skprivacy.PrivacyLeakWarning")
class TestDtypes:
    """The output took the dtype of the batch: whether a value is missing, or not whole."""

    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            (name, kind)
            for name, column in columns().items()
            for kind in ("pandas", "polars", "pyarrow", "numpy")
            if kind != "numpy" or column.dtype.kind in "iufb"  # others are arrays of objects
        ],
    )
    def test_every_batch_gets_the_same(self, name, kind):
        column = columns()[name]
        frame = pd.DataFrame({"x": column})
        s = np.array(["f", "m"])[np.random.default_rng(1).integers(2, size=400)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = PrivacyFunnelTransformer(0.0, n_bins=4).fit(
                in_kind(frame, kind), sensitive_features=s
            )
        for transformer in (fitted, loaded(fitted)):
            whole = type_of(transformer.transform(in_kind(frame, kind)), kind)
            for i in range(5):
                row = frame.iloc[[i]].reset_index(drop=True)
                assert type_of(transformer.transform(in_kind(row, kind)), kind) == whole
                # As a frame that has nothing but this value would hold it.
                alone = pd.DataFrame({"x": pd.Series(row["x"].tolist())})
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)
                    released = transformer.transform(in_kind(alone, kind))
                assert type_of(released, kind) == whole
        if kind == "pandas":
            assert whole == (column.dtype if name != "category" else "category")

    def test_missing_and_whole_values_do_not_show(self):
        frame = pd.DataFrame({"s": list("aabb") * 25, "x": [2.0, 2.5, None, 3.0] * 25})
        fitted = PrivacyFunnelTransformer(0.0, sensitive="s").fit(frame)
        batches = [[2], [2.0], [2.5], [None], [np.nan], pd.array([2], dtype="Int64")]
        for values in batches:
            assert fitted.transform(pd.DataFrame({"x": values}))["x"].dtype == np.float64

    @pytest.mark.parametrize("name", columns())
    def test_another_kind_of_frame_gets_the_nearest(self, name):
        frame = pd.DataFrame({"x": columns()[name]})
        s = np.array(["f", "m"])[np.random.default_rng(1).integers(2, size=400)]
        options = {"n_bins": 4, "random_state": 0}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            in_pandas = PrivacyFunnelTransformer(0.0, **options).fit(frame, sensitive_features=s)
            in_polars = PrivacyFunnelTransformer(0.0, **options).fit(
                pl.from_pandas(frame), sensitive_features=s
            )
        native = pl.from_pandas(frame)
        expected = native.schema["x"]
        if name == "category":
            expected = pl.Enum(list("abc"))
        assert in_pandas.transform(native).schema["x"] == expected
        assert in_polars.transform(native).schema["x"] == expected
        back = in_polars.transform(frame)["x"]
        assert back.isna().sum() == in_pandas.transform(frame)["x"].isna().sum()
        assert back.dtype.kind == columns()[name].dtype.kind

    def test_floats_at_fit_and_integers_later(self):
        frame = pl.DataFrame({"s": list("aabb") * 25, "x": [2.0, 2.5, 1.0, 3.0] * 25})
        fitted = PrivacyFunnelTransformer(0.0, sensitive="s").fit(frame)
        whole = pl.DataFrame({"x": [1, 2, 3]})
        assert fitted.transform(whole).schema["x"] == pl.Float64

    def test_batches_are_taken_together(self):
        first = pd.DataFrame({"s": list("aabb") * 25, "x": [1, 2, 3, 4] * 25})
        second = first.assign(x=first["x"] + 0.5)
        fitted = PrivacyFunnelTransformer(0.0, sensitive="s").partial_fit(first)
        assert fitted.transform(first)["x"].dtype == np.int64
        fitted.partial_fit(second)
        for batch in (first, second, first[:1]):
            assert fitted.transform(batch)["x"].dtype == np.float64

    def test_dates(self):
        days = [date(2020, 1, day) for day in (1, 2, 3, 4)] * 25
        frame = pl.DataFrame({"s": list("aabb") * 25, "x": days})
        fitted = PrivacyFunnelTransformer(0.0, sensitive="s").fit(frame)
        for transformer in (fitted, loaded(fitted)):
            assert transformer.transform(frame[:1]).schema["x"] == pl.Date

    def test_the_schema_of_a_file_does_not_depend_on_its_first_rows(self, tmp_path):
        frame = pd.DataFrame({"s": list("aabb") * 25, "x": ["2", "2.5", "", "3"] * 25})
        frame.to_csv(tmp_path / "in.csv", index=False)
        fitted = fit_file(PrivacyFunnelTransformer(0.0, sensitive="s"), tmp_path / "in.csv")
        for value in ("2", "2.5", ""):
            (tmp_path / "one.csv").write_text(f'x\n"{value}"\n')
            transform_file(fitted, tmp_path / "one.csv", tmp_path / "out.parquet", force=True)
            assert pq.read_schema(tmp_path / "out.parquet").field("x").type == pa.float64()


class TestIndex:
    """S as the index left in clear."""

    def test_a_copy_by_name(self, rows):
        frame = rows[["sex", "band"]].set_index("sex", drop=False)
        with pytest.raises(
            ValueError, match=r"The index of X holds a sensitive column.*reset_index\(drop=True\)"
        ):
            funnel().fit(frame)
        fitted = funnel().fit(rows[["sex", "band"]])
        with pytest.raises(ValueError, match="holds a sensitive column"):
            fitted.transform(frame[["band"]])
        with pytest.raises(ValueError, match="holds a sensitive column"):
            loaded(fitted).transform(frame[["band"]])
        with pytest.raises(ValueError, match="holds a sensitive column"):
            funnel().partial_fit(frame)

    def test_a_copy_by_name_of_s_beside_the_table(self, rows):
        settings = funnel(sensitive=None, columns=["band"])
        frame = rows[["band"]].set_axis(pd.Index(rows["sex"]))
        with pytest.raises(ValueError, match="holds a sensitive column"):
            settings.fit(frame, sensitive_features=rows["sex"].set_axis(frame.index))
        fitted = settings.fit(rows[["band"]], sensitive_features=rows["sex"])
        for transformer in (fitted, loaded(fitted)):
            with pytest.raises(ValueError, match="holds a sensitive column"):
                transformer.transform(frame)

    def test_a_copy_by_values(self, rows):
        frame = rows[["sex", "band"]].set_axis(pd.Index(rows["sex"].to_numpy(), name="row"))
        with pytest.raises(ValueError, match="The index of X holds a sensitive column"):
            funnel().fit(frame)
        fitted = funnel().fit(rows[["sex", "band"]])
        with pytest.raises(ValueError, match="holds a sensitive column"):
            fitted.transform(frame)

    def test_one_level_of_several(self, rows):
        levels = pd.MultiIndex.from_arrays([range(N), rows["sex"]], names=["row", "gender"])
        frame = rows[["sex", "band"]].set_axis(levels)
        with pytest.raises(
            ValueError, match=r"The level 'gender' of the index of X holds.*level=1, drop"
        ):
            funnel().fit(frame)

    def test_a_mere_coincidence_is_none(self, rows):
        frame = rows[["sex", "band"]].assign(sex=(rows["sex"] == "m").astype(int))
        fitted = funnel().fit(frame)
        fitted.transform(frame.assign(sex=0).iloc[[0]])

    def test_other_indexes_are_judged_by_their_order(self, rows):
        frame = rows[["sex", "band"]]
        for index in (
            np.arange(N) + 1000 * (rows["sex"] == "f"),
            np.where(rows["sex"] == "f", "F-", "M-") + pd.Series(range(N)).astype(str),
            pd.Timestamp("2020") + pd.to_timedelta(np.where(rows["sex"] == "f", 1, 50), unit="D"),
        ):
            with pytest.warns(PrivacyLeakWarning, match=r"The index of X is released.*\(person\)"):
                funnel().fit(frame.set_axis(pd.Index(index, name="person")))
            with pytest.warns(PrivacyLeakWarning, match="The index of X is released"):
                funnel().partial_fit(frame.set_axis(pd.Index(index, name="person")))

    def test_a_random_index_is_warned_of_as_rarely_as_chance_has_it(self):
        n_warned = 0
        for seed in range(30):
            train, _ = train_test_split(people(500, seed)[["sex", "band"]], random_state=seed)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                funnel(0.01).fit(train)
            n_warned += any("The index of X" in str(w.message) for w in caught)
        assert n_warned <= 5  # of 30 at 5%: more by a chance of 1 in 300

    def test_a_random_column_is_warned_of_as_rarely(self, rows):
        n_warned = 0
        for seed in range(20):
            frame = rows[["sex", "band"]].assign(z=np.random.default_rng(seed).permutation(N))
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                funnel(0.01, remainder=["z"]).fit(frame)
            n_warned += any(w.category is PrivacyLeakWarning for w in caught)
        assert n_warned <= 4

    def test_many_values_that_together_tell_s_are_still_seen(self):
        # Each of 150 values occurs about five times: that one of them goes with a single S may be
        # chance, that nearly all of them do is not.
        rng = np.random.default_rng(0)
        place = rng.integers(0, 150, size=800)
        sex = np.array(["f", "m"])[(place + (rng.random(800) < 0.1)) % 2]
        frame = pd.DataFrame({"sex": sex, "band": rng.choice(list("abc"), 800), "place": place})
        with pytest.warns(PrivacyLeakWarning, match=r"allows: place\."):
            funnel(0.02, remainder=["place"]).fit(frame)


class TestMetadata:
    def test_of_pyarrow_tables(self, rows):
        frame = rows[["sex", "band", "noise"]].copy()
        frame.attrs["note"] = "rows of the Huntington ward"
        table = pa.Table.from_pandas(frame)
        field = table.schema.field("noise").with_metadata({"about": "Huntington"})
        table = table.cast(table.schema.set(2, field))
        fitted = funnel(remainder=["noise"]).fit(table)
        released = fitted.transform(table)
        assert released.schema.metadata is None
        assert all(field.metadata is None for field in released.schema)

    def test_of_pandas_frames(self, rows):
        frame = rows[["sex", "band"]].copy()
        frame.attrs["note"] = "rows of the Huntington ward"
        assert funnel().fit_transform(frame).attrs == {}


class TestShownInANotebook:
    def test_nothing_of_s(self, rows):
        ill = rows.assign(sex=rows["sex"].replace({"f": "Huntington", "m": "well"}))
        fitted = funnel().fit(ill[["sex", "band"]])
        pipeline = make_pipeline(fitted)
        for page in (fitted._repr_html_(), pipeline._repr_html_(), repr(fitted)):
            assert "Huntington" not in page
            assert "p_sx_" not in page
            assert "sensitive_categories_" not in page
        if "Fitted attributes" in fitted._repr_html_():  # from scikit-learn 1.9 on
            assert "n_samples_seen_" in fitted._repr_html_()


@pytest.mark.filterwarnings("ignore::skprivacy.PrivacyLeakWarning")
class TestMessages:
    def test_errors_show_no_value_of_s_nor_do_their_causes(self):
        rng = np.random.default_rng(0)
        numbers = pd.DataFrame({"s": [1.5, 2.5, 3.5, 4.5] * 50, "x": rng.choice(list("abc"), 200)})
        mixed = numbers.astype({"s": object}).replace({"s": {1.5: "Huntington"}})
        fitted = PrivacyFunnelTransformer(0.001, sensitive="s", n_bins={"s": 2}).fit(numbers)
        for attempt in (PrivacyFunnelTransformer(sensitive="s").fit, fitted.evaluate):
            with pytest.raises(TypeError) as caught:
                attempt(mixed)
            error = caught.value
            while error is not None:
                assert "Huntington" not in str(error)
                error = error.__cause__ or (
                    None if error.__suppress_context__ else error.__context__
                )


@pytest.mark.filterwarnings("ignore::UserWarning")
class TestPools:
    """A pooled combination was shown as one of its members: a whole row of a real person."""

    @pytest.fixture
    def unique(self):
        """Rows in which a few people have combinations of their own, of values that others have."""
        rng = np.random.default_rng(0)
        n = 12_000
        shares = 0.5 ** np.arange(8) / sum(0.5 ** np.arange(8))
        frame = pd.DataFrame(
            {f"x{i}": rng.choice(list("abcdefgh"), n, p=shares) for i in range(6)}
        )
        return frame.assign(s=rng.choice(["f", "m"], n))

    def test_columns_are_drawn_apart(self, unique):
        funnel_ = funnel(0.5, sensitive="s", columns=None, solver="auto", alphabet="values")
        released = funnel_.fit(unique).transform(unique)
        x = [f"x{i}" for i in range(6)]
        alone = unique[x].drop_duplicates(keep=False)
        assert len(alone) > 500
        # Drawn whole, 60% of them were there. Some are there by chance, as are combinations that
        # nobody has.
        there = released[x].drop_duplicates()
        every = pd.DataFrame(itertools.product("abcdefgh", repeat=6), columns=x)
        weights = np.prod([0.5 ** every[name].map(ord) for name in x], axis=0)
        some = every.sample(9000, replace=True, weights=weights, random_state=1).drop_duplicates()
        nobody = some.merge(unique[x].drop_duplicates(), how="left", indicator=True)
        nobody = nobody.loc[nobody["_merge"] == "left_only", x]
        shares = [len(each.merge(there)) / len(each) for each in (alone, nobody)]
        assert shares[0] < 0.25
        assert shares[0] < shares[1] + 0.15
        for name in x:  # and each column has the frequencies that it had
            shares = [frame[name].value_counts(normalize=True) for frame in (unique, released)]
            assert np.abs(shares[0] - shares[1]).max() < 0.05

    def test_columns_of_a_pool_are_independent(self):
        rng = np.random.default_rng(1)
        n = 20_000
        first = rng.choice(list("abcdefghijklmnopqrst"), n)
        frame = pd.DataFrame({"s": rng.choice(["f", "m"], n), "x": first, "y": first})
        fitted = funnel(1.0, sensitive="s", columns=None).fit(frame)
        pooled = fitted_of(fitted).alphabet.pooled(4)[0]
        outputs = np.full(n, 3)
        uniform = np.random.default_rng(2).random((2, n))
        (x_values, x), (y_values, y) = pooled.decode(
            np.arange(4), outputs, lambda rows, column: uniform[column][rows]
        )
        counts = pd.crosstab(np.array(x_values)[x], np.array(y_values)[y]).to_numpy()
        assert counts.shape == (17, 17)
        expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / n
        assert ((counts - expected) ** 2 / expected).sum() < 16**2 + 6 * np.sqrt(2 * 16**2)

    def test_rare_values_are_not_shown_for_others(self):
        rng = np.random.default_rng(0)
        names = np.array(
            [*["common"] * 30, *["also common"] * 20, *(f"rare {i}" for i in range(50))]
        )
        frame = pd.DataFrame({"s": rng.choice(["f", "m"], 1000), "x": np.repeat("usual", 1000)})
        frame.loc[:99, "x"] = names
        fitted = funnel(1.0, sensitive="s", columns=["x"], min_frequency=40).fit(frame)
        shown = set(fitted.transform(pd.concat([frame] * 20))["x"])
        assert shown == {"usual", "common", "also common"}

    def test_where_all_are_rare_a_commoner_one_or_nothing_is_shown(self):
        names = [*["usual"] * 60, *(f"rare {i}" for i in range(40))]
        frame = pd.DataFrame({"s": list("fm") * 50, "x": names})
        fitted = funnel(5.0, sensitive="s", columns=["x"], min_frequency=40).fit(frame)
        assert set(fitted.transform(frame)["x"]) == {"usual"}
        frame["x"] = [f"rare {i}" for i in range(100)]
        fitted = funnel(5.0, sensitive="s", columns=["x"], min_frequency=40).fit(frame)
        assert fitted.transform(frame)["x"].isna().all()

    def test_numbers_in_a_pool_are_shown_by_the_middle_of_their_bin(self):
        rng = np.random.default_rng(0)
        numbers = np.round(rng.uniform(1000, 9000, 1000), 2)
        frame = pd.DataFrame({"s": rng.choice(["f", "m"], 1000), "x": numbers, "y": "z"})
        settings = {"n_bins": {"x": [0, 2000, 4000, 6000, 8000, np.inf]}, "max_categories": 2}
        fitted = funnel(1.0, sensitive="s", columns=["x", "y"], **settings).fit(frame)
        released = fitted.transform(frame)["x"]
        median = released[released.isin(numbers)].unique()  # of the bin that is not pooled
        assert len(median) == 1
        middles = [1000.0, 3000.0, 5000.0, 7000.0, numbers[numbers > 8000].mean()]
        shown = set(released) - set(median)
        assert all(np.isclose(value, middles).any() for value in shown)
        whole = frame.assign(x=frame["x"].astype(int))
        released = funnel(1.0, sensitive="s", columns=["x", "y"], **settings).fit_transform(whole)
        assert released["x"].dtype == np.int64

    @pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
    def test_times_in_a_pool(self, zone):
        rng = np.random.default_rng(0)
        when = pd.date_range("2020", periods=4000, tz=zone)[rng.permutation(4000)[:1000]]
        frame = pd.DataFrame({"s": rng.choice(["f", "m"], 1000), "x": when, "y": "z"})
        fitted = funnel(1.0, sensitive="s", columns=["x", "y"], max_categories=3).fit(frame)
        released = fitted.transform(frame)["x"]
        assert released.dtype == frame["x"].dtype
        assert (released == released.dt.normalize()).all()  # they are days
        middles = set(released) - set(frame["x"])
        assert middles
        dates = frame.assign(x=frame["x"].dt.date)
        released = funnel(1.0, sensitive="s", columns=["x", "y"], max_categories=3).fit_transform(
            dates
        )
        assert all(type(day) is date for day in released["x"])

    def test_weights_do_not_make_a_value_common(self):
        frame = pd.DataFrame(
            {"s": list("fm") * 50, "x": [*["usual"] * 90, *["rare"] * 3, *["known"] * 7]}
        )
        weights = np.where(frame["x"] == "rare", 2.0, 0.5)
        settings = funnel(5.0, sensitive="s", columns=["x"], min_frequency=20)
        fitted = settings.fit(frame, sample_weight=weights)
        assert set(fitted.transform(frame)["x"]) == {"usual", "known"}
        batches = funnel(5.0, sensitive="s", columns=["x"], min_frequency=20)
        for i in range(0, 100, 10):
            batches.partial_fit(frame[i : i + 10], sample_weight=weights[i : i + 10])
        assert set(batches.transform(frame)["x"]) == {"usual", "known"}

    def test_labels_that_were_drawn_apart_cannot_be_read_back(self, unique):
        fitted = funnel(0.5, sensitive="s", columns=None).fit(unique)
        released = fitted.transform(unique)
        with pytest.raises(ValueError, match=r"made up.*output='symbol'"):
            estimate_distribution(released, fitted)
        with pytest.warns(
            UserWarning, match="exact figures of the audit are missing.*output='symbol'"
        ) as caught:
            table = audit(released, unique["s"], mechanism=fitted)
        assert caught[0].filename == __file__
        assert table["bayes_accuracy"].isna().all()
        symbols = fitted.set_params(output="symbol").transform(unique)
        assert len(estimate_distribution(symbols, fitted)) == len(fitted.mechanism_.x_labels)

    def test_a_pool_of_one_column_can_be_read_back(self, rows):
        fitted = funnel(max_categories=3).fit(rows[["sex", "band"]])
        released = fitted.transform(rows)
        assert "(pooled)" in fitted.mechanism_.x_labels
        assert estimate_distribution(released, fitted).notna().all(axis=None)

    def test_keyed_releases_repeat_the_columns_of_a_pool(self, unique):
        fitted = funnel(0.5, sensitive="s", columns=None, random_state=None).fit(unique)
        keyed = {"record_ids": np.arange(len(unique)), "secret_key": bytes(32)}
        first = fitted.transform(unique, **keyed)
        assert first.equals(fitted.transform(unique, **keyed))
        assert first.equals(loaded(fitted).transform(unique, **keyed))
        backwards = {"record_ids": np.arange(len(unique))[::-1], "secret_key": bytes(32)}
        assert first[::-1].equals(fitted.transform(unique[::-1], **backwards))


def test_the_default_budget_adds_noise():
    assert PrivacyFunnelTransformer().epsilon == 0.02


class TestRemainder:
    def test_a_list(self, rows):
        fitted = funnel(remainder=["noise"]).fit(rows)
        assert fitted.transform(rows).columns.tolist() == ["band", "noise"]
        assert fitted.get_feature_names_out().tolist() == ["band", "noise"]
        assert fitted.transform(rows[["noise", "band"]]).columns.tolist() == ["band", "noise"]
        shipped = loaded(fitted)
        assert shipped.remainder == ["noise"]
        assert shipped.transform(rows).columns.tolist() == ["band", "noise"]

    def test_positions(self, rows):
        array = rows[["sex", "band", "noise"]].to_numpy()
        fitted = funnel(sensitive=0, columns=[1], remainder=[2]).fit(array)
        assert fitted.transform(array).shape == (N, 2)
        assert loaded(fitted).transform(array).shape == (N, 2)

    @pytest.mark.parametrize(
        ("remainder", "error", "text"),
        [
            ("noise", ValueError, "'remainder' parameter of PrivacyFunnelTransformer must be"),
            (3, TypeError, "'drop', 'passthrough' or a list of columns"),
            (["nose"], ValueError, "names the column 'nose', which X does not have"),
            (["sex"], ValueError, "'sex' is both sensitive and in remainder"),
            (["band"], ValueError, "'band' is both in columns and in remainder"),
        ],
    )
    def test_bad_ones(self, rows, remainder, error, text):
        with pytest.raises(error, match=text):
            funnel(remainder=remainder).fit(rows)

    def test_it_is_decided_by_fit(self, rows):
        fitted = funnel().fit(rows).set_params(remainder="passthrough")
        assert fitted.transform(rows).columns.tolist() == ["band"]


@pytest.mark.filterwarnings("ignore::UserWarning")
class TestWhatAHostileTrialFound:
    @pytest.fixture
    def array(self):
        rng = np.random.default_rng(0)
        return np.column_stack([rng.integers(2, size=200), rng.integers(3, size=200), rng.integers(2, size=200)])  # fmt: skip

    def test_kept_columns_of_an_array_say_nothing_about_the_others(self, array):
        fitted = funnel(0.0, sensitive=0, columns=[1], remainder=[2]).fit(array)
        batches = [
            [0, 1, 1],
            [0, 1.5, 1],
            [0, np.nan, 1],
            [0, None, 1],
            [np.nan, 1, 1],
            [0, "HIV", 1],
        ]
        for row in batches:
            assert fitted.transform(np.array([row])).dtype == np.int64
        texts = array.astype(str)
        fitted = funnel(0.0, sensitive=0, columns=[1], remainder=[2]).fit(texts)
        for row in (["0", "1", "1"], ["Huntington", "1", "1"], ["0", "unheard of", "1"]):
            assert fitted.transform(np.array([row])).dtype == "<U1"

    @pytest.mark.parametrize("names", [["a", "a"], ["level_1", None], [None, None]])
    def test_levels_of_the_index_with_one_name(self, rows, names):
        levels = pd.MultiIndex.from_arrays([rows["sex"], range(N)], names=names)
        with pytest.raises(ValueError, match="The level 'level_[01]' of the index of X holds"):
            funnel().fit(rows[["sex", "band"]].set_axis(levels))

    def test_names_that_s_does_not_have(self, rows):
        renamed = rows[["sex", "band"]].rename(columns={"sex": "index"})
        funnel(sensitive="index").fit(renamed.sample(frac=0.9, random_state=0))
        numbered = rows[["band"]].set_axis(pd.Index(range(N), name="y")[::-1])
        funnel(sensitive=None).fit(numbered, rows["sex"].to_numpy())

    @pytest.mark.parametrize("kind", ["infinite", "large", "tuples"])
    def test_an_index_that_no_bins_fit(self, rows, kind):
        is_f = (rows["sex"] == "f").to_numpy()
        index = {
            "infinite": np.where(is_f, np.inf, range(N)),
            "large": 2**60 + np.arange(N) + 1000 * is_f,
            "tuples": pd.Index(list(zip(rows["sex"], range(N), strict=True)), tupleize_cols=False),
        }[kind]
        with pytest.warns(PrivacyLeakWarning, match="The index of X is released"):
            funnel().fit(rows[["sex", "band"]].set_axis(pd.Index(index, tupleize_cols=False)))

    def test_heavy_rows_do_not_hide_a_copy_of_s(self, rows):
        frame = rows[["sex", "band"]].assign(twin=(rows["sex"] == "f").astype(int))
        with pytest.warns(PrivacyLeakWarning, match=r"allows: twin\."):
            funnel(remainder=["twin"]).fit(frame, sample_weight=np.r_[1e4, np.ones(N - 1)])

    def test_many_numbers_are_judged_by_their_values_too(self):
        rng = np.random.default_rng(0)
        code = rng.integers(0, 250, 800)
        frame = pd.DataFrame({"sex": np.array(["f", "m"])[code % 2], "band": rng.choice(list("abc"), 800), "code": code})  # fmt: skip
        with pytest.warns(PrivacyLeakWarning, match=r"allows: code\."):
            funnel(0.02, remainder=["code"]).fit(frame)

    def test_columns_that_cannot_be_judged_are_refused_by_commands(self, rows, tmp_path, capsys):
        names = [f"{s}-{i}" for i, s in enumerate(rows["sex"])]
        rows[["sex", "band"]].assign(name=names).to_csv(tmp_path / "in.csv", index=False)
        folder = [str(tmp_path / name) for name in ("in.csv", "out.csv")]
        design = [
            "--sensitive",
            "sex",
            "--columns",
            "band",
            "--epsilon",
            "0.01",
            "--remainder",
            "name",
        ]
        assert main(["sanitize", *folder, *design]) == 1
        assert (
            "What the columns name reveal about the sensitive columns" in capsys.readouterr().err
        )
        saved = ["--save-mechanism", str(tmp_path / "m.json"), "--allow-leaking"]
        assert main(["sanitize", *folder, *design, *saved]) == 0
        again = ["apply", saved[1], folder[0], str(tmp_path / "again.csv"), "--remainder", "name"]
        assert main(again) == 1
        assert "cannot be judged" in capsys.readouterr().err
        assert main([*again, "--allow-leaking"]) == 0
        assert "cannot be judged" in capsys.readouterr().err

    def test_times_that_clocks_show_twice(self):
        when = pd.date_range("2020-10-25", periods=400, freq="7min", tz="Europe/Berlin")
        s = np.array(["f", "m"])[np.random.default_rng(0).integers(2, size=400)]
        fitted = funnel(columns=None, n_bins=20).fit(pd.DataFrame({"sex": s, "x": when}))
        assert fitted.transform(pd.DataFrame({"x": when}))["x"].dtype == when.dtype

    def test_times_beyond_nanoseconds_show_no_value(self):
        s = [date(9000 + i % 30, 1, 1) for i in range(120)]
        frame = pd.DataFrame({"s": s, "x": list("ab") * 60})
        with pytest.raises(ValueError, match="'s' has times before 1677 or after 2262") as caught:
            PrivacyFunnelTransformer(sensitive="s").fit(frame)
        assert caught.value.__suppress_context__
        assert "90" not in str(caught.value)

    def test_a_heavy_person_is_not_the_middle_of_a_bin(self):
        rng = np.random.default_rng(0)
        x = np.append(rng.uniform(0, 1000, 399), 1234567.891)
        frame = pd.DataFrame({"sex": rng.choice(["f", "m"], 400), "x": x, "y": "z"})
        weights = np.append(np.ones(399), 50.0)
        fitted = funnel(1.0, columns=["x", "y"], max_categories=2).fit(
            frame, sample_weight=weights
        )
        (column, _) = fitted_of(fitted).alphabet.columns
        assert max(value for value in column.in_pool if value is not None) < 100_000

    def test_decimals_and_views(self):
        rng = np.random.default_rng(0)
        s = rng.choice(["f", "m"], 400)
        prices = [Decimal(int(i)) / 100 for i in rng.integers(0, 9999, 400)]
        frame = pl.DataFrame({"sex": s, "x": prices, "y": rng.choice(list("abcdef"), 400)})
        fitted = funnel(columns=["x", "y"], max_categories=3).fit(frame)
        assert fitted.transform(frame[:1]).schema == fitted.transform(frame).schema
        views = pa.table({"sex": s, "x": pa.array(frame["y"].to_list(), pa.string_view())})
        assert (
            funnel(columns=["x"]).fit_transform(views).schema.field("x").type == pa.string_view()
        )

    def test_a_batch_that_fails_is_not_counted(self, rows):
        frame = rows[["sex", "band"]]
        fitted = funnel().partial_fit(frame)
        mixed = frame.assign(sex=np.array(["f", 1.5], dtype=object)[np.arange(N) % 2])
        with pytest.raises(TypeError, match="'sex' mixes"):
            fitted.partial_fit(mixed.sample(frac=1, random_state=0))
        assert fitted.n_samples_seen_ == N
        assert fitted.transform(frame).shape == (N, 1)
