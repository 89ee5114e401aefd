"""What the report says about columns: what became of each, and which the guarantee covers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ..fitted import Fitted
from .sections import Table, facts

# What can become of X.
RANDOMISED, COARSER, UNCHANGED = "randomised", "made coarser", "unchanged"


@dataclass(frozen=True)
class Columns:
    """The names of all columns of a table, by what became of them.

    apart : the column that tells people apart, if there is one; treatment : that of `released`,
    in a word or two; exceeding : what copied columns leak, of those that alone exceed the budget,
    NaN where that cannot be judged.
    """

    protected: tuple[str, ...]
    released: tuple[str, ...]
    beside: tuple[str, ...]
    copied: tuple[str, ...]
    dropped: tuple[str, ...]
    apart: tuple[str, ...]
    treatment: str
    exceeding: Mapping[str, float]

    @property
    def together(self) -> str:
        """What the budget is about besides the release, within a sentence."""
        return f", together with {listed(self.beside)} as published," if self.beside else ""

    @property
    def unchanged(self) -> tuple[str, ...]:
        """Those that leave as they are, under the budget or outside of it."""
        return *self.beside, *self.copied

    def table(self, n_groups: int, shape: tuple[int, ...]) -> Table:
        """Return what became of each column; shape : that of the channel."""
        dropped = [*self.dropped, *(f"{n} (read to tell people apart)" for n in self.apart)]
        n_x, n_y = shape
        groups = "1 group" if n_groups == 1 else f"{n_groups:,} groups"
        texts = {
            "protected": f"{listed(self.protected)}: {groups}, left out",
            self.treatment: f"{', '.join(self.released)}: {n_x} symbols, {n_y} released values",
            "beside": _all(self.beside, ", as published, under the same budget"),
            "copied": _all(self.copied, ", outside of the guarantee"),
            "dropped": _all(tuple(dropped)),
        }
        return facts("Columns, by what became of them", texts)

    @property
    def failing(self) -> list[str]:
        """Those that are copied and alone exceed the budget."""
        return [name for name, leakage in self.exceeding.items() if not np.isnan(leakage)]

    def leaking(self) -> list[str]:
        """Warn of copied columns that leak more than the release may."""
        protected = listed(self.protected)
        more = [f"{name} ({self.exceeding[name]:.4g})" for name in self.failing]
        said = []
        if more:
            said.append(
                f"Alone, these copied columns leak more about {protected} than the budget allows: "
                f"{', '.join(more)}."
            )
        if unclear := [name for name in self.exceeding if name not in self.failing]:
            said.append(
                f"How much these copied columns leak about {protected} cannot be judged, because "
                f"nearly every row has a value of its own: {', '.join(unclear)}."
            )
        return said

    def to_do(self) -> list[str]:
        """Say what to do about copied columns that leak more than the release may."""
        if not self.failing:
            return []
        names = ", ".join(self.failing)
        return [f"Do not sign yet: send it back, and ask for a release without {names}."]

    def covered(self) -> list[str]:
        """Say which of those that leave unchanged the guarantee covers."""
        said = []
        if self.beside:
            said.append(
                f"It covers what is published beside the release ({listed(self.beside)}): whoever "
                f"sees both learns no more about {listed(self.protected)} than the budget allows."
            )
        if self.copied:
            said.append(
                f"It does not cover what is copied ({listed(self.copied)}): together with it, "
                f"the release may reveal more. Columns with few values can be published beside "
                f"the release instead, under the budget."
            )
        return said


def columns_of(fitted: Fitted) -> Columns:
    """Return the columns of what was fitted."""
    assert fitted.training is not None  # or there would be no report
    roles = fitted.roles
    apart = () if roles.group_position is None else (roles.group_position,)
    left = {*roles.order, *roles.s_positions, *apart}
    dropped = [position for position in range(roles.n_columns) if position not in left]

    def names(positions: Iterable[int]) -> tuple[str, ...]:
        return tuple(str(roles.name(position)) for position in positions)

    return Columns(
        protected=tuple(map(str, fitted.training.names)),
        released=names(roles.x_positions),
        beside=names(roles.beside_positions),
        copied=names(roles.kept_positions),
        dropped=names(dropped),
        apart=names(apart),
        treatment=_treatment(fitted),
        exceeding={str(name): leakage for name, leakage in fitted.leaking.items()},
    )


def _treatment(fitted: Fitted) -> str:
    """Return what became of X; values of a cell are drawn anew, even where cells are kept."""
    channel = fitted.mechanism.channel
    if fitted.alphabet.of_cells or not np.isin(channel, [0.0, 1.0]).all():
        return RANDOMISED
    return UNCHANGED if channel.sum(axis=0).max() == 1 else COARSER


def listed(names: tuple[str, ...]) -> str:
    """Return names as a part of a sentence."""
    return " and ".join(names)


def _all(names: tuple[str, ...], what: str = "") -> str:
    return f"{', '.join(names)}{what}" if names else "none"
