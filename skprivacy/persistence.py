"""A fitted transformer as JSON and back: its encoder and channel, no P_SX, no S."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from ._json import encode_label, label_key, write_document
from ._json_reader import Place, read_document
from ._typing import FloatArray, IntArray, Labels
from .alphabet_json import ALPHABET_KEYS, alphabet_content, read_alphabet
from .encoding import Alphabet
from .layout import Layout
from .measures import Measure
from .mechanism import Mechanism
from .mechanism_json import make_mechanism, mechanism_content
from .naming import check_names_out, names_out

if TYPE_CHECKING:
    from .transformer import PrivacyFunnelTransformer

_Fitted: TypeAlias = tuple[Layout, Alphabet, IntArray, Mechanism]

# The parameters that matter after fit; the budget and its measure are the mechanism's.
_PARAMETERS = {
    "output": ("label", "symbol", "posterior"),
    "remainder": ("drop", "passthrough"),
    "handle_unknown": ("resample", "error"),
}

# Of a table that was an array, whose columns have no names that would be as long in the file.
_MOST_COLUMNS = 1_000_000


def write_transformer(transformer: PrivacyFunnelTransformer, indent: int | None) -> str:
    """Return the JSON text of a fitted transformer."""
    layout = transformer._layout
    content = {
        "parameters": {name: encode_label(getattr(transformer, name)) for name in _PARAMETERS},
        "layout": {
            "names": None if layout.names is None else [encode_label(n) for n in layout.names],
            "n_columns": layout.n_columns,
            "x_positions": list(layout.x_positions),
            "s_positions": list(layout.s_positions),
        },
        **alphabet_content(transformer._alphabet),
        "names": transformer._names.tolist(),
        "mechanism": mechanism_content(transformer.mechanism_, include_joint=False),
    }
    return write_document("transformer", content, indent)


def read_transformer(text: str, measure: Measure | None) -> tuple[dict[str, Any], _Fitted]:
    """Return the parameters and the fitted parts of the transformer that was written."""
    part = read_document(text, "transformer").keys(
        "parameters", "layout", *ALPHABET_KEYS, "names", "mechanism"
    )
    given = part["parameters"].keys(*_PARAMETERS)
    parameters: dict[str, Any] = {key: given[key].text(*_PARAMETERS[key]) for key in given}
    alphabet = read_alphabet(part)
    layout = _read_layout(part["layout"], len(alphabet.columns))
    mechanism = make_mechanism(part["mechanism"], Mechanism, measure)
    _check_labels(part["mechanism"]["x_labels"], mechanism.x_labels, alphabet.labels)
    names = _read_names(part["names"], mechanism.channel)
    with part["layout"].making():
        come_out = names_out(layout, mechanism, parameters["output"], parameters["remainder"])
        check_names_out(come_out)
    for name in ("epsilon", "measure", "scope"):
        parameters[name] = getattr(mechanism, name)
    parameters["columns"] = [layout.name_or_position(p) for p in layout.x_positions]
    parameters["sensitive"] = [layout.name_or_position(p) for p in layout.s_positions] or None
    return parameters, (layout, alphabet, names, mechanism)


def _read_layout(place: Place, n_replaced: int) -> Layout:
    part = place.keys("names", "n_columns", "x_positions", "s_positions")
    n_columns = part["n_columns"].integer(low=1, high=_MOST_COLUMNS)
    names = part["names"].optional(lambda names: _read_column_names(names, n_columns))
    replaced = _read_positions(part["x_positions"], n_replaced, n_columns)
    sensitive = _read_positions(part["s_positions"], None, n_columns)
    is_other = ~np.isin(sensitive, replaced)
    part["s_positions"].require(is_other, "a position that is not among x_positions")
    return Layout(names, n_columns, replaced, sensitive)


def _read_column_names(place: Place, n_columns: int) -> list[Any]:
    names = place.labels(n_columns)
    place.different(names, "a name")
    place.require(~np.array(list(map(_has_na, names))), "a name that can be compared with others")
    return list(names)


def _has_na(name: object) -> bool:
    return name is pd.NA or (isinstance(name, tuple) and any(map(_has_na, name)))


def _read_positions(place: Place, length: int | None, n_columns: int) -> tuple[int, ...]:
    positions = tuple(i.integer(low=0, high=n_columns - 1) for i in place.items(length))
    place.different(positions, "a position")
    return positions


def _check_labels(place: Place, labels: Labels, expected: list[Any]) -> None:
    """Check that the symbols of the channel are those of the columns."""
    place.items(len(expected))
    is_own = [label_key(a) == label_key(b) for a, b in zip(labels, expected, strict=True)]
    place.require(np.array(is_own), "the label that this symbol has in columns")


def _read_names(place: Place, channel: FloatArray) -> IntArray:
    """Return the symbol that each output is called by, one that it can come from."""
    n_x, n_y = channel.shape
    names = place.integers(n_y, low=0, high=n_x - 1)
    place.different(names.tolist(), "a symbol")
    is_possible = channel[names, np.arange(n_y)] > 0
    place.require(is_possible, "a symbol that this output can come from")
    return names
