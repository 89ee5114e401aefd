"""What surrounds a release: ids and a key, small tables, Parquet files. Processor time, in ratios.

- A release by ids and a key, in releases without.
- `fit` without its design, and `transform`, of 10,000 rows, in an encoder of scikit-learn.
- `fit_file` and `transform_file` of a Parquet file whose other columns are copied, in a read and
  a write of it by pyarrow.

It takes a minute. For the page in docs:

    python benchmarks/overheads.py > docs/measured/overheads.txt
"""

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from large_file import CHUNK, people
from rows_per_second import EPSILON, LABELS, NO_TIME, drawn_rows, machine, print_table
from sklearn.preprocessing import KBinsDiscretizer, OrdinalEncoder

from skprivacy import PrivacyFunnelTransformer
from skprivacy.files import fit_file, transform_file

SMALL = 10_000


def processor_seconds(function, repeats):
    """Return the least processor time of several runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def kinds_of_ids(n):
    """Yield kinds of ids, and n of each."""
    rng = np.random.default_rng(0)
    numbers = rng.permutation(n)
    yield "integers in order", np.arange(n)
    yield "integers in any order", numbers
    yield "random integers of 63 bits", rng.integers(2**63, size=n)
    texts = pd.Series([f"P{number:08d}" for number in numbers], dtype=str)
    yield "texts of 9 characters", texts
    yield "the same as Python objects", texts.astype(object)
    yield "texts of 36 characters", "00000000-0000-4000-8000-000" + texts


def keyed(n, repeats):
    """Print the times of releases by ids and a key."""
    s, x = drawn_rows(n)
    frame = pd.DataFrame({"x": pd.Categorical.from_codes(x, LABELS)})
    some = slice(100_000)
    fitted = PrivacyFunnelTransformer(EPSILON).fit(frame[some], sensitive_features=s[some])
    plain = processor_seconds(lambda: fitted.transform(frame), repeats)
    rows = [["none", f"{plain / n * 1e9:.1f}", "1.0"]]
    for kind, ids in kinds_of_ids(n):
        options = {"record_ids": ids, "secret_key": bytes(32)}
        took = processor_seconds(lambda o=options: fitted.transform(frame, **o), repeats)
        rows.append([kind, f"{took / n * 1e9:.1f}", f"{took / plain:.1f}"])
    print_table(
        f"Release of {n:,} rows of a categorical column by ids and a key:",
        ["ids", "ns a row", "in releases without"],
        rows,
    )


def small(repeats):
    """Print the times of 10,000 rows."""
    s, x = drawn_rows(SMALL)
    s, categories = pd.Series(s), pd.Series(pd.Categorical.from_codes(x, LABELS))
    floats = np.random.default_rng(0).normal(size=SMALL) + 0.3 * s
    kinds = {"categorical": categories, "string": categories.astype(str)}
    kinds |= {"integer": pd.Series(x.astype(np.int64)), "float": floats}
    rows = []
    for kind, column in kinds.items():
        frame = pd.DataFrame({"s": s, "x": column})
        ours = PrivacyFunnelTransformer(EPSILON, sensitive="s", random_state=0).fit(frame)
        quick = PrivacyFunnelTransformer(EPSILON, sensitive="s", solver=NO_TIME)
        bins = KBinsDiscretizer(10, encode="ordinal", quantile_method="averaged_inverted_cdf")
        encoder = bins if kind == "float" else OrdinalEncoder()
        fit = processor_seconds(lambda: quick.fit(frame), repeats)  # noqa: B023
        release = processor_seconds(lambda: ours.transform(frame), repeats)  # noqa: B023
        encode = processor_seconds(lambda: encoder.fit_transform(frame[["x"]]), repeats)  # noqa: B023
        milliseconds = (f"{1e3 * took:.1f}" for took in (fit, release, fit + release))
        rows.append([kind, *milliseconds, f"{(fit + release) / encode:.1f}"])
    print_table(
        f"{SMALL:,} rows, in milliseconds:",
        ["X", "fit without design", "transform", "both", "in encoders"],
        rows,
    )


def parquet(n, repeats):
    """Print the times of a Parquet file."""
    rng = np.random.default_rng(0)
    parts = [people(rng, first) for first in range(0, n, CHUNK)]
    released = ["education", "occupation"]
    with tempfile.TemporaryDirectory() as folder:
        source, target = (Path(folder) / f"{name}.parquet" for name in ("rows", "copy"))
        pq.write_table(pa.Table.from_pandas(pd.concat(parts), preserve_index=False), source)
        theirs = processor_seconds(lambda: pq.write_table(pq.read_table(source), target), repeats)
        rows = []
        for title, others in (("2 columns", []), ("2 columns, 6 copied", COPIED)):
            funnel = PrivacyFunnelTransformer(
                0.02, sensitive="sex", columns=released, remainder=others or "drop"
            )
            times = [
                processor_seconds(lambda f=funnel: fit_file(f, source), repeats),
                processor_seconds(
                    lambda f=funnel: transform_file(f, source, target, force=True), repeats
                ),
            ]
            rows.append([title, *(f"{took / theirs:.1f}" for took in (*times, sum(times)))])
    print_table(
        f"A Parquet file of {len(parts) * CHUNK:,} rows and 9 columns, in reads and writes by "
        "pyarrow:",
        ["released", "fit_file", "transform_file", "both"],
        rows,
    )


COPIED = ["id", "zip", "age", "income", "city", "hours"]


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--file-rows", type=int, default=4_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of little noise, which is beside the point
    print(f"One run on {machine()}.")
    keyed(options.rows, options.repeats)
    small(20 * options.repeats)
    parquet(options.file_rows, min(3, options.repeats))


if __name__ == "__main__":
    main()
