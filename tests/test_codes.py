"""Fast paths from columns to symbols and counts, compared with naive ones."""

import itertools
import math
import pickle
import tracemalloc
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skprivacy import PrivacyFunnelTransformer
from skprivacy.codes import count, look_up, n_cells, pack, pack_few, take, unpack
from skprivacy.encoding import alphabets, learn_alphabet, learn_column
from skprivacy.encoding.columns import edges_below
from skprivacy.encoding.values import as_numbers, coded, coded_by_offset, factorize
from skprivacy.joint import count_pairs


@pytest.fixture
def rng():
    return np.random.default_rng(0)


DTYPES = [np.int8, np.int16, np.int32, np.int64]


def codes_below(n, *, missing=True, dtypes=DTYPES, max_size=200):
    elements = st.integers(-1 if missing else 0, n - 1)
    return st.sampled_from(dtypes).flatmap(
        lambda dtype: hnp.arrays(dtype, st.integers(1, max_size), elements=elements)
    )


class TestCodes:
    @given(codes_below(20))
    def test_count(self, codes):
        seen = Counter(codes.tolist())
        assert count(codes, 20).tolist() == [seen[code] for code in [*range(20), -1]]
        few = codes % 7
        assert count(few.astype(np.int8), 7).tolist() == count(few, 7).tolist()

    def test_count_over_many_chunks(self, rng):
        codes = rng.integers(-1, 127 + 1, 300_000, dtype=np.int8)  # the largest is no overflow
        assert (
            count(codes, 128).tolist() == np.roll(np.bincount(codes.astype(int) + 1), -1).tolist()
        )

    @given(codes_below(20), st.integers(0, 2**32))
    def test_weights_are_added_in_the_order_of_rows(self, codes, seed):
        weights = np.random.default_rng(seed).random(len(codes))
        sums = dict.fromkeys([*range(20), -1], 0.0)
        for code, weight in zip(codes.tolist(), weights, strict=True):
            sums[code] += weight
        assert count(codes, 20, weights).tolist() == list(sums.values())

    def test_weights_in_many_chunks_are_added_in_the_order_of_rows(self, rng):
        codes, weights = rng.integers(0, 5, 100_000), rng.random(100_000)
        assert count(codes, 5, weights)[:-1].tolist() == np.bincount(codes, weights).tolist()

    @given(codes_below(9), hnp.arrays(np.int64, 10, elements=st.integers(-1, 300)))
    def test_take(self, codes, table):
        assert take(table, codes).tolist() == table[codes].tolist()
        assert look_up(table, codes).tolist() == table[codes].tolist()

    def test_a_table_that_changes_nothing_costs_nothing(self):
        codes = np.array([0, -1, 2])
        assert take(np.array([0, 1, 2, -1]), codes) is codes

    @given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.data())
    def test_packed_rows_have_their_lexicographic_order(self, sizes, data):
        n = data.draw(st.integers(1, 30))
        columns = [
            data.draw(
                hnp.arrays(data.draw(st.sampled_from(DTYPES)), n, elements=st.integers(-1, s - 1))
            )
            for s in sizes
        ]
        rows = np.stack(columns, axis=1).astype(np.int64)
        strides = np.array([int(n_cells(sizes[k + 1 :])) for k in range(len(sizes))])
        packed = pack(columns, sizes)
        assert packed.dtype.itemsize <= np.min_scalar_type(int(n_cells(sizes))).itemsize
        assert packed.tolist() == ((rows + 1) @ strides).tolist()
        assert packed.tolist() == pack_few(rows, sizes).tolist()
        assert (unpack(packed, sizes) == rows).all()

    @given(codes_below(6, missing=False), st.integers(0, 2**32), st.booleans())
    def test_count_pairs(self, s, seed, is_weighted):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 50, len(s), dtype=np.int8)
        weights = rng.random(len(s)) if is_weighted else None
        counts = np.zeros((s.max() + 1, x.max() + 1))
        for i, pair in enumerate(zip(s, x, strict=True)):
            counts[pair] += 1 if weights is None else weights[i]
        found = count_pairs(s, x, weights)
        assert found.flags.c_contiguous
        assert found.tolist() == counts.tolist()


