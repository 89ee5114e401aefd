"""
Figure 2 of the paper: l1 and chi-squared privacy
=================================================

Normalised utility, the leakage of the worst output and the logarithm of the largest lift against
epsilon, averaged over random joint distributions, for Algorithm 1 in its corrected form: as
written it has no solution for these two measures (docs/corrections.rst). The numbers of the
published figure are not available, so there is nothing to compare with.
"""

import numpy as np
from paper_figures import ALGORITHM1, EPSILONS, mean_curves, panels_of, parse_options, save

from skprivacy import privacy_utility_path

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
LABELS = {"l1": "Algorithm 1, l1", "chi2": "Algorithm 1, chi2 (root)"}


def curves_of_joint(joint):
    """Return the three panels for one joint."""
    paths = {
        measure: privacy_utility_path(joint, EPSILONS, measure=measure, **ALGORITHM1)
        for measure in LABELS
    }
    return panels_of(paths, FIGURES)


if __name__ == "__main__":
    options = parse_options(__doc__, joints=100)
    panels = mean_curves(curves_of_joint, options)
    print(panels["utility"].iloc[[1, 7, 19, 39, 79, 199]].round(4).to_string())
    save("figure_2", panels, TITLES, LABELS, options)
