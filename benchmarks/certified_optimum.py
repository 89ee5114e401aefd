"""Time the certified optimum and column generation, and compare them with Algorithm 1.

Run ``python benchmarks/certified_optimum.py``; it uses one core and takes some minutes. Parts:
``--parts designs path gains columns local sizes pairs hard polyhedral``. With ``--adult
PATH_TO_ADULT_CSV`` also tables of real rows. Each part prints what it measures; the last line is
the peak memory.
"""

import argparse
import resource
import time

import numpy as np
import pandas as pd

from skprivacy import design_mechanism, privacy_utility_path
from skprivacy.solvers import Algorithm1Solver, OptimalSolver
from skprivacy.utilities import Target

EPSILONS = (0.005, 0.02, 0.05, 0.1, 0.2)
TABLE = (0.005, 0.02, 0.05, 0.1, 0.2, 0.5)
PATH = np.arange(1, 201) * 0.0025
HUNDRED = PATH[1::2]
SCOPES = ("per_output", "average")
THREE_BY_THREE = np.array([[0.90, 0.08, 0.40], [0.025, 0.82, 0.05], [0.075, 0.10, 0.55]]) / 3


def random_joints(n, shape):
    """Return joints of iid uniform entries."""
    joints = np.random.default_rng(0).random((n, *shape))
    return joints / joints.sum(axis=(1, 2), keepdims=True)


def timed(function, *arguments, **options):
    """Return the seconds of one core that a call takes, and its result."""
    start = time.process_time()
    result = function(*arguments, **options)
    return time.process_time() - start, result


def designs(n):
    """Print the time of single designs at 4 x 7."""
    print(f"\nOne design at 4 x 7, tol 1e-5, median of {n} joints at each epsilon, in ms:")
    print(f"  {'':<22}" + "".join(f"{epsilon:>8}" for epsilon in EPSILONS) + f"{'all':>8}")
    for measure in ("kl", "chi2"):
        for scope in SCOPES:
            options = {"measure": measure, "scope": scope, "solver": "optimal"}
            seconds = np.array([
                [timed(design_mechanism, joint, epsilon, **options)[0] for epsilon in EPSILONS]
                for joint in random_joints(n, (4, 7))
            ])  # fmt: skip
            medians = [*np.median(seconds, axis=0), np.median(seconds)]
            print(f"  {measure + ', ' + scope:<22}" + "".join(f"{1e3 * m:8.0f}" for m in medians))


def path(n):
    """Print what a path of 100 budgets costs, against Algorithm 1 for kl in the same run."""
    joints, options = random_joints(n, (4, 7)), {"measure": "kl", "solver": "algorithm1"}
    first = mean_seconds(joints, options)
    print(f"\nA path of 100 budgets at 4 x 7, mean of {n} joints (algorithm1, kl: {first:.2f} s):")
    for measure in ("kl", "chi2"):
        for scope in SCOPES:
            options = {"measure": measure, "scope": scope, "solver": "optimal"}
            second = mean_seconds(joints, options)
            name = f"{measure}, {scope}"
            print(f"  {name:<22} {second:6.2f} s   ratio {second / first:5.1f}")


def mean_seconds(joints, options):
    """Return the mean time of a path of 100 budgets."""
    return np.mean([timed(privacy_utility_path, j, HUNDRED, **options)[0] for j in joints])


def gains(n):
    """Print the mean normalised utility of Algorithm 1, as in the paper, and of the optimum."""
    solvers = {
        "Algorithm 1": {"solver": Algorithm1Solver(eps_last=1.0)},
        "optimum, every output": {"solver": OptimalSolver(start="algorithm1")},
        "optimum, on average": {"solver": OptimalSolver(start="algorithm1"), "scope": "average"},
    }
    rows = {name: [] for name in solvers}
    for joint in random_joints(n, (4, 7)):
        for name, options in solvers.items():
            # Algorithm 1 tries what is between the budgets: it gets those of the paper.
            epsilons = PATH if name == "Algorithm 1" else TABLE
            mechanisms = privacy_utility_path(joint, epsilons, **options)
            kept = {mechanism.epsilon: mechanism.normalized_utility for mechanism in mechanisms}
            rows[name].append([kept[min(kept, key=lambda e: abs(e - at))] for at in TABLE])
    print(f"\nMean normalised utility over {n} joints of 4 x 7, kl (gain, its standard error):")
    print(f"  {'':<22}" + "".join(f"{epsilon:>8}" for epsilon in TABLE))
    base = np.array(rows["Algorithm 1"])
    for name, values in rows.items():
        values = np.array(values)
        print(f"  {name:<22}" + "".join(f"{mean:8.4f}" for mean in values.mean(axis=0)))
        if name != "Algorithm 1":
            gain = values - base
            error = gain.std(axis=0, ddof=1) / np.sqrt(n)
            print(f"  {'  gain':<22}" + "".join(f"{mean:8.4f}" for mean in gain.mean(axis=0)))
            print(f"  {'  error':<22}" + "".join(f"{mean:8.4f}" for mean in error))
            print(f"    smallest gain of any joint: {gain.min():.1e}")


