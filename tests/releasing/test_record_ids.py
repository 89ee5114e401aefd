"""The keyed words of ids: their specification, and which ids are the same."""

import decimal
import hashlib
import secrets
import uuid

import numpy as np
import pandas as pd
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from skprivacy.releasing.keyed import check_secret_key, derive_key
from skprivacy.releasing.record_ids import encode_ids, keyed_words, text_words
from skprivacy.releasing.sampler import aes

KEY = bytes(range(32))


def encrypted(key, data, mode):
    return Cipher(algorithms.AES(key), mode).encryptor().update(data)


def naive_digest(key, text):
    """CBC-MAC of one text: the last block of AES-CBC of its length and its bytes."""
    padded = len(text).to_bytes(16, "little") + text + bytes(-len(text) % 16)
    return encrypted(key, padded, modes.CBC(bytes(16)))[-16:]


def word_of_block(key, block):
    return int.from_bytes(encrypted(key[16:], block, modes.ECB())[:8], "little")


def word_of_text(key, text):
    return word_of_block(key, naive_digest(key[:16], text))


def word_of_integer(key, integer):
    type_ = 2 if integer >= 2**63 else 1
    content = (integer % 2**64).to_bytes(8, "little") + type_.to_bytes(8, "little")
    return word_of_block(key, content)


def words(ids, key=KEY):
    return keyed_words(key, encode_ids(ids)).tolist()


class TestWords:
    def test_the_example_of_the_standard(self):
        """FIPS 197, appendix B of 2001 and C.1."""
        for key, plain, expected in (
            (
                "000102030405060708090a0b0c0d0e0f",
                "00112233445566778899aabbccddeeff",
                "69c4e0d86a7b0430d8cdb78070b4c55a",
            ),
            (
                "2b7e151628aed2a6abf7158809cf4f3c",
                "3243f6a8885a308d313198a2e0370734",
                "3925841d02dc09fbdc118597196a0b32",
            ),
        ):
            blocks = np.frombuffer(bytes.fromhex(plain) * 2, "<u8").reshape(-1, 2)
            found = aes(bytes.fromhex(key), blocks)
            assert found.astype("<u8").tobytes().hex() == expected * 2

    def test_texts_of_any_length(self):
        rng = np.random.default_rng(0)
        lengths = [*range(71), 255, 256, 257, 4001, *rng.integers(0, 71, size=300)]
        rng.shuffle(lengths)
        texts = ["".join(map(chr, rng.integers(0, 128, size=n))) for n in lengths]
        key = rng.bytes(32)
        expected = [word_of_text(key, text.encode()) for text in texts]
        assert text_words(key, texts).tolist() == expected
        texts = [text.replace("\0", "x") for text in texts]
        expected = [word_of_text(key, text.encode()) for text in texts]
        assert text_words(key, texts).tolist() == expected

    def test_more_ids_than_are_encoded_at_once(self):
        ids = pd.Series(np.arange(40_000) ** 3)
        some = [0, 16_383, 16_384, 32_768, 39_999]
        for series in (ids, ids.astype(str), ids.astype(str).astype(object)):
            all_of_them = words(series)
            assert len(set(all_of_them)) == len(ids)
            assert words(series.iloc[some]) == [all_of_them[i] for i in some]

    def test_some_ids_have_the_words_that_they_have_among_all(self):
        for ids in (pd.Series(range(10)), pd.Series(["a", "bcd", "", "ä" * 20, "e" * 16])):
            for series in (ids, ids.astype(object)):
                encoded = encode_ids(series)
                expected = keyed_words(KEY, encoded)[1:3].tolist()
                assert keyed_words(KEY, encoded.between(1, 3)).tolist() == expected
                assert keyed_words(KEY, encoded.between(0, 4).between(1, 3)).tolist() == expected

    def test_no_ids(self):
        for dtype in ("int64", object, "str"):
            assert words(pd.Series([], dtype=dtype)) == []
        assert text_words(KEY, []).tolist() == []

    @pytest.mark.parametrize("size", [0, 16, 31, 33])
    def test_a_key_has_32_bytes(self, size):
        with pytest.raises(ValueError, match=f"32 bytes. Got {size}"):
            text_words(bytes(size), [""])


