"""Evaluate and certify a fitted transformer on other rows than those of `fit`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._messages import SENSITIVE, Message, warn
from .._typing import ColumnsLike, FloatArray, IntArray, Labels, NamedColumns
from ..codes import UNKNOWN, take
from ..encoding import PairedAlphabet
from ..encoding.values import coded as values_of
from ..exceptions import PrivacyLeakWarning
from ..fitted import Fitted, Training, columns_of_secrets
from ..measures import Measure, get_measure
from ..mechanism import Channel, Evaluation, Leakage, name_of_secret
from ..population.certificate import (
    Candidate,
    Centre,
    Certificate,
    Terms,
    certificate_of,
    check_measure,
)
from ..tables.frames import Table, as_columns, as_table, check_length, check_weights, coded
from ..utilities import Distortion, EachColumn, Target, Utility
from .counted_tables import CountedTable, rows_by_number
from .inputs import CountedColumns, LabelledRows, check_sensitive, sensitive_again
from .parameters import Settings
from .tally import NUMBER, RowNumbers, RowSymbols, TooManyRowsError


@dataclass(frozen=True, eq=False)
class Symbols(RowSymbols):
    """The symbol of X of each row, with one more for unseen values: for each z beside X.

    n_seen : the number of symbols that `fit` has seen.
    """

    n_seen: int

    @classmethod
    def of(cls, fitted: Fitted, names: Sequence[Any]) -> Symbols:
        """Return the symbols of a fitted transformer; names : of the columns that are read."""
        n, n_seen = len(fitted.roles.read_positions), len(fitted.mechanism.x_labels)
        return cls(fitted.alphabet, tuple(names[:n]), tuple(names[n:]), n_seen)

    def of_columns(self, columns: NamedColumns, folds: IntArray | None = None) -> IntArray:
        codes = super().of_columns(columns, folds)
        return np.where(codes < 0, self.n_seen - 1 - codes.astype(np.intp), codes)


@dataclass(frozen=True, eq=False)
class ValuesAndSymbols(RowNumbers):
    """The value of one column of X and the symbol of the row, as one number.

    Values are in the bins of `fit`; unseen ones are one more.
    """

    symbols: Symbols
    position: int
    n_symbols: int

    @property
    def read(self) -> tuple[Any, ...]:
        return self.symbols.read

    def of_table(self, columns: NamedColumns) -> IntArray:
        column = columns[self.symbols.names[self.position]]
        alphabet = self.symbols.alphabet.columns[self.position]
        of_rows, values = values_of(column, column.name)
        positions = take(alphabet.positions_of(values, column.name), of_rows)
        positions = np.where(positions == UNKNOWN, len(alphabet.values), positions)
        # Positions are of a small integer type, products may be larger.
        return positions.astype(np.intp) * self.n_symbols + self.symbols.of_table(columns)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows that were not used in `fit`, each or counted, with a symbol in place of X.

    symbols : of the rows; sizes : returns the number of rows with each number.
    """

    rows: LabelledRows
    symbols: Symbols
    sizes: Callable[[RowNumbers, int], FloatArray]

    @property
    def x_codes(self) -> IntArray:
        """The symbol of each row."""
        (codes,) = self.rows.x_columns.values()
        return codes.to_numpy(dtype=np.intp)

    def counts(self, codes: IntArray, shape: tuple[int, int]) -> FloatArray:
        """Return counts of pairs of a code and a symbol."""
        counts, weights = np.zeros(shape), self.rows.weights
        np.add.at(counts, (codes, self.x_codes), 1.0 if weights is None else weights)
        return counts

    def table_of(self, position: int, shape: tuple[int, int]) -> FloatArray:
        """Return counts of pairs of a value of a column of X and a symbol."""
        numbers = ValuesAndSymbols(self.symbols, position, shape[1])
        return self.sizes(numbers, math.prod(shape)).reshape(shape)


