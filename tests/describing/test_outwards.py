"""Whatever is printed as a limit is not below it, and not far above it."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skprivacy import PrivacyFunnelTransformer, design_mechanism
from skprivacy.cli.demo import _lines
from skprivacy.cli.messages import as_option
from skprivacy.describing.numbers import at_most, limit, rounded_down
from skprivacy.repetition import repeated_release_leakage

SEEDS = range(12)


def shown(pattern, text):
    """Return the number that a text shows at the place of (.)."""
    (found,) = re.findall(pattern.replace("(.)", "([0-9.e+-]*[0-9])"), text)
    return float(found)


def check(printed, exact, slack=1e-2):
    assert exact * (1 - 1e-7) <= printed <= exact * (1 + slack) + 1e-9


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("measure", ["kl", "max_lift"])
def test_of_a_mechanism(seed, measure):
    rng = np.random.default_rng(seed)
    counts = rng.integers(50, 400, size=(2, 4))
    epsilon = rng.uniform(0.05, 0.3)
    sure = design_mechanism(counts, epsilon, measure=measure, confidence=0.9)
    plain = design_mechanism(counts, epsilon, measure=measure, solver="watchdog")
    check(shown("population_limit=(.) with", repr(sure)), sure.leakage_at_most(), 1e-5)
    if plain.gap > 1e-12:  # or it is rounding
        check(shown("gap<=(.),", repr(plain)), plain.gap, 0.1)
    said = " ".join(sure.sentences())
    check(shown("limit: (.);", said), sure.leakage_at_most())
    check(shown("at most epsilon = (.) about", said), epsilon, 1e-5)
    share = rng.uniform(0.01, 0.9)
    bound = (1 - share) * plain.utility + share * plain.y_given_x.largest_utility
    summary = replace(plain, upper_bound=bound).summary()
    if summary.kept < summary.kept_at_most < 0.999:
        printed = shown("keeps more than (.)%", summary.kept_sentence())
        check(printed / 100, summary.kept_at_most)


@pytest.mark.parametrize("seed", SEEDS)
def test_of_several_secrets(seed):
    rng = np.random.default_rng(seed)
    both = rng.random((4, 5))
    both /= both.sum()
    tables = {"a": both.reshape(2, 2, 5).sum(axis=0), "b": both.reshape(2, 2, 5).sum(axis=1)}
    mechanism = design_mechanism(tables, {"a": 0.01, "b": 0.02})
    mechanism = mechanism.renamed(together=(both, tuple("1234")))
    said = mechanism.summary().together_sentence()
    check(shown("at most (.) \\(", said), mechanism.together.max_leakage)
    often = repeated_release_leakage(mechanism, 10**6, secret="b")
    assert not often.is_exact
    check(shown("max_leakage<=(.),", repr(often)), often.max_leakage, 1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_of_a_certificate(seed):
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.integers(2, size=800), rng.integers(3, size=800)])
    fitted = PrivacyFunnelTransformer(0.5, sensitive=0, random_state=0).fit(rows[:400])
    found = fitted.certify(rows[400:])
    check(shown("; max_leakage=[0-9.e-]*, at most (.);", repr(found)), found.max_leakage_bound)


@pytest.mark.parametrize("seed", SEEDS)
def test_of_options(seed):
    epsilon = 10 ** np.random.default_rng(seed).uniform(-6, 1)
    assert float(as_option(epsilon)) >= epsilon * (1 - 1e-7)
    assert float(as_option({"sex": epsilon}).split("=")[1]) >= epsilon * (1 - 1e-7)
    assert float(rounded_down(epsilon)) <= epsilon * (1 + 1e-7)
    assert float(limit(epsilon, 6)) >= epsilon * (1 - 1e-8)


def test_ends():
    assert limit(float("nan")) == "nan"  # and not 0
    assert at_most(0.7901) == "79.1%"
    assert as_option(float("inf")) == "inf"


def test_of_the_demo():
    rng = np.random.default_rng(0)
    figures = {name: rng.random(20) for name in ("leaks", "population", "kept", "attacker")}
    table = pd.DataFrame({"release": "x", **figures})
    for line, exact in zip(_lines(table)[1:], table["population"], strict=True):
        check(float(line.split()[2]), exact, 0.05)
