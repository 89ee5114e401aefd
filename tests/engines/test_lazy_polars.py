"""Lazy frames of polars."""

import re
import warnings

import pandas as pd
import polars as pl
import pytest
from engine_checks import KEY, EngineChecks, rows_to_release
from example_tables import funnel

from skprivacy.engines import lazy_frames


class TestPolars(EngineChecks):
    def lazily(self, rows, n):
        # Without partitions of its own: row numbers are those of the whole table.
        return pl.from_pandas(rows.reset_index(drop=True)).lazy()

    def collected(self, lazy):
        columns = lazy.collect().to_dict(as_series=False)
        return pd.DataFrame(
            {name: pd.Series(values, dtype=object) for name, values in columns.items()}
        )

    def only(self, lazy, name, value):
        return lazy.filter(pl.col(name) == value)

    def test_engines_agree(self, rows):
        frame = pl.from_pandas(rows_to_release(300_000))
        fitted = funnel(columns=["noise", "maybe"], max_categories=4).fit(frame)
        released = fitted.transform(frame.lazy())
        here = fitted.transform(frame)
        assert released.collect(engine="in-memory").equals(here)
        assert released.collect(engine="streaming").equals(here)
        assert (
            released.slice(123_456, 99).collect(engine="streaming").equals(here[123_456:123_555])
        )
        assert released.select("maybe").tail(7).collect().equals(here.select("maybe").tail(7))

    @pytest.mark.parametrize(
        ("query", "why"),
        [
            (lambda f: f.join(f.select("id", z="band"), on="id"), "INNER JOIN"),
            (lambda f: f.join(f.select("id", z="band"), on="id", how="left"), "LEFT JOIN"),
            (lambda f: f.unique(), "UNIQUE"),
            (lambda f: f.group_by("band", "sex").len(), "AGGREGATE"),
            (lambda f: f.sort("band"), "SORT BY"),
            (lambda f: f.select(pl.all().shuffle()), r"\.shuffle"),
            (lambda f: f.filter(pl.col("id") > 9).with_columns(n=pl.len().over("sex")), None),
            (lambda f: f.join(f.select("id"), on="id", how="semi"), None),
            (lambda f: f.unique(maintain_order=True), None),
            (lambda f: pl.concat([f, f]).head(100), None),
            (lambda f: f.unique().collect().lazy(), None),
        ],
    )
    def test_rows_in_any_order_are_warned_of(self, rows, query, why):
        fitted = funnel().fit(rows)
        lazy = query(pl.from_pandas(rows).lazy())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted.transform(lazy)
        texts = [str(warning.message) for warning in caught]
        assert len(texts) == (why is not None)
        if why is not None:
            assert re.search(
                f"order of rows may differ .* of '{why}'.* record_ids and a secret_key", texts[0]
            )
            assert caught[0].filename == __file__
        if "JOIN" in str(why):  # by ids the order does not matter
            keyed = fitted.transform(lazy.unique("id"), record_ids="id", secret_key=KEY)
            assert keyed.collect().sort("band").equals(keyed.collect().sort("band"))

    def test_from_file_to_file(self, rows, tmp_path):
        rows.to_parquet(tmp_path / "rows.parquet")
        lazy = pl.scan_parquet(tmp_path / "rows.parquet")
        fitted = funnel().fit(lazy)
        released = fitted.transform(lazy)
        released.sink_parquet(tmp_path / "released.parquet")
        again = pl.read_parquet(tmp_path / "released.parquet")
        assert again.equals(released.collect())
        assert again.columns == ["band"]

    def test_kinds_of_columns(self, rows):
        frame = pl.from_pandas(rows).with_columns(
            pl.col("band").cast(pl.Categorical).alias("category"),
            pl.col("band").cast(pl.Enum(list("abcde"))).alias("enum"),
            pl.lit(1).alias("row"),
        )
        for name in ("category", "enum"):
            fitted = funnel(columns=[name]).fit(frame.lazy())
            assert fitted.p_sx_.tobytes() == funnel(columns=[name]).fit(frame).p_sx_.tobytes()
            released = fitted.transform(frame.lazy())
            assert released.collect_schema() == released.collect().schema
            assert released.collect_schema()[name] == frame.schema["enum"]
        passing = funnel(remainder="passthrough", columns=["band"], sensitive=["sex", *rows.columns[2:], "category", "enum"], epsilon=2)  # fmt: skip
        with pytest.warns(match="."):
            fitted = passing.fit(frame)
        assert fitted.transform(frame.lazy()).collect().columns == ["band", "row"]


@pytest.mark.parametrize(("kind", "extra"), [("dask", "dask"), ("pyspark", "spark")])
def test_what_is_not_installed_is_asked_for(monkeypatch, kind, extra):
    def nothing(*arguments):
        raise ModuleNotFoundError(f"No module named {kind!r}")

    monkeypatch.setattr(lazy_frames, "lazy_kind", lambda X: kind)
    monkeypatch.setattr(lazy_frames, "import_module", nothing)
    message = rf"No module named '{kind}'. .* pip install \"\.\[{extra}\]\" in a clone"
    with pytest.raises(ImportError, match=message):
        funnel().fit(pl.LazyFrame({"sex": ["a"], "band": ["b"]}))


def test_other_lazy_frames_are_refused(monkeypatch):
    monkeypatch.setattr(lazy_frames, "lazy_kind", lambda X: "duckdb")
    with pytest.raises(
        TypeError, match="of polars, dask, pyspark, but got one of duckdb: collect"
    ):
        funnel().fit(pl.LazyFrame({"sex": ["a"], "band": ["b"]}))
