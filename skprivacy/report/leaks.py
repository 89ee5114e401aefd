"""What the report says about what leaks: in short, and at length for each secret."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..describing import (
    CAUTION,
    DOES_NOT_APPLY,
    NO_VERDICT,
    PASS,
    Range,
    ReleaseSummary,
    SecretSummary,
    figure,
    limit,
    percent,
    rounded_up,
    shown,
)
from ..measures import KL
from ..mechanism import FAR_ABOVE, USUAL_CONFIDENCE
from .attackers import best_attacker
from .sections import Section, Table

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
    rows = {each.name: _row(each) for each in summary.secrets.values()}
    if len(rows) > 1 and summary.together is not None:
        dashes = dict.fromkeys(next(iter(rows.values())), DOES_NOT_APPLY)
        rows["all together"] = dashes | {"in the rows": figure(summary.together)}
    cells = pd.DataFrame.from_dict(rows, orient="index").rename_axis("secret")
    which = {"per_output": "worst released value", "average": "average over all released values"}
    unit = ", in nats" if isinstance(summary.measure, KL) else ""
    return Table(f"Leakage against the budget: {which[summary.scope]}{unit}", cells)


def _row(secret: SecretSummary) -> dict[str, str]:
    limits, at_most = secret.limits, secret.limit
    sure = "population" if limits is None else f"population, {percent(limits.confidence)} limit"
    return {
        "protection": secret.verdict.level,
        "budget": f"{secret.epsilon:g}",
        "in the rows": figure(secret.leakage),
        sure: DOES_NOT_APPLY if at_most is None else limit(at_most),
    }


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
            "allowed by the budget": _between(secret.moves("allowed")) if is_bounded else "any",
            "reached in the rows": _between(secret.moves("reached")),
            "share": [f"{found.prior:.1%}" for found in secret.moves()],
        },
        index=pd.Index(labels, name="group"),
    )
    widths = pd.Series([found.width for found in secret.moves()])
    most = widths.sort_values(ascending=False, kind="stable").index[:_MOST_GROUPS].sort_values()
    some = f" ({_MOST_GROUPS} of {len(cells)} groups: the most exposed)"
    caption = f"The probability of each group of {secret.name}, for whoever sees a released value"
    return Table(caption + (some if len(most) < len(cells) else ""), cells.iloc[most])


def _between(ranges: list[Range]) -> list[str]:
    return ["{} to {}".format(*found.ends()) for found in ranges]


def _known_columns(secret: SecretSummary) -> list[Table]:
    """Return the table of what those learn who know a column, which no budget bounds."""
    known, budget = secret.known_columns, secret.epsilon
    if not known:
        return []
    rows = {
        name: ["not known", DOES_NOT_APPLY]
        if leakage is None
        else [limit(leakage), rounded_up(leakage / budget, 1) if budget else DOES_NOT_APPLY]
        for name, leakage in known.items()
    }
    cells = pd.DataFrame.from_dict(rows, orient="index", columns=["learns up to", "in budgets"])
    caption = f"What is learned about {secret.name} by whoever already knows a true value"
    return [Table(caption, cells.rename_axis("who knows"))]
