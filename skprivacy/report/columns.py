"""Report: the treatment of each column, cells, and values at face value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from .._messages import listed
from .._typing import BoolArray, FloatArray, IntArray
from ..describing import ReleaseSummary
from ..describing.face_value import compared_values, listed_swaps, rows_unchanged
from ..describing.numbers import limit, shown
from ..encoding.columns import FEWEST_ROWS
from ..fidelity import Fidelity, compared_columns
from ..fitted import Fitted
from ..measures.measure import leakage_in, output_values, posteriors
from ..metrics.attack import as_codes
from ..plotting.canvas import pyplot, short
from .attackers import Attacked
from .layout import Figure, Points, Section, Table, facts, rows_text


@dataclass(frozen=True)
class Columns:
    """The columns of a table, by their treatment.

    summary : knows those protected, released, and published beside; copied, dropped : the others;
    person : the column with person ids, if there is one; drawn : a target drawn with each row.
    """

    summary: ReleaseSummary
    copied: tuple[str, ...]
    dropped: tuple[str, ...]
    person: tuple[str, ...]
    drawn: tuple[str, ...]

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
        dropped = [name for name in self.dropped if name not in self.drawn]
        dropped += [f"{name} (read to tell people apart)" for name in self.person]
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
        if self.drawn:
            texts["drawn"] = _all(self.drawn, ", with each row, under the same budget")
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
    drawn = () if fitted.target is None or fitted.training is None else fitted.training.target
    positions = roles.kept_positions, dropped, person
    copied, dropped_names, persons = (
        tuple(str(roles.name(p)) for p in each) for each in positions
    )
    return Columns(summary, copied, dropped_names, persons, drawn)


def _all(names: Iterable[str], what: str = "") -> str:
    return f"{', '.join(names)}{what}" if names else "none"


# More cells say little: the largest ones are listed.
_MOST_LISTED = 10

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
    "how far shares can be off: 0.05 is 5 points."
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
    that a row of each symbol is released as each value; is_ordered : whether the values come in
    an order; has_ranges : whether they can be joined to ranges: numbers without bins.
    """

    name: str
    labels: Sequence[Any]
    may_name: BoolArray
    before: FloatArray
    after: FloatArray
    is_ordered: bool = False
    has_ranges: bool = False

    @property
    def shares(self) -> FloatArray:
        """The shares of the values before (first row) and after the release."""
        after = self.before.sum(axis=1) @ self.after
        return np.stack([self.before.sum(axis=0), after]) / self.before.sum()

    @property
    def moved(self) -> float:
        """The total variation between the values before and after."""
        before, after = self.shares
        return float(np.abs(before - after).sum() / 2)

    def bars(self, n: int) -> tuple[list[str], FloatArray]:
        """Return (texts of values, shares) of about n bars.

        Categories: the commonest ones, and all others added up. Values in an order are joined to
        ranges. Rare ones are not named.
        """
        is_missing = np.arange(len(self.labels)) == len(self.labels) - 1
        shares, may_name = self.shares, self.may_name | is_missing
        is_there = shares.max(axis=0) > 0
        if self.has_ranges and (is_there & ~is_missing).sum() > _MOST_BINS:
            shares, names = self._ranges(n)
        else:
            named = np.flatnonzero(may_name & (shares.max(axis=0) > _HARDLY))
            n = _MOST_BINS if self.is_ordered else n
            most = named[np.argsort(-shares[0, named], kind="stable")[:n]]
            most = np.sort(most) if self.is_ordered else most
            names = [_text(self.labels[i]).removeprefix(f"{self.name} ") for i in most]
            shares = shares[:, most]
        rest = 1 - shares.sum(axis=1)
        if rest.max() > _HARDLY:
            names, shares = [*names, "all others"], np.column_stack([shares, rest])
        return short(names, _LONGEST_BAR), shares

    def _ranges(self, n: int) -> tuple[FloatArray, list[str]]:
        """Return shares and names of n ranges of values, with about the same number of rows."""
        shares = self.shares[:, :-1]
        middles = np.cumsum(shares[0]) - shares[0] / 2
        part = np.minimum((n * middles / shares[0].sum()).astype(int), n - 1)
        found, names = [], []
        for i in np.unique(part):
            if not len(named := np.flatnonzero((part == i) & self.may_name[:-1])):
                continue
            first, last = (_text(self.labels[end]) for end in named[[0, -1]])
            names.append(first if first == last else f"{first} to {last}")
            found.append(shares[:, part == i].sum(axis=1))
        return np.stack(found, axis=1), names

    def changed_most(self, n: int) -> Iterator[tuple[float, str, dict[str, str]]]:
        """Yield the values that change in most rows: number of rows, name, figures."""
        rows, kept = self.before.sum(axis=0), (self.before * self.after).sum(axis=0)
        changed = np.where(self.may_name, rows - kept, 0.0)
        for i in np.argsort(-changed, kind="stable")[:n]:
            if changed[i] > _HARDLY * rows[i]:
                figures = {
                    "unchanged": f"{kept[i] / rows[i]:.1%}",
                    "rows": f"{rows[i]:,.0f}",
                    "when changed, mostly": self._instead(i),
                }
                yield changed[i], f"{self.name}: {_text(self.labels[i])}", figures

    def _instead(self, value: int) -> str:
        """Return the other value that a value is most often released as."""
        others = self.before[:, value] @ self.after
        others[value] = 0.0
        most = int(np.argmax(others))
        may_name = self.may_name[most] or most == len(others) - 1  # missing
        return _text(self.labels[most]) if may_name else "a rare value"


