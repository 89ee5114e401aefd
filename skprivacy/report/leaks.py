"""Report: what leaks about each secret, and what the recipient may conclude."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .._messages import listed
from ..budgets import epsilon_for_shift
from ..describing import ReleaseSummary, SecretSummary
from ..describing.face_value import DOES_NOT_APPLY
from ..describing.numbers import at_most, figure, limit, percent, rounded_down, rounded_up, shown
from ..describing.verdict import CAUTION, DEFAULT_SCALE, NO_VERDICT
from ..fidelity import Fidelity
from ..measures import KL
from ..mechanism import FAR_ABOVE, USUAL_CONFIDENCE
from .attackers import best_attacker
from .columns import Columns
from .layout import Points, Section, Table

# More columns than this are not named in what to do.
_FEW_COLUMNS = 4

# Maximum number of groups in the table: the most exposed ones.
_MOST_GROUPS = 20

_ROWS_ONLY = "The budget was enforced for these rows only, not for the population."
_ASK_FOR_IT = f"send it back and ask for a release with a confidence of {USUAL_CONFIDENCE:g}."
_CHECKS = [
    "Check that the files and the columns below are the right ones.",
    "Decide whether the order of the rows tells something: if so, have them shuffled.",
    "Read what the recipient may and may not conclude.",
]
_TOO_FEW_ROWS = (
    "The limit for the population is far above the budget: there are too few rows for this many "
    "symbols and groups. More rows help, and so does merging values or groups."
)


def in_short(summary: ReleaseSummary) -> list[str]:
    """Return sentences on the treatment of columns, on what leaks and what is kept."""
    secrets = list(summary.secrets.values())
    said = [f"{summary.treatment_sentence()} {summary.kept_sentence()}"]
    said += [each.exposure(show_groups=True) for each in secrets]
    if summary.confidence is None:
        within = [each.in_population() for each in secrets if each.is_within]
        said.append(" ".join([_ROWS_ONLY, *within]).rstrip())
    if any((each.limit or 0) > FAR_ABOVE * each.epsilon for each in secrets):
        said.append(_TOO_FEW_ROWS)
    return [*filter(None, [*said, summary.partial_knowledge()])]


def to_do(summary: ReleaseSummary) -> list[str]:
    """Return what to do about the verdict before signing."""
    if summary.status == NO_VERDICT:
        return ["Do not sign: nothing is known that this release could be checked against."]
    if summary.verdict.level == "none":
        return [f"Do not sign: send it back and ask for {_smaller(summary)}."]
    said = _who_knows(summary)
    if summary.verdict.level == "weak":
        said.append(
            "Sign only if weak protection is enough for this purpose and this recipient; "
            f"otherwise, send it back and ask for {_smaller(summary)}."
        )
    if summary.status == CAUTION and summary.confidence is None:
        said.append(f"Sign for these rows only. For the population, {_ASK_FOR_IT}")
    return [*said, *_CHECKS]


def _who_knows(summary: ReleaseSummary) -> list[str]:
    """Return what to decide about recipients who know a column."""
    secrets = summary.secrets.values()
    if names := dict.fromkeys(name for s in secrets for name in s.exceeded_by_knowing):
        which = listed(names) if len(names) <= _FEW_COLUMNS else "a released column"
        return [f"Decide whether the recipient may know {which} of a person: if so, do not sign."]
    if any(None in s.learned.values() for s in secrets):
        return [
            "Decide whether the recipient may know part of a row: what that reveals is not known."
        ]
    return []


def _smaller(summary: ReleaseSummary) -> str:
    """Return the budgets that would protect."""
    if summary.scope == "average" or not summary.measure.is_monotone:
        return "a smaller epsilon"
    said = []
    for level in ("moderate", "strong"):
        points, times = summary.scale.allows[level]
        budgets = []
        for secret in summary.secrets.values():
            shares = secret.ranges["prior"].to_numpy()
            epsilon = epsilon_for_shift(shares, points, summary.measure, times)
            budgets.append(f"{rounded_down(min(secret.epsilon, epsilon), 2)} about {secret.name}")
        said.append(f"at most {listed(budgets)} for {level} protection")
    return f"a smaller epsilon: {', '.join(said)}"


def against_budgets(summary: ReleaseSummary) -> Table:
    """Return the table of verdicts, budgets and leakages of all secrets."""
    rows = {}
    for each in summary.secrets.values():
        limits, at_most = each.limits, each.limit
        sure = "" if limits is None else f", {percent(limits.confidence)} limit"
        rows[each.name] = {
            "protection": each.verdict.level,
            **_by_default(each),
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


def _by_default(secret: SecretSummary) -> dict[str, str]:
    """Return the verdict on the default scale, if another one decides."""
    if (release := secret.release).scale.is_default:
        return {}
    usual = release.on_scale(DEFAULT_SCALE).secrets[secret.key]
    return {"on the default scale": usual.verdict.level}


def what_leaks(secret: SecretSummary, cells: pd.DataFrame | None) -> Section:
    """Return the section on a secret; cells : their rules, if symbols are cells."""
    return Section(
        f"What leaks about {secret.name}" if secret.is_one_of_several else "What leaks",
        [secret.revealed(), best_attacker(secret), *_worst_value(secret, cells)],
        [_groups(secret), *_known_columns(secret)],
    )


def _worst_value(secret: SecretSummary, cells: pd.DataFrame | None) -> list[str]:
    """Name the released value that reveals most in the rows: recipients see it anyway."""
    leakage, mechanism = secret.secret.leakage, secret.release.mechanism
    worst = int(np.argmax(leakage))
    label = mechanism.y_labels[worst]
    if not np.isfinite(leakage[worst]) or len(mechanism.y_labels) < 2:
        return []
    said = [
        f"The released value that reveals most in the rows is {shown(label)}, which makes up "
        f"{mechanism.p_y[worst]:.1%} of the release."
    ]
    if cells is not None and label in cells.index:  # its name says nothing
        said.append(f"Rows of {shown(label)}: {cells['rule'].to_dict()[label]}.")
    return said


def _groups(secret: SecretSummary) -> Table:
    """Return the table of how far the probability of each group can move."""
    labels = [shown(label)[1:-1] for label in secret.secret.s_labels or ()]
    allowed: Any = "any"
    if secret.release.scope == "per_output":
        allowed = [found.shown() for found in secret.moves("allowed")]
    cells = pd.DataFrame(
        {
            "allowed by the budget": allowed,
            "reached in the rows": [found.shown() for found in secret.moves("reached")],
            "share": [f"{found.prior:.1%}" for found in secret.moves()],
        },
        index=pd.Index(labels, name="group"),
    )
    widths = pd.Series([found.width for found in secret.moves()])
    most = widths.sort_values(ascending=False, kind="stable").index[:_MOST_GROUPS].sort_values()
    caption = f"The probability of each group of {secret.name}, given a released value"
    if len(most) < len(cells):
        caption += f" ({_MOST_GROUPS} of {len(cells)} groups: the most exposed)"
    return Table(caption, cells.iloc[most])


def _known_columns(secret: SecretSummary) -> list[Table]:
    """Return the table of leakage to people who know a column, which no budget bounds."""
    if set(secret.known_columns.values()) <= {None}:  # cells have no values: nothing is known
        return []
    rows = {}
    for name, found in secret.learned.items():
        points, share = DOES_NOT_APPLY, "not known"
        if found is not None:
            share = f"{at_most(found.share)} of rows"
            points = f"{rounded_up(100 * found.points, 1)} points"
            points += " (certainty)" if found.is_certain else ""
        rows[name] = [points, share]
    columns = ["a guess moves by up to", f"more than {100 * secret.release.far:g} points"]
    cells = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    caption = f"What somebody who already knows a true value can learn about {secret.name}"
    return [Table(caption, cells.rename_axis("known column"))]


_NOT_TOGETHER = (
    "Each secret has its own budget. Separate budgets bound no combination of secrets: a released "
    "value may reveal more about several of them together."
)
_RARE = (
    "That a value which is rare or absent in the release is rare or absent in the table: rare "
    "values are often released as common ones."
)
_SEPARATE = (
    "How two columns relate to each other, such as the average of one for each value of another: "
    "each column of a released row is drawn separately, from the rows of the same cell."
)
_MADE_UP = (
    "Anything about one person from one row: rows are made up, and even those that look like "
    "somebody's are not."
)
_NOT_ESTIMATED = (
    "How much the release leaks, by counting its rows: nearly every made-up row is unique, so an "
    "estimate would be far too high. Leakage is computed from the channel."
)


def conclusions(
    summary: ReleaseSummary, columns: Columns, are_values: bool, notes: list[str]
) -> Section:
    """Return what the recipient may and may not conclude, and the scope of the guarantee.

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
        f"row: whoever knows one may learn more than the budget allows."
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
    """Whether the columns of a released row are drawn separately."""
    is_separate = fidelity is not None and fidelity.of_cells and not fidelity.is_joint
    return is_separate and len(columns.summary.released) > 1


