"""Privacy-preserving release of data columns with a provable trade-off."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what the table below says, for type checkers and editors
    from .cells import ScoreCells, TreeCells
    from .comparison import compare_mechanisms
    from .describing import ReleaseSummary
    from .design import design_mechanism, privacy_utility_path
    from .exceptions import FiniteSampleWarning, PrivacyLeakWarning, SolverError
    from .mechanism import Evaluation, Mechanism
    from .metrics import audit
    from .plotting import LeakageDisplay, MechanismDisplay, PrivacyUtilityDisplay
    from .population import Certificate
    from .report import PrivacyReport
    from .transformer import PrivacyFunnelTransformer

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "Evaluation",
    "FiniteSampleWarning",
    "LeakageDisplay",
    "Mechanism",
    "MechanismDisplay",
    "PrivacyFunnelTransformer",
    "PrivacyLeakWarning",
    "PrivacyReport",
    "PrivacyUtilityDisplay",
    "ReleaseSummary",
    "ScoreCells",
    "SolverError",
    "TreeCells",
    "audit",
    "compare_mechanisms",
    "design_mechanism",
    "privacy_utility_path",
]

# Which module each name is from. It is imported when the name is first used, so that what needs
# none of them, such as the help of the command line, need not wait for scikit-learn.
_NAMES = {
    "cells": ["ScoreCells", "TreeCells"],
    "comparison": ["compare_mechanisms"],
    "describing": ["ReleaseSummary"],
    "design": ["design_mechanism", "privacy_utility_path"],
    "exceptions": ["FiniteSampleWarning", "PrivacyLeakWarning", "SolverError"],
    "mechanism": ["Evaluation", "Mechanism"],
    "metrics": ["audit"],
    "plotting": ["LeakageDisplay", "MechanismDisplay", "PrivacyUtilityDisplay"],
    "population": ["Certificate"],
    "report": ["PrivacyReport"],
    "transformer": ["PrivacyFunnelTransformer"],
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
