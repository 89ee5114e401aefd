"""The search for the smallest argument with a utility: few designs, whatever the curve."""

import numpy as np
import pytest

from skprivacy.budgets import smallest_on_curve

CURVES = {
    "concave": lambda x: 1 - np.exp(-30 * x),
    "root": lambda x: min(1.0, np.sqrt(x)),
    "logarithm": lambda x: 1 + np.log(x) / 6,
    "flat, then steep": lambda x: min(1.0, x**4),
    "a jump": lambda x: float(x >= 0.0123),
    "steps": lambda x: np.floor(10 * np.sqrt(min(x, 1.0))) / 10,
    "almost in order": lambda x: min(1.0, np.sqrt(x) + 1e-5 * np.sin(1e6 * x)),
}


@pytest.mark.parametrize("factor", [1.1, 1.0001])
@pytest.mark.parametrize("needed", [0.3, 0.61, 0.95])
@pytest.mark.parametrize("curve", CURVES)
def test_the_argument_is_thesmallest_on_curve_up_to_the_factor(curve, needed, factor):
    tried = {x: CURVES[curve](x) for x in (1e-3, 1.0)}
    found = smallest_on_curve(CURVES[curve], needed, tried, factor)
    assert CURVES[curve](found) >= needed - 1e-9
    below = [x for x in tried if found / factor <= x < found]
    assert below
    assert all(tried[x] < needed for x in below)
    bisections = np.log2(np.log(1e3) / np.log(factor))
    assert len(tried) - 2 <= (2 * bisections if curve in ("a jump", "steps") else 12)


def test_what_cannot_be_designed_is_below():
    curve = lambda x: -np.inf if x < 0.01 else np.sqrt(x)  # noqa: E731
    found = smallest_on_curve(curve, 0.05, {1e-6: -np.inf, 1.0: 1.0}, 1.01)
    assert 0.01 <= found <= 0.0101