INTEGER_DTYPES = ["int8", "int16", "int64", "uint8", "uint64", "Int16", "UInt64", "int32[pyarrow]", "uint64[pyarrow]", object]  # fmt: skip
TEXT_DTYPES = [object, "str", "string[python]", "string[pyarrow]", pd.StringDtype("pyarrow")]


class TestEncodedIds:
    def test_blocks_of_integers_and_texts(self):
        """A change of these would give every row of a user a second release."""
        integers = [-2, 5, 2**63]
        found = words(pd.Series(integers, dtype=object))
        assert found == [word_of_integer(KEY, integer) for integer in integers]
        assert found[1] == 0x27A9C7357DC24F21
        found = words(pd.Series(["", "5", "zoë", "\U0001f600"]))
        expected = [b"", b"5", b"zo\xc3\xab", b"\xf0\x9f\x98\x80"]
        assert found == [word_of_text(KEY, text) for text in expected]
        assert found[1] == 0x1121DB65F483C0E8

    @pytest.mark.parametrize("dtype", INTEGER_DTYPES, ids=str)
    @pytest.mark.parametrize("categorical", [False, True])
    def test_integers_are_the_same_whatever_their_dtype(self, dtype, categorical):
        values = [0, 5, 127, 1]
        ids = pd.Series(values, dtype=dtype)
        assert words(ids.astype("category") if categorical else ids) == words(pd.Series(values))
        assert words(pd.Series(np.array(values, dtype=">i4"))) == words(pd.Series(values))

    def test_the_largest_and_the_smallest_integers(self):
        values = [-(2**63), -1, 0, 2**63 - 1, 2**63, 2**64 - 1]
        expected = words(pd.Series(values, dtype=object))
        assert len(set(expected)) == len(values)
        assert words(pd.Series(values[:4])) == expected[:4]
        assert words(pd.Series(values[2:], dtype="uint64")) == expected[2:]
        assert words(pd.Series(values[2:], dtype="UInt64")) == expected[2:]
        mixed = [np.int8(-1), np.uint64(2**63), 2**64 - 1, np.int64(0)]
        assert words(pd.Series(mixed, dtype=object)) == [expected[i] for i in (1, 4, 5, 2)]

    @pytest.mark.parametrize("dtype", TEXT_DTYPES, ids=str)
    @pytest.mark.parametrize("categorical", [False, True])
    def test_texts_are_the_same_whatever_their_dtype(self, dtype, categorical):
        values = ["a", "zoë", "", "\U0001f600 b", "x" * 1000]
        ids = pd.Series(values, dtype=dtype)
        expected = [word_of_text(KEY, value.encode()) for value in values]
        assert words(ids.astype("category") if categorical else ids) == expected

    def test_arrows_own_texts(self):
        pa = pytest.importorskip("pyarrow")
        for type_ in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())):
            ids = pd.Series(["a", "zoë"]).astype(pd.ArrowDtype(type_))
            assert words(ids) == words(pd.Series(["a", "zoë"]))

    def test_arrows_texts_in_chunks_and_slices(self):
        pa = pytest.importorskip("pyarrow")
        values = ["", "zoë", "b" * 40, "c", "", "d" * 16]
        for type_ in (pa.string(), pa.large_string()):
            whole = pa.array([*values, "e"], type_)
            for chunks in ([whole[:2], whole[2:2], whole[2:6]], [whole[:6]], [whole[:0]]):
                column = pa.chunked_array(chunks, type_)
                ids = pd.Series(column.to_pandas(types_mapper=pd.ArrowDtype))
                assert words(ids) == words(pd.Series(column.to_pylist(), dtype=object))

    def test_different_ids_have_different_words(self):
        texts = ["", "\0", "\0\0", "a", "a\0", "a\x03", "\x03a", "5", "05", " 5", "é", "e\u0301"]
        texts += [
            "\ud83d",
            "\ude00",
            "\ud83d\ude00",
            "\U0001f600",
            *("a" * n for n in range(2, 300)),
        ]
        integers = [5, -5, 0, 256, 5 << 8, -1, 2**64 - 1, 97]
        all_of_them = words(pd.Series(texts, dtype=object))
        all_of_them += words(pd.Series(integers, dtype=object))
        assert len(set(all_of_them)) == len(texts) + len(integers)

    def test_where_one_text_ends_does_not_matter_to_the_next(self):
        one, other = words(pd.Series(["ab", "c"])), words(pd.Series(["a", "bc"]))
        assert not set(one) & set(other)
        assert words(pd.Series(["é", "c"]))[1] == one[1]

    def test_only_categories_in_use_matter(self):
        ids = pd.Series(pd.Categorical(["a", "b"], categories=["b", "x" * 2000, "a"]))
        assert words(ids) == words(pd.Series(["a", "b"]))
        ids = pd.Series(pd.Categorical([1, 2], categories=["b", 2, 1]))
        assert words(ids) == words(pd.Series([1, 2]))

    def test_another_key_gives_other_words(self):
        ids = pd.Series(range(1000))
        assert not set(words(ids)) & set(words(ids, bytes(32)))

    def test_the_words_are_balanced(self):
        """Each bit is set in about half of the words of the first ids."""
        found = np.array(words(pd.Series(range(10_000))), dtype="<u8")
        shares = np.unpackbits(found.view(np.uint8).reshape(-1, 8), axis=1).mean(axis=0)
        assert np.abs(shares - 0.5).max() < 5 * 0.5 / np.sqrt(10_000)


