"""Names of outputs, each after a symbol of X; released rows read back as outputs.

The names minimise the expected loss of reading an output as its name: released values are as close
to the true ones as the channel allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, vstack

from .._messages import InPython, Message, Setting
from .._typing import ColumnsLike, FloatArray, IntArray, Labels, NamedColumns
from ..channels import merged_to
from ..codes import mixed
from ..encoding import PairedAlphabet
from ..fidelity import closest_names
from ..fitted import Fitted
from ..tables.frames import as_columns
from ..tables.table import ColumnRoles
from ..utilities import Utility
from .sampler import as_sampled


def named_outputs(
    channel: FloatArray,
    p_x: FloatArray,
    utility: Utility,
    loss: FloatArray,
    strata: IntArray | None,
) -> tuple[FloatArray, IntArray]:
    """Return the channel with outputs in the order of their names, and the symbol of each name.

    loss : of reading each symbol of X (rows) as each (columns); strata : the value beside X of
    each symbol; symbols of a stratum share outputs.
    """
    parts = [np.arange(len(p_x))]
    if strata is not None:
        parts = [np.flatnonzero(strata == z) for z in np.unique(strata)]
    channels, names = [], []
    for symbols in parts:
        here = channel if strata is None else channel[:, channel[symbols].any(axis=0)]
        # The average scope can have one output too many.
        here = merged_to(here, p_x, utility, len(symbols))
        p_xy = p_x[symbols, None] * here[symbols]
        names.append(symbols[closest_names(p_xy, loss[np.ix_(symbols, symbols)])])
        channels.append(here)
    order = np.argsort(symbol_of_output := np.concatenate(names))
    return np.hstack(channels)[:, order], symbol_of_output[order]


# The symbols that outputs are shown as in made-up rows.


# Of each output, this many of the best symbols, and all that are this likely given the output.
_MOST_SHOWN, _LIKELY = 24, 1e-6

# Ties are broken by a pseudorandom worth below this, which is the same on every machine. The
# tolerance of the solver is far below it, and the result is rounded to multiples of the grain.
_TIE, _TOL, _GRAIN = 1e-6, 1e-10, 2.0**-40


def shown_symbols(
    channel: FloatArray, p_x: FloatArray, strata: IntArray | None, loss: FloatArray | None
) -> FloatArray:
    """Return P(shown symbol | y), for outputs that are shown as one of several symbols.

    Shown symbols have the distribution P(X), and a row is shown as its own symbol as often as
    that allows; with a loss, the mean loss is as small as that allows. strata : symbols and
    outputs of different ones do not mix.
    """
    p_xy = p_x[:, None] * channel
    shown = np.zeros((channel.shape[1], len(p_x)))
    for z in [0] if strata is None else np.unique(strata):
        symbols = np.arange(len(p_x)) if strata is None else np.flatnonzero(strata == z)
        outputs = np.flatnonzero(p_xy[symbols].any(axis=0))
        part = np.ix_(outputs, symbols)
        shown[part] = _transported(
            p_xy[np.ix_(symbols, outputs)].T,
            None if loss is None else loss[np.ix_(symbols, symbols)],
        )
    return as_sampled(shown)


def _transported(p_yx: FloatArray, loss: FloatArray | None) -> FloatArray:
    """Return P(shown symbol | y), one row for each output.

    With M(y, c) = P(y) P(c shown | y), a transport problem: maximise sum M(y, c) w(y, c) where
    w(y, c) = P(c | y), or minus the loss, with sum_c M(y, c) = P(y) and sum_y M(y, c) = P(c).
    Only promising pairs are variables; the others keep P(y, c), so there is always a solution.
    """
    p_y = p_yx.sum(axis=1)
    posterior = p_yx / p_y[:, None]
    worth = posterior if loss is None else -(posterior @ loss)
    rank = np.argsort(np.argsort(-worth, axis=1, kind="stable"), axis=1, kind="stable")
    y, c = np.nonzero((posterior > _LIKELY) | (rank < _MOST_SHOWN))
    kept = np.where(posterior > _LIKELY, p_yx, 0.0)
    tie = mixed((y * p_yx.shape[1] + c).astype(np.uint64)) / 2.0**64
    cells = csr_matrix((np.ones(len(y)), (y, np.arange(len(y)))), shape=(len(p_y), len(y)))
    columns = csr_matrix((np.ones(len(y)), (c, np.arange(len(y)))), shape=(p_yx.shape[1], len(y)))
    wanted = np.concatenate([kept.sum(axis=1), kept.sum(axis=0)])
    # The rows add up to the same as the columns: one of them is redundant.
    answer = linprog(
        -(worth[y, c] + _TIE * tie),
        A_eq=vstack([cells, columns]).tocsr()[:-1],
        b_eq=wanted[:-1],
        options={"primal_feasibility_tolerance": _TOL, "dual_feasibility_tolerance": _TOL},
    )
    together = p_yx.copy()  # what is kept is a solution too
    if answer.status == 0:
        together -= kept
        np.add.at(together, (y, c), np.maximum(answer.x, 0.0))
    found = np.rint(together / p_y[:, None] / _GRAIN) * _GRAIN
    return found / found.sum(axis=1, keepdims=True)


def posterior_names(roles: ColumnRoles, x_labels: Labels) -> list[str]:
    """Return the names of the columns of P(x|y), one for each symbol x."""
    if roles.of_cells:
        return readable(x_labels)
    texts, name = readable(x_labels), f"{roles.joint_name}"
    # Labels of bins begin with the name of their column.
    return [text if text.startswith(f"{name} ") else f"{name}_{text}" for text in texts]


def names_out(roles: ColumnRoles, x_labels: Labels, output: str) -> list[Any]:
    """Return the names of the released columns.

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
    return [*names, *roles.target_names]


