"""What the report says to the recipient of a release: what follows from it, and what does not."""

import math
from typing import TypeAlias

import numpy as np

from .._messages import in_points
from ..describing import largest_move
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
_ROUNDING = 1e-9

AnyMechanism: TypeAlias = Mechanism | SeveralSecretsMechanism


_RARE = (
    "That a value which is rare in the release, or does not appear, is so in the table: rare "
    "values are often released as common ones."
)


_SEPARATE = (
    "How two columns go together, such as the average of one for each value of another: each "
    "column of a released row is drawn separately, and what binds them is what a cell has in "
    "common."
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
            Points("May conclude", _may(columns, fidelity)),
            Points("May not conclude", _may_not(mechanism, columns, fidelity)),
        ],
    )


def _is_separate(columns: Columns, fidelity: Fidelity | None) -> bool:
    """Return whether the columns of a released row are drawn separately."""
    return fidelity is not None and fidelity.of_cells and len(columns.released) > 1


def _may(columns: Columns, fidelity: Fidelity | None) -> list[str]:
    names = _named(columns.released)
    errors = "" if fidelity is None else ", with the errors that are under 'At face value'"
    alone = ", one column at a time" if _is_separate(columns, fidelity) else ""
    said = [
        f"How the values of {names} are spread over many rows{alone}{errors}.",
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
        *([_SEPARATE] if _is_separate(columns, fidelity) else []),
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
    """Say how little follows about one person; shares of groups are not for the recipient."""
    start = f"Which {protected} a single person has"
    if not isinstance(mechanism, Mechanism):
        return f"{start}: the budgets are there to prevent that."
    moved = largest_move(mechanism.posterior_ranges())
    moved = math.ceil(1000 * moved - _ROUNDING) / 1000  # a limit is rounded up
    where = "" if mechanism.scope == "per_output" else " in these rows"
    return (
        f"{start}: no released value moves the probability of a group by more than "
        f"{in_points(moved, '.1f')}{where}."
    )


def _named(names: tuple[str, ...]) -> str:
    return listed(names) if len(names) <= _FEW_COLUMNS else f"the {len(names)} released columns"