MARK = 48151.623  # an id that no message may show
WRONG = {
    "bool": ([True, False], "bool", "dtype bool"),
    "nullable bool": ([True, False], "boolean", "dtype boolean"),
    "floats": ([MARK, 1.0], "float64", 'dtype float64: .*astype\\("int64"\\)'),
    "missing integers": ([1, None], None, "dtype float64"),
    "times": (["2020-01-01"], "datetime64[ns]", "dtype datetime64"),
    "periods": (["2020-01"], "period[M]", "dtype period"),
    "bytes": ([b"48151.623"], object, "dtype object with values of type bytes"),
    "mixed": (["48151.623", 5], object, "type int and str"),
    "int and bool": ([5, True], object, "type bool and int"),
    "decimals": ([decimal.Decimal("48151.623")], object, "type Decimal"),
    "uuids": ([uuid.uuid4()], object, "type UUID"),
    "tuples": ([("48151.623", 1)], object, "type tuple"),
    "float objects": ([MARK, 1], object, "type float and int"),
    "float categories": ([MARK, 1.0], "category", "dtype float64"),
}


class TestSurelyDiffer:
    @pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "Int16", "int32[pyarrow]"])  # fmt: skip
    def test_against_a_naive_one(self, dtype):
        rng = np.random.default_rng(3)
        for low, high, n in ((0, 9, 5), (0, 100, 4), (0, 100, 60), (3, 4, 1), (0, 9, 0)):
            for _ in range(20):
                values = rng.integers(low, high, n).tolist()
                if encode_ids(pd.Series(values, dtype=dtype)).surely_differ():
                    assert len(set(values)) == n
        assert encode_ids(pd.Series([5, 3, 4], dtype=dtype)).surely_differ()
        assert not encode_ids(pd.Series([5, 3, 5], dtype=dtype)).surely_differ()

    def test_numbers_far_apart(self):
        far = [-(2**63), 2**63 - 1, 0]
        assert encode_ids(pd.Series(sorted(far))).surely_differ()
        assert not encode_ids(pd.Series(far)).surely_differ()  # unknown: their words are compared
        assert not encode_ids(pd.Series([2**64 - 1, 0, 1], dtype="uint64")).surely_differ()
        assert encode_ids(pd.Series([2**64 - 1, 2**64 - 3], dtype="uint64")).surely_differ()

    def test_texts_are_never_looked_at(self):
        assert not encode_ids(pd.Series(["a", "b"])).surely_differ()


