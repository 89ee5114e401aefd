"""Many rows through Dask and Spark: that all of them arrive, within the budget, in little memory.

Parquet files are made, counted, released and written again by a Dask cluster of two workers with
2 GB each and by Spark with two threads; then the released files are read, every id is looked for,
and the leakage is measured. A fit is compared with a groupby of the engine itself, which counts
the rows of each sex and education. 100 million rows take some minutes and 5 GB on the disk.

    python benchmarks/dask_and_spark.py > docs/measured/dask_and_spark.txt
"""

import argparse
import os
import resource
import shutil
import sys
import tempfile
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rows_per_second import machine

from skprivacy import PrivacyFunnelTransformer, PrivacyLeakWarning
from skprivacy.measures import KL

EPSILON = 0.01
BANDS = np.array(["none", "school", "college", "master", "phd"])
FILE_ROWS = 1_000_000
COUNTED = ["sex", "education"]


def sex_of(ids):
    """Return S, a function of the id that looks random: files without S can be checked."""
    mixed = (ids.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> np.uint64(63)).astype(np.intp)


def write_rows(folder, n_rows):
    """Write files with the columns id, sex and education."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for first in range(0, n_rows, FILE_ROWS):
        ids = np.arange(first, min(n_rows, first + FILE_ROWS))
        sex = sex_of(ids)
        education = rng.binomial(4, 0.3 + 0.3 * sex)
        table = {"id": ids, "sex": np.array(["f", "m"])[sex], "education": BANDS[education]}
        pq.write_table(pa.table(table), folder / f"{first:012d}.parquet")


def funnel():
    """Return the transformer: ids are released beside education."""
    return PrivacyFunnelTransformer(
        EPSILON, sensitive="sex", columns=["education"], remainder="passthrough"
    )


@contextmanager
def dask_engine():
    """Yield functions that read files, write them, count rows, and tell the peak memory."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    def peak(client):
        used = client.run(lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
        return f"{max(used.values()):.2f} GB in a worker, of 2 GB"

    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "2GB"}
    with LocalCluster(**options, dashboard_address=":0") as cluster, Client(cluster) as client:
        yield (
            lambda folder: dd.read_parquet(folder),
            lambda frame, folder: frame.to_parquet(folder, write_index=False),
            lambda frame: frame.groupby(COUNTED).size().compute(),
            lambda: peak(client),
        )


@contextmanager
def spark_engine():
    """Yield the same for Spark with two threads."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    options = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
    }
    session = SparkSession.builder.master("local[2]").config(map=options).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield (
        lambda folder: session.read.parquet(str(folder)),
        lambda frame, folder: frame.write.parquet(str(folder)),
        lambda frame: frame.groupBy(*COUNTED).count().collect(),
        lambda: "a heap of 2 GB",
    )
    session.stop()


def measured(folder, n_rows):
    """Check that every id was released once, and return the table of counts of S and Y."""
    seen = np.zeros(n_rows, dtype=bool)
    counts = np.zeros((2, len(BANDS)), dtype=np.int64)
    n_released = 0
    for path in sorted(Path(folder).glob("*.parquet")):
        table = pq.read_table(path, columns=["id", "education"])
        ids = table["id"].to_numpy()
        bands = table["education"].combine_chunks().dictionary_encode()
        position = {band: i for i, band in enumerate(BANDS)}
        of_code = np.array(
            [position[band] for band in bands.dictionary.to_pylist()], dtype=np.intp
        )
        codes = of_code[bands.indices.to_numpy()]
        np.add.at(counts, (sex_of(ids), codes), 1)
        seen[ids] = True
        n_released += len(ids)
    assert n_released == n_rows, f"{n_released} rows of {n_rows}"
    assert seen.all(), "some ids are missing"
    return counts


def leakage_of(counts):
    """Return the leakage of the worst output, and its standard error by the delta method."""
    joint = counts / counts.sum()
    p_s, p_y = joint.sum(axis=1), joint.sum(axis=0)
    given_y = (joint / p_y).T
    leakage = KL().value(given_y, p_s)
    spread = (given_y * np.log(given_y / p_s) ** 2).sum(axis=1) - leakage**2
    worst = leakage.argmax()
    return leakage[worst], np.sqrt(spread[worst] / (counts.sum() * p_y[worst]))


def run(name, engine, folder, n_rows):
    """Fit, release, check and print one line."""
    with engine() as (read, write, count, peak):
        frame = read(folder / "rows")
        count(frame)  # the first query of an engine is slow
        start = time.perf_counter()
        count(frame)
        own_seconds = time.perf_counter() - start
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            fitted = funnel().fit(frame)
        fit_seconds = time.perf_counter() - start
        assert fitted.n_samples_seen_ == n_rows
        start = time.perf_counter()
        write(fitted.transform(frame), folder / name)
        seconds = time.perf_counter() - start
        memory = peak()
    leakage, error = leakage_of(measured(folder / name, n_rows))
    assert leakage < EPSILON + 5 * error, leakage
    fit_speed, speed = n_rows / fit_seconds / 1e6, n_rows / seconds / 1e6
    print(
        f"{name}\n"
        f"  fit                      {fit_seconds:5.0f} s  {fit_speed:5.2f} M rows/s, "
        f"{fit_seconds / own_seconds:.1f} x its own groupby\n"
        f"  read, release and write  {seconds:5.0f} s  {speed:5.2f} M rows/s\n"
        f"  all {n_rows:,} ids are there once\n"
        f"  leakage of the rows      {leakage:.5f} +- {error:.5f}, with epsilon = {EPSILON}\n"
        f"  memory                   {memory}",
        flush=True,
    )
    shutil.rmtree(folder / name)


def main():
    """Print one line for each engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--engines", nargs="+", default=["dask", "spark"])
    parser.add_argument("--folder", help="where to put the files; a temporary one by default")
    options = parser.parse_args()
    engines = {"dask": dask_engine, "spark": spark_engine}
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        print(f"One run on {machine()}", flush=True)
        write_rows(folder / "rows", options.rows)
        for engine in options.engines:
            run(engine, engines[engine], folder, options.rows)


if __name__ == "__main__":
    main()
