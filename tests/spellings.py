"""Tables whose values are written in two ways, and all that can be read of what is released.

Where two sources were joined, how a value is written may tell which of them a row is from. `tied`
says which of two ways each row is written in; nothing that comes out may depend on it.
"""

import datetime
import enum
import pickle
import warnings
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from skprivacy import PrivacyFunnelTransformer

N_VALUES = 4  # of each column, the last of which is missing


def zone(name):
    return ZoneInfo(name)


def payload(number):
    """Return a NaN whose spare bits hold a number."""
    return np.array([0x7FF8000000000000 + number], dtype=np.uint64).view(float)[0].item()


MISSING = [None, np.nan, payload(7), pd.NaT, pd.NA, Decimal("NaN"), np.datetime64("NaT")]


def whole_numbers(rng):
    v = int(rng.integers(1, 10**6))
    return [v, float(v), Decimal(v), Decimal(f"{v}.000"), np.int32(v), np.float64(v), Fraction(v)]


def numbers(rng):
    v = int(rng.integers(10**6)) + 0.5
    return [v, Decimal(str(v)), Decimal(f"{v}0"), np.float32(v), Fraction(v), np.float64(v)]


def zeros(rng):
    return [0.0, -0.0, np.float64(-0.0), np.float32(0.0)]


def floats(rng):
    v = float(rng.integers(10**6)) / 8
    return [v, np.float32(v), np.float64(v)]


def decimals(rng):
    v = Decimal(int(rng.integers(1, 10**9))).scaleb(-int(rng.integers(1, 5)))
    return [v, v * Decimal("1.00"), v.normalize(), Decimal(f"{v}000")]


def moments(rng):
    at = pd.Timestamp(int(rng.integers(2 * 10**12)), unit="ms")
    units = [at.as_unit(unit) for unit in ("ms", "us", "ns")]
    return [at.to_pydatetime(), *units, at.to_datetime64(), np.datetime64(at, "ns")]


def instants(rng):
    at = pd.Timestamp(int(rng.integers(2 * 10**15)), unit="us", tz="UTC")
    zones = [at.tz_convert(name) for name in ("Europe/Berlin", "Asia/Tokyo")]
    offset = datetime.timezone(datetime.timedelta(hours=int(rng.integers(-9, 9))))
    own = [at.to_pydatetime().astimezone(z) for z in (offset, zone("America/New_York"))]
    return [at, *zones, *own, zones[0].as_unit("ns")]


def durations(rng):
    v = pd.Timedelta(int(rng.integers(10**12)), unit="ms")
    return [v, v.to_pytimedelta(), v.to_timedelta64(), v.as_unit("ns")]


def texts(rng):
    v = f"a{rng.integers(10**9)}"
    return [v, np.str_(v), enum.StrEnum("Names", {"X": v}).X]


def pairs(rng):
    v = int(rng.integers(10**6))
    return [(v, "a"), (float(v), np.str_("a")), (Decimal(v), "a")]


FAMILIES = {
    family.__name__: family
    for family in [
        *(whole_numbers, numbers, zeros, floats, decimals),
        *(moments, instants, durations, texts, pairs),
    ]
}


def two_spellings(rng, family):
    """Return two lists of the same values, written in two ways each."""
    first, second = [], []
    known = set()
    while len(first) < N_VALUES - 1:
        ways = FAMILIES["floats" if family == "zeros" and first else family](rng)
        if ways[0] not in known:
            known.add(ways[0])
            a, b = rng.choice(len(ways), 2, replace=False)
            first.append(ways[a]), second.append(ways[b])
    a, b = rng.choice(len(MISSING), 2, replace=False)
    return [*first, MISSING[a]], [*second, MISSING[b]]


