"""Report: the treatment of each column, cells, and values at face value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._messages import listed
from .._typing import BoolArray, FloatArray
from ..describing import ReleaseSummary
from ..describing.face_value import compared_values, listed_swaps, rows_unchanged
from ..describing.numbers import limit, shown
from ..encoding.columns import FEWEST_ROWS
from ..fidelity import Fidelity, compared_columns
from ..fitted import Fitted
from ..measures.measure import leakage_in, output_values, posteriors
from .layout import Points, Section, Table, facts, rows_text


@dataclass(frozen=True)
class Columns:
    """The columns of a table, by their treatment.

    summary : knows those protected, released, and published beside; copied, dropped : the others;
    person : the column with person ids, if there is one.
    """

    summary: ReleaseSummary
    copied: tuple[str, ...]
    dropped: tuple[str, ...]
    person: tuple[str, ...]

    @property
    def protected(self) -> str:
        """The names of the protected columns."""
        return listed(self.summary.protected)

    @property
    def unchanged(self) -> tuple[str, ...]:
        """The columns published as they are, under the budget or outside of it."""
        return *self.summary.beside, *self.copied

    def table(self, n_groups: int) -> Table:
        """Return the treatment of each column; n_groups : of the protected ones."""
        dropped = [*self.dropped, *(f"{n} (read to tell people apart)" for n in self.person)]
        n_x, n_y = self.summary.mechanism.channel.shape
        groups = "1 group" if n_groups == 1 else f"{n_groups:,} groups"
        released = ", ".join(self.summary.released)
        texts = {
            "protected": f"{self.protected}: {groups}, left out",
            self.summary.treatment: f"{released}: {n_x} symbols, {n_y} released values",
            "beside": _all(self.summary.beside, ", as published, under the same budget"),
            "copied": _all(self.copied, ", not covered by the guarantee"),
            "dropped": _all(dropped),
        }
        return facts("Columns, by treatment", texts)

    def leaking(self) -> list[str]:
        """Return warnings of copied columns that leak more than the budget."""
        leaking, more = self.summary.leaking, self.summary.exceeding
        said = []
        if more:
            figures = ", ".join(f"{name} ({leaking[name]:.4g})" for name in more)
            said.append(
                f"Alone, these copied columns leak more about {self.protected} than the budget "
                f"allows: {figures}."
            )
        if unclear := [name for name in leaking if name not in more]:
            said.append(
                f"How much these copied columns leak about {self.protected} cannot be judged, "
                f"because nearly every row has a different value: {', '.join(unclear)}."
            )
        return said

    def to_do(self) -> list[str]:
        """Return what to do about copied columns that leak more than the budget."""
        if not (names := ", ".join(self.summary.exceeding)):
            return []
        return [f"Do not sign: send it back and ask for a release without {names}."]

    def covered(self) -> list[str]:
        """Return whether the guarantee covers columns published beside, and copied ones."""
        said = []
        if beside := listed(self.summary.beside):
            said.append(
                f"It covers what is published beside the release ({beside}): whoever sees both "
                f"learns no more about {self.protected} than the budget allows."
            )
        if self.copied:
            said.append(
                f"It does not cover what is copied ({listed(self.copied)}): together with it, "
                f"the release may reveal more. Columns with few values can be published beside "
                f"the release instead, under the budget."
            )
        return said


def columns_of(fitted: Fitted, summary: ReleaseSummary) -> Columns:
    """Return the columns of a fitted table, by their treatment."""
    roles = fitted.roles
    person = () if roles.person_position is None else (roles.person_position,)
    used = {*roles.order, *roles.s_positions, *person}
    dropped = [position for position in range(roles.n_columns) if position not in used]
    positions = roles.kept_positions, dropped, person
    return Columns(summary, *(tuple(str(roles.name(p)) for p in each) for each in positions))


def _all(names: Iterable[str], what: str = "") -> str:
    return f"{', '.join(names)}{what}" if names else "none"


# As many cells as fit on a page.
_MOST_LISTED = 30

_WHAT_CELLS_ARE = (
    "Similar rows share a cell. The channel is designed for cells: it replaces the cell of a row "
    "by a released cell, and released values depend on the released cell alone. So every figure "
    "about the channel holds for whole rows, and a row with new values has a cell too."
)


def cells_section(fitted: Fitted) -> list[Section]:
    """Return the section with the rules of the largest cells, if symbols are cells."""
    if (described := fitted.cells) is None:
        return []
    largest = described.sort_values("share", ascending=False, kind="stable").head(_MOST_LISTED)
    title = f"All {len(described)} cells"
    if len(largest) < len(described):
        title = (
            f"The {len(largest)} largest of {len(described)} cells, "
            f"{largest['share'].sum():.0%} of the rows"
        )
    shown = largest[["share", "rule"]].assign(share=[f"{x:.1%}" for x in largest["share"]])
    return [Section("The cells", [_WHAT_CELLS_ARE], [Table(title, shown)])]


def target_beside(fitted: Fitted, protected: str) -> list[str]:
    """Return a sentence on the leakage of release and target together; protected : S."""
    training, mechanism = fitted.training, fitted.mechanism
    if training is None or training.with_target is None or fitted.target is not None:
        return []
    counts = training.with_target / training.with_target.sum()
    p_s, measure, scope = counts.sum(axis=(1, 2)), mechanism.measure, mechanism.scope
    # P(s, (v, y)), and P(s, v).
    tables = (counts @ mechanism.channel).reshape(len(p_s), -1), counts.sum(axis=2)
    leaks = []
    for table in tables:
        weights = table.sum(axis=0)
        values = output_values(measure, posteriors(table, weights, p_s), p_s)
        leaks.append(limit(leakage_in(scope, measure, values, weights)))
    return [
        f"The target is not part of the release. Together with it, a released value reveals up to "
        f"{leaks[0]} about {protected} in these rows; the target alone, {leaks[1]}. To publish "
        f"the target too, under the budget, have it drawn with each row: release_target=True, or "
        f"--release-target."
    ]


# Values at face value. Rare ones are counted and not named, as in `small_numbers`.


_READING = (
    "In the table, the mean shift is how far a number moves on average, in its own unit; the "
    "correlation is between values before and after, 1 if nothing is lost; the total variation is "
    "the distance between the distributions before and after, from 0 to 1."
)

# Maximum number of values, or combinations, that are named, and of rows in the table.
_MOST_NAMED, _MOST_CHANGED = 12, 8

# Values with a smaller share of changed rows are not worth a line.
_HARDLY = 0.0005


@dataclass(frozen=True, eq=False)
class ReleasedColumn:
    """The values of a column before and after the release.

    labels : of the values, the last of which is missing; may_name : whether each may be named;
    before : (n_x, K), number of rows of each symbol with each value; after : (n_x, K), probability
    that a row of each symbol is released as each value.
    """

    name: str
    labels: Sequence[Any]
    may_name: BoolArray
    before: FloatArray
    after: FloatArray

    def changed_most(self, n: int) -> Iterator[tuple[float, str, dict[str, str]]]:
        """Yield the values that change in most rows: number of rows, name, figures."""
        rows, kept = self.before.sum(axis=0), (self.before * self.after).sum(axis=0)
        changed = np.where(self.may_name, rows - kept, 0.0)
        for i in np.argsort(-changed, kind="stable")[:n]:
            if changed[i] > _HARDLY * rows[i]:
                figures = {
                    "unchanged": f"{kept[i] / rows[i]:.1%}",
                    "rows": f"{rows[i]:,.0f}",
                    "most often released as": self._instead(i),
                }
                yield changed[i], f"{self.name}: {_text(self.labels[i])}", figures

    def _instead(self, value: int) -> str:
        """Return the other value that a value is most often released as."""
        others = self.before[:, value] @ self.after
        others[value] = 0.0
        most = int(np.argmax(others))
        may_name = self.may_name[most] or most == len(others) - 1  # missing
        return _text(self.labels[most]) if may_name else "a rare value"


def face_value(fitted: Fitted, fidelity: Fidelity) -> Section:
    """Return the section on how close released values are to the true ones."""
    everywhere = " in all columns" if len(fidelity.columns) > 1 else ""
    said = [
        f"{rows_unchanged(fidelity)}{everywhere}. These figures are exact: they follow from the "
        f"channel."
    ]
    if not np.isnan(fidelity.raw_utility):
        said.append(
            f"Measured against the raw values, before binning and pooling, the utility is "
            f"{fidelity.raw_utility:.1%}."
        )
    lists = {
        "Never released": [*_lost_values(fitted, fidelity), *_lost_combinations(fitted)],
        "The most frequent swaps": listed_swaps(fidelity.swaps),
    }
    table = Table("Values before and after, column by column", compared_values(fidelity))
    return Section(
        "At face value",
        [*said, _READING],
        [table, *_changed_most(_columns(fitted))],
        points=[Points(caption, lines) for caption, lines in lists.items() if lines],
    )


def _lost_values(fitted: Fitted, fidelity: Fidelity) -> Iterator[str]:
    """Yield a line for each column with values that are never released."""
    lost, training = fidelity.never_released, fitted.training
    assert training is not None  # or there would be no report
    for name, column in zip(fitted.x_names, fitted.alphabet.columns, strict=True):
        mine = lost[lost["column"] == name] if len(lost) else lost
        if len(mine):
            n_all = int(np.count_nonzero(column.weights))
            yield _line(str(name), mine, n_all, training.n_rows, "too rare to be named")


def _lost_combinations(fitted: Fitted) -> Iterator[str]:
    """Yield a line for combinations of values that are never released; pools are not named."""
    training, alphabet = fitted.training, fitted.alphabet
    assert training is not None
    if alphabet.of_cells or len(alphabet.columns) + (alphabet.strata is not None) < 2:
        return
    shares = training.counts.sum(axis=0) / training.counts.sum()
    has_weights = training.effective_rows != training.n_rows
    is_lost = shares > 0
    is_lost[fitted.symbol_of_output] = False
    lost = np.flatnonzero(is_lost)
    lost = lost[np.argsort(-shares[lost], kind="stable")]
    if len(lost):
        is_few = shares[lost] * training.n_rows < FEWEST_ROWS
        found = pd.DataFrame({
            "value": pd.Series([alphabet.labels[i] for i in lost], dtype=object),
            "rows": shares[lost],
            # By its weight, one row could pass for many.
            "is_rare": is_few | alphabet.is_pool[lost] | has_weights,
        })  # fmt: skip
        why_not = "not named, because rows have weights" if has_weights else "too rare to be named"
        n_all = int(np.count_nonzero(shares))
        yield _line("combinations of all columns", found, n_all, training.n_rows, why_not)


def _line(what: str, lost: pd.DataFrame, n_all: int, n_rows: int, why_not: str) -> str:
    """Return a line on values that are never released.

    lost : as in `Fidelity.never_released`; n_all : number of all values; why_not : shown if none
    may be named.
    """
    named = lost[~lost["is_rare"]][:_MOST_NAMED]
    texts = [
        f"{shown(value)} ({rows_text(share * n_rows)})"
        for value, share in zip(named["value"], named["rows"], strict=True)
    ]
    if len(lost) > len(named):
        texts.append(f"and {len(lost) - len(named):,} more" if texts else why_not)
    start = f"{what}, {len(lost):,} of {n_all:,} ({lost['rows'].sum():.1%} of the rows)"
    return f"{start}: {', '.join(texts)}."


def _changed_most(columns: Sequence[ReleasedColumn]) -> list[Table]:
    of_each = max(1, _MOST_CHANGED // len(columns))
    found = [each for column in columns for each in column.changed_most(of_each)]
    most = sorted(found, key=lambda each: -each[0])[:_MOST_CHANGED]
    rows = [each for each in found if each in most]
    if not rows:
        return []
    names = pd.Index([name for _, name, _ in rows], name="value")
    cells = pd.DataFrame([figures for *_, figures in rows], index=names)
    return [Table("The values that change in most rows, column by column", cells)]


def _columns(fitted: Fitted) -> list[ReleasedColumn]:
    alphabet, training = fitted.alphabet, fitted.training
    assert training is not None
    named = fitted.named_channel
    compared = compared_columns(alphabet, [False] * len(alphabet.columns))
    rows = named.p_x[:, None] * training.n_rows
    return [
        ReleasedColumn(
            str(name),
            [*known.labels, None],
            np.append(~known.is_rare, False),
            rows * column.spread.held,
            named.p_symbol @ column.by_symbol,
        )
        for name, known, column in zip(fitted.x_names, alphabet.columns, compared, strict=True)
    ]


def _text(label: Any) -> str:
    return shown(label)[1:-1]
