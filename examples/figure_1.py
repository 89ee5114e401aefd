"""
Figure 1 of the paper: the privacy funnel, per output
=====================================================

The panels show the normalised utility, the leakage I(S;Y) and the logarithm of the largest lift
P(s|y) / P(s) against epsilon, averaged over random joint distributions. The mechanisms are
Algorithm 1 and subset merging with L(y) <= epsilon, and the optimal max-lift mechanism. L(y) is
what an output y reveals about S, as a Kullback-Leibler divergence.

Subset merging is strict here: blocks of symbols are merged until every block is private. From
epsilon = 0.02 on, the published curve lies above the best of all partitions (ways to merge
symbols) that keep the budget, which is also drawn. No partition can reach it, so its budget was
most likely not met (docs/corrections.rst, correction 7).
"""

import numpy as np
import pandas as pd
from paper_figures import (
    ALGORITHM1,
    EPSILONS,
    difference,
    mean_curves,
    panels_of,
    parse_options,
    read_published,
    save,
)

from skprivacy import privacy_utility_path

SOLVERS = {
    "algorithm1": ALGORITHM1,
    "best_partition": "best_partition",
    "subset_merging": "subset_merging",
    "max_lift": "lift_polytope",
}
FIGURES = {
    "utility": lambda mechanism: mechanism.normalized_utility,
    "leakage": lambda mechanism: mechanism.sensitive_information,
    "max_lift": lambda mechanism: np.log(mechanism.max_lift),
}
PUBLISHED = {"utility": "fig1a_utility", "leakage": "fig1b_leakage", "max_lift": "fig1c_max_lift"}
TITLES = {
    "utility": "I(X;Y) / H(X)",
    "leakage": "I(S;Y) in nats",
    "max_lift": "log of the largest lift",
}
LABELS = {
    "algorithm1": "Algorithm 1",
    "best_partition": "best partition",
    "subset_merging": "subset merging, strict",
    "max_lift": "optimal max-lift mechanism",
}


def curves_of_joint(joint):
    """Return the three panels for one joint."""
    paths = {
        name: privacy_utility_path(joint, EPSILONS, measure="kl", solver=solver)
        for name, solver in SOLVERS.items()
    }
    return panels_of(paths, FIGURES)


def unreachable(means, errors, published):
    """Say at which budgets published subset merging is above the best partition.

    By three standard errors: both are means over as many joints, which are not the same.
    """
    best, as_published = means["", "utility"]["best_partition"], published["", "utility"]
    high = best + 3 * np.sqrt(2) * errors["", "utility"]["best_partition"]
    high = high.reindex(as_published.index, method="nearest", tolerance=1e-9)
    above = as_published.index[as_published["subset_merging"] > high]
    if above.empty:
        return ""
    return (
        f"At {len(above)} budgets from {above.min():g} to {above.max():g}, subset merging as "
        f"published is above the best partition by more than three standard errors: no partition "
        f"within the budget reaches it."
    )


if __name__ == "__main__":
    options = parse_options(__doc__, joints=100)
    panels, errors = mean_curves(curves_of_joint, options)
    published = read_published(PUBLISHED)
    for up_to in (0.25, 0.5):
        print(f"Largest difference to the published curves up to epsilon = {up_to}:")
        table = {panel[1]: difference(panels[panel], published[panel], up_to) for panel in panels}
        print(pd.DataFrame(table).round(4).to_string())
    note = unreachable(panels, errors, published) if options.joints >= 30 else ""
    print(note)
    save("figure_1", panels, TITLES, LABELS, options, published, note=note)
