"""Designs with a confidence keep their budget in the population, where those without do not."""

import numpy as np
import pytest
from scipy.stats import binom

from skprivacy import design_mechanism, get_measure
from skprivacy.confidence import Aim, Sample, confident_channel
from skprivacy.utilities import MutualInformation

N_SAMPLES, N_ROWS, CONFIDENCE = 40, 400, 0.95

# A design that keeps its budget with the confidence has fewer samples within it than this in one
# of a million runs; the seeds are fixed, and that run is not among them.
FEWEST = int(binom.ppf(1e-6, N_SAMPLES, CONFIDENCE))


def samples():
    """Yield joints and counts of rows drawn from them."""
    for seed in range(N_SAMPLES):
        rng = np.random.default_rng(seed)
        joint = rng.dirichlet(np.ones(12)).reshape(3, 4)
        yield joint, rng.multinomial(N_ROWS, joint.ravel()).reshape(3, 4)


def confident(counts, epsilon, measure, plug_in):
    aim = Aim(epsilon, get_measure(measure), MutualInformation(), CONFIDENCE)
    return confident_channel(Sample.of(counts.astype(float)), aim, plug_in.posterior)


@pytest.mark.parametrize(("measure", "epsilon"), [("kl", 0.02), ("max_lift", 0.2)])
def test_the_budget_holds_in_the_population(measure, epsilon):
    within, plug_in_within, utilities = 0, 0, []
    for joint, counts in samples():
        assert counts.sum(axis=0).all()
        plug_in = design_mechanism(counts, epsilon, measure=measure)
        channel = confident(counts, epsilon, measure, plug_in)
        truth = plug_in.evaluate(joint)
        plug_in_within += truth.max_leakage <= epsilon
        truth = truth.with_channel(channel)
        within += truth.max_leakage <= epsilon
        utilities.append(truth.normalized_utility)
    assert within >= FEWEST
    assert plug_in_within < N_SAMPLES / 2 < FEWEST
    assert np.mean(utilities) > 0.2
