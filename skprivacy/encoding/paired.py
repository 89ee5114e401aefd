"""Symbols of X together with the values of columns that are published beside its release."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from .._messages import Message, Named
from .._typing import BoolArray, FloatArray, IntArray
from ..codes import UNKNOWN, look_up, narrow
from .alphabets import Alphabet, Names, ShownColumn, Uniform, ValueAlphabet, combine
from .columns import ColumnAlphabet

# So many values are shown in a message, each cut to so many characters.
_FEW, _LONGEST = 3, 80


@dataclass(frozen=True, eq=False)
class PairedAlphabet(Alphabet):
    """Pairs of a value z of columns that are published as they are, and a symbol of X.

    What is shown for a pair is what is shown for its symbol of X: z is nobody's to change. Members
    of a symbol are taken to be the same whatever z is.

    inner : the symbols of X; beside : those of the published columns, neither cut nor pooled;
    pairs : (n, 2), the z and the symbol of X of each pair that occurs, in lexicographic order;
    weights : how often each was seen.
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
        x_labels, z_labels = ([*map(_parts, a.labels)] for a in (self.inner, self.beside))
        return [(*x_labels[x], *z_labels[z]) for z, x in self.pairs]

    @property
    def is_pool(self) -> BoolArray:
        return self.inner.is_pool[self.x_symbols]

    @cached_property
    def shown(self) -> list[ShownColumn]:
        of_pair = list(enumerate(self.x_symbols.tolist()))
        return [
            ShownColumn(
                column.values,
                column.single[self.x_symbols],
                {pair: column.pools[x] for pair, x in of_pair if x in column.pools},
            )
            for column in self.inner.shown
        ]

    def encode(
        self, series: Sequence[pd.Series], labels: Names, folds: IntArray | None = None
    ) -> tuple[IntArray, dict[Hashable, int]]:
        """Return the pair of each row; series, labels : of X, then of the columns beside it.

        A row of X that was not seen with its z, numbered from 0, is ``-1 - z``. A z that was not
        seen is an error: nothing is known about what it reveals.
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

    def _z_of(self, series: Sequence[pd.Series], labels: Sequence[Hashable]) -> IntArray:
        codes, unknown = self.beside.encode(series, labels)
        if unknown:
            label = next(iter(unknown))
            row_of = pd.DataFrame(dict(enumerate(s.reset_index(drop=True) for s in series)))
            if label is not None:
                at = list(labels).index(label)
                codes = self.beside.columns[at].encode(series[at], label)
                row_of = row_of[[at]]
            rows = row_of[codes == UNKNOWN].drop_duplicates()[:_FEW]
            raise _unseen(labels if label is None else [label], rows, unknown[label])
        return codes

    @cached_property
    def _table(self) -> IntArray:
        """The pair of each z and each symbol of X; the last entry of a z is for unknown ones."""
        n_z, n_x = self.beside.n_symbols, self.inner.n_symbols
        table = np.repeat(-1 - np.arange(n_z)[:, None], n_x + 1, axis=1)
        table[self.strata, self.x_symbols] = np.arange(self.n_symbols)
        return table.reshape(-1).astype(narrow(np.array(max(n_z, self.n_symbols))).dtype)

    def decode(
        self, symbol_of_output: IntArray, outputs: IntArray, uniform: Uniform
    ) -> list[tuple[list[Any], IntArray]]:
        return self.inner.decode(self.x_symbols[symbol_of_output], outputs, uniform)

    def decode_beside(
        self, symbol_of_output: IntArray, outputs: IntArray
    ) -> list[tuple[list[Any], IntArray]]:
        values_of_z = np.empty((self.beside.n_symbols, len(self.beside.columns)), dtype=np.intp)
        values_of_z[self.beside.symbols[self.beside.member_of]] = self.beside.members
        of_output = values_of_z[self.strata[symbol_of_output]]
        return [
            (list(column.values), look_up(narrow(places), outputs))
            for column, places in zip(self.beside.columns, of_output.T, strict=True)
        ]

    def held(self, position: int) -> tuple[IntArray, IntArray, FloatArray]:
        values, symbols, weights = self.inner.held(position)
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
        """Return what each z is called; names : of the columns."""
        parts = [_parts(label) for label in self.beside.labels]
        return [
            ", ".join(f"{n} = {value}" for n, value in zip(names, of_z, strict=True))
            for of_z in parts
        ]


def paired(
    inner: Alphabet,
    x_codes: IntArray,
    beside: ValueAlphabet,
    z_codes: IntArray,
    weights: FloatArray | None,
) -> tuple[PairedAlphabet, IntArray]:
    """Return the pairs that occur in some rows, and that of each row."""
    pairs, of_row = combine([z_codes, x_codes], [beside.n_symbols, inner.n_symbols])
    totals = np.bincount(of_row, weights, len(pairs)).astype(float)
    return PairedAlphabet(inner, beside, pairs, totals), of_row


def _parts(label: Any) -> tuple[Any, ...]:
    return label if isinstance(label, tuple) else (label,)


def _unseen(labels: Sequence[Hashable], rows: pd.DataFrame, n_rows: int) -> ValueError:
    """Return the error for values of columns beside a release that `fit` did not see."""
    name = repr(labels[0])
    if len(labels) > 1:
        name = f"combination of {', '.join(map(repr, labels))}"
    values = [repr(row if len(row) > 1 else row[0]) for row in rows.itertuples(False, None)]
    shown = ", ".join(text[:_LONGEST] for text in values)
    column, rows_ = "column " * (len(labels) == 1), "rows" if n_rows > 1 else "row"
    told = f"The {column}{name}, in ", Named("beside"), ", has values that fit did not see, in "
    why = f"{n_rows:,} {rows_}: {shown}. It leaves as it is, and no guarantee covers these: "
    advice = "leave such rows out, replace the values with ones that fit saw, or fit to rows that "
    return ValueError(Message(*told, why, advice, "have them."))