def columns():
    """Print how long column generation takes, and how good it is where that can be certified."""
    print("\nColumn generation on random joints, kl, epsilon .02:")
    for shape in ((4, 12), (3, 30), (5, 20)):
        joint = random_joints(1, shape)[0]
        for scope in SCOPES:
            seconds, ours = timed(
                design_mechanism, joint, 0.02, scope=scope, solver="column_generation"
            )
            certified, best = timed(
                design_mechanism, joint, 0.02, scope=scope, solver=OptimalSolver(tol=1e-4)
            )
            print(
                f"  {shape[0]} x {shape[1]:<5} {scope:<11} {seconds:6.1f} s, "
                f"{ours.utility / best.upper_bound:.3%} of the bound that `optimal` has after "
                f"{certified:.1f} s"
            )
    for shape in ((5, 50), (5, 100), (2, 1000)):
        joint = random_joints(1, shape)[0]
        seconds, ours = timed(design_mechanism, joint, 0.02, solver="column_generation")
        print(
            f"  {shape[0]} x {shape[1]:<5} per_output  {seconds:6.1f} s, keeps "
            f"{ours.normalized_utility:.4f} of H(X), gap {ours.gap:.1e}"
        )


def sizes():
    """Print what is proven at ordinary sizes: random joints with entries U(0, 1) squared."""
    print('\nWhat "auto" proves, random joints, kl, epsilon .02, seconds of one core:')
    for shape in ((6, 8), (6, 16), (6, 32), (6, 64), (3, 60), (10, 40), (2, 500)):
        joint = np.random.default_rng(5).random(shape) ** 2
        for scope in SCOPES:
            show_proof(f"{shape[0]} x {shape[1]}", joint / joint.sum(), 0.02, scope)


def pairs():
    """Print what is proven for two groups, where all outputs are pairs of symbols."""
    print('\nWhat "auto" proves for two groups, epsilon .02, seconds of one core:')
    for n_x in (150, 200, 500, 1000):
        joint = np.random.default_rng(5).random((2, n_x)) ** 2
        for scope in SCOPES:
            show_proof(f"2 x {n_x}", joint / joint.sum(), 0.02, scope)
    for measure in ("chi2", "l1", "max_lift", "alpha_lift", "parity"):
        name = f"2 x 1000, {measure}"
        show_proof(name, joint / joint.sum(), 0.02, "average", measure=measure)
    target = Target(np.random.default_rng(1).random((3, n_x)) ** 3)
    show_proof("2 x 1000, target of 3", joint / joint.sum(), 0.02, "average", utility=target)
    joint = np.random.default_rng(5).random((2, 60)) ** 2
    joint /= joint.sum()
    seconds, _ = timed(design_mechanism, joint, 0.02, scope="average")
    columns, _ = timed(design_mechanism, joint, 0.02, scope="average", solver="column_generation")
    print(
        f"  column_generation at 2 x 60, average: {columns:.1f} s, ratio {columns / seconds:.0f}"
    )


def hard():
    """Print what is proven with many groups, and about a target: limits of work matter."""
    print(
        '\nWhat "auto" proves with many groups or a target, kl, epsilon .02, seconds of one core:'
    )
    for shape in ((12, 64), (20, 50), (50, 10), (50, 40)):
        rng = np.random.default_rng(0)
        joint = rng.gamma(1, size=(shape[0], 1)) * rng.dirichlet(np.full(shape[1], 5.0), shape[0])
        show_proof(f"{shape[0]} x {shape[1]}", joint / joint.sum(), 0.02, "per_output")
    joint = np.random.default_rng(5).random((6, 64)) ** 2
    for n_v in (2, 3):
        target = Target(np.random.default_rng(1).random((n_v, 64)))
        name = f"6 x 64, target of {n_v}"
        show_proof(name, joint / joint.sum(), 0.02, "per_output", utility=target)


