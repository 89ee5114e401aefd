"""Rows per second of `fit` and `transform`, and how the time of a fit grows, in one run.

Beside them, on the same rows: `numpy.random.Generator.random` of a number for every row,
`pandas.factorize` of the columns of X, and `sklearn.preprocessing.OneHotEncoder` of them; for
floats, `sklearn.preprocessing.KBinsDiscretizer` with as many bins. What counts are the ratios.
It takes some minutes and 8 GB. For the page in docs:

    python benchmarks/rows_per_second.py > docs/measured/rows_per_second.txt
"""

import argparse
import gc
import os
import platform
import re
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import sklearn
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder
from threadpoolctl import threadpool_limits

from skprivacy import PrivacyFunnelTransformer, design_mechanism

EPSILON = 0.001
NO_TIME = "watchdog"  # a solver that takes none: a fit with it shows how long counting takes
LABELS = [f"category {i:02d}" for i in range(16)]


def seconds(function, repeats):
    """Return the shortest time of several runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def machine():
    """Return what the figures depend on, in a line."""
    info = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", info.read_text()) if info.exists() else []
    return (
        f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores; "
        f"Python {platform.python_version()}, numpy {np.__version__}, pandas {pd.__version__}, "
        f"scikit-learn {sklearn.__version__}"
    )


def print_table(title, header, rows):
    """Print a simple table of reStructuredText."""
    cells = [header, *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rule = "  ".join("=" * width for width in widths)
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    print("\n".join(["", title, "", rule, lines[0], rule, *lines[1:], rule]), flush=True)


def drawn_rows(n):
    """Return codes of S, 2 of them, and of X, 16, which depend on each other."""
    rng = np.random.default_rng(0)
    s = rng.integers(0, 2, n, dtype=np.int8)
    noise = (rng.random(n) < 0.3) * np.int8(5)
    return s, (rng.integers(0, 11, n, dtype=np.int8) + noise * s) % np.int8(16)


def in_parts(x):
    """Return X as three columns, of 2, 4 and 2 values."""
    parts = {"a": x // 8, "b": x // 2 % 4, "c": x % 2}
    return {
        name: pd.Categorical.from_codes(codes, [f"{name} {i}" for i in range(4)])
        for name, codes in parts.items()
    }


def frames(s, x):
    """Yield the kinds of X, and a frame with S for each."""
    s = pd.Categorical.from_codes(s, ["f", "m"])
    categorical = pd.Categorical.from_codes(x, LABELS)
    yield "categorical", pd.DataFrame({"s": s, "x": categorical})
    yield "string", pd.DataFrame({"s": s, "x": pd.Series(categorical).astype(str)})
    yield "integer", pd.DataFrame({"s": s, "x": x.astype(np.int64)})
    yield "3 categorical, jointly", pd.DataFrame({"s": s, **in_parts(x)})
    texts = {name: pd.Series(column).astype(str) for name, column in in_parts(x).items()}
    yield "3 strings, jointly", pd.DataFrame({"s": s, **texts})
    yield "Arrow dictionary", pa.table({"s": pa.array(s), "x": pa.array(categorical)})


def measured(frame, repeats):
    """Return the seconds of each method on a frame, None for one that does not take it."""
    ours = PrivacyFunnelTransformer(EPSILON, sensitive="s", random_state=0)
    ours.fit(frame)
    quick = PrivacyFunnelTransformer(EPSILON, sensitive="s", solver=NO_TIME)
    times = {
        "fit": seconds(lambda: quick.fit(frame), repeats),
        "transform": seconds(lambda: ours.transform(frame), repeats),
    }
    if not isinstance(frame, pd.DataFrame):
        return times
    x = frame.drop(columns="s")
    times["factorize"] = seconds(lambda: [pd.factorize(x[name]) for name in x], repeats)
    encoder = OneHotEncoder()
    times["one-hot fit"] = seconds(lambda: encoder.fit(x), 1)  # it can take half a minute
    times["one-hot transform"] = seconds(lambda: encoder.transform(x), 1)
    return times


def compare(n, repeats):
    """Print the rows per second of each kind of X, and the ratios; return all times."""
    rng, randoms, times = np.random.default_rng(0), [], {}
    for kind, frame in frames(*drawn_rows(n)):
        # Again and again: the best of all moments of the run, as others have it.
        randoms.append(seconds(lambda: rng.random(n), repeats))
        times[kind] = measured(frame, repeats)
        del frame
        gc.collect()
    random = min(randoms)
    others = ("factorize", "one-hot fit", "one-hot transform")
    names = ("fit", "transform", *others)
    print_table(
        f"Million rows per second, with {n:,} rows, 2 sensitive groups, 16 symbols of X, and "
        f"a fit without its design; ``Generator.random`` makes {n / random / 1e6:.3g} million "
        f"numbers per second:",
        ["X", *names],
        [
            [kind, *(f"{n / t[name] / 1e6:.3g}" if name in t else "" for name in names)]
            for kind, t in times.items()
        ],
    )
    pairs = list(zip(("fit", "fit", "transform"), others, strict=True))
    print_table(
        "Time in multiples of that of others:",
        ["X", "fit / random", "transform / random", *(" / ".join(pair) for pair in pairs)],
        [
            [
                kind,
                *(f"{t[name] / random:.1f}" for name in ("fit", "transform")),
                *(f"{t[ours] / t[other]:.2g}" if other in t else "" for ours, other in pairs),
            ]
            for kind, t in times.items()
        ],
    )
    return random, times


def check_limits(n, repeats, random, times):
    """Print the ratios that have a limit."""
    s, x = drawn_rows(n)
    frame = pd.DataFrame({"x": pd.Categorical.from_codes(x, LABELS)})
    s = pd.Series(pd.Categorical.from_codes(s, ["f", "m"]))
    fitted = PrivacyFunnelTransformer(EPSILON).fit(frame[:100_000], sensitive_features=s[:100_000])
    secure = seconds(lambda: fitted.transform(frame), repeats)
    texts = pd.array(LABELS, dtype=str)
    taken = seconds(lambda: texts.take(x.astype(np.intp)), repeats)
    of_s = seconds(lambda: pd.factorize(s), repeats)
    one, string = times["categorical"], times["string"]
    needed = string["factorize"] + random + taken
    for name, ratio, limit in (
        ("transform, categorical, seeded / random", one["transform"] / random, 4),
        ("transform, categorical, secure / random", secure / random, 9),
        ("transform, string / factorize, random, take", string["transform"] / needed, 2),
        (
            "fit without design, categorical / factorize both",
            one["fit"] / (one["factorize"] + of_s),
            2,
        ),
        (
            "fit without design, string / factorize both",
            string["fit"] / (string["factorize"] + of_s),
            2,
        ),
    ):
        print(f"   {name:<50} {ratio:5.2f} x  (at most {limit:g} x)", flush=True)


def check_floats(n, repeats):
    """Print the time and memory of floats that are all different, in ten bins."""
    rng = np.random.default_rng(0)
    s = rng.integers(0, 2, n)
    frame = pd.DataFrame({"s": s, "x": rng.normal(size=n) + 0.3 * s})
    ours = PrivacyFunnelTransformer(EPSILON, sensitive="s", random_state=0).fit(frame)
    quick = PrivacyFunnelTransformer(EPSILON, sensitive="s", solver=NO_TIME)
    theirs = KBinsDiscretizer(10, encode="ordinal", quantile_method="averaged_inverted_cdf")

    def release():
        quick.fit(frame)
        ours.transform(frame)

    took = seconds(release, repeats) / seconds(lambda: theirs.fit_transform(frame[["x"]]), repeats)
    tracemalloc.start()
    release()
    memory = tracemalloc.get_traced_memory()[1] / frame["x"].nbytes
    tracemalloc.stop()
    print(f"   {'fit and transform, float / KBinsDiscretizer':<50} {took:5.2f} x  (at most 3 x)")
    print(f"   {'their memory, float / bytes of the column':<50} {memory:5.2f} x  (at most 3 x)")


def growth(n, n_s, n_x, repeats):
    """Return seconds to count n rows and to design for them, and the solver that did."""
    rng = np.random.default_rng(0)
    s = rng.integers(0, n_s, n)
    shared, own = rng.dirichlet(np.full(n_x, 5.0)), rng.dirichlet(np.full(n_x, 2.0), n_s)
    shares = np.cumsum(0.7 * shared + 0.3 * own, axis=1)
    x = np.empty(n, dtype=np.int64)
    for group in range(n_s):
        rows = np.flatnonzero(s == group)
        x[rows] = np.searchsorted(shares[group], rng.random(len(rows))).clip(max=n_x - 1)
    frame = pd.DataFrame({"s": s, "x": x}).astype("category")
    quick = PrivacyFunnelTransformer(EPSILON, sensitive="s", solver=NO_TIME)
    counting = seconds(lambda: quick.fit(frame), repeats)
    start = time.perf_counter()
    with threadpool_limits(1):
        mechanism = design_mechanism(quick.p_sx_, EPSILON)
    design = time.perf_counter() - start
    return [f"{n:,}", n_s, n_x, f"{counting:.3f}", f"{design:.3f}", mechanism.solver]


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--most-groups", type=int, default=32, help="the largest |S|")
    parser.add_argument("--most-symbols", type=int, default=256, help="the largest |X|")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of little noise, which is beside the point
    n, repeats = options.rows, options.repeats
    print(f"One run on {machine()}; a design on one thread.")
    random, times = compare(n, repeats)
    print("\nRatios of times, of which some have a limit::\n")
    check_limits(n, repeats, random, times)
    check_floats(min(n, 1_000_000), repeats)
    header = ["rows", "symbols of S", "symbols of X", "counting, s", "design, s", "solver"]
    some = min(n, 100_000)
    rows = [rows for rows in (100_000, 1_000_000, 10_000_000, n) if rows <= n]
    groups = [n_s for n_s in (2, 4, 8, 16, 32) if n_s <= options.most_groups]
    symbols = [n_x for n_x in (4, 16, 64, 256) if n_x <= options.most_symbols]
    for title, cases in (
        (
            "How the time of a fit grows with the rows:",
            [(rows_, 2, 16) for rows_ in sorted(set(rows))],
        ),
        (
            "With the symbols of X:",
            [(some, 2, n_x) for n_x in symbols],
        ),
        (
            "With those of S, where the exact solver gives way to column generation:",
            [(some, n_s, 16) for n_s in groups],
        ),
    ):
        print_table(title, header, [growth(*case, repeats) for case in cases])


if __name__ == "__main__":
    main()
