"""How often designs with a confidence keep their budget in the population, and what that costs.

In each cell, joints are drawn, rows from each joint, and a mechanism is designed for the rows with
a confidence of 95%. It should leak no more than its budget under the joint in 95% of the samples.
In cells with ``halves`` the joint is not known: a table is cut in two at random, some rows for the
design and all others to measure what it leaks. That figure has noise of its own, which makes it
too large; its bias, by a bootstrap of the other rows, is subtracted.

One line per sample is appended to a CSV, and samples that are there are skipped: start it again to
continue, and begin a new file for another version of the package. Run
``python benchmarks/confidence.py FILE --adult PATH_TO_ADULT_CSV`` (hours; ``--samples 20`` or
``--only 4x7`` for less; ``--samples 0`` prints the table of a file).
"""

import argparse
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from zlib import crc32

import numpy as np
import pandas as pd
from population_limits import power_law, rare_group, spread
from scipy.stats import binomtest

from skprivacy import design_mechanism
from skprivacy.measures import get_measure
from skprivacy.utilities import MutualInformation, entropy

CONFIDENCE, N_BOOTSTRAPS = 0.95, 100
INFORMATION = MutualInformation()
PAIRS = [("sex", "education"), ("race", "occupation")]
COLUMNS = ["cell", "measure", "scope", "epsilon", "rows", "seed", "utility", "plug_in_utility",
           "best_utility", "leakage", "plug_in_leakage", "uncorrected", "seconds"]  # fmt: skip
KEY = COLUMNS[:6]

# Utilities aimed at, by cell and rows, with kl .02 per output, and the largest for who knows the
# joint. But for those of adult.csv these were found for other joints: the share is what counts.
REFERENCE = {
    ("4x7", 300): (0.329, 0.704), ("4x7", 1000): (0.529, 0.704), ("4x7", 10_000): (0.655, 0.704),
    ("2x5", 1000): (0.665, 0.701), ("2x30", 1000): (0.484, 0.921),
    ("2x30", 10_000): (0.875, 0.921), ("5x16 power law", 10_000): (0.738, 0.869),
    ("adult sex/education", 1000): (0.699, 0.987),
    ("adult sex/education", 10_000): (0.948, 0.987),
}  # fmt: skip


def small_group(rng, share):
    """Return a joint of 4 x 7 in which one group has a small share."""
    joint = spread(rng, 3, 7)
    return np.vstack([(1 - share) * joint, share * rng.dirichlet(np.ones(7))])


def with_zeros(rng):
    """Return a joint of 4 x 7 in which a third of the cells never occur."""
    joint = spread(rng, 4, 7)
    apart = (np.arange(7) - np.arange(4)[:, None]) % 7
    joint[(apart > 1) & (rng.random((4, 7)) < 0.45)] = 0.0
    return joint / joint.sum()


def weak(rng):
    """Return a joint of 4 x 7 that is nearly independent."""
    p_s, p_x = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(7))
    return 0.7 * p_s[:, None] * p_x + 0.3 * spread(rng, 4, 7)


@dataclass(frozen=True)
class Cell:
    """What is sampled: joints, the numbers of rows, and what is designed for.

    halves : how many rows there are besides those of the design, to measure what it leaks, or with
    them in a table; 0 if that is computed from the joint. table : whether the joint is that of a
    table, always the same.
    pace : of slow cells; one sample for so many of each other cell.
    """

    name: str
    joint: Callable
    sizes: tuple = (300, 1000, 10_000)
    measure: str = "kl"
    epsilon: float = 0.02
    scope: str = "per_output"
    halves: int = 0
    table: bool = False
    knows_best: bool = True
    pace: int = 1

    def key(self, n, seed):
        """Return what names a sample in the file."""
        return self.name, self.measure, self.scope, self.epsilon, n, seed

    def population(self, seed):
        """Return the joint of a sample: the same for all numbers of rows and all measures."""
        return self.joint(np.random.default_rng([crc32(self.name.encode()), seed]))


RANDOM, SMALL_GROUP = partial(spread, n_s=4, n_x=7), partial(small_group, share=0.01)
POWER_LAW = partial(power_law, n_s=5, n_x=16)
WIDE, WIDER = (partial(rare_group, share=0.05, n_x=n_x) for n_x in (64, 225))

# Where the design keeps about half of what could be kept. A small group needs more for some.
BUDGETS = {"max_lift": 0.3, "l1": 0.2, "chi2": 0.2, "lip": 0.4, "alpha_lift": 0.02, "parity": 0.3}
OF_SMALL_GROUP = {**BUDGETS, "max_lift": 0.8, "lip": 0.8, "parity": 0.7}
ON_AVERAGE = {"kl": 0.02, "l1": 0.15, "max_lift": 0.2, "parity": 0.15}

