"""Time a full path of 200 points of Algorithm 1 at 4 x 7 against a plain loop, in the same run.

The plain loop is the paper's pseudocode over cdd and scipy's linprog, as in tests/reference.py.
Run it as ``python benchmarks/algorithm1_path.py``; it uses one core.
"""

import argparse
import cProfile
import pstats
import sys
import time
from pathlib import Path

import numpy as np

from skprivacy import privacy_utility_path
from skprivacy.solvers import Algorithm1Solver

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from reference import naive_algorithm1

EPSILONS = np.arange(1, 201) * 0.0025

# Where the time goes: the functions of ours that a path consists of.
STAGES = {
    "enumerate vertices": ("lift_polytopes.py", "segments"),
    "leakage on the grid, windows": ("algorithm1.py", "_window_candidates"),
    "max-lift vertices": ("candidates.py", "vertices"),
    "linear programs": ("linear_program.py", "solve"),
    "of which HiGHS": ("~", "run"),
    "mechanisms and their checks": ("design.py", "_finish"),
}


def path(joint, epsilons, **options):
    """Run our path."""
    return privacy_utility_path(joint, epsilons, measure="kl", solver=Algorithm1Solver(**options))


def seconds(function, *arguments, **options):
    """Return how long a call takes, and its result."""
    start = time.perf_counter()
    result = function(*arguments, **options)
    return time.perf_counter() - start, result


def profile(joint, epsilons):
    """Print the share of each stage, from a profile of one path."""
    profiler = cProfile.Profile()
    profiler.runcall(path, joint, epsilons, eps_last=1.0)
    statistics = pstats.Stats(profiler).stats
    total = max(cumulative for _, _, _, cumulative, _ in statistics.values())
    print("\nWhere the time of a path goes (profiled, so slower than above):")
    for stage, (module, name) in STAGES.items():
        spent = sum(
            cumulative
            for (file, _, function), (_, _, _, cumulative, _) in statistics.items()
            if file.endswith(module) and _is_called(function, name)
        )
        print(f"  {stage:<30} {spent:6.3f} s  {spent / total:5.0%}")


def _is_called(function, name):
    """Return whether a profiled function has a name, bare or as a method of HiGHS."""
    return function == name or ("highspy" in function and f".{name}" in function)


def main():
    """Compare and profile."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--joints", type=int, default=5)
    parser.add_argument("--budgets", type=int, default=len(EPSILONS), help="how many of them")
    options = parser.parse_args()
    epsilons = EPSILONS[: options.budgets]
    joints = np.random.default_rng(0).random((options.joints, 4, 7))
    joints /= joints.sum(axis=(1, 2), keepdims=True)
    path(joints[0], epsilons, eps_last=1.0)  # warm up
    rows = []
    for joint in joints:
        naive_time, naive = seconds(naive_algorithm1, joint, epsilons, eps_last=1.0)
        window_time, window = seconds(path, joint, epsilons, eps_last=1.0)
        all_time, _ = seconds(path, joint, epsilons, candidates="all")
        error = np.abs(naive - [mechanism.utility for mechanism in window]).max()
        rows.append((naive_time, window_time, all_time, error))
    naive_time, window_time, all_time, _ = np.median(rows, axis=0)
    print(f"{len(epsilons)}-point path at 4 x 7, median of {options.joints} joints:")
    print(f"  plain loop over cdd and linprog {naive_time:6.3f} s")
    for name, ours in (("the paper's window", window_time), ("all candidates", all_time)):
        print(f"  skprivacy, {name:<20} {ours:6.3f} s  {naive_time / ours:.1f} x faster")
    print(f"  largest difference in utility   {max(row[-1] for row in rows):.1e} nats (window)")
    profile(joints[0], epsilons)


if __name__ == "__main__":
    main()