def before_and_after(fitted: Fitted, fidelity: Fidelity, attacked: Attacked | None) -> Section:
    """Return the section on how close released values are to the true ones, if there are any."""
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
    columns = values_of_columns(fitted)
    trends, tables, pictures = _pair_trends(fitted, attacked)
    lists = {
        "The most frequent swaps": listed_swaps(fidelity.swaps),
        "Never released": [*_lost_values(fitted, fidelity), *_lost_combinations(fitted)],
    }
    table = Table("Values before and after, column by column", compared_values(fidelity))
    return Section(
        "Before and after",
        [*said, *trends, _READING],
        [*tables, table, *_changed_most(columns)],
        [*_bars(columns, fidelity), *pictures],
        points=[Points(caption, lines) for caption, lines in lists.items() if lines],
    )


# Pictures of columns before and after.


# Maximum numbers of columns, and of values in each, that are drawn; columns of panels; the longest
# name of a value, and width and heights of a panel in inches.
_MOST_DRAWN, _MOST_BARS, _PANELS, _LONGEST_BAR = 12, 8, 3, 16
_PANEL_WIDTH, _PANEL_HEIGHT, _BAR_HEIGHT = 2.6, 0.5, 0.16

# Columns in a picture, which fits on what is left of a page; if there are more, each shows fewer
# values.
_IN_A_PICTURE, _FEW_BARS = 6, 4

# As many bins, or values in an order, are drawn as they are.
_MOST_BINS = 10


def _bars(columns: Sequence[ReleasedColumn], fidelity: Fidelity) -> list[Figure]:
    """Return pictures of the values of each column before and after."""
    drawn = sorted(columns, key=lambda column: -column.moved)[:_MOST_DRAWN]
    drawn = [column for column in columns if column in drawn]
    few = f", for the {_MOST_DRAWN} columns that change most" if len(drawn) < len(columns) else ""
    kept = dict(zip(map(str, fidelity.columns.index), fidelity.columns["unchanged"], strict=True))
    caption = (
        f"How often each value or bin occurs before the release and after it{few}. In brackets: "
        f"the share of rows that keep their value, or their bin."
    )
    n_bars = _MOST_BARS if len(columns) <= _IN_A_PICTURE else _FEW_BARS
    parts = [drawn[i : i + _IN_A_PICTURE] for i in range(0, len(drawn), _IN_A_PICTURE)]
    return [
        Figure(
            f"{listed(column.name for column in part)} before and after",
            caption if part is parts[-1] else f"{listed(column.name for column in part)}.",
            partial(_draw_bars, part, kept, n_bars),
        )
        for part in parts
    ]