class TestValues:
    @pytest.mark.parametrize(
        "dtype", ["int8", "uint8", "int16", "int64", "uint64", "Int64", "UInt8", "int64[pyarrow]"]
    )
    def test_integers_that_are_close_together(self, rng, dtype):
        low = 2**64 - 300 if dtype == "uint64" else 0 if dtype.lower() == "uint8" else -128
        numbers = pd.Series(low + rng.integers(0, 255, 4000).astype(object)).astype(
            object if dtype == "uint64" else "int64"
        )
        if dtype == "int8":
            numbers = numbers.clip(-128, 127)
        series = numbers.astype(dtype)
        if dtype in ("Int64", "UInt8", "int64[pyarrow]"):
            series[rng.random(4000) < 0.1] = pd.NA
        codes, values = coded_by_offset(series)
        decoded = [None if code == -1 else values[code] for code in codes.tolist()]
        assert decoded == [None if pd.isna(v) else int(v) for v in series.tolist()]

    def test_integers_that_are_not(self):
        assert coded_by_offset(pd.Series([0, 10**6] * 100)) is None
        assert coded_by_offset(pd.Series([0, 2**63 - 1, -(2**63)] * 100)) is None
        assert coded_by_offset(pd.Series([1, 2, 3])) is None
        assert coded_by_offset(pd.Series([pd.NA] * 100, dtype="Int64")) is None
        assert coded_by_offset(pd.Series([1.0] * 100)) is None

    @given(st.lists(st.sampled_from(["a", "b", "é", "", None]), min_size=1))
    def test_strings_that_arrow_holds(self, texts):
        series = pd.Series(texts, dtype=pd.StringDtype("pyarrow"))
        codes, values = factorize(series, "x")
        assert [None if c == -1 else values[c] for c in codes] == texts
        assert values == [t for t in dict.fromkeys(texts) if t is not None]

    def test_numbers_in_categories(self):
        series = pd.Series([3, 1, None, 3]).astype(pd.CategoricalDtype([3, "no number", 1]))
        np.testing.assert_array_equal(as_numbers(series, "x"), [3, 1, np.nan, 3])
        days = pd.Series(pd.to_datetime(["2020-01-02", None, "2020-01-01"])).astype("category")
        np.testing.assert_array_equal(
            as_numbers(days, "x"), as_numbers(days.astype("datetime64[ns]"), "x")
        )

    @given(st.integers(0, 80), st.integers(0, 2**32))
    def test_bins(self, n_edges, seed):
        rng = np.random.default_rng(seed)
        edges = np.unique(rng.integers(-50, 50, n_edges).astype(float))
        numbers = np.concatenate([edges, rng.normal(0, 40, 50), [-np.inf, np.inf]])
        for side in ("left", "right"):
            found = edges_below(edges, numbers, side)
            assert (found == np.searchsorted(edges, numbers, side)).all()


def naive_symbols(seen, rows):
    """Number the distinct rows in their order, and look others up among them."""
    order = {row: i for i, row in enumerate(sorted(set(seen)))}
    return [order.get(row, -1) for row in rows]


def tuples(columns):
    return list(zip(*(c.tolist() for c in columns), strict=True))


