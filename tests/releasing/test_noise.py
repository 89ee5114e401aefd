"""Random words by key and row number."""

import pickle

import numpy as np
import pytest

from skprivacy.releasing.sampler import (
    CHUNK,
    POSITION_BITS,
    FreshSource,
    NoiseKey,
    RowNoise,
    fresh_key,
)

SECRET = bytes(range(32))


def naive_chacha20(key, counter, nonce):
    """One block of 64 bytes, written as in RFC 8439."""

    def rotated(value, n):
        return ((value << n) | (value >> (32 - n))) & 0xFFFFFFFF

    def words(data):
        return [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]

    start = words(b"expand 32-byte k") + words(key) + [counter] + words(nonce)
    state = list(start)
    columns = [(i, 4 + i, 8 + i, 12 + i) for i in range(4)]
    diagonals = [(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4) for i in range(4)]
    for a, b, c, d in (columns + diagonals) * 10:
        for x, y, z, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            state[x] = (state[x] + state[y]) & 0xFFFFFFFF
            state[z] = rotated(state[z] ^ state[x], n)
    mixed = [(v + s) & 0xFFFFFFFF for v, s in zip(state, start, strict=True)]
    return b"".join(v.to_bytes(4, "little") for v in mixed)


def test_the_reference_is_the_example_of_the_rfc():
    block = naive_chacha20(SECRET, 1, bytes.fromhex("000000090000004a00000000"))
    assert block[:8].hex() == "10f1e7e4d13b5915"


@pytest.mark.parametrize("lane", [0, 1])
@pytest.mark.parametrize("partition", [0, 5, 2**31 - 1])
@pytest.mark.parametrize("position", [0, 7, 8, 12345, 2**33 - 8])
def test_a_word_is_that_of_chacha20(lane, partition, position):
    numbers = range((partition << POSITION_BITS) + position, (partition + 1) << POSITION_BITS)
    (word,) = RowNoise(NoiseKey(SECRET), numbers).words(lane, 0, 1)
    nonce = lane.to_bytes(4, "little") + partition.to_bytes(8, "little")
    block = naive_chacha20(SECRET, position // 8, nonce)
    at = 8 * (position % 8)
    assert int(word) == int.from_bytes(block[at : at + 8], "little")


def test_a_row_has_its_word_however_it_is_asked_for():
    key = NoiseKey(SECRET)
    whole = np.concatenate([RowNoise(key, range(3 * CHUNK)).words(0, i * CHUNK, (i + 1) * CHUNK) for i in range(3)])  # fmt: skip
    for start, stop in ((0, 1), (5, 5), (3, 9000), (CHUNK - 1, CHUNK + 1), (20_000, 30_000)):
        part = RowNoise(key, range(start, stop))
        assert (part.words(0, 0, stop - start) == whole[start:stop]).all()
    some = np.array([7, 8, 9, 40_000, 3, 4, 4, 20])
    assert (RowNoise(key, some).words(0, 0, 8) == whole[some]).all()
    rows = np.array([3, 5, 40_000])
    uniform = RowNoise(key, range(3 * CHUNK)).uniform(rows, 0)
    assert ((uniform >= 0) & (uniform < 1)).all()
    assert (RowNoise(key, rows).uniform(np.arange(3), 0) == uniform).all()
    assert RowNoise(key, range(0)).uniform(np.arange(0), 0).shape == (0,)


def test_words_for_other_purposes_partitions_and_keys_are_others():
    first = 1 << POSITION_BITS
    streams = [
        RowNoise(NoiseKey(secret), range(start, start + 1000)).words(lane, 0, 1000)
        for secret in (SECRET, bytes(32))
        for start in (0, first, 2 * first)
        for lane in (0, 1)
    ]
    assert len(np.unique(np.concatenate(streams))) == 12 * 1000
    bits = np.unpackbits(np.concatenate(streams).view(np.uint8))
    assert abs(bits.mean() - 0.5) < 5 * 0.5 / np.sqrt(len(bits))


def test_a_partition_is_not_longer_than_its_numbers():
    rows = range((1 << POSITION_BITS) - 3, (1 << POSITION_BITS) + 3)
    with pytest.raises(OverflowError, match="at most 2\\^33 rows"):
        RowNoise(NoiseKey(SECRET), rows).words(0, 0, 6)


def test_keys_come_from_a_seed_or_from_the_system():
    assert fresh_key(3).secret == fresh_key(3).secret != fresh_key(4).secret
    assert fresh_key(None).secret != fresh_key(None).secret
    assert len(fresh_key(None).secret) == 32
    for kind in (np.random.default_rng, np.random.RandomState):
        one, same = kind(0), kind(0)
        first = fresh_key(one).secret
        assert fresh_key(same).secret == first != fresh_key(one).secret  # the state moves on
    # Data drawn from the same seed do not know the noise.
    assert np.random.default_rng(3).bytes(32) != fresh_key(3).secret


def test_a_key_shows_in_no_repr_and_travels():
    source = FreshSource(NoiseKey(SECRET))
    noise = source.of(None, range(10))
    assert all(str(SECRET)[2:-1] not in repr(thing) for thing in (source, noise, noise.key))
    again = pickle.loads(pickle.dumps(source)).of(None, range(10))
    assert (again.words(0, 0, 10) == noise.words(0, 0, 10)).all()
