"""What the report says to the recipient of a release: what follows from it, and what does not."""

import numpy as np

from ..describing import ReleaseSummary, percent, rounded_up
from ..fidelity import Fidelity
from .columns import Columns, listed
from .sections import Points, Section

_NOT_TOGETHER = (
    "Each secret has a budget of its own. Separate budgets bound no combination of secrets: what "
    "a released value reveals about several of them together may be more."
)
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
    summary: ReleaseSummary, columns: Columns, are_values: bool, notes: list[str]
) -> Section:
    """Return what the recipient may and may not conclude, and for what that holds.

    are_values : whether released values look like true ones; notes : of the caller.
    """
    several = [_NOT_TOGETHER] if len(summary.secrets) > 1 else []
    fidelity = summary.fidelity if are_values else None
    return Section(
        "What the recipient may and may not conclude",
        [_what_it_is_about(summary), *columns.covered(), *several, *notes],
        points=[
            Points("May conclude", _may(columns, fidelity)),
            Points("May not conclude", _may_not(summary, columns, fidelity)),
        ],
    )


def _what_it_is_about(summary: ReleaseSummary) -> str:
    about = "these rows"
    if summary.confidence is not None:
        about = (
            f"the population the rows were drawn from, independently of each other, with "
            f"{percent(summary.confidence)} confidence"
        )
    return (
        f"The guarantee is about {about}, and about one release of each row. The attacker may "
        f"know the channel, and everything about the rows as a whole, but no other part of the "
        f"row: whoever knows one may learn more than the budget."
    )


def _is_separate(columns: Columns, fidelity: Fidelity | None) -> bool:
    """Return whether the columns of a released row are drawn separately."""
    return fidelity is not None and fidelity.of_cells and len(columns.summary.released) > 1


def _may(columns: Columns, fidelity: Fidelity | None) -> list[str]:
    names = columns.summary.x_name()
    errors = "" if fidelity is None else ", with the errors that are under 'At face value'"
    alone = ", one column at a time" if _is_separate(columns, fidelity) else ""
    said = [
        f"How the values of {names} are spread over many rows{alone}{errors}.",
        f"What a model learns from {names} as released, about rows that are released alike.",
    ]
    if columns.unchanged:
        said.append(f"That the values of {listed(columns.unchanged)} are the true ones.")
    return said


def _may_not(summary: ReleaseSummary, columns: Columns, fidelity: Fidelity | None) -> list[str]:
    protected = columns.protected
    return [
        f"Which {protected} a single person has{_moved(summary)}.",
        *([] if fidelity is None else [*_about_one_row(fidelity), _RARE]),
        *([_SEPARATE] if _is_separate(columns, fidelity) else []),
        f"That the release is anonymous. It is {protected} that is protected, and nothing else in "
        f"a row; and this is not differential privacy, which would hide whether a person is in "
        f"the data.",
        f"Anything from several releases of the same rows, or from rows of the same person or "
        f"family taken together: that can reveal more about {protected} than the budget.",
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


def _moved(summary: ReleaseSummary) -> str:
    """Say how little follows about one person; shares of groups are not for the recipient."""
    points = max(secret.verdict.points for secret in summary.secrets.values())
    if np.isnan(points):
        return ""
    where = "" if summary.scope == "per_output" else " in these rows"
    return (
        f": no released value moves the probability of a group by more than "
        f"{rounded_up(100 * points, 1)} points{where}"
    )
