"""The same row, the same Y, every time."""

import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from example_tables import funnel, people
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skprivacy import PrivacyFunnelTransformer, PrivacyLeakWarning
from skprivacy.metrics import leakage, mutual_information
from skprivacy.releasing.keyed import fingerprint, noise_source
from skprivacy.repetition import repeated_release_leakage
from skprivacy.tables.frames import as_table
from skprivacy.transformer import release_by

KEY = bytes(range(32))
GOLDEN_FINGERPRINT = "8242fdea123d868f60a63e239f8a1a56"
GOLDEN_WORDS = [2619455484958782522, 1444432174376267372]
IDS = np.arange(3000) * 7 + 5


@pytest.fixture(scope="module")
def frame():
    return people(3000)


@pytest.fixture(scope="module")
def fitted(frame):
    return funnel(random_state=None).fit(frame)


def keyed(fitted, frame, ids=IDS, key=KEY):
    return fitted.transform(frame, record_ids=ids, secret_key=key)


class TestTheSameEveryTime:
    def test_whatever_the_rows_around_it(self, frame, fitted):
        first = keyed(fitted, frame)
        assert keyed(fitted, frame).equals(first)
        order = np.random.default_rng(0).permutation(3000)[:1000]
        assert keyed(fitted, frame.iloc[order], IDS[order]).equals(first.iloc[order])
        assert keyed(fitted, frame.iloc[[17]], IDS[[17]]).equals(first.iloc[[17]])

    def test_another_id_or_key_is_another_draw(self, frame, fitted):
        first = keyed(fitted, frame)
        for other in (keyed(fitted, frame, IDS + 1), keyed(fitted, frame, key=bytes(32))):
            assert 0.2 < (other["band"] != first["band"]).mean() < 0.9

    def test_whatever_the_kind_of_table_and_of_ids(self, frame, fitted):
        first = keyed(fitted, frame)["band"].tolist()
        rows = frame[["sex", "band"]].assign(id=IDS)
        for table in (rows, pl.from_pandas(rows), pa.Table.from_pandas(rows)):
            assert list(map(str, keyed(fitted, table)["band"].to_numpy())) == first
            named = fitted.transform(table, record_ids="id", secret_key=KEY)
            assert list(map(str, named["band"].to_numpy())) == first
        for ids in (IDS.tolist(), pd.Series(IDS, dtype="Int64"), pl.Series(IDS), pd.Index(IDS)):
            assert keyed(fitted, frame, ids)["band"].tolist() == first
        texts = keyed(fitted, frame, IDS.astype(str))
        assert texts.equals(keyed(fitted, frame, pd.Series(IDS.astype(str), dtype="category")))
        assert texts["band"].tolist() != first

    def test_on_another_machine_and_after_the_same_fit(self, frame, fitted):
        first = keyed(fitted, frame)
        shipped = PrivacyFunnelTransformer.from_json(fitted.to_json())
        assert keyed(shipped, frame).equals(first)
        assert keyed(clone(fitted).fit(frame), frame).equals(first)
        assert keyed(clone(fitted).set_params(random_state=3).fit(frame), frame).equals(first)

    def test_in_every_form_that_shows_it(self, frame, fitted):
        # Two forms of one draw are one release.
        label = keyed(fitted, frame)["band"]
        for output in ("symbol", "posterior"):
            shown = keyed(clone(fitted).set_params(output=output).fit(frame), frame)
            pairs = pd.concat([label, shown.astype(str).agg("|".join, axis=1)], axis=1)
            assert len(pairs.drop_duplicates()) == label.nunique()

    def test_members_of_pools_too(self, frame):
        pooled = funnel(max_categories=3).fit(frame)
        first = keyed(pooled, frame)
        assert keyed(pooled, frame).equals(first)
        assert first["band"].nunique() == 5

    def test_values_that_fit_did_not_see(self, frame, fitted):
        strange = frame.assign(band=np.where(np.arange(3000) % 2, "?", "!"))
        with pytest.warns(UserWarning, match="did not see"):
            first = keyed(fitted, strange)
        with pytest.warns(UserWarning, match="did not see"):
            assert keyed(fitted, strange).equals(first)


