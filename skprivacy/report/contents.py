"""Report: all sections in their order."""

from ..describing import CAUTION, PASS, ReleaseSummary
from ..fitted import Fitted
from ..fitting.parameters import Settings
from .appendix import Handover, for_specialists, glossary, pictures, recipe
from .attackers import Attacked, attack_section, no_attack, small_numbers
from .columns import cells_section, columns_of, face_value, target_beside
from .layout import Points, Section
from .leaks import against_budgets, conclusions, in_short, to_do, what_leaks

_SEEDED = (
    "The noise was drawn with a fixed random_state: whoever knows it can undo the noise. Release "
    "with random_state=None."
)


def sections_of(
    fitted: Fitted,
    settings: Settings,
    summary: ReleaseSummary,
    attacked: Attacked | None,
    handover: Handover,
    notes: list[str],
    with_curve: bool = True,
) -> tuple[str, list[Section]]:
    """Return the title and the sections of a report on what was fitted by these settings.

    summary : of the release, with limits for the population; notes : those of the caller on the
    guarantee; with_curve : whether to show what other budgets would keep.
    """
    assert fitted.training is not None  # or there would be no report
    columns, secrets = columns_of(fitted, summary), list(summary.secrets.values())
    protected, mechanism = columns.protected, fitted.mechanism
    may_sign = summary.status in (PASS, CAUTION)
    are_values = settings.output == "label"  # or what comes out is not what went in
    attacks = [no_attack(protected)]
    if attacked is not None:
        attacks = [attack_section(fitted, settings, attacked, secret) for secret in secrets]
    first = Section(
        "In short",
        [
            *columns.leaking(),
            *([] if settings.random_state is None else [_SEEDED]),
            *in_short(summary),
            *target_beside(fitted, protected),
            *handover.in_short(),
        ],
        [against_budgets(summary)],
        points=[
            Points(
                "To do before you sign",
                [*columns.to_do(), *to_do(summary), *(handover.to_do() if may_sign else [])],
            )
        ],
        lead=summary.lead(),
        status=summary.status,
    )
    rows = f"{fitted.training.n_rows:,} rows"
    if fitted.training.effective_rows != fitted.training.n_rows:
        rows += f", as good as {fitted.training.effective_rows:,} equally weighted ones"
    if settings.smoothing:
        rows += f", smoothed by {settings.smoothing:g} rows in every cell"
    files = Section(
        "Files and columns",
        handover.notes(protected),
        [
            handover.files(rows),
            columns.table(fitted.training.alphabet.n_symbols),
        ],
    )
    sections = [
        first,
        files,
        *(what_leaks(secret, fitted.cells) for secret in secrets),
        small_numbers(fitted, protected, summary.fidelity.pooled),
        *cells_section(fitted),
        *([face_value(fitted, summary.fidelity)] if are_values else []),
        *attacks,
        conclusions(summary, columns, are_values, notes),
        handover.signatures(may_sign),
        glossary(),
        pictures(summary, mechanism, settings, with_curve),
        for_specialists(summary, mechanism),
        recipe(mechanism.epsilon, settings),
    ]
    return f"Privacy report: {summary.x_name()} released, {protected} protected", sections