CELLS = [
    Cell("4x7", RANDOM),
    Cell("2x5", partial(spread, n_s=2, n_x=5)),
    Cell("1% group", SMALL_GROUP),
    Cell("structural zeros", with_zeros),
    Cell("weak dependence", weak),
    *(Cell("4x7", RANDOM, (1000,), *budget) for budget in BUDGETS.items()),
    *(Cell("4x7", RANDOM, (1000,), *budget, "average") for budget in ON_AVERAGE.items()),
    *(Cell("1% group", SMALL_GROUP, (1000,), *budget) for budget in OF_SMALL_GROUP.items()),
    Cell("1% group", SMALL_GROUP, (1000,), "max_lift", 0.5),
    Cell("halves 4x7", RANDOM, (1000, 3000), halves=30_000),
    Cell("2x30", partial(spread, n_s=2, n_x=30)),
    Cell("5x16 power law", POWER_LAW, (1000,), "max_lift", 0.2),
    Cell("5x16 power law", POWER_LAW, (1000,), "max_lift", 0.5),
    Cell("5x16 power law", POWER_LAW, pace=4),
    Cell("halves 5x16 power law", POWER_LAW, (3000,), halves=100_000, pace=4),
    Cell("2x64 with 5%", WIDE, pace=4),
    Cell("2x225 with 5%", WIDER, (50_000,), knows_best=False, pace=8),
]


def cells_of(path):
    """Return cells that draw rows from a table, or cut it in two."""
    table = pd.read_csv(path, usecols=sorted({column for pair in PAIRS for column in pair}))
    for sensitive, useful in PAIRS:
        counts = pd.crosstab(table[sensitive], table[useful]).to_numpy()
        name = f"{sensitive}/{useful}"
        given = {"joint": partial(_given, joint=counts / counts.sum()), "table": True}
        yield Cell(f"adult {name}", pace=2, **given)
        yield Cell(f"halves {name}", sizes=(1000, 3000), halves=int(counts.sum()), pace=2, **given)


def _given(rng, joint):
    """Return the joint of a table."""
    return joint


def drawn(cell, joint, n, rng):
    """Return counts of n rows for the design, and of other rows, if there are any."""
    if not cell.halves:
        return rng.multinomial(n, joint.ravel()).reshape(joint.shape), None
    if cell.table:
        both = np.rint(joint * cell.halves).astype(int).ravel()
    else:
        both = rng.multinomial(n + cell.halves, joint.ravel())
    counts = rng.multivariate_hypergeometric(both, n)
    return counts.reshape(joint.shape), (both - counts).reshape(joint.shape)


def plug_in(counts, cell):
    """Return the design that takes the rows for the population."""
    return design_mechanism(counts, cell.epsilon, measure=cell.measure, scope=cell.scope)


def designed(counts, cell):
    """Return the design with a confidence."""
    asked = {"measure": cell.measure, "scope": cell.scope, "confidence": CONFIDENCE}
    return design_mechanism(counts, cell.epsilon, **asked)


def leakage(channel, joint, cell):
    """Return what a channel leaks under a joint, or counts, in units of the budget."""
    measure, p_s, p_sy = get_measure(cell.measure), joint.sum(axis=1), joint @ channel
    p_y = p_sy.sum(axis=0)
    shown = p_y > 0
    values = measure.value((p_sy[:, shown] / p_y[shown]).T, p_s / p_s.sum())
    value = values.max() if cell.scope == "per_output" else p_y[shown] @ values / p_y.sum()
    return float(measure.inverse(value)) / cell.epsilon


def corrected(channel, counts, cell, rng):
    """Return what a channel leaks by other rows, less the bias of that figure, and with it."""
    figure, share = leakage(channel, counts, cell), counts.ravel() / counts.sum()
    again = rng.multinomial(counts.sum(), share, size=N_BOOTSTRAPS)
    figures = [leakage(channel, one.reshape(counts.shape), cell) for one in again]
    return 2 * figure - float(np.mean(figures)), figure


def kept(channel, joint):
    """Return I(X;Y) / H(X) under a joint."""
    p_x = joint.sum(axis=0)
    return INFORMATION.of_channel(p_x, channel) / entropy(p_x)


def best_utility(cell, joint):
    """Return the utility of the design that knows the joint."""
    return plug_in(joint, cell).normalized_utility if cell.knows_best else np.nan


def sampled(cell, n, seed, best):
    """Return one line of the file."""
    joint = cell.population(seed)
    rng = np.random.default_rng([crc32(cell.name.encode()), seed, n])
    counts, others = drawn(cell, joint, n, rng)
    simple = plug_in(counts, cell).channel
    start = time.perf_counter()
    channel = designed(counts, cell).channel
    seconds = time.perf_counter() - start
    if others is None:
        figures = leakage(channel, joint, cell), leakage(simple, joint, cell), np.nan
    else:
        reached, uncorrected = corrected(channel, others, cell, rng)
        figures = reached, corrected(simple, others, cell, rng)[0], uncorrected
    utilities = kept(channel, joint), kept(simple, joint), best
    return *cell.key(n, seed), *utilities, *figures, seconds


