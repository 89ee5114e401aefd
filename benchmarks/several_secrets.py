"""What separate budgets keep, how long they take, and that none of them is ever exceeded.

Run ``python benchmarks/several_secrets.py`` for the random cases: 2,000 designs with several
secrets and 2,000 beside a column that is published, whose leakages are recomputed here from the
channel (some minutes). With ``--adult FILE``, real columns too: sex within .002 and race within
.02, against the joint budget of .002, the only one that implies both. ``--cases 0`` leaves the
random ones out.
"""

import argparse
import time
import warnings

import numpy as np
import pandas as pd
from scipy.special import rel_entr
from sklearn.exceptions import ConvergenceWarning

from skprivacy import design_mechanism

COLUMNS = ("occupation", "relationship", "education")
BUDGETS = {"sex": 0.002, "race": 0.02}
FOUR = {"two": 2, "five": 5, "three": 3, "four": 4}
FOUR_BUDGETS = {"two": 0.01, "five": 0.05, "three": 0.02, "four": 0.05}

# What an output leaks, from its lifts and the prior, on the scale of epsilon; and the same of a
# mean over outputs.
VALUES = {
    "kl": lambda t, p: rel_entr(t, p).sum(axis=-1),
    "l1": lambda t, p: np.abs(t - p).sum(axis=-1),
    "chi2": lambda t, p: ((t - p) ** 2 / p).sum(axis=-1),
    "max_lift": lambda t, p: (t / p).max(axis=-1),
    "alpha_lift": lambda t, p: np.sqrt((p * (t / p) ** 2).sum(axis=-1)),
    "parity": lambda t, p: np.ptp(t / p, axis=-1) / 2,
}
SCALES = {"chi2": np.sqrt, "max_lift": np.log, "alpha_lift": np.log}


def leakage(channel, table, measure, scope):
    """Return what a channel leaks about one secret, by formulas written down here."""
    p_sy = table @ channel
    p_y, prior = p_sy.sum(axis=0), table.sum(axis=1)
    posteriors = (p_sy[:, p_y > 0] / p_y[p_y > 0]).T
    values = VALUES[measure](posteriors, prior)
    value = values.max() if scope == "per_output" else p_y[p_y > 0] @ values
    return float(SCALES.get(measure, float)(value))


def random_tables(rng):
    """Return the tables of two or three secrets about the same X."""
    sizes = rng.integers(2, 4, size=rng.integers(2, 4))
    joint = rng.random((*sizes, rng.integers(2, 7))) ** rng.choice([1, 3]) + 1e-4
    joint /= joint.sum()
    axes = range(len(sizes))
    return {j: joint.sum(axis=tuple(a for a in axes if a != j)) for j in axes}


def random_options(rng):
    """Return a measure, a scope and a utility."""
    return {
        "measure": str(rng.choice(list(VALUES))),
        "scope": str(rng.choice(["per_output", "average"])),
        "utility": str(rng.choice(["mutual_information", "guess"])),
    }


def excess(tables, budgets, options, **more):
    """Return by what share the worst secret exceeds its budget, zero or less if none does."""
    mechanism = design_mechanism(tables, budgets, **options, **more)
    measure, scope = options["measure"], options["scope"]
    if (beside := more.get("beside")) is not None:
        used = [{beside[x] for x in np.flatnonzero(y)} for y in mechanism.channel.T]
        assert all(len(group) == 1 for group in used)
    return max(
        (leakage(mechanism.channel, table, measure, scope) - budgets[name] - 1e-11)
        / max(budgets[name], 1e-9)
        for name, table in tables.items()
    )


def print_random(n_cases, beside):
    """Design for random tables, and count the budgets that are exceeded."""
    worst, n_broken, n_designs, began = -np.inf, 0, 0, time.perf_counter()
    for seed in range(n_cases):
        rng = np.random.default_rng([seed, beside])
        tables, options, more = random_tables(rng), random_options(rng), {}
        budgets = {name: float(10 ** rng.uniform(-3.5, 0)) for name in tables}
        if beside:
            n_x = next(iter(tables.values())).shape[1]
            more["beside"] = [int(z) for z in np.sort(rng.integers(0, 2, n_x))]
            z = np.eye(2)[more["beside"]]
            z = z[:, z.any(axis=0)]
            about = options["measure"], options["scope"]
            alone = {name: leakage(z, table, *about) for name, table in tables.items()}
            budgets = {n: alone[n] * rng.uniform(1.001, 3) + 1e-6 for n in tables}
        found = excess(tables, budgets, options, **more)
        worst, n_broken, n_designs = max(worst, found), n_broken + (found > 1e-8), n_designs + 1
    kind = "beside a column" if beside else "several secrets"
    took = time.perf_counter() - began
    print(
        f"{n_designs} random designs, {kind}: {n_broken} exceed a budget; the worst is "
        f"{worst:+.1e} of it ({took:.0f} s)",
        flush=True,
    )


def print_four():
    """Design for four secrets, and say how far from the optimum it may be."""
    rng = np.random.default_rng(0)
    shape = tuple(FOUR.values())
    given_x = rng.dirichlet(np.full(np.prod(shape), 0.1), 30).T.reshape(*shape, 30)
    joint = given_x * rng.dirichlet(np.ones(30))
    axes = range(len(shape))
    tables = {
        name: joint.sum(axis=tuple(a for a in axes if a != j)) for j, name in enumerate(FOUR)
    }
    for scope in ("per_output", "average"):
        for utility in ("mutual_information", "guess"):
            began = time.perf_counter()
            found = design_mechanism(tables, FOUR_BUDGETS, scope=scope, utility=utility)
            took = time.perf_counter() - began
            kept, most = found.normalized_utility, found.normalized_upper_bound
            print(
                f"4 secrets x 30 symbols, {scope}, {utility}: {kept:.1%} kept, at most {most:.1%} "
                f"({took:.1f} s)",
                flush=True,
            )


def print_adult(path):
    """Print what is kept of columns of adult.csv."""
    rows = pd.read_csv(path, skipinitialspace=True)
    rows.columns = [str(name).strip() for name in rows.columns]
    for column in COLUMNS:
        known = rows[rows[column] != "?"]
        tables = {name: pd.crosstab(known[name], known[column]) for name in BUDGETS}
        joint = pd.crosstab([known["sex"], known["race"]], known[column]).to_numpy()
        began = time.perf_counter()
        separate = design_mechanism(tables, BUDGETS)
        took = time.perf_counter() - began
        together = design_mechanism(joint, min(BUDGETS.values()))
        sure = design_mechanism(tables, BUDGETS, confidence=0.95)
        print(
            f"{column}: {separate.normalized_utility:.3f} separately ({took:.2f} s), "
            f"{together.normalized_utility:.3f} with the joint S; {sure.normalized_utility:.3f} "
            f"separately with a confidence of 0.95",
            flush=True,
        )


def main():
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--adult", help="the path of adult.csv")
    parser.add_argument("--cases", type=int, default=2000, help="random designs of each kind")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    if options.adult:
        print_adult(options.adult)
    print_four()
    if options.cases:
        print_random(options.cases, beside=False)
        print_random(options.cases, beside=True)


if __name__ == "__main__":
    main()
