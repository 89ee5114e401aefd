"""Checks of arguments, with messages like those of scikit-learn."""

import math
from collections.abc import Iterable
from numbers import Integral, Real

from ._messages import Message, Parameter


def message(owner: str, name: str, requirement: str, value: object) -> Message:
    """Return a message about a wrong argument.

    It never shows a table, which may hold sensitive values.

    >>> message("f", "epsilon", "a float in the range [0, inf]", -1)
    "The 'epsilon' parameter of f must be a float in the range [0, inf]. Got -1 instead."
    """
    kind, shown = type(value).__name__, repr(value)
    if hasattr(value, "shape") and value.shape:
        shown = f"{kind} of shape {value.shape}"
    elif len(shown) > 200:
        shown = f"{kind} {shown[:200]}..."
    return about(owner, name, f" must be {requirement}. Got {shown} instead.")


def about(owner: str, name: str, said: str) -> Message:
    """Return a message that begins with an argument.

    >>> about("f", "tables", " must not be empty.")
    "The 'tables' parameter of f must not be empty."
    """
    return Message(Parameter(name, owner), said)


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


def check_confidence(owner: str, confidence: object) -> float:
    """Return the confidence of a limit, if it can be reached."""
    is_open = {"low_open": True, "high_open": True}
    confidence = check_real(owner, "confidence", confidence, low=0, high=1, **is_open)
    if confidence > 0.9999:  # limits would need millions of simulated joints
        raise ValueError(message(owner, "confidence", "at most 0.9999", confidence))
    return confidence


def check_integer(owner: str, name: str, value: object, *, low: int) -> int:
    """Return `value` as an int, if it is a whole number of at least `low`."""
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_integer or value < low:  # type: ignore[operator]
        error = ValueError if is_integer else TypeError
        raise error(message(owner, name, f"an int in the range [{low}, inf)", value))
    return int(value)  # type: ignore[call-overload]


def check_choice(
    owner: str, name: str, value: object, choices: Iterable[str], alternative: str = ""
) -> str:
    """Return `value`, if it is one of the strings in `choices`."""
    listed = ", ".join(repr(choice) for choice in sorted(choices))
    if not isinstance(value, str) or value not in choices:
        error = ValueError if isinstance(value, str) else TypeError
        raise error(message(owner, name, f"one of {{{listed}}}{alternative}", value))
    return value
