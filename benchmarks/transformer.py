"""Rows per second of the transformer, as ratios to what it cannot do without, in the same run.

`transform` of a categorical column is compared with `Generator.random` of as many numbers; of a
string column with factorizing it, drawing as many numbers, and taking as many strings; `fit`
without the design with factorizing both columns. Run ``python benchmarks/transformer.py``.
"""

import argparse
import time
from unittest.mock import patch

import numpy as np
import pandas as pd

from skprivacy import PrivacyFunnelTransformer, transformer


def seconds(function, repeats):
    """Return the shortest time of several runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def report(name, ours, base, limit):
    """Print one ratio and what it should stay below."""
    print(f"{name:<44} {ours:7.3f} s  {ours / base:5.2f} x  (at most {limit:g} x)")


def main():
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    n, repeats = options.rows, options.repeats
    s = pd.Categorical.from_codes(rng.integers(0, 2, n, dtype=np.int8), ["f", "m"])
    noise = (rng.random(n) < 0.3) * 5
    codes = ((rng.integers(0, 11, n) + noise * s.codes) % 16).astype(np.int8)
    labels = [f"category {i:02d}" for i in range(16)]
    categorical = pd.DataFrame({"s": s, "x": pd.Categorical.from_codes(codes, labels)})
    strings = pd.DataFrame({"s": s.astype(str), "x": categorical["x"].astype(str)})
    random = seconds(lambda: rng.random(n), repeats)
    print(f"{n:,} rows; Generator.random takes {random:.3f} s")

    for name, seed, limit in (("seeded", 0, 4), ("secure", None, 9)):
        fitted = PrivacyFunnelTransformer(0.001, sensitive="s", random_state=seed)
        fitted.fit(categorical.iloc[:100_000])
        ours = seconds(lambda: fitted.transform(categorical[["x"]]), repeats)  # noqa: B023
        report(f"transform, categorical, {name} / random", ours, random, limit)

    fitted = PrivacyFunnelTransformer(0.001, sensitive="s", random_state=0)
    fitted.fit(strings.iloc[:100_000])
    taken = strings["x"].array[:16]
    base = seconds(lambda: pd.factorize(strings["x"]), repeats) + random
    base += seconds(lambda: taken.take(codes.astype(np.intp)), repeats)
    ours = seconds(lambda: fitted.transform(strings[["x"]]), repeats)
    report("transform, strings / factorize, random, take", ours, base, 2)

    for name, frame in (("categorical", categorical), ("strings", strings)):
        base = seconds(lambda: [pd.factorize(frame[c]) for c in ("s", "x")], repeats)  # noqa: B023
        fitted.fit(frame.iloc[:100_000])
        once = fitted.mechanism_, fitted._names
        with patch.object(transformer, "design", lambda *_: once):  # noqa: B023
            ours = seconds(lambda: fitted.fit(frame), repeats)  # noqa: B023
        report(f"fit without design, {name} / factorize both", ours, base, 2)


if __name__ == "__main__":
    main()
