"""Fitted: what `fit` leaves behind, for whatever releases, saves, evaluates or reports it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ._typing import CountArray, FloatArray, IntArray, Labels
from .cells import CellAlphabet
from .describing import ReleaseSummary
from .encoding import Alphabet
from .fidelity import Fidelity, NamedChannel, RawX, fidelity_of_columns
from .mechanism import Mechanism, named_channel
from .secret_columns import Secrets
from .tables.column_roles import ColumnRoles
from .tables.column_types import ColumnType


@dataclass(frozen=True, eq=False)
class Training:
    """What is known where a mechanism was fitted, and is never written to a file.

    alphabet : the symbols of S; names : of its columns; counts : of pairs (s, x), weighted and
    before smoothing; secrets : what is protected; n_rows : how many rows there were;
    effective_rows : how many equally weighted ones would say as much; raw : X before it was cut
    and pooled, None where it was not; with_target : counts of (s, v, x), weighted, where there is
    a target V.
    """

    alphabet: Alphabet
    names: tuple[Any, ...]
    counts: CountArray
    secrets: Secrets
    n_rows: int
    effective_rows: int
    raw: RawX | None = None
    with_target: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Posterior:
    """What output="posterior" shows: labels : of its columns; given_y : a row for each output."""

    labels: Labels
    given_y: FloatArray


@dataclass(frozen=True, eq=False)
class Fitted:
    """What `fit` has learned and designed.

    roles : which column is what; types : those that its `typed_positions` are released as;
    alphabet : the symbols; mechanism : its outputs are named; leaking : what columns that are
    passed through were found to leak, NaN where that cannot be judged; of_target : P(V|y) where
    rows are cells that keep a target V; training : None for one that was loaded.
    """

    roles: ColumnRoles
    types: tuple[ColumnType, ...]
    alphabet: Alphabet
    mechanism: Mechanism
    leaking: Mapping[Any, float]
    of_target: Posterior | None = None
    training: Training | None = None

    @property
    def symbol_of_output(self) -> IntArray:
        """The symbol of X that each output is released as."""
        assert self.mechanism.symbol_of_output is not None  # fit has named them
        return self.mechanism.symbol_of_output

    @property
    def posterior(self) -> Posterior:
        """What output="posterior" shows: P(V|y) of a target that cells keep, else P(x|y)."""
        if self.of_target is not None:
            return self.of_target
        posterior, alphabet = self.mechanism.posterior, self.alphabet
        if alphabet.groups is None:
            return Posterior(self.mechanism.x_labels, posterior)
        # An output belongs to one z: what it says about X is said for that z.
        x_alphabet = alphabet.x_alphabet
        of_x = np.zeros((len(posterior), x_alphabet.n_symbols))
        np.add.at(of_x.T, alphabet.x_symbols, posterior.T)
        return Posterior(tuple(x_alphabet.labels), of_x)

    @property
    def beside_names(self) -> list[Any]:
        """The names of the columns that leave unchanged under the budget, or their positions."""
        return [self.roles.name_or_position(position) for position in self.roles.beside_positions]

    @property
    def x_names(self) -> list[Any]:
        """The names of the columns of X, or their positions."""
        return [self.roles.name_or_position(position) for position in self.roles.x_positions]

    @property
    def cells(self) -> pd.DataFrame | None:
        """A row for each cell: its share of all rows, its rule; None where symbols are values."""
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
        return named_channel(self.mechanism)

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
    def summary(self) -> ReleaseSummary:
        """What is leaked, kept and allowed, and the verdict."""
        return ReleaseSummary(
            self.mechanism,
            self.fidelity,
            released=tuple(map(str, self.x_names)),
            beside=tuple(map(str, self.beside_names)),
            protected=("S",) if self.training is None else tuple(map(str, self.training.names)),
            codes=self.alphabet.column_codes(),
            of_rows=True,
            leaking={str(name): leakage for name, leakage in self.leaking.items()},
        )
