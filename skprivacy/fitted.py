"""Fitted: the result of `fit`, with the columns and groups of each secret."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ._messages import InPython, Message, Parameter
from ._typing import CountArray, FloatArray, IntArray, Labels
from ._validation import check_real, message
from .cells import CellAlphabet
from .codes import UNKNOWN, take
from .describing import ReleaseSummary
from .encoding import Alphabet, ValueAlphabet
from .encoding.alphabets import combine
from .fidelity import Fidelity, NamedChannel, RawX, fidelity_of_columns
from .joint import confidence_of_each
from .mechanism import Guarantee, Mechanism, named_channel, population_limits
from .tables.frames import are_made_up
from .tables.table import ColumnRoles, ColumnType


def check_budget(owner: str, epsilon: object) -> None:
    """Check a budget, or the budgets of several secrets, without data."""
    if not isinstance(epsilon, Mapping):
        if isinstance(epsilon, list | tuple | set | str):
            requirement = "a number, or a dict with a budget for each secret"
            raise TypeError(message(owner, "epsilon", requirement, epsilon))
        check_real(owner, "epsilon", epsilon, low=0)
        return
    if not epsilon:
        requirement = "a number, or a dict with a budget for at least one secret"
        raise ValueError(message(owner, "epsilon", requirement, epsilon))
    if None in epsilon:
        requirement = "a dict whose keys are sensitive columns, not None"
        raise ValueError(message(owner, "epsilon", requirement, epsilon))
    for name, budget in epsilon.items():
        check_real(owner, f"epsilon[{name!r}]", budget, low=0)


def columns_of_secrets(
    owner: str, secrets: Iterable[Any], names: Sequence[Any]
) -> dict[Any, tuple[int, ...]]:
    """Return the positions in S of the columns of each secret.

    secrets : their names; names : of the columns of S.
    """
    names = list(range(len(names))) if are_made_up(names) else list(names)
    found = {key: _positions(owner, key, names) for key in secrets}
    covered = {position for positions in found.values() for position in positions}
    for position, name in enumerate(names):
        if position not in covered:
            in_python = "in a tuple, or infinity if it need not be protected"
            text = Message.of(
                "{epsilon} has no budget for the sensitive column {name!r}: give it one, alone or "
                "{how}.",
                epsilon=Parameter("epsilon", owner),
                name=name,
                how=InPython(in_python, "joined to others by a plus"),
            )
            raise ValueError(text)
    return found


def _positions(owner: str, key: Any, names: list[Any]) -> tuple[int, ...]:
    if key in names:
        return (names.index(key),)
    parts = key if isinstance(key, tuple) else (key,)
    unknown = [part for part in parts if part not in names]
    if unknown or not parts or len(set(parts)) < len(parts):
        text = Message.of(
            "{epsilon} has a budget for {what} sensitive column: name those of {names}, each with "
            "a budget or several {how}, or add the column to {sensitive}.",
            epsilon=Parameter("epsilon", owner),
            what=f"{unknown[0]!r}, which is not a" if unknown else f"{key!r}, which names no",
            names=names,
            how=InPython("in a tuple", "joined by a plus"),
        )
        raise ValueError(text)
    return tuple(names.index(part) for part in parts)


@dataclass(frozen=True, eq=False)
class SecretGroups:
    """The groups of one secret.

    positions : of its columns in S; labels : of its groups; combinations : the symbols of these
    columns in each group; of_joint : the group of each combination of all columns of S.
    """

    positions: tuple[int, ...]
    labels: Labels
    combinations: IntArray
    of_joint: IntArray

    def table(self, counts: CountArray) -> CountArray:
        """Return counts for the groups of the secret from those for all columns of S."""
        table = np.zeros((len(self.labels), *counts.shape[1:]), dtype=counts.dtype)
        np.add.at(table, self.of_joint, counts)
        return table

    def codes(self, s_codes: IntArray) -> IntArray:
        """Return the group of each row; s_codes : its symbol of all columns of S."""
        return take(np.append(self.of_joint, UNKNOWN), s_codes)

    def found(self, codes: Sequence[IntArray]) -> IntArray:
        """Return the group of each row, `len(labels)` for unseen ones; codes : of its columns.

        A group may be known even if its combination with other columns of S is not.
        """
        known = pd.MultiIndex.from_arrays(list(self.combinations.T))
        at = known.get_indexer(pd.MultiIndex.from_arrays(codes))
        return np.where(at == UNKNOWN, len(self.labels), at)


@dataclass(frozen=True, eq=False)
class Secrets:
    """The secrets: all columns of S as one, or several with a budget each.

    budgets, groups : by the name of the secret; a single one is called None.
    """

    budgets: Mapping[Any, float]
    groups: Mapping[Any, SecretGroups]

    @property
    def n_groups(self) -> int:
        """The number of groups of a single secret that is as hard to design for."""
        return sum(len(groups.labels) - 1 for groups in self.groups.values()) + 1

    def tables(self, counts: CountArray) -> dict[Any, CountArray]:
        """Return the table of each secret; counts : of pairs (s, x) for all columns of S."""
        return {name: groups.table(counts) for name, groups in self.groups.items()}


def secrets_of(owner: str, epsilon: Any, names: Sequence[Any], alphabet: Alphabet) -> Secrets:
    """Return the secrets; alphabet, names : of the columns of S."""
    if not isinstance(epsilon, Mapping):
        assert isinstance(alphabet, ValueAlphabet)
        positions, every = tuple(range(len(names))), np.arange(alphabet.n_symbols)
        whole = SecretGroups(positions, tuple(alphabet.labels), alphabet.combinations, every)
        return Secrets({None: epsilon}, {None: whole})
    columns = columns_of_secrets(owner, epsilon, names)
    groups = {name: _groups(alphabet, positions) for name, positions in columns.items()}
    return Secrets({name: float(epsilon[name]) for name in columns}, groups)


def _groups(alphabet: Alphabet, positions: tuple[int, ...]) -> SecretGroups:
    """Return the groups of the columns at some positions."""
    assert isinstance(alphabet, ValueAlphabet)
    columns = [alphabet.columns[p] for p in positions]
    # The groups of S are never pooled: each is one combination.
    codes = [alphabet.combinations[:, p] for p in positions]
    if len(columns) == 1:
        symbols = np.arange(columns[0].n_symbols)
        labels = tuple(columns[0].symbol_labels)
        return SecretGroups(positions, labels, symbols[:, None], codes[0])
    distinct, of_joint = combine(codes, [column.n_symbols for column in columns])
    names = [column.symbol_labels for column in columns]
    joint = (tuple(n[c] for n, c in zip(names, row, strict=True)) for row in distinct)
    return SecretGroups(positions, tuple(joint), distinct, of_joint)


# The result of `fit`, to be released, saved, evaluated or reported.


@dataclass(frozen=True, eq=False)
class Training:
    """Facts about the rows of `fit`, which are never written to a file.

    alphabet : of S; names : of its columns; counts : of pairs (s, x), weighted and before
    smoothing; n_rows : of the data; effective_rows : the effective sample size; raw : figures
    about X before it was cut and pooled, None if it was not; with_target : counts of (s, v, x),
    weighted, if there is a target V; target : the names of its columns that are not released as
    columns of X; of_index : leakage of levels of the index, as `leaking` of `Fitted`; s_from :
    where S came from, see `FitInputs`.
    """

    alphabet: Alphabet
    names: tuple[Any, ...]
    counts: CountArray
    secrets: Secrets
    n_rows: int
    effective_rows: int
    raw: RawX | None = None
    with_target: FloatArray | None = None
    target: tuple[str, ...] = ()
    of_index: Mapping[str, float] = field(default_factory=dict)
    s_from: str = "X"


@dataclass(frozen=True, eq=False)
class Posterior:
    """The output with output="posterior"; labels : of columns; given_y : a row for each y."""

    labels: Labels
    given_y: FloatArray


@dataclass(frozen=True, eq=False)
class ReleasedTarget:
    """A target that is released with the rows.

    alphabet : its values; types : of its columns; given_y : P(V|y), a row for each y.
    """

    alphabet: ValueAlphabet
    types: tuple[ColumnType, ...]
    given_y: FloatArray

    @cached_property
    def common(self) -> FloatArray:
        """P(V|y) without values that fewer than five people have."""
        columns = zip(self.alphabet.columns, self._positions.T, strict=True)
        is_rare = np.any([column.is_rare[of] for column, of in columns], axis=0)
        found = np.where(is_rare, 0.0, self.given_y)
        found[found.sum(axis=1) == 0] = np.arange(found.shape[1]) == self._weights.argmax()
        return found / found.sum(axis=1, keepdims=True)

    @property
    def _weights(self) -> FloatArray:
        alphabet = self.alphabet
        return np.bincount(alphabet.symbols[alphabet.member_of], alphabet.weights).astype(float)

    @property
    def _positions(self) -> IntArray:
        """The position of the value in each column (columns), for each value of V (rows)."""
        alphabet = self.alphabet
        found = np.empty((alphabet.n_symbols, len(alphabet.columns)), dtype=int)
        found[alphabet.symbols[alphabet.member_of]] = alphabet.members
        return found

    def decode(self, symbols: IntArray) -> list[tuple[list[Any], IntArray]]:
        """Return, for each column, a list of values and an index into it for each row."""
        columns = zip(self.alphabet.columns, self._positions.T, strict=True)
        return [(list(column.in_pool), of[symbols]) for column, of in columns]


# Minimum number of joints drawn for limits, as in `population_leakage`.
_DRAWS = 999


@dataclass(frozen=True, eq=False)
class Fitted:
    """The result of `fit`.

    roles : of the columns; types : of its `typed_positions` in a release; alphabet : of X;
    mechanism : with named outputs; leaking : leakage of columns that are passed through and
    exceed the budget, NaN if it cannot be judged; of_target : P(V|y) if symbols are cells that
    keep a target V; shown_given_y : P(shown symbol | y) of made-up rows, None if each output is
    shown as the symbol of its name; target : if it is released; training : None if it was loaded.
    """

    roles: ColumnRoles
    types: tuple[ColumnType, ...]
    alphabet: Alphabet
    mechanism: Mechanism
    leaking: Mapping[Any, float]
    of_target: Posterior | None = None
    shown_given_y: FloatArray | None = None
    target: ReleasedTarget | None = None
    training: Training | None = None

    @property
    def symbol_of_output(self) -> IntArray:
        """The symbol of X that each output is released as."""
        assert self.mechanism.symbol_of_output is not None  # fit has named them
        return self.mechanism.symbol_of_output

    @property
    def posterior(self) -> Posterior:
        """P(V|y) of a target that cells keep, else P(x|y)."""
        if self.of_target is not None:
            return self.of_target
        posterior, alphabet = self.mechanism.posterior, self.alphabet
        if alphabet.strata is None:
            return Posterior(self.mechanism.x_labels, posterior)
        # An output belongs to one z, and its posterior is about X given that z.
        x_alphabet = alphabet.x_alphabet
        of_x = np.zeros((len(posterior), x_alphabet.n_symbols))
        np.add.at(of_x.T, alphabet.x_symbols, posterior.T)
        return Posterior(tuple(x_alphabet.labels), of_x)

    @property
    def x_names(self) -> list[Any]:
        """The names of the columns of X, or their positions."""
        return self.roles.names_or_positions(self.roles.x_positions)

    @property
    def cells(self) -> pd.DataFrame | None:
        """A row for each cell: its share of all rows, its rule; None if symbols are values."""
        alphabet = self.alphabet.x_alphabet
        if not isinstance(alphabet, CellAlphabet):
            return None
        sizes = None
        if self.training is not None:
            counts = self.training.counts.sum(axis=0).astype(float)
            sizes = np.zeros(alphabet.n_symbols)
            np.add.at(sizes, self.alphabet.x_symbols, counts)
        return alphabet.described(self.x_names, sizes)

    @property
    def named_channel(self) -> NamedChannel:
        """The channel, with the symbol of X that each output is released as."""
        return replace(named_channel(self.mechanism), shown_given_y=self.shown_given_y)

    @property
    def fidelity(self) -> Fidelity:
        """How close released values are to the true ones."""
        raw = None if self.training is None else self.training.raw
        return fidelity_of_columns(
            self.named_channel,
            self.alphabet,
            self.x_names,
            [type_.is_ordered for type_ in self.types[: len(self.x_names)]],
            *((raw.columns, raw.utility) if raw is not None else ()),
        )

    @property
    def swaps(self) -> dict[Any, pd.DataFrame]:
        """For each column, the share of all rows with each value that are released as each value.

        Rows and columns are the values, or the bins, of the column; numbers in a pool that are
        shown as another value than that of their bin are in the column "others".
        """
        named, found = self.named_channel, {}
        released = named.p_x[:, None] * named.p_symbol
        for position, name in enumerate(self.x_names):
            column, table = self.alphabet.columns[position], self.alphabet.tables()[position]
            shares = table / np.maximum(table.sum(axis=0), np.finfo(float).tiny)
            joint = shares @ released @ self.alphabet.shown_shares(position)
            labels = ["missing" if label is None else str(label) for label in column.labels]
            found[name] = pd.DataFrame(joint, labels, [*labels, "others"])
        return found

    @cached_property
    def _before_smoothing(self) -> dict[Any, Guarantee]:
        """The leakage about each secret in the rows themselves, if counts were smoothed.

        The budget is then at least that leakage.
        """
        if self.training is None:
            return {}
        design, tables = self.mechanism, self.training.secrets.tables(self.training.counts)
        joints = {name: table / table.sum() for name, table in tables.items()}
        designed_for = {name: secret.joint for name, secret in design.secrets.items()}
        if all(np.allclose(joints[n], designed_for[n], rtol=0, atol=1e-9) for n in joints):
            return {}
        found = {}
        for name, leakage in design.evaluate(joints).secrets.items():
            epsilon = max(design.secrets[name].epsilon, leakage.leakage_in(design.scope))
            found[name] = Guarantee.of(leakage, epsilon, design.scope)
        return found

    @property
    def summary(self) -> ReleaseSummary:
        """Figures, verdict and sentences about the release."""
        names = self.roles.s_names if self.training is None else self.training.names
        columns = zip(self.x_names, self.alphabet.x_alphabet.columns, strict=True)
        return ReleaseSummary(
            self.mechanism,
            self.fidelity,
            released=tuple(map(str, self.x_names)),
            beside=tuple(map(str, self.roles.names_or_positions(self.roles.beside_positions))),
            protected=tuple(map(str, names)) or ("S",),
            codes=self.alphabet.column_codes(),
            coarse={str(n): "bin" if c.is_cut else "pool" for n, c in columns if c.is_coarse},
            of_rows=self.training is not None and not self._before_smoothing,
            before_smoothing=self._before_smoothing,
            left_out=() if self.training is None or self.target else self.training.target,
            n_rows=None if self.training is None else self.training.effective_rows,
            leaking={str(name): leakage for name, leakage in self.leaking.items()}
            | dict({} if self.training is None else self.training.of_index),
        )

    def summary_with_limits(self, confidence: float) -> ReleaseSummary:
        """Return the summary, with limits for the population that hold all at once.

        A design with a confidence has its own limits.
        """
        training, secrets = self.training, self.mechanism.secrets
        assert training is not None
        of_each = confidence_of_each(confidence, len(secrets))
        share = training.effective_rows / training.counts.sum()
        tables = training.secrets.tables(training.counts)
        n_draws = max(_DRAWS, math.ceil(1 / (1 - of_each)))
        limits = {
            name: population_limits(secret, tables[name] * share, of_each, n_draws=n_draws)
            for name, secret in secrets.items()
            if secret.population_limit is None
        }
        return self.summary.with_limits(limits)
