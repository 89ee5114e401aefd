"""The fields of a mechanism as a part of a document: written without loss, read with care."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from .._json import encode_label
from .._json_reader import Place
from .._typing import FloatArray
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

# How far the sums of the rows of a channel may be from 1.
ROW_TOLERANCE = 1e-12

_KEYS = (
    "epsilon", "measure", "scope", "objective", "solver", "upper_bound", "x_labels", "y_labels",
    "channel",
)  # fmt: skip

# A mechanism has both of them or none.
_OF_POPULATION = ("confidence", "n_samples")


def fields_content(made: Mapping[str, Any], include_joint: bool) -> dict[str, Any]:
    """Return what a document says about a mechanism, from its fields by name."""
    p_sx, objective = made["p_sx"] if include_joint else None, made["objective"]
    if p_sx is None:
        objective = _recorded(objective, made)
    content = {
        "epsilon": encode_label(made["epsilon"]),
        "measure": {k: encode_label(value) for k, value in made["measure"].to_dict().items()},
        "scope": made["scope"],
        "objective": objective.to_dict(),
        "solver": made["solver"],
        "upper_bound": made["upper_bound"],
        "x_labels": [encode_label(label) for label in made["x_labels"]],
        "y_labels": [encode_label(label) for label in made["y_labels"]],
        "channel": made["channel"].tolist(),
    }
    if (names := made.get("symbol_of_output")) is not None:
        content["names"] = names.tolist()
    if (groups := made.get("groups")) is not None:
        content["groups"] = groups.tolist()
    if made.get("confidence") is not None:
        content |= {key: float(made[key]) for key in _OF_POPULATION}
    if p_sx is not None:
        content["s_labels"] = [encode_label(label) for label in made["s_labels"] or ()]
        content["p_sx"] = p_sx.tolist()
    else:
        content["p_x"] = made["p_x"].tolist()
    return content


def _recorded(objective: Utility, made: Mapping[str, Any]) -> Utility:
    """Return a utility without data, but with its figures."""
    p_x, groups = made["p_x"], made.get("groups")
    recorded = objective.recorded(p_x, made["channel"])
    if isinstance(recorded, RecordedUtility) and groups is not None:
        return recorded.with_least(objective.least(p_x, groups))
    return recorded


def read_fields(place: Place, measure: Measure | None, utility: Utility | None) -> dict[str, Any]:
    """Return the fields of the mechanism at some place; that they fit together is not checked."""
    has_joint, has_names = ("p_sx" in place.members(), "names" in place.members())
    has_confidence = any(key in place.members() for key in _OF_POPULATION)
    has_groups = "groups" in place.members()
    more: tuple[str, ...] = ("s_labels", "p_sx") if has_joint else ("p_x",)
    more += (("names",) if has_names else ()) + (_OF_POPULATION if has_confidence else ())
    part = place.keys(*_KEYS, *more, *(["groups"] if has_groups else []))
    x_labels, y_labels = part["x_labels"].labels(), part["y_labels"].labels()
    s_labels = part["s_labels"].secret().labels() if has_joint else None
    n_x, n_s = len(x_labels), len(s_labels or ())
    return {
        "channel": _read_channel(part["channel"], n_x, len(y_labels)),
        "p_sx": _read_probabilities(part["p_sx"], n_s, n_x) if has_joint else None,
        "p_x": None if has_joint else _read_probabilities(part["p_x"], n_x),
        "s_labels": s_labels,
        "x_labels": x_labels,
        "y_labels": y_labels,
        "measure": _read_measure(part["measure"], measure),
        "objective": _read_utility(part["objective"], utility, n_x),
        "epsilon": part["epsilon"].number(low=0),
        "scope": part["scope"].text(*SCOPES),
        "solver": part["solver"].text(),
        "upper_bound": part["upper_bound"].number(),
        "symbol_of_output": (
            part["names"].integers(len(y_labels), low=0, high=n_x - 1) if has_names else None
        ),
        **{key: part[key].number(low=0) for key in _OF_POPULATION if has_confidence},
        **({"groups": part["groups"].integers(n_x, low=0, high=n_x - 1)} if has_groups else {}),
    }


def _read_probabilities(place: Place, length: int | None, width: int | None = None) -> FloatArray:
    return place.numbers(length, width, low=0, high=1 + ROW_TOLERANCE)


def _read_channel(place: Place, n_x: int, n_y: int) -> FloatArray:
    channel = _read_probabilities(place, n_x, n_y)
    _check_sums(place, "[{}]", channel.sum(axis=1))
    return channel


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
        part = place.keys("name", "loss", *(["of_cells"] if "of_cells" in place.value else []))
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
    part = place.keys("name", "p_vx", *(["whole"] if "whole" in place.value else []))
    target = _read_target(part["p_vx"], n_x)
    target.whole = float(part["whole"].number(low=0)) if "whole" in part else 0.0
    return target


def _read_recorded(place: Place, name: str) -> RecordedUtility:
    part = place.keys("name", "recorded", *(["least"] if "least" in place.value else []))
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
    """Return the class of a measure or a utility, unless it is the user's own."""
    name = place.key("name")
    if name.text() not in shipped:
        raise ValueError(
            f"This mechanism was designed with a user-defined {argument} ({name.path} is "
            f"{name.shown()}): pass it as from_json(text, {argument}=...)."
        )
    return shipped[name.value]


def _check_given(place: Place, given: Measure | Utility) -> None:
    """Check that the given measure or utility is the one of the design."""
    parameters = {
        key: part.value if isinstance(part.value, list) else part.label()
        for key, part in place.members().items()
    }
    if given.to_dict() != parameters:
        shown = {key: value for key, value in parameters.items() if not isinstance(value, list)}
        raise ValueError(f"This mechanism was designed with {shown}, not with {given!r}.")
