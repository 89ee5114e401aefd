"""What the report says about values that are never released, and about those that change most.

Values that few rows have are counted and not named, as in `small_numbers`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from .._typing import BoolArray, FloatArray
from ..describing import shown
from ..encoding.bins import FEWEST_ROWS
from ..fidelity.columns import ComparedColumn, compared_columns
from ..fitted import Fitted
from ..mechanism import named_channel, one_of
from .sections import Points, Table

# So many values of a column, or combinations, are named, and so many are in the table.
_MOST_NAMED, _MOST_CHANGED = 12, 8

# Values of which fewer rows change are not worth a line.
_HARDLY = 0.0005


@dataclass(frozen=True, eq=False)
class Values:
    """The values of a column, or combinations of several columns.

    what : these are; labels : of the values; rows : how many have each; may_name : whether each
    may be named; is_released : whether any output shows it; why_not : if none may be named.
    """

    what: str
    labels: Sequence[Any]
    rows: FloatArray
    may_name: BoolArray
    is_released: BoolArray
    why_not: str = "too rare to be named"

    def never_released(self) -> Iterator[str]:
        """Name those that are in the rows and never come out, if there are any."""
        lost = np.flatnonzero(~self.is_released & (self.rows > 0))
        if not len(lost):
            return
        lost = lost[np.argsort(-self.rows[lost], kind="stable")]
        named = lost[self.may_name[lost]][:_MOST_NAMED]
        texts = [f"{shown(self.labels[i])} ({_rows(self.rows[i])})" for i in named]
        if len(lost) > len(named):
            texts.append(f"and {len(lost) - len(named):,} more" if texts else self.why_not)
        start = f"{self.what}, {len(lost):,} of {np.count_nonzero(self.rows):,}"
        share = self.rows[lost].sum() / self.rows.sum()
        yield f"{start} ({share:.1%} of the rows): {', '.join(texts)}."


@dataclass(frozen=True, eq=False)
class ReleasedColumn:
    """The values of a column, and what became of each.

    before : (n_x, K), how many rows of each symbol have each value; after : how often the rows of
    each symbol are released as each value.
    """

    values: Values
    before: FloatArray
    after: FloatArray

    def changed_most(self, n: int) -> Iterator[tuple[float, str, dict[str, str]]]:
        """Yield the values that change in most rows: these rows, a name, and figures."""
        values = self.values
        kept = (self.before * self.after).sum(axis=0)
        changed = np.where(values.may_name, values.rows - kept, 0.0)
        for i in np.argsort(-changed, kind="stable")[:n]:
            if changed[i] > _HARDLY * values.rows[i]:
                name = f"{values.what}: {_text(values.labels[i])}"
                figures = {
                    "kept": f"{kept[i] / values.rows[i]:.1%}",
                    "rows": f"{values.rows[i]:,.0f}",
                    "most often released as": self._instead(i),
                }
                yield changed[i], name, figures

    def _instead(self, value: int) -> str:
        """Return what a value is most often released as; the last one is missing."""
        others = self.before[:, value] @ self.after
        others[value] = 0.0
        most = int(np.argmax(others))
        may_name = self.values.may_name[most] or most == len(others) - 1
        return _text(self.values.labels[most]) if may_name else "a rare value"


def changed_values(fitted: Fitted) -> tuple[list[Points], list[Table]]:
    """Return what is never released, and what changes most, each if there is any."""
    columns = _columns(fitted)
    return _never_released(fitted, columns), _changed_most(columns)


def _never_released(fitted: Fitted, columns: Sequence[ReleasedColumn]) -> list[Points]:
    every, alphabet = [column.values for column in columns], fitted.alphabet
    if not alphabet.of_cells and len(every) + (alphabet.groups is not None) > 1:
        every.append(_combinations(fitted))
    said = [text for values in every for text in values.never_released()]
    return [Points("Never released", said)] if said else []


def _changed_most(columns: Sequence[ReleasedColumn]) -> list[Table]:
    of_each = max(1, _MOST_CHANGED // len(columns))
    found = [each for column in columns for each in column.changed_most(of_each)]
    most = sorted(found, key=lambda each: -each[0])[:_MOST_CHANGED]
    rows = [each for each in found if each in most]
    if not rows:
        return []
    names = pd.Index([name for _, name, _ in rows], name="value")
    cells = pd.DataFrame([figures for *_, figures in rows], index=names)
    return [Table("The values that change most, column by column", cells)]


def _columns(fitted: Fitted) -> list[ReleasedColumn]:
    """Return the columns of X."""
    alphabet, training = fitted.alphabet, fitted.training
    assert training is not None  # or there would be no report
    named = named_channel(one_of(fitted.mechanism))
    compared = compared_columns(alphabet, [False] * len(alphabet.columns))
    p_symbol, rows = named.p_symbol, named.p_x[:, None] * training.n_rows
    return [
        ReleasedColumn(
            _values(fitted, position, column, rows),
            rows * column.spread.own,
            p_symbol @ column.by_symbol,
        )
        for position, column in enumerate(compared)
    ]


def _values(fitted: Fitted, position: int, column: ComparedColumn, rows: FloatArray) -> Values:
    """Return the values of a column; the last one stands for none of them."""
    known = fitted.alphabet.columns[position]
    return Values(
        str(fitted.x_names[position]),
        [*known.labels, None],
        (rows * column.spread.own).sum(axis=0),
        np.append(~known.is_rare, False),
        column.by_symbol[fitted.symbol_of_output].sum(axis=0) > 0,
    )


def _combinations(fitted: Fitted) -> Values:
    """Return what the columns of X hold together; pools are no values."""
    training, alphabet = fitted.training, fitted.alphabet
    assert training is not None
    counts = training.counts.sum(axis=0) * (training.n_rows / training.counts.sum())
    is_released = np.zeros(alphabet.n_symbols, dtype=bool)
    is_released[fitted.symbol_of_output] = True
    values = Values(
        "combinations of all columns",
        alphabet.labels,
        counts,
        (counts >= FEWEST_ROWS) & ~alphabet.is_pool,
        is_released,
    )
    if training.effective_rows == training.n_rows:
        return values
    # By its weight, one row could pass for many.
    none = np.zeros_like(values.may_name)
    return replace(values, may_name=none, why_not="not named, because rows have weights")


def _text(label: Any) -> str:
    return shown(label)[1:-1]


def _rows(number: float) -> str:
    return f"{number:,.0f} row{'' if round(number) == 1 else 's'}"
