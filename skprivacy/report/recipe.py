"""What the report says about how a release was made, for those who make it again."""

import platform
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import numpy as np
import sklearn

from ..cells import Cells
from ..fitting.parameters import Settings
from ..measures import Measure
from ..mechanism import Mechanism, SeveralSecretsMechanism
from ..solvers import Solver
from ..utilities import Utility
from .sections import Section, facts


def recipe(mechanism: Mechanism | SeveralSecretsMechanism, settings: Settings) -> Section:
    """Return settings and versions."""
    parameters = {name: _written(value) for name, value in settings.parameters().items()}
    parameters["epsilon"] = repr(mechanism.epsilon)
    if settings.has_target:
        parameters["utility"] = "what is told about the target"
    if settings.random_state is not None:
        parameters["random_state"] = "set; not shown, because it can undo the noise"
    versions = {
        "skprivacy": metadata.version("skprivacy"),
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "Python": platform.python_version(),
        "made on": datetime.now(UTC).date().isoformat(),
    }
    return Section(
        "How to repeat it",
        ["The same rows, with the same weights, and these settings give the same channel."],
        [facts("Settings", parameters), facts("Versions", versions)],
    )


def _written(value: Any) -> str:
    """Return a setting as text; an object by its name, not by its class."""
    text = repr(value)
    if isinstance(value, Measure | Solver | Utility | Cells):
        return text.replace(type(value).__name__, value.name)
    return text