def _rows(
    fitted: Fitted,
    settings: Settings,
    X: Any,
    y: Any,
    *passed: Any,
    to_evaluate: bool = False,
    with_s: bool = True,
) -> HeldOut:
    """Return the rows of a frame or of a `CountedTable`; passed : S and weights.

    y : for a `CountedTable`, the name of a column; to_evaluate : whether a target may be needed,
    and rows of unknown groups are left out of a frame; with_s : whether S is needed.
    """
    is_needed = to_evaluate and isinstance(fitted.mechanism.objective, Target)
    if is_needed and y is None:
        template = "A transformer with {utility='target'} needs y, the target, to be evaluated."
        raise ValueError(Message.of(template))
    if isinstance(X, CountedTable):
        return _rows_of_table(fitted, settings, X, y if is_needed else None)
    rows = _rows_of_frame(fitted, settings, X, y, with_s, *passed)
    if not is_needed:
        rows = replace(rows, target=None)
    if to_evaluate and with_s and fitted.training is not None:
        rows = _of_known_groups(fitted.training, rows)
    columns, weights = rows.x_columns, rows.weights
    symbols = Symbols.of(fitted, list(columns))

    def sizes(numbers: RowNumbers, n_numbers: int) -> FloatArray:
        return np.bincount(numbers.of_table(columns), weights, n_numbers).astype(float)

    x_codes = pd.Series(symbols.of_table(columns))
    return HeldOut(replace(rows, x_columns={NUMBER: x_codes}), symbols, sizes)


