"""Mechanisms as parts of JSON documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from .._json import Place, encode_label, label_key
from .._typing import FloatArray
from ..channels import ROW_TOLERANCE, Channel
from ..joint import confidence_of_each
from ..measures import MEASURES, SCOPES, Measure
from ..utilities import (
    UTILITIES,
    Distortion,
    EachColumn,
    Guess,
    RecordedUtility,
    Target,
    Utility,
    guess_of_cells,
)
from .guarantee import Guarantee, Leakage

_KEYS = (
    "measure", "scope", "objective", "solver", "upper_bound", "x_labels", "y_labels", "channel",
    "secrets",
)  # fmt: skip

# A mechanism has both of them or none.
_POPULATION_KEYS = ("confidence", "n_samples")

_JOINT_KEYS = ("s_labels", "p_sx")


def mechanism_content(
    channel: Channel,
    secrets: Mapping[Any, Guarantee],
    solver: str,
    upper_bound: float,
    confidence: float | None,
    together: Leakage | None,
    include_joint: bool,
) -> dict[str, Any]:
    """Return a mechanism as part of a JSON document."""
    first = next(iter(secrets.values()))
    has_joint = include_joint and first.p_sx is not None
    objective = channel.objective if has_joint else _recorded(channel)
    content = {
        "measure": {k: encode_label(value) for k, value in first.measure.to_dict().items()},
        "scope": first.scope,
        "objective": objective.to_dict(),
        "solver": solver,
        "upper_bound": upper_bound,
        "x_labels": [encode_label(label) for label in channel.x_labels],
        "y_labels": [encode_label(label) for label in channel.y_labels],
        "channel": channel.matrix.tolist(),
    }
    if channel.symbol_of_output is not None:
        content["names"] = channel.symbol_of_output.tolist()
    if channel.strata is not None:
        content["strata"] = channel.strata.tolist()
    if confidence is not None:
        content |= {"confidence": float(confidence), "n_samples": first.n_samples}
    content["secrets"] = [
        {"name": encode_label(name), "epsilon": encode_label(secret.epsilon)}
        | (_joint_content(secret) if has_joint else {})
        for name, secret in secrets.items()
    ]
    if has_joint and len(secrets) > 1 and together is not None:
        content["together"] = _joint_content(together)
    return content if has_joint else {**content, "p_x": channel.p_x.tolist()}


def _joint_content(leakage: Leakage) -> dict[str, Any]:
    labels = [encode_label(label) for label in leakage.s_labels or ()]
    return {"s_labels": labels, "p_sx": leakage.joint.tolist()}


def _recorded(channel: Channel) -> Utility:
    """Return the objective without data, but with its figures."""
    recorded = channel.objective.recorded(channel.p_x, channel.matrix)
    if isinstance(recorded, RecordedUtility) and channel.strata is not None:
        return recorded.with_least(channel.least_utility)
    return recorded


def read_mechanism(
    place: Place, measure: Measure | None, utility: Utility | None
) -> tuple[Any, ...]:
    """Return the fields of the mechanism at a place, in order, after checking its guarantees."""
    members = place.members()
    has_joint = "p_x" not in members
    optional = [key for key in ("names", "strata", "together", "p_x") if key in members]
    has_limits = any(key in members for key in _POPULATION_KEYS)
    part = place.keys(*_KEYS, *optional, *(_POPULATION_KEYS if has_limits else ()))
    listed = part["secrets"].items(fewest=1)
    names = [_read_name(each.key("name"), len(listed)) for each in listed]
    part["secrets"].different(map(label_key, names), "a secret")
    n_x = len(part["x_labels"].labels())
    joints = [_read_joint(each, n_x, "name", "epsilon") if has_joint else None for each in listed]
    p_x = joints[0][0].sum(axis=0) if joints[0] else _read_probabilities(part["p_x"], n_x)
    channel = _read_channel(part, p_x, utility)
    solver, upper_bound = part["solver"].text(), part["upper_bound"].number()
    asked = _read_measure(part["measure"], measure)
    confidence, of_each, n_samples = None, None, None
    if "confidence" in part:
        confidence = part["confidence"].number(low=0, high=1)
        of_each = confidence_of_each(confidence, len(listed))
        n_samples = part["n_samples"].number(low=0)
    scope: Any = part["scope"].text(*SCOPES)
    secrets, together = {}, None
    for name, each, joint in zip(names, listed, joints, strict=True):
        budget = each.keys("name", "epsilon", *(_JOINT_KEYS if has_joint else ()))["epsilon"]
        epsilon = budget.number(low=0)
        with each.making():
            about = channel, *(joint or (None, None)), asked, of_each, n_samples
            secrets[name] = Guarantee(*about, epsilon=epsilon, scope=scope)
    if "together" in part:
        part["together"].require(has_joint and len(listed) > 1, "left out")
        joint = _read_joint(part["together"], n_x)
        with part["together"].making():
            together = Leakage(channel, *joint, asked)
    return channel, secrets, solver, upper_bound, confidence, together


def _read_name(place: Place, n_secrets: int) -> Any:
    name = place.label()
    is_nan = label_key(name) == label_key(float("nan"))
    place.require(not is_nan and (name is not None or n_secrets == 1), "a name")
    return name


def _read_joint(place: Place, n_x: int, *others: str) -> tuple[FloatArray, tuple[Any, ...]]:
    part = place.keys(*others, *_JOINT_KEYS)
    labels = part["s_labels"].secret().labels()
    part["s_labels"].secret().different(map(label_key, labels), "a label")
    return _read_probabilities(part["p_sx"], len(labels), n_x), labels


def _read_channel(part: Mapping[str, Place], p_x: FloatArray, utility: Utility | None) -> Channel:
    x_labels, y_labels, n_x = part["x_labels"].labels(), part["y_labels"].labels(), len(p_x)
    matrix = _read_probabilities(part["channel"], n_x, len(y_labels))
    _check_sums(part["channel"], "[{}]", matrix.sum(axis=1))
    objective, strata, names = _read_utility(part["objective"], utility, n_x), None, None
    if "strata" in part:
        strata = part["strata"].integers(n_x, low=0, high=n_x - 1)
    if "names" in part:
        names = part["names"].integers(len(y_labels), low=0, high=n_x - 1)
    with part["channel"].making():
        return Channel(matrix, p_x, x_labels, y_labels, objective, strata, names)


def _read_probabilities(place: Place, length: int | None, width: int | None = None) -> FloatArray:
    return place.numbers(length, width, low=0, high=1 + ROW_TOLERANCE)


def _check_sums(place: Place, where: str, totals: FloatArray) -> None:
    for i in np.flatnonzero(abs(totals - 1) > ROW_TOLERANCE):
        path = f"{place.path}{where.format(i)}"
        raise place.malformed(f"{path} must sum to 1. Got a sum of {totals[i]}.")


def _read_measure(place: Place, given: Measure | None) -> Measure:
    if given is not None:
        _check_given(place, given)
        return given
    cls = _shipped(place, "measure", MEASURES)
    part = place.keys("name", *(field.name for field in fields(cls)))
    parameters = {key: part[key].label() for key in part if key != "name"}
    with place.making():
        return cls(**parameters)


def _read_utility(place: Place, given: Utility | None, n_x: int) -> Utility:
    if given is not None:
        _check_given(place, given)
        return given
    cls = _shipped(place, "utility", {**UTILITIES, EachColumn.name: EachColumn})
    if cls is Distortion:
        part = _keys(place, "loss", optional="of_cells")
        of_cells = "of_cells" in part and part["of_cells"].flag()
        return cls.of_symbols(part["loss"].numbers(n_x, n_x, low=0), of_cells=of_cells)
    if cls is Guess and "of_cells" in place.value:
        place.keys("name", "of_cells")["of_cells"].require(place.value["of_cells"] is True, "true")
        return guess_of_cells()
    if cls not in (Target, EachColumn):
        place.keys("name")
        return cls()
    if "recorded" in place.value:
        return _read_recorded(place, cls.name)
    if cls is EachColumn:
        part = place.keys("name", "p_vx", "scale")
        return EachColumn(_read_target(part["p_vx"], n_x), float(part["scale"].number(low=0)))
    part = _keys(place, "p_vx", optional="whole")
    target = _read_target(part["p_vx"], n_x)
    target.whole = float(part["whole"].number(low=0)) if "whole" in part else 0.0
    return target


def _keys(place: Place, required: str, optional: str) -> dict[str, Place]:
    return place.keys("name", required, *([optional] if optional in place.value else []))


def _read_recorded(place: Place, name: str) -> RecordedUtility:
    part = _keys(place, "recorded", optional="least")
    n_figures = min(max(part["recorded"].length(), 2), 3)  # with a third one for cells
    recorded = RecordedUtility(name, *part["recorded"].numbers(n_figures, low=0))
    return recorded.with_least(float(part["least"].number(low=0))) if "least" in part else recorded


def _read_target(table: Place, n_x: int) -> Target:
    p_v_given_x = _read_probabilities(table, None, n_x)
    totals = p_v_given_x.sum(axis=0)
    _check_sums(table, ", column {},", np.where(totals == 0, 1.0, totals))  # 0: never seen
    with table.making():
        return Target.of_conditional(p_v_given_x)


def _shipped(place: Place, argument: str, shipped: Mapping[str, Any]) -> Any:
    """Return the class of a measure or a utility, unless it is user-defined."""
    name = place.key("name")
    if name.text() not in shipped:
        raise ValueError(
            f"This mechanism was designed with a user-defined {argument} ({name.path} is "
            f"{name.shown()}): pass it as from_json(text, {argument}=...)."
        )
    return shipped[name.value]


def _check_given(place: Place, given: Measure | Utility) -> None:
    """Check that a measure or utility is the one that was used for the design."""
    parameters = {
        key: part.value if isinstance(part.value, list) else part.label()
        for key, part in place.members().items()
    }
    if given.to_dict() != parameters:
        shown = {key: value for key, value in parameters.items() if not isinstance(value, list)}
        raise ValueError(f"This mechanism was designed with {shown}, not with {given!r}.")