def check_names_out(names: Iterable[Hashable]) -> None:
    """Refuse an output with two columns of the same name."""
    if twice := [text for text, n in Counter(map(str, names)).items() if n > 1]:
        problem = "The output would have the column {name!r} twice: rename the column {of_x}that "
        advice = "is passed through, or use another {output}."
        raise ValueError(Message.of(problem + advice, name=twice[0], of_x=InPython("of X ")))


def readable(labels: Iterable[Hashable], between: str = "|", missing: str = "nan") -> list[str]:
    """Return labels as distinct texts.

    between : separates the parts of a joint label; missing : the text for a missing value.
    """
    parts = [label if isinstance(label, tuple) else (label,) for label in labels]
    texts = [between.join(missing if x is None else str(x) for x in part) for part in parts]
    if len(set(texts)) < len(texts):  # for instance of 1 and "1"
        texts = [f"{text}#{i}" if texts.count(text) > 1 else text for i, text in enumerate(texts)]
    return texts


# Released rows read back as outputs of the mechanism.


# Posteriors that went through a file differ by at most this.
_CLOSE = 1e-6


class UnreadableLabelsError(ValueError):
    """Released labels do not determine the outputs."""


def outputs_of(fitted: Fitted, released: ColumnsLike, output: str) -> IntArray:
    """Return the output of each released row; output : the parameter of the transformer."""
    columns = as_columns(released, "released")
    names = names_out(fitted.roles, fitted.posterior.labels, output)
    read = {"label": _from_labels, "symbol": _from_symbols, "posterior": _from_posteriors}
    outputs = read[output](fitted, columns, names)
    if n_unknown := int((outputs < 0).sum()):
        problem = "{n} released rows hold values that this transformer does not release: "
        question = "is it the one that released them, with {own}?"
        own = Setting("output", output)
        raise ValueError(Message.of(problem + question, n=n_unknown, own=own))
    return outputs


def _chosen(columns: NamedColumns, names: Sequence[str], all_names: list[str]) -> list[pd.Series]:
    """Return the columns with these names; of a table without names, those at their positions.

    all_names : of all columns of a release.
    """
    if all(name in columns for name in names):
        return [columns[name] for name in names]
    series = list(columns.values())
    has_names = not all(str(name).startswith("released") for name in columns)
    if len(names) == len(series) and (len(names) == 1 or not has_names):
        return series
    if len(all_names) == len(series) and not has_names:
        return [series[all_names.index(name)] for name in names]
    missing = next(name for name in names if name not in columns)
    raise ValueError(f"The released rows lack the column {missing!r}.")


def _from_labels(fitted: Fitted, columns: NamedColumns, all_names: list[str]) -> IntArray:
    roles, alphabet, symbol_of_output = fitted.roles, fitted.alphabet, fitted.symbol_of_output
    if not alphabet.can_be_read(symbol_of_output):
        kind = "cell" if alphabet.of_cells else "pool of rare combinations"
        problem = "Released labels cannot be read back into outputs: rows of a {kind} are made "
        advice = "up. Use {output='symbol'}."
        raise UnreadableLabelsError(Message.of(problem + advice, kind=kind))
    names = [roles.name(position) for position in roles.read_positions]
    symbols, _ = alphabet.encode(_chosen(columns, names, all_names), names)
    output_of = np.full(alphabet.n_symbols + 1, -1)
    output_of[symbol_of_output] = np.arange(len(symbol_of_output))
    return output_of[np.where(symbols < 0, alphabet.n_symbols, symbols)]


def _from_symbols(fitted: Fitted, columns: NamedColumns, all_names: list[str]) -> IntArray:
    (series,) = _chosen(columns, [fitted.roles.joint_name], all_names)
    return pd.Index(readable(fitted.mechanism.y_labels)).get_indexer(pd.Index(series.astype(str)))


def _from_posteriors(fitted: Fitted, columns: NamedColumns, all_names: list[str]) -> IntArray:
    posterior = fitted.posterior
    names = posterior_names(fitted.roles, posterior.labels)
    rows, given_y = _chosen(columns, names, all_names), posterior.given_y
    if isinstance(alphabet := fitted.alphabet, PairedAlphabet):
        # Outputs beside different values may have the same posterior.
        beside = [fitted.roles.name(position) for position in fitted.roles.beside_positions]
        z, _ = alphabet.beside.encode(_chosen(columns, beside, all_names), beside)
        rows = [*rows, pd.Series(z)]
        given_y = np.column_stack([given_y, alphabet.strata[fitted.symbol_of_output]])
    different, index = np.unique(np.column_stack(rows).astype(float), axis=0, return_inverse=True)
    distances = np.array([np.abs(row - given_y).max(axis=1) for row in different])
    nearest = np.where(distances.min(axis=1) <= _CLOSE, distances.argmin(axis=1), -1)
    return nearest[index.reshape(-1)]
