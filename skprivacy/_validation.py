"""Argument checks, in the grammar of scikit-learn's messages."""

import math
from collections.abc import Iterable
from numbers import Integral, Real

from ._messages import Message, Parameter


def message(owner: str, name: str, requirement: str, value: object) -> Message:
    """Say what is wrong with an argument.

    >>> message("f", "epsilon", "a float in the range [0, inf]", -1)
    "The 'epsilon' parameter of f must be a float in the range [0, inf]. Got -1 instead."
    """
    told = f". Got {_shown(value)} instead."
    return Message(Parameter(name, owner), " must be ", requirement, told)


def _shown(value: object) -> str:
    """Return a value for a message, but never a table, which may hold what must be protected."""
    if hasattr(value, "shape") and value.shape:
        return f"{type(value).__name__} of shape {value.shape}"
    text = repr(value)
    return text if len(text) <= 200 else f"{type(value).__name__} {text[:200]}..."


def check_real(
    owner: str,
    name: str,
    value: object,
    *,
    low: float,
    high: float = math.inf,
    low_open: bool = False,
    high_open: bool = False,
) -> float:
    """Return `value` as a float, if it is a number between `low` and `high`."""
    left, right = "(" if low_open else "[", ")" if high_open else "]"
    requirement = f"a float in the range {left}{low}, {high}{right}"
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(message(owner, name, requirement, value))
    # numbers.Real declares < and <= only.
    above = value > low if low_open else value >= low  # type: ignore[operator]
    below = value < high if high_open else value <= high
    try:
        number = float(value)
    except OverflowError:  # an int beyond all floats
        above, number = False, math.inf
    if not (above and below):  # NaN fails both
        raise ValueError(message(owner, name, requirement, value))
    return number


# Beyond it, the joints that a limit is taken from would have to be counted in millions.
_LARGEST_CONFIDENCE = 0.9999


def check_confidence(owner: str, confidence: object) -> float:
    """Return how often a limit is to hold, if that can be asked for."""
    confidence = check_real(
        owner, "confidence", confidence, low=0, high=1, low_open=True, high_open=True
    )
    if confidence > _LARGEST_CONFIDENCE:
        requirement = f"at most {_LARGEST_CONFIDENCE}"
        raise ValueError(message(owner, "confidence", requirement, confidence))
    return confidence


def check_integer(owner: str, name: str, value: object, *, low: int) -> int:
    """Return `value` as an int, if it is a whole number of at least `low`."""
    requirement = f"an int in the range [{low}, inf)"
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(message(owner, name, requirement, value))
    if value < low:
        raise ValueError(message(owner, name, requirement, value))
    return int(value)


def check_choice(
    owner: str, name: str, value: object, choices: Iterable[str], alternative: str = ""
) -> str:
    """Return `value`, if it is one of the strings in `choices`."""
    listed = ", ".join(repr(choice) for choice in sorted(choices))
    requirement = f"one of {{{listed}}}{alternative}"
    if not isinstance(value, str):
        raise TypeError(message(owner, name, requirement, value))
    if value not in choices:
        raise ValueError(message(owner, name, requirement, value))
    return value
