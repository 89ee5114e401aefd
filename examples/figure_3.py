"""
Figure 3 of the paper: Algorithm 1 against the chi-squared theory
=================================================================

Example 1 (Zamani et al.): |S| = |X| = 2, where the optimal mechanism is known in closed form. The
published utility panel is labelled I(X;Y) but shows I(X;Y) / H(X); the leakage panel shows chi2
itself, which is bounded by epsilon squared.
"""

import numpy as np
import pandas as pd
from paper_figures import difference, panels_of, parse_options, read_published, save

from skprivacy import Chi2, Mechanism, privacy_utility_path

P_S_GIVEN_X = np.array([[0.25, 0.4], [0.75, 0.6]])
P_X = np.array([0.25, 0.75])
JOINT = P_S_GIVEN_X * P_X
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
    "theory": "theory",
}


def theory(epsilon):
    """Return the closed form: Y uniform on two symbols, P(X|Y) = px -/+ epsilon slope.

    With two symbols the posterior moves on a line, P(S|Y) = ps -/+ epsilon C (slope, -slope), and
    the slope makes chi2 equal to epsilon squared.
    """
    direction = np.array([1.0, -1.0])
    p_s = P_S_GIVEN_X @ P_X
    slope = direction / np.sqrt(((P_S_GIVEN_X @ direction) ** 2 / p_s).sum())
    posterior = np.stack([P_X - epsilon * slope, P_X + epsilon * slope])
    return Mechanism(
        channel=(posterior / 2 / P_X).T,
        p_sx=JOINT,
        s_labels=(0, 1),
        x_labels=(0, 1),
        y_labels=(0, 1),
        measure=Chi2(),
        epsilon=epsilon,
        scope="per_output",
        solver="theory",
    )


if __name__ == "__main__":
    options = parse_options(__doc__)
    paths = {
        "algorithm1": privacy_utility_path(JOINT, EPSILONS, measure="chi2", solver="algorithm1"),
        "all": privacy_utility_path(
            JOINT, EPSILONS, measure="chi2", solver="algorithm1", candidates="all"
        ),
        "theory": [theory(float(epsilon)) for epsilon in EPSILONS],
    }
    panels = panels_of(paths, FIGURES)
    published = {panel: read_published(name) for panel, name in PUBLISHED.items()}
    print("Largest difference to the published curves:")
    table = {panel: difference(panels[panel], published[panel]) for panel in panels}
    print(pd.DataFrame(table).to_string())
    relative = (panels["utility"]["all"] / published["utility"]["theory"] - 1).abs()
    worst = relative[relative.index >= 0.0099].max()
    print(f"All candidates against the published theory, epsilon >= 0.01: {worst:.4%}")
    save("figure_3", panels, TITLES, LABELS, options, published, overlap=True)