def _rows_of_frame(
    fitted: Fitted,
    settings: Settings,
    X: Any,
    y: Any,
    has_s: bool,
    sensitive_features: ColumnsLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> LabelledRows:
    """Return the rows of a frame with their S, y as their target, and all that symbols need."""
    table, s_columns = as_table(X, settings.owner), NamedColumns()
    if has_s:
        s_columns = sensitive_again(fitted, settings, table, y, sensitive_features)
    if not table.n_rows:
        needs = f"while {settings.owner} needs at least one row."
        raise ValueError(f"Found array with 0 sample(s) {needs}")
    check_length(y, table.n_rows, "y")
    weights = check_weights(sample_weight, table.n_rows)
    target = None if y is None else as_columns(y, "y")
    columns = table.named(_read_positions(fitted, table, settings.owner))
    return LabelledRows(s_columns, columns, target, weights)


def _of_known_groups(training: Training, rows: LabelledRows) -> LabelledRows:
    """Return the rows with values of S that `fit` saw, with a warning if there are others.

    Others may be known groups in another code, and would hide what leaks about these.
    """
    positions = range(len(training.names))
    are_known = ~np.any([_s_codes(training, rows.s_columns, p) < 0 for p in positions], axis=0)
    if are_known.all() or not are_known.any():  # which is an error later
        return rows
    template = (
        "Some of these rows have values of {S} that fit did not see: are they coded as in fit? "
        "The figures are about the other rows."
    )
    warn(Message.of(template), PrivacyLeakWarning)
    return rows.at(np.flatnonzero(are_known))


def _rows_of_table(
    fitted: Fitted, settings: Settings, table: CountedTable, target: Any
) -> HeldOut:
    owner, header = settings.owner, as_table(pd.DataFrame(columns=table.names), settings.owner)
    if fitted.training is None or fitted.training.s_from == "X":
        check_sensitive(settings, table.where)
    s = tuple(sensitive_again(fitted, settings, header, None, None))
    s_positions = header.positions(owner, "sensitive", s)
    read = _read_positions(fitted, header, owner)
    if both := [header.label(p) for p in s_positions if p in read]:
        template = "The column {name!r} is released: it cannot be in {sensitive}."
        raise ValueError(Message.of(template, name=both[0]))
    v_positions = () if target is None else header.positions(*table.target[::-1], target)
    v, x = (tuple(map(header.label, part)) for part in (v_positions, read))
    symbols, counted = Symbols.of(fitted, x), CountedColumns(s, (NUMBER,), v or None)
    try:
        rows = rows_by_number(table, counted, symbols, {}).labelled(counted)
    except TooManyRowsError as error:
        template = "Too many values to count in {S}: cut numbers into bins, or pool groups."
        raise ValueError(Message.of(template)) from error
    return HeldOut(table.check_rows(rows), symbols, table.sizes)


def _read_positions(fitted: Fitted, table: Table, owner: str) -> list[int]:
    """Return the positions of X, of columns beside it, and of person ids."""
    person = fitted.roles.person_in(table, owner)
    return [*fitted.roles.read_in(table, owner), *([] if person is None else [person])]


def evaluated(
    fitted: Fitted, settings: Settings, X: Any, y: Any = None, *passed: Any
) -> Evaluation:
    """Return the `Evaluation` of a channel under the joint distribution of other rows."""
    if (training := fitted.training) is None:
        raise ValueError(
            f"This {settings.owner} was loaded without the values of S, and cannot recognise them "
            f"in other rows. Use mechanism_.evaluate(p_sx) with a table of counts."
        )
    held_out = _rows(fitted, settings, X, y, *passed, to_evaluate=True)
    s_columns = held_out.rows.s_columns

    channel = _channel_of(fitted, held_out)

    def under(codes: IntArray, labels: Labels) -> Leakage:
        counts = held_out.counts(codes, (len(labels) + 1, _n_symbols(fitted)))
        named = (*labels, _unseen(labels))
        return Leakage(channel, counts / counts.sum(), named, fitted.mechanism.measure)

    secrets = {}
    for name, groups in training.secrets.groups.items():
        codes = known_codes(training, name, s_columns, held_out.rows.weights)
        if len(groups.labels) > 1 and (codes == codes[0]).all():
            template = (
                "These rows have a single group of {secret}: what a release reveals about it "
                "cannot be measured with them, and every leakage is 0."
            )
            warn(Message.of(template, secret=_secret(name)), PrivacyLeakWarning)
        secrets[name] = under(codes, groups.labels)
    if len(secrets) == 1:
        return Evaluation(channel, secrets)
    codes, _ = training.alphabet.encode(list(s_columns.values()), list(s_columns))
    codes = np.where(codes == UNKNOWN, len(training.counts), codes)
    return Evaluation(channel, secrets, under(codes, tuple(training.alphabet.labels)))


def utility_kept(fitted: Fitted, settings: Settings, X: Any, y: Any = None) -> float:
    """Return the share of the utility of X that is kept in other rows, which need no S."""
    held_out = _rows(fitted, settings, X, y, to_evaluate=True, with_s=False)
    return _channel_of(fitted, held_out).normalized_utility


def _channel_of(fitted: Fitted, held_out: HeldOut) -> Channel:
    """Return the channel with the distribution of X in these rows."""
    mechanism, objective = fitted.mechanism, _objective(fitted, held_out)
    p_x = np.bincount(held_out.x_codes, held_out.rows.weights, _n_symbols(fitted))
    unseen, strata = [_unseen(mechanism.x_labels)], mechanism.strata
    if isinstance(fitted.alphabet, PairedAlphabet):
        unseen = [("unseen", label) for label in fitted.alphabet.beside.labels]
    if strata is not None:
        strata = np.append(strata, np.unique(strata))
    about = (*mechanism.x_labels, *unseen), mechanism.y_labels, objective, strata
    return Channel(_channel(fitted), p_x / p_x.sum(), *about)


def _secret(name: Any) -> Any:
    """Return what messages call a secret."""
    return SENSITIVE if name is None else name_of_secret(name)


def known_codes(
    training: Training, name: Any, s_columns: NamedColumns, weights: FloatArray | None = None
) -> IntArray:
    """Return the group of a secret in each row, one more for combinations that are not known.

    Values must all be known.
    """
    groups = training.secrets.groups[name]
    found = [_s_codes(training, s_columns, p) for p in groups.positions]
    share = np.average(np.any(np.less(found, 0), axis=0), weights=weights)
    if not share:
        return groups.found(found)
    template = (
        "{share} of these rows have values of {secret} that fit did not see: code {secret} as in "
        "fit, or leave these rows out."
    )
    raise ValueError(Message.of(template, secret=_secret(name), share=f"{100 * share:.3g}%"))


def terms_for(
    fitted: Fitted,
    measure: str | Measure | None,
    confidence: float,
    n_settings: int,
    sample_weight: Any = None,
) -> Terms:
    """Return the terms of a certificate, checked; measure : None for the one of the design.

    Weights are refused. Bounds would scale with the largest weight in the population, where
    people with a larger weight than in these rows may have any share. Rows that are kept with a
    probability of weight / largest possible weight are independent draws from the weighted
    population, and all theorems hold for them.
    """
    if sample_weight is not None:
        raise TypeError(
            "certify takes no sample_weight: rows cannot show the largest weight that a person "
            "may have, and without it nothing is proven. If you know it, keep each row with a "
            "probability of its weight / that weight, and certify by the rows that are kept."
        )
    chosen = fitted.mechanism.measure if measure is None else get_measure(measure, "certify")
    return Terms(chosen, confidence, n_settings)


def certified(
    fitted: Fitted, settings: Settings, terms: Terms, X: Any, y: Any = None, *passed: Any
) -> Certificate:
    """Return the `Certificate` of a channel by other rows.

    The groups of S are those of `fit`; for a transformer that was loaded, those of the rows.
    """
    held_out = _rows(fitted, settings, X, y, *passed)
    rows = held_out.rows
    secrets = _columns_of_secrets(fitted, settings.owner, tuple(rows.s_columns))
    sized = {name: _sized_groups(fitted, rows, name, p) for name, p in secrets.items()}
    for n_s, _ in sized.values():
        check_measure(terms.measure, n_s)
    n_x = _n_symbols(fitted)
    return certificate_of(
        {name: held_out.counts(codes, (n_s, n_x)) for name, (n_s, codes) in sized.items()},
        {name: _candidate(fitted, n_s, name) for name, (n_s, _) in sized.items()},
        terms,
    )


def _columns_of_secrets(
    fitted: Fitted, owner: str, names: tuple[Any, ...]
) -> dict[Any, tuple[int, ...]]:
    """Return the positions of the columns of each secret; names : of the columns of S.

    Columns with other names than in `fit` must be in the same order.
    """
    if fitted.training is not None:
        groups = fitted.training.secrets.groups
        return {name: each.positions for name, each in groups.items()}
    secrets, known = fitted.mechanism.secrets, fitted.roles.s_names
    if None in secrets:
        return {None: tuple(range(len(names)))}
    is_same = set(names) == set(known) or len(names) != len(known)
    return columns_of_secrets(owner, secrets, names if is_same else known)


def _sized_groups(
    fitted: Fitted, rows: LabelledRows, name: Any, positions: tuple[int, ...]
) -> tuple[int, IntArray]:
    """Return the number of groups of a secret, and the group of each row."""
    if (training := fitted.training) is None:
        columns = list(rows.s_columns.values())
        found = {p: columns[p].reset_index(drop=True) for p in positions}
        codes, _ = coded(pd.DataFrame(found), "S")
        return int(codes.max()) + 1, codes
    codes = known_codes(training, name, rows.s_columns, rows.weights)
    return max(len(training.secrets.groups[name].labels), int(codes.max()) + 1), codes


def _candidate(fitted: Fitted, n_groups: int, name: Any) -> Candidate:
    """Return the channel to certify, for `n_groups` of a secret.

    P(S) is expected to be as in the rows of `fit`, or uniform if these are not known.
    """
    prior = np.full(n_groups, 1 / n_groups)
    if fitted.training is not None:
        seen = fitted.training.secrets.groups[name].table(fitted.training.counts).sum(axis=1)
        prior = np.append(seen / seen.sum(), np.zeros(n_groups - len(seen)))
    mechanism = fitted.mechanism
    centre = Centre(prior, mechanism.p_y)
    return Candidate(_channel(fitted), mechanism.y_labels, mechanism.scope, centre)


def _channel(fitted: Fitted) -> FloatArray:
    """Return the channel with one more symbol for unseen values: P(Y), or P(Y|z) for each z."""
    return np.vstack([fitted.mechanism.channel, fitted.mechanism.unseen])


def _n_symbols(fitted: Fitted) -> int:
    """Return the number of symbols, including those for unseen values."""
    return len(fitted.mechanism.channel) + len(fitted.mechanism.unseen)


def _unseen(labels: Labels) -> Any:
    """Return a label for unseen values that no other value has."""
    name = "unseen"
    while name in labels:
        name = f"{name} by fit"
    return name


def _s_codes(training: Training, s_columns: NamedColumns, position: int) -> IntArray:
    """Return the symbol of a column of S in each row, -1 for values that `fit` did not see."""
    name, column = list(s_columns.items())[position]
    return training.alphabet.columns[position].encode(column, name)


def _objective(fitted: Fitted, held_out: HeldOut) -> Utility:
    """Return the utility for these rows, with their own target and columns."""
    mechanism, objective = fitted.mechanism, fitted.mechanism.objective
    if isinstance(objective, EachColumn):
        shapes = [(len(c.values) + 1, _n_symbols(fitted)) for c in fitted.alphabet.columns]
        return EachColumn.of_tables([held_out.table_of(p, s) for p, s in enumerate(shapes)])
    if isinstance(objective, Distortion):  # unseen values have the largest distance to all labels
        shape = len(mechanism.unseen), objective.loss.shape[1]
        loss = np.vstack([objective.loss, np.full(shape, objective.loss.max())])
        return Distortion.of_symbols(loss, of_cells=objective.of_cells)
    if held_out.rows.target is None or not isinstance(objective, Target):
        return objective
    v_codes, _ = coded(pd.DataFrame(held_out.rows.target), "y")
    # The information of X itself about the target is known from the rows of `fit`.
    counts = held_out.counts(v_codes, (v_codes.max() + 1, _n_symbols(fitted)))
    return Target(counts[counts.any(axis=1)], whole=objective.whole)
