"""How long designs for a loss of labels take, and how small a gap they prove.

Run ``python benchmarks/one_per_label.py``; it uses one core and takes some minutes. X is a number
whose distribution differs between the groups of S; the loss is the share of rows between two
values.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skprivacy import Distortion, design_mechanism

# Groups, symbols, and the seconds that a design may take.
CASES = ((6, 64, 30), (2, 200, 60), (6, 200, 60), (2, 500, 60))
TOL = 1e-3


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


def main():
    """Print a line for each case and scope."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=len(CASES), help="how many of the cases")
    parser.add_argument("--epsilon", type=float, default=0.02)
    options = parser.parse_args()
    print("groups x symbols, scope: seconds, loss kept away, gap proved (of releasing nothing)")
    for n_s, n_x, seconds in CASES[: options.cases]:
        joint = ordered_joint(n_s, n_x)
        utility = Distortion(rows_between(joint.sum(axis=0)))
        for scope in ("per_output", "average"):
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                mechanism = design_mechanism(
                    joint, options.epsilon, scope=scope, utility=utility, tol=TOL, max_time=seconds
                )
            took = time.perf_counter() - began
            gap = mechanism.gap / utility.span(mechanism.p_x)
            kept = mechanism.normalized_utility
            print(f"{n_s} x {n_x}, {scope}: {took:.1f} s, {kept:.1%}, gap {gap:.1e}", flush=True)


if __name__ == "__main__":
    main()
