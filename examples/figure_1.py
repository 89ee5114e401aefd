"""
Figure 1 of the paper: the privacy funnel, per output
=====================================================

Normalised utility, I(S;Y) and the logarithm of the largest lift against epsilon, averaged over
random joint distributions: Algorithm 1 with L(y) <= epsilon and the optimal max-lift mechanism.
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

SOLVERS = {"algorithm1": ALGORITHM1, "max_lift": {"solver": "max_lift"}}
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
LABELS = {"algorithm1": "Algorithm 1", "max_lift": "optimal max-lift mechanism"}


def curves_of_joint(joint):
    """Return the three panels for one joint."""
    paths = {
        name: privacy_utility_path(joint, EPSILONS, measure="kl", **solver)
        for name, solver in SOLVERS.items()
    }
    return panels_of(paths, FIGURES)


if __name__ == "__main__":
    options = parse_options(__doc__, joints=100)
    panels = mean_curves(curves_of_joint, options)
    published = {panel: read_published(name) for panel, name in PUBLISHED.items()}
    for up_to in (0.25, 0.5):
        print(f"Largest difference to the published curves up to epsilon = {up_to}:")
        table = {panel: difference(panels[panel], published[panel], up_to) for panel in panels}
        print(pd.DataFrame(table).round(4).to_string())
    save("figure_1", panels, TITLES, LABELS, options, published)
