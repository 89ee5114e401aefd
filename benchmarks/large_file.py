"""A large CSV file: the time and the memory of ``skprivacy sanitize``, beside those of pandas.

pandas reads the file and writes it again in chunks of as many bytes, and does nothing else. Each
runs in a process of its own, one after the other, in the same folder.

    python benchmarks/large_file.py --megabytes 2000
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from skprivacy.engines.csv_text import BLOCK_BYTES

EDUCATION = ["Preschool", "HS-grad", "Some-college", "Bachelors", "Masters", "Doctorate"]
OCCUPATION = ["Adm-clerical", "Craft-repair", "Exec-managerial", "Other-service", "Sales", "Tech"]
CITY = ["Canberra", "Melbourne, Victoria", "Sydney"]
CHUNK = 20_000


def write_people(path, n_bytes):
    """Write rows until the file is large enough; return how many there are."""
    rng, n_rows = np.random.default_rng(0), 0
    with open(path, "w") as file, tqdm(total=n_bytes, unit="B", unit_scale=True) as bar:
        while (size := file.tell()) < n_bytes:
            people(rng, n_rows).to_csv(file, index=False, header=size == 0)
            n_rows += CHUNK
            bar.update(file.tell() - size)
    return n_rows


def people(rng, first):
    """Return rows in which education and occupation give sex away."""
    sex = rng.integers(2, size=CHUNK)
    numbers = first + np.arange(CHUNK)
    return pd.DataFrame(
        {
            "id": numbers,
            "zip": np.char.zfill((numbers % 99_991).astype(str), 5),
            "age": rng.integers(18, 90, size=CHUNK),
            "sex": np.where(sex, "Male", "Female"),
            "education": np.take(EDUCATION, rng.binomial(5, 0.5 + 0.1 * sex)),
            "occupation": np.take(OCCUPATION, rng.binomial(5, 0.3 + 0.3 * sex)),
            "income": rng.lognormal(10, 1, size=CHUNK).round(2),
            "city": np.take(CITY, rng.integers(3, size=CHUNK)),
            "hours": rng.integers(1, 99, size=CHUNK),
        }
    )


def sanitize(source, target):
    """Release the file with the command itself."""
    design = ["--sensitive", "sex", "--columns", "education,occupation", "--epsilon", "0.02"]
    command = [sys.executable, "-m", "skprivacy", "sanitize", source, target, "--progress"]
    os.execv(sys.executable, [*map(str, command), *design])


def read_and_write(source, target, n_rows):
    """Read and write the file with pandas, as many bytes at a time."""
    is_first = True
    for chunk in pd.read_csv(source, chunksize=n_rows * BLOCK_BYTES // os.path.getsize(source)):
        chunk.to_csv(target, mode="w" if is_first else "a", header=is_first, index=False)
        is_first = False


def measured(job, *arguments):
    """Run a function in a process of its own; return its seconds and its peak of memory in MB."""
    began = time.perf_counter()
    if not (child := os.fork()):
        try:
            job(*arguments)
        finally:
            os._exit(0)
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"{job.__name__} failed.")
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def main():
    """Write the file, measure both, and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=2000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "people.csv")
        n_rows = write_people(source, options.megabytes * 1e6)
        ours, memory = measured(sanitize, source, Path(folder, "released.csv"))
        theirs, their_memory = measured(read_and_write, source, Path(folder, "copied.csv"), n_rows)
        released = os.path.getsize(Path(folder, "released.csv"))
        size = os.path.getsize(source)
    print(f"{n_rows:,} rows, {size / 1e6:,.0f} MB in, {released / 1e6:,.0f} MB out")
    print(f"skprivacy sanitize:    {ours:7.1f} s, at most {memory:,.0f} MB of memory")
    print(f"pandas read and write: {theirs:7.1f} s, at most {their_memory:,.0f} MB of memory")
    print(f"ratio: {ours / theirs:.2f}x")


if __name__ == "__main__":
    main()
