"""What is published beside a release, or copied, is what was judged: no spelling tells more."""

import csv
import io
from contextlib import nullcontext

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spellings import (
    Drawn,
    all_of,
    check,
    copied,
    leakage_of,
    masked,
    memory_of,
    quietly,
    rows_of,
)

from skprivacy import PrivacyFunnelTransformer, PrivacyLeakWarning
from skprivacy.files import fit_file, transform_file

# A small draw; and, in all engines, more than 50,000 values.
DRAWS = pytest.mark.parametrize("n", [60, pytest.param(800, marks=pytest.mark.slow)])
MODES = pytest.mark.parametrize("mode", ["beside", "remainder"])

pytestmark = [
    pytest.mark.filterwarnings("ignore:The inplace keyword"),  # of Dask itself
]


def names_of(table):
    names = table.column_names if isinstance(table, pa.Table) else table.columns
    return [name for name in names if name not in ("sex", "band")]


def at_once(table, mode):
    return quietly(copied(names_of(table), mode).fit, table).transform(table)


def in_batches(table, mode):
    fitted, half = copied(names_of(table), mode), len(table) // 2
    for part in (table[:half], table[half:]):
        quietly(fitted.partial_fit, part)
    # A view of some rows of a frame.
    released = [quietly(fitted.transform, part) for part in (table[:half], table[half:])]
    assert max(map(memory_of, released)) <= 8 * (len(table) - half)
    return pd.concat(released)


def as_array(table, mode):
    names = [list(table).index(name) for name in names_of(table)]
    fitted = PrivacyFunnelTransformer(2.0, sensitive=0, columns=[1], **{mode: names})
    array = table.to_numpy(dtype=object)
    released = quietly(fitted.set_params(random_state=0).fit, array).transform(array)
    return pd.DataFrame(released, columns=["band", *names_of(table)], dtype=object)


def by_dask(table, mode):
    with dask.config.set({"dataframe.convert-string": False}):
        lazy = dd.from_pandas(table, npartitions=2, sort=False)
        fitted = quietly(copied(names_of(table), mode).fit, lazy)
        return quietly(fitted.transform(lazy).compute)


def by_lazy_polars(table, mode):
    fitted = quietly(copied(table.columns[2:], mode).fit, table.lazy())
    return fitted.transform(table.lazy()).collect()


def same(found):
    return found.count(found[0]) == len(found)


def tied_to_s(drawn, make, release, mode):
    """Return what is released of a table in which S decides how values are written.

    All that it holds must be the same if S decides otherwise, or not at all.
    """
    released = [release(make(tied), mode) for tied in drawn.ties()]
    assert same([*map(all_of, released)])
    return released[0]


@DRAWS
@MODES
@pytest.mark.parametrize("release", [at_once, in_batches, as_array, by_dask])
def test_objects(release, mode, n):
    drawn = Drawn(n, n)
    table = drawn.objects(drawn.sex == "f")
    names = names_of(table)
    # As they are, they tell S; except that of a pair of spellings, some look alike.
    assert leakage_of(rows_of(table, names), drawn.sex) > 0.6
    check(drawn, tied_to_s(drawn, drawn.objects, release, mode), names)


TABLES = {
    "pyarrow": (lambda table: table, at_once),
    "polars": (pl.from_arrow, at_once),
    "lazy polars": (pl.from_arrow, by_lazy_polars),
    "pandas with masks": (masked, at_once),
    "pandas with masks, in batches": (masked, in_batches),
    "pandas with Arrow": (lambda table: table.to_pandas(types_mapper=pd.ArrowDtype), at_once),
    "Dask": (masked, by_dask),
}


@DRAWS
@MODES
@pytest.mark.parametrize("kind", TABLES)
def test_typed_columns(kind, mode, n):
    convert, release = TABLES[kind]
    drawn = Drawn(n, n)
    released = tied_to_s(drawn, lambda tied: convert(drawn.arrow(tied)), release, mode)
    check(drawn, released, [name for name in names_of(released) if name != "plain"])
    if isinstance(released, pd.DataFrame) and kind != "Dask":
        assert memory_of(released) <= 8 * drawn.n


@MODES
def test_arrays_of_numbers(mode):
    drawn = Drawn(0)

    def make(tied):
        real = masked(drawn.arrow(tied))["plain"].to_numpy().copy()
        real.view(np.uint64)[np.isnan(real)] += np.where(tied[np.isnan(real)], 1, 0).astype("u8")
        return np.column_stack([drawn.sex == "f", drawn.band == "a", real]).astype(float)

    def release(array, mode):
        fitted = PrivacyFunnelTransformer(2.0, sensitive=0, columns=[1], random_state=0)
        return quietly(fitted.set_params(**{mode: [2]}).fit, array).transform(array)

    released = tied_to_s(drawn, make, release, mode)
    check(drawn, pd.DataFrame(released), [1])
    assert memory_of(released) == released.nbytes


@DRAWS
@MODES
def test_parquet(tmp_path, mode, n):
    drawn = Drawn(n, n)

    def release(table, mode):
        pq.write_table(table, tmp_path / "in.parquet", row_group_size=max(1, len(table["sex"].chunk(0))))  # fmt: skip
        fitted = quietly(fit_file, copied(names_of(table), mode), tmp_path / "in.parquet")
        quietly(transform_file, fitted, tmp_path / "in.parquet", tmp_path / "out.parquet", force=True)  # fmt: skip
        return (tmp_path / "out.parquet").read_bytes()

    tied_to_s(drawn, drawn.arrow, release, mode)
    released = pq.read_table(tmp_path / "out.parquet")
    check(drawn, released, names_of(released))


NUMBERS = ["{0}", "{0}.0", "{0}e0", " {0}", "+{0}", "{0}.000"]
NOTHING = ["", "NA", "nan", '"null"']


