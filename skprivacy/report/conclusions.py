"""What the report says to the recipient of a release: what follows from it, and what does not."""

from typing import TypeAlias

import numpy as np

from ..describing import exposure
from ..fidelity import Fidelity
from ..mechanism import Mechanism, SeveralSecretsMechanism
from .columns import Columns, listed
from .populations import what_it_is_about
from .sections import Points, Section

_NOT_TOGETHER = (
    "Each secret has a budget of its own. Separate budgets bound no combination of secrets: what "
    "a released value reveals about several of them together may be more."
)
_FEW_COLUMNS = 4

AnyMechanism: TypeAlias = Mechanism | SeveralSecretsMechanism


_RARE = (
    "That a value which is rare in the release, or does not appear, is so in the table: rare "
    "values are often released as common ones."
)


def conclusions(
    mechanism: AnyMechanism,
    columns: Columns,
    fidelity: Fidelity | None,
    notes: list[str],
) -> Section:
    """Return what the recipient may and may not conclude, and for what that holds.

    fidelity : None where released values do not look like true ones; notes : of the caller.
    """
    several = [] if isinstance(mechanism, Mechanism) else [_NOT_TOGETHER]
    return Section(
        "What the recipient may and may not conclude",
        [what_it_is_about(mechanism), *columns.covered(), *several, *notes],
        points=[
            Points("May conclude", _may(columns, fidelity is not None)),
            Points("May not conclude", _may_not(mechanism, columns, fidelity)),
        ],
    )


def _may(columns: Columns, are_values: bool) -> list[str]:
    names = _named(columns.released)
    errors = ", with the errors that are under 'At face value'" if are_values else ""
    said = [
        f"How the values of {names} are spread over many rows{errors}.",
        f"What a model learns from {names} as released, about rows that are released alike.",
    ]
    if columns.unchanged:
        said.append(f"That the values of {listed(columns.unchanged)} are the true ones.")
    return said


def _may_not(mechanism: AnyMechanism, columns: Columns, fidelity: Fidelity | None) -> list[str]:
    protected, is_one = listed(columns.protected), isinstance(mechanism, Mechanism)
    return [
        _about_one_person(mechanism, protected),
        *([] if fidelity is None else _about_one_row(fidelity)),
        *([] if fidelity is None else [_RARE]),
        f"That the release is anonymous. It is {protected} that is protected, and nothing else in "
        f"a row; and this is not differential privacy, which would hide whether a person is in "
        f"the data.",
        f"Anything from several releases of the same rows, or from rows of the same person or "
        f"family taken together: that can reveal more about {protected} than the "
        f"budget{'' if is_one else 's'}.",
        f"That it can be joined to other data without harm: what these reveal about {protected} "
        f"comes on top. Row numbers and the order of rows are such data, too.",
    ]


def _about_one_row(fidelity: Fidelity) -> list[str]:
    if np.isnan(fidelity.unchanged) or fidelity.unchanged == 1:
        return []
    return [
        f"That a released value is the true value of that row: {1 - fidelity.unchanged:.1%} of "
        f"the rows are released with another one."
    ]


def _about_one_person(mechanism: AnyMechanism, protected: str) -> str:
    """Say how little follows about one person; no group is named, for the recipient."""
    start = f"Which {protected} a single person has"
    if not isinstance(mechanism, Mechanism):
        return f"{start}: the budgets are there to prevent that."
    return f"{start}. {exposure(mechanism.posterior_ranges())}"


def _named(names: tuple[str, ...]) -> str:
    return listed(names) if len(names) <= _FEW_COLUMNS else f"the {len(names)} released columns"
