r"""Measures of leakage: convex functions of the posterior ``P(S | Y = y)``.

A released symbol y turns the prior ``P(S)`` into a posterior ``T = P(S | Y = y)`` with lifts
``l = T / P(S)``. A measure is a convex ``g(T)`` with a threshold that depends on epsilon; a
mechanism is private when ``g(T) <= threshold(epsilon)`` for every output, or on average over
outputs.
"""

from __future__ import annotations

from typing import Any

from .._messages import Message, Owner, Setting
from .._typing import Scope
from .._validation import check_choice, message
from .divergences import KL, L1, Chi2
from .lifts import AlphaLift, Lip, MaxLift, Parity
from .measure import SCOPES, Measure, lift

__all__ = [
    "KL",
    "L1",
    "MEASURES",
    "SCOPES",
    "AlphaLift",
    "Chi2",
    "Lip",
    "MaxLift",
    "Measure",
    "Parity",
    "check_scope",
    "every_measure",
    "get_measure",
    "lift",
]

MEASURES: dict[str, type[Measure]] = {
    cls.name: cls for cls in (KL, L1, Chi2, MaxLift, AlphaLift, Lip, Parity)
}


def every_measure(used: Measure) -> dict[str, Measure]:
    """Return all measures by name: `used` with its parameters, the others with defaults."""
    return {name: cls() for name, cls in MEASURES.items()} | {used.name: used}


def get_measure(measure: str | Measure, owner: str = "get_measure", **parameters: Any) -> Measure:
    """Return a measure object from a name, or the object itself.

    Examples
    --------
    >>> from skprivacy.measures import get_measure
    >>> get_measure("alpha_lift")
    AlphaLift(alpha=2.0)
    """
    if isinstance(measure, Measure):
        if parameters:
            got = sorted(parameters)
            raise TypeError(f"{owner} got {got} in addition to the object {measure!r}.")
        return measure
    if isinstance(measure, type) and issubclass(measure, Measure):
        requirement = f"an instance: write {measure.__name__}(), not the class"
        raise TypeError(message(owner, "measure", requirement, measure))
    or_object = " or an instance of skprivacy.measures.Measure"
    check_choice(owner, "measure", measure, MEASURES, or_object)
    return MEASURES[measure](**parameters)


def check_scope(owner: str, scope: Scope, measure: Measure) -> Scope:
    """Return `scope` if `measure` supports it."""
    check_choice(owner, "scope", scope, SCOPES)
    if scope not in measure.scopes:
        text = "The measure {measure!r} has no scope {scope!r}. {owner} supports it with {own}."
        values = {"owner": Owner(owner), "own": Setting("scope", measure.scopes[0])}
        raise ValueError(Message.of(text, measure=measure, scope=scope, **values))
    return scope