class Drawn:
    """A table of S, X and columns with the same few values, which `tied` rows write differently.

    The values of a row are those of its code, whatever S is.
    """

    def __init__(self, seed, n=60):
        self.rng = np.random.default_rng(seed)
        self.n = n
        self.sex = self.rng.permutation(np.repeat(["f", "m"], [n // 2, n - n // 2]))
        self.band = self.rng.choice(list("abc"), n)
        self.codes = self.rng.integers(N_VALUES, size=n)
        self.codes[:N_VALUES] = range(N_VALUES)
        self.written = {name: two_spellings(self.rng, name) for name in FAMILIES}
        self.hidden = self.rng.integers(10, 10**6, size=2)

    def ties(self):
        """Return three ways to tie how values are written to rows: S itself, its opposite, none."""
        return [self.sex == "f", self.sex == "m", np.zeros(self.n, dtype=bool)]

    def objects(self, tied):
        """Return a frame of pandas with columns of objects."""
        columns = {"sex": self.sex, "band": self.band}
        for name, (first, second) in self.written.items():
            cells = [second[c] if t else first[c] for c, t in zip(self.codes, tied, strict=True)]
            columns[name] = pd.Series(cells, dtype=object)
        return pd.DataFrame(columns)

    def arrow(self, tied):
        """Return a table of pyarrow that is a part of a larger one, in chunks."""
        missing = self.codes == N_VALUES - 1
        under = np.where(tied, *self.hidden)  # what lies under missing values
        whole = np.where(missing, under, self.codes)
        real = np.where(self.codes == 0, np.where(tied, -0.0, 0.0), self.codes + 0.5)
        is_nan = missing & tied  # the others are null
        real = np.where(missing, under, real)
        real[is_nan] = payload(int(self.hidden[0]))
        words = np.where(missing, np.where(tied, "Huntington", "well"), np.char.mod("v%d", whole))
        listed = [
            "unused",
            *sorted({*words[~missing]}, reverse=bool(tied[0])),
            "Huntington",
            "well",
        ]
        places = pa.array([listed.index(w) for w in words], pa.int8(), mask=missing)
        columns = {
            "sex": pa.array(self.sex),
            "band": pa.array(self.band),
            "real": hiding(pa.array(real), missing & ~is_nan),
            "small": hiding(pa.array(real.astype(np.float32)), missing & ~is_nan),
            "count": hiding(pa.array(whole), missing),
            "word": hiding(pa.array(words.tolist()), missing),
            "when": hiding(pa.array(whole * 10**9).cast(pa.timestamp("ns", "UTC")), missing),
            "level": pa.DictionaryArray.from_arrays(places, listed),
        }
        table = pa.table(columns)
        inner = pa.concat_tables([table, table, table]).combine_chunks().slice(self.n, self.n)
        if not tied.any():
            return inner
        cut = 1 + int(tied.argmax())
        return pa.concat_tables([inner.slice(0, cut), inner.slice(cut)])


def hiding(array, missing):
    """Return an array with missing values whose places still hold what was there."""
    valid = pa.py_buffer(np.packbits(~missing, bitorder="little").tobytes())
    return pa.Array.from_buffers(array.type, len(array), [valid, *array.buffers()[1:]])


def masked(table):
    """Return a table of pyarrow as one of pandas, with masks and what lies under them."""
    frame = table.select(["sex", "band"]).to_pandas()
    for name, array in (("real", pd.arrays.FloatingArray), ("count", pd.arrays.IntegerArray)):
        column = table[name].combine_chunks()
        column = pa.concat_arrays(column.chunks) if hasattr(column, "chunks") else column
        values = np.frombuffer(column.buffers()[1], np.int64 if name == "count" else float)
        values = values[column.offset : column.offset + len(column)].copy()
        frame[name] = array(values, column.is_null().to_numpy(zero_copy_only=False))
    codes = table["level"].combine_chunks()
    codes = pa.concat_arrays(codes.chunks) if hasattr(codes, "chunks") else codes
    frame["level"] = codes.to_pandas()
    frame["plain"] = frame["real"].to_numpy(dtype=float, na_value=np.nan)
    return frame


def copied(names, mode):
    """Return a transformer that publishes some columns: "beside", or by "remainder"."""
    options = {"sensitive": "sex", "columns": ["band"], mode: list(names), "random_state": 0}
    return PrivacyFunnelTransformer(2.0, **options)


def quietly(call, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*arguments, **options)


def all_of(released):
    """Return all that a released table holds, as bytes: also what is not shown."""
    if isinstance(released, pl.DataFrame):
        chunks = [column.n_chunks() for column in released]
        return pickle.dumps((str(released.schema), chunks, all_of(released.to_arrow())))
    if isinstance(released, pa.Table):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, released.schema) as stream:
            stream.write_table(released)
        parts = [chunk for column in released.columns for chunk in column.chunks]
        buffers = [None if b is None else b.to_pybytes() for part in parts for b in part.buffers()]
        layout = [(part.offset, len(part)) for part in parts]
        return pickle.dumps((sink.getvalue().to_pybytes(), buffers, layout))
    if isinstance(released, pd.DataFrame):
        index = released.index
        levels = [index, *getattr(index, "levels", ()), *getattr(index, "codes", ())]
        return b"".join(map(all_of, [*(column for _, column in released.items()), *levels]))
    if isinstance(released, pd.Series | pd.Index):
        if released.dtype != object:
            return pickle.dumps(released.array)
        return repr([cell(value) for value in released]).encode()
    return pickle.dumps(released)


def memory_of(released):
    """Return the most bytes that a column of pandas, or an array, keeps in memory."""
    columns = [released] if isinstance(released, np.ndarray) else map(np.asarray, [c.array for _, c in released.items()])  # fmt: skip
    sizes = []
    for array in columns:
        while getattr(array, "base", None) is not None:
            array = array.base
        sizes.append(getattr(array, "nbytes", 0))
    return max(sizes)


def leakage_of(traces, sex):
    """Return the largest leakage of what was seen of a row, by kl, in these rows."""
    of_sex = Counter(sex)
    found = {}
    for trace, s in zip(traces, sex, strict=True):
        found.setdefault(trace, Counter())[s] += 1
    return max(
        sum(n / c.total() * np.log(n / c.total() * len(sex) / of_sex[s]) for s, n in c.items())
        for c in found.values()
    )


def cell(value):
    """Return all that can be told of a value."""
    parts = tuple(map(cell, value)) if isinstance(value, tuple) else ()
    about = [getattr(value, name, None) for name in ("tzinfo", "unit", "fold")]
    bits = np.float64(value).tobytes() if isinstance(value, float) else b""
    return f"{type(value)} {value!r} {about} {parts}", bits


def rows_of(released, names):
    """Yield all that can be told of each row of some columns."""
    columns = [
        released[name].to_pylist() if isinstance(released, pa.Table) else list(released[name])
        for name in names
    ]
    return [tuple(map(cell, row)) for row in zip(*columns, strict=True)]


def check(drawn, released, names):
    """Check that rows tell of S what their values tell, and no more."""
    traces = rows_of(released, names)
    assert len(set(traces)) == len(set(drawn.codes))
    told = leakage_of(drawn.codes.tolist(), drawn.sex)
    assert leakage_of(traces, drawn.sex) <= told + 1e-12
