"""How long designs for a loss of labels take, and how small a gap they prove.

Run ``python benchmarks/one_per_label.py``; it uses one core and takes two minutes. X is a number
whose distribution differs between the groups of S; the loss is the share of rows between two
values, or 1 for every wrong guess. Then the same for several budgets: each search started with
what the one before has left ("warm"), and each alone ("cold").
"""

import argparse
import time
import warnings
from collections.abc import Callable
from unittest.mock import patch

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skprivacy import design_mechanism, privacy_utility_path
from skprivacy.budgets import mechanism_for_utility
from skprivacy.solvers import OnePerLabelSolver, Solver
from skprivacy.utilities import Distortion

# Groups and symbols.
CASES = ((6, 64), (2, 225), (6, 200), (2, 900))
SERIES = ((3, 32), (6, 64))
EPSILONS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.08)
SCOPES = ("per_output", "average")
TOL = 1e-3  # of the series


def ordered_joint(n_s, n_x, seed=0):
    """Return a joint in which neighbouring symbols say about the same about S."""
    rng = np.random.default_rng(seed)
    p_x, place = rng.dirichlet(np.full(n_x, 3.0)), np.linspace(0, 1, n_x)
    waves = np.sin(2 * np.pi * (place * rng.uniform(0.3, 1.5, (n_s, 1)) + rng.random((n_s, 1))))
    p_s_given_x = np.exp(2 * waves + 0.3 * rng.normal(size=(n_s, n_x)))
    return p_x * p_s_given_x / p_s_given_x.sum(axis=0)


def rows_between(p_x):
    """Return the loss: how many rows lie between two values."""
    ranks = np.cumsum(p_x) - p_x / 2
    return np.abs(ranks[:, None] - ranks)


def seconds(run: Callable[[], object]):
    """Return the seconds of one core that a call takes, and what it returns."""
    began = time.process_time()
    result = run()
    return time.process_time() - began, result


def print_design(n_s, n_x, scope, utility, epsilon):
    """Print a line for one design."""
    joint = ordered_joint(n_s, n_x)
    took, mechanism = seconds(
        lambda: design_mechanism(joint, epsilon, scope=scope, utility=utility)
    )
    gap = mechanism.gap / mechanism.objective.span(mechanism.p_x)
    kept, name = mechanism.normalized_utility, mechanism.objective.name
    print(f"{n_s} x {n_x}, {scope}, {name}: {took:.1f} s, {kept:.1%}, gap {gap:.1e}", flush=True)


def print_series(n_s, n_x, scope):
    """Print lines for a path and for the smallest budget that keeps half of the utility."""
    joint = ordered_joint(n_s, n_x)
    utility = Distortion(rows_between(joint.sum(axis=0)))
    options = {"scope": scope, "utility": utility, "solver_options": {"tol": TOL}}
    warm, _ = seconds(lambda: privacy_utility_path(joint, EPSILONS, **options))
    cold, _ = seconds(
        lambda: [design_mechanism(joint, epsilon, **options) for epsilon in EPSILONS]
    )
    print_ratio(f"{n_s} x {n_x}, {scope}, path of {len(EPSILONS)}", warm, cold)
    warm, _ = seconds(lambda: mechanism_for_utility(joint, 0.5, **options))
    with patch.object(OnePerLabelSolver, "prepared", Solver.prepared):
        cold, _ = seconds(lambda: mechanism_for_utility(joint, 0.5, **options))
    print_ratio(f"{n_s} x {n_x}, {scope}, mechanism_for_utility", warm, cold)


def print_ratio(what, warm, cold):
    """Print how long both take."""
    print(f"{what}: warm {warm:.1f} s, cold {cold:.1f} s, {cold / warm:.1f} times", flush=True)


def main():
    """Print a line for each case and scope."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=len(CASES), help="how many of the cases")
    parser.add_argument("--series", type=int, default=len(SERIES), help="how many of the series")
    parser.add_argument("--most-symbols", type=int, default=900, help="in any case or series")
    parser.add_argument("--epsilon", type=float, default=0.02)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    print("groups x symbols, scope: seconds, utility kept, gap proved (of releasing nothing)")
    for n_s, n_symbols in CASES[: options.cases]:
        n_x = min(n_symbols, options.most_symbols)
        loss = Distortion(rows_between(ordered_joint(n_s, n_x).sum(axis=0)))
        for utility in (loss, "guess"):
            for scope in SCOPES:
                print_design(n_s, n_x, scope, utility, options.epsilon)
    for n_s, n_x in SERIES[: options.series]:
        for scope in SCOPES:
            print_series(n_s, min(n_x, options.most_symbols), scope)


if __name__ == "__main__":
    main()
