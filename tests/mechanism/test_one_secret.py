"""Where a function is about one secret, what it says to do about several works."""

import matplotlib as mpl
import numpy as np
import pytest
from example_tables import funnel, people, quiet_fit

from skprivacy import LeakageDisplay
from skprivacy.fitting.fitted_estimator import fitted_of
from skprivacy.metrics import population_leakage
from skprivacy.repetition import repeated_release_leakage

mpl.use("agg")

FUNCTIONS = {
    "population_leakage": lambda fitted, **named: population_leakage(fitted, **named),
    "of a mechanism": lambda fitted, **named: population_leakage(fitted.mechanism_, 3000, **named),
    "repeated_release_leakage": lambda fitted, **named: repeated_release_leakage(
        fitted.mechanism_, 2, **named
    ),
    "from_estimator": lambda fitted, **named: LeakageDisplay.from_estimator(fitted, **named),
    "from_mechanism": lambda fitted, **named: LeakageDisplay.from_mechanism(
        fitted.mechanism_, **named
    ),
}


@pytest.fixture(scope="module")
def several():
    budgets = {"sex": 0.01, "label": 0.02}
    return quiet_fit(funnel(budgets, sensitive=["sex", "label"]), people())


@pytest.mark.parametrize("name", FUNCTIONS)
class TestAdvice:
    def test_it_works(self, several, name):
        with pytest.raises(TypeError, match=r"\('sex', 'label'\): pass secret='sex', and so on"):
            FUNCTIONS[name](several)
        for secret in ("sex", "label"):
            assert FUNCTIONS[name](several, secret=secret) is not None

    def test_another_secret(self, several, name):
        match = r"'secret' parameter of \w+ must be one of \['sex', 'label'\]. Got 'race'"
        with pytest.raises(ValueError, match=match):
            FUNCTIONS[name](several, secret="race")

    def test_the_only_one_needs_no_name(self, name):
        for epsilon in (0.01, {"sex": 0.01}):
            assert FUNCTIONS[name](quiet_fit(funnel(epsilon), people())) is not None


def test_figures_are_those_of_the_secret(several):
    for name, secret in several.mechanism_.secrets.items():
        once = repeated_release_leakage(several.mechanism_, 1, secret=name)
        assert once.max_leakage == secret.max_leakage
        assert LeakageDisplay.from_estimator(several, secret=name)._secret is secret


def test_tables_for_several_secrets(several):
    mechanism = several.mechanism_
    wrong = np.ones((2, 5)), [[1] * 5] * 2, {"sex": np.ones((2, 5))}
    said = ["one table", "one table", r"tables for \['sex'\]"]
    for tables, got in zip(wrong, said, strict=True):
        with pytest.raises(
            ValueError, match=rf"table for each of \['sex', 'label'\]. Got {got}\."
        ):
            mechanism.evaluate(tables)


def test_limits_of_a_report_share_the_risk_as_designs_do(several):
    summary = fitted_of(several).summary_with_limits(0.9)
    assert [each.limits.confidence for each in summary.secrets.values()] == [0.95, 0.95]
