"""A fitted transformer as JSON and back: its encoder and channel, no P_SX, no S."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ._json import decode_label, document, encode_label, parse_document
from ._typing import IntArray
from .column_types import ColumnType
from .encoding import Alphabet, ColumnAlphabet
from .layout import Layout
from .measures import Measure
from .mechanism import Mechanism

if TYPE_CHECKING:
    from .transformer import PrivacyFunnelTransformer

_Fitted: TypeAlias = tuple[
    Layout, tuple[ColumnType, ...], Alphabet, IntArray, Mechanism, dict[Any, float]
]

# The parameters that matter after fit; the budget and its measure are the mechanism's.
_PARAMETERS = ("output", "handle_unknown")

_KEYS = {"schema", "version", "parameters", "layout", "columns", "combinations", "symbols",
         "members", "member_of", "weights", "names", "mechanism", "types"}  # fmt: skip


def write_transformer(transformer: PrivacyFunnelTransformer, indent: int | None) -> str:
    """Return the JSON text of a fitted transformer."""
    layout, alphabet = transformer._layout, transformer._alphabet
    content = {
        **document("transformer"),
        "parameters": {name: encode_label(getattr(transformer, name)) for name in _PARAMETERS},
        "layout": {
            "names": None if layout.names is None else [encode_label(n) for n in layout.names],
            "n_columns": layout.n_columns,
            "replaced": _labels(layout, layout.x_positions),
            "copied": _labels(layout, layout.kept_positions),
            "leaking": [[encode_label(n), x] for n, x in transformer._leaking.items()],
            "sensitive": [encode_label(name) for name in layout.s_names],
            "s_positions": list(layout.s_positions),
        },
        "types": [type_.to_dict() for type_ in transformer._types],
        "columns": [_write_column(column) for column in alphabet.columns],
        "combinations": alphabet.combinations.tolist(),
        "symbols": alphabet.symbols.tolist(),
        "members": alphabet.members.tolist(),
        "member_of": alphabet.member_of.tolist(),
        "weights": alphabet.weights.tolist(),
        "names": transformer._names.tolist(),
        "mechanism": json.loads(transformer.mechanism_.to_json(include_joint=False)),
    }
    return json.dumps(content, allow_nan=False, indent=indent)


def _labels(layout: Layout, positions: Sequence[int]) -> list[Any]:
    return [encode_label(layout.name_or_position(position)) for position in positions]


def _write_column(column: ColumnAlphabet) -> dict[str, Any]:
    return {
        "values": [encode_label(value) for value in column.values],
        "labels": [encode_label(label) for label in column.labels],
        "symbols": column.symbols.tolist(),
        "weights": column.weights.tolist(),
        "in_pool": [encode_label(value) for value in column.in_pool],
        "is_rare": column.is_rare.tolist(),
        "edges": None if column.edges is None else column.edges.tolist(),
        "bounds": [encode_label(bound) for bound in column.bounds],
        "has_missing": column.has_missing,
    }


def read_transformer(text: str, measure: Measure | None) -> tuple[dict[str, Any], _Fitted]:
    """Return the parameters and the fitted parts of the transformer that was written."""
    content = parse_document(text, "transformer")
    try:
        return _read_content(content, measure)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"The JSON text of this transformer is malformed: {error!r}.") from error


def _read_content(
    content: dict[str, Any], measure: Measure | None
) -> tuple[dict[str, Any], _Fitted]:
    if unknown := sorted(set(content) - _KEYS):
        raise ValueError(f"The JSON text of this transformer has unknown keys: {unknown}.")
    mechanism = Mechanism.from_json(json.dumps(content["mechanism"]), measure=measure)
    alphabet = Alphabet(
        tuple(_read_column(column) for column in content["columns"]),
        np.array(content["combinations"], dtype=np.intp),
        np.array(content["symbols"], dtype=np.intp),
        np.array(content["members"], dtype=np.intp),
        np.array(content["member_of"], dtype=np.intp),
        np.array(content["weights"], dtype=float),
    )
    names = np.array(content["names"], dtype=np.intp)
    layout = _read_layout(content["layout"])
    _check(layout, alphabet, names, mechanism)
    parameters = {name: decode_label(content["parameters"][name]) for name in _PARAMETERS}
    for name in ("epsilon", "measure", "scope"):
        parameters[name] = getattr(mechanism, name)
    parameters["columns"] = [layout.name_or_position(p) for p in layout.x_positions]
    parameters["sensitive"] = [layout.name_or_position(p) for p in layout.s_positions] or None
    parameters["remainder"] = [layout.name_or_position(p) for p in layout.kept_positions] or "drop"
    types = tuple(ColumnType(**type_) for type_ in content["types"])
    leaking = {decode_label(name): float(x) for name, x in content["layout"]["leaking"]}
    return parameters, (layout, types, alphabet, names, mechanism, leaking)


def _read_layout(content: dict[str, Any]) -> Layout:
    names = content["names"]
    if names is not None:
        names = [decode_label(name) for name in names]

    def positions(key: str) -> tuple[int, ...]:
        labels = [decode_label(label) for label in content[key]]
        return tuple(labels if names is None else map(names.index, labels))

    return Layout(
        names,
        int(content["n_columns"]),
        positions("replaced"),
        tuple(map(int, content["s_positions"])),
        tuple(decode_label(name) for name in content["sensitive"]),
        positions("copied"),
    )


def _read_column(content: dict[str, Any]) -> ColumnAlphabet:
    return ColumnAlphabet(
        tuple(decode_label(value) for value in content["values"]),
        tuple(decode_label(label) for label in content["labels"]),
        np.array(content["symbols"], dtype=np.intp),
        np.array(content["weights"], dtype=float),
        tuple(decode_label(value) for value in content["in_pool"]),
        np.array(content["is_rare"], dtype=bool),
        None if content["edges"] is None else np.array(content["edges"], dtype=float),
        tuple(decode_label(bound) for bound in content["bounds"]),
        bool(content["has_missing"]),
    )


def _check(layout: Layout, alphabet: Alphabet, names: IntArray, mechanism: Mechanism) -> None:
    """Check that the parts belong together: a wrong encoder would sample from wrong rows."""
    n_x, n_y = mechanism.channel.shape
    positions = (*layout.x_positions, *layout.s_positions, *layout.kept_positions)
    fits = (
        len(alphabet.columns) == len(layout.x_positions)
        and alphabet.combinations.shape == (len(alphabet.symbols), len(alphabet.columns))
        and alphabet.n_symbols == n_x
        and alphabet.labels == list(mechanism.x_labels)
        and names.shape == (n_y,)
        and len(set(names.tolist())) == n_y
        and ((names >= 0) & (names < n_x)).all()
        and (mechanism.channel[names, np.arange(n_y)] > 0).all()
        and len(set(positions)) == len(positions)
        and all(0 <= position < layout.n_columns for position in positions)
        and (layout.names is None or len(layout.names) == layout.n_columns)
        and alphabet.members.shape == (len(alphabet.member_of), len(alphabet.columns))
        and set(alphabet.member_of.tolist()) == set(range(len(alphabet.symbols)))
        and len(alphabet.weights) == len(alphabet.member_of)
        and (alphabet.weights >= 0).all()
        and all(map(_column_fits, alphabet.columns, alphabet.combinations.T, alphabet.members.T))
    )
    if not fits:
        raise ValueError("The JSON text of this transformer is malformed: its parts do not fit.")


def _column_fits(column: ColumnAlphabet, codes: IntArray, members: IntArray) -> bool:
    n_values, n_bins = len(column.values), len(column.values) - column.has_missing
    return bool(
        {len(column.labels), len(column.symbols), len(column.weights)} == {n_values}
        and ((column.symbols >= -1) & (column.symbols < n_values)).all()
        and (column.weights >= 0).all()
        and ((codes >= 0) & (codes < column.n_symbols)).all()
        and ((members >= 0) & (members < n_values)).all()
        and (column.edges is None or len(column.edges) + 1 == n_bins)
        and (column.edges is None or (np.diff(column.edges) > 0).all())
    )
