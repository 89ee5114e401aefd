"""Displays as in scikit-learn: utility against budgets, a channel, and its leakage.

matplotlib is imported when something is drawn.
"""

from .canvas import svg_of
from .mechanism import LeakageDisplay, MechanismDisplay
from .trade_off import PrivacyUtilityDisplay, path_around

__all__ = [
    "LeakageDisplay",
    "MechanismDisplay",
    "PrivacyUtilityDisplay",
    "path_around",
    "svg_of",
]
