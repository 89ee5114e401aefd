"""What was fitted, on rows that it has not seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .._messages import Message, Setting
from .._typing import ColumnsLike, FloatArray, IntArray, Labels, NamedColumns
from ..certifying import (
    Candidate,
    Centre,
    Certificate,
    SeveralCertificates,
    certified_secrets,
    check_measure,
    failure_of,
)
from ..codes import UNKNOWN, take
from ..encoding import PairedAlphabet
from ..encoding.values import coded as values_of
from ..fitted import Fitted, Training
from ..measures import Measure, get_measure
from ..mechanism import (
    Evaluation,
    Mechanism,
    SeveralSecretsEvaluation,
    SeveralSecretsMechanism,
)
from ..releasing.group_folds import folds_in
from ..secret_columns import SecretGroups, columns_of_secrets
from ..tables.cross_tables import coded
from ..tables.frames import Table, as_table
from ..utilities import Distortion, EachColumn, Target, Utility
from .inputs import sensitive_columns


def evaluated_on(
    fitted: Fitted,
    owner: str,
    sensitive: Any,
    X: Any,
    y: ColumnsLike | None,
    sensitive_features: ColumnsLike | None,
) -> Evaluation | SeveralSecretsEvaluation:
    """Return the `Evaluation` of a channel under the joint of other rows, or that of each secret.

    owner, sensitive : the name and the parameter of the transformer; the rest as in `fit`.
    """
    training, mechanism = fitted.training, fitted.mechanism
    if training is None:
        raise ValueError(
            f"This {owner} was loaded without the values of S, and cannot recognise them in other "
            f"rows. Use mechanism_.evaluate(p_sx) with a table of counts."
        )
    table = as_table(X, owner)
    s_columns, _ = sensitive_columns(owner, table, y, sensitive, sensitive_features)
    s_codes = _group_codes(training, s_columns)
    x_codes = _symbols_in(fitted, table, owner)
    objective, n_x = _objective(fitted, table, owner, y, x_codes), n_symbols(fitted)

    def under(codes: IntArray, labels: Labels) -> Evaluation:
        counts = count_codes(codes, x_codes, (len(labels) + 1, n_x))
        return Evaluation(
            _channel(mechanism),
            counts / counts.sum(),
            (*labels, "unseen"),
            (*mechanism.x_labels, *_unseen_labels(fitted)),
            mechanism.y_labels,
            mechanism.measure,
            objective,
            groups=_groups(mechanism),
        )

    whole = under(s_codes, tuple(training.alphabet.labels))
    if not training.secrets.are_several:
        return whole
    each = {
        name: under(_codes_of(training, groups, s_columns), groups.labels)
        for name, groups in training.secrets.groups.items()
    }
    return SeveralSecretsEvaluation(each, whole)


def certified_on(
    fitted: Fitted,
    owner: str,
    sensitive: Any,
    X: Any,
    y: ColumnsLike | None,
    sensitive_features: ColumnsLike | None,
    measure: str | Measure | None,
    confidence: float,
    n_settings: int,
) -> Certificate | SeveralCertificates:
    """Return the `Certificate` of a channel by other rows; parameters as in `evaluated_on`.

    The groups of S are those of `fit`, and one more if there are values that it did not see; for
    a transformer that was loaded they are those of the rows.
    """
    failure_of(confidence, n_settings)  # errors come before any work is done
    measure = fitted.mechanism.measure if measure is None else get_measure(measure, "certify")
    check_measure(measure, 0)
    table = as_table(X, owner)
    s_columns, _ = sensitive_columns(owner, table, y, sensitive, sensitive_features)
    if not table.n_rows:
        raise ValueError(f"Found array with 0 sample(s) while {owner} needs at least one row.")
    every = {None: tuple(range(len(s_columns)))}
    if isinstance(fitted.mechanism, SeveralSecretsMechanism):
        every = columns_of_secrets(owner, fitted.mechanism.epsilon, tuple(s_columns))
    sized = {name: _sized_groups(fitted, s_columns, name, p) for name, p in every.items()}
    for n_s, _ in sized.values():
        check_measure(measure, n_s)
    x_codes = _symbols_in(fitted, table, owner)
    n_x = n_symbols(fitted)
    return certified_secrets(
        {name: count_codes(codes, x_codes, (n_s, n_x)) for name, (n_s, codes) in sized.items()},
        {name: candidate(fitted, n_s, name) for name, (n_s, _) in sized.items()},
        measure,
        confidence,
        n_settings,
    )


def _sized_groups(
    fitted: Fitted, s_columns: NamedColumns, name: Any, positions: tuple[int, ...]
) -> tuple[int, IntArray]:
    """Return how many groups a secret has, and that of each row; positions : of its columns."""
    if (training := fitted.training) is None:
        columns = list(s_columns.values())
        found = {p: columns[p].reset_index(drop=True) for p in positions}
        codes, _ = coded(pd.DataFrame(found), "S")
        return int(codes.max()) + 1, codes
    groups = training.secrets.groups[name]
    codes = _codes_of(training, groups, s_columns)
    return max(len(groups.labels), int(codes.max()) + 1), codes


def candidate(fitted: Fitted, n_groups: int, name: Any = None) -> Candidate:
    """Return what is to be certified by rows with so many groups of S, or of one secret.

    P(S) is thought to be as in the rows of `fit`, or uniform where these are not known.
    """
    prior = np.full(n_groups, 1 / n_groups)
    if fitted.training is not None:
        seen = fitted.training.secrets.groups[name].table(fitted.training.counts).sum(axis=1)
        prior = np.append(seen / seen.sum(), np.zeros(n_groups - len(seen)))
    mechanism = fitted.mechanism
    centre = Centre(prior, mechanism.p_y)
    return Candidate(_channel(mechanism), mechanism.y_labels, mechanism.scope, centre)


def _channel(mechanism: Mechanism | SeveralSecretsMechanism) -> FloatArray:
    """Return the channel with one more symbol, for values that were not seen: drawn from P(Y).

    Beside columns z there is one for each z, drawn from P(Y|z).
    """
    return np.vstack([mechanism.channel, mechanism.unseen])


def n_symbols(fitted: Fitted) -> int:
    """Return how many symbols there are with those for values that were not seen."""
    return len(fitted.mechanism.channel) + len(fitted.mechanism.unseen)


def _groups(mechanism: Mechanism | SeveralSecretsMechanism) -> IntArray | None:
    if mechanism.groups is None:
        return None
    return np.append(mechanism.groups, np.unique(mechanism.groups))


def _unseen_labels(fitted: Fitted) -> list[Any]:
    if not isinstance(fitted.alphabet, PairedAlphabet):
        return ["unseen"]
    return [("unseen", label) for label in fitted.alphabet.beside.labels]


def _group_codes(training: Training, s_columns: NamedColumns) -> IntArray:
    """Return the group of each row; values that were not seen are one more."""
    codes, _ = training.alphabet.encode(list(s_columns.values()), list(s_columns))
    return np.where(codes == UNKNOWN, len(training.counts), codes)


def _codes_of(training: Training, groups: SecretGroups, s_columns: NamedColumns) -> IntArray:
    """Return the group of one secret in each row; values that were not seen are one more."""
    columns, names = list(s_columns.values()), list(s_columns)
    found = [training.alphabet.columns[p].encode(columns[p], names[p]) for p in groups.positions]
    return groups.found(found)


def _symbols_in(fitted: Fitted, table: Table, owner: str) -> IntArray:
    columns = table.named(fitted.roles.read_in(table, owner))
    return symbols_of(fitted, columns, folds_in(fitted.roles, table, owner))


def symbols_of(fitted: Fitted, x_columns: NamedColumns, folds: IntArray | None = None) -> IntArray:
    """Return the symbol of X of each row; values that were not seen are one more.

    x_columns : and those beside X; there is then one more symbol for each of their values;
    folds : of the rows, where a column tells people apart.
    """
    codes, _ = fitted.alphabet.encode(list(x_columns.values()), list(x_columns), folds)
    return np.where(codes < 0, len(fitted.mechanism.x_labels) - 1 - codes.astype(np.intp), codes)


def count_codes(rows: IntArray, columns: IntArray, shape: tuple[int, int]) -> FloatArray:
    """Return the table of counts of two columns of codes; symbols that never occur count 0."""
    counts = np.zeros(shape)
    np.add.at(counts, (rows, columns), 1.0)
    return counts


def _tables(fitted: Fitted, columns: NamedColumns, x_codes: IntArray) -> list[FloatArray]:
    """Return how often each value of each column, in the bins of `fit`, has each symbol."""
    found, n_x = [], n_symbols(fitted)
    for alphabet, (name, column) in zip(fitted.alphabet.columns, columns.items(), strict=True):
        of_rows, values = values_of(column, name)
        positions = take(alphabet.positions_of(values, name), of_rows)
        unseen = np.where(positions == UNKNOWN, len(alphabet.values), positions)
        found.append(count_codes(unseen, x_codes, (len(alphabet.values) + 1, n_x)))
    return found


def _objective(
    fitted: Fitted, table: Table, owner: str, y: ColumnsLike | None, x_codes: IntArray
) -> Utility:
    """Return the utility for these rows: a target is their own, and so is what columns hold."""
    mechanism, objective = fitted.mechanism, fitted.mechanism.objective
    if isinstance(objective, EachColumn):
        columns = table.named(fitted.roles.x_in(table, owner))
        return EachColumn.of_tables(_tables(fitted, columns, x_codes))
    if isinstance(objective, Distortion):  # an unseen value is as far from all labels as can be
        shape = len(mechanism.unseen), objective.loss.shape[1]
        loss = np.vstack([objective.loss, np.full(shape, objective.loss.max())])
        return Distortion.of_symbols(loss, of_cells=objective.of_cells)
    if not isinstance(objective, Target):
        return objective
    if y is None:
        raise ValueError(
            Message(
                "A transformer with ",
                Setting("utility", "target"),
                " needs y, the target, to be evaluated.",
            )
        )
    v_codes, _ = coded(y, "y")
    shape = v_codes.max() + 1, n_symbols(fitted)
    # What X itself says about the target is known from the rows of `fit`.
    return Target(count_codes(v_codes, x_codes, shape), whole=objective.whole)