class TestWhatItProtects:
    def test_two_releases_say_more_and_two_keyed_ones_do_not(self):
        # One release says nothing about S at all: see repeated_release_leakage.
        rng = np.random.default_rng(0)
        n = 200_000
        rows = pd.DataFrame({"sex": rng.choice(["f", "m"], n)})
        rows["x"] = np.where(rows["sex"] == "m", "c", rng.choice(["a", "b"], n))
        with pytest.warns(PrivacyLeakWarning, match="X determines S"):
            fitted = PrivacyFunnelTransformer(0.0, sensitive="sex").fit(rows)
        ids = np.arange(n)

        def together(*releases):
            return pd.concat(releases, axis=1, keys=range(len(releases)))

        one = fitted.transform(rows)
        twice = together(one, fitted.transform(rows))
        expected = repeated_release_leakage(fitted.mechanism_, 2).sensitive_information
        assert mutual_information(rows["sex"], one) < 1e-4
        assert mutual_information(rows["sex"], twice) == pytest.approx(expected, abs=5e-3)
        assert expected > 0.2
        first = keyed(fitted, rows, ids)
        both = together(first, *(keyed(fitted, rows, ids) for _ in range(4)))
        assert mutual_information(rows["sex"], both) < 1e-4
        assert mutual_information(rows["sex"], both) == mutual_information(rows["sex"], first)

    def test_a_keyed_release_keeps_the_budget(self):
        rows = people(400_000)
        fitted = funnel(0.01).fit(rows)
        for ids in (np.arange(len(rows)), np.arange(len(rows)).astype(str)):
            released = keyed(fitted, rows, ids)
            # The rarest of five outputs has some 32,000 rows, by which kl varies by 0.0008.
            assert leakage(rows["sex"], released) < 0.01 + 4 * 0.0008
            drawn = pd.crosstab(rows["band"], released["band"]).to_numpy()
            expected = fitted.mechanism_.channel * drawn.sum(axis=1, keepdims=True)
            chi2 = ((drawn - expected) ** 2 / np.maximum(expected, 1e-9))[expected > 5].sum()
            assert chi2 < 2 * (expected > 5).sum() + 20
            assert (drawn[expected == 0] == 0).all()

    def test_mechanisms_draw_apart(self, frame):
        # The same symbols and the same channel for two columns, or another channel for one.
        rows = people(100_000)
        rows["again"] = rows["band"]
        ids = np.arange(len(rows))
        one, other = (funnel(columns=[name]).fit(rows) for name in ("band", "again"))
        assert (one.mechanism_.channel == other.mechanism_.channel).all()
        looser = funnel(0.011).fit(rows)
        first = keyed(one, rows, ids)["band"]
        for second in (keyed(other, rows, ids)["again"], keyed(looser, rows, ids)["band"]):
            # Given X they are independent: as often the same as two fresh draws.
            fresh = one.transform(rows)["band"]
            same = (second == first).mean(), (fresh == first).mean()
            assert same[0] == pytest.approx(same[1], abs=0.01)

    def test_fingerprints(self, frame, fitted):
        own = fingerprint(release_by(fitted))
        assert fingerprint(release_by(clone(fitted).fit(frame))) == own
        assert fingerprint(release_by(PrivacyFunnelTransformer.from_json(fitted.to_json()))) == own
        others = [
            funnel(0.011).fit(frame),
            funnel().fit(frame.iloc[:-1]),
            funnel(columns=["label"]).fit(
                frame.rename(columns={"label": "band", "band": "label"})
            ),
        ]
        assert len({own, *(fingerprint(release_by(other)) for other in others)}) == 4

    def test_fingerprints_and_draws_never_change(self):
        # Or every row that was ever released by an id would be released a second time.
        rows = pd.DataFrame(
            {
                "sex": ["f", "m"] * 8,
                "day": pd.to_datetime(["2024-01-01", "2024-01-02"] * 4 + ["2024-01-01"] * 8),
                "price": [Decimal("1.1"), Decimal("2")] * 6 + [Decimal("2")] * 4,
                "age": [20, 30, 40, 50] * 4,
            }
        )
        edges = {"age": [-np.inf, 25, 45, np.inf]}
        fitted = PrivacyFunnelTransformer(np.inf, sensitive="sex", n_bins=edges, max_categories=2)
        fitted.fit(rows)
        own = fingerprint(release_by(fitted)).hex()
        assert own.startswith(GOLDEN_FINGERPRINT)
        other = clone(fitted)
        other.partial_fit(rows).mechanism_  # noqa: B018
        assert fingerprint(release_by(other)).hex() == own
        noise = noise_source(release_by(fitted), None, ["a", "b"], KEY).of(as_table(rows[:2], ""), range(2))  # fmt: skip
        assert [int(word) for word in noise.words(0, 0, 2)] == GOLDEN_WORDS

    def test_types_of_x_that_json_does_not_know(self, frame):
        for values in ([Decimal("1.5"), Decimal("2.5")], [b"a", b"b"], [(1, 2), (3, 4)]):
            column = pd.Series(values, dtype=object)[(frame["band"] > "b").astype(int)].tolist()
            rows = frame[["sex"]].assign(x=pd.Series(column, dtype=object))
            fitted = PrivacyFunnelTransformer(0.001, sensitive="sex", n_bins=None).fit(rows)
            assert keyed(fitted, rows)["x"].tolist() == keyed(fitted, rows)["x"].tolist()

    def test_in_a_pipeline(self, frame, fitted):
        with sklearn.config_context(enable_metadata_routing=True):
            step = clone(fitted).set_transform_request(record_ids=True, secret_key=True)
            pipeline = make_pipeline(step, OneHotEncoder(sparse_output=False)).fit(frame)
            first = pipeline.transform(frame, record_ids=IDS, secret_key=KEY)
            assert (pipeline.transform(frame, record_ids=IDS, secret_key=KEY) == first).all()
            assert (pipeline.transform(frame, record_ids=IDS, secret_key=bytes(32)) != first).any()

    def test_the_key_stays_nowhere(self, frame):
        key = b"sixteen bytes or more, in a safe"
        fitted = funnel().fit(frame)
        before = pickle.dumps(fitted)
        keyed(fitted, frame, key=key)
        assert pickle.dumps(fitted) == before
        assert all(b"safe" not in part for part in (before, repr(fitted).encode()))
        assert "safe" not in str(fitted.get_params()) + fitted.to_json() + str(vars(fitted))


