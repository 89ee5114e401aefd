"""Released rows read back: which output of the mechanism each of them is."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from .._messages import Message, Setting
from .._typing import ColumnsLike, IntArray
from ..encoding import UNKNOWN
from ..tables.vectors import as_columns
from .output_names import output_names, posterior_names

if TYPE_CHECKING:
    from ..transformer import PrivacyFunnelTransformer

# Posteriors that were written to a file and read again differ by no more.
_CLOSE = 1e-6


class UnreadableLabelsError(ValueError):
    """Released labels do not tell which outputs they stand for."""


def outputs_of(transformer: PrivacyFunnelTransformer, released: ColumnsLike) -> IntArray:
    """Return the output of each row that a fitted transformer has released."""
    check_is_fitted(transformer)
    columns = as_columns(released, "released")
    read = {"label": _from_labels, "symbol": _from_symbols, "posterior": _from_posteriors}
    outputs = read[transformer.output](transformer, columns)
    if (outputs < 0).any():
        raise ValueError(
            Message(
                f"{int((outputs < 0).sum())} released rows hold values that this transformer does "
                f"not release: is it the one that released them, with ",
                Setting("output", transformer.output),
                "?",
            )
        )
    return outputs


def _chosen(
    transformer: PrivacyFunnelTransformer,
    columns: dict[Hashable, pd.Series],
    names: Sequence[Hashable],
) -> list[pd.Series]:
    """Return the columns of that name; of a table without names, those at their positions."""
    if all(name in columns for name in names):
        return [columns[name] for name in names]
    series, there = list(columns.values()), transformer.get_feature_names_out().tolist()
    has_names = not all(str(name).startswith("released") for name in columns)
    if len(names) == len(series) and (len(names) == 1 or not has_names):
        return series
    if len(there) == len(series) and not has_names:
        return [series[there.index(name)] for name in names]
    missing = [name for name in names if name not in columns]
    raise ValueError(f"The released rows lack the column {missing[0]!r}.")


def _from_labels(
    transformer: PrivacyFunnelTransformer, columns: dict[Hashable, pd.Series]
) -> IntArray:
    roles, alphabet = transformer._roles, transformer._alphabet
    if not alphabet.can_be_read(transformer._names):
        raise UnreadableLabelsError(
            Message(
                "Released labels cannot be read back into outputs: some of them stand for a pool "
                "of rare combinations, of which each column is drawn on its own. Use ",
                Setting("output", "symbol"),
                ".",
            )
        )
    names = [roles.name(position) for position in roles.x_positions]
    symbols, _ = alphabet.encode(_chosen(transformer, columns, names), names)
    output_of = np.full(alphabet.n_symbols + 1, -1)
    output_of[transformer._names] = np.arange(len(transformer._names))
    return output_of[np.where(symbols == UNKNOWN, alphabet.n_symbols, symbols)]


def _from_symbols(
    transformer: PrivacyFunnelTransformer, columns: dict[Hashable, pd.Series]
) -> IntArray:
    (series,) = _chosen(transformer, columns, [transformer._roles.joint_name])
    return pd.Index(output_names(transformer.mechanism_)).get_indexer(pd.Index(series.astype(str)))


def _from_posteriors(
    transformer: PrivacyFunnelTransformer, columns: dict[Hashable, pd.Series]
) -> IntArray:
    mechanism = transformer.mechanism_
    names = posterior_names(transformer._roles, mechanism)
    rows = np.column_stack(_chosen(transformer, columns, names)).astype(float)
    different, index = np.unique(rows, axis=0, return_inverse=True)
    distances = np.array([np.abs(row - mechanism.posterior).max(axis=1) for row in different])
    nearest = np.where(distances.min(axis=1) <= _CLOSE, distances.argmin(axis=1), -1)
    return nearest[index.reshape(-1)]
