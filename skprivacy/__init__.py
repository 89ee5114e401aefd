"""Privacy-preserving release of data columns with a provable trade-off."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what the table below says, for type checkers and editors
    from .cells import ScoreCells, TreeCells
    from .comparison import compare_mechanisms
    from .describing import ReleaseSummary, SecretSummary, Verdict
    from .design import design_mechanism, privacy_utility_path
    from .exceptions import FiniteSampleWarning, PrivacyLeakWarning, SolverError
    from .fidelity import Fidelity
    from .inverse_design import largest_epsilon, rows_needed, smallest_epsilon
    from .measures import KL, L1, AlphaLift, Chi2, Lip, MaxLift, Measure, Parity, get_measure
    from .mechanism import Channel, Evaluation, Guarantee, Leakage, Mechanism
    from .metrics import audit, estimate_distribution, population_leakage
    from .plotting import LeakageDisplay, MechanismDisplay, PrivacyUtilityDisplay
    from .population import Certificate, LeakageBounds
    from .repetition import RepeatedLeakage, repeated_release_leakage
    from .report import PrivacyReport
    from .transformer import PrivacyFunnelTransformer
    from .utilities import Distortion, Guess, MutualInformation, Target, Utility, get_utility

__version__ = "0.1.0.dev0"

__all__ = [
    "KL",
    "L1",
    "AlphaLift",
    "Certificate",
    "Channel",
    "Chi2",
    "Distortion",
    "Evaluation",
    "Fidelity",
    "FiniteSampleWarning",
    "Guarantee",
    "Guess",
    "Leakage",
    "LeakageBounds",
    "LeakageDisplay",
    "Lip",
    "MaxLift",
    "Measure",
    "Mechanism",
    "MechanismDisplay",
    "MutualInformation",
    "Parity",
    "PrivacyFunnelTransformer",
    "PrivacyLeakWarning",
    "PrivacyReport",
    "PrivacyUtilityDisplay",
    "ReleaseSummary",
    "RepeatedLeakage",
    "ScoreCells",
    "SecretSummary",
    "SolverError",
    "Target",
    "TreeCells",
    "Utility",
    "Verdict",
    "audit",
    "compare_mechanisms",
    "design_mechanism",
    "estimate_distribution",
    "get_measure",
    "get_utility",
    "largest_epsilon",
    "population_leakage",
    "privacy_utility_path",
    "repeated_release_leakage",
    "rows_needed",
    "smallest_epsilon",
]

# Which module each name is from. It is imported when the name is first used, so that what needs
# none of them, such as the help of the command line, need not wait for scikit-learn.
_NAMES = {
    "cells": ["ScoreCells", "TreeCells"],
    "comparison": ["compare_mechanisms"],
    "describing": ["ReleaseSummary", "SecretSummary", "Verdict"],
    "design": ["design_mechanism", "privacy_utility_path"],
    "exceptions": [
        "FiniteSampleWarning",
        "PrivacyLeakWarning",
        "SolverError",
    ],
    "fidelity": ["Fidelity"],
    "inverse_design": ["largest_epsilon", "rows_needed", "smallest_epsilon"],
    "measures": [
        "KL",
        "L1",
        "AlphaLift",
        "Chi2",
        "Lip",
        "MaxLift",
        "Measure",
        "Parity",
        "get_measure",
    ],
    "mechanism": ["Channel", "Evaluation", "Guarantee", "Leakage", "Mechanism"],
    "metrics": ["audit", "estimate_distribution", "population_leakage"],
    "plotting": ["LeakageDisplay", "MechanismDisplay", "PrivacyUtilityDisplay"],
    "population": ["Certificate", "LeakageBounds"],
    "repetition": ["RepeatedLeakage", "repeated_release_leakage"],
    "report": ["PrivacyReport"],
    "transformer": ["PrivacyFunnelTransformer"],
    "utilities": ["Distortion", "Guess", "MutualInformation", "Target", "Utility", "get_utility"],
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}

if not TYPE_CHECKING:  # to a type checker, it would mean that every name is here

    def __getattr__(name: str) -> object:
        """Return a public name or a module of the package, imported now."""
        if name in _MODULES:
            found = getattr(import_module(f".{_MODULES[name]}", __name__), name)
            globals()[name] = found  # the next time it is simply there
            return found
        if not name.startswith("_") and find_spec(f".{name}", __name__):
            return import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
