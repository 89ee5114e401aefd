"""Utilities ``sum q u(W)`` over outputs with probability q; u is convex in ``W = P(X|Y = y)``."""

from .._validation import about, check_choice, message
from .information import MutualInformation, RecordedUtility, Target, entropy, mutual_information
from .losses import Distortion, EachColumn, Guess, guess_of_cells
from .utility import BOUND_TOLERANCE, DEFAULT_TOL, NO_UTILITY, UTILITY_ROUNDING, Utility

__all__ = [
    "BOUND_TOLERANCE",
    "DEFAULT_TOL",
    "NO_UTILITY",
    "UTILITIES",
    "UTILITY_ROUNDING",
    "Distortion",
    "EachColumn",
    "Guess",
    "MutualInformation",
    "RecordedUtility",
    "Target",
    "Utility",
    "entropy",
    "get_utility",
    "guess_of_cells",
    "mutual_information",
]

UTILITIES: dict[str, type[Utility]] = {
    cls.name: cls for cls in (MutualInformation, Target, Guess, Distortion)
}


def get_utility(utility: str | Utility, owner: str = "get_utility") -> Utility:
    """Return a utility object from a name, or the object itself.

    Examples
    --------
    >>> from skprivacy.utilities import get_utility
    >>> get_utility("guess")
    Guess()
    """
    if isinstance(utility, Utility):
        return utility
    if isinstance(utility, type) and issubclass(utility, Utility):
        requirement = f"an instance of {utility.__name__}, not the class"
        raise TypeError(message(owner, "utility", requirement, utility))
    or_object = " or an instance of skprivacy.utilities.Utility"
    check_choice(owner, "utility", utility, UTILITIES, or_object)
    if utility == Target.name:
        needs = " is 'target', which needs a table of the target V and X: pass Target(p_vx). "
        raise ValueError(about(owner, "utility", needs + "(PrivacyFunnelTransformer takes y.)"))
    return UTILITIES[utility]()