def lines(task):
    """Return the lines of one joint that are missing, and what went wrong."""
    cell, seed, sizes, best = task
    warnings.simplefilter("ignore")  # a budget that is large enough for all symbols
    made, failed = [], []
    for n in sizes:
        try:
            best = best_utility(cell, cell.population(seed)) if best is None else best
            made.append(sampled(cell, n, seed, best))
        except Exception as error:  # one sample must not end hours of work
            failed.append(f"{cell.key(n, seed)}: {error!r}")
    return made, failed


def tasks(cells, n_samples, done):
    """Yield what is missing: the first sample of all cells, then the second, and so on."""
    best = {(*key[:4], key[5]): value for key, value in done["best_utility"].items()}
    order = sorted(
        ((seed + 1) * c.pace, i, seed) for i, c in enumerate(cells) for seed in range(n_samples)
    )
    for _, i, seed in order:
        cell = cells[i]
        sizes = [n for n in cell.sizes if cell.key(n, seed) not in done.index]
        known = best.get((*cell.key(0, 0)[:4], 0 if cell.table else seed))
        if sizes:
            yield cell, seed, sizes, known


def read(path):
    """Return the lines of the file."""
    if not path.exists():
        path.write_text(",".join(COLUMNS) + "\n")
    return pd.read_csv(path).set_index(KEY)


def run(path, work, jobs, minutes):
    """Append lines to the file until all is done or time is up; return how many failed."""
    end, failures = time.monotonic() + 60 * minutes, 0
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # in new processes
    with ExitStack() as opened:
        file = opened.enter_context(path.open("a"))
        results = map(lines, work)
        if jobs > 1:
            pool = opened.enter_context(multiprocessing.get_context("spawn").Pool(jobs))
            results = pool.imap_unordered(lines, work)
        for made, failed in results:
            pd.DataFrame(made).to_csv(file, header=False, index=False, float_format="%.6g")
            file.flush()
            failures += len(failed)
            print(*failed, sep="\n", end="\n" if failed else "", file=sys.stderr, flush=True)
            if time.monotonic() > end:
                break
    return failures


def summary(group):
    """Return the figures of one cell."""
    within = group["leakage"] <= 1 + 1e-9
    exact = binomtest(int(within.sum()), len(group), alternative="less")
    utility, best = group["utility"].mean(), group["best_utility"].mean()
    reference, its_best = _reference(*group.name)
    return pd.Series({
        "samples": len(group),
        "within": within.mean(),
        "at most": exact.proportion_ci(0.999).high,
        "plug-in": (group["plug_in_leakage"] <= 1 + 1e-9).mean(),
        "uncorrected": (group["uncorrected"] <= 1).mean() if "halves" in group.name[0] else np.nan,
        "utility": utility,
        "of plug-in": group["plug_in_utility"].mean(),
        "best": best,
        "share": utility / best,
        "aim": reference / its_best,
        "seconds": group["seconds"].median(),
    })  # fmt: skip


def _reference(name, measure, scope, epsilon, n):
    """Return the utility to compare with, and the largest there."""
    is_same = (measure, scope, epsilon) == ("kl", "per_output", 0.02)
    return REFERENCE.get((name, n) if is_same else None, (np.nan, np.nan))


def show(path):
    """Print the table of a file, and return the cells that keep their budget too rarely."""
    done = read(path).reset_index()
    found = done.groupby(KEY[:5], sort=False).apply(summary, include_groups=False)
    print(f"confidence {CONFIDENCE}; within: the share of samples within the budget, at 99.9% at")
    print(
        "most the next; plug-in: that of designs without; share: of the best utility, and its aim"
    )
    found["samples"] = found["samples"].astype(int)
    print(found.to_string(float_format="{:.3f}".format, na_rep="-", sparsify=False))
    return [f"too rarely within: {name}" for name in found.index[found["at most"] < CONFIDENCE]]


def main():
    """Sample, print the table, and fail if a cell keeps its budget too rarely."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, help="the CSV that lines are appended to")
    parser.add_argument("--adult", type=Path, help="adult.csv, for the cells of real rows")
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--only", default="*", help="a pattern of names of cells, or measures")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=np.inf)
    options = parser.parse_args()
    cells = [*CELLS, *(cells_of(options.adult) if options.adult else [])]
    cells = [c for c in cells if any(fnmatch(v, options.only) for v in (c.name, c.measure))]
    work = tasks(cells, options.samples, read(options.path))
    failures = run(options.path, work, options.jobs, options.minutes)
    wrong = show(options.path)
    if failures:
        wrong.append(f"{failures} designs failed; they are tried again by the next run")
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main()
