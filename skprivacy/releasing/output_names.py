"""Names for outputs: each y is named after a symbol of X, one to one, so that nothing is lost.

The assignment minimises the expected loss of reading an output as its name: released values are as
close to the true ones as the channel allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from .._messages import InPython, Message, Named
from .._typing import FloatArray, IntArray, Labels
from ..fidelity import closest_names
from ..merging import merged_to
from ..tables.column_roles import ColumnRoles
from ..utilities import Utility


def named_outputs(
    channel: FloatArray,
    p_x: FloatArray,
    utility: Utility,
    loss: FloatArray,
    groups: IntArray | None,
) -> tuple[FloatArray, IntArray]:
    """Return the outputs in the order of their names, and the symbol that each is named after.

    loss : of reading each symbol of X (rows) as each (columns); groups : the value beside X of
    each symbol: those that share one share their outputs.
    """
    faces = [np.arange(len(p_x))]
    if groups is not None:
        faces = [np.flatnonzero(groups == z) for z in np.unique(groups)]
    channels, names = [], []
    for symbols in faces:
        here = channel if groups is None else channel[:, channel[symbols].any(axis=0)]
        # The average scope can have one output too many.
        here = merged_to(here, p_x, utility, len(symbols))
        p_xy = p_x[symbols, None] * here[symbols]
        names.append(symbols[closest_names(p_xy, loss[np.ix_(symbols, symbols)])])
        channels.append(here)
    order = np.argsort(symbol_of_output := np.concatenate(names))
    return np.hstack(channels)[:, order], symbol_of_output[order]


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
