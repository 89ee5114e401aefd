"""
Figure 3 of the paper: Algorithm 1 against the chi-squared theory
=================================================================

In Example 1 of the paper (from Zamani et al.), S and X have two symbols each, and the optimal
mechanism is known in closed form. The published utility panel is labelled I(X;Y) but shows I(X;Y)
/ H(X). The leakage panel shows chi2 itself, which is bounded by epsilon squared
(docs/corrections.rst, correction 5).
"""

import numpy as np
import pandas as pd
from paper_figures import difference, panels_of, parse_options, read_published, save

from skprivacy import privacy_utility_path
from skprivacy.solvers import Algorithm1Solver

JOINT = np.array([[0.25, 0.4], [0.75, 0.6]]) * [0.25, 0.75]  # P(S|X) and P(X)
EPSILONS = np.arange(1, 79) / 1000

FIGURES = {
    "utility": lambda mechanism: mechanism.normalized_utility,
    "leakage": lambda mechanism: mechanism.max_leakage**2,
    "max_lift": lambda mechanism: np.log(mechanism.max_lift),
}
PUBLISHED = {"utility": "fig3a_utility", "leakage": "fig3b_leakage", "max_lift": "fig3c_max_lift"}
TITLES = {
    "utility": "I(X;Y) / H(X)",
    "leakage": "chi2 of the worst output",
    "max_lift": "log of the largest lift",
}
LABELS = {
    "algorithm1": "Algorithm 1, the paper's window",
    "all": "Algorithm 1, all candidates",
    "theory": "theory: the chi2 design",
}


def path(label, **options):
    """Return the mechanisms of a curve."""
    print(LABELS[label])
    return privacy_utility_path(JOINT, EPSILONS, measure="chi2", verbose=True, **options)


if __name__ == "__main__":
    options = parse_options(__doc__)
    paths = {
        "algorithm1": path("algorithm1", solver="algorithm1"),
        "all": path("all", solver=Algorithm1Solver(candidates="all")),
        "theory": path("theory", solver="chi2_design"),
    }
    panels = panels_of(paths, FIGURES)
    published = read_published(PUBLISHED)
    print("Largest difference to the published curves:")
    table = {panel[1]: difference(panels[panel], published[panel]) for panel in panels}
    print(pd.DataFrame(table).to_string())
    ours, theory = panels["", "utility"]["all"], published["", "utility"]["theory"]
    relative = (ours / theory - 1).abs()
    worst = relative[relative.index >= 0.0099].max()
    print(f"All candidates against the published theory, epsilon >= 0.01: {worst:.4%}")
    save("figure_3", panels, TITLES, LABELS, options, published, overlap=True)
