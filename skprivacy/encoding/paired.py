"""Symbols of X paired with the values of columns that are published unchanged beside it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._messages import Message
from .._typing import BoolArray, FloatArray, IntArray
from ..codes import UNKNOWN, look_up, narrow
from .alphabets import (
    Alphabet,
    Attempts,
    Columns,
    Decoded,
    Encoded,
    MadeUpColumn,
    Names,
    ShownColumn,
    Uniform,
    ValueAlphabet,
    combine,
    unknown_values,
)
from .columns import ColumnAlphabet
from .rows import RowModel


@dataclass(frozen=True, eq=False)
class PairedAlphabet(Alphabet):
    """Pairs of a value z of columns that are published unchanged, and a symbol of X.

    A pair is shown as its symbol of X, with z unchanged. Members of a symbol are assumed to have
    the same shares for every z.

    inner : the symbols of X; beside : those of the published columns, neither binned nor pooled;
    pairs : (n, 2), the z and the symbol of X of each pair that occurs, in lexicographic order;
    weights : the total weight of each pair.
    """

    inner: Alphabet
    beside: ValueAlphabet
    pairs: IntArray
    weights: FloatArray

    @property
    def columns(self) -> tuple[ColumnAlphabet, ...]:  # type: ignore[override]
        return self.inner.columns

    @property
    def read_columns(self) -> tuple[ColumnAlphabet, ...]:
        return *self.inner.columns, *self.beside.columns

    @property
    def x_alphabet(self) -> Alphabet:
        return self.inner

    @property
    def of_cells(self) -> bool:  # type: ignore[override]
        return self.inner.of_cells

    @property
    def strata(self) -> IntArray:  # type: ignore[override]
        return self.pairs[:, 0]

    @property
    def x_symbols(self) -> IntArray:
        return self.pairs[:, 1]

    @property
    def n_symbols(self) -> int:
        return len(self.pairs)

    @cached_property
    def labels(self) -> list[Any]:
        x_labels, z_labels = self.inner.labels, self.beside.labels
        return [(*_parts(x_labels[x]), *_parts(z_labels[z])) for z, x in self.pairs]

    @property
    def is_pool(self) -> BoolArray:
        return self.inner.is_pool[self.x_symbols]

    @cached_property
    def shown(self) -> list[ShownColumn]:
        found = []
        for column in self.inner.shown:
            pools = {i: column.pools[x] for i, x in enumerate(self.x_symbols) if x in column.pools}
            found.append(ShownColumn(column.values, column.single[self.x_symbols], pools))
        return found

    def encode(self, series: Columns, labels: Names, folds: IntArray | None = None) -> Encoded:
        """Return the pair of each row; series, labels : of X, then of the columns beside it.

        A row of X that was not seen with its z, numbered from 0, is ``-1 - z``. A z that was not
        seen is an error, because its leakage is not known.
        """
        n = len(self.inner.columns)
        x, unknown = self.inner.encode(series[:n], labels[:n], folds)
        z = self._z_of(series[n:], labels[n:])
        n_x = self.inner.n_symbols
        places = z.astype(np.intp) * (n_x + 1) + np.where(x == UNKNOWN, n_x, x)
        symbols = look_up(self._table, places)
        if n_new := int(np.count_nonzero((symbols < 0) & (x != UNKNOWN))):
            unknown = {**unknown, None: unknown.get(None, 0) + n_new}
        return symbols, unknown

    def _z_of(self, series: Columns, labels: Names) -> IntArray:
        codes, unknown = self.beside.encode(series, labels)
        if unknown:
            label, n = next(iter(unknown.items()))
            name = f"combination of {', '.join(map(repr, labels))}"
            name = name if label is None else f"column {label!r}"
            shown = unknown_values(self.beside, series, labels, codes, label)
            rows = f"{n:,} row{'s' if n > 1 else ''}: {shown}"
            found = "The {name}, in {beside}, has values that fit did not see, in {rows}. "
            reason = "They would be released unchanged, and no guarantee covers them: "
            advice = "leave out these rows, replace the values, or fit to rows that have them."
            raise ValueError(Message.of(found + reason + advice, name=name, rows=rows))
        return codes

    @cached_property
    def _table(self) -> IntArray:
        """The pair of each z and symbol of X; the last entry of a z is for unknown symbols."""
        n_z, n_x = self.beside.n_symbols, self.inner.n_symbols
        table = np.repeat(-1 - np.arange(n_z)[:, None], n_x + 1, axis=1)
        table[self.strata, self.x_symbols] = np.arange(self.n_symbols)
        return table.reshape(-1).astype(narrow(np.array(max(n_z, self.n_symbols))).dtype)

    def decode(self, symbol_of_output: IntArray, outputs: IntArray, uniform: Uniform) -> Decoded:
        return self.inner.decode(self.x_symbols[symbol_of_output], outputs, uniform)

    @property
    def row_model(self) -> RowModel | None:
        return self.inner.row_model

    @property
    def made_up(self) -> list[MadeUpColumn]:
        return self.inner.made_up

    def decode_together(self, symbols: IntArray, draws: Attempts, n_attempts: int) -> Decoded:
        return self.inner.decode_together(look_up(self.x_symbols, symbols), draws, n_attempts)

    def decode_beside(self, symbol_of_output: IntArray, outputs: IntArray) -> Decoded:
        values_of_z = np.empty((self.beside.n_symbols, len(self.beside.columns)), dtype=np.intp)
        values_of_z[self.beside.symbols[self.beside.member_of]] = self.beside.members
        of_output = values_of_z[self.strata[symbol_of_output]]
        return [
            (list(column.values), look_up(narrow(places), outputs))
            for column, places in zip(self.beside.columns, of_output.T, strict=True)
        ]

    def occurrences(self, position: int) -> tuple[IntArray, IntArray, FloatArray]:
        values, symbols, weights = self.inner.occurrences(position)
        totals = np.bincount(self.x_symbols, self.weights, self.inner.n_symbols)
        shares = self.weights / totals[self.x_symbols]
        entries = [np.flatnonzero(symbols == x) for x in range(self.inner.n_symbols)]
        of_pair = [entries[x] for x in self.x_symbols]
        pairs = np.repeat(np.arange(self.n_symbols), [*map(len, of_pair)])
        found = np.concatenate(of_pair)
        return values[found], pairs, weights[found] * shares[pairs]

    def shown_shares(self, position: int) -> FloatArray:
        return self.inner.shown_shares(position)[self.x_symbols]

    def matches(self) -> FloatArray:
        return self.inner.matches()[np.ix_(self.x_symbols, self.x_symbols)]

    def column_codes(self) -> list[IntArray | None]:
        of_x, of_z = self.inner.column_codes(), self.beside.column_codes()
        pairs = [*((c, self.x_symbols) for c in of_x), *((c, self.strata) for c in of_z)]
        return [None if codes is None else codes[symbols] for codes, symbols in pairs]

    def rules(self) -> list[Any]:
        return [*self.inner.rules(), self.beside.rules(), self.pairs.tolist()]

    def can_be_read(self, symbols: IntArray) -> bool:
        return self.inner.can_be_read(np.unique(self.x_symbols[symbols]))

    def stratum_names(self, names: Sequence[Hashable]) -> list[str]:
        """Return a text for each z; names : of the columns."""
        return [
            ", ".join(f"{n} = {value}" for n, value in zip(names, _parts(z), strict=True))
            for z in self.beside.labels
        ]


def paired(
    inner: Alphabet,
    x_codes: IntArray,
    beside: ValueAlphabet,
    z_codes: IntArray,
    weights: FloatArray | None,
) -> tuple[PairedAlphabet, IntArray]:
    """Return the alphabet of the pairs that occur in some rows, and the pair of each row."""
    pairs, of_row = combine([z_codes, x_codes], [beside.n_symbols, inner.n_symbols])
    totals = np.bincount(of_row, weights, len(pairs)).astype(float)
    return PairedAlphabet(inner, beside, pairs, totals), of_row


def _parts(label: Any) -> tuple[Any, ...]:
    return label if isinstance(label, tuple) else (label,)