def polyhedral():
    """Print what is proven for measures whose budgets are polytopes: joints as in `designs`."""
    print('\nWhat "auto" proves for other measures, epsilon .15, seconds of one core:')
    for shape in ((6, 16), (6, 32), (6, 64), (12, 64)):
        joint = random_joints(1, shape)[0]
        for measure in ("l1", "max_lift"):
            for scope in SCOPES:
                name = f"{shape[0]} x {shape[1]}, {measure}"
                show_proof(name, joint, 0.15, scope, measure=measure)
    for measure, scope in (("parity", "per_output"), ("parity", "average"), ("lip", "per_output")):
        name = f"6 x 16, {measure}"
        show_proof(name, random_joints(1, (6, 16))[0], 0.15, scope, measure=measure)


def show_proof(name, joint, epsilon, scope, **options):
    """Print what a design keeps, and the gap that it proves, as shares of the largest utility."""
    start = time.process_time()
    found = design_mechanism(joint, epsilon, scope=scope, **options)
    seconds = time.process_time() - start
    kept, bound = found.normalized_utility, found.normalized_upper_bound
    print(
        f"  {name:<22} {scope:<11} {seconds:6.1f} s, keeps {kept:.2%}, at most {bound:.2%}: "
        f"gap {bound - kept:.1e} ({found.solver})",
        flush=True,
    )


def local():
    """Print the optimum on the 3 x 3 joint where local solvers stop early."""
    seconds, best = timed(
        design_mechanism, THREE_BY_THREE, 0.1, scope="average", solver=OptimalSolver(tol=1e-7)
    )
    print(
        f"\nThe privacy funnel of the 3 x 3 joint at epsilon .1: {best.utility:.6f} nats, at most "
        f"{best.upper_bound:.6f}, in {seconds:.3f} s"
    )


def pooled(frame, sensitive, n_symbols):
    """Return counts of S and of the commonest pairs of education and occupation."""
    s = frame[sensitive].astype(str).agg(" ".join, axis=1)
    pairs = frame["education"].astype(str) + "|" + frame["occupation"].astype(str)
    common = pairs.value_counts().index[: n_symbols - 1]
    return pd.crosstab(s, pairs.where(pairs.isin(common), "other"))


def real(file):
    """Print what is proven for tables of adult.csv, and the time of certified designs."""
    frame = pd.read_csv(file).fillna("missing")
    print('\nWhat "auto" proves, tables of adult.csv, kl, seconds of one core:')
    tables = {
        "race, 5 x 16": (pd.crosstab(frame["race"], frame["education"]), 0.002),
        "relationship, 6 x 64": (pooled(frame, ["relationship"], 64), 0.02),
        "race and sex, 10 x 40": (pooled(frame, ["race", "sex"], 40), 0.02),
    }
    for name, (table, epsilon) in tables.items():
        for scope in SCOPES:
            show_proof(name, table, epsilon, scope)
    print("\nTables of adult.csv, tol 1e-4:")
    pairs = frame["education"].astype(str) + "|" + frame["occupation"].astype(str)
    tables = {
        "race/education": pd.crosstab(frame["race"], frame["education"]),
        "sex/(education, occupation)": pd.crosstab(frame["sex"], pairs),
    }
    for name, table in tables.items():
        for measure, epsilon in (("kl", 0.002), ("kl", 0.005), ("chi2", 0.05)):
            for scope in SCOPES:
                seconds, best = timed(
                    design_mechanism, table, epsilon, measure=measure, scope=scope,
                    solver=OptimalSolver(tol=1e-4),
                )  # fmt: skip
                print(
                    f"  {name} {table.shape[0]} x {table.shape[1]}, {measure} {epsilon} {scope}: "
                    f"{seconds:.2f} s, keeps {best.normalized_utility:.4f}, gap {best.gap:.1e}"
                )


def main():
    """Run the parts that are asked for."""
    parts = {"designs": designs, "path": path, "gains": gains, "columns": columns, "local": local,
             "sizes": sizes, "pairs": pairs, "hard": hard, "polyhedral": polyhedral}  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="*", choices=parts, default=list(parts))
    parser.add_argument("--joints", type=int, default=20)
    parser.add_argument("--adult", help="the path of adult.csv")
    options = parser.parse_args()
    design_mechanism(THREE_BY_THREE, 0.1, solver="optimal")  # warm up
    for name in options.parts:
        counted = name in ("designs", "path", "gains")
        parts[name](*([options.joints] if counted else []))
    if options.adult:
        real(options.adult)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"\nPeak memory {peak:.2f} GiB")


if __name__ == "__main__":
    main()
