"""What the report says about columns that leave with the release, under the budget or outside."""

from dataclasses import dataclass

from ..fitted import Fitted


@dataclass(frozen=True)
class Others:
    """The columns that leave unchanged: those under the budget, and those copied outside of it."""

    beside: tuple[str, ...]
    copied: tuple[str, ...]

    @property
    def together(self) -> str:
        """What the budget is about besides the release, within a sentence."""
        return f", together with {_listed(self.beside)} as published," if self.beside else ""

    def facts(self) -> dict[str, str]:
        """Return what is to be said about them in short."""
        facts = {}
        if self.beside:
            facts["beside it"] = f"{_listed(self.beside)}, as published, under the same budget"
        if self.copied:
            facts["copied"] = f"{_listed(self.copied)}, outside of the guarantee"
        return facts

    def covered(self) -> list[str]:
        """Say which of them the guarantee covers."""
        said = []
        if self.beside:
            said.append(
                f"It covers what is published beside the release ({_listed(self.beside)}): "
                f"whoever sees both learns no more about S than the budget allows."
            )
        if self.copied:
            said.append(
                f"It does not cover what is copied ({_listed(self.copied)}): together with it, "
                f"the release may reveal more. Columns with few values can be named in 'beside'."
            )
        return said


def others_of(fitted: Fitted) -> Others:
    """Return the columns of what was fitted that leave unchanged."""
    roles = fitted.roles
    beside, copied = (
        tuple(str(roles.name(position)) for position in positions)
        for positions in (roles.beside_positions, roles.kept_positions)
    )
    return Others(beside, copied)


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(names)
