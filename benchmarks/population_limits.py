"""How often the limits for the population hold: ``population_leakage``, by simulation.

In each cell, joints are drawn, rows from each joint, and a mechanism is designed for the rows. The
limits should not be below what it leaks under the joint more often than they claim. Printed with
99.9% limits of Clopper and Pearson: the share of samples in which the limit of the worst output
held, that in which the limit of the average did, and that of single outputs whose limits held.
Run ``python benchmarks/population_limits.py`` (an hour or so; ``--samples 100`` for less).
"""

import argparse
import warnings

import numpy as np
from scipy.stats import binomtest

from skprivacy import design_mechanism
from skprivacy.measures import get_measure
from skprivacy.metrics import population_leakage


def spread(rng, n_s, n_x):
    """Return a joint whose cells are alike."""
    return rng.dirichlet(np.ones(n_s * n_x)).reshape(n_s, n_x)


def rare_group(rng, share, n_x):
    """Return a joint with two groups of S, one of which has a small share."""
    return np.array([[1 - share], [share]]) * rng.dirichlet(np.ones(n_x), size=2)


def power_law(rng, n_s, n_x):
    """Return a joint where the groups of S, and the symbols of X, are ever rarer."""
    p_s, p_x = np.arange(1.0, n_s + 1) ** -1.5, 1 / np.arange(1.0, n_x + 1)
    given_s = rng.dirichlet(2.5 * n_x * p_x / p_x.sum(), size=n_s)
    return (p_s / p_s.sum())[:, None] * given_s


def dependent(rng, n_s, n_x):
    """Return a joint where symbols of X are ever rarer, and tell much about S."""
    p_x = 1 / np.arange(1.0, n_x + 1)
    return p_x / p_x.sum() * rng.dirichlet(np.ones(n_s), size=n_x).T


# How joints are drawn, the number of rows, the measure and the budget.
CELLS = [
    *((rare_group, (0.02, 5), 1000, *measure) for measure in [
        ("kl", 0.02), ("l1", 0.1), ("chi2", 0.1), ("max_lift", 0.1), ("alpha_lift", 0.02),
        ("lip", 0.1), ("parity", 0.1),
    ]),
    (rare_group, (0.01, 5), 1000, "max_lift", 0.1),
    (rare_group, (0.03, 5), 300, "max_lift", 0.02),
    (rare_group, (0.05, 64), 1000, "kl", 0.02),
    (rare_group, (0.05, 64), 1000, "max_lift", 0.1),
    (spread, (4, 7), 300, "kl", 0.02),
    (spread, (4, 7), 1000, "kl", 0.02),
    (spread, (4, 7), 10_000, "kl", 0.02),
    (spread, (4, 7), 1000, "max_lift", 0.2),
    (spread, (4, 7), 1000, "lip", 0.2),
    (power_law, (5, 16), 1000, "max_lift", 0.2),
    (power_law, (5, 16), 1000, "kl", 0.02),
    (dependent, (5, 16), 1000, "max_lift", 0.2),
]  # fmt: skip


def held(rng, cell, confidence):
    """Return whether the limits held: of the worst output, of the average, of each output."""
    draw, shape, n, measure, epsilon = cell
    joint = draw(rng, *shape)
    counts = rng.multinomial(n, joint.ravel()).reshape(joint.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mechanism = design_mechanism(counts, epsilon, measure=measure)
    truth = mechanism.evaluate(joint)
    limits = population_leakage(mechanism, n, confidence=confidence, random_state=rng)
    return (
        truth.max_leakage <= limits.max_leakage,
        truth.average_leakage <= limits.average_leakage,
        truth.leakage <= limits.per_output.to_numpy(),
    )


def shown(successes):
    """Return the share of successes and its limits."""
    successes = np.asarray(successes)
    low, high = binomtest(int(successes.sum()), successes.size).proportion_ci(0.999)
    return f"{successes.mean():.3f} [{low:.3f}, {high:.3f}]"


def main():
    """Print one line per cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--cell", type=int, action="append", help="run these only")
    options = parser.parse_args()
    print(f"confidence {options.confidence}, {options.samples} samples per cell")
    print(f"{'joint':<22}{'rows':>7}  {'measure':<11}{'worst output':<24}{'average':<24}each")
    for i, cell in enumerate(CELLS):
        if options.cell and i not in options.cell:
            continue
        rng = np.random.default_rng(i)
        samples = [held(rng, cell, options.confidence) for _ in range(options.samples)]
        worst, average, each = zip(*samples, strict=True)
        draw, shape, n, measure, _ = cell
        both = shown(worst), shown(average) if "average" in get_measure(measure).scopes else "-"
        print(
            f"{f'{draw.__name__}{shape}':<22}{n:>7}  {measure:<11}{both[0]:<24}{both[1]:<24}"
            f"{np.concatenate(each).mean():.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
