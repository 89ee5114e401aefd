"""Frames of Spark, on a real one with two threads."""

import os
import shutil
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine_checks import KEY, EngineChecks, plain, rows_to_release
from example_tables import funnel
from spellings import Drawn, all_of, check, copied, quietly

from skprivacy.releasing.keyed import noise_source
from skprivacy.transformer import release_by

if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
    pytest.skip("Spark needs Java", allow_module_level=True)

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from skprivacy.engines.spark_frames import Rewriting, SparkTable

# Of Spark itself, with a pandas that is newer than it.
pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def spark():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        # What runs for a minute is not worth compiling with care.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    session = SparkSession.builder.master("local[2]").config(map=options).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


class TestSpark(EngineChecks):
    @pytest.fixture(autouse=True)
    def _session(self, spark, tmp_path):
        self.spark, self.folder = spark, tmp_path

    def lazily(self, rows, n):
        """Return the rows in their order, in partitions of the same size."""
        table = pa.Table.from_pandas(rows.reset_index(drop=True), preserve_index=False)
        size = -(-len(rows) // n) or 1
        parts = [table.slice(i, size) for i in range(0, max(len(rows), 1), size)]
        if len(rows) >= 100_000:  # in any order, which files are read in fast
            for i, part in enumerate(parts):
                pq.write_table(part, self.folder / f"{i}.parquet")
            return self.spark.read.parquet(str(self.folder))
        first, *others = (self.spark.createDataFrame(part).coalesce(1) for part in parts)
        for other in others:
            first = first.union(other)
        return first

    def collected(self, lazy):
        columns = lazy.toArrow().to_pydict()
        return pd.DataFrame({n: pd.Series(values, dtype=object) for n, values in columns.items()})

    def only(self, lazy, name, value):
        return lazy.filter(F.col(name) == value)

    def test_a_sample_is_a_share_of_the_rows_without_a_pattern(self):
        table = SparkTable(self.lazily(pd.DataFrame({"a": range(20_000)}), 4))

        def sampled(highest):
            return table.sampled(["a"], np.uint64(highest)).column(0).to_numpy()

        assert sorted(sampled(2**64 - 1)) == list(range(20_000))
        some = sampled(2**62)
        assert sorted(some) == sorted(sampled(2**62))
        assert set(sampled(2**61)) < set(some)
        for each, n in ((some, 20_000), (some[some % 2 == 0], 10_000), (some[some < 5000], 5000)):
            assert abs(len(each) / n - 0.25) < 5 * np.sqrt(0.25 * 0.75 / n)

    def test_a_task_may_compute_several_partitions(self, rows):
        lazy = self.lazily(rows.assign(band=rows["band"].iloc[0]), 4)
        fitted = funnel(random_state=None).fit(rows)
        released = fitted.transform(lazy)
        first = self.collected(released)
        assert plain(self.collected(released.coalesce(1))).equals(plain(first))
        parts = first["band"].to_numpy().reshape(4, -1)
        assert all((parts[i] != parts[j]).mean() > 0.1 for i in range(4) for j in range(i))

    def test_batches_do_not_matter(self, rows):
        released = funnel(columns=["noise", "maybe"], max_categories=4).fit(rows)
        released = released.transform(self.lazily(rows, 2))
        first = self.collected(released)
        name = "spark.sql.execution.arrow.maxRecordsPerBatch"
        self.spark.conf.set(name, "77")
        try:
            assert plain(self.collected(released)).equals(plain(first))
        finally:
            self.spark.conf.unset(name)

    def test_from_files_to_files(self, rows, tmp_path):
        self.lazily(rows, 3).write.parquet(str(tmp_path / "rows"))
        lazy = self.spark.read.parquet(str(tmp_path / "rows"))
        fitted = funnel(columns=["zip", "maybe"]).fit(lazy)
        released = fitted.transform(lazy)
        assert released.dtypes == [("zip", "bigint"), ("maybe", "string")]
        released.write.parquet(str(tmp_path / "released"))
        read = self.spark.read.parquet(str(tmp_path / "released"))
        assert sorted(map(str, read.collect())) == sorted(map(str, released.collect()))

    def test_after_a_shuffle_ids_keep_the_draw(self, rows):
        # Rows may come in another order each time; what an id gets does not change.
        lazy = self.lazily(rows, 3).repartition(5)
        with pytest.warns(match="reveal"):
            fitted = funnel(remainder="passthrough").fit(lazy)
        released = fitted.transform(lazy, record_ids="id", secret_key=KEY)
        here = fitted.transform(rows, record_ids="id", secret_key=KEY)
        there = self.collected(released).sort_values("id")
        assert there["band"].tolist() == here["band"].tolist()

    def test_names_that_spark_would_read_otherwise(self, rows):
        strange = rows.rename(columns={"band": "a.b", "sex": "the `sex`", "zip": "skprivacy row"})
        strange = strange[["the `sex`", "a.b", "skprivacy row"]]
        settings = funnel(columns=["a.b"], sensitive="the `sex`", remainder="passthrough")
        with pytest.warns(match="reveal"):
            fitted = settings.fit(self.lazily(strange, 2))
        released = fitted.transform(self.lazily(strange, 2))
        assert released.columns == ["a.b", "skprivacy row"]
        assert self.collected(released)["skprivacy row"].tolist() == rows["zip"].tolist()

    def test_columns_of_any_type_are_passed_through(self, rows):
        lazy = self.lazily(rows[["sex", "band"]], 2).withColumn(
            "nested", F.struct(F.lit(1).alias("one"), F.array(F.lit("x")).alias("many"))
        )
        lazy = lazy.withColumn("when", F.lit("2024-02-03 04:05:06").cast("timestamp"))
        with pytest.warns(match="reveal"):
            fitted = funnel(remainder="passthrough").fit(lazy)
        released = fitted.transform(lazy)
        assert dict(released.dtypes) == {k: v for k, v in lazy.dtypes if k != "sex"}
        assert released.select("nested", "when").distinct().count() == 1
        assert released.first()["nested"] == lazy.first()["nested"]
        assert released.first()["when"] == lazy.first()["when"]

    @pytest.mark.parametrize("mode", ["beside", "remainder"])
    def test_how_values_are_written_does_not_leave(self, mode):
        drawn, released = Drawn(0), []
        for tied in drawn.ties()[:2]:
            lazy = self.spark.createDataFrame(drawn.arrow(tied).drop_columns("level"))
            lazy = lazy.coalesce(1)
            fitted = quietly(copied(lazy.columns[2:], mode).fit, lazy)
            released.append(fitted.transform(lazy).toArrow())
        assert all_of(released[0]) == all_of(released[1])
        check(drawn, released[0], lazy.columns[2:])

    def test_neither_key_nor_joint_travels(self, rows):
        fitted = funnel().fit(rows)
        secret = b"a secret that is not to be seen!"
        release = release_by(fitted)
        source = noise_source(release, None, "id", secret)
        pickled = CloudPickleSerializer().dumps(Rewriting(["band", "id"], release, source))
        assert b"band" in pickled
        assert secret not in pickled
        assert fitted.p_sx_.tobytes() not in pickled

    def test_what_is_not_a_number_is_missing(self):
        rows = rows_to_release(1000)[["sex", "noise"]]
        rows.loc[::5, "noise"] = np.nan
        lazy = self.lazily(rows, 2)
        assert lazy.filter(F.isnan("noise") | F.col("noise").isNull()).count() == 200
        for bins in (4, {"noise": [-np.inf, 0, np.inf]}):
            settings = {"columns": ["noise"], "n_bins": bins}
            here, there = funnel(**settings).fit(rows), funnel(**settings).fit(lazy)
            assert here.p_sx_.tobytes() == there.p_sx_.tobytes()
