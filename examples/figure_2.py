"""
Figure 2 of the paper: l1 and chi-squared privacy
=================================================

The panels show the normalised utility, the leakage of the worst output and the logarithm of the
largest lift P(s|y) / P(s) against epsilon, averaged over random joint distributions. The
mechanisms are Algorithm 1 in its corrected form (as written it has no solution for these two
measures: docs/corrections.rst, correction 2), subset merging in its strict form, and the best
partition, which is the best way to merge symbols. The numbers of the published figure are not
available, so there is nothing to compare with. For chi2 the leakage shown is the square root of
chi2, because that is what epsilon bounds.
"""

import numpy as np
from paper_figures import ALGORITHM1, EPSILONS, mean_curves, panels_of, parse_options, save

from skprivacy import privacy_utility_path

SOLVERS = {
    "algorithm1": ALGORITHM1,
    "best_partition": "best_partition",
    "subset_merging": "subset_merging",
}
FIGURES = {
    "utility": lambda mechanism: mechanism.normalized_utility,
    "leakage": lambda mechanism: mechanism.max_leakage,
    "max_lift": lambda mechanism: np.log(mechanism.max_lift),
}
TITLES = {
    "utility": "I(X;Y) / H(X)",
    "leakage": "leakage of the worst output",
    "max_lift": "log of the largest lift",
}
LABELS = {
    "algorithm1": "Algorithm 1",
    "best_partition": "best partition",
    "subset_merging": "subset merging, strict",
}


def curves_of_joint(joint):
    """Return the three panels of both measures for one joint."""
    panels = {}
    for measure in ("l1", "chi2"):
        paths = {
            name: privacy_utility_path(joint, EPSILONS, measure=measure, solver=solver)
            for name, solver in SOLVERS.items()
        }
        panels |= panels_of(paths, FIGURES, row=measure)
    return panels


if __name__ == "__main__":
    options = parse_options(__doc__, joints=100)
    panels, _ = mean_curves(curves_of_joint, options)
    for (row, panel), curves in panels.items():
        if panel == "utility":
            print(f"Normalised utility, {row}:")
            print(curves.iloc[[1, 7, 19, 39, 79, 199]].round(4).to_string())
    note = "The leakage for chi2 is the root of chi2, which epsilon bounds."
    save("figure_2", panels, TITLES, LABELS, options, note=note)
