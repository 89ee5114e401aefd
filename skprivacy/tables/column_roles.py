"""The role of each column: replaced, sensitive, published beside, or passed through."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from typing import Any

from .._messages import Message, Owner
from .._warnings import warn
from .table import Table


@dataclass(frozen=True)
class ColumnRoles:
    """Which columns `fit` saw, and what each of them is.

    names : of all columns, or None for an array; x_positions : the columns that are replaced;
    s_positions : those that hold S; s_names : what S is called, even where it came separately from
    the table; kept_positions : the columns that are passed through; of_cells : whether rows are
    released as cells; group_position : the column that tells people apart, which is read and never
    released; beside_positions : the columns that come out unchanged under the budget. No others
    come out.
    """

    names: list[Any] | None
    n_columns: int
    x_positions: tuple[int, ...]
    s_positions: tuple[int, ...]
    s_names: tuple[Any, ...] = ()
    kept_positions: tuple[int, ...] = ()
    of_cells: bool = False
    group_position: int | None = None
    beside_positions: tuple[int, ...] = ()

    @property
    def has_string_names(self) -> bool:
        """Whether there are names that scikit-learn takes as feature names."""
        return self.names is not None and all(isinstance(name, str) for name in self.names)

    @property
    def order(self) -> list[int]:
        """The columns that come out, replaced or unchanged, in the order of `fit`."""
        return sorted([*self.x_positions, *self.kept_positions, *self.beside_positions])

    @property
    def read_positions(self) -> tuple[int, ...]:
        """The columns that a draw depends on: those that are replaced, and those beside them."""
        return *self.x_positions, *self.beside_positions

    @property
    def typed_positions(self) -> tuple[int, ...]:
        """The columns whose types `fit` learns: replaced, beside them, and passed through."""
        return *self.read_positions, *self.kept_positions

    @property
    def read(self) -> list[int]:
        """The columns that `transform` reads."""
        return self.order if self.group_position is None else [*self.order, self.group_position]

    def keeping(self, names: Container[Any]) -> ColumnRoles:
        """Return the roles with fewer columns passed through: only those with these names."""
        pairs = zip(self.kept_positions, self.names_or_positions(self.kept_positions), strict=True)
        return replace(self, kept_positions=tuple(p for p, name in pairs if name in names))

    def name(self, position: int) -> Any:
        """Return the name of a column; arrays get scikit-learn's x0, x1, ..."""
        return f"x{position}" if self.names is None else self.names[position]

    def names_or_positions(self, positions: Iterable[int]) -> list[Any]:
        """Return what a user would write for some columns."""
        return [p if self.names is None else self.names[p] for p in positions]

    @property
    def joint_name(self) -> str:
        """What several columns taken jointly are called."""
        if self.of_cells:
            return "cell"
        return "|".join(str(self.name(position)) for position in self.x_positions)

    def renamed(self, input_features: Iterable[str] | None) -> ColumnRoles:
        """Return the roles with other names, as `get_feature_names_out` takes them."""
        if input_features is None:
            return self
        given = list(input_features)
        if self.has_string_names and given != self.names:
            raise ValueError("input_features is not equal to feature_names_in_")
        if len(given) != self.n_columns:
            told = "input_features should have length equal to number of features "
            raise ValueError(told + f"({self.n_columns}), got {len(given)}")
        return replace(self, names=given)

    def match(self, table: Table, owner: str) -> dict[int, int]:
        """Return the position in `table` of each column of `fit` that `transform` needs."""
        if self.names is None or table.names is None:
            if table.n_columns != self.n_columns:
                said = f"X has {table.n_columns} features, but ", Owner(owner), " is expecting "
                raise ValueError(Message(*said, f"{self.n_columns} features as input."))
            if self.has_string_names and table.names is None:
                text = "X does not have valid feature names, but "
                warn(Message(text, Owner(owner), " was fitted with feature names"))
            elif self.names is None and table.names is not None:
                text = "X has feature names, but "
                warn(Message(text, Owner(owner), " was fitted without feature names"))
            return {position: position for position in range(self.n_columns)}
        missing = [self.names[p] for p in self.read if self.names[p] not in table.names]
        if missing:
            told = f"X lacks the columns {missing} that ", Owner(owner), " was fitted with. "
            raise ValueError(Message(*told, f"It has {table.names}.{self.about_groups(missing)}"))
        return {p: table.names.index(self.names[p]) for p in self.read}

    @property
    def group_names(self) -> tuple[Any, ...]:
        """The name of the column that tells people apart, if there is one."""
        return () if self.group_position is None else (self.name(self.group_position),)

    def about_groups(self, missing: Container[Any]) -> str:
        """Say what the column that tells people apart is needed for, if it is missing."""
        return "".join(
            f" {name!r} tells which rows are of the same person: it is read, and not released."
            for name in self.group_names
            if name in missing
        )

    def read_in(self, table: Table, owner: str) -> list[int]:
        """Return the positions of the columns of X and of those beside it."""
        positions = replace(self, kept_positions=()).match(table, owner)
        return [positions[position] for position in self.read_positions]

    def group_in(self, table: Table, owner: str) -> int | None:
        """Return where in `table` the column is that tells people apart, None if there is none."""
        if self.group_position is None:
            return None
        return replace(self, kept_positions=()).match(table, owner)[self.group_position]