class TestErrors:
    def test_both_or_none(self, frame, fitted):
        with pytest.raises(ValueError, match="got record_ids without secret_key"):
            fitted.transform(frame, record_ids=IDS)
        with pytest.raises(ValueError, match="got secret_key without record_ids"):
            fitted.transform(frame, secret_key=KEY)

    @pytest.mark.parametrize("key", ["a text of some length", 12345678901234567890, KEY[:15]])
    def test_keys(self, frame, fitted, key):
        with pytest.raises((TypeError, ValueError), match="'secret_key' parameter of") as caught:
            keyed(fitted, frame, key=key)
        assert str(key) not in str(caught.value)

    def test_ids(self, frame, fitted):
        with pytest.raises(ValueError, match="X has 3000 rows, record_ids has 2999"):
            keyed(fitted, frame, IDS[:-1])
        with pytest.raises(ValueError, match="record_ids must be one column. Got 2"):
            keyed(fitted, frame, frame[["zip", "noise"]])
        with pytest.raises(ValueError, match="'record_ids' parameter .* names the column 'name'"):
            fitted.transform(frame, record_ids="name", secret_key=KEY)
        with pytest.raises(
            ValueError, match="record_ids must not have missing values.*Got 1 miss"
        ):
            keyed(fitted, frame, pd.Series(IDS, dtype="Int64").mask(IDS == 5))
        for ids in (IDS / 2, [*range(2999), "a"], [True, *range(2999)]):
            with pytest.raises(TypeError, match="record_ids must be all integers or all texts"):
                keyed(fitted, frame, ids)

    def test_what_is_no_column_of_ids(self, frame, fitted):
        for ids in (3.5, {1, 2}, object()):
            with pytest.raises((TypeError, ValueError), match="record_ids|2D|scalar|rows"):
                keyed(fitted, frame, ids)
        with pytest.raises(TypeError, match="must be the name of a column, or an id for each row"):
            keyed(fitted, frame, 3.5)
        with pytest.raises(ValueError, match="record_ids must not have missing values"):
            keyed(fitted, frame, [*map(str, range(2999)), float("nan")])
        ids = [f"{i}\0" for i in range(3000)]
        assert keyed(fitted, frame, ids).equals(keyed(fitted, frame, pd.Series(ids, dtype=object)))

    def test_ids_of_other_rows(self, frame, fitted):
        ids = pd.Series(IDS, index=frame.index)
        shuffled = frame.sample(frac=1, random_state=0)
        with pytest.raises(ValueError, match="record_ids has a different index from X"):
            keyed(fitted, shuffled, ids)
        aligned = keyed(fitted, shuffled, ids[shuffled.index])
        assert aligned.sort_index().equals(keyed(fitted, frame, ids.to_numpy()))

    def test_ids_are_unique(self, frame, fitted):
        with pytest.raises(
            ValueError, match="record_ids must be unique: 1 row has the id of anot"
        ):
            keyed(fitted, frame.iloc[:3], [1, 2, 2])
        with pytest.raises(ValueError, match="unique: 2,995 rows have the id of another"):
            keyed(fitted, frame, frame["band"])  # all noise would be the same for each X

    @pytest.mark.parametrize("column", ["band", "sex"])
    def test_ids_are_a_column_of_their_own(self, frame, fitted, column):
        with pytest.raises(ValueError, match=f"column '{column}', which is released or sensitive"):
            fitted.transform(frame, record_ids=column, secret_key=KEY)
        array = frame[["label", "zip"]].to_numpy(dtype=float)
        of_array = PrivacyFunnelTransformer(0.01, sensitive=0).fit(array)
        for position in (1, -1, 0):
            with pytest.raises(ValueError, match=r"column \d, which is released or sensitive"):
                of_array.transform(array, record_ids=position, secret_key=KEY)
        with pytest.raises(ValueError, match="column 'band', which is released or sensitive"):
            fitted.transform(frame, record_ids=frame.columns.get_loc("band"), secret_key=KEY)
