"""Released rows read back: which output of the mechanism each of them is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from .._messages import Message, Setting
from .._typing import ColumnsLike, IntArray, NamedColumns
from ..encoding import Alphabet, PairedAlphabet
from ..fitted import Fitted
from ..tables.vectors import as_columns
from .output_names import names_out, posterior_names, readable

# Posteriors that were written to a file and read again differ by no more than this.
_CLOSE = 1e-6


class UnreadableLabelsError(ValueError):
    """Released labels do not tell which outputs they stand for."""


def outputs_of(fitted: Fitted, released: ColumnsLike, output: str) -> IntArray:
    """Return the output of each released row; output : the form that it was released in."""
    columns = as_columns(released, "released")
    there = names_out(fitted.roles, fitted.posterior.labels, output)
    read = {"label": _from_labels, "symbol": _from_symbols, "posterior": _from_posteriors}
    outputs = read[output](fitted, columns, there)
    if (outputs < 0).any():
        raise ValueError(
            Message(
                f"{int((outputs < 0).sum())} released rows hold values that this transformer does "
                f"not release: is it the one that released them, with ",
                Setting("output", output),
                "?",
            )
        )
    return outputs


def _chosen(columns: NamedColumns, names: Sequence[str], there: list[str]) -> list[pd.Series]:
    """Return the columns with these names; of a table without names, those at their positions.

    there : the names of all columns of a release.
    """
    if all(name in columns for name in names):
        return [columns[name] for name in names]
    series = list(columns.values())
    has_names = not all(str(name).startswith("released") for name in columns)
    if len(names) == len(series) and (len(names) == 1 or not has_names):
        return series
    if len(there) == len(series) and not has_names:
        return [series[there.index(name)] for name in names]
    missing = [name for name in names if name not in columns]
    raise ValueError(f"The released rows lack the column {missing[0]!r}.")


def _why(alphabet: Alphabet) -> str:
    if alphabet.of_cells:
        return "each row is shown as one of a cell"
    return "some of them stand for a pool of rare combinations"


def _from_labels(fitted: Fitted, columns: NamedColumns, there: list[str]) -> IntArray:
    roles, alphabet, symbol_of_output = fitted.roles, fitted.alphabet, fitted.symbol_of_output
    if not alphabet.can_be_read(symbol_of_output):
        raise UnreadableLabelsError(
            Message(
                f"Released labels cannot be read back into outputs: {_why(alphabet)}, whose "
                f"columns are each drawn separately. Use ",
                Setting("output", "symbol"),
                ".",
            )
        )
    names = [roles.name(position) for position in roles.read_positions]
    symbols, _ = alphabet.encode(_chosen(columns, names, there), names)
    output_of = np.full(alphabet.n_symbols + 1, -1)
    output_of[symbol_of_output] = np.arange(len(symbol_of_output))
    return output_of[np.where(symbols < 0, alphabet.n_symbols, symbols)]


def _from_symbols(fitted: Fitted, columns: NamedColumns, there: list[str]) -> IntArray:
    (series,) = _chosen(columns, [fitted.roles.joint_name], there)
    return pd.Index(readable(fitted.mechanism.y_labels)).get_indexer(pd.Index(series.astype(str)))


def _from_posteriors(fitted: Fitted, columns: NamedColumns, there: list[str]) -> IntArray:
    posterior = fitted.posterior
    names = posterior_names(fitted.roles, posterior.labels)
    rows, given_y = _chosen(columns, names, there), posterior.given_y
    if isinstance(alphabet := fitted.alphabet, PairedAlphabet):
        # Outputs beside different values may say the same about X.
        beside = [fitted.roles.name(position) for position in fitted.roles.beside_positions]
        z, _ = alphabet.beside.encode(_chosen(columns, beside, there), beside)
        rows = [*rows, pd.Series(z)]
        given_y = np.column_stack([given_y, alphabet.groups[fitted.symbol_of_output]])
    different, index = np.unique(np.column_stack(rows).astype(float), axis=0, return_inverse=True)
    distances = np.array([np.abs(row - given_y).max(axis=1) for row in different])
    nearest = np.where(distances.min(axis=1) <= _CLOSE, distances.argmin(axis=1), -1)
    return nearest[index.reshape(-1)]