def _draw_bars(
    columns: Sequence[ReleasedColumn], kept: Mapping[str, float], n_bars: int, is_dark: bool
) -> Any:
    bars = [column.bars(n_bars) for column in columns]
    n_panels = min(_PANELS, len(bars))
    n_rows = -(-len(bars) // n_panels)
    longest = [
        max(len(texts) for texts, _ in bars[i * n_panels :][:n_panels]) for i in range(n_rows)
    ]
    heights = [_PANEL_HEIGHT + _BAR_HEIGHT * n for n in longest]
    figure, axes = pyplot().subplots(
        n_rows,
        n_panels,
        figsize=(max(1.6, n_panels) * _PANEL_WIDTH, 0.3 + sum(heights)),
        layout="constrained",
        squeeze=False,
        height_ratios=heights,
    )
    for axis in axes.flat[len(bars) :]:
        axis.set_axis_off()
    for axis, column, (texts, shares) in zip(axes.flat, columns, bars, strict=False):
        place = np.arange(len(texts))
        axis.barh(place - 0.2, shares[0], 0.38, color="0.6", label="before")
        axis.barh(place + 0.2, shares[1], 0.38, color="tab:blue", label="after")
        axis.set_yticks(place, texts, fontsize="small")
        axis.tick_params(axis="x", labelsize="small")
        axis.xaxis.set_major_formatter("{x:.0%}")
        axis.invert_yaxis()
        (name,) = short([column.name], 2 * _LONGEST_BAR)
        axis.set_title(f"{name} ({kept[column.name]:.0%})", fontsize="medium", loc="right")
        axis.spines[["top", "right"]].set_visible(False)
    handles = axes.flat[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper right", ncols=2, fontsize="small", frameon=False)
    return figure


# How two columns go together, before and after.


# Fewer pairs are listed in a table, more drawn.
_MOST_PAIRS = 6

_WHAT_TRENDS_ARE = (
    "How strongly two columns go together is shown by Cramér's V, without its bias: 0 is not at "
    "all, 1 is that one column follows from the other. The agreement of two columns is 1 less the "
    "total variation distance of their joint distributions before and after, here in {n_rows:,} "
    "rows and a release of them: {mean:.0%} on average, and at least {least:.0%} ({a} and {b})."
)


def _pair_trends(
    fitted: Fitted, attacked: Attacked | None
) -> tuple[list[str], list[Table], list[Figure]]:
    """Return how two columns go together before and after: text, and a table or a picture."""
    if attacked is None:
        return [], [], []
    before, after = attacked.published(fitted)
    names = list(before.columns)[:_MOST_DRAWN]
    pairs = list(combinations(range(len(names)), 2))
    if not pairs or not len(before):
        return [], [], []
    codes = [_codes(fitted, name, before[name], after[name]) for name in names]
    found = np.array([trend(codes[a], codes[b]) for a, b in pairs])  # (pairs, 3)
    worst = int(np.argmin(found[:, 2]))
    a, b = (names[i] for i in pairs[worst])
    agreed = {"mean": found[:, 2].mean(), "least": found[worst, 2]}
    said = [_WHAT_TRENDS_ARE.format(**agreed, a=a, b=b, n_rows=len(before))]
    title = "Pairs of columns, before and after"
    if len(pairs) > _MOST_PAIRS:
        caption = f"{title}: how strongly they go together, from 0 to 1."
        draw = partial(_draw_trends, names, pairs, found[:, :2])
        return said, [], [Figure(title, caption, draw)]
    cells = pd.DataFrame(
        [[f"{x:.2f}", f"{y:.2f}", f"{same:.0%}"] for x, y, same in found],
        pd.Index([f"{names[a]} and {names[b]}" for a, b in pairs], name="pair"),
        ["before", "after", "agreement"],
    )
    return said, [Table(title, cells)], []


def _codes(fitted: Fitted, name: str, before: pd.Series, after: pd.Series) -> list[IntArray]:
    """Return the values of a column before and after as codes, numbers by their bins."""
    known = dict(zip(map(str, fitted.x_names), fitted.alphabet.x_alphabet.columns, strict=True))
    if (column := known.get(name)) is not None:
        # Missing and unknown values are -1.
        return [column.positions(part, name).astype(np.intp) + 1 for part in (before, after)]
    return np.split(as_codes([before, after]).astype(np.intp) + 1, [len(before)])


def trend(left: Sequence[IntArray], right: Sequence[IntArray]) -> tuple[float, float, float]:
    """Return how two columns go together before and after, and how much their joints agree."""
    shape = [max(map(np.max, codes)) + 1 for codes in (left, right)]
    tables = []
    for a, b in zip(left, right, strict=True):
        counts = np.bincount(a * shape[1] + b, minlength=shape[0] * shape[1])
        tables.append(counts.reshape(shape) / len(a))
    before, after = (_cramers_v(t, len(a)) for t, a in zip(tables, left, strict=True))
    return before, after, float(1 - np.abs(tables[0] - tables[1]).sum() / 2)


def _cramers_v(joint: FloatArray, n: int) -> float:
    """Return Cramer's V of n rows, less the bias of independent columns (Bergsma, 2013)."""
    joint = joint[joint.any(axis=1)][:, joint.any(axis=0)]
    expected = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    free = np.array(joint.shape) - 1
    strength = (joint**2 / expected).sum() - 1 - free.prod() / max(n - 1, 1)
    most = (free - free**2 / max(n - 1, 1)).min()
    return float(np.clip(np.sqrt(max(strength, 0.0) / most), 0, 1)) if most > 0 else 0.0


def _draw_trends(
    names: Sequence[str], pairs: Sequence[tuple[int, int]], found: FloatArray, is_dark: bool
) -> Any:
    n = len(names)
    figure, axes = pyplot().subplots(
        1, 2, figsize=(7.8, 1.3 + 0.19 * n), layout="constrained", sharey=True
    )
    texts = short(names, 2 * _LONGEST_BAR)
    for axis, title, values in zip(axes, ("before", "after"), found.T, strict=True):
        square = np.full((n, n), np.nan)
        for (a, b), value in zip(pairs, values, strict=True):
            square[b, a] = value
        image = axis.imshow(
            square, cmap="Blues_r" if is_dark else "Blues", vmin=0, vmax=1, aspect="auto"
        )
        axis.set_title(title, fontsize="medium")
        axis.set_xticks(range(n - 1), texts[:-1], rotation=40, ha="right", fontsize="small")
        axis.set_yticks(range(1, n), texts[1:], fontsize="small")
        axis.set(xlim=(-0.5, n - 1.5), ylim=(n - 0.5, 0.5))
        axis.spines[:].set_visible(False)
    figure.colorbar(image, ax=axes, shrink=0.8)
    return figure


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


def values_of_columns(fitted: Fitted) -> list[ReleasedColumn]:
    """Return the values of all released columns, before and after."""
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
            known.is_measured or type_.is_ordered,
            known.is_measured and known.edges is None,
        )
        for name, known, column, type_ in zip(
            fitted.x_names, alphabet.columns, compared, fitted.types, strict=False
        )
    ]


def _text(label: Any) -> str:
    return shown(label)[1:-1]