def text_of(drawn, tied, spellings):
    """Return a file whose rows are quoted, and end, in two ways; spellings : two of each value."""
    lines = []
    for sex, band, code, is_tied in zip(drawn.sex, drawn.band, drawn.codes, tied, strict=True):
        quote, end = ('"', "\r\n") if is_tied else ("", "\n")
        spelled = spellings[int(is_tied)][code]
        fields = [sex, f"{quote}{band}{quote}", f"{quote}w{code}{quote}", spelled]
        lines.append(",".join(fields) + end)
    return "sex,band,word,count\n" + "".join(lines)


def from_text(folder, text, mode):
    (folder / "in.csv").write_bytes(text.encode())
    fitted = quietly(fit_file, copied(["word", "count"], mode), folder / "in.csv")
    quietly(transform_file, fitted, folder / "in.csv", folder / "out.csv", force=True)
    return (folder / "out.csv").read_bytes()


@DRAWS
def test_text_files_beside_a_release(tmp_path, n):
    drawn = Drawn(n, n)
    ways = [drawn.rng.permutation(way) for way in (NUMBERS, NUMBERS, NUMBERS, NOTHING)]
    spellings = [[way[i].format(code + 1) for code, way in enumerate(ways)] for i in (0, 1)]

    def make(tied):
        return text_of(drawn, tied, spellings)

    released = tied_to_s(drawn, make, lambda t, mode: from_text(tmp_path, t, mode), "beside")
    rows = [row.split(",", 1)[1] for row in released.decode().split("\n")[1:-1]]
    told = leakage_of(drawn.codes.tolist(), drawn.sex)
    assert leakage_of(rows, drawn.sex) == pytest.approx(told, abs=1e-12)


@DRAWS
def test_text_files_that_are_copied_lose_their_quotes_and_line_ends(tmp_path, n):
    drawn = Drawn(n, n)
    values = ["1", "2.50", '"a,b"', '"say ""x"""']
    own = [values, [v if v[0] == '"' else f'"{v}"' for v in values]]

    def make(tied):
        return text_of(drawn, tied, own)

    released = tied_to_s(drawn, make, lambda t, mode: from_text(tmp_path, t, mode), "remainder")
    rows = list(csv.reader(io.StringIO(released.decode())))[1:]
    assert [row[2] for row in rows] == [["1", "2.50", "a,b", 'say "x"'][c] for c in drawn.codes]


@pytest.mark.parametrize(
    ("count", "is_told"),
    [
        (lambda i, f: f"{i % 3}.0" if f else f"{i % 3}", True),  # few values
        (lambda i, f: f"{i / 8:.4f}" if f else f"{i / 8:.3f}", True),  # one for every row
        (lambda i, f: "NA" if i % 2 and f else "" if i % 2 else f"{i}", True),
        (lambda i, f: f"{i / 8:.3f}", False),
    ],
)
def test_how_numbers_of_a_text_file_are_written_is_judged_if_they_are_copied(
    tmp_path, count, is_told
):
    drawn = Drawn(0, 400)
    lines = [f"{s},{b},{count(i, s == 'f')}" for i, (s, b) in enumerate(zip(drawn.sex, drawn.band, strict=True))]  # fmt: skip
    (tmp_path / "in.csv").write_text("\n".join(["sex,band,count", *lines, ""]))
    settings = copied(["count"], "remainder").set_params(epsilon=0.3)
    told = pytest.warns(PrivacyLeakWarning, match=r"passed through.*: count\.")
    with told if is_told else nullcontext():
        fit_file(settings, tmp_path / "in.csv")


@pytest.mark.parametrize("n_levels", [1, 2])
def test_the_index_of_a_frame(n_levels):
    """It leaves with the rows: 1 and 1.0 are one, and levels list no value of other rows."""
    drawn = Drawn(0)

    def make(tied):
        index = [float(c) if t else c for c, t in zip(drawn.codes.tolist(), tied, strict=True)]
        if n_levels == 2:
            levels = [[*drawn.codes, 10 + tied[0]], [*drawn.band, f"other {tied[0]}"]]
            index = pd.MultiIndex.from_arrays(levels)[:-1]
        table = pd.DataFrame({"sex": drawn.sex, "band": drawn.band})
        return table.set_axis(index if n_levels == 2 else pd.Index(index, dtype=object))

    def release(table, mode):
        fitted = PrivacyFunnelTransformer(2.0, sensitive="sex", random_state=0)
        return quietly(fitted.fit, table).transform(table)

    tied_to_s(drawn, make, release, "")


@MODES
@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "array"])
def test_the_type_of_a_batch_is_that_of_fit(kind, mode):
    """A batch of one row may come from a source that writes 1 or from one that writes 1.0."""
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}.get(kind)
    drawn = Drawn(0)
    rows = {"sex": drawn.sex == "f", "band": drawn.codes % 2, "count": drawn.codes * 1.0}
    options = {"sensitive": "sex", "columns": ["band"], mode: ["count"]}
    batches = [{"sex": [False], "band": [1], "count": [one]} for one in (1, 1.0)]
    if kind == "array":
        options = {"sensitive": 0, "columns": [1], mode: [2]}
        batches = [np.array([[False, 1, 1]]), np.array([[False, 1, 1.0]])]
        rows = np.column_stack([*rows.values()]).astype(float)
    else:
        rows, *batches = map(make, [rows, *batches])
    fitted = quietly(PrivacyFunnelTransformer(2.0, random_state=0, **options).fit, rows)
    for funnel in (fitted, PrivacyFunnelTransformer.from_json(fitted.to_json())):
        assert same([all_of(funnel.set_params(random_state=0).transform(b)) for b in batches])
