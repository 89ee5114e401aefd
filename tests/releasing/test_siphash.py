"""The keyed hash of ids: its specification, and which ids are the same."""

import decimal
import hashlib
import secrets
import uuid

import numpy as np
import pandas as pd
import pytest

from skprivacy.releasing.keyed import check_secret_key, derive_key
from skprivacy.releasing.record_ids import Messages, encode_ids, siphash

KEY = bytes(range(16))
MASK = 2**64 - 1

# SipHash-2-4 of 00, 01, ..., n - 1 with the key 00, ..., 0f: some of the 64 reference values, and
# a digest of all of them one after the other.
REFERENCE = {0: 0x726FDB47DD0E0E31, 1: 0x74F839C593DC67FD, 7: 0xAB0200F58B01D137, 8: 0x93F5F5799A932462}  # fmt: skip
REFERENCE |= {15: 0xA129CA6149BE45E5, 63: 0x958A324CEB064572}
DIGEST = "0226a91002af9775a791b3ec5a48e643f8848d2d5774dea9be3438d5786bb58e"


def naive_siphash(key, message):
    """SipHash-2-4 of one message, as the paper has it."""

    def rotated(word, n_bits):
        return (word << n_bits | word >> (64 - n_bits)) & MASK

    def sip_round():
        v[0] = (v[0] + v[1]) & MASK
        v[2] = (v[2] + v[3]) & MASK
        v[1] = rotated(v[1], 13) ^ v[0]
        v[3] = rotated(v[3], 16) ^ v[2]
        v[0] = rotated(v[0], 32)
        v[2] = (v[2] + v[1]) & MASK
        v[0] = (v[0] + v[3]) & MASK
        v[1] = rotated(v[1], 17) ^ v[2]
        v[3] = rotated(v[3], 21) ^ v[0]
        v[2] = rotated(v[2], 32)

    k0, k1 = (int.from_bytes(key[i : i + 8], "little") for i in (0, 8))
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D]
    v += [k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]
    padded = message + bytes(7 - len(message) % 8) + bytes([len(message) % 256])
    for i in range(0, len(padded), 8):
        word = int.from_bytes(padded[i : i + 8], "little")
        v[3] ^= word
        sip_round()
        sip_round()
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(4):
        sip_round()
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def hashes(ids, key=KEY):
    return siphash(key, encode_ids(ids)).tolist()


class TestSiphash:
    def test_the_reference_vectors(self):
        found = siphash(KEY, Messages.from_bytes([bytes(range(n)) for n in range(64)]))
        assert {n: int(found[n]) for n in REFERENCE} == REFERENCE
        assert hashlib.sha256(found.astype("<u8").tobytes()).hexdigest() == DIGEST

    def test_against_a_naive_one(self):
        rng = np.random.default_rng(0)
        lengths = [*range(71), 255, 256, 257, 4001, *rng.integers(0, 71, size=300)]
        rng.shuffle(lengths)
        messages = [rng.bytes(n) for n in lengths]
        key = rng.bytes(16)
        expected = [naive_siphash(key, message) for message in messages]
        assert siphash(key, Messages.from_bytes(messages)).tolist() == expected

    def test_more_messages_than_are_hashed_at_once(self):
        ids = pd.Series(np.arange(40_000) ** 3)
        all_of_them = hashes(ids)
        assert len(set(all_of_them)) == len(ids)
        some = [0, 16_383, 16_384, 32_768, 39_999]
        assert hashes(ids.iloc[some]) == [all_of_them[i] for i in some]
        texts = ids.astype(str)
        all_of_them = hashes(texts)
        assert hashes(texts.iloc[some]) == [all_of_them[i] for i in some]

    def test_a_slice_hashes_as_it_does_among_all(self):
        for ids in (pd.Series(range(10)), pd.Series(["a", "bcd", "", "ä" * 20])):
            encoded = encode_ids(ids)
            expected = siphash(KEY, encoded)[1:3].tolist()
            assert siphash(KEY, encoded[1:3]).tolist() == expected
            assert siphash(KEY, encoded[0:4][1:3]).tolist() == expected

    def test_nothing_to_hash(self):
        assert hashes(pd.Series([], dtype="int64")) == []
        assert hashes(pd.Series([], dtype=object)) == []
        assert siphash(KEY, Messages.from_bytes([])).tolist() == []

    @pytest.mark.parametrize("size", [0, 15, 17, 32])
    def test_a_key_has_16_bytes(self, size):
        with pytest.raises(ValueError, match=f"16 bytes. Got {size}"):
            siphash(bytes(size), Messages.from_bytes([b""]))


INTEGER_DTYPES = ["int8", "int16", "int64", "uint8", "uint64", "Int16", "UInt64", "int32[pyarrow]", "uint64[pyarrow]", object]  # fmt: skip
TEXT_DTYPES = [object, "str", "string[python]", "string[pyarrow]", pd.StringDtype("pyarrow")]


