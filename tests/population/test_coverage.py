"""Designs with a confidence keep their budget in the population, where those without do not."""

import numpy as np
import pytest
from scipy.stats import binom

from skprivacy import design_mechanism

N_SAMPLES, CONFIDENCE = 16, 0.95

# If the budget holds with the confidence, it does so in fewer samples than this in less than one
# of a million runs. The seeds are fixed.
FEWEST = int(binom.ppf(1e-6, N_SAMPLES, CONFIDENCE))


def samples(n_rows, n_groups):
    """Yield joints and counts of rows drawn from them."""
    for seed in range(N_SAMPLES):
        rng = np.random.default_rng(seed)
        joint = rng.dirichlet(np.ones(4 * n_groups)).reshape(n_groups, 4)
        yield joint, rng.multinomial(n_rows, joint.ravel()).reshape(n_groups, 4)


def truth(mechanism, joint):
    """Return what is leaked and what is kept under a joint."""
    found = mechanism.evaluate(joint)
    per_output = mechanism.scope == "per_output"
    leakage = found.max_leakage if per_output else found.average_leakage
    return leakage, found.normalized_utility


@pytest.mark.parametrize(
    ("measure", "scope", "epsilon", "n_rows"),
    [
        ("kl", "per_output", 0.02, 400),
        ("max_lift", "per_output", 0.2, 400),
        ("parity", "average", 0.2, 1500),
    ],
)
@pytest.mark.parametrize("n_groups", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_the_budget_holds_in_the_population(measure, scope, epsilon, n_rows, n_groups):
    asked = {"measure": measure, "scope": scope}
    careful, plug_in = [], []
    for joint, counts in samples(n_rows, n_groups):
        design = design_mechanism(counts, epsilon, confidence=CONFIDENCE, **asked)
        careful.append(truth(design, joint))
        plug_in.append(truth(design_mechanism(counts, epsilon, **asked), joint))
    leakage, utility = np.transpose(careful)
    assert (leakage <= epsilon).sum() >= FEWEST
    assert utility.mean() > 0.2
    assert (np.transpose(plug_in)[0] <= epsilon).sum() < N_SAMPLES / 2 < FEWEST
