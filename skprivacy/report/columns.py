"""What the report says about columns: what became of each, and which the guarantee covers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..describing import ReleaseSummary
from ..fitted import Fitted
from .sections import Table, facts


@dataclass(frozen=True)
class Columns:
    """The columns of a table, by what became of them.

    summary : which are protected, released, and published beside; copied, dropped : the others;
    apart : the column that tells people apart, if there is one.
    """

    summary: ReleaseSummary
    copied: tuple[str, ...]
    dropped: tuple[str, ...]
    apart: tuple[str, ...]

    @property
    def protected(self) -> str:
        """The names of those that are protected."""
        return listed(self.summary.protected)

    @property
    def unchanged(self) -> tuple[str, ...]:
        """Those that leave as they are, under the budget or outside of it."""
        return *self.summary.beside, *self.copied

    def table(self, n_groups: int) -> Table:
        """Return what became of each column; n_groups : of those that are protected."""
        dropped = [*self.dropped, *(f"{n} (read to tell people apart)" for n in self.apart)]
        n_x, n_y = self.summary.mechanism.channel.shape
        groups = "1 group" if n_groups == 1 else f"{n_groups:,} groups"
        released = ", ".join(self.summary.released)
        texts = {
            "protected": f"{self.protected}: {groups}, left out",
            self.summary.treatment: f"{released}: {n_x} symbols, {n_y} released values",
            "beside": _all(self.summary.beside, ", as published, under the same budget"),
            "copied": _all(self.copied, ", outside of the guarantee"),
            "dropped": _all(dropped),
        }
        return facts("Columns, by what became of them", texts)

    def leaking(self) -> list[str]:
        """Warn of copied columns that leak more than the release may."""
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
                f"because nearly every row has a value of its own: {', '.join(unclear)}."
            )
        return said

    def to_do(self) -> list[str]:
        """Say what to do about copied columns that leak more than the release may."""
        if not (names := ", ".join(self.summary.exceeding)):
            return []
        return [f"Do not sign: send it back and ask for a release without {names}."]

    def covered(self) -> list[str]:
        """Say which of those that leave unchanged the guarantee covers."""
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
    """Return the columns of what was fitted."""
    roles = fitted.roles
    apart = () if roles.group_position is None else (roles.group_position,)
    left = {*roles.order, *roles.s_positions, *apart}
    dropped = [position for position in range(roles.n_columns) if position not in left]
    positions = roles.kept_positions, dropped, apart
    return Columns(summary, *(tuple(str(roles.name(p)) for p in each) for each in positions))


def listed(names: Iterable[str]) -> str:
    """Return names as a part of a sentence."""
    return " and ".join(names)


def _all(names: Iterable[str], what: str = "") -> str:
    return f"{', '.join(names)}{what}" if names else "none"