class TestEncodedIds:
    def test_bytes_of_an_integer_and_of_a_text(self):
        """A change of these would give every row of a user a second release."""
        expected = [b"\x01" + bytes([254]) + b"\xff" * 7, b"\x01\x05" + bytes(7), b"\x02" + bytes(7) + b"\x80"]  # fmt: skip
        found = hashes(pd.Series([-2, 5, 2**63], dtype=object))
        assert found == [naive_siphash(KEY, message) for message in expected]
        found = hashes(pd.Series(["", "5", "zoë", "\U0001f600"]))
        expected = [b"\x03", b"\x035", b"\x03zo\xc3\xab", b"\x03\xf0\x9f\x98\x80"]
        assert found == [naive_siphash(KEY, message) for message in expected]

    @pytest.mark.parametrize("dtype", INTEGER_DTYPES, ids=str)
    @pytest.mark.parametrize("categorical", [False, True])
    def test_integers_are_the_same_whatever_their_dtype(self, dtype, categorical):
        values = [0, 5, 127, 1]
        ids = pd.Series(values, dtype=dtype)
        assert hashes(ids.astype("category") if categorical else ids) == hashes(pd.Series(values))
        assert hashes(pd.Series(np.array(values, dtype=">i4"))) == hashes(pd.Series(values))

    def test_the_largest_and_the_smallest_integers(self):
        values = [-(2**63), -1, 0, 2**63 - 1, 2**63, 2**64 - 1]
        expected = hashes(pd.Series(values, dtype=object))
        assert len(set(expected)) == len(values)
        assert hashes(pd.Series(values[:4])) == expected[:4]
        assert hashes(pd.Series(values[2:], dtype="uint64")) == expected[2:]
        assert hashes(pd.Series(values[2:], dtype="UInt64")) == expected[2:]
        mixed = [np.int8(-1), np.uint64(2**63), 2**64 - 1, np.int64(0)]
        assert hashes(pd.Series(mixed, dtype=object)) == [expected[i] for i in (1, 4, 5, 2)]

    @pytest.mark.parametrize("dtype", TEXT_DTYPES, ids=str)
    @pytest.mark.parametrize("categorical", [False, True])
    def test_texts_are_the_same_whatever_their_dtype(self, dtype, categorical):
        values = ["a", "zoë", "", "\U0001f600 b", "x" * 1000]
        ids = pd.Series(values, dtype=dtype)
        expected = [naive_siphash(KEY, b"\x03" + value.encode()) for value in values]
        assert hashes(ids.astype("category") if categorical else ids) == expected

    def test_arrows_own_texts(self):
        pa = pytest.importorskip("pyarrow")
        for type_ in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())):
            ids = pd.Series(["a", "zoë"]).astype(pd.ArrowDtype(type_))
            assert hashes(ids) == hashes(pd.Series(["a", "zoë"]))

    def test_different_ids_have_different_messages(self):
        texts = ["", "\0", "\0\0", "a", "a\0", "a\x03", "\x03a", "5", "05", " 5", "é", "e\u0301"]
        texts += [
            "\ud83d",
            "\ude00",
            "\ud83d\ude00",
            "\U0001f600",
            *("a" * n for n in range(2, 300)),
        ]
        integers = [5, -5, 0, 256, 5 << 8, -1, 2**64 - 1, 97]
        all_of_them = hashes(pd.Series(texts, dtype=object))
        all_of_them += hashes(pd.Series(integers, dtype=object))
        assert len(set(all_of_them)) == len(texts) + len(integers)

    def test_where_one_text_ends_does_not_matter_to_the_next(self):
        one, other = hashes(pd.Series(["ab", "c"])), hashes(pd.Series(["a", "bc"]))
        assert not set(one) & set(other)
        assert hashes(pd.Series(["é", "c"]))[1] == one[1]

    def test_only_categories_in_use_matter(self):
        ids = pd.Series(pd.Categorical(["a", "b"], categories=["b", "x" * 2000, "a"]))
        assert hashes(ids) == hashes(pd.Series(["a", "b"]))
        ids = pd.Series(pd.Categorical([1, 2], categories=["b", 2, 1]))
        assert hashes(ids) == hashes(pd.Series([1, 2]))

    def test_another_key_gives_other_hashes(self):
        ids = pd.Series(range(1000))
        assert not set(hashes(ids)) & set(hashes(ids, bytes(16)))

    def test_the_hashes_are_balanced(self):
        """Each bit is set in about half of the hashes of the first ids."""
        words = siphash(KEY, encode_ids(pd.Series(range(10_000)))).astype("<u8")
        shares = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1).mean(axis=0)
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
        for dtype in (object, "string[python]", "category"):
            with pytest.raises(
                ValueError, match="1,000 characters.*1,001.*hash such ids"
            ) as caught:
                encode_ids(ids.astype(dtype))
            assert str(caught.value).startswith("record_ids must")
            assert "xx" not in str(caught.value)

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
        assert {len(key) for key in keys} == {16}

    def test_a_key_never_changes(self):
        """Or every row of a user would be released a second time."""
        assert derive_key(bytes(32), b"mechanism", 1) == bytes.fromhex(
            "fd6f043e96dfb53bb40281ea8d7af8fe"
        )
        assert derive_key(bytes(99), b"mechanism", 1) == bytes.fromhex(
            "bd5768b16f9c038beb6abfedb20cd36e"
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
