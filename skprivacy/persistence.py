"""A fitted transformer as JSON and back: its encoder and channel, no P_SX, no S."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ._json import encode_label, is_zone, label_key, write_document
from ._json_reader import Place, read_document
from ._typing import IntArray, Labels
from .cells import CellAlphabet
from .cells.cell_json import CELL_KEYS, cell_content, read_cells
from .encoding import Alphabet, PairedAlphabet, ValueAlphabet
from .encoding.alphabet_json import ALPHABET_KEYS, alphabet_content, read_alphabet
from .encoding.paired_json import beside_content, read_beside
from .fitted import Fitted, Posterior
from .measures import Measure
from .mechanism import Mechanism, make_mechanism
from .releasing.output_names import check_names_out, names_out
from .tables.column_roles import ColumnRoles
from .tables.column_types import FAMILIES, LIBRARIES, UNITS, ColumnType, is_name
from .utilities import Utility

# The parameters that matter after fit; the budget and its measure are the mechanism's.
_PARAMETERS = {
    "output": ("label", "symbol", "posterior"),
    "handle_unknown": ("resample", "error"),
}

# In a table that was an array: without names of its columns, a short file could claim any number.
_MOST_COLUMNS = 1_000_000


def write_transformer(fitted: Fitted, parameters: Mapping[str, Any], indent: int | None) -> str:
    """Return the JSON text of what was fitted, and of the parameters that matter after that."""
    roles = fitted.roles
    mechanism = fitted.mechanism.content(include_joint=False)
    content = {
        "parameters": {name: encode_label(parameters[name]) for name in _PARAMETERS},
        "layout": {
            "names": None if roles.names is None else [encode_label(n) for n in roles.names],
            "n_columns": roles.n_columns,
            "replaced": _labels(roles, roles.x_positions),
            # No other columns are passed through; below, what some of these were found to leak.
            "copied": _labels(roles, roles.kept_positions),
            "leaking": [
                {
                    "column": encode_label(name),
                    "leakage": None if np.isnan(leakage) else encode_label(leakage),
                }
                for name, leakage in fitted.leaking.items()
            ],
            "sensitive": [encode_label(name) for name in roles.s_names],
            **_groups_content(roles),
            **_beside_layout(roles),
        },
        "types": [type_.to_dict() for type_ in fitted.types],
        **_alphabet_content(fitted.alphabet),
        **_target_content(fitted.of_target),
        "names": mechanism.pop("names"),
        "mechanism": mechanism,
    }
    return write_document("transformer", content, indent)


def _beside_layout(roles: ColumnRoles) -> dict[str, Any]:
    if not roles.beside_positions:
        return {}
    return {"beside": _labels(roles, roles.beside_positions)}


def _alphabet_content(alphabet: Alphabet) -> dict[str, Any]:
    if isinstance(alphabet, PairedAlphabet):
        return {**_alphabet_content(alphabet.inner), "beside": beside_content(alphabet)}
    if isinstance(alphabet, CellAlphabet):
        return cell_content(alphabet)
    assert isinstance(alphabet, ValueAlphabet)
    return alphabet_content(alphabet)


def _groups_content(roles: ColumnRoles) -> dict[str, Any]:
    if roles.group_position is None:
        return {}
    return {"groups": encode_label(roles.name_or_position(roles.group_position))}


def _target_content(of_target: Posterior | None) -> dict[str, Any]:
    if of_target is None:
        return {}
    labels = [encode_label(label) for label in of_target.labels]
    return {"target": {"labels": labels, "given_y": of_target.given_y.tolist()}}


def _labels(roles: ColumnRoles, positions: Sequence[int]) -> list[Any]:
    return [encode_label(roles.name_or_position(position)) for position in positions]


def read_transformer(
    text: str, measure: Measure | None, utility: Utility | None
) -> tuple[dict[str, Any], Fitted]:
    """Return the parameters of the transformer that was written, and what it was fitted to."""
    document = read_document(text, "transformer")
    of_cells, has_target = ("questions" in document.members(), "target" in document.members())
    has_beside = "beside" in document.members()
    keys = [*(CELL_KEYS if of_cells else ALPHABET_KEYS), *(["target"] if has_target else [])]
    keys += ["beside"] if has_beside else []
    part = document.keys("parameters", "layout", "types", *keys, "names", "mechanism")
    given = part["parameters"].keys(*_PARAMETERS)
    parameters: dict[str, Any] = {key: given[key].text(*_PARAMETERS[key]) for key in given}
    alphabet: Alphabet = read_cells(part) if of_cells else read_alphabet(part)
    n_replaced, n_beside = len(alphabet.columns), 0
    if has_beside:
        alphabet = read_beside(part["beside"], alphabet)
        n_beside = len(alphabet.beside.columns)
    roles, leaking = _read_roles(part["layout"], n_replaced, n_beside)
    roles = replace(roles, of_cells=of_cells)
    if roles.group_position is not None:
        by_scores = of_cells and part["scores"].optional(lambda _: True) is not None
        part["layout"]["groups"].require(by_scores, "left out where cells are not by scores")
    types = tuple(map(_read_type, part["types"].items(len(roles.typed_positions))))
    mechanism = make_mechanism(part["mechanism"], measure, utility)
    _check_labels(part["mechanism"]["x_labels"], mechanism.x_labels, alphabet.labels)
    _check_groups(part["mechanism"], mechanism.groups, alphabet.groups)
    mechanism = mechanism.renamed(symbol_of_output=_read_symbols(part["names"], mechanism))
    of_target = _read_target(part["target"], len(mechanism.y_labels)) if has_target else None
    fitted = Fitted(roles, types, alphabet, mechanism, leaking, of_target)
    with part["layout"].making():
        check_names_out(names_out(roles, fitted.posterior.labels, parameters["output"]))
    budgets = {name: secret.epsilon for name, secret in mechanism.secrets.items()}
    parameters["epsilon"] = budgets.get(None, budgets)
    for name in ("measure", "scope", "confidence"):
        parameters[name] = getattr(mechanism, name)
    parameters["columns"] = [roles.name_or_position(p) for p in roles.x_positions]
    parameters["sensitive"] = [roles.name_or_position(p) for p in roles.s_positions] or None
    parameters["remainder"] = [roles.name_or_position(p) for p in roles.kept_positions] or "drop"
    parameters["beside"] = [roles.name_or_position(p) for p in roles.beside_positions] or None
    parameters["alphabet"] = "cells" if of_cells else "auto"
    return parameters, fitted


def _read_target(place: Place, n_outputs: int) -> Posterior:
    """Return P(V|y)."""
    part = place.keys("labels", "given_y")
    labels = part["labels"].labels()
    return Posterior(labels, part["given_y"].numbers(n_outputs, len(labels), low=0, high=1))


def _read_roles(
    place: Place, n_replaced: int, n_beside: int
) -> tuple[ColumnRoles, dict[Any, float]]:
    has_groups = ["groups"] if "groups" in place.members() else []
    keys = "names", "n_columns", "replaced", "copied", "leaking", "sensitive"
    part = place.keys(*keys, *has_groups, *(["beside"] if n_beside else []))
    n_columns = part["n_columns"].integer(low=1, high=_MOST_COLUMNS)
    names = part["names"].optional(lambda names: _read_column_names(names, n_columns))
    columns = {name: p for p, name in enumerate(range(n_columns) if names is None else names)}
    replaced = _read_columns(part["replaced"], columns, n_replaced)
    copied = _read_columns(part["copied"], columns, None)
    part["copied"].require(~np.isin(copied, replaced), "a column that is not replaced")
    sensitive = tuple(item.label() for item in part["sensitive"].items())
    hidden = tuple(columns[name] for name in sensitive if name in columns)
    part["copied"].require(~np.isin(copied, hidden), "a column that is not sensitive")
    part["replaced"].require(~np.isin(replaced, hidden), "a column that is not sensitive")
    leaking = dict(_read_leaking(item, columns, copied) for item in part["leaking"].items())
    roles = ColumnRoles(names, n_columns, replaced, hidden, sensitive, copied)
    if n_beside:
        beside = _read_columns(part["beside"], columns, n_beside)
        others = [*replaced, *copied, *hidden]
        requirement = "a column that is neither replaced nor copied nor sensitive"
        part["beside"].require(~np.isin(beside, others), requirement)
        roles = replace(roles, beside_positions=beside)
    if has_groups:
        groups = columns.get(part["groups"].label())
        is_own = groups is not None and groups not in (*roles.order, *hidden)
        part["groups"].require(is_own, "a column that is neither sensitive nor released")
        roles = replace(roles, group_position=groups)
    return roles, leaking


def _read_columns(place: Place, columns: dict[Any, int], length: int | None) -> tuple[int, ...]:
    """Return the positions of columns that a list names."""
    labels = [item.label() for item in place.items(length)]
    place.require(np.array([label in columns for label in labels], dtype=bool), "a column")
    place.different(labels, "a column")
    return tuple(columns[label] for label in labels)


def _read_leaking(
    place: Place, columns: dict[Any, int], copied: tuple[int, ...]
) -> tuple[Any, float]:
    part = place.keys("column", "leakage")
    name = part["column"].label()
    part["column"].require(columns.get(name) in copied, "a column that is copied")
    leakage = part["leakage"].optional(lambda leakage: float(leakage.number(low=0)))
    return name, np.nan if leakage is None else leakage


def _read_type(place: Place) -> ColumnType:
    part = place.keys("family", "bits", "unit", "zone", "is_ordered", "library", "native")
    family = part["family"].text(*FAMILIES)
    bits = part["bits"].optional(lambda bits: bits.integer(low=8, high=128))
    unit = part["unit"].optional(lambda unit: unit.text(*UNITS))
    if family in ("int", "uint", "float"):
        sizes = (16, 32, 64) if family == "float" else (8, 16, 32, 64, 128)
        part["bits"].require(bits in sizes, f"one of {', '.join(map(str, sizes))}")
    if family in ("time", "duration"):
        part["unit"].require(unit is not None, f"one of {', '.join(UNITS)}")
    zone = part["zone"].optional(lambda zone: zone.text())
    part["zone"].require(zone is None or is_zone(zone), "the name of a time zone, or null")
    native = part["native"].text()
    part["native"].require(is_name(native), "the name of a type")
    return ColumnType(
        family,
        bits,
        unit,
        zone,
        part["is_ordered"].flag(),
        part["library"].text(*LIBRARIES),
        native,
    )


def _read_column_names(place: Place, n_columns: int) -> list[Any]:
    names = place.labels(n_columns)
    place.different(names, "a name")
    place.require(~np.array(list(map(_has_na, names))), "a name that can be compared with others")
    return list(names)


def _has_na(name: object) -> bool:
    return name is pd.NA or (isinstance(name, tuple) and any(map(_has_na, name)))


def _check_labels(place: Place, labels: Labels, expected: list[Any]) -> None:
    """Check that the symbols of the channel are those of the columns."""
    place.items(len(expected))
    is_own = [label_key(a) == label_key(b) for a, b in zip(labels, expected, strict=True)]
    place.require(np.array(is_own), "the label that this symbol has in columns")


def _check_groups(place: Place, groups: IntArray | None, expected: IntArray | None) -> None:
    """Check that symbols belong to the values beside X that they are paired with."""
    if expected is None:
        place.require(groups is None, "a mechanism without groups, where no columns are beside X")
        return
    place.require(groups is not None, "a mechanism with groups, which columns beside X have")
    place["groups"].require(groups == expected, "the first number of its pair")


def _read_symbols(place: Place, mechanism: Mechanism) -> IntArray:
    """Return the symbol that each output is called by: the one that it has the label of."""
    symbols = place.integers(len(mechanism.y_labels), low=0, high=len(mechanism.x_labels) - 1)
    place.different(symbols.tolist(), "a symbol")
    if (groups := mechanism.groups) is not None:
        is_own = groups[symbols] == groups[mechanism.channel.argmax(axis=0)]
        place.require(is_own, "a symbol with the same columns beside it as this output")
    pairs = zip(mechanism.y_labels, symbols, strict=True)
    is_own = [label_key(label) == label_key(mechanism.x_labels[x]) for label, x in pairs]
    place.require(np.array(is_own), "the symbol with the label that this output has")
    return symbols
