"""Release: replace X by Y in a table. It holds the names of S, and nothing else of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeAlias

from .._messages import InPython, Message, Notice, warn
from .._typing import FloatArray, IntArray
from ..codes import look_up
from ..encoding import Alphabet
from ..encoding.alphabets import Decoded, unknown_values
from ..fitted import Fitted, ReleasedTarget
from ..tables.frames import Table
from ..tables.table import ColumnRoles, ColumnType, check_no_copy
from .output_names import posterior_names, readable
from .record_ids import folds_of_persons, persons_in
from .sampler import (
    IDENTITY_LANE,
    OUTPUT_LANE,
    SHOWN_LANE,
    TARGET_LANE,
    Noise,
    NoiseSource,
    Sampler,
    as_sampled,
    column_lane,
    row_lane,
)

# How rows are made up where a symbol stands for many: columns drawn together, for any use or for
# models of a target, or each column by itself.
MADE_UP = ("for_any_use", "for_one_model", "column_by_column")

# A row that falls into another cell is drawn this often, in rows for one model.
_MOST_ATTEMPTS = 20

# What unknown values are drawn from.
_OUTPUTS = InPython("P(Y)", "the distribution of the release")


# If at least this many rows are released, and most are unknown, that is a mistake.
_ENOUGH_ROWS = 10


def notice_unknown(
    labels: Sequence[Hashable], unknown: Mapping[Hashable, int], n_rows: int
) -> None:
    """Send a notice about rows that are drawn from P(Y), a warning if that is most of them.

    unknown : for each column, the number of rows with values that `fit` did not see; the key None
    is for combinations.
    """
    if not unknown:
        return
    share = max(unknown.values()) / n_rows
    if n_rows >= _ENOUGH_ROWS and share > 0.5:
        label = max(unknown, key=lambda each: unknown[each])
        template = (
            "{share} of the rows are drawn from {outputs}, and have nothing to do with their true "
            "values: {name} holds values that fit did not see. Are they coded as in fit? "
            "{handle_unknown='error'} refuses them."
        )
        name = _joint(labels) if label is None else repr(label)
        values = {"outputs": _OUTPUTS, "name": name, "share": f"{share:.0%}"}
        warn(Message.of(template, **values))
    named = {_joint(labels) if label is None else repr(label): n for label, n in unknown.items()}
    counted = (f"{n:,} row{'s' if n > 1 else ''} of {name}" for name, n in named.items())
    found = "Values that fit did not see are replaced by draws from {outputs}: {where}. "
    where = InPython(", ".join(named), ", ".join(counted))
    advice = "{handle_unknown='error'} refuses them."
    warn(Message.of(found + advice, outputs=_OUTPUTS, where=where), Notice)


def _joint(labels: Sequence[Hashable]) -> str:
    return "the combination of " + ", ".join(map(repr, labels))


# The release of a table: all that `transform` needs of `Fitted`, and nothing about S.
#
# It may be sent to other processes and machines: it holds the encoder and the channel, not P_SX.
# Cells by scores also need models to encode rows, among them one of P(S|x).


# For each column of X and beside it, by its position in `fit`, the (name, column) pairs that
# replace it; those of a target under a position that no column has.
Replacements: TypeAlias = dict[int, list[tuple[Any, Any]]]
OF_TARGET = -1


@dataclass(frozen=True, eq=False)
class Release:
    """What is needed to release rows.

    roles, types, alphabet : the columns, the types of the released ones, and the symbols of X and
    the columns beside it; symbol_of_output : the symbol of each output; channel : P(Y|X);
    unknown : P(Y), or P(Y|z) for each z of the columns beside X; posterior : P(x|y) or P(v|y), a
    row for each y; shown_given_y : P(shown symbol | y), None if an output is shown as its name;
    target : if it is released;
    y_names : texts for outputs; x_names : for columns of the posterior; output, made_up,
    handle_unknown : the parameters of the transformer; owner : its name, for messages.
    """

    roles: ColumnRoles
    types: tuple[ColumnType, ...]
    alphabet: Alphabet
    symbol_of_output: IntArray
    channel: FloatArray
    unknown: FloatArray
    posterior: FloatArray
    shown_given_y: FloatArray | None
    target: ReleasedTarget | None
    y_names: list[str]
    x_names: list[str]
    output: str
    made_up: str
    handle_unknown: str
    owner: str

    @cached_property
    def _sampler(self) -> Sampler:
        return Sampler(self.channel, self.unknown)

    @cached_property
    def _shown_cells(self) -> Sampler | None:
        """Draws of the cell that an output is shown as."""
        shown = self.shown_given_y
        return None if shown is None else Sampler(shown, shown[:1])

    @property
    def _draws_together(self) -> bool:
        return self.made_up != "column_by_column" and self.alphabet.row_model is not None

    @property
    def lanes(self) -> list[int]:
        """The lanes of all noise that a release may use."""
        columns = range(len(self.roles.x_positions))
        found = [OUTPUT_LANE, IDENTITY_LANE, *map(column_lane, columns)]
        found += [TARGET_LANE] * (self.target is not None)
        if self._draws_together:
            drawn, attempts = range(len(self.alphabet.made_up)), range(self._n_attempts)
            found += [SHOWN_LANE, *(row_lane(i, k) for i in drawn for k in attempts)]
        return found

    @property
    def _n_attempts(self) -> int:
        return _MOST_ATTEMPTS if self.made_up == "for_one_model" else 1

    def __getstate__(self) -> dict[str, Any]:
        # Without samplers, whose tables are rebuilt where they are used.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def rows(self, table: Table, source: NoiseSource, numbers: range | IntArray) -> Any:
        """Return the table with X replaced by Y, as a table of the same kind.

        numbers : of its rows, for fresh noise.
        """
        if levels := table.index_levels():
            s_names = [name for name in self.roles.s_names if name in (table.names or ())]
            s_positions = table.positions(self.owner, "sensitive", s_names)
            check_no_copy(levels, self.roles.s_names, table.named(s_positions), self.owner)
        noise = source.of(table, numbers)
        positions = self.roles.match(table, self.owner)
        x_positions = [positions[p] for p in self.roles.read_positions]
        unknown: Counter[Hashable] = Counter()
        persons = persons_in(self.roles, table, self.owner)
        folds = None if persons is None else folds_of_persons(persons)
        released = self.replacements(table, x_positions, noise, unknown, folds)
        notice_unknown([table.label(p) for p in x_positions], unknown, table.n_rows)
        columns: list[tuple[Any, Any]] = []
        types = dict(zip(self.roles.typed_positions, self.types, strict=True))
        for position in self.roles.order:
            if position in self.roles.kept_positions:
                name = self.roles.name(position)
                columns.append((name, table.kept(positions[position], types[position])))
            else:
                columns += released.get(position, [])
        return table.assemble(columns + released.get(OF_TARGET, []))

    def replacements(
        self,
        table: Table,
        x_positions: Sequence[int],
        noise: Noise,
        all_unknown: Counter[Hashable],
        folds: IntArray | None = None,
    ) -> Replacements:
        """Return the (name, column) pairs that replace each column of X and beside it.

        x_positions : of the columns of X, and those beside it, in the table; all_unknown : the
        numbers of rows with values that `fit` did not see are added to it, by column; folds : of
        the rows, if there are person ids.
        """
        labels = [table.label(p) for p in x_positions]
        series = [table.column(p) for p in x_positions]
        symbols, unknown = self.alphabet.encode(series, labels, folds)
        if unknown and self.handle_unknown == "error":
            label = next(iter(unknown))
            name = _joint(labels) if label is None else repr(label)
            shown = unknown_values(self.alphabet, series, labels, symbols, label)
            found = "Found unknown values in column {name} during transform: {shown}. "
            advice = "Use {handle_unknown='resample'} to draw them from {outputs}."
            raise ValueError(Message.of(found + advice, name=name, shown=shown, outputs=_OUTPUTS))
        all_unknown.update(unknown)
        outputs = self._sampler.draw(symbols, noise)
        return {**self._shown(table, outputs, noise), **self._shown_beside(table, outputs)}

    def _shown_target(self, table: Table, drawn: Decoded) -> Replacements:
        """Return the columns of a target."""
        if self.target is None:
            return {}
        columns = zip(self.roles.target_names, self.target.types, drawn, strict=True)
        return {
            OF_TARGET: [
                (name, table.decoded(type_, values, values, codes))
                for name, type_, (values, codes) in columns
            ]
        }

    def _drawn_target(self, outputs: IntArray, noise: Noise) -> Decoded:
        """Return a target drawn from P(V|y)."""
        if self.target is None:
            return []
        sampler = Sampler(as_sampled(self.target.common), self.target.common[:1])
        return self.target.decode(sampler.draw(outputs, noise, TARGET_LANE))

    def _shown(self, table: Table, outputs: IntArray, noise: Noise) -> Replacements:
        """Return outputs as columns of the kind of a table."""
        first, *_ = positions = self.roles.x_positions
        if self.output != "label":
            target = self._shown_target(table, self._drawn_target(outputs, noise))
            if self.output == "symbol":
                released = [(self.roles.joint_name, table.categorical(self.y_names, outputs))]
                return {first: released, **target}
            shares = zip(self.x_names, self.posterior.T, strict=True)
            return {first: [(n, table.floats(look_up(p, outputs))) for n, p in shares], **target}
        shown, decoded = self._decoded(outputs, noise)
        types = self.types[: len(positions)]
        columns = zip(positions, types, shown, decoded, strict=False)
        drawn = decoded[len(positions) :] or self._drawn_target(outputs, noise)
        return {
            position: [(self.roles.name(position), table.decoded(type_, values, *found))]
            for position, type_, values, found in columns
        } | self._shown_target(table, drawn)

    def _decoded(self, outputs: IntArray, noise: Noise) -> tuple[list[list[Any]], Decoded]:
        """Return all values that each column may show, and those of each row."""
        if not self._draws_together:
            if self.alphabet.of_cells and self.made_up != "column_by_column":
                template = (
                    "The columns of {cells} were fitted to be drawn separately: fit again to draw "
                    "them together, or set {made_up='column_by_column'}."
                )
                raise ValueError(Message.of(template, cells="cells"))
            shown = [column.values for column in self.alphabet.shown]
            return shown, self.alphabet.decode(self.symbol_of_output, outputs, noise.uniform)
        # Drawn from the output alone, with noise of its own: the budget of Y covers all of it.
        if self._shown_cells is None:
            symbols = look_up(self.symbol_of_output, outputs)
        else:
            symbols = self._shown_cells.draw(outputs, noise, SHOWN_LANE)
        shown = [column.values for column in self.alphabet.made_up]
        n_attempts = self._n_attempts
        return shown, self.alphabet.decode_together(symbols, noise.attempt, n_attempts)

    def _shown_beside(self, table: Table, outputs: IntArray) -> Replacements:
        """Return the columns beside X, made from the outputs, each of which belongs to one z.

        The columns of the table could reveal more than z: the spelling of each value.
        """
        n_x, n_read = len(self.roles.x_positions), len(self.roles.read_positions)
        decoded = self.alphabet.decode_beside(self.symbol_of_output, outputs)
        columns = zip(self.roles.beside_positions, self.types[n_x:n_read], decoded, strict=True)
        return {
            position: [(self.roles.name(position), table.decoded(type_, found[0], *found))]
            for position, type_, found in columns
        }


def release_of(
    fitted: Fitted, output: str, made_up: str, handle_unknown: str, owner: str
) -> Release:
    """Return the `Release` of what was fitted; the other parameters are its fields."""
    roles, mechanism = fitted.roles, fitted.mechanism
    encoder = roles, fitted.types, fitted.alphabet, fitted.symbol_of_output
    probabilities = mechanism.channel, mechanism.unseen, fitted.posterior.given_y
    x_names = posterior_names(roles, fitted.posterior.labels)
    names = readable(mechanism.y_labels), x_names
    shown = fitted.shown_given_y, fitted.target
    asked = output, made_up, handle_unknown, owner
    return Release(*encoder, *probabilities, *shown, *names, *asked)