def numbers_of_every_kind():
    """Return columns of numbers and times, with missing and equal values."""
    rng = np.random.default_rng(3)
    x = np.append(rng.normal(size=300) * 1e6, [0.0, -0.0, 7.0, 7.0, 7.0, 8.0])
    gaps, whole = np.where(rng.random(len(x)) < 0.1, np.nan, x), x.astype(np.int64)
    seconds = pd.Series(whole.astype("M8[s]"))
    return {
        "float": pd.Series(x),
        "float with gaps": pd.Series(gaps),
        "float32": pd.Series(gaps.astype(np.float32)),
        "rounded": pd.Series(np.round(gaps, -5)),
        "Float64": pd.Series(gaps).astype("Float64"),
        "double[pyarrow]": pd.Series(gaps).astype("double[pyarrow]"),
        "int": pd.Series(whole),
        "int8": pd.Series((whole % 256 - 128).astype(np.int8)),
        "uint64": pd.Series(whole.astype(np.uint64) // 4096 * 4096),
        "Int64": pd.Series(whole).astype("Int64").mask(np.isnan(gaps)),
        "int64[pyarrow]": pd.Series(whole).astype("int64[pyarrow]"),
        "times": seconds.mask(np.isnan(gaps)),
        "times of a zone": seconds.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
        "durations": seconds - seconds[0],
    }


NUMBERS = numbers_of_every_kind()


class TestNumbers:
    """Numbers are sorted as arrays; with weights, and in lists, they are coded."""

    @pytest.mark.parametrize("n_bins", [4, 10, [-np.inf, 0, 5e18, np.inf]], ids=str)
    @pytest.mark.parametrize("kind", NUMBERS)
    def test_columns_have_the_bins_of_their_values(self, kind, n_bins):
        series = NUMBERS[kind]
        values = pd.Series([None if pd.isna(v) else v for v in series.tolist()], dtype=object)
        alphabet, symbols = learn_column(series, None, "x", n_bins=n_bins)
        for column, weights in [(values, None), (series, np.ones(len(series)))]:
            expected, rows = learn_column(column, weights, "x", n_bins=n_bins)
            assert alphabet.values == expected.values
            assert alphabet.labels == expected.labels
            assert alphabet.edges.tolist() == expected.edges.tolist()
            assert alphabet.weights.tolist() == expected.weights.tolist()
            assert alphabet.is_rare.tolist() == expected.is_rare.tolist()
            assert symbols.tolist() == rows.tolist()
        assert list(map(type, alphabet.values)) == list(map(type, expected.values))
        assert alphabet.in_pool == expected.in_pool
        assert alphabet.encode(series, "x").tolist() == symbols.tolist()

    @pytest.mark.parametrize("utility", ["mutual_information", "guess", "distortion"])
    @pytest.mark.parametrize("kind", ["float", "float with gaps", "rounded", "int", "times"])
    def test_figures_before_binning_are_those_with_equal_weights(self, kind, utility):
        x = NUMBERS[kind]
        frame = pd.DataFrame({"s": np.arange(len(x)) % 3 == 0, "x": x})
        funnel = PrivacyFunnelTransformer(0.1, sensitive="s", n_bins=4, utility=utility)
        found, expected = (
            funnel.fit(frame, sample_weight=weights).fidelity_
            for weights in (None, np.ones(len(x)))
        )
        pd.testing.assert_frame_equal(found.raw_columns, expected.raw_columns, rtol=0, atol=0)
        assert found.raw_utility == expected.raw_utility

    def test_no_number_becomes_a_python_object(self, rng):
        n = 300_000
        frame = pd.DataFrame({"s": rng.integers(2, size=n), "x": rng.normal(size=n)})
        funnel = PrivacyFunnelTransformer(0.1, sensitive="s", random_state=0)
        funnel.fit(frame[:1000])  # imports
        tracemalloc.start()
        funnel.fit(frame).transform(frame)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 4 * frame["x"].nbytes  # an object takes 4 times the space of a number


class TestJointColumns:
    # A table of cells; a hash of packed rows; too many cells to be packed.
    @pytest.mark.parametrize("sizes", [(3, 4, 2), (3000, 2000, 2), (3000,) * 6])
    @pytest.mark.parametrize("is_weighted", [False, True])
    def test_symbols(self, rng, sizes, is_weighted):
        n = 5000
        columns = [pd.Series(rng.permutation(n) % size) for size in sizes]
        unseen = [
            pd.Series(rng.integers(0, size + 2, 500)).where(rng.random(500) < 0.9)
            for size in sizes
        ]
        labels, options = list("abcdef")[: len(sizes)], [{"n_bins": None}] * len(sizes)
        weights = rng.random(n) if is_weighted else None
        alphabet, symbols = learn_alphabet(columns, labels, weights, options)
        cells = n_cells([c.n_symbols for c in alphabet.columns])
        assert cells == pytest.approx(math.prod(size + 1.0 for size in sizes))
        rows = tuples(columns)
        assert symbols.tolist() == naive_symbols(rows, rows)
        totals = Counter()
        for i, row in enumerate(rows):
            totals[row] += 1.0 if weights is None else weights[i]
        assert alphabet.weights.tolist() == [totals[row] for row in sorted(totals)]
        mixed = [
            pd.concat([c[:500], u], ignore_index=True)
            for c, u in zip(columns, unseen, strict=True)
        ]
        found, unknown = alphabet.encode(mixed, labels)
        wanted = tuples(mixed)
        assert found.tolist() == naive_symbols(rows, wanted)
        values = [set(column) for column in columns]
        for k, label in enumerate(labels):
            assert unknown.get(label, 0) == sum(row[k] not in values[k] for row in wanted)
        combinations = sum(
            all(v in known for v, known in zip(row, values, strict=True)) and symbol == -1
            for row, symbol in zip(wanted, found, strict=True)
        )
        assert unknown.get(None, 0) == combinations
        assert alphabet.encode(columns, labels)[1] == {}

    def test_sizes_of_both_sides(self):
        assert n_cells((3000, 2000, 2)) > alphabets._MOST_LOOK_UPS
        assert n_cells((3000,) * 6) > alphabets._MOST_PACKED

    @given(st.integers(0, 2**32))
    def test_pools_and_missing_values(self, seed):
        rng = np.random.default_rng(seed)
        a = pd.Series(rng.choice([*"pqrstu", None], 80, p=[0.4, 0.3, 0.1, 0.05, 0.04, 0.01, 0.1]))
        b = pd.Series(rng.choice([1.0, 2.0, 3.0, np.nan], 80, p=[0.5, 0.3, 0.05, 0.15]))
        options = [{"pooling": (0.08, None)}, {"pooling": (None, 3)}]
        alphabet, symbols = learn_alphabet([a, b], ["a", "b"], None, options)
        parts = [learn_column(c, None, "", **o)[1] for c, o in zip((a, b), options, strict=True)]
        rows = tuples(parts)
        assert symbols.tolist() == naive_symbols(rows, rows)
        assert [tuple(row) for row in alphabet.combinations.tolist()] == sorted(set(rows))
        assert alphabet.encode([a, b], ["a", "b"])[0].tolist() == symbols.tolist()
        # Every member is a pair of values that occurs, part of the symbol of its rows.
        values = [c.values for c in alphabet.columns]
        members = [tuple(v[i] for v, i in zip(values, m, strict=True)) for m in alphabet.members]
        pairs = [tuple(None if pd.isna(v) else v for v in row) for row in tuples([a, b])]
        assert dict(zip(pairs, symbols.tolist(), strict=True)) == dict(
            zip(members, alphabet.member_of.tolist(), strict=True)
        )
        seen = Counter(pairs)
        assert alphabet.weights.tolist() == [seen[member] for member in members]

    def test_a_pickle_leaves_tables_behind(self, rng):
        columns = [pd.Series(rng.integers(0, 3, 50)) for _ in "ab"]
        alphabet, symbols = learn_alphabet(columns, ["a", "b"], None, [{}, {}])
        size = len(pickle.dumps(alphabet))
        alphabet.encode(columns, ["a", "b"])
        assert len(pickle.dumps(alphabet)) == size
        again, _ = pickle.loads(pickle.dumps(alphabet)).encode(columns, ["a", "b"])
        assert again.tolist() == symbols.tolist()


def dictionary_column(rng, n, values, index_type):
    """A ChunkedArray with dictionaries that differ, repeat and miss values, and missing rows."""
    chunks = []
    for k in range(3):
        dictionary = [values[i] for i in rng.permutation(len(values))][: max(1, len(values) - k)]
        dictionary = [*dictionary, dictionary[0], None] if k else dictionary
        indices = rng.integers(0, len(dictionary), n // 3)
        mask = rng.random(n // 3) < (0.05 if k < 2 else 0)
        array = pa.array(indices, index_type, mask=mask)
        chunks.append(pa.DictionaryArray.from_arrays(array, pa.array(dictionary)))
    chunks.append(chunks[0].slice(5, 20))
    return pa.chunked_array(chunks)


@pytest.mark.filterwarnings("ignore::skprivacy.PrivacyLeakWarning")
class TestDictionariesOfArrow:
    @pytest.mark.parametrize(
        ("values", "index_type"),
        [
            (["b", "a", "é", "Z", ""], pa.int8()),
            (["10", "9", "x"], pa.uint32()),
            ([30, 4, 5, 17], pa.int32()),
            (list(range(40, 20, -1)), pa.int8()),
            ([True, False], pa.int8()),
        ],
    )
    @pytest.mark.parametrize("seed", range(3))
    def test_as_if_decoded(self, values, index_type, seed):
        rng = np.random.default_rng(seed)
        column = dictionary_column(rng, 900, values, index_type)
        s = rng.integers(0, 2, len(column))
        encoded = pa.table({"s": s, "x": column})
        decoded = pa.table({"s": s, "x": column.cast(column.type.value_type)})
        fits = [
            PrivacyFunnelTransformer(1e-4, sensitive="s", random_state=0, max_categories=4).fit(t)
            for t in (encoded, decoded)
        ]
        assert fits[0].p_sx_.tolist() == fits[1].p_sx_.tolist()
        assert str(fits[0].categories_) == str(fits[1].categories_)
        assert fits[0].mechanism_.x_labels == fits[1].mechanism_.x_labels
        for fit, table in itertools.product(fits, (encoded, decoded)):
            released = fit.transform(table)
            seen = (encoded, decoded)[fits.index(fit)]["x"].type  # by fit, whatever comes later
            assert released["x"].type == seen
            assert released["x"].to_pylist() == fits[1].transform(decoded)["x"].to_pylist()

    def test_unknown_values_and_unused_ones(self, rng):
        column = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 50, pa.int8()), ["a", "b", "c"])
        table = pa.table({"s": rng.integers(0, 2, 100), "x": column})
        fitted = PrivacyFunnelTransformer(sensitive="s", random_state=0).fit(table)
        assert fitted.categories_[0].tolist() == ["a", "b"]
        other = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), ["z", "a"])
        with pytest.warns(UserWarning, match=r"'x'"):
            fitted.transform(pa.table({"x": other}))

    def test_as_sensitive_and_jointly(self, rng):
        columns = {name: dictionary_column(rng, 900, ["b", "a", "c"], pa.int8()) for name in "sxy"}
        encoded = pa.table(columns)
        decoded = pa.table({n: c.cast(c.type.value_type) for n, c in columns.items()})
        fits = [PrivacyFunnelTransformer(1e-4, sensitive="s").fit(t) for t in (encoded, decoded)]
        assert fits[0].p_sx_.tolist() == fits[1].p_sx_.tolist()
        assert fits[0].mechanism_.x_labels == fits[1].mechanism_.x_labels
        assert fits[0].evaluate(decoded).max_leakage == fits[1].evaluate(encoded).max_leakage

    def test_no_rows_and_large_dictionaries(self, rng):
        texts = [f"{i:06d}" for i in range(70_000)]
        column = pa.DictionaryArray.from_arrays(pa.array([7, 3, 7, 3] * 20), texts)
        table = pa.table({"s": rng.integers(0, 2, 80), "x": column})
        fitted = PrivacyFunnelTransformer(sensitive="s", random_state=0).fit(table)
        assert fitted.categories_[0].tolist() == ["000003", "000007"]
        assert fitted.transform(table[:0]).num_rows == 0


def test_coded_is_factorized(rng):
    series = pd.Series(rng.integers(-5, 5, 1000))
    (codes, values), (reference, distinct) = coded(series, "x"), factorize(series, "x")
    assert [values[c] for c in codes] == [distinct[c] for c in reference]
