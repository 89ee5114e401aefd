"""A mechanism as JSON text: written without loss, read with care."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ._json import decode_label, document, encode_label, parse_document
from ._typing import FloatArray, Labels
from ._validation import check_real
from .measures import MEASURES, Measure
from .utilities import UTILITIES, RecordedUtility, Target, Utility

if TYPE_CHECKING:
    from .mechanism import Mechanism

_KEYS = {
    "schema", "version", "epsilon", "measure", "scope", "objective", "solver", "upper_bound",
    "x_labels", "y_labels", "channel", "s_labels", "p_sx", "p_x",
}  # fmt: skip


def write_mechanism(mechanism: Mechanism, include_joint: bool, indent: int | None) -> str:
    """Return the text that `read_mechanism` reads."""
    p_sx = mechanism.p_sx if include_joint else None
    objective = mechanism.objective
    if p_sx is None:
        objective = objective.recorded(mechanism.p_x, mechanism.channel)
    content = {
        **document("mechanism"),
        "epsilon": encode_label(mechanism.epsilon),
        "measure": {k: encode_label(value) for k, value in mechanism.measure.to_dict().items()},
        "scope": mechanism.scope,
        "objective": objective.to_dict(),
        "solver": mechanism.solver,
        "upper_bound": mechanism.upper_bound,
        "x_labels": [encode_label(label) for label in mechanism.x_labels],
        "y_labels": [encode_label(label) for label in mechanism.y_labels],
        "channel": mechanism.channel.tolist(),
    }
    if p_sx is not None:
        content["s_labels"] = [encode_label(label) for label in mechanism.s_labels or ()]
        content["p_sx"] = p_sx.tolist()
    else:
        content["p_x"] = mechanism.p_x.tolist()
    return json.dumps(content, allow_nan=False, indent=indent)


def read_mechanism(text: str, measure: Measure | None, utility: Utility | None) -> dict[str, Any]:
    """Return the fields of a mechanism; what they mean together is checked when it is made."""
    content = parse_document(text, "mechanism")
    if unknown := sorted(set(content) - _KEYS):
        raise ValueError(f"The JSON text of this mechanism has unknown keys: {unknown}.")
    try:
        return _fields(content, measure, utility)
    except KeyError as error:
        raise ValueError(f"The JSON text of this mechanism lacks {error}.") from error
    except (TypeError, OverflowError) as error:
        raise ValueError(f"The JSON text of this mechanism is malformed: {error}.") from error


def _fields(
    content: dict[str, Any], measure: Measure | None, utility: Utility | None
) -> dict[str, Any]:
    has_joint = "p_sx" in content
    solver = content["solver"]
    if not isinstance(solver, str):
        raise TypeError("solver is not a text")
    return {
        "channel": _read_numbers(content, "channel"),
        "p_sx": _read_numbers(content, "p_sx") if has_joint else None,
        "s_labels": _read_labels(content, "s_labels") if has_joint else None,
        "x_labels": _read_labels(content, "x_labels"),
        "y_labels": _read_labels(content, "y_labels"),
        "measure": _read_part(content, "measure", measure, MEASURES),
        "objective": _read_part(content, "objective", utility, UTILITIES),
        "p_x": None if has_joint else _read_numbers(content, "p_x"),
        "epsilon": decode_label(content["epsilon"]),
        "scope": content["scope"],
        "solver": solver,
        "upper_bound": check_real(
            "Mechanism.from_json", "upper_bound", content["upper_bound"], low=0
        ),
    }


def _read_numbers(content: dict[str, Any], name: str) -> FloatArray:
    array = np.array(content[name])
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} is not a table of numbers")
    return array.astype(float)


def _read_labels(content: dict[str, Any], name: str) -> Labels:
    if not isinstance(content[name], list):
        raise TypeError(f"{name} is not a list")
    return tuple(decode_label(label) for label in content[name])


def _read_part(
    content: dict[str, Any], key: str, given: Measure | Utility | None, shipped: Mapping[str, type]
) -> Any:
    """Return the measure or the utility: made again from its name, or the one given."""
    if not isinstance(content[key], dict):
        raise TypeError(f"the {key} is not an object")
    parameters = {name: _decoded(value) for name, value in content[key].items()}
    if given is not None:
        if given.to_dict() != parameters:
            shown = {k: value for k, value in parameters.items() if not isinstance(value, list)}
            raise ValueError(f"This mechanism was designed with {shown}, not with {given!r}.")
        return given
    name = parameters.pop("name")
    if key == "objective" and name == Target.name and "recorded" in parameters:
        return RecordedUtility(name, *_read_numbers(parameters, "recorded"))
    if name not in shipped:
        argument = "measure" if key == "measure" else "utility"
        raise ValueError(
            f"This mechanism was designed with a {argument} of the user's own ({name!r}): pass it "
            f"as from_json(text, {argument}=...)."
        )
    return shipped[name](**parameters)


def _decoded(value: object) -> Any:
    """Return a parameter: a table as it is, anything else as a label."""
    return value if isinstance(value, list) else decode_label(value)
