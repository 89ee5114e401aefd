"""Report: what leaks about each secret, and conclusions for the recipient."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..describing import ReleaseSummary, SecretSummary
from ..describing.face_value import DOES_NOT_APPLY
from ..describing.numbers import figure, limit, percent, rounded_up, shown
from ..describing.verdict import CAUTION, NO_VERDICT, PASS
from ..fidelity import Fidelity
from ..measures import KL
from ..mechanism import FAR_ABOVE, USUAL_CONFIDENCE
from .attackers import best_attacker
from .columns import Columns, listed
from .layout import Points, Section, Table

# Groups that the table lists, at most: the most exposed ones.
_MOST_GROUPS = 20

_ROWS_ONLY = "The budget was enforced for these rows only, not for the population."
_ASK_FOR_IT = f"send it back and ask for a release with a confidence of {USUAL_CONFIDENCE:g}."
_TOO_FEW_ROWS = (
    "What may leak in the population is far above the budget: there are too few rows for this "
    "many symbols and groups. More rows help, and so does putting values or groups together."
)


def in_short(summary: ReleaseSummary) -> list[str]:
    """Say what became of the columns, what leaks and what is kept."""
    secrets = list(summary.secrets.values())
    said = [f"{summary.treatment_sentence()} {summary.kept_sentence()}"]
    said += [each.revealed() for each in secrets]
    if summary.confidence is None:
        within = [each.in_population() for each in secrets if each.is_within]
        said.append(" ".join([_ROWS_ONLY, *within]).rstrip())
    if any((each.limit or 0) > FAR_ABOVE * each.epsilon for each in secrets):
        said.append(_TOO_FEW_ROWS)
    return [*said, *filter(None, [summary.partial_knowledge()])]


def to_do(summary: ReleaseSummary) -> list[str]:
    """Say what to do about the verdict before anybody signs."""
    if summary.status == PASS:
        return [
            "Check that the files and the columns below are the right ones.",
            "Read what the recipient may and may not conclude.",
        ]
    if summary.status == NO_VERDICT:
        return ["Do not sign: there is nothing that this release was checked against."]
    if summary.verdict.level == "none":
        return ["Do not sign: send it back and ask for a smaller epsilon."]
    said = []
    if summary.verdict.level == "weak":
        said.append(
            "Sign only if weak protection is enough for this purpose and this recipient; "
            "otherwise, send it back and ask for a smaller epsilon."
        )
    if summary.status == CAUTION and summary.confidence is None:
        said.append(f"Sign for these rows only. For the population, {_ASK_FOR_IT}")
    return said


def against_budgets(summary: ReleaseSummary) -> Table:
    """Return the table of all secrets: the verdict, budgets, and what leaks about each."""
    rows = {}
    for each in summary.secrets.values():
        limits, at_most = each.limits, each.limit
        sure = "" if limits is None else f", {percent(limits.confidence)} limit"
        rows[each.name] = {
            "protection": each.verdict.level,
            "budget": limit(each.epsilon, 6),
            "in the rows": figure(each.leakage),
            f"population{sure}": DOES_NOT_APPLY if at_most is None else limit(at_most),
        }
    if len(rows) > 1 and summary.together is not None:
        dashes = dict.fromkeys(next(iter(rows.values())), DOES_NOT_APPLY)
        rows["all together"] = dashes | {"in the rows": figure(summary.together)}
    cells = pd.DataFrame.from_dict(rows, orient="index").rename_axis("secret")
    which = {"per_output": "worst released value", "average": "average over all released values"}
    unit = ", in nats" if isinstance(summary.measure, KL) else ""
    return Table(f"Leakage against the budget: {which[summary.scope]}{unit}", cells)


def what_leaks(secret: SecretSummary, cells: pd.DataFrame | None) -> Section:
    """Return what is revealed about a secret; cells : their rules, where symbols are cells."""
    return Section(
        f"What leaks about {secret.name}" if secret.is_one_of_several else "What leaks",
        [
            secret.exposure(show_groups=True),
            best_attacker(secret),
            *_worst_value(secret, cells),
        ],
        [_groups(secret), *_known_columns(secret)],
    )


def _worst_value(secret: SecretSummary, cells: pd.DataFrame | None) -> list[str]:
    """Name the released value that reveals most in the rows: it is in the release anyway."""
    leakage, made = secret.secret.leakage, secret.release.mechanism
    at = int(np.argmax(leakage))
    label = made.y_labels[at]
    if not np.isfinite(leakage[at]) or len(made.y_labels) < 2:
        return []
    said = [
        f"The released value that reveals most in the rows is {shown(label)}, which makes up "
        f"{made.p_y[at]:.1%} of the release."
    ]
    if cells is not None and label in cells.index:  # its name says nothing
        said.append(f"Rows of {shown(label)}: {cells['rule'].to_dict()[label]}.")
    return said


def _groups(secret: SecretSummary) -> Table:
    """Return the table of how far the probability of each group can move."""
    labels = [shown(label)[1:-1] for label in secret.secret.s_labels or ()]
    is_bounded = secret.release.scope == "per_output"
    cells = pd.DataFrame(
        {
            "allowed by the budget": [found.shown() for found in secret.moves("allowed")]
            if is_bounded
            else "any",
            "reached in the rows": [found.shown() for found in secret.moves("reached")],
            "share": [f"{found.prior:.1%}" for found in secret.moves()],
        },
        index=pd.Index(labels, name="group"),
    )
    widths = pd.Series([found.width for found in secret.moves()])
    most = widths.sort_values(ascending=False, kind="stable").index[:_MOST_GROUPS].sort_values()
    some = f" ({_MOST_GROUPS} of {len(cells)} groups: the most exposed)"
    caption = f"The probability of each group of {secret.name}, for whoever sees a released value"
    return Table(caption + (some if len(most) < len(cells) else ""), cells.iloc[most])


def _known_columns(secret: SecretSummary) -> list[Table]:
    """Return the table of what those learn who know a column, which no budget bounds."""
    known, budget = secret.known_columns, secret.epsilon
    if not known:
        return []
    rows = {
        name: ["not known", DOES_NOT_APPLY]
        if leakage is None
        else [
            limit(leakage),
            rounded_up(leakage / budget, 1) if 0 < budget < np.inf else DOES_NOT_APPLY,
        ]
        for name, leakage in known.items()
    }
    cells = pd.DataFrame.from_dict(rows, orient="index", columns=["learns up to", "in budgets"])
    caption = f"What is learned about {secret.name} by whoever already knows a true value"
    return [Table(caption, cells.rename_axis("who knows"))]


# What the report says to the recipient of a release: what follows from it, and what does not.


_NOT_TOGETHER = (
    "Each secret has a budget of its own. Separate budgets bound no combination of secrets: what "
    "a released value reveals about several of them together may be more."
)
_RARE = (
    "That a value which is rare in the release, or does not appear, is so in the table: rare "
    "values are often released as common ones."
)
_SEPARATE = (
    "How two columns relate to each other, such as the average of one for each value of another: "
    "each column of a released row is drawn separately, from the rows of the same cell."
)


def conclusions(
    summary: ReleaseSummary, columns: Columns, are_values: bool, notes: list[str]
) -> Section:
    """Return what the recipient may and may not conclude, and for what that holds.

    are_values : whether released values look like true ones; notes : of the caller.
    """
    several = [_NOT_TOGETHER] if len(summary.secrets) > 1 else []
    fidelity = summary.fidelity if are_values else None
    about = "these rows"
    if summary.confidence is not None:
        about = (
            f"the population the rows were drawn from, independently of each other, with "
            f"{percent(summary.confidence)} confidence"
        )
    guarantee = (
        f"The guarantee is about {about}, and about one release of each row. The attacker may "
        f"know the channel, and everything about the rows as a whole, but no other part of the "
        f"row: whoever knows one may learn more than the budget."
    )
    return Section(
        "What the recipient may and may not conclude",
        [guarantee, *columns.covered(), *several, *notes],
        points=[
            Points("May conclude", _may(columns, fidelity)),
            Points("May not conclude", _may_not(summary, columns, fidelity)),
        ],
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
    protected, about_one_row = columns.protected, []
    if fidelity is not None and not np.isnan(fidelity.unchanged) and fidelity.unchanged != 1:
        about_one_row = [
            f"That a released value is the true value of that row: {1 - fidelity.unchanged:.1%} "
            f"of the rows are released with another one."
        ]
    return [
        f"Which {protected} a single person has{_moved(summary)}.",
        *about_one_row,
        *([] if fidelity is None else [_RARE]),
        *([_SEPARATE] if _is_separate(columns, fidelity) else []),
        f"That the release is anonymous. It is {protected} that is protected, and nothing else in "
        f"a row; and this is not differential privacy, which would hide whether a person is in "
        f"the data.",
        f"Anything from several releases of the same rows, or from rows of the same person or "
        f"family taken together: that can reveal more about {protected} than the budget.",
        f"That it can be joined to other data without harm: what these reveal about {protected} "
        f"comes on top. Row numbers and the order of rows are such data, too.",
    ]


def _moved(summary: ReleaseSummary) -> str:
    """Say how little follows about one person; shares of groups are not for the recipient."""
    verdicts = [secret.verdict for secret in summary.secrets.values()]
    if any(np.isnan(verdict.points) for verdict in verdicts):
        return ""
    furthest = max(verdicts, key=lambda verdict: verdict.points)
    where = "" if summary.scope == "per_output" else " in these rows"
    return f": {furthest.move_in_words()}{where}"