class TestWrongIds:
    @pytest.mark.parametrize(("values", "dtype", "match"), WRONG.values(), ids=WRONG.keys())
    def test_other_types(self, values, dtype, match):
        with pytest.raises(TypeError, match=f"^record_ids must be .*{match}") as caught:
            encode_ids(pd.Series(values, dtype=dtype))
        assert ".astype(str)" in str(caught.value)
        assert "48151" not in str(caught.value)

    def test_mixed_in_different_chunks(self):
        with pytest.raises(TypeError, match="type int and str"):
            encode_ids(pd.Series([*range(20_000), *map(str, range(20_000))], dtype=object))

    @pytest.mark.parametrize("dtype", ["Int64", "string[python]", "str", object, "category", "int64[pyarrow]"])  # fmt: skip
    def test_missing(self, dtype):
        values = [None, 1, 2, None] if "nt" in str(dtype) else [None, "a", "b", None]
        with pytest.raises(ValueError, match="record_ids must not have missing.* 2 missing of 4"):
            encode_ids(pd.Series(values, dtype=dtype))

    def test_nothing_but_missing(self):
        with pytest.raises(ValueError, match="Got 2 missing of 2"):
            encode_ids(pd.Series([None, np.nan], dtype=object))

    def test_too_long(self):
        ids = pd.Series(["ab", "x" * 1001])
        for dtype in (object, "str", "string[python]", "category"):
            with pytest.raises(
                ValueError, match="1,000 characters.*1,001.*hash such ids"
            ) as caught:
                words(ids.astype(dtype))
            assert str(caught.value).startswith("record_ids must")
            assert "xx" not in str(caught.value)

    def test_a_thousand_characters_may_be_more_bytes(self):
        ids = pd.Series(["ä" * 1000, "b"])
        assert words(ids) == words(ids.astype(object))

    @pytest.mark.parametrize("value", [2**64, -(2**63) - 1, 10**30])
    def test_integers_beyond_64_bits(self, value):
        with pytest.raises(ValueError, match=r"2\^64 - 1 .*astype\(str\)") as caught:
            encode_ids(pd.Series([1, value], dtype=object))
        assert str(value) not in str(caught.value)


class TestKeys:
    def test_keys_differ(self):
        long = bytes(range(100))
        hashed = hashlib.blake2b(long, person=b"skprivacy").digest()
        secret_keys = [bytes(16), bytes(17), bytes(64), bytes(65), KEY, long, long[:64], hashed]
        keys = {
            derive_key(secret, fingerprint, lane)
            for secret in secret_keys
            for fingerprint in (b"", b"\0", bytes(8), b"a", b"b" * 100)
            for lane in (0, 1, 2, 2**40)
        }
        assert len(keys) == len(secret_keys) * 5 * 4
        assert {len(key) for key in keys} == {32}

    def test_a_key_never_changes(self):
        """Or every row of a user would be released a second time."""
        assert derive_key(bytes(32), b"mechanism", 1) == bytes.fromhex(
            "835270816fc36abae4c893598b67051a148c2ed79a28c393f6fa186bf2a09676"
        )
        assert derive_key(bytes(99), b"mechanism", 1) == bytes.fromhex(
            "03ed5343ce41afc4a319d6c03b89e57f2add8aad640a59be6744b2d59ff4ff7e"
        )

    @pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
    def test_any_kind_of_bytes(self, kind):
        secret = secrets.token_bytes(32)
        assert check_secret_key("transform", kind(secret)) == secret

    @pytest.mark.parametrize("secret", ["hunter2" * 4, 123456789, None, list(b"hunter2"), np.zeros(32)])  # fmt: skip
    def test_what_is_not_bytes_is_not_shown(self, secret):
        match = r"'secret_key' parameter of transform must be bytes.*token_bytes\(32\).*safe place"
        with pytest.raises(TypeError, match=match) as caught:
            check_secret_key("transform", secret)
        for shown in ("hunter2", "123456789", "104"):
            assert shown not in str(caught.value)

    def test_short_keys(self):
        with pytest.raises(ValueError, match="at least 16 bytes.* Got 7 bytes") as caught:
            check_secret_key("transform", b"hunter2")
        assert "hunter2" not in str(caught.value)
        assert check_secret_key("transform", b"hunter2" * 3) == b"hunter2" * 3