def _may(columns: Columns, fidelity: Fidelity | None) -> list[str]:
    names = columns.summary.x_name()
    errors = ""
    if fidelity is not None:
        off = rounded_up(100 * fidelity.columns["total_variation"].max(), 1)
        errors = f"; shares can be off by up to {off} points"
    is_joint = fidelity is not None and fidelity.is_joint
    alone = ", one column at a time" if _is_separate(columns, fidelity) else ""
    said = [
        f"How the values of {names} are distributed over many rows{alone}{errors}.",
        *(["How two columns relate to each other, over many rows."] if is_joint else []),
        f"What a model learns from {names} as released, for rows released in the same way.",
    ]
    if columns.unchanged:
        said.append(f"That the values of {listed(columns.unchanged)} are the true ones.")
    return said


def _may_not(summary: ReleaseSummary, columns: Columns, fidelity: Fidelity | None) -> list[str]:
    protected, about_one_row = columns.protected, []
    if fidelity is not None and not np.isnan(fidelity.unchanged) and fidelity.unchanged != 1:
        about_one_row = [
            f"That a released value is the true value of that row: {1 - fidelity.unchanged:.1%} "
            f"of the rows are released with a different one."
        ]
    return [
        *_of_one_person(summary, protected),
        *about_one_row,
        *([] if fidelity is None else [_RARE]),
        *([_SEPARATE] if _is_separate(columns, fidelity) else []),
        *([_MADE_UP, _NOT_ESTIMATED] if fidelity is not None and fidelity.is_joint else []),
        f"That the release is anonymous. It protects {protected}, and nothing else in a row; and "
        f"this is not differential privacy, which would hide whether a person is in the data.",
        f"Anything from several releases of the same rows, or from rows of the same person or "
        f"family taken together: that can reveal more about {protected} than the budget allows.",
        f"That it can be joined to other data without harm: what these reveal about {protected} "
        f"comes on top. Row numbers and the order of rows are such data, too.",
    ]


def _of_one_person(summary: ReleaseSummary, protected: str) -> list[str]:
    """Return the largest move, without shares of groups; nothing if it is not protected."""
    verdicts = [secret.verdict for secret in summary.secrets.values()]
    if any(verdict.reasons for verdict in verdicts):
        return []
    said = f"Which {protected} a single person has"
    if any(np.isnan(verdict.points) for verdict in verdicts):
        return [f"{said}."]
    furthest = max(verdicts, key=lambda verdict: verdict.points)
    where = "" if summary.scope == "per_output" else " in these rows"
    return [f"{said}: {furthest.move_in_words()}{where}."]
