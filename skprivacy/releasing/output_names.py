"""Names for outputs: each y is named after a symbol of X, one to one, so that nothing is lost.

The assignment minimises the expected loss of reading an output as its name: released values are as
close to the true ones as the channel allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

import numpy as np

from .._messages import InPython, Message, Named
from .._typing import FloatArray, IntArray, Labels
from ..fidelity import closest_names
from ..mechanism import Mechanism, SeveralSecretsMechanism
from ..merging import merged_to
from ..tables.column_roles import ColumnRoles

M = TypeVar("M", Mechanism, SeveralSecretsMechanism)


def name_outputs(mechanism: M, loss: FloatArray) -> M:
    """Return the mechanism with outputs that have names, in the order of these.

    loss : of reading each symbol of X (rows) as each (columns).
    """
    parts = [_named(mechanism, loss, symbols) for symbols in _symbols_by_group(mechanism)]
    channel = np.hstack([channel for channel, _ in parts])
    names = np.concatenate([names for _, names in parts])
    order = np.argsort(names)
    return mechanism.changed(
        channel=channel[:, order],
        y_labels=tuple(mechanism.x_labels[symbol] for symbol in names[order]),
        symbol_of_output=names[order],
    )


def _symbols_by_group(mechanism: Mechanism | SeveralSecretsMechanism) -> list[IntArray]:
    """Return the symbols that share their outputs: all, or those of each value beside X."""
    if mechanism.groups is None:
        return [np.arange(len(mechanism.p_x))]
    return [np.flatnonzero(mechanism.groups == z) for z in np.unique(mechanism.groups)]


def _named(
    mechanism: Mechanism | SeveralSecretsMechanism, loss: FloatArray, symbols: IntArray
) -> tuple[FloatArray, IntArray]:
    """Return the outputs of some symbols, and the symbol among these that each is named after."""
    p_x, channel = mechanism.p_x, mechanism.channel
    if mechanism.groups is not None:
        channel = channel[:, channel[symbols].any(axis=0)]
    # The average scope can have one output too many.
    channel = merged_to(channel, p_x, mechanism.objective, len(symbols))
    p_xy = p_x[symbols, None] * channel[symbols]
    return channel, symbols[closest_names(p_xy, loss[np.ix_(symbols, symbols)])]


def output_names(mechanism: Mechanism | SeveralSecretsMechanism) -> list[str]:
    """Return the outputs as texts, all different."""
    return readable(mechanism.y_labels)


def posterior_names(roles: ColumnRoles, x_labels: Labels) -> list[str]:
    """Return the names of the columns of P(x|y), one for each symbol x."""
    if roles.of_cells:
        return readable(x_labels)
    return [f"{roles.joint_name}_{text}" for text in readable(x_labels)]


def names_out(roles: ColumnRoles, x_labels: Labels, output: str) -> list[Any]:
    """Return the names of the columns that come out.

    x_labels : of the symbols of X; output : the parameter of the transformer.
    """
    names: list[Any] = []
    for position in roles.order:
        if position not in roles.x_positions or output == "label":
            names.append(roles.name(position))
        elif position == roles.x_positions[0] and output == "symbol":
            names.append(roles.joint_name)
        elif position == roles.x_positions[0]:
            names += posterior_names(roles, x_labels)
    return names


def check_names_out(names: Iterable[Hashable]) -> None:
    """Refuse an output with two columns of the same name."""
    twice = [text for text, n in Counter(map(str, names)).items() if n > 1]
    if twice:
        raise ValueError(
            Message(
                f"The output would have the column {twice[0]!r} twice: rename the column ",
                InPython("of X "),
                "that is passed through, or use another ",
                Named("output"),
                ".",
            )
        )


def readable(labels: Iterable[Hashable], between: str = "|", missing: str = "nan") -> list[str]:
    """Return labels as texts, all different.

    between : the parts of a joint label; missing : what a missing value is called.
    """
    parts = [label if isinstance(label, tuple) else (label,) for label in labels]
    texts = [between.join(missing if x is None else str(x) for x in part) for part in parts]
    if len(set(texts)) < len(texts):  # 1 and "1", say: tell them apart
        texts = [f"{text}#{i}" if texts.count(text) > 1 else text for i, text in enumerate(texts)]
    return texts
